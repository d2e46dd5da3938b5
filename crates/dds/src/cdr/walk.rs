//! The walk over a sample along its type, the base of printing, of checking, and of generic tools.

use std::collections::BTreeMap;

use super::tables::{Tables, worked};
use super::{CdrError, CdrFault, CdrReader};
use crate::types::{EnumType, Extensibility, Kind, MAX_DEPTH, Member, StructType, UnionType};

/// The number of members without bytes that any sample may have: as many as a type may declare.
const EMPTY: usize = 65_536;
/// The number of further such members for each byte of a sample. Without a limit each byte of a
/// hostile sample would cost a walk over all empty members of its type.
const EMPTY_FOR_EACH_BYTE: usize = 32;

/// A value without parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number of 32 bits.
    Float32(f32),
    /// A floating-point number of 64 bits.
    Float(f64),
    /// A character of 8 bits.
    Char(u8),
    /// A string, without its NUL and not necessarily UTF-8. Wide strings and characters are UTF-8.
    String(&'a [u8]),
    /// An enumeration: the number, and its name if the type has one for it.
    Enum(i32, Option<&'a str>),
    /// A `sequence<octet>` or an array of octets, in one piece.
    Octets(&'a [u8]),
    /// An optional member that is absent.
    Absent,
}

/// Receives the parts of a sample in order.
pub trait Visitor {
    /// Begins a structure, of which the sample itself is the first. A union is a structure of its
    /// discriminator and the member that it selects, if any.
    fn begin_struct(&mut self) {}
    /// Ends the structure.
    fn end_struct(&mut self) {}
    /// Names the member whose value comes next.
    fn member(&mut self, member: &Member) {
        let _ = member;
    }
    /// Begins a sequence or array of this many elements.
    fn begin_list(&mut self, elements: u32) {
        let _ = elements;
    }
    /// Ends the list.
    fn end_list(&mut self) {}
    /// Receives a value.
    fn value(&mut self, value: Value<'_>);
    /// Returns whether the visitor takes no more: the walk then ends with [`CdrFault::TooLong`].
    fn is_full(&self) -> bool {
        false
    }
}

/// Walks `sample`, the bytes of a `t` with their header, and passes its parts to `visitor`.
///
/// # Errors
/// The first byte that contradicts the type; the visitor has then received the parts before it.
pub fn walk(t: &StructType, sample: &[u8], visitor: &mut impl Visitor) -> Result<(), CdrError> {
    let mut reader = CdrReader::new(sample)?;
    Walk::new(visitor, sample.len()).structure(t, &mut reader)?;
    // A writer may pad to a multiple of four without noting it in the header.
    match reader.remaining() {
        0..=3 => Ok(()),
        n => Err(reader.fault(CdrFault::TrailingBytes(n))),
    }
}

/// Checks that `sample` is a complete and valid `t`.
///
/// # Errors
/// The first byte that contradicts the type.
pub fn check(t: &StructType, sample: &[u8]) -> Result<(), CdrError> {
    walk(t, sample, &mut Nothing)
}

/// A visitor that ignores everything.
struct Nothing;

impl Visitor for Nothing {
    fn value(&mut self, _: Value<'_>) {}
}

/// Passes the members of the key to `visitor`, from a sample or from bytes that hold the key
/// `alone`. Reads nothing after them. For types that are not mutable.
pub(crate) fn walk_key(
    t: &StructType,
    bytes: &[u8],
    alone: bool,
    visitor: &mut impl Visitor,
) -> Result<(), CdrError> {
    let mut r = members_of(t, bytes)?;
    let mut keys = Walk::without_tables(visitor, bytes.len());
    let visitor = &mut Nothing;
    let mut others = Walk::without_tables(visitor, bytes.len());
    let last = t.members.iter().rposition(|m| m.key);
    for member in t.members.iter().take(last.map_or(0, |last| last + 1)) {
        match (member.key, alone) {
            (true, _) => keys.member(member, &mut r)?,
            (false, true) => {}
            (false, false) => others.member(member, &mut r)?,
        }
    }
    Ok(())
}

/// Returns a reader at the first member, for structures whose members are in order.
fn members_of<'a>(t: &StructType, bytes: &'a [u8]) -> Result<CdrReader<'a>, CdrError> {
    let mut r = CdrReader::new(bytes)?;
    match t.extensibility {
        Extensibility::Mutable => return Err(r.fault(CdrFault::Representation(0x0002))),
        Extensibility::Appendable if r.is_version_2() => _ = r.u32()?,
        _ => {}
    }
    Ok(r)
}

/// Returns the integer of the member at `place` of `t` in `sample`; a signed one by its bits. Reads
/// nothing after it, and does not allocate. `None` if the member is no integer or is absent, if the
/// bytes in front of it contradict the type, or if the type is mutable.
pub fn integer_member(t: &StructType, sample: &[u8], place: usize) -> Option<u64> {
    let mut r = members_of(t, sample).ok()?;
    let visitor = &mut Nothing;
    let mut others = Walk::without_tables(visitor, sample.len());
    for member in t.members.get(..place)? {
        others.member(member, &mut r).ok()?;
    }
    let mut found = Integer(None);
    let member = t.members.get(place)?;
    member.kind.primitive_size()?;
    let mut walk = Walk::without_tables(&mut found, sample.len());
    walk.member(member, &mut r).ok()?;
    found.0
}

/// A visitor that keeps the last integer.
struct Integer(Option<u64>);

impl Visitor for Integer {
    fn value(&mut self, value: Value<'_>) {
        self.0 = match value {
            Value::UInt(value) => Some(value),
            Value::Int(value) => Some(value.cast_unsigned()),
            _ => None,
        };
    }
}

/// A visitor that keeps the value of a discriminator.
struct Label(i64);

impl Visitor for Label {
    fn value(&mut self, value: Value<'_>) {
        self.0 = match value {
            Value::Bool(b) => b.into(),
            Value::Int(n) => n,
            Value::Char(n) => n.into(),
            Value::Enum(n, _) => n.into(),
            // Labels are 32-bit integers.
            Value::UInt(n) => i64::try_from(n).unwrap_or(i64::MAX),
            _ => i64::MAX,
        };
    }
}

/// A walk under way, with its depth of lists and structures.
struct Walk<'v, V> {
    visitor: &'v mut V,
    depth: usize,
    tables: Tables,
    /// The number of members without bytes that may still come.
    empty: usize,
}

impl<'v, V: Visitor> Walk<'v, V> {
    /// Makes a walk over a sample of `bytes` bytes.
    fn new(visitor: &'v mut V, bytes: usize) -> Self {
        Self {
            visitor,
            depth: 0,
            tables: Tables::default(),
            empty: bytes
                .saturating_mul(EMPTY_FOR_EACH_BYTE)
                .saturating_add(EMPTY),
        }
    }

    /// Makes a walk without tables, for the path of a sample, which does not allocate.
    fn without_tables(visitor: &'v mut V, bytes: usize) -> Self {
        Self {
            tables: Tables::one_by_one(),
            ..Self::new(visitor, bytes)
        }
    }

    /// Fails once the visitor takes no more.
    fn go_on(&self, r: &CdrReader<'_>) -> Result<(), CdrError> {
        match self.visitor.is_full() {
            true => Err(r.fault(CdrFault::TooLong)),
            false => Ok(()),
        }
    }

    /// Counts a member that takes no bytes, and fails beyond the limit.
    fn count_empty(&mut self, r: &CdrReader<'_>) -> Result<(), CdrError> {
        worked(1);
        let left = self.empty.checked_sub(1);
        self.empty = left.ok_or(r.fault(CdrFault::TooManyEmpty))?;
        Ok(())
    }

    fn value(&mut self, kind: &Kind, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        let value = match kind {
            Kind::Bool => Value::Bool(r.bool()?),
            Kind::Byte | Kind::UInt8 => Value::UInt(r.u8()?.into()),
            Kind::Int8 => Value::Int(r.i8()?.into()),
            Kind::Int16 => Value::Int(r.i16()?.into()),
            Kind::UInt16 => Value::UInt(r.u16()?.into()),
            Kind::Int32 => Value::Int(r.i32()?.into()),
            Kind::UInt32 => Value::UInt(r.u32()?.into()),
            Kind::Int64 => Value::Int(r.i64()?),
            Kind::UInt64 => Value::UInt(r.u64()?),
            Kind::Float32 => Value::Float32(r.f32()?),
            Kind::Float64 => Value::Float(r.f64()?),
            Kind::Char => Value::Char(r.u8()?),
            Kind::String(bound) => {
                let start = r.offset();
                let text = r.string()?;
                if bound.is_some_and(|b| text.len() > b as usize) {
                    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
                    return Err(r.fault_at(start, CdrFault::BadLength(length)));
                }
                Value::String(text)
            }
            Kind::WChar => {
                let start = r.offset();
                let unit = char::from_u32(r.u16()?.into());
                let unit = unit.ok_or(r.fault_at(start, CdrFault::BadString))?;
                let text = unit.to_string();
                self.visitor.value(Value::String(text.as_bytes()));
                return Ok(());
            }
            Kind::WString(bound) => {
                let text = r.wide_string(*bound)?;
                self.visitor.value(Value::String(text.as_bytes()));
                return Ok(());
            }
            Kind::Enum(t) => self.enumeration(t, r)?,
            Kind::Bitmask(0..=8) => Value::UInt(r.u8()?.into()),
            Kind::Bitmask(9..=16) => Value::UInt(r.u16()?.into()),
            Kind::Bitmask(17..=32) => Value::UInt(r.u32()?.into()),
            Kind::Bitmask(_) => Value::UInt(r.u64()?),
            Kind::Sequence(element, bound) => return self.sequence(element, *bound, r),
            Kind::Array(element, n) => {
                skip_list_header(element, r)?;
                return self.elements(element, *n, r);
            }
            Kind::Struct(t) => return self.deeper(r, |walk, r| walk.structure(t, r)),
            Kind::Union(t) => return self.deeper(r, |walk, r| walk.union(t, r)),
        };
        self.visitor.value(value);
        Ok(())
    }

    /// Walks the parts of a nested value.
    fn deeper<'a>(
        &mut self,
        r: &mut CdrReader<'a>,
        parts: impl FnOnce(&mut Self, &mut CdrReader<'a>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        if self.depth + 1 >= MAX_DEPTH {
            return Err(r.fault(CdrFault::TooDeep));
        }
        self.depth += 1;
        parts(self, r)?;
        self.depth -= 1;
        Ok(())
    }

    fn structure(&mut self, t: &StructType, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        self.visitor.begin_struct();
        match t.extensibility {
            Extensibility::Mutable => self.mutable(t, r)?,
            Extensibility::Appendable if r.is_version_2() => delimited(r, |inside| {
                for member in &t.members {
                    // A writer with an older type has fewer members.
                    if inside.remaining() == 0 {
                        break;
                    }
                    self.member(member, inside)?;
                }
                Ok(())
            })?,
            _ => t.members.iter().try_for_each(|m| self.member(m, r))?,
        }
        self.visitor.end_struct();
        Ok(())
    }

    /// Walks a structure whose members each have a header with their number (XTypes 1.3, 7.4.3.5.3,
    /// rules 30 and 31). The members may come in any order; the visitor receives them in the order
    /// of the type.
    fn mutable(&mut self, t: &StructType, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        if !r.is_version_2() {
            // Version 1 has another form of it, which no current writer uses for samples.
            return Err(r.fault(CdrFault::Representation(0x0002)));
        }
        delimited(r, |inside| {
            for (place, at) in self.find_members(t, inside)? {
                self.go_on(inside)?;
                let member = &t.members[place];
                self.visitor.member(member);
                match at {
                    Some(mut at) => self.value(&member.kind, &mut at)?,
                    None => {
                        self.count_empty(inside)?;
                        self.visitor.value(Value::Absent);
                    }
                }
            }
            Ok(())
        })
    }

    /// Finds the members of the type that are present, and the optional ones that are absent, by
    /// their places. A writer with another version of the type does not have the rest.
    fn find_members<'a>(
        &mut self,
        t: &StructType,
        r: &mut CdrReader<'a>,
    ) -> Result<BTreeMap<usize, Option<CdrReader<'a>>>, CdrError> {
        let optional = self.tables.optional(t).iter();
        let mut found: BTreeMap<_, _> = optional.map(|place| (*place, None)).collect();
        while r.remaining() > 0 {
            let start = r.offset();
            let (id, must_understand, length) = member_header(r)?;
            let at = r.window(length)?;
            r.bytes(length)?;
            match self.tables.member(t, id) {
                Some(place) => _ = found.insert(place, Some(at)),
                None if must_understand => {
                    return Err(r.fault_at(start, CdrFault::UnknownMember(id)));
                }
                None => {}
            }
        }
        Ok(found)
    }

    fn union(&mut self, t: &UnionType, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        self.visitor.begin_struct();
        match t.extensibility {
            // Each part has its own header, in a form that no current writer uses.
            Extensibility::Mutable => return Err(r.fault(CdrFault::Representation(0x0002))),
            Extensibility::Appendable if r.is_version_2() => {
                delimited(r, |inside| self.discriminated(t, inside))?;
            }
            _ => self.discriminated(t, r)?,
        }
        self.visitor.end_struct();
        Ok(())
    }

    /// Walks the discriminator, and the member that it selects.
    fn discriminated(&mut self, t: &UnionType, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        let kind = &t.discriminator.kind;
        let label = self.label(kind, r)?;
        let case = self.tables.case(t, label);
        self.visitor.member(&t.discriminator);
        self.value(kind, r)?;
        case.map_or(Ok(()), |case| self.member(&t.cases[case].member, r))
    }

    /// Returns the value of the discriminator that follows, as a number.
    fn label(&mut self, kind: &Kind, r: &CdrReader<'_>) -> Result<i64, CdrError> {
        let mut visitor = Label(i64::MAX);
        // A value with parts is no discriminator, whatever a foreign type declares.
        if kind.primitive_size().is_some() {
            let mut inner = Walk::new(&mut visitor, 0);
            std::mem::swap(&mut inner.tables, &mut self.tables);
            let read = inner.value(kind, &mut r.clone());
            std::mem::swap(&mut inner.tables, &mut self.tables);
            read?;
        }
        Ok(visitor.0)
    }

    /// Reads an enumeration.
    fn enumeration<'t>(
        &mut self,
        t: &'t EnumType,
        r: &mut CdrReader<'_>,
    ) -> Result<Value<'t>, CdrError> {
        let (n, mask) = match t.bit_bound {
            0..=8 => (i32::from(r.i8()?), 0xff),
            9..=16 => (i32::from(r.i16()?), 0xffff),
            _ => (r.i32()?, -1),
        };
        // Products differ in whether a short one has a sign.
        let literal = self.tables.literal(t, n, mask);
        Ok(match literal.and_then(|place| t.literals.get(place)) {
            Some((name, value)) => Value::Enum(*value, Some(name.as_str())),
            None => Value::Enum(n, None),
        })
    }

    fn member(&mut self, member: &Member, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        self.go_on(r)?;
        self.visitor.member(member);
        let start = r.offset();
        match member.optional {
            true => self.optional(member, r)?,
            false => self.value(&member.kind, r)?,
        }
        if r.offset() == start {
            self.count_empty(r)?;
        }
        Ok(())
    }

    /// Walks an optional member, which may be absent.
    fn optional(&mut self, member: &Member, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        if r.is_version_2() {
            if r.bool()? {
                return self.value(&member.kind, r);
            }
            self.visitor.value(Value::Absent);
            return Ok(());
        }
        let length = parameter_length(r)?;
        if length == 0 {
            self.visitor.value(Value::Absent);
            return Ok(());
        }
        // Alignment restarts after a parameter header (XTypes 1.3, 7.4.1.1.5.2).
        let mut inside = r.parameter(length)?;
        self.value(&member.kind, &mut inside)?;
        r.bytes(length).map(|_| ())
    }

    fn sequence(
        &mut self,
        element: &Kind,
        bound: Option<u32>,
        r: &mut CdrReader<'_>,
    ) -> Result<(), CdrError> {
        skip_list_header(element, r)?;
        let start = r.offset();
        let n = r.count(1)?;
        // The bytes that are left for each element; `None` without elements.
        if let Some(most) = r.remaining().checked_div(n as usize)
            && min_size(element, MAX_DEPTH, &mut (most + 1)) > most
        {
            return Err(r.fault_at(r.offset() - 4, CdrFault::BadLength(n)));
        }
        if bound.is_some_and(|b| n > b) {
            return Err(r.fault_at(start, CdrFault::BadLength(n)));
        }
        self.elements(element, n, r)
    }

    fn elements(&mut self, element: &Kind, n: u32, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
        self.deeper(r, |walk, r| {
            if matches!(element, Kind::Byte | Kind::UInt8) {
                walk.visitor.value(Value::Octets(r.bytes(n as usize)?));
                return Ok(());
            }
            walk.visitor.begin_list(n);
            for _ in 0..n {
                walk.go_on(r)?;
                let start = r.offset();
                walk.value(element, r)?;
                // Elements without bytes would not bound the walk.
                if r.offset() == start {
                    return Err(r.fault(CdrFault::BadLength(n)));
                }
            }
            walk.visitor.end_list();
            Ok(())
        })
    }
}

