//! Decoding, converting, writing and taking allocate nothing of ours after warm-up: a counting
//! allocator, by thread. (Cyclone DDS has its own pool, which this does not see.)
#![allow(clippy::unwrap_used, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fanfare_bus::fast::{Converter, Mapping, TypeOptions};
use fanfare_bus::{Domain, DomainConfig, Qos};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::{Decoder, Program};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; the counter is a plain cell of
// this thread and needs no memory itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_message_goes_from_packet_to_reader_without_allocation() {
    let program = Arc::new(Program::complex());
    let mut feed = Generator::complex(Program::complex(), 8, None, ComplexOptions::default());
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default()).unwrap();
    let mapping = Arc::new(mapping);
    let domain = Domain::open(&DomainConfig::new(std::process::id() % 200)).unwrap();
    let qos = Qos::best_effort();
    let t = &mapping.by_name("MarketData").unwrap().sample;
    let name = format!("alloc-{}", std::process::id());
    let topic = domain.topic(&name, t, &qos).unwrap();
    let heard = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&heard);
    let count = move |s: fanfare_bus::Sample<'_>| {
        counter.fetch_add(s.bytes().len() as u64, Ordering::Relaxed);
    };
    let _listening = topic.reader(&qos).on_sample(count).open().unwrap();
    let reader = topic.reader(&qos).open().unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    let mut samples = reader.samples(16);
    let mut decoder = Decoder::new(program);
    let mut converter = Converter::new(mapping, 1 << 14);
    let mut taken = 0;
    let mut round = || {
        let before = COUNT.with(Cell::get);
        for packet in &packets {
            decoder.reset();
            decoder.decode(packet, &mut converter).unwrap();
            let write = |s: fanfare_bus::fast::Converted<'_>| {
                if s.template.name == "MarketData" {
                    writer.write(s.cdr).unwrap();
                }
            };
            converter.samples(write).unwrap();
            taken += reader.take(&mut samples).unwrap();
            for sample in samples.iter() {
                assert!(sample.cdr().unwrap().u32().is_ok());
            }
        }
        COUNT.with(Cell::get) - before
    };
    round();
    let later: u64 = (0..50).map(|_| round()).sum();
    assert_eq!(later, 0);
    assert!(taken > 350 && heard.load(Ordering::Relaxed) > 0);
}
