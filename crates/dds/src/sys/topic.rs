//! Topics whose types are built at run time (XTypes dynamic types).

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use cyclors as c;

use super::qos::RawQos;
use super::type_info::TypeInfo;
use super::{Entity, c_string, checked, nanos};
use crate::types::{Extensibility, Fault, Kind, Member, StructType, TypeError};
use crate::{Error, Qos, ReturnCode};

/// Registers the type with the participant, and makes a topic of it.
pub(crate) fn create(
    participant: &Arc<Entity>,
    name: &str,
    t: &StructType,
    qos: &Qos,
) -> Result<Arc<Entity>, Error> {
    t.check()?;
    // The limit of instances belongs to each reader, and one topic in one domain has one set of
    // policies.
    let raw = RawQos::new(&qos.clone().without_instances())?;
    raw.xcdr1_only();
    of(&Descriptor::new(participant, t)?, participant, name, &raw)
}

/// Makes a topic with the type of a foreign endpoint, requested for at most `timeout`.
pub(crate) fn found(
    participant: &Arc<Entity>,
    name: &str,
    info: &TypeInfo,
    timeout: Duration,
    qos: &Qos,
) -> Result<Arc<Entity>, Error> {
    let raw = RawQos::new(qos)?;
    let descriptor = Descriptor::found(participant, name, info, timeout)?;
    of(&descriptor, participant, name, &raw)
}

fn of(
    descriptor: &Descriptor,
    participant: &Arc<Entity>,
    name: &str,
    qos: &RawQos,
) -> Result<Arc<Entity>, Error> {
    let c_name = c_string("topic", name)?;
    // SAFETY: the descriptor is valid and copied by the call, as are name and policies.
    let handle = unsafe {
        c::dds_create_topic(
            participant.handle(),
            descriptor.as_ptr(),
            c_name.as_ptr(),
            qos.as_ptr(),
            std::ptr::null(),
        )
    };
    let parents = vec![Arc::clone(participant)];
    Entity::adopt(|| format!("create topic {name:?}"), handle, None, parents)
}

/// An owned topic descriptor made by the library from type information.
struct Descriptor(*mut c::dds_topic_descriptor_t);

impl Descriptor {
    const fn as_ptr(&self) -> *const c::dds_topic_descriptor_t {
        self.0.cast_const()
    }

    /// Makes the descriptor of a foreign type, requested on the network for at most `timeout`.
    fn found(
        participant: &Entity,
        topic: &str,
        info: &TypeInfo,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: live type information, which is only read; on success the descriptor is owned.
        let code = unsafe {
            c::dds_create_topic_descriptor(
                c::dds_find_scope_DDS_FIND_SCOPE_GLOBAL,
                participant.handle(),
                info.as_ptr(),
                nanos(timeout),
                &mut descriptor,
            )
        };
        if ReturnCode::from_raw(code) == ReturnCode::Timeout {
            return Err(Error::TypeUnanswered(topic.to_owned()));
        }
        checked(|| format!("find the type of topic {topic:?}"), code)?;
        Ok(Self(descriptor))
    }

    fn new(participant: &Entity, t: &StructType) -> Result<Self, Error> {
        let action = || format!("build type {:?}", t.name);
        let mut top = Dynamic::structure(participant, t, false)?;
        let mut info = std::ptr::null_mut();
        // SAFETY: `top` is a complete dynamic type; on success `info` is owned here.
        let code = unsafe { c::dds_dynamic_type_register(&mut top.0, &mut info) };
        checked(action, code)?;
        let mut descriptor = std::ptr::null_mut();
        // SAFETY: `info` is valid, was just made, and is freed once after its last use.
        let code = unsafe {
            let code = c::dds_create_topic_descriptor(
                c::dds_find_scope_DDS_FIND_SCOPE_LOCAL_DOMAIN,
                participant.handle(),
                info,
                0,
                &mut descriptor,
            );
            c::dds_free_typeinfo(info);
            code
        };
        checked(action, code)?;
        Ok(Self(descriptor))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by dds_create_topic_descriptor, not freed before, not used after.
        unsafe { c::dds_delete_topic_descriptor(self.0) };
    }
}

/// An owned dynamic type under construction.
struct Dynamic(c::dds_dynamic_type_t);

