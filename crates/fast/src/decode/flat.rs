//! Messages of flat templates: one segment, and then perhaps a sequence whose entries are one
//! segment each. What they need and no more; everything else goes to the general executor, from
//! the place where it was met.

use fanfare_wire::lanes::{Front, LaneKernel, MAX_CHARS, Row};

use super::Options;
use super::input::Input;
use super::lanes::{LaneState, length, map_len, tell};
use super::run::Run;
use crate::dictionary::Dictionaries;
use crate::error::{CodecError, ErrorCode};
use crate::program::lanes::{Entry, Flat};
use crate::program::{Field, Program, TemplateProgram};
use crate::visitor::Visitor;

/// Takes the rows of a message.
pub(crate) trait Sink {
    /// What takes the rest of a message that turns out not to be regular.
    type Rest: Visitor;

    /// Where the row of this number goes: to a place of its own, or to `scratch`.
    fn row<'r>(&'r mut self, number: usize, scratch: &'r mut Row) -> &'r mut Row;

    /// A message begins, with the row that was asked for.
    fn begin(&mut self, program: &Program, flat: &Flat, scratch: &Row);

    /// The sequence behind the first row is absent.
    fn no_sequence(&mut self, field: &Field);

    /// The sequence begins.
    fn begin_sequence(&mut self, field: &Field, count: u32);

    /// The row that was asked for is the next entry.
    fn entry(&mut self, program: &Program, entry: &Entry, index: u32, scratch: &Row);

    fn end_sequence(&mut self, field: &Field);

    fn end(&mut self, template: &TemplateProgram);

    /// Goes on field by field.
    fn rest(&mut self, program: &Program) -> &mut Self::Rest;
}

/// Tells a visitor of the rows.
pub(super) struct Telling<'v, V>(pub(super) &'v mut V);

impl<V: Visitor> Sink for Telling<'_, V> {
    type Rest = V;

    #[inline(always)]
    fn row<'r>(&'r mut self, _: usize, scratch: &'r mut Row) -> &'r mut Row {
        scratch
    }

    #[inline(always)]
    fn begin(&mut self, program: &Program, flat: &Flat, scratch: &Row) {
        self.0
            .begin_message(&program.templates()[flat.template as usize]);
        tell(program, program.segment(flat.head), scratch, self.0);
    }

    #[inline(always)]
    fn no_sequence(&mut self, field: &Field) {
        self.0.absent(field);
    }

    #[inline(always)]
    fn begin_sequence(&mut self, field: &Field, count: u32) {
        self.0.begin_sequence(field, count);
    }

    #[inline(always)]
    fn entry(&mut self, program: &Program, entry: &Entry, index: u32, scratch: &Row) {
        let field = program.field(entry.field);
        self.0.begin_entry(field, index);
        tell(program, program.segment(entry.segment), scratch, self.0);
        self.0.end_entry(field);
    }

    #[inline(always)]
    fn end_sequence(&mut self, field: &Field) {
        self.0.end_sequence(field);
    }

    #[inline(always)]
    fn end(&mut self, template: &TemplateProgram) {
        self.0.end_message(template);
    }

    #[inline(always)]
    fn rest(&mut self, _: &Program) -> &mut V {
        self.0
    }
}

/// How far a message is decoded.
struct Progress<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Presence bits of the message behind the first segment.
    bits: u64,
    /// Entries that are done.
    index: u32,
    count: Option<u32>,
    /// Bytes of strings so far.
    texts: usize,
    /// The sink knows of the sequence.
    has_begun: bool,
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
    pub(super) kernel: LaneKernel,
}

impl<'d> Parts<'d> {
    /// Decodes a message of a flat template.
    #[inline(always)]
    pub(super) fn message<S: Sink>(self, bytes: &'d [u8], sink: &mut S) -> Outcome {
        let program = self.program;
        let Some((flat, front)) = head(program, self.dictionaries.template, bytes) else {
            return Outcome::Refused;
        };
        let head = program.segment(flat.head);
        let limits = &self.options.limits;
        let is_allowed = bytes.len() <= limits.message
            && flat.fields <= limits.fields
            && head.most_texts <= limits.texts
            && !self.dictionaries.is_noting();
        if !is_allowed || !self.lanes.tries(flat.head) {
            return Outcome::Refused;
        }
        if flat.resets {
            self.dictionaries.reset();
        }
        let columns = &mut self.dictionaries.columns;
        let row = sink.row(0, &mut self.lanes.row);
        let Some(at) = self
            .kernel
            .decode(&head.plan, columns, (bytes, 0), front, row)
        else {
            self.lanes.failed(flat.head);
            return Outcome::Refused;
        };
        let (bits, texts) = (row.bits, row.texts as usize * MAX_CHARS);
        let count = head.length.and_then(|lane| length(row, lane));
        self.lanes.succeeded(flat.head);
        self.dictionaries.template = Some(flat.template);
        sink.begin(program, flat, &self.lanes.row);
        if flat.entry.is_none() && (bits == 0 || !self.options.strict) {
            sink.end(&program.templates()[flat.template as usize]);
            return Outcome::Done(at);
        }
        let progress = Progress {
            bytes,
            at,
            bits,
            index: 0,
            count,
            texts: texts + head.constant_texts,
            has_begun: false,
        };
        self.behind_head(flat, progress, sink)
    }

