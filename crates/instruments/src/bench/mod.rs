//! Benchmarks that the binary offers as `fanfare bench …`.

pub mod codec;
pub mod datagrams;
pub mod fanout;
