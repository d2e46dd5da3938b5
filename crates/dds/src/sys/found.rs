//! Types of foreign topics: requested by the exchange of type objects (XTypes 1.3, 7.6.3.3), and
//! converted to the same description as types of our own.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use cyclors as c;

use super::type_info::TypeInfo;
use super::{Entity, checked, nanos};
use crate::types::{
    Case, EnumType, Extensibility, Fault, Kind, MAX_DEPTH, MAX_MEMBERS, Member, StructType,
    TypeError, UnionType,
};
use crate::{Error, ReturnCode};

/// Most members of a type and of all types inside it, with labels and literals, counted as often as
/// they occur. A hostile type could otherwise grow exponentially with its depth.
const MOST_MEMBERS: usize = 65_536;

/// Returns the description of a foreign endpoint's type.
pub(crate) fn type_of(
    participant: &Arc<Entity>,
    topic: &str,
    info: &TypeInfo,
    timeout: Duration,
) -> Result<StructType, Error> {
    // SAFETY: live type information; the result is borrowed from it.
    let id = unsafe { c::ddsi_typeinfo_complete_typeid(info.as_ptr().cast()) };
    let mut asking = Asking {
        participant,
        topic,
        timeout,
        members: 0,
    };
    // SAFETY: a type identifier of the library is this structure (ddsi__xt_impl.h), or null.
    let Some(id) = (unsafe { id.cast::<c::DDS_XTypes_TypeIdentifier>().as_ref() }) else {
        return Err(asking.unsupported("a topic's type", "types without a complete description"));
    };
    match asking.kind(id, topic, 0)? {
        Kind::Struct(t) => Ok(Arc::unwrap_or_clone(t)),
        _ => Err(asking.unsupported(topic, "topics of anything but structures")),
    }
}

/// An owned type object.
struct Object(*mut c::dds_typeobj_t);

impl Object {
    fn complete(&self) -> Option<&c::DDS_XTypes_CompleteTypeObject> {
        // SAFETY: a type object of the library is this structure (ddsi__xt_impl.h), alive as long
        // as `self`; the discriminator says which member of the union is there.
        unsafe {
            let object = self.0.cast::<c::DDS_XTypes_TypeObject>().as_ref()?;
            if u32::from(object._d) != c::DDS_XTypes_EK_COMPLETE {
                return None;
            }
            Some(&object._u.complete)
        }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: made by dds_get_typeobj, not freed before, not used after.
        unsafe { c::dds_free_typeobj(self.0) };
    }
}

struct Asking<'a> {
    participant: &'a Arc<Entity>,
    topic: &'a str,
    timeout: Duration,
    members: usize,
}

