//! The subscribing side.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::received::{Counts, Received};
use super::{Carrier, Departures, Distribution, over_dds, over_shm};
use crate::fast::Mapping;
use crate::{Error, Policy};

/// Receives the samples of a feed.
#[derive(Debug)]
pub struct Subscriber {
    carried: Carried,
    counts: Arc<Counts>,
}

#[derive(Debug)]
enum Carried {
    Dds(over_dds::Readers),
    Shm(over_shm::Readers),
}

impl Subscriber {
    /// Opens all topics; `on_sample` is called for each sample in a receive thread, after the
    /// echo goes out.
    ///
    /// # Errors
    /// As [`Domain::topic`](crate::Domain::topic) and the opening of readers; over shared memory
    /// as [`Receiver::open`](crate::shm::Receiver::open).
    pub fn open<F>(
        carrier: impl Into<Carrier>,
        mapping: &Mapping,
        distribution: &Distribution,
        on_sample: F,
    ) -> Result<Self, Error>
    where
        F: Fn(Received<'_>) + Send + Sync + 'static,
    {
        let counts = Arc::new(Counts::default());
        let carried = match carrier.into() {
            Carrier::Dds(domain) => {
                let (all, on_sample) = (&counts, Arc::new(on_sample));
                let inlets =
                    over_dds::Readers::open(&domain, mapping, distribution, all, &on_sample);
                Carried::Dds(inlets?)
            }
            Carrier::Shm(config) => {
                let all = Arc::clone(&counts);
                let inlets =
                    over_shm::Readers::open(&config, mapping, distribution, all, on_sample);
                Carried::Shm(inlets?)
            }
        };
        Ok(Self { carried, counts })
    }

    /// Whether every topic, echoes included, has a publisher.
    pub fn is_matched(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.is_matched(),
            Carried::Shm(inlets) => inlets.is_matched(),
        }
    }

    /// Whether any topic has a publisher.
    pub fn has_any(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.count() > 0,
            Carried::Shm(inlets) => inlets.is_matched(),
        }
    }

    /// Whether any topic has had several publishers at a time. Over DDS only.
    pub fn has_several(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.several(),
            Carried::Shm(_) => false,
        }
    }

    /// How often another side's policies (over shared memory: types) did not fit.
    pub fn incompatible(&self) -> u32 {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.incompatible(),
            Carried::Shm(inlets) => inlets.incompatible(),
        }
    }

    /// The policy that did not fit in the last such meeting, over DDS.
    pub fn incompatible_policy(&self) -> Option<Policy> {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.policy(),
            Carried::Shm(_) => None,
        }
    }

    /// How many of the publishers' writers are gone or were silent. Over DDS only.
    pub fn departures(&self) -> Departures {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.departures(),
            Carried::Shm(_) => Departures::default(),
        }
    }

    /// Samples received.
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Acquire)
    }

    /// Samples that made carried for newer ones before they were read. Over shared memory only.
    pub fn overtaken(&self) -> u64 {
        match &self.carried {
            Carried::Dds(_) => 0,
            Carried::Shm(inlets) => inlets.overtaken(),
        }
    }

    /// Echoes that could not be written.
    pub fn echo_failed(&self) -> u64 {
        self.counts.echo_failed.load(Ordering::Acquire)
    }

    /// Publishers that said they are done, and the samples they say they wrote in all.
    pub fn announced(&self) -> (u64, u64) {
        let tokens = self.counts.tokens.load(Ordering::Acquire);
        (tokens, self.counts.announced.load(Ordering::Acquire))
    }

    /// The most samples that one publisher says it wrote.
    pub fn announced_most(&self) -> u64 {
        self.counts.most.load(Ordering::Acquire)
    }

    /// What is wrong with which topics: closed, because there are too many keys
    /// ([`Error::ReaderClosed`]), or without a listener, because it panicked
    /// ([`Error::ListenerPanicked`]). The others go on. Allocates only when there is something.
    pub fn failures(&self) -> Vec<Error> {
        match &self.carried {
            Carried::Dds(inlets) => inlets.failures(),
            Carried::Shm(inlets) => inlets.check().err().into_iter().collect(),
        }
    }

    /// Whether nothing can come any more, because every topic failed.
    pub fn is_closed(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.is_closed(),
            Carried::Shm(inlets) => inlets.check().is_err(),
        }
    }

    /// Says whether a topic failed.
    ///
    /// # Errors
    /// The first of the [failures](Self::failures).
    pub fn check(&self) -> Result<(), Error> {
        self.failures().into_iter().next().map_or(Ok(()), Err)
    }
}
