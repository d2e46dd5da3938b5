//! One session with its connection.

pub(super) mod turn;

use super::allow::AllowList;
use super::connection::{Connection, QUEUE_BYTES};
use super::handle::Removal;
use super::names::ClientNames;
use super::peer::{Peer, SessionKey, Touched};
use super::received::Kept;
use super::store::{Store, StoreKind};
use super::transport::Encrypt;
use crate::journal::{OpenError, Recovery};
use crate::poll::{Interest, Poller, Token};
use crate::tcp::{Connector, Inbox};
use fanfare_fix::session::{AdminHook, Config, MemoryStore, MessageStore, Now, Session, SessionId};
use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// A session, and its connection if it has one.
pub(super) struct Hosted {
    pub(super) session: Session<Store>,
    /// The journal of received messages, if they are kept. Most sessions keep none, and have no
    /// memory for it.
    pub(super) received: Option<Box<Kept>>,
    pub(super) link: Option<Link>,
    /// The tokens of its last connections, which may still have bytes to send: one for each stream
    /// of the message log.
    pub(super) endings: [Option<Token>; 2],
    /// The connector of an initiator.
    pub(super) connector: Option<Box<Connector>>,
    /// The encryption of its connections.
    pub(super) encrypt: Encrypt,
    /// The port of an acceptor's session, and who may log on.
    pub(super) access: Option<Access>,
    /// The session's number among all sessions that the host ever had.
    pub(super) serial: u64,
    /// Whether the session was removed and its place is free.
    pub(super) is_vacant: bool,
    /// The callers that wait for its removal: the session is not connected again.
    pub(super) removals: Vec<Arc<Removal>>,
    /// Whether the session is kept from logging on.
    pub(super) is_stopped: bool,
    /// Whether the handler may have written bytes that are not flushed yet.
    pub(super) touched: bool,
    /// Whether the session is removed when its connection ends.
    pub(super) is_transient: bool,
    /// Most bytes in the outbound queue of its connection.
    pub(super) queue_bytes: usize,
    /// See [`Admission::guard`](super::Admission::guard).
    pub(super) guard: Option<Box<dyn Any + Send>>,
    /// Whether the session is in [`Workbench::resending`](turn::Workbench::resending).
    pub(super) resending: bool,
    /// Whether the session is in [`Workbench::pending`](turn::Workbench::pending).
    pub(super) pending: bool,
    /// Whether the next message has to be rehearsed (again): bytes were written since, or the
    /// thread has done other work.
    pub(super) unprepared: bool,
}

/// A session with its store, to be hosted.
pub(super) struct Prepared {
    pub(super) hosted: Hosted,
    /// The repairs of its journals.
    pub(super) recoveries: Vec<Recovery>,
}

impl Prepared {
    /// Opens the store of a session; `make` makes the session.
    pub(super) fn open(
        config: Config,
        kind: &StoreKind,
        now: Now,
        make: impl FnOnce(Config, Store) -> Session<Store>,
    ) -> Result<Self, OpenError> {
        let config = hosted_config(config);
        let (store, recovery) = kind.open(&config.id, now.utc)?;
        let mut recoveries = vec![recovery];
        let received = Kept::open(kind, &config.id, store.created())?;
        let mut hosted = Hosted::new(make(config, store));
        if let Some((kept, recovery)) = received {
            hosted.received = Some(Box::new(kept));
            recoveries.push(recovery);
        }
        Ok(Self { hosted, recoveries })
    }

    /// Assigns the session to this port.
    pub(super) fn set_port(&mut self, port: usize) {
        if let Some(access) = &mut self.hosted.access {
            access.port = port;
        }
    }
}

/// Returns the configuration as a host needs it: its handler decides on resends, and a panic of the
/// hook ends no other session.
pub(super) fn hosted_config(mut config: Config) -> Config {
    config.admin_hook = config.admin_hook.map(contained);
    config.ask_resend = true;
    config
}

/// Wraps the hook so that its panic ends only its own session, as a message that cannot be encoded.
pub(super) fn contained(hook: AdminHook) -> AdminHook {
    AdminHook::new(move |message, out| {
        if catch_unwind(AssertUnwindSafe(|| hook.write(message, out))).is_err() {
            out.u64(0, 0);
        }
    })
}

/// A connection that belongs to a session.
pub(super) struct Link {
    pub(super) connection: Connection,
    pub(super) token: Token,
    /// Its stream in the message log.
    pub(super) stream: usize,
    inbox: Inbox,
    /// Whether the handler had no room at the last attempt to read.
    lacks_room: bool,
    /// The time since which bytes were left unread, until all of them are read.
    unread_since: Option<u64>,
    /// What the poller reports of the connection, if anything. A connection that is read each duty
    /// cycle is not watched, which spares the sender of every packet the call of epoll.
    watched: Option<Interest>,
}

impl Link {
    pub(super) fn new(connection: Connection, token: Token, stream: usize) -> Self {
        Self {
            connection,
            token,
            stream,
            inbox: Inbox::new(),
            lacks_room: false,
            unread_since: None,
            watched: None,
        }
    }

    /// Returns whether the poller reports anything of the connection.
    pub(super) const fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    /// Returns whether bytes of the counterparty wait because the handler has no room.
    fn is_left_unread(&self) -> bool {
        self.lacks_room && self.connection.transport.has_unread()
    }

