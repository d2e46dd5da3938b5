//! Which sessions are live, and which numbers a session left off with. Looked at when a session
//! logs on or ends, never per message.

use fanfare_fix::session::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that are not live but whose numbers are remembered; the side forgets the oldest.
const REMEMBERED: usize = 16_384;

/// The sessions of one side, shared by its agents.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Mutex<Sessions>>);

#[derive(Default)]
struct Sessions {
    known: HashMap<SessionId, Known>,
    /// Counts the releases, to find the one that is longest ago.
    releases: u64,
}

struct Known {
    live: bool,
    released: u64,
    numbers: Numbers,
}

/// The next MsgSeqNum(34) of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) sender: u64,
    pub(crate) target: u64,
}

/// The right to run a session; dropped, the session is no longer live and its numbers stand as
/// last kept.
pub(crate) struct Claim {
    registry: Registry,
    id: SessionId,
    /// Where the session goes on.
    pub(crate) numbers: Numbers,
}

impl Registry {
    /// Claims a session; `None` if it is live.
    pub(crate) fn claim(&self, id: SessionId) -> Option<Claim> {
        let mut sessions = self.lock();
        if sessions.known.len() >= REMEMBERED && !sessions.known.contains_key(&id) {
            sessions.forget_oldest();
        }
        let fresh = Known {
            live: false,
            released: 0,
            numbers: Numbers {
                sender: 1,
                target: 1,
            },
        };
        let known = sessions.known.entry(id.clone()).or_insert(fresh);
        if known.live {
            return None;
        }
        known.live = true;
        let numbers = known.numbers;
        Some(Claim {
            registry: self.clone(),
            id,
            numbers,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn forget_oldest(&mut self) {
        let idle = self.known.iter().filter(|(_, known)| !known.live);
        let oldest = idle
            .min_by_key(|(_, known)| known.released)
            .map(|(id, _)| id.clone());
        if let Some(id) = oldest {
            self.known.remove(&id);
        }
    }
}

impl Claim {
    /// The session claimed.
    pub(crate) fn id(&self) -> &SessionId {
        &self.id
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut sessions = self.registry.lock();
        sessions.releases += 1;
        let released = sessions.releases;
        if let Some(known) = sessions.known.get_mut(&self.id) {
            *known = Known {
                live: false,
                released,
                numbers: self.numbers,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::Version;

    fn id(target: &str) -> SessionId {
        SessionId::new(Version::Fix44, "PLANT", target)
    }

    #[test]
    fn a_live_session_cannot_be_claimed_twice_and_goes_on_with_its_numbers() {
        let registry = Registry::default();
        let mut first = registry.claim(id("A")).unwrap();
        assert!(registry.claim(id("A")).is_none());
        assert!(registry.claim(id("B")).is_some());
        first.numbers = Numbers {
            sender: 7,
            target: 3,
        };
        drop(first);
        assert_eq!(
            registry.claim(id("A")).unwrap().numbers,
            Numbers {
                sender: 7,
                target: 3
            }
        );
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes() {
        let registry = Registry::default();
        for i in 0..REMEMBERED {
            registry.claim(id(&i.to_string())).unwrap().numbers.sender = 9;
        }
        drop(registry.claim(id("one more")));
        assert_eq!(registry.lock().known.len(), REMEMBERED);
        assert_eq!(
            registry.claim(id("0")).unwrap().numbers.sender,
            1,
            "forgotten"
        );
        assert_eq!(
            registry.claim(id("500")).unwrap().numbers.sender,
            9,
            "remembered"
        );
    }
}
