//! A counting wrapper of the system's allocator, for the tests that prove that a hot path
//! allocates nothing. A program that uses this crate has it as the global allocator.
//!
//! ```
//! assert_eq!(fanfare_counting::allocations(|| drop(Box::new(7))), 1);
//! ```
#![deny(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

thread_local! {
    // Plain cells without destructors: they need no memory themselves.
    static HERE: Cell<u64> = const { Cell::new(0) };
    static LIVE_HERE: Cell<i64> = const { Cell::new(0) };
    static IS_EXEMPT: Cell<bool> = const { Cell::new(false) };
}

/// The counts of all threads that are not exempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Allocations and reallocations.
    pub allocations: u64,
    /// Bytes allocated and not freed. A block that one thread allocates and an exempt one frees
    /// stays counted.
    pub live_bytes: i64,
}

/// Returns the number of allocations of this thread during `work`; other threads do not count.
pub fn allocations(work: impl FnOnce()) -> u64 {
    let before = HERE.get();
    work();
    HERE.get() - before
}

/// Returns the bytes that this thread has allocated, minus those that it freed. Other threads, such
/// as the test harness, do not count.
pub fn live_bytes_here() -> i64 {
    LIVE_HERE.get()
}

/// Exempts this thread from [`totals`]: for a test that drives the threads it watches.
pub fn exempt_this_thread() {
    IS_EXEMPT.set(true);
}

/// Returns the counts of all threads that are not exempt, since the start.
pub fn totals() -> Totals {
    Totals {
        allocations: ALLOCATIONS.load(Relaxed),
        live_bytes: LIVE_BYTES.load(Relaxed),
    }
}

fn count(allocations: u64, bytes: i64) {
    HERE.set(HERE.get() + allocations);
    LIVE_HERE.set(LIVE_HERE.get() + bytes);
    if !IS_EXEMPT.get() {
        ALLOCATIONS.fetch_add(allocations, Relaxed);
        LIVE_BYTES.fetch_add(bytes, Relaxed);
    }
}

#[allow(unsafe_code)]
// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`, which the system's allocator shares.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which the system's allocator
        // shares.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: the pointer came from the system's allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size as i64 - layout.size() as i64);
        // SAFETY: the pointer came from the system's allocator with this layout.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn every_kind_of_allocation_counts_on_its_own_thread() {
        let mut bytes = Vec::new();
        assert_eq!(allocations(|| bytes.push(1_u8)), 1);
        assert_eq!(allocations(|| bytes.reserve_exact(1_000)), 1);
        assert_eq!(allocations(|| drop(black_box(vec![0_u64; 9]))), 1);
        let elsewhere = || std::thread::spawn(|| drop(black_box(vec![1; 99]))).join();
        let both = allocations(|| drop(black_box(elsewhere())));
        assert!(both > 0, "starting a thread allocates here");
        assert_eq!(allocations(|| ()), 0);
    }

    #[test]
    fn live_bytes_are_those_of_this_thread() {
        let before = live_bytes_here();
        let block = black_box(vec![7_u8; 1_000]);
        assert_eq!(live_bytes_here() - before, 1_000);
        drop(block);
        assert_eq!(live_bytes_here(), before);
        let elsewhere = std::thread::spawn(|| black_box(vec![1_u8; 5_000]));
        let elsewhere = elsewhere.join();
        assert!(live_bytes_here() - before < 5_000);
        drop(elsewhere);
    }

    #[test]
    fn an_exempt_thread_is_left_out_of_the_totals() {
        exempt_this_thread();
        let before = totals();
        let block = black_box(vec![7_u8; 1 << 20]);
        let after = totals();
        assert!(after.live_bytes - before.live_bytes < 1 << 20);
        drop(block);
    }
}
