//! The sessions that are live, and the sequence numbers of those that ended. Consulted when a
//! session logs on or ends, never per message.

use fanfare_fix::session::{SessionId, SubIds};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The approximate size of a session besides its CompIDs, in bytes.
const OVERHEAD: usize = 256;
/// The approximate size of its SubIDs and LocationIDs besides their texts, if it has any.
const SUB_OVERHEAD: usize = 160;

/// The sessions of one port, shared by its agents.
#[derive(Clone)]
pub(crate) struct Registry(Arc<Mutex<Sessions>>);

struct Sessions {
    known: HashMap<Arc<SessionId>, Known>,
    /// The sessions that are not live, in the order in which they ended.
    idle: BTreeMap<u64, Arc<SessionId>>,
    /// The number of releases so far.
    releases: u64,
    /// The most sessions that are remembered once they are not live, and their most bytes. At
    /// either limit, the session that ended first is forgotten.
    most: usize,
    most_bytes: usize,
    idle_bytes: usize,
}

struct Known {
    /// The release at which it ended, or `None` while it is live.
    released: Option<u64>,
    numbers: Numbers,
}

/// The next MsgSeqNum(34) in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) sender: u64,
    pub(crate) target: u64,
    /// Whether a reset of both was not answered: the next Logon is answered by one.
    pub(crate) reset: bool,
}

impl Numbers {
    pub(crate) const fn new(sender: u64, target: u64) -> Self {
        Self {
            sender,
            target,
            reset: false,
        }
    }
}

/// The right to run a session. Once it is dropped, the session is no longer live, and its numbers
/// are those last [kept](Registry::keep).
pub(crate) struct Claim {
    registry: Registry,
    id: Arc<SessionId>,
}

