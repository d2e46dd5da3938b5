//! Conversion of decoded messages into samples.

use std::sync::Arc;

use fanfare_fast::Record;

use super::converted::Converted;
use super::fields::ByField;
use super::rows::ByRow;
use super::types::Mapping;
use crate::cdr::CdrError;

/// Makes samples of messages: of the rows that a vector kernel leaves, or of the fields of others.
/// After warm-up nothing is allocated.
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
    /// Converts records without rows.
    by_field: ByField,
}

impl Converter {
    /// Makes a converter for samples of up to `capacity` bytes; a longer one is an error.
    pub fn new(mapping: Arc<Mapping>, capacity: usize) -> Self {
        Self {
            by_row: ByRow::new(&mapping, capacity),
            by_field: ByField::new(Arc::clone(&mapping), capacity),
            mapping,
        }
    }

    /// Returns the types.
    pub const fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Calls `take` with the samples of a message that was decoded with the mapping's program: one,
    /// or for a split message one for each value that it is split by, in the order of the values. A
    /// template without fields has none, and neither has a split message without entries or an
    /// empty record.
    ///
    /// # Errors
    /// [`CdrFault::Full`](crate::cdr::CdrFault::Full) for a sample longer than the capacity; `take`
    /// may have been called with earlier samples of a split message.
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
