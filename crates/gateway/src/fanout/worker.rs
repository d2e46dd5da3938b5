//! A worker: the handler of a group of consumers' sessions, which sends each of them the messages
//! of all sources, or the market data that it has requested.

use crate::counts::WorkerCounts;
use crate::fanout::audience::Audience;
use crate::fanout::batch::Batch;
use crate::fanout::consumer::Consumer;
use crate::fanout::hole::Hole;
use crate::fanout::versions::Versions;
use crate::notice::PeerEnd;
use crate::ports::reports::Reports;
use crate::service::Service;
use crate::stages::OutletStages;
use crate::{Config, Mode, SlowPolicy};
use fanfare_engine::host::{Handler, LogTrouble, Peer, Peers, SessionKey};
use fanfare_engine::ring::BroadcastReader;
use fanfare_fix::codec::{DecodeError, Garbled};
use fanfare_fix::session::{AppMessage, DisconnectReason, Event, SECOND, SessionId};
use std::io;

/// The interval at which consumers are checked for pending reports, in nanoseconds.
const TICK: u64 = SECOND / 10;

/// The handler of a group of consumers' sessions, which owns a reading end of each source's ring.
pub(crate) struct Worker {
    rings: Vec<BroadcastReader>,
    batch: Batch,
    /// The consumers that are logged on, indexed by session.
    consumers: Vec<Option<Box<Consumer>>>,
    audience: Audience,
    /// The consumers with unreported missing messages.
    with_holes: Vec<SessionKey>,
    versions: Versions,
    measures: WorkerMeasures,
    reports: Reports,
    queue_bytes: usize,
    policy: SlowPolicy,
    next_tick: u64,
    /// The service that responds to requests for market data, if a feed is a market.
    service: Option<Service>,
    mode: Mode,
}

/// The counters and stages of a worker.
pub(crate) struct WorkerMeasures {
    pub(crate) counts: WorkerCounts,
    /// The stages of the messages for all, if measured.
    pub(crate) stages: Option<OutletStages>,
}

impl Worker {
    pub(crate) fn new(
        config: &Config,
        rings: Vec<BroadcastReader>,
        versions: Versions,
        measures: WorkerMeasures,
        reports: Reports,
        audience: Audience,
        service: Option<Service>,
    ) -> Self {
        Self {
            service,
            mode: config.mode,
            audience,
            rings,
            batch: Batch::new(config.limits.message_bytes),
            consumers: Vec::new(),
            with_holes: Vec::new(),
            versions,
            measures,
            reports,
            queue_bytes: config.slow_consumer.queue_bytes,
            policy: config.slow_consumer.policy,
            next_tick: 0,
        }
    }

    /// Sends one batch of a ring to all consumers. Returns the number of messages.
    fn fan_out(&mut self, peers: &mut Peers<'_>, ring: usize) -> usize {
        let Some(ring) = self.rings.get_mut(ring) else {
            return 0;
        };
        let WorkerMeasures { counts, stages } = &mut self.measures;
        let messages = self.batch.fill(ring, peers.now(), stages.as_mut());
        if messages == 0 {
            return 0;
        }
        let mut sent = 0;
        for mut peer in peers.logged_on() {
            let key = peer.key();
            let Some(Some(consumer)) = self.consumers.get_mut(key.index()) else {
                continue;
            };
            if !consumer.is_of_all {
                continue;
            }
            let done = self.batch.deliver(&mut peer, consumer, self.queue_bytes);
            if consumer.enters_list() {
                self.with_holes.push(key);
            }
            let why = match done {
                Err(why) => Some(why),
                Ok(done) => {
                    sent += done.sent;
                    match (done.unsent, self.policy) {
                        (0, _) => None,
                        (unsent, SlowPolicy::Drop) => {
                            counts.dropped.increment(unsent as u64);
                            let notice = consumer.report(&peer);
                            notice.into_iter().for_each(|n| self.reports.send(n));
                            None
                        }
                        (_, SlowPolicy::Disconnect) => {
                            let queued = peer.queued();
                            Some(PeerEnd::SlowConsumer { queued })
                        }
                    }
                }
            };
            if let Some(why) = why {
                end(consumer, why, counts);
                peer.close();
            }
        }
        counts.deliveries.increment(sent as u64);
        if let Some(stages) = stages {
            stages.end(sent > 0);
        }
        messages
    }

    /// Updates the entitlements of all consumers after a change of the users.
    #[cold]
    fn look_at_users(&mut self, peers: &mut Peers<'_>) {
        for peer in peers.logged_on() {
            if let Some(Some(consumer)) = self.consumers.get_mut(peer.key().index()) {
                consumer.is_limited = !self.audience.has(peer.id());
                let belongs = is_of_all(self.mode, consumer);
                consumer.belongs_to_all(belongs, &self.versions);
            }
        }
    }

