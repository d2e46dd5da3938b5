//! Messages of flat templates: one segment, and then perhaps a sequence whose entries are one
//! segment each. What they need and no more; everything else goes to the general executor, from
//! the place where it was met.

use fanfare_wire::lanes::{Front, LaneKernel, MAX_CHARS, MapFront, Row};

use super::Options;
use super::input::Input;
use super::lanes::{BATCH, LaneState, front_word, length, map_bits};
use super::run::Run;
use super::visit::{visit_row, visit_rows};
use crate::dictionary::Dictionaries;
use crate::error::{CodecError, ErrorCode};
use crate::previous::PreviousValues;
use crate::program::Program;
use crate::program::lanes::{Entry, Flat};
use crate::visitor::Visitor;
use std::num::NonZero;

/// Takes the rows of a message.
pub(crate) trait Sink {
    /// What takes the rest of a message that turns out not to be regular.
    type Rest: Visitor;

    /// Where the first row goes: to a place of its own, or to `scratch`.
    fn head<'r>(&'r mut self, scratch: &'r mut Row) -> &'r mut Row;

    /// Where the rows of entries go: at least one, and at most `left`; `done` are before them.
    fn rows<'r>(&'r mut self, done: usize, left: usize, scratch: &'r mut Scratch) -> &'r mut [Row];

    /// A message begins, with the row that was asked for.
    fn begin(&mut self, program: &Program, flat: &Flat, scratch: &Row);

    /// The sequence behind the first row is absent.
    fn no_sequence(&mut self, program: &Program, entry: &Entry);

    /// The sequence begins.
    fn begin_sequence(&mut self, program: &Program, entry: &Entry, count: u32);

    /// So many of the rows that were asked for are the entries from this index on.
    fn entries(&mut self, program: &Program, entry: &Entry, index: u32, told: RowBatch<'_>);

    fn end_sequence(&mut self, program: &Program, entry: &Entry);

    fn end(&mut self, program: &Program, flat: &Flat);

    /// Goes on field by field.
    fn rest(&mut self, program: &Program) -> &mut Self::Rest;
}

/// Room for the rows of a few entries.
pub(crate) type Scratch = [Row; BATCH];

/// Rows that were decoded.
pub(crate) struct RowBatch<'r> {
    pub(crate) count: usize,
    pub(crate) scratch: &'r Scratch,
}

impl<'r> RowBatch<'r> {
    /// Those in the scratch that they were asked for in.
    #[inline(always)]
    pub(super) fn rows(&self) -> &'r [Row] {
        self.scratch.get(..self.count).unwrap_or_default()
    }
}

/// Calls a visitor for the rows.
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

/// How far the sequence of a message is decoded.
struct Progress<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Entries that are done.
    index: u32,
    /// How many there are, if the sequence is not absent.
    count: Option<u32>,
    /// How many strings they have.
    texts: u32,
    /// The sink knows of the sequence.
    has_begun: bool,
}

impl<'a> Progress<'a> {
    /// The first segment is done, up to this index.
    #[inline(always)]
    const fn new(bytes: &'a [u8], at: usize, count: Option<u32>) -> Self {
        Self {
            bytes,
            at,
            index: 0,
            count,
            texts: 0,
            has_begun: false,
        }
    }
}

/// The result of [`Parts::message`].
pub(super) enum Outcome {
    /// The length of the message.
    Done(usize),
    /// Nothing was done but a reset, if the template asks for one.
    Refused,
    /// The error is in the decoder's lane state: results as large as it are slow to pass on.
    Failed,
}

/// What a decoder consists of.
pub(super) struct Parts<'d> {
    pub(super) program: &'d Program,
    pub(super) dictionaries: &'d mut Dictionaries,
    pub(super) scratch: &'d mut Vec<u8>,
    pub(super) lanes: &'d mut LaneState,
    pub(super) options: &'d Options,
}

