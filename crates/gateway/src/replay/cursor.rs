//! The position in the pieces of a thread, which returns one message or instrument at a time when
//! it is due.

use super::config::Speed;
use super::pace::Pace;
use super::piece::{Mark, Piece, Step};
use crate::market::ring::EventRing;
use fanfare_market::{Event, Watermark};
use std::sync::mpsc::{Receiver, TryRecvError};

/// The time to wait for an outlet that does not read, in nanoseconds. After it the replay
/// continues, and the outlet loses events as it would lose those of a feed.
const PATIENCE: u64 = 5_000_000_000;

/// The interval at which such an outlet is polled, in nanoseconds.
const LOOK: u64 = 200_000;

/// An hour in nanoseconds. A longer pause is reported: the time of a message may be wrong.
const HOUR: u64 = 3_600_000_000_000;

/// A position in the pieces that the thread reads.
pub(super) struct Cursor {
    pieces: Receiver<Step>,
    piece: Piece,
    /// The position in the current piece.
    at: At,
    pace: Pace,
    /// The time at which the next message is due, or `None` at the end.
    pub(super) due: Option<u64>,
    /// The due time of the last message before which a long pause was reported.
    told: Option<u64>,
    /// The time since which the slowest outlet is waited for.
    full_since: Option<u64>,
    is_over: bool,
}

/// The positions in a piece.
#[derive(Default)]
struct At {
    mark: usize,
    event: usize,
    instrument: usize,
}

/// An item that is due.
pub(super) enum Next<'a> {
    /// Events of a message, and whether others of it follow.
    Message(&'a [Event], bool),
    /// An instrument in the form of `Instrument::write`.
    Instrument(&'a [u8]),
    /// The plant that wrote the log was restarted at this time. With 0, the replay begins again.
    Restart(u64),
    /// A watermark of the log.
    Watermark(Watermark),
    /// The source is not heard, and books are stale.
    Stale,
    /// The next message is due in this many nanoseconds, more than an hour. It comes once for each
    /// such pause.
    Pause(u64),
    /// The replay is over, with the reason if that is before the end.
    Over(Option<String>),
}

/// Returns the text of the notice of a long pause.
pub(super) fn pause(nanos: u64) -> String {
    let plural = if nanos / HOUR == 1 { "" } else { "s" };
    format!("its next event is due in {} hour{plural}", nanos / HOUR)
}

impl Cursor {
    pub(super) fn new(pieces: Receiver<Step>, speed: Speed) -> Self {
        Self {
            pieces,
            piece: Piece::default(),
            at: At::default(),
            pace: Pace::new(speed),
            due: None,
            told: None,
            full_since: None,
            is_over: false,
        }
    }

    /// Returns whether all outlets have read enough, or the time to wait for them has passed.
    pub(super) fn has_room(&mut self, now: u64, ring: &EventRing) -> bool {
        if ring.has_room() {
            self.full_since = None;
            return true;
        }
        let since = *self.full_since.get_or_insert(now);
        let is_late = now.saturating_sub(since) > PATIENCE;
        if !is_late {
            self.due = Some(now + LOOK);
        }
        is_late
    }

    /// Returns the next item that is due, if any.
    pub(super) fn next(&mut self, now: u64) -> Option<Next<'_>> {
        let mark = loop {
            match self.piece.marks.get(self.at.mark).copied() {
                Some(Mark::Again) => {
                    self.pace.begin_again();
                    self.at.mark += 1;
                }
                Some(mark) => break mark,
                None => match self.receive()? {
                    Step::Piece(piece) => (self.piece, self.at) = (piece, At::default()),
                    Step::Done => return Some(Next::Over(None)),
                    Step::Failed(why) => return Some(Next::Over(Some(why))),
                },
            }
        };
        if let Mark::Message { time, .. } = mark {
            let due = self.pace.due(time, now);
            if due > now {
                self.due = Some(due);
                let is_long = due - now > HOUR && self.told != Some(due);
                return is_long.then(|| {
                    self.told = Some(due);
                    Next::Pause(due - now)
                });
            }
        }
        self.at.mark += 1;
        Some(match mark {
            Mark::Message {
                events, continues, ..
            } => {
                let start = self.at.event;
                self.at.event += events as usize;
                let events = self.piece.events.get(start..self.at.event);
                Next::Message(events.unwrap_or(&[]), continues)
            }
            Mark::Instrument(len) => {
                let start = self.at.instrument;
                self.at.instrument += len as usize;
                let bytes = self.piece.instruments.get(start..self.at.instrument);
                Next::Instrument(bytes.unwrap_or(&[]))
            }
            Mark::Restart(start) => Next::Restart(start),
            Mark::Watermark(mark) => Next::Watermark(mark),
            Mark::Stale => Next::Stale,
            Mark::Again => Next::Restart(0),
        })
    }

    /// Receives the next step of the thread, or returns `None` if there is none yet or none left.
    fn receive(&mut self) -> Option<Step> {
        self.due = None;
        if self.is_over {
            return None;
        }
        let step = match self.pieces.try_recv() {
            Ok(step) => step,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => Step::Failed("its thread has ended".to_owned()),
        };
        self.is_over = !matches!(step, Step::Piece(_));
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::piece;

    #[test]
    fn a_long_pause_is_reported_once() {
        let (sender, pieces) = piece::channel();
        let mut cursor = Cursor::new(pieces, Speed::Thousandths(1_000));
        let times = [1, 1 + HOUR, 2 + 3 * HOUR];
        let marks = times.map(|time| Mark::Message {
            time,
            events: 0,
            continues: false,
        });
        let piece = Piece {
            marks: marks.to_vec(),
            ..Piece::default()
        };
        assert!(sender.send(Step::Piece(piece)).is_ok());
        assert!(matches!(cursor.next(5), Some(Next::Message(..))));
        assert!(cursor.next(5).is_none(), "an hour");
        assert!(matches!(cursor.next(5 + HOUR), Some(Next::Message(..))));
        let Some(Next::Pause(pause)) = cursor.next(5 + HOUR) else {
            panic!("no pause");
        };
        assert_eq!(pause, 2 * HOUR + 1);
        assert!(cursor.next(5 + HOUR).is_none());
        assert_eq!(cursor.due, Some(6 + 3 * HOUR));
    }

    #[test]
    fn a_pause_is_told_in_hours() {
        assert_eq!(pause(HOUR + 1), "its next event is due in 1 hour");
        assert_eq!(pause(3 * HOUR - 1), "its next event is due in 2 hours");
    }
}
