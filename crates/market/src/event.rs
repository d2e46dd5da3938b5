//! Events: the changes of the market, 64 bytes each, in one sequence of numbers.

use crate::price::Price;

/// The plant's number of an instrument: its index in the table of instruments, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstrumentId(pub u32);

impl InstrumentId {
    /// All instruments of the event's source, as for the status of a session.
    pub const ALL: Self = Self(u32::MAX);
}

/// The subject of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The definition of the instrument is new or has changed. It is in the table of instruments,
    /// and `id` is its revision.
    Definition = 1,
    /// A price level of the book changed: `level` is its number, or 0 if the feed does not number
    /// levels; `price` and `size` are its own; `id` is the NumberOfOrders(346), or 0 if unknown.
    Level = 2,
    /// An order of the book changed, and `id` is its OrderID(37) or MDEntryID(278). A change
    /// without a price or a size leaves it as it was. A trade that reduces it is an
    /// [`Action::Fill`], beside a [`Kind::Trade`] if the feed has one.
    Order = 3,
    /// A trade with its `price`, its `size`, and its `id`, or 0 if unknown.
    Trade = 4,
    /// A value of the session (open, high, settlement, volume, ...): `entry` is its type, and
    /// `price` or `size` its value.
    Statistic = 5,
    /// The trading status: `id` is SecurityTradingStatus(326) or TradSesStatus(340).
    Status = 6,
    /// The plant's state of the instrument: `id` is a code of [`crate::state::code`], and `level`,
    /// `rpt_seq` and `size` specify what it lacks ([`crate::state::lack`]).
    State = 7,
    /// The book is empty from here on. With [`Flags::SNAPSHOT`], a snapshot of it follows. Each
    /// book of a plant begins with one, so that a reader that lost events knows which books it has
    /// whole.
    Clear = 8,
}

impl Kind {
    /// Returns the name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Level => "level",
            Self::Order => "order",
            Self::Trade => "trade",
            Self::Statistic => "statistic",
            Self::Status => "status",
            Self::State => "state",
            Self::Clear => "clear",
        }
    }

    /// Returns whether events of this kind change a book.
    pub const fn is_of_book(self) -> bool {
        matches!(self, Self::Level | Self::Order | Self::Clear)
    }
}

/// The change of a level, an order or an entry: MDUpdateAction(279), extended for feeds of orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// 0: it is new.
    New = 0,
    /// 1: it changed.
    Change = 1,
    /// 2: it is gone.
    Delete = 2,
    /// 3: all levels from the first to this one are deleted.
    DeleteThru = 3,
    /// 4: all levels from this one to the last are deleted.
    DeleteFrom = 4,
    /// 5: it replaces the level at its number, without moving other levels.
    Overlay = 5,
    /// The order traded: its size is reduced by `size`, and the rest keeps its place in the queue.
    /// Without a rest, the order is removed. This is not a value of MDUpdateAction(279), but DBN's
    /// `F`.
    Fill = 6,
}

impl Action {
    /// Returns the action of a value of MDUpdateAction(279).
    #[inline(always)]
    pub(crate) const fn from_number(number: i64) -> Option<Self> {
        Some(match number {
            0 => Self::New,
            1 => Self::Change,
            2 => Self::Delete,
            3 => Self::DeleteThru,
            4 => Self::DeleteFrom,
            5 => Self::Overlay,
            _ => return None,
        })
    }
}

/// Marks of an [`Event`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// No mark.
    pub const NONE: Self = Self(0);
    /// The last event of its message for its instrument, after which the book can be read.
    pub const LAST: Self = Self(0x80);
    /// Part of a snapshot of the book, as opposed to its changes.
    pub const SNAPSHOT: Self = Self(0x20);

    /// Returns the marks that are in either set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the marks of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns true if all marks of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the marks as bits. LAST and SNAPSHOT are those of DBN.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// MDEntryType(269) of bids, offers, trades and other entries of market data.
pub mod entry {
    /// `0`: bid.
    pub const BID: u8 = b'0';
    /// `1`: offer.
    pub const OFFER: u8 = b'1';
    /// `2`: trade.
    pub const TRADE: u8 = b'2';
    /// `J`: the book is empty.
    pub const EMPTY_BOOK: u8 = b'J';
}

/// A change of an instrument.
///
/// Events have no pointers and one size, 64 bytes, so that rings and files carry them unchanged.
/// The meaning of a field depends on [`Kind`]. Fields that a kind does not mention are as in
/// [`Event::EMPTY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// The plant's number: one sequence for all instruments, from 1, without gaps, or 0 if none is
    /// assigned yet.
    pub number: u64,
    /// The exchange's time in nanoseconds since 1970-01-01 UTC, or [`Event::NO_TIME`] if unknown.
    pub ts_event: u64,
    /// The time at which the datagram or segment arrived, in nanoseconds since 1970-01-01 UTC.
    pub ts_recv: u64,
    /// The number of the order, the trade, or another one by [`Kind`].
    pub id: u64,
    /// The price, or [`Price::UNDEFINED`] if there is none.
    pub price: Price,
    /// The size in the units of the instrument, or [`Event::NO_SIZE`] if there is none.
    pub size: i64,
    /// The instrument, by the plant's number.
    pub instrument: InstrumentId,
    /// RptSeq(83): the feed's number of this change within the instrument, or 0 if it has none.
    pub rpt_seq: u32,
    /// The kind of the event.
    pub kind: Kind,
    /// The action on its subject.
    pub action: Action,
    /// MDEntryType(269), as on the wire, or 0 if there is none.
    pub entry: u8,
    /// The marks of the event.
    pub flags: Flags,
    /// MDPriceLevel(1023) from 1, or 0 if there is none.
    pub level: u16,
    /// The feed of the plant that it belongs to, from 1. It may be 0 for the only feed, unless its
    /// books are kept by feed, as in a [`View`](crate::View).
    pub source: u16,
}

