//! A feed that other gateways receive: the events of this gateway come from their samples.

use super::config::Edge as EdgeSettings;
use super::relay::book_kind;
use super::sample::{self, BookKind};
use crate::counts::EdgeCounts;
use crate::dds::topic_reader::TopicReader;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::gateway::plan::Plan;
use crate::market::outlet::{MarketOutlet, SHOWN};
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use crate::stages::SourceStages;
use fanfare_dds::Error as DdsError;
use fanfare_engine::agent::AgentError;
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use fanfare_market::relay::{Edge, EdgeConfig, Relayed, Step};
use fanfare_market::state::code;
use fanfare_market::{Event, Instruments};
use std::collections::{HashMap, HashSet};

/// The initial capacity for the steps and events of a sample.
const ROOM: usize = 1_024;

/// The most samples taken at a time.
const TAKEN: usize = 256;

/// The time without a gateway after the start until a notice says so, in nanoseconds. Over TCP
/// gateways are found within 30 s.
const ALONE: u64 = 35_000_000_000;

/// A feed that other gateways receive.
pub(crate) struct EdgeFeed {
    snapshots: TopicReader,
    steps: TopicReader,
    follower: Follower,
    outlet: MarketOutlet,
    stages: Option<SourceStages>,
    notices: Notices,
    /// When to say that there is no gateway: `None` before the first turn, and `u64::MAX` once one
    /// has come, or it was said.
    alone_at: Option<u64>,
}

/// The state that an edge begins with.
pub(crate) struct EdgeStart {
    pub(crate) config: EdgeConfig,
    /// The instruments known in advance, with the limit.
    pub(crate) table: Instruments,
    /// The plant's number of the feed's first instrument.
    pub(crate) base: u32,
}

/// The state that samples are applied to.
struct Follower {
    edge: Edge,
    channel: Vec<u8>,
    book: BookKind,
    /// The gateways by DDS's numbers of their instances, with the number of the last sample.
    origins: HashMap<u64, (u64, u64)>,
    /// The gateways whose snapshots came before their steps, by the instance of a snapshot.
    heralds: HashMap<u64, u64>,
    /// The steps and events of a sample.
    room: (Vec<Step>, Vec<Event>),
    counts: EdgeCounts,
    /// The gap count at the last look.
    gaps: u64,
    /// The instances of gateways with other books, and whether one of them is new.
    others: HashSet<u64>,
    has_new_other: bool,
    /// The instances whose writers are gone.
    ended: Vec<u64>,
    /// The number of gateways in the last notice.
    told: usize,
}

impl EdgeFeed {
    /// Opens the topics. Samples wake `waker`.
    pub(crate) fn open(
        settings: &EdgeSettings,
        start: EdgeStart,
        waker: &Waker,
        plan: Plan<'_>,
    ) -> Result<Self, DdsError> {
        let domain = settings.member().open()?;
        let open = |name: &str, t, qos| {
            let name = format!("{}_{name}", settings.topics);
            let topic = domain.topic(&name, &t, &qos)?;
            TopicReader::open(&topic, &qos, TAKEN, waker, plan)
        };
        Ok(Self {
            snapshots: open(
                "Snapshots",
                sample::snapshots_type(),
                settings.snapshots_qos(),
            )?,
            steps: open("Steps", sample::steps_type(), settings.steps_qos())?,
            follower: Follower {
                edge: Edge::new(start.config, start.table),
                channel: settings.channel.clone().into_bytes(),
                book: book_kind(&settings.book),
                origins: HashMap::new(),
                heralds: HashMap::new(),
                room: (Vec::with_capacity(ROOM), Vec::with_capacity(ROOM)),
                counts: EdgeCounts::new(plan.counters, &settings.channel),
                gaps: 0,
                others: HashSet::new(),
                has_new_other: false,
                ended: Vec::new(),
                told: 0,
            },
            outlet: MarketOutlet::new(settings.channel.as_str().into(), start.base, plan)
                .with_values(),
            stages: plan.stages.source(&format!("edge {}", settings.channel)),
            notices: plan.notices.clone(),
            alone_at: None,
        })
    }

    /// Introduces the instruments of the log, which are known before gateways bring anything.
    pub(crate) fn introduce(&mut self, ring: &mut EventRing) {
        self.outlet
            .introduce(self.follower.edge.instruments(), ring);
    }

