//! What generated structs do.

use super::members::Members;
use super::{PreviousValue, Stream};
use crate::rows::RowRef;

/// The generated messages of a template set: one struct for each template, filled in turn.
pub trait Feed: Members + Default {
    /// The document that the structs were generated from.
    const TEMPLATES: &'static str;

    /// The message that was decoded last, by its template.
    type Decoded<'m>
    where
        Self: 'm;

    /// Returns the message that was decoded last; `None` for one of no template of the document.
    fn decoded(&self) -> Option<Self::Decoded<'_>>;

    /// [`Program::code`](crate::Program::code) of the templates, as [`Self::straight`] takes it
    /// for granted; 0 if it is not to be called.
    const CODE: u64;

    /// Reads the fields of a message of the template of this index, which begin at a place behind
    /// these presence bits, the first one topmost: straight-line code. Their end, or `None` with
    /// the error in the stream.
    fn straight(
        &mut self,
        template: u32,
        stream: &mut Stream<'_>,
        values: &mut [PreviousValue],
        at: usize,
        map: u64,
    ) -> Option<usize>;

    /// [`Program::layout`](crate::Program::layout) of the templates, as [`Self::read`] takes it
    /// for granted; 0 if that reads nothing.
    const LAYOUT: u64 = 0;

    /// Begins a message of the template of this index with the row of its own fields; its sequence
    /// is empty or absent. False, with nothing done, for a template that it does not read so.
    #[inline]
    fn read(&mut self, template: u32, row: RowRef<'_>) -> bool {
        _ = (template, row);
        false
    }

    /// Goes on with entries of its sequence, behind those that there are.
    #[inline]
    fn read_entries<'r>(&mut self, rows: impl ExactSizeIterator<Item = RowRef<'r>>) {
        _ = rows;
    }
}
