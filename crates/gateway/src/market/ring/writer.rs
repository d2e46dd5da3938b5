//! The writing end of the ring.

use super::introduced::Introduced;
use super::reader::{EventReader, RecordReader};
use super::{Asks, EVENTS, INSTRUMENT, LEAST, MORE, MOST, PER_BYTE, RESTART, SHOWN, WATERMARK};
use crate::market::awaited::Awaited;
use crate::stages::{Mark, Pending};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, Policy, RingLock};
use fanfare_engine::stop::Stop;
use fanfare_market::instruments::Instrument;
use fanfare_market::watermark::{ClockCourse, ClockSteps};
use fanfare_market::{Event, Flags, Watermark};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The writing end of the ring.
pub(crate) struct EventRing {
    ring: Broadcast,
    /// The plant's number of the next event.
    pub(super) next: u64,
    /// An encoded instrument.
    room: Vec<u8>,
    wakers: Vec<Waker>,
    asks: Arc<Asks>,
    /// The number of the last request of all instruments that was taken.
    taken: u64,
    /// The backlog of the ring up to which readers request more instruments, in bytes.
    most: u64,
    /// The waker of the thread of the feeds.
    feeds: Waker,
    wrote: bool,
    /// The log, if the writer waits for it.
    pub(super) log: Option<Awaited>,
    /// The log, if there is one, which the writer waits for at its end.
    at_end: Option<Awaited>,
    /// The position of each reader, in bytes.
    read: Vec<Arc<AtomicU64>>,
    /// The mark of the next events, if they are measured.
    mark: Pending,
    /// The clock, by watermarks and events.
    steps: ClockSteps,
    /// The value of `next` at the end of the last turn.
    shown: Arc<AtomicU64>,
    /// The instruments that were introduced, until they are shared.
    introduced: Introduced,
    /// The place in which the readers find them.
    shared: Arc<OnceLock<Introduced>>,
}

impl EventRing {
    /// Creates a ring for at most `readers`, which wake the thread of the feeds by `feeds`. `bytes`
    /// is the size of the rings to the workers, a power of two, and `next` the number of the first
    /// event.
    pub(crate) fn new(bytes: usize, readers: usize, feeds: Waker, next: u64) -> Self {
        let bytes = Self::capacity(bytes);
        let ring = Broadcast::new(bytes, readers, Policy::Lap);
        Self::of(ring, bytes, feeds, next)
    }

    /// Creates a ring as [`Self::new`] does, in a file that keeps the events if the process is
    /// killed, and the number of the next one.
    pub(crate) fn in_file(
        file: &mut RingLock,
        bytes: usize,
        readers: usize,
        feeds: Waker,
        next: u64,
    ) -> io::Result<Self> {
        let bytes = Self::capacity(bytes);
        let ring = Broadcast::in_locked(file, bytes, readers)?;
        ring.note(next);
        Ok(Self::of(ring, bytes, feeds, next))
    }

    /// Marks the file of the ring, if there is one, as that of the log with this number.
    pub(crate) fn own(&self, log: u64) {
        self.ring.own(log);
    }

    fn capacity(bytes: usize) -> usize {
        bytes.saturating_mul(PER_BYTE).max(LEAST)
    }

    fn of(ring: Broadcast, bytes: usize, feeds: Waker, next: u64) -> Self {
        Self {
            ring,
            next,
            room: Vec::new(),
            wakers: Vec::new(),
            asks: Arc::default(),
            taken: 0,
            most: bytes as u64 / 8,
            feeds,
            wrote: false,
            log: None,
            at_end: None,
            read: Vec::new(),
            mark: Pending::default(),
            steps: ClockSteps::default(),
            shown: Arc::new(AtomicU64::new(next)),
            introduced: Introduced::default(),
            shared: Arc::default(),
        }
    }

    /// Returns a reader of all later records, or `None` if the ring has as many readers as it was
    /// created for. Its thread is woken by `waker`.
    pub(crate) fn reader(&mut self, waker: Waker) -> Option<EventReader> {
        let records = self.record_reader(waker)?;
        Some(EventReader::new(records, self.next, self.number()))
    }

    /// Returns a reader as [`Self::reader`] does, for raw records of the ring.
    pub(crate) fn record_reader(&mut self, waker: Waker) -> Option<RecordReader> {
        self.wakers.push(waker.clone());
        let read = Arc::new(AtomicU64::new(self.ring.position()));
        self.read.push(Arc::clone(&read));
        let ring = self.ring.subscribe()?;
        let (wakers, asks) = ([waker, self.feeds.clone()], Arc::clone(&self.asks));
        let introduced = Arc::clone(&self.shared);
        Some(RecordReader::new(
            ring, read, self.most, wakers, asks, introduced,
        ))
    }

