//! Lines of JSON to messages.

use std::borrow::Cow;
use std::fmt;

use super::parse::parse;
use super::value::{Json, Members, Value};
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, FieldId, FieldKind, Program, TemplateProgram};
use crate::value::{self, Decimal, IntType, TextType};
use crate::visitor::Visitor;

/// The reason why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// The error with its code (D1, D9, D10, D11, R1, R4, R5 or `INPUT`), the byte of the line, and
    /// the field.
    pub error: CodecError,
    /// The description of the error.
    pub message: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error.code, self.message)
    }
}

impl std::error::Error for LineError {}

/// Reads one line into `message`. A missing member is absent, but a mandatory constant has its
/// constant. Values are converted to the types of their fields (section 8), and numbers become
/// decimals with the digits they are written with. If several fields of a level have one name, each
/// has the member [`Field::member`]; without it, the members of that name are theirs in the order
/// of both.
///
/// # Errors
/// A [`LineError`]. `message` is then incomplete and must not be used.
pub fn read_line(program: &Program, line: &str, message: &mut Message) -> Result<(), LineError> {
    let json = parse(line).map_err(|error| input(error.at, error.message))?;
    let (template, fields) = header(program, json)?;
    message.begin_message(template);
    let mut reader = Reader {
        program,
        line,
        message,
    };
    let fields = reader.level(program.template_fields(template), fields);
    fields.map_err(|error| LineError {
        error: error.error.in_template(template.index()),
        ..error
    })
}

/// Returns the template of a message and its fields. A name or an identifier is enough.
fn header<'p, 'j>(
    program: &'p Program,
    json: Json<'j>,
) -> Result<(&'p TemplateProgram, Members<'j>), LineError> {
    let at = json.span.start;
    let Value::Object(mut object) = json.value else {
        return Err(input(at, "a message must be an object"));
    };
    let name = match object.take("template") {
        None => None,
        Some(json) => match json.value {
            Value::Null => None,
            Value::Text(name) => Some(name),
            _ => {
                return Err(input(
                    json.span.start,
                    "the name of the template must be a string",
                ));
            }
        },
    };
    let id = match object.take("id") {
        None => None,
        Some(json) => match json.value {
            Value::Null => None,
            Value::Number(id) => Some(id),
            _ => {
                return Err(input(
                    json.span.start,
                    "the id of the template must be a number",
                ));
            }
        },
    };
    // A number that is none of 32 bits is one that no template has.
    let by_id = |id: &str| program.by_id(id.parse().ok()?);
    let found = match (&name, id) {
        (Some(name), None) => program.by_name(name),
        (Some(name), Some(id)) => by_id(id).filter(|found| found.name() == name),
        (None, Some(id)) => by_id(id),
        (None, None) => return Err(input(at, "a message must have a template or an id")),
    };
    let template = found.ok_or_else(|| {
        let wanted = match (&name, id) {
            (Some(name), Some(id)) => format!("{name:?} with id {id}"),
            (Some(name), None) => format!("{name:?}"),
            (None, id) => format!("id {}", id.unwrap_or_default()),
        };
        LineError {
            error: CodecError::new(ErrorCode::D9, at),
            message: format!("no such template: {wanted}"),
        }
    })?;
    let fields = match object.take("fields") {
        Some(Json {
            value: Value::Object(fields),
            ..
        }) => fields,
        Some(other) => return Err(input(other.span.start, "the fields must be an object")),
        None => return Err(input(at, "a message must have an object of fields")),
    };
    no_more(&object)?;
    Ok((template, fields))
}

/// Checks that no members of a message are left.
fn no_more(object: &Members<'_>) -> Result<(), LineError> {
    let Some((name, json)) = object.first() else {
        return Ok(());
    };
    let message = match name {
        "template" | "id" | "fields" => format!("duplicate member {name:?}"),
        _ => format!("a message has a template, an id and fields, but no {name:?}"),
    };
    Err(input(json.span.start, message))
}

/// Takes out the member of a field. Lines of earlier versions, and of other programs, have one name
/// for all fields of that name.
fn take<'j>(members: &mut Members<'j>, field: &Field) -> Option<Json<'j>> {
    match field.member() {
        Cow::Borrowed(name) => members.take(name),
        Cow::Owned(own) => members.take(&own).or_else(|| members.take(field.name())),
    }
}

struct Reader<'a> {
    program: &'a Program,
    line: &'a str,
    message: &'a mut Message,
}

