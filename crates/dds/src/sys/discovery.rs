//! The announcements of a domain's participants, and the types of foreign topics.

use std::ffi::CStr;
use std::sync::Arc;

use cyclors as c;

use super::plain::Announced;
use super::type_info::TypeInfo;
use super::{Entity, checked};
use crate::discovery::{Endpoint, EndpointKind, Participant};
use crate::guid::Guid;
use crate::{Durability, Error, Ownership, ReturnCode};

/// The pseudo topics (dds.h: `DDS_BUILTIN_TOPIC_DCPS…`), which are macros in C.
const PSEUDO: c::dds_entity_t = 0x7fff_0000;
const PARTICIPANTS: c::dds_entity_t = PSEUDO + 1;
const WRITERS: c::dds_entity_t = PSEUDO + 3;
const READERS: c::dds_entity_t = PSEUDO + 4;

/// Most announcements taken in one call.
const BATCH: usize = 64;

/// The readers of announcements.
#[derive(Debug)]
pub(crate) struct RawDiscovery {
    participants: Arc<Entity>,
    writers: Arc<Entity>,
    readers: Arc<Entity>,
    own: Guid,
}

impl RawDiscovery {
    pub(crate) fn new(participant: &Arc<Entity>) -> Result<Self, Error> {
        let mut own = c::dds_guid_t { v: [0; 16] };
        // SAFETY: the handle is validated by the call, which fills the structure.
        let code = unsafe { c::dds_get_guid(participant.handle(), &mut own) };
        checked(|| "ask for the participant's own name".to_owned(), code)?;
        Ok(Self {
            participants: open(participant, PARTICIPANTS)?,
            writers: open(participant, WRITERS)?,
            readers: open(participant, READERS)?,
            own: guid(&own),
        })
    }

    /// Returns the GUID of the participant that discovers.
    pub(crate) const fn own(&self) -> Guid {
        self.own
    }

    /// Passes on all announcements since the last call.
    pub(crate) fn take(&self, mut each: impl FnMut(Announced)) -> Result<(), Error> {
        take(&self.participants, |raw, alive| {
            // SAFETY: samples of this reader are of this type; it lives during the call.
            if let Some(raw) = unsafe { raw.cast::<c::dds_builtintopic_participant_t>().as_ref() } {
                each(if alive {
                    Announced::Participant(participant(raw))
                } else {
                    Announced::Gone(guid(&raw.key))
                });
            }
        })?;
        for (reader, kind) in [
            (&self.writers, EndpointKind::Writer),
            (&self.readers, EndpointKind::Reader),
        ] {
            take(reader, |raw, alive| {
                // SAFETY: as above.
                if let Some(raw) = unsafe { raw.cast::<c::dds_builtintopic_endpoint_t>().as_mut() }
                {
                    each(if alive {
                        Announced::Endpoint(endpoint(raw, kind))
                    } else {
                        Announced::Gone(guid(&raw.key))
                    });
                }
            })?;
        }
        Ok(())
    }
}

fn open(participant: &Arc<Entity>, topic: c::dds_entity_t) -> Result<Arc<Entity>, Error> {
    // SAFETY: handles are validated by the call; null policies and listener mean the defaults.
    let handle = unsafe {
        c::dds_create_reader(
            participant.handle(),
            topic,
            std::ptr::null(),
            std::ptr::null(),
        )
    };
    let action = || "read what participants announce".to_owned();
    Entity::adopt(action, handle, None, vec![Arc::clone(participant)])
}

/// Takes all samples of a reader, on loan from the library during the call of `each`, which also
/// receives whether the sample is alive; of one that is not, only the key may be read.
fn take(reader: &Entity, mut each: impl FnMut(*mut std::ffi::c_void, bool)) -> Result<(), Error> {
    loop {
        let mut room = [std::ptr::null_mut(); BATCH];
        // SAFETY: all zero is a valid sample info: integers and a false boolean.
        let mut infos: [c::dds_sample_info_t; BATCH] = unsafe { std::mem::zeroed() };
        // SAFETY: both arrays have BATCH elements; null pointers ask the library to lend samples.
        let code = unsafe {
            c::dds_take(
                reader.handle(),
                room.as_mut_ptr(),
                infos.as_mut_ptr(),
                BATCH,
                BATCH as u32,
            )
        };
        if ReturnCode::from_raw(code) == ReturnCode::NoData {
            return Ok(());
        }
        let count = checked(|| "take announcements".to_owned(), code)?;
        let n = usize::try_from(count).unwrap_or(0).min(BATCH);
        if n == 0 {
            return Ok(());
        }
        for (sample, info) in room.iter().zip(&infos).take(n) {
            let alive = info.valid_data && info.instance_state == c::DDS_ALIVE_INSTANCE_STATE;
            each(*sample, alive);
        }
        // SAFETY: the samples were lent by the call above and are given back once.
        let code = unsafe { c::dds_return_loan(reader.handle(), room.as_mut_ptr(), count) };
        checked(|| "give announcements back".to_owned(), code)?;
    }
}

