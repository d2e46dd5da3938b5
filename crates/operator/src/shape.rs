//! The shape of a result, as data: the console writes it as JSON Schema.

/// The shape of a value of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Any value.
    Any,
    /// A text.
    Text,
    /// A time: RFC 3339, in UTC.
    Time,
    /// A number from 0 to 2^64 - 1.
    Count,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// True or false.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any number of values of this shape.
    List(&'static Self),
    /// An object with these members and no others.
    Object(&'static [Member]),
    /// An object with any names, whose values have this shape.
    Map(&'static Self),
    /// A value of this shape, or null if it is not known.
    Maybe(&'static Self),
    /// A value of one of these shapes.
    Either(&'static [Self]),
}

/// A member of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: &'static str,
    /// A description in one sentence, with its unit.
    pub about: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// Whether it may be missing.
    pub is_optional: bool,
}

impl Member {
    /// Makes a member that is always present.
    #[must_use]
    pub const fn new(name: &'static str, shape: Shape, about: &'static str) -> Self {
        Self {
            name,
            about,
            shape,
            is_optional: false,
        }
    }

    /// Marks it as possibly missing.
    #[must_use]
    pub const fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }
}
