//! The ring of market events: every outlet reads the same events, with the plant's numbers.
//!
//! The thread of the feeds writes and does not wait, unless it is configured to wait for the log. A
//! reader that is overtaken detects by the numbers what it lost, and requests all instruments and
//! snapshots again. These are written some at a time, as it reads them, so that they do not
//! overtake it again.

use super::awaited::Awaited;
use crate::stages::{MARKED, Mark, OutletStages, Pending};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy, Rescued};
use fanfare_engine::stop::Stop;
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::{Directory, Instrument};
use fanfare_market::{Delivery, Event, Kind};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The kinds of records: consecutive events of one message, an instrument, and the end of all
/// instruments that readers have requested, with the number of the last request.
const EVENTS: u32 = 0;
const INSTRUMENT: u32 = 1;
const SHOWN: u32 = 2;
/// The plant whose log is replayed was restarted at this time.
const RESTART: u32 = 3;
/// Every later event of a trade arrived at this time or after it, unless the recovery of its
/// instrument has delayed it.
const WATERMARK: u32 = 4;

/// The bit in the kind of a record of events whose message continues in the next record.
const MORE: u32 = 1 << 29;

/// The bits in the kind of a record that do not belong to the kind.
const BITS: u32 = MARKED | MORE;

/// The most events of one record. A longer message takes several.
const MOST: usize = 256;

/// The ratio of the ring's size to that of the rings to the workers, so that it holds about as many
/// messages.
const PER_BYTE: usize = 4;

/// The least size of the ring, which holds the longest instrument.
const LEAST: usize = 1 << 18;

/// Calls `each` with the records that the log lacks, from the ring of a killed process, and whether
/// their messages continue in the next record.
pub(crate) fn rescue(path: &Path, mut each: impl FnMut(Record<'_>, bool)) -> io::Result<Rescued> {
    fanfare_engine::ring::rescue(path, |kind, bytes| match kind & !BITS {
        INSTRUMENT => each(Record::Instrument(bytes), false),
        EVENTS => each(events(kind, bytes), kind & MORE != 0),
        RESTART => each(Record::Restart(number(bytes)), false),
        WATERMARK => each(Record::Watermark(number(bytes)), false),
        _ => {}
    })
}

/// Parses a record of events, which a mark precedes if they are measured.
fn events(kind: u32, bytes: &[u8]) -> Record<'_> {
    let (mark, bytes) = Mark::split(kind, bytes);
    Record::Events(bytes.as_chunks().0, mark)
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}

/// The writing end of the ring.
pub(crate) struct EventRing {
    ring: Broadcast,
    /// The plant's number of the next event.
    next: u64,
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
    log: Option<Awaited>,
    /// The position of each reader, in bytes.
    read: Vec<Arc<AtomicU64>>,
    /// The mark of the next events, if they are measured.
    mark: Pending,
    /// The value of `next` at the end of the last turn.
    shown: Arc<AtomicU64>,
}

/// The position of a reader that holds up no writer, because it has not started or is gone.
const ABSENT: u64 = u64::MAX;

/// The requests of the readers to the writer.
#[derive(Default)]
struct Asks {
    /// The number of the last request of all instruments.
    all: AtomicU64,
    /// Whether the next of them are requested: a reader that waits for them has read most of the
    /// ring.
    more: AtomicBool,
}

/// The reading end: market events in the order of the plant's numbers, and their instruments.
pub struct EventReader {
    records: RecordReader,
    directory: Directory,
    /// The instruments that were not known by their names before, if the owner of the reader
    /// collects them.
    added: Option<Vec<InstrumentId>>,
    /// The number of the next event.
    next: u64,
    stages: Option<OutletStages>,
    /// The beginning of the turn, for the stages.
    now: u64,
}