/// Returns the participant of a writer that matches the reader. May be called in a callback of the
/// reader.
pub(crate) fn participant_of(reader: c::dds_entity_t, writer: u64) -> Option<Guid> {
    // SAFETY: the handles are validated by the call. Its result is null or owned here; it is read
    // before it is freed, once.
    unsafe {
        let endpoint = c::dds_get_matched_publication_data(reader, writer);
        let participant = guid(&endpoint.as_ref()?.participant_key);
        c::dds_builtintopic_free_endpoint(endpoint);
        Some(participant)
    }
}

fn guid(raw: &c::dds_guid_t) -> Guid {
    Guid(raw.v)
}

fn participant(raw: &c::dds_builtintopic_participant_t) -> Participant {
    let property = |name: &CStr| {
        let mut value = std::ptr::null_mut();
        // SAFETY: live policies and a NUL-terminated name; on success the value is owned here.
        let there = unsafe { c::dds_qget_prop(raw.qos, name.as_ptr(), &mut value) };
        there.then(|| owned_text(value))
    };
    let mut name = std::ptr::null_mut();
    // SAFETY: live policies; on success the name is owned here.
    let named = unsafe { c::dds_qget_entity_name(raw.qos, &mut name) };
    Participant {
        guid: guid(&raw.key),
        name: named.then(|| owned_text(name)),
        process: property(c"__ProcessName"),
        pid: property(c"__Pid"),
        host: property(c"__Hostname"),
    }
}

fn endpoint(raw: &mut c::dds_builtintopic_endpoint_t, kind: EndpointKind) -> Endpoint {
    let qos = raw.qos.cast_const();
    let mut info = std::ptr::null();
    // SAFETY: `raw` is a live announcement; what is stored is borrowed from its policies.
    unsafe { c::dds_builtintopic_get_endpoint_type_info(raw, &mut info) };
    // SAFETY: both are NUL-terminated strings of the live announcement, or null.
    let (topic, type_name) = unsafe { (lent_text(raw.topic_name), lent_text(raw.type_name)) };
    Endpoint {
        kind,
        guid: guid(&raw.key),
        participant: guid(&raw.participant_key),
        topic,
        type_name,
        reliable: is_reliable(qos),
        durability: durability(qos),
        ownership: ownership(qos),
        partitions: partitions(qos),
        info: TypeInfo::copy(info).map(Arc::new),
    }
}

fn is_reliable(qos: *const c::dds_qos_t) -> bool {
    let (mut kind, mut wait) = (0, 0);
    // SAFETY: live policies; the call stores two numbers.
    let there = unsafe { c::dds_qget_reliability(qos, &mut kind, &mut wait) };
    there && kind == c::dds_reliability_kind_DDS_RELIABILITY_RELIABLE
}

fn durability(qos: *const c::dds_qos_t) -> Durability {
    let mut kind = 0;
    // SAFETY: live policies; the call stores a number.
    let there = unsafe { c::dds_qget_durability(qos, &mut kind) };
    if there && kind != c::dds_durability_kind_DDS_DURABILITY_VOLATILE {
        Durability::TransientLocal
    } else {
        Durability::Volatile
    }
}

fn ownership(qos: *const c::dds_qos_t) -> Ownership {
    let (mut kind, mut strength) = (0, 0);
    // SAFETY: live policies; the calls store a number each.
    let there = unsafe {
        c::dds_qget_ownership_strength(qos, &mut strength);
        c::dds_qget_ownership(qos, &mut kind)
    };
    if there && kind == c::dds_ownership_kind_DDS_OWNERSHIP_EXCLUSIVE {
        Ownership::Exclusive(strength)
    } else {
        Ownership::Shared
    }
}

fn partitions(qos: *const c::dds_qos_t) -> Vec<String> {
    let (mut n, mut names) = (0, std::ptr::null_mut());
    // SAFETY: live policies; on success an array of `n` strings is owned here, each string too.
    unsafe {
        if !c::dds_qget_partition(qos, &mut n, &mut names) || names.is_null() {
            return Vec::new();
        }
        let all = std::slice::from_raw_parts(names, n as usize);
        let out = all.iter().map(|name| owned_text(*name)).collect();
        c::dds_free(names.cast());
        out
    }
}

/// # Safety
/// `text` is null or NUL-terminated, and lives during the call.
unsafe fn lent_text(text: *const std::ffi::c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract of this function.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Converts and frees text that the library has passed to the caller.
fn owned_text(text: *mut std::ffi::c_char) -> String {
    // SAFETY: the library's getters give a NUL-terminated string or null, owned by the caller.
    unsafe {
        let copy = lent_text(text);
        c::dds_free(text.cast());
        copy
    }
}
