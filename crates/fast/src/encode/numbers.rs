//! Integers and decimals with their operators.

use super::output::PresenceWriter;
use super::run::{Level, Run, Written};
use crate::decode::incremented;
use crate::error::ErrorCode;
use crate::node::Content;
use crate::previous::PreviousValues;
use crate::program::{DecimalOp, FieldId, IntOp};
use crate::state::State;
use crate::template::OperatorKind;
use crate::value::{Decimal, EXPONENTS};

impl<'a, P: PreviousValues> Run<'a, P> {
    #[inline(always)]
    pub(super) fn int_field(
        &mut self,
        op: &IntOp,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let value = match self.content(level, op.field) {
            Content::Int(bits) => Some(bits),
            Content::Absent => None,
            _ => return self.fail(ErrorCode::D1, op.field),
        };
        self.int(op, value, map)
    }

    #[inline(always)]
    pub(super) fn decimal_field(
        &mut self,
        op: &DecimalOp,
        level: &mut Level<'a>,
        map: &mut PresenceWriter,
    ) -> Written {
        let value = self.decimal_content(level, op.field)?;
        self.decimal(op, value, map)
    }

    #[inline(always)]
    pub(super) fn decimal_content(
        &self,
        level: &mut Level<'a>,
        field: FieldId,
    ) -> Written<Option<Decimal>> {
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

    #[inline(never)]
    pub(super) fn split_decimal(
        &mut self,
        value: Option<Decimal>,
        exponent: &IntOp,
        mantissa: &IntOp,
        map: &mut PresenceWriter,
    ) -> Written {
        let Some(value) = value else {
            return self.part(exponent, None, map);
        };
        let value = match (exponent.operator, exponent.initial) {
            (OperatorKind::Constant, Some(initial)) => rescaled(value, initial as i64)
                .ok_or_else(|| self.error(ErrorCode::D3).in_field(exponent.field))?,
            _ => value,
        };
        self.part(exponent, Some(i64::from(value.exponent) as u64), map)?;
        self.part(mantissa, Some(value.mantissa as u64), map)
    }

    /// Encodes an integer with its operator.
    #[inline(always)]
    fn int(&mut self, op: &IntOp, value: Option<u64>, map: &mut PresenceWriter) -> Written {
        let write = |run: &mut Self, op: &IntOp, value| run.write_int(op, value);
        self.int_with(op, value, map, write)
    }

    /// Encodes a length or a part of a decimal, as an integer with its operator.
    #[inline(never)]
    pub(super) fn part(
        &mut self,
        op: &IntOp,
        value: Option<u64>,
        map: &mut PresenceWriter,
    ) -> Written {
        self.int(op, value, map)
    }

    /// Encodes an integer with its operator. `write` writes it to the stream.
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
                let equal = value == op.initial;
                self.constant(value.is_some(), equal, op.optional, op.field, map)?;
            }
            OperatorKind::Default => {
                let sent = value != op.initial;
                map.push(self.out, sent);
                if sent {
                    write(self, op, value);
                }
            }
            OperatorKind::Copy | OperatorKind::Increment => {
                if self.implicit_int(op, value, map) {
                    write(self, op, value);
                }
            }
            OperatorKind::Delta => return self.int_delta(op, value),
            OperatorKind::Tail => return self.fail(ErrorCode::S2, op.field),
        }
        Ok(())
    }

    /// Returns whether a copied or incremented value is sent, and makes it the previous value.
    #[inline(always)]
    fn implicit_int(&mut self, op: &IntOp, value: Option<u64>, map: &mut PresenceWriter) -> bool {
        let (implied, previous) = self.implied_int(op);
        let sent = implied != Some(value);
        map.push(self.out, sent);
        match value {
            Some(_) if value == previous => {}
            Some(value) => self.previous.set_int(op.slot, State::int(op.ty), value),
            None => self.previous.set_empty(op.slot),
        }
        sent
    }

    #[inline(always)]
    fn write_int(&mut self, op: &IntOp, value: Option<u64>) {
        match (op.ty.is_signed(), op.optional) {
            (false, false) => self.out.unsigned(value.unwrap_or_default()),
            (false, true) => self.out.nullable_unsigned(value),
            (true, false) => self.out.signed(value.unwrap_or_default() as i64),
            (true, true) => self.out.nullable_signed(value.map(|bits| bits as i64)),
        }
    }

    /// Returns the value that a decoder takes for a copied or incremented field that is not in the
    /// stream, or `None` if it takes none. Returns also the previous value, if there is one of this
    /// type.
    #[inline(always)]
    fn implied_int(&self, op: &IntOp) -> (Option<Option<u64>>, Option<u64>) {
        let state = self.previous.state(op.slot);
        if state == State::int(op.ty) {
            let previous = self.previous.int(op.slot);
            let implied = match op.operator {
                OperatorKind::Increment => incremented(op.ty, previous),
                _ => previous,
            };
            return (Some(Some(implied)), Some(previous));
        }
        let implied = match op.initial {
            Some(_) if state == State::UNDEFINED => Some(op.initial),
            _ if matches!(state, State::UNDEFINED | State::EMPTY) => Some(None),
            _ => None,
        };
        (implied, None)
    }

    #[inline(always)]
    fn int_delta(&mut self, op: &IntOp, value: Option<u64>) -> Written {
        let Some(bits) = value else {
            self.out.null();
            return Ok(());
        };
        let state = self.previous.state(op.slot);
        let base = if state == State::int(op.ty) {
            self.previous.int(op.slot)
        } else if state == State::UNDEFINED {
            op.initial.unwrap_or_default()
        } else {
            return self.no_base(op.slot, op.field);
        };
        // As 64-bit numbers, if both are, and their difference too.
        let delta = match op.ty.is_signed() || (bits | base) >> 63 == 0 {
            true => (bits as i64).checked_sub(base as i64),
            false => None,
        };
        match delta {
            Some(delta) => self.write_delta(delta, op.optional),
            None => {
                let delta = op.ty.widen(bits) - op.ty.widen(base);
                self.out.signed_wide(delta, op.optional);
            }
        }
        self.previous.set_int(op.slot, State::int(op.ty), bits);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn write_delta(&mut self, delta: i64, nullable: bool) {
        if nullable {
            self.out.nullable_signed(Some(delta));
        } else {
            self.out.signed(delta);
        }
    }

    #[inline(always)]
    fn decimal(
        &mut self,
        op: &DecimalOp,
        value: Option<Decimal>,
        map: &mut PresenceWriter,
    ) -> Written {
        self.check_presence(value.is_some(), op.optional, op.field)?;
        if op.operator == OperatorKind::None {
            self.write_decimal(op, value);
            return Ok(());
        }
        self.decimal_with(op, value, map)
    }

    /// Encodes a decimal with an operator.
    #[inline(never)]
    fn decimal_with(
        &mut self,
        op: &DecimalOp,
        value: Option<Decimal>,
        map: &mut PresenceWriter,
    ) -> Written {
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
                let implied = match (self.previous.state(op.slot), op.initial) {
                    (State::DECIMAL, _) => Some(Some(self.previous.decimal(op.slot))),
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
                    Some(value) => self.previous.set_decimal(op.slot, value),
                    None => self.previous.set_empty(op.slot),
                }
            }
            OperatorKind::Delta => return self.decimal_delta(op, value),
            OperatorKind::Increment | OperatorKind::Tail => {
                return self.fail(ErrorCode::S2, op.field);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn write_decimal(&mut self, op: &DecimalOp, value: Option<Decimal>) {
        let Some(value) = value else {
            return self.out.null();
        };
        self.write_delta(value.exponent.into(), op.optional);
        self.out.signed(value.mantissa);
    }

    fn decimal_delta(&mut self, op: &DecimalOp, value: Option<Decimal>) -> Written {
        let Some(value) = value else {
            self.out.null();
            return Ok(());
        };
        let base = match self.previous.state(op.slot) {
            State::DECIMAL => self.previous.decimal(op.slot),
            State::UNDEFINED => op.initial.unwrap_or_default(),
            _ => return self.no_base(op.slot, op.field),
        };
        self.write_delta(
            i64::from(value.exponent) - i64::from(base.exponent),
            op.optional,
        );
        let mantissa = i128::from(value.mantissa) - i128::from(base.mantissa);
        self.out.signed_wide(mantissa, false);
        self.previous.set_decimal(op.slot, value);
        Ok(())
    }
}

/// Returns the number with another exponent, or `None` if it has no such form.
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
