//! Messages as the rows that a vector kernel writes.

use fanfare_wire::lanes::Row;

use crate::cell::Cell;
use crate::decode::{RowBatch, Scratch, Sink};
use crate::message::{Message, MessageView};
use crate::node::{Content, Node};
use crate::program::lanes::{Entry, Flat};
use crate::program::{FieldId, FieldKind, Program};
use crate::rows::Rows;
use crate::text_ref::TextRef;
use crate::visitor::Visitor;

/// One message in the form in which a decoder has it: the cheapest way to get all its values. A
/// record that is filled again allocates only where it outgrows all messages before.
///
/// A message of one segment, or of one segment and a sequence of such entries, is held as rows of
/// numbers: one row for the fields of the message and one for each entry. Other messages, and those
/// with a value that does not fit into a row, are held as a [`Message`]. In both forms
/// [`Self::get`] reads fields, by numbers that [`Program::find`] looks up once, and [`Self::view`]
/// returns a view with access by name, tag and path. [`Self::rows`] returns the rows themselves.
///
/// ```
/// use fanfare_fast::{Cell, Decoder, Program, Record};
///
/// let program = Program::parse(
///     r#"<template name="Tick" id="7"><uInt32 name="Price" id="44"><copy/></uInt32></template>"#,
/// )?;
/// let price = program.find("Tick", "Price").unwrap();
/// let mut decoder = Decoder::new(program);
/// let mut record = Record::new();
/// decoder.decode_record(&[0xe0, 0x87, 0xaa], &mut record)?;
/// assert_eq!(record.get(decoder.program(), price, 0), Cell::Unsigned(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Record {
    form: Form,
    template: u32,
    /// The fingerprint of the decoder's program; 0 if no decoder filled the record.
    program: u64,
    /// The row of the message, and those of the entries.
    rows: Vec<Row>,
    /// The number of rows in use.
    used: usize,
    /// Whether the sequence is present, and its number of entries once it is complete.
    has_sequence: bool,
    count: u32,
    /// Whether nothing of the message is missing.
    is_complete: bool,
    /// Whether the record is held as rows and in `message` as well.
    is_viewed: bool,
    message: Message,
}

/// The most rows that are added at a time. A sequence may have fewer entries than its length says.
const MORE: usize = 64;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Empty,
    Rows,
    Message,
}

impl Record {
    /// Returns an empty record.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the index of the template, or `None` if the record is empty.
    #[must_use]
    pub fn template_index(&self) -> Option<u32> {
        match self.form {
            Form::Empty => None,
            Form::Rows => Some(self.template),
            Form::Message => self.message.template_index(),
        }
    }

    /// Clears the record, but keeps its memory.
    pub const fn clear(&mut self) {
        self.form = Form::Empty;
        self.is_complete = false;
    }

    /// Returns the value of a field of the message, or of a field of its sequence in the entry of
    /// this index. Fields that are nested deeper are read through [`Self::view`]. The program must
    /// be that of the decoder.
    #[must_use]
    #[inline]
    pub fn get<'r>(&'r self, program: &'r Program, field: FieldId, entry: usize) -> Cell<'r> {
        match self.form {
            Form::Rows => self.in_rows(program, field, entry),
            Form::Message => self.in_message(program, field, entry),
            Form::Empty => Cell::Absent,
        }
    }

    #[inline]
    fn in_rows<'r>(&'r self, program: &'r Program, field: FieldId, entry: usize) -> Cell<'r> {
        let place = program.place(field);
        let row = place.and_then(|place| self.all_rows()?.row(&place, entry));
        match (row, place) {
            (Some(row), Some(place)) => row.cell(program, &place),
            _ => Cell::Absent,
        }
    }

    #[cold]
    fn in_message<'r>(&'r self, program: &'r Program, field: FieldId, entry: usize) -> Cell<'r> {
        let nodes = self.message.nodes();
        let mut within = 0..nodes.len();
        if let Some(parent) = program.field(field).parent() {
            let Some(at) = find(nodes, within, parent) else {
                return Cell::Absent;
            };
            within = at + 1..end(nodes, at);
            if program.field(parent).is_sequence() {
                for _ in 0..entry {
                    within.start = match within.is_empty() {
                        true => within.end,
                        false => end(nodes, within.start),
                    };
                }
                within = match within.is_empty() {
                    true => within,
                    false => within.start + 1..end(nodes, within.start),
                };
            }
        }
        let found = find(nodes, within, field).and_then(|at| nodes.get(at));
        found.map_or(Cell::Absent, |node| self.cell(program, node))
    }

