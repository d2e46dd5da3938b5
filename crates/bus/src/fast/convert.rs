//! Decoded fields into CDR, as they come out of the decoder.

use std::sync::Arc;

use fanfare_fast::program::{Field, TemplateProgram};
use fanfare_fast::value::IntType;
use fanfare_fast::{Decimal, Visitor};

use super::types::{Mapping, Plan, Put, TemplateType};
use crate::cdr::{CdrBuffer, CdrError};
use crate::types::MAX_DEPTH;

/// A sample made from a message.
#[derive(Debug, Clone, Copy)]
pub struct Converted<'a> {
    /// The type of the template.
    pub template: &'a TemplateType,
    /// For a message that is split: the value it is split by, as a 64-bit pattern.
    pub key: Option<u64>,
    /// The sample, as [`Writer::write`](crate::Writer::write) takes it.
    pub cdr: &'a [u8],
}

/// A [`Visitor`] that writes each field into a sample as it is decoded; no structure and, after
/// warm-up, no allocation is between decoder and sample.
///
/// ```
/// use std::sync::Arc;
/// use fanfare_bus::{cdr::to_json, fast::{Converter, Mapping, TypeOptions}};
/// use fanfare_fast::{Decoder, Program};
///
/// let program = Arc::new(Program::parse(
///     r#"<template name="Quote" id="1">
///            <uInt32 name="SecurityID" id="48"/>
///            <decimal name="Bid" id="132" presence="optional"><delta/></decimal>
///        </template>"#,
/// )?);
/// let mapping = Arc::new(Mapping::new(Arc::clone(&program), &TypeOptions::default())?);
/// let mut converter = Converter::new(mapping, 1024);
/// Decoder::new(program).decode(&[0xc0, 0x81, 0x85, 0xff, 0x87], &mut converter)?;
/// converter.samples(|sample| {
///     let json = to_json(&sample.template.sample, sample.cdr).unwrap();
///     assert_eq!(json, r#"{"present": 1, "SecurityID": 5, "Bid": 0.7}"#);
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Converter {
    mapping: Arc<Mapping>,
    /// The message as one sample; of a split one, the entries stand at multiples of eight.
    out: CdrBuffer,
    /// One part of a split message.
    part: CdrBuffer,
    template: Option<u32>,
    frame: Frame,
    outer: [Frame; MAX_DEPTH],
    depth: usize,
    split: Split,
}

/// The structure being written: where its mask stands (0: it has none), and the bits so far.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    mask_at: usize,
    mask: u64,
}

/// What is known of the sequence along which the message is split.
#[derive(Debug, Default)]
struct Split {
    entries: Vec<Entry>,
    key: u64,
    key_at: usize,
    /// Where the sequence's length stands.
    count_at: usize,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    start: usize,
    end: usize,
}