/// Walks a value after its length in bytes, and skips all of that length.
fn delimited<'a>(
    r: &mut CdrReader<'a>,
    parts: impl FnOnce(&mut CdrReader<'a>) -> Result<(), CdrError>,
) -> Result<(), CdrError> {
    let length = r.u32()? as usize;
    parts(&mut r.window(length)?)?;
    r.bytes(length).map(|_| ())
}

/// Reads the number of the member that follows, whether it must be understood, and its length.
fn member_header(r: &mut CdrReader<'_>) -> Result<(u32, bool, usize), CdrError> {
    let header = r.u32()?;
    let (id, must_understand) = (header & 0x0fff_ffff, header >> 31 == 1);
    let length = match header >> 28 & 7 {
        code @ 0..=3 => 1 << code,
        4 => r.u32()? as usize,
        // The count of elements is also the beginning of the member: it is not skipped.
        code => {
            let count = r.clone().u32()? as usize;
            let size = [1, 4, 8][code as usize - 5];
            count.saturating_mul(size).saturating_add(4)
        }
    };
    Ok((id, must_understand, length))
}

/// Reads the length in the parameter header in front of an optional member, version 1.
fn parameter_length(r: &mut CdrReader<'_>) -> Result<usize, CdrError> {
    const ID: u16 = 0x3fff;
    const EXTENDED: u16 = 0x3f01;
    r.align(4)?;
    let id = r.u16()? & ID;
    let length = r.u16()?;
    if id == EXTENDED {
        let _member_id = r.u32()?;
        return Ok(r.u32()? as usize);
    }
    Ok(usize::from(length))
}

