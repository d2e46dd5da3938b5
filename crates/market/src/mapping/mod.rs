//! Mappings: the conversion of messages and fields to events, as data.
//!
//! A [`Mapping`] is a TOML text, one for each venue, as described in `docs/mapping.md`. It is
//! checked in itself when it is parsed, and against templates or a FIX dictionary when it is
//! compiled to a mapper.
//!
//! [The crate](crate) has one as an example.

mod cells;
mod check;
mod conditions;
mod define;
mod document;
mod engine;
mod fast;
mod fault;
mod fix;
mod keys;
mod known;
mod outcome;
mod plan;
mod straight;
pub(crate) mod time;
mod values;

pub use check::{FieldReport, MessageReport, Report};
pub use document::{Does, Unknown};
pub use fast::FastMapper;
pub use fault::{MapError, Why};
pub use fix::FixMapper;
pub use outcome::{Counts, Fragment, Outcome, Snapshot};

use crate::text_error::TextError;
use document::Document;
use fanfare_fast::Program;

/// Standard FIX: W, X, d, f, h, y, BP and BK by their tags.
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
    /// Returns a [`TextError`] with line and key: invalid TOML, or an unknown, missing or
    /// repeated key.
    pub fn parse(file: &str, text: &str) -> Result<Self, TextError> {
        let parsed = document::parse(text);
        let document = parsed.map_err(|problem| TextError::new(file, problem))?;
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
