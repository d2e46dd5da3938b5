//! Schemas of a live stream.

use crate::dbn::Schema;

/// A schema that clients of a live stream subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LiveSchema {
    /// Orders.
    Mbo,
    /// Changes of the best level, with the level.
    Mbp1,
    /// Changes of the ten best levels, with all of them.
    Mbp10,
    /// Trades.
    Trades,
    /// Trades, each with the best level before it.
    Tbbo,
    /// The best level and the last trade at the end of each second.
    Bbo1S,
    /// The best level and the last trade at the end of each minute.
    Bbo1M,
    /// The trades of each second as a bar.
    Ohlcv1S,
    /// The trades of each minute as a bar.
    Ohlcv1M,
    /// The trades of each hour as a bar.
    Ohlcv1H,
    /// The trades of each day (UTC) as a bar.
    Ohlcv1D,
    /// Definitions of instruments.
    Definition,
    /// Trading status.
    Status,
    /// Values of the session.
    Statistics,
}

impl LiveSchema {
    /// All schemas.
    pub const ALL: [Self; 14] = [
        Self::Mbo,
        Self::Mbp1,
        Self::Mbp10,
        Self::Trades,
        Self::Tbbo,
        Self::Bbo1S,
        Self::Bbo1M,
        Self::Ohlcv1S,
        Self::Ohlcv1M,
        Self::Ohlcv1H,
        Self::Ohlcv1D,
        Self::Definition,
        Self::Status,
        Self::Statistics,
    ];

    /// Returns the name in DBN.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mbo => "mbo",
            Self::Mbp1 => "mbp-1",
            Self::Mbp10 => "mbp-10",
            Self::Trades => "trades",
            Self::Tbbo => "tbbo",
            Self::Bbo1S => "bbo-1s",
            Self::Bbo1M => "bbo-1m",
            Self::Ohlcv1S => "ohlcv-1s",
            Self::Ohlcv1M => "ohlcv-1m",
            Self::Ohlcv1H => "ohlcv-1h",
            Self::Ohlcv1D => "ohlcv-1d",
            Self::Definition => "definition",
            Self::Status => "status",
            Self::Statistics => "statistics",
        }
    }

    /// Returns the schema of this name, or `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schema| schema.name() == name)
    }

    /// Returns the schemas with this one alone.
    pub const fn alone(self) -> LiveSchemas {
        LiveSchemas(1 << self as u8)
    }

    /// Returns the schema of [`ToDbn`](crate::dbn::ToDbn) that this one is made of, or `None` for
    /// intervals.
    pub(super) const fn made_of(self) -> Option<Schema> {
        Some(match self {
            Self::Mbo => Schema::Mbo,
            Self::Mbp1 | Self::Tbbo => Schema::Mbp1,
            Self::Mbp10 => Schema::Mbp10,
            Self::Trades => Schema::Trades,
            Self::Definition => Schema::Definition,
            Self::Status => Schema::Status,
            Self::Statistics => Schema::Statistics,
            _ => return None,
        })
    }
}

/// A set of schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LiveSchemas(u16);

impl LiveSchemas {
    /// No schema.
    pub const NONE: Self = Self(0);
    /// Every schema.
    pub const ALL: Self = Self((1 << LiveSchema::ALL.len()) - 1);

    /// Returns the schemas as bits, in the order of [`LiveSchema::ALL`].
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the schemas of these bits. Others are ignored.
    #[must_use]
    pub const fn of_bits(bits: u16) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the schemas that are in either set.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the schemas of this set that are not in the other.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns the schemas that are in both sets.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// Returns true if the schema is in the set.
    pub const fn has(self, schema: LiveSchema) -> bool {
        self.0 >> schema as u8 & 1 == 1
    }

    /// Returns true if the sets have a schema in common.
    pub const fn meets(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns true if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the schemas, in the order of [`LiveSchema::ALL`].
    pub fn iter(self) -> impl Iterator<Item = LiveSchema> {
        LiveSchema::ALL
            .into_iter()
            .filter(move |schema| self.has(*schema))
    }
}

impl FromIterator<LiveSchema> for LiveSchemas {
    fn from_iter<I: IntoIterator<Item = LiveSchema>>(schemas: I) -> Self {
        let all = schemas.into_iter();
        all.fold(Self::NONE, |set, schema| set.with(schema.alone()))
    }
}
