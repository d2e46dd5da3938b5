//! An arbiter under any calls: the operations of the feed's own property test.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/feed/tests/arbiter/ops.rs"]
mod ops;

fuzz_target!(|data: &[u8]| ops::run(data));
