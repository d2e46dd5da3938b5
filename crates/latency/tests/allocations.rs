//! What runs once for each message of a load or of a capture allocates nothing after warm-up.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use fanfare_latency::histogram::Histogram;
use fanfare_latency::load::OrderCheck;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn recording_and_checking_allocate_nothing() {
    let mut histogram = Histogram::new();
    let mut check = OrderCheck::new(true);
    let marks: Vec<String> = (1..=1_000).map(|n| format!("P7-{n}")).collect();
    // The first mark of a producer makes its entry.
    check.mark(marks[0].as_bytes());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for (n, mark) in marks.iter().enumerate().skip(1) {
        histogram.record(n as u64 * 1_234_567);
        check.mark(mark.as_bytes());
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
    assert_eq!((histogram.len(), check.counts().in_order), (999, 1_000));
    // The counter works: this allocates.
    drop(std::hint::black_box(vec![0_u8; 64]));
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before);
}
