//! Who is in a domain: participants, their writers and readers, and the types of their topics.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::sys::{self, Announced, Entity, RawDiscovery, TypeInfo};
use crate::types::StructType;
use crate::{Durability, Error, History, Ownership, Qos, Reliability};

/// Participants and endpoints kept; announcements beyond are counted.
const MOST: usize = 65_536;

/// The name of a participant or an endpoint, unique in its domain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub [u8; 16]);

/// A participant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    /// Its name in the domain.
    pub guid: Guid,
    /// The name it was given by its program.
    pub name: Option<String>,
    /// Its program, where it says so (Cyclone DDS does).
    pub process: Option<String>,
    /// The number of its process.
    pub pid: Option<String>,
    /// Its host.
    pub host: Option<String>,
}

/// What an endpoint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the names say it
pub enum EndpointKind {
    Writer,
    Reader,
}

/// A writer or a reader.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Which of the two.
    pub kind: EndpointKind,
    /// Its name in the domain.
    pub guid: Guid,
    /// Its participant.
    pub participant: Guid,
    /// Its topic.
    pub topic: String,
    /// The name of the topic's type.
    pub type_name: String,
    /// Offers or asks for reliable delivery.
    pub reliable: bool,
    /// Offers or asks for samples from before a reader came; persistent kinds count as that.
    pub durability: Durability,
    /// One writer for each instance or all of them.
    pub ownership: Ownership,
    /// Partitions, as it named them; may hold `*` and `?`.
    pub partitions: Vec<String>,
    pub(crate) info: Option<Arc<TypeInfo>>,
}

/// What is known of a domain's other participants. It grows as they answer: a second is enough on
/// one host.
#[derive(Debug)]
pub struct Discovery {
    raw: RawDiscovery,
    participants: BTreeMap<Guid, Participant>,
    endpoints: BTreeMap<Guid, Endpoint>,
    ignored: u64,
}

impl Discovery {
    pub(crate) fn new(participant: &Arc<Entity>) -> Result<Self, Error> {
        Ok(Self {
            raw: RawDiscovery::new(participant)?,
            participants: BTreeMap::new(),
            endpoints: BTreeMap::new(),
            ignored: 0,
        })
    }

    /// Takes in what was announced since the last call; whether anything was. The own participant
    /// is left out. Does not wait.
    ///
    /// # Errors
    /// [`Error::Dds`].
    pub fn update(&mut self) -> Result<bool, Error> {
        let Self {
            raw,
            participants,
            endpoints,
            ignored,
        } = self;
        let own = raw.own();
        let mut changed = false;
        raw.take(|announced| {
            changed = true;
            let full = participants.len() + endpoints.len() >= MOST;
            match announced {
                Announced::Gone(guid) => {
                    participants.remove(&guid);
                    endpoints.remove(&guid);
                }
                Announced::Participant(p) if p.guid == own => {}
                Announced::Endpoint(e) if e.participant == own => {}
                _ if full => *ignored += 1,
                Announced::Participant(p) => _ = participants.insert(p.guid, p),
                Announced::Endpoint(e) => _ = endpoints.insert(e.guid, e),
            }
        })?;
        Ok(changed)
    }

    /// Participants, by name.
    pub fn participants(&self) -> impl Iterator<Item = &Participant> {
        self.participants.values()
    }

    /// Writers and readers, by name: those of one participant stand together.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.values()
    }

    /// Announcements beyond the 65,536 that are kept.
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }
}

impl Endpoint {
    /// Whether it announced its type in the way of XTypes, so that others can read its samples.
    pub const fn has_type(&self) -> bool {
        self.info.is_some()
    }

    /// Policies of a reader that matches this writer and gets all it can give: its reliability, its
    /// durability and its ownership, and the newest `depth` samples of each instance.
    pub fn reader_qos(&self, depth: u32) -> Qos {
        let qos = Qos::default()
            .reliability(if self.reliable {
                Reliability::Reliable(Duration::ZERO)
            } else {
                Reliability::BestEffort
            })
            .durability(self.durability)
            .ownership(self.ownership)
            .history(History::KeepLast(depth));
        self.partitions.iter().fold(qos, |q, p| q.partition(p))
    }

    pub(crate) fn type_info(&self) -> Result<&TypeInfo, Error> {
        self.info.as_deref().ok_or_else(|| Error::NoType {
            topic: self.topic.clone(),
            type_name: self.type_name.clone(),
        })
    }
}

/// Asks for the type of an endpoint, by the exchange of type objects, for at most `timeout`.
pub(crate) fn type_of(
    participant: &Arc<Entity>,
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<StructType, Error> {
    sys::found_type(participant, &endpoint.topic, endpoint.type_info()?, timeout)
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.chunks(4).enumerate() {
            if i > 0 {
                f.write_str(":")?;
            }
            for byte in word {
                write!(f, "{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
