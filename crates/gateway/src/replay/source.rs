//! A log as a source of the plant: the thread of the feeds writes the events that are due to the
//! ring.

use super::config::Replay;
use super::cursor::{Cursor, Next, pause};
use super::log::OpenReplay;
use super::piece;
use crate::gateway::plan::Plan;
use crate::market::outlet::{MarketOutlet, SHOWN};
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use fanfare_market::instruments::Directory;

/// The most messages of one turn.
const TURN: usize = 512;

/// A log that is replayed.
pub(crate) struct ReplaySource {
    cursor: Cursor,
    outlet: MarketOutlet,
    /// The instruments so far.
    directory: Directory,
    /// The instruments that are to be shown again.
    shown: Vec<Box<[u8]>>,
    log: String,
    notices: Notices,
}

impl ReplaySource {
    /// Starts the reading thread, which wakes this one by `waker`.
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
            notices.send(Notice::Replay {
                log: log.clone(),
                what,
                is_trouble: true,
            });
        }
        let (sender, pieces) = piece::channel();
        part.start(sender, waker.clone())?;
        Ok(Self {
            cursor: Cursor::new(pieces, settings.speed),
            outlet: MarketOutlet::new(log.as_str().into(), 0, plan),
            directory: Directory::new(),
            shown: Vec::new(),
            log,
            notices,
        })
    }

    /// Writes the items that are due to the ring. Returns the amount of work done.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let mut work = 0;
        while work < TURN && self.cursor.has_room(now.mono, ring) {
            let what = match self.cursor.next(now.mono) {
                None => break,
                Some(Next::Message(events, continues)) => {
                    self.outlet.pass_numbered(events, continues, ring);
                    None
                }
                Some(Next::Instrument(bytes)) => {
                    self.directory.take(bytes);
                    ring.put_bytes(bytes);
                    None
                }
                Some(Next::Restart(start)) => {
                    ring.put_restart(match start {
                        0 => now.utc.nanos().unsigned_abs(),
                        start => start,
                    });
                    None
                }
                Some(Next::Watermark(time)) => {
                    ring.put_watermark(time);
                    None
                }
                Some(Next::Pause(nanos)) => {
                    self.tell(pause(nanos), true);
                    None
                }
                Some(Next::Over(why)) => Some(why),
            };
            if let Some(why) = what {
                ring.end_message();
                self.tell_end(why);
            }
            work += 1;
        }
        self.outlet.count(now.mono);
        if self.outlet.is_due(now.mono) {
            self.count();
        }
        work
    }

    /// Reports the end of the replay, and why it ends early.
    fn tell_end(&self, why: Option<String>) {
        let is_trouble = why.is_some();
        let events = self.outlet.counts.events.value();
        let what = why.unwrap_or_else(|| format!("has ended, {events} events"));
        self.tell(what, is_trouble);
    }

    fn tell(&self, what: String, is_trouble: bool) {
        let log = self.log.clone();
        self.notices.send(Notice::Replay {
            log,
            what,
            is_trouble,
        });
    }

    /// Marks all instruments to be shown again, for an outlet that has lost some. Books are shown
    /// only by the log, because snapshots would need numbers of their own.
    pub(crate) fn show_all(&mut self) {
        let all = self.directory.iter();
        self.shown = all.map(|(_, bytes)| bytes.into()).collect();
        self.shown.reverse();
    }

    /// Returns whether some instruments are still to be shown.
    pub(crate) const fn is_showing(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Shows the next instruments. Returns their number.
    pub(crate) fn show(&mut self, ring: &mut EventRing) -> usize {
        let rest = self.shown.len().saturating_sub(SHOWN);
        let next = self.shown.drain(rest..).rev();
        next.map(|bytes| ring.put_bytes(&bytes)).count()
    }

    pub(crate) const fn next_timer(&self) -> Option<u64> {
        self.cursor.due
    }

    /// Sets the counters that are not counted on arrival.
    pub(crate) fn count(&self) {
        self.outlet.set_counts();
        let counts = &self.outlet.counts;
        counts.instruments.set(self.directory.len() as u64);
    }
}
