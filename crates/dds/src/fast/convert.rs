//! Decoded messages into samples.

use std::sync::Arc;

use fanfare_fast::Record;

use super::fields::ByField;
use super::rows::ByRow;
use super::types::{Mapping, TemplateType};
use crate::cdr::CdrError;

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

impl<'a> Converted<'a> {
    /// Bytes in front of the sample in [`write`](Self::write).
    const HEAD: usize = 16;

    /// The number of bytes that [`write`](Self::write) takes.
    #[must_use]
    pub const fn written_len(&self) -> usize {
        Self::HEAD + self.cdr.len()
    }

    /// Writes all of it into a ring to another thread: template, key and sample. `room` has
    /// [`written_len`](Self::written_len) bytes; less is left as it is.
    pub fn write(&self, room: &mut [u8]) {
        let Some((head, rest)) = room.split_first_chunk_mut::<{ Converted::HEAD }>() else {
            return;
        };
        let has_key = u64::from(self.key.is_some());
        let template = u64::from(self.template.index) | has_key << 32;
        let words = [template, self.key.unwrap_or_default()];
        for (place, word) in head.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        if rest.len() == self.cdr.len() {
            rest.copy_from_slice(self.cdr);
        }
    }

    /// Reads what [`write`](Self::write) wrote, for samples of the same mapping; `None` if it is
    /// something else.
    #[must_use]
    pub fn read(mapping: &'a Mapping, bytes: &'a [u8]) -> Option<Self> {
        let (template, rest) = bytes.split_first_chunk()?;
        let (key, cdr) = rest.split_first_chunk()?;
        let template = u64::from_le_bytes(*template);
        let key = u64::from_le_bytes(*key);
        Some(Self {
            template: mapping.by_index(template as u32)?,
            key: (template >> 32 != 0).then_some(key),
            cdr,
        })
    }
}

/// Makes samples of messages: of the rows that a vector kernel leaves, or of the fields of others.
/// After warm-up nothing is allocated on the way.
///
/// ```
/// use std::sync::Arc;
/// use fanfare_dds::{cdr::to_json, fast::{Converter, Mapping, TypeOptions}};
/// use fanfare_fast::{Decoder, Program, Record};
///
/// let program = Arc::new(Program::parse(
///     r#"<template name="Quote" id="1">
///            <uInt32 name="SecurityID" id="48"/>
///            <decimal name="Bid" id="132" presence="optional"><delta/></decimal>
///        </template>"#,
/// )?);
/// let mapping = Arc::new(Mapping::new(Arc::clone(&program), &TypeOptions::default())?);
/// let mut converter = Converter::new(mapping, 1024);
/// let mut record = Record::new();
/// Decoder::new(program).decode_record(&[0xc0, 0x81, 0x85, 0xff, 0x87], &mut record)?;
/// converter.samples(&record, |sample| {
///     let json = to_json(&sample.template.sample, sample.cdr).unwrap();
///     assert_eq!(json, r#"{"present": 1, "SecurityID": 5, "Bid": 0.7}"#);
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Converter {
    mapping: Arc<Mapping>,
    by_row: ByRow,
    /// Takes what is not held in rows.
    by_field: ByField,
}

impl Converter {
    /// A converter for samples of up to `capacity` bytes; a longer one is an error when it comes.
    pub fn new(mapping: Arc<Mapping>, capacity: usize) -> Self {
        Self {
            by_row: ByRow::new(&mapping, capacity),
            by_field: ByField::new(Arc::clone(&mapping), capacity),
            mapping,
        }
    }

    /// The types.
    pub const fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Calls `take` with the samples of a message that was decoded with the mapping's program:
    /// one, or of a split message one for each value that it is split by, in the order of the
    /// values. A template without fields has none, and so does a split message without entries
    /// and an empty record.
    ///
    /// # Errors
    /// [`CdrFault::Full`](crate::cdr::CdrFault::Full) for a sample longer than the capacity;
    /// `take` may have been called with those of a split message that are in front of it.
    #[inline]
    pub fn samples(
        &mut self,
        record: &Record,
        take: impl FnMut(Converted<'_>),
    ) -> Result<(), CdrError> {
        match record.rows() {
            Some(rows) => self.by_row.samples(&self.mapping, &rows, take),
            None => self.by_field.samples(record, take),
        }
    }
}
