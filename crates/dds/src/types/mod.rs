//! Types as data: the types of topics, described at run time.
//!
//! A [`StructType`] becomes a DDS type (XTypes dynamic type), IDL text ([`StructType::idl`]) and
//! the walk over CDR bytes that prints or checks a sample ([`crate::cdr`]). Types built here are
//! `@final`: their CDR form has no headers, so any vendor's XCDR1 reads it.

mod idl;
mod names;
mod rust;
mod union;

use std::sync::Arc;

/// The deepest nesting of structures; deeper types, and those that contain themselves, are refused.
pub const MAX_DEPTH: usize = 16;
/// The most members of a structure.
pub const MAX_MEMBERS: usize = 4_096;

/// A structure: a name, scoped with `::`, and its members in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StructType {
    /// The scoped name, such as `Fanfare::Quote`.
    pub name: String,
    /// The members, in the order of their CDR form.
    pub members: Vec<Member>,
    /// The way in which the type may grow; determines whether the CDR form has headers.
    pub extensibility: Extensibility,
}

/// One member of a structure.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// An IDL identifier.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Its number in the structure, from 0 in order unless the type declares another. Only mutable
    /// structures have it in their samples.
    pub id: u32,
    /// Whether it is part of the key: samples with equal keys are one instance.
    pub key: bool,
    /// Whether it is `@optional` in XTypes. Types made by this crate never use it: see
    /// [`crate::types`] for the rule on optional FAST fields.
    pub optional: bool,
}

/// The type of a member or of a sequence's elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names say it; IDL names in `idl.rs`
pub enum Kind {
    Bool,
    /// `octet`: an unsigned 8-bit integer in every vendor's IDL.
    Byte,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float32,
    Float64,
    Char,
    /// A UTF-16 code unit.
    WChar,
    /// A string in UTF-16, of at most this many code units when bounded.
    WString(Option<u32>),
    /// A string of bytes without NUL, UTF-8 by convention, of at most this many when bounded.
    String(Option<u32>),
    /// An enumeration.
    Enum(Arc<EnumType>),
    /// A bitmask of this many bits, carried as an unsigned integer, in types of other programs.
    Bitmask(u16),
    /// Any number of elements, at most this many when bounded.
    Sequence(Box<Self>, Option<u32>),
    /// Exactly this many elements.
    Array(Box<Self>, u32),
    /// A nested structure.
    Struct(Arc<StructType>),
    /// A union, in types of other programs.
    Union(Arc<UnionType>),
}

/// An enumeration: names for integers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EnumType {
    /// The scoped name.
    pub name: String,
    /// The bits of a value, 1 to 32, which is carried as an integer of 8, 16 or 32 bits. The
    /// default of the specification is 32.
    pub bit_bound: u16,
    /// Each literal with its value.
    pub literals: Vec<(String, i32)>,
}

/// The way in which a type may change between versions (XTypes 1.3, 7.2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Extensibility {
    /// The type does not change.
    #[default]
    Final,
    /// Members may be added at the end; XCDR2 puts the length in front.
    Appendable,
    /// Members may be added and removed; each has its own header.
    Mutable,
}

impl StructType {
    /// Makes a structure without members.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            members: Vec::new(),
            extensibility: Extensibility::Final,
        }
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, name: &str, kind: Kind) -> Self {
        let id = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.members.push(Member {
            name: name.to_owned(),
            kind,
            id,
            key: false,
            optional: false,
        });
        self
    }

    /// Adds a member that is part of the key.
    #[must_use]
    pub fn key(self, name: &str, kind: Kind) -> Self {
        let mut with = self.member(name, kind);
        if let Some(member) = with.members.last_mut() {
            member.key = true;
        }
        with
    }

    /// Returns whether samples of this type form instances.
    pub fn is_keyed(&self) -> bool {
        self.members.iter().any(|m| m.key)
    }

    /// Checks names, nesting and keys.
    ///
    /// # Errors
    /// The first fault by the rules of DDS or IDL, with the path to it.
    pub fn check(&self) -> Result<(), TypeError> {
        self.check_at(0)
    }

    fn check_at(&self, depth: usize) -> Result<(), TypeError> {
        let fault = |member: &str, why: Fault| {
            let path = if member.is_empty() {
                self.name.clone()
            } else {
                format!("{}.{member}", self.name)
            };
            Err(TypeError { path, why })
        };
        if depth >= MAX_DEPTH {
            return fault("", Fault::TooDeep);
        }
        if !is_scoped_name(&self.name) {
            return fault("", Fault::BadName);
        }
        if self.members.is_empty() || self.members.len() > MAX_MEMBERS {
            return fault("", Fault::MemberCount(self.members.len()));
        }
        let mut seen = std::collections::HashSet::new();
        for member in &self.members {
            if !names::is_identifier(&member.name) {
                return fault(&member.name, Fault::BadName);
            }
            // IDL names that differ only in case collide.
            if !seen.insert(member.name.to_ascii_lowercase()) {
                return fault(&member.name, Fault::TwiceTheName);
            }
            if member.key && (member.optional || !member.kind.can_be_key()) {
                return fault(&member.name, Fault::BadKey);
            }
            member.kind.check_at(depth)?;
        }
        Ok(())
    }

    /// Returns the type as IDL text: nested types first, modules as scopes, `@key` and `@final`
    /// explicit. Cyclone's idlc and Fast DDS's generator accept it.
    pub fn idl(&self) -> String {
        idl::print(&[self])
    }
}

