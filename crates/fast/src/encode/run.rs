//! The scalar encoder, which executes one op after the other. It is the oracle of every other way
//! of encoding, and takes what those leave to it.

use std::iter;
use std::ops::Range;

use super::output::{Output, PresenceWriter};
use crate::decode::{Limits, Options};
use crate::error::{Bound, CodecError, ErrorCode, Failure};
use crate::message::Message;
use crate::node::{Content, Node};
use crate::previous::PreviousValues;
use crate::program::{Body, FieldId, IntOp, Op, Program, Reset, Slot, TemplateProgram};
use crate::state::State;

/// The encoding of one message.
pub(super) struct Run<'a, P> {
    pub(super) program: &'a Program,
    pub(super) previous: &'a mut P,
    pub(super) message: &'a Message,
    pub(super) out: &'a mut Output,
    pub(super) options: &'a Options,
    /// The limits that are left.
    pub(super) left: Limits,
    pub(super) failure: &'a mut Failure,
}

pub(super) type Written<T = ()> = Result<T, CodecError>;

/// The nodes of one level of a message, found by field.
#[derive(Clone, Copy)]
pub(super) struct Level<'a> {
    /// The nodes of the whole message up to the level's last one.
    nodes: &'a [Node],
    first: u32,
    next: u32,
    /// Whether a node was found elsewhere than next.
    is_mixed: bool,
}

impl<'a> Level<'a> {
    /// Returns the level of the nodes from `first` up to `end`.
    #[inline]
    pub(super) fn new(message: &'a Message, first: u32, end: u32) -> Self {
        let nodes = message.nodes();
        Self {
            nodes: nodes.get(..end as usize).unwrap_or(nodes),
            first,
            next: first,
            is_mixed: false,
        }
    }

    /// Returns the next node, usually that of the next field.
    #[inline(always)]
    pub(super) fn next(&self) -> Option<&'a Node> {
        self.nodes.get(self.next as usize)
    }

    /// Returns the next node with its index, if it is of this field.
    #[inline(always)]
    pub(super) fn next_of(&self, field: FieldId) -> Option<(u32, &'a Node)> {
        let node = self.next().filter(|node| node.field() == field)?;
        Some((self.next, node))
    }

    /// Moves on to the node of this index.
    #[inline(always)]
    pub(super) const fn pass_to(&mut self, next: u32) {
        self.next = next;
    }

    /// Returns the nodes that are left.
    #[inline(always)]
    pub(super) fn left(&self) -> &'a [Node] {
        self.nodes.get(self.next as usize..).unwrap_or_default()
    }

    /// Moves on by a number of nodes that have no contents.
    #[inline(always)]
    pub(super) const fn pass(&mut self, count: u32) {
        self.next += count;
    }

    /// Returns whether all nodes were passed, one after the other.
    #[inline(always)]
    pub(super) const fn is_used_up(&self) -> bool {
        !self.is_mixed && self.next as usize >= self.nodes.len()
    }

    /// Returns the fields of the nodes.
    fn fields(self) -> impl Iterator<Item = FieldId> {
        let mut index = self.first;
        iter::from_fn(move || {
            let node = self.nodes.get(index as usize)?;
            index = node.end(index);
            Some(node.field())
        })
    }
}

/// Returns the template of a message that names none.
#[inline(always)]
pub(super) fn last_template<P: PreviousValues>(program: &Program, previous: &P) -> Option<u32> {
    previous.template().or(program.only())
}

impl<'a, P: PreviousValues> Run<'a, P> {
    /// Encodes the message. Returns `None` with the error in [`Self::failure`].
    #[inline(never)]
    pub(super) fn by_ops(mut self) -> Option<()> {
        let result = self.message();
        self.failure.keep(result)
    }

    /// Encodes the message.
    fn message(&mut self) -> Written {
        let template = self.template()?;
        let end = self.message.nodes().len() as u32;
        self.segment(template, Level::new(self.message, 0, end))
            .map_err(|error| error.in_template(template.index()))
    }