/// Skips the length that version 2 puts in front of lists whose elements are not primitive, as
/// enumerations and bitmasks of any size are not.
fn skip_list_header(element: &Kind, r: &mut CdrReader<'_>) -> Result<(), CdrError> {
    let is_named = matches!(element, Kind::Enum(_) | Kind::Bitmask(_));
    let primitive = element.primitive_size().is_some() && !is_named;
    if r.is_version_2() && !primitive {
        let _length = r.u32()?;
    }
    Ok(())
}

/// Returns a lower bound of the bytes of a value of this kind, after a look at `looks` members at
/// most. Without that limit a hostile type would make each length in a sample expensive. The bound
/// of a structure without members is 0.
fn min_size(kind: &Kind, depth: usize, looks: &mut usize) -> usize {
    match kind {
        Kind::String(_) => 5,
        Kind::Sequence(..) | Kind::WString(_) => 4,
        // A foreign type may declare more bytes than `usize` can count.
        Kind::Array(element, n) if depth > 0 => {
            min_size(element, depth - 1, looks).saturating_mul(*n as usize)
        }
        Kind::Struct(t) if depth > 0 => match t.extensibility {
            Extensibility::Final => min_size_of_members(t, depth - 1, looks),
            // An older writer has fewer members, behind their length.
            Extensibility::Appendable | Extensibility::Mutable => {
                let mut few = (*looks).min(4);
                min_size_of_members(t, depth - 1, &mut few).min(4)
            }
        },
        Kind::Union(t) if depth > 0 => min_size(&t.discriminator.kind, depth - 1, looks),
        other => other.primitive_size().unwrap_or(0),
    }
}

fn min_size_of_members(t: &StructType, depth: usize, looks: &mut usize) -> usize {
    let mut all = 0_usize;
    for member in &t.members {
        if *looks == 0 {
            break;
        }
        *looks -= 1;
        worked(1);
        // An absent member takes a byte at least.
        all = all.saturating_add(match member.optional {
            true => 1,
            false => min_size(&member.kind, depth, looks),
        });
    }
    all
}

#[cfg(test)]
mod tests;