    /// What is behind the first segment: a sequence, or presence bits that nobody uses.
    #[inline(always)]
    fn behind_head<S: Sink>(
        mut self,
        flat: &'d Flat,
        mut progress: Progress<'d>,
        sink: &mut S,
    ) -> Outcome {
        let program = self.program;
        let Some(entry) = &flat.entry else {
            return self.failed(r8(progress.at).in_template(flat.template));
        };
        let Some(count) = progress.count else {
            sink.no_sequence(program.field(entry.field));
            return self.end(flat, &progress, sink);
        };
        let segment = program.segment(entry.segment);
        let limits = &self.options.limits;
        let each = |each: usize| each.saturating_mul(count as usize);
        let fields = each(entry.fields as usize) + flat.fields as usize;
        let texts = each(segment.most_texts) + progress.texts;
        if count > limits.entries || fields > limits.fields as usize || texts > limits.texts {
            return self.go_on(flat, entry, progress, sink);
        }
        sink.begin_sequence(program.field(entry.field), count);
        progress.has_begun = true;
        if self.lanes.tries(entry.segment)
            && let Err(error) = self.entries(entry, count, &mut progress, sink)
        {
            return self.failed(error.in_template(flat.template));
        }
        if progress.index < count {
            return self.go_on(flat, entry, progress, sink);
        }
        sink.end_sequence(program.field(entry.field));
        self.end(flat, &progress, sink)
    }

    /// Decodes entries as long as they are regular.
    #[inline(always)]
    fn entries<S: Sink>(
        &mut self,
        entry: &Entry,
        count: u32,
        progress: &mut Progress<'_>,
        sink: &mut S,
    ) -> Result<(), CodecError> {
        let segment = self.program.segment(entry.segment);
        let bytes = progress.bytes;
        let mut at = progress.at;
        for index in 0..count {
            let rest = bytes.get(at..).unwrap_or_default();
            let row = sink.row(index as usize + 1, &mut self.lanes.row);
            let next = map_len(rest).and_then(|map_len| {
                let len = map_len;
                let front = Front { len, map_len };
                let columns = &mut self.dictionaries.columns;
                self.kernel
                    .decode(&segment.plan, columns, (bytes, at), front, row)
            });
            let Some(next) = next else {
                self.lanes.failed(entry.segment);
                break;
            };
            at = next;
            let bits = row.bits;
            progress.texts += segment.constant_texts + row.texts as usize * MAX_CHARS;
            sink.entry(self.program, entry, index, &self.lanes.row);
            if bits != 0 && self.options.strict {
                return Err(r8(at).in_entry(entry.field, index));
            }
            progress.index = index + 1;
        }
        progress.at = at;
        Ok(())
    }

    /// The end of the message.
    #[inline(always)]
    fn end<S: Sink>(self, flat: &Flat, progress: &Progress<'_>, sink: &mut S) -> Outcome {
        if progress.bits != 0 && self.options.strict {
            return self.failed(r8(progress.at).in_template(flat.template));
        }
        sink.end(&self.program.templates()[flat.template as usize]);
        Outcome::Done(progress.at)
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
        let mut left = limits;
        left.fields -= flat.fields + progress.index * entry.fields;
        left.texts -= progress.texts;
        let mut run = Run {
            program: self.program,
            dictionaries: self.dictionaries,
            scratch: self.scratch,
            input: Input::new(progress.bytes, progress.at, strict, limits.text),
            left,
            template: Some(flat.template),
            kernel: Some(self.kernel),
            lanes: self.lanes,
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
            Ok(()) if progress.bits != 0 && strict => Err(r8(at)),
            result => result,
        };
        if let Err(error) = result {
            run.lanes.failure = Some(error.in_template(flat.template));
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
    let map_len = map_len(bytes)?;
    if bytes.first()? & 0x40 == 0 {
        let front = Front {
            len: map_len,
            map_len,
        };
        return Some((program.flat_of(last?)?, front));
    }
    let id = bytes.get(usize::from(map_len))?;
    if id & 0x80 == 0 {
        return None;
    }
    let front = Front {
        len: map_len + 1,
        map_len,
    };
    Some((program.flat_by_id(id & 0x7f)?, front))
}

#[cold]
fn r8(at: usize) -> CodecError {
    CodecError::new(ErrorCode::R8, at)
}
