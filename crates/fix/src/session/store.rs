//! Where a session keeps its numbers and its messages, and what it transmits from.

use std::fmt;
use std::ops::Range;

use fanfare_wire::UtcTimestamp;

/// The sequence numbers of both directions, the messages sent, and the bytes on their way out.
///
/// The store is also the transmit buffer: a message is encoded into the place that `reserve` gives,
/// and its bytes are transmitted from there, so that keeping a message costs no copy. Everything
/// that leaves a session passes through one store in one order.
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

    /// When the numbers last started at 1.
    fn created(&self) -> UtcTimestamp;
    /// Forgets all messages and starts both numbers at 1. Bytes not yet transmitted stay.
    ///
    /// # Errors
    /// The store's own, when it cannot keep it.
    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError>;

    /// A place for one message of up to `len` bytes, at least that long. Nothing counts until
    /// `commit`; a second `reserve` gives the same place.
    ///
    /// # Errors
    /// `Full` if so many bytes wait for transmission (or are held by `retain_from`) that there is
    /// no room; the store's own otherwise.
    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError>;
    /// The message that now stands at `range` of the reserved place is complete.
    ///
    /// # Errors
    /// The store's own; then the message is neither kept nor transmitted, and no number is used.
    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError>;
    /// Keeps an application message that the caller transmits itself (the fan-out path), given in
    /// pieces, under the next number, which it uses up.
    ///
    /// # Errors
    /// As for `reserve` and `commit`.
    fn record(&mut self, parts: &[&[u8]]) -> Result<(), StoreError>;

    /// Whether messages are kept at all.
    fn keeps(&self) -> bool {
        true
    }

    /// The kept message with the lowest number that is not below `seq`.
    fn first_from(&self, seq: u64) -> Option<Stored<'_>>;
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

    /// The next bytes to transmit, in order; empty when there are none.
    fn unsent(&self) -> &[u8];
    /// The first `n` bytes of `unsent` were transmitted.
    fn sent(&mut self, n: usize);
    /// The connection is gone: nothing of `unsent` will be transmitted.
    fn drop_unsent(&mut self);
}

/// What a committed message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A new message: it takes the number `next_sender`.
    New {
        /// Administrative or application message.
        kind: Kind,
        /// Transmitted now, or only kept (it is behind a resend that is still under way).
        transmit: bool,
    },
    /// A resent message or gap fill: transmitted, not kept, no number used.
    Copy,
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

/// Why a store could not do its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No room: too much waits for transmission. Goes away when the counterparty reads.
    Full,
    /// The message is larger than the store can ever take.
    TooLong,
    /// The medium is full.
    DiskFull,
    /// The medium failed; the operating system's error number.
    Io(i32),
    /// The store was closed or is read-only.
    ReadOnly,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("too many bytes wait for transmission"),
            Self::TooLong => f.write_str("message larger than the store"),
            Self::DiskFull => f.write_str("disk full"),
            Self::Io(code) => write!(f, "input/output error {code}"),
            Self::ReadOnly => f.write_str("the store is closed or read-only"),
        }
    }
}

impl std::error::Error for StoreError {}

/// A store chosen at run time.
impl<S: MessageStore + ?Sized> MessageStore for Box<S> {
    fn next_sender(&self) -> u64 {
        (**self).next_sender()
    }

    fn next_target(&self) -> u64 {
        (**self).next_target()
    }

    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError> {
        (**self).set_next_sender(seq)
    }

    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError> {
        (**self).set_next_target(seq)
    }

    fn created(&self) -> UtcTimestamp {
        (**self).created()
    }

    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError> {
        (**self).reset(created)
    }

    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        (**self).reserve(len)
    }

    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError> {
        (**self).commit(range, entry)
    }

    fn record(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        (**self).record(parts)
    }

    fn keeps(&self) -> bool {
        (**self).keeps()
    }

    fn first_from(&self, seq: u64) -> Option<Stored<'_>> {
        (**self).first_from(seq)
    }

    fn retain_from(&mut self, seq: Option<u64>) {
        (**self).retain_from(seq);
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        (**self).sync()
    }

    fn prepare(&mut self) {
        (**self).prepare();
    }

    fn unsent(&self) -> &[u8] {
        (**self).unsent()
    }

    fn sent(&mut self, n: usize) {
        (**self).sent(n);
    }

    fn drop_unsent(&mut self) {
        (**self).drop_unsent();
    }
}
