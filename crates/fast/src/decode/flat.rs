//! Messages of flat templates: one segment, perhaps followed by a sequence whose entries are one
//! segment each. Anything that is not regular goes to the general executor, from the place where it
//! is met.

use fanfare_wire::lanes::{Front, MAX_CHARS, Row};
use fanfare_wire::stopbit::Squeeze;

use super::Options;
use super::input::Input;
use super::lanes::{BATCH, LaneState, front_word, length};
use super::run::Run;
use super::visit::{visit_row, visit_rows};
use crate::dictionary::Dictionaries;
use crate::previous::PreviousValues;
use crate::program::Program;
use crate::program::lanes::{Entry, Flat};
use crate::visitor::Visitor;
use std::num::NonZero;

/// The receiver of the rows of a message.
pub(crate) trait Sink {
    /// The visitor that receives the rest of a message that turns out not to be regular.
    type Rest: Visitor;

    /// Returns the place to which the first row is written: one of its own, or `scratch`.
    fn head<'r>(&'r mut self, scratch: &'r mut Row) -> &'r mut Row;

    /// Returns the places to which the rows of entries are written: at least one, and at most
    /// `left`. The rows of `done` entries are before them.
    fn rows<'r>(&'r mut self, done: usize, left: usize, scratch: &'r mut Scratch) -> &'r mut [Row];

    /// Called at the start of a message. Its first row is at the place that [`Self::head`]
    /// returned.
    fn begin(&mut self, program: &Program, flat: &Flat, scratch: &Row);

    /// Called if the sequence after the first row is absent.
    fn no_sequence(&mut self, program: &Program, entry: &Entry);

    /// Called at the start of the sequence.
    fn begin_sequence(&mut self, program: &Program, entry: &Entry, count: u32);

    /// Receives the entries from `index` on. Their rows are the first ones at the places that
    /// [`Self::rows`] returned.
    fn entries(&mut self, program: &Program, entry: &Entry, index: u32, told: RowBatch<'_>);

    fn end_sequence(&mut self, program: &Program, entry: &Entry);

    fn end(&mut self, program: &Program, flat: &Flat);

    /// Returns the visitor that receives the rest of the message, field by field.
    fn rest(&mut self, program: &Program) -> &mut Self::Rest;
}

/// Space for the rows of a few entries.
pub(crate) type Scratch = [Row; BATCH];

/// A batch of decoded rows.
pub(crate) struct RowBatch<'r> {
    pub(crate) count: usize,
    pub(crate) scratch: &'r Scratch,
}

impl<'r> RowBatch<'r> {
    /// Returns the rows, which were requested in the scratch space.
    #[inline(always)]
    pub(super) fn rows(&self) -> &'r [Row] {
        self.scratch.get(..self.count).unwrap_or_default()
    }
}

/// A sink that calls a visitor for the rows.
pub(super) struct Visiting<'v, V>(pub(super) &'v mut V);

impl<V: Visitor> Sink for Visiting<'_, V> {
    type Rest = V;

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
        // What the visitor makes no use of is not even looked up.
        if let Some(template) = program.templates().get(flat.template as usize) {
            self.0.begin_message(template);
        }
        visit_row(program, &flat.segment, scratch, self.0);
    }

    #[inline(always)]
    fn no_sequence(&mut self, program: &Program, entry: &Entry) {
        if let Some(field) = program.fields().get(entry.field.index()) {
            self.0.absent(field);
        }
    }

    #[inline(always)]
    fn begin_sequence(&mut self, program: &Program, entry: &Entry, count: u32) {
        if let Some(field) = program.fields().get(entry.field.index()) {
            self.0.begin_sequence(field, count);
        }
    }

    #[inline(always)]
    fn entries(&mut self, program: &Program, entry: &Entry, index: u32, told: RowBatch<'_>) {
        visit_rows(program, &entry.at_hand.visits, index, told.rows(), self.0);
    }

    #[inline(always)]
    fn end_sequence(&mut self, program: &Program, entry: &Entry) {
        if let Some(field) = program.fields().get(entry.field.index()) {
            self.0.end_sequence(field);
        }
    }

    #[inline(always)]
    fn end(&mut self, program: &Program, flat: &Flat) {
        if let Some(template) = program.templates().get(flat.template as usize) {
            self.0.end_message(template);
        }
    }

    #[inline(always)]
    fn rest(&mut self, _: &Program) -> &mut V {
        self.0
    }
}

