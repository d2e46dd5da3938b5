//! The consumers' port: hands each new session to the worker with the fewest.

use crate::lobby::{Lobby, Newcomer};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Hands consumers that log on to the workers.
pub(crate) struct Greeter {
    lobby: Lobby,
    desks: Vec<Desk>,
}

/// The way to one worker.
pub(crate) struct Desk {
    newcomers: Sender<Newcomer>,
    load: Arc<AtomicUsize>,
    waker: Waker,
}

/// A worker's end of it.
pub(crate) struct Door {
    newcomers: Receiver<Newcomer>,
    load: Arc<AtomicUsize>,
    pub(crate) waker: Waker,
}

/// A way to a worker that `waker` wakes.
pub(crate) fn way(waker: Waker) -> (Desk, Door) {
    let (sender, receiver) = channel();
    let load = Arc::new(AtomicUsize::new(0));
    let desk = Desk {
        newcomers: sender,
        load: Arc::clone(&load),
        waker: waker.clone(),
    };
    (
        desk,
        Door {
            newcomers: receiver,
            load,
            waker,
        },
    )
}

impl Door {
    /// The next new session. Those that wait are bounded: each has a seat of the port's.
    pub(crate) fn next(&self) -> Option<Newcomer> {
        self.newcomers.try_recv().ok()
    }

    /// Tells the greeter how many connections there are.
    pub(crate) fn tell_load(&self, connections: usize) {
        self.load.store(connections, Ordering::Relaxed);
    }
}

impl Greeter {
    pub(crate) const fn new(lobby: Lobby, desks: Vec<Desk>) -> Self {
        Self { lobby, desks }
    }
}

/// The worker with the fewest sessions gets it; it counts them itself from then on.
fn hand_over(desks: &[Desk], newcomer: Newcomer) {
    let fewest = desks
        .iter()
        .min_by_key(|desk| desk.load.load(Ordering::Relaxed));
    let Some(desk) = fewest else { return };
    desk.load.fetch_add(1, Ordering::Relaxed);
    if desk.newcomers.send(newcomer).is_ok() {
        desk.waker.wake();
    }
}

impl Agent for Greeter {
    fn name(&self) -> &str {
        "greeter"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let desks = &self.desks;
        Ok(self
            .lobby
            .turn(now, |newcomer| hand_over(desks, newcomer))?)
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.lobby.descriptor());
    }

    fn after_sleep(&mut self) {
        self.lobby.look_now();
    }
}
