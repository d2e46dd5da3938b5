//! One worker: a group of consumers' sessions, to each of which every marked message goes.

use crate::batch::Batch;
use crate::counts::WorkerCounts;
use crate::greeter::Door;
use crate::notice::{Notices, PeerEnd};
use crate::peers::{Discard, Peers};
use crate::{Config, SlowPolicy};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::ring::BroadcastReader;
use fanfare_fix::session::Now;
use std::os::fd::BorrowedFd;

/// Owns its consumers' sessions and a reading end of each source's ring.
pub(crate) struct Worker {
    name: String,
    rings: Vec<BroadcastReader>,
    peers: Peers,
    batch: Batch,
    door: Door,
    counts: WorkerCounts,
    notices: Notices,
    queue_bytes: usize,
    policy: SlowPolicy,
}

impl Worker {
    pub(crate) fn new(
        name: String,
        config: &Config,
        rings: Vec<BroadcastReader>,
        peers: Peers,
        door: Door,
        counts: WorkerCounts,
        notices: Notices,
    ) -> Self {
        Self {
            name,
            rings,
            peers,
            batch: Batch::new(config.limits.message_bytes),
            door,
            counts,
            notices,
            queue_bytes: config.slow_consumer.queue_bytes,
            policy: config.slow_consumer.policy,
        }
    }

    /// Sends one batch of a ring to all consumers. Returns the number of messages.
    fn fan_out(&mut self, now: Now, ring: usize) -> usize {
        let Some(ring) = self.rings.get_mut(ring) else {
            return 0;
        };
        let messages = self.batch.fill(ring, now);
        if messages == 0 {
            return 0;
        }
        let Self {
            batch,
            counts,
            queue_bytes,
            policy,
            notices,
            ..
        } = self;
        self.peers.for_each_live(now, |live, connection| {
            let done = batch.deliver(now, live, connection, *queue_bytes)?;
            counts.deliveries.increment(done.sent as u64);
            if done.unsent > 0 {
                match policy {
                    SlowPolicy::Drop => {
                        counts.dropped.increment(done.unsent as u64);
                        let notice = live.report(now, connection.stream().peer());
                        notice.into_iter().for_each(|notice| notices.tell(notice));
                    }
                    SlowPolicy::Disconnect => {
                        counts.slow.increment(1);
                        let queued = connection.queued();
                        return Err(PeerEnd::SlowConsumer { queued });
                    }
                }
            }
            Ok(())
        });
        messages
    }

    fn welcome(&mut self, now: Now) -> usize {
        let Some(newcomer) = self.door.next() else {
            return 0;
        };
        self.peers.seat(now, newcomer, &mut Discard);
        1
    }
}

impl Agent for Worker {
    fn name(&self) -> &str {
        &self.name
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let sent: usize = (0..self.rings.len()).map(|i| self.fan_out(now, i)).sum();
        let served = self.peers.turn(now, &mut Discard)?;
        let welcomed = self.welcome(now);
        if served + welcomed > 0 {
            self.door.tell_load(self.peers.len());
        }
        Ok(sent + served + welcomed)
    }

    fn on_close(&mut self, now: Now) {
        self.peers.say_goodbye(now);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.peers.descriptor());
    }

    fn before_sleep(&mut self) {
        self.door.waker.prepare_sleep();
    }

    fn after_sleep(&mut self) {
        self.door.waker.awake();
    }
}
