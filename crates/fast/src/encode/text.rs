//! Strings and byte vectors with their operators.

use super::output::PresenceWriter;
use super::run::{Level, Run, Written};
use crate::error::{Bound, ErrorCode};
use crate::node::Content;
use crate::previous::PreviousValues;
use crate::program::TextOp;
use crate::state::State;
use crate::template::OperatorKind;
use crate::text_ref::TextRef;
use crate::value::TextType;

impl<'a, P: PreviousValues> Run<'a, P> {
    #[inline(always)]
    pub(super) fn text_field(
        &mut self,
        op: &TextOp,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let value = match self.content(level, op.field) {
            Content::Text(text) => Some(text),
            Content::Absent => None,
            _ => return self.fail(ErrorCode::D1, op.field),
        };
        self.text(op, value, map)
    }

    /// Encodes a string or byte vector with its operator.
    #[inline(never)]
    fn text(&mut self, op: &TextOp, value: Option<&[u8]>, map: &mut PresenceWriter) -> Written {
        self.check_presence(value.is_some(), op.optional, op.field)?;
        if let Some(value) = value {
            self.check_text(op, value)?;
        }
        let initial = op.initial.map(|text| self.program.text(text));
        match op.operator {
            OperatorKind::None => self.write_text(op, value),
            OperatorKind::Constant => {
                self.constant(
                    value.is_some(),
                    value == initial,
                    op.optional,
                    op.field,
                    map,
                )?;
            }
            OperatorKind::Default => {
                let sent = value != initial;
                map.push(self.out, sent);
                if sent {
                    self.write_text(op, value);
                }
            }
            OperatorKind::Copy | OperatorKind::Tail => {
                let implied = self.implied_text(op);
                let sent = implied.as_ref().map(Option::as_deref) != Some(value);
                map.push(self.out, sent);
                if sent && op.operator == OperatorKind::Tail {
                    self.tail(op, value)?;
                } else if sent {
                    self.write_text(op, value);
                }
                self.assign_text(op, value);
            }
            OperatorKind::Delta => return self.text_delta(op, value),
            OperatorKind::Increment => return self.fail(ErrorCode::S2, op.field),
        }
        Ok(())
    }

    fn check_text(&self, op: &TextOp, value: &[u8]) -> Written {
        let code = match op.ty {
            _ if value.len() > self.options.limits.text && !self.is_implied(op, value) => {
                return self.beyond(Bound::Text, op.field);
            }
            TextType::Ascii if !value.is_ascii() => ErrorCode::R3,
            TextType::Unicode if self.options.strict && std::str::from_utf8(value).is_err() => {
                ErrorCode::R2
            }
            _ => return Ok(()),
        };
        self.fail(code, op.field)
    }

    /// Returns whether the value is not in the stream, so that the limit does not apply to it.
    fn is_implied(&self, op: &TextOp, value: &[u8]) -> bool {
        match op.operator {
            OperatorKind::Constant => true,
            OperatorKind::Default => op
                .initial
                .is_some_and(|text| self.program.text(text) == value),
            OperatorKind::Copy | OperatorKind::Tail => self
                .implied_text(op)
                .flatten()
                .is_some_and(|text| *text == *value),
            OperatorKind::None | OperatorKind::Delta | OperatorKind::Increment => false,
        }
    }

    fn write_text(&mut self, op: &TextOp, value: Option<&[u8]>) {
        match (value, op.ty) {
            (None, _) => self.out.null(),
            (Some(text), TextType::Ascii) => self.out.ascii(text, op.optional),
            (Some(text), _) => self.out.byte_vector(text, op.optional),
        }
    }

    fn assign_text(&mut self, op: &TextOp, value: Option<&[u8]>) {
        match value {
            Some(value) => {
                self.previous.set_text(op.slot, op.text_slot, op.ty, value);
            }
            None => self.previous.set_empty(op.slot),
        }
    }

    /// Returns the value that a decoder takes for a field that is not in the stream, or `None` if
    /// it takes none.
    fn implied_text(&self, op: &TextOp) -> Option<Option<TextRef<'_>>> {
        let state = self.previous.state(op.slot);
        if state == State::text(op.ty) {
            return Some(Some(self.previous.text(op.slot, op.text_slot)));
        }
        match (state, op.initial) {
            (State::UNDEFINED, Some(text)) => Some(Some(TextRef::long(self.program.text(text)))),
            (State::UNDEFINED | State::EMPTY, _) if op.optional => Some(None),
            _ => None,
        }
    }

    /// Encodes the tail: from the first difference on if the lengths are equal, the whole value if
    /// it is longer than the base.
    fn tail(&mut self, op: &TextOp, value: Option<&[u8]>) -> Written {
        let Some(value) = value else {
            self.out.null();
            return Ok(());
        };
        let state = self.previous.state(op.slot);
        let base = if state == State::EMPTY {
            TextRef::long(self.initial(op))
        } else {
            self.base(op)?
        };
        let tail = match value.len().checked_sub(base.len()) {
            None => return self.fail(ErrorCode::D3, op.field),
            Some(0) => &value[common_prefix(&base, value)..],
            Some(_) => value,
        };
        self.write_text(op, Some(tail));
        Ok(())
    }

    /// Encodes the subtraction length and the added bytes. They are added at the end if the common
    /// prefix is at least as long as the common suffix, and at the front otherwise.
    fn text_delta(&mut self, op: &TextOp, value: Option<&[u8]>) -> Written {
        let Some(value) = value else {
            self.out.null();
            return Ok(());
        };
        let base = self.base(op)?;
        let prefix = common_prefix(&base, value);
        let suffix = common_suffix(&base, value);
        let (subtraction, added) = if prefix >= suffix {
            ((base.len() - prefix) as i64, &value[prefix..])
        } else {
            (
                !((base.len() - suffix) as i64),
                &value[..value.len() - suffix],
            )
        };
        self.write_delta(subtraction, op.optional);
        match op.ty {
            TextType::Ascii => self.out.ascii(added, false),
            _ => self.out.byte_vector(added, false),
        }
        self.assign_text(op, Some(value));
        Ok(())
    }

    /// Returns the base value of a tail or delta.
    fn base(&self, op: &TextOp) -> Written<TextRef<'_>> {
        let state = self.previous.state(op.slot);
        if state == State::text(op.ty) {
            Ok(self.previous.text(op.slot, op.text_slot))
        } else if state == State::UNDEFINED {
            Ok(TextRef::long(self.initial(op)))
        } else {
            self.no_base(op.slot, op.field)
        }
    }

    fn initial(&self, op: &TextOp) -> &'a [u8] {
        op.initial
            .map(|text| self.program.text(text))
            .unwrap_or_default()
    }
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    a.iter()
        .rev()
        .zip(b.iter().rev())
        .take_while(|(a, b)| a == b)
        .count()
}