impl Dynamic {
    /// Makes a structure: the type of a topic, or nested in another, as the IDL also marks it.
    fn structure(participant: &Entity, t: &StructType, nested: bool) -> Result<Self, Error> {
        let name = c_string("type", &t.name)?;
        let mut new = Self::create(
            participant,
            c::dds_dynamic_type_kind_DDS_DYNAMIC_STRUCTURE,
            |d| {
                d.name = name.as_ptr();
            },
        )?;
        // XTypes dynamic types begin as final, the only extensibility that this crate writes.
        let growth = match t.extensibility {
            Extensibility::Final => c::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_FINAL,
            Extensibility::Appendable => {
                c::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_APPENDABLE
            }
            Extensibility::Mutable => {
                c::dds_dynamic_type_extensibility_DDS_DYNAMIC_TYPE_EXT_MUTABLE
            }
        };
        // SAFETY: `new` is a live structure without members.
        let code = unsafe { c::dds_dynamic_type_set_extensibility(&mut new.0, growth) };
        checked(|| format!("build type {:?}", t.name), code)?;
        // SAFETY: as above.
        let code = unsafe { c::dds_dynamic_type_set_nested(&mut new.0, nested) };
        checked(|| format!("build type {:?}", t.name), code)?;
        for (id, member) in (0..).zip(&t.members) {
            new.add(participant, t, id, member)?;
        }
        Ok(new)
    }

    fn add(
        &mut self,
        participant: &Entity,
        t: &StructType,
        id: u32,
        member: &Member,
    ) -> Result<(), Error> {
        let action = || format!("build member {:?} of type {:?}", member.name, t.name);
        let name = c_string("member", &member.name)?;
        let spec = Spec::new(participant, t, &member.kind)?;
        // SAFETY: all zero is a valid descriptor: null pointers, no labels, kind unset.
        let mut d: c::dds_dynamic_member_descriptor_t = unsafe { std::mem::zeroed() };
        d.name = name.as_ptr();
        d.id = id;
        d.index = c::DDS_DYNAMIC_MEMBER_INDEX_END;
        d.type_ = spec.hand_over();
        // SAFETY: `self` is a live structure; the call copies the name and takes over the
        // reference to the member's type, also when it fails.
        let code = unsafe { c::dds_dynamic_type_add_member(&mut self.0, d) };
        checked(action, code)?;
        if member.key {
            // SAFETY: the member was just added under this id.
            let code = unsafe { c::dds_dynamic_member_set_key(&mut self.0, id, true) };
            checked(action, code)?;
        }
        if member.optional {
            // SAFETY: as above.
            let code = unsafe { c::dds_dynamic_member_set_optional(&mut self.0, id, true) };
            checked(action, code)?;
        }
        Ok(())
    }

    fn enumeration(participant: &Entity, t: &crate::types::EnumType) -> Result<Self, Error> {
        let name = c_string("type", &t.name)?;
        let kind = c::dds_dynamic_type_kind_DDS_DYNAMIC_ENUMERATION;
        let mut new = Self::create(participant, kind, |d| d.name = name.as_ptr())?;
        // SAFETY: a live enumeration without literals.
        let code = unsafe { c::dds_dynamic_type_set_bit_bound(&mut new.0, t.bit_bound) };
        checked(|| format!("build enumeration {:?}", t.name), code)?;
        for (literal, value) in &t.literals {
            let literal = c_string("literal", literal)?;
            let value = c::dds_dynamic_enum_literal_value_t {
                value_kind:
                    c::dds_dynamic_type_enum_value_kind_DDS_DYNAMIC_ENUM_LITERAL_VALUE_EXPLICIT,
                value: *value,
            };
            // SAFETY: a live enumeration and a NUL-terminated name that is copied.
            let code = unsafe {
                c::dds_dynamic_type_add_enum_literal(&mut new.0, literal.as_ptr(), value, false)
            };
            checked(|| format!("build enumeration {:?}", t.name), code)?;
        }
        Ok(new)
    }

    /// Makes the type of a string, or of a sequence of `element`; `bound` is the maximum length.
    fn list(
        participant: &Entity,
        t: &StructType,
        kind: c::dds_dynamic_type_kind_t,
        element: Option<&Kind>,
        bound: Option<u32>,
    ) -> Result<Self, Error> {
        let spec = element.map(|element| Spec::new(participant, t, element));
        let spec = spec.transpose()?.map(Spec::hand_over);
        // The name is not part of the type, but the library requires one.
        let name = CString::from(c"list");
        let bounds = [bound.unwrap_or_default()];
        Self::create(participant, kind, |d| {
            if let Some(spec) = spec {
                d.name = name.as_ptr();
                d.element_type = spec;
            }
            d.num_bounds = u32::from(bound.is_some());
            d.bounds = bounds.as_ptr();
        })
    }

    fn create(
        participant: &Entity,
        kind: c::dds_dynamic_type_kind_t,
        fill: impl FnOnce(&mut c::dds_dynamic_type_descriptor_t),
    ) -> Result<Self, Error> {
        // SAFETY: all zero is a valid descriptor: null pointers, no bounds, kinds unset.
        let mut d: c::dds_dynamic_type_descriptor_t = unsafe { std::mem::zeroed() };
        d.kind = kind;
        fill(&mut d);
        // SAFETY: the pointers that `fill` put in live in its caller past this call, which copies
        // what they point to; a reference in `element_type` is taken over.
        let new = unsafe { c::dds_dynamic_type_create(participant.handle(), d) };
        checked(|| "build a type".to_owned(), new.ret)?;
        Ok(Self(new))
    }

