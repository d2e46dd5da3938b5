//! The setters of the members of generated structs: by the number of the field, if a message is not
//! decoded by straight-line code, and by type, if it is.

use super::growth;
use super::values::{OptionalText, Text};
use super::visit::Dynamic;
use crate::program::{Field, TemplateProgram};
use crate::source::Scalar;
use crate::value::{Decimal, IntType};
use crate::visitor::Visitor;

/// The members of a generated struct by the numbers of their fields. Each method is for members of
/// one kind, in the struct or in one inside it. It does nothing for any other field.
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Members {
    /// Called at the start of a message of the template of this index.
    fn begin_message(&mut self, template: u32) {}

    /// Sets an unsigned integer.
    fn unsigned(&mut self, field: usize, value: u64) {}

    /// Sets a signed integer.
    fn signed(&mut self, field: usize, value: i64) {}

    /// Sets a decimal.
    fn decimal(&mut self, field: usize, value: Decimal) {}

    /// Sets a string or byte vector.
    fn text(&mut self, field: usize, value: &[u8]) {}

    /// Makes an optional member absent.
    fn absent(&mut self, field: usize) {}

    /// Makes a group present.
    fn begin_group(&mut self, field: usize) {}

    /// Makes a sequence present, and empty.
    fn begin_sequence(&mut self, field: usize) {}

    /// Adds an entry to a sequence.
    fn begin_entry(&mut self, field: usize) {}

    /// Exchanges the contents of a dynamic reference, which are filled outside of the struct, in
    /// their own memory.
    fn swap_template(&mut self, field: usize, inner: &mut Dynamic) {}
}

/// A visitor that fills a struct.
pub(crate) struct Filling<'m, M: ?Sized> {
    members: &'m mut M,
    /// The message of a dynamic reference, the bytes of memory that it had before, and the depth of
    /// references inside it.
    inner: Dynamic,
    had: usize,
    depth: u32,
}

impl<'m, M: Members + ?Sized> Filling<'m, M> {
    #[inline(always)]
    pub(crate) fn new(members: &'m mut M) -> Self {
        Self {
            members,
            inner: Dynamic::default(),
            had: 0,
            depth: 0,
        }
    }

    #[inline(always)]
    pub(crate) const fn members(&mut self) -> &mut M {
        self.members
    }
}

/// Defines methods that set a member, of the struct or of the contents of a dynamic reference.
macro_rules! set {
    ($($visit:ident => $set:ident($($name:ident: $type:ty),*),)*) => {
        $(
        #[inline]
        fn $visit(&mut self, field: &Field, $($name: $type),*) {
            match self.depth {
                0 => self.members.$set(field.id().index(), $($name),*),
                _ => self.inner.0.$visit(field, $($name),*),
            }
        }
        )*
    };
}

/// Defines methods that have no effect on a struct, but on the contents of a dynamic reference.
macro_rules! inside {
    ($($visit:ident,)*) => {
        $(
        fn $visit(&mut self, field: &Field) {
            if self.depth > 0 {
                self.inner.0.$visit(field);
            }
        }
        )*
    };
}

impl<M: Members + ?Sized> Visitor for Filling<'_, M> {
    set! {
        unsigned => unsigned(value: u64),
        signed => signed(value: i64),
        decimal => decimal(value: Decimal),
        ascii => text(value: &[u8]),
        unicode => text(value: &[u8]),
        bytes => text(value: &[u8]),
        absent => absent(),
        begin_group => begin_group(),
    }

    inside! {
        end_group,
        end_entry,
        end_sequence,
    }

    #[inline]
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.members.begin_message(template.index());
    }

    #[inline]
    fn begin_sequence(&mut self, field: &Field, length: u32) {
        match self.depth {
            0 => self.members.begin_sequence(field.id().index()),
            _ => self.inner.0.begin_sequence(field, length),
        }
    }

    #[inline]
    fn begin_entry(&mut self, field: &Field, index: u32) {
        match self.depth {
            0 => self.members.begin_entry(field.id().index()),
            _ => self.inner.0.begin_entry(field, index),
        }
    }

    fn begin_template(&mut self, field: &Field, template: &TemplateProgram) {
        self.depth += 1;
        match self.depth {
            1 => {
                let number = field.id().index();
                self.members.swap_template(number, &mut self.inner);
                self.had = self.inner.0.capacity();
                self.inner.0.begin_message(template);
            }
            _ => self.inner.0.begin_template(field, template),
        }
    }

    fn end_template(&mut self, field: &Field) {
        self.depth -= 1;
        match self.depth {
            0 => {
                growth::add(self.had, self.inner.0.capacity());
                let number = field.id().index();
                self.members.swap_template(number, &mut self.inner);
            }
            _ => self.inner.0.end_template(field),
        }
    }
}

