//! Closures as listeners. They run in a receive thread of Cyclone DDS (or in the writing thread for
//! a reader of the same domain object). A panic is caught at the boundary, disables all closures of
//! the entity, and makes a reader store nothing more.

use std::cell::Cell;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cyclors as c;

use super::{Gate, RawSamples};
use crate::error::Overflow;
use crate::guid::Guid;
use crate::{Policy, Status};

/// Called with the samples just taken.
pub(crate) type OnSamples = Box<dyn FnMut(&RawSamples) + Send>;
/// Called when samples have arrived, and leaves them in the reader.
pub(crate) type OnData = Box<dyn FnMut() + Send>;
/// Called with an event.
pub(crate) type OnStatus = Box<dyn FnMut(Status) + Send>;

/// The closures of one entity. The library holds a pointer to this; [`super::Entity`] owns it, in
/// an `Arc`, because a move of a `Box` would invalidate the pointer.
pub(crate) struct Callbacks {
    // The library calls one listener of an entity at a time, so the locks are never contended; they
    // make that visible to the compiler.
    samples: Option<Mutex<(OnSamples, RawSamples)>>,
    data: Option<Mutex<OnData>>,
    status: Option<Mutex<OnStatus>>,
    panicked: AtomicBool,
    /// The gate of a reader.
    gate: Arc<Gate>,
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callbacks").finish_non_exhaustive()
    }
}

impl Callbacks {
    /// Makes the callbacks of a writer; `None` without a closure.
    pub(crate) fn of_writer(status: Option<OnStatus>) -> Option<Arc<Self>> {
        status.as_ref()?;
        Some(Self::of_reader(None, None, status, u32::MAX))
    }

    /// Makes the callbacks of a reader, which is closed beyond this many instances.
    pub(crate) fn of_reader(
        samples: Option<(OnSamples, RawSamples)>,
        data: Option<OnData>,
        status: Option<OnStatus>,
        instances: u32,
    ) -> Arc<Self> {
        Arc::new(Self {
            samples: samples.map(Mutex::new),
            data: data.map(Mutex::new),
            status: status.map(Mutex::new),
            panicked: AtomicBool::new(false),
            gate: Arc::new(Gate::new(instances)),
        })
    }

    pub(super) const fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Returns why the reader was closed, and the writer of the sample that exceeded the limit.
    #[inline]
    pub(crate) fn overflow(&self) -> Option<(Overflow, Guid)> {
        self.gate.overflow().copied()
    }

    /// Makes the reader store nothing from now on.
    pub(super) fn shut(&self) {
        self.gate.shut();
    }

    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Runs `f` unless an earlier call panicked. Nothing takes samples from a reader after a panic,
    /// so it stores none: the library would offer again, without end, what its full history
    /// refuses, in the thread that delivers to all readers.
    fn guarded(&self, f: impl FnOnce()) {
        if self.has_panicked() {
            return;
        }
        let outer = INSIDE.replace(true);
        if catch_unwind(AssertUnwindSafe(f)).is_err() {
            self.panicked.store(true, Ordering::Relaxed);
            self.gate.shut();
        }
        INSIDE.set(outer);
    }

    fn report(&self, status: Status) {
        let Some(closure) = &self.status else { return };
        self.guarded(|| {
            if let Ok(mut closure) = closure.lock() {
                closure(status);
            }
        });
    }

    /// Calls the closure for arrived samples.
    pub(super) fn ring(&self) {
        let Some(closure) = &self.data else { return };
        self.guarded(|| {
            if let Ok(mut closure) = closure.lock() {
                closure();
            }
        });
    }

    fn samples_came(&self, reader: c::dds_entity_t) {
        self.ring();
        let Some(closure) = &self.samples else { return };
        self.guarded(|| {
            if let Ok(mut guard) = closure.lock() {
                let (closure, samples) = &mut *guard;
                // One event may stand for many samples, so they are taken until the reader is
                // empty, that is, until a take returns less than the capacity. Samples that arrive
                // after that take have an event of their own, and one more take in vain would cost
                // as much as taking.
                while samples.take(reader).is_ok_and(|n| n > 0) {
                    closure(samples);
                    if !samples.is_full() {
                        break;
                    }
                }
                samples.release();
            }
        });
    }
}

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is inside a closure of some listener.
pub(super) fn inside_callback() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

/// An owned `dds_listener_t`, or none.
pub(super) struct Listener(*mut c::dds_listener_t);

impl Listener {
    fn new(callbacks: Option<&Arc<Callbacks>>) -> Self {
        let Some(callbacks) = callbacks else {
            return Self(std::ptr::null_mut());
        };
        let arg = Arc::as_ptr(callbacks).cast_mut().cast();
        // SAFETY: the argument is only handed to the callbacks below, which read it.
        Self(unsafe { c::dds_create_listener(arg) })
    }

