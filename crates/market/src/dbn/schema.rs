//! The schemas, and sets of them.

use core::fmt;
use core::str::FromStr;

/// A schema of DBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Schema {
    /// Orders.
    Mbo = 1,
    /// Changes of the best level, with the level.
    Mbp1 = 2,
    /// Changes of the ten best levels, with all of them.
    Mbp10 = 4,
    /// Trades.
    Trades = 8,
    /// Definitions of instruments.
    Definition = 16,
    /// Trading status.
    Status = 32,
    /// Values of the session.
    Statistics = 64,
}

impl Schema {
    /// All schemas.
    pub const ALL: [Self; 7] = [
        Self::Mbo,
        Self::Mbp1,
        Self::Mbp10,
        Self::Trades,
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
            Self::Definition => "definition",
            Self::Status => "status",
            Self::Statistics => "statistics",
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that is not a schema's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSchema(String);

impl fmt::Display for NoSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = Schema::ALL.map(Schema::name).join(", ");
        write!(f, "unknown schema `{}`: expected one of {all}", self.0)
    }
}

impl core::error::Error for NoSchema {}

impl FromStr for Schema {
    type Err = NoSchema;

    fn from_str(name: &str) -> Result<Self, NoSchema> {
        let found = Self::ALL.into_iter().find(|schema| schema.name() == name);
        found.ok_or_else(|| NoSchema(name.to_owned()))
    }
}

/// The schemas of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schemas(u8);

impl Schemas {
    /// `mbo`, `mbp-10`, `trades`, `definition`, `status` and `statistics`, as far as the feed has
    /// them.
    pub const MIXED: Self = Self(0x7f & !(Schema::Mbp1 as u8));

    /// Returns these schemas, or `None` if they include both `mbp-1` and `mbp-10`, or are empty.
    pub fn new(schemas: &[Schema]) -> Option<Self> {
        let bits = schemas.iter().fold(0, |bits, schema| bits | *schema as u8);
        let all = Self(bits);
        let both = all.has(Schema::Mbp1) && all.has(Schema::Mbp10);
        (!both && bits != 0).then_some(all)
    }

    /// Returns true if the schema is in the set.
    pub const fn has(self, schema: Schema) -> bool {
        self.0 & schema as u8 != 0
    }

    /// Returns the levels of records of levels, or 0 if there are none.
    pub(super) const fn levels(self) -> u8 {
        if self.has(Schema::Mbp10) {
            10
        } else {
            self.has(Schema::Mbp1) as u8
        }
    }

    /// Returns whether the schema has records of books.
    pub(super) const fn has_books(self) -> bool {
        self.levels() != 0 || self.has(Schema::Mbo)
    }
}
