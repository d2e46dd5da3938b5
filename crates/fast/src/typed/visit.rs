//! Code that passes generated structs to a visitor.

use super::values::{Entries, OptionalText};
use crate::message::{Message, visit};
use crate::program::{Field, FieldKind, Program};
use crate::value::{Decimal, TextType};
use crate::visitor::Visitor;

/// Calls `visitor` for an optional unsigned integer.
#[inline]
pub fn unsigned<V: Visitor>(visitor: &mut V, field: &Field, value: Option<impl Into<u64>>) {
    match value {
        Some(value) => visitor.unsigned(field, value.into()),
        None => visitor.absent(field),
    }
}

/// Calls `visitor` for an optional signed integer.
#[inline]
pub fn signed<V: Visitor>(visitor: &mut V, field: &Field, value: Option<impl Into<i64>>) {
    match value {
        Some(value) => visitor.signed(field, value.into()),
        None => visitor.absent(field),
    }
}

/// Calls `visitor` for an optional decimal.
#[inline]
pub fn decimal<V: Visitor>(visitor: &mut V, field: &Field, value: Option<Decimal>) {
    match value {
        Some(value) => visitor.decimal(field, value),
        None => visitor.absent(field),
    }
}

/// Calls `visitor` for an optional string or byte vector.
#[inline]
pub fn text<V: Visitor>(visitor: &mut V, field: &Field, value: &OptionalText) {
    match (value.get(), field.kind()) {
        (Some(value), FieldKind::Text(TextType::Ascii)) => visitor.ascii(field, value),
        (Some(value), FieldKind::Text(TextType::Unicode)) => visitor.unicode(field, value),
        (Some(value), _) => visitor.bytes(field, value),
        (None, _) => visitor.absent(field),
    }
}

/// Calls `visitor` for a group whose fields `write` passes on, or for the absence of an optional
/// one.
#[inline]
pub fn group<T, V: Visitor>(
    visitor: &mut V,
    field: &Field,
    value: Option<&T>,
    write: impl Fn(&T, &mut V),
) {
    let Some(value) = value else {
        return visitor.absent(field);
    };
    visitor.begin_group(field);
    write(value, visitor);
    visitor.end_group(field);
}

/// Calls `visitor` for a sequence whose entries `write` passes on, or for the absence of an
/// optional one.
#[inline]
pub fn sequence<T, V: Visitor>(
    visitor: &mut V,
    field: &Field,
    value: Option<&Entries<T>>,
    write: impl Fn(&T, &mut V),
) {
    let Some(entries) = value else {
        return visitor.absent(field);
    };
    visitor.begin_sequence(field, entries.len() as u32);
    for (index, entry) in entries.iter().enumerate() {
        visitor.begin_entry(field, index as u32);
        write(entry, visitor);
        visitor.end_entry(field);
    }
    visitor.end_sequence(field);
}

/// The message inside a dynamic template reference. It can be of any template, and so has no type
/// of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dynamic(pub Message);

impl Dynamic {
    /// Exchanges the message with another one.
    #[inline]
    pub const fn swap(&mut self, other: &mut Self) {
        std::mem::swap(self, other);
    }

    /// Passes the message to `visitor` as the contents of `field`.
    pub fn write<V: Visitor>(&self, program: &Program, field: &Field, visitor: &mut V) {
        if let Some(view) = self.0.view(program) {
            visitor.begin_template(field, view.template());
            visit(view.fields(), visitor);
            visitor.end_template(field);
        }
    }
}
