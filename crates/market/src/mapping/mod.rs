//! Mappings: the conversion of messages and fields to events, as data.
//!
//! A [`Mapping`] is a TOML text, one for each venue, as described in `docs/mapping.md`. It is
//! checked in itself when it is parsed, and against templates or a FIX dictionary when it is
//! compiled to a mapper.
//!
//! ```
//! use fanfare_fast::{Decoder, Program, Record};
//! use fanfare_market::{Instruments, Mapping};
//! use std::sync::Arc;
//!
//! let program = Arc::new(Program::parse(
//!     r#"<template name="Trade" id="1"><string name="Symbol" id="55"/>
//!          <decimal name="LastPx" id="31"/><uInt32 name="LastQty" id="32"/></template>"#,
//! )?);
//! let mapping = Mapping::parse(
//!     "trades.toml",
//!     r#"[[message]]
//!        template = "Trade"
//!        does = "changes"
//!        instrument = { symbol = 55 }
//!        event = [{ kind = "trade", price = 31, size = 32, entry-type = "2" }]"#,
//! )?;
//! let mut mapper = mapping.for_templates(&program, 0)?;
//! let (mut table, mut record) = (Instruments::new(1000), Record::new());
//! let bytes = [0xc0, 0x81, b'X' | 0x80, 0xfe, 0x00, 0xfb, 0x8a];
//! Decoder::new(program).decode_record(&bytes, &mut record)?;
//! mapper.record(&mut table, 0, &record)?;
//! let trade = mapper.events()[0];
//! assert_eq!((trade.price.to_string(), trade.size), ("1.23".to_owned(), 10));
//! assert_eq!(table.by_symbol(b"X"), Some(trade.instrument));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cells;
mod check;
mod define;
mod document;
mod engine;
mod error;
mod fast;
mod fault;
mod fix;
mod outcome;
mod plan;
#[cfg(test)]
mod random;
mod straight;
pub(crate) mod time;
mod values;

pub use check::{FieldReport, MessageReport, Report};
pub use document::{Does, Unknown};
pub use error::MappingError;
pub use fast::FastMapper;
pub use fault::{MapError, Why};
pub use fix::FixMapper;
pub use outcome::{Counts, Fragment, Outcome, Picture};

use document::Document;
use fanfare_fast::Program;

/// Standard FIX: W, X, d, f, h and y by their tags.
pub const FIX: &str = include_str!("../../mappings/fix.toml");
/// MOEX SPECTRA: templates 74, 75, 79, 78 and 66.
pub const SPECTRA: &str = include_str!("../../mappings/spectra.toml");
/// The market data of the built-in templates `builtin:complex`.
pub const COMPLEX: &str = include_str!("../../mappings/complex.toml");

/// The built-in mappings.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("builtin:fix", FIX),
    ("builtin:spectra", SPECTRA),
    ("builtin:complex", COMPLEX),
];

/// A mapping file, checked in itself.
#[derive(Clone, Debug)]
pub struct Mapping {
    file: String,
    document: Document,
}

impl Mapping {
    /// Parses the text of a mapping file. `file` is its name in errors.
    ///
    /// # Errors
    ///
    /// Returns a [`MappingError`] with line and key: invalid TOML, or an unknown, missing or
    /// repeated key.
    pub fn parse(file: &str, text: &str) -> Result<Self, MappingError> {
        let parsed = document::parse(text);
        let document = parsed.map_err(|problem| MappingError::new(file, problem))?;
        Ok(Self {
            file: file.to_owned(),
            document,
        })
    }

    /// Returns a built-in mapping by its name: `builtin:fix`, `builtin:spectra` or
    /// `builtin:complex`.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(other, _)| *other == name)?;
        Self::parse(name, text).ok()
    }

    /// Returns the name of the built-in mapping for these templates: that of SPECTRA or of the
    /// complex feed if they have the names of its templates, and that of standard FIX otherwise.
    pub fn name_for(program: &Program) -> &'static str {
        let has = |name: &str, id| program.by_name(name).is_some_and(|t| t.id() == Some(id));
        if has("DefaultIncrementalRefreshMessage", 74) {
            return "builtin:spectra";
        }
        match has("MarketData", 1) && has("QuoteRequest", 2) {
            true => "builtin:complex",
            false => "builtin:fix",
        }
    }

    /// Returns the name of the mapping in errors.
    pub fn file(&self) -> &str {
        &self.file
    }
}

#[cfg(test)]
mod tests;
