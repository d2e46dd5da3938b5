//! A port's door: whose a Logon is, and whether it is let in.

use super::UserBook;
use super::checks::{Check, Checker};
use super::denied::Denied;
use super::password::Hashed;
use super::roster::Seat;
use super::set::{User, UserSet};
use super::tables::PortName;
use super::throttle::Throttle;
use fanfare_engine::host::{ClientNames, Incoming, Refusal, network_of};
use fanfare_engine::poll::Waker;
use fanfare_fix::codec::{Decoder, Next};
use fanfare_fix::session::Now;
use fanfare_fix::tag;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

/// What becomes of a Logon.
pub(crate) enum Passage {
    /// It is the user's, or a stranger's who may come in.
    Through(Incoming, Option<Arc<User>>),
    /// The user is known, and does not get in.
    Denied(Incoming, Arc<str>, Denied),
    /// It is closed without an answer.
    Refused(Incoming, Refusal),
}

/// What the configuration of the port says of Logons.
#[derive(Clone)]
pub(crate) struct DoorRules {
    /// The certificates that admit where a user has none of their own.
    pub(crate) names: ClientNames,
    /// How long a connection may be without a session, in nanoseconds.
    pub(crate) patience: u64,
    /// Connections that may wait for their passwords to be checked, of all addresses and of one.
    pub(crate) most_waiting: usize,
    pub(crate) most_waiting_of_address: usize,
}

/// For the thread of the port.
pub(crate) struct Door {
    port: PortName,
    book: UserBook,
    version: u64,
    users: Arc<UserSet>,
    throttle: Throttle,
    checker: Checker,
    /// Logons whose passwords are to be checked, in their order.
    waiting: VecDeque<Waiting>,
    /// The Logon whose password is being checked.
    checked: Option<Waiting>,
    decoder: Decoder,
}

/// A Logon that waits for its password to be checked.
struct Waiting {
    incoming: Incoming,
    user: Arc<str>,
    hash: Hashed,
    password: Vec<u8>,
    /// Whether Username(553) is the user's name. The password is checked in any case: a wrong name
    /// takes as long as a wrong password.
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
            version: book.version(),
            users: book.read(),
            book,
            throttle: Throttle::default(),
            checker: Checker::new(waker),
            waiting: VecDeque::new(),
            checked: None,
            decoder: Decoder::new(),
        }
    }

    /// Wakes the thread of the port when a password was checked.
    pub(crate) const fn waker(&self) -> &Waker {
        self.checker.waker()
    }

    /// Connections whose passwords are to be checked.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.checked.is_some())
    }

    /// Takes new users, if there are any.
    pub(crate) fn look(&mut self) {
        let version = self.book.version();
        if version != self.version {
            self.version = version;
            self.users = self.book.read();
        }
    }

    /// Whether a session that was let in may still be there, as the users are now.
    pub(crate) fn still_admits(&mut self, seat: &Seat) -> bool {
        self.look();
        self.users.admits(seat)
    }

    /// A Logon has come. Returns what becomes of it; `None`: that is known when its password was
    /// checked.
    pub(crate) fn ask(
        &mut self,
        incoming: Incoming,
        rules: &DoorRules,
        now: Now,
    ) -> Option<Passage> {
        self.look();
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
        if let Some(denied) = self.slowed_down(&user.name, address, now) {
            return Some(Passage::Denied(incoming, Arc::clone(&user.name), denied));
        }
        let Some((is_name_right, password)) = self.credentials(&incoming, &user) else {
            self.throttle.failed(&user.name, address, now.mono);
            return denied(incoming, Denied::WrongCredentials);
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

    /// Returns what becomes of a Logon that has waited, if that is known now, and begins with the
    /// next one.
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
        // The users may be others by now.
        self.look();
        match self.whose(&incoming, rules) {
            Ok(Some(user)) if user.password.as_ref() == Some(&hash) && user.name == name => {
                Some(Passage::Through(incoming, Some(user)))
            }
            Err(closed) => Some(closed.of(incoming)),
            Ok(_) => self.ask(incoming, rules, now),
        }
    }

    /// The user whose Logon it is by CompIDs, address and certificate; `None`: a stranger's who may
    /// come in.
    fn whose(&self, incoming: &Incoming, rules: &DoorRules) -> Result<Option<Arc<User>>, Closed> {
        let id = incoming.id();
        let Some(user) = self.users.find(id, self.port) else {
            if !self.users.takes_strangers(self.port) || self.users.knows(id) {
                let id = id.clone().with_sub_ids(incoming.sub_ids().clone());
                return Err(Closed::Refused(Refusal::UnknownSession(id)));
            }
            incoming
                .check_certificate(&rules.names)
                .map_err(Closed::Refused)?;
            return Ok(None);
        };
        if !user.allow.allows(incoming.address().ip()) {
            return Err(Closed::Denied(Arc::clone(&user.name), Denied::Address));
        }
        let names = user.certificates.as_ref().unwrap_or(&rules.names);
        incoming.check_certificate(names).map_err(Closed::Refused)?;
        Ok(Some(Arc::clone(user)))
    }

    fn slowed_down(&self, user: &Arc<str>, address: IpAddr, now: Now) -> Option<Denied> {
        let wait = self.throttle.wait(user, address, now.mono)?;
        Some(Denied::SlowedDown(wait.div_ceil(1_000_000)))
    }

    /// Whether Username(553) of the Logon is the user's name, and its Password(554).
    fn credentials(&mut self, incoming: &Incoming, user: &User) -> Option<(bool, Vec<u8>)> {
        let Next::Message { message, .. } = self.decoder.next(incoming.bytes()) else {
            return None;
        };
        let name = message.get(tag::USERNAME)?;
        let password = message.get(tag::PASSWORD)?;
        Some((name == user.name.as_bytes(), password.to_vec()))
    }
}

/// Why nobody comes in.
enum Closed {
    Denied(Arc<str>, Denied),
    Refused(Refusal),
}

impl Closed {
    fn of(self, incoming: Incoming) -> Passage {
        match self {
            Self::Denied(user, why) => Passage::Denied(incoming, user, why),
            Self::Refused(why) => Passage::Refused(incoming, why),
        }
    }
}
