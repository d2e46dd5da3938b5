//! The producers' side: sessions in, marked messages into the ring.

use crate::FANOUT_ID;
use crate::counts::IngressCounts;
use crate::greeter::PacedListener;
use crate::notice::Refusal;
use crate::peers::{Peers, Sink};
use crate::record;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::Broadcast;
use fanfare_engine::tcp::{Accepted, Listener};
use fanfare_fix::session::{AppMessage, Now};
use std::os::fd::{AsFd, BorrowedFd};

/// Owns the producers' sessions and the writing end of the ring.
pub(crate) struct Ingress {
    listener: PacedListener,
    peers: Peers,
    route: Route,
    /// Of the workers' threads, where they are others.
    wakers: Vec<Waker>,
}

struct Route {
    ring: Broadcast,
    counts: IngressCounts,
    /// Whether this turn wrote to the ring.
    wrote: bool,
}

impl Ingress {
    pub(crate) fn new(
        listener: Listener,
        peers: Peers,
        ring: Broadcast,
        counts: IngressCounts,
        wakers: Vec<Waker>,
    ) -> Self {
        Self {
            listener: PacedListener::new(listener),
            peers,
            route: Route {
                ring,
                counts,
                wrote: false,
            },
            wakers,
        }
    }

    fn accept(&mut self, now: Now) -> std::io::Result<usize> {
        match self.listener.accept(now)? {
            Accepted::Stream(stream) => self.peers.admit(now, stream),
            Accepted::Refused => {
                let address = self.listener.inner.address()?;
                self.peers.refused(address, Refusal::NoDescriptor);
            }
            Accepted::Nobody => return Ok(0),
        }
        Ok(1)
    }
}

impl Agent for Ingress {
    fn name(&self) -> &str {
        "ingress"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let read = self.peers.turn(now, &mut self.route)?;
        if self.route.wrote {
            self.route.wrote = false;
            self.wakers.iter().for_each(Waker::wake);
        }
        Ok(read + self.accept(now)?)
    }

    fn on_close(&mut self, now: Now) {
        self.peers.say_goodbye(now);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend([self.peers.descriptor(), self.listener.inner.as_fd()]);
    }

    fn after_sleep(&mut self) {
        self.listener.look_now();
    }
}

impl Sink for Route {
    /// The workers always drain the ring (a slow consumer does not hold them up), so it has room
    /// again soon. A message takes no more there than on the wire: its header is left out.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.ring.has_room(bytes)
    }

    fn take(&mut self, message: &AppMessage<'_>) {
        self.counts.received.increment(1);
        let message = &message.message;
        if message.get(FANOUT_ID).is_none() {
            return;
        }
        let written = record::shared(message).and_then(|body| {
            let len = record::len(&body);
            self.ring
                .write(0, len, |room| record::write(&body, room))
                .ok()
        });
        if written.is_some() {
            self.counts.marked.increment(1);
            self.wrote = true;
        } else {
            self.counts.unroutable.increment(1);
        }
    }
}
