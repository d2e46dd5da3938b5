//! Putting the agents together and on their threads.

use crate::bridge::config::Dds;
use crate::bridge::publish::BusPublisher;
use crate::bridge::subscribe::BusSubscriber;
use crate::bridge::{self, Plan};
use crate::config::{Config, ConfigError, FanOut, Idle, PortConfig, Threads};
use crate::counts::{IngressCounts, LobbyCounts, PeerCounts, WorkerCounts};
use crate::feed::config::Feed;
use crate::feed::publish::{SampleRing, TopicsPublisher};
use crate::feed::{self, FeedError, FeedSource, Outlets};
use crate::greeter::{self, Desk, Greeter};
use crate::ingress::Ingress;
use crate::lobby::Lobby;
use crate::notice::{self, Notice, NoticeReceiver, Notices};
use crate::peers::Peers;
use crate::rules::{RuleBook, SideRules};
use crate::seats::{SPARE, Seats};
use crate::source_rings::SourceRings;
use crate::versions::Versions;
use crate::worker::Worker;
use fanfare_dds::Domain;
use fanfare_engine::agent::{Agent, Composite, Crew, CrewError};
use fanfare_engine::counters::Counters;
use fanfare_engine::idle;
use fanfare_engine::poll::{Token, Waker};
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy};
use fanfare_engine::stop::Stop;
use fanfare_engine::tcp::{BindError, Listener};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep of a thread with nothing to do; timers are looked at after it.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The waker's place in a worker's poller: no connection has it.
const WAKER: Token = Token(u64::MAX);

/// A running gateway. Dropped, it stops and waits for its threads.
pub struct Gateway {
    crew: Crew,
    producers: SocketAddr,
    consumers: SocketAddr,
    counters: Counters,
    notices: Option<NoticeReceiver>,
    rules: [RuleBook; 2],
    config: Config,
}

/// Why a gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A value of the configuration is out of its range.
    #[error("configuration")]
    Config(#[from] ConfigError),
    /// A port could not be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The system gave no descriptor, thread or memory.
    #[error("cannot start")]
    System(#[from] io::Error),
    /// DDS could not be joined.
    #[error("dds")]
    Dds(#[from] fanfare_dds::Error),
    /// The feed could not be opened.
    #[error("feed")]
    Feed(#[from] FeedError),
    /// The ring takes no more readers; not expected.
    #[error("cannot start: the ring takes no more readers")]
    Ring,
}

impl Gateway {
    /// Listens on both ports and starts the threads. The gateway runs until `stop` is raised.
    ///
    /// # Errors
    /// See [`StartError`]; nothing is left running then.
    pub fn start(config: &Config, stop: Stop) -> Result<Self, StartError> {
        Self::start_with(config, stop, Vec::new())
    }

    /// As `start`, with agents of the caller's that share the first thread.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_with(
        config: &Config,
        stop: Stop,
        guests: Vec<Box<dyn Agent>>,
    ) -> Result<Self, StartError> {
        config.check()?;
        let counters = Counters::new();
        let (notices, received) = notice::channel();
        let rules = [&config.producers, &config.consumers]
            .map(|side| RuleBook::new(SideRules::new(config, side)));
        let builder = Builder {
            config,
            counters: &counters,
            notices,
            stop: &stop,
            rules: &rules,
        };
        let producers = Listener::bind(config.producers.address())?;
        let consumers = Listener::bind(config.consumers.address())?;
        let addresses = (producers.address()?, consumers.address()?);
        let mut agents = builder.agents(producers, consumers)?;
        agents.front.extend(guests);
        let crew = builder.crew(agents, stop.clone())?;
        let (producers, consumers) = addresses;
        Ok(Self {
            crew,
            producers,
            consumers,
            counters,
            notices: Some(received),
            rules,
            config: config.clone(),
        })
    }

    /// How many threads its agents have.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.crew.threads()
    }

    /// Where producers connect.
    #[must_use]
    pub fn producers(&self) -> SocketAddr {
        self.producers
    }

    /// Where consumers connect.
    #[must_use]
    pub fn consumers(&self) -> SocketAddr {
        self.consumers
    }

    /// All counters; readable at any time.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// As [`total`], so far.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        total(&self.counters, name)
    }

    /// What happened since the last look: sessions that came and went. Nothing once
    /// [`take_notices`](Self::take_notices) was called.
    pub fn notices(&self) -> impl Iterator<Item = Notice> + '_ {
        self.notices.iter().flat_map(NoticeReceiver::iter)
    }

    /// The receiving end of the notices, for a thread that prints them; `None` the second time.
    pub fn take_notices(&mut self) -> Option<NoticeReceiver> {
        self.notices.take()
    }

    /// Takes `sessions` and `max_sessions` of both sides, and `[limits]` without `message_bytes`,
    /// from a new configuration. They hold for connections from then on; sessions that are logged
    /// on stay. Returns the keys that differ from the configuration of the start and take effect
    /// only with a new start.
    ///
    /// # Errors
    /// A value is out of its range; nothing is changed then.
    pub fn reload(&self, config: &Config) -> Result<Vec<&'static str>, ConfigError> {
        config.check()?;
        let sides = [&config.producers, &config.consumers];
        for (rules, side) in self.rules.iter().zip(sides) {
            rules.reload(config, side);
        }
        Ok(self.config.fixed_keys_changed(config))
    }

    /// The flag that stops it.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.crew.stop()
    }

    /// Waits until all threads have ended: each logs its sessions out first.
    ///
    /// # Errors
    /// The first agent that failed.
    pub fn join(self) -> Result<(), CrewError> {
        self.crew.join()
    }
}