const _: () = assert!(size_of::<Event>() == 64);

impl Event {
    /// The value of an unknown time.
    pub const NO_TIME: u64 = u64::MAX;
    /// The value of an unknown size.
    pub const NO_SIZE: i64 = i64::MAX;

    /// A [`Kind::Clear`] of instrument 0 with all values unknown, as a base for others.
    pub const EMPTY: Self = Self {
        number: 0,
        ts_event: Self::NO_TIME,
        ts_recv: Self::NO_TIME,
        id: 0,
        price: Price::UNDEFINED,
        size: Self::NO_SIZE,
        instrument: InstrumentId(0),
        rpt_seq: 0,
        kind: Kind::Clear,
        action: Action::New,
        entry: 0,
        flags: Flags::NONE,
        level: 0,
        source: 0,
    };

    /// Returns whether another event brings the same: only number, RptSeq(83), marks and time of
    /// arrival may differ.
    pub fn repeats(&self, other: &Self) -> bool {
        let essence = |event: &Self| Self {
            number: 0,
            ts_recv: Self::NO_TIME,
            rpt_seq: 0,
            flags: Flags::NONE,
            ..*event
        };
        essence(self) == essence(other)
    }

    /// Returns the time by which the event is in an interval, in nanoseconds since 1970-01-01 UTC:
    /// that of its arrival, or the exchange's if that is not known. `None` if neither is.
    #[inline]
    pub const fn arrival(&self) -> Option<u64> {
        match (self.ts_recv, self.ts_event) {
            (0 | Self::NO_TIME, Self::NO_TIME) => None,
            (0 | Self::NO_TIME, time) | (time, _) => Some(time),
        }
    }

    /// Returns whether a deletion or a change of a trade or a statistic is one of `other`: of its
    /// MDEntryType(269), and with its number or none.
    pub const fn is_about(&self, other: &Self) -> bool {
        self.entry == other.entry && (self.id == 0 || self.id == other.id)
    }
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Definition,
        Self::Level,
        Self::Order,
        Self::Trade,
        Self::Statistic,
        Self::Status,
        Self::State,
        Self::Clear,
    ];
}

impl Action {
    const ALL: [Self; 7] = [
        Self::New,
        Self::Change,
        Self::Delete,
        Self::DeleteThru,
        Self::DeleteFrom,
        Self::Overlay,
        Self::Fill,
    ];
}

/// The encoding of events: the fields in the order of [`Event`], integers least significant byte
/// first, the same on every machine.
impl Event {
    /// The bytes of an event.
    pub const SIZE: usize = 64;

    /// Returns the event as bytes. Allocates nothing.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let (words, rest) = bytes.as_chunks_mut::<8>();
        debug_assert!(rest.is_empty());
        let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let last = u32::from_le_bytes([
            self.kind as u8,
            self.action as u8,
            self.entry,
            self.flags.bits(),
        ]);
        let place = u32::from(self.level) | u32::from(self.source) << 16;
        let values = [
            self.number,
            self.ts_event,
            self.ts_recv,
            self.id,
            self.price.units().cast_unsigned(),
            self.size.cast_unsigned(),
            half(self.instrument.0, self.rpt_seq),
            half(last, place),
        ];
        for (word, value) in words.iter_mut().zip(values) {
            *word = value.to_le_bytes();
        }
        bytes
    }

    /// Returns the event that [`Self::to_bytes`] wrote, or `None` if the bytes are invalid.
    #[inline]
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let (numbers, last) = (word(6)?, word(7)?);
        let [kind, action, entry, flags, ..] = last.to_le_bytes();
        Some(Self {
            number: word(0)?,
            ts_event: word(1)?,
            ts_recv: word(2)?,
            id: word(3)?,
            price: Price::from_units(word(4)?.cast_signed()),
            size: word(5)?.cast_signed(),
            instrument: InstrumentId(numbers as u32),
            rpt_seq: (numbers >> 32) as u32,
            kind: *Kind::ALL.get(usize::from(kind).checked_sub(1)?)?,
            action: *Action::ALL.get(usize::from(action))?,
            entry,
            flags: Flags(flags),
            level: (last >> 32) as u16,
            source: (last >> 48) as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kinds_and_actions_are_their_numbers() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, at + 1);
        }
        for (at, action) in Action::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, at);
        }
    }

    proptest! {
        #[test]
        fn bytes_and_events_are_the_same(bytes: [[u8; 32]; 2], kind in 0u8..12, action in 0u8..9) {
            let mut all = [0; Event::SIZE];
            all.copy_from_slice(bytes.as_flattened());
            (all[56], all[57]) = (kind, action);
            match Event::from_bytes(&all) {
                Some(event) => prop_assert_eq!(event.to_bytes(), all),
                None => prop_assert!(kind == 0 || kind > 8 || action > 6),
            }
        }
    }
}
