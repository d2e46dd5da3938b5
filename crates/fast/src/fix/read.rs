//! FIX messages to FAST messages.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use fanfare_wire::{Decimal, int};

use crate::error::CodecError;
use crate::message::{Fields, Message, MessageView, Value};
use crate::program::{Field, FieldId, FieldKind, Op, Program, TemplateProgram};
use crate::source::{Scalar, Source};
use crate::template::OperatorKind;

use super::write::{MSG_TYPE, write_body};

/// The tags of BeginString, BodyLength and CheckSum.
const FRAME: [u32; 3] = [8, 9, 10];

/// The reason why fields are no message of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixError {
    /// The field at this offset is not `tag=value` with a positive number as its tag.
    Syntax(usize),
    /// The repeating group with this count field does not have that number of entries.
    Count(u32),
    /// The fields after this count field are that number of entries in two ways.
    Ambiguous(u32),
    /// A value does not fit its field.
    Value(CodecError),
    /// No template matches the message.
    NoTemplate,
    /// This number of templates match the message, which has no MsgType(35) that tells them apart.
    Templates(usize),
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(at) => write!(f, "no tag=value at byte {at}"),
            Self::Count(tag) => write!(f, "wrong number of entries after field {tag}"),
            Self::Ambiguous(tag) => write!(f, "two ways to cut the entries after field {tag}"),
            Self::Value(error) => error.fmt(f),
            Self::NoTemplate => write!(f, "no template has this MsgType(35) and these fields"),
            Self::Templates(count) => write!(f, "{count} templates have exactly these fields"),
        }
    }
}

impl std::error::Error for FixError {}

/// Splits `tag=value` fields, each followed by SOH.
///
/// # Errors
/// [`FixError::Syntax`].
pub fn split_fields(bytes: &[u8]) -> Result<Vec<(u32, &[u8])>, FixError> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = rest
            .iter()
            .position(|&byte| byte == 1)
            .unwrap_or(rest.len());
        let field = rest[..end]
            .iter()
            .position(|&byte| byte == b'=')
            .and_then(|equals| {
                let tag = u32::try_from(int::parse_u64(&rest[..equals])?).ok()?;
                (tag != 0).then_some((tag, &rest[equals + 1..end]))
            });
        fields.push(field.ok_or(FixError::Syntax(at))?);
        at += end + 1;
    }
    Ok(fields)
}

/// The tags of the fields of templates.
#[derive(Debug, Clone, Default)]
pub struct KnownTags(HashSet<u32>);

impl KnownTags {
    /// Returns the tags of all templates of a program.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self(program.fields().iter().filter_map(Field::tag).collect())
    }

    /// Returns the tags of a message that no template has, as often as they occur. [`read_message`]
    /// leaves such fields out. BeginString(8), BodyLength(9) and CheckSum(10), which frame a
    /// message, are not among them.
    pub fn unknown<'f>(&'f self, fields: &'f [(u32, &[u8])]) -> impl Iterator<Item = u32> + 'f {
        let tags = fields.iter().map(|(tag, _)| *tag);
        tags.filter(|tag| !FRAME.contains(tag) && !self.0.contains(tag))
    }
}

/// Returns the templates for messages of a MsgType(35): those that have it as a constant, at the
/// top level or in a group.
pub fn templates_of<'p>(
    program: &'p Program,
    msg_type: &'p [u8],
) -> impl Iterator<Item = &'p TemplateProgram> {
    let templates = program.templates().iter();
    templates.filter(move |template| is_of(program, program.template_fields(template), msg_type))
}

/// Returns whether one of these fields has this MsgType(35) as a constant.
fn is_of(program: &Program, fields: &[FieldId], msg_type: &[u8]) -> bool {
    fields.iter().any(|&id| match program.op(id) {
        Op::Group { .. } => is_of(program, program.children(id), msg_type),
        Op::Text(op) if program.field(id).tag() == Some(MSG_TYPE) => {
            let initial = op.initial.map(|text| program.text(text));
            op.operator == OperatorKind::Constant && initial == Some(msg_type)
        }
        _ => false,
    })
}

