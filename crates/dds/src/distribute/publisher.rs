//! The publishing side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::echo::{Echo, RoundTrips};
use super::{Carrier, Departures, Distribution, DoneToken, over_dds, over_shm};
use crate::cdr::{CdrBuffer, CdrType};
use crate::fast::{Converted, Mapping, TemplateType};
use crate::sys::OnStatus;
use crate::{Domain, Error, Policy, Status, Writer};

/// Writes the samples of a feed to their topics.
#[derive(Debug)]
pub struct Publisher {
    carried: Carried,
    echoed: Arc<AtomicU64>,
    written: u64,
    without_topic: u64,
    refused: u64,
}

#[derive(Debug)]
enum Carried {
    Dds(Box<over_dds::Writers>),
    Shm(Box<over_shm::Writers>),
}

impl Publisher {
    /// Opens all topics. With echo on, `round_trips` is called once for each topic (over shared
    /// memory: for each template) and returns the receiver of its round trips, each from the write
    /// to the arrival of the echo here.
    ///
    /// # Errors
    /// Those of [`Distribution::check`], before anything is opened; those of
    /// [`Domain::topic`](crate::Domain::topic) and of opening writers; over shared memory those of
    /// [`Sender::open`](crate::shm::Sender::open).
    pub fn open(
        carrier: impl Into<Carrier>,
        mapping: &Mapping,
        distribution: &Distribution,
        mut round_trips: impl FnMut(&TemplateType) -> RoundTrips,
    ) -> Result<Self, Error> {
        distribution.check(mapping)?;
        let echoed = Arc::new(AtomicU64::new(0));
        let echo = Echo {
            round_trips: &mut round_trips,
            echoed: &echoed,
        };
        let carried = match carrier.into() {
            Carrier::Dds(domain) => {
                let mut nobody = |_: &TemplateType, _: &str| -> OnStatus { Box::new(|_| {}) };
                let listeners = &mut nobody;
                let outlets =
                    over_dds::Writers::open(&domain, mapping, distribution, echo, listeners)?;
                Carried::Dds(Box::new(outlets))
            }
            Carrier::Shm(config) => {
                let outlets = over_shm::Writers::open(&config, mapping, distribution, echo)?;
                Carried::Shm(Box::new(outlets))
            }
        };
        Ok(Self::new(carried, echoed))
    }