/// The reading end for raw records of the ring.
pub(crate) struct RecordReader {
    ring: BroadcastReader,
    /// The number of the reader's request of all instruments, or 0 once they were read.
    asked: u64,
    most: u64,
    waker: Waker,
    feeds: Waker,
    asks: Arc<Asks>,
    /// The position of the reader, for a writer that waits.
    read: Arc<AtomicU64>,
    /// Whether the reader requests all instruments by itself after it was overtaken.
    asks_itself: bool,
    /// Whether it was overtaken, and has not requested them since.
    lacks_some: bool,
    /// Whether the last events continue in a record that was not read.
    is_within: bool,
}

impl Drop for RecordReader {
    fn drop(&mut self) {
        self.read.store(ABSENT, Ordering::Relaxed);
    }
}

/// A record of the ring.
pub(crate) enum Record<'a> {
    /// Events of one message, encoded, with their mark if they are measured.
    Events(&'a [[u8; Event::SIZE]], Option<Mark>),
    /// An instrument, encoded.
    Instrument(&'a [u8]),
    /// The plant whose log is replayed was restarted at this time.
    Restart(u64),
    /// The time at which or after which every later event of a trade arrived.
    Watermark(u64),
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
    /// killed.
    pub(crate) fn in_file(
        path: &Path,
        bytes: usize,
        readers: usize,
        feeds: Waker,
        next: u64,
    ) -> io::Result<Self> {
        let bytes = Self::capacity(bytes);
        let ring = Broadcast::in_file(path, bytes, readers)?;
        Ok(Self::of(ring, bytes, feeds, next))
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
            read: Vec::new(),
            mark: Pending::default(),
            shown: Arc::new(AtomicU64::new(next)),
        }
    }

    /// Returns a reader of all later records, or `None` if the ring has as many readers as it was
    /// created for. Its thread is woken by `waker`.
    pub(crate) fn reader(&mut self, waker: Waker) -> Option<EventReader> {
        Some(EventReader {
            records: self.record_reader(waker)?,
            directory: Directory::new(),
            added: None,
            next: self.next,
            stages: None,
            now: 0,
        })
    }

    /// Returns a reader as [`Self::reader`] does, for raw records of the ring.
    pub(crate) fn record_reader(&mut self, waker: Waker) -> Option<RecordReader> {
        self.wakers.push(waker.clone());
        let read = Arc::new(AtomicU64::new(self.ring.position()));
        self.read.push(Arc::clone(&read));
        Some(RecordReader {
            read,
            asks_itself: true,
            lacks_some: false,
            is_within: false,
            ring: self.ring.subscribe()?,
            asked: 0,
            most: self.most,
            waker,
            feeds: self.feeds.clone(),
            asks: Arc::clone(&self.asks),
        })
    }

    /// Returns the plant's number of the next event at the end of the last turn, for any thread.
    pub(crate) fn number(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shown)
    }

    /// Waits from now on for a log that is behind by half of the ring, but no longer than a few
    /// seconds without progress, nor once `stop` is raised. `committed` is the number after its
    /// last event.
    pub(crate) fn wait_for(&mut self, committed: Arc<AtomicU64>, stop: Stop) {
        // An event takes at most 96 bytes with its mark, and instruments are rare.
        let most = self.most * 8 / 160;
        self.log = Some(Awaited::new(committed, most, stop));
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
        let _ = self.ring.push(RESTART, &time.to_le_bytes());
        self.wrote = true;
    }

    /// Writes the time at which or after which every later event of a trade arrives.
    pub(crate) fn put_watermark(&mut self, time: u64) {
        let _ = self.ring.push(WATERMARK, &time.to_le_bytes());
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
    fn write_part(&mut self, events: &[Event], continues: bool) {
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
            self.shown.store(self.next, Ordering::Relaxed);
            self.wakers.iter().for_each(Waker::wake);
        }
    }
}

