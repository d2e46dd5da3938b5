//! What generated code links ([`crate::codegen`]): decoders into typed structs, encoders from
//! them, and the few types of which those structs consist.
//!
//! Structs are filled in place, message after message: strings, entries and optional groups keep
//! their memory, so that decoding allocates only where a message outgrows all before it.

use std::ops::Deref;
use std::sync::Arc;

use crate::decode::{Decoder, Options};
use crate::encode::Encoder;
use crate::error::{CodecError, TemplateError};
use crate::message::{Fields, Message, Value};
use crate::program::{Field, Program};
use crate::record::Record;
use crate::row_filler::RowFiller;
use crate::rows::{RowRef, Rows};
use crate::value::Decimal;
use crate::visitor::Visitor;

/// The generated messages of a template set: one struct for each template, filled in turn.
pub trait Feed: Visitor + Default {
    /// The document that the structs were generated from.
    const TEMPLATES: &'static str;

    /// The message that was decoded last, by its template.
    type Decoded<'m>
    where
        Self: 'm;

    /// The message that was decoded last; `None` for one of no template of the document.
    fn decoded(&self) -> Option<Self::Decoded<'_>>;

    /// [`Program::layout`] of the templates, as [`Self::read`] takes it for granted; 0 if that
    /// reads nothing.
    const LAYOUT: u64 = 0;

    /// Reads a message from its rows; false, with the message undefined, for one of a template
    /// that it does not read so.
    #[inline]
    fn read(&mut self, rows: &Rows<'_>) -> bool {
        _ = rows;
        false
    }
}

/// A generated struct that can be encoded.
pub trait Typed {
    /// Tells `visitor` of the message of this template with these values, but not of its end. The
    /// program must be that of the document the struct was generated from.
    fn write<V: Visitor>(&self, program: &Program, visitor: &mut V);
}

/// Decodes into generated structs.
#[derive(Debug, Clone)]
pub struct TypedDecoder<F> {
    decoder: Decoder,
    feed: F,
    record: Record,
    /// The feed was generated for rows as this program lays them out.
    reads_rows: bool,
}

impl<F: Feed> TypedDecoder<F> {
    /// A decoder that behaves as told; all previous values are undefined.
    ///
    /// # Errors
    /// Those of [`Program::parse`], if the document is not valid for this version.
    pub fn new(options: Options) -> Result<Self, TemplateError> {
        let program = Program::parse(F::TEMPLATES)?;
        let reads_rows = F::LAYOUT != 0 && F::LAYOUT == program.layout();
        Ok(Self {
            decoder: Decoder::with_options(program, options),
            feed: F::default(),
            record: Record::new(),
            reads_rows,
        })
    }

    /// The program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.decoder.program()
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        self.decoder.reset();
    }

    /// Decodes one message at the front of `bytes`; its length, and the struct that holds it
    /// until the next call (`None` for a Reset that the document does not declare).
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    #[inline]
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(usize, Option<F::Decoded<'_>>), CodecError> {
        if !self.reads_rows {
            let len = self.decoder.decode(bytes, &mut self.feed)?;
            return Ok((len, self.feed.decoded()));
        }
        let Self {
            decoder,
            feed,
            record,
            ..
        } = self;
        let len = decoder.decode_rows(bytes, record, feed)?;
        if let Some(rows) = record.rows()
            && !feed.read(&rows)
        {
            rows.write(decoder.program(), feed);
        }
        Ok((len, feed.decoded()))
    }
}

/// Encodes generated structs: by way of the rows of a record, where a message fits into them, and
/// else of a [`Message`].
#[derive(Debug, Clone)]
pub struct TypedEncoder {
    encoder: Encoder,
    record: Record,
    message: Message,
}

impl TypedEncoder {
    /// An encoder for the structs of `F` that behaves as told.
    ///
    /// # Errors
    /// Those of [`Program::parse`], if the document is not valid for this version.
    pub fn new<F: Feed>(options: Options) -> Result<Self, TemplateError> {
        let program = Program::parse(F::TEMPLATES)?;
        Ok(Self {
            encoder: Encoder::with_options(program, options),
            record: Record::new(),
            message: Message::new(),
        })
    }

    /// The program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.encoder.program()
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        self.encoder.reset();
    }

    /// Appends one message to `out`; the number of bytes.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode(&mut self, message: &impl Typed, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        if self.encoder.has_lanes() {
            let program = self.encoder.program();
            let mut filler = RowFiller::new(program, &mut self.record);
            message.write(program, &mut filler);
            if filler.finish() {
                return self.encoder.encode_record(&self.record, out);
            }
        }
        message.write(self.encoder.program(), &mut self.message);
        self.encoder.encode(&self.message, out)
    }
}

