//! A limit on the instances of a reader that holds under any flood.
//!
//! With the policy on resource limits, Cyclone DDS refuses the sample of one instance too many, but
//! offers it to a reliable reader again, every 10 ms and without end, in the receive thread. No
//! other reader receives anything then, and the deletion of this one waits for that thread. So the
//! function that stores samples is replaced by one of this module. Once the limit is reached, or
//! the reader is to be deleted, it reports everything as stored and keeps nothing, and another
//! thread deletes the reader.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use cyclors as c;

use super::Entity;
use super::qos::RawQos;
use crate::error::{Error, Overflow};
use crate::guid::Guid;
use crate::qos::LONGEST_KEY;

/// Samples are stored.
const OPEN: u8 = 0;
/// The library has just refused one instance too many.
const FULL: u8 = 1;
/// No sample is stored any more.
const SHUT: u8 = 2;

/// Whether a reader takes samples, and the reason why it no longer does.
#[derive(Debug)]
pub(crate) struct Gate {
    state: AtomicU8,
    limit: u32,
    why: OnceLock<(Overflow, Guid)>,
    entity: OnceLock<Weak<Entity>>,
}

impl Gate {
    pub(crate) fn new(limit: u32) -> Self {
        Self {
            state: AtomicU8::new(OPEN),
            limit,
            why: OnceLock::new(),
            entity: OnceLock::new(),
        }
    }

    /// Returns why the reader was closed, and the writer of the sample that exceeded the limit.
    #[inline]
    pub(crate) fn overflow(&self) -> Option<&(Overflow, Guid)> {
        self.why.get()
    }

    /// Notes that the library refuses an instance, before its store function returns.
    pub(super) fn fill(&self) {
        let (open, full) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = self.state.compare_exchange(OPEN, FULL, open, full);
    }

    /// Makes the reader store nothing from now on.
    pub(super) fn shut(&self) {
        self.state.store(SHUT, Ordering::SeqCst);
    }

    /// Sets the reader of the gate. A reader whose gate is shut already is closed.
    pub(super) fn belongs_to(&self, entity: &Arc<Entity>) {
        let _ = self.entity.set(Arc::downgrade(entity));
        if self.state.load(Ordering::SeqCst) == SHUT {
            self.close_reader();
        }
    }

    /// Shuts the gate for good and closes the reader.
    #[cold]
    fn close(&self, why: Overflow, writer: Guid) {
        let _ = self.why.set((why, writer));
        if self.state.swap(SHUT, Ordering::SeqCst) != SHUT {
            self.close_reader();
        }
    }

    /// Makes another thread close the reader, if it is known, and wake the thread that waits for
    /// its samples.
    fn close_reader(&self) {
        let Some(entity) = self.entity.get().cloned() else {
            return;
        };
        // The deletion waits for the receive thread, which is this one. If no thread can be started
        // the reader stays, and stays shut.
        let close = move || {
            if let Some(entity) = entity.upgrade() {
                entity.close();
                if let Some(callbacks) = entity.callbacks() {
                    callbacks.ring();
                }
            }
        };
        let thread = std::thread::Builder::new().name("dds-close".to_owned());
        drop(thread.spawn(close));
    }
}

/// `struct dds_rhc_ops` of Cyclone DDS 11.0.1: the functions of a reader's history.
#[repr(C)]
#[derive(Clone, Copy)]
struct Functions {
    store: Store,
    unregister_writer: *const c_void,
    relinquish_ownership: *const c_void,
    free: unsafe extern "C" fn(*mut c::dds_rhc),
    /// peek, read, take, add_readcondition, remove_readcondition, associate.
    rest: [*const c_void; 6],
}

type Store = unsafe extern "C" fn(
    *mut c::dds_rhc,
    *const Origin,
    *mut c::ddsi_serdata,
    *const Instance,
) -> bool;

/// The beginning of `struct ddsi_writer_info`: the GUID of the writer, each word in the byte order
/// of the machine.
#[repr(C)]
struct Origin {
    guid: [u32; 4],
}

/// The beginning of `struct ddsi_tkmap_instance`.
#[repr(C)]
struct Instance {
    /// A sample that has only the key.
    key: *mut c::ddsi_serdata,
}

unsafe extern "C" {
    fn dds_rhc_default_new(
        domain: *mut c_void,
        sertype: *const c::ddsi_sertype,
        qos: *const c::dds_qos_t,
    ) -> *mut c::dds_rhc;
}

