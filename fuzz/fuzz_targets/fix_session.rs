//! A session under any bytes and any calls: the operations of the session's own property test.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/fix/tests/session/fields.rs"]
#[allow(dead_code)]
mod fields;
#[path = "../../crates/fix/tests/session/ops.rs"]
mod ops;

fuzz_target!(|data: &[u8]| ops::run(data));
