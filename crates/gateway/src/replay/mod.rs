//! The past as the market of a plant: a log whose events are written to the ring like those of a
//! feed, with the same numbers and timing.
//!
//! A thread of its own reads the log, and the thread of the feeds writes the events that are due to
//! the ring. It waits for outlets that are behind, unlike a feed. A jump of the numbers shows
//! events missing in the log. A restart of the plant that wrote it has a record of its own in the
//! ring.

pub(crate) mod config;
mod cursor;
mod dbn;
mod error;
pub(crate) mod feed_config;
pub(crate) mod file;
mod file_market;
pub(crate) mod live;
mod log;
mod pace;
mod piece;
mod source;

pub(crate) use dbn::{DbnPlace, book_of};
pub use error::ReplayError;
pub(crate) use file_market::FileMarket;
pub(crate) use log::OpenReplay;
pub(crate) use source::ReplaySource;
