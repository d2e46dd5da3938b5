//! Lines to messages.

use std::fmt;

use serde_json::{Map, Number, Value as Json};

use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::{Field, FieldId, FieldKind, Program, TemplateProgram};
use crate::value::{self, Decimal, IntType, TextType};
use crate::visitor::Visitor;

/// Why a line is no message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineError {
    /// The code and the field: D1, D2, D9, D10, D11, R1, R4, R5, or `INPUT`.
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
/// constant; values are converted to the types of their fields as section 8 says.
///
/// # Errors
/// A [`LineError`]; `message` is then incomplete and must not be used.
pub fn read_line(program: &Program, line: &str, message: &mut Message) -> Result<(), LineError> {
    let json: Json = serde_json::from_str(line).map_err(|error| input(error.to_string()))?;
    let (template, fields) = header(program, &json)?;
    message.begin_message(template);
    Reader { program, message }
        .level(program.template_fields(template), fields)
        .map_err(|error| LineError {
            error: error.error.in_template(template.index()),
            ..error
        })
}

fn header<'p, 'j>(
    program: &'p Program,
    json: &'j Json,
) -> Result<(&'p TemplateProgram, &'j Map<String, Json>), LineError> {
    let object = json
        .as_object()
        .ok_or_else(|| input("a message is an object"))?;
    let template = match (object.get("template"), object.get("id")) {
        (Some(Json::String(name)), _) => program.by_name(name),
        (_, Some(id)) => id
            .as_u64()
            .and_then(|id| program.by_id(u32::try_from(id).ok()?)),
        _ => return Err(input("a message has a template or an id")),
    };
    let template = template.ok_or_else(|| LineError {
        error: CodecError::new(ErrorCode::D9, 0),
        message: "no such template".to_owned(),
    })?;
    let Some(Json::Object(fields)) = object.get("fields") else {
        return Err(input("a message has an object of fields"));
    };
    Ok((template, fields))
}

struct Reader<'a> {
    program: &'a Program,
    message: &'a mut Message,
}

impl Reader<'_> {
    fn level(&mut self, ids: &[FieldId], members: &Map<String, Json>) -> Result<(), LineError> {
        for &id in ids {
            let field = self.program.field(id);
            match members.get(field.name()) {
                Some(json) => self.field(field, json)?,
                None => self.message.constant_or_absent(self.program, field),
            }
        }
        let known = |name: &String| ids.iter().any(|&id| self.program.field(id).name() == name);
        match members.keys().find(|name| !known(name)) {
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

    fn field(&mut self, field: &Field, json: &Json) -> Result<(), LineError> {
        if json.is_null() {
            self.message.absent(field);
            return Ok(());
        }
        match field.kind() {
            FieldKind::Int(ty) => {
                let value = to_int(json, ty).map_err(|code| wrong(code, field, json))?;
                self.int(field, ty, value as u64);
            }
            FieldKind::Decimal => {
                let value = to_decimal(json).map_err(|code| wrong(code, field, json))?;
                self.message.decimal(field, value);
            }
            FieldKind::Text(ty) => {
                let value = to_bytes(json, ty).map_err(|code| wrong(code, field, json))?;
                self.message.bytes(field, &value);
            }
            FieldKind::Group => {
                let members = object(field, json)?;
                self.message.begin_group(field);
                self.level(self.program.children(field.id()), members)
                    .map_err(|error| error.within(field))?;
                self.message.end_group(field);
            }
            FieldKind::Sequence => self.sequence(field, json)?,
            FieldKind::TemplateRef => {
                let (template, fields) = header(self.program, json)?;
                self.message.begin_template(field, template);
                self.level(self.program.template_fields(template), fields)
                    .map_err(|error| error.within(field))?;
                self.message.end_template(field);
            }
        }
        Ok(())
    }

    fn sequence(&mut self, field: &Field, json: &Json) -> Result<(), LineError> {
        let entries = json
            .as_array()
            .ok_or_else(|| wrong(ErrorCode::D1, field, json))?;
        let count = u32::try_from(entries.len()).map_err(|_| wrong(ErrorCode::D2, field, json))?;
        self.message.begin_sequence(field, count);
        for (index, entry) in (0..).zip(entries) {
            let members = object(field, entry)?;
            self.message.begin_entry(field, index);
            self.level(self.program.children(field.id()), members)
                .map_err(|error| LineError {
                    error: error.error.in_entry(field.id(), index),
                    ..error
                })?;
            self.message.end_entry(field);
        }
        self.message.end_sequence(field);
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

fn object<'j>(field: &Field, json: &'j Json) -> Result<&'j Map<String, Json>, LineError> {
    json.as_object()
        .ok_or_else(|| wrong(ErrorCode::D1, field, json))
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
            Json::String(text) => Ok(Self::Text(text)),
            Json::Object(members) => match members.get("hex") {
                Some(Json::String(hex)) if members.len() == 1 => Ok(Self::Hex(hex)),
                Some(_) => Err(ErrorCode::D1),
                None => parts(members).map(Self::Decimal),
            },
            _ => Err(ErrorCode::D1),
        }
    }
}

fn parts(members: &Map<String, Json>) -> Result<Decimal, ErrorCode> {
    let part = |name| match members.get(name) {
        Some(Json::Number(number)) => number.as_i128().ok_or(ErrorCode::R1),
        _ => Err(ErrorCode::D1),
    };
    let (mantissa, exponent) = (part("mantissa")?, part("exponent")?);
    if members.len() != 2 {
        return Err(ErrorCode::D1);
    }
    let mantissa = i64::try_from(mantissa).map_err(|_| ErrorCode::R1)?;
    let exponent = i8::try_from(exponent).map_err(|_| ErrorCode::R1)?;
    Ok(Decimal { mantissa, exponent })
}

fn to_int(json: &Json, ty: IntType) -> Result<i128, ErrorCode> {
    match Source::new(json)? {
        Source::Number(number) => match number.as_i128() {
            Some(value) if ty.holds(value) => Ok(value),
            None if number.as_f64().is_some_and(|value| value.fract() != 0.0) => Err(ErrorCode::R5),
            _ => Err(ErrorCode::D2),
        },
        Source::Text(text) => value::parse_int(text, ty),
        Source::Decimal(decimal) => {
            let mut value = i128::from(decimal.mantissa);
            for _ in decimal.exponent..0 {
                if value % 10 != 0 {
                    return Err(ErrorCode::R5);
                }
                value /= 10;
            }
            for _ in 0..decimal.exponent {
                value = value.saturating_mul(10);
            }
            if ty.holds(value) {
                Ok(value)
            } else {
                Err(ErrorCode::R4)
            }
        }
        Source::Hex(_) => Err(ErrorCode::D10),
    }
}

fn to_decimal(json: &Json) -> Result<Decimal, ErrorCode> {
    match Source::new(json)? {
        Source::Number(number) => match number.as_i128() {
            Some(value) => value::scaled(value, 0),
            None => value::parse_decimal(&number.to_string()),
        },
        Source::Text(text) => value::parse_decimal(text),
        Source::Decimal(decimal) => Ok(decimal),
        Source::Hex(_) => Err(ErrorCode::D10),
    }
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
        (Source::Number(number), _) => Ok(number.to_string().into_bytes()),
        (Source::Decimal(_), _) => Err(ErrorCode::D1),
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