/// The sum of a counter over all agents of a gateway that have one of this name: of counters that
/// were cloned before [`Gateway::join`], what it was in the end.
#[must_use]
pub fn total(counters: &Counters, name: &str) -> u64 {
    let of = |label: &str| label == name || label.ends_with(&format!("_{name}"));
    let all = counters.snapshot();
    let of_name = all.iter().filter(|reading| of(&reading.label));
    of_name.map(|reading| reading.value).sum()
}

struct Builder<'a> {
    config: &'a Config,
    counters: &'a Counters,
    notices: Notices,
    stop: &'a Stop,
    rules: &'a [RuleBook; 2],
}

/// The agents, in the order of the threads they would have.
struct Agents {
    /// Ingress, greeter, feed and DDS subscriber: all only take in.
    front: Vec<Box<dyn Agent>>,
    workers: Workers,
    /// Have threads of their own, whatever the configuration: they may wait for DDS.
    alone: Vec<Box<dyn Agent>>,
}

type Workers = Vec<Box<dyn Agent>>;

/// The rings of the sources, and who reads them.
#[derive(Default)]
struct Rings {
    /// One for each source.
    sources: Vec<Broadcast>,
    wakers: Vec<Waker>,
    /// Reading ends of the rings to DDS.
    to_dds: Vec<BroadcastReader>,
    /// Of the consumers.
    versions: Versions,
}

