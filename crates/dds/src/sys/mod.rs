//! The only place that talks to the C library. What leaves this module is safe to use in any
//! order: entities own their parents, listeners outlive their callbacks, samples outlive nothing.

mod data;
mod discovery;
mod found;
mod guard;
mod interface;
mod listener;
mod log;
mod qos;
mod shm;
mod topic;
mod type_info;
mod waitset;

use std::ffi::CString;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cyclors as c;

pub(crate) use data::{Ending, RawInfo, RawSamples, Sink};
pub(crate) use discovery::{Announced, RawDiscovery};
pub(crate) use found::type_of as found_type;
pub(crate) use guard::Gate;
pub(crate) use interface::interface_address;
pub(crate) use listener::{Callbacks, OnData, OnSamples, OnStatus};
pub(crate) use shm::{PAGE, ReadOnly, SharedFile, Words, user};
pub(crate) use topic::{create as topic, found as found_topic};
pub(crate) use type_info::TypeInfo;
pub(crate) use waitset::{RawCondition, RawWaitSet};

use crate::{DomainConfig, Error, Qos, ReturnCode};

/// An entity of Cyclone DDS, deleted when the last owner drops it. Children hold their parents in
/// `parents`, so a parent's deletion comes after all of its children's.
#[derive(Debug)]
pub(crate) struct Entity {
    /// `None` only while it is being dropped.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    /// 0 when it is deleted already.
    handle: AtomicI32,
    /// What the C library holds pointers to: freed after the deletion, before the parents.
    callbacks: Option<Box<Callbacks>>,
    /// Only held: the history of a reader points to it.
    _guard: Option<Box<guard::Guard>>,
    /// Held, so that they are deleted later than this.
    parents: Vec<Arc<Entity>>,
}

impl Entity {
    pub(crate) fn handle(&self) -> c::dds_entity_t {
        let handle = self.owned.as_ref().map(|o| &o.handle);
        handle.map_or(0, |h| h.load(Ordering::Relaxed))
    }

    pub(crate) fn callbacks(&self) -> Option<&Callbacks> {
        self.owned.as_ref()?.callbacks.as_deref()
    }

    /// Deletes it before its time: what is called on it from now on fails. Not in a callback.
    fn close(&self) {
        if let Some(owned) = &self.owned {
            owned.delete();
        }
    }

    fn adopt(
        action: impl FnOnce() -> String,
        handle: c::dds_entity_t,
        callbacks: Option<Box<Callbacks>>,
        parents: Vec<Arc<Self>>,
    ) -> Result<Arc<Self>, Error> {
        let handle = checked(action, handle)?;
        Ok(Arc::new(Self {
            owned: Some(Owned {
                handle: AtomicI32::new(handle),
                callbacks,
                _guard: None,
                parents,
            }),
        }))
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        let Some(owned) = self.owned.take() else {
            return;
        };
        if !listener::inside_callback() {
            drop(owned);
            return;
        }
        // The deletion waits for running callbacks, of which this thread is one: it must be done
        // by another. Where no thread can be had, the entity stays: a leak, not a deadlock.
        let slot = Arc::new(Mutex::new(Some(owned)));
        let other = Arc::clone(&slot);
        let spawned = std::thread::Builder::new()
            .name("dds-delete".to_owned())
            .spawn(move || {
                drop(other.lock().map(|mut o| o.take()));
            });
        if spawned.is_err()
            && let Ok(mut owned) = slot.lock()
        {
            std::mem::forget(owned.take());
        }
    }
}

impl Owned {
    fn delete(&self) {
        let handle = self.handle.swap(0, Ordering::AcqRel);
        if handle == 0 {
            return;
        }
        // SAFETY: dds_delete takes a handle by value and validates it. It returns after the last
        // callback of this entity has returned, so freeing `callbacks` afterwards is sound, and
        // after a reader's history is freed, so that `_guard` may go; the parents drop after that,
        // when no child of theirs is left.
        let code = unsafe { c::dds_delete(handle) };
        // What belongs to a reader that was closed went with it.
        let orphan = || self.parents.iter().any(|p| p.handle() == 0);
        debug_assert!(
            code == 0 || orphan(),
            "dds_delete: {}",
            ReturnCode::from_raw(code)
        );
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(callbacks) = &self.callbacks {
            callbacks.shut();
        }
        self.delete();
        // Samples lent to a callback belong to the domain: they go back before the parents do.
        drop(self.callbacks.take());
    }
}

