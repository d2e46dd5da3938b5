//! The publishing side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::echo::{Echo, RoundTrips};
use super::{Carrier, Departures, Distribution, DoneToken, over_dds, over_shm};
use crate::cdr::{CdrBuffer, CdrType};
use crate::fast::{Converted, Mapping, TemplateType};
use crate::{Error, Policy};

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
    Dds(over_dds::Writers),
    Shm(Box<over_shm::Writers>),
}

impl Publisher {
    /// Opens all topics. With echo on, `round_trips` is asked once for each topic (over shared
    /// memory: for each template) what to do with its round trips: from the write to the arrival
    /// of the echo here.
    ///
    /// # Errors
    /// As [`Domain::topic`](crate::Domain::topic) and the opening of writers; over shared memory
    /// as [`Sender::open`](crate::shm::Sender::open).
    pub fn open(
        carrier: impl Into<Carrier>,
        mapping: &Mapping,
        distribution: &Distribution,
        mut round_trips: impl FnMut(&TemplateType) -> RoundTrips,
    ) -> Result<Self, Error> {
        let echoed = Arc::new(AtomicU64::new(0));
        let echo = Echo {
            round_trips: &mut round_trips,
            echoed: &echoed,
        };
        let carried = match carrier.into() {
            Carrier::Dds(domain) => Carried::Dds(over_dds::Writers::open(
                &domain,
                mapping,
                distribution,
                echo,
            )?),
            Carrier::Shm(config) => {
                let outlets = over_shm::Writers::open(&config, mapping, distribution, echo)?;
                Carried::Shm(Box::new(outlets))
            }
        };
        Ok(Self {
            carried,
            echoed,
            written: 0,
            without_topic: 0,
            refused: 0,
        })
    }

    /// Whether every topic, echoes included, has a subscriber.
    pub fn is_matched(&self) -> bool {
        match &self.carried {
            Carried::Dds(outlets) => outlets.is_matched(),
            Carried::Shm(outlets) => outlets.is_matched(),
        }
    }

    /// How often another side's policies (over shared memory: types) did not fit: those do not
    /// match and never will.
    pub fn incompatible(&self) -> u32 {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.incompatible(),
            Carried::Shm(outlets) => outlets.incompatible(),
        }
    }

    /// The policy that did not fit in the last such meeting, over DDS.
    pub fn incompatible_policy(&self) -> Option<Policy> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.policy(),
            Carried::Shm(_) => None,
        }
    }

    /// How many of the subscribers' readers are gone, and of their echoes' writers were silent: a
    /// reader itself has no liveliness. Over DDS only.
    pub fn departures(&self) -> Departures {
        match &self.carried {
            Carried::Dds(outlets) => outlets.matches.departures(),
            Carried::Shm(_) => Departures::default(),
        }
    }

    /// Subscribers that were cut off because they stopped reading, and those that died reading.
    /// Over shared memory only: DDS has means of its own for both.
    pub fn lost_subscribers(&self) -> (u64, u64) {
        match &self.carried {
            Carried::Dds(_) => (0, 0),
            Carried::Shm(outlets) => outlets.lost_subscribers(),
        }
    }

    /// Writes a sample to its topic; `false` when it is left out, which is counted: it is of a
    /// security beyond those that have topics, or of a key beyond those that a topic may have.
    ///
    /// # Errors
    /// As [`Writer::write`](crate::Writer::write).
    #[inline]
    pub fn publish(&mut self, sample: &Converted<'_>) -> Result<bool, Error> {
        let published = match &mut self.carried {
            Carried::Dds(outlets) => outlets.publish(sample),
            Carried::Shm(outlets) => outlets.publish(sample),
        };
        if let Err(Error::TooManyKeys { .. }) = published {
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

    /// Samples written.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Samples that had no topic.
    pub const fn without_topic(&self) -> u64 {
        self.without_topic
    }

    /// Samples left out because their topic has as many keys as it may.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Which topics of echoes were closed, because there are too many keys
    /// ([`Error::ReaderClosed`]), or lost their listener, because it panicked. Over DDS only.
    pub fn failures(&self) -> Vec<Error> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.failures(),
            Carried::Shm(_) => Vec::new(),
        }
    }

    /// Echoes that came back.
    pub fn echoed(&self) -> u64 {
        self.echoed.load(Ordering::Acquire)
    }

    /// Waits until every subscriber has what was written; `false` when `timeout` was too short.
    /// Over shared memory they have it at once, or have been cut off.
    ///
    /// # Errors
    /// As [`Writer::wait_for_acks`](crate::Writer::wait_for_acks).
    pub fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error> {
        match &self.carried {
            Carried::Dds(outlets) => outlets.wait_for_acks(timeout),
            Carried::Shm(_) => Ok(true),
        }
    }

    /// Says that this is all, and waits until every subscriber has it.
    ///
    /// # Errors
    /// As [`Writer::write`](crate::Writer::write).
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