impl Builder<'_> {
    fn agents(&self, producers: Listener, consumers: Listener) -> Result<Agents, StartError> {
        let config = self.config;
        let dds = &config.dds;
        let ring = || Broadcast::new(config.ring_bytes, config.workers, Policy::Gate);
        let mut rings = Rings::default();
        rings.sources.push(ring());
        let sources = usize::from(dds.subscribe.is_some()) + config.feeds.len();
        rings.sources.extend((0..sources).map(|_| ring()));
        let (workers, desks) = self.workers(&mut rings)?;
        let publisher_waker = Waker::detached()?;
        if dds.publish.is_some() {
            rings.wakers.push(publisher_waker.clone());
        }
        let source_rings = self.source_rings(&mut rings, dds.publish.is_some())?;
        let sides = [&config.producers, &config.consumers];
        let [of_producers, of_consumers] = Seats::of_process(sides.map(|side| side.max_sessions));
        let [producer_rules, consumer_rules] = self.rules;
        let lobby = self.lobby("producers", producers, producer_rules, of_producers)?;
        let peers = self.peers("ingress", Versions::default())?;
        let counts = IngressCounts::new(self.counters);
        let all = config.fan_out == FanOut::All;
        let ingress = Ingress::new(lobby, peers, source_rings, counts, all);
        let lobby = self.lobby("consumers", consumers, consumer_rules, of_consumers)?;
        let greeter = Greeter::new(lobby, desks);
        let mut front: Vec<Box<dyn Agent>> = vec![Box::new(ingress), Box::new(greeter)];
        let domains = Domains::open(dds)?;
        let channels: Vec<String> = config.feeds.iter().map(Feed::channel).collect();
        let plan = self.plan(&channels);
        if let (Some(end), Some(domain)) = (&dds.subscribe, &domains.subscribe) {
            let source_rings = self.source_rings(&mut rings, dds.relay)?;
            let waker = Waker::detached()?;
            front.push(Box::new(BusSubscriber::open(
                end,
                domain,
                source_rings,
                waker,
                plan,
            )?));
        }
        let mut alone: Vec<Box<dyn Agent>> = Vec::new();
        for feed in &config.feeds {
            let source_rings = self.source_rings(&mut rings, dds.publish.is_some())?;
            let (source, publisher) = self.feed(feed, source_rings, &rings.versions, plan)?;
            front.push(Box::new(source));
            alone.extend(publisher.map(|agent| Box::new(agent) as Box<dyn Agent>));
        }
        if let (Some(end), Some(domain)) = (&dds.publish, &domains.publish) {
            let publisher = BusPublisher::open(end, domain, rings.to_dds, publisher_waker, plan)?;
            alone.push(Box::new(publisher));
        }
        Ok(Agents {
            front,
            workers,
            alone,
        })
    }

    /// The feed, and the agent that publishes its messages on topics of their own.
    fn feed(
        &self,
        feed: &Feed,
        source_rings: SourceRings,
        versions: &Versions,
        plan: Plan<'_>,
    ) -> Result<(FeedSource, Option<TopicsPublisher>), StartError> {
        let program = Arc::new(feed::templates(feed, plan.notices)?);
        let size = self.config.ring_bytes;
        let (mut ring, mut publisher) = (None, None);
        if let Some(topics) = &feed.publish {
            let waker = Waker::detached()?;
            let mapping = Arc::new(feed::mapping(topics, Arc::clone(&program))?);
            let (writer, reader) =
                SampleRing::new(topics, &mapping, size, waker.clone()).ok_or(StartError::Ring)?;
            publisher = Some(TopicsPublisher::open(topics, mapping, reader, waker, plan)?);
            ring = Some(writer);
        }
        let outlets = Outlets {
            source_rings,
            versions: versions.clone(),
            to_topics: ring,
            ring_bytes: size,
        };
        let source = FeedSource::open(feed, program, outlets, plan)?;
        Ok((source, publisher))
    }

    /// The workers, each with a reading end of every source's ring, and the ways to them.
    fn workers(&self, rings: &mut Rings) -> Result<(Workers, Vec<Desk>), StartError> {
        let config = self.config;
        let mut workers = Workers::new();
        let mut desks = Vec::new();
        for i in 0..config.workers {
            let name = format!("worker{i}");
            let peers = self.peers(&name, rings.versions.clone())?;
            let waker = Waker::new(peers.poller(), WAKER)?;
            rings.wakers.push(waker.clone());
            let (desk, door) = greeter::way(waker);
            desks.push(desk);
            let readers = rings.sources.iter_mut().map(Broadcast::subscribe);
            let readers = readers
                .collect::<Option<Vec<_>>>()
                .ok_or(StartError::Ring)?;
            let counts = WorkerCounts::new(self.counters, &name);
            let notices = self.notices.clone();
            workers.push(Box::new(Worker::new(
                name, config, readers, peers, door, counts, notices,
            )));
        }
        Ok((workers, desks))
    }

    /// The next source's way in, with one to DDS if what it brings goes there.
    fn source_rings(&self, rings: &mut Rings, to_dds: bool) -> Result<SourceRings, StartError> {
        let mut dds = to_dds.then(|| Broadcast::new(self.config.ring_bytes, 1, Policy::Lap));
        if let Some(dds) = &mut dds {
            rings.to_dds.push(dds.subscribe().ok_or(StartError::Ring)?);
        }
        if rings.sources.is_empty() {
            return Err(StartError::Ring);
        }
        let ring = rings.sources.remove(0);
        Ok(SourceRings::new(ring, dds, rings.wakers.clone()))
    }

    fn plan<'a>(&'a self, channels: &'a [String]) -> Plan<'a> {
        Plan {
            origin: bridge::new_origin(),
            channels,
            message_bytes: self.config.limits.message_bytes,
            counters: self.counters,
            notices: &self.notices,
            stop: self.stop,
        }
    }

    fn peers(&self, agent: &str, versions: Versions) -> io::Result<Peers> {
        let counts = PeerCounts::new(self.counters, agent);
        Peers::new(self.config, counts, self.notices.clone(), versions)
    }

    fn lobby(
        &self,
        side: &str,
        listener: Listener,
        rules: &RuleBook,
        seats: Seats,
    ) -> io::Result<Lobby> {
        let counts = LobbyCounts::new(self.counters, side);
        Lobby::new(listener, rules.open(), seats, counts, self.notices.clone())
    }

    fn crew(&self, agents: Agents, stop: Stop) -> io::Result<Crew> {
        let idle = match self.config.idle {
            Idle::Park => idle::Idle::Wait(LONGEST_SLEEP),
            Idle::Spin => idle::Idle::Spin,
        };
        let Agents {
            mut front,
            workers,
            alone,
        } = agents;
        let is_shared = match self.config.threads {
            Threads::Auto => workers.len() == 1,
            Threads::Shared => true,
            Threads::Dedicated => false,
        };
        let threads = if is_shared {
            front.extend(workers);
            vec![front]
        } else {
            let alone = workers.into_iter().map(|worker| vec![worker]);
            std::iter::once(front).chain(alone).collect()
        };
        let alone = alone.into_iter().map(|agent| vec![agent]);
        let mut crew = Crew::new(stop);
        for (i, agents) in threads.into_iter().chain(alone).enumerate() {
            crew.spawn(
                Composite::new(agents),
                idle,
                self.config.pin.get(i).copied(),
            )?;
        }
        Ok(crew)
    }
}

/// The participants of both sides of DDS: one, if both are in the same domain.
#[derive(Default)]
struct Domains {
    publish: Option<Domain>,
    subscribe: Option<Domain>,
}

impl Domains {
    fn open(dds: &Dds) -> Result<Self, fanfare_dds::Error> {
        let publish = dds.publish.as_ref();
        let publish = publish.map(|end| end.participant().open()).transpose()?;
        let shared = match (&dds.publish, &dds.subscribe) {
            (Some(a), Some(b)) if a.shares_domain(b) => publish.clone(),
            _ => None,
        };
        let subscribe = match (shared, &dds.subscribe) {
            (None, Some(end)) => Some(end.participant().open()?),
            (shared, _) => shared,
        };
        Ok(Self { publish, subscribe })
    }
}

/// Room in the process for the sockets of both sides, asked for before they come.
#[must_use]
pub fn descriptors_wanted(producers: &PortConfig, consumers: &PortConfig) -> u64 {
    (producers.max_sessions + consumers.max_sessions) as u64 + 2 * SPARE
}
