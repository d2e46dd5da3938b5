//! Discovery of a domain: participants, their writers and readers, and the types of their topics.

mod announced;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

pub use announced::{Endpoint, EndpointKind, Participant};

use crate::Error;
use crate::sys::{self, Announced, Entity, RawDiscovery};
use crate::types::StructType;

pub use crate::guid::Guid;

/// Most participants and endpoints kept; announcements beyond are counted.
const MOST: usize = 65_536;

/// The known other participants of a domain. Their number grows as they respond: a second is enough
/// on one host.
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

    /// Takes in the announcements since the last call and returns whether there were any. Its own
    /// participant is left out. Does not wait.
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

    /// Returns the participants, by GUID.
    pub fn participants(&self) -> impl Iterator<Item = &Participant> {
        self.participants.values()
    }

    /// Returns the writers and readers by GUID, so that those of one participant are adjacent.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.endpoints.values()
    }

    /// Returns the number of announcements beyond the 65,536 that are kept.
    pub const fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// Requests the type of an endpoint, by the exchange of type objects, for at most `timeout`.
pub(crate) fn type_of(
    participant: &Arc<Entity>,
    endpoint: &Endpoint,
    timeout: Duration,
) -> Result<StructType, Error> {
    sys::found_type(participant, &endpoint.topic, endpoint.type_info()?, timeout)
}
