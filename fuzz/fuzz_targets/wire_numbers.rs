//! Parsers of integers, decimals and timestamps: what parses keeps its value when written.
#![no_main]

use fanfare_wire::{Decimal, Precision, UtcTimestamp, int};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let mut out = [0; Decimal::MAX_LEN];
    let standard = std::str::from_utf8(text)
        .ok()
        .filter(|text| !text.starts_with('+'));
    assert_eq!(
        int::parse_u64(text),
        standard.and_then(|text| text.parse().ok())
    );
    assert_eq!(
        int::parse_i64(text),
        standard.and_then(|text| text.parse().ok())
    );
    if let Some(value) = int::parse_i64(text) {
        let n = int::write_i64(value, &mut out);
        assert_eq!(int::parse_i64(&out[..n]), Some(value));
    }
    if let Some(value) = Decimal::parse(text) {
        let n = value.write(&mut out);
        assert_eq!(Decimal::parse(&out[..n]), Some(value));
        assert!(value.normalise().value_cmp(value).is_eq());
        if let Some((short, len)) = value.short_text() {
            let short = short.map(u64::to_le_bytes);
            assert_eq!(&short.as_flattened()[..len], &out[..n]);
        }
    }
    if let Some(time) = UtcTimestamp::parse(text) {
        let n = time.write(Precision::Nanos, &mut out);
        assert_eq!(UtcTimestamp::parse(&out[..n]), Some(time));
    }
});