    /// Notes that bytes are left unread, if there are any.
    #[cold]
    fn leave_unread(&mut self, now: Now) {
        if self.unread_since.is_none() && self.connection.transport.has_unread() {
            self.unread_since = Some(now.mono);
        }
    }

    /// Changes what the poller reports of the connection.
    pub(super) fn watch(&mut self, poller: &Poller, wanted: Option<Interest>) -> io::Result<()> {
        let transport = &self.connection.transport;
        match (self.watched, wanted) {
            (now, wanted) if now == wanted => return Ok(()),
            (None, Some(interest)) => poller.add(transport, self.token, interest)?,
            (Some(_), Some(interest)) => poller.change(transport, self.token, interest)?,
            (_, None) => poller.remove(transport)?,
        }
        self.watched = wanted;
        Ok(())
    }
}

impl Hosted {
    pub(super) fn new(session: Session<Store>) -> Self {
        let encrypt = Encrypt::default();
        Self {
            session,
            received: None,
            link: None,
            endings: [None; 2],
            connector: None,
            encrypt,
            access: None,
            serial: 0,
            is_vacant: false,
            removals: Vec::new(),
            is_stopped: false,
            touched: false,
            is_transient: false,
            queue_bytes: QUEUE_BYTES,
            guard: None,
            resending: false,
            pending: false,
            unprepared: true,
        }
    }

    /// Returns a placeholder for the session `id`, which was removed. Its last connection may still
    /// send bytes under its name.
    pub(super) fn nobody(id: SessionId) -> Self {
        let config = Config::new(id);
        let nothing = Store::Memory(MemoryStore::without_resends(0));
        Self {
            is_vacant: true,
            ..Self::new(Session::acceptor(config, nothing))
        }
    }

    /// Returns the session, as the handler may use it. `any_touched` is set together with
    /// [`touched`](Self::touched).
    #[inline]
    pub(super) fn peer<'a>(
        &'a mut self,
        key: SessionKey,
        now: Now,
        is_logged: bool,
        any_touched: Option<&'a Cell<bool>>,
    ) -> Peer<'a> {
        let connection = self.link.as_mut().map(|link| &mut link.connection);
        Peer {
            key,
            now,
            session: &mut self.session,
            connection,
            touched: Touched {
                own: &mut self.touched,
                any: any_touched,
            },
            is_logged,
        }
    }

    /// Returns the number of bytes that the kernel has not taken yet.
    pub(super) fn unsent(&self) -> usize {
        let queued = self
            .link
            .as_ref()
            .map_or(0, |link| link.connection.queued());
        queued + self.session.store().unsent_len()
    }

    /// Moves the session's bytes to the outbound queue of the connection, whatever its limit.
    pub(super) fn queue_rest(&mut self) {
        let Some(link) = &mut self.link else {
            return;
        };
        loop {
            let rest = self.session.poll_transmit();
            if rest.is_empty() {
                return;
            }
            let len = rest.len();
            link.connection.queue_rest(rest);
            self.session.transmitted(len);
        }
    }

    /// Watches for space to send exactly while bytes wait for it, and for bytes to read if `reads`;
    /// watches nothing while the host waits for the message log (`held`).
    #[inline]
    pub(super) fn update_interest(
        &mut self,
        poller: &Poller,
        reads: bool,
        held: bool,
    ) -> io::Result<()> {
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        let unsent = !self.session.store().unsent().is_empty();
        let wanted = if held {
            None
        } else if unsent || link.connection.wants_write() {
            Some(Interest::ReadWrite)
        } else {
            reads.then_some(Interest::Read)
        };
        if link.watched == wanted {
            return Ok(());
        }
        link.watch(poller, wanted)
    }

    /// Returns whether the session belongs to this port.
    pub(super) fn is_at(&self, port: usize) -> bool {
        self.access.as_ref().is_some_and(|own| own.port == port)
    }

    /// Returns the details of a session that was made from a template.
    pub(super) fn made(&self) -> Option<&Made> {
        self.access.as_ref()?.made.as_ref()
    }

    /// Returns the details of a session that was made from a template, to be changed.
    pub(super) fn made_mut(&mut self) -> Option<&mut Made> {
        self.access.as_mut()?.made.as_mut()
    }
}

/// The port of an acceptor's session, and who may log on.
pub(super) struct Access {
    pub(super) port: usize,
    /// The networks that may log on, of those that may connect to the port.
    pub(super) allow: AllowList,
    /// The certificates that admit a client.
    pub(super) names: ClientNames,
    /// The details of a session that was made from a template.
    pub(super) made: Option<Made>,
}

/// A session that was made from a template, for a Logon or by an operator.
pub(super) struct Made {
    /// The index of the wildcard among those of its port.
    pub(super) wildcard: usize,
    /// The folder of its journal, if that was created for it.
    pub(super) fresh: Option<PathBuf>,
    /// Whether the session has been logged on.
    pub(super) has_logged_on: bool,
    /// Whether an operator made it: it stays until it is removed, even if it never logs on.
    pub(super) is_operators: bool,
    /// The time at which its last connection ended, or it was made.
    pub(super) parted: u64,
}