    /// Processes the samples that have arrived. Returns their number.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> Result<usize, AgentError> {
        let Self {
            follower,
            outlet,
            stages,
            ..
        } = self;
        // Snapshots define instruments, to which the steps after them refer.
        let snapshots = self.snapshots.take(&follower.counts.closed)?;
        for sample in snapshots {
            follower.snapshot(now.mono, &sample, outlet);
            outlet.pass_on(follower.edge.instruments(), ring);
        }
        let steps = self.steps.take(&follower.counts.closed)?;
        for sample in steps {
            let stages = stages.as_mut();
            let measured = stages.and_then(|own| Some((own.unstamped_message(now)?, own)));
            if let Some((arrived, _)) = measured {
                ring.mark(arrived);
            }
            follower.steps(now, &sample, outlet);
            outlet.pass_on(follower.edge.instruments(), ring);
            if let Some((_, stages)) = measured {
                stages.end_decode(ring.end_mark());
            }
        }
        let work = snapshots.len() + steps.len();
        // A closed topic does not show the end of its gateways. Without steps, snapshots bring
        // nothing.
        if self.steps.is_closed() {
            self.snapshots.close();
            follower.ended.extend(follower.origins.keys());
        }
        if self.snapshots.is_closed() {
            follower.ended.extend(follower.heralds.keys());
        }
        let has_ended = !follower.ended.is_empty();
        if has_ended {
            follower.end(now.mono, outlet);
            outlet.pass_on(follower.edge.instruments(), ring);
        }
        if follower
            .edge
            .poll_timeout()
            .is_some_and(|at| at <= now.mono)
        {
            let brought = &mut outlet.brought;
            follower
                .edge
                .handle_timeout(now.mono, &mut |event| brought.take(event));
            outlet.pass_on(follower.edge.instruments(), ring);
        }
        if work > 0 || has_ended {
            follower.count();
            follower.describe(&self.notices);
        }
        outlet.count(now.mono);
        if outlet.is_due(now.mono) {
            outlet.tell_room(follower.edge.instruments());
            self.look_for_gateways(now.mono);
            self.count();
        }
        Ok(work)
    }

    /// Sends a notice if no gateway has come in time since the first turn.
    fn look_for_gateways(&mut self, now: u64) {
        let at = *self.alone_at.get_or_insert(now.saturating_add(ALONE));
        if at != u64::MAX && self.follower.told > 0 {
            self.alone_at = Some(u64::MAX);
        } else if now >= at {
            self.alone_at = Some(u64::MAX);
            self.follower.send(&self.notices, MarketNotice::Unpublished);
        }
    }

    /// Shows the next instruments again, after a reader has lost events, each in a message of its
    /// own. Returns their number.
    pub(crate) fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let (edge, outlet) = (&mut self.follower.edge, &mut self.outlet);
        for shown in 0..SHOWN {
            let is_there = outlet.show_next(now, |received, instrument, events| {
                edge.show(received, instrument, &mut |event| events.push(*event));
            });
            if !is_there {
                return shown;
            }
            outlet.pass_on(edge.instruments(), ring);
        }
        SHOWN
    }

    /// Returns the outlet to the ring.
    pub(crate) const fn outlet(&mut self) -> &mut MarketOutlet {
        &mut self.outlet
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        let alone_at = self.alone_at.filter(|at| *at != u64::MAX);
        let edge = self.follower.edge.poll_timeout();
        edge.into_iter().chain(alone_at).min()
    }

    /// Drops the changes that still wait, and passes on the trades among them. Sets the counters.
    pub(crate) fn close(&mut self, ring: Option<&mut EventRing>) {
        if let Some(ring) = ring {
            let (edge, outlet) = (&mut self.follower.edge, &mut self.outlet);
            let brought = &mut outlet.brought;
            edge.finish(&mut |event| brought.take(event));
            outlet.pass_last(edge.instruments(), ring);
        }
        self.count();
    }

    /// Sets the counters that are not counted on arrival.
    fn count(&mut self) {
        self.outlet.set_counts();
        self.follower.count();
        let (market, counts) = (self.follower.edge.market(), &self.outlet.counts);
        let recovery = market.recovery_stats();
        counts.instruments.set(self.outlet.known().into());
        counts.faults.set(market.stats().faults);
        counts.recoveries.set(recovery.recoveries);
        counts.recovered.set(recovery.recovered);
        counts.taken.set(recovery.snapshots_taken);
        counts.dropped.set(recovery.dropped);
        let refused = self.follower.edge.instruments().refused();
        counts.refused.set(refused + market.stats().refused);
    }
}

