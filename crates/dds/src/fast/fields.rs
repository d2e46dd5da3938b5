//! Decoded fields into CDR, one by one.

use std::io::Write;
use std::sync::Arc;

use fanfare_fast::program::{Field, TemplateProgram};
use fanfare_fast::{Decimal, Record, Visitor};

use super::converted::Converted;
use super::types::{Mapping, Plan, Put};
use crate::cdr::{CdrBuffer, CdrError};
use crate::types::MAX_DEPTH;

/// A [`Visitor`] that writes each field into a sample of a record, without a structure between and,
/// after warm-up, without an allocation.
#[derive(Debug)]
pub(super) struct ByField {
    mapping: Arc<Mapping>,
    /// A copy of the mapping's plans.
    plans: Box<[Plan]>,
    /// The message as one sample; in a split one, the entries are at multiples of eight.
    out: CdrBuffer,
    /// One part of a split message.
    part: CdrBuffer,
    template: Option<u32>,
    frame: Frame,
    outer: [Frame; MAX_DEPTH],
    depth: usize,
    split: Split,
}

/// The structure being written: the place of its mask (0 without one), and the bits so far.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    mask_at: usize,
    mask: u64,
}

/// The state of the sequence along which the message is split.
#[derive(Debug, Default)]
struct Split {
    runs: Vec<Run>,
    key: u64,
    key_at: usize,
    /// The place of the sequence's length.
    count_at: usize,
    /// The start of the entry being written.
    start: usize,
}

/// Adjacent entries of one key.
#[derive(Debug, Clone, Copy)]
struct Run {
    key: u64,
    entries: u32,
    /// The start of the first one, at a multiple of eight, and the end of the last one.
    start: usize,
    end: usize,
}

impl ByField {
    pub(super) fn new(mapping: Arc<Mapping>, capacity: usize) -> Self {
        Self {
            plans: mapping.plans.clone().into_boxed_slice(),
            mapping,
            out: CdrBuffer::with_capacity(capacity),
            part: CdrBuffer::with_capacity(capacity),
            template: None,
            frame: Frame::default(),
            outer: [Frame::default(); MAX_DEPTH],
            depth: 0,
            split: Split::default(),
        }
    }

