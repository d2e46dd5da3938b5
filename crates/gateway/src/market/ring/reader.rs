//! The reading ends of the ring.

use super::introduced::Introduced;
use super::{Asks, BITS, INSTRUMENT, MORE, RESTART, Record, SHOWN, WATERMARK};
use super::{events, number, watermark};
use crate::stages::OutletStages;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::BroadcastReader;
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::{Directory, Instrument, Lookup};
use fanfare_market::{Delivery, Event};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The position of a reader that holds up no writer, because it has not started or is gone.
const ABSENT: u64 = u64::MAX;

/// The most instruments of a call whose events are told apart.
const TOLD_APART: usize = 1024;

/// The instruments whose events a call has delivered, for an owner that collects new names. Does
/// not allocate: [`TOLD_APART`] or more count as all.
struct Delivered(Vec<InstrumentId>);

impl Delivered {
    #[inline]
    fn add(&mut self, instrument: InstrumentId) {
        if self.0.last() != Some(&instrument) && self.0.len() < TOLD_APART {
            self.0.push(instrument);
        }
    }

    /// Counts all instruments as delivered.
    fn add_all(&mut self) {
        self.0.resize(TOLD_APART, InstrumentId::ALL);
    }

    fn has(&self, instrument: InstrumentId) -> bool {
        self.0.len() == TOLD_APART || self.0.contains(&instrument)
    }
}

/// The reading end: market events in the order of the plant's numbers, and their instruments.
pub struct EventReader {
    pub(super) records: RecordReader,
    directory: Directory,
    /// The instruments that were not known by their names before, if the owner of the reader
    /// collects them.
    added: Option<Vec<InstrumentId>>,
    /// The instruments whose events the last call of [`Self::read`] has delivered.
    delivered: Delivered,
    /// An encoded instrument with another name than before, in front of which the last call of
    /// [`Self::read`] has ended. Empty if there is none.
    renamed: Vec<u8>,
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
    /// The instruments that precede all records, until they are read.
    introduced: Option<Arc<OnceLock<Introduced>>>,
}

impl Drop for RecordReader {
    fn drop(&mut self) {
        self.read.store(ABSENT, Ordering::Relaxed);
    }
}

