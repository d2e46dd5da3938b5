//! The only module that calls the C library. Its interface is safe to use in any order: entities
//! own their parents, listeners outlive their callbacks, samples outlive nothing.

mod copy;
mod data;
mod discovery;
mod found;
mod guard;
mod interface;
mod listener;
mod log;
mod plain;
mod qos;
mod shm;
mod topic;
mod type_info;
mod waitset;

use std::ffi::CString;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cyclors as c;

pub(crate) use data::{RawSamples, Sink};
pub(crate) use discovery::{RawDiscovery, participant_of};
pub(crate) use found::type_of as found_type;
pub(crate) use guard::Gate;
pub(crate) use interface::interface_address;
pub(crate) use listener::{Callbacks, OnData, OnSamples, OnStatus};
pub(crate) use log::listen;
pub(crate) use plain::{Announced, Ending, OnWarning, RawInfo, nanos};
pub(crate) use shm::{PAGE, ReadOnly, SharedFile, Words, is_shortage, user};
pub(crate) use topic::{create as topic, found as found_topic};
pub(crate) use type_info::TypeInfo;
pub(crate) use waitset::{RawCondition, RawWaitSet};

use crate::{DomainConfig, Error, Qos, ReturnCode};

/// An entity of Cyclone DDS, deleted when the last owner drops it. Children hold their parents in
/// `parents`, so a parent is deleted after all of its children.
#[derive(Debug)]
pub(crate) struct Entity {
    /// The parts to delete; `None` only while it is being dropped.
    owned: Option<Owned>,
}

#[derive(Debug)]
struct Owned {
    /// The handle; 0 when it is deleted already.
    handle: AtomicI32,
    /// Values to which the C library holds pointers: freed after the deletion, before the parents.
    callbacks: Option<Arc<Callbacks>>,
    /// The guard of a reader's history, which points to it.
    _guard: Option<Arc<guard::Guard>>,
    /// The parents, held so that they are deleted later than this.
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

    /// Deletes the entity early: calls on it fail from now on. Not to be called in a callback.
    fn close(&self) {
        if let Some(owned) = &self.owned {
            owned.delete();
        }
    }

    fn adopt(
        action: impl FnOnce() -> String,
        handle: c::dds_entity_t,
        callbacks: Option<Arc<Callbacks>>,
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
        // The deletion waits for running callbacks, of which this thread is one: another thread
        // must do it. If none can be started, the entity stays: a leak, not a deadlock.
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
        // Entities of a closed reader were deleted with it.
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
        // Samples lent to a callback belong to the domain: they are returned before the parents are
        // dropped.
        drop(self.callbacks.take());
    }
}

/// Converts a return value (negative: an error) into a result, with the library's log line.
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

/// Opens a domain and one participant in it. Every call makes a separate domain inside this
/// process, with its own configuration and threads, even for the same id on the network.
pub(crate) fn open(config: &DomainConfig) -> Result<Arc<Entity>, Error> {
    log::capture();
    let xml = config.to_xml()?;
    let xml = CString::new(xml).map_err(|_| Error::Config("it contains a NUL byte".to_owned()))?;
    if let Some(port) = config.listens_on() {
        // The library would share the port with another listener, and each would receive some of
        // the connections.
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

/// Returns a name for one more domain inside this process; the network sees the id of the
/// configuration.
fn next_local() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes a writer of a topic; its callbacks receive status events only.
pub(crate) fn writer(
    (topic, name): (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    qos: &Qos,
    callbacks: Option<Arc<Callbacks>>,
) -> Result<Arc<Entity>, Error> {
    let raw = qos::RawQos::new(qos)?;
    let listener = listener::for_writer(callbacks.as_ref());
    // SAFETY: the handles are validated by the call; qos and listener are valid or null, and are
    // copied. The listener's argument points to `callbacks`, which stay where they are, owned by
    // the new entity.
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

/// Makes a reader of a topic, which closes when it has more instances than `callbacks` permit.
pub(crate) fn reader(
    (topic, name): (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    qos: &Qos,
    callbacks: Arc<Callbacks>,
) -> Result<Arc<Entity>, Error> {
    let raw = qos::RawQos::new(qos)?;
    let listener = listener::for_reader(&callbacks);
    let gate = Arc::clone(callbacks.gate());
    let history = guard::History::new(topic, &raw, &gate)?;
    // SAFETY: as in `writer`; the history is new, and owned by the reader from now on.
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
