//! Lines to messages.

use std::fmt;

use serde_json::Number;

use super::value::{Json, Members};
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, FieldId, FieldKind, Program, TemplateProgram};
use crate::value::{self, Decimal, IntType, TextType};
use crate::visitor::Visitor;

/// Why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// The code and the field: D1, D9, D10, D11, R1, R4, R5, or `INPUT`.
    pub error: CodecError,
    /// What is wrong, in words.
    pub message: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error.code, self.message)
    }
}

impl std::error::Error for LineError {}

/// Reads one line into `message`. A missing member is absent, or, of a mandatory constant, the
/// constant; values are converted to the types of their fields as section 8 says. Where several
/// fields of a level have one name, the members of that name are theirs in the order of both.
///
/// # Errors
/// A [`LineError`]; `message` is then incomplete and must not be used.
pub fn read_line(program: &Program, line: &str, message: &mut Message) -> Result<(), LineError> {
    let json: Json = serde_json::from_str(line).map_err(|error| input(error.to_string()))?;
    let (template, fields) = header(program, json)?;
    message.begin_message(template);
    Reader { program, message }
        .level(program.template_fields(template), fields)
        .map_err(|error| LineError {
            error: error.error.in_template(template.index()),
            ..error
        })
}

/// The template of a message and its fields. A name is enough, and so is an identifier.
fn header(program: &Program, json: Json) -> Result<(&TemplateProgram, Members), LineError> {
    let Json::Object(mut object) = json else {
        return Err(input("a message is an object"));
    };
    let id = match object.take("id") {
        None | Some(Json::Null) => None,
        Some(Json::Number(id)) => Some(id.as_u64()),
        Some(other) => return Err(input(format!("{other} is no template id"))),
    };
    // A number that is none of 32 bits is one that no template has.
    let by_id = |id: Option<u64>| program.by_id(u32::try_from(id?).ok()?);
    let template = match (object.take("template"), id) {
        (Some(Json::Text(name)), None) => program.by_name(&name),
        (Some(Json::Text(name)), Some(id)) => by_id(id).filter(|found| found.name() == name),
        (None | Some(Json::Null), Some(id)) => by_id(id),
        (None | Some(Json::Null), None) => {
            return Err(input("a message has a template or an id"));
        }
        (Some(other), _) => return Err(input(format!("{other} is no template name"))),
    };
    let template = template.ok_or_else(|| LineError {
        error: CodecError::new(ErrorCode::D9, 0),
        message: "no such template".to_owned(),
    })?;
    let Some(Json::Object(fields)) = object.take("fields") else {
        return Err(input("a message has an object of fields"));
    };
    Ok((template, fields))
}

struct Reader<'a> {
    program: &'a Program,
    message: &'a mut Message,
}

