//! Messages as values: a flat tape that a decoder fills and an encoder reads.

use crate::node::{Content, Node};
use crate::program::{Field, FieldKind, Program, TemplateProgram};
use crate::value::{Decimal, IntType, TextType};
use crate::visitor::Visitor;

/// One message: its fields in the order of the template, absent ones included. A message is a
/// [`Visitor`], so a decoder can fill it. A message that is filled again allocates only where it
/// outgrows all messages before.
///
/// A program can also fill one for an [`Encoder`](crate::Encoder), which refuses what is not in its
/// template. Each group, sequence and entry must be ended. An integer is held as its 64 bits, and
/// the type of the field says whether they are signed: −1 for a uInt64 is 2⁶⁴ − 1.
///
/// Dynamic references of a decoded message are nested no deeper than
/// [`Limits::MAX_REFERENCES`](crate::Limits::MAX_REFERENCES), and an encoder refuses others. A
/// program can fill a message that is nested deeper. [`MessageView::visit`],
/// [`json::write_line`](crate::json::write_line), [`fix::write_body`](crate::fix::write_body) and
/// [`fix::write_message`](crate::fix::write_message) do not refuse it, and take stack for each
/// level: the program must keep within that depth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Message {
    template: Option<u32>,
    /// The fingerprint of the template's program; 0 in an empty message.
    program: u64,
    nodes: Vec<Node>,
    bytes: Vec<u8>,
    /// The nodes whose contents are being added.
    open: Vec<u32>,
}

impl Message {
    /// Returns an empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the message with its names, or `None` if it is empty. `program` must be that of the
    /// decoder that filled the message.
    #[must_use]
    pub fn view<'m>(&'m self, program: &'m Program) -> Option<MessageView<'m>> {
        let template = program.templates().get(self.template? as usize)?;
        Some(MessageView {
            message: self,
            program,
            template,
        })
    }

    /// Returns the index of the template, or `None` if the message is empty.
    #[must_use]
    pub const fn template_index(&self) -> Option<u32> {
        self.template
    }

    /// Returns whether the message is of a template of this program. Returns true for an empty
    /// message.
    #[inline(always)]
    pub(crate) const fn is_of(&self, program: &Program) -> bool {
        self.program == 0 || self.program == program.fingerprint()
    }

    #[inline(always)]
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the bytes of the long texts.
    #[inline(always)]
    pub(crate) fn long_texts(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the contents of a node of the message.
    #[inline(always)]
    pub(crate) fn content<'m>(&'m self, node: &'m Node) -> Content<'m> {
        node.content(&self.bytes)
    }

    /// Returns the number of bytes of memory that the message holds.
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.bytes.capacity()
    }

    /// Clears the message, but keeps its memory.
    pub fn clear(&mut self) {
        self.template = None;
        self.program = 0;
        self.nodes.clear();
        self.bytes.clear();
        self.open.clear();
    }

    #[inline(always)]
    fn open(&mut self, field: &Field, content: Content<'_>) {
        let index = self.nodes.len() as u32;
        self.open.push(index);
        self.nodes.push(Node::open(field.id(), content, index));
    }

    #[inline(always)]
    fn close(&mut self) {
        let end = self.nodes.len() as u32;
        let open = self.open.pop();
        if let Some(node) = open.and_then(|open| self.nodes.get_mut(open as usize)) {
            node.close(end);
        }
    }

    #[inline(always)]
    fn push_text(&mut self, field: &Field, value: &[u8]) {
        let node = Node::short(field.id(), value);
        let node = node.unwrap_or_else(|| self.long(field, value));
        self.nodes.push(node);
    }

    #[inline(never)]
    fn long(&mut self, field: &Field, value: &[u8]) -> Node {
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        Node::long(field.id(), start, value.len() as u32)
    }
}

impl Visitor for Message {
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.clear();
        self.template = Some(template.index());
        self.program = template.program();
    }

    #[inline(always)]
    fn unsigned(&mut self, field: &Field, value: u64) {
        self.nodes.push(Node::int(field.id(), value));
    }

    #[inline(always)]
    fn signed(&mut self, field: &Field, value: i64) {
        self.nodes.push(Node::int(field.id(), value as u64));
    }

    #[inline(always)]
    fn decimal(&mut self, field: &Field, value: Decimal) {
        self.nodes.push(Node::decimal(field.id(), value));
    }

    #[inline(always)]
    fn ascii(&mut self, field: &Field, value: &[u8]) {
        self.push_text(field, value);
    }

    fn unicode(&mut self, field: &Field, value: &[u8]) {
        self.push_text(field, value);
    }

    fn bytes(&mut self, field: &Field, value: &[u8]) {
        self.push_text(field, value);
    }

    #[inline(always)]
    fn absent(&mut self, field: &Field) {
        self.nodes.push(Node::absent(field.id()));
    }

    fn begin_group(&mut self, field: &Field) {
        self.open(field, Content::Group);
    }

    fn end_group(&mut self, _: &Field) {
        self.close();
    }

    fn begin_sequence(&mut self, field: &Field, length: u32) {
        self.open(field, Content::Sequence(length));
    }

    #[inline(always)]
    fn begin_entry(&mut self, field: &Field, _: u32) {
        self.open(field, Content::Entry);
    }

    #[inline(always)]
    fn end_entry(&mut self, _: &Field) {
        self.close();
    }

    fn end_sequence(&mut self, _: &Field) {
        self.close();
    }

    fn begin_template(&mut self, field: &Field, template: &TemplateProgram) {
        self.open(field, Content::Template(template.index()));
    }

    fn end_template(&mut self, _: &Field) {
        self.close();
    }
}

