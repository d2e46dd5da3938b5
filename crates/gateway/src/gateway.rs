//! The assembly of the agents and their threads.

pub(crate) mod descriptors;
mod events;
mod feeds;
pub(crate) mod handle;
pub(crate) mod numbering;
pub(crate) mod plan;
pub(crate) mod reloaded;
pub(crate) mod start_error;

use crate::config::{Config, FanOut, Idle, Threads};
use crate::counts::{IngressCounts, PortCounts, SessionCounts, WorkerCounts, total};
use crate::dbn::DbnAgent;
use crate::dds;
use crate::dds::publish::DdsPublisher;
use crate::dds::subscribe::DdsSubscriber;
use crate::dds::warnings::warnings;
use crate::fanout::audience::Audience;
use crate::fanout::ingress::Ingress;
use crate::fanout::rings::Rings;
use crate::fanout::source_rings::SourceRings;
use crate::fanout::worker::{Worker, WorkerMeasures};
use crate::feed::config::Feed;
use crate::gateway::handle::{GatewayHandle, Shared};
use crate::gateway::numbering::Numbering;
use crate::gateway::plan::Plan;
use crate::gateway::reloaded::Reloaded;
use crate::gateway::start_error::StartError;
use crate::history::{LogThreads, RawInlets, Rolling};
use crate::market::mappings::Mappings;
use crate::market::ring::EventReader;
use crate::notice::audit::Audit;
use crate::notice::{self, Notice, NoticeReceiver, Notices};
use crate::ports::agent::{HostEnd, PortAgent};
use crate::ports::config::PortConfig;
use crate::ports::handle::PortHandle;
use crate::ports::reports::Reports;
use crate::ports::rules::{PortRules, RuleBook};
use crate::ports::seats::Records;
use crate::service::Service;
use crate::stages::{End, StagePlan, Stages};
use crate::users::door::Door;
use crate::users::roster::Roster;
use crate::users::{PortName, UserBook, UserSet};
use crate::watch::{Watch, Watched};
use descriptors::spare;
use events::Events;
use fanfare_dds::Warnings;
use fanfare_engine::agent::{Agent, Composite, Crew, CrewError};
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{Handler, Host, HostHandle, LogOptions, MessageLog, Permits, Port};
use fanfare_engine::idle;
use fanfare_engine::poll::Waker;
use fanfare_engine::private;
use fanfare_engine::ring::{Broadcast, Policy};
use fanfare_engine::rotate::Rotation;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_engine::tcp::BindError;
use fanfare_operator::AuditWriter;
use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The longest sleep of an idle thread, after which timers are checked.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The sleep of a message log with nothing to write. Its ring holds the bytes that arrive in the
/// meantime.
const LOG_SLEEP: Duration = Duration::from_millis(5);

/// A running gateway. Dropping it stops it and joins its threads.
pub struct Gateway {
    crew: Crew,
    /// The message logs, which end after the sessions.
    logs: Crew,
    counters: Counters,
    notices: Option<NoticeReceiver>,
    events: Option<EventReader>,
    handle: GatewayHandle,
    /// Sends notices of the DDS library's warnings.
    _warnings: Warnings,
}

impl Gateway {
    /// Listens on both ports and starts the threads. The gateway runs until `stop` is raised.
    ///
    /// # Errors
    /// Returns a [`StartError`]. No thread is left running then.
    pub fn start(config: &Config, stop: Stop) -> Result<Self, StartError> {
        Self::start_with(config, stop, Vec::new())
    }

