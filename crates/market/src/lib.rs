//! The market of a feed: events, instruments, books and states, built from its messages.
//!
//! Everything here is sans-I/O and does not read a clock. Decoded messages and times (nanoseconds)
//! are arguments, and events are passed to the caller.
#![forbid(unsafe_code)]

pub mod book;
pub mod dbn;
mod delivery;
pub mod event;
pub mod follower;
pub mod fragments;
pub mod instruments;
pub mod json;
mod last;
pub mod mapping;
pub mod market;
mod picture;
pub mod price;
mod refresh;
pub mod relay;
pub mod state;
pub mod to_fix;
mod toml_text;
mod values;
pub mod view;

pub use book::{Book, BookConfig, Books, Fault, Side};
pub use delivery::Delivery;
pub use event::{Action, Event, Flags, InstrumentId, Kind};
pub use follower::{Follower, FollowerConfig, FollowerStats};
pub use fragments::{FragmentConfig, FragmentStats, Fragments};
pub use instruments::Instruments;
pub use last::LastValues;
pub use mapping::{FastMapper, FixMapper, Mapping};
pub use market::{Market, MarketConfig, MarketStats};
pub use price::{Price, PriceError};
pub use to_fix::ToFix;
pub use values::Values;
pub use view::View;