impl Follower {
    fn snapshot(&mut self, now: u64, sample: &fanfare_dds::Sample<'_>, outlet: &mut MarketOutlet) {
        let instance = sample.info.instance;
        if sample.info.has_data {
            self.counts.samples.increment(1);
            self.take_snapshot(now, (instance, sample.bytes()), outlet);
        }
        if !sample.info.alive && self.heralds.contains_key(&instance) {
            self.ended.push(instance);
        }
    }

    fn take_snapshot(
        &mut self,
        now: u64,
        (instance, bytes): (u64, &[u8]),
        outlet: &mut MarketOutlet,
    ) {
        let Ok(sample) = sample::read_snapshot(bytes) else {
            self.counts.bad.increment(1);
            return;
        };
        // The steps of a gateway with other books are counted, and reported.
        if sample.source.channel != self.channel || sample.book != self.book {
            return;
        }
        let (_, events) = &mut self.room;
        if !decode(sample.events, events, Event::from_bytes) {
            self.counts.bad.increment(1);
            return;
        }
        let snapshot = Relayed {
            instrument: sample.definition,
            is_closed: u64::from(sample.state) == code::CLOSED,
            last: sample.has_last.then_some(sample.last),
            received: sample.received,
            events,
        };
        let brought = &mut outlet.brought;
        let send = &mut |event: &Event| brought.take(event);
        let origin = sample.source.origin;
        self.edge.snapshot(now, origin, &snapshot, send);
        // A gateway may be gone before it has written steps, whose instance would end.
        let is_heralded = self.heralds.values().any(|own| *own == origin);
        if !is_heralded && !self.has_steps(origin) && self.edge.has_plant(origin) {
            self.heralds.insert(instance, origin);
        }
    }

    /// Returns whether steps of the gateway with this origin have come.
    fn has_steps(&self, origin: u64) -> bool {
        self.origins.values().any(|(own, _)| *own == origin)
    }

    fn steps(&mut self, now: Now, sample: &fanfare_dds::Sample<'_>, outlet: &mut MarketOutlet) {
        let instance = sample.info.instance;
        if sample.info.has_data {
            self.counts.samples.increment(1);
            if !self.take_steps(now, (instance, sample.bytes()), outlet) {
                self.counts.bad.increment(1);
            }
        }
        // Each sample that was taken with the last one has this state.
        if !sample.info.alive && !self.ended.contains(&instance) {
            self.ended.push(instance);
        }
    }

    /// Processes a sample of steps. Returns false if its events cannot be used.
    fn take_steps(
        &mut self,
        now: Now,
        (instance, bytes): (u64, &[u8]),
        outlet: &mut MarketOutlet,
    ) -> bool {
        let Ok(read) = sample::read_steps(bytes) else {
            return false;
        };
        if read.source.channel != self.channel {
            return true;
        }
        if read.book != self.book {
            self.has_new_other |= self.others.insert(instance);
            return false;
        }
        let (steps, events) = &mut self.room;
        let is_good = decode(read.steps, steps, Step::from_bytes)
            && decode(read.events, events, Event::from_bytes);
        if !is_good {
            return false;
        }
        let origin = read.source.origin;
        let (_, last) = self
            .origins
            .entry(instance)
            .or_insert((origin, read.number));
        let missing = read.number.saturating_sub(last.saturating_add(1));
        if missing > 0 {
            self.counts.lost.increment(missing);
        }
        *last = read.number;
        let brought = &mut outlet.brought;
        let send = &mut |event: &Event| brought.take(event);
        let times = (now.mono, arrival(now, steps));
        for instrument in sample::instruments(read.instruments) {
            self.edge.instrument(times, origin, instrument, send);
        }
        self.edge.steps(now.mono, origin, steps, events, send);
        true
    }

    /// Ends the gateways whose writers are gone.
    fn end(&mut self, now: u64, outlet: &mut MarketOutlet) {
        let brought = &mut outlet.brought;
        while let Some(instance) = self.ended.pop() {
            self.others.remove(&instance);
            let herald = self.heralds.remove(&instance);
            let herald = herald.filter(|origin| !self.has_steps(*origin));
            let ended = self.origins.remove(&instance).map(|(origin, _)| origin);
            if let Some(origin) = ended.or(herald) {
                self.heralds.retain(|_, own| *own != origin);
                self.edge
                    .gone(now, origin, &mut |event| brought.take(event));
            }
        }
    }

