//! The store of a session's numbers and messages, which is also its transmit buffer.

use std::ops::Range;

use fanfare_wire::UtcTimestamp;

/// A store of the sequence numbers of both directions, the messages sent, and the bytes on their
/// way out.
///
/// The store is also the transmit buffer. A message is encoded in the place that `reserve` returns,
/// and its bytes are transmitted from there, so that keeping a message costs no copy. Everything
/// that leaves a session passes through one store in one order.
///
/// A resend changes nothing in the store: see [`transmit_again`](Self::transmit_again).
///
/// Each of its two numbers is the MsgSeqNum(34) of the next message, 1 in a fresh store.
pub trait MessageStore {
    /// Returns the number of the next message to send.
    fn next_sender(&self) -> u64;
    /// Returns the number of the next message expected.
    fn next_target(&self) -> u64;
    /// Sets the number of the next message to send.
    ///
    /// # Errors
    /// Returns an error if the store cannot keep the number.
    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError>;
    /// Sets the number of the next message expected.
    ///
    /// # Errors
    /// Returns an error if the store cannot keep the number.
    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError>;

    /// Returns the time at which the numbers last started at 1.
    fn created(&self) -> UtcTimestamp;
    /// Forgets all messages and sets both numbers to 1. Bytes that have not been transmitted stay.
    ///
    /// # Errors
    /// Returns an error if the store cannot keep the numbers.
    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError>;

    /// Returns the progress of a reset that the session has requested, as last stored. On a medium,
    /// another process may have stored it.
    fn our_reset(&self) -> OurReset {
        OurReset::None
    }
    /// Stores the progress of a reset that the session has requested, until the next call. `reset`
    /// does not change it. A store that ends with the process need not store it, as the session
    /// knows it too.
    ///
    /// # Errors
    /// Returns an error if the store cannot keep the progress.
    fn set_our_reset(&mut self, _reset: OurReset) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns a place for one message of up to `len` bytes. The place is at least that long.
    /// Nothing is kept until `commit`. A second `reserve` returns the same place.
    ///
    /// # Errors
    /// Returns `Full` if bytes that wait for transmission, or are protected by `retain_from`, leave
    /// no room, and any other error of the store.
    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError>;
    /// Keeps the message at `range` of the reserved place, and queues it for transmission if
    /// `entry` says so.
    ///
    /// # Errors
    /// Returns an error if the store fails. The message is then neither kept nor transmitted, and
    /// no number is used.
    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError>;
    /// Returns a place as `reserve` does, for a message of the session layer that holds secrets.
    /// What is written to this place is never on a medium that outlives the process, even if the
    /// process is killed. [`commit_secret`](Self::commit_secret) follows.
    ///
    /// # Errors
    /// See [`reserve`](Self::reserve).
    fn reserve_secret(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.reserve(len)
    }
    /// Completes the message at `range` of the place that `reserve_secret` returned. It takes the
    /// number `next_sender` and is transmitted unchanged. A store on a medium keeps it with its
    /// secrets masked.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn commit_secret(&mut self, range: Range<usize>) -> Result<(), StoreError> {
        let (kind, transmit) = (Kind::Admin, true);
        self.commit(range, Entry { kind, transmit })
    }
    /// Keeps an application message that the caller transmits itself (the fan-out path), under the
    /// next number, which it uses up.
    ///
    /// # Errors
    /// See [`reserve`](Self::reserve) and [`commit`](Self::commit).
    fn record(&mut self, message: &[u8]) -> Result<(), StoreError>;

    /// Returns whether messages are kept at all.
    fn keeps(&self) -> bool {
        true
    }

    /// Returns the highest number of an application message that was kept and has made room for
    /// newer ones, or 0 if there is none: those up to it cannot be sent again. A store that keeps
    /// no messages drops none.
    fn dropped(&self) -> u64 {
        0
    }

    /// Finds the kept message with the lowest number that is not below `seq`.
    ///
    /// One call takes time logarithmic in the size of the store. Among many numbers without a kept
    /// message the search stops early, and returns how far it came.
    fn search_from(&self, seq: u64) -> Search<'_>;

    /// Returns the kept message with the lowest number that is not below `seq`. The call takes time
    /// linear in the count of numbers before it without a kept message.
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
    /// Returns `Full` if too much waits for transmission: try again when less does. Returns
    /// `NotKept` if there is no such message. Nothing is transmitted in either case.
    fn transmit_again(&mut self, again: &Again<'_>) -> Result<(), StoreError>;

    /// Protects the messages from `seq` on against removal. `None` removes the protection. The
    /// session sets it while a resend is under way.
    fn retain_from(&mut self, seq: Option<u64>);

    /// Writes to the disk what the store's policy wants there before it is transmitted. Until then
    /// `unsent` holds it back. Does nothing for a store without such a policy.
    ///
    /// # Errors
    /// Returns an error if the store fails. Nothing of it will then be transmitted.
    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Prepares for the next message while the caller is idle. Has no visible effect.
    fn prepare(&mut self) {}

    /// Returns the next bytes to transmit, in order, or an empty slice.
    fn unsent(&self) -> &[u8];
    /// Returns the number of bytes that wait for transmission, including those that wait for
    /// `sync`.
    fn unsent_len(&self) -> usize;
    /// Removes the first `n` bytes of `unsent`, which have been transmitted.
    fn sent(&mut self, n: usize);
    /// Discards all bytes that wait for transmission, because the connection is gone.
    fn drop_unsent(&mut self);
}

