//! A feed distributed over DDS: topics made from templates, a publisher that converts and
//! writes, a subscriber that may echo, and the token that says that all is said.
//!
//! Topics: one for each template, of its name; a template that is split has one for each
//! security instead, `NAME_SECURITY`, or with keys a single one. Echoes come back on topics
//! with `_echo` behind the name. The token is on the topic `DoneToken`.
//!
//! What carries them is DDS, or for processes of one host [shared memory](crate::shm), where all
//! topics of a publisher are in one ring and all echoes of a subscriber in another.

mod echo;
mod over_dds;
mod over_shm;
mod publisher;
mod received;
mod subscriber;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

pub use echo::RoundTrips;
pub use publisher::Publisher;
pub use received::Received;
pub use subscriber::Subscriber;

use crate::fast::TemplateType;
use crate::{Domain, Durability, Error, Liveliness, Policy, Qos, Status, cdr_struct, shm};

/// What carries a feed.
#[derive(Debug, Clone)]
pub enum Carrier {
    /// A domain of DDS.
    Dds(Domain),
    /// Shared memory of this host.
    Shm(shm::Config),
}

impl From<&Domain> for Carrier {
    fn from(domain: &Domain) -> Self {
        Self::Dds(domain.clone())
    }
}

impl From<&shm::Config> for Carrier {
    fn from(config: &shm::Config) -> Self {
        Self::Shm(config.clone())
    }
}

impl From<&Self> for Carrier {
    fn from(carrier: &Self) -> Self {
        carrier.clone()
    }
}

/// What publisher and subscriber must agree on.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// One topic for a split template, keyed; otherwise one for each security.
    pub keyed: bool,
    /// Securities 0 up to this number have topics, where there is one for each.
    pub securities: u32,
    /// Whether the subscriber sends each sample back.
    pub echo: bool,
    /// Name of the template whose message ends a feed: it has no topic, the token stands for it.
    pub end: String,
    /// Policies of topics, writers and readers. With keys, [`Qos::instances`] is how many a topic
    /// may have: a publisher leaves out samples of more, a subscriber closes the topic.
    pub qos: Qos,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            keyed: false,
            securities: 100,
            echo: true,
            end: "Done".to_owned(),
            qos: Qos::reliable(),
        }
    }
}

impl Distribution {
    /// Names of the topics of a template, with the security where each has its own.
    pub fn topics(&self, template: &TemplateType) -> Vec<String> {
        let name = template.type_name().to_owned();
        if !template.is_split || self.keyed {
            return vec![name];
        }
        let one = |security| format!("{name}_{security}");
        (0..self.securities).map(one).collect()
    }

    /// Whether the template has a topic.
    pub fn carries(&self, template: &TemplateType) -> bool {
        template.name != self.end
    }

    /// The policies of echoes: like the samples', but a writer never waits. Echoes are written in
    /// the thread that also receives the acknowledgements that a waiting writer would wait for.
    fn echo_qos(&self) -> Qos {
        let mut qos = self.qos.clone();
        if matches!(qos.reliability, Some(crate::Reliability::Reliable(_))) {
            qos = qos.reliability(crate::Reliability::Reliable(std::time::Duration::ZERO));
        }
        // An echo's writer writes when a sample comes: only its process can say that it lives.
        if let Some(Liveliness::ManualByParticipant(t) | Liveliness::ManualByTopic(t)) =
            qos.liveliness
        {
            qos = qos.liveliness(Liveliness::Automatic(t));
        }
        // What is under way is bounded in bytes; a depth would cost each key so many pointers.
        qos.history(crate::History::KeepAll)
            .durability(Durability::Volatile)
    }
}

fn echo_name(topic: &str) -> String {
    format!("{topic}_echo")
}

cdr_struct! {
    /// Says that a publisher has written all it had.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DoneToken: "Fanfare::DoneToken" {
        samples: u64,
    }
}