/// The progress of decoding the sequence of a message.
struct Progress<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of entries that are decoded.
    index: u32,
    /// The number of entries of the sequence.
    count: u32,
    /// The number of strings in the decoded entries.
    texts: u32,
}

/// The result of [`Parts::message`].
pub(super) enum Outcome {
    /// The message is decoded, and has this length.
    Done(usize),
    /// Nothing is done but a reset, if the template asks for one.
    Refused,
    /// The error is in the decoder's lane state: a result as large as the error would be slow to
    /// return.
    Failed,
}

/// The parts of a decoder.
pub(super) struct Parts<'d> {
    pub(super) program: &'d Program,
    pub(super) dictionaries: &'d mut Dictionaries,
    pub(super) scratch: &'d mut Vec<u8>,
    pub(super) lanes: &'d mut LaneState,
    pub(super) options: &'d Options,
}

impl<'d> Parts<'d> {
    /// Decodes a message of a flat template.
    #[inline(always)]
    pub(super) fn message<S: Sink>(mut self, bytes: &'d [u8], sink: &mut S) -> Outcome {
        let program = self.program;
        let Some((flat, at, count)) = self.head(bytes, sink) else {
            return Outcome::Refused;
        };
        let Some(entry) = &flat.entry else {
            sink.begin(program, flat, &self.lanes.row);
            sink.end(program, flat);
            return Outcome::Done(at);
        };
        let Some(count) = count else {
            sink.begin(program, flat, &self.lanes.row);
            sink.no_sequence(program, entry);
            sink.end(program, flat);
            return Outcome::Done(at);
        };
        let mut progress = Progress {
            bytes,
            at,
            index: 0,
            count,
            texts: 0,
        };
        if count > self.lanes.most_entries {
            sink.begin(program, flat, &self.lanes.row);
            return self.go_on(flat, entry, progress, sink);
        }
        // Decoding stalls on its input and visiting does not: the processor overlaps the two if the
        // first entries are decoded before the message's own fields are visited.
        let decoded = self.decode_entries::<S, true>(entry, &mut progress, sink);
        sink.begin(program, flat, &self.lanes.row);
        sink.begin_sequence(program, entry, count);
        self.tell_entries(entry, decoded, &mut progress, sink);
        if progress.index < count {
            return self.behind_first_entries((flat, entry), progress, sink);
        }
        sink.end_sequence(program, entry);
        sink.end(program, flat);
        Outcome::Done(progress.at)
    }

    /// Decodes the first segment. Returns the template, the offset after the segment, and the
    /// length of the sequence if it is present. Returns `None` if the segment is not regular, with
    /// nothing done but the reset of the template.
    #[inline(always)]
    fn head<S: Sink>(
        &mut self,
        bytes: &'d [u8],
        sink: &mut S,
    ) -> Option<(&'d Flat, usize, Option<u32>)> {
        let kernel = self.lanes.kernel?;
        let (flat, front) = front(self.program, self.dictionaries.template(), bytes)?;
        if flat.resets {
            self.dictionaries.reset();
        }
        let columns = &mut self.dictionaries.columns;
        let row = sink.head(&mut self.lanes.row);
        let at = kernel.decode(&flat.segment.plan, columns, bytes, front, row);
        if at == 0 {
            return None;
        }
        self.dictionaries.set_template(Some(flat.template));
        let lane = flat.entry.as_ref().map(|entry| entry.length);
        Some((flat, at, lane.and_then(|lane| length(row, lane))))
    }

    /// Decodes entries until the rows are full or an entry is not regular, and returns their
    /// number. With `KNOWN`, it also stops at an entry of a new shape.
    #[inline(always)]
    fn decode_entries<S: Sink, const KNOWN: bool>(
        &mut self,
        entry: &Entry,
        progress: &mut Progress<'_>,
        sink: &mut S,
    ) -> usize {
        let Some(kernel) = self.lanes.kernel else {
            return 0;
        };
        let (columns, shapes) = (&mut self.dictionaries.columns, &mut self.lanes.shapes);
        let (done, left) = (progress.index, progress.count - progress.index);
        let rows = sink.rows(done as usize, left as usize, &mut self.lanes.batch);
        let (from, plan) = ((progress.bytes, progress.at), &entry.at_hand.plan);
        let done = match KNOWN {
            true => kernel.known_entries(plan, columns, shapes, from, rows),
            false => kernel.entries(plan, columns, shapes, from, rows),
        };
        progress.at = done.at;
        progress.texts += done.texts;
        done.count
    }