impl Asking<'_> {
    fn unsupported(&self, path: &str, what: &'static str) -> Error {
        self.fault(path, Fault::Unsupported(what))
    }

    fn fault(&self, path: &str, why: Fault) -> Error {
        let path = if path == self.topic {
            format!("topic {:?}", self.topic)
        } else {
            format!("topic {:?}, {path}", self.topic)
        };
        Error::Type(TypeError { path, why })
    }

    /// Returns the type of an identifier.
    fn kind(
        &mut self,
        id: &c::DDS_XTypes_TypeIdentifier,
        path: &str,
        depth: usize,
    ) -> Result<Kind, Error> {
        if depth >= MAX_DEPTH {
            return Err(self.fault(path, Fault::TooDeep));
        }
        let code = u32::from(id._d);
        if let Some(primitive) = primitive(code) {
            return Ok(primitive);
        }
        // SAFETY: the discriminator says which member of the union is there (XTypes 1.3, 7.3.4.2).
        let (element, bounds) = unsafe {
            match code {
                c::DDS_XTypes_TI_STRING8_SMALL => {
                    return Ok(Kind::String(bound(id._u.string_sdefn.bound.into())));
                }
                c::DDS_XTypes_TI_STRING8_LARGE => {
                    return Ok(Kind::String(bound(id._u.string_ldefn.bound)));
                }
                c::DDS_XTypes_TI_STRING16_SMALL => {
                    return Ok(Kind::WString(bound(id._u.string_sdefn.bound.into())));
                }
                c::DDS_XTypes_TI_STRING16_LARGE => {
                    return Ok(Kind::WString(bound(id._u.string_ldefn.bound)));
                }
                c::DDS_XTypes_TI_PLAIN_SEQUENCE_SMALL => {
                    let t = &id._u.seq_sdefn;
                    (t.element_identifier, Bounds::Sequence(t.bound.into()))
                }
                c::DDS_XTypes_TI_PLAIN_SEQUENCE_LARGE => {
                    let t = &id._u.seq_ldefn;
                    (t.element_identifier, Bounds::Sequence(t.bound))
                }
                c::DDS_XTypes_TI_PLAIN_ARRAY_SMALL => {
                    let t = &id._u.array_sdefn;
                    let all = &t.array_bound_seq;
                    let n = elements(all._buffer, all._length).iter();
                    (t.element_identifier, Bounds::array(n.map(|n| (*n).into())))
                }
                c::DDS_XTypes_TI_PLAIN_ARRAY_LARGE => {
                    let t = &id._u.array_ldefn;
                    let all = &t.array_bound_seq;
                    let n = elements(all._buffer, all._length).iter();
                    (t.element_identifier, Bounds::array(n.copied()))
                }
                c::DDS_XTypes_EK_COMPLETE => return self.described(id, path, depth),
                _ => return Err(self.unsupported(path, name_of(code))),
            }
        };
        // SAFETY: the element's identifier lives as long as the list's, or is null.
        let Some(element) = (unsafe { element.as_ref() }) else {
            return Err(self.unsupported(path, "lists of nothing"));
        };
        let element = self.kind(element, path, depth + 1)?;
        self.list(element, bounds, path)
    }

    fn list(&self, element: Kind, bounds: Bounds, path: &str) -> Result<Kind, Error> {
        match bounds {
            Bounds::Sequence(n) => Ok(Kind::Sequence(Box::new(element), bound(n))),
            Bounds::Array(Some(n)) => Ok(Kind::Array(Box::new(element), n)),
            Bounds::Array(None) => Err(self.unsupported(path, "arrays of this size")),
        }
    }

    /// Returns the type of an identifier that is the hash of its description.
    fn described(
        &mut self,
        id: &c::DDS_XTypes_TypeIdentifier,
        path: &str,
        depth: usize,
    ) -> Result<Kind, Error> {
        let object = self.ask(id)?;
        let Some(t) = object.complete() else {
            return Err(self.unsupported(path, "types without a complete description"));
        };
        // SAFETY: the discriminator says which member of the union is there (XTypes 1.3, annex B).
        unsafe {
            match u32::from(t._d) {
                c::DDS_XTypes_TK_ALIAS => {
                    self.kind(&t._u.alias_type.body.common.related_type, path, depth + 1)
                }
                c::DDS_XTypes_TK_ENUM => self.enumeration(&t._u.enumerated_type, path),
                c::DDS_XTypes_TK_BITMASK => {
                    Ok(Kind::Bitmask(t._u.bitmask_type.header.common.bit_bound))
                }
                c::DDS_XTypes_TK_STRUCTURE => {
                    let structure = self.structure(&t._u.struct_type, depth)?;
                    Ok(Kind::Struct(Arc::new(structure)))
                }
                c::DDS_XTypes_TK_UNION => {
                    let union = self.union(&t._u.union_type, depth)?;
                    Ok(Kind::Union(Arc::new(union)))
                }
                c::DDS_XTypes_TK_SEQUENCE => {
                    let list = &t._u.sequence_type;
                    let element = self.kind(&list.element.common.type_, path, depth + 1)?;
                    self.list(element, Bounds::Sequence(list.header.common.bound), path)
                }
                c::DDS_XTypes_TK_ARRAY => {
                    let list = &t._u.array_type;
                    let element = self.kind(&list.element.common.type_, path, depth + 1)?;
                    let all = &list.header.common.bound_seq;
                    let n = elements(all._buffer, all._length).iter().copied();
                    self.list(element, Bounds::array(n), path)
                }
                code => Err(self.unsupported(path, name_of(code))),
            }
        }
    }

    fn ask(&self, id: &c::DDS_XTypes_TypeIdentifier) -> Result<Object, Error> {
        let mut object = std::ptr::null_mut();
        // SAFETY: a type identifier of the library is this structure (ddsi__xt_impl.h); on success
        // the object is owned here.
        let code = unsafe {
            c::dds_get_typeobj(
                self.participant.handle(),
                std::ptr::from_ref(id).cast(),
                nanos(self.timeout),
                &mut object,
            )
        };
        if ReturnCode::from_raw(code) == ReturnCode::Timeout {
            return Err(Error::TypeUnanswered(self.topic.to_owned()));
        }
        checked(
            || format!("ask for the type of topic {:?}", self.topic),
            code,
        )?;
        Ok(Object(object))
    }

    fn structure(
        &mut self,
        t: &c::DDS_XTypes_CompleteStructType,
        depth: usize,
    ) -> Result<StructType, Error> {
        let name = text(&t.header.detail.type_name);
        let mut out = StructType::new(&name);
        out.extensibility = extensibility(t.struct_flags);
        // Members of a base come first, as if they were this structure's own.
        if u32::from(t.header.base_type._d) != c::DDS_XTypes_TK_NONE {
            let Kind::Struct(base) = self.kind(&t.header.base_type, &name, depth + 1)? else {
                return Err(self.unsupported(&name, "bases that are no structures"));
            };
            out.members.extend(base.members.iter().cloned());
        }
        // SAFETY: a sequence of the library: `_length` elements, alive as long as the object.
        let members = unsafe { elements(t.member_seq._buffer, t.member_seq._length) };
        self.members += members.len();
        if self.members > MOST_MEMBERS || out.members.len() + members.len() > MAX_MEMBERS {
            return Err(self.fault(&name, Fault::MemberCount(self.members)));
        }
        for member in members {
            let common = &member.common;
            let own = text(&member.detail.name);
            let flags = u32::from(common.member_flags);
            out.members.push(Member {
                kind: self.kind(&common.member_type_id, &format!("{name}.{own}"), depth + 1)?,
                name: own,
                id: common.member_id,
                key: flags & c::DDS_XTypes_IS_KEY != 0,
                optional: flags & c::DDS_XTypes_IS_OPTIONAL != 0,
            });
        }
        Ok(out)
    }

    fn union(
        &mut self,
        t: &c::DDS_XTypes_CompleteUnionType,
        depth: usize,
    ) -> Result<UnionType, Error> {
        let name = text(&t.header.detail.type_name);
        let growth = extensibility(t.union_flags);
        if growth == Extensibility::Mutable {
            return Err(self.unsupported(&name, "mutable unions"));
        }
        let by = format!("{name}.discriminator");
        let discriminator = Member {
            kind: self.kind(&t.discriminator.common.type_id, &by, depth + 1)?,
            name: "discriminator".to_owned(),
            id: 0,
            key: false,
            optional: false,
        };
        if discriminator.kind.primitive_size().is_none() {
            return Err(self.unsupported(&by, "discriminators of this kind"));
        }
        // SAFETY: as for the members of a structure.
        let members = unsafe { elements(t.member_seq._buffer, t.member_seq._length) };
        self.members += members.len();
        if self.members > MOST_MEMBERS || members.len() > MAX_MEMBERS {
            return Err(self.fault(&name, Fault::MemberCount(self.members)));
        }
        let mut cases = Vec::with_capacity(members.len());
        for member in members {
            let common = &member.common;
            let own = text(&member.detail.name);
            // SAFETY: as for the members of a structure.
            let labels = unsafe { elements(common.label_seq._buffer, common.label_seq._length) };
            self.members += labels.len();
            if self.members > MOST_MEMBERS {
                return Err(self.fault(&name, Fault::MemberCount(self.members)));
            }
            cases.push(Case {
                labels: labels.to_vec(),
                is_default: u32::from(common.member_flags) & c::DDS_XTypes_IS_DEFAULT != 0,
                member: Member {
                    kind: self.kind(&common.type_id, &format!("{name}.{own}"), depth + 1)?,
                    name: own,
                    id: common.member_id,
                    key: false,
                    optional: false,
                },
            });
        }
        Ok(UnionType {
            name,
            extensibility: growth,
            discriminator,
            cases,
        })
    }

    fn enumeration(
        &mut self,
        t: &c::DDS_XTypes_CompleteEnumeratedType,
        path: &str,
    ) -> Result<Kind, Error> {
        // SAFETY: as for members.
        let literals = unsafe { elements(t.literal_seq._buffer, t.literal_seq._length) };
        self.members += literals.len();
        if self.members > MOST_MEMBERS {
            return Err(self.fault(path, Fault::MemberCount(self.members)));
        }
        let literals = literals.iter();
        Ok(Kind::Enum(Arc::new(EnumType {
            name: text(&t.header.detail.type_name),
            bit_bound: t.header.common.bit_bound.clamp(1, 32),
            literals: literals
                .map(|l| (text(&l.detail.name), l.common.value))
                .collect(),
        })))
    }
}

