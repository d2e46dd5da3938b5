//! A log as a source of the plant: the thread of the feeds writes to the ring what is due.

use super::config::Replay;
use super::log::OpenReplay;
use super::pace::Pace;
use super::piece::{self, Mark, Piece, Step};
use crate::bridge::Plan;
use crate::market::outlet::MarketOutlet;
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use fanfare_market::instruments::Directory;
use std::sync::mpsc::{Receiver, TryRecvError};

/// Messages of one turn.
const TURN: usize = 512;

/// How long it waits for an outlet that does not read, in nanoseconds. Then it goes on, and the
/// outlet loses events as it would lose those of a feed.
const PATIENCE: u64 = 5_000_000_000;

/// How long it sleeps while it waits for one.
const LOOK: u64 = 200_000;

/// Instruments that are shown once more in a turn, where an outlet has lost events.
const SHOWN: usize = 16;

/// A log that is replayed.
pub(crate) struct ReplaySource {
    pieces: Receiver<Step>,
    piece: Piece,
    /// How far the piece was written.
    at: At,
    pace: Pace,
    /// When the next message is due; `None` at the end of what there is.
    due: Option<u64>,
    /// Since when the slowest outlet is waited for.
    full_since: Option<u64>,
    is_over: bool,
    outlet: MarketOutlet,
    /// Instruments so far.
    directory: Directory,
    /// Those that are to be shown once more.
    shown: Vec<Box<[u8]>>,
    log: String,
    notices: Notices,
}

/// Places in a piece.
#[derive(Default)]
struct At {
    mark: usize,
    event: usize,
    instrument: usize,
}

impl ReplaySource {
    /// Starts the thread that reads, which wakes this one by `waker`.
    pub(crate) fn open(
        settings: &Replay,
        part: OpenReplay,
        waker: &Waker,
        plan: Plan<'_>,
    ) -> std::io::Result<Self> {
        let log = settings.path().display().to_string();
        let (shift, notices) = (part.shift(), plan.notices.clone());
        if shift > 0 {
            let what = format!("its events have numbers {shift} above those of the log");
            let log = log.clone();
            notices.send(Notice::Replay { log, what });
        }
        let (sender, pieces) = piece::channel();
        part.start(sender, waker.clone())?;
        Ok(Self {
            pieces,
            piece: Piece::default(),
            at: At::default(),
            pace: Pace::new(settings.speed),
            due: None,
            full_since: None,
            is_over: false,
            outlet: MarketOutlet::new(log.as_str().into(), 0, plan),
            directory: Directory::new(),
            shown: Vec::new(),
            log,
            notices,
        })
    }

    /// Writes to the ring what is due. Returns how much it was.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let mut work = 0;
        while work < TURN && self.has_room(now.mono, ring) {
            let Some(mark) = self.piece.marks.get(self.at.mark).copied() else {
                if !self.next_piece() {
                    break;
                }
                continue;
            };
            if let Mark::Message { time, .. } = mark {
                let due = self.pace.due(time, now.mono);
                if due > now.mono {
                    self.due = Some(due);
                    break;
                }
            }
            self.take(mark, now, ring);
            self.at.mark += 1;
            work += 1;
        }
        self.outlet.count(now.mono);
        work
    }

    /// Whether all outlets have read enough, or were waited for long enough.
    fn has_room(&mut self, now: u64, ring: &EventRing) -> bool {
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

    /// Goes on with the next piece; false if there is none yet.
    fn next_piece(&mut self) -> bool {
        self.due = None;
        if self.is_over {
            return false;
        }
        let what = match self.pieces.try_recv() {
            Ok(Step::Piece(piece)) => {
                (self.piece, self.at) = (piece, At::default());
                return true;
            }
            Err(TryRecvError::Empty) => return false,
            Ok(Step::Done) => format!("has ended, {} events", self.outlet.counts.events.value()),
            Ok(Step::Failed(why)) => why,
            Err(TryRecvError::Disconnected) => "has ended: its thread is gone".to_owned(),
        };
        self.is_over = true;
        let log = self.log.clone();
        self.notices.send(Notice::Replay { log, what });
        false
    }

    fn take(&mut self, mark: Mark, now: Now, ring: &mut EventRing) {
        match mark {
            Mark::Message { events, .. } => {
                let end = self.at.event + events as usize;
                let events = self.piece.events.get(self.at.event..end);
                self.outlet.pass_numbered(events.unwrap_or(&[]), ring);
                self.at.event = end;
            }
            Mark::Instrument(len) => {
                let end = self.at.instrument + len as usize;
                let bytes = self.piece.instruments.get(self.at.instrument..end);
                let bytes = bytes.unwrap_or(&[]);
                self.directory.take(bytes);
                ring.put_bytes(bytes);
                self.at.instrument = end;
            }
            Mark::Restart(start) => ring.put_restart(match start {
                0 => now.utc.nanos().unsigned_abs(),
                start => start,
            }),
            Mark::Again => self.pace.begin_again(),
        }
    }

    /// All instruments are to be shown once more, to an outlet that has lost some. Books are shown
    /// by the log alone: pictures would need numbers of their own.
    pub(crate) fn show_all(&mut self) {
        let all = self.directory.iter();
        self.shown = all.map(|(_, bytes)| bytes.into()).collect();
        self.shown.reverse();
    }

    /// Whether some instruments are still to be shown.
    pub(crate) const fn is_showing(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Shows the next ones. Returns their number.
    pub(crate) fn show(&mut self, ring: &mut EventRing) -> usize {
        let rest = self.shown.len().saturating_sub(SHOWN);
        let next = self.shown.drain(rest..).rev();
        next.map(|bytes| ring.put_bytes(&bytes)).count()
    }

    pub(crate) const fn next_timer(&self) -> Option<u64> {
        self.due
    }

    /// The end: what was counted.
    pub(crate) fn close(&mut self) {
        self.outlet.set_counts();
        let counts = &self.outlet.counts;
        counts.instruments.set(self.directory.len() as u64);
    }
}
