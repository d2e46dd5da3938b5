//! Messages made of values that are known by field, for generators and bridges.

use crate::bits::visit_group;
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, FieldId, FieldKind, IntOp, Op, Program, TemplateProgram};
use crate::template::OperatorKind;
use crate::value::{self, Decimal, IntType, TextType};
use crate::visitor::Visitor;

/// A value for a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar<'a> {
    /// No value: a mandatory constant takes its constant, any other field is absent.
    Absent,
    /// An integer that is not negative.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// A decimal.
    Decimal(Decimal),
    /// A string or byte vector.
    Text(&'a [u8]),
}

/// A source of the values of a message's fields. It is asked in the order of the template.
#[expect(unused_variables, reason = "the defaults know nothing")]
pub trait Source {
    /// Returns the value of a field that is no group, sequence or reference.
    fn scalar(&mut self, field: &Field) -> Scalar<'_>;

    /// Returns whether the source has an optional group, or a bit group whose mandatory constant
    /// applies without it.
    fn group(&mut self, field: &Field) -> bool {
        false
    }

    /// Returns the number of entries of a sequence, or `None` if it is absent.
    fn length(&mut self, field: &Field) -> Option<u32> {
        None
    }

    /// Called before the source is asked for the fields of a group, of a dynamic reference, or of
    /// the entry `index` of a sequence.
    fn enter(&mut self, field: &Field, index: u32) {}

    /// Called after the fields of the group, the reference or the entry.
    fn leave(&mut self, field: &Field) {}

    /// Returns the index of the template of a dynamic reference.
    fn template(&mut self, field: &Field) -> Option<u32> {
        None
    }
}

impl Message {
    /// Makes this the message of a template, with the values of `source`.
    ///
    /// # Errors
    /// D1, D11, R1 or R4 where a value cannot be converted to that of its field (section 8), D9
    /// where a reference has no template. The message must then not be used.
    pub fn fill<S: Source + ?Sized>(
        &mut self,
        program: &Program,
        template: &TemplateProgram,
        source: &mut S,
    ) -> Result<(), CodecError> {
        self.begin_message(template);
        self.fill_level(program, program.template_fields(template), source)
            .map_err(|error| error.in_template(template.index()))
    }

    fn fill_level<S: Source + ?Sized>(
        &mut self,
        program: &Program,
        fields: &[FieldId],
        source: &mut S,
    ) -> Result<(), CodecError> {
        for &id in fields {
            let field = program.field(id);
            match field.kind() {
                FieldKind::Group => {
                    let constant = matches!(program.op(id), Op::Bits(op) if is_constant(&op.whole));
                    if (field.optional() || constant) && !source.group(field) {
                        self.constant_or_absent(program, field);
                        continue;
                    }
                    self.begin_group(field);
                    source.enter(field, 0);
                    self.fill_level(program, program.children(id), source)?;
                    source.leave(field);
                    self.end_group(field);
                }
                FieldKind::Sequence => self.fill_sequence(program, field, source)?,
                FieldKind::TemplateRef => {
                    let d9 = CodecError::new(ErrorCode::D9, 0).in_field(id);
                    let index = source.template(field).ok_or(d9)?;
                    let template = program.templates().get(index as usize).ok_or(d9)?;
                    self.begin_template(field, template);
                    source.enter(field, 0);
                    self.fill_level(program, program.template_fields(template), source)?;
                    source.leave(field);
                    self.end_template(field);
                }
                _ => {
                    let scalar = source.scalar(field);
                    self.scalar(program, field, scalar)
                        .map_err(|code| CodecError::new(code, 0).in_field(id))?;
                }
            }
        }
        Ok(())
    }

    fn fill_sequence<S: Source + ?Sized>(
        &mut self,
        program: &Program,
        field: &Field,
        source: &mut S,
    ) -> Result<(), CodecError> {
        let Some(count) = source.length(field) else {
            self.absent(field);
            return Ok(());
        };
        self.begin_sequence(field, count);
        for index in 0..count {
            self.begin_entry(field, index);
            source.enter(field, index);
            self.fill_level(program, program.children(field.id()), source)
                .map_err(|error| error.in_entry(field.id(), index))?;
            source.leave(field);
            self.end_entry(field);
        }
        self.end_sequence(field);
        Ok(())
    }