impl Reader<'_> {
    fn level(&mut self, ids: &[FieldId], mut members: Members<'_>) -> Result<(), LineError> {
        for &id in ids {
            let field = self.program.field(id);
            match take(&mut members, field) {
                Some(json) => self.field(field, json)?,
                None => self.message.constant_or_absent(self.program, field),
            }
        }
        let is_of = |field: &Field, name: &str| field.name() == name || field.member() == name;
        let known = |name: &str| ids.iter().any(|&id| is_of(self.program.field(id), name));
        let Some((name, json)) = members.first() else {
            return Ok(());
        };
        let message = match known(name) {
            true => format!("duplicate member {name:?}"),
            false => format!("no field is named {name:?}"),
        };
        Err(input(json.span.start, message))
    }

    fn int(&mut self, field: &Field, ty: IntType, bits: u64) {
        if ty.is_signed() {
            self.message.signed(field, bits as i64);
        } else {
            self.message.unsigned(field, bits);
        }
    }

    fn field(&mut self, field: &Field, json: Json<'_>) -> Result<(), LineError> {
        let wrong = |code| wrong(code, field, self.line, &json);
        match (field.kind(), &json.value) {
            (_, Value::Null) => self.message.absent(field),
            (FieldKind::Int(ty), value) => {
                let value = to_int(value, ty).map_err(wrong)?;
                self.int(field, ty, value as u64);
            }
            (FieldKind::Decimal, value) => {
                let value = to_decimal(value).map_err(wrong)?;
                self.message.decimal(field, value);
            }
            (FieldKind::Text(ty), value) => {
                let value = to_bytes(value, ty).map_err(wrong)?;
                self.message.bytes(field, &value);
            }
            (FieldKind::Group, Value::Object(_))
            | (FieldKind::Sequence, Value::Array(_))
            | (FieldKind::TemplateRef, Value::Object(_)) => return self.inner(field, json),
            _ => return Err(wrong(ErrorCode::D1)),
        }
        Ok(())
    }

    /// Reads a field that has fields of its own.
    fn inner(&mut self, field: &Field, json: Json<'_>) -> Result<(), LineError> {
        match (field.kind(), json.value) {
            (FieldKind::Group, Value::Object(members)) => {
                self.message.begin_group(field);
                self.level(self.program.children(field.id()), members)
                    .map_err(|error| error.within(field))?;
                self.message.end_group(field);
                Ok(())
            }
            (FieldKind::Sequence, Value::Array(entries)) => self.sequence(field, entries),
            (_, value) => {
                let span = json.span;
                self.reference(field, Json { span, value })
            }
        }
    }

    fn sequence(&mut self, field: &Field, entries: Vec<Json<'_>>) -> Result<(), LineError> {
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
            if !matches!(entry.value, Value::Object(_)) {
                return Err(inside(wrong(ErrorCode::D1, field, self.line, &entry)));
            }
            let Value::Object(members) = entry.value else {
                continue;
            };
            self.message.begin_entry(field, index);
            self.level(self.program.children(field.id()), members)
                .map_err(inside)?;
            self.message.end_entry(field);
        }
        self.message.end_sequence(field);
        Ok(())
    }

    fn reference(&mut self, field: &Field, json: Json<'_>) -> Result<(), LineError> {
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
    Number(&'j str),
    Text(&'j str),
    Decimal(Decimal),
    Hex(&'j str),
    /// The bytes of a string, as hexadecimal digits.
    Raw(&'j str),
}

impl<'j> Source<'j> {
    fn new(value: &'j Value<'_>) -> Result<Self, ErrorCode> {
        match value {
            Value::Number(number) => Ok(Self::Number(number)),
            Value::Text(text) => Ok(Self::Text(text)),
            Value::Object(members) => parts(members),
            _ => Err(ErrorCode::D1),
        }
    }
}

/// Returns a byte vector, `{"hex": …}`, a string by its bytes, `{"raw": …}`, or a decimal,
/// `{"mantissa": …, "exponent": …}`.
fn parts<'j>(members: &'j Members<'_>) -> Result<Source<'j>, ErrorCode> {
    let (mut mantissa, mut exponent) = (None, None);
    for (name, json) in members.iter() {
        match (name, &json.value) {
            ("hex", Value::Text(hex)) if members.iter().count() == 1 => {
                return Ok(Source::Hex(hex));
            }
            ("raw", Value::Text(raw)) if members.iter().count() == 1 => {
                return Ok(Source::Raw(raw));
            }
            ("mantissa", Value::Number(number)) if mantissa.is_none() => mantissa = Some(*number),
            ("exponent", Value::Number(number)) if exponent.is_none() => exponent = Some(*number),
            _ => return Err(ErrorCode::D1),
        }
    }
    let (mantissa, exponent) = mantissa.zip(exponent).ok_or(ErrorCode::D1)?;
    // Exponents beyond 63 are for the codec to refuse, or to let pass.
    let mantissa = i64::try_from(whole(mantissa)?).map_err(|_| ErrorCode::R1)?;
    let exponent = i8::try_from(whole(exponent)?).map_err(|_| ErrorCode::R1)?;
    Ok(Source::Decimal(Decimal { mantissa, exponent }))
}

fn to_int(value: &Value<'_>, ty: IntType) -> Result<i128, ErrorCode> {
    let value = match Source::new(value)? {
        Source::Number(number) => whole(number)?,
        Source::Text(text) => return value::parse_int(text, ty),
        Source::Decimal(decimal) => {
            // R5 also stands for an integer that does not fit (appendix 4).
            let value = integer(decimal).filter(|value| ty.holds(*value));
            return value.ok_or(ErrorCode::R5);
        }
        Source::Hex(_) => return Err(ErrorCode::D10),
        Source::Raw(_) => return Err(ErrorCode::D1),
    };
    if ty.holds(value) {
        Ok(value)
    } else {
        Err(ErrorCode::R4)
    }
}

/// Returns a JSON number without its exponent, and the exponent. An exponent that is too large is
/// saturated.
fn exponent(number: &str) -> (&str, i64) {
    let Some((digits, shift)) = number.split_once(['e', 'E']) else {
        return (number, 0);
    };
    let far = if shift.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    (digits, shift.parse().unwrap_or(far))
}

/// Returns a number as an integer, saturated far beyond all types. Returns R5 if it has a fraction.
fn whole(number: &str) -> Result<i128, ErrorCode> {
    // Most numbers are digits alone, and 18 of these cannot overflow.
    if number.len() <= 18 && number.bytes().all(|byte| byte.is_ascii_digit()) {
        let digits = number.bytes().map(|byte| i64::from(byte - b'0'));
        return Ok(digits.fold(0, |value, digit| 10 * value + digit).into());
    }
    let (digits, shift) = exponent(number);
    let fraction = digits
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    let (mut value, mut zeros) = (0_i128, 0_i64);
    for digit in digits.bytes().filter(u8::is_ascii_digit) {
        zeros += 1;
        if digit != b'0' {
            let times = (0..zeros.min(40)).fold(value, |value, _| value.saturating_mul(10));
            value = times.saturating_add(i128::from(digit - b'0'));
            zeros = 0;
        }
    }
    let power = shift.saturating_add(zeros - fraction as i64);
    if power < 0 && value != 0 {
        return Err(ErrorCode::R5);
    }
    let value = (0..power.min(40)).fold(value, |value, _| value.saturating_mul(10));
    Ok(if digits.starts_with('-') {
        -value
    } else {
        value
    })
}

/// Returns a decimal as an integer, saturated far beyond all types, or `None` if it has a fraction.
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

fn to_decimal(value: &Value<'_>) -> Result<Decimal, ErrorCode> {
    match Source::new(value)? {
        Source::Number(number) => number_to_decimal(number),
        Source::Text(text) => value::parse_decimal(text),
        Source::Decimal(decimal) => Ok(decimal),
        Source::Hex(_) => Err(ErrorCode::D10),
        Source::Raw(_) => Err(ErrorCode::D1),
    }
}

/// Returns a number as a decimal with the digits it is written with: 12.50 is 1250 × 10⁻², and 1e5
/// is 1 × 10⁵.
fn number_to_decimal(number: &str) -> Result<Decimal, ErrorCode> {
    let (digits, shift) = exponent(number);
    let Decimal { mantissa, exponent } = value::parse_decimal(digits)?;
    if mantissa == 0 {
        return value::scaled(0, 0);
    }
    let exponent = i64::from(exponent).saturating_add(shift);
    let written = value::scaled(mantissa.into(), exponent);
    written.or_else(|_| value::fitted(mantissa, exponent))
}

fn to_bytes(value: &Value<'_>, ty: TextType) -> Result<Vec<u8>, ErrorCode> {
    match (Source::new(value)?, ty) {
        (Source::Text(text), TextType::Bytes) => value::parse_hex(text),
        (Source::Text(text), _) => Ok(text.as_bytes().to_vec()),
        (Source::Hex(hex), TextType::Bytes) => value::parse_hex(hex),
        (Source::Raw(_), TextType::Bytes) => Err(ErrorCode::D1),
        (Source::Raw(raw), _) => value::parse_hex(raw),
        (Source::Hex(hex), _) => {
            value::parse_hex(hex)?;
            Ok(hex
                .split_ascii_whitespace()
                .collect::<String>()
                .to_ascii_lowercase()
                .into_bytes())
        }
        (_, TextType::Bytes) => Err(ErrorCode::D10),
        (Source::Number(number), _) if number.bytes().all(|b| b == b'-' || b.is_ascii_digit()) => {
            Ok(number.as_bytes().to_vec())
        }
        (Source::Number(number), _) => Ok(number_to_decimal(number)?.to_string().into_bytes()),
        (Source::Decimal(decimal), _) => Ok(match integer(decimal) {
            Some(integer) if decimal.exponent < 0 => integer.to_string().into_bytes(),
            _ => decimal.to_string().into_bytes(),
        }),
    }
}

fn wrong(code: ErrorCode, field: &Field, line: &str, json: &Json<'_>) -> LineError {
    let mut text = line.get(json.span.clone()).unwrap_or_default().to_owned();
    if let Some((cut, _)) = text.char_indices().nth(60) {
        text.truncate(cut);
        text.push('…');
    }
    LineError {
        error: CodecError::new(code, json.span.start).in_field(field.id()),
        message: format!("{text} for {}: {}", field.name(), code.text()),
    }
}

fn input(at: usize, message: impl Into<String>) -> LineError {
    LineError {
        error: CodecError::new(ErrorCode::Input, at),
        message: message.into(),
    }
}
