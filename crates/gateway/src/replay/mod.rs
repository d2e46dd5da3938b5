//! The past as the market of a plant: a log whose events go into the ring as those of a feed do,
//! with the same numbers and in the same time.
//!
//! A thread of its own reads the log; the thread of the feeds writes to the ring what is due. It
//! waits for outlets that are behind, which a feed never does. A jump of the numbers is what is
//! missing in the log; a new start of the plant that wrote it has a record of its own in the ring.

pub(crate) mod config;
mod cursor;
mod dbn;
mod error;
pub(crate) mod feed_config;
pub(crate) mod file;
mod file_market;
mod log;
mod pace;
mod piece;
mod source;

pub(crate) use dbn::{DbnPlace, book_of};
pub use error::ReplayError;
pub(crate) use file_market::FileMarket;
pub(crate) use log::OpenReplay;
pub(crate) use source::ReplaySource;
