//! JSON values of a line. The members of an object are in their order, and can have the same name.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

/// A JSON value, and its place in the line.
#[derive(Debug)]
pub(super) struct Json<'j> {
    pub(super) span: Range<usize>,
    pub(super) value: Value<'j>,
}

/// The contents of a JSON value.
#[derive(Debug)]
pub(super) enum Value<'j> {
    Null,
    /// True or false, which is no value of a field.
    Bool,
    /// A number as it is written.
    Number(&'j str),
    Text(Cow<'j, str>),
    Array(Vec<Json<'j>>),
    Object(Members<'j>),
}

/// The members of an object.
#[derive(Debug, Default)]
pub(super) struct Members<'j>(VecDeque<(Cow<'j, str>, Json<'j>)>);

impl<'j> Members<'j> {
    pub(super) fn push(&mut self, name: Cow<'j, str>, json: Json<'j>) {
        self.0.push_back((name, json));
    }

    /// Takes out the first member of this name. This takes constant time if it is the first one
    /// that is left.
    pub(super) fn take(&mut self, name: &str) -> Option<Json<'j>> {
        let at = self.0.iter().position(|(member, _)| member == name)?;
        self.0.remove(at).map(|(_, json)| json)
    }

    /// Returns the first member that is left.
    pub(super) fn first(&self) -> Option<(&str, &Json<'j>)> {
        self.0.front().map(|(name, json)| (&**name, json))
    }

    /// Returns the names and values that are left.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Json<'j>)> {
        self.0.iter().map(|(name, json)| (&**name, json))
    }
}
