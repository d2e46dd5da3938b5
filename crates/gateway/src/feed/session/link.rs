//! The ring from the thread of a session to the thread of the feeds.
//!
//! No message is lost in it. What does not fit is kept, at most the messages of one duty cycle, and
//! until it fits nothing more is read from the connection: the counterparty's bytes wait in the
//! kernel.

use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Consumer, Producer, WriteError, spsc};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    /// An application message.
    Message,
    /// The session is logged on, and its counterparty has no requests.
    LoggedOn,
    /// Messages of the session were lost.
    Lost,
    /// The session has ended.
    Ended,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Message, Self::LoggedOn, Self::Lost, Self::Ended];
}

/// What both ends share.
#[derive(Debug, Default)]
struct Shared {
    /// Whether the writer waits for room.
    is_full: AtomicBool,
    /// Whether the reader needs snapshots of all instruments.
    renews: AtomicBool,
}

/// The writing end.
pub(super) struct Link {
    ring: Producer,
    kept: VecDeque<(Kind, Box<[u8]>)>,
    /// The longest record, in bytes. It fits an empty ring, whose longest record is nearly half its
    /// capacity; a message is at most an eighth of it, by the limits of the configuration.
    longest: usize,
    shared: Arc<Shared>,
    reader: Waker,
    has_new: bool,
}

/// The reading end.
pub(super) struct LinkReader {
    ring: Consumer,
    shared: Arc<Shared>,
}

/// Makes a ring of `capacity` bytes, whose reader is woken by `reader`.
pub(super) fn link(capacity: usize, reader: Waker) -> (Link, LinkReader) {
    let (producer, consumer) = spsc(capacity);
    let shared = Arc::new(Shared::default());
    let link = Link {
        ring: producer,
        kept: VecDeque::new(),
        longest: capacity / 4,
        shared: Arc::clone(&shared),
        reader,
        has_new: false,
    };
    let reader = LinkReader {
        ring: consumer,
        shared,
    };
    (link, reader)
}

impl Link {
    /// Writes a record, or keeps it. Returns false if it can never be written, as it is too long.
    pub(super) fn put(&mut self, kind: Kind, bytes: &[u8]) -> bool {
        // Checked before it is kept, too: what is kept is never dropped.
        if bytes.len() > self.longest {
            return false;
        }
        self.has_new = true;
        if self.kept.is_empty() && self.write(kind, bytes).is_ok() {
            return true;
        }
        self.kept.push_back((kind, bytes.into()));
        true
    }

