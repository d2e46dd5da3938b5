//! The library that generated messages use: see [`codegen`](crate::codegen).
//!
//! Applications use the generated code. Of this module they meet [`Entries`] and [`Values`] as
//! results of readers, [`Listed`] for the bytes of an enum's value, and the types of fields. The
//! types are exported here so that generated code needs this crate alone.

mod groups;
mod write;

use core::fmt;
use core::marker::PhantomData;

pub use crate::codec::{EncodeError, FieldError, FieldErrorKind, FieldSet, FieldWriter, Message};
pub use crate::dict::Version;
pub use fanfare_wire::{Decimal, Precision, UtcTimestamp};
pub use groups::{Groups, Level, tag_set};
pub use write::{Body, Ordered, write_data, write_group, write_timestamp, write_values};

use crate::codec::Group;
use crate::{msg_type, tag};

/// A generated type over the fields of one entry of a group.
pub trait Entry<'a>: Sized {
    /// Returns the entry with these fields.
    fn of(fields: FieldSet<'a>) -> Self;
}

/// A generated enum of the values that a field may have.
pub trait Listed<'a>: Sized {
    /// Returns the value that is encoded as these bytes, or `None` if the enum does not have it.
    fn parse(value: &'a [u8]) -> Option<Self>;

    /// Returns the bytes that encode the value.
    fn wire(&self) -> &[u8];
}

/// An iterator over the entries of a repeating group, in order.
#[derive(Clone, Copy)]
pub struct Entries<'a, T> {
    group: Group<'a>,
    entry: PhantomData<T>,
}

impl<'a, T: Entry<'a>> Iterator for Entries<'a, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        self.group.next().map(T::of)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.group.size_hint()
    }
}

impl<'a, T: Entry<'a>> ExactSizeIterator for Entries<'a, T> {}

impl<T> fmt::Debug for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.group).finish()
    }
}

/// An iterator over the values of a field that holds several, separated by spaces.
#[derive(Clone, Debug)]
pub struct Values<'a, T> {
    rest: Option<&'a [u8]>,
    tag: u32,
    offset: u32,
    value: PhantomData<T>,
}

impl<'a, T: Listed<'a>> Iterator for Values<'a, T> {
    type Item = Result<T, FieldError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.rest?;
        let space = rest.iter().position(|byte| *byte == b' ');
        let (word, behind) = match space {
            Some(at) => (rest.get(..at)?, rest.get(at + 1..)),
            None => (rest, None),
        };
        self.rest = behind;
        Some(T::parse(word).ok_or(FieldError {
            tag: self.tag,
            offset: self.offset,
            kind: FieldErrorKind::Unlisted,
        }))
    }
}

/// Returns the fields of a message whose own fields are those of a level of `groups`.
#[inline]
pub fn fields<'a>(message: &Message<'a>, groups: &'static Groups, level: u32) -> FieldSet<'a> {
    message.at_level(groups, level)
}

/// Returns the value of a required field as an enum.
///
/// # Errors
/// Returns an error if the field is missing or empty, or if the enum does not have its value.
#[inline]
pub fn value<'a, T: Listed<'a>>(fields: &FieldSet<'a>, tag: u32) -> Result<T, FieldError> {
    fields.required(tag, opt_value(fields, tag)?)
}

/// Returns the value of a field as an enum, if there is such a field.
///
/// # Errors
/// Returns an error if the field is empty, or if the enum does not have its value.
#[inline]
pub fn opt_value<'a, T: Listed<'a>>(
    fields: &FieldSet<'a>,
    tag: u32,
) -> Result<Option<T>, FieldError> {
    fields.typed(tag, |value| T::parse(value).ok_or(FieldErrorKind::Unlisted))
}

/// Returns the values of a required field.
///
/// # Errors
/// Returns an error if the field is missing or empty.
#[inline]
pub fn values<'a, T: Listed<'a>>(
    fields: &FieldSet<'a>,
    tag: u32,
) -> Result<Values<'a, T>, FieldError> {
    fields.required(tag, opt_values(fields, tag)?)
}

/// Returns the values of a field, if there is such a field.
///
/// # Errors
/// Returns an error if the field is empty.
pub fn opt_values<'a, T: Listed<'a>>(
    fields: &FieldSet<'a>,
    tag: u32,
) -> Result<Option<Values<'a, T>>, FieldError> {
    let text = fields.typed(tag, Ok)?;
    let offset = fields.find(tag).map_or(0, |field| field.offset);
    Ok(text.map(|text| Values {
        rest: Some(text),
        tag,
        offset,
        value: PhantomData,
    }))
}

/// Returns the bytes of a required data field.
///
/// # Errors
/// Returns an error if the field is missing.
#[inline]
pub fn bytes<'a>(fields: &FieldSet<'a>, tag: u32) -> Result<&'a [u8], FieldError> {
    fields.required(tag, fields.get(tag))
}

/// Returns the bytes of a data field, if there is such a field.
///
/// # Errors
/// Returns no error. All readers have the same type of result.
#[inline]
pub fn opt_bytes<'a>(fields: &FieldSet<'a>, tag: u32) -> Result<Option<&'a [u8]>, FieldError> {
    Ok(fields.get(tag))
}

/// Returns the entries of a group. An absent group has none.
///
/// # Errors
/// Returns an error if the count is no number, or if more or fewer entries follow.
#[inline]
pub fn entries<'a, T: Entry<'a>>(
    fields: &FieldSet<'a>,
    count_tag: u32,
) -> Result<Entries<'a, T>, FieldError> {
    Ok(Entries {
        group: fields.group(count_tag)?,
        entry: PhantomData,
    })
}

/// Returns the version of a message, or `None` if [`Version`] does not have it. Up to FIX.4.4, and
/// for messages of the session layer, the version is BeginString(8). For application messages over
/// FIXT.1.1 it is ApplVerID(1128), or, without that field, `default`: the DefaultApplVerID(1137) of
/// the counterparty's Logon(A).
pub fn version_of(message: &Message<'_>, default: Option<Version>) -> Option<Version> {
    let begin_string = core::str::from_utf8(message.begin_string()).ok()?;
    match Version::from_name(begin_string)? {
        Version::Fixt11 if !msg_type::is_session(message.msg_type()) => {
            match message.get(tag::APPL_VER_ID) {
                Some(own) => Version::from_appl_ver_id(own),
                None => default,
            }
        }
        version => Some(version),
    }
}
