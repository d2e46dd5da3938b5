//! Measurements and comparisons of the DDS commands.

mod departures;
mod echoes;
mod expected;
mod ping;

pub use departures::DepartureWatch;
pub use echoes::Echoes;
pub use expected::{Expected, ExpectedError, ExpectedReader, Verdict};
pub use ping::{Ping, PingOptions, Pong};
