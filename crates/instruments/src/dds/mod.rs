//! What the commands of DDS measure and compare.

mod expected;
mod ping;

pub use expected::{Expected, ExpectedError, ExpectedReader, Verdict};
pub use ping::{Ping, PingOptions, Pong};