    pub(super) const fn as_ptr(&self) -> *const c::dds_listener_t {
        self.0
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // SAFETY: made by dds_create_listener or null (which is accepted), freed once.
        unsafe { c::dds_delete_listener(self.0) };
    }
}

pub(super) fn for_reader(callbacks: &Arc<Callbacks>) -> Listener {
    let listener = Listener::new(Some(callbacks));
    let l = listener.0;
    // SAFETY: `l` is a live listener; the functions live as long as the program.
    unsafe {
        // Also for the gate.
        c::dds_lset_sample_rejected(l, Some(on_sample_rejected));
        if callbacks.samples.is_some() || callbacks.data.is_some() {
            c::dds_lset_data_available(l, Some(on_data));
        }
        if callbacks.status.is_some() {
            c::dds_lset_subscription_matched(l, Some(on_subscription_matched));
            c::dds_lset_sample_lost(l, Some(on_sample_lost));
            c::dds_lset_requested_deadline_missed(l, Some(on_requested_deadline));
            c::dds_lset_requested_incompatible_qos(l, Some(on_requested_qos));
            c::dds_lset_liveliness_changed(l, Some(on_liveliness_changed));
        }
    }
    listener
}

pub(super) fn for_writer(callbacks: Option<&Arc<Callbacks>>) -> Listener {
    let listener = Listener::new(callbacks);
    if callbacks.is_some_and(|c| c.status.is_some()) {
        let l = listener.0;
        // SAFETY: `l` is a live listener; the functions live as long as the program.
        unsafe {
            c::dds_lset_publication_matched(l, Some(on_publication_matched));
            c::dds_lset_offered_deadline_missed(l, Some(on_offered_deadline));
            c::dds_lset_offered_incompatible_qos(l, Some(on_offered_qos));
            c::dds_lset_liveliness_lost(l, Some(on_liveliness_lost));
        }
    }
    listener
}

unsafe extern "C" fn on_data(reader: c::dds_entity_t, arg: *mut c_void) {
    // SAFETY: `arg` is the `Callbacks` given with the listener; its owner frees it only after the
    // entity is deleted, which waits for this call.
    if let Some(callbacks) = unsafe { arg.cast::<Callbacks>().as_ref() } {
        callbacks.samples_came(reader);
    }
}

macro_rules! on_status {
    ($($name:ident: $raw:ty),+; |$s:ident| $status:expr) => {
        $(unsafe extern "C" fn $name(_: c::dds_entity_t, $s: $raw, arg: *mut c_void) {
            // SAFETY: as in `on_data`.
            if let Some(callbacks) = unsafe { arg.cast::<Callbacks>().as_ref() } {
                callbacks.report($status);
            }
        })+
    };
}

on_status!(
    on_subscription_matched: c::dds_subscription_matched_status_t,
    on_publication_matched: c::dds_publication_matched_status_t;
    |s| Status::Matched {
        current: s.current_count,
        total: s.total_count,
        change: s.current_count_change,
    }
);
on_status!(
    on_sample_lost: c::dds_sample_lost_status_t;
    |s| Status::SampleLost { total: s.total_count }
);
on_status!(
    on_requested_deadline: c::dds_requested_deadline_missed_status_t,
    on_offered_deadline: c::dds_offered_deadline_missed_status_t;
    |s| Status::DeadlineMissed { total: s.total_count }
);
on_status!(
    on_requested_qos: c::dds_requested_incompatible_qos_status_t,
    on_offered_qos: c::dds_offered_incompatible_qos_status_t;
    |s| Status::IncompatibleQos {
        total: s.total_count,
        policy: Policy::from_raw(s.last_policy_id),
    }
);
on_status!(
    on_liveliness_changed: c::dds_liveliness_changed_status_t;
    |s| Status::LivelinessChanged { alive: s.alive_count, not_alive: s.not_alive_count }
);
on_status!(
    on_liveliness_lost: c::dds_liveliness_lost_status_t;
    |s| Status::LivelinessLost { total: s.total_count }
);

/// Handles the rejection of a sample: a reader beyond the limit of instances is closed.
unsafe extern "C" fn on_sample_rejected(
    _: c::dds_entity_t,
    s: c::dds_sample_rejected_status_t,
    arg: *mut c_void,
) {
    // SAFETY: as in `on_data`.
    let Some(callbacks) = (unsafe { arg.cast::<Callbacks>().as_ref() }) else {
        return;
    };
    if s.last_reason == c::dds_sample_rejected_status_kind_DDS_REJECTED_BY_INSTANCES_LIMIT {
        callbacks.gate.fill();
    }
    callbacks.report(Status::SampleRejected {
        total: s.total_count,
    });
}
