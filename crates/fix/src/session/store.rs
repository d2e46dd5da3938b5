//! Where a session keeps its numbers and its messages, and what it transmits from.

use std::ops::Range;

use fanfare_wire::UtcTimestamp;

/// The sequence numbers of both directions, the messages sent, and the bytes on their way out.
///
/// The store is also the transmit buffer: a message is encoded into the place that `reserve`
/// returns, and its bytes are transmitted from there, so that keeping a message costs no copy.
/// Everything that leaves a session passes through one store in one order.
///
/// A resend changes nothing in the store: see [`transmit_again`](Self::transmit_again).
///
/// Every number stands for the *next* message: a fresh store has 1 and 1.
pub trait MessageStore {
    /// Number of the next message we send.
    fn next_sender(&self) -> u64;
    /// Number of the next message we expect.
    fn next_target(&self) -> u64;
    /// Sets the number of the next message we send.
    ///
    /// # Errors
    /// The store's own, when it cannot keep it.
    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError>;
    /// Sets the number of the next message we expect.
    ///
    /// # Errors
    /// The store's own, when it cannot keep it.
    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError>;

    /// Returns when the numbers last started at 1.
    fn created(&self) -> UtcTimestamp;
    /// Forgets all messages and starts both numbers at 1. Bytes not yet transmitted stay.
    ///
    /// # Errors
    /// The store's own, when it cannot keep it.
    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError>;

    /// Returns where a reset stands that the session asks for, as it was last set: in a store on a
    /// medium, perhaps by another process.
    fn our_reset(&self) -> OurReset {
        OurReset::None
    }
    /// Keeps where a reset stands that the session asks for, until the next call; `reset` does not
    /// change it. A store that ends with the process need not: the session knows it, too.
    ///
    /// # Errors
    /// The store's own, when it cannot keep it.
    fn set_our_reset(&mut self, _reset: OurReset) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns a place for one message of up to `len` bytes, which is at least that long. Nothing
    /// is kept until `commit`; a second `reserve` returns the same place.
    ///
    /// # Errors
    /// `Full` if bytes that wait for transmission, or are held by `retain_from`, leave no room; the
    /// store's own otherwise.
    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError>;
    /// Keeps the message at `range` of the reserved place, and has it transmitted.
    ///
    /// # Errors
    /// The store's own; then the message is neither kept nor transmitted, and no number is used.
    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError>;
    /// As `reserve`, for a message of the session itself that holds secrets. What is written to
    /// this place is never on a medium that outlives the process, even if the process is killed.
    /// [`commit_secret`](Self::commit_secret) follows.
    ///
    /// # Errors
    /// As for `reserve`.
    fn reserve_secret(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.reserve(len)
    }
    /// Completes the message at `range` of the place that `reserve_secret` returned. It takes the
    /// number `next_sender` and is transmitted unchanged; a store on a medium keeps it with its
    /// secrets masked.
    ///
    /// # Errors
    /// As for `commit`.
    fn commit_secret(&mut self, range: Range<usize>) -> Result<(), StoreError> {
        let (kind, transmit) = (Kind::Admin, true);
        self.commit(range, Entry { kind, transmit })
    }
    /// Keeps an application message that the caller transmits itself (the fan-out path), under the
    /// next number, which it uses up.
    ///
    /// # Errors
    /// As for `reserve` and `commit`.
    fn record(&mut self, message: &[u8]) -> Result<(), StoreError>;

    /// Returns whether messages are kept at all.
    fn keeps(&self) -> bool {
        true
    }

    /// Looks for the kept message with the lowest number that is not below `seq`.
    ///
    /// One call takes time logarithmic in what the store holds. Among many numbers without a kept
    /// message the search stops early, and returns how far it came.
    fn search_from(&self, seq: u64) -> Search<'_>;

    /// Returns the kept message with the lowest number that is not below `seq`. Takes time linear
    /// in the count of numbers before it without a kept message.
    fn first_from(&self, seq: u64) -> Option<Stored<'_>> {
        let mut from = seq;
        loop {
            match self.search_from(from) {
                Search::Kept(stored) => return Some(stored),
                Search::NoneBelow(next) => from = next,
                Search::Nothing => return None,
            }
        }
    }

    /// Transmits a kept message again with another header and trailer, or a message in place of
    /// some that are not kept. Keeps nothing and uses no number: the body is transmitted from where
    /// it is kept, and the new parts wait in a [`SideBuffer`].
    ///
    /// # Errors
    /// `Full` if too much waits for transmission; try again when less does. `NotKept` if there is
    /// no such message. Nothing is transmitted in either case.
    fn transmit_again(&mut self, again: &Again<'_>) -> Result<(), StoreError>;

    /// From now on messages from this number on must not be given up to make room (`None`: all
    /// may). Set while a resend is under way.
    fn retain_from(&mut self, seq: Option<u64>);

    /// Puts on the disk what the store's policy wants there before it is transmitted: until then
    /// `unsent` holds it back. For a store without such a policy there is nothing to do.
    ///
    /// # Errors
    /// The store's own; then nothing of it will be transmitted.
    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The caller has time to spare: the store may get ready for the next message, which changes
    /// nothing that shows.
    fn prepare(&mut self) {}

    /// Returns the next bytes to transmit, in order, or an empty slice.
    fn unsent(&self) -> &[u8];
    /// Number of bytes that wait for transmission, including those that wait for `sync`.
    fn unsent_len(&self) -> usize;
    /// The first `n` bytes of `unsent` were transmitted.
    fn sent(&mut self, n: usize);
    /// The connection is gone: nothing of `unsent` will be transmitted.
    fn drop_unsent(&mut self);
}