    /// Starts a gateway as [`start`](Self::start) does, with agents of the caller that share the
    /// first thread and run before the gateway's own.
    ///
    /// # Errors
    /// Returns the errors of [`start`](Self::start).
    pub fn start_with(
        config: &Config,
        stop: Stop,
        guests: Vec<Box<dyn Agent>>,
    ) -> Result<Self, StartError> {
        config.check()?;
        config.check_pin()?;
        config.check_topics()?;
        let users = UserBook::new(UserSet::load(&config.user_source())?);
        let counters = Counters::new();
        let (notices, mut received) = notice::channel();
        let warnings = warnings(&notices);
        let rules = [
            rule_book(config, "producers", &config.producers)?,
            rule_book(config, "consumers", &config.consumers)?,
        ];
        let reload_logs = Reload::new();
        let (audit, audit_writer) = open_audit(config, &counters, &notices, &reload_logs)?;
        let builder = Builder {
            config,
            counters: &counters,
            notices,
            stop: &stop,
            rules: &rules,
            users: &users,
            roster: Roster::default(),
            audit,
            reload_logs: &reload_logs,
            rolling: Rolling::default(),
            mappings: Mappings::default(),
            numbering: Numbering::new(config)?,
        };
        let (roster, audit) = (builder.roster.clone(), builder.audit.clone());
        let (mappings, rolling) = (builder.mappings.clone(), builder.rolling.clone());
        let ([producers, consumers], permits) = builder.ports()?;
        let (mut agents, ports) = builder.agents(producers, consumers)?;
        agents.front.splice(0..0, guests);
        let logs = agents.logs(audit_writer)?;
        let (events, dbn) = (agents.events.take(), agents.dbn);
        let watched = std::mem::take(&mut agents.watched);
        let watch = Watch::new(config, &counters, &stop, watched);
        let crew = builder.crew(agents, stop.clone())?;
        // After the crew, whose end raises the flag that ends the view's thread.
        watch.attach(&mut received)?;
        Ok(Self {
            crew,
            logs,
            counters: counters.clone(),
            notices: Some(received),
            events,
            handle: GatewayHandle::new(Shared {
                started: config.clone(),
                config: Mutex::new(config.clone()),
                ports,
                permits,
                dbn,
                users,
                mappings,
                roster,
                audit,
                stages: Stages::new(counters.clone(), config.stages, stop),
                counters,
                watch,
                reload_logs,
                rolling,
                begun: Instant::now(),
            }),
            _warnings: warnings,
        })
    }

    /// Returns the number of threads of its agents.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.crew.threads() + self.logs.threads()
    }

    /// Returns the thread that serves sessions or feeds and whose turn began longest ago, with the
    /// time since then; see [`Crew::slowest`].
    #[must_use]
    pub fn slowest(&self, now: u64) -> Option<(&str, Duration)> {
        self.crew.slowest(now)
    }

    /// Returns the address of the producers' port.
    #[must_use]
    pub fn producers(&self) -> SocketAddr {
        self.handle.shared().ports[0].address
    }

    /// Returns the address of the consumers' port.
    #[must_use]
    pub fn consumers(&self) -> SocketAddr {
        self.handle.shared().ports[1].address
    }

    /// Returns the address of the DBN port, if there is one.
    #[must_use]
    pub fn dbn(&self) -> Option<SocketAddr> {
        self.handle.shared().dbn.map(|(address, _)| address)
    }

    /// Returns all counters, which are readable at any time.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the current [`total`] of a counter.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        total(&self.counters, name)
    }

    /// Returns the notices since the last call. Empty once [`take_notices`](Self::take_notices) was
    /// called.
    pub fn notices(&self) -> impl Iterator<Item = Notice> + '_ {
        self.notices.iter().flat_map(NoticeReceiver::iter)
    }

    /// Takes the receiving end of the notices, for a thread that prints them. Returns `None` the
    /// second time.
    pub fn take_notices(&mut self) -> Option<NoticeReceiver> {
        self.notices.take()
    }

    /// Adopts the parts of a new configuration that can change while the gateway runs: users,
    /// lists, `sessions`, `max_sessions`, `allow` and `open` of both ports, `[limits]` without
    /// `message_bytes`, and `mapping` of the feeds. Reads the file of the users, the mappings and
    /// the certificates again, and reopens the message logs and the audit file. Everything is
    /// checked before any of it takes effect.
    ///
    /// The changes apply to connections from then on, and to the requests of sessions that are
    /// logged on. Sessions whose user is gone, has another key for DBN or may no longer connect
    /// from their address are logged out, and the call waits until they have ended. A feed with
    /// another mapping adopts it between two datagrams, and its instruments recover by snapshots
    /// that contain all messages so far.
    ///
    /// # Errors
    /// Returns an error if a part cannot be used. Nothing is changed then.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, StartError> {
        self.handle.reopen_logs();
        self.handle.reload(config)
    }

    /// Returns a handle of the gateway for operators, usable from any thread.
    #[must_use]
    pub fn handle(&self) -> GatewayHandle {
        self.handle.clone()
    }

    /// Takes the market events of all feeds with a mapping, for a thread that reads them. Returns
    /// `None` the second time, or if no feed has a mapping. Unread events are overwritten.
    pub fn take_events(&mut self) -> Option<EventReader> {
        self.events.take()
    }

    /// Returns a handle of the producers' port, for any thread that adds and removes sessions.
    #[must_use]
    pub fn producer_port(&self) -> PortHandle {
        self.handle.shared().ports[0].clone()
    }

    /// Returns a handle of the consumers' port, for any thread that adds and removes sessions.
    #[must_use]
    pub fn consumer_port(&self) -> PortHandle {
        self.handle.shared().ports[1].clone()
    }

    /// Returns the flag that stops the gateway.
    #[must_use]
    pub fn stop(&self) -> &Stop {
        self.crew.stop()
    }

    /// Waits until all threads have ended. Each logs out its sessions first.
    ///
    /// # Errors
    /// Returns the error of the first agent that failed.
    pub fn join(self) -> Result<(), CrewError> {
        let ended = self.crew.join();
        self.logs.stop().raise();
        ended.and(self.logs.join())
    }
}