    /// Reports missing messages to the consumers whose queues have capacity again. Returns the
    /// number of consumers that were sent any.
    fn send_holes(&mut self, peers: &mut Peers<'_>, limit: usize) -> usize {
        let Self {
            consumers,
            with_holes,
            ..
        } = self;
        let mut told = 0;
        with_holes.retain(|&key| {
            let consumer = consumers.get_mut(key.index()).and_then(Option::as_mut);
            let (Some(consumer), Some(mut peer)) = (consumer, peers.get(key)) else {
                return false;
            };
            told += usize::from(consumer.send_holes(&mut peer, limit));
            consumer.stays_listed()
        });
        told
    }

    fn tick(&mut self, peers: &mut Peers<'_>) {
        for peer in peers.logged_on() {
            let consumer = self.consumers.get_mut(peer.key().index());
            let notice = consumer.and_then(|own| own.as_mut()?.report(&peer));
            notice.into_iter().for_each(|n| self.reports.send(n));
        }
    }

    /// Reads the events of the feeds, and sends the messages that sessions have requested. Returns
    /// the number of messages.
    fn serve(&mut self, peers: &mut Peers<'_>) -> usize {
        let Some(service) = &mut self.service else {
            return 0;
        };
        let turn = service.turn(peers);
        let counts = &self.measures.counts;
        counts.deliveries.increment(turn.sent as u64);
        counts.skipped.increment(turn.skipped);
        counts.lapped.increment(turn.lapped);
        for (key, why) in turn.ends {
            if let Some(mut peer) = peers.get(key) {
                self.log_out(&mut peer, why);
            }
        }
        if let Some(lost) = turn.lost {
            self.lose(peers, &lost);
        }
        turn.work
    }

    /// Ends the session of a consumer, and sends the reason if it can be written.
    fn log_out(&mut self, peer: &mut Peer<'_>, why: PeerEnd) {
        peer.logout(&why.to_string());
        let consumer = self.consumers.get_mut(peer.key().index());
        if let Some(Some(consumer)) = consumer {
            end(consumer, why, &self.measures.counts);
        }
    }

    /// Reports lost events to all sessions that have requested market data.
    #[cold]
    fn lose(&mut self, peers: &mut Peers<'_>, lost: &Hole) {
        for peer in peers.logged_on() {
            let key = peer.key();
            let consumer = self.consumers.get_mut(key.index());
            if let Some(Some(consumer)) = consumer
                && self.service.as_ref().is_some_and(|own| own.has_asked(key))
            {
                consumer.miss(lost);
                if consumer.enters_list() {
                    self.with_holes.push(key);
                }
            }
        }
    }
}

/// Records the reason for which a session ends, and counts a consumer that is too slow. The first
/// reason is kept: a turn may find several.
fn end(consumer: &mut Consumer, why: PeerEnd, counts: &WorkerCounts) {
    if consumer.end.is_none() {
        if matches!(why, PeerEnd::SlowConsumer { .. }) {
            counts.slow.increment(1);
        }
        consumer.end = Some(why);
    }
}

/// Returns whether messages addressed to all are for a consumer.
fn is_of_all(mode: Mode, consumer: &Consumer) -> bool {
    mode == Mode::Broadcast && !consumer.has_asked && !consumer.is_limited
}

impl Handler for Worker {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.reports.message(peer, message);
        let Some(service) = &mut self.service else {
            return;
        };
        let why = service.on_message(peer, message);
        if let Some(Some(consumer)) = self.consumers.get_mut(peer.key().index()) {
            consumer.has_asked |= service.has_asked(peer.key());
            let belongs = is_of_all(self.mode, consumer);
            consumer.belongs_to_all(belongs, &self.versions);
        }
        if let Some(why) = why {
            self.log_out(peer, why);
        }
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let index = peer.key().index();
        if self.consumers.get(index).is_some_and(Option::is_some) {
            // The numbers of the session were reset while it is logged on.
            return;
        }
        if self.consumers.len() <= index {
            self.consumers.resize_with(index + 1, || None);
        }
        let mut consumer = Consumer::new(peer);
        consumer.is_limited = !self.audience.has(peer.id());
        let belongs = is_of_all(self.mode, &consumer);
        consumer.belongs_to_all(belongs, &self.versions);
        if let Some(service) = &mut self.service {
            service.on_logon(peer, consumer.version);
        }
        if let Some(place) = self.consumers.get_mut(index) {
            *place = Some(Box::new(consumer));
        }
        self.reports.logged_on(peer);
    }

    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        self.reports.broken(peer, error);
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        if let Some(service) = &mut self.service {
            service.on_end(peer.key());
        }
        let consumer = self.consumers.get_mut(peer.key().index());
        let consumer = consumer.and_then(Option::take);
        let (end, left_out) = match consumer {
            Some(mut consumer) => {
                consumer.belongs_to_all(false, &self.versions);
                (consumer.end, Some(consumer.left_out))
            }
            None => (None, None),
        };
        self.reports.ended(peer, reason, end, left_out);
    }

    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        self.reports.event(peer, event);
        // If it were skipped, it would be requested again and be as long.
        if let Event::Garbled(DecodeError::Garbled(why)) = event
            && matches!(why, Garbled::TooLong | Garbled::BodyLengthTooLarge)
        {
            let most = peer.config().max_message;
            self.log_out(peer, PeerEnd::TooLong { most });
        }
    }

    fn on_log(&mut self, trouble: &LogTrouble) {
        self.reports.log(trouble);
    }

    fn on_panic(&mut self, session: Option<&SessionId>, message: &str) {
        self.reports.panicked(session, message);
    }

    fn is_due(&self) -> bool {
        self.rings.iter().any(|ring| ring.backlog() > 0)
            || self.service.as_ref().is_some_and(Service::has_events)
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if self.audience.has_changed() {
            self.look_at_users(peers);
        }
        let rings = 0..self.rings.len();
        let mut sent: usize = rings.map(|ring| self.fan_out(peers, ring)).sum();
        sent += self.serve(peers);
        let mut told = 0;
        if !self.with_holes.is_empty() {
            told = self.send_holes(peers, self.queue_bytes);
        }
        let (consumers, service) = (&self.consumers, &self.service);
        self.reports.look(peers, |key| {
            let served = service.as_ref().map(|own| own.served(key));
            let mut served = served.unwrap_or_default();
            let consumer = consumers.get(key.index()).and_then(Option::as_ref);
            served.skipped += consumer.map_or(0, |own| own.left_out);
            served
        });
        let now = peers.now();
        if now.mono >= self.next_tick {
            self.next_tick = now.mono + TICK;
            self.tick(peers);
        }
        sent + told
    }

    fn next_turn(&self) -> Option<u64> {
        self.service.as_ref().and_then(Service::next_turn)
    }

    fn on_close(&mut self, peers: &mut Peers<'_>) {
        self.send_holes(peers, usize::MAX);
        for mut peer in peers.logged_on() {
            peer.logout(SHUTTING_DOWN);
        }
    }
}

