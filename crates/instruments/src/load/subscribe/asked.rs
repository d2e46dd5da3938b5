//! The subscriptions of a client, and their V, MarketDataRequest.

use fanfare_fix::codec::FieldWriter;
use fanfare_fix::tag;
use fanfare_gateway::Contract;

use crate::subscriber::{Rights, Terms, Updates};

/// MDUpdateType(265).
const UPDATE_TYPE: u32 = 265;
/// AggregatedBook(266).
const AGGREGATED: u32 = 266;
/// `DeliveryContract(20010)`, `Interval(20011)`, `ChecksumEvery(20012)`.
const CONTRACT: u32 = 20_010;
const INTERVAL: u32 = 20_011;
const EVERY: u32 = 20_012;

/// A requested subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Symbol(55) of instruments; `PREFIX*`, `*` and `@LIST` stand for several.
    pub symbols: Vec<String>,
    /// Depth, updates and checksums.
    pub terms: Terms,
    /// MDEntryTypes(269).
    pub entries: Vec<u8>,
    /// The delivery to a slow client; `None`: the gateway's setting for the user.
    pub contract: Option<Contract>,
    /// Milliseconds between two updates of an instrument; `None`: each change.
    pub interval: Option<u32>,
}

impl Asked {
    /// Returns a subscription to bids and offers of all instruments in full depth, each change, by
    /// the gateway's contract.
    #[must_use]
    pub fn everything() -> Self {
        Self {
            symbols: vec!["*".to_owned()],
            terms: Terms::default(),
            entries: b"01".to_vec(),
            contract: None,
            interval: None,
        }
    }

    /// Returns the subscription of the client of this number, if each has a part of this many
    /// instruments: those after the previous client's part, cyclically.
    pub(super) fn part(&self, client: usize, size: usize) -> Self {
        let count = self.symbols.len().max(1);
        let first = (client % count) * (size % count) % count;
        let symbols = self.symbols.iter().cycle().skip(first);
        Self {
            symbols: symbols.take(size.min(count)).cloned().collect(),
            ..self.clone()
        }
    }

    /// Removes the parts that would be refused.
    pub(super) fn keep_to(&mut self, rights: &Rights) {
        self.entries.retain(|entry| rights.entries.contains(entry));
        let depth = &mut self.terms.depth;
        if rights.depth != 0 && (*depth == 0 || *depth > rights.depth) {
            *depth = rights.depth;
        }
        self.symbols
            .retain(|symbol| !rights.denies(std::slice::from_ref(symbol), b"", rights.depth));
        if self.symbols.is_empty() {
            self.symbols.clone_from(&rights.instruments);
        }
    }

    /// Returns whether an instrument is named, so that a response is due.
    pub(super) fn names_one(&self) -> bool {
        let mut symbols = self.symbols.iter();
        symbols.any(|name| !name.ends_with('*') && !name.starts_with('@'))
    }

    /// Returns the largest size of its V, bytes.
    pub(super) fn room(&self) -> usize {
        let symbols = self.symbols.iter();
        1_024 + symbols.map(|symbol| symbol.len() + 4).sum::<usize>() + 6 * self.entries.len()
    }

    /// Writes the body of V that subscribes.
    pub(super) fn subscribe(&self, id: &str, body: &mut FieldWriter<'_>) {
        let kind = match self.terms.updates {
            Updates::None => b'0',
            Updates::Snapshots | Updates::Changes => b'1',
        };
        self.front(id, kind, body);
        match self.terms.updates {
            Updates::None => {}
            Updates::Snapshots => _ = body.char(UPDATE_TYPE, b'0'),
            Updates::Changes => _ = body.char(UPDATE_TYPE, b'1'),
        }
        if self.terms.by_order {
            body.char(AGGREGATED, b'N');
        }
        self.groups(body);
        if let Some(contract) = self.contract {
            body.str(CONTRACT, contract.name());
        }
        if let Some(interval) = self.interval {
            body.u64(INTERVAL, interval.into());
        }
        if self.terms.checksum_every > 0 {
            body.u64(EVERY, self.terms.checksum_every.into());
        }
    }

    /// Writes the body of V that ends the subscription.
    pub(super) fn stop(&self, id: &str, body: &mut FieldWriter<'_>) {
        self.front(id, b'2', body);
        self.groups(body);
    }

    fn front(&self, id: &str, kind: u8, body: &mut FieldWriter<'_>) {
        body.str(tag::MD_REQ_ID, id);
        body.char(tag::SUBSCRIPTION_REQUEST_TYPE, kind);
        body.u64(tag::MARKET_DEPTH, self.terms.depth.into());
    }

    fn groups(&self, body: &mut FieldWriter<'_>) {
        body.u64(tag::NO_MD_ENTRY_TYPES, self.entries.len() as u64);
        for entry in &self.entries {
            body.char(tag::MD_ENTRY_TYPE, *entry);
        }
        body.u64(tag::NO_RELATED_SYM, self.symbols.len() as u64);
        for symbol in &self.symbols {
            body.str(tag::SYMBOL, symbol);
        }
    }
}