impl<'d> Parts<'d> {
    /// Decodes a message of a flat template: by the shortcuts as far as they go, so that nothing
    /// stands in their way that is needed only elsewhere.
    #[inline(always)]
    pub(super) fn message<S: Sink>(mut self, bytes: &'d [u8], sink: &mut S) -> Outcome {
        let program = self.program;
        let Some(kernel) = self.lanes.flat_kernel else {
            return Outcome::Refused;
        };
        let Some((flat, at, count)) = self.shortcut(kernel, bytes, sink) else {
            return self.by_no_shortcut(kernel, bytes, sink);
        };
        let Some(entry) = &flat.entry else {
            sink.begin(program, flat, &self.lanes.row);
            sink.end(program, flat);
            return Outcome::Done(at);
        };
        let near = count.filter(|count| self.lanes.may_have(flat.head, *count));
        let Some(count) = near else {
            sink.begin(program, flat, &self.lanes.row);
            return self.behind_head((flat, entry), Progress::new(bytes, at, count), sink);
        };
        // What is decoded has to wait, what is told has not: so all is decoded first.
        let (columns, shapes) = (&mut self.dictionaries.columns, &self.lanes.shapes);
        let rows = sink.rows(0, count as usize, &mut self.lanes.batch);
        let (from, plan) = ((bytes, at), &entry.at_hand.plan);
        let done = kernel.known_entries(plan, columns, shapes, from, rows);
        sink.begin(program, flat, &self.lanes.row);
        sink.begin_sequence(program, entry, count);
        let told = RowBatch {
            count: done.count,
            scratch: &self.lanes.batch,
        };
        sink.entries(program, entry, 0, told);
        if done.count == count as usize {
            sink.end_sequence(program, entry);
            sink.end(program, flat);
            return Outcome::Done(done.at);
        }
        let progress = Progress {
            bytes,
            at: done.at,
            index: done.count as u32,
            count: Some(count),
            texts: done.texts,
            has_begun: true,
        };
        self.behind_head((flat, entry), progress, sink)
    }

    /// The first segment by a shortcut, the index behind it, and the length of the sequence, if
    /// that is there; `None`, with nothing done but a reset, if there is no such way.
    #[inline(always)]
    fn shortcut<S: Sink>(
        &mut self,
        kernel: LaneKernel,
        bytes: &'d [u8],
        sink: &mut S,
    ) -> Option<(&'d Flat, usize, Option<u32>)> {
        let (flat, front) = map_front(self.program, self.dictionaries.template(), bytes)?;
        if bytes.len() > self.options.limits.message
            || self.dictionaries.is_noting()
            || !self.lanes.is_regular()
        {
            return None;
        }
        if flat.resets {
            self.dictionaries.reset();
        }
        let columns = &mut self.dictionaries.columns;
        let row = sink.head(&mut self.lanes.row);
        let at = kernel.shortcut(&flat.segment.plan, columns, bytes, front, row);
        if at == 0 {
            return None;
        }
        self.dictionaries.set_template(Some(flat.template));
        let lane = flat.entry.as_ref().map(|entry| entry.length);
        let count = lane.and_then(|lane| length(row, lane));
        Some((flat, at, count))
    }

    /// Decodes a message of a flat template without a shortcut for its first segment. It is not
    /// inlined, to be out of the way of those with one.
    #[inline(never)]
    fn by_no_shortcut<S: Sink>(self, kernel: LaneKernel, bytes: &'d [u8], sink: &mut S) -> Outcome {
        let program = self.program;
        let Some((flat, front)) = head(program, self.dictionaries.template(), bytes) else {
            return Outcome::Refused;
        };
        if bytes.len() > self.options.limits.message
            || self.dictionaries.is_noting()
            || !self.lanes.tries(flat.head)
        {
            return Outcome::Refused;
        }
        if flat.resets {
            self.dictionaries.reset();
        }
        let columns = &mut self.dictionaries.columns;
        let row = sink.head(&mut self.lanes.row);
        let (from, plan) = ((bytes, 0), &flat.segment.plan);
        let Some(at) = kernel.decode(plan, columns, from, front, row) else {
            self.lanes.failed(flat.head);
            return Outcome::Refused;
        };
        let is_whole = row.bits == 0 || !self.options.strict;
        let lane = flat.entry.as_ref().map(|entry| entry.length);
        let count = lane.and_then(|lane| length(row, lane));
        self.dictionaries.set_template(Some(flat.template));
        self.lanes.succeeded(flat.head);
        sink.begin(program, flat, &self.lanes.row);
        let Some(entry) = &flat.entry else {
            if !is_whole {
                return self.failed(r8().in_template(flat.template));
            }
            sink.end(program, flat);
            return Outcome::Done(at);
        };
        self.behind_head((flat, entry), Progress::new(bytes, at, count), sink)
    }

    /// The sequence behind the first segment, or the rest of it; not inlined for the same reason.
    #[inline(never)]
    fn behind_head<S: Sink>(
        mut self,
        (flat, entry): (&'d Flat, &'d Entry),
        mut progress: Progress<'d>,
        sink: &mut S,
    ) -> Outcome {
        let program = self.program;
        match progress.count {
            None => sink.no_sequence(program, entry),
            Some(count) if self.lanes.may_have(flat.head, count) => {
                if !progress.has_begun {
                    sink.begin_sequence(program, entry, count);
                    progress.has_begun = true;
                }
                if self.lanes.tries(entry.segment) {
                    self.entries(entry, count, &mut progress, sink);
                }
                if progress.index < count {
                    return self.go_on(flat, entry, progress, sink);
                }
                sink.end_sequence(program, entry);
            }
            Some(_) => return self.go_on(flat, entry, progress, sink),
        }
        if sink.head(&mut self.lanes.row).bits != 0 && self.options.strict {
            return self.failed(r8().in_template(flat.template));
        }
        sink.end(program, flat);
        Outcome::Done(progress.at)
    }