impl Reader<'_> {
    fn level(&mut self, ids: &[FieldId], mut members: Members) -> Result<(), LineError> {
        for &id in ids {
            let field = self.program.field(id);
            match members.take(field.name()) {
                Some(json) => self.field(field, json)?,
                None => self.message.constant_or_absent(self.program, field),
            }
        }
        let known = |name: &str| ids.iter().any(|&id| self.program.field(id).name() == name);
        match members.first() {
            Some(name) if known(name) => Err(input(format!("a second member is named {name:?}"))),
            Some(name) => Err(input(format!("no field is named {name:?}"))),
            None => Ok(()),
        }
    }

    fn int(&mut self, field: &Field, ty: IntType, bits: u64) {
        if ty.is_signed() {
            self.message.signed(field, bits as i64);
        } else {
            self.message.unsigned(field, bits);
        }
    }

    fn field(&mut self, field: &Field, json: Json) -> Result<(), LineError> {
        match (field.kind(), json) {
            (_, Json::Null) => self.message.absent(field),
            (FieldKind::Int(ty), json) => {
                let value = to_int(&json, ty).map_err(|code| wrong(code, field, &json))?;
                self.int(field, ty, value as u64);
            }
            (FieldKind::Decimal, json) => {
                let value = to_decimal(&json).map_err(|code| wrong(code, field, &json))?;
                self.message.decimal(field, value);
            }
            (FieldKind::Text(ty), json) => {
                let value = to_bytes(&json, ty).map_err(|code| wrong(code, field, &json))?;
                self.message.bytes(field, &value);
            }
            (FieldKind::Group, Json::Object(members)) => {
                self.message.begin_group(field);
                self.level(self.program.children(field.id()), members)
                    .map_err(|error| error.within(field))?;
                self.message.end_group(field);
            }
            (FieldKind::Sequence, Json::Array(entries)) => self.sequence(field, entries)?,
            (FieldKind::TemplateRef, json @ Json::Object(_)) => self.reference(field, json)?,
            (_, json) => return Err(wrong(ErrorCode::D1, field, &json)),
        }
        Ok(())
    }

    fn sequence(&mut self, field: &Field, entries: Vec<Json>) -> Result<(), LineError> {
        let too_many = |_| {
            let message = format!("{} entries of {}", entries.len(), field.name());
            let error = CodecError::new(ErrorCode::R4, 0).in_field(field.id());
            LineError { error, message }
        };
        let count = u32::try_from(entries.len()).map_err(too_many)?;
        self.message.begin_sequence(field, count);
        for (index, entry) in (0..).zip(entries) {
            let inside = |error: LineError| LineError {
                error: error.error.in_entry(field.id(), index),
                ..error
            };
            let Json::Object(members) = entry else {
                return Err(inside(wrong(ErrorCode::D1, field, &entry)));
            };
            self.message.begin_entry(field, index);
            self.level(self.program.children(field.id()), members)
                .map_err(inside)?;
            self.message.end_entry(field);
        }
        self.message.end_sequence(field);
        Ok(())
    }

    fn reference(&mut self, field: &Field, json: Json) -> Result<(), LineError> {
        let (template, fields) = header(self.program, json).map_err(|error| error.within(field))?;
        self.message.begin_template(field, template);
        let inside = self.level(self.program.template_fields(template), fields);
        inside.map_err(|error| LineError {
            error: error
                .error
                .in_field(field.id())
                .in_template(template.index()),
            ..error
        })?;
        self.message.end_template(field);
        Ok(())
    }
}

impl LineError {
    fn within(self, field: &Field) -> Self {
        Self {
            error: self.error.in_field(field.id()),
            ..self
        }
    }
}