const DONE: &str = "DoneToken";

/// The token waits for subscribers that are late.
fn done_qos() -> Qos {
    Qos::last_value()
}

/// Readers and writers of the other side that are no longer there, over DDS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    /// The subscribers' readers, or the publishers' writers, that are gone, those of tokens
    /// included and those of echoes not: closed by their program, or stopped, killed or cut off
    /// for longer than their lease. Cyclone DDS does not say which.
    pub gone: u32,
    /// Writers, those of echoes included, that were no longer alive: silent for longer than their
    /// lease, or about to be gone, as Cyclone DDS takes a writer that goes for silent first. Some
    /// may have come back.
    pub silent: u32,
    /// Those of them that are silent now.
    pub silent_now: u32,
}

/// How many of several entities have a match, and how many of their matches are gone.
#[derive(Debug, Default)]
struct Matches {
    matched: AtomicU32,
    incompatible: AtomicU32,
    policy: Mutex<Option<Policy>>,
    gone: AtomicU32,
    silent: AtomicU32,
    silent_now: AtomicU32,
    several: AtomicBool,
}

impl Matches {
    /// A listener for one more entity of samples or tokens.
    fn listener(self: &Arc<Self>) -> impl FnMut(Status) + Send + 'static + use<> {
        self.listens(true)
    }

    /// A listener for one more entity of echoes. Departures are counted by the samples' entities.
    fn echo_listener(self: &Arc<Self>) -> impl FnMut(Status) + Send + 'static + use<> {
        self.listens(false)
    }

    fn listens(self: &Arc<Self>, counts_gone: bool) -> impl FnMut(Status) + Send + 'static + use<> {
        let all = Arc::clone(self);
        let mut silent = 0;
        move |status| match status {
            Status::Matched {
                current, change, ..
            } => {
                all.matched(current, change);
                if counts_gone && change < 0 {
                    let gone = change.unsigned_abs();
                    all.gone.fetch_add(gone, Ordering::Release);
                }
            }
            Status::IncompatibleQos { policy, .. } => {
                if let Ok(mut last) = all.policy.lock() {
                    *last = Some(policy);
                }
                all.incompatible.fetch_add(1, Ordering::Release);
            }
            Status::LivelinessChanged { not_alive, .. } => {
                let before = std::mem::replace(&mut silent, not_alive);
                all.silent
                    .fetch_add(not_alive.saturating_sub(before), Ordering::Release);
                all.silent_now
                    .fetch_add(not_alive.wrapping_sub(before), Ordering::Release);
            }
            _ => {}
        }
    }

    fn matched(&self, current: u32, change: i32) {
        match (current, change) {
            (1, 1) => _ = self.matched.fetch_add(1, Ordering::Release),
            (0, -1) => _ = self.matched.fetch_sub(1, Ordering::Release),
            _ => {}
        }
        if current > 1 {
            self.several.store(true, Ordering::Release);
        }
    }

    /// Whether an entity has had several matches at a time.
    fn several(&self) -> bool {
        self.several.load(Ordering::Acquire)
    }

    fn count(&self) -> u32 {
        self.matched.load(Ordering::Acquire)
    }

    fn incompatible(&self) -> u32 {
        self.incompatible.load(Ordering::Acquire)
    }

    fn policy(&self) -> Option<Policy> {
        self.policy.lock().ok().and_then(|policy| *policy)
    }

    fn departures(&self) -> Departures {
        Departures {
            gone: self.gone.load(Ordering::Acquire),
            silent: self.silent.load(Ordering::Acquire),
            silent_now: self.silent_now.load(Ordering::Acquire),
        }
    }
}

/// Opens something for each topic of each template.
fn for_each_topic<T>(
    distribution: &Distribution,
    template: &TemplateType,
    mut open: impl FnMut(&str) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let names = distribution.topics(template);
    names.iter().map(|name| open(name)).collect()
}
