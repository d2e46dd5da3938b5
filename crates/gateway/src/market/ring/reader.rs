//! The reading ends of the ring.

use super::{Asks, BITS, INSTRUMENT, MORE, RESTART, Record, SHOWN, WATERMARK, events, number};
use crate::stages::OutletStages;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::BroadcastReader;
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::Directory;
use fanfare_market::{Delivery, Event};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The position of a reader that holds up no writer, because it has not started or is gone.
const ABSENT: u64 = u64::MAX;

/// The reading end: market events in the order of the plant's numbers, and their instruments.
pub struct EventReader {
    pub(super) records: RecordReader,
    directory: Directory,
    /// The instruments that were not known by their names before, if the owner of the reader
    /// collects them.
    added: Option<Vec<InstrumentId>>,
    /// The number of the next event.
    next: u64,
    /// The number of the next event of the ring, at the end of the writer's last turn.
    written: Arc<AtomicU64>,
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
    /// Whether it was overtaken, and its owner has not been told since.
    was_overtaken: bool,
    /// Whether the last events continue in a record that was not read.
    is_within: bool,
}

impl Drop for RecordReader {
    fn drop(&mut self) {
        self.read.store(ABSENT, Ordering::Relaxed);
    }
}

impl RecordReader {
    /// Creates a reader. The first waker wakes its thread, the second one the thread of the feeds.
    /// The reader sets `read` to its position, and requests more instruments while its backlog is
    /// less than `most` bytes.
    pub(super) fn new(
        ring: BroadcastReader,
        read: Arc<AtomicU64>,
        most: u64,
        [waker, feeds]: [Waker; 2],
        asks: Arc<Asks>,
    ) -> Self {
        Self {
            ring,
            asked: 0,
            most,
            waker,
            feeds,
            asks,
            read,
            asks_itself: true,
            lacks_some: false,
            was_overtaken: false,
            is_within: false,
        }
    }

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
            (self.lacks_some, self.was_overtaken) = (true, true);
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

    /// Returns whether it was overtaken since the last call.
    pub(crate) const fn take_overtaken(&mut self) -> bool {
        std::mem::replace(&mut self.was_overtaken, false)
    }

    /// Returns whether it has read, or lost, everything that was written.
    pub(crate) fn is_at_end(&self) -> bool {
        self.ring.backlog() == 0
    }

    /// Returns whether the writer has overwritten what it reads next: the next call of
    /// [`Self::read`] continues with the last record.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.ring.backlog() > self.capacity()
    }

    /// Returns whether what was written from a position on, in bytes, is overwritten.
    pub(crate) fn is_overwritten(&self, position: u64) -> bool {
        let head = self.ring.position() + self.ring.backlog();
        head.saturating_sub(position) > self.capacity()
    }

    /// Returns the position up to which it has read, in bytes.
    pub(crate) const fn position(&self) -> u64 {
        self.ring.position()
    }

    /// Returns the size of the ring in bytes.
    const fn capacity(&self) -> u64 {
        self.most * 8
    }

    /// Returns whether it has requested all instruments and has not read all of them since.
    pub(super) const fn is_waiting(&self) -> bool {
        self.asked != 0
    }

    /// Returns the waker of the reader's thread.
    pub(crate) const fn waker(&self) -> &Waker {
        &self.waker
    }
}

impl EventReader {
    /// Creates a reader of records whose next event has this number. `written` is that of the ring.
    pub(super) fn new(records: RecordReader, next: u64, written: Arc<AtomicU64>) -> Self {
        Self {
            records,
            directory: Directory::new(),
            added: None,
            next,
            written,
            stages: None,
            now: 0,
        }
    }

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
            ..
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

    /// Returns the position of the end of the ring, in bytes.
    pub(crate) fn head(&self) -> u64 {
        self.records.ring.position() + self.records.ring.backlog()
    }

    /// Returns whether it has read, or lost, everything up to a position, and has the last message
    /// as a whole.
    pub(crate) const fn has_read(&self, position: u64) -> bool {
        self.records.ring.position() >= position && !self.records.is_within
    }

    /// Returns whether it may lack instruments and books: it was overtaken, and has not read all of
    /// them since.
    pub(crate) const fn may_lack_some(&self) -> bool {
        self.records.lacks_some || self.records.is_waiting()
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

    /// Returns whether it was overtaken since the last call. Events that a replayed log lacks do
    /// not count.
    pub(crate) const fn take_overtaken(&mut self) -> bool {
        self.records.take_overtaken()
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

    /// Returns the first and the last number of the events that were overwritten behind the last
    /// one read, if everything was read: no later event shows that they are missing. They do not
    /// count as lost again.
    pub fn take_lost_at_end(&mut self) -> Option<(u64, u64)> {
        // Before the look at the ring: all events below this number are in it, or were.
        let written = self.written.load(Ordering::Acquire);
        let is_lost = written > self.next && self.records.is_at_end();
        is_lost.then(|| (std::mem::replace(&mut self.next, written), written - 1))
    }

    /// Returns true once the gateway has ended and everything was read.
    pub fn is_finished(&mut self) -> bool {
        self.records.ring.is_finished()
    }
}
