//! The pieces that a reading thread hands to the thread of the feeds.

use fanfare_market::{Event, Watermark};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The most messages of a piece, and the most pieces that are queued.
pub(super) const MESSAGES: usize = 512;
const PIECES: usize = 4;

/// The kind of the next item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The next events are of one message.
    Message {
        /// The time at which they are due, in the time of the source: nanoseconds since 1970-01-01
        /// UTC.
        time: u64,
        /// The number of events.
        events: u32,
        /// Whether others of the message follow.
        continues: bool,
    },
    /// An instrument, with its length in bytes.
    Instrument(u32),
    /// The plant that wrote the log was restarted at this time, and books are unknown.
    Restart(u64),
    /// A watermark of the log.
    Watermark(Watermark),
    /// The source is not heard, and books are stale.
    Stale,
    /// The replay begins again, and so do its times.
    Again,
}

/// Some consecutive messages.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) marks: Vec<Mark>,
    pub(super) events: Vec<Event>,
    pub(super) instruments: Vec<u8>,
}

impl Piece {
    /// Adds events of one message, if there are any. `continues` is set if others of the message
    /// follow.
    pub(super) fn message(&mut self, time: u64, events: &[Event], continues: bool) {
        if events.is_empty() {
            return;
        }
        self.events.extend_from_slice(events);
        self.marks.push(Mark::Message {
            time,
            events: u32::try_from(events.len()).unwrap_or(u32::MAX),
            continues,
        });
    }

    /// Adds an instrument in the form of `Instrument::write`.
    pub(super) fn instrument(&mut self, bytes: &[u8]) {
        self.instruments.extend_from_slice(bytes);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.marks.push(Mark::Instrument(len));
    }

    pub(super) fn is_full(&self) -> bool {
        self.marks.len() >= MESSAGES
    }
}

/// A piece, or the end.
pub(super) enum Step {
    Piece(Piece),
    /// Everything was read.
    Done,
    /// The reason why nothing more can be read.
    Failed(String),
}

/// Returns the channel of the pieces. The reading thread waits while [`PIECES`] of them are queued.
pub(super) fn channel() -> (SyncSender<Step>, Receiver<Step>) {
    sync_channel(PIECES)
}
