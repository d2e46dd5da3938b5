//! FIX to FAST.

use std::fmt;
use std::ops::Range;

use fanfare_wire::{Decimal, int};

use crate::error::CodecError;
use crate::fill::{Scalar, Source};
use crate::message::Message;
use crate::program::{Field, FieldId, FieldKind, Op, Program, TemplateProgram};
use crate::template::OperatorKind;

/// Why fields are no message of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixError {
    /// A piece is not `tag=value` with a positive number as its tag; at this offset.
    Syntax(usize),
    /// The repeating group counted by this tag has not as many entries as it says.
    Count(u32),
    /// A value does not fit its field.
    Value(CodecError),
}

impl fmt::Display for FixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(at) => write!(f, "no tag=value at byte {at}"),
            Self::Count(tag) => write!(f, "wrong number of entries behind field {tag}"),
            Self::Value(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FixError {}

/// Splits `tag=value` fields, each with SOH behind it.
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

/// The templates for messages of a MsgType(35): those that have it as a constant.
pub fn templates_of<'p>(
    program: &'p Program,
    msg_type: &'p [u8],
) -> impl Iterator<Item = &'p TemplateProgram> {
    program.templates().iter().filter(move |template| {
        program
            .template_fields(template)
            .iter()
            .any(|&id| match program.op(id) {
                Op::Text(op) if program.field(id).tag() == Some(35) => {
                    op.operator == OperatorKind::Constant
                        && op
                            .initial
                            .is_some_and(|text| program.text(text) == msg_type)
                }
                _ => false,
            })
    })
}

/// Makes `message` the message of a template with these fields, which are found by tag; fields
/// that the template does not have are ignored. Entries of a repeating group begin with the
/// field that the first entry begins with, or where a field comes a second time; if that does
/// not give as many entries as the count says, where the order of the template is broken.
///
/// # Errors
/// A [`FixError`]; `message` must then not be used.
pub fn read_fields(
    program: &Program,
    template: &TemplateProgram,
    fields: &[(u32, &[u8])],
    message: &mut Message,
) -> Result<(), FixError> {
    let mut source = FixSource {
        program,
        fields,
        hidden: vec![0; fields.len()],
        scopes: vec![Range {
            start: 0,
            end: fields.len(),
        }],
        entries: Vec::new(),
        error: None,
    };
    let filled = message.fill(program, template, &mut source);
    match source.error {
        Some(error) => Err(error),
        None => filled.map_err(FixError::Value),
    }
}

struct FixSource<'a> {
    program: &'a Program,
    fields: &'a [(u32, &'a [u8])],
    /// Of each field, how many scopes must be open to see it: those inside a repeating group are
    /// not to be found outside of it. Zero at first: all are visible.
    hidden: Vec<usize>,
    /// The fields of the message, of the entry in it, and so on.
    scopes: Vec<Range<usize>>,
    /// The entries of the sequences that are open.
    entries: Vec<Vec<Range<usize>>>,
    error: Option<FixError>,
}

impl<'a> FixSource<'a> {
    fn find(&self, tag: Option<u32>) -> Option<usize> {
        let tag = tag?;
        let depth = self.scopes.len();
        let visible = |&at: &usize| self.fields[at].0 == tag && self.hidden[at] < depth;
        self.scopes.last()?.clone().find(visible)
    }

    /// All tags of fields and counts that can be in an entry, in the order of the template.
    fn tags(&self, fields: &[FieldId], tags: &mut Vec<u32>) {
        for &id in fields {
            tags.extend(self.program.field(id).tag());
            self.tags(self.program.children(id), tags);
        }
    }

    /// Cuts what stands behind a count into entries.
    fn cut(
        &self,
        field: &Field,
        from: usize,
        to: usize,
        count: usize,
    ) -> Option<Vec<Range<usize>>> {
        let mut tags = Vec::new();
        self.tags(self.program.children(field.id()), &mut tags);
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
        if by_delimiter.len() == count {
            return Some(by_delimiter);
        }
        let by_order = self.split(from..end, |_, at| {
            let tag = self.fields[at].0;
            !nested.contains(&tag) && position(at) <= position(at - 1)
        });
        (by_order.len() == count).then_some(by_order)
    }

    /// Tags that may come more than once in an entry, being in groups inside it.
    fn nested_tags(&self, field: &Field) -> Vec<u32> {
        let mut tags = Vec::new();
        for &id in self.program.children(field.id()) {
            if self.program.field(id).is_sequence() {
                self.tags(self.program.children(id), &mut tags);
            }
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
        let text = self.fields[at].1;
        match field.kind() {
            FieldKind::Decimal => Decimal::parse(text).map_or(Scalar::Text(text), Scalar::Decimal),
            _ => Scalar::Text(text),
        }
    }

    fn group(&mut self, field: &Field) -> bool {
        let mut tags = Vec::new();
        self.tags(self.program.children(field.id()), &mut tags);
        tags.iter().any(|&tag| self.find(Some(tag)).is_some())
    }

    fn length(&mut self, field: &Field) -> Option<u32> {
        let at = self.find(field.tag())?;
        let end = self.scopes.last()?.end;
        let wrong = FixError::Count(field.tag().unwrap_or_default());
        let count = int::parse_u64(self.fields[at].1).and_then(|count| u32::try_from(count).ok());
        let entries = match count {
            Some(0) => Some(Vec::new()),
            // Each entry has a field at least: a count cannot ask for more memory than was sent.
            Some(count) if count as usize <= self.fields.len() => {
                self.cut(field, at + 1, end, count as usize)
            }
            _ => None,
        };
        let Some(entries) = entries else {
            self.error.get_or_insert(wrong);
            return None;
        };
        if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
            self.hidden[first.start..last.end].fill(self.scopes.len());
        }
        let count = entries.len() as u32;
        if count > 0 {
            self.entries.push(entries);
        }
        Some(count)
    }

    fn enter(&mut self, field: &Field, index: u32) {
        let entry = match self.entries.last() {
            Some(entries) if field.is_sequence() => entries.get(index as usize).cloned(),
            _ => self.scopes.last().cloned(),
        };
        self.scopes.push(entry.unwrap_or_default());
    }

    fn leave(&mut self, field: &Field) {
        let scope = self.scopes.pop();
        let last = self.entries.last().and_then(|entries| entries.last());
        if field.is_sequence() && last == scope.as_ref() {
            self.entries.pop();
        }
    }
}