/// Makes `message` the message of these fields, by the template that has their MsgType(35) as a
/// constant. Of several such templates, it is the first with just these fields, or else the first
/// that takes them. If no template has the MsgType, or the fields have none, it is the only
/// template with just these fields. The fields 8, 9 and 10, which frame a message, do not count.
/// Fields that the template does not have are left out; [`KnownTags`] finds those that no template
/// has.
///
/// # Errors
/// A [`FixError`]. `message` must then not be used.
pub fn read_message(
    program: &Program,
    fields: &[(u32, &[u8])],
    message: &mut Message,
) -> Result<(), FixError> {
    let msg_type = fields.iter().find(|(tag, _)| *tag == MSG_TYPE);
    let typed: Vec<_> = match msg_type {
        Some((_, msg_type)) => templates_of(program, msg_type).collect(),
        None => Vec::new(),
    };
    if let [template] = typed[..] {
        // Whether or not it has all fields.
        return read_fields(program, template, fields, message);
    }
    let all = program.templates().iter().collect();
    let candidates = if typed.is_empty() { &all } else { &typed };
    let mut fitting = candidates.iter().filter(|template| {
        let filled = fill(program, template, fields, Constants::Own, message);
        filled.is_ok()
            && message
                .view(program)
                .is_some_and(|view| has_just(view, fields))
    });
    if let Some(template) = fitting.next() {
        let others = if typed.is_empty() { fitting.count() } else { 0 };
        if others > 0 {
            return Err(FixError::Templates(others + 1));
        }
        return read_fields(program, template, fields, message);
    }
    let mut error = FixError::NoTemplate;
    for template in typed {
        match read_fields(program, template, fields, message) {
            Ok(()) => return Ok(()),
            Err(why) => error = why,
        }
    }
    Err(error)
}

/// Returns whether a message lacks nothing and is written with the same fields, in any order.
fn has_just(message: MessageView<'_>, fields: &[(u32, &[u8])]) -> bool {
    let mut body = Vec::new();
    if !is_complete(message.fields()) || write_body(message, &mut body).is_err() {
        return false;
    }
    let mut written = split_fields(&body).unwrap_or_default();
    let mut fields = fields.to_vec();
    fields.retain(|(tag, _)| !FRAME.contains(tag));
    written.sort_unstable();
    fields.sort_unstable();
    written == fields
}

fn is_complete(fields: Fields<'_>) -> bool {
    fields.into_iter().all(|(field, value)| match value {
        Value::Absent => field.optional(),
        Value::Group(inside) | Value::Template(_, inside) => is_complete(inside),
        Value::Sequence(entries) => entries.into_iter().all(is_complete),
        _ => true,
    })
}

/// Makes `message` the message of a template with these fields, which are found by tag. Fields that
/// the template does not have are ignored. Fields of entries are never taken for fields of the same
/// tag outside of the group.
///
/// Entries of a repeating group are found by two rules. By the first, an entry begins with the
/// first field of the first entry, or with a field that the entry before it already has. By the
/// second, an entry begins where the fields leave the order of the template. The rule applies whose
/// number of entries is the group's count. If both have this number, but different entries, the
/// fields are ambiguous.
///
/// # Errors
/// A [`FixError`]. `message` must then not be used.
pub fn read_fields(
    program: &Program,
    template: &TemplateProgram,
    fields: &[(u32, &[u8])],
    message: &mut Message,
) -> Result<(), FixError> {
    fill(program, template, fields, Constants::Sent, message)
}

/// Fills a message with the fields that its template has: the others neither end nor begin an entry
/// of a repeating group.
fn fill(
    program: &Program,
    template: &TemplateProgram,
    fields: &[(u32, &[u8])],
    constants: Constants,
    message: &mut Message,
) -> Result<(), FixError> {
    let mut tags = Vec::new();
    add_tags(program, program.template_fields(template), &mut tags);
    let mut fields = fields.to_vec();
    fields.retain(|(tag, _)| tags.contains(tag));
    FixSource::new(program, &fields, constants).fill(template, message)
}

/// Adds the tags of these fields, of those inside them and of counts, in the order of the template.
fn add_tags(program: &Program, fields: &[FieldId], tags: &mut Vec<u32>) {
    for &id in fields {
        tags.extend(program.field(id).tag());
        add_tags(program, program.children(id), tags);
    }
}

