//! The session of a Logon, found or made.

use super::Host;
use crate::host::HostError;
use crate::host::handle::Removal;
use crate::host::handler::{Handler, Verdict};
use crate::host::hosted::turn::{INTERNAL_ERROR, Workbench};
use crate::host::hosted::{Access, Hosted, Made, Prepared};
use crate::host::incoming::Incoming;
use crate::host::peer::SessionKey;
use crate::host::port::network_of;
use crate::host::refusal::Refusal;
use crate::host::store::StoreKind;
use crate::host::templates::Wildcard;
use crate::journal::folder_for;
use crate::throttle::Throttle;
use fanfare_fix::codec::Next;
use fanfare_fix::session::{
    Config, MessageStore, NEW_PASSWORD, Now, Scratch, Session, SessionId, StoreError, SubIds,
    WRONG_CREDENTIALS, asks_for_new_password,
};
use std::net::IpAddr;
use std::sync::Arc;

impl<H: Handler> Host<H> {
    /// Returns the session of a Logon, which is made if a wildcard of the port permits it.
    pub(super) fn session_for(
        &mut self,
        port: usize,
        incoming: &mut Incoming,
        now: Now,
    ) -> Result<SessionKey, Refusal> {
        let (id, sub) = (incoming.id().clone(), incoming.sub_ids().clone());
        if let Some(key) = self.listed(port, &id, &sub) {
            self.check_listed(key, incoming, now)?;
            self.refuse_unnumbered(key, false);
            return Ok(key);
        }
        let fitting = self.fitting(port, (&id, &sub), Some(incoming.address().ip()));
        let unknown = Refusal::UnknownSession(id.with_sub_ids(sub));
        let (index, config) = fitting.ok_or(unknown)?;
        self.check_stranger(port, incoming, index, &config, now)?;
        let key = self.make(port, index, config, false, now)?;
        self.refuse_unnumbered(key, true);
        Ok(key)
    }

    /// Sets whether a refusal uses up a number: not in a session that is made for its Logon, as the
    /// next one is made anew.
    fn refuse_unnumbered(&mut self, key: SessionKey, unnumbered: bool) {
        if let Some(hosted) = self.hosted.get_mut(key.0) {
            hosted.session.refuse_unnumbered(unnumbered);
        }
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
                Some(_) if is_qualified(known) => None,
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

    /// Checks that a Logon may go to a session that exists. The session refuses a wrong password by
    /// itself, as the Logout has its next number.
    fn check_listed(
        &mut self,
        key: SessionKey,
        incoming: &Incoming,
        now: Now,
    ) -> Result<(), Refusal> {
        let hosted = self.hosted.get(key.0);
        let Some((hosted, access)) = hosted.and_then(|own| Some((own, own.access.as_ref()?)))
        else {
            return Err(Refusal::UnknownSession(incoming.id().clone()));
        };
        let config = hosted.session.config();
        incoming.check_client(&access.allow, &access.names, &config.id)?;
        if hosted.link.is_some() {
            return Err(Refusal::AlreadyConnected(incoming.id().clone()));
        }
        if hosted.is_stopped {
            return Err(Refusal::Stopped(config.id.clone()));
        }
        let (scratch, throttle) = (&mut self.bench.scratch, &mut self.throttle);
        check_password(scratch, throttle, incoming, config, now)?;
        Ok(())
    }

    /// Checks that a session may be made for a Logon, with the application as well, before anything
    /// is made.
    fn check_stranger(
        &mut self,
        port: usize,
        incoming: &mut Incoming,
        wildcard: usize,
        config: &Config,
        now: Now,
    ) -> Result<(), Refusal> {
        let Some(wildcard) = self.wildcard(port, wildcard) else {
            return Ok(());
        };
        let (id, tag) = (&config.id, wildcard.tag);
        incoming.check_client(&wildcard.allow, &wildcard.names, id)?;
        let Workbench {
            handler, scratch, ..
        } = &mut self.bench;
        let is_right = check_password(scratch, &mut self.throttle, incoming, config, now)?;
        let decoder = scratch.decoder_of(config);
        let Next::Message { message, .. } = decoder.next(&incoming.bytes) else {
            return Err(Refusal::Garbled);
        };
        let text = if !is_right {
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
        config: Config,
        is_operators: bool,
        now: Now,
    ) -> Result<SessionKey, Refusal> {
        let id = config.id.clone();
        let found = match self.wildcard(port, index) {
            None => return Err(Refusal::UnknownSession(id)),
            Some(own) if own.qualified => self.qualify(port, id, !is_operators),
            Some(_) => Qualified::New(id),
        };
        let key = match found {
            Qualified::Free(key) => key,
            Qualified::New(id) => {
                let config = Config { id, ..config };
                self.open_made(port, index, config, is_operators, now)?
            }
        };
        if !is_operators && let Err(error) = self.begin_qualified(key, now) {
            self.leave(key, now);
            return Err(Refusal::Store(error.to_string()));
        }
        Ok(key)
    }

    /// Hosts a session of a wildcard of the port, for an operator or a Logon.
    fn open_made(
        &mut self,
        port: usize,
        index: usize,
        config: Config,
        is_operators: bool,
        now: Now,
    ) -> Result<SessionKey, Refusal> {
        let Some(wildcard) = self.wildcard(port, index) else {
            return Err(Refusal::UnknownSession(config.id));
        };
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

    /// Resets the numbers of a session with a qualifier that a Logon has made or taken. It begins
    /// at 1, as which of them a connection gets is chance.
    fn begin_qualified(&mut self, key: SessionKey, now: Now) -> Result<(), StoreError> {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return Ok(());
        };
        let session = &mut hosted.session;
        let store = session.store();
        let has_begun = (store.next_sender(), store.next_target()) != (1, 1);
        match has_begun && is_qualified(&session.config().id) {
            true => session.reset_idle(now),
            false => Ok(()),
        }
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
            endings: place.endings,
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

/// Checks the credentials of a Logon, if the session needs any, and returns whether they are right.
/// After wrong ones none are checked for a while, which is an error: the connection is closed
/// without a Logout, as a counterparty may count any, and would then miss a number of the session.
fn check_password(
    scratch: &mut Scratch,
    throttle: &mut Throttle,
    incoming: &Incoming,
    config: &Config,
    now: Now,
) -> Result<bool, Refusal> {
    let Some(credentials) = &config.credentials else {
        return Ok(true);
    };
    let user = Arc::from(&*credentials.username);
    let address = network_of(incoming.address());
    if let Some(wait) = throttle.wait(&user, address, now.mono) {
        let millis = wait.div_ceil(1_000_000);
        return Err(Refusal::SlowedDown(config.id.clone(), millis));
    }
    let decoder = scratch.decoder_of(config);
    let Next::Message { message, .. } = decoder.next(&incoming.bytes) else {
        return Err(Refusal::Garbled);
    };
    let is_right = credentials.admit(&message);
    match is_right {
        true => throttle.succeeded(&user, address),
        false => throttle.failed(&user, address, now.mono),
    }
    Ok(is_right)
}

/// The result of [`Host::qualify`].
enum Qualified {
    Free(SessionKey),
    New(SessionId),
}

fn is_qualified(id: &SessionId) -> bool {
    id.sub.as_ref().is_some_and(|sub| !sub.qualifier.is_empty())
}

fn is_same(a: &SessionId, b: &SessionId) -> bool {
    (a.version, &a.sender, &a.target) == (b.version, &b.sender, &b.target)
}
