//! What a thread that reads for a replay hands to the thread of the feeds.

use fanfare_market::Event;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Messages of a piece at most, and pieces that wait.
pub(super) const MESSAGES: usize = 512;
const PIECES: usize = 4;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The next events are those of one message.
    Message {
        /// When they are due, in the time of the source: nanoseconds since 1970-01-01 UTC.
        time: u64,
        /// How many there are.
        events: u32,
    },
    /// An instrument, with its length in bytes.
    Instrument(u32),
    /// The plant that wrote the log was started again, at this time: books are not known.
    Restart(u64),
    /// Another turn begins: times begin again.
    Again,
}

/// Some messages, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) marks: Vec<Mark>,
    pub(super) events: Vec<Event>,
    pub(super) instruments: Vec<u8>,
}

impl Piece {
    /// Adds the events of one message, if there are any.
    pub(super) fn message(&mut self, time: u64, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        self.events.extend_from_slice(events);
        self.marks.push(Mark::Message {
            time,
            events: u32::try_from(events.len()).unwrap_or(u32::MAX),
        });
    }

    /// Adds an instrument, as `Instrument::write` has it.
    pub(super) fn instrument(&mut self, bytes: &[u8]) {
        self.instruments.extend_from_slice(bytes);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.marks.push(Mark::Instrument(len));
    }

    pub(super) fn is_full(&self) -> bool {
        self.marks.len() >= MESSAGES
    }
}

/// A piece, or how it ended.
pub(super) enum Step {
    Piece(Piece),
    /// All was read.
    Done,
    /// Why nothing more can be read.
    Failed(String),
}

/// The way of the pieces. Who reads waits when [`PIECES`] of them wait.
pub(super) fn channel() -> (SyncSender<Step>, Receiver<Step>) {
    sync_channel(PIECES)
}