    /// Sends notices for the operator.
    fn describe(&mut self, notices: &Notices) {
        let plants = self.edge.plants();
        if std::mem::replace(&mut self.told, plants) != plants {
            self.send(notices, MarketNotice::Plants(plants));
        }
        if std::mem::take(&mut self.has_new_other) {
            self.send(notices, MarketNotice::OtherBooks);
        }
    }

    fn send(&self, notices: &Notices, what: MarketNotice) {
        let channel = String::from_utf8_lossy(&self.channel).into();
        notices.send(Notice::Feed(FeedNotice::Market { channel, what }));
    }

    fn count(&mut self) {
        let stats = self.edge.stats();
        let gaps = self.edge.arbiter_stats().missing + stats.undelivered;
        self.counts.gaps.increment(gaps - self.gaps);
        self.gaps = gaps;
        self.counts.plants.set(self.edge.plants() as u64);
        self.counts.lacking.set(self.edge.lacking().into());
        let ignored = stats.not_covered + stats.unknown + stats.of_another_time + stats.refused;
        self.counts.ignored.set(ignored);
    }
}

/// Returns when the first message of these steps arrived at the gateway that wrote them, or now
/// without one, in nanoseconds since 1970-01-01 UTC.
fn arrival(now: Now, steps: &[Step]) -> u64 {
    let mut times = steps.iter().map(|step| step.received);
    let first = times.find(|time| *time != 0);
    first.unwrap_or(now.utc.nanos().unsigned_abs())
}