impl Converter {
    /// A converter for samples of up to `capacity` bytes; a longer one is an error when it comes.
    pub fn new(mapping: Arc<Mapping>, capacity: usize) -> Self {
        Self {
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

    /// The types.
    pub const fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Index of the template of the message decoded last, if it has fields.
    pub const fn template(&self) -> Option<u32> {
        self.template
    }

    /// Gives the samples of the message decoded last: one, or of a split message one for each
    /// value that it is split by, in the order of the values. A template without fields gives
    /// none, and so does a split message without entries.
    ///
    /// # Errors
    /// [`CdrFault::Full`](crate::cdr::CdrFault::Full) for a message longer than the capacity.
    #[inline]
    pub fn samples(&mut self, mut take: impl FnMut(Converted<'_>)) -> Result<(), CdrError> {
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
        let one_key = self.split.entries.windows(2).all(|w| w[0].key == w[1].key);
        match self.split.entries.first() {
            None => return Ok(()),
            // The message as it stands is the sample.
            Some(first) if one_key => {
                let key = first.key;
                self.out
                    .patch(self.split.key_at, key, key_size(template.key));
                let cdr = self.out.finish()?;
                take(Converted {
                    template,
                    key: Some(key),
                    cdr,
                });
                return Ok(());
            }
            Some(_) => {}
        }
        self.out.finish()?;
        self.split
            .entries
            .sort_unstable_by_key(|e| (e.key, e.start));
        let mut rest = &self.split.entries[..];
        while let Some(first) = rest.first() {
            let n = rest.iter().take_while(|e| e.key == first.key).count();
            let (group, after) = rest.split_at(n);
            rest = after;
            let size = key_size(template.key);
            self.split.assemble(group, &self.out, &mut self.part, size);
            take(Converted {
                template,
                key: Some(first.key),
                cdr: self.part.finish()?,
            });
        }
        Ok(())
    }

    #[inline(always)]
    fn plan(&self, field: &Field) -> Option<Plan> {
        self.mapping.plans.get(field.id().index()).copied()
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

    /// The value of an absent field: zeros and nothing.
    fn write_absent(&mut self, field: &Field) {
        let mapping = Arc::clone(&self.mapping);
        self.write_absent_of(&mapping, field);
    }

    fn write_absent_of(&mut self, mapping: &Mapping, field: &Field) {
        let Some(plan) = mapping.plans.get(field.id().index()) else {
            return;
        };
        match plan.put {
            Put::Nothing => {}
            Put::Int(ty) => put_int(&mut self.out, ty, 0),
            Put::Double => self.out.f64(0.0),
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
        if let Put::Int(ty) = plan.put {
            put_int(&mut self.out, ty, bits);
        }
        if plan.is_key {
            self.split.key = bits;
        }
    }
}

impl Split {
    /// Puts a sample together from the head and the entries of one key. Each entry begins with
    /// the mask of its optional fields, at a multiple of eight: its bytes are the same wherever
    /// it stands.
    fn assemble(&self, group: &[Entry], from: &CdrBuffer, to: &mut CdrBuffer, key_size: usize) {
        to.begin();
        to.raw(from.written(crate::cdr::HEADER..self.count_at));
        if let Some(first) = group.first() {
            to.patch(self.key_at, first.key, key_size);
        }
        let count = to.count();
        to.set_count(count, u32::try_from(group.len()).unwrap_or(u32::MAX));
        for entry in group {
            to.align(8);
            to.raw(from.written(entry.start..entry.end));
        }
    }
}

impl Visitor for Converter {
    #[inline]
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.out.begin();
        self.depth = 0;
        self.frame = Frame::default();
        self.split.entries.clear();
        self.template = Some(template.index());
        let mapping = &self.mapping;
        let Some((key, has_mask)) = mapping
            .by_index(template.index())
            .map(|t| (t.key, t.has_mask))
        else {
            self.template = None;
            return;
        };
        if let Put::Int(ty) = key {
            put_int(&mut self.out, ty, 0);
            self.split.key_at = self.out.len() - key_size(key);
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
            let start = self.out.len();
            let (key, end) = (0, start);
            self.split.entries.push(Entry { key, start, end });
        }
        self.enter(plan.has_mask);
    }

    #[inline]
    fn end_entry(&mut self, field: &Field) {
        self.leave();
        let is_split = self.plan(field).is_some_and(|p| p.is_split);
        if is_split && let Some(entry) = self.split.entries.last_mut() {
            entry.key = self.split.key;
            entry.end = self.out.len();
        }
    }
}

#[inline(always)]
fn put_int(out: &mut CdrBuffer, ty: IntType, bits: u64) {
    match ty {
        IntType::Int8 | IntType::UInt8 => out.u8(bits as u8),
        IntType::Int16 | IntType::UInt16 => out.u16(bits as u16),
        IntType::Int32 | IntType::UInt32 => out.u32(bits as u32),
        IntType::Int64 | IntType::UInt64 => out.u64(bits),
    }
}

/// The double nearest to a decimal, by one exactly rounded operation where that is possible:
/// a mantissa below 2^53 and a power of ten that is a double.
#[inline(always)]
fn to_double(value: Decimal) -> f64 {
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
        _ => value.to_f64(),
    }
}

const fn key_size(key: Put) -> usize {
    match key {
        Put::Int(ty) => (ty.bits() / 8) as usize,
        _ => 0,
    }
}
