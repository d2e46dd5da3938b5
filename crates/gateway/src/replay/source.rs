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
use fanfare_market::Event;
use fanfare_market::dbn::live::end_of_all;
use fanfare_market::instruments::Directory;

/// The most messages of one turn.
const TURN: usize = 512;

/// A log that is replayed.
pub(crate) struct ReplaySource {
    cursor: Cursor,
    outlet: MarketOutlet,
    /// The instruments so far.
    directory: Directory,
    /// The instruments that are known before the first event, until they are introduced.
    known: Vec<Box<[u8]>>,
    /// The instruments that are to be shown again.
    shown: Vec<Box<[u8]>>,
    /// The latest time of an event so far, in nanoseconds since 1970, or 0.
    latest: u64,
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
        let known = part.instruments().to_vec();
        let (sender, pieces) = piece::channel();
        part.start(sender, waker.clone())?;
        Ok(Self {
            cursor: Cursor::new(pieces, settings.speed),
            outlet: MarketOutlet::new(log.as_str().into(), 0, plan),
            directory: Directory::new(),
            known,
            shown: Vec::new(),
            latest: 0,
            log,
            notices,
        })
    }

    /// Introduces the instruments that are known before the first event, which brings them again.
    pub(crate) fn introduce(&mut self, ring: &mut EventRing) {
        for bytes in std::mem::take(&mut self.known) {
            self.directory.take(&bytes);
            ring.introduce_bytes(&bytes);
        }
    }

    /// Writes the items that are due to the ring. Returns the amount of work done.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let mut work = 0;
        while work < TURN && self.cursor.has_room(now.mono, ring) {
            let what = match self.cursor.next(now.mono) {
                None => break,
                Some(Next::Message(events, continues)) => {
                    let times = events.iter().filter_map(Event::arrival);
                    self.latest = times.fold(self.latest, u64::max);
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
                Some(Next::Watermark(mark)) => {
                    ring.pass_watermark(mark);
                    None
                }
                // A log has none: its states are events.
                Some(Next::Stale) => None,
                Some(Next::Pause(nanos)) => {
                    self.tell(pause(nanos), true);
                    None
                }
                Some(Next::Over(why)) => Some(why),
            };
            if let Some(why) = what {
                ring.end_message();
                if self.latest != 0 {
                    // No event follows that ends the last bars and quotes.
                    ring.put_watermark(end_of_all(self.latest));
                }
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

#[cfg(test)]
mod tests {
    use super::super::config::{Speed, Turns};
    use super::*;
    use crate::notice;
    use crate::test_log::{self, feed};
    use fanfare_engine::clock::Clock;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::stop::Stop;
    use fanfare_fix::session::SECOND;
    use fanfare_history::{Moment, Writer, WriterConfig};
    use fanfare_market::instruments::Lookup;
    use fanfare_market::{BookConfig, Delivery, InstrumentId};
    use fanfare_peers::Scratch;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// Returns the settings of one fast replay of the log in a folder.
    fn once(folder: &Path, from: Option<Moment>) -> Replay {
        Replay {
            log: Some(folder.to_path_buf()),
            dbn: None,
            speed: Speed::Max,
            from,
            to: None,
            turns: Turns(1),
        }
    }

    #[test]
    fn a_replay_introduces_the_instruments_that_precede_its_part() {
        let folder = Scratch::new("replay-introduces");
        let feeds = vec![feed(BookConfig::by_price(5).unwrap())];
        let (mut writer, _) = Writer::open(&folder, WriterConfig::default(), feeds, 1).unwrap();
        for number in [1, 2] {
            let instrument = test_log::instrument(number, test_log::named("A"));
            writer.instrument(&instrument).unwrap();
            let event = Event {
                number: number.into(),
                ts_recv: 90_000 * SECOND,
                ..Event::EMPTY
            };
            writer.events(&[event.to_bytes()]).unwrap();
        }
        writer.close().unwrap();
        let settings = once(&folder, Some(Moment::Number(2)));
        let part = OpenReplay::open(&settings, None).unwrap();
        let (counters, stop) = (Counters::new(), Stop::new());
        let (notices, _received) = notice::channel();
        let plan = Plan::of_a_test(&counters, &notices, &stop);
        let waker = Waker::detached().unwrap();
        let mut ring = EventRing::new(1 << 16, 1, waker.clone(), 1);
        let mut reader = ring.reader(waker.clone()).unwrap();
        let mut source = ReplaySource::open(&settings, part, &waker, plan).unwrap();
        source.introduce(&mut ring);
        ring.share_introduced();
        reader.take_introduced();
        assert!(reader.directory().instrument(InstrumentId(1)).is_some());
    }

    #[test]
    fn a_replay_ends_all_intervals_once_it_is_over() {
        let folder = Scratch::new("replay-end");
        let feeds = vec![feed(BookConfig::by_price(5).unwrap())];
        let (mut writer, _) = Writer::open(&folder, WriterConfig::default(), feeds, 1).unwrap();
        for number in [1, 2] {
            let event = Event {
                number,
                ts_recv: (90_000 + number) * SECOND,
                ..Event::EMPTY
            };
            writer.events(&[event.to_bytes()]).unwrap();
        }
        writer.close().unwrap();
        let settings = once(&folder, None);
        let part = OpenReplay::open(&settings, None).unwrap();
        let (counters, stop) = (Counters::new(), Stop::new());
        let (notices, _received) = notice::channel();
        let plan = Plan::of_a_test(&counters, &notices, &stop);
        let (waker, mut clock) = (Waker::detached().unwrap(), Clock::new());
        let mut ring = EventRing::new(1 << 16, 1, waker.clone(), 1);
        let mut reader = ring.reader(waker.clone()).unwrap();
        let mut source = ReplaySource::open(&settings, part, &waker, plan).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        let mut seen = Vec::new();
        while seen.len() < 3 {
            assert!(Instant::now() < until, "the replay does not end: {seen:?}");
            source.turn(clock.read(), &mut ring);
            reader.read(usize::MAX, |delivery| match delivery {
                Delivery::Event(event, _) => seen.push(event.number),
                Delivery::Watermark(mark) => seen.push(mark.time),
                _ => {}
            });
            std::thread::yield_now();
        }
        // The midnight behind both.
        assert_eq!(seen, [1, 2, 2 * 86_400 * SECOND]);
    }
}
