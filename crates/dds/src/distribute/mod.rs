//! A feed distributed over DDS: topics made from templates, a publisher that converts and writes, a
//! subscriber that may echo, and the token that ends a feed.
//!
//! Each template has a topic of its name. A template that is split has one for each security
//! instead, `NAME_SECURITY`, or with keys a single one. Echoes return on topics with the suffix
//! `_echo`. The token is on the topic `DoneToken`. Templates of which two topics would have one
//! name are refused.
//!
//! The carrier is DDS, or for processes of one host [shared memory](crate::shm), where all topics
//! of a publisher are in one ring and all echoes of a subscriber in another.

mod echo;
mod over_dds;
mod over_shm;
mod publisher;
mod received;
mod subscriber;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub use echo::RoundTrips;
pub use publisher::Publisher;
pub use received::Received;
pub use subscriber::Subscriber;

use crate::fast::{Converted, Mapping, TemplateType};
use crate::{Domain, Durability, Error, Liveliness, Policy, Qos, Status, cdr_struct, shm};

/// The carrier of a feed.
#[derive(Debug, Clone)]
pub enum Carrier {
    /// A domain of DDS.
    Dds(Domain),
    /// Shared memory of this host.
    Shm(shm::Config),
}

impl Carrier {
    /// Sets the time after which a publisher whose policies make it wait cuts off a subscriber that
    /// does not read: in shared memory, by default the longest wait of one write. Over DDS it has
    /// no effect.
    #[must_use]
    pub fn patience(self, time: Duration) -> Self {
        match self {
            Self::Dds(_) => self,
            Self::Shm(config) => Self::Shm(config.patience(time)),
        }
    }
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

/// The options on which publisher and subscriber must agree.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// Whether a split template has one topic, keyed, instead of one for each security.
    pub keyed: bool,
    /// The highest number of a security with a topic, where each has its own; they start at 0.
    pub securities: u32,
    /// Whether the subscriber sends each sample back.
    pub echo: bool,
    /// The name of the template whose message ends a feed: it has no topic, the token replaces it.
    pub end: String,
    /// The policies of topics, writers and readers. With keys, [`Qos::instances`] is the limit for
    /// each topic: a publisher leaves out samples of further keys, a subscriber closes the topic.
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
    /// Returns the names of the topics of a template, with the security where each has its own.
    pub fn topics(&self, template: &TemplateType) -> Vec<String> {
        let name = template.type_name().to_owned();
        if !self.divides(template) {
            return vec![name];
        }
        let one = |security| format!("{name}_{security}");
        (0..self.securities).map(one).collect()
    }

    /// Returns the index of a sample's topic among those of its template, which has fewer if the
    /// security has no topic.
    #[inline]
    pub fn place(&self, sample: &Converted<'_>) -> Option<usize> {
        match self.divides(sample.template) {
            true => usize::try_from(sample.key?).ok(),
            false => Some(0),
        }
    }

    /// Returns whether each security has a topic of the template of its own.
    #[inline]
    const fn divides(&self, template: &TemplateType) -> bool {
        template.is_split && !self.keyed
    }

    /// Returns whether the template has a topic.
    pub fn carries(&self, template: &TemplateType) -> bool {
        template.name != self.end
    }

    /// Checks that all topics of a feed have different names, with those of echoes and of the
    /// token.
    ///
    /// # Errors
    /// [`Error::SameTopic`].
    pub fn check(&self, mapping: &Mapping) -> Result<(), Error> {
        let mut uses = HashMap::from([(DONE.to_owned(), Use::Token)]);
        for template in mapping.types().filter(|t| self.carries(t)) {
            let name = template.name.as_str();
            for topic in self.topics(template) {
                let echo = self.echo.then(|| (echo_name(&topic), Use::Echoes(name)));
                let both = [(topic, Use::Samples(name))].into_iter().chain(echo);
                for (topic, second) in both {
                    if let Some(first) = uses.get(&topic) {
                        return Err(Error::SameTopic {
                            first: first.to_string(),
                            second: second.to_string(),
                            topic,
                        });
                    }
                    uses.insert(topic, second);
                }
            }
        }
        Ok(())
    }

    /// Returns the policies of echoes: those of the samples, but a writer never waits. Echoes are
    /// written in the thread that also receives the acknowledgements that a waiting writer would
    /// wait for.
    fn echo_qos(&self) -> Qos {
        let mut qos = self.qos.clone();
        if matches!(qos.reliability, Some(crate::Reliability::Reliable(_))) {
            qos = qos.reliability(crate::Reliability::Reliable(Duration::ZERO));
        }
        // An echo's writer writes only when a sample arrives, so only its process can assert its
        // liveliness.
        if let Some(Liveliness::ManualByParticipant(t) | Liveliness::ManualByTopic(t)) =
            qos.liveliness
        {
            qos = qos.liveliness(Liveliness::Automatic(t));
        }
        // The data under way is bounded in bytes; a depth would cost each key as many pointers.
        qos.history(crate::History::KeepAll)
            .durability(Durability::Volatile)
    }
}