/// A string or byte vector that keeps its memory when it is set again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text, if it is valid UTF-8, as strings from a strict decoder are.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Sets it to the characters of a row's value ([`crate::RowRef::chars`]).
    #[inline]
    pub fn set_packed(&mut self, value: i32) {
        // All four are copied, which takes one instruction, and then cut.
        let (chars, len) = RowRef::chars(value);
        self.0.clear();
        self.0.extend_from_slice(&chars);
        self.0.truncate(len);
    }

    /// Sets it to a copy of `value`.
    #[inline]
    pub fn set(&mut self, value: &[u8]) {
        self.0.clear();
        self.0.extend_from_slice(value);
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// An optional value that keeps its memory while it is absent.
#[derive(Debug, Clone, Default)]
pub struct Optional<T> {
    is_present: bool,
    value: T,
}

impl<T> Optional<T> {
    /// The value, if it is there.
    pub fn get(&self) -> Option<&T> {
        self.is_present.then_some(&self.value)
    }

    /// Makes it present; the value is what was left in it.
    #[inline]
    pub fn insert(&mut self) -> &mut T {
        self.is_present = true;
        &mut self.value
    }

    /// Makes it absent.
    #[inline]
    pub fn clear(&mut self) {
        self.is_present = false;
    }
}

impl Optional<Text> {
    /// Sets it to the characters of a row's value, or makes it absent.
    #[inline]
    pub fn read(&mut self, is_present: bool, value: i32) {
        self.is_present = is_present;
        if is_present {
            self.value.set_packed(value);
        }
    }
}

impl<T: PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// The entries of a sequence; those beyond its length keep their memory.
#[derive(Debug, Clone)]
pub struct Entries<T> {
    entries: Vec<T>,
    len: usize,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Default> Entries<T> {
    /// Adds an entry; its values are what was left in it.
    #[inline]
    pub fn add(&mut self) -> &mut T {
        if self.len == self.entries.len() {
            self.entries.push(T::default());
        }
        self.len += 1;
        &mut self.entries[self.len - 1]
    }

    /// Removes all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The entry that was added last.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.entries[..self.len].last_mut()
    }
}

impl<T> Deref for Entries<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.entries[..self.len]
    }
}

impl<T: PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

/// Tells `visitor` of an optional unsigned integer.
#[inline]
pub fn unsigned<V: Visitor>(visitor: &mut V, field: &Field, value: Option<impl Into<u64>>) {
    match value {
        Some(value) => visitor.unsigned(field, value.into()),
        None => visitor.absent(field),
    }
}

/// Tells `visitor` of an optional signed integer.
#[inline]
pub fn signed<V: Visitor>(visitor: &mut V, field: &Field, value: Option<impl Into<i64>>) {
    match value {
        Some(value) => visitor.signed(field, value.into()),
        None => visitor.absent(field),
    }
}

/// Tells `visitor` of an optional decimal.
#[inline]
pub fn decimal<V: Visitor>(visitor: &mut V, field: &Field, value: Option<Decimal>) {
    match value {
        Some(value) => visitor.decimal(field, value),
        None => visitor.absent(field),
    }
}

/// Tells `visitor` of an optional string or byte vector.
#[inline]
pub fn text<V: Visitor>(visitor: &mut V, field: &Field, value: &Optional<Text>) {
    match value.get() {
        // A field tells strings and byte vectors apart.
        Some(value) => visitor.bytes(field, value),
        None => visitor.absent(field),
    }
}

/// Tells `visitor` of a group whose fields `write` tells; of an optional one by its absence.
#[inline]
pub fn group<T, V: Visitor>(
    visitor: &mut V,
    field: &Field,
    value: Option<&T>,
    write: impl Fn(&T, &mut V),
) {
    let Some(value) = value else {
        return visitor.absent(field);
    };
    visitor.begin_group(field);
    write(value, visitor);
    visitor.end_group(field);
}

/// Tells `visitor` of a sequence whose entries `write` tells.
#[inline]
pub fn sequence<T, V: Visitor>(
    visitor: &mut V,
    field: &Field,
    value: Option<&Entries<T>>,
    write: impl Fn(&T, &mut V),
) {
    let Some(entries) = value else {
        return visitor.absent(field);
    };
    visitor.begin_sequence(field, entries.len() as u32);
    for (index, entry) in entries.iter().enumerate() {
        visitor.begin_entry(field, index as u32);
        write(entry, visitor);
        visitor.end_entry(field);
    }
    visitor.end_sequence(field);
}

/// The message inside a dynamic template reference: of any template, so without a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dynamic(pub Message);

impl Dynamic {
    /// Adds it to `visitor` as the contents of `field`.
    pub fn write<V: Visitor>(&self, program: &Program, field: &Field, visitor: &mut V) {
        if let Some(view) = self.0.view(program) {
            visitor.begin_template(field, view.template());
            replay(view.fields(), visitor);
            visitor.end_template(field);
        }
    }
}

/// Tells a visitor of fields again.
pub(crate) fn replay<V: Visitor>(fields: Fields<'_>, visitor: &mut V) {
    for (field, value) in fields {
        match value {
            Value::Absent => visitor.absent(field),
            Value::Unsigned(value, _) => visitor.unsigned(field, value),
            Value::Signed(value, _) => visitor.signed(field, value),
            Value::Decimal(value) => visitor.decimal(field, value),
            Value::Ascii(text) => visitor.ascii(field, text),
            Value::Unicode(text) => visitor.unicode(field, text),
            Value::Bytes(bytes) => visitor.bytes(field, bytes),
            Value::Group(inner) => {
                visitor.begin_group(field);
                replay(inner, visitor);
                visitor.end_group(field);
            }
            Value::Sequence(entries) => {
                visitor.begin_sequence(field, entries.len() as u32);
                for (index, entry) in entries.enumerate() {
                    visitor.begin_entry(field, index as u32);
                    replay(entry, visitor);
                    visitor.end_entry(field);
                }
                visitor.end_sequence(field);
            }
            Value::Template(template, inner) => {
                visitor.begin_template(field, template);
                replay(inner, visitor);
                visitor.end_template(field);
            }
        }
    }
}