    /// Decodes entries as long as they are regular.
    #[inline(always)]
    fn entries<S: Sink>(
        &mut self,
        entry: &Entry,
        count: u32,
        progress: &mut Progress<'_>,
        sink: &mut S,
    ) {
        let (columns, shapes) = (&mut self.dictionaries.columns, &mut self.lanes.shapes);
        let Some(kernel) = self.lanes.flat_kernel else {
            return;
        };
        while progress.index < count {
            let left = (count - progress.index) as usize;
            let rows = sink.rows(progress.index as usize, left, &mut self.lanes.batch);
            let wanted = rows.len();
            let (from, plan) = ((progress.bytes, progress.at), &entry.at_hand.plan);
            let done = kernel.entries(plan, columns, shapes, from, rows);
            progress.at = done.at;
            progress.texts += done.texts;
            let told = RowBatch {
                count: done.count,
                scratch: &self.lanes.batch,
            };
            sink.entries(self.program, entry, progress.index, told);
            progress.index += done.count as u32;
            if done.count < wanted {
                return self.lanes.failed(entry.segment);
            }
        }
        self.lanes.succeeded(entry.segment);
    }

    /// Executes the rest of a message in the general way.
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
        let row = sink.head(&mut self.lanes.row);
        let (bits, texts) = (row.bits, flat.segment.texts(row));
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
            failure: &mut self.lanes.failure,
        };
        let visitor = sink.rest(self.program);
        let rest = match progress.has_begun {
            true => {
                let left = progress.index..progress.count.unwrap_or_default();
                run.further_entries(entry.field, left, entry.body, visitor)
            }
            false => run.entries(entry.field, progress.count, entry.body, visitor),
        };
        let at = run.input.at;
        let result = match rest {
            Ok(()) if bits != 0 && strict => Err(r8()),
            result => result,
        };
        if let Err(error) = result {
            self.lanes.failure = Some(error.in_template(flat.template));
            return Outcome::Failed;
        }
        visitor.end_message(&self.program.templates()[flat.template as usize]);
        Outcome::Done(at)
    }

    #[cold]
    fn failed(self, error: CodecError) -> Outcome {
        self.lanes.failure = Some(error);
        Outcome::Failed
    }
}

/// The template that a message is of, and what stands in front of its first segment; `None` if it
/// is not flat, or has another form than usual.
#[inline(always)]
fn head<'p>(program: &'p Program, last: Option<u32>, bytes: &[u8]) -> Option<(&'p Flat, Front)> {
    let word = front_word(bytes);
    let map_bits = map_bits(word)?;
    let map_len = (map_bits / 8) as u8;
    if word & 0x40 == 0 {
        let front = Front {
            len: map_len,
            map_len,
        };
        return Some((program.flat_of(last?)?, front));
    }
    // Behind a map of eight bytes it would not be in the word: then this is the map's first one.
    let id = word.rotate_right(map_bits) as u8;
    if id & 0x80 == 0 {
        return None;
    }
    let front = Front {
        len: map_len + 1,
        map_len,
    };
    Some((program.flat_by_id(id & 0x7f)?, front))
}

/// The stop bits of eight bytes.
const ENDS: u64 = 0x8080_8080_8080_8080;

/// The same, if the map is not in front of anything but an identifier of one byte, and if there are
/// eight bytes.
#[inline(always)]
fn map_front<'p>(
    program: &'p Program,
    last: Option<u32>,
    bytes: &[u8],
) -> Option<(&'p Flat, MapFront)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let ends = word & ENDS;
    let bits = NonZero::new(ends)?.trailing_zeros() + 1;
    let map = word & (ends ^ ends.wrapping_sub(1));
    // The map's last byte is the highest one now. What follows the map is the lowest one; behind
    // one of eight bytes that is its first.
    let turned = word.rotate_right(bits);
    let is_overlong = turned >> 56 == 0x80;
    if word & 0x40 == 0 {
        let has_id = false;
        let is_usual = bits == 8 || !is_overlong;
        let flat = program.flat_of(last?)?;
        return is_usual.then_some((flat, MapFront { map, has_id }));
    }
    let (id, has_id) = (turned as u8, true);
    if id & 0x80 == 0 || is_overlong {
        return None;
    }
    Some((program.flat_by_id(id & 0x7f)?, MapFront { map, has_id }))
}

/// The presence map, which is in front, has more bits than are required.
#[cold]
fn r8() -> CodecError {
    CodecError::new(ErrorCode::R8, 0)
}