    fn template(&self) -> Written<&'a TemplateProgram> {
        let template = self.message.template_index();
        template
            .and_then(|index| self.program.templates().get(index as usize))
            .ok_or(CodecError::new(ErrorCode::Input, 0))
    }

    fn segment(&mut self, template: &TemplateProgram, level: Level<'a>) -> Written {
        let body = template.body();
        let mut map = PresenceWriter::new(self.out, body.bits);
        let changed = last_template(self.program, self.previous) != Some(template.index());
        map.push(self.out, changed);
        if changed {
            let Some(id) = template.id() else {
                return Err(self.error(ErrorCode::D9));
            };
            self.out.unsigned(id.into());
        }
        self.previous.set_template(Some(template.index()));
        match template.reset() {
            Reset::None => {}
            Reset::Dictionaries => self.previous.reset(),
            Reset::All => {
                self.previous.reset();
                self.previous.set_template(None);
            }
        }
        self.ops(body, level, &mut map)?;
        map.finish(self.out);
        Ok(())
    }

    fn ops(&mut self, body: Body, mut level: Level<'a>, map: &mut PresenceWriter) -> Written {
        self.count_fields(body.counted())?;
        for op in self.program.ops(body) {
            self.op(op, &mut level, map)?;
        }
        self.check_all_used(body, level)
    }

    /// Counts fields against the limit.
    #[inline(always)]
    pub(super) fn count_fields(&mut self, fields: u32) -> Written {
        let Some(left) = self.left.fields.checked_sub(fields) else {
            return Err(CodecError::beyond(Bound::Fields, self.out.len()));
        };
        self.left.fields = left;
        Ok(())
    }

    /// Checks that each node of a level is one for an op of this body.
    #[inline(always)]
    pub(super) fn check_all_used(&self, body: Body, level: Level<'a>) -> Written {
        match level.is_used_up() {
            true => Ok(()),
            false => self.check_fields(body, level),
        }
    }

    /// Checks nodes that are not in the order of the ops: each must be of another field of the
    /// body.
    #[cold]
    #[inline(never)]
    pub(super) fn check_fields(&self, body: Body, level: Level<'a>) -> Written {
        let (ops, count) = (self.program.ops(body), level.fields().count());
        let has_node = |op: &&Op| level.fields().any(|field| field == op.field());
        match count <= ops.len() && ops.iter().filter(has_node).count() == count {
            true => Ok(()),
            false => Err(self.error(ErrorCode::Input)),
        }
    }

    #[inline(always)]
    pub(super) fn op(
        &mut self,
        op: &'a Op,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        match op {
            Op::Int(op) => self.int_field(op, level, map),
            Op::Text(op) => self.text_field(op, level, map),
            Op::Decimal(op) => self.decimal_field(op, level, map),
            Op::SplitDecimal {
                field,
                exponent,
                mantissa,
            } => {
                let value = self.decimal_content(level, *field)?;
                self.split_decimal(value, exponent, mantissa, map)
            }
            Op::Group {
                field,
                optional,
                body,
            } => self.group(*field, *optional, *body, level, map),
            Op::Sequence {
                field,
                length,
                body,
            } => self.sequence(*field, length, *body, level, map),
            Op::Bits(op) => self.bits(op, level, map),
            Op::TemplateRef { field } => self.reference(*field, level),
            Op::Unresolved { field } => self.fail(ErrorCode::D8, *field),
        }
    }

    /// Returns the node of a field on this level, which is usually the next one, and moves past it.
    #[inline(always)]
    pub(super) fn find(&self, level: &mut Level<'a>, field: FieldId) -> Option<(u32, &'a Node)> {
        let Some((index, node)) = level.next_of(field) else {
            return self.search(level, field);
        };
        level.next = node.end(index);
        Some((index, node))
    }

    #[cold]
    fn search(&self, level: &mut Level<'a>, field: FieldId) -> Option<(u32, &'a Node)> {
        let mut index = level.first;
        while let Some(node) = level.nodes.get(index as usize) {
            if node.field() == field {
                level.next = node.end(index);
                level.is_mixed = true;
                return Some((index, node));
            }
            index = node.end(index);
        }
        None
    }

    #[inline(always)]
    pub(super) fn content(&self, level: &mut Level<'a>, field: FieldId) -> Content<'a> {
        let message: &'a Message = self.message;
        self.find(level, field)
            .map_or(Content::Absent, |(_, node)| message.content(node))
    }

    #[inline(never)]
    fn group(
        &mut self,
        id: FieldId,
        optional: bool,
        body: Body,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let found = self.find(level, id);
        let node = match found.map(|(index, node)| (index, node, self.message.content(node))) {
            Some((index, node, Content::Group)) => Some((index, node)),
            None | Some((_, _, Content::Absent)) => None,
            Some(_) => return self.fail(ErrorCode::D1, id),
        };
        if optional {
            map.push(self.out, node.is_some());
        }
        match node {
            Some((index, node)) => self
                .nested(body, index, node)
                .map_err(|error| error.in_field(id)),
            None if optional => Ok(()),
            None => self.fail(ErrorCode::D6, id),
        }
    }

    #[inline(never)]
    fn sequence(
        &mut self,
        id: FieldId,
        length: &IntOp,
        body: Body,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let found = self.find(level, id);
        let found = found.map(|(index, node)| (index + 1..node.end(index), node));
        let content = found.map(|(inside, node)| (inside, self.message.content(node)));
        let (inside, count) = match content {
            Some((inside, Content::Sequence(count))) => (inside, count),
            None | Some((_, Content::Absent)) => return self.part(length, None, map),
            Some(_) => return self.fail(ErrorCode::D1, id),
        };
        if count > self.left.entries {
            return self.beyond(Bound::Entries, id);
        }
        self.part(length, Some(count.into()), map)?;
        self.entries(id, body, inside, 0..count)
    }

    /// Encodes the last entries of a sequence, which are all of the nodes `inside` it.
    fn entries(
        &mut self,
        id: FieldId,
        body: Body,
        mut inside: Range<u32>,
        entries: Range<u32>,
    ) -> Written {
        let message: &'a Message = self.message;
        for entry in entries {
            let node = message.nodes().get(inside.start as usize);
            let Some(node) = node.filter(|node| node.is_entry_of(id)) else {
                return self.fail(ErrorCode::D1, id);
            };
            self.nested(body, inside.start, node)
                .map_err(|error| error.in_entry(id, entry))?;
            inside.start = node.end(inside.start);
        }
        match inside.start == inside.end {
            true => Ok(()),
            false => self.fail(ErrorCode::Input, id),
        }
    }

    /// Encodes the entries of a message's sequence after the first `done` ones, which are in
    /// `written` with all that is before them. Returns `None` with the error in [`Self::failure`].
    pub(super) fn further_entries(mut self, done: u32, written: &[u8]) -> Option<()> {
        let result = self.behind(done, written);
        self.failure.keep(result)
    }

    fn behind(&mut self, done: u32, written: &[u8]) -> Written {
        let template = self.template()?;
        let body = template.body();
        let ops = self.program.ops(body);
        let Some(Op::Sequence {
            field,
            body: inside,
            ..
        }) = ops.last()
        else {
            return Ok(());
        };
        let nodes = self.message.nodes();
        let mut level = Level::new(self.message, 0, nodes.len() as u32);
        let Some((index, node)) = self.find(&mut level, *field) else {
            return Ok(());
        };
        let Content::Sequence(count) = self.message.content(node) else {
            return Ok(());
        };
        let skip = |index: u32, _| {
            nodes
                .get(index as usize)
                .map_or(index, |node| node.end(index))
        };
        let behind = (0..done).fold(index + 1, skip)..node.end(index);
        // In an error's offset the presence map has the room that is taken for it at first.
        let map = written.iter().take_while(|byte| **byte < 0x80).count() + 1;
        let before = written.len() + body.bits.div_ceil(7) as usize - map;
        let result = self.entries(*field, *inside, behind, done..count);
        result.map_err(|error| error.behind(before).in_template(template.index()))
    }

    /// Encodes the contents of a node, with a presence map of its own if the body takes bits.
    pub(super) fn nested(&mut self, body: Body, index: u32, node: &Node) -> Written {
        let level = Level::new(self.message, index + 1, node.end(index));
        let mut map = PresenceWriter::new(self.out, body.bits);
        self.ops(body, level, &mut map)?;
        map.finish(self.out);
        Ok(())
    }

    #[inline(never)]
    fn reference(&mut self, id: FieldId, level: &mut Level<'a>) -> Written {
        let Some((index, node)) = self.find(level, id) else {
            return self.fail(ErrorCode::D6, id);
        };
        let template = match self.message.content(node) {
            Content::Template(template) => template,
            Content::Absent => return self.fail(ErrorCode::D6, id),
            _ => return self.fail(ErrorCode::D1, id),
        };
        let Some(template) = self.program.templates().get(template as usize) else {
            return self.fail(ErrorCode::D9, id);
        };
        let Some(left) = self.left.references.checked_sub(1) else {
            return self.beyond(Bound::References, id);
        };
        self.left.references = left;
        let inside = Level::new(self.message, index + 1, node.end(index));
        self.segment(template, inside)
            .map_err(|error| error.in_field(id).in_template(template.index()))?;
        self.left.references += 1;
        Ok(())
    }

    /// Encodes a constant: its presence bit, if it may be absent. Returns D3 for any other value.
    #[inline(always)]
    pub(super) fn constant(
        &mut self,
        present: bool,
        equal: bool,
        optional: bool,
        field: FieldId,
        map: &mut PresenceWriter,
    ) -> Written {
        if present && !equal {
            return self.fail(ErrorCode::D3, field);
        }
        if optional {
            map.push(self.out, present);
        }
        Ok(())
    }

    /// Returns D6 for a mandatory field without a value.
    #[inline(always)]
    pub(super) fn check_presence(&self, present: bool, optional: bool, field: FieldId) -> Written {
        if present || optional {
            Ok(())
        } else {
            self.fail(ErrorCode::D6, field)
        }
    }

    /// Returns the error of a delta on a previous value that is empty, or of another type.
    pub(super) fn no_base<T>(&self, slot: Slot, field: FieldId) -> Written<T> {
        match self.previous.state(slot) {
            State::EMPTY => self.fail(ErrorCode::D6, field),
            _ => self.fail(ErrorCode::D4, field),
        }
    }

    pub(super) fn error(&self, code: ErrorCode) -> CodecError {
        CodecError::new(code, self.out.len())
    }

    #[cold]
    pub(super) fn fail<T>(&self, code: ErrorCode, field: FieldId) -> Written<T> {
        Err(self.error(code).in_field(field))
    }

    #[cold]
    pub(super) fn beyond<T>(&self, bound: Bound, field: FieldId) -> Written<T> {
        Err(CodecError::beyond(bound, self.out.len()).in_field(field))
    }
}
