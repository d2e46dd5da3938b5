//! The door of a port, which finds the user of a Logon and admits or refuses it.

use super::checks::{Check, Checker};
use super::denied::Denied;
use super::password::Hashed;
use super::roster::Seat;
use super::set::User;
use super::tables::PortName;
use super::{CurrentUsers, UserBook};
use fanfare_engine::host::{ClientNames, Incoming, Refusal, network_of};
use fanfare_engine::poll::Waker;
use fanfare_engine::throttle::Throttle;
use fanfare_fix::codec::{Decoder, Next};
use fanfare_fix::session::{Now, asks_for_new_password};
use fanfare_fix::tag;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// The outcome of a Logon.
pub(crate) enum Passage {
    /// The Logon is admitted, for a user or without one.
    Through(Incoming, Option<Arc<User>>),
    /// The user is known, and is refused.
    Denied(Incoming, Arc<str>, Denied),
    /// The connection, of a user if one is known, is closed without a response.
    Refused(Incoming, Option<Arc<str>>, Refusal),
}

/// The rules of the port's configuration for Logons.
#[derive(Clone)]
pub(crate) struct DoorRules {
    /// The certificates that admit a user without certificates of their own.
    pub(crate) names: ClientNames,
    /// The time that a connection may be without a session, in nanoseconds.
    pub(crate) patience: u64,
    /// The most connections that await a password check, of all addresses and of one.
    pub(crate) most_waiting: usize,
    pub(crate) most_waiting_of_address: usize,
}

/// The door of a port, for the thread of the port.
pub(crate) struct Door {
    port: PortName,
    users: CurrentUsers,
    throttle: Throttle,
    checker: Checker,
    /// The Logons that await a password check, in their order.
    waiting: VecDeque<Waiting>,
    /// The Logon whose password is being checked.
    checked: Option<Waiting>,
    decoder: Decoder,
}

/// A Logon that awaits a password check.
struct Waiting {
    incoming: Incoming,
    user: Arc<str>,
    hash: Hashed,
    password: Vec<u8>,
    /// Whether Username(553) is the user's name. The password is checked in any case, so that a
    /// wrong name takes as long as a wrong password.
    is_name_right: bool,
    since: u64,
}

impl Waiting {
    fn address(&self) -> IpAddr {
        network_of(self.incoming.address())
    }

    fn denied(self, why: Denied) -> Passage {
        Passage::Denied(self.incoming, self.user, why)
    }
}

impl Door {
    pub(crate) fn new(port: PortName, book: UserBook, waker: Waker) -> Self {
        Self {
            port,
            users: CurrentUsers::new(book),
            throttle: Throttle::default(),
            checker: Checker::new(waker),
            waiting: VecDeque::new(),
            checked: None,
            decoder: Decoder::new(),
        }
    }

    /// Returns the waker of the port's thread, for checked passwords.
    pub(crate) const fn waker(&self) -> &Waker {
        self.checker.waker()
    }