    /// Calls `take` with the samples of the message.
    pub(super) fn samples(
        &mut self,
        record: &Record,
        mut take: impl FnMut(Converted<'_>),
    ) -> Result<(), CdrError> {
        self.template = None;
        let mapping = Arc::clone(&self.mapping);
        record.visit(mapping.program(), self);
        let Some(template) = self.template.and_then(|t| self.mapping.by_index(t)) else {
            return Ok(());
        };
        if !template.is_split {
            let cdr = self.out.finish()?;
            take(Converted {
                template,
                key: None,
                cdr,
            });
            return Ok(());
        }
        let size = template.key.size().into();
        match self.split.runs.as_slice() {
            [] => return Ok(()),
            // The whole message is the sample.
            [run] => {
                let key = Some(run.key);
                self.out.patch(self.split.key_at, run.key, size);
                let cdr = self.out.finish()?;
                take(Converted { template, key, cdr });
                return Ok(());
            }
            _ => {}
        }
        self.out.finish()?;
        let runs = &mut self.split.runs;
        if !runs.is_sorted_by(|a, b| a.key < b.key) {
            runs.sort_unstable_by_key(|run| (run.key, run.start));
        }
        for group in self.split.runs.chunk_by(|a, b| a.key == b.key) {
            self.split.assemble(group, &self.out, &mut self.part, size);
            take(Converted {
                template,
                key: group.first().map(|run| run.key),
                cdr: self.part.finish()?,
            });
        }
        Ok(())
    }

    #[inline(always)]
    fn plan(&self, field: &Field) -> Option<Plan> {
        self.plans.get(field.id().index()).copied()
    }

    #[inline(always)]
    fn enter(&mut self, has_mask: bool) {
        if let Some(place) = self.outer.get_mut(self.depth) {
            *place = self.frame;
        }
        self.depth += 1;
        self.open_frame(has_mask);
    }

    #[inline(always)]
    fn open_frame(&mut self, has_mask: bool) {
        self.frame = Frame::default();
        if has_mask {
            self.out.u64(0);
            self.frame.mask_at = self.out.len() - 8;
        }
    }

    #[inline(always)]
    fn close_frame(&mut self) {
        if self.frame.mask_at != 0 {
            self.out.patch_u64(self.frame.mask_at, self.frame.mask);
        }
    }

    #[inline(always)]
    fn leave(&mut self) {
        self.close_frame();
        self.depth = self.depth.saturating_sub(1);
        if let Some(outer) = self.outer.get(self.depth) {
            self.frame = *outer;
        }
    }

    /// Writes the value of an absent field: zeros or nothing.
    #[inline(always)]
    fn write_absent(&mut self, field: &Field) {
        let Some(plan) = self.plan(field) else { return };
        match plan.put {
            Put::Int(_) | Put::Double => self.out.word(0, plan.size.into()),
            Put::Text => self.out.string(b""),
            _ => self.write_absent_group(field),
        }
    }

    #[cold]
    fn write_absent_group(&mut self, field: &Field) {
        let mapping = Arc::clone(&self.mapping);
        self.write_absent_of(&mapping, field);
    }

    fn write_absent_of(&mut self, mapping: &Mapping, field: &Field) {
        let Some(plan) = mapping.plans.get(field.id().index()) else {
            return;
        };
        match plan.put {
            Put::Nothing => {}
            Put::Int(_) | Put::Double => self.out.word(0, plan.size.into()),
            Put::Exact => self.put_exact(Decimal {
                mantissa: 0,
                exponent: 0,
            }),
            Put::Text => self.out.string(b""),
            Put::Octets => self.out.octets(b""),
            Put::Sequence => self.begin_list(plan, 0),
            Put::Group => {
                if plan.has_mask {
                    self.out.u64(0);
                }
                for child in mapping.program().children(field.id()) {
                    self.write_absent_of(mapping, mapping.program().field(*child));
                }
            }
        }
    }

    fn begin_list(&mut self, plan: &Plan, length: u32) {
        self.out.u32(length);
        if plan.is_split {
            self.split.count_at = self.out.len().saturating_sub(4);
        }
    }

    #[inline(always)]
    fn put_exact(&mut self, value: Decimal) {
        self.out.i64(value.mantissa);
        self.out.i32(value.exponent.into());
    }

    #[inline(always)]
    fn put_text(&mut self, field: &Field, value: &[u8]) {
        let Some(plan) = self.plan(field) else { return };
        self.frame.mask |= plan.bit;
        if plan.put == Put::Octets {
            self.out.octets(value);
        } else {
            self.out.string(value);
        }
    }

    #[inline(always)]
    fn put_integer(&mut self, field: &Field, bits: u64) {
        let Some(plan) = self.plan(field) else { return };
        self.frame.mask |= plan.bit;
        self.out.word(bits & plan.fit, plan.size.into());
        if plan.is_key {
            self.split.key = bits;
        }
    }
}

impl Split {
    /// Assembles a sample from the head and the entries of one key. Each entry begins with the mask
    /// of its optional fields, at a multiple of eight: its bytes are the same at every place.
    #[inline(always)]
    fn assemble(&self, group: &[Run], from: &CdrBuffer, to: &mut CdrBuffer, key_size: usize) {
        to.begin();
        to.raw(from.written(crate::cdr::HEADER..self.count_at));
        if let Some(first) = group.first() {
            to.patch(self.key_at, first.key, key_size);
        }
        to.u32(group.iter().map(|run| run.entries).sum());
        for run in group {
            to.align(8);
            to.raw(from.written(run.start..run.end));
        }
    }

