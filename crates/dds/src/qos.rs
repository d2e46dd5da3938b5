//! Quality of service: the policies of a topic, a writer or a reader, as plain data.

use std::time::Duration;

/// Default limit of the instances that a reader keeps and a publisher writes: enough for the
/// options of a large market, and 0.8 GB in a reader.
pub const INSTANCES: u32 = 1_000_000;

/// The longest key of an instance, in bytes of CDR. A key is never cut: writing a longer one fails
/// with [`Error::LongKey`](crate::Error::LongKey).
pub const LONGEST_KEY: u32 = 1_024;

/// Default limit of samples that wait for a reader.
const SAMPLES: u32 = 8_192;

/// Whether samples may be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// A lost packet is a lost sample; a slow reader never slows the writer.
    BestEffort,
    /// Lost packets are resent; a write waits up to this long while the history is full.
    Reliable(Duration),
}

/// The samples of each instance kept for readers that are behind or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The newest `n`; older ones are dropped. `n` is at least 1.
    KeepLast(u32),
    /// All samples, up to the resource limits.
    KeepAll,
}

/// The samples that a late reader receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// No samples written before it joined.
    Volatile,
    /// The samples in the writer's history, as long as the writer lives.
    TransientLocal,
}

/// The way in which a writer asserts that it is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveliness {
    /// Its process does.
    Automatic(Duration),
    /// Any write by its participant does.
    ManualByParticipant(Duration),
    /// Its own writes do.
    ManualByTopic(Duration),
}

/// Whether each instance has one writer, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Samples of all writers reach the readers.
    Shared,
    /// Only samples of the strongest living writer of the instance do; the number is this writer's
    /// strength.
    Exclusive(i32),
}

/// The policies of an entity. A policy that is not set has the default of the DDS specification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Qos {
    pub(crate) reliability: Option<Reliability>,
    pub(crate) history: Option<History>,
    pub(crate) durability: Option<Durability>,
    pub(crate) durability_service: Option<(History, Limits)>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) liveliness: Option<Liveliness>,
    pub(crate) ownership: Option<Ownership>,
    pub(crate) partitions: Vec<String>,
    pub(crate) latency_budget: Option<Duration>,
    pub(crate) lifespan: Option<Duration>,
    pub(crate) batching: Option<bool>,
    pub(crate) autodispose: Option<bool>,
    pub(crate) limits: Option<Limits>,
    pub(crate) instances: Option<u32>,
    pub(crate) ignore_own: bool,
}

/// Resource limits; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limits {
    pub(crate) samples: Option<u32>,
    pub(crate) samples_per_instance: Option<u32>,
}

impl Qos {
    /// Returns reliable policies under which every sample is kept until all readers have it (at
    /// most 8,192 samples). A write waits up to one second at that limit.
    pub fn reliable() -> Self {
        Self::default()
            .reliability(Reliability::Reliable(Duration::from_secs(1)))
            .history(History::KeepAll)
            .resource_limits(Some(SAMPLES), None, None)
    }

    /// Returns best-effort policies under which the newest 1,024 samples of an instance, and 8,192
    /// in all, wait for the reader.
    pub fn best_effort() -> Self {
        Self::default()
            .reliability(Reliability::BestEffort)
            .history(History::KeepLast(1_024))
            .resource_limits(Some(SAMPLES), None, None)
    }

    /// Returns reliable policies under which late readers receive the last value of each instance.
    /// A reader that stops reading never blocks the writer: older values are dropped.
    pub fn last_value() -> Self {
        Self::default()
            .reliability(Reliability::Reliable(Duration::from_secs(1)))
            .history(History::KeepLast(1))
            .durability(Durability::TransientLocal)
    }

    /// Sets reliability.
    #[must_use]
    pub const fn reliability(mut self, reliability: Reliability) -> Self {
        self.reliability = Some(reliability);
        self
    }

    /// Sets history.
    #[must_use]
    pub const fn history(mut self, history: History) -> Self {
        self.history = Some(history);
        self
    }

