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
#![forbid(unsafe_code)]

mod as_of;
mod block;
mod checkpoint;
mod claim;
mod columns;
mod error;
mod folder;
mod format;
mod iter;
mod keeper;
mod known;
mod lock;
mod log;
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