/// Returns several types in one IDL text; shared parts are printed once.
pub fn idl(types: &[&StructType]) -> String {
    idl::print(types)
}

pub use idl::identifier;
pub use names::is_scoped_name;
pub use rust::rust;
pub use union::{Case, UnionType};

impl Kind {
    /// Makes an unbounded sequence of structures.
    pub fn sequence_of(element: StructType) -> Self {
        Self::Sequence(Box::new(Self::Struct(Arc::new(element))), None)
    }

    /// Returns the size of a primitive, an enumeration or a bitmask in CDR, in bytes; `None` for
    /// another kind.
    pub fn primitive_size(&self) -> Option<usize> {
        Some(match self {
            Self::Bool | Self::Byte | Self::Int8 | Self::UInt8 | Self::Char => 1,
            Self::Int16 | Self::UInt16 | Self::WChar => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 => 8,
            Self::Enum(t) => size_of_bits(t.bit_bound),
            Self::Bitmask(bits) => size_of_bits(*bits),
            Self::String(_)
            | Self::WString(_)
            | Self::Sequence(..)
            | Self::Array(..)
            | Self::Struct(_)
            | Self::Union(_) => return None,
        })
    }

    const fn can_be_key(&self) -> bool {
        !matches!(
            self,
            Self::WString(_)
                | Self::Sequence(..)
                | Self::Array(..)
                | Self::Struct(_)
                | Self::Union(_)
        )
    }

    fn check_at(&self, depth: usize) -> Result<(), TypeError> {
        match self {
            Self::Sequence(element, _) | Self::Array(element, _) => element.check_at(depth + 1),
            Self::Struct(inner) => inner.check_at(depth + 1),
            Self::Union(inner) => inner.check_at(depth + 1),
            _ => Ok(()),
        }
    }
}

/// Returns the size in bytes of the smallest integer with at least `bits` bits.
const fn size_of_bits(bits: u16) -> usize {
    match bits {
        0..=8 => 1,
        9..=16 => 2,
        17..=32 => 4,
        _ => 8,
    }
}

/// The error of a type that DDS cannot carry, with the place of the fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct TypeError {
    /// The structure, and the member after a dot.
    pub path: String,
    /// The fault.
    pub why: Fault,
}

/// A fault of a type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The name is no IDL identifier, or an IDL keyword.
    #[error("not a valid IDL name")]
    BadName,
    /// Two members have the same name (IDL ignores case).
    #[error("the name is taken by another member")]
    TwiceTheName,
    /// The structure has no members, or more than [`MAX_MEMBERS`].
    #[error("expected 1 to {MAX_MEMBERS} members, found {0}")]
    MemberCount(usize),
    /// The type is nested deeper than [`MAX_DEPTH`].
    #[error("nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A key is not a primitive, enumeration or string, or is optional.
    #[error("a key must be a primitive, enumeration or string, and not optional")]
    BadKey,
    /// Cyclone DDS does not read this feature of XTypes (maps, bit sets, mutable unions).
    #[error("{0} are not supported")]
    Unsupported(&'static str),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(t: &StructType) -> Fault {
        t.check().unwrap_err().why
    }

    #[test]
    fn names_are_checked_as_idl_has_them() {
        let ok = StructType::new("A::B").member("x", Kind::Int32);
        assert_eq!(ok.check(), Ok(()));
        assert_eq!(
            why(&StructType::new("1A").member("x", Kind::Bool)),
            Fault::BadName
        );
        assert_eq!(
            why(&ok.clone().member("Struct", Kind::Bool)),
            Fault::BadName
        );
        assert_eq!(why(&ok.member("X", Kind::Bool)), Fault::TwiceTheName);
        assert_eq!(why(&StructType::new("A")), Fault::MemberCount(0));
    }

    #[test]
    fn a_sequence_is_no_key_and_deep_nesting_is_refused() {
        let list = Kind::Sequence(Box::new(Kind::Byte), None);
        assert_eq!(why(&StructType::new("A").key("x", list)), Fault::BadKey);
        let mut deep = StructType::new("S").member("x", Kind::Byte);
        for _ in 0..MAX_DEPTH {
            deep = StructType::new("S").member("x", Kind::Struct(Arc::new(deep)));
        }
        assert_eq!(why(&deep), Fault::TooDeep);
    }

    #[test]
    fn an_error_says_where() {
        let entry = StructType::new("E").member("long", Kind::Byte);
        let t = StructType::new("M").member("entries", Kind::sequence_of(entry));
        assert_eq!(
            t.check().unwrap_err().to_string(),
            "E.long: not a valid IDL name"
        );
    }
}
