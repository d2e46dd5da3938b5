//! Code that runs once for each message of a load or of a capture allocates nothing after warm-up.
#![forbid(unsafe_code)]

use fanfare_counting::allocations;
use fanfare_instruments::histogram::Histogram;
use fanfare_instruments::load::OrderCheck;

#[test]
fn recording_and_checking_allocate_nothing() {
    let mut histogram = Histogram::new();
    let mut check = OrderCheck::new(true);
    let marks: Vec<String> = (1..=1_000).map(|n| format!("P7-{n}")).collect();
    // The first mark of a producer creates its entry.
    check.mark(marks[0].as_bytes());
    let count = allocations(|| {
        for (n, mark) in marks.iter().enumerate().skip(1) {
            histogram.record(n as u64 * 1_234_567);
            check.mark(mark.as_bytes());
        }
    });
    assert_eq!(count, 0);
    assert_eq!((histogram.len(), check.counts().in_order), (999, 1_000));
}
