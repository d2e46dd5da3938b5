//! The stores of sessions.

use crate::journal::{self, Journal, OpenError, Recovery, folder_for};
use fanfare_fix::session::{
    Again, Entry, MemoryLimits, MemoryStore, MessageStore, OurReset, Search, SessionId, StoreError,
};
use fanfare_wire::UtcTimestamp;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The kind of store in which a session keeps its numbers and messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreKind {
    /// Only the sequence numbers, in memory. The value is the most bytes that may wait for
    /// transmission.
    NoResend(usize),
    /// The newest messages, only in memory.
    Memory(MemoryLimits),
    /// A [`Journal`] in a folder of its own, named after the session, under this one.
    Journal(PathBuf, journal::Options),
    /// A [`Journal`] as above, and a second one for received application messages, in its subfolder
    /// `received`. Each message is stored before the application sees it.
    BothWays(PathBuf, journal::Options),
    /// Stores of the application's own.
    Own(StoreFactory),
}

/// A function that opens a store for a session, by its identity from our side and the time.
#[derive(Clone)]
pub struct StoreFactory(Arc<OpenStore>);

type OpenStore =
    dyn Fn(&SessionId, UtcTimestamp) -> io::Result<Box<dyn MessageStore + Send>> + Send + Sync;

impl StoreFactory {
    /// Makes a factory. `open` is called for each session when it is hosted, on any thread.
    pub fn new(
        open: impl Fn(&SessionId, UtcTimestamp) -> io::Result<Box<dyn MessageStore + Send>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(open))
    }
}

impl fmt::Debug for StoreFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreFactory")
    }
}

/// Factories are equal if they are clones of each other.
impl PartialEq for StoreFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for StoreFactory {}

impl Default for StoreKind {
    /// Returns a store in memory, of up to 65,536 messages and 16 MiB.
    fn default() -> Self {
        Self::Memory(MemoryLimits::default())
    }
}

impl StoreKind {
    /// Returns whether messages are kept in files.
    pub(super) const fn is_journal(&self) -> bool {
        matches!(self, Self::Journal(..) | Self::BothWays(..))
    }

    /// Permits to open a journal that has lost records: see
    /// [`accept_loss`](journal::Options::accept_loss). Has no effect on other stores.
    pub const fn accept_loss(&mut self) {
        if let Self::Journal(_, options) | Self::BothWays(_, options) = self {
            options.accept_loss = true;
        }
    }

    /// Opens the store. Also returns the repairs of its journals.
    pub(super) fn open(
        &self,
        id: &SessionId,
        now: UtcTimestamp,
    ) -> Result<(Store, Recovery), OpenError> {
        let store = match self {
            Self::NoResend(limit) => Store::Memory(MemoryStore::without_resends(*limit)),
            Self::Memory(limits) => Store::Memory(MemoryStore::new(*limits)),
            Self::Own(factory) => Store::Own((factory.0)(id, now)?),
            Self::Journal(base, options) | Self::BothWays(base, options) => {
                let identity = id.store_name();
                let folder = folder_for(base, &identity);
                let (journal, recovery) = Journal::open(&folder, &identity, *options, now)?;
                return Ok((Store::Journal(journal), recovery));
            }
        };
        Ok((store, Recovery::default()))
    }
}

/// A store whose kind is chosen at run time, at the price of a branch that is always predicted.
#[allow(
    clippy::large_enum_variant,
    reason = "one per session, and never moved"
)]
pub enum Store {
    /// The newest messages, or the numbers only, in memory.
    Memory(MemoryStore),
    /// All messages, in files.
    Journal(Journal),
    /// A store of the application's own.
    Own(Box<dyn MessageStore + Send>),
}

macro_rules! each {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Self::Memory($store) => $call,
            Self::Journal($store) => $call,
            Self::Own($store) => $call,
        }
    };
}

impl MessageStore for Store {
    fn next_sender(&self) -> u64 {
        each!(self, store => store.next_sender())
    }

    fn next_target(&self) -> u64 {
        each!(self, store => store.next_target())
    }

    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError> {
        each!(self, store => store.set_next_sender(seq))
    }

    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError> {
        each!(self, store => store.set_next_target(seq))
    }

    fn created(&self) -> UtcTimestamp {
        each!(self, store => store.created())
    }

    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError> {
        each!(self, store => store.reset(created))
    }

    fn our_reset(&self) -> OurReset {
        each!(self, store => store.our_reset())
    }

    fn set_our_reset(&mut self, reset: OurReset) -> Result<(), StoreError> {
        each!(self, store => store.set_our_reset(reset))
    }

    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        each!(self, store => store.reserve(len))
    }

    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError> {
        each!(self, store => store.commit(range, entry))
    }

    fn reserve_secret(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        each!(self, store => store.reserve_secret(len))
    }

    fn commit_secret(&mut self, range: Range<usize>) -> Result<(), StoreError> {
        each!(self, store => store.commit_secret(range))
    }

    fn record(&mut self, message: &[u8]) -> Result<(), StoreError> {
        each!(self, store => store.record(message))
    }

    fn keeps(&self) -> bool {
        each!(self, store => store.keeps())
    }

    fn dropped(&self) -> u64 {
        each!(self, store => store.dropped())
    }

    fn search_from(&self, seq: u64) -> Search<'_> {
        each!(self, store => store.search_from(seq))
    }

    fn transmit_again(&mut self, again: &Again<'_>) -> Result<(), StoreError> {
        each!(self, store => store.transmit_again(again))
    }

    fn retain_from(&mut self, seq: Option<u64>) {
        each!(self, store => store.retain_from(seq));
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        each!(self, store => store.sync())
    }

    fn prepare(&mut self) {
        each!(self, store => store.prepare());
    }

    fn unsent(&self) -> &[u8] {
        each!(self, store => store.unsent())
    }

    fn unsent_len(&self) -> usize {
        each!(self, store => store.unsent_len())
    }

    fn sent(&mut self, n: usize) {
        each!(self, store => store.sent(n));
    }

    fn drop_unsent(&mut self) {
        each!(self, store => store.drop_unsent());
    }
}
