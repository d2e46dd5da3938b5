//! The scalar encoder: one op after the other.

use std::ops::Range;

use super::output::{PresenceWriter, Writer};
use crate::decode::{Options, incremented};
use crate::dictionary::{Dictionaries, State};
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::node::{Content, Node};
use crate::program::{Body, DecimalOp, FieldId, IntOp, Op, Program, Reset, Slot, TemplateProgram};
use crate::template::OperatorKind;
use crate::value::{Decimal, EXPONENTS};

/// The encoding of one message.
pub(super) struct Run<'a> {
    pub(super) program: &'a Program,
    pub(super) dictionaries: &'a mut Dictionaries,
    pub(super) message: &'a Message,
    pub(super) out: &'a mut Writer,
    pub(super) options: &'a Options,
}

pub(super) type Written<T = ()> = Result<T, CodecError>;

/// The nodes of one level of a message, found by field.
#[derive(Clone, Copy)]
pub(super) struct Level {
    first: u32,
    next: u32,
    end: u32,
}

impl Level {
    /// The nodes from the first up to `end`.
    pub(super) const fn new(first: u32, end: u32) -> Self {
        Self {
            first,
            next: first,
            end,
        }
    }
}

impl<'a> Run<'a> {
    /// Encodes the message.
    pub(super) fn message(&mut self) -> Written {
        let template = self.template()?;
        let end = self.message.nodes().len() as u32;
        self.segment(template, Level::new(0, end))
            .map_err(|error| error.in_template(template.index()))
    }

