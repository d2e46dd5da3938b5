//! The stores that a host can give a session.

use crate::journal::Journal;
use fanfare_fix::session::{
    Again, Entry, MemoryStore, MessageStore, NoResendStore, Search, StoreError,
};
use fanfare_wire::UtcTimestamp;
use std::ops::Range;

/// One of the stores, chosen at run time. Choosing costs a branch that is always predicted.
#[allow(
    clippy::large_enum_variant,
    reason = "one per session, and never moved"
)]
pub enum Store {
    /// Numbers only.
    NoResend(NoResendStore),
    /// The newest messages, in memory.
    Memory(MemoryStore),
    /// Everything, in files.
    Journal(Journal),
    /// The application's own.
    Own(Box<dyn MessageStore + Send>),
}

macro_rules! each {
    ($self:ident, $store:ident => $call:expr) => {
        match $self {
            Self::NoResend($store) => $call,
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

    fn record(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        each!(self, store => store.record(parts))
    }

    fn keeps(&self) -> bool {
        each!(self, store => store.keeps())
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