    /// Passes the `count` entries that were decoded last to the sink.
    #[inline(always)]
    fn tell_entries<S: Sink>(
        &self,
        entry: &Entry,
        count: usize,
        progress: &mut Progress<'_>,
        sink: &mut S,
    ) {
        let told = RowBatch {
            count,
            scratch: &self.lanes.batch,
        };
        sink.entries(self.program, entry, progress.index, told);
        progress.index += count as u32;
    }

    /// Decodes the rest of a sequence. It is not inlined, to be out of the way of short sequences.
    #[inline(never)]
    fn behind_first_entries<S: Sink>(
        mut self,
        (flat, entry): (&'d Flat, &'d Entry),
        mut progress: Progress<'d>,
        sink: &mut S,
    ) -> Outcome {
        while progress.index < progress.count {
            let decoded = self.decode_entries::<S, false>(entry, &mut progress, sink);
            if decoded == 0 {
                return self.go_on(flat, entry, progress, sink);
            }
            self.tell_entries(entry, decoded, &mut progress, sink);
        }
        sink.end_sequence(self.program, entry);
        sink.end(self.program, flat);
        Outcome::Done(progress.at)
    }

    /// Decodes the rest of a message in the general way.
    #[cold]
    #[inline(never)]
    fn go_on<S: Sink>(
        self,
        flat: &'d Flat,
        entry: &'d Entry,
        progress: Progress<'d>,
        sink: &mut S,
    ) -> Outcome {
        let Options { strict, limits, .. } = *self.options;
        self.lanes.tally.irregular += 1;
        let row = sink.head(&mut self.lanes.row);
        let texts = flat.segment.texts(row);
        let constant_texts = progress.index as usize * entry.at_hand.constant_texts;
        let mut left = limits;
        left.fields -= flat.fields + progress.index * entry.fields;
        left.texts -= texts + constant_texts + progress.texts as usize * MAX_CHARS;
        let mut run = Run {
            program: self.program,
            previous: self.dictionaries,
            scratch: self.scratch,
            input: Input::new(progress.bytes, progress.at, strict, limits.text),
            left,
            template: Some(flat.template),
            squeeze: Squeeze::portable(),
            failure: &mut self.lanes.failure,
        };
        let visitor = sink.rest(self.program);
        let (count, body) = (progress.count, entry.body);
        let rest = match count > self.lanes.most_entries {
            true => run.entries(entry.field, Some(count), body, visitor),
            false => run.further_entries(entry.field, progress.index..count, body, visitor),
        };
        let at = run.input.at;
        if let Err(error) = rest {
            self.lanes
                .failure
                .set::<()>(error.in_template(flat.template));
            return Outcome::Failed;
        }
        sink.end(self.program, flat);
        Outcome::Done(at)
    }
}

/// The stop bits of eight bytes.
const ENDS: u64 = 0x8080_8080_8080_8080;

/// Returns the template of a message, and what is before its first segment. Returns `None` if the
/// message is not flat, or has an unusual form.
#[inline(always)]
fn front<'p>(program: &'p Program, last: Option<u32>, bytes: &[u8]) -> Option<(&'p Flat, Front)> {
    let word = front_word(bytes);
    let ends = word & ENDS;
    let bits = NonZero::new(ends)?.trailing_zeros() + 1;
    let map = word & (ends ^ ends.wrapping_sub(1));
    // The map's last byte is the highest one now, and what follows the map is the lowest one. After
    // a map of eight bytes, that is the map's first byte.
    let turned = word.rotate_right(bits);
    let is_overlong = turned >> 56 == 0x80;
    if word & 0x40 == 0 {
        let has_id = false;
        let is_usual = bits == 8 || !is_overlong;
        let flat = program.flat_of(last?)?;
        return is_usual.then_some((flat, Front { map, has_id }));
    }
    let (id, has_id) = (turned as u8, true);
    if id & 0x80 == 0 || is_overlong {
        return None;
    }
    Some((program.flat_by_id(id & 0x7f)?, Front { map, has_id }))
}