    /// Opens all topics over DDS without a receiver of round trips. `listeners` is called once for
    /// each topic, with its template and name, and returns a listener to the events of its writer,
    /// which is called in a thread of Cyclone DDS and must not wait.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub fn open_listening(
        domain: &Domain,
        mapping: &Mapping,
        distribution: &Distribution,
        mut listeners: impl FnMut(&TemplateType, &str) -> Box<dyn FnMut(Status) + Send>,
    ) -> Result<Self, Error> {
        distribution.check(mapping)?;
        let echoed = Arc::new(AtomicU64::new(0));
        let mut round_trips = |_: &TemplateType| -> RoundTrips { Box::new(|_| {}) };
        let echo = Echo {
            round_trips: &mut round_trips,
            echoed: &echoed,
        };
        let outlets = over_dds::Writers::open(domain, mapping, distribution, echo, &mut listeners)?;
        Ok(Self::new(Carried::Dds(Box::new(outlets)), echoed))
    }

    const fn new(carried: Carried, echoed: Arc<AtomicU64>) -> Self {
        Self {
            carried,
            echoed,
            written: 0,
            without_topic: 0,
            refused: 0,
        }
    }

    /// Returns the writer of a sample, if it has a topic. Over DDS only.
    pub fn writer(&self, sample: &Converted<'_>) -> Option<&Writer> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.writer(sample),
            Carried::Shm(_) => None,
        }
    }

    /// Returns whether every topic, echoes included, has a subscriber.
    pub fn is_matched(&self) -> bool {
        match &self.carried {
            Carried::Dds(outlets) => {
                let (matched, all) = outlets.matched();
                matched >= all
            }
            Carried::Shm(outlets) => outlets.is_matched(),
        }
    }

    /// Returns how many of the topics, with those of echoes and of the token, have a subscriber,
    /// and their number. Over DDS only: over shared memory a subscriber has all of them.
    pub fn matched(&self) -> (u32, u32) {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matched(),
            Carried::Shm(_) => (0, 0),
        }
    }

    /// Returns how often a peer's policies (over shared memory: types) were incompatible: those
    /// peers never match.
    pub fn incompatible(&self) -> u32 {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.incompatible(),
            Carried::Shm(outlets) => outlets.incompatible(),
        }
    }

    /// Returns the incompatible policy of the last such peer, over DDS.
    pub fn incompatible_policy(&self) -> Option<Policy> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.policy(),
            Carried::Shm(_) => None,
        }
    }

    /// Returns how many of the subscribers' readers are gone, and how many of their echoes' writers
    /// were silent: a reader itself has no liveliness. Over DDS only.
    pub fn departures(&self) -> Departures {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.departures(),
            Carried::Shm(_) => Departures::default(),
        }
    }

    /// Returns how often a subscriber was cut off because it stopped reading for the
    /// [patience](Carrier::patience), and the number of those that died while reading. Over shared
    /// memory only: DDS has its own means for both.
    pub fn lost_subscribers(&self) -> (u64, u64) {
        match &self.carried {
            Carried::Dds(_) => (0, 0),
            Carried::Shm(outlets) => outlets.lost_subscribers(),
        }
    }

    /// Writes a sample to its topic. Returns `false` when it is left out, which is counted: its
    /// security has no topic, or its key is beyond a limit of its topic.
    ///
    /// # Errors
    /// Those of [`Writer::write`](crate::Writer::write), and over shared memory those of
    /// [`Sender::write`](crate::shm::Sender::write). A sample that timed out may be published
    /// again.
    #[inline]
    pub fn publish(&mut self, sample: &Converted<'_>) -> Result<bool, Error> {
        let published = match &mut self.carried {
            Carried::Dds(outlets) => outlets.publish(sample),
            Carried::Shm(outlets) => outlets.publish(sample),
        };
        if let Err(Error::TooManyKeys { .. } | Error::LongKey { .. }) = published {
            self.refused += 1;
            return Ok(false);
        }
        let published = published?;
        if published {
            self.written += 1;
        } else {
            self.without_topic += 1;
        }
        Ok(published)
    }

    /// Returns the length of the longest sample in bytes: over shared memory a quarter of the ring,
    /// over DDS `None`, as there is no limit.
    pub fn longest(&self) -> Option<usize> {
        match &self.carried {
            Carried::Dds(_) => None,
            Carried::Shm(outlets) => Some(outlets.longest()),
        }
    }

    /// Returns the number of samples written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Returns the number of samples that had no topic.
    pub const fn without_topic(&self) -> u64 {
        self.without_topic
    }

    /// Returns the number of samples left out because their topic has as many keys as it may, or
    /// because their key is too long.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the topics of echoes that were closed because of too many keys
    /// ([`Error::ReaderClosed`]), or lost their listener because it panicked. Over DDS only.
    pub fn failures(&self) -> Vec<Error> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.failures(),
            Carried::Shm(_) => Vec::new(),
        }
    }

    /// Returns the number of echoes received.
    pub fn echoed(&self) -> u64 {
        self.echoed.load(Ordering::Acquire)
    }

    /// Waits until every subscriber has received everything written; returns `false` if `timeout`
    /// was too short. Over shared memory subscribers have it at once, or have been cut off.
    ///
    /// # Errors
    /// Those of [`Writer::wait_for_acks`](crate::Writer::wait_for_acks).
    pub fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.wait_for_acks(timeout),
            Carried::Shm(_) => Ok(true),
        }
    }

    /// Writes the token that ends the feed, and waits until every subscriber has received it;
    /// returns `false` if `timeout` was too short. Over shared memory a ring that is still full
    /// then drops its oldest samples for the token.
    ///
    /// # Errors
    /// Those of [`publish`](Self::publish), except time-outs over shared memory.
    pub fn finish(&mut self, timeout: Duration) -> Result<bool, Error> {
        let token = DoneToken {
            samples: self.written,
        };
        let mut buffer = CdrBuffer::with_capacity(16);
        buffer.begin();
        token.write_cdr(&mut buffer);
        let token = buffer.finish()?;
        match &mut self.carried {
            Carried::Dds(outlets) => outlets.finish(token, timeout),
            Carried::Shm(outlets) => outlets.finish(token, timeout),
        }
    }
}