    fn template(&self) -> Written<&'a TemplateProgram> {
        let template = self.message.template_index();
        template
            .and_then(|index| self.program.templates().get(index as usize))
            .ok_or(CodecError::new(ErrorCode::Input, 0))
    }

    fn segment(&mut self, template: &TemplateProgram, level: Level) -> Written {
        let body = template.body();
        let mut map = PresenceWriter::new(self.out, body.bits);
        let last = self.dictionaries.template.or(self.program.only());
        let changed = last != Some(template.index());
        map.push(self.out, changed);
        if changed {
            let Some(id) = template.id() else {
                return Err(self.error(ErrorCode::D9));
            };
            self.out.unsigned(id.into());
        }
        self.dictionaries.template = Some(template.index());
        match template.reset() {
            Reset::None => {}
            Reset::Dictionaries => self.dictionaries.reset(),
            Reset::All => {
                self.dictionaries.reset();
                self.dictionaries.template = None;
            }
        }
        self.ops(body, level, &mut map)?;
        map.finish(self.out);
        Ok(())
    }

    fn ops(&mut self, body: Body, mut level: Level, map: &mut PresenceWriter) -> Written {
        for op in self.program.ops(body) {
            self.op(op, &mut level, map)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn op(&mut self, op: &'a Op, level: &mut Level, map: &mut PresenceWriter) -> Written {
        match op {
            Op::Int(op) => {
                let value = match self.content(level, op.field) {
                    Content::Int(bits) => Some(bits),
                    Content::Absent => None,
                    _ => return self.fail(ErrorCode::D1, op.field),
                };
                self.int(op, value, map)
            }
            Op::Text(op) => {
                let value = match self.content(level, op.field) {
                    Content::Text(text) => Some(text),
                    Content::Absent => None,
                    _ => return self.fail(ErrorCode::D1, op.field),
                };
                self.text(op, value, map)
            }
            Op::Decimal(op) => {
                let value = self.decimal_content(level, op.field)?;
                self.decimal(op, value, map)
            }
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

    /// The node of a field on this level: usually the next one.
    #[inline(always)]
    pub(super) fn find(&self, level: &mut Level, field: FieldId) -> Option<(u32, &'a Node)> {
        let index = level.next;
        let message: &'a Message = self.message;
        match message.nodes().get(index as usize) {
            Some(node) if node.field() == field && index < level.end => {
                level.next = node.end(index);
                Some((index, node))
            }
            _ => self.search(level, field),
        }
    }

    #[cold]
    fn search(&self, level: &mut Level, field: FieldId) -> Option<(u32, &'a Node)> {
        let message: &'a Message = self.message;
        let mut index = level.first;
        while index < level.end {
            let node = message.nodes().get(index as usize)?;
            if node.field() == field {
                level.next = node.end(index);
                return Some((index, node));
            }
            index = node.end(index);
        }
        None
    }

    #[inline(always)]
    pub(super) fn content(&self, level: &mut Level, field: FieldId) -> Content<'a> {
        let message: &'a Message = self.message;
        self.find(level, field)
            .map_or(Content::Absent, |(_, node)| message.content(node))
    }

    fn decimal_content(&self, level: &mut Level, field: FieldId) -> Written<Option<Decimal>> {
        match self.content(level, field) {
            Content::Decimal(decimal) => {
                let exponent = i32::from(decimal.exponent);
                if self.options.strict && !EXPONENTS.contains(&exponent) {
                    return self.fail(ErrorCode::R1, field);
                }
                Ok(Some(decimal))
            }
            Content::Absent => Ok(None),
            _ => self.fail(ErrorCode::D1, field),
        }
    }

    fn group(
        &mut self,
        id: FieldId,
        optional: bool,
        body: Body,
        level: &mut Level,
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

    fn sequence(
        &mut self,
        id: FieldId,
        length: &IntOp,
        body: Body,
        level: &mut Level,
        map: &mut PresenceWriter,
    ) -> Written {
        let found = self.find(level, id);
        let (index, count) = match found.map(|(index, node)| (index, self.message.content(node))) {
            Some((index, Content::Sequence(count))) => (index + 1, count),
            None | Some((_, Content::Absent)) => return self.int(length, None, map),
            Some(_) => return self.fail(ErrorCode::D1, id),
        };
        self.int(length, Some(count.into()), map)?;
        self.entries(id, body, index, 0..count)
    }

    /// Encodes entries, of which the first is the node of this index.
    fn entries(&mut self, id: FieldId, body: Body, mut index: u32, entries: Range<u32>) -> Written {
        let message: &'a Message = self.message;
        for entry in entries {
            let node = message.nodes().get(index as usize);
            let Some(node) = node.filter(|node| node.is_entry()) else {
                return self.fail(ErrorCode::D1, id);
            };
            self.nested(body, index, node)
                .map_err(|error| error.in_entry(id, entry))?;
            index = node.end(index);
        }
        Ok(())
    }

    /// Encodes the entries of a message's sequence behind the first `done` ones, which are in
    /// `written` with all that is in front of them.
    pub(super) fn further_entries(&mut self, done: u32, written: &[u8]) -> Written {
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
        let mut level = Level::new(0, nodes.len() as u32);
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
        let index = (0..done).fold(index + 1, skip);
        // In an error's offset the presence map has the room that is taken for it at first.
        let map = written.iter().take_while(|byte| **byte < 0x80).count() + 1;
        let before = written.len() + body.bits.div_ceil(7) as usize - map;
        let result = self.entries(*field, *inside, index, done..count);
        result.map_err(|error| error.behind(before).in_template(template.index()))
    }

    /// Encodes what is inside a node, with a presence map of its own if the body takes bits.
    fn nested(&mut self, body: Body, index: u32, node: &Node) -> Written {
        let level = Level::new(index + 1, node.end(index));
        let mut map = PresenceWriter::new(self.out, body.bits);
        self.ops(body, level, &mut map)?;
        map.finish(self.out);
        Ok(())
    }

    fn reference(&mut self, id: FieldId, level: &mut Level) -> Written {
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
        self.segment(template, Level::new(index + 1, node.end(index)))
            .map_err(|error| error.in_field(id).in_template(template.index()))
    }

    fn split_decimal(
        &mut self,
        value: Option<Decimal>,
        exponent: &IntOp,
        mantissa: &IntOp,
        map: &mut PresenceWriter,
    ) -> Written {
        let Some(value) = value else {
            return self.int(exponent, None, map);
        };
        let value = match (exponent.operator, exponent.initial) {
            (OperatorKind::Constant, Some(initial)) => rescaled(value, initial as i64)
                .ok_or_else(|| self.error(ErrorCode::D3).in_field(exponent.field))?,
            _ => value,
        };
        self.int(exponent, Some(i64::from(value.exponent) as u64), map)?;
        self.int(mantissa, Some(value.mantissa as u64), map)
    }

    /// An integer with its operator.
    #[inline(always)]
    fn int(&mut self, op: &IntOp, value: Option<u64>, map: &mut PresenceWriter) -> Written {
        self.int_with(op, value, map, Self::write_int)
    }

    /// The same for what is in the stream in another form.
    #[inline(always)]
    pub(super) fn int_with(
        &mut self,
        op: &IntOp,
        value: Option<u64>,
        map: &mut PresenceWriter,
        write: impl Fn(&mut Self, &IntOp, Option<u64>),
    ) -> Written {
        self.check_presence(value.is_some(), op.optional, op.field)?;
        if value.is_some_and(|bits| !op.ty.holds_bits(bits)) {
            return self.fail(ErrorCode::R4, op.field);
        }
        match op.operator {
            OperatorKind::None => write(self, op, value),
            OperatorKind::Constant => {
                self.constant(
                    value.is_some(),
                    value == op.initial,
                    op.optional,
                    op.field,
                    map,
                )?;
            }
            OperatorKind::Default => {
                let sent = value != op.initial;
                map.push(self.out, sent);
                if sent {
                    write(self, op, value);
                }
            }
            OperatorKind::Copy | OperatorKind::Increment => {
                let sent = !self.is_implied(op, value);
                map.push(self.out, sent);
                if sent {
                    write(self, op, value);
                }
                match value {
                    Some(value) => {
                        self.dictionaries.set_int(op.slot, State::int(op.ty), value);
                    }
                    None => self.dictionaries.set_empty(op.slot),
                }
            }
            OperatorKind::Delta => return self.int_delta(op, value),
            OperatorKind::Tail => return self.fail(ErrorCode::S2, op.field),
        }
        Ok(())
    }

    #[inline(always)]
    fn write_int(&mut self, op: &IntOp, value: Option<u64>) {
        match (op.ty.is_signed(), op.optional) {
            (false, false) => self.out.unsigned(value.unwrap_or_default()),
            (false, true) => self.out.nullable_unsigned(value),
            (true, false) => {
                self.out.signed(op.ty.widen(value.unwrap_or_default()));
            }
            (true, true) => {
                self.out
                    .nullable_signed(value.map(|value| op.ty.widen(value)));
            }
        }
    }

    /// Whether a decoder takes this value for a copied or incremented field that is not in the
    /// stream.
    #[inline(always)]
    fn is_implied(&self, op: &IntOp, value: Option<u64>) -> bool {
        let state = self.dictionaries.state(op.slot);
        if state == State::int(op.ty) {
            let previous = self.dictionaries.int(op.slot);
            return value
                == Some(match op.operator {
                    OperatorKind::Increment => incremented(op.ty, previous),
                    _ => previous,
                });
        }
        match op.initial {
            Some(_) if state == State::UNDEFINED => value == op.initial,
            _ => value.is_none() && matches!(state, State::UNDEFINED | State::EMPTY),
        }
    }

    fn int_delta(&mut self, op: &IntOp, value: Option<u64>) -> Written {
        let Some(bits) = value else {
            self.out.null();
            return Ok(());
        };
        let state = self.dictionaries.state(op.slot);
        let base = if state == State::int(op.ty) {
            self.dictionaries.int(op.slot)
        } else if state == State::UNDEFINED {
            op.initial.unwrap_or_default()
        } else {
            return self.no_base(op.slot, op.field);
        };
        let delta = op.ty.widen(bits) - op.ty.widen(base);
        self.write_delta(delta, op.optional);
        self.dictionaries.set_int(op.slot, State::int(op.ty), bits);
        Ok(())
    }

    pub(super) fn write_delta(&mut self, delta: i128, nullable: bool) {
        if nullable {
            self.out.nullable_signed(Some(delta));
        } else {
            self.out.signed(delta);
        }
    }

    fn decimal(
        &mut self,
        op: &DecimalOp,
        value: Option<Decimal>,
        map: &mut PresenceWriter,
    ) -> Written {
        self.check_presence(value.is_some(), op.optional, op.field)?;
        match op.operator {
            OperatorKind::None => self.write_decimal(op, value),
            OperatorKind::Constant => {
                // Whatever the exponent: an initial value is normalised, what is given need not be.
                let equal = value
                    .zip(op.initial)
                    .is_some_and(|(a, b)| rescaled(a, b.exponent.into()) == Some(b));
                self.constant(value.is_some(), equal, op.optional, op.field, map)?;
            }
            OperatorKind::Default => {
                let sent = value != op.initial;
                map.push(self.out, sent);
                if sent {
                    self.write_decimal(op, value);
                }
            }
            OperatorKind::Copy => {
                let implied = match (self.dictionaries.state(op.slot), op.initial) {
                    (State::DECIMAL, _) => Some(Some(self.dictionaries.decimal(op.slot))),
                    (State::UNDEFINED, Some(initial)) => Some(Some(initial)),
                    (State::UNDEFINED | State::EMPTY, _) if op.optional => Some(None),
                    _ => None,
                };
                let sent = implied != Some(value);
                map.push(self.out, sent);
                if sent {
                    self.write_decimal(op, value);
                }
                match value {
                    Some(value) => self.dictionaries.set_decimal(op.slot, value),
                    None => self.dictionaries.set_empty(op.slot),
                }
            }
            OperatorKind::Delta => return self.decimal_delta(op, value),
            OperatorKind::Increment | OperatorKind::Tail => {
                return self.fail(ErrorCode::S2, op.field);
            }
        }
        Ok(())
    }

    fn write_decimal(&mut self, op: &DecimalOp, value: Option<Decimal>) {
        let Some(value) = value else {
            return self.out.null();
        };
        self.write_delta(value.exponent.into(), op.optional);
        self.out.signed(value.mantissa.into());
    }

    fn decimal_delta(&mut self, op: &DecimalOp, value: Option<Decimal>) -> Written {
        let Some(value) = value else {
            self.out.null();
            return Ok(());
        };
        let base = match self.dictionaries.state(op.slot) {
            State::DECIMAL => self.dictionaries.decimal(op.slot),
            State::UNDEFINED => op.initial.unwrap_or_default(),
            _ => return self.no_base(op.slot, op.field),
        };
        self.write_delta(
            i128::from(value.exponent) - i128::from(base.exponent),
            op.optional,
        );
        self.out
            .signed(i128::from(value.mantissa) - i128::from(base.mantissa));
        self.dictionaries.set_decimal(op.slot, value);
        Ok(())
    }

    /// A constant: its bit, if it may be absent; D3 for any other value.
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

    /// D6 for a mandatory field without a value.
    #[inline(always)]
    pub(super) fn check_presence(&self, present: bool, optional: bool, field: FieldId) -> Written {
        if present || optional {
            Ok(())
        } else {
            self.fail(ErrorCode::D6, field)
        }
    }

    /// The error of a delta on a previous value that is empty, or of another type.
    pub(super) fn no_base<T>(&self, slot: Slot, field: FieldId) -> Written<T> {
        match self.dictionaries.state(slot) {
            State::EMPTY => self.fail(ErrorCode::D6, field),
            _ => self.fail(ErrorCode::D4, field),
        }
    }

    fn error(&self, code: ErrorCode) -> CodecError {
        CodecError::new(code, self.out.len())
    }

    #[cold]
    pub(super) fn fail<T>(&self, code: ErrorCode, field: FieldId) -> Written<T> {
        Err(self.error(code).in_field(field))
    }
}

/// The same number with another exponent, if there is one.
fn rescaled(value: Decimal, exponent: i64) -> Option<Decimal> {
    let mut mantissa = value.mantissa;
    let mut from = i64::from(value.exponent);
    while from > exponent && mantissa != 0 {
        mantissa = mantissa.checked_mul(10)?;
        from -= 1;
    }
    while from < exponent && mantissa % 10 == 0 && mantissa != 0 {
        mantissa /= 10;
        from += 1;
    }
    let fits = from == exponent || mantissa == 0;
    let exponent = i8::try_from(exponent).ok()?;
    fits.then_some(Decimal { mantissa, exponent })
}