/// The functions of one reader's history, with our own `store`. The history points here.
#[repr(C)]
pub(super) struct Guard {
    /// The first field, so that a pointer to it is a pointer to the guard.
    functions: Functions,
    store: Store,
    gate: Arc<Gate>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

// SAFETY: the functions may be called by any thread, and the pointers among them are only copied.
unsafe impl Send for Guard {}
// SAFETY: as above; what changes is in the gate, which is shared by atomics.
unsafe impl Sync for Guard {}

/// A history without a reader yet.
pub(super) struct History {
    rhc: NonNull<c::dds_rhc>,
    /// Pointed to by the history: moving an `Arc` leaves such pointers valid.
    guard: Arc<Guard>,
}

impl History {
    /// Makes a history for a reader of `topic` with these policies.
    pub(super) fn new(topic: &Entity, qos: &RawQos, gate: &Arc<Gate>) -> Result<Self, Error> {
        let mut sertype = std::ptr::null();
        // SAFETY: the handle is validated by the call; what it stores is borrowed from the topic.
        let code = unsafe { c::dds_get_entity_sertype(topic.handle(), &mut sertype) };
        super::checked(|| "ask for the type of a topic".to_owned(), code)?;
        let qos = qos.for_reader_of(topic)?;
        // SAFETY: a topic's sertype is registered, so its `gv` is the domain, which lives as long
        // as the topic does. The policies are complete (`for_reader_of`) and copied.
        let rhc = unsafe {
            let domain = (*sertype).gv.v as *mut c_void;
            NonNull::new(dds_rhc_default_new(domain, sertype, qos.as_ptr()))
        };
        let Some(rhc) = rhc else {
            return Err(Error::Config("no memory for a reader".to_owned()));
        };
        // SAFETY: a history begins with a pointer to its functions, of which there are ten.
        let functions = unsafe { **rhc.as_ptr().cast::<*const Functions>() };
        let guard = Arc::new(Guard {
            functions: Functions { store, ..functions },
            store: functions.store,
            gate: Arc::clone(gate),
        });
        // SAFETY: as above; the history is not shared yet. The guard stays where it is and outlives
        // it: `Owned` frees it after the reader, whose deletion frees the history.
        unsafe { *rhc.as_ptr().cast::<*const Guard>() = Arc::as_ptr(&guard) };
        Ok(Self { rhc, guard })
    }

    pub(super) const fn as_ptr(&self) -> *mut c::dds_rhc {
        self.rhc.as_ptr()
    }

    /// Returns what must outlive the reader, which now owns the history.
    pub(super) fn adopted(self) -> Arc<Guard> {
        self.guard
    }

    /// Frees the history, as there is no reader.
    pub(super) fn free(self) {
        // SAFETY: no reader owns the history, which is empty; it is freed once.
        unsafe { (self.guard.functions.free)(self.rhc.as_ptr()) };
    }
}

/// Replaces the library's own function.
unsafe extern "C" fn store(
    rhc: *mut c::dds_rhc,
    origin: *const Origin,
    sample: *mut c::ddsi_serdata,
    instance: *const Instance,
) -> bool {
    // SAFETY: `History::new` put the pointer to the guard at the beginning of the history.
    let guard = unsafe { &**rhc.cast::<*const Guard>() };
    let gate = &*guard.gate;
    if gate.state.load(Ordering::Relaxed) == SHUT {
        return true;
    }
    // SAFETY: the library's caller passes a live sample, its instance and its writer.
    unsafe {
        let key = c::ddsi_serdata_size((*instance).key);
        if key > LONGEST_KEY {
            gate.close(Overflow::Key(key), name(&*origin));
            return true;
        }
        let stored = (guard.store)(rhc, origin, sample, instance);
        if gate.state.load(Ordering::Relaxed) == FULL {
            gate.close(Overflow::Keys(gate.limit), name(&*origin));
        }
        // A thread that shut the gate meanwhile must not wait for the library to try again.
        stored || gate.state.load(Ordering::Relaxed) == SHUT
    }
}

fn name(origin: &Origin) -> Guid {
    let mut bytes = [0; 16];
    for (to, word) in bytes.chunks_exact_mut(4).zip(origin.guid) {
        to.copy_from_slice(&word.to_be_bytes());
    }
    Guid(bytes)
}
