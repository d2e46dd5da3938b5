//! The sessions of DBN as operators view them.

use super::dbn_key::DbnKey;
use crate::operator::which::Which;
use fanfare_engine::poll::Waker;
use fanfare_market::dbn::live::LiveSchemas;
use fanfare_wire::UtcTimestamp;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A session of DBN. The numbers are those of its thread's last update.
pub(crate) struct DbnSeat {
    /// The session, as it was when it logged on.
    pub(crate) logon: DbnLogon,
    reading: Numbers,
    end: Mutex<Option<DbnEnd>>,
    bell: Bell,
}

/// The session that takes a place.
pub(crate) struct DbnLogon {
    /// The number of the session.
    pub(crate) session: u64,
    /// The key that the client has used, if it has a user.
    pub(crate) key: Option<DbnKey>,
    /// The user's name, or an empty text if it has no user.
    pub(crate) user: Arc<str>,
    pub(crate) peer: SocketAddr,
    pub(crate) since: UtcTimestamp,
    /// The value of `client` in the request to authenticate, or an empty text.
    pub(crate) client: Box<str>,
}

/// The way in which an operator ends a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DbnEnd {
    /// With an error record that has this text.
    LogOut(String),
    Disconnect,
}

/// The measures that the thread of a session records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DbnReading {
    pub(crate) is_started: bool,
    pub(crate) schemas: LiveSchemas,
    /// The instruments that it subscribed to one by one.
    pub(crate) instruments: u64,
    /// The bytes queued for the client.
    pub(crate) queued: u64,
    /// The records that were dropped.
    pub(crate) skipped: u64,
}

#[derive(Default)]
struct Numbers {
    is_started: AtomicBool,
    schemas: AtomicU64,
    instruments: AtomicU64,
    queued: AtomicU64,
    skipped: AtomicU64,
}

/// A bell that notifies the thread of the sessions. Clones share it.
#[derive(Clone)]
pub(crate) struct Bell {
    rings: Arc<AtomicBool>,
    waker: Waker,
}

impl Bell {
    pub(crate) fn new(waker: Waker) -> Self {
        let rings = Arc::default();
        Self { rings, waker }
    }

    fn ring(&self) {
        self.rings.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Returns whether it was rung since the last call. Costs one load.
    #[inline]
    pub(crate) fn was_rung(&self) -> bool {
        self.rings.load(Ordering::Relaxed) && self.rings.swap(false, Ordering::Acquire)
    }
}

impl DbnSeat {
    pub(crate) fn new(logon: DbnLogon, bell: Bell) -> Self {
        Self {
            logon,
            reading: Numbers::default(),
            end: Mutex::new(None),
            bell,
        }
    }

    /// Returns whether an operator has selected it.
    pub(crate) fn is(&self, which: &Which) -> bool {
        which.is_of_dbn(self.logon.session, &self.logon.user)
    }

    /// Records the state of the session.
    pub(crate) fn set(&self, reading: DbnReading) {
        let own = &self.reading;
        own.is_started.store(reading.is_started, Ordering::Relaxed);
        let schemas = u64::from(reading.schemas.bits());
        own.schemas.store(schemas, Ordering::Relaxed);
        own.instruments
            .store(reading.instruments, Ordering::Relaxed);
        own.queued.store(reading.queued, Ordering::Relaxed);
        own.skipped.store(reading.skipped, Ordering::Relaxed);
    }

    pub(crate) fn reading(&self) -> DbnReading {
        let own = &self.reading;
        DbnReading {
            is_started: own.is_started.load(Ordering::Relaxed),
            schemas: LiveSchemas::of_bits(own.schemas.load(Ordering::Relaxed) as u16),
            instruments: own.instruments.load(Ordering::Relaxed),
            queued: own.queued.load(Ordering::Relaxed),
            skipped: own.skipped.load(Ordering::Relaxed),
        }
    }

    /// Requests its thread to end it.
    pub(crate) fn end(&self, how: DbnEnd) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        self.bell.ring();
    }

    /// Takes the request to end it, if there is one.
    pub(crate) fn take_end(&self) -> Option<DbnEnd> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.take()
    }
}