/// A message with the names of its program.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'m> {
    message: &'m Message,
    program: &'m Program,
    template: &'m TemplateProgram,
}

impl<'m> MessageView<'m> {
    /// Returns the template.
    #[must_use]
    pub const fn template(&self) -> &'m TemplateProgram {
        self.template
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> Fields<'m> {
        let (message, program) = (self.message, self.program);
        Fields {
            message,
            program,
            next: 0,
            end: message.nodes.len() as u32,
        }
    }

    /// Returns the first field of this name at the top level, or `None` if the template has none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Value<'m>> {
        self.fields().get(name)
    }

    /// Returns the first field of this tag at the top level, or `None` if the template has none.
    #[must_use]
    pub fn tag(&self, tag: u32) -> Option<Value<'m>> {
        self.fields().tag(tag)
    }

    /// Returns the field at a path like `MDEntries[2].MDEntryPx`, or `None` if there is none.
    /// Entries are counted from 0.
    #[must_use]
    pub fn path(&self, path: &str) -> Option<Value<'m>> {
        self.fields().path(path)
    }
}

impl MessageView<'_> {
    /// Calls a visitor as the [`Decoder`](crate::Decoder) of this message would. Each level of the
    /// message takes stack: see [`Message`] for the depth of one that no decoder has filled.
    pub fn visit<V: Visitor>(&self, visitor: &mut V) {
        visitor.begin_message(self.template());
        visit(self.fields(), visitor);
        visitor.end_message(self.template());
    }
}

/// Calls a visitor for each field, and for the fields inside it.
pub(crate) fn visit<V: Visitor>(fields: Fields<'_>, visitor: &mut V) {
    for (field, value) in fields {
        match value {
            Value::Absent => visitor.absent(field),
            Value::Unsigned(value, _) => visitor.unsigned(field, value),
            Value::Signed(value, _) => visitor.signed(field, value),
            Value::Decimal(value) => visitor.decimal(field, value),
            Value::Ascii(text) => visitor.ascii(field, text),
            Value::Unicode(text) => visitor.unicode(field, text),
            Value::Bytes(bytes) => visitor.bytes(field, bytes),
            Value::Group(inside) => {
                visitor.begin_group(field);
                visit(inside, visitor);
                visitor.end_group(field);
            }
            Value::Sequence(entries) => {
                visitor.begin_sequence(field, entries.len() as u32);
                for (entry, index) in entries.zip(0..) {
                    visitor.begin_entry(field, index);
                    visit(entry, visitor);
                    visitor.end_entry(field);
                }
                visitor.end_sequence(field);
            }
            Value::Template(template, inside) => {
                visitor.begin_template(field, template);
                visit(inside, visitor);
                visitor.end_template(field);
            }
        }
    }
}

/// An iterator over the fields of one level, in the order of the template.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'m> {
    message: &'m Message,
    program: &'m Program,
    next: u32,
    end: u32,
}