/// Turns a return value (negative: an error) into a result, with what the library logged.
pub(crate) fn checked(action: impl FnOnce() -> String, code: i32) -> Result<i32, Error> {
    if code >= 0 {
        return Ok(code);
    }
    Err(Error::Dds {
        action: action(),
        code: ReturnCode::from_raw(code),
        detail: log::last().map(|l| format!(": {l}")).unwrap_or_default(),
    })
}

pub(crate) fn c_string(what: &'static str, name: &str) -> Result<CString, Error> {
    let bad = || Error::Name {
        what,
        name: name.to_owned(),
    };
    if name.is_empty() || name.len() > 256 {
        return Err(bad());
    }
    CString::new(name).map_err(|_| bad())
}

/// A duration as the library has it; too long a one is for ever.
pub(crate) fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}

/// Opens a domain and one participant in it. Every call makes a domain of its own inside this
/// process, with its own configuration and threads, even for the same id on the network.
pub(crate) fn open(config: &DomainConfig) -> Result<Arc<Entity>, Error> {
    log::capture();
    let xml = config.to_xml()?;
    let xml =
        CString::new(xml).map_err(|_| Error::Config("there is a NUL byte in it".to_owned()))?;
    if let Some(port) = config.listens_on() {
        // The library shares a port with whoever has it, and then each gets some of the callers.
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
            .map_err(|e| Error::Config(format!("cannot listen on TCP port {port}: {e}")))?;
    }
    let local = next_local();
    let action = || format!("open domain {}", config.id);
    // SAFETY: `xml` is a NUL-terminated string that outlives the call, which copies it.
    let handle = unsafe { c::dds_create_domain(local, xml.as_ptr()) };
    let domain = Entity::adopt(action, handle, None, Vec::new())?;
    // SAFETY: null policies and listener mean the defaults.
    let handle = unsafe { c::dds_create_participant(local, std::ptr::null(), std::ptr::null()) };
    Entity::adopt(action, handle, None, vec![domain])
}

/// A name for one more domain inside this process; what others see is the configuration's id.
fn next_local() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes a writer of a topic; its callbacks get status events only.
pub(crate) fn writer(
    (topic, name): (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    qos: &Qos,
    callbacks: Option<Box<Callbacks>>,
) -> Result<Arc<Entity>, Error> {
    let raw = qos::RawQos::new(qos)?;
    let listener = listener::for_writer(callbacks.as_deref());
    // SAFETY: the handles are validated by the call; qos and listener are valid or null, and are
    // copied. The listener's argument points into `callbacks`, boxed, owned by the new entity.
    let handle = unsafe {
        c::dds_create_writer(
            participant.handle(),
            topic.handle(),
            raw.as_ptr(),
            listener.as_ptr(),
        )
    };
    let parents = vec![Arc::clone(topic), Arc::clone(participant)];
    let action = || format!("create a writer of topic {name:?}");
    Entity::adopt(action, handle, callbacks, parents)
}

/// Makes a reader of a topic, which closes when there are more instances than `callbacks` allow.
pub(crate) fn reader(
    (topic, name): (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    qos: &Qos,
    callbacks: Box<Callbacks>,
) -> Result<Arc<Entity>, Error> {
    let raw = qos::RawQos::new(qos)?;
    let listener = listener::for_reader(&callbacks);
    let gate = Arc::clone(callbacks.gate());
    let history = guard::History::new(topic, &raw, &gate)?;
    // SAFETY: as in `writer`; the history is new, and the reader's from now on.
    let handle = unsafe {
        c::dds_create_reader_rhc(
            participant.handle(),
            topic.handle(),
            raw.as_ptr(),
            listener.as_ptr(),
            history.as_ptr(),
        )
    };
    let parents = vec![Arc::clone(topic), Arc::clone(participant)];
    let action = || format!("create a reader of topic {name:?}");
    if handle < 0 {
        history.free();
        return Entity::adopt(action, handle, None, parents);
    }
    let owned = Owned {
        handle: AtomicI32::new(handle),
        callbacks: Some(callbacks),
        _guard: Some(history.adopted()),
        parents,
    };
    let entity = Arc::new(Entity { owned: Some(owned) });
    gate.belongs_to(&entity);
    Ok(entity)
}