/// The progress of a reset that a session requests by a Logon(A) with ResetSeqNumFlag(141)=Y.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OurReset {
    /// There is no reset.
    #[default]
    None,
    /// The counterparty has not answered the request, and may not have received it.
    Asked,
    /// An acceptor has answered a Logon(A) without the flag by one with it. The counterparty may
    /// repeat it. Its first message with a number ends the reset.
    Begun,
}

/// The properties of a new message, which takes the number `next_sender`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kind of the message.
    pub kind: Kind,
    /// Whether the message is transmitted now. If not, it is only kept, after a resend that is
    /// under way.
    pub transmit: bool,
}

/// The parts of a message that is transmitted without being kept: see
/// [`MessageStore::transmit_again`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again<'a> {
    /// The new header of a message, or a whole gap fill.
    pub head: &'a [u8],
    /// The number of a kept message, and the range of its bytes that follow `head`.
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

    /// Returns whether the bytes of the kept message are to be copied between header and trailer.
    /// As a piece of their own they would cost one more system call. A message that is transmitted
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

/// The most bytes of a message that are copied.
const COPIED: usize = 4096;

/// A buffer for bytes that wait for transmission beside a store, and are discarded afterwards.
///
/// The buffer takes up to [`LIMIT`](Self::LIMIT) bytes, or one longer piece. It allocates with the
/// first resend.
#[derive(Debug, Default)]
pub struct SideBuffer {
    bytes: Vec<u8>,
}

impl SideBuffer {
    /// The capacity in bytes.
    pub const LIMIT: usize = 64 << 10;

    /// Returns an empty buffer.
    pub const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// Discards all bytes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(Self::LIMIT);
    }

    /// Returns whether `len` more bytes fit.
    pub fn has_room(&self, len: usize) -> bool {
        self.bytes.is_empty() || self.bytes.len() + len <= Self::LIMIT
    }

    /// Appends bytes and returns their range.
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

/// The kind of a message. Administrative messages are never resent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Logon(A), Heartbeat(0) and the other messages of the session layer.
    Admin,
    /// All other messages.
    App,
}

/// A message in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored<'a> {
    /// MsgSeqNum(34).
    pub seq: u64,
    /// The kind of the message.
    pub kind: Kind,
    /// The whole message as it was committed.
    pub bytes: &'a [u8],
}

/// The result of [`MessageStore::search_from`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search<'a> {
    /// The kept message with the lowest number that is not below `seq`.
    Kept(Stored<'a>),
    /// No message from `seq` on and below this number is kept. The number is higher than `seq`, and
    /// the search goes on from it.
    NoneBelow(u64),
    /// No message from `seq` on is kept.
    Nothing,
}

/// The reason why a store failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store has no room, as too much waits for transmission. The error goes away when the
    /// counterparty reads.
    #[error("too many bytes are queued for transmission")]
    Full,
    /// The message is larger than the store can ever take.
    #[error("the message is larger than the store")]
    TooLong,
    /// The medium is full.
    #[error("disk full")]
    DiskFull,
    /// The medium failed with this error number of the operating system.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Io(i32),
    /// A file of the store was cut short, or became unreadable, while it was in use.
    #[error("a file was cut short or became unreadable while in use")]
    Broken,
    /// The store was closed or is read-only.
    #[error("the store is closed or read-only")]
    ReadOnly,
    /// The message that is to be transmitted again is not kept.
    #[error("the message is not kept")]
    NotKept,
}
