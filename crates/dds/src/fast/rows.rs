//! Conversion of messages held in rows into samples.

use std::ops::Range;

use fanfare_fast::Rows;
use fanfare_fast::program::{FieldId, Reading, TemplateProgram};

use super::converted::Converted;
use super::members::{Members, Start};
use super::types::Mapping;
use crate::cdr::{CdrBuffer, CdrError, Pen};

/// Makes samples of messages that are held in rows.
#[derive(Debug)]
pub(super) struct ByRow {
    /// The templates, by index.
    templates: Box<[Option<Template>]>,
    out: CdrBuffer,
    runs: Vec<Run>,
}

/// The way in which the rows of a template are written.
#[derive(Debug)]
struct Template {
    has_mask: bool,
    fields: Members,
    sequence: Option<Sequence>,
    key_size: usize,
}

#[derive(Debug)]
struct Sequence {
    /// Its bit in the mask of the message.
    bit: u64,
    has_mask: bool,
    fields: Members,
    /// The place of the value by which messages are split.
    key: Option<Key>,
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Lane(u8),
    Always(u64),
}

/// Adjacent entries of one key.
#[derive(Debug, Clone, Copy)]
struct Run {
    key: u64,
    start: usize,
    end: usize,
}

impl ByRow {
    pub(super) fn new(mapping: &Mapping, capacity: usize) -> Self {
        let templates = mapping.program().templates().iter();
        Self {
            templates: templates.map(|t| Template::new(mapping, t)).collect(),
            out: CdrBuffer::with_capacity(capacity),
            runs: Vec::new(),
        }
    }

    /// Calls `take` with the samples of the message.
    #[inline]
    pub(super) fn samples(
        &mut self,
        mapping: &Mapping,
        rows: &Rows<'_>,
        mut take: impl FnMut(Converted<'_>),
    ) -> Result<(), CdrError> {
        let index = rows.template_index();
        let (Some(Some(way)), Some(template)) =
            (self.templates.get(index as usize), mapping.by_index(index))
        else {
            return Ok(());
        };
        let (out, runs) = (&mut self.out, &mut self.runs);
        match way.sequence.as_ref().and_then(|s| Some((s, s.key?))) {
            Some((sequence, key)) => {
                key.find_runs(rows, runs);
                way.split(sequence, rows, runs, out, |key, cdr| {
                    let key = Some(key);
                    take(Converted { template, key, cdr });
                })?;
            }
            None => {
                way.whole(rows, out);
                let (key, cdr) = (None, out.finish()?);
                take(Converted { template, key, cdr });
            }
        }
        Ok(())
    }
}

impl Template {
    /// Makes the conversion of a template; `None` if its messages are not held in rows, or it has
    /// no type.
    fn new(mapping: &Mapping, template: &TemplateProgram) -> Option<Self> {
        let program = mapping.program();
        let index = template.index();
        let t = mapping
            .by_index(index)
            .filter(|_| program.has_rows(index))?;
        let fields = program.template_fields(template);
        let sequence = program.rows_sequence(index);
        let own = fields.iter().filter(|f| Some(**f) != sequence);
        let key_size = usize::from(t.key.size());
        let front = match (key_size, t.has_mask) {
            (size, false) => size,
            (0, true) => 8,
            (_, true) => 16,
        };
        Some(Self {
            has_mask: t.has_mask,
            fields: Members::new(mapping, own, Start::At(front)),
            sequence: sequence.map(|s| Sequence::new(mapping, s)),
            key_size,
        })
    }

    /// Writes the message as one sample.
    fn whole(&self, rows: &Rows<'_>, out: &mut CdrBuffer) {
        out.begin();
        out.with_pen(|pen| {
            self.head(rows, pen);
            if let Some(sequence) = &self.sequence {
                let count = rows.entries().map_or(0, |entries| entries.len());
                pen.word(count as u64, 4);
                sequence.entries(rows, 0..count, pen);
            }
        });
    }

    /// Writes a sample for each key.
    #[inline(always)]
    fn split(
        &self,
        sequence: &Sequence,
        rows: &Rows<'_>,
        runs: &[Run],
        out: &mut CdrBuffer,
        mut take: impl FnMut(u64, &[u8]),
    ) -> Result<(), CdrError> {
        let mut behind_head = None;
        for group in runs.chunk_by(|a, b| a.key == b.key) {
            let key = group.first().map_or(0, |run| run.key);
            let count: usize = group.iter().map(|run| run.end - run.start).sum();
            if behind_head.is_none() {
                out.begin();
            }
            out.with_pen(|pen| {
                match behind_head {
                    Some(at) => pen.go_back(at),
                    None => {
                        self.head(rows, pen);
                        behind_head = Some(pen.at());
                    }
                }
                pen.patch(0, key, self.key_size);
                pen.word(count as u64, 4);
                for run in group {
                    sequence.entries(rows, run.start..run.end, pen);
                }
            });
            take(key, out.finish()?);
        }
        Ok(())
    }

    /// Writes the fields of the message in front of its sequence.
    #[inline(always)]
    fn head(&self, rows: &Rows<'_>, pen: &mut Pen<'_>) {
        if self.key_size > 0 {
            pen.word(0, self.key_size);
        }
        let has_sequence = rows.entries().is_some();
        let bit = self.sequence.as_ref().filter(|_| has_sequence);
        let bit = bit.map_or(0, |sequence| sequence.bit);
        self.fields
            .write(rows.head(), self.has_mask.then_some(bit), pen);
    }
}

impl Sequence {
    fn new(mapping: &Mapping, sequence: FieldId) -> Self {
        let program = mapping.program();
        let plan = &mapping.plans[sequence.index()];
        let fields = program.children(sequence);
        let is_key = |f: &&FieldId| mapping.plans[f.index()].is_key;
        let key = fields.iter().find(is_key).filter(|_| plan.is_split);
        let key = key
            .and_then(|f| program.place(*f))
            .map(|p| match p.reading {
                Reading::ConstantUnsigned(value) => Key::Always(value),
                Reading::ConstantSigned(value) => Key::Always(value as u64),
                _ => Key::Lane(p.lane),
            });
        let start = if plan.has_mask {
            Start::At(8)
        } else {
            Start::Anywhere
        };
        Self {
            bit: plan.bit,
            has_mask: plan.has_mask,
            fields: Members::new(mapping, fields.iter(), start),
            key,
        }
    }

    #[inline(always)]
    fn entries(&self, rows: &Rows<'_>, which: Range<usize>, pen: &mut Pen<'_>) {
        let Some(entries) = rows.entries() else {
            return;
        };
        for row in entries.skip(which.start).take(which.len()) {
            self.fields.write(row, self.has_mask.then_some(0), pen);
        }
    }
}

impl Key {
    /// Finds the runs of entries of one key, in the order of the keys.
    #[inline(always)]
    fn find_runs(self, rows: &Rows<'_>, runs: &mut Vec<Run>) {
        runs.clear();
        let Some(entries) = rows.entries() else {
            return;
        };
        for (start, row) in entries.enumerate() {
            let key = match self {
                Self::Lane(lane) => i64::from(row.value(lane)) as u64,
                Self::Always(value) => value,
            };
            let end = start + 1;
            match runs.last_mut() {
                Some(run) if run.key == key => run.end = end,
                _ => runs.push(Run { key, start, end }),
            }
        }
        if !runs.is_sorted_by(|a, b| a.key < b.key) {
            runs.sort_unstable_by_key(|run| (run.key, run.start));
        }
    }
}
