//! The values that DBN cannot represent.

use crate::event::{InstrumentId, Kind};
use crate::instruments::Lookup;
use core::fmt;
use fanfare_wire::text::Escaped;

/// A value of an event that no record of DBN can represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The plant's number of the event.
    pub number: u64,
    /// The kind of the event.
    pub kind: Kind,
    /// The instrument.
    pub instrument: InstrumentId,
    /// The field of DBN's record, by its name in DBN.
    pub field: &'static str,
    /// The reason.
    pub why: Why,
}

/// The reason why a value is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The value is not from 0 to 2^32 - 2, and the record is not written.
    Range(i128),
    /// The memory does not allow another book, and the record is not written.
    NoBook,
    /// No instrument of this number is known, and the record is not written.
    Unknown,
    /// DBN does not have the status, and the record is not written.
    Status(u64),
    /// A trade was changed or cancelled, and the record is not written.
    Trade,
    /// The text is too long, not UTF-8 or not a number, and the field is empty.
    Text,
}

impl Lost {
    /// Returns the reason with the instrument's name, which is escaped.
    pub fn describe(&self, table: &dyn Lookup) -> String {
        if self.instrument == InstrumentId::ALL {
            return format!("all instruments: {self}");
        }
        let known = table.instrument(self.instrument);
        let name = known.map_or_else(
            || self.instrument.0.to_string(),
            |known| known.definition.name.to_string(),
        );
        format!("instrument {}: {self}", Escaped::text(&name))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            number,
            kind,
            field,
            ..
        } = self;
        write!(f, "event {number} ({}): {field}: ", kind.name())?;
        match self.why {
            Why::Range(value) => write!(f, "{value} is not from 0 to 4294967294"),
            Why::Unknown => f.write_str("the instrument is not known"),
            Why::NoBook => f.write_str("the table of books is full"),
            Why::Status(code) => write!(f, "DBN has no status {code}"),
            Why::Trade => f.write_str("DBN cannot change or cancel a trade"),
            Why::Text => f.write_str("the text is too long for DBN, or not valid in its field"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::{Instruments, Name};

    #[test]
    fn names_are_escaped_and_all_instruments_are_called_so() {
        let mut table = Instruments::new(1);
        let name = Name::of_symbol(b"nl\nx");
        let instrument = table.see(&name).unwrap();
        let mut lost = Lost {
            number: 7,
            kind: Kind::Status,
            instrument,
            field: "action",
            why: Why::Status(99),
        };
        let why = "event 7 (status): action: DBN has no status 99";
        assert_eq!(lost.describe(&table), format!(r"instrument nl\nx: {why}"));
        lost.instrument = InstrumentId::ALL;
        assert_eq!(lost.describe(&table), format!("all instruments: {why}"));
    }
}
