//! Generated structs: no heap allocation after warm-up, in decode and in encode.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::typed::{TypedDecoder, TypedEncoder};
use fanfare_fast::{Options, Program};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

#[allow(unreachable_pub, dead_code)]
mod complex {
    include!("codegen/complex.generated");
}
use complex::{Decoded, Messages};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: `ptr` came from `System.alloc` with this layout.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn pass(
    packets: &[Vec<u8>],
    decoder: &mut TypedDecoder<Messages>,
    encoder: &mut TypedEncoder,
    out: &mut Vec<u8>,
) {
    for packet in packets {
        decoder.reset();
        encoder.reset();
        out.clear();
        let (_, decoded) = decoder.decode(packet).unwrap();
        match decoded {
            Some(Decoded::MarketData(m)) => encoder.encode(m, out).unwrap(),
            Some(Decoded::QuoteRequest(m)) => encoder.encode(m, out).unwrap(),
            Some(Decoded::Done(m)) => encoder.encode(m, out).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(out, packet);
    }
}

#[test]
fn structs_keep_their_memory() {
    let options = ComplexOptions::default();
    let mut generator = Generator::complex(Program::complex(), 500, None, options);
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    let mut decoder = TypedDecoder::<Messages>::new(Options::default()).unwrap();
    let mut encoder = TypedEncoder::new::<Messages>(Options::default()).unwrap();
    let mut out = Vec::new();
    pass(&packets, &mut decoder, &mut encoder, &mut out);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    pass(&packets, &mut decoder, &mut encoder, &mut out);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
}
