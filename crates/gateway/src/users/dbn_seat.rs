//! Sessions of DBN, as operators see them.

use fanfare_engine::poll::Waker;
use fanfare_market::dbn::live::LiveSchemas;
use fanfare_wire::UtcTimestamp;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One session. The numbers are as they were when its thread last looked after it.
pub(crate) struct DbnSeat {
    /// The number of the session.
    pub(crate) session: u64,
    /// The user's name; empty: a stranger.
    pub(crate) user: Arc<str>,
    pub(crate) peer: SocketAddr,
    pub(crate) since: UtcTimestamp,
    /// What the client calls itself.
    pub(crate) client: Box<str>,
    reading: Numbers,
    end: Mutex<Option<DbnEnd>>,
    bell: Bell,
}

/// How an operator ends a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DbnEnd {
    /// With an error record that has this text.
    LogOut(String),
    Disconnect,
}

/// What the thread of a session knows of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DbnReading {
    pub(crate) is_started: bool,
    pub(crate) schemas: LiveSchemas,
    /// Instruments that it subscribed to one by one.
    pub(crate) instruments: u64,
    /// Bytes that wait for the client.
    pub(crate) queued: u64,
    /// Records that were left out.
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

/// Calls the thread of the sessions. Clones are the same bell.
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

    /// Whether it was rung since the last call. Costs one load.
    #[inline]
    pub(crate) fn was_rung(&self) -> bool {
        self.rings.load(Ordering::Relaxed) && self.rings.swap(false, Ordering::Acquire)
    }
}

impl DbnSeat {
    pub(crate) fn new(
        (session, client): (u64, &str),
        user: Arc<str>,
        peer: SocketAddr,
        since: UtcTimestamp,
        bell: Bell,
    ) -> Self {
        Self {
            session,
            user,
            peer,
            since,
            client: client.into(),
            reading: Numbers::default(),
            end: Mutex::new(None),
            bell,
        }
    }

    /// Notes how the session is.
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

    /// Asks its thread to end it.
    pub(crate) fn end(&self, how: DbnEnd) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        self.bell.ring();
    }

    /// How it is to end, if it is.
    pub(crate) fn take_end(&self) -> Option<DbnEnd> {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.take()
    }
}