enum Bounds {
    /// The bound; 0 for none.
    Sequence(u32),
    /// The number of elements; `None` if it is too large to count.
    Array(Option<u32>),
}

impl Bounds {
    /// Makes one dimension of several: such an array has the same layout in memory.
    fn array(mut n: impl Iterator<Item = u32>) -> Self {
        Self::Array(n.try_fold(1_u32, u32::checked_mul).filter(|n| *n > 0))
    }
}

fn extensibility(flags: u16) -> Extensibility {
    let flags = u32::from(flags);
    if flags & c::DDS_XTypes_IS_MUTABLE != 0 {
        Extensibility::Mutable
    } else if flags & c::DDS_XTypes_IS_APPENDABLE != 0 {
        Extensibility::Appendable
    } else {
        Extensibility::Final
    }
}

fn bound(n: u32) -> Option<u32> {
    (n > 0).then_some(n)
}

fn primitive(code: u32) -> Option<Kind> {
    Some(match code {
        c::DDS_XTypes_TK_BOOLEAN => Kind::Bool,
        c::DDS_XTypes_TK_BYTE => Kind::Byte,
        c::DDS_XTypes_TK_INT8 => Kind::Int8,
        c::DDS_XTypes_TK_UINT8 => Kind::UInt8,
        c::DDS_XTypes_TK_INT16 => Kind::Int16,
        c::DDS_XTypes_TK_UINT16 => Kind::UInt16,
        c::DDS_XTypes_TK_INT32 => Kind::Int32,
        c::DDS_XTypes_TK_UINT32 => Kind::UInt32,
        c::DDS_XTypes_TK_INT64 => Kind::Int64,
        c::DDS_XTypes_TK_UINT64 => Kind::UInt64,
        c::DDS_XTypes_TK_FLOAT32 => Kind::Float32,
        c::DDS_XTypes_TK_FLOAT64 => Kind::Float64,
        c::DDS_XTypes_TK_CHAR8 => Kind::Char,
        c::DDS_XTypes_TK_CHAR16 => Kind::WChar,
        _ => return None,
    })
}