    fn cell<'r>(&'r self, program: &Program, node: &'r Node) -> Cell<'r> {
        match self.message.content(node) {
            Content::Absent => Cell::Absent,
            Content::Int(bits) => match program.field(node.field()).kind() {
                FieldKind::Int(ty) if ty.is_signed() => Cell::Signed(bits as i64),
                _ => Cell::Unsigned(bits),
            },
            Content::Decimal(decimal) => Cell::Decimal(decimal),
            Content::Text(text) => Cell::Text(TextRef::long(text)),
            Content::Sequence(count) => Cell::Sequence(count),
            Content::Group | Content::Entry | Content::Template(_) => Cell::Group,
        }
    }

    /// Returns the message with its names, tags and paths, or `None` if it is empty. The first call
    /// for a message in rows makes it a [`Message`] as well, which takes longer than decoding it.
    pub fn view<'r>(&'r mut self, program: &'r Program) -> Option<MessageView<'r>> {
        if self.form == Form::Empty {
            return None;
        }
        if self.form == Form::Rows && !self.is_viewed {
            self.fill_message(program);
            self.is_viewed = true;
        }
        self.message.view(program)
    }

    /// Calls a visitor as the [`Decoder`](crate::Decoder) of this message would. An empty record
    /// makes no call. `program` must be the decoder's.
    pub fn visit<V: Visitor>(&self, program: &Program, visitor: &mut V) {
        if let Some(rows) = self.rows() {
            rows.write(program, visitor);
            visitor.end_message(&program.templates()[self.template as usize]);
        } else if let Some(view) = self
            .message
            .view(program)
            .filter(|_| self.form == Form::Message)
        {
            view.visit(visitor);
        }
    }

    fn fill_message(&mut self, program: &Program) {
        let mut message = std::mem::take(&mut self.message);
        if let Some(rows) = self.all_rows() {
            rows.write(program, &mut message);
        }
        self.message = message;
    }

    /// Returns the rows, if the record is held as rows and nothing of the message is missing. They
    /// can be read without a call for each field.
    #[inline]
    #[must_use]
    pub fn rows(&self) -> Option<Rows<'_>> {
        self.all_rows().filter(|rows| rows.is_whole)
    }

    /// Returns the rows, if the record is held as rows, whether the message is complete or not.
    #[inline(always)]
    pub(crate) fn all_rows(&self) -> Option<Rows<'_>> {
        let rows = self.rows.get(..self.used)?;
        let entries = self.has_sequence.then_some(self.count);
        (self.form == Form::Rows).then_some(Rows {
            template: self.template,
            rows,
            entries,
            is_whole: self.is_complete,
        })
    }

    /// Returns the nodes and the bytes of the long texts, if the record is held as a message.
    #[inline(always)]
    pub(crate) fn as_nodes(&self) -> Option<(&[Node], &[u8])> {
        let is_message = self.form == Form::Message;
        is_message.then(|| (self.message.nodes(), self.message.long_texts()))
    }

    /// Returns whether the record was decoded with the templates of this program. Returns true for
    /// a record that no decoder filled.
    #[inline(always)]
    pub(crate) const fn is_of(&self, program: &Program) -> bool {
        self.program == 0 || self.program == program.fingerprint()
    }

    /// Returns whether the record holds a message of which nothing is missing.
    #[inline(always)]
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_complete
    }

    /// Returns the message of a record that is not held in rows.
    pub(crate) const fn message(&self) -> &Message {
        &self.message
    }

    /// Makes the record hold a message that is not complete, and returns it to be filled field by
    /// field.
    pub(crate) fn as_message(&mut self, program: &Program) -> &mut Message {
        self.form = Form::Message;
        self.is_complete = false;
        self.program = program.fingerprint();
        &mut self.message
    }
}

