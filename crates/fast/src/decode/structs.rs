//! Generated structs that are filled from rows as these are decoded.

use fanfare_wire::lanes::Row;

use super::flat::{RowBatch, Scratch, Sink, Visiting};
use super::lanes::BATCH;
use crate::program::Program;
use crate::program::lanes::{Entry, Flat};
use crate::rows::RowRef;
use crate::typed::{Feed, Filling};

/// A sink that fills a struct from rows if the struct is generated for that, and as a visitor
/// otherwise. As the structs are a visitor as well, they also receive the rest of a message that is
/// not regular.
pub(super) struct StructSink<'f, F> {
    filling: Filling<'f, F>,
    /// Whether the message is read from rows.
    reads: bool,
}

impl<'f, F: Feed> StructSink<'f, F> {
    #[inline(always)]
    pub(super) fn new(feed: &'f mut F) -> Self {
        Self {
            filling: Filling::new(feed),
            reads: false,
        }
    }
}

impl<'f, F: Feed> Sink for StructSink<'f, F> {
    type Rest = Filling<'f, F>;

    #[inline(always)]
    fn head<'r>(&'r mut self, scratch: &'r mut Row) -> &'r mut Row {
        scratch
    }

    #[inline(always)]
    fn rows<'r>(&'r mut self, _: usize, left: usize, scratch: &'r mut Scratch) -> &'r mut [Row] {
        &mut scratch[..left.min(BATCH)]
    }

    #[inline(always)]
    fn begin(&mut self, program: &Program, flat: &Flat, scratch: &Row) {
        self.reads = self.filling.members().read(flat.template, RowRef(scratch));
        if !self.reads {
            Visiting(&mut self.filling).begin(program, flat, scratch);
        }
    }

    #[inline(always)]
    fn no_sequence(&mut self, program: &Program, entry: &Entry) {
        if !self.reads {
            Visiting(&mut self.filling).no_sequence(program, entry);
        }
    }

    #[inline(always)]
    fn begin_sequence(&mut self, program: &Program, entry: &Entry, count: u32) {
        // With its first entry it is there.
        if !self.reads || count == 0 {
            Visiting(&mut self.filling).begin_sequence(program, entry, count);
        }
    }

    #[inline(always)]
    fn entries(&mut self, program: &Program, entry: &Entry, index: u32, told: RowBatch<'_>) {
        match self.reads {
            true => self
                .filling
                .members()
                .read_entries(told.rows().iter().map(RowRef)),
            false => Visiting(&mut self.filling).entries(program, entry, index, told),
        }
    }

    #[inline(always)]
    fn end_sequence(&mut self, program: &Program, entry: &Entry) {
        Visiting(&mut self.filling).end_sequence(program, entry);
    }

    #[inline(always)]
    fn end(&mut self, program: &Program, flat: &Flat) {
        Visiting(&mut self.filling).end(program, flat);
    }

    #[inline(always)]
    fn rest(&mut self, _: &Program) -> &mut Filling<'f, F> {
        &mut self.filling
    }
}