impl RecordReader {
    /// Creates a reader. The first waker wakes its thread, the second one the thread of the feeds.
    /// The reader sets `read` to its position, and requests more instruments while its backlog is
    /// less than `most` bytes. The instruments in `introduced` precede all records.
    pub(super) fn new(
        ring: BroadcastReader,
        read: Arc<AtomicU64>,
        most: u64,
        [waker, feeds]: [Waker; 2],
        asks: Arc<Asks>,
        introduced: Arc<OnceLock<Introduced>>,
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
            introduced: Some(introduced),
        }
    }

    /// Calls `each` with at most `limit` records and the rest of the last one's message, and with
    /// whether the message continues in the next record. Returns how many there were. If the reader
    /// was overtaken, it requests all instruments. The first call begins with all instruments that
    /// were introduced. Does not wait.
    pub(crate) fn read(&mut self, limit: usize, mut each: impl FnMut(Record<'_>, bool)) -> usize {
        self.read_while(limit, |record, continues| {
            each(record, continues);
            true
        })
    }

    /// Reads as [`Self::read`] does, but no further than the record of the ring for which `each`
    /// returns false.
    fn read_while(
        &mut self,
        limit: usize,
        mut each: impl FnMut(Record<'_>, bool) -> bool,
    ) -> usize {
        let introduced = self.read_introduced(&mut |record: Record<'_>, continues| {
            each(record, continues);
        });
        let (mut read, mut goes_on) = (0, true);
        // The writer may still be writing the rest of a message.
        while goes_on && (read < limit || self.is_within) {
            match self.read_one(&mut each) {
                None => break,
                Some(next) => goes_on = next,
            }
            read += 1;
        }
        if read > 0 {
            self.read.store(self.ring.position(), Ordering::Relaxed);
        }
        if self.is_waiting() && self.ring.backlog() < self.most {
            self.asks.more.store(true, Ordering::Relaxed);
            self.feeds.wake();
        }
        introduced + read
    }

    /// Calls `each` with the instruments that were introduced, unless they were read before.
    /// Returns how many there were.
    #[inline]
    fn read_introduced(&mut self, each: &mut impl FnMut(Record<'_>, bool)) -> usize {
        let introduced = self.introduced.as_deref();
        if introduced.is_none_or(|own| own.get().is_none()) {
            return 0;
        }
        // The last reader releases them.
        let introduced = self.introduced.take();
        let Some(all) = introduced.as_deref().and_then(OnceLock::get) else {
            return 0;
        };
        for bytes in all.iter() {
            each(Record::Instrument(bytes), false);
        }
        all.len()
    }

    /// Calls `each` with the next record of the ring, if there is one. Returns whether reading goes
    /// on.
    #[inline]
    fn read_one(&mut self, each: &mut impl FnMut(Record<'_>, bool) -> bool) -> Option<bool> {
        let (asked, is_within) = (&mut self.asked, &mut self.is_within);
        let mut goes_on = true;
        let batch = self.ring.read(1, |record| match record.kind & !BITS {
            INSTRUMENT => goes_on = each(Record::Instrument(record.bytes), false),
            SHOWN => {
                *is_within = false;
                // It may answer an earlier request of another reader.
                if number(record.bytes) >= *asked {
                    *asked = 0;
                }
            }
            RESTART => {
                *is_within = false;
                goes_on = each(Record::Restart(number(record.bytes)), false);
            }
            WATERMARK => goes_on = each(watermark(record.bytes), false),
            _ => {
                // If the rest is overwritten, the numbers of the next events show it.
                *is_within = record.kind & MORE != 0;
                goes_on = each(events(record.kind, record.bytes), *is_within);
            }
        });
        if batch.lost > 0 {
            (self.lacks_some, self.was_overtaken) = (true, true);
            if self.asks_itself {
                self.ask();
            }
        }
        (batch.read > 0).then_some(goes_on)
    }

    /// Releases the records up to a position that it has had: they are in the log, and need not be
    /// recovered from the ring's file.
    pub(crate) fn release(&self, to: u64) {
        self.ring.release(to);
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
            delivered: Delivered(Vec::new()),
            renamed: Vec::new(),
            next,
            written,
            stages: None,
            now: 0,
        }
    }

    /// Calls `each` with the events of at most `limit` records and the rest of the last one's
    /// message, and returns how many records there were. A message has one record, or several if it
    /// is long. Does not wait.
    ///
    /// For an owner that collects new names, a call ends in front of an instrument that is renamed
    /// if the call has delivered an event of it: each event of a call comes under the name that is
    /// known after the call, and the owner reviews this name before the next call. Each call takes
    /// at least one record, so that renames hold up nothing.
    pub fn read(&mut self, limit: usize, mut each: impl FnMut(Delivery<'_>)) -> usize {
        let Self {
            records,
            directory,
            added,
            delivered,
            renamed,
            next,
            stages,
            now,
            ..
        } = self;
        let held = usize::from(!renamed.is_empty());
        if held > 0 {
            take_instrument(renamed, directory, added);
            renamed.clear();
        }
        delivered.0.clear();
        let read = records.read_while(limit, |record, continues| {
            match record {
                Record::Instrument(bytes) => {
                    if added.is_some() && is_renamed(bytes, directory, delivered) {
                        renamed.extend_from_slice(bytes);
                        return false;
                    }
                    take_instrument(bytes, directory, added);
                }
                Record::Events(events, mark) => {
                    if let (Some(mark), Some(stages)) = (mark, stages.as_mut()) {
                        stages.take(mark, *now);
                    }
                    for event in events.iter().filter_map(Event::from_bytes) {
                        if event.number > *next {
                            if added.is_some() {
                                delivered.add_all();
                            }
                            each(Delivery::Lost {
                                first: *next,
                                last: event.number - 1,
                            });
                        }
                        *next = event.number + 1;
                        if added.is_some() {
                            delivered.add(event.instrument);
                        }
                        each(Delivery::Event(&event, directory));
                    }
                    if !continues {
                        each(Delivery::End(directory));
                    }
                }
                Record::Restart(_) => {
                    if added.is_some() {
                        delivered.add_all();
                    }
                    each(Delivery::Restart);
                }
                Record::Watermark(mark) => each(Delivery::Watermark(mark)),
            }
            true
        });
        held + read - usize::from(!renamed.is_empty())
    }

    /// Reads the instruments that were introduced, unless they were read before, for an answer that
    /// precedes the first call of [`Self::read`].
    pub(crate) fn take_introduced(&mut self) {
        let Self {
            records,
            directory,
            added,
            ..
        } = self;
        records.read_introduced(&mut |record: Record<'_>, _| {
            if let Record::Instrument(bytes) = record {
                take_instrument(bytes, directory, added);
            }
        });
    }

    /// Returns the bytes written and not taken, including headers.
    pub(crate) fn backlog(&self) -> u64 {
        self.records.ring.backlog() + self.renamed.len() as u64
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
        self.delivered.0.reserve_exact(TOLD_APART);
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
        self.renamed.is_empty() && self.records.ring.is_finished()
    }
}

/// Adds an encoded instrument to a directory, and its number to `added` if the instrument is new or
/// has another name.
fn take_instrument(bytes: &[u8], directory: &mut Directory, added: &mut Option<Vec<InstrumentId>>) {
    if let (Some((number, true)), Some(added)) = (directory.take(bytes), added.as_mut()) {
        added.push(number);
    }
}

/// Returns whether a directory has an encoded instrument by another name, and an event of it was
/// delivered.
#[cold]
fn is_renamed(bytes: &[u8], directory: &Directory, delivered: &Delivered) -> bool {
    Instrument::read(bytes).is_some_and(|new| {
        let known = directory.instrument(new.instrument);
        known.is_some_and(|known| known.definition.name != new.definition.name)
            && delivered.has(new.instrument)
    })
}