    /// Sets durability. With [`Durability::TransientLocal`] late readers receive the history set
    /// here, too.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the history that late readers receive, if it is not the writer's own.
    #[must_use]
    pub fn durability_service(mut self, history: History, max_samples: Option<u32>) -> Self {
        let limits = Limits {
            samples: max_samples,
            ..Limits::default()
        };
        self.durability_service = Some((history, limits));
        self
    }

    /// Sets the longest time between two samples of an instance.
    #[must_use]
    pub const fn deadline(mut self, period: Duration) -> Self {
        self.deadline = Some(period);
        self
    }

    /// Sets liveliness and its lease.
    #[must_use]
    pub const fn liveliness(mut self, liveliness: Liveliness) -> Self {
        self.liveliness = Some(liveliness);
        self
    }

    /// Sets ownership and the strength of a writer.
    #[must_use]
    pub const fn ownership(mut self, ownership: Ownership) -> Self {
        self.ownership = Some(ownership);
        self
    }

    /// Adds a partition of the writer or reader; `*` and `?` are wildcards. The default one, of
    /// entities without a name, has the name "".
    #[must_use]
    pub fn partition(mut self, name: &str) -> Self {
        self.partitions.push(name.to_owned());
        self
    }

    /// Adds the partitions of another entity to those of these policies. None are the default one,
    /// which has to be named beside others.
    pub(crate) fn join(mut self, others: &[String]) -> Self {
        let default = || vec![String::new()];
        let names = &mut self.partitions;
        match (names.is_empty(), others.is_empty()) {
            (true, true) => return self,
            (true, false) => *names = default(),
            _ => {}
        }
        let others = if others.is_empty() {
            default()
        } else {
            others.to_vec()
        };
        for name in others {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        self
    }

    /// Sets the acceptable delay, a hint.
    #[must_use]
    pub const fn latency_budget(mut self, budget: Duration) -> Self {
        self.latency_budget = Some(budget);
        self
    }

    /// Drops samples older than this.
    #[must_use]
    pub const fn lifespan(mut self, age: Duration) -> Self {
        self.lifespan = Some(age);
        self
    }

    /// Packs several samples into a packet, for throughput at the cost of latency. A packet is sent
    /// by [`Writer::flush`](crate::Writer::flush) or when it is full.
    #[must_use]
    pub const fn batching(mut self, on: bool) -> Self {
        self.batching = Some(on);
        self
    }

    /// Sets whether a writer disposes of the instances that it unregisters, as it does when it is
    /// closed or its process is gone; `true` by the specification. With `false` a reader can tell
    /// an instance that has ended from one whose writers are gone.
    #[must_use]
    pub const fn autodispose(mut self, on: bool) -> Self {
        self.autodispose = Some(on);
        self
    }

    /// Limits samples and samples per instance, where `None` is unlimited, and
    /// [instances](Self::instances).
    #[must_use]
    pub const fn resource_limits(
        mut self,
        samples: Option<u32>,
        instances: Option<u32>,
        samples_per_instance: Option<u32>,
    ) -> Self {
        self.limits = Some(Limits {
            samples,
            samples_per_instance,
        });
        self.instances = instances;
        self
    }

    /// Sets the most instances of a reader, at least 1; [`INSTANCES`] by default. An instance
    /// exists from its first sample, or the notice of its end, until its writers have unregistered
    /// it or are gone and the reader has taken all of it; one that is only disposed of still
    /// counts. A reader that receives one more, or a key longer than [`LONGEST_KEY`], is closed:
    /// see [`Error::ReaderClosed`](crate::Error::ReaderClosed).
    #[must_use]
    pub const fn instances(mut self, most: u32) -> Self {
        self.instances = Some(most);
        self
    }

    #[cfg(feature = "cyclone")]
    pub(crate) const fn without_instances(mut self) -> Self {
        self.instances = None;
        self
    }

    /// Returns the limit of instances.
    pub fn most_instances(&self) -> u32 {
        self.instances
            .unwrap_or(INSTANCES)
            .clamp(1, i32::MAX as u32)
    }

    /// Makes a reader ignore samples of writers of its own domain object.
    #[must_use]
    pub const fn ignore_own(mut self) -> Self {
        self.ignore_own = true;
        self
    }
}
