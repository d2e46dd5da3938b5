//! The session of a Logon, found or made.

use super::Host;
use crate::host::HostError;
use crate::host::handle::Removal;
use crate::host::handler::{Handler, Verdict};
use crate::host::hosted::turn::{INTERNAL_ERROR, Workbench};
use crate::host::hosted::{Access, Hosted, Made, Prepared};
use crate::host::incoming::{Incoming, check_names};
use crate::host::names::CertificateNames;
use crate::host::peer::SessionKey;
use crate::host::refusal::Refusal;
use crate::host::store::StoreKind;
use crate::host::templates::Wildcard;
use crate::journal::folder_for;
use fanfare_fix::codec::Next;
use fanfare_fix::session::{
    Config, NEW_PASSWORD, Now, Session, SessionId, SubIds, WRONG_CREDENTIALS, asks_for_new_password,
};
use std::net::IpAddr;

impl<H: Handler> Host<H> {
    /// Returns the session of a Logon, which is made if a wildcard of the port permits it.
    pub(super) fn session_for(
        &mut self,
        port: usize,
        incoming: &mut Incoming,
        now: Now,
    ) -> Result<SessionKey, Refusal> {
        let certificate = incoming.certificate()?;
        let (id, sub) = (incoming.id().clone(), incoming.sub_ids().clone());
        let Some(key) = self.listed(port, &id, &sub) else {
            let fitting = self.fitting(port, (&id, &sub), Some(incoming.address().ip()));
            let unknown = Refusal::UnknownSession(id.with_sub_ids(sub));
            let (index, config) = fitting.ok_or(unknown)?;
            self.check_stranger(port, incoming, index, &config, certificate.as_ref(), now)?;
            return self.make(port, index, config, false, now);
        };
        let Some(hosted) = self.hosted.get(key.0) else {
            return Err(Refusal::UnknownSession(id.with_sub_ids(sub)));
        };
        if let Some(access) = &hosted.access {
            incoming.check_address(&access.allow)?;
            let id = &hosted.session.config().id;
            check_names(&access.names, id, certificate.as_ref())?;
        }
        if hosted.link.is_some() {
            return Err(Refusal::AlreadyConnected(id));
        }
        if hosted.is_stopped {
            return Err(Refusal::Stopped(hosted.session.config().id.clone()));
        }
        Ok(key)
    }