    pub(crate) fn scalar(
        &mut self,
        program: &Program,
        field: &Field,
        scalar: Scalar<'_>,
    ) -> Result<(), ErrorCode> {
        match (field.kind(), scalar) {
            (_, Scalar::Absent) => self.constant_or_absent(program, field),
            (FieldKind::Int(ty), scalar) => {
                let value = int(scalar, ty)?;
                if ty.is_signed() {
                    self.signed(field, value as i64);
                } else {
                    self.unsigned(field, value as u64);
                }
            }
            (FieldKind::Decimal, scalar) => {
                let value = decimal(scalar)?;
                self.decimal(field, value);
            }
            (FieldKind::Text(TextType::Ascii), Scalar::Text(text)) => self.ascii(field, text),
            (FieldKind::Text(TextType::Unicode), Scalar::Text(text)) => self.unicode(field, text),
            (FieldKind::Text(TextType::Bytes), Scalar::Text(text)) => self.bytes(field, text),
            _ => return Err(ErrorCode::D1),
        }
        Ok(())
    }

    /// Adds a field without a value: a mandatory constant has its constant, any other field is
    /// absent.
    pub(crate) fn constant_or_absent(&mut self, program: &Program, field: &Field) {
        match *program.op(field.id()) {
            Op::Int(op) if is_constant(&op) => {
                let bits = op.initial.unwrap_or_default();
                if op.ty.is_signed() {
                    self.signed(field, bits as i64);
                } else {
                    self.unsigned(field, bits);
                }
            }
            Op::Decimal(op) if op.operator == OperatorKind::Constant && !op.optional => {
                self.decimal(field, op.initial.unwrap_or_default());
            }
            Op::Text(op) if op.operator == OperatorKind::Constant && !op.optional => {
                let text = op
                    .initial
                    .map(|text| program.text(text))
                    .unwrap_or_default();
                self.bytes(field, text);
            }
            Op::SplitDecimal {
                exponent, mantissa, ..
            } => match constant(exponent, mantissa) {
                Some(value) => self.decimal(field, value),
                None => self.absent(field),
            },
            Op::Bits(op) if is_constant(&op.whole) => {
                let bits = op.whole.initial.unwrap_or_default();
                visit_group(program, &op, bits, self);
            }
            _ => self.absent(field),
        }
    }
}

fn is_constant(op: &IntOp) -> bool {
    op.operator == OperatorKind::Constant && !op.optional
}

/// Returns the value of a decimal whose parts are mandatory constants, or `None` for any other.
fn constant(exponent: IntOp, mantissa: IntOp) -> Option<Decimal> {
    let value = |op: IntOp| match is_constant(&op) {
        true => op.initial.map(|bits| bits as i64),
        false => None,
    };
    Some(Decimal {
        mantissa: value(mantissa)?,
        exponent: i8::try_from(value(exponent)?).ok()?,
    })
}

/// Converts a number or its text to an integer (section 8).
fn int(scalar: Scalar<'_>, ty: IntType) -> Result<i128, ErrorCode> {
    let value = match scalar {
        Scalar::Signed(value) => i128::from(value),
        Scalar::Unsigned(value) => i128::from(value),
        Scalar::Text(text) => value::parse_int(utf8(text)?, ty)?,
        Scalar::Decimal(_) | Scalar::Absent => return Err(ErrorCode::D1),
    };
    if ty.holds(value) {
        Ok(value)
    } else {
        Err(ErrorCode::R4)
    }
}

/// Converts a number or its text to a decimal (section 8).
fn decimal(scalar: Scalar<'_>) -> Result<Decimal, ErrorCode> {
    match scalar {
        Scalar::Decimal(value) => Ok(value),
        Scalar::Signed(value) => value::scaled(value.into(), 0),
        Scalar::Unsigned(value) => value::scaled(value.into(), 0),
        Scalar::Text(text) => value::parse_decimal(utf8(text)?),
        Scalar::Absent => Err(ErrorCode::D1),
    }
}

fn utf8(text: &[u8]) -> Result<&str, ErrorCode> {
    std::str::from_utf8(text).map_err(|_| ErrorCode::D11)
}