    /// Returns the number of connections that await a password check.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.checked.is_some())
    }

    /// Returns whether a session that was admitted is still permitted by the current users.
    pub(crate) fn still_admits(&mut self, seat: &Seat) -> bool {
        self.users.look();
        self.users.get().admits(seat)
    }

    /// Processes a new Logon. Returns its outcome, or `None` if that depends on a password check.
    pub(crate) fn ask(
        &mut self,
        incoming: Incoming,
        rules: &DoorRules,
        now: Now,
    ) -> Option<Passage> {
        self.users.look();
        // The port has looked at the header alone.
        if !matches!(self.decoder.next(incoming.bytes()), Next::Message { .. }) {
            return Some(Passage::Refused(incoming, None, Refusal::Garbled));
        }
        let user = match self.whose(&incoming, rules) {
            Ok(Some(user)) => user,
            Ok(None) => return Some(Passage::Through(incoming, None)),
            Err(closed) => return Some(closed.of(incoming)),
        };
        let name = &user.name;
        let denied = |incoming, why| Some(Passage::Denied(incoming, Arc::clone(name), why));
        let Some(hash) = user.password.clone() else {
            return Some(Passage::Through(incoming, Some(user)));
        };
        let address = network_of(incoming.address());
        if let Some(why) = self.slowed_down(name, address, now) {
            return denied(incoming, why);
        }
        let (is_name_right, password) = match self.credentials(&incoming, &user) {
            Ok(credentials) => credentials,
            Err(why) => {
                if why == Denied::WrongCredentials {
                    self.throttle.failed(&user.name, address, now.mono);
                }
                return denied(incoming, why);
            }
        };
        let of_address = self.waiting.iter().filter(|own| own.address() == address);
        if self.waiting.len() >= rules.most_waiting
            || of_address.count() >= rules.most_waiting_of_address
        {
            return denied(incoming, Denied::Busy);
        }
        self.waiting.push_back(Waiting {
            incoming,
            user: Arc::clone(&user.name),
            hash,
            password,
            is_name_right,
            since: now.mono,
        });
        None
    }

    /// Returns the outcome of a Logon whose password was checked, if any, and starts the next
    /// check.
    pub(crate) fn poll(&mut self, rules: &DoorRules, now: Now) -> Option<Passage> {
        if self.checked.is_some() {
            let is_right = self.checker.poll()?;
            let waiting = self.checked.take()?;
            return self.checked(waiting, is_right, rules, now);
        }
        let waiting = self.waiting.pop_front()?;
        if now.mono.saturating_sub(waiting.since) > rules.patience {
            return Some(waiting.denied(Denied::Busy));
        }
        if let Some(denied) = self.slowed_down(&waiting.user, waiting.address(), now) {
            return Some(waiting.denied(denied));
        }
        let check = Check {
            hash: waiting.hash.clone(),
            password: waiting.password.clone(),
        };
        if self.checker.begin(check).is_err() {
            return Some(waiting.denied(Denied::Busy));
        }
        self.checked = Some(waiting);
        None
    }

    fn checked(
        &mut self,
        waiting: Waiting,
        is_right: bool,
        rules: &DoorRules,
        now: Now,
    ) -> Option<Passage> {
        let address = waiting.address();
        let Waiting {
            incoming,
            user: name,
            hash,
            is_name_right,
            ..
        } = waiting;
        if !is_right || !is_name_right {
            self.throttle.failed(&name, address, now.mono);
            return Some(Passage::Denied(incoming, name, Denied::WrongCredentials));
        }
        self.throttle.succeeded(&name, address);
        // The users may have changed.
        self.users.look();
        match self.whose(&incoming, rules) {
            Ok(Some(user)) if user.password.as_ref() == Some(&hash) && user.name == name => {
                Some(Passage::Through(incoming, Some(user)))
            }
            Err(closed) => Some(closed.of(incoming)),
            Ok(_) => self.ask(incoming, rules, now),
        }
    }

    /// Returns the user of a Logon by CompIDs, address and certificate, or `None` for a session
    /// without a user that may log on.
    fn whose(&self, incoming: &Incoming, rules: &DoorRules) -> Result<Option<Arc<User>>, Closed> {
        let (id, users) = (incoming.id(), self.users.get());
        let Some(user) = users.find(id, self.port) else {
            if !users.takes_strangers(self.port) || users.knows(id) {
                let id = id.clone().with_sub_ids(incoming.sub_ids().clone());
                return Err(Closed::Refused(None, Refusal::UnknownSession(id)));
            }
            let checked = incoming.check_certificate(&rules.names);
            checked.map_err(|why| Closed::Refused(None, why))?;
            return Ok(None);
        };
        if !user.allow.allows(incoming.address().ip()) {
            return Err(Closed::Denied(Arc::clone(&user.name), Denied::Address));
        }
        let names = user.certificates.as_ref().unwrap_or(&rules.names);
        let checked = incoming.check_certificate(names);
        checked.map_err(|why| Closed::Refused(Some(Arc::clone(&user.name)), why))?;
        Ok(Some(Arc::clone(user)))
    }

    fn slowed_down(&self, user: &Arc<str>, address: IpAddr, now: Now) -> Option<Denied> {
        let wait = self.throttle.wait(user, address, now.mono)?;
        Some(Denied::SlowedDown(wait.div_ceil(1_000_000)))
    }

    /// Returns whether Username(553) of the Logon is the user's name, and its Password(554). A
    /// Logon that asks for a new password is refused unchecked.
    fn credentials(&mut self, incoming: &Incoming, user: &User) -> Result<(bool, Vec<u8>), Denied> {
        let Next::Message { message, .. } = self.decoder.next(incoming.bytes()) else {
            return Err(Denied::WrongCredentials);
        };
        if asks_for_new_password(&message) {
            return Err(Denied::NewPassword);
        }
        match (message.get(tag::USERNAME), message.get(tag::PASSWORD)) {
            (Some(name), Some(password)) => Ok((name == user.name.as_bytes(), password.to_vec())),
            _ => Err(Denied::WrongCredentials),
        }
    }
}

/// The reason why a Logon is refused.
enum Closed {
    Denied(Arc<str>, Denied),
    Refused(Option<Arc<str>>, Refusal),
}

impl Closed {
    fn of(self, incoming: Incoming) -> Passage {
        match self {
            Self::Denied(user, why) => Passage::Denied(incoming, user, why),
            Self::Refused(user, why) => Passage::Refused(incoming, user, why),
        }
    }
}
