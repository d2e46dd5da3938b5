//! The built-in template sets.

use crate::program::Program;

/// Orders: Quote (1), New (2), Change (3), Remove (4), Done (99).
pub const SIMPLE: &str = include_str!("../templates/simple.xml");

/// Market data with repeating groups: MarketData (1), QuoteRequest (2), Done (99).
pub const COMPLEX: &str = include_str!("../templates/complex.xml");

/// Market data in the shapes of MOEX SPECTRA's: DefaultIncrementalRefreshMessage (74),
/// DefaultSnapshotMessage (75), TradingSessionStatus (66), SequenceReset (49), Done (99).
pub const SPECTRA: &str = include_str!("../templates/spectra.xml");

/// Structs of [`SIMPLE`], as `fanfare fast codegen -t builtin:simple` prints them.
pub mod simple {
    include!("../templates/simple.generated");
}

/// Structs of [`COMPLEX`], as `fanfare fast codegen -t builtin:complex` prints them.
pub mod complex {
    include!("../templates/complex.generated");
}

/// Structs of [`SPECTRA`], as `fanfare fast codegen -t builtin:spectra` prints them.
pub mod spectra {
    include!("../templates/spectra.generated");
}

/// Returns the document named `builtin:simple`, `builtin:complex` or `builtin:spectra`.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    match name {
        "builtin:simple" => Some(SIMPLE),
        "builtin:complex" => Some(COMPLEX),
        "builtin:spectra" => Some(SPECTRA),
        _ => None,
    }
}

impl Program {
    /// Returns the program of [`SIMPLE`].
    #[must_use]
    pub fn simple() -> Self {
        Self::parse(SIMPLE).unwrap_or_default()
    }

    /// Returns the program of [`COMPLEX`].
    #[must_use]
    pub fn complex() -> Self {
        Self::parse(COMPLEX).unwrap_or_default()
    }

    /// Returns the program of [`SPECTRA`].
    #[must_use]
    pub fn spectra() -> Self {
        Self::parse(SPECTRA).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_are_valid() {
        let names = |xml| {
            let program = Program::parse(xml).unwrap();
            let ids = program
                .templates()
                .iter()
                .map(|t| (t.id().unwrap(), t.name().to_owned()));
            ids.collect::<Vec<_>>()
        };
        let id = |id, name: &str| (id, name.to_owned());
        assert_eq!(
            names(find("builtin:simple").unwrap()),
            [
                id(1, "Quote"),
                id(2, "New"),
                id(3, "Change"),
                id(4, "Remove"),
                id(99, "Done"),
                id(120, "Reset")
            ]
        );
        assert_eq!(
            names(find("builtin:complex").unwrap()),
            [
                id(1, "MarketData"),
                id(2, "QuoteRequest"),
                id(99, "Done"),
                id(120, "Reset")
            ]
        );
        assert_eq!(
            names(find("builtin:spectra").unwrap()),
            [
                id(74, "DefaultIncrementalRefreshMessage"),
                id(75, "DefaultSnapshotMessage"),
                id(66, "TradingSessionStatus"),
                id(49, "SequenceReset"),
                id(99, "Done"),
                id(120, "Reset")
            ]
        );
        assert_eq!(Program::simple().templates().len(), 6);
        assert_eq!(Program::complex().templates().len(), 4);
        assert_eq!(Program::spectra().templates().len(), 6);
    }
}