/// The source of the values of constants.
#[derive(PartialEq, Eq)]
enum Constants {
    /// The message, even if it is wrong.
    Sent,
    /// The template.
    Own,
}

struct FixSource<'a> {
    program: &'a Program,
    fields: &'a [(u32, &'a [u8])],
    constants: Constants,
    /// The number of scopes that must be open to see each field: a field inside a repeating group
    /// is hidden outside of it. At first the number is zero, and all fields are visible.
    hidden: Vec<usize>,
    /// The open scopes: the message, the entry in it, and so on.
    scopes: Vec<Scope>,
    error: Option<FixError>,
}

/// A message or an entry. A group has no scope: its fields are among those around it.
struct Scope {
    fields: Range<usize>,
    /// The sequences that are present, those in groups included, with their entries.
    sequences: Vec<(FieldId, Vec<Range<usize>>)>,
}

impl<'a> FixSource<'a> {
    fn new(program: &'a Program, fields: &'a [(u32, &'a [u8])], constants: Constants) -> Self {
        Self {
            program,
            fields,
            constants,
            hidden: vec![0; fields.len()],
            scopes: Vec::new(),
            error: None,
        }
    }

    fn fill(mut self, template: &TemplateProgram, message: &mut Message) -> Result<(), FixError> {
        self.open(0..self.fields.len(), self.program.template_fields(template));
        let filled = message.fill(self.program, template, &mut self);
        match self.error {
            Some(error) => Err(error),
            None => filled.map_err(FixError::Value),
        }
    }

    /// Opens the message or an entry that has the fields of this range. All its sequences are cut
    /// before any value is looked up: a field of an entry must not be found outside of the entry,
    /// wherever the template has the sequence.
    fn open(&mut self, range: Range<usize>, fields: &[FieldId]) {
        let mut sequences = Vec::new();
        self.sequences(fields, &mut sequences);
        let mut scope = Scope {
            fields: range.clone(),
            sequences: Vec::new(),
        };
        let depth = self.scopes.len() + 1;
        let mut at = range.start;
        while at < range.end && !sequences.is_empty() {
            let (tag, count) = self.fields[at];
            at += 1;
            let behind = at..range.end;
            for field in sequences.extract_if(.., |field| field.tag() == Some(tag)) {
                let entries = match self.entries(field, (tag, count), behind.clone()) {
                    Ok(entries) => entries,
                    Err(error) => {
                        self.error.get_or_insert(error);
                        continue;
                    }
                };
                if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
                    self.hidden[first.start..last.end].fill(depth);
                    at = last.end;
                }
                scope.sequences.push((field.id(), entries));
            }
        }
        self.scopes.push(scope);
    }

    /// Adds the sequences of a level, with those in its groups, and without those in entries.
    fn sequences(&self, fields: &[FieldId], found: &mut Vec<&'a Field>) {
        let program = self.program;
        for field in fields.iter().map(|id| program.field(*id)) {
            match field.is_sequence() {
                true => found.push(field),
                false => self.sequences(program.children(field.id()), found),
            }
        }
    }

    /// Returns true if the message has a field of this level, or the count of one of its sequences.
    fn has_any(&self, fields: &[FieldId]) -> bool {
        fields.iter().any(|&id| {
            let field = self.program.field(id);
            let is_inside = || !field.is_sequence() && self.has_any(self.program.children(id));
            self.find(field.tag()).is_some() || is_inside()
        })
    }

    /// Returns the entries after a count field, if there are as many.
    fn entries(
        &self,
        field: &Field,
        (tag, count): (u32, &[u8]),
        behind: Range<usize>,
    ) -> Result<Vec<Range<usize>>, FixError> {
        let count = int::parse_u64(count).and_then(|count| usize::try_from(count).ok());
        let cuts = match count {
            Some(0) => return Ok(Vec::new()),
            // Each entry has a field at least: a count cannot ask for more memory than was sent.
            Some(count) if count <= self.fields.len() => {
                let cuts = self.cuts(field, behind);
                cuts.map(|entries| (entries.len() == count).then_some(entries))
            }
            _ => [None, None],
        };
        match cuts {
            [Some(one), Some(other)] if one != other => Err(FixError::Ambiguous(tag)),
            [Some(entries), _] | [None, Some(entries)] => Ok(entries),
            [None, None] => Err(FixError::Count(tag)),
        }
    }

    /// Returns the entries of a sequence, or `None` if the message does not have the sequence.
    fn opened(&self, field: &Field) -> Option<&[Range<usize>]> {
        let mut sequences = self.scopes.last()?.sequences.iter();
        let (_, entries) = sequences.find(|(id, _)| *id == field.id())?;
        Some(entries)
    }

    fn is_constant(&self, field: &Field) -> bool {
        let operator = match self.program.op(field.id()) {
            Op::Int(op) => op.operator,
            Op::Decimal(op) => op.operator,
            Op::Text(op) => op.operator,
            _ => return false,
        };
        operator == OperatorKind::Constant && !field.optional()
    }

    fn find(&self, tag: Option<u32>) -> Option<usize> {
        let tag = tag?;
        let depth = self.scopes.len();
        let visible = |&at: &usize| self.fields[at].0 == tag && self.hidden[at] < depth;
        self.scopes.last()?.fields.clone().find(visible)
    }

    /// Cuts the fields after a count into entries: by the delimiter, which is the first field, and
    /// by the order of the template. A sender that leaves out the first field of an entry, as
    /// [`write_body`] does where it is absent, has no delimiter.
    fn cuts(&self, field: &Field, behind: Range<usize>) -> [Vec<Range<usize>>; 2] {
        let (from, to) = (behind.start, behind.end);
        let mut tags = Vec::new();
        add_tags(self.program, self.program.children(field.id()), &mut tags);
        let position = |at: usize| tags.iter().position(|&tag| tag == self.fields[at].0);
        let end = (from..to).find(|&at| position(at).is_none()).unwrap_or(to);
        let first = self.fields.get(from).map(|field| field.0);
        let nested: Vec<u32> = self.nested_tags(field);
        let by_delimiter = self.split(from..end, |start, at| {
            let tag = self.fields[at].0;
            Some(tag) == first
                || (!nested.contains(&tag)
                    && self.fields[start..at].iter().any(|field| field.0 == tag))
        });
        let by_order = self.split(from..end, |_, at| {
            let tag = self.fields[at].0;
            !nested.contains(&tag) && position(at) <= position(at - 1)
        });
        [by_delimiter, by_order]
    }

    /// Returns the tags that may come more than once in an entry: those of repeating groups inside
    /// it.
    fn nested_tags(&self, field: &Field) -> Vec<u32> {
        let (mut tags, mut sequences) = (Vec::new(), Vec::new());
        self.sequences(self.program.children(field.id()), &mut sequences);
        for field in sequences {
            add_tags(self.program, self.program.children(field.id()), &mut tags);
        }
        tags
    }

    fn split(
        &self,
        range: Range<usize>,
        begins: impl Fn(usize, usize) -> bool,
    ) -> Vec<Range<usize>> {
        let mut entries = Vec::new();
        let mut start = range.start;
        for at in range.clone().skip(1) {
            if begins(start, at) {
                entries.push(start..at);
                start = at;
            }
        }
        if start < range.end {
            entries.push(start..range.end);
        }
        entries
    }
}

impl Source for FixSource<'_> {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        let Some(at) = self.find(field.tag()) else {
            return Scalar::Absent;
        };
        if self.constants == Constants::Own && self.is_constant(field) {
            return Scalar::Absent;
        }
        let text = self.fields[at].1;
        match field.kind() {
            FieldKind::Decimal => Decimal::parse(text).map_or(Scalar::Text(text), Scalar::Decimal),
            _ => Scalar::Text(text),
        }
    }

    fn group(&mut self, field: &Field) -> bool {
        self.has_any(self.program.children(field.id()))
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        Some(self.opened(field)?.len() as u32)
    }

    fn enter(&mut self, field: &Field, index: u32) {
        if field.is_sequence() {
            let entry = self.opened(field).and_then(|all| all.get(index as usize));
            let entry = entry.cloned().unwrap_or_default();
            self.open(entry, self.program.children(field.id()));
        }
    }

    fn leave(&mut self, field: &Field) {
        if field.is_sequence() {
            self.scopes.pop();
        }
    }
}