    fn write(&mut self, kind: Kind, bytes: &[u8]) -> Result<(), WriteError> {
        match self.ring.push(kind as u32, bytes) {
            // The gateway stops, and reads no more.
            Ok(_) | Err(WriteError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes what was kept. Returns whether more may be read from the connection.
    pub(super) fn has_room(&mut self) -> bool {
        while let Some((kind, bytes)) = self.kept.pop_front() {
            // The flag is set before the attempt, so that room made after it wakes this thread.
            self.shared.is_full.store(true, Ordering::Relaxed);
            // Pairs with the fence in `read`: either this attempt sees the room, or the reader sees
            // the flag.
            fence(Ordering::SeqCst);
            let written = self.write(kind, &bytes);
            if let Err(WriteError::Full) = written {
                self.kept.push_front((kind, bytes));
                break;
            }
            debug_assert!(written.is_ok(), "`put` keeps only what fits");
            self.has_new = true;
        }
        let has_room = self.kept.is_empty();
        if has_room {
            self.shared.is_full.store(false, Ordering::Relaxed);
        }
        has_room
    }

    /// Writes what was kept, and wakes the reader if there is anything new. Called in each turn, as
    /// the connection may be quiet or gone, and nothing asks for room then.
    pub(super) fn pass_on(&mut self) {
        self.has_room();
        if std::mem::take(&mut self.has_new) {
            self.reader.wake();
        }
    }

    /// Returns whether the reader has requested snapshots of all instruments since the last call.
    pub(super) fn wants_renewal(&self) -> bool {
        let renews = &self.shared.renews;
        renews.load(Ordering::Relaxed) && renews.swap(false, Ordering::Relaxed)
    }
}

impl LinkReader {
    /// Calls `each` for at most `most` records: their kind and bytes. Returns their number, and
    /// whether the writer waited for the room.
    pub(super) fn read(&mut self, most: usize, mut each: impl FnMut(Kind, &[u8])) -> (usize, bool) {
        let read = self.ring.read(most, |record| {
            if let Some(kind) = Kind::ALL.get(record.kind as usize) {
                each(*kind, record.bytes);
            }
        });
        if read == 0 {
            return (0, false);
        }
        // Orders the room before the flag, as `has_room` orders the flag before its attempt.
        fence(Ordering::SeqCst);
        (read, self.shared.is_full.load(Ordering::Relaxed))
    }

    /// Returns whether records are still to be read.
    pub(super) fn is_behind(&self) -> bool {
        self.ring.backlog() > 0
    }

    /// Requests snapshots of all instruments.
    pub(super) fn renew(&self) {
        self.shared.renews.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_kept_in_order_and_holds_up_the_connection() {
        let (mut link, mut reader) = link(4096, Waker::detached().unwrap());
        let mut sent = 0_u8;
        while link.has_room() {
            assert!(link.put(Kind::Message, &[sent; 100]));
            sent += 1;
            assert!(sent < 100, "the ring is never full");
        }
        assert!(link.put(Kind::Ended, b""));
        let mut seen = Vec::new();
        let mut waited = false;
        for _ in 0..100 {
            let (_, own) = reader.read(1, |kind, bytes| seen.push((kind, bytes.to_vec())));
            waited |= own;
            link.has_room();
        }
        assert!(waited);
        let expected = (0..sent).map(|own| (Kind::Message, vec![own; 100]));
        let expected: Vec<_> = expected.chain([(Kind::Ended, vec![])]).collect();
        assert_eq!(seen, expected);
        assert!(!reader.is_behind());
        assert!(!link.put(Kind::Message, &[0; 9_000]), "it never fits");
        drop(reader);
        assert!(link.put(Kind::Message, b"x") && link.has_room());
    }

    #[test]
    fn what_is_kept_is_passed_on_without_a_connection_that_asks_for_room() {
        let (mut link, mut reader) = link(4096, Waker::detached().unwrap());
        while link.kept.is_empty() {
            assert!(link.put(Kind::Message, &[0; 100]));
        }
        assert!(link.put(Kind::Ended, b""));
        link.pass_on();
        let mut last = None;
        let (read, waited) = reader.read(1_000, |kind, _| last = Some(kind));
        assert!(read > 0 && waited, "the writer is woken for the room");
        assert_eq!(last, Some(Kind::Message));
        link.pass_on();
        reader.read(1_000, |kind, _| last = Some(kind));
        assert_eq!(last, Some(Kind::Ended));
    }

    #[test]
    fn a_message_within_the_limits_fits_and_no_longer_one_is_kept() {
        for capacity in [1 << 16, 1 << 18, 1 << 22] {
            let (mut link, mut reader) = link(capacity, Waker::detached().unwrap());
            let longest = vec![7; capacity / 8];
            while link.kept.is_empty() {
                assert!(link.put(Kind::Message, &longest));
            }
            // Both are put behind one that waits.
            assert!(link.put(Kind::Message, &vec![8; capacity / 4]));
            assert!(!link.put(Kind::Message, &vec![9; capacity]));
            let mut last = (0, 0);
            while !link.has_room() || reader.is_behind() {
                reader.read(1, |_, bytes| last = (bytes[0], bytes.len()));
            }
            assert_eq!(last, (8, capacity / 4));
        }
    }

    #[test]
    fn a_renewal_is_asked_for_once() {
        let (link, reader) = link(4096, Waker::detached().unwrap());
        assert!(!link.wants_renewal());
        reader.renew();
        assert_eq!([link.wants_renewal(), link.wants_renewal()], [true, false]);
    }
}
