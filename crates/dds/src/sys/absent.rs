//! Replaces the layer over the C library when the feature `cyclone` is off: no domain opens, so
//! that its entities never exist. Shared memory works as always.

#[path = "copy.rs"]
mod copy;
#[path = "interface.rs"]
mod interface;
// Without the library nothing is announced.
#[allow(dead_code)]
#[path = "plain.rs"]
mod plain;
#[path = "shm.rs"]
mod shm;

pub(crate) use interface::interface_address;
pub(crate) use plain::{Announced, Ending, OnWarning, RawInfo, nanos};
pub(crate) use shm::{PAGE, ReadOnly, SharedFile, Words, is_shortage, user};

use crate::guid::Guid;
use crate::types::StructType;
use crate::{DomainConfig, Error, Overflow, Qos, ReturnCode, Status};
use std::sync::Arc;
use std::time::Duration;

/// Without the library nothing is warned of.
pub(crate) const fn listen(_: &Arc<OnWarning>) {}

/// An entity of the C library, which never exists.
#[derive(Debug)]
pub(crate) enum Entity {}

/// The type that an endpoint announced, which never exists.
#[derive(Debug)]
pub(crate) enum TypeInfo {}

impl TypeInfo {
    pub(crate) fn hash(&self) -> Option<[u8; 14]> {
        match *self {}
    }
}

pub(crate) type OnSamples = Box<dyn FnMut(&RawSamples) + Send>;
pub(crate) type OnData = Box<dyn FnMut() + Send>;
pub(crate) type OnStatus = Box<dyn FnMut(Status) + Send>;

impl Entity {
    pub(crate) fn handle(&self) -> i32 {
        match *self {}
    }

    pub(crate) fn callbacks(&self) -> Option<&Callbacks> {
        match *self {}
    }
}

/// The closures of an entity, which are never called.
#[derive(Debug)]
pub(crate) struct Callbacks;

impl Callbacks {
    pub(crate) fn of_writer(status: Option<OnStatus>) -> Option<Arc<Self>> {
        status.map(|_| Arc::new(Self))
    }

    pub(crate) fn of_reader(
        _: Option<(OnSamples, RawSamples)>,
        _: Option<OnData>,
        _: Option<OnStatus>,
        _: u32,
    ) -> Arc<Self> {
        Arc::new(Self)
    }

    pub(crate) fn overflow(&self) -> Option<(Overflow, Guid)> {
        None
    }

    pub(crate) fn has_panicked(&self) -> bool {
        false
    }
}

/// The destination of a writer's samples.
#[derive(Debug)]
pub(crate) struct Sink(Arc<Entity>);

impl Sink {
    pub(crate) fn new(writer: Arc<Entity>) -> Result<Self, Error> {
        Ok(Self(writer))
    }

    pub(crate) const fn writer(&self) -> &Arc<Entity> {
        &self.0
    }

    pub(crate) fn write(&self, _: &[u8], _: Option<i64>) -> Option<Result<(), ReturnCode>> {
        match *self.0 {}
    }

    pub(crate) fn end(&self, _: &[u8], _: Ending, _: i64) -> Option<Result<(), ReturnCode>> {
        match *self.0 {}
    }

    pub(crate) fn flush(&self) -> Result<(), Error> {
        match *self.0 {}
    }

    pub(crate) fn wait_for_acks(&self, _: i64) -> Result<bool, Error> {
        match *self.0 {}
    }
}

/// An array for samples, which stays empty.
#[derive(Debug)]
pub(crate) struct RawSamples;

impl RawSamples {
    pub(crate) fn with_capacity(_: usize) -> Self {
        Self
    }

    pub(crate) const fn len(&self) -> usize {
        0
    }

    pub(crate) fn take(&mut self, _: i32) -> Result<usize, Error> {
        Ok(0)
    }

    pub(crate) fn take_more(&mut self, _: i32) -> Result<usize, Error> {
        Ok(0)
    }

    pub(crate) fn keep(&mut self, _: impl FnMut(usize) -> bool) {}

    pub(crate) fn get(&self, _: usize) -> Option<(RawInfo, &[u8])> {
        None
    }

    pub(crate) fn release(&mut self) {}
}

/// The announcements of participants.
#[derive(Debug)]
pub(crate) struct RawDiscovery(Arc<Entity>);

impl RawDiscovery {
    pub(crate) fn new(participant: &Arc<Entity>) -> Result<Self, Error> {
        match **participant {}
    }

    pub(crate) fn own(&self) -> Guid {
        match *self.0 {}
    }

    pub(crate) fn take(&self, _: impl FnMut(Announced)) -> Result<(), Error> {
        match *self.0 {}
    }
}

pub(crate) fn participant_of(_: i32, _: u64) -> Option<Guid> {
    None
}

/// A condition of a reader.
#[derive(Debug)]
pub(crate) struct RawCondition(Arc<Entity>);

impl RawCondition {
    pub(crate) fn new(reader: &Arc<Entity>) -> Result<Self, Error> {
        match **reader {}
    }
}

/// A set of conditions.
#[derive(Debug)]
pub(crate) struct RawWaitSet(Arc<Entity>);

impl RawWaitSet {
    pub(crate) fn new(participant: &Arc<Entity>) -> Result<Self, Error> {
        match **participant {}
    }

    pub(crate) fn attach(&mut self, condition: RawCondition) -> Result<usize, Error> {
        match *condition.0 {}
    }

    pub(crate) fn wait(&mut self, _: i64, _: impl FnMut(usize)) -> Result<(), Error> {
        match *self.0 {}
    }
}

/// Returns [`Error::NotBuiltIn`], or the error of an invalid configuration.
pub(crate) fn open(config: &DomainConfig) -> Result<Arc<Entity>, Error> {
    config.to_xml()?;
    Err(Error::NotBuiltIn)
}

pub(crate) fn topic(
    participant: &Arc<Entity>,
    _: &str,
    _: &StructType,
    _: &Qos,
) -> Result<Arc<Entity>, Error> {
    match **participant {}
}

pub(crate) fn found_topic(
    participant: &Arc<Entity>,
    _: &str,
    _: &TypeInfo,
    _: Duration,
    _: &Qos,
) -> Result<Arc<Entity>, Error> {
    match **participant {}
}

pub(crate) fn found_type(
    participant: &Arc<Entity>,
    _: &str,
    _: &TypeInfo,
    _: Duration,
) -> Result<StructType, Error> {
    match **participant {}
}

pub(crate) fn writer(
    _: (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    _: &Qos,
    _: Option<Arc<Callbacks>>,
) -> Result<Arc<Entity>, Error> {
    match **participant {}
}

pub(crate) fn reader(
    _: (&Arc<Entity>, &str),
    participant: &Arc<Entity>,
    _: &Qos,
    _: Arc<Callbacks>,
) -> Result<Arc<Entity>, Error> {
    match **participant {}
}