/// Text(58) of the Logouts of a gateway that shuts down.
pub(crate) const SHUTTING_DOWN: &str = "shutting down";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{SessionCounts, total};
    use crate::market::ring::{EventReader, EventRing};
    use crate::notice::audit::Audit;
    use crate::notice::channel;
    use crate::ports::registry::Registry;
    use crate::ports::seats::Records;
    use crate::service::ServiceConfig;
    use crate::users::roster::Roster;
    use crate::users::{PortName, UserBook, UserSet};
    use fanfare_engine::agent::Agent;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::host::Host;
    use fanfare_engine::poll::Waker;
    use fanfare_fix::session::Now;
    use fanfare_market::book::BookConfig;
    use fanfare_market::{Delivery, Event};
    use fanfare_wire::UtcTimestamp;

    /// The events of a message.
    const MESSAGE: usize = 200;

    /// Returns the host of a worker that serves these events.
    fn host(counters: &Counters, events: EventReader) -> Host<Worker> {
        let users = || UserBook::new(UserSet::default());
        let service = ServiceConfig {
            books: vec![BookConfig::by_price(8).unwrap()],
            feeds: Vec::new(),
            users: users(),
            audit: Audit::default(),
            queue_bytes: 1 << 20,
        };
        let records = Records {
            port: PortName::Consumers,
            roster: Roster::default(),
            audit: Audit::default(),
        };
        let worker = Worker::new(
            &Config::default(),
            Vec::new(),
            Versions::default(),
            WorkerMeasures {
                counts: WorkerCounts::new(counters, "worker0"),
                stages: None,
            },
            Reports::new(
                SessionCounts::new(counters, "worker0"),
                channel().0,
                Registry::new(1, 1 << 10),
                records,
            ),
            Audience::new(users()),
            Some(Service::new(service, events)),
        );
        Host::new(worker).unwrap()
    }

    fn event(number: u64) -> Event {
        Event {
            number,
            source: 1,
            ..Event::EMPTY
        }
    }

    #[test]
    fn events_that_were_overwritten_before_a_worker_read_them_are_counted() {
        let waker = || Waker::detached().unwrap();
        let mut ring = EventRing::new(1 << 16, 2, waker(), 1);
        let counters = Counters::new();
        let mut worker = host(&counters, ring.reader(waker()).unwrap());
        let mut other = ring.reader(waker()).unwrap();
        let mut turn = || {
            let now = Now {
                mono: SECOND,
                utc: UtcTimestamp::from_nanos(0),
            };
            worker.do_work(now).unwrap();
            total(&counters, "events_lapped")
        };
        ring.put(&mut [event(0); MESSAGE]);
        assert_eq!(turn(), 0);
        for _ in 0..100 {
            ring.put(&mut [event(0); MESSAGE]);
        }
        let (mut lost, mut read) = (0, 0);
        other.read(usize::MAX, |delivery| match delivery {
            Delivery::Lost { first, last } => lost += last - first + 1,
            Delivery::Event(..) => read += 1,
            _ => {}
        });
        assert_eq!(lost + read, 101 * MESSAGE as u64);
        assert!(lost > MESSAGE as u64 && read > 0, "{lost} {read}");
        // The worker has read the first message.
        assert_eq!(turn(), lost - MESSAGE as u64);
        // Numbers that no event has, as those of a log in which some are missing.
        ring.put_numbered(&[event(1_000_000)], false);
        assert_eq!(turn(), lost - MESSAGE as u64);
    }
}
