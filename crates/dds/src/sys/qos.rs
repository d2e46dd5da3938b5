//! Policies in the form of the C library.

use std::ffi::CString;
use std::ptr::NonNull;

use cyclors as c;

use super::{Entity, c_string, nanos};
use crate::qos::Limits;
use crate::{Durability, Error, History, Liveliness, Ownership, Qos, Reliability};

const UNLIMITED: i32 = -1;

/// An owned `dds_qos_t`.
pub(super) struct RawQos(NonNull<c::dds_qos_t>);

impl RawQos {
    pub(super) fn new(qos: &Qos) -> Result<Self, Error> {
        let partitions: Vec<CString> = qos
            .partitions
            .iter()
            .map(|p| partition(p))
            .collect::<Result<_, _>>()?;
        // SAFETY: no argument; the result is owned by the caller.
        let raw = unsafe { c::dds_create_qos() };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::Config("no memory for policies".to_owned()));
        };
        let new = Self(raw);
        let q = new.0.as_ptr();
        // SAFETY: `q` is a live policy set; every call copies what it is given. The array of
        // partition names lives until the end of its call and is only read.
        unsafe {
            set_delivery(q, qos);
            set_times(q, qos);
            if qos.limits.is_some() || qos.instances.is_some() {
                let (s, p) = numbers(qos.limits.unwrap_or_default());
                c::dds_qset_resource_limits(q, s, number(qos.instances), p);
            }
            if let Some(on) = qos.batching {
                c::dds_qset_writer_batching(q, on);
            }
            if let Some(on) = qos.autodispose {
                c::dds_qset_writer_data_lifecycle(q, on);
            }
            if qos.ignore_own {
                let kind = c::dds_ignorelocal_kind_DDS_IGNORELOCAL_PARTICIPANT;
                c::dds_qset_ignorelocal(q, kind);
            }
            if !partitions.is_empty() {
                let mut names: Vec<_> = partitions.iter().map(|p| p.as_ptr()).collect();
                let n = u32::try_from(names.len()).unwrap_or(u32::MAX);
                c::dds_qset_partition(q, n, names.as_mut_ptr());
            }
        }
        Ok(new)
    }

    pub(super) const fn as_ptr(&self) -> *const c::dds_qos_t {
        self.0.as_ptr()
    }

    /// Returns all policies that a reader's history uses: these, completed by the topic's, and
    /// those by the defaults of the specification.
    pub(super) fn for_reader_of(&self, topic: &Entity) -> Result<Self, Error> {
        let of_topic = Self::new(&Qos::default())?;
        // SAFETY: a live policy set to be filled; the handle is validated by the call.
        let code = unsafe { c::dds_get_qos(topic.handle(), of_topic.0.as_ptr()) };
        super::checked(|| "ask for the policies of a topic".to_owned(), code)?;
        let all = Self::new(&Qos::default())?;
        let defaults = Self::new(
            &Qos::default()
                .reliability(Reliability::BestEffort)
                .history(History::KeepLast(1))
                .ownership(Ownership::Shared)
                .resource_limits(None, None, None),
        )?;
        // SAFETY: live policy sets; merging copies what the first does not have.
        unsafe {
            let defaults = defaults.0.as_ptr();
            // DDS_DESTINATIONORDER_BY_RECEPTION_TIMESTAMP.
            c::dds_qset_destination_order(defaults, 0);
            c::dds_qset_time_based_filter(defaults, 0);
            c::dds_qset_deadline(defaults, i64::MAX);
            c::dds_qset_lifespan(defaults, i64::MAX);
            for part in [self.0.as_ptr(), of_topic.0.as_ptr(), defaults] {
                c::dds_merge_qos(all.0.as_ptr(), part);
            }
        }
        Ok(all)
    }

    /// Restricts the data representation to version 1, the only one that this crate writes.
    pub(super) fn xcdr1_only(&self) {
        let ids = [c::DDS_DATA_REPRESENTATION_XCDR1 as c::dds_data_representation_id_t];
        // SAFETY: a live policy set, and an array of the length given, which is copied.
        unsafe { c::dds_qset_data_representation(self.0.as_ptr(), 1, ids.as_ptr()) };
    }
}

impl Drop for RawQos {
    fn drop(&mut self) {
        // SAFETY: made by dds_create_qos, not freed before, not used after.
        unsafe { c::dds_delete_qos(self.0.as_ptr()) };
    }
}