    /// Returns the plant's number of the next event at the end of the last turn, for any thread.
    pub(crate) fn number(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shown)
    }

    /// Waits from now on for a log that is behind by half of the ring, but no longer than a few
    /// seconds without progress, nor once `stop` is raised. `committed` is the number after its
    /// last event.
    pub(crate) fn wait_for(&mut self, committed: Arc<AtomicU64>, stop: Stop) {
        self.log = Some(self.awaited(committed, stop));
    }

    /// Waits for this log at the end: see [`Self::put_last`].
    pub(crate) fn wait_at_end_for(&mut self, committed: Arc<AtomicU64>, stop: Stop) {
        self.at_end = Some(self.awaited(committed, stop));
    }

    fn awaited(&self, committed: Arc<AtomicU64>, stop: Stop) -> Awaited {
        // An event takes at most 96 bytes with its mark, and instruments are rare.
        let most = self.most * 8 / 160;
        Awaited::new(committed, most, stop)
    }

    /// Waits for the log before these events are written, if it is to be waited for.
    #[inline]
    fn wait_before(&mut self, events: &[Event]) {
        if let Some(log) = &mut self.log
            && !events.is_empty()
        {
            log.wait(self.next);
        }
    }

    /// Returns whether all readers that have started have read so much that half of the ring is
    /// free, for a writer that waits for readers.
    pub(crate) fn has_room(&self) -> bool {
        let position = self.ring.position();
        self.read.iter().all(|read| {
            let read = read.load(Ordering::Relaxed);
            position.saturating_sub(read) < self.most * 4
        })
    }

    /// Adds a waker for a thread that starts after its reader was created.
    pub(crate) fn add_waker(&mut self, waker: Waker) {
        self.wakers.push(waker);
    }

    /// Adds an instrument that is known before the feeds bring anything. It is not written to the
    /// ring: only readers that exist at [`Self::share_introduced`] receive it. Allocates.
    pub(crate) fn introduce(&mut self, instrument: &Instrument<'_>) {
        instrument.write(&mut self.room);
        self.introduced.add(&self.room);
    }

    /// Adds an instrument as [`Self::introduce`] does, in the form of [`Instrument::write`].
    pub(crate) fn introduce_bytes(&mut self, instrument: &[u8]) {
        self.introduced.add(instrument);
    }

    /// Hands the introduced instruments to all readers, whose next read begins with all of them,
    /// and which the next [`Self::wake`] wakes. Called once, before the readers' threads start. The
    /// reader that reads them last, or is dropped last, releases them: that of a watch without a
    /// console reads them at its first query.
    pub(crate) fn share_introduced(&mut self) {
        let mut all = std::mem::take(&mut self.introduced);
        all.shrink();
        self.wrote |= all.len() > 0;
        let _ = std::mem::take(&mut self.shared).set(all);
    }

    /// Writes an instrument. Allocates only for longer texts than before.
    pub(crate) fn put_instrument(&mut self, instrument: &Instrument<'_>) {
        instrument.write(&mut self.room);
        // The longest instrument is shorter than half of the least ring.
        let _ = self.ring.push(INSTRUMENT, &self.room);
        self.wrote = true;
    }

    /// Writes an instrument in the form of [`Instrument::write`].
    pub(crate) fn put_bytes(&mut self, instrument: &[u8]) {
        let _ = self.ring.push(INSTRUMENT, instrument);
        self.wrote = true;
    }

    /// Writes that the plant whose log is replayed was restarted at this time.
    pub(crate) fn put_restart(&mut self, time: u64) {
        self.steps.begin_again();
        let _ = self.ring.push(RESTART, &time.to_le_bytes());
        self.wrote = true;
    }

    /// Writes the time at which or after which every later event of a trade arrives. All readers
    /// end their intervals by it in the same way: whether the clock was set back is judged here.
    pub(crate) fn put_watermark(&mut self, time: u64) {
        let mark = self.steps.judge(time);
        self.write_watermark(mark);
    }

    /// Writes a watermark of a log that is replayed. One that does not say whether the clock was
    /// set back is judged as in [`Self::put_watermark`].
    pub(crate) fn pass_watermark(&mut self, mark: Watermark) {
        let is_back = match mark.clock {
            ClockCourse::Unknown => return self.put_watermark(mark.time),
            ClockCourse::Forward => false,
            ClockCourse::SetBack(_) => true,
        };
        self.steps.take(mark.time, is_back);
        self.write_watermark(mark);
    }

    fn write_watermark(&mut self, mark: Watermark) {
        let _ = self.ring.push(WATERMARK, &mark.to_bytes());
        self.wrote = true;
    }

    /// Writes events of a message, which have numbers that exceed those before. `continues` is set
    /// if others of the message follow.
    pub(crate) fn put_numbered(&mut self, events: &[Event], continues: bool) {
        self.wait_before(events);
        self.write(events, continues);
        if let Some(last) = events.last() {
            self.next = last.number + 1;
        }
    }

    /// Ends a message of which no more comes, although others of it were to follow.
    pub(crate) fn end_message(&mut self) {
        self.write_part(&[], false);
    }

    /// Writes the events of a message as one record, or as several if it is long. `continues` is
    /// set if others of the message follow.
    #[inline]
    fn write(&mut self, events: &[Event], continues: bool) {
        let mut left = events.len();
        for part in events.chunks(MOST) {
            left -= part.len();
            self.write_part(part, left > 0 || continues);
        }
    }

    /// Writes events as one record. `continues` is set if it is not the last one of the message.
    #[inline]
    pub(super) fn write_part(&mut self, events: &[Event], continues: bool) {
        let mark = self.mark.make();
        let (marked, more) = Mark::of_record(mark);
        let len = events.len() * Event::SIZE + more;
        let kind = EVENTS | marked | if continues { MORE } else { 0 };
        // A ring that laps has capacity for every record that is not too long.
        let _ = self.ring.write(kind, len, |room| {
            let places = Mark::write(mark, room).as_chunks_mut::<{ Event::SIZE }>().0;
            for (place, event) in places.iter_mut().zip(events) {
                *place = event.to_bytes();
            }
        });
        for time in events.iter().filter_map(Event::arrival) {
            self.steps.event(time);
        }
        if let Some(last) = events.last() {
            // After the write: until then, a start finds the number in this record.
            self.ring.note(last.number + 1);
        }
        self.wrote = true;
    }

    /// Marks the next events for measurement, with the time of arrival of their message.
    pub(crate) const fn mark(&mut self, arrived: u64) {
        self.mark.set(arrived);
    }

    /// Returns when the measured events were written, if they were. The next ones are not measured.
    pub(crate) const fn end_mark(&mut self) -> Option<u64> {
        self.mark.end()
    }

    /// Numbers the events of a message and writes them. Does not allocate, and waits only for a log
    /// set by [`Self::wait_for`].
    pub(crate) fn put(&mut self, events: &mut [Event]) {
        self.wait_before(events);
        for event in &mut *events {
            event.number = self.next;
            self.next += 1;
        }
        self.write(events, false);
    }

    /// Writes the last events of the plant, which may be more than the ring holds. Each message is
    /// written by itself as by [`Self::put`], and one of more than [`MOST`] events as several.
    ///
    /// The writer waits between them for the log of [`Self::wait_at_end_for`], for a few seconds in
    /// all, although the plant stops: feeds that have ended are not held up. Events that the log
    /// has not read by then may be missing in it, which it records.
    pub(crate) fn put_last(&mut self, events: &mut [Event]) {
        let messages = events.chunk_by_mut(|event, _| !event.flags.has(Flags::LAST));
        for part in messages.flat_map(|message| message.chunks_mut(MOST)) {
            let log = self.at_end.as_ref();
            if log.is_some_and(|log| log.is_half_behind(self.next)) {
                self.wake();
                if let Some(log) = &mut self.at_end {
                    log.wait_at_end(self.next);
                }
            }
            self.put(part);
        }
    }

    /// Returns whether a reader has requested all instruments since the last call.
    pub(crate) fn is_asked(&mut self) -> bool {
        let last = self.asks.all.load(Ordering::Relaxed);
        std::mem::replace(&mut self.taken, last) != last
    }

    /// Returns whether a reader has requested the next of them since the last call.
    pub(crate) fn wants_more(&self) -> bool {
        let more = &self.asks.more;
        more.load(Ordering::Relaxed) && more.swap(false, Ordering::Relaxed)
    }

    /// Writes that all instruments are in the ring which were requested before the last call of
    /// [`Self::is_asked`].
    pub(crate) fn put_shown(&mut self) {
        let _ = self.ring.push(SHOWN, &self.taken.to_le_bytes());
        self.wrote = true;
    }

    /// Wakes the readers, once for all events of a turn.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.wrote) {
            // After the events: a reader that has the number finds all below it.
            self.shown.store(self.next, Ordering::Release);
            self.wakers.iter().for_each(Waker::wake);
        }
    }
}

impl Drop for EventRing {
    fn drop(&mut self) {
        self.shown.store(self.next, Ordering::Release);
    }
}