    /// Returns the session of this port with these CompIDs whose SubIDs and LocationIDs the Logon
    /// names; of several, the one with most of them.
    fn listed(&self, port: usize, id: &SessionId, sub: &SubIds) -> Option<SessionKey> {
        let at_port = |key: &SessionKey| self.hosted.get(key.0).is_some_and(|h| h.is_at(port));
        if sub.is_empty() {
            return self.remote.key(id).filter(at_port);
        }
        let hosted = self.hosted.iter().enumerate();
        let fitting = hosted.filter_map(|(index, hosted)| {
            let known = &hosted.session.config().id;
            let named = match &known.sub {
                _ if !hosted.is_at(port) || !is_same(known, id) => None,
                None => Some(0),
                // Only sessions made from a template have a qualifier here, and a Logon names none.
                Some(own) if !own.qualifier.is_empty() => None,
                Some(own) => own.found_in(sub),
            };
            Some((named?, SessionKey(index)))
        });
        let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, key)| key)
    }

    /// Returns the index of the port's wildcard that a Logon matches, and the configuration of the
    /// session: the first one that admits the address, if one does.
    pub(in crate::host) fn fitting(
        &self,
        port: usize,
        (id, sub): (&SessionId, &SubIds),
        address: Option<IpAddr>,
    ) -> Option<(usize, Config)> {
        let wildcards = &self.ports.get(&port)?.wildcards;
        let admits = |at: usize| {
            let allow = wildcards.get(at).map(|own| &own.allow);
            address.is_none_or(|address| allow.is_some_and(|allow| allow.allows(address)))
        };
        let of_ids = wildcards.iter().enumerate();
        let mut fitting = of_ids.filter_map(|(at, own)| Some((at, own.config(id, sub)?)));
        let first = fitting.next()?;
        if admits(first.0) {
            return Some(first);
        }
        fitting.find(|(at, _)| admits(*at)).or(Some(first))
    }

    fn wildcard(&self, port: usize, index: usize) -> Option<&Wildcard> {
        self.ports.get(&port)?.wildcards.get(index)
    }

    /// Checks with the address, the certificate and the application that a session may be made for
    /// a Logon, before anything is made.
    fn check_stranger(
        &mut self,
        port: usize,
        incoming: &mut Incoming,
        wildcard: usize,
        config: &Config,
        certificate: Option<&CertificateNames>,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(wildcard) = self.wildcard(port, wildcard) else {
            return Ok(());
        };
        incoming.check_address(&wildcard.allow)?;
        check_names(&wildcard.names, &config.id, certificate)?;
        let (id, tag) = (&config.id, wildcard.tag);
        let Workbench {
            handler, scratch, ..
        } = &mut self.bench;
        let decoder = scratch.decoder_of(config);
        let Next::Message { message, .. } = decoder.next(&incoming.bytes) else {
            return Err(Refusal::Garbled);
        };
        let text = if !config.admits(&message) {
            WRONG_CREDENTIALS.to_owned()
        } else if config.credentials.is_some() && asks_for_new_password(&message) {
            NEW_PASSWORD.to_owned()
        } else {
            match handler.call(Some(id), |own| own.on_stranger(id, tag, &message)) {
                Some(Verdict::Accept) => return Ok(()),
                Some(Verdict::Refuse(text)) => text,
                None => INTERNAL_ERROR.to_owned(),
            }
        };
        incoming.refuse(config, now, &text);
        Err(Refusal::Stranger(id.clone(), text))
    }

    /// Makes a session from a wildcard of the port, for an operator or a Logon. Where a wildcard
    /// has qualifiers, a Logon takes a session that exists and is free.
    pub(in crate::host) fn make(
        &mut self,
        port: usize,
        index: usize,
        mut config: Config,
        is_operators: bool,
        now: Now,
    ) -> Result<SessionKey, Refusal> {
        let Some(wildcard) = self.wildcard(port, index) else {
            return Err(Refusal::UnknownSession(config.id));
        };
        if wildcard.qualified {
            match self.qualify(port, config.id, !is_operators) {
                Qualified::Free(key) => return Ok(key),
                Qualified::New(id) => config.id = id,
            }
        }
        let (store, tag) = (wildcard.store.clone(), wildcard.tag);
        let (allow, names) = (wildcard.allow.clone(), wildcard.names.clone());
        self.make_place(port, index)?;
        let fresh = match &store {
            StoreKind::Journal(base, _) | StoreKind::BothWays(base, _) => {
                Some(folder_for(base, &config.id.store_name()))
            }
            _ => None,
        };
        let made = Made {
            wildcard: index,
            fresh: fresh.filter(|folder| !folder.exists()),
            has_logged_on: false,
            is_operators,
            parted: now.mono,
        };
        let made = Some(made);
        let id = config.id.clone();
        let prepared = Prepared::open(config, &store, now, Session::acceptor);
        let key = prepared.map_err(HostError::from).and_then(|mut prepared| {
            prepared.hosted.access = Some(Access {
                port,
                allow,
                names,
                made,
            });
            self.add(prepared)
        });
        let key = key.map_err(|error| Refusal::Store(error.to_string()))?;
        let handler = &mut self.bench.handler;
        handler.call(Some(&id), |handler| handler.on_made(&id, tag));
        Ok(key)
    }

    /// Returns a session with this identity and any qualifier that has no connection and is not
    /// stopped, if it `may_exist`, or else the identity with a new qualifier.
    fn qualify(&self, port: usize, id: SessionId, may_exist: bool) -> Qualified {
        let sub = id.sub.as_deref().cloned().unwrap_or_default();
        for number in 1_u64.. {
            let qualifier = number.to_string().into();
            let sub = SubIds {
                qualifier,
                ..sub.clone()
            };
            let id = id.clone().with_sub_ids(sub);
            let Some(key) = self.remote.key(&id) else {
                return Qualified::New(id);
            };
            let is_free = |h: &Hosted| h.is_at(port) && h.link.is_none() && !h.is_stopped;
            if may_exist && self.hosted.get(key.0).is_some_and(is_free) {
                return Qualified::Free(key);
            }
        }
        Qualified::New(id)
    }

    /// Makes sure that a wildcard may have another session. At the limit, the session that has been
    /// without a connection for longest is removed, except for those that an operator made.
    fn make_place(&mut self, port: usize, wildcard: usize) -> Result<(), Refusal> {
        let Some(settings) = self.wildcard(port, wildcard) else {
            return Ok(());
        };
        let keys = || (0..).map(SessionKey).zip(&self.hosted);
        let own = || {
            keys().filter_map(|(key, hosted)| {
                let made = hosted.made().filter(|made| made.wildcard == wildcard)?;
                hosted.is_at(port).then_some((key, hosted, made))
            })
        };
        if own().count() < settings.max_sessions {
            return Ok(());
        }
        let too_many = Refusal::TooManySessions(settings.max_sessions);
        if settings.store.is_journal() {
            return Err(too_many);
        }
        let idle = own().filter(|(_, hosted, made)| {
            hosted.link.is_none() && !hosted.is_stopped && !made.is_operators
        });
        let oldest = idle.min_by_key(|(_, _, made)| made.parted);
        let key = oldest.map(|(key, ..)| key).ok_or(too_many)?;
        self.give_up(key);
        Ok(())
    }

    /// Notes that the connection of a session has ended. Removes a session that is for one
    /// connection or to be removed, and one that a Logon made and that never logged on, so that
    /// unknown clients leave nothing behind.
    pub(super) fn leave(&mut self, key: SessionKey, now: Now) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        if hosted.is_transient || !hosted.removals.is_empty() {
            return self.give_up(key);
        }
        let Some(made) = hosted.made_mut() else {
            return;
        };
        made.parted = now.mono;
        if !made.has_logged_on && !made.is_operators {
            self.give_up(key);
        }
    }

    /// Removes a session without a connection.
    pub(in crate::host) fn give_up(&mut self, key: SessionKey) {
        let Some(place) = self.hosted.get_mut(key.0) else {
            return;
        };
        let id = place.session.config().id.clone();
        let vacated = Hosted {
            ending: place.ending,
            ..Hosted::nobody(id.clone())
        };
        // The store is closed before its folder is removed.
        let Hosted {
            session,
            received,
            access,
            guard,
            removals,
            ..
        } = std::mem::replace(place, vacated);
        self.vacant.push(key);
        drop((session, received, guard));
        let made = access.and_then(|own| own.made);
        if let Some(folder) = made
            .filter(|made| !made.has_logged_on && !made.is_operators)
            .and_then(|made| made.fresh)
        {
            // A failure leaves an empty store behind.
            let _ = std::fs::remove_dir_all(folder);
        }
        self.remote.remove(&id);
        let handler = &mut self.bench.handler;
        handler.call(Some(&id), |handler| handler.on_removed(&id));
        removals.into_iter().for_each(Removal::done);
    }
}

/// The result of [`Host::qualify`].
enum Qualified {
    Free(SessionKey),
    New(SessionId),
}

fn is_same(a: &SessionId, b: &SessionId) -> bool {
    (a.version, &a.sender, &a.target) == (b.version, &b.sender, &b.target)
}
