//! Which session a Logon is for, and sessions that are made for it.

use super::handler::{Handler, Refusal, SessionKey};
use super::link::Hosted;
use super::names::{CertificateNames, ClientNames};
use super::reactor::{Host, HostError, Slot};
use super::settings::StoreKind;
use super::store::Store;
use crate::journal::folder_for;
use crate::poll::Token;
use fanfare_fix::session::{
    Config, MessageStore, NoResendStore, Now, Session, SessionId, SubIds, Version,
};
use std::path::PathBuf;

/// Where an acceptor's session is logged on to, and by whom.
pub(super) struct Seat {
    pub(super) port: usize,
    /// Which certificates of clients are for it.
    pub(super) names: ClientNames,
    /// How it came about, if it was made for a Logon.
    pub(super) made: Option<Made>,
}

/// A session that was made for a Logon.
pub(super) struct Made {
    /// The wildcard, by its place among those of its port.
    wildcard: usize,
    /// The folder of its journal, which was not there before.
    fresh: Option<PathBuf>,
    /// It has been logged on.
    welcomed: bool,
    /// When its last connection ended.
    parted: u64,
    /// It has been given up: its place is free.
    vacant: bool,
}

impl Hosted {
    /// Whether it is logged on to at this port.
    pub(super) fn is_at(&self, port: usize) -> bool {
        self.seat.as_ref().is_some_and(|seat| seat.port == port)
    }

    fn made(&self) -> Option<&Made> {
        self.seat.as_ref()?.made.as_ref()
    }

    fn is_vacant(&self) -> bool {
        self.made().is_some_and(|made| made.vacant)
    }
}

impl<H: Handler> Host<H> {
    pub(super) fn accept_session(
        &mut self,
        config: Config,
        store: &StoreKind,
        seat: Seat,
        place: Option<SessionKey>,
    ) -> Result<SessionKey, HostError> {
        let (id, kind, now) = (config.id.clone(), store, self.clock.read());
        let store = self.open_store(kind, &id, now)?;
        let received = self.open_received(kind, &id, store.created())?;
        let mut hosted = Hosted::new(Session::acceptor(config, store), None);
        hosted.received = received;
        hosted.seat = Some(seat);
        self.add_at(hosted, place)
    }

    /// The session that the Logon is for, made if it may be.
    pub(super) fn session_for(
        &mut self,
        token: Token,
        id: &SessionId,
        sub: &SubIds,
    ) -> Result<SessionKey, Refusal> {
        let unknown = || Refusal::UnknownSession(id.clone().with_sub_ids(sub.clone()));
        let Some(Slot::Greeting(greeting)) = self.slots.get(token) else {
            return Err(unknown());
        };
        let port = greeting.port;
        let certificate = greeting.transport.peer_names();
        let certificate = certificate.map_err(Refusal::Transport)?;
        let Some(key) = self.named(port, id, sub) else {
            return self
                .make(port, id, sub, certificate.as_ref())?
                .ok_or_else(unknown);
        };
        let hosted = self.hosted.get(key.0).ok_or_else(unknown)?;
        if let Some(seat) = &hosted.seat {
            admit(
                &seat.names,
                &hosted.session.config().id,
                certificate.as_ref(),
            )?;
        }
        if hosted.session.is_connected() {
            return Err(Refusal::AlreadyConnected(id.clone()));
        }
        Ok(key)
    }