    /// Passes the one reference to the caller.
    fn into_raw(self) -> c::dds_dynamic_type_t {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }
}

impl Drop for Dynamic {
    fn drop(&mut self) {
        // SAFETY: one reference is owned, and given back once.
        unsafe { c::dds_dynamic_type_unref(&mut self.0) };
    }
}

/// The type of a member or an element: primitive, or a dynamic type of its own.
enum Spec {
    Primitive(c::dds_dynamic_type_kind_t),
    Built(Dynamic),
}

impl Spec {
    fn new(participant: &Entity, t: &StructType, kind: &Kind) -> Result<Self, Error> {
        let list = |kind, element: Option<&Kind>, bound| {
            Dynamic::list(participant, t, kind, element, bound).map(Self::Built)
        };
        Ok(Self::Primitive(match kind {
            Kind::Bool => c::dds_dynamic_type_kind_DDS_DYNAMIC_BOOLEAN,
            Kind::Byte => c::dds_dynamic_type_kind_DDS_DYNAMIC_BYTE,
            Kind::Int8 => c::dds_dynamic_type_kind_DDS_DYNAMIC_INT8,
            Kind::UInt8 => c::dds_dynamic_type_kind_DDS_DYNAMIC_UINT8,
            Kind::Int16 => c::dds_dynamic_type_kind_DDS_DYNAMIC_INT16,
            Kind::UInt16 => c::dds_dynamic_type_kind_DDS_DYNAMIC_UINT16,
            Kind::Int32 => c::dds_dynamic_type_kind_DDS_DYNAMIC_INT32,
            Kind::UInt32 => c::dds_dynamic_type_kind_DDS_DYNAMIC_UINT32,
            Kind::Int64 => c::dds_dynamic_type_kind_DDS_DYNAMIC_INT64,
            Kind::UInt64 => c::dds_dynamic_type_kind_DDS_DYNAMIC_UINT64,
            Kind::Float32 => c::dds_dynamic_type_kind_DDS_DYNAMIC_FLOAT32,
            Kind::Float64 => c::dds_dynamic_type_kind_DDS_DYNAMIC_FLOAT64,
            Kind::Char => c::dds_dynamic_type_kind_DDS_DYNAMIC_CHAR8,
            Kind::WChar => c::dds_dynamic_type_kind_DDS_DYNAMIC_CHAR16,
            Kind::String(bound) => {
                return list(c::dds_dynamic_type_kind_DDS_DYNAMIC_STRING8, None, *bound);
            }
            Kind::WString(bound) => {
                return list(c::dds_dynamic_type_kind_DDS_DYNAMIC_STRING16, None, *bound);
            }
            Kind::Enum(e) => return Ok(Self::Built(Dynamic::enumeration(participant, e)?)),
            Kind::Struct(s) => return Ok(Self::Built(Dynamic::structure(participant, s, true)?)),
            Kind::Bitmask(_) => {
                return Err(Error::Type(TypeError {
                    path: t.name.clone(),
                    why: Fault::Unsupported("bitmasks in topics of our own"),
                }));
            }
            Kind::Union(u) => {
                return Err(Error::Type(TypeError {
                    path: u.name.clone(),
                    why: Fault::Unsupported("unions in topics of our own"),
                }));
            }
            Kind::Sequence(element, bound) => {
                let kind = c::dds_dynamic_type_kind_DDS_DYNAMIC_SEQUENCE;
                return list(kind, Some(element), *bound);
            }
            Kind::Array(element, n) => {
                let kind = c::dds_dynamic_type_kind_DDS_DYNAMIC_ARRAY;
                return list(kind, Some(element), Some(*n));
            }
        }))
    }

    /// Returns the C form, whose receiver owns the reference in it.
    fn hand_over(self) -> c::dds_dynamic_type_spec_t {
        // SAFETY: all zero is a valid (unset) specification.
        let mut spec: c::dds_dynamic_type_spec_t = unsafe { std::mem::zeroed() };
        match self {
            Self::Primitive(kind) => {
                spec.kind = c::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_PRIMITIVE;
                spec.type_.primitive = kind;
            }
            Self::Built(t) => {
                spec.kind = c::dds_dynamic_type_spec_kind_DDS_DYNAMIC_TYPE_KIND_DEFINITION;
                spec.type_.type_ = t.into_raw();
            }
        }
        spec
    }
}
