//! The values of a definition that files and mappings name alike.

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