impl RecordReader {
    /// Calls `each` with at most `limit` records and the rest of the last one's message, and with
    /// whether the message continues in the next record. Returns how many there were. If the reader
    /// was overtaken, it requests all instruments. Does not wait.
    pub(crate) fn read(&mut self, limit: usize, mut each: impl FnMut(Record<'_>, bool)) -> usize {
        let mut read = self.read_some(limit, &mut each);
        while self.is_within {
            // The writer may still be writing the message.
            match self.read_some(1, &mut each) {
                0 => break,
                more => read += more,
            }
        }
        read
    }

    fn read_some(&mut self, limit: usize, each: &mut impl FnMut(Record<'_>, bool)) -> usize {
        let (asked, is_within) = (&mut self.asked, &mut self.is_within);
        let batch = self.ring.read(limit, |record| match record.kind & !BITS {
            INSTRUMENT => each(Record::Instrument(record.bytes), false),
            SHOWN => {
                *is_within = false;
                // It may answer an earlier request of another reader.
                if number(record.bytes) >= *asked {
                    *asked = 0;
                }
            }
            RESTART => {
                *is_within = false;
                each(Record::Restart(number(record.bytes)), false);
            }
            WATERMARK => each(Record::Watermark(number(record.bytes)), false),
            _ => {
                // If the rest is overwritten, the numbers of the next events show it.
                *is_within = record.kind & MORE != 0;
                each(events(record.kind, record.bytes), *is_within);
            }
        });
        if batch.read > 0 {
            self.read.store(self.ring.position(), Ordering::Relaxed);
        }
        if batch.lost > 0 {
            self.lacks_some = true;
            if self.asks_itself {
                self.ask();
            }
        }
        if self.is_waiting() && self.ring.backlog() < self.most {
            self.asks.more.store(true, Ordering::Relaxed);
            self.feeds.wake();
        }
        batch.read
    }

    /// Releases the records read so far, which are in the log and need not be recovered from the
    /// ring's file.
    pub(crate) fn release(&self) {
        self.ring.release();
    }

    /// Requests all instruments, snapshots and states again.
    pub(crate) fn ask(&mut self) {
        self.asked = self.asks.all.fetch_add(1, Ordering::Relaxed) + 1;
        self.lacks_some = false;
    }

    /// Returns whether it has requested all instruments and has not read all of them since.
    const fn is_waiting(&self) -> bool {
        self.asked != 0
    }

    /// Returns the waker of the reader's thread.
    pub(crate) const fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl EventReader {
    /// Calls `each` with the events of at most `limit` records and the rest of the last one's
    /// message, and returns how many records there were. A message has one record, or several if it
    /// is long. Does not wait.
    pub fn read(&mut self, limit: usize, mut each: impl FnMut(Delivery<'_>)) -> usize {
        let Self {
            records,
            directory,
            added,
            next,
            stages,
            now,
        } = self;
        records.read(limit, |record, continues| match record {
            Record::Instrument(bytes) => {
                if let (Some((number, true)), Some(added)) = (directory.take(bytes), added.as_mut())
                {
                    added.push(number);
                }
            }
            Record::Events(events, mark) => {
                if let (Some(mark), Some(stages)) = (mark, stages.as_mut()) {
                    stages.take(mark, *now);
                }
                for event in events.iter().filter_map(Event::from_bytes) {
                    if event.number > *next {
                        each(Delivery::Lost {
                            first: *next,
                            last: event.number - 1,
                        });
                    }
                    *next = event.number + 1;
                    each(Delivery::Event(&event, directory));
                }
                if !continues {
                    each(Delivery::End(directory));
                }
            }
            Record::Restart(_) => each(Delivery::Restart),
            Record::Watermark(time) => each(Delivery::Watermark(time)),
        })
    }

    /// Returns the bytes written and not read, including headers.
    pub(crate) fn backlog(&self) -> u64 {
        self.records.ring.backlog()
    }

    /// Measures marked events from now on.
    pub(crate) fn measure(&mut self, stages: Option<OutletStages>) {
        self.stages = stages;
    }

    /// Begins a turn of the reader, at a monotonic time in nanoseconds.
    #[inline]
    pub(crate) const fn begin_turn(&mut self, now: u64) {
        self.now = now;
    }

    /// Ends the turn. `is_sent` is set if some of its messages reached the end of the outlet.
    #[inline]
    pub(crate) fn end_turn(&mut self, is_sent: bool) {
        if let Some(stages) = &mut self.stages {
            stages.end(is_sent);
        }
    }

    /// Excludes this reader from those that a writer waits for, until it reads.
    pub(crate) fn may_be_late(self) -> Self {
        self.records.read.store(ABSENT, Ordering::Relaxed);
        self
    }

    /// Disables the automatic request for all instruments after the reader was overtaken.
    pub(crate) const fn ask_by_hand(&mut self) {
        self.records.asks_itself = false;
    }

    /// Returns whether it was overtaken and has not requested all instruments since.
    pub(crate) const fn lacks_some(&self) -> bool {
        self.records.lacks_some
    }

    /// Requests all instruments, snapshots and states again.
    pub(crate) fn ask(&mut self) {
        self.records.ask();
    }

    /// Returns the waker of the reader's thread.
    pub const fn waker(&self) -> &Waker {
        self.records.waker()
    }

    /// Returns whether the last message was read only in part, because its rest is being written or
    /// was overwritten. Its books may be incomplete until the next events.
    pub(crate) const fn is_within_message(&self) -> bool {
        self.records.is_within
    }

    /// Returns the number of the next event.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the instruments known so far.
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Collects the numbers of new and renamed instruments from now on.
    pub(crate) fn keep_added(&mut self) {
        self.added = Some(Vec::new());
    }

    /// Takes the numbers of new and renamed instruments since the last call.
    pub(crate) fn take_added(&mut self) -> Vec<InstrumentId> {
        self.added.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns true once the gateway has ended and everything was read.
    pub fn is_finished(&mut self) -> bool {
        self.records.ring.is_finished()
    }
}

/// The events of a feed's message, until they are written to the ring.
#[derive(Default)]
pub(crate) struct Brought {
    pub(crate) events: Vec<Event>,
    /// The instruments of which anything besides the book has changed.
    pub(crate) changed: Vec<InstrumentId>,
}

impl Brought {
    /// Adds an event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event) {
        self.events.push(*event);
        if matches!(event.kind, Kind::Definition | Kind::Status) {
            self.changed.push(event.instrument);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than two records hold.
    const LONG: usize = 2 * MOST + 7;

    fn ring() -> (EventRing, EventReader) {
        let waker = || Waker::detached().unwrap();
        let mut ring = EventRing::new(1, 1, waker(), 1);
        let reader = ring.reader(waker()).unwrap();
        (ring, reader)
    }

    fn message(len: usize) -> Vec<Event> {
        std::iter::repeat_n(Event::EMPTY, len).collect()
    }

    /// Reads at most `limit` records and the rest of a message. Returns the number of records, and
    /// the numbers of the events, with 0 at the end of a message and those of lost ones negative.
    fn read(reader: &mut EventReader, limit: usize) -> (usize, Vec<i64>) {
        let mut seen = Vec::new();
        let count = reader.read(limit, |delivery| match delivery {
            Delivery::Event(event, _) => seen.push(event.number.cast_signed()),
            Delivery::End(_) => seen.push(0),
            Delivery::Lost { first, last } => {
                seen.extend([first, last].map(|number| -number.cast_signed()));
            }
            Delivery::Watermark(_) => {}
            Delivery::Restart => panic!("a restart"),
        });
        (count, seen)
    }

    #[test]
    fn a_message_of_several_records_is_read_to_its_end_and_has_one_end() {
        let (mut ring, mut reader) = ring();
        ring.put(&mut message(LONG));
        ring.put(&mut message(MOST));
        let (first, last) = (LONG as i64, (LONG + MOST) as i64);
        let expected: Vec<_> = (1..=first).chain([0]).collect();
        assert_eq!(read(&mut reader, 1), (3, expected));
        assert!(!reader.is_within_message());
        let expected: Vec<_> = (first + 1..=last).chain([0]).collect();
        assert_eq!(read(&mut reader, 9), (1, expected));
        let mut numbered = message(MOST + 1);
        for (event, number) in numbered.iter_mut().zip(1_000..) {
            event.number = number;
        }
        ring.put_numbered(&numbered, false);
        let lost = [-(last + 1), -999];
        let expected: Vec<_> = lost.into_iter().chain(1_000..=1_256).chain([0]).collect();
        assert_eq!(read(&mut reader, 1), (2, expected));
    }

    #[test]
    fn numbered_events_end_a_message_if_no_others_follow() {
        let (mut ring, mut reader) = ring();
        let mut all = message(2 * MOST + 1);
        for (event, number) in all.iter_mut().zip(1..) {
            event.number = number;
        }
        let (first, rest) = all.split_at(MOST);
        let (second, last) = rest.split_at(MOST);
        ring.put_numbered(first, true);
        ring.put_numbered(second, false);
        let expected: Vec<_> = (1..=2 * MOST as i64).chain([0]).collect();
        assert_eq!(read(&mut reader, 1), (2, expected));
        ring.put_numbered(last, true);
        assert_eq!(read(&mut reader, 9), (1, vec![2 * MOST as i64 + 1]));
        assert!(reader.is_within_message());
        ring.end_message();
        assert_eq!(read(&mut reader, 9), (1, vec![0]));
        assert!(!reader.is_within_message());
    }

    /// Writes the first record of a message, which the reader reads.
    fn begin(ring: &mut EventRing, reader: &mut EventReader) {
        let event = Event {
            number: 1,
            ..Event::EMPTY
        };
        ring.write_part(&[event], true);
        ring.next = 3;
        assert_eq!(read(reader, 9), (1, vec![1]));
        assert!(reader.is_within_message());
    }

    #[test]
    fn a_reader_waits_for_the_rest_of_a_message() {
        let (mut ring, mut reader) = ring();
        begin(&mut ring, &mut reader);
        assert_eq!(read(&mut reader, 9), (0, vec![]));
        assert!(reader.is_within_message());
        let event = Event {
            number: 2,
            ..Event::EMPTY
        };
        ring.write_part(&[event], false);
        assert_eq!(read(&mut reader, 9), (1, vec![2, 0]));
        assert!(!reader.is_within_message());
    }

    #[test]
    fn a_reader_that_is_overtaken_within_a_message_goes_on_with_the_next() {
        let (mut ring, mut reader) = ring();
        begin(&mut ring, &mut reader);
        (0..LEAST / 16).for_each(|time| ring.put_watermark(time as u64));
        let (count, seen) = read(&mut reader, 9);
        assert!(count > 0 && seen.is_empty(), "{seen:?}");
        assert!(reader.is_within_message(), "no event says yet what is lost");
        assert!(reader.records.is_waiting() && ring.is_asked());
        ring.put(&mut message(1));
        let (_, seen) = read(&mut reader, usize::MAX);
        assert_eq!(seen, [-2, -2, 3, 0]);
        assert!(!reader.is_within_message());
    }

    #[test]
    fn the_answer_to_one_reader_does_not_end_the_wait_of_another() {
        let waker = || Waker::detached().unwrap();
        let mut ring = EventRing::new(1, 2, waker(), 1);
        let mut readers = [(); 2].map(|()| ring.reader(waker()).unwrap());
        let waiting = |readers: &mut [EventReader; 2]| {
            readers.each_mut().map(|reader| {
                read(reader, 9);
                reader.records.is_waiting()
            })
        };
        readers[0].ask();
        assert!(ring.is_asked() && !ring.is_asked());
        ring.put(&mut message(1));
        ring.put_shown();
        readers[1].ask();
        assert_eq!(waiting(&mut readers), [false, true]);
        assert!(ring.wants_more() && ring.is_asked());
        ring.put_shown();
        assert_eq!(waiting(&mut readers), [false, false]);
    }

    #[test]
    fn a_message_without_events_does_not_wait_for_the_log() {
        let (mut ring, _reader) = ring();
        ring.wait_for(Arc::new(AtomicU64::new(1)), Stop::new());
        ring.put(&mut message(2_000));
        ring.put(&mut []);
        ring.put_numbered(&[], false);
        assert!(!ring.log.unwrap().has_given_up());
    }
}
