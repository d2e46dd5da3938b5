//! FIX tag=value: codec, session state machine (sans-I/O, sans-clock), dictionaries.
#![forbid(unsafe_code)]

pub mod codec;
pub mod dict;
pub mod session;
pub mod text;