/// Returns the name of an unsupported kind, which the library's own builder of types refuses too.
const fn name_of(code: u32) -> &'static str {
    match code {
        c::DDS_XTypes_TK_BITSET => "bit sets",
        c::DDS_XTypes_TK_MAP
        | c::DDS_XTypes_TI_PLAIN_MAP_SMALL
        | c::DDS_XTypes_TI_PLAIN_MAP_LARGE => "maps",
        c::DDS_XTypes_TK_FLOAT128 => "long doubles",
        c::DDS_XTypes_TI_STRONGLY_CONNECTED_COMPONENT => "types that hold themselves",
        _ => "types of this kind",
    }
}

/// # Safety
/// `first` points to `n` elements that live for `'a`, or `n` is 0.
unsafe fn elements<'a, T>(first: *const T, n: u32) -> &'a [T] {
    if first.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: by the contract of this function.
    unsafe { std::slice::from_raw_parts(first, n as usize) }
}

/// Returns the text in a field of fixed size, up to its NUL.
fn text(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field
        .iter()
        .take_while(|c| **c != 0)
        .map(|c| c.cast_unsigned())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of 4,096 members could otherwise bring 65,536 names along.
    #[test]
    fn literals_count_as_often_as_they_occur() {
        // SAFETY: all zero is a valid literal: integers, and names and annotations that are empty.
        let mut literals: [c::DDS_XTypes_CompleteEnumeratedLiteral; 2] =
            unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut t: c::DDS_XTypes_CompleteEnumeratedType = unsafe { std::mem::zeroed() };
        t.literal_seq._buffer = literals.as_mut_ptr();
        t.literal_seq._length = 2;
        let nobody = Arc::new(Entity { owned: None });
        let mut asking = Asking {
            participant: &nobody,
            topic: "T",
            timeout: Duration::ZERO,
            members: MOST_MEMBERS - 3,
        };
        let Kind::Enum(first) = asking.enumeration(&t, "T").unwrap() else {
            panic!("an enumeration is none");
        };
        assert_eq!((first.literals.len(), first.bit_bound), (2, 1));
        let error = asking.enumeration(&t, "T").unwrap_err().to_string();
        assert!(error.ends_with("found 65537"), "{error}");
    }
}
