//! A reliable writer that a single reader cannot stop for all others.
//!
//! A reliable writer that keeps all samples waits for its slowest reader: one that is there and
//! takes nothing stops it for every reader without end. A second writer of the same topic keeps the
//! last samples of each instance only, and so drops what a reader does not take. Readers match
//! both, because history is no matter between a writer and its readers.
//!
//! The reliable writer stays open while the second one writes. Its samples remain for the reader
//! that is behind, its instances stay alive at all readers, and no reader has to find it again.

mod policy;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use policy::{DEPTH, PATIENCE, STAY};

use crate::discovery::{Discovery, EndpointKind};
use crate::{Error, History, Qos, Reliability, Status, Topic, Writer};
use policy::{Outlet, Relief};

/// The most readers of a topic that are listed.
const LISTED: usize = 8;

/// A writer, and the one that relieves it while a reader does not take. It is for one thread.
#[derive(Debug)]
pub struct RelievedWriter {
    relief: Relief<Watched>,
    topic: Topic,
    qos: Qos,
    told: bool,
}

/// A writer, and the number of its readers.
#[derive(Debug)]
struct Watched {
    writer: Writer,
    readers: Arc<AtomicU32>,
}

/// The reader of another participant, for a line of text. What its program chose is not escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderName {
    /// The process, if announced.
    pub process: Option<String>,
    /// The number of the process, if announced.
    pub pid: Option<String>,
    /// The host, if announced.
    pub host: Option<String>,
}

impl fmt::Display for ReaderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.process.as_deref().unwrap_or("a program"))?;
        for (before, what) in [(" pid ", &self.pid), (" on ", &self.host)] {
            if let Some(what) = what {
                write!(f, "{before}{what}")?;
            }
        }
        Ok(())
    }
}

impl RelievedWriter {
    /// Opens a writer, which is relieved after `patience` of vain writes in a row: [`PATIENCE`], or
    /// more for dead readers with a longer lease. With `None`, or policies under which a writer
    /// waits for no reader, it never is. `on_status` receives the events of this writer alone, not
    /// those of the one that relieves it.
    ///
    /// # Errors
    /// Those of [`WriterBuilder::open`](crate::WriterBuilder::open).
    pub fn open(
        topic: &Topic,
        qos: &Qos,
        patience: Option<Duration>,
        on_status: impl FnMut(Status) + Send + 'static,
    ) -> Result<Self, Error> {
        let keeps_all = qos.history == Some(History::KeepAll);
        let is_reliable = matches!(qos.reliability, Some(Reliability::Reliable(_)));
        let own = Watched::open(topic, qos, None, on_status)?;
        Ok(Self {
            relief: Relief::new(own, patience.filter(|_| keeps_all && is_reliable)),
            topic: topic.clone(),
            qos: qos.clone(),
            told: false,
        })
    }

    /// Writes one sample, as [`Writer::write`] does. While no reader holds the writer up, it is a
    /// call of that alone.
    ///
    /// # Errors
    /// Those of [`Writer::write`].
    #[inline]
    pub fn write(&mut self, cdr: &[u8]) -> Result<(), Error> {
        let Self {
            relief, topic, qos, ..
        } = self;
        relief.write(cdr, Instant::now, |own, depth| {
            own.beside(topic, qos, depth)
        })
    }

    /// Prepares the relief, or ends it, if it is time. To be called now and then, also while there
    /// is nothing to write. It may wait for acknowledgements for 50 ms, once a second, while the
    /// writer is relieved. Returns whether the writer is relieved, if that has changed since the
    /// last call.
    ///
    /// # Errors
    /// Those of [`Writer::wait_for_acks`].
    pub fn look(&mut self) -> Result<Option<bool>, Error> {
        let Self {
            relief, topic, qos, ..
        } = self;
        if relief.is_whole() && !self.told {
            return Ok(None);
        }
        relief.look(Instant::now(), |own, depth| own.beside(topic, qos, depth))?;
        let is_relieved = relief.is_relieved();
        let before = std::mem::replace(&mut self.told, is_relieved);
        Ok((before != is_relieved).then_some(is_relieved))
    }

    /// Returns the readers of the topic in other participants, at most eight. Cyclone DDS does not
    /// report which of them has not acknowledged.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn readers(&self) -> Result<Vec<ReaderName>, Error> {
        let mut discovery = Discovery::new(self.topic.participant())?;
        discovery.update()?;
        let of_topic = discovery
            .endpoints()
            .filter(|e| e.kind == EndpointKind::Reader && e.topic == self.topic.name());
        let names = of_topic.map(|reader| {
            let mut all = discovery.participants();
            let participant = all.find(|p| p.guid == reader.participant);
            ReaderName {
                process: participant.and_then(|p| p.process.clone()),
                pid: participant.and_then(|p| p.pid.clone()),
                host: participant.and_then(|p| p.host.clone()),
            }
        });
        Ok(names.take(LISTED).collect())
    }

    /// Returns the topic.
    pub const fn topic(&self) -> &Topic {
        &self.topic
    }

    /// Sends the samples that batching holds back.
    ///
    /// # Errors
    /// Those of [`Writer::flush`].
    pub fn flush(&self) -> Result<(), Error> {
        self.relief.current().writer.flush()
    }

    /// Waits until every reader has acknowledged everything, as [`Writer::wait_for_acks`] does.
    ///
    /// # Errors
    /// Those of [`Writer::wait_for_acks`].
    pub fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        self.relief.current().wait_for_acks(timeout)
    }
}

impl Watched {
    /// Opens a writer, which shares the keys of `own`.
    fn open(
        topic: &Topic,
        qos: &Qos,
        own: Option<&Writer>,
        mut on_status: impl FnMut(Status) + Send + 'static,
    ) -> Result<Self, Error> {
        let readers = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&readers);
        let mut writer = topic.writer(qos).on_status(move |status| {
            if let Status::Matched { current, .. } = status {
                count.store(current, Ordering::Release);
            }
            on_status(status);
        });
        if let Some(own) = own {
            writer = writer.shares_keys(own);
        }
        Ok(Self {
            writer: writer.open()?,
            readers,
        })
    }

    /// Opens a writer beside this one that keeps the last `depth` samples of each instance.
    fn beside(&self, topic: &Topic, qos: &Qos, depth: u32) -> Result<Self, Error> {
        let qos = qos.clone().history(History::KeepLast(depth));
        Self::open(topic, &qos, Some(&self.writer), |_| {})
    }
}

impl Outlet for Watched {
    #[inline]
    fn write(&self, cdr: &[u8]) -> Result<(), Error> {
        self.writer.write(cdr)
    }

    fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        self.writer.wait_for_acks(timeout)
    }

    fn readers(&self) -> u32 {
        self.readers.load(Ordering::Acquire)
    }
}