impl<'m> Fields<'m> {
    /// Returns the first field of this name.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Value<'m>> {
        self.into_iter()
            .find(|(field, _)| field.name() == name)
            .map(|(_, value)| value)
    }

    /// Returns the first field of this tag.
    #[must_use]
    pub fn tag(self, tag: u32) -> Option<Value<'m>> {
        self.into_iter()
            .find(|(field, _)| field.tag() == Some(tag))
            .map(|(_, value)| value)
    }

    /// Returns the field at a path.
    #[must_use]
    pub fn path(self, path: &str) -> Option<Value<'m>> {
        let (head, rest) = match path.split_once('.') {
            Some((head, rest)) => (head, Some(rest)),
            None => (path, None),
        };
        let (name, index) = match head.strip_suffix(']').and_then(|head| head.split_once('[')) {
            Some((name, index)) => (name, Some(index.parse().ok()?)),
            None => (head, None),
        };
        let fields = match (self.get(name)?, index, rest) {
            (value, None, None) => return Some(value),
            (Value::Sequence(entries), Some(index), _) => entries.get(index)?,
            (Value::Group(fields) | Value::Template(_, fields), None, _) => fields,
            _ => return None,
        };
        match rest {
            Some(rest) => fields.path(rest),
            None => Some(Value::Group(fields)),
        }
    }

    fn value(&self, node: &'m Node, at: u32) -> Value<'m> {
        let inside = Self {
            next: at + 1,
            end: node.end(at),
            ..*self
        };
        match (
            self.message.content(node),
            self.program.field(node.field()).kind(),
        ) {
            (Content::Absent, _) => Value::Absent,
            (Content::Int(bits), FieldKind::Int(ty)) if ty.is_signed() => {
                Value::Signed(bits as i64, ty)
            }
            (Content::Int(bits), FieldKind::Int(ty)) => Value::Unsigned(bits, ty),
            (Content::Int(bits), _) => Value::Unsigned(bits, IntType::UInt64),
            (Content::Decimal(decimal), _) => Value::Decimal(decimal),
            (Content::Text(text), kind) => match kind {
                FieldKind::Text(TextType::Ascii) => Value::Ascii(text),
                FieldKind::Text(TextType::Unicode) => Value::Unicode(text),
                _ => Value::Bytes(text),
            },
            (Content::Group | Content::Entry, _) => Value::Group(inside),
            (Content::Sequence(count), _) => Value::Sequence(Entries { count, inside }),
            (Content::Template(index), _) => match self.program.templates().get(index as usize) {
                Some(template) => Value::Template(template, inside),
                None => Value::Absent,
            },
        }
    }
}

impl<'m> Iterator for Fields<'m> {
    type Item = (&'m Field, Value<'m>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let node = self.message.nodes.get(self.next as usize)?;
        let item = (
            self.program.field(node.field()),
            self.value(node, self.next),
        );
        self.next = node.end(self.next);
        Some(item)
    }
}

/// The value of a field.
#[derive(Debug, Clone, Copy)]
pub enum Value<'m> {
    /// The field is absent.
    Absent,
    /// An unsigned integer.
    Unsigned(u64, IntType),
    /// A signed integer.
    Signed(i64, IntType),
    /// A decimal.
    Decimal(Decimal),
    /// An ASCII string.
    Ascii(&'m [u8]),
    /// A Unicode string: valid UTF-8 from a strict decoder, any bytes from a lenient one.
    Unicode(&'m [u8]),
    /// A byte vector.
    Bytes(&'m [u8]),
    /// A group.
    Group(Fields<'m>),
    /// A sequence.
    Sequence(Entries<'m>),
    /// A dynamic template reference.
    Template(&'m TemplateProgram, Fields<'m>),
}

impl<'m> Value<'m> {
    /// Returns the integer, or `None` if it is negative or the value is no integer.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Unsigned(value, _) => Some(value),
            Self::Signed(value, _) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// Returns the integer, or `None` if it is out of range or the value is no integer.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match *self {
            Self::Unsigned(value, _) => i64::try_from(value).ok(),
            Self::Signed(value, _) => Some(value),
            _ => None,
        }
    }

    /// Returns the decimal, or `None` if the value is no decimal.
    #[must_use]
    pub const fn as_decimal(&self) -> Option<Decimal> {
        match *self {
            Self::Decimal(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the text of a string, or `None` if it is not valid UTF-8 or the value is no string.
    #[must_use]
    pub fn as_str(&self) -> Option<&'m str> {
        match *self {
            Self::Ascii(text) | Self::Unicode(text) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }

    /// Returns the bytes of a string or byte vector.
    #[must_use]
    pub const fn as_bytes(&self) -> Option<&'m [u8]> {
        match *self {
            Self::Ascii(text) | Self::Unicode(text) | Self::Bytes(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the entries, or `None` if the value is no sequence.
    #[must_use]
    pub const fn as_sequence(&self) -> Option<Entries<'m>> {
        match *self {
            Self::Sequence(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns true if the field is absent.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// An iterator over the entries of a sequence, each as its fields.
#[derive(Debug, Clone, Copy)]
pub struct Entries<'m> {
    count: u32,
    inside: Fields<'m>,
}

impl<'m> Entries<'m> {
    /// Returns the entry of this index, from 0.
    #[must_use]
    pub fn get(mut self, index: usize) -> Option<Fields<'m>> {
        self.nth(index)
    }
}

impl<'m> Iterator for Entries<'m> {
    type Item = Fields<'m>;

    fn next(&mut self) -> Option<Fields<'m>> {
        let at = self.inside.next;
        if at >= self.inside.end {
            return None;
        }
        let node = self.inside.message.nodes.get(at as usize)?;
        self.inside.next = node.end(at);
        self.count = self.count.saturating_sub(1);
        Some(Fields {
            next: at + 1,
            end: node.end(at),
            ..self.inside
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count as usize, Some(self.count as usize))
    }
}

impl ExactSizeIterator for Entries<'_> {}