/// Where a reset stands that a session asks for, by a Logon(A) with ResetSeqNumFlag(141)=Y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OurReset {
    /// There is none.
    #[default]
    None,
    /// The counterparty has not answered it, perhaps not seen it.
    Asked,
    /// An acceptor has answered a Logon without the flag by one with it. The counterparty may
    /// repeat it; its first message with a number ends the reset.
    Begun,
}

/// A new message: it takes the number `next_sender`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Administrative or application message.
    pub kind: Kind,
    /// Whether it is transmitted now. If not, it is only kept, behind a resend that is under way.
    pub transmit: bool,
}

/// What is transmitted without being kept, see [`MessageStore::transmit_again`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again<'a> {
    /// The new header of a message, or a whole gap fill.
    pub head: &'a [u8],
    /// The number of a kept message, and the range of its bytes that follow.
    pub kept: Option<(u64, Range<usize>)>,
    /// The new trailer.
    pub tail: &'a [u8],
}

impl Again<'_> {
    /// Returns the number of bytes of all parts.
    pub fn len(&self) -> usize {
        self.head.len() + self.kept_len() + self.tail.len()
    }

    /// Returns whether there is nothing to transmit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the bytes of the kept message are to be copied between header and trailer:
    /// as a piece of their own they would cost one more system call. A message that is transmitted
    /// unchanged is in one piece with its neighbours.
    pub fn is_copied(&self) -> bool {
        self.kept_len() <= COPIED && !(self.head.is_empty() && self.tail.is_empty())
    }

    /// Returns the number of bytes that go into a [`SideBuffer`].
    pub fn side_len(&self) -> usize {
        match self.is_copied() {
            true => self.len(),
            false => self.head.len() + self.tail.len(),
        }
    }

    fn kept_len(&self) -> usize {
        self.kept.as_ref().map_or(0, |(_, range)| range.len())
    }
}

/// Most bytes of a message that are copied.
const COPIED: usize = 4096;

/// Bytes that wait for transmission beside a store, and are discarded afterwards.
///
/// Takes up to [`LIMIT`](Self::LIMIT) bytes, or one longer piece. Allocates with the first resend.
#[derive(Debug, Default)]
pub struct SideBuffer {
    bytes: Vec<u8>,
}

impl SideBuffer {
    /// Capacity in bytes.
    pub const LIMIT: usize = 64 << 10;

    /// Returns an empty buffer.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Discards everything.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(Self::LIMIT);
    }

    /// Returns whether `len` more bytes fit.
    pub fn has_room(&self, len: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + len <= Self::LIMIT
    }

    /// Appends bytes and returns where they stand.
    pub fn push(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Returns the bytes at `range`, or an empty slice if there are none.
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        self.bytes.get(range).unwrap_or_default()
    }

    /// Returns the number of bytes allocated.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The two kinds of messages: the first is never resent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Logon, Heartbeat and the other messages of the session itself.
    Admin,
    /// All others.
    App,
}

/// A message in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// MsgSeqNum(34).
    pub seq: u64,
    /// Administrative or application message.
    pub kind: Kind,
    /// The whole message as it was committed.
    pub bytes: &'a [u8],
}

/// The result of [`MessageStore::search_from`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search<'a> {
    /// The kept message with the lowest number from there on.
    Kept(Stored<'a>),
    /// No message from `seq` on and below this number is kept. This number is higher than `seq`;
    /// search on from it.
    NoneBelow(u64),
    /// No message from there on is kept.
    Nothing,
}

/// Why a store could not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No room: too much waits for transmission. Goes away when the counterparty reads.
    #[error("too many bytes are queued for transmission")]
    Full,
    /// The message is larger than the store can ever take.
    #[error("message larger than the store")]
    TooLong,
    /// The medium is full.
    #[error("disk full")]
    DiskFull,
    /// The medium failed; the operating system's error number.
    #[error("input/output error {0}")]
    Io(i32),
    /// A file of the store was cut short, or could not be read any more, while it was in use.
    #[error("a file was cut short or became unreadable while in use")]
    Broken,
    /// The store was closed or is read-only.
    #[error("the store is closed or read-only")]
    ReadOnly,
    /// The message that is to be transmitted again is not kept.
    #[error("the message is not kept")]
    NotKept,
}