struct Builder<'a> {
    config: &'a Config,
    counters: &'a Counters,
    notices: Notices,
    stop: &'a Stop,
    rules: &'a [RuleBook; 2],
    users: &'a UserBook,
    roster: Roster,
    audit: Audit,
    reload_logs: &'a Reload,
    rolling: Rolling,
    mappings: Mappings,
    /// The numbers of the feeds that are markets.
    numbering: Numbering,
}

/// The agents, in the order of their threads.
struct Agents {
    /// The agents that only take in messages: the producers' host, both ports, feed and DDS
    /// subscriber.
    front: AgentList,
    workers: AgentList,
    /// Agents that always have threads of their own, because they may wait for DDS.
    alone: AgentList,
    /// The message logs, each on a thread of its own, because they wait for the disk.
    logs: Vec<MessageLog>,
    /// The log of market events and its keeper, each on a thread of its own, because they wait for
    /// the disk. They end after the feeds.
    history: LogThreads,
    /// The reading end of the ring of market events, if a feed is a market.
    events: Option<EventReader>,
    /// The address of the DBN port, and how many clients it accepts at a time.
    dbn: Option<(SocketAddr, usize)>,
    /// The state that operators view.
    watched: Watched,
}

impl Agents {
    /// Starts the threads that end after the sessions and feeds: message logs, the audit file and
    /// the log of market events.
    fn logs(&mut self, audit: Option<AuditWriter>) -> io::Result<Crew> {
        let mut crew = Crew::new(Stop::new());
        for log in self.logs.drain(..) {
            crew.spawn(log, idle::Idle::Sleep(LOG_SLEEP), None)?;
        }
        if let Some(writer) = audit {
            crew.spawn(writer, idle::Idle::Sleep(LOG_SLEEP), None)?;
        }
        for (agent, sleep) in self.history.drain(..) {
            let agent = Composite::new(vec![agent]);
            crew.spawn(agent, idle::Idle::Sleep(sleep), None)?;
        }
        Ok(crew)
    }
}

type AgentList = Vec<Box<dyn Agent>>;

