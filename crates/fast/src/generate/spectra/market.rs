//! A market whose books change, for the feeds of increments and of snapshots.

use super::book::{Book, Side, any_size};
use fastrand::Rng;

/// A security at the start.
struct Security {
    id: u64,
    /// The price at the start, from which it never goes far.
    price: i64,
    tick: i64,
    rpt_seq: u32,
    /// The weight with which the security is the one that changes.
    weight: u32,
    /// The number of levels of bids and of offers of a thin book; `None` for a deep one.
    thin: Option<[usize; 2]>,
}

const fn deep(id: u64, price: i64, tick: i64, rpt_seq: u32, weight: u32) -> Security {
    Security {
        id,
        price,
        tick,
        rpt_seq,
        weight,
        thin: None,
    }
}

const fn thin(mut security: Security, levels: [usize; 2]) -> Security {
    security.thin = Some(levels);
    security
}

/// The securities. A few of them have most of the changes; the others hardly ever change.
const SECURITIES: [Security; 11] = [
    deep(37_105_920, 21_480, 1, 241_007, 2_660),
    deep(37_109_504, 146_200, 10, 463_318, 2_580),
    deep(37_141_760, 31_350, 1, 227_441, 2_100),
    deep(37_088_000, 17_260, 1, 183_902, 1_520),
    deep(37_142_528, 36_470, 1, 68_117, 890),
    deep(37_110_272, 149_300, 10, 21_640, 92),
    thin(deep(37_143_296, 34_220, 10, 9_120, 77), [2, 2]),
    thin(deep(37_144_064, 34_910, 1, 7_450, 72), [2, 2]),
    thin(deep(37_111_808, 151_900, 100, 212, 4), [2, 2]),
    thin(deep(37_090_304, 9_470, 10, 148, 2), [2, 1]),
    thin(deep(37_107_200, 22_150, 1, 1_096, 25), [0, 1]),
];

/// The time of the start of the market: 2026-03-16 15:10, in milliseconds since the epoch.
const START: u64 = 1_773_673_800_000;

/// The number of new levels, and of deleted levels, in a hundred changes of deep books. The other
/// changes are those of a size. A thin book has fewer deleted levels, and what it lacks then comes
/// next.
const NEW: u32 = 24;
const DELETED: u32 = 25;
const THIN_DELETED: u32 = 6;

/// The number of changes of the first level, the second, and so on, in a hundred.
const LEVELS: [u32; 5] = [40, 27, 18, 13, 2];

/// The number of messages in a hundred with a second change, of changes in a hundred after that one
/// that are followed by another, and of those that are of the same security as the one before.
const SECOND: u32 = 45;
const ANOTHER: u32 = 62;
const SAME_SECURITY: u32 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    New = 0,
    Change = 1,
    Delete = 2,
}

/// The subject of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A price level, from 1.
    Level(Side, usize),
    /// A trade with its number, and the side of the order that took the other.
    Trade(i64, Side),
    /// An empty book.
    Empty,
}

/// One of a message's MDEntries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) action: Action,
    pub(super) what: What,
    pub(super) security_id: u64,
    pub(super) rpt_seq: u32,
    pub(super) price: i64,
    pub(super) size: i64,
    /// The time in milliseconds since the epoch, as all times here.
    pub(super) time: u64,
}

/// All books, and the entries of their last changes.
#[derive(Debug)]
pub(super) struct Market {
    random: Rng,
    /// The number of trades in a hundred changes.
    trades: u32,
    books: Vec<Book>,
    rpt_seqs: [u32; SECURITIES.len()],
    entries: Vec<Entry>,
    now: u64,
    next_trade: i64,
}

impl Market {
    pub(super) fn new(seed: u64, trades: u32) -> Self {
        let mut random = Rng::with_seed(seed);
        let book = |security: &Security| {
            let Security { price, tick, .. } = *security;
            Book::new(price, tick, security.thin, START, &mut random)
        };
        Self {
            books: SECURITIES.iter().map(book).collect(),
            rpt_seqs: SECURITIES.map(|security| security.rpt_seq),
            random,
            trades,
            entries: Vec::new(),
            now: START,
            next_trade: 712_400_001,
        }
    }

    pub(super) const fn securities() -> usize {
        SECURITIES.len()
    }

    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// Returns the result of the last [`Market::advance`] or [`Market::snapshot`].
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Advances to the next message, whose entries are those of the changes since the one before.
    pub(super) fn advance(&mut self) {
        self.entries.clear();
        self.now += self.random.u64(20..=104);
        let mut security = self.any_security();
        self.change(security);
        let mut more = SECOND;
        while self.of_hundred(more) {
            more = ANOTHER;
            if !self.of_hundred(SAME_SECURITY) {
                security = self.any_security();
            }
            self.change(security);
        }
    }

