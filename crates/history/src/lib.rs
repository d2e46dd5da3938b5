//! The log: every market event on disk, read from any number or time, then live.
//!
//! One [`Writer`] appends events to segments of a folder; a [`Keeper`] on a thread of its own
//! follows it, keeps books, writes checkpoints of them, compacts full segments, and removes old
//! ones. Any number of [`Reader`]s, in any process, read from a number or a time on and continue
//! live, each event once and in order: across segments, compaction, restarts of the plant and
//! kills. [`Log::as_of`] returns all books as of any moment.
//!
//! Files are read and written by `pread` and `pwrite`; nothing is mapped. Committed events are in
//! the kernel, and survive a kill of the process.
//!
//! Two events, written and read:
//!
//! ```
//! use fanfare_history::{Log, Logged, Start, Writer, WriterConfig};
//! use fanfare_market::Event;
//!
//! # fn main() -> Result<(), fanfare_history::LogError> {
//! # let folder = std::env::temp_dir().join(format!("fanfare-iter-{}", std::process::id()));
//! let (mut writer, _) = Writer::open(&folder, WriterConfig::default(), Vec::new(), 1)?;
//! let event = |number| Event { number, ..Event::EMPTY }.to_bytes();
//! writer.events(&[event(1), event(2)])?;
//! writer.commit()?;
//!
//! let mut events = Log::open(&folder)?.reader(Start::First)?.into_iter();
//! let mut numbers = Vec::new();
//! for logged in &mut events {
//!     match logged? {
//!         Logged::Event(event) => numbers.push(event.number),
//!         Logged::Lost { first, last } => panic!("{first} to {last} are missing"),
//!         Logged::Restart => {}
//!     }
//! }
//! assert_eq!((numbers, events.next_number()), (vec![1, 2], 3));
//! # std::fs::remove_dir_all(&folder).map_err(|_| fanfare_history::LogError::Ended)
//! # }
//! ```
#![forbid(unsafe_code)]

mod as_of;
mod block;
mod checkpoint;
mod claim;
mod clock;
mod columns;
mod error;
mod folder;
mod format;
mod formers;
mod iter;
mod keeper;
mod known;
mod lock;
mod log;
mod marks;
pub mod moment;
mod place;
mod push;
mod raw;
mod reader;
mod repair;
mod run;
mod segment;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub use as_of::AsOf;
pub use claim::Claim;
pub use error::LogError;
pub use iter::{Events, Logged};
pub use keeper::{Keeper, KeeperConfig, KeeperStats};
pub use log::{Extent, Log, SegmentInfo};
pub use moment::Moment;
pub use place::{At, Begin, Start};
pub use push::{Ahead, Pushed};
pub use raw::{Raw, RawDelivery, RawLine, Source};
pub use reader::Reader;
pub use repair::{Mended, Repair};
pub use run::{FeedInfo, Run};
pub use verify::{Damage, Verified};
pub use writer::{Opened, Writer, WriterConfig};
