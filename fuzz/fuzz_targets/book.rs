//! Books and their oracles under any events: the operations of the books' own property test.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/market/tests/book/ops.rs"]
mod ops;

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.iter().copied();
    ops::run(|| bytes.next());
});