    /// The session of this port with these CompIDs that names most of what the Logon does, and
    /// nothing else.
    fn named(&self, port: usize, id: &SessionId, sub: &SubIds) -> Option<SessionKey> {
        let at_port = |key: &SessionKey| self.hosted.get(key.0).is_some_and(|h| h.is_at(port));
        if sub.is_empty() {
            return self.keys.get(id).copied().filter(at_port);
        }
        let hosted = self.hosted.iter().enumerate();
        let fitting = hosted.filter_map(|(index, hosted)| {
            let known = &hosted.session.config().id;
            let named = match &known.sub {
                _ if !hosted.is_at(port) || hosted.is_vacant() || !is_same(known, id) => None,
                None => Some(0),
                // Only sessions that were made have one here, and no Logon says which.
                Some(own) if !own.qualifier.is_empty() => None,
                Some(own) => own.found_in(sub),
            };
            Some((named?, SessionKey(index)))
        });
        let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, key)| key)
    }

    /// Makes a session for a Logon, if a wildcard of the port is for it.
    fn make(
        &mut self,
        port: usize,
        id: &SessionId,
        sub: &SubIds,
        certificate: Option<&CertificateNames>,
    ) -> Result<Option<SessionKey>, Refusal> {
        let settings = self.ports.get(port).map(|port| &port.settings);
        let mut wildcards = settings
            .iter()
            .flat_map(|own| own.wildcards.iter().enumerate());
        let fitting = wildcards
            .find_map(|(index, wildcard)| Some((index, wildcard, wildcard.config(id, sub)?)));
        let Some((index, wildcard, mut config)) = fitting else {
            return Ok(None);
        };
        admit(&wildcard.names, &config.id, certificate)?;
        if wildcard.qualified {
            match self.qualify(port, config.id) {
                Qualified::Free(key) => return Ok(Some(key)),
                Qualified::New(id) => config.id = id,
            }
        }
        let (store, tag, names) = (wildcard.store.clone(), wildcard.tag, wildcard.names.clone());
        let place = self.place(port, index)?;
        let fresh = match &store {
            StoreKind::Journal(base, _) | StoreKind::BothWays(base, _) => {
                Some(folder_for(base, &config.id.store_name()))
            }
            _ => None,
        };
        let made = Made {
            wildcard: index,
            fresh: fresh.filter(|folder| !folder.exists()),
            welcomed: false,
            parted: 0,
            vacant: false,
        };
        let made = Some(made);
        let id = config.id.clone();
        let key = self.accept_session(config, &store, Seat { port, names, made }, place);
        let key = key.map_err(|error| Refusal::Store(error.to_string()))?;
        let handler = &mut self.bench.handler;
        handler.call(Some(&id), |handler| handler.on_made(&id, tag));
        Ok(Some(key))
    }

    /// One of the sessions with this identity and a qualifier that has no connection, or the
    /// identity with a qualifier that is not taken.
    fn qualify(&self, port: usize, id: SessionId) -> Qualified {
        let sub = id.sub.as_deref().cloned().unwrap_or_default();
        for number in 1_u64.. {
            let qualifier = number.to_string().into();
            let sub = SubIds {
                qualifier,
                ..sub.clone()
            };
            let id = id.clone().with_sub_ids(sub);
            let Some(&key) = self.keys.get(&id) else {
                return Qualified::New(id);
            };
            let hosted = self.hosted.get(key.0);
            if hosted.is_some_and(|h| h.is_at(port) && !h.session.is_connected()) {
                return Qualified::Free(key);
            }
        }
        Qualified::New(id)
    }

    /// A place for one session more of a wildcard: that of one that was given up, of the one that
    /// has been without a connection for longest if there may be no more, or (`None`) a new one.
    fn place(&mut self, port: usize, wildcard: usize) -> Result<Option<SessionKey>, Refusal> {
        let Some(settings) = self
            .ports
            .get(port)
            .and_then(|p| p.settings.wildcards.get(wildcard))
        else {
            return Ok(None);
        };
        let keys = || (0..).map(SessionKey).zip(&self.hosted);
        let own = || {
            keys().filter_map(|(key, hosted)| {
                let made = hosted.made().filter(|made| made.wildcard == wildcard)?;
                (hosted.is_at(port) && !made.vacant).then_some((key, hosted, made))
            })
        };
        if own().count() < settings.max_sessions {
            let vacant = keys().find(|(_, hosted)| hosted.is_vacant());
            return Ok(vacant.map(|(key, _)| key));
        }
        let too_many = Refusal::TooManySessions(settings.max_sessions);
        if settings.store.is_journal() {
            return Err(too_many);
        }
        let idle = own().filter(|(_, hosted, _)| hosted.link.is_none());
        let oldest = idle.min_by_key(|(_, _, made)| made.parted);
        let key = oldest.map(|(key, ..)| key).ok_or(too_many)?;
        self.give_up(key);
        Ok(Some(key))
    }

    /// A session that was made for a Logon, and has just had one or not.
    pub(super) fn welcome(&mut self, key: SessionKey) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        let is_logged_on = hosted.session.is_logged_on();
        let made = hosted.seat.as_mut().and_then(|seat| seat.made.as_mut());
        if let Some(made) = made {
            made.welcomed |= is_logged_on;
        }
    }

    /// The connection of a session has ended. One that was made and never logged on is not kept:
    /// strangers leave nothing behind.
    pub(super) fn leave(&mut self, key: SessionKey, now: Now) {
        let hosted = self.hosted.get_mut(key.0);
        let seat = hosted.and_then(|hosted| hosted.seat.as_mut());
        let Some(made) = seat.and_then(|seat| seat.made.as_mut()) else {
            return;
        };
        made.parted = now.mono;
        if !made.welcomed {
            self.give_up(key);
        }
    }

    fn give_up(&mut self, key: SessionKey) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        let id = hosted.session.config().id.clone();
        let nobody = Config::new(SessionId::new(Version::Fix44, "", ""));
        let nothing = Store::NoResend(NoResendStore::new(0));
        // The store is closed before its folder is removed.
        hosted.session = Session::acceptor(nobody, nothing);
        hosted.received = None;
        if let Some(made) = hosted.seat.as_mut().and_then(|seat| seat.made.as_mut()) {
            made.vacant = true;
            if let Some(folder) = made.fresh.take().filter(|_| !made.welcomed) {
                // What cannot be removed is an empty store more.
                let _ = std::fs::remove_dir_all(folder);
            }
        }
        self.keys.remove(&id);
        let handler = &mut self.bench.handler;
        handler.call(Some(&id), |handler| handler.on_given_up(&id));
    }
}

/// What a Logon finds where several may have its CompIDs.
enum Qualified {
    Free(SessionKey),
    New(SessionId),
}

fn is_same(a: &SessionId, b: &SessionId) -> bool {
    (a.version, &a.sender, &a.target) == (b.version, &b.sender, &b.target)
}

/// Whether the certificate lets its owner have this session; without one nothing is demanded.
fn admit(
    names: &ClientNames,
    id: &SessionId,
    certificate: Option<&CertificateNames>,
) -> Result<(), Refusal> {
    let is_admitted = match certificate {
        Some(certificate) => names.admit(id, certificate),
        None => !matches!(names, ClientNames::Listed(_)),
    };
    if is_admitted {
        return Ok(());
    }
    Err(Refusal::Certificate {
        session: id.clone(),
        names: certificate.cloned().unwrap_or_default(),
    })
}
