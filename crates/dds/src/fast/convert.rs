//! Decoded messages into samples.

use std::sync::Arc;

use fanfare_fast::{CodecError, Decoder, Record, Visitor};

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

/// Makes samples of messages: of the rows that a vector kernel leaves, or of the fields as they
/// come out of the decoder. After warm-up nothing is allocated on the way.
///
/// ```
/// use std::sync::Arc;
/// use fanfare_dds::{cdr::to_json, fast::{Converter, Mapping, TypeOptions}};
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
/// converter.decode(&mut Decoder::new(program), &[0xc0, 0x81, 0x85, 0xff, 0x87])?;
/// converter.samples(|sample| {
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

    /// Decodes the message at the front of `bytes`; the number of bytes that it takes. The decoder
    /// must be one of the mapping's program.
    ///
    /// # Errors
    /// As [`Decoder::decode`]; there are then no samples.
    #[inline]
    pub fn decode(&mut self, decoder: &mut Decoder, bytes: &[u8]) -> Result<usize, CodecError> {
        let decoded = decoder.decode_rows(bytes, &mut self.by_row.record, &mut self.by_field);
        if decoded.is_err() {
            self.by_field.forget();
        }
        decoded
    }

    /// Gives the samples of a message that somebody else decoded, with the mapping's program, as
    /// [`samples`](Self::samples) does.
    ///
    /// # Errors
    /// As [`samples`](Self::samples).
    pub fn samples_of(
        &mut self,
        record: &mut Record,
        mut take: impl FnMut(Converted<'_>),
    ) -> Result<(), CdrError> {
        if record.rows().is_none() {
            record.visit(self.mapping.program(), &mut self.by_field);
            self.by_row.record.clear();
            return self.by_field.samples(take);
        }
        std::mem::swap(&mut self.by_row.record, record);
        let made = self.by_row.samples(&self.mapping, &mut take);
        std::mem::swap(&mut self.by_row.record, record);
        made.map(|_| ())
    }

    /// A visitor that takes the next message field by field, for who decodes for others as well.
    pub fn by_field(&mut self) -> &mut impl Visitor {
        self.by_row.record.clear();
        &mut self.by_field
    }

    /// Index of the template of the message decoded last, if it has fields.
    #[inline]
    pub fn template(&self) -> Option<u32> {
        self.by_row.template().or(self.by_field.template())
    }

    /// Gives the samples of the message decoded last: one, or of a split message one for each
    /// value that it is split by, in the order of the values. A template without fields gives
    /// none, and so does a split message without entries.
    ///
    /// # Errors
    /// [`CdrFault::Full`](crate::cdr::CdrFault::Full) for a sample longer than the capacity;
    /// those of a split message that are in front of it may have been given.
    #[inline]
    pub fn samples(&mut self, mut take: impl FnMut(Converted<'_>)) -> Result<(), CdrError> {
        if self.by_row.samples(&self.mapping, &mut take)? {
            return Ok(());
        }
        self.by_field.samples(take)
    }
}