    /// Makes the book of a security the entries, and returns its RptSeq and SecurityID.
    pub(super) fn snapshot(&mut self, security: usize) -> (u32, u64) {
        self.entries.clear();
        let (Some(book), Some(of), Some(&rpt_seq)) = (
            self.books.get(security),
            SECURITIES.get(security),
            self.rpt_seqs.get(security),
        ) else {
            return (0, 0);
        };
        let mut entry = Entry {
            action: Action::New,
            what: What::Empty,
            security_id: of.id,
            rpt_seq,
            price: 0,
            size: 0,
            time: self.now,
        };
        for side in [Side::Bid, Side::Offer] {
            for (level, number) in book.visible(side).iter().zip(1..) {
                entry.what = What::Level(side, number);
                (entry.price, entry.size, entry.time) = (level.price, level.size, level.time);
                self.entries.push(entry);
            }
        }
        if self.entries.is_empty() {
            self.entries.push(entry);
        }
        (rpt_seq, of.id)
    }

    fn of_hundred(&mut self, share: u32) -> bool {
        self.random.u32(..100) < share
    }

    fn any_security(&mut self) -> usize {
        self.weighted(&SECURITIES.map(|security| security.weight))
    }

    /// Returns an index, each as often as its weight says.
    fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut at = self.random.u32(..weights.iter().sum::<u32>());
        let found = weights.iter().position(|&weight| {
            let found = at < weight;
            at = at.saturating_sub(weight);
            found
        });
        found.unwrap_or(0)
    }

    /// Changes a book. That is one entry, or two where another level comes into sight or there is a
    /// trade.
    fn change(&mut self, security: usize) {
        let side = match self.random.bool() {
            true => Side::Bid,
            false => Side::Offer,
        };
        // The order reached the exchange before the message was sent.
        let time = self.now - self.random.u64(2..=60);
        let trade = self.trades > 0 && self.of_hundred(self.trades);
        let level = self.weighted(&LEVELS);
        let kind = self.random.u32(..100);
        let size = any_size(10, &mut self.random);
        let Some(book) = self.books.get_mut(security) else {
            return;
        };
        let side = book.used(side);
        if trade && !book.visible(side).is_empty() {
            self.trade(security, side, time);
            return;
        }
        let deleted = if book.is_thin() {
            THIN_DELETED
        } else {
            DELETED
        };
        let add = match kind {
            _ if book.lacks(side) => true,
            0..NEW => !book.is_far(side),
            _ => book.is_wide() && level == 0,
        };
        if add && let Some((level, price)) = book.add(side, level, size, time, &mut self.random) {
            self.entry(security, Action::New, side, level, [price, size], time);
        } else if (NEW..NEW + deleted).contains(&kind) && !(level == 0 && book.is_low(side)) {
            self.delete(security, side, level);
        } else if let Some((level, price)) = book.resize(side, level, size, time) {
            self.entry(security, Action::Change, side, level, [price, size], time);
        }
    }

    fn delete(&mut self, security: usize, side: Side, level: usize) {
        let Some(book) = self.books.get_mut(security) else {
            return;
        };
        let Some((level, gone)) = book.delete(side, level, self.now, &mut self.random) else {
            return;
        };
        let came = book.came_into_sight(side);
        let contents = [gone.price, 0];
        self.entry(security, Action::Delete, side, level, contents, gone.time);
        if let Some((level, came)) = came {
            let contents = [came.price, came.size];
            self.entry(security, Action::New, side, level, contents, came.time);
        }
    }

    /// Makes a trade: an order takes some or all of the other side's first level.
    fn trade(&mut self, security: usize, taken: Side, time: u64) {
        let book = self.books.get_mut(security);
        let Some(best) = book.and_then(|book| book.visible(taken).first().copied()) else {
            return;
        };
        let size = self.random.i64(1..=best.size);
        let number = self.next_trade;
        self.next_trade += 1;
        let what = What::Trade(number, taken.other());
        self.entry_of(security, Action::New, what, [best.price, size], time);
        if size == best.size {
            self.delete(security, taken, 0);
            return;
        }
        let left = best.size - size;
        let book = self.books.get_mut(security);
        if let Some((level, price)) = book.and_then(|book| book.resize(taken, 0, left, time)) {
            self.entry(security, Action::Change, taken, level, [price, left], time);
        }
    }

    fn entry(
        &mut self,
        security: usize,
        action: Action,
        side: Side,
        level: usize,
        contents: [i64; 2],
        time: u64,
    ) {
        let what = What::Level(side, level + 1);
        self.entry_of(security, action, what, contents, time);
    }

    fn entry_of(
        &mut self,
        security: usize,
        action: Action,
        what: What,
        [price, size]: [i64; 2],
        time: u64,
    ) {
        let (Some(of), Some(rpt_seq)) = (SECURITIES.get(security), self.rpt_seqs.get_mut(security))
        else {
            return;
        };
        *rpt_seq = rpt_seq.wrapping_add(1);
        self.entries.push(Entry {
            action,
            what,
            security_id: of.id,
            rpt_seq: *rpt_seq,
            price,
            size,
            time,
        });
    }
}
