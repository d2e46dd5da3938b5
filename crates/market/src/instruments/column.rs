//! The values of a definition that files and mappings name alike.

use super::definition::{Definition, SecurityId};

/// A value of a definition, apart from names and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Description,
    Type,
    Cfi,
    Currency,
    Market,
    Segment,
    Underlying,
    MaturityMonth,
    Tick,
    Multiplier,
    Strike,
    LowLimit,
    HighLimit,
    Depth,
    BookType,
    Status,
}

impl Column {
    pub(crate) const ALL: [Self; 16] = [
        Self::Description,
        Self::Type,
        Self::Cfi,
        Self::Currency,
        Self::Market,
        Self::Segment,
        Self::Underlying,
        Self::MaturityMonth,
        Self::Tick,
        Self::Multiplier,
        Self::Strike,
        Self::LowLimit,
        Self::HighLimit,
        Self::Depth,
        Self::BookType,
        Self::Status,
    ];

    /// Returns its name as a column and as a key.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Type => "type",
            Self::Cfi => "cfi",
            Self::Currency => "currency",
            Self::Market => "market",
            Self::Segment => "segment",
            Self::Underlying => "underlying",
            Self::MaturityMonth => "maturity-month",
            Self::Tick => "tick",
            Self::Multiplier => "multiplier",
            Self::Strike => "strike",
            Self::LowLimit => "low-limit",
            Self::HighLimit => "high-limit",
            Self::Depth => "depth",
            Self::BookType => "book-type",
            Self::Status => "status",
        }
    }
}

/// Some of the values of a definition: columns, the name, and the date and time of the maturity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns(u32);

impl Columns {
    /// The number of values.
    pub(super) const COUNT: usize = Column::ALL.len() + 3;

    /// No value.
    pub(crate) const NONE: Self = Self(0);

    /// The values of a whole definition: those that it lacks are unknown from then on.
    pub(crate) const ALL: Self = Self((1 << Self::COUNT) - 1);

    /// The date of the maturity.
    pub(crate) const MATURITY_DATE: Self = Self(1 << Column::ALL.len());

    /// The time of the day of the maturity.
    pub(crate) const MATURITY_TIME: Self = Self(1 << (Column::ALL.len() + 1));

    /// The name.
    pub(crate) const NAME: Self = Self(1 << (Column::ALL.len() + 2));

    /// Returns a set of one value.
    pub(crate) const fn of(column: Column) -> Self {
        Self(1 << column as u32)
    }

    /// Returns the values that are in either set.
    #[must_use]
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all values of `other` are in the set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns those values of the set whose place, by their positions in `places`, is not behind
    /// this one.
    pub(super) fn not_behind(self, place: u64, places: &[u64; Self::COUNT]) -> Self {
        let all = (0_u32..).zip(places);
        let due = all.filter(|(_, own)| **own <= place);
        Self(due.fold(0, |due, (bit, _)| due | 1 << bit) & self.0)
    }

    /// Sets the places of the values of the set.
    pub(super) fn set_places(self, place: u64, places: &mut [u64; Self::COUNT]) {
        for (bit, own) in (0_u32..).zip(places) {
            if self.0 >> bit & 1 == 1 {
                *own = place;
            }
        }
    }
}

/// Returns a definition with the values of the one before that are not in `has`, and with what its
/// name lacks. With the date or the time of the day in `has`, its maturity has both.
pub(super) fn completed<'d>(
    definition: &Definition<'d>,
    has: Columns,
    before: &Definition<'d>,
) -> Definition<'d> {
    let mut after = *definition;
    if !has.has(Columns::NAME) {
        after.name = before.name;
    }
    if after.name.symbol.is_empty() {
        after.name.symbol = before.name.symbol;
    }
    if after.name.id == SecurityId::None {
        (after.name.id, after.name.source) = (before.name.id, before.name.source);
    }
    if !has.has(Columns::MATURITY_DATE) && !has.has(Columns::MATURITY_TIME) {
        after.maturity = before.maturity;
    }
    let lacks = |column: &Column| !has.has(Columns::of(*column));
    for column in Column::ALL.into_iter().filter(lacks) {
        match column {
            Column::Description => after.description = before.description,
            Column::Type => after.security_type = before.security_type,
            Column::Cfi => after.cfi = before.cfi,
            Column::Currency => after.currency = before.currency,
            Column::Market => after.market = before.market,
            Column::Segment => after.segment = before.segment,
            Column::Underlying => after.underlying = before.underlying,
            Column::MaturityMonth => after.maturity_month = before.maturity_month,
            Column::Tick => after.tick = before.tick,
            Column::Multiplier => after.multiplier = before.multiplier,
            Column::Strike => after.strike = before.strike,
            Column::LowLimit => after.low_limit = before.low_limit,
            Column::HighLimit => after.high_limit = before.high_limit,
            Column::Depth => after.depth = before.depth,
            Column::BookType => after.book_type = before.book_type,
            // The table has it apart from the definition.
            Column::Status => {}
        }
    }
    after
}