/// A JSON value in the terms of the specification's conversions.
enum Source<'j> {
    Number(&'j Number),
    Text(&'j str),
    Decimal(Decimal),
    Hex(&'j str),
}

impl<'j> Source<'j> {
    fn new(json: &'j Json) -> Result<Self, ErrorCode> {
        match json {
            Json::Number(number) => Ok(Self::Number(number)),
            Json::Text(text) => Ok(Self::Text(text)),
            Json::Object(members) => parts(members),
            _ => Err(ErrorCode::D1),
        }
    }
}

/// A byte vector, `{"hex": …}`, or a decimal, `{"mantissa": …, "exponent": …}`.
fn parts(members: &Members) -> Result<Source<'_>, ErrorCode> {
    let (mut mantissa, mut exponent) = (None, None);
    for (name, json) in members.iter() {
        match (name, json) {
            ("hex", Json::Text(hex)) if members.iter().count() == 1 => {
                return Ok(Source::Hex(hex));
            }
            ("mantissa", Json::Number(number)) if mantissa.is_none() => mantissa = Some(number),
            ("exponent", Json::Number(number)) if exponent.is_none() => exponent = Some(number),
            _ => return Err(ErrorCode::D1),
        }
    }
    let part = |number: Option<&Number>| number.ok_or(ErrorCode::D1).map(Number::as_i64);
    let (mantissa, exponent) = (part(mantissa)?, part(exponent)?);
    let mantissa = mantissa.ok_or(ErrorCode::R1)?;
    let exponent = exponent.and_then(|exponent| i8::try_from(exponent).ok());
    let exponent = exponent.ok_or(ErrorCode::R1)?;
    Ok(Source::Decimal(Decimal { mantissa, exponent }))
}

fn to_int(json: &Json, ty: IntType) -> Result<i128, ErrorCode> {
    let value = match Source::new(json)? {
        Source::Number(number) => whole(number)?,
        Source::Text(text) => return value::parse_int(text, ty),
        Source::Decimal(decimal) => {
            // R5 also stands for an integer that does not fit (appendix 4).
            let value = integer(decimal).filter(|value| ty.holds(*value));
            return value.ok_or(ErrorCode::R5);
        }
        Source::Hex(_) => return Err(ErrorCode::D10),
    };
    if ty.holds(value) {
        Ok(value)
    } else {
        Err(ErrorCode::R4)
    }
}

/// The integer that a number is: R5 if it has a fraction, R4 if it is larger than any.
fn whole(number: &Number) -> Result<i128, ErrorCode> {
    if let Some(value) = number.as_i128() {
        return Ok(value);
    }
    match number.as_f64() {
        Some(value) if value.fract() != 0.0 => Err(ErrorCode::R5),
        // Doubles below are exact; larger numbers are in no integer type, or were integers.
        Some(value) if value.abs() < (1_u64 << 53) as f64 => Ok(value as i128),
        _ => Err(ErrorCode::R4),
    }
}

/// The integer that a decimal is, saturated far beyond all types.
fn integer(decimal: Decimal) -> Option<i128> {
    let mut value = i128::from(decimal.mantissa);
    for _ in decimal.exponent..0 {
        if value % 10 != 0 {
            return None;
        }
        value /= 10;
    }
    for _ in 0..decimal.exponent {
        value = value.saturating_mul(10);
    }
    Some(value)
}

fn to_decimal(json: &Json) -> Result<Decimal, ErrorCode> {
    match Source::new(json)? {
        Source::Number(number) => number_to_decimal(number),
        Source::Text(text) => value::parse_decimal(text),
        Source::Decimal(decimal) => Ok(decimal),
        Source::Hex(_) => Err(ErrorCode::D10),
    }
}

/// A number with the digits of its shortest form.
fn number_to_decimal(number: &Number) -> Result<Decimal, ErrorCode> {
    let text = number.to_string();
    let (digits, shift) = text.split_once('e').unwrap_or((&text, "0"));
    let decimal = value::parse_decimal(digits)?;
    let shift: i64 = shift.parse().map_err(|_| ErrorCode::R1)?;
    value::scaled(decimal.mantissa.into(), i64::from(decimal.exponent) + shift)
}

fn to_bytes(json: &Json, ty: TextType) -> Result<Vec<u8>, ErrorCode> {
    match (Source::new(json)?, ty) {
        (Source::Text(text), TextType::Bytes) => value::parse_hex(text),
        (Source::Text(text), _) => Ok(text.as_bytes().to_vec()),
        (Source::Hex(hex), TextType::Bytes) => value::parse_hex(hex),
        (Source::Hex(hex), _) => {
            value::parse_hex(hex)?;
            Ok(hex
                .split_ascii_whitespace()
                .collect::<String>()
                .to_ascii_lowercase()
                .into_bytes())
        }
        (_, TextType::Bytes) => Err(ErrorCode::D10),
        (Source::Number(number), _) => match number.as_i128() {
            Some(integer) => Ok(integer.to_string().into_bytes()),
            None => Ok(number_to_decimal(number)?.to_string().into_bytes()),
        },
        (Source::Decimal(decimal), _) => Ok(match integer(decimal) {
            Some(integer) if decimal.exponent < 0 => integer.to_string().into_bytes(),
            _ => decimal.to_string().into_bytes(),
        }),
    }
}

fn wrong(code: ErrorCode, field: &Field, json: &Json) -> LineError {
    let mut text = json.to_string();
    if let Some((cut, _)) = text.char_indices().nth(60) {
        text.truncate(cut);
        text.push('…');
    }
    LineError {
        error: CodecError::new(code, 0).in_field(field.id()),
        message: format!("{text} for {}: {}", field.name(), code.text()),
    }
}

fn input(message: impl Into<String>) -> LineError {
    LineError {
        error: CodecError::new(ErrorCode::Input, 0),
        message: message.into(),
    }
}