/// A member that is no group, sequence or reference.
pub trait Member {
    /// Returns the value.
    fn scalar(&self) -> Scalar<'_>;
}

impl<M: Member> Member for Option<M> {
    fn scalar(&self) -> Scalar<'_> {
        self.as_ref().map_or(Scalar::Absent, M::scalar)
    }
}

impl Member for Decimal {
    fn scalar(&self) -> Scalar<'_> {
        Scalar::Decimal(*self)
    }
}

impl Member for Text {
    fn scalar(&self) -> Scalar<'_> {
        Scalar::Text(self)
    }
}

impl Member for OptionalText {
    fn scalar(&self) -> Scalar<'_> {
        self.get().map_or(Scalar::Absent, Text::scalar)
    }
}

/// A member that holds an integer or an optional one.
pub trait Integer: Member {
    /// The type of the integer.
    const TYPE: IntType;

    /// Whether the member may be absent.
    const OPTIONAL: bool;

    /// Sets the member to the integer of this pattern, which must be one of the type. `None` makes
    /// an optional member absent.
    fn set(&mut self, value: Option<u64>);

    /// Returns the pattern of the integer, or `None` if it is absent.
    fn get(&self) -> Option<u64>;
}

macro_rules! integers {
    ($($int:ty => $type:ident, $wide:ident $variant:ident;)*) => {
        $(impl Member for $int {
            fn scalar(&self) -> Scalar<'_> {
                Scalar::$variant($wide::from(*self))
            }
        }

        impl Integer for $int {
            const TYPE: IntType = IntType::$type;
            const OPTIONAL: bool = false;

            #[inline(always)]
            fn set(&mut self, value: Option<u64>) {
                if let Some(value) = value {
                    *self = value as Self;
                }
            }

            #[inline(always)]
            fn get(&self) -> Option<u64> {
                Some($wide::from(*self) as u64)
            }
        }

        impl Integer for Option<$int> {
            const TYPE: IntType = IntType::$type;
            const OPTIONAL: bool = true;

            #[inline(always)]
            fn set(&mut self, value: Option<u64>) {
                *self = value.map(|value| value as $int);
            }

            #[inline(always)]
            fn get(&self) -> Option<u64> {
                self.map(|value| $wide::from(value) as u64)
            }
        })*
    };
}

integers! {
    i8 => Int8, i64 Signed;
    u8 => UInt8, u64 Unsigned;
    i16 => Int16, i64 Signed;
    u16 => UInt16, u64 Unsigned;
    i32 => Int32, i64 Signed;
    u32 => UInt32, u64 Unsigned;
    i64 => Int64, i64 Signed;
    u64 => UInt64, u64 Unsigned;
}

/// A member that holds a decimal or an optional one.
pub trait DecimalMember: Member {
    /// Whether the member may be absent.
    const OPTIONAL: bool;

    /// Sets the member. `None` makes an optional member absent.
    fn set(&mut self, value: Option<Decimal>);

    /// Returns the decimal, or `None` if it is absent.
    fn get(&self) -> Option<Decimal>;
}

impl DecimalMember for Decimal {
    const OPTIONAL: bool = false;

    #[inline(always)]
    fn set(&mut self, value: Option<Decimal>) {
        if let Some(value) = value {
            *self = value;
        }
    }

    #[inline(always)]
    fn get(&self) -> Option<Decimal> {
        Some(*self)
    }
}

impl DecimalMember for Option<Decimal> {
    const OPTIONAL: bool = true;

    #[inline(always)]
    fn set(&mut self, value: Option<Decimal>) {
        *self = value;
    }

    #[inline(always)]
    fn get(&self) -> Option<Decimal> {
        *self
    }
}

/// A member that holds a string or an optional one.
pub trait TextMember: Member {
    /// Whether the member may be absent.
    const OPTIONAL: bool;

    /// Makes the member absent, if it may be.
    fn clear(&mut self);

    /// Makes the member present, and returns its text, which is to be set.
    fn text_mut(&mut self) -> &mut Text;

    /// Returns the text, or `None` if it is absent.
    fn text(&self) -> Option<&Text>;
}

impl TextMember for Text {
    const OPTIONAL: bool = false;

    #[inline(always)]
    fn clear(&mut self) {}

    #[inline(always)]
    fn text_mut(&mut self) -> &mut Text {
        self
    }

    #[inline(always)]
    fn text(&self) -> Option<&Text> {
        Some(self)
    }
}

impl TextMember for OptionalText {
    const OPTIONAL: bool = true;

    #[inline(always)]
    fn clear(&mut self) {
        Self::clear(self);
    }

    #[inline(always)]
    fn text_mut(&mut self) -> &mut Text {
        self.unset()
    }

    #[inline(always)]
    fn text(&self) -> Option<&Text> {
        self.get()
    }
}
