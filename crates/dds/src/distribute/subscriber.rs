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
    /// Opens all topics. `on_sample` is called for each sample in a receive thread, after the echo
    /// is sent.
    ///
    /// # Errors
    /// Those of [`Distribution::check`], before anything is opened; those of
    /// [`Domain::topic`](crate::Domain::topic) and of opening readers; over shared memory those of
    /// [`Receiver::open`](crate::shm::Receiver::open).
    pub fn open<F>(
        carrier: impl Into<Carrier>,
        mapping: &Mapping,
        distribution: &Distribution,
        on_sample: F,
    ) -> Result<Self, Error>
    where
        F: Fn(Received<'_>) + Send + Sync + 'static,
    {
        distribution.check(mapping)?;
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

    /// Returns whether every topic, echoes included, has a publisher.
    pub fn is_matched(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.is_matched(),
            Carried::Shm(inlets) => inlets.is_matched(),
        }
    }

    /// Returns whether any topic has a publisher.
    pub fn has_any(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.count() > 0,
            Carried::Shm(inlets) => inlets.is_matched(),
        }
    }

    /// Returns whether any topic has had several publishers at a time. Over DDS only.
    pub fn has_several(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.several(),
            Carried::Shm(_) => false,
        }
    }

    /// Returns how often a peer's policies (over shared memory: types) were incompatible.
    pub fn incompatible(&self) -> u32 {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.incompatible(),
            Carried::Shm(inlets) => inlets.incompatible(),
        }
    }

    /// Returns the incompatible policy of the last such peer, over DDS.
    pub fn incompatible_policy(&self) -> Option<Policy> {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.policy(),
            Carried::Shm(_) => None,
        }
    }

    /// Returns how many of the publishers' writers are gone or were silent. Over DDS only.
    pub fn departures(&self) -> Departures {
        match &self.carried {
            Carried::Dds(inlets) => inlets.matches.departures(),
            Carried::Shm(_) => Departures::default(),
        }
    }

    /// Returns the number of samples received.
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Acquire)
    }

    /// Returns the number of samples that newer ones replaced before they were read, including
    /// those of topics that this subscriber does not receive. Over shared memory only.
    pub fn overtaken(&self) -> u64 {
        match &self.carried {
            Carried::Dds(_) => 0,
            Carried::Shm(inlets) => inlets.overtaken(),
        }
    }

    /// Returns the number of publishers in shared memory that this subscriber does not read at
    /// present: those that have 64 subscribers, those beyond the 64 that a subscriber reads, and
    /// those for which the system lacks descriptors or memory. Over DDS the number is 0.
    pub fn crowded(&self) -> u64 {
        match &self.carried {
            Carried::Dds(_) => 0,
            Carried::Shm(inlets) => inlets.crowded(),
        }
    }

    /// Returns the number of echoes that could not be written.
    pub fn echo_failed(&self) -> u64 {
        self.counts.echo_failed.load(Ordering::Acquire)
    }

    /// Returns the number of publishers that have ended, and of samples that they announced in all.
    pub fn announced(&self) -> (u64, u64) {
        let tokens = self.counts.tokens.load(Ordering::Acquire);
        (tokens, self.counts.announced.load(Ordering::Acquire))
    }

    /// Returns the number of samples that publishers announced and that have not been received, for
    /// each publisher by itself; over DDS, a participant is one publisher. Beyond 1,024 publishers,
    /// including those that have left, further ones are counted together: a sample of one replaces
    /// a lost sample of another.
    pub fn lost(&self) -> u64 {
        self.counts.lost()
    }

    /// Returns the most samples that one publisher announced.
    pub fn announced_most(&self) -> u64 {
        self.counts.most.load(Ordering::Acquire)
    }

    /// Returns the topics that failed: closed because of too many keys ([`Error::ReaderClosed`]),
    /// or without a listener because it panicked ([`Error::ListenerPanicked`]). The other topics
    /// continue. Allocates only if there is a failure.
    pub fn failures(&self) -> Vec<Error> {
        match &self.carried {
            Carried::Dds(inlets) => inlets.failures(),
            Carried::Shm(inlets) => inlets.check().err().into_iter().collect(),
        }
    }

    /// Returns whether nothing can arrive any more, because every topic failed.
    pub fn is_closed(&self) -> bool {
        match &self.carried {
            Carried::Dds(inlets) => inlets.is_closed(),
            Carried::Shm(inlets) => inlets.check().is_err(),
        }
    }

    /// Checks that no topic failed.
    ///
    /// # Errors
    /// The first of the [failures](Self::failures).
    pub fn check(&self) -> Result<(), Error> {
        self.failures().into_iter().next().map_or(Ok(()), Err)
    }
}
