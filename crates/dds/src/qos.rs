//! Quality of service: the policies of a topic, a writer or a reader, as plain data.

use std::time::Duration;

/// Instances that a reader keeps, and a publisher writes, unless told otherwise: enough for the
/// options of a large market, and 0.8 GB of a reader.
pub const INSTANCES: u32 = 1_000_000;

/// The longest key of an instance, in bytes of CDR.
pub const LONGEST_KEY: u32 = 1_024;

/// Samples that wait for a reader, unless told otherwise.
const SAMPLES: u32 = 8_192;

/// May samples be lost?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reliability {
    /// A lost packet is a lost sample; a slow reader never slows the writer.
    BestEffort,
    /// Lost packets are sent again; a write waits up to this long for room in a full history.
    Reliable(Duration),
}

/// How many samples per instance are kept for readers that are behind or come late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The newest `n`; older ones are dropped. `n` is at least 1.
    KeepLast(u32),
    /// All of them, up to the resource limits.
    KeepAll,
}

/// What a reader that comes late still gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing that was written before it came.
    Volatile,
    /// What the writer's history still holds, as long as the writer lives.
    TransientLocal,
}

/// Who says that a writer is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveliness {
    /// Its process.
    Automatic(Duration),
    /// Any writer of its participant that writes.
    ManualByParticipant(Duration),
    /// The writer itself, by writing.
    ManualByTopic(Duration),
}

/// One writer per instance, or all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Samples of all writers reach the readers.
    Shared,
    /// Only those of the strongest living writer of the instance do; the number is this writer's
    /// strength.
    Exclusive(i32),
}

/// The policies of an entity. What is not set keeps the default of the DDS specification.
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
    /// Reliable, every sample kept until all readers have it (bounded: 8,192 samples); a write
    /// waits up to one second when they do not.
    pub fn reliable() -> Self {
        Self::default()
            .reliability(Reliability::Reliable(Duration::from_secs(1)))
            .history(History::KeepAll)
            .resource_limits(Some(SAMPLES), None, None)
    }

    /// Best effort, the newest 1,024 samples of an instance wait for the reader, 8,192 in all.
    pub fn best_effort() -> Self {
        Self::default()
            .reliability(Reliability::BestEffort)
            .history(History::KeepLast(1_024))
            .resource_limits(Some(SAMPLES), None, None)
    }

    /// Reliable, and the last value of each instance goes to readers that come late. A reader
    /// that stops reading never stops the writer: older values make way.
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

    /// Sets durability. With [`Durability::TransientLocal`] the history set here is also what
    /// late readers are served from.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// What late readers are served, when it is not the writer's own history.
    #[must_use]
    pub fn durability_service(mut self, history: History, max_samples: Option<u32>) -> Self {
        let limits = Limits {
            samples: max_samples,
            ..Limits::default()
        };
        self.durability_service = Some((history, limits));
        self
    }

    /// The longest time between two samples of an instance.
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

    /// Puts the writer or reader into one more partition; `*` and `?` match.
    #[must_use]
    pub fn partition(mut self, name: &str) -> Self {
        self.partitions.push(name.to_owned());
        self
    }

    /// The delay that is acceptable: a hint.
    #[must_use]
    pub const fn latency_budget(mut self, budget: Duration) -> Self {
        self.latency_budget = Some(budget);
        self
    }

    /// A sample older than this is dropped.
    #[must_use]
    pub const fn lifespan(mut self, age: Duration) -> Self {
        self.lifespan = Some(age);
        self
    }

    /// Packs several samples into a packet: throughput against latency. What waits is sent by
    /// [`Writer::flush`](crate::Writer::flush) or when a packet is full.
    #[must_use]
    pub const fn batching(mut self, on: bool) -> Self {
        self.batching = Some(on);
        self
    }

    /// Limits on samples and samples per instance, `None` is unlimited, and on
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

    /// The most instances of a reader, at least 1; [`INSTANCES`] unless set. An instance is there
    /// from its first sample, or the news of its end, until its writers have unregistered it or are
    /// gone and the reader has taken all of it: one that is only disposed of takes its room still.
    /// A reader that gets one more is closed, as is one that gets a key longer than
    /// [`LONGEST_KEY`]: see [`Error::ReaderClosed`](crate::Error::ReaderClosed).
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

    /// The limit on instances.
    pub fn most_instances(&self) -> u32 {
        self.instances
            .unwrap_or(INSTANCES)
            .clamp(1, i32::MAX as u32)
    }

    /// A reader does not get what writers of its own domain object wrote.
    #[must_use]
    pub const fn ignore_own(mut self) -> Self {
        self.ignore_own = true;
        self
    }
}
