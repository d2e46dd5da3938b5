//! The consumers' listener: hands each new connection to the worker with the fewest.

use crate::notice::{Notice, Notices, PeerEnd, Refusal};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::tcp::{Accepted, Listener, Stream};
use fanfare_fix::session::Now;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Accepts consumers' connections.
pub(crate) struct Greeter {
    listener: PacedListener,
    desks: Vec<Desk>,
    notices: Notices,
}

/// The way to one worker.
pub(crate) struct Desk {
    streams: Sender<Stream>,
    load: Arc<AtomicUsize>,
    waker: Waker,
}

/// A worker's end of it.
pub(crate) struct Door {
    streams: Receiver<Stream>,
    load: Arc<AtomicUsize>,
    pub(crate) waker: Waker,
}

/// A way to a worker that `waker` wakes.
pub(crate) fn way(waker: Waker) -> (Desk, Door) {
    let (sender, receiver) = channel();
    let load = Arc::new(AtomicUsize::new(0));
    let desk = Desk {
        streams: sender,
        load: Arc::clone(&load),
        waker: waker.clone(),
    };
    (
        desk,
        Door {
            streams: receiver,
            load,
            waker,
        },
    )
}

/// How long a busy thread leaves new connections waiting, in nanoseconds: looking is a system
/// call, and messages come first.
const PACE: u64 = 1_000_000;

/// A listener that is looked at once a millisecond, and after each sleep.
pub(crate) struct PacedListener {
    pub(crate) inner: Listener,
    next_look: u64,
}

impl PacedListener {
    pub(crate) fn new(inner: Listener) -> Self {
        Self {
            inner,
            next_look: 0,
        }
    }

    /// The next new connection, if it is time to look and there is one.
    pub(crate) fn accept(&mut self, now: Now) -> std::io::Result<Accepted> {
        if now.mono < self.next_look {
            return Ok(Accepted::Nobody);
        }
        let accepted = self.inner.accept()?;
        if matches!(accepted, Accepted::Nobody) {
            self.next_look = now.mono + PACE;
        }
        Ok(accepted)
    }

    /// The thread has slept, perhaps until somebody came.
    pub(crate) fn look_now(&mut self) {
        self.next_look = 0;
    }
}

impl Door {
    /// The next new connection. Its number is bounded: the greeter takes one a turn.
    pub(crate) fn next(&self) -> Option<Stream> {
        self.streams.try_recv().ok()
    }

    /// Tells the greeter how many connections there are.
    pub(crate) fn tell_load(&self, connections: usize) {
        self.load.store(connections, Ordering::Relaxed);
    }
}

impl Greeter {
    pub(crate) fn new(listener: Listener, desks: Vec<Desk>, notices: Notices) -> Self {
        Self {
            listener: PacedListener::new(listener),
            desks,
            notices,
        }
    }

    /// The worker with the fewest connections gets it; it counts them itself from then on.
    fn hand_over(&self, stream: Stream) {
        let fewest = self
            .desks
            .iter()
            .min_by_key(|desk| desk.load.load(Ordering::Relaxed));
        let Some(desk) = fewest else { return };
        desk.load.fetch_add(1, Ordering::Relaxed);
        if desk.streams.send(stream).is_ok() {
            desk.waker.wake();
        }
    }
}

impl Agent for Greeter {
    fn name(&self) -> &str {
        "greeter"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        match self.listener.accept(now)? {
            Accepted::Stream(stream) => self.hand_over(stream),
            Accepted::Refused => {
                let peer = self.listener.inner.address()?;
                let end = PeerEnd::Refused(Refusal::NoDescriptor);
                self.notices.tell(Notice::Ended {
                    session: None,
                    peer,
                    end,
                    left_out: 0,
                });
            }
            Accepted::Nobody => return Ok(0),
        }
        Ok(1)
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.listener.inner.as_fd());
    }

    fn after_sleep(&mut self) {
        self.listener.look_now();
    }
}
