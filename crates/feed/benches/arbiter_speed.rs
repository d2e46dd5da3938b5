//! Measures the nanoseconds a packet in the arbiter: two lines, one behind the other, with and
//! without loss.
//!
//! `cargo bench -p fanfare-feed --bench arbiter_speed`

use fanfare_feed::{Arbiter, ArbiterConfig, Line, Unit, Verdict};
use std::hint::black_box;
use std::time::Instant;

const PACKETS: u32 = 200_000;

fn main() {
    println!(
        "line A alone           {:6.1} ns a packet",
        best(u32::MAX, false)
    );
    println!("two lines, no loss     {:6.1}", best(u32::MAX, true));
    println!("two lines, A loses 5 % {:6.1}", best(20, true));
}

/// Returns the best of some passes, per packet received.
fn best(loses_each: u32, two: bool) -> f64 {
    let passes = (0..20).map(|_| pass(loses_each, two));
    passes.fold(f64::MAX, f64::min)
}

/// Runs one pass, with line B 16 packets behind line A, which leaves out each `loses_each`-th.
fn pass(loses_each: u32, two: bool) -> f64 {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    let bytes = [7; 200];
    let (mut received, mut delivered) = (0u32, 0u32);
    let start = Instant::now();
    for i in 0..PACKETS {
        let now = u64::from(i) * 1_000;
        let of_a = Some(i).filter(|i| i % loses_each != 1);
        let of_b = i.checked_sub(16).filter(|_| two);
        for (line, sequence) in [(Line::A, of_a), (Line::B, of_b)] {
            let Some(sequence) = sequence else {
                continue;
            };
            received += 1;
            let unit = Unit {
                sequence,
                count: 1,
                bytes: &bytes,
            };
            let verdict = arbiter.receive(now, line, unit);
            delivered += u32::from(matches!(verdict, Verdict::Deliver { .. }));
            while let Some(event) = arbiter.poll_event() {
                black_box(event);
                delivered += 1;
            }
        }
    }
    let nanos = start.elapsed().as_nanos() as f64;
    assert!(delivered > PACKETS - 100, "{delivered} of {PACKETS}");
    nanos / f64::from(received)
}