/// Decodes all of them into `out`. Returns false if one is invalid.
fn decode<const N: usize, T>(
    all: &[[u8; N]],
    out: &mut Vec<T>,
    read: impl Fn(&[u8; N]) -> Option<T>,
) -> bool {
    out.clear();
    out.extend(all.iter().filter_map(read));
    out.len() == all.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::counts::total;
    use crate::edges::sample::{SnapshotSample, Source, StepsSample};
    use crate::notice::{self, NoticeReceiver};
    use fanfare_dds::Writer;
    use fanfare_dds::cdr::CdrBuffer;
    use fanfare_engine::clock::Clock;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::stop::Stop;
    use fanfare_market::instruments::{Definition, Name};
    use std::time::{Duration, Instant};

    fn settings() -> EdgeSettings {
        let domain = fanfare_peers::domain();
        let text = format!("[[edge]]\nchannel = \"one\"\ndomain = {domain}\nlease_ms = 60000\n");
        Config::from_toml(&text).unwrap().edges.remove(0)
    }

    /// Returns the writer of a gateway that has written one snapshot and no steps.
    fn gateway(settings: &EdgeSettings) -> Writer {
        let mut table = Instruments::new(1);
        let name = Name::of_symbol(b"A");
        let definition = Definition::named(name);
        let (defined, mut bytes) = (table.define(&definition).unwrap(), Vec::new());
        table.get(defined.instrument).unwrap().write(&mut bytes);
        let snapshot = SnapshotSample {
            source: Source {
                channel: b"one",
                origin: 7,
            },
            instrument: 0,
            symbol: b"A",
            book: book_kind(&settings.book),
            state: 0,
            has_last: false,
            last: 0,
            received: 0,
            definition: &bytes,
            events: &[],
        };
        let domain = settings.member().open().unwrap();
        let (t, qos) = (sample::snapshots_type(), settings.snapshots_qos());
        let topic = domain.topic("Market_Snapshots", &t, &qos).unwrap();
        let writer = topic.writer(&qos).open().unwrap();
        let mut buffer = CdrBuffer::with_capacity(4_096);
        writer.write(snapshot.write(&mut buffer).unwrap()).unwrap();
        writer
    }

    /// Returns a writer of the steps of up to 100 gateways.
    fn steps_writer(settings: &EdgeSettings) -> Writer {
        let domain = settings.member().open().unwrap();
        let (t, qos) = (sample::steps_type(), settings.steps_qos().instances(100));
        let topic = domain.topic("Market_Steps", &t, &qos).unwrap();
        topic.writer(&qos).open().unwrap()
    }

    /// Writes steps of a gateway.
    fn write_steps(writer: &Writer, settings: &EdgeSettings, origin: u64) {
        let sample = StepsSample {
            source: Source {
                channel: b"one",
                origin,
            },
            number: 1,
            book: book_kind(&settings.book),
            instruments: &[],
            steps: &[Step::position(5).to_bytes()],
            events: &[],
        };
        let mut buffer = CdrBuffer::with_capacity(4_096);
        // One that finds no room is written again.
        let _ = writer.write(sample.write(&mut buffer).unwrap());
    }

    /// An edge with the ring of its thread.
    struct Running {
        edge: EdgeFeed,
        ring: EventRing,
        clock: Clock,
        counters: Counters,
        received: NoticeReceiver,
    }

    impl Running {
        fn open(settings: &EdgeSettings) -> Self {
            let (counters, stop) = (Counters::new(), Stop::new());
            let (notices, received) = notice::channel();
            let plan = Plan::of_a_test(&counters, &notices, &stop);
            let waker = Waker::detached().unwrap();
            let start = EdgeStart {
                config: settings.follower(1).unwrap(),
                table: Instruments::new(10),
                base: 0,
            };
            Self {
                edge: EdgeFeed::open(settings, start, &waker, plan).unwrap(),
                ring: EventRing::new(1 << 16, 1, waker, 1),
                clock: Clock::new(),
                counters,
                received,
            }
        }

        /// Turns it until it has this many gateways, and calls `write` before each turn.
        fn wait_for(&mut self, plants: usize, mut write: impl FnMut()) {
            let until = Instant::now() + Duration::from_secs(60);
            while self.edge.follower.edge.plants() != plants {
                assert!(Instant::now() < until, "the gateways are not {plants}");
                write();
                self.edge.turn(self.clock.read(), &mut self.ring).unwrap();
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn an_edge_that_finds_no_gateway_says_so_once() {
        let mut running = Running::open(&settings());
        let first = running.clock.read();
        let until = first.mono + ALONE;
        for after in [0, ALONE - 1, ALONE, 2 * ALONE] {
            let mono = first.mono + after;
            let now = Now { mono, ..first };
            running.edge.turn(now, &mut running.ring).unwrap();
            let timer = running.edge.next_timer();
            assert!(mono >= until || timer.is_some_and(|at| at <= until));
        }
        let told: Vec<_> = running.received.iter().map(|n| n.to_string()).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        let expected = "feed one: no gateway has published it since the start";
        assert!(told[0].starts_with(expected), "{told:?}");
    }

    #[test]
    fn definitions_arrive_with_the_first_message_beside_them() {
        let now = Clock::new().read();
        let message = Step {
            received: 7,
            ..Step::position(1)
        };
        let all = [Step::silence(false), message];
        assert_eq!(arrival(now, &all), 7);
        let own = now.utc.nanos().unsigned_abs();
        assert_eq!(arrival(now, &all[..1]), own);
    }

    #[test]
    fn a_gateway_that_ends_before_its_first_steps_is_gone() {
        let settings = settings();
        let mut running = Running::open(&settings);
        let writer = gateway(&settings);
        running.wait_for(1, || {});
        drop(writer);
        running.wait_for(0, || {});
        assert!(running.edge.follower.heralds.is_empty());
    }

    #[test]
    fn gateways_are_gone_when_the_topic_of_their_steps_is_closed() {
        let settings = EdgeSettings {
            instances: 2,
            ..settings()
        };
        let mut running = Running::open(&settings);
        let writer = steps_writer(&settings);
        running.wait_for(1, || write_steps(&writer, &settings, 7));
        assert_eq!(total(&running.counters, "edge_plants"), 1);
        let mut origins = (8..12).cycle();
        running.wait_for(0, || {
            let origin = origins.next().unwrap();
            write_steps(&writer, &settings, origin);
        });
        let edge = &running.edge;
        assert!(edge.steps.is_closed() && edge.snapshots.is_closed());
        assert!(edge.follower.origins.is_empty());
        assert_eq!(total(&running.counters, "edge_topics_left"), 1);
        assert_eq!(total(&running.counters, "edge_plants"), 0);
        let told: Vec<_> = running.received.iter().map(|n| n.to_string()).collect();
        let expected = "feed one: no gateway publishes it";
        assert!(told.iter().any(|line| line == expected), "{told:?}");
    }
}