impl Registry {
    /// Creates a registry that remembers the numbers of up to `most` sessions that are not live, in
    /// up to `most_bytes`.
    pub(crate) fn new(most: usize, most_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Sessions {
            known: HashMap::new(),
            idle: BTreeMap::new(),
            releases: 0,
            most,
            most_bytes,
            idle_bytes: 0,
        })))
    }

    /// Claims a session. Returns the numbers at which it continues, or `None` if it is live.
    pub(crate) fn claim(&self, id: SessionId) -> Option<(Claim, Numbers)> {
        let mut sessions = self.lock();
        let sessions = &mut *sessions;
        let (id, numbers) = match sessions.known.get_key_value(&id) {
            Some((id, known)) => {
                let released = known.released?;
                sessions.idle.remove(&released);
                sessions.idle_bytes -= size(id);
                (Arc::clone(id), known.numbers)
            }
            None => (Arc::new(id), FRESH),
        };
        let live = Known {
            released: None,
            numbers,
        };
        sessions.known.insert(Arc::clone(&id), live);
        let registry = self.clone();
        Some((Claim { registry, id }, numbers))
    }

    /// Stores the numbers of a live session for its next Logon.
    pub(crate) fn keep(&self, id: &SessionId, numbers: Numbers) {
        if let Some(known) = self.lock().known.get_mut(id) {
            known.numbers = numbers;
        }
    }

    /// Returns the sessions that are not live and that `wanted` accepts, with their numbers.
    pub(crate) fn idle(
        &self,
        wanted: impl Fn(&SessionId) -> bool,
    ) -> Vec<(Arc<SessionId>, Numbers)> {
        let sessions = self.lock();
        let idle = sessions.idle.values().filter(|id| wanted(id));
        idle.filter_map(|id| Some((Arc::clone(id), sessions.known.get(id)?.numbers)))
            .collect()
    }

    /// Sets the numbers of a session that is not live. Returns whether it exists.
    pub(crate) fn set(&self, id: &SessionId, numbers: Numbers) -> bool {
        let mut sessions = self.lock();
        let known = sessions.known.get_mut(id);
        let Some(known) = known.filter(|known| known.released.is_some()) else {
            return false;
        };
        known.numbers = numbers;
        true
    }

    /// Returns the live sessions of a counterparty with these CompIDs.
    pub(crate) fn live(&self, sender: &str, target: &str) -> Vec<SessionId> {
        let sessions = self.lock();
        let live = sessions.known.iter().filter(|(id, known)| {
            known.released.is_none() && *id.target == *sender && *id.sender == *target
        });
        live.map(|(id, _)| SessionId::clone(id)).collect()
    }

    /// Sets the limits, which apply from the next session that ends.
    pub(crate) fn set_most(&self, most: usize, most_bytes: usize) {
        let mut sessions = self.lock();
        (sessions.most, sessions.most_bytes) = (most, most_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    fn release(&mut self, id: &Arc<SessionId>) {
        let Some(known) = self.known.get_mut(id) else {
            return;
        };
        if known.numbers == FRESH {
            // Fresh numbers need not be remembered.
            self.known.remove(id);
            return;
        }
        self.releases += 1;
        known.released = Some(self.releases);
        self.idle.insert(self.releases, Arc::clone(id));
        self.idle_bytes += size(id);
        while self.idle.len() > self.most || self.idle_bytes > self.most_bytes {
            let Some((_, oldest)) = self.idle.pop_first() else {
                return;
            };
            self.idle_bytes -= size(&oldest);
            self.known.remove(&oldest);
        }
    }
}

/// The numbers of a new session.
const FRESH: Numbers = Numbers::new(1, 1);

fn size(id: &SessionId) -> usize {
    let sub = id.sub.as_deref().map_or(0, sub_size);
    id.sender.len() + id.target.len() + sub + OVERHEAD
}

fn sub_size(sub: &SubIds) -> usize {
    let texts = [
        &sub.sender,
        &sub.sender_location,
        &sub.target,
        &sub.target_location,
        &sub.qualifier,
    ];
    texts.map(|text| text.len()).iter().sum::<usize>() + SUB_OVERHEAD
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.registry.lock().release(&self.id);
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
        let registry = Registry::new(10, 10_000);
        let (first, numbers) = registry.claim(id("A")).unwrap();
        assert_eq!(numbers, FRESH);
        assert!(registry.claim(id("A")).is_none());
        assert!(registry.claim(id("B")).is_some());
        let numbers = Numbers::new(7, 3);
        registry.keep(&id("A"), numbers);
        drop(first);
        assert_eq!(registry.claim(id("A")).unwrap().1, numbers);
        let (again, _) = registry.claim(id("A")).unwrap();
        let numbers = Numbers {
            reset: true,
            ..FRESH
        };
        registry.keep(&id("A"), numbers);
        drop(again);
        assert_eq!(registry.claim(id("A")).unwrap().1, numbers);
    }

    #[test]
    fn numbers_of_a_session_that_is_not_live_are_changed() {
        let registry = Registry::new(10, 10_000);
        end_with(&registry, "A", 9);
        let _live = registry.claim(id("B")).unwrap();
        let numbers = Numbers::new(100, 7);
        assert!(registry.set(&id("A"), numbers));
        assert!(!registry.set(&id("B"), numbers) && !registry.set(&id("C"), numbers));
        let idle = registry.idle(|_| true);
        assert_eq!(idle, [(Arc::new(id("A")), numbers)]);
        assert!(registry.idle(|id| &*id.target == "B").is_empty());
        assert_eq!(registry.claim(id("A")).unwrap().1, numbers);
    }

    fn end_with(registry: &Registry, target: &str, sender: u64) {
        end(registry, &id(target), sender);
    }

    fn end(registry: &Registry, id: &SessionId, sender: u64) {
        let _claim = registry.claim(id.clone()).unwrap();
        registry.keep(id, Numbers::new(sender, 1));
    }

    fn known(registry: &Registry, target: &str) -> bool {
        registry.claim(id(target)).unwrap().1 != FRESH
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes() {
        let registry = Registry::new(100, usize::MAX);
        let _live = registry.claim(id("live")).unwrap();
        for i in 0..101 {
            end_with(&registry, &i.to_string(), 9);
        }
        assert_eq!(registry.lock().known.len(), 101);
        assert!(!known(&registry, "0") && known(&registry, "1"));
        assert!(registry.claim(id("live")).is_none());
    }

    #[test]
    fn bytes_are_bounded_too() {
        let long = |i: u32| format!("{i}{}", "x".repeat(1000));
        let with_sub = |sub| SessionId {
            sub: Some(Box::new(sub)),
            ..id("A")
        };
        let of_comp_id = |i| id(&long(i));
        let of_sub_id = |i| {
            with_sub(SubIds {
                target: long(i).into(),
                ..SubIds::default()
            })
        };
        let of_location_id = |i| {
            with_sub(SubIds {
                sender_location: long(i).into(),
                ..SubIds::default()
            })
        };
        for of in [
            &of_comp_id as &dyn Fn(u32) -> SessionId,
            &of_sub_id,
            &of_location_id,
        ] {
            let registry = Registry::new(usize::MAX, 100_000);
            (0..1000).for_each(|i| end(&registry, &of(i), 9));
            let sessions = registry.lock();
            assert!(sessions.idle_bytes <= 100_000);
            assert!((50..100).contains(&sessions.idle.len()));
            assert_eq!(sessions.known.len(), sessions.idle.len());
            let sizes = sessions.idle.values().map(|id| size(id));
            assert_eq!(sizes.sum::<usize>(), sessions.idle_bytes);
        }
    }

    #[test]
    fn who_has_not_logged_on_is_not_remembered() {
        let registry = Registry::new(10, 10_000);
        drop(registry.claim(id("A")));
        assert!(registry.lock().known.is_empty());
    }
}
