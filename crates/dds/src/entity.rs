//! Domain, topic, writer, reader, waitset: handles that may be dropped in any order.

mod reader;
mod sample;
mod writer;

pub use reader::{Reader, ReaderBuilder, SampleIter, Samples};
pub use sample::{Sample, SampleInfo};
pub use writer::{Writer, WriterBuilder};

use std::sync::Arc;
use std::time::Duration;

use crate::cdr::CdrType;
use crate::discovery::{self, Discovery, Endpoint};
use crate::sys::{self, Entity};
use crate::types::{Fault, StructType, TypeError};
use crate::{DomainConfig, Error, Qos};

/// A domain, joined as one participant. It may be cloned cheaply and shared between threads, and is
/// closed with its last user.
#[derive(Debug, Clone)]
pub struct Domain {
    participant: Arc<Entity>,
    id: u32,
}

impl Domain {
    /// Joins a domain. Each call is a participant with sockets and threads of its own.
    ///
    /// # Errors
    /// The configuration is invalid ([`Error::DomainId`], [`Error::Config`]) or not possible on
    /// this machine ([`Error::Dds`], with the reason from Cyclone DDS, such as an unknown
    /// interface).
    pub fn open(config: &DomainConfig) -> Result<Self, Error> {
        Ok(Self {
            participant: sys::open(config)?,
            id: config.id,
        })
    }

    /// Returns the domain id on the network.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Makes a topic of a name, the type of its samples, and default policies.
    ///
    /// # Errors
    /// [`Error::Type`] for a type that DDS cannot carry, [`Error::Name`] for an invalid name,
    /// [`Error::Dds`] when the domain has the topic with another type.
    pub fn topic(&self, name: &str, t: &StructType, qos: &Qos) -> Result<Topic, Error> {
        Ok(Topic {
            entity: sys::topic(&self.participant, name, t, qos)?,
            participant: Arc::clone(&self.participant),
            name: name.into(),
            t: Arc::new(t.clone()),
        })
    }

    /// Makes a topic of a Rust type.
    ///
    /// # Errors
    /// Those of [`topic`](Self::topic).
    pub fn topic_of<T: CdrType>(&self, name: &str, qos: &Qos) -> Result<Topic, Error> {
        let Some(t) = T::structure() else {
            return Err(Error::Type(TypeError {
                path: std::any::type_name::<T>().to_owned(),
                why: Fault::Unsupported("topics of anything but structures"),
            }));
        };
        self.topic(name, &t, qos)
    }

    /// Returns the discovery of the domain's other participants, their writers and readers.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn discovery(&self) -> Result<Discovery, Error> {
        Discovery::new(&self.participant)
    }

    /// Makes the topic of a writer or reader of another program, with the type that it announced,
    /// requested on the network for at most `timeout`.
    ///
    /// # Errors
    /// [`Error::NoType`] if it announced none, [`Error::TypeUnanswered`] if no participant
    /// describes it in time, [`Error::Type`] for types that this crate does not read; otherwise
    /// those of [`topic`](Self::topic).
    pub fn found_topic(&self, endpoint: &Endpoint, timeout: Duration) -> Result<Topic, Error> {
        let t = discovery::type_of(&self.participant, endpoint, timeout)?;
        let qos = Qos::default();
        let info = endpoint.type_info()?;
        let entity = sys::found_topic(&self.participant, &endpoint.topic, info, timeout, &qos)?;
        Ok(Topic {
            entity,
            participant: Arc::clone(&self.participant),
            name: endpoint.topic.as_str().into(),
            t: Arc::new(t),
        })
    }

    /// Makes a waitset without readers.
    ///
    /// # Errors
    /// [`Error::Dds`] when the library has no resources for it.
    pub fn waitset(&self) -> Result<WaitSet, Error> {
        Ok(WaitSet(sys::RawWaitSet::new(&self.participant)?))
    }
}

/// A named stream of samples of one type. It may be cloned cheaply and shared between threads.
#[derive(Debug, Clone)]
pub struct Topic {
    entity: Arc<Entity>,
    participant: Arc<Entity>,
    name: Arc<str>,
    t: Arc<StructType>,
}

impl Topic {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type of its samples.
    pub fn sample_type(&self) -> &StructType {
        &self.t
    }

    /// Returns a builder of a writer with these policies.
    pub fn writer(&self, qos: &Qos) -> WriterBuilder {
        WriterBuilder::new(self, qos)
    }

    /// Returns a builder of a reader with these policies.
    pub fn reader(&self, qos: &Qos) -> ReaderBuilder {
        ReaderBuilder::new(self, qos)
    }
}

/// Waits for any of several readers of one domain, in one thread at a time.
#[derive(Debug)]
pub struct WaitSet(sys::RawWaitSet);

impl WaitSet {
    /// Adds a reader and returns its number for [`wait`](Self::wait), from 0 up.
    ///
    /// # Errors
    /// [`Error::Dds`] for a reader of another domain object.
    pub fn attach(&mut self, reader: &Reader) -> Result<usize, Error> {
        self.0.attach(sys::RawCondition::new(reader.entity())?)
    }

    /// Waits until at least one reader has samples or `timeout` has passed, and calls `ready` with
    /// the number of each reader that has.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn wait(&mut self, timeout: Duration, ready: impl FnMut(usize)) -> Result<(), Error> {
        self.0.wait(sys::nanos(timeout), ready)
    }
}