/// Returns the node of a field among siblings.
fn find(nodes: &[Node], within: std::ops::Range<usize>, field: FieldId) -> Option<usize> {
    let mut at = within.start;
    while at < within.end {
        let node = nodes.get(at)?;
        if node.field() == field && !node.is_entry() {
            return Some(at);
        }
        at = end(nodes, at);
    }
    None
}

/// Returns the index of the node after the contents of the node at `at`.
fn end(nodes: &[Node], at: usize) -> usize {
    let node = nodes.get(at);
    node.map_or(at + 1, |node| node.end(at as u32) as usize)
}

impl From<Message> for Record {
    fn from(message: Message) -> Self {
        Self {
            form: Form::Message,
            is_complete: true,
            message,
            ..Self::default()
        }
    }
}

impl Sink for Record {
    type Rest = Message;

    #[inline(always)]
    fn head<'r>(&'r mut self, _: &'r mut Row) -> &'r mut Row {
        if self.rows.is_empty() {
            self.grow(1);
        }
        &mut self.rows[0]
    }

    #[inline(always)]
    fn rows<'r>(&'r mut self, done: usize, left: usize, _: &'r mut Scratch) -> &'r mut [Row] {
        let end = 1 + done + left.min(MORE);
        if end > self.rows.len() {
            self.grow(end);
        }
        &mut self.rows[1 + done..end]
    }

    #[inline(always)]
    fn begin(&mut self, program: &Program, flat: &Flat, _: &Row) {
        self.begin_rows(program.fingerprint(), flat.template);
    }

    #[inline(always)]
    fn no_sequence(&mut self, _: &Program, _: &Entry) {}

    #[inline(always)]
    fn begin_sequence(&mut self, _: &Program, _: &Entry, count: u32) {
        self.set_sequence(count);
    }

    #[inline(always)]
    fn entries(&mut self, _: &Program, _: &Entry, _: u32, told: RowBatch<'_>) {
        self.used += told.count;
    }

    #[inline(always)]
    fn end_sequence(&mut self, _: &Program, _: &Entry) {}

    #[inline(always)]
    fn end(&mut self, _: &Program, _: &Flat) {
        self.is_complete = true;
    }

    fn rest(&mut self, program: &Program) -> &mut Message {
        self.fill_message(program);
        self.as_message(program)
    }
}

impl Record {
    #[cold]
    fn grow(&mut self, rows: usize) {
        self.rows.resize_with(rows, Row::default);
    }

    /// Begins a message of this template in rows, the first of which is in use.
    #[inline(always)]
    fn begin_rows(&mut self, program: u64, template: u32) {
        self.form = Form::Rows;
        self.is_viewed = false;
        self.program = program;
        self.template = template;
        self.used = 1;
        self.has_sequence = false;
        self.is_complete = false;
    }

    /// Begins a message of this template in rows that the caller fills. The record belongs to no
    /// decoder, and is encoded by the program that filled it.
    #[inline(always)]
    pub(crate) fn fill_rows(&mut self, template: u32) {
        if self.rows.is_empty() {
            self.grow(1);
        }
        self.begin_rows(0, template);
    }

    /// Makes the sequence present, with `count` entries.
    pub(crate) const fn set_sequence(&mut self, count: u32) {
        self.has_sequence = true;
        self.count = count;
    }

    /// Sets the number of rows after the first one, and returns the first row and those after it.
    #[inline(always)]
    pub(crate) fn rows_mut(&mut self, entries: usize) -> Option<(&mut Row, &mut [Row])> {
        let end = entries.checked_add(1)?;
        if end > self.rows.len() {
            self.grow(end);
        }
        self.used = end;
        self.rows.get_mut(..end)?.split_first_mut()
    }

    /// Returns the row of this number.
    #[inline(always)]
    pub(crate) fn row_mut(&mut self, number: usize) -> Option<&mut Row> {
        self.rows.get_mut(number)
    }

    /// Sets whether nothing of the message is missing.
    pub(crate) const fn set_complete(&mut self, is_complete: bool) {
        self.is_complete = is_complete;
    }
}
