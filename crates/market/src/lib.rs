//! What the messages of a feed say about the market: events, instruments, books and states.
//!
//! Everything here is sans-I/O and sans-clock. Decoded messages and times (nanoseconds) come in
//! as arguments; events come out.
#![forbid(unsafe_code)]

pub mod book;
pub mod event;
pub mod market;
pub mod price;
mod refresh;
pub mod state;

pub use book::{Book, BookConfig, Books, Fault, Side};
pub use event::{Action, Event, Flags, InstrumentId, Kind};
pub use market::{Market, MarketConfig, MarketStats};
pub use price::{Price, PriceError};
