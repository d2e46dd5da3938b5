//! The connected sessions with their users, and the sessions that operators keep out. Consulted
//! when a session logs on or ends, by operators, and at a reload, never per message.

use super::dbn_seat::DbnSeat;
use super::denied::Denied;
use super::tables::PortName;
use crate::operator::which::Which;
use fanfare_fix::session::SessionId;
use fanfare_wire::UtcTimestamp;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sessions of both ports and of DBN, for any thread.
#[derive(Clone, Default)]
pub(crate) struct Roster(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    live: [HashMap<Arc<SessionId>, Arc<Seat>>; 2],
    /// The sessions of DBN by their number.
    dbn: BTreeMap<u64, Arc<DbnSeat>>,
    by_user: HashMap<Arc<str>, usize>,
    /// The sessions that operators keep out, whatever the configuration.
    stops: Vec<Which>,
}

/// A session. The numbers are those of its thread's last sample.
pub(crate) struct Seat {
    pub(crate) port: PortName,
    pub(crate) id: Arc<SessionId>,
    /// The user's name, or an empty text if it has no user.
    pub(crate) user: Arc<str>,
    pub(crate) peer: SocketAddr,
    pub(crate) since: UtcTimestamp,
    next_sender: AtomicU64,
    next_target: AtomicU64,
    queued: AtomicU64,
    is_logged_on: AtomicBool,
    last_heard: AtomicU64,
    /// The round-trip time, or [`UNKNOWN`].
    round_trip: AtomicU64,
    lag: AtomicU64,
    conflated: AtomicU64,
    skipped: AtomicU64,
    subscriptions: AtomicU64,
    has_not_answered: AtomicBool,
}

/// The value of an unknown time.
const UNKNOWN: u64 = u64::MAX;

/// The measures that the thread of a session records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The next MsgSeqNum(34) of both directions.
    pub(crate) next_sender: u64,
    pub(crate) next_target: u64,
    /// The bytes queued for the peer.
    pub(crate) queued: u64,
    pub(crate) is_logged_on: bool,
    /// The time at which the peer was last heard, in nanoseconds since 1970.
    pub(crate) last_heard: u64,
    /// The time that the last response to a TestRequest(1) took, in nanoseconds.
    pub(crate) round_trip: Option<u64>,
    /// A lower bound of the age of the oldest queued byte, in nanoseconds.
    pub(crate) lag: u64,
    pub(crate) served: Served,
}

/// The counts that an agent keeps of a session besides its connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Updates that were merged into later ones because the peer was behind.
    pub(crate) conflated: u64,
    /// Messages that were skipped because the peer was behind, and reported to it.
    pub(crate) skipped: u64,
    /// The requests for market data that are being served.
    pub(crate) subscriptions: u64,
}

impl Seat {
    /// Returns whether an operator has selected it.
    pub(crate) fn is(&self, which: &Which) -> bool {
        which.is_at(self.port.name()) && which.is_of(&self.id, &self.user)
    }