/// The use of a topic, with the name of its template.
#[derive(Debug)]
enum Use<'a> {
    Samples(&'a str),
    Echoes(&'a str),
    Token,
}

impl fmt::Display for Use<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples(template) => write!(f, "samples of template {template:?}"),
            Self::Echoes(template) => write!(f, "echoes of template {template:?}"),
            Self::Token => f.write_str("the token that ends a feed"),
        }
    }
}

fn echo_name(topic: &str) -> String {
    format!("{topic}_echo")
}

cdr_struct! {
    /// The token by which a publisher announces that it has written everything.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct DoneToken: "Fanfare::DoneToken" {
        samples: u64,
    }
}

const DONE: &str = "DoneToken";

/// Returns the policies of the token, which is kept for late subscribers.
fn done_qos() -> Qos {
    Qos::last_value().autodispose(false)
}

/// Readers and writers of peers that have departed, over DDS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Departures {
    /// The number of subscribers' readers, or publishers' writers, that are gone, including those
    /// of tokens and without those of echoes: closed by their program, or stopped, killed or cut
    /// off for longer than their lease. Cyclone DDS does not report which.
    pub gone: u32,
    /// The number of writers, including those of echoes, that were no longer alive: silent for
    /// longer than their lease, or about to be gone, as Cyclone DDS first reports a writer that
    /// leaves as silent. Some may have come back.
    pub silent: u32,
    /// The number of those that are silent now.
    pub silent_now: u32,
}

/// The number of several entities that have a match, and of their matches that are gone.
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
    /// Returns a listener for one more entity of samples or tokens.
    fn listener(self: &Arc<Self>) -> impl FnMut(Status) + Send + 'static + use<> {
        self.listens(true)
    }

    /// Returns a listener for one more entity of echoes. Departures are counted by the samples'
    /// entities.
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

    /// Returns whether an entity has had several matches at a time.
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

/// Opens an entity for each topic of each template.
fn for_each_topic<T>(
    distribution: &Distribution,
    template: &TemplateType,
    mut open: impl FnMut(&str) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let names = distribution.topics(template);
    names.iter().map(|name| open(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::TypeOptions;
    use fanfare_fast::Program;

    /// Returns why a feed of these two templates is refused, if it is.
    fn refusal(templates: &str, distribution: &Distribution) -> Option<String> {
        let xml = format!("<templates>{templates}</templates>");
        let options = TypeOptions {
            keyed: distribution.keyed,
            ..TypeOptions::default()
        };
        let mapping = Mapping::new(Arc::new(Program::parse(&xml).unwrap()), &options).unwrap();
        distribution.check(&mapping).err().map(|e| e.to_string())
    }

    fn template(name: &str, id: u32) -> String {
        format!("<template name=\"{name}\" id=\"{id}\"><uInt64 name=\"samples\"/></template>")
    }

    #[test]
    fn two_topics_of_one_name_are_refused() {
        let echoing = Distribution::default();
        let silent = Distribution {
            echo: false,
            ..Distribution::default()
        };
        let token = template("Quote", 1) + &template("DoneToken", 2);
        let why = "topic \"DoneToken\" would have two uses: the token that ends a feed, and \
                   samples of template \"DoneToken\"";
        for distribution in [&echoing, &silent] {
            assert_eq!(refusal(&token, distribution).as_deref(), Some(why));
        }
        let echo = template("Quote", 1) + &template("Quote_echo", 2);
        let why = "topic \"Quote_echo\" would have two uses: echoes of template \"Quote\", and \
                   samples of template \"Quote_echo\"";
        assert_eq!(refusal(&echo, &echoing).as_deref(), Some(why));
        assert_eq!(refusal(&echo, &silent), None);
    }

    #[test]
    fn a_template_may_not_have_the_topic_of_a_security() {
        let split = "<template name=\"MD\" id=\"1\"><sequence name=\"E\">\
                     <uInt32 name=\"SecurityID\"/><uInt32 name=\"Px\"/></sequence></template>";
        let templates = split.to_owned() + &template("MD_5", 2);
        let of = |securities, keyed| Distribution {
            keyed,
            securities,
            ..Distribution::default()
        };
        let why = "topic \"MD_5\" would have two uses: samples of template \"MD\", and samples of \
                   template \"MD_5\"";
        assert_eq!(refusal(&templates, &of(6, false)).as_deref(), Some(why));
        assert_eq!(refusal(&templates, &of(5, false)), None);
        assert_eq!(refusal(&templates, &of(6, true)), None, "one topic of all");
    }
}