    #[inline(always)]
    fn add(&mut self, start: usize, end: usize) {
        let key = self.key;
        match self.runs.last_mut() {
            Some(run) if run.key == key => {
                run.entries += 1;
                run.end = end;
            }
            _ => self.runs.push(Run {
                key,
                entries: 1,
                start,
                end,
            }),
        }
    }
}

impl Visitor for ByField {
    #[inline]
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.out.begin();
        self.depth = 0;
        self.frame = Frame::default();
        self.split.runs.clear();
        self.template = Some(template.index());
        let mapping = &self.mapping;
        let Some((key, has_mask)) = mapping
            .by_index(template.index())
            .map(|t| (t.key, t.has_mask))
        else {
            self.template = None;
            return;
        };
        if let size @ 1.. = key.size() {
            self.out.word(0, size.into());
            self.split.key_at = self.out.len().saturating_sub(size.into());
        }
        self.open_frame(has_mask);
    }

    #[inline]
    fn end_message(&mut self, _: &TemplateProgram) {
        self.close_frame();
    }

    #[inline]
    fn unsigned(&mut self, field: &Field, value: u64) {
        self.put_integer(field, value);
    }

    #[inline]
    fn signed(&mut self, field: &Field, value: i64) {
        self.put_integer(field, value as u64);
    }

    #[inline]
    fn decimal(&mut self, field: &Field, value: Decimal) {
        let Some(plan) = self.plan(field) else { return };
        self.frame.mask |= plan.bit;
        if plan.put == Put::Exact {
            self.put_exact(value);
        } else {
            self.out.f64(to_double(value));
        }
    }

    #[inline]
    fn ascii(&mut self, field: &Field, value: &[u8]) {
        self.put_text(field, value);
    }

    #[inline]
    fn unicode(&mut self, field: &Field, value: &[u8]) {
        self.put_text(field, value);
    }

    #[inline]
    fn bytes(&mut self, field: &Field, value: &[u8]) {
        self.put_text(field, value);
    }

    #[inline]
    fn absent(&mut self, field: &Field) {
        self.write_absent(field);
    }

    #[inline]
    fn begin_group(&mut self, field: &Field) {
        let Some(plan) = self.plan(field) else { return };
        self.frame.mask |= plan.bit;
        self.enter(plan.has_mask);
    }

    #[inline]
    fn end_group(&mut self, _: &Field) {
        self.leave();
    }

    #[inline]
    fn begin_sequence(&mut self, field: &Field, length: u32) {
        let Some(plan) = self.plan(field) else { return };
        self.frame.mask |= plan.bit;
        self.begin_list(&plan, length);
    }

    #[inline]
    fn begin_entry(&mut self, field: &Field, _: u32) {
        let Some(plan) = self.plan(field) else { return };
        if plan.is_split {
            self.out.align(8);
            self.split.start = self.out.len();
        }
        self.enter(plan.has_mask);
    }

    #[inline]
    fn end_entry(&mut self, field: &Field) {
        self.leave();
        if self.plan(field).is_some_and(|p| p.is_split) {
            self.split.add(self.split.start, self.out.len());
        }
    }
}

/// Returns the double nearest to a decimal, by one exactly rounded operation where that is
/// possible: for a mantissa below 2^53 and a power of ten that is a double.
#[inline(always)]
pub(super) fn to_double(value: Decimal) -> f64 {
    const EXACT: [f64; 23] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ];
    if value.exponent == 0 {
        return value.mantissa as f64;
    }
    let exact = value.mantissa.unsigned_abs() < 1 << 53;
    match EXACT.get(usize::from(value.exponent.unsigned_abs())) {
        Some(power) if exact && value.exponent < 0 => value.mantissa as f64 / power,
        Some(power) if exact => value.mantissa as f64 * power,
        _ => far_to_double(value),
    }
}

/// Returns the nearest double for all other decimals, by parsing their text.
#[cold]
fn far_to_double(value: Decimal) -> f64 {
    // The longest mantissa has 20 characters, the longest exponent 4.
    let mut text = [0_u8; 32];
    let mut rest = &mut text[..];
    let written = write!(rest, "{}e{}", value.mantissa, value.exponent).map(|()| rest.len());
    let length = written.map_or(0, |left| text.len() - left);
    let text = str::from_utf8(text.get(..length).unwrap_or_default());
    text.unwrap_or_default().parse().unwrap_or(f64::NAN)
}