    /// Records the state of the session.
    pub(crate) fn set(&self, reading: Reading) {
        self.next_sender
            .store(reading.next_sender, Ordering::Relaxed);
        self.next_target
            .store(reading.next_target, Ordering::Relaxed);
        self.queued.store(reading.queued, Ordering::Relaxed);
        self.is_logged_on
            .store(reading.is_logged_on, Ordering::Relaxed);
        for (place, value) in [
            (&self.last_heard, reading.last_heard),
            (&self.round_trip, reading.round_trip.unwrap_or(UNKNOWN)),
            (&self.lag, reading.lag),
            (&self.conflated, reading.served.conflated),
            (&self.skipped, reading.served.skipped),
            (&self.subscriptions, reading.served.subscriptions),
        ] {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// Records that the session ended because the peer did not answer a Logout(5) in time.
    pub(crate) fn note_no_answer(&self) {
        self.has_not_answered.store(true, Ordering::Relaxed);
    }

    /// Returns whether the session ended because the peer did not answer a Logout(5) in time. This
    /// is known once the roster does not have it any more.
    pub(crate) fn has_not_answered(&self) -> bool {
        self.has_not_answered.load(Ordering::Relaxed)
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading {
            next_sender: self.next_sender.load(Ordering::Relaxed),
            next_target: self.next_target.load(Ordering::Relaxed),
            queued: self.queued.load(Ordering::Relaxed),
            is_logged_on: self.is_logged_on.load(Ordering::Relaxed),
            last_heard: self.last_heard.load(Ordering::Relaxed),
            round_trip: Some(self.round_trip.load(Ordering::Relaxed))
                .filter(|nanos| *nanos != UNKNOWN),
            lag: self.lag.load(Ordering::Relaxed),
            served: Served {
                conflated: self.conflated.load(Ordering::Relaxed),
                skipped: self.skipped.load(Ordering::Relaxed),
                subscriptions: self.subscriptions.load(Ordering::Relaxed),
            },
        }
    }
}

/// A place on the roster, which is released when dropped.
pub(crate) struct Seated {
    roster: Roster,
    seat: Arc<Seat>,
}

impl Seated {
    pub(crate) fn seat(&self) -> &Seat {
        &self.seat
    }
}

impl Roster {
    /// Takes a place for a session that is not claimed yet.
    ///
    /// # Errors
    /// Returns an error if the session is stopped, or the user has as many sessions as allowed.
    pub(crate) fn take(&self, seat: Seat, most: usize) -> Result<Seated, Denied> {
        let mut state = self.lock();
        let seat = Arc::new(seat);
        state.join(|which| seat.is(which), &seat.user, most)?;
        let live = &mut state.live[seat.port as usize];
        live.insert(Arc::clone(&seat.id), Arc::clone(&seat));
        drop(state);
        let roster = self.clone();
        Ok(Seated { roster, seat })
    }

    /// Takes a place for a session of DBN.
    ///
    /// # Errors
    /// Returns an error if the session is stopped, or the user has as many sessions as allowed.
    pub(crate) fn take_dbn(&self, seat: DbnSeat, most: usize) -> Result<DbnSeated, Denied> {
        let mut state = self.lock();
        state.join(|which| seat.is(which), &seat.logon.user, most)?;
        let seat = Arc::new(seat);
        state.dbn.insert(seat.logon.session, Arc::clone(&seat));
        drop(state);
        let roster = self.clone();
        Ok(DbnSeated { roster, seat })
    }

    /// Returns all places of DBN that `wanted` accepts, by their number.
    pub(crate) fn dbn_seats(&self, wanted: impl Fn(&DbnSeat) -> bool) -> Vec<Arc<DbnSeat>> {
        let state = self.lock();
        let all = state.dbn.values();
        all.filter(|seat| wanted(seat)).cloned().collect()
    }

    /// Returns whether the session of a place of DBN is still connected.
    pub(crate) fn has_dbn(&self, seat: &DbnSeat) -> bool {
        self.lock().dbn.contains_key(&seat.logon.session)
    }

    /// Returns the place of a session.
    pub(crate) fn seat(&self, port: PortName, id: &SessionId) -> Option<Arc<Seat>> {
        self.lock().live[port as usize].get(id).cloned()
    }

    /// Returns all places that `wanted` accepts, in no order.
    pub(crate) fn seats(&self, wanted: impl Fn(&Seat) -> bool) -> Vec<Arc<Seat>> {
        let state = self.lock();
        let all = state.live.iter().flat_map(HashMap::values);
        all.filter(|seat| wanted(seat)).cloned().collect()
    }

    /// Returns whether the session of a place is still connected.
    pub(crate) fn has(&self, seat: &Arc<Seat>) -> bool {
        let live = self.seat(seat.port, &seat.id);
        live.is_some_and(|live| Arc::ptr_eq(&live, seat))
    }

    /// Reads or changes the stops in force. Sessions that match one take no place from then on.
    pub(crate) fn stops<T>(&self, change: impl FnOnce(&mut Vec<Which>) -> T) -> T {
        change(&mut self.lock().stops)
    }

    /// Returns the number of sessions of a user.
    pub(crate) fn of_user(&self, user: &str) -> usize {
        self.lock().by_user.get(user).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place of DBN on the roster, which is released when dropped.
pub(crate) struct DbnSeated {
    roster: Roster,
    seat: Arc<DbnSeat>,
}

impl DbnSeated {
    pub(crate) fn seat(&self) -> &DbnSeat {
        &self.seat
    }
}

impl Drop for DbnSeated {
    fn drop(&mut self) {
        let mut state = self.roster.lock();
        let logon = &self.seat.logon;
        state.dbn.remove(&logon.session);
        state.leave(&logon.user);
    }
}

impl State {
    /// Counts a session of a user, unless it matches a stop. Sessions without a user are not
    /// counted.
    fn join(
        &mut self,
        is: impl Fn(&Which) -> bool,
        user: &Arc<str>,
        most: usize,
    ) -> Result<(), Denied> {
        if self.stops.iter().any(is) {
            return Err(Denied::Stopped);
        }
        if user.is_empty() {
            return Ok(());
        }
        let sessions = self.by_user.entry(Arc::clone(user)).or_default();
        if *sessions >= most {
            return Err(Denied::TooManySessions(*sessions));
        }
        *sessions += 1;
        Ok(())
    }

    /// Removes a session of a user from the count.
    fn leave(&mut self, user: &str) {
        if let Some(sessions) = self.by_user.get_mut(user) {
            *sessions -= 1;
            if *sessions == 0 {
                self.by_user.remove(user);
            }
        }
    }
}

impl Seat {
    pub(crate) fn new(
        port: PortName,
        id: SessionId,
        user: Arc<str>,
        peer: SocketAddr,
        since: UtcTimestamp,
    ) -> Self {
        Self {
            port,
            id: Arc::new(id),
            user,
            peer,
            since,
            next_sender: AtomicU64::new(0),
            next_target: AtomicU64::new(0),
            queued: AtomicU64::new(0),
            is_logged_on: AtomicBool::new(false),
            last_heard: AtomicU64::new(0),
            round_trip: AtomicU64::new(UNKNOWN),
            lag: AtomicU64::new(0),
            conflated: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            subscriptions: AtomicU64::new(0),
            has_not_answered: AtomicBool::new(false),
        }
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let mut state = self.roster.lock();
        let seat = &self.seat;
        state.live[seat.port as usize].remove(&seat.id);
        state.leave(&seat.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::dbn_seat::{Bell, DbnLogon};
    use fanfare_engine::poll::Waker;
    use fanfare_fix::session::Version;

    fn seat(client: &str, user: &str) -> Seat {
        let id = SessionId::new(Version::Fix44, "PLANT", client);
        let peer = "127.0.0.1:1".parse().unwrap();
        let since = UtcTimestamp::from_nanos(0);
        Seat::new(PortName::Consumers, id, user.into(), peer, since)
    }

    #[test]
    fn a_user_has_as_many_sessions_as_allowed() {
        let roster = Roster::default();
        let first = roster.take(seat("A", "desk"), 2).ok().unwrap();
        let _second = roster.take(seat("B", "desk"), 2).ok().unwrap();
        let refused = roster.take(seat("C", "desk"), 2).err();
        assert_eq!(refused, Some(Denied::TooManySessions(2)));
        assert_eq!(roster.of_user("desk"), 2);
        drop(first);
        let _third = roster.take(seat("C", "desk"), 2).ok().unwrap();
        let strangers: Vec<_> = (0..9)
            .map(|i| roster.take(seat(&i.to_string(), ""), 1))
            .collect();
        assert!(strangers.iter().all(Result::is_ok));
        assert_eq!(roster.seats(|_| true).len(), 11);
        assert_eq!(roster.seats(|seat| &*seat.user == "desk").len(), 2);
        drop((strangers, _second, _third));
        assert!(roster.seats(|_| true).is_empty() && roster.of_user("desk") == 0);
    }

    #[test]
    fn a_session_that_is_stopped_takes_no_place() {
        let roster = Roster::default();
        let bell = Bell::new(Waker::detached().unwrap());
        let of_dbn = || {
            let logon = DbnLogon {
                session: 1,
                key: None,
                user: "desk".into(),
                peer: "127.0.0.1:1".parse().unwrap(),
                since: UtcTimestamp::from_nanos(0),
                client: "".into(),
            };
            DbnSeat::new(logon, bell.clone())
        };
        let outcomes = |port: Option<&str>| {
            let stop = Which {
                user: Some("desk".to_owned()),
                port: port.map(str::to_owned),
                ..Which::default()
            };
            roster.stops(|all| *all = vec![stop]);
            [
                roster.take(seat("A", "desk"), 1).err(),
                roster.take(seat("B", "other"), 1).err(),
                roster.take_dbn(of_dbn(), 1).err(),
            ]
        };
        let stopped = || Some(Denied::Stopped);
        assert_eq!(outcomes(None), [stopped(), None, stopped()]);
        assert_eq!(outcomes(Some("consumers")), [stopped(), None, None]);
        assert_eq!(outcomes(Some("dbn")), [None, None, stopped()]);
        assert_eq!(outcomes(Some("producers")), [None, None, None]);
        roster.stops(Vec::clear);
        assert!(roster.take(seat("A", "desk"), 1).is_ok() && roster.of_user("desk") == 0);
    }
}