/// # Safety
/// `q` is a live policy set.
unsafe fn set_delivery(q: *mut c::dds_qos_t, qos: &Qos) {
    // SAFETY: by the contract of this function; the calls take values.
    unsafe {
        match qos.reliability {
            Some(Reliability::BestEffort) => {
                let kind = c::dds_reliability_kind_DDS_RELIABILITY_BEST_EFFORT;
                c::dds_qset_reliability(q, kind, 0);
            }
            Some(Reliability::Reliable(wait)) => {
                let kind = c::dds_reliability_kind_DDS_RELIABILITY_RELIABLE;
                c::dds_qset_reliability(q, kind, nanos(wait));
            }
            None => {}
        }
        if let Some(history) = qos.history {
            let (kind, depth) = history_numbers(history);
            c::dds_qset_history(q, kind, depth);
        }
        let late = qos.durability == Some(Durability::TransientLocal);
        match qos.durability {
            Some(Durability::Volatile) => {
                c::dds_qset_durability(q, c::dds_durability_kind_DDS_DURABILITY_VOLATILE);
            }
            Some(Durability::TransientLocal) => {
                c::dds_qset_durability(q, c::dds_durability_kind_DDS_DURABILITY_TRANSIENT_LOCAL);
            }
            None => {}
        }
        let own = qos.history.map(|h| (h, qos.limits.unwrap_or_default()));
        if let Some((history, limits)) = qos.durability_service.or(own.filter(|_| late)) {
            let (kind, depth) = history_numbers(history);
            let (s, p) = numbers(limits);
            c::dds_qset_durability_service(q, 0, kind, depth, s, UNLIMITED, p);
        }
        match qos.ownership {
            Some(Ownership::Shared) => {
                c::dds_qset_ownership(q, c::dds_ownership_kind_DDS_OWNERSHIP_SHARED);
            }
            Some(Ownership::Exclusive(strength)) => {
                c::dds_qset_ownership(q, c::dds_ownership_kind_DDS_OWNERSHIP_EXCLUSIVE);
                c::dds_qset_ownership_strength(q, strength);
            }
            None => {}
        }
    }
}

/// # Safety
/// `q` is a live policy set.
unsafe fn set_times(q: *mut c::dds_qos_t, qos: &Qos) {
    // SAFETY: by the contract of this function; the calls take values.
    unsafe {
        if let Some(period) = qos.deadline {
            c::dds_qset_deadline(q, nanos(period));
        }
        if let Some(liveliness) = qos.liveliness {
            let (kind, lease) = match liveliness {
                Liveliness::Automatic(t) => (c::dds_liveliness_kind_DDS_LIVELINESS_AUTOMATIC, t),
                Liveliness::ManualByParticipant(t) => (
                    c::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_PARTICIPANT,
                    t,
                ),
                Liveliness::ManualByTopic(t) => {
                    (c::dds_liveliness_kind_DDS_LIVELINESS_MANUAL_BY_TOPIC, t)
                }
            };
            c::dds_qset_liveliness(q, kind, nanos(lease));
        }
        if let Some(budget) = qos.latency_budget {
            c::dds_qset_latency_budget(q, nanos(budget));
        }
        if let Some(age) = qos.lifespan {
            c::dds_qset_lifespan(q, nanos(age));
        }
    }
}

/// Returns the name of a partition as a C string. The name of the default partition is empty.
fn partition(name: &str) -> Result<CString, Error> {
    if name.is_empty() {
        return Ok(CString::default());
    }
    c_string("partition", name)
}

fn history_numbers(history: History) -> (c::dds_history_kind_t, i32) {
    match history {
        History::KeepLast(n) => (
            c::dds_history_kind_DDS_HISTORY_KEEP_LAST,
            i32::try_from(n.max(1)).unwrap_or(i32::MAX),
        ),
        History::KeepAll => (c::dds_history_kind_DDS_HISTORY_KEEP_ALL, UNLIMITED),
    }
}

/// Returns the limits of samples, and of samples of an instance.
fn numbers(limits: Limits) -> (i32, i32) {
    let (samples, of_each) = (limits.samples, limits.samples_per_instance);
    (number(samples), number(of_each))
}

fn number(limit: Option<u32>) -> i32 {
    limit.map_or(UNLIMITED, |n| i32::try_from(n).unwrap_or(i32::MAX))
}
