//! The interface of generated structs.

use super::members::Members;
use super::{PreviousValue, Stream};
use crate::rows::RowRef;

/// The generated messages of a template set: one struct for each template, filled in turn.
pub trait Feed: Members + Default {
    /// The document from which the structs were generated.
    const TEMPLATES: &'static str;

    /// The message that was decoded last, by its template.
    type Decoded<'m>
    where
        Self: 'm;

    /// Returns the message that was decoded last, or `None` for one of no template of the document.
    fn decoded(&self) -> Option<Self::Decoded<'_>>;

    /// The [`Program::code`](crate::Program::code) of the templates, on which [`Self::straight`]
    /// relies; 0 if it is not to be called.
    const CODE: u64;

    /// Reads the fields of a message of the template of this index by straight-line code. The
    /// fields begin at `at`, and their presence bits are in `map`, the first one topmost. Returns
    /// the offset after the fields, or `None` with the error in the stream.
    fn straight(
        &mut self,
        template: u32,
        stream: &mut Stream<'_>,
        values: &mut [PreviousValue],
        at: usize,
        map: u64,
    ) -> Option<usize>;

    /// The [`Program::layout`](crate::Program::layout) of the templates, on which [`Self::read`]
    /// relies; 0 if that reads nothing.
    const LAYOUT: u64 = 0;

    /// Begins a message of the template of this index with the row of its own fields, and with its
    /// sequence empty or absent. Returns false, with nothing read, for a template whose rows it
    /// does not read.
    #[inline]
    fn read(&mut self, template: u32, row: RowRef<'_>) -> bool {
        _ = (template, row);
        false
    }

    /// Adds entries to the sequence of the message, after those that it has.
    #[inline]
    fn read_entries<'r>(&mut self, rows: impl ExactSizeIterator<Item = RowRef<'r>>) {
        _ = rows;
    }
}