impl Builder<'_> {
    /// Opens both ports, and returns them with the permits of their connections.
    fn ports(&self) -> Result<([Port; 2], Permits), StartError> {
        let [producers, consumers] = [&self.config.producers, &self.config.consumers];
        let most = [producers.max_sessions, consumers.max_sessions];
        let [of_producers, of_consumers] = Permits::of_process(most, spare(self.config));
        let permits = of_producers.clone();
        let open = |config: &PortConfig, rules: &RuleBook, permits| {
            let mut port = Port::bind(config.address(), rules.read().options.clone())?;
            port.set_permits(permits);
            Ok::<_, BindError>(port)
        };
        let [producer_rules, consumer_rules] = self.rules;
        let ports = [
            open(producers, producer_rules, of_producers)?,
            open(consumers, consumer_rules, of_consumers)?,
        ];
        Ok((ports, permits))
    }

    fn agents(
        &self,
        producers: Port,
        consumers: Port,
    ) -> Result<(Agents, [PortHandle; 2]), StartError> {
        let config = self.config;
        let dds = &config.dds;
        let mut rings = Rings::open(config, &self.numbering.infos, self.counters)?;
        let mut logs = Vec::new();
        let (mut events, mut history) = self.events()?;
        let (workers, worker_hosts) = self.workers(&mut rings, &mut events, &mut logs)?;
        let publisher_waker = Waker::detached()?;
        if dds.publish.is_some() {
            rings.wakers.push(publisher_waker.clone());
        }
        let source_rings = self.source_rings(&mut rings, dds.publish.is_some())?;
        let ingress = self.ingress(source_rings, &mut logs, rings.inlets())?;
        let [producer_rules, consumer_rules] = self.rules;
        let ports = [
            PortHandle::new(&producers, producer_rules, vec![ingress.handle()]),
            PortHandle::new(&consumers, consumer_rules, worker_hosts),
        ];
        let mut front: Vec<Box<dyn Agent>> = vec![
            Box::new(ingress),
            Box::new(self.port_agent(PortName::Producers, producers, &ports[0])?),
            Box::new(self.port_agent(PortName::Consumers, consumers, &ports[1])?),
        ];
        let [publish, subscribe] = dds.domains()?;
        let channels: Vec<String> = config.feeds.iter().map(Feed::channel).collect();
        let plan = self.plan(&channels);
        if let (Some(end), Some(domain)) = (&dds.subscribe, &subscribe) {
            let rings = self.source_rings(&mut rings, dds.relay)?;
            let waker = Waker::detached()?;
            let subscriber = DdsSubscriber::open(end, domain, rings, waker, plan)?;
            front.push(Box::new(subscriber));
        }
        let mut alone: Vec<Box<dyn Agent>> = Vec::new();
        let waker = Waker::detached()?;
        let reader = events.as_mut().and_then(|all| all.ring.reader(waker));
        let reader = reader.map(EventReader::may_be_late);
        let dbn = self.dbn(&mut events)?;
        let watched = events.as_mut().map(|all| std::mem::take(&mut all.watched));
        let of_dbn = |agent: &DbnAgent| Ok::<_, io::Error>((agent.address()?, agent.most()));
        let dbn_port = dbn.as_ref().map(of_dbn).transpose()?;
        alone.extend(dbn.map(|agent| Box::new(agent) as Box<dyn Agent>));
        let feeds = self.feeds(&mut rings, &mut alone, events, plan)?;
        if let Some(mut feeds) = feeds {
            // The ports serve once the threads start, and then know these instruments.
            feeds.introduce();
            front.push(Box::new(feeds));
        }
        history.extend(rings.start_raw(&self.notices, &self.rolling)?);
        if let (Some(end), Some(domain)) = (&dds.publish, &publish) {
            let publisher = DdsPublisher::open(end, domain, rings.to_dds, publisher_waker, plan)?;
            alone.push(Box::new(publisher));
        }
        let agents = Agents {
            front,
            workers,
            alone,
            logs,
            history,
            events: reader,
            dbn: dbn_port,
            watched: watched.unwrap_or_default(),
        };
        Ok((agents, ports))
    }

    /// Builds the host of the producers' sessions.
    fn ingress(
        &self,
        source_rings: SourceRings,
        logs: &mut Vec<MessageLog>,
        raw: Option<&mut RawInlets>,
    ) -> Result<Host<Ingress>, StartError> {
        let [producer_rules, _] = self.rules;
        let ingress = Ingress::new(
            source_rings,
            IngressCounts::new(self.counters, ""),
            self.reports("ingress", PortName::Producers, producer_rules),
            self.config.fan_out == FanOut::All,
            self.config.limits.message_bytes,
            raw.map(RawInlets::inlet),
            self.stages().source("ingress"),
        );
        self.host("ingress", "producers", ingress, logs)
    }

    const fn stages(&self) -> StagePlan<'_> {
        StagePlan::new(self.counters, self.config.stages)
    }

    /// Builds the workers, each with a reading end of every source's ring, and their hosts.
    fn workers(
        &self,
        rings: &mut Rings,
        events: &mut Option<Events>,
        logs: &mut Vec<MessageLog>,
    ) -> Result<(AgentList, Vec<HostHandle>), StartError> {
        let config = self.config;
        let [_, rules] = self.rules;
        let (mut workers, mut hosts) = (AgentList::new(), Vec::new());
        for i in 0..config.workers {
            let name = format!("worker{i}");
            let readers = rings.sources.iter_mut().map(Broadcast::subscribe);
            let readers = readers
                .collect::<Option<Vec<_>>>()
                .ok_or(StartError::Ring)?;
            let measures = WorkerMeasures {
                counts: WorkerCounts::new(self.counters, &name),
                stages: self.stages().outlet(&name, End::Socket),
            };
            let reports = self.reports(&name, PortName::Consumers, rules);
            let service = match events {
                Some(events) => Some(self.service(&name, events)?),
                None => None,
            };
            // The inspector has a waker once it has a host.
            let inspector = service.as_ref().map(Service::inspector);
            let versions = rings.versions.clone();
            let audience = Audience::new(self.users.clone());
            let worker = Worker::new(
                config, readers, versions, measures, reports, audience, service,
            );
            let host = self.host(&name, &name, worker, logs)?;
            rings.wakers.push(host.handle().waker());
            if let Some(events) = events {
                events.ring.add_waker(host.handle().waker());
                let inspector = inspector.map(|own| own.woken_by(host.handle().waker()));
                events.watched.inspectors.extend(inspector);
            }
            hosts.push(host.handle());
            workers.push(Box::new(host));
        }
        Ok((workers, hosts))
    }

    /// Builds a host with its message log, if there is one.
    fn host<H: Handler>(
        &self,
        name: &str,
        log_name: &str,
        handler: H,
        logs: &mut Vec<MessageLog>,
    ) -> Result<Host<H>, StartError> {
        let mut host = Host::new(handler)?.named(name);
        if let Some(config) = &self.config.message_log {
            let path = config.folder.join(format!("{log_name}.log"));
            let options = LogOptions {
                lossy: config.lossy,
                rotation: config.rotate.rotation(Rotation::default().max_bytes),
                ..LogOptions::default()
            };
            let folder = private::create_folder(&config.folder);
            let opened = folder.and_then(|()| MessageLog::open(&path, options, self.counters));
            let (tap, log) = opened.map_err(|error| StartError::Log(path, error))?;
            host.log_to(tap);
            logs.push(log.reopen_on(self.reload_logs.clone()));
        }
        Ok(host)
    }

    fn reports(&self, agent: &str, port: PortName, rules: &RuleBook) -> Reports {
        let counts = SessionCounts::new(self.counters, agent);
        let registry = rules.read().registry.clone();
        Reports::new(counts, self.notices.clone(), registry, self.records(port))
    }

    fn records(&self, port: PortName) -> Records {
        Records {
            port,
            roster: self.roster.clone(),
            audit: self.audit.clone(),
        }
    }

    fn port_agent(&self, name: PortName, port: Port, handle: &PortHandle) -> io::Result<PortAgent> {
        let hosts = handle.hosts.iter().cloned().map(HostEnd::new).collect();
        let rules = handle.rules.open();
        let counts = PortCounts::new(self.counters, name.name());
        let notices = self.notices.clone();
        let door = Door::new(name, self.users.clone(), Waker::detached()?);
        let records = self.records(name);
        Ok(PortAgent::new(
            port, hosts, rules, door, records, counts, notices,
        ))
    }

    /// Opens the rings of the next source, including one to DDS if its messages are published
    /// there.
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
            origin: dds::new_origin(),
            channels,
            message_bytes: self.config.limits.message_bytes,
            counters: self.counters,
            notices: &self.notices,
            stages: self.stages(),
            stop: self.stop,
        }
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
            ..
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

/// Builds the rules of the port of this name.
fn rule_book(
    config: &Config,
    name: &'static str,
    port: &PortConfig,
) -> Result<RuleBook, StartError> {
    let rules = PortRules::new(config, port).map_err(|error| StartError::Tls(name, error))?;
    Ok(RuleBook::new(rules))
}

/// Opens the audit file and the agent that writes it, if the configuration names one.
fn open_audit(
    config: &Config,
    counters: &Counters,
    notices: &Notices,
    reload: &Reload,
) -> Result<(Audit, Option<AuditWriter>), StartError> {
    let Some(path) = &config.audit else {
        return Ok((Audit::default(), None));
    };
    let opened = Audit::open(path, counters, notices.clone(), reload.clone());
    let (audit, writer) = opened.map_err(|error| StartError::Audit(path.clone(), error))?;
    Ok((audit, Some(writer)))
}
