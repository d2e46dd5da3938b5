//! The ring of market events: every outlet reads the same events, with the plant's numbers.
//!
//! The thread of the feeds writes and never waits. A reader that is overtaken knows from the
//! numbers what it lost, and asks for all instruments and pictures once more: some at a time, as
//! it reads them, so that these do not overtake it again.

use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy};
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::{Directory, Instrument};
use fanfare_market::{Delivery, Event, Kind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kinds of records: events of one message, one behind the other; an instrument; the end of all
/// instruments that a reader has asked for.
const EVENTS: u32 = 0;
const INSTRUMENT: u32 = 1;
const SHOWN: u32 = 2;

/// Events of one record at most: a longer message takes several.
const MOST: usize = 256;

/// Room for events, in bytes of the rings to the workers: about as many messages have room.
const PER_BYTE: usize = 4;

/// The least size of the ring: the longest instrument has room.
const LEAST: usize = 1 << 18;

/// The writing end.
pub(crate) struct EventRing {
    ring: Broadcast,
    /// The plant's number of the next event.
    next: u64,
    /// An instrument as bytes.
    room: Vec<u8>,
    wakers: Vec<Waker>,
    asks: Arc<Asks>,
    /// What may wait in the ring while readers ask for more instruments, in bytes.
    most: u64,
    /// Wakes the thread of the feeds.
    feeds: Waker,
    wrote: bool,
}

/// What the readers ask of the writer.
#[derive(Default)]
struct Asks {
    /// All instruments once more.
    all: AtomicBool,
    /// The next of them: a reader that waits for them has taken most of what was there.
    more: AtomicBool,
}

/// The reading end: market events in the order of the plant's numbers, and the instruments they are
/// of.
pub struct EventReader {
    ring: BroadcastReader,
    directory: Directory,
    /// Instruments that were not known before, if the owner of the reader wants to know.
    added: Option<Vec<InstrumentId>>,
    /// The number that comes next.
    next: u64,
    /// All instruments were asked for, and did not all come yet.
    is_waiting: bool,
    most: u64,
    waker: Waker,
    feeds: Waker,
    asks: Arc<Asks>,
}

impl EventRing {
    /// A ring for at most `readers`, which wake the thread of the feeds by `feeds`. `bytes` is the
    /// size of the rings to the workers, a power of two.
    pub(crate) fn new(bytes: usize, readers: usize, feeds: Waker) -> Self {
        let bytes = bytes.saturating_mul(PER_BYTE).max(LEAST);
        Self {
            ring: Broadcast::new(bytes, readers, Policy::Lap),
            next: 1,
            room: Vec::new(),
            wakers: Vec::new(),
            asks: Arc::default(),
            most: bytes as u64 / 8,
            feeds,
            wrote: false,
        }
    }

    /// A reader of all that is written from now on; `None` if there are as many as the ring was
    /// made for. Its thread is woken by `waker`.
    pub(crate) fn reader(&mut self, waker: Waker) -> Option<EventReader> {
        self.wakers.push(waker.clone());
        Some(EventReader {
            ring: self.ring.subscribe()?,
            directory: Directory::new(),
            added: None,
            next: self.next,
            is_waiting: false,
            most: self.most,
            waker,
            feeds: self.feeds.clone(),
            asks: Arc::clone(&self.asks),
        })
    }

    /// Adds a waker for a thread that starts after its reader was made.
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

    /// Numbers events and writes them. Does not allocate, and never waits.
    pub(crate) fn put(&mut self, events: &mut [Event]) {
        for events in events.chunks_mut(MOST) {
            for event in &mut *events {
                event.number = self.next;
                self.next += 1;
            }
            // A ring that laps has room for all that is not too long.
            let _ = self.ring.write(EVENTS, events.len() * Event::SIZE, |room| {
                let (places, _) = room.as_chunks_mut::<{ Event::SIZE }>();
                for (place, event) in places.iter_mut().zip(&*events) {
                    *place = event.to_bytes();
                }
            });
            self.wrote = true;
        }
    }

    /// Whether a reader has asked for all instruments since the last call.
    pub(crate) fn is_asked(&self) -> bool {
        take(&self.asks.all)
    }

    /// Whether a reader has asked for the next of them since the last call.
    pub(crate) fn wants_more(&self) -> bool {
        take(&self.asks.more)
    }

    /// All instruments that were asked for are in the ring.
    pub(crate) fn put_shown(&mut self) {
        let _ = self.ring.push(SHOWN, &[]);
        self.wrote = true;
    }

    /// Wakes the readers, once for all events of a turn.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.wrote) {
            self.wakers.iter().for_each(Waker::wake);
        }
    }
}

/// Takes a flag back.
fn take(flag: &AtomicBool) -> bool {
    flag.load(Ordering::Relaxed) && flag.swap(false, Ordering::Relaxed)
}

impl EventReader {
    /// Calls `each` with what has come, of at most `limit` messages, and returns how many there
    /// were. Does not wait.
    pub fn read(&mut self, limit: usize, mut each: impl FnMut(Delivery<'_>)) -> usize {
        let Self {
            ring,
            directory,
            added,
            next,
            is_waiting,
            ..
        } = self;
        let mut is_behind = false;
        let batch = ring.read(limit, |record| match record.kind {
            INSTRUMENT => {
                if let (Some((number, true)), Some(added)) =
                    (directory.take(record.bytes), added.as_mut())
                {
                    added.push(number);
                }
            }
            SHOWN => *is_waiting = false,
            _ => {
                for event in record.bytes.as_chunks::<{ Event::SIZE }>().0 {
                    let Some(event) = Event::from_bytes(event) else {
                        continue;
                    };
                    if event.number > *next {
                        is_behind = true;
                        each(Delivery::Lost {
                            first: *next,
                            last: event.number - 1,
                        });
                    }
                    *next = event.number + 1;
                    each(Delivery::Event(&event, directory));
                }
                each(Delivery::End(directory));
            }
        });
        if is_behind || batch.lost > 0 {
            self.is_waiting = true;
            self.asks.all.store(true, Ordering::Relaxed);
        }
        if self.is_waiting && self.ring.backlog() < self.most {
            self.asks.more.store(true, Ordering::Relaxed);
            self.feeds.wake();
        }
        batch.read
    }

    /// What the writer wakes the reader's thread with.
    pub const fn waker(&self) -> &Waker {
        &self.waker
    }

    /// The instruments known so far.
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Keeps the numbers of instruments that come from now on.
    pub(crate) fn keep_added(&mut self) {
        self.added = Some(Vec::new());
    }

    /// Takes the numbers of instruments that came since the last call.
    pub(crate) fn take_added(&mut self) -> Vec<InstrumentId> {
        self.added.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// True once the gateway has ended and everything was read.
    pub fn is_finished(&mut self) -> bool {
        self.ring.is_finished()
    }
}

/// What one feed's message brought, until it is written to the ring.
#[derive(Default)]
pub(crate) struct Brought {
    pub(crate) events: Vec<Event>,
    /// Instruments of which something else than the book has changed.
    pub(crate) changed: Vec<InstrumentId>,
}

impl Brought {
    /// Takes an event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event) {
        self.events.push(*event);
        if matches!(event.kind, Kind::Definition | Kind::Status) {
            self.changed.push(event.instrument);
        }
    }
}
