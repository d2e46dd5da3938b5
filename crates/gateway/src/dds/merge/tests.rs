//! The merge against a world of gateways, topics and readers without DDS.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};

const MS: u64 = SECOND / 1_000;
const TOPICS: usize = 3;
/// The topics of an origin whose types are all subscribed.
const ALL: u64 = (1 << TOPICS) - 1;

/// A message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    origin: u64,
    order: u64,
    topic: usize,
    number: u64,
    /// The time at which the reader has it.
    at: u64,
    types: u64,
}

/// A publication: its origin, topic and delay in milliseconds, and whether it is lost on its way.
#[derive(Debug, Clone, Copy)]
struct Publication {
    origin: u64,
    topic: usize,
    delay: u64,
    is_lost: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Publish(Publication),
    Pass(u64),
    /// A turn with so much room, between whose takes these are published.
    Turn(usize, Vec<Publication>),
}

/// The gateways that publish, the readers, and the consumer.
struct World {
    now: u64,
    /// The messages that each origin has published, in all and by topic.
    orders: [u64; 4],
    numbers: [[u64; TOPICS]; 4],
    /// The messages under way, by origin and topic: none overtakes another.
    pipes: Vec<VecDeque<Sent>>,
    during: VecDeque<Publication>,
    kept: Vec<Vec<Sent>>,
    most: usize,
    room: usize,
    arrived: BTreeSet<Sent>,
    delivered: Vec<Sent>,
    /// The time at which each message was taken.
    taken_at: Vec<(Sent, u64)>,
    /// Whether the order within the bound is checked.
    is_strict: bool,
    late: Vec<Lateness>,
}

impl World {
    fn new(most: usize) -> Self {
        Self {
            now: SECOND,
            orders: [0; 4],
            numbers: [[0; TOPICS]; 4],
            pipes: vec![VecDeque::new(); 4 * TOPICS],
            during: VecDeque::new(),
            kept: vec![Vec::new(); TOPICS],
            most,
            room: usize::MAX,
            arrived: BTreeSet::new(),
            delivered: Vec::new(),
            taken_at: Vec::new(),
            is_strict: true,
            late: Vec::new(),
        }
    }

    /// Publishes a message. Origin 3 has a type without a topic here.
    fn publish(&mut self, publication: Publication) {
        let Publication {
            origin,
            topic,
            delay,
            is_lost,
        } = publication;
        let place = origin as usize;
        let is_foreign = origin == 3 && self.orders[place] % 2 == 1;
        self.orders[place] += 1;
        if is_foreign {
            return;
        }
        self.numbers[place][topic] += 1;
        let sent = Sent {
            origin,
            order: self.orders[place],
            topic,
            number: self.numbers[place][topic],
            at: self.now + delay * MS,
            types: if origin == 3 { 0 } else { ALL },
        };
        if !is_lost {
            let pipe = &mut self.pipes[place * TOPICS + topic];
            let at = pipe.back().map_or(0, |before| before.at).max(sent.at);
            pipe.push_back(Sent { at, ..sent });
        }
    }

    fn turn(&mut self, merge: &mut Merge, room: usize) -> usize {
        self.room = room;
        let now = self.now;
        let work = merge.turn(self, now, 8).unwrap();
        while let Some(publication) = self.during.pop_front() {
            self.publish(publication);
        }
        work
    }

    /// Takes turns until nothing is due, and checks that whatever still waits has a reason.
    fn settle(&mut self, merge: &mut Merge) {
        while self.turn(merge, usize::MAX) > 0 {}
        let taken = self.taken_at.iter();
        let waiting: Vec<(Sent, u64)> = taken
            .filter(|(sent, _)| !self.delivered.contains(sent))
            .copied()
            .collect();
        let oldest = waiting.iter().map(|(_, at)| at + PATIENCE).min();
        assert!(oldest.is_none_or(|until| until > self.now), "overdue");
        assert_eq!(merge.deadline().is_some(), oldest.is_some());
        assert!(merge.deadline().is_none_or(|until| until > self.now));
        for (sent, _) in &waiting {
            assert_eq!(sent.types, ALL, "{sent:?} waits for what may never come");
            let of_origin = waiting.iter().filter(|(w, _)| w.origin == sent.origin);
            let topics: BTreeSet<usize> = of_origin.map(|(w, _)| w.topic).collect();
            assert!(topics.len() < TOPICS, "no topic can bring what is awaited");
        }
    }

    /// Checks a delivery against all that has been published.
    fn check(&self, sent: &Sent, late: Lateness) {
        assert!(!self.delivered.contains(sent), "{sent:?} comes twice");
        let own = self.delivered.iter().filter(|d| d.origin == sent.origin);
        let last = own.map(|d| d.order).max();
        let is_late = last.is_some_and(|last| sent.order < last);
        assert_eq!(late != Lateness::None, is_late, "{sent:?}");
        // What precedes the first sample of an origin is not known. Those that were passed over
        // before this one had their time.
        let Some(last) = last.filter(|_| sent.types != 0 && self.is_strict) else {
            return;
        };
        // The hole is known since this one, or a later one, was taken.
        let is_beyond = |(w, _): &&(Sent, u64)| {
            w.origin == sent.origin && w.order >= sent.order && !self.delivered.contains(w)
        };
        let beyond = self.taken_at.iter().filter(is_beyond);
        let until = beyond.map(|(_, at)| at + PATIENCE).min().unwrap();
        let is_passed_over = |other: &&Sent| {
            other.origin == sent.origin
                && (last..sent.order).contains(&other.order)
                && !self.delivered.contains(other)
        };
        let ahead = self.arrived.iter().chain(self.pipes.iter().flatten());
        for other in ahead.filter(is_passed_over) {
            assert!(other.at > until, "{sent:?} overtakes {other:?}");
        }
    }
}

impl Ends for World {
    type Error = std::convert::Infallible;

    fn take(&mut self, topic: usize, merge: &mut Merge) -> Result<usize, Self::Error> {
        let kept = &mut self.kept[topic];
        let moved = merge.compact(topic, kept.len()).to_vec();
        let mut places = moved.iter();
        kept.retain(|_| *places.next().unwrap() != GONE);
        let left = moved.into_iter().filter(|place| *place != GONE);
        assert!(left.eq(0..kept.len() as u32), "places are counted again");
        assert!(kept.len() <= self.most, "a take has room");
        let mut count = 0;
        // A reader hands out one instance after the other: the later origins first.
        for origin in (0..4).rev() {
            let pipe = &mut self.pipes[origin * TOPICS + topic];
            while count < self.most && pipe.front().is_some_and(|sent| sent.at <= self.now) {
                let Some(sent) = pipe.pop_front() else { break };
                self.arrived.insert(sent);
                self.taken_at.push((sent, self.now));
                self.kept[topic].push(sent);
                merge.push(
                    topic,
                    Arrival {
                        origin: sent.origin,
                        order: sent.order,
                        number: sent.number,
                        types: sent.types,
                        place: self.kept[topic].len() as u32 - 1,
                        ..Arrival::default()
                    },
                );
                count += 1;
            }
        }
        if let Some(publication) = self.during.pop_front() {
            self.publish(publication);
        }
        Ok(count)
    }

    fn deliver(&mut self, topic: usize, sample: &Arrival, late: Lateness) -> Outcome {
        let sent = self.kept[topic][sample.place as usize];
        let of = |s: &Sent| (s.origin, s.order, s.number, s.topic);
        let wanted = (sample.origin, sample.order, sample.number, topic);
        assert_eq!(of(&sent), wanted, "the place of another sample");
        if self.room == 0 {
            return Outcome::Full;
        }
        self.room -= 1;
        self.check(&sent, late);
        self.late
            .extend(Some(late).filter(|late| *late != Lateness::None));
        self.delivered.push(sent);
        Outcome::Delivered
    }
}

fn run(steps: Vec<Step>, most: usize, is_strict: bool) -> World {
    let mut world = World::new(most);
    world.is_strict = is_strict;
    let mut merge = Merge::new(TOPICS, most, true);
    for step in steps {
        match step {
            Step::Publish(publication) => world.publish(publication),
            Step::Pass(ms) => world.now += ms * MS,
            Step::Turn(room, during) => {
                world.during = during.into();
                world.turn(&mut merge, room);
                if room == usize::MAX {
                    world.settle(&mut merge);
                }
            }
        }
    }
    for _ in 0..20 {
        world.settle(&mut merge);
        world.now += SECOND;
    }
    assert!(world.pipes.iter().all(VecDeque::is_empty));
    let delivered: BTreeSet<Sent> = world.delivered.iter().copied().collect();
    assert_eq!(delivered, world.arrived, "nothing is lost");
    assert_eq!(merge.deadline(), None);
    world
}

fn publications() -> impl Strategy<Value = Publication> {
    let delay = prop_oneof![6 => Just(0), 2 => 0..50_u64, 1 => 0..3_000_u64];
    (1..4_u64, 0..TOPICS, delay, 0..20).prop_map(|(origin, topic, delay, loss)| Publication {
        origin,
        topic,
        delay,
        is_lost: loss == 0,
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let room = prop_oneof![3 => Just(usize::MAX), 1 => 0..12_usize];
    let turn = (room, prop::collection::vec(publications(), 0..4));
    let step = prop_oneof![
        6 => publications().prop_map(Step::Publish),
        2 => (0..700_u64).prop_map(Step::Pass),
        3 => turn.prop_map(|(room, during)| Step::Turn(room, during)),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What arrives within the bound comes out in its order, once, and nothing waits for longer,
    /// or for what cannot come.
    #[test]
    fn samples_come_out_in_the_order_of_their_origin(steps in steps()) {
        run(steps, 1_000, true);
    }

    /// Readers of a few samples make the merge give holes up.
    #[test]
    fn no_sample_is_lost_or_doubled_where_topics_are_full(steps in steps()) {
        run(steps, 3, false);
    }
}

fn at_once(origin: u64, topic: usize) -> Step {
    after(origin, topic, 0)
}

fn after(origin: u64, topic: usize, delay: u64) -> Step {
    Step::Publish(Publication {
        origin,
        topic,
        delay,
        is_lost: false,
    })
}

fn lost(origin: u64, topic: usize) -> Step {
    Step::Publish(Publication {
        origin,
        topic,
        delay: 0,
        is_lost: true,
    })
}

fn turn() -> Step {
    Step::Turn(usize::MAX, Vec::new())
}

fn orders(world: &World) -> Vec<(u64, u64)> {
    world
        .delivered
        .iter()
        .map(|d| (d.origin, d.order))
        .collect()
}

/// Publishes while the topics are taken from, on one whose turn is over and then on the last one.
#[test]
fn a_race_of_takes_is_repaired_at_once() {
    let mut world = World::new(100);
    let mut merge = Merge::new(TOPICS, 100, false);
    let on = |topic| Publication {
        origin: 1,
        topic,
        delay: 0,
        is_lost: false,
    };
    world.publish(on(1));
    world.turn(&mut merge, usize::MAX);
    world.during = [on(0), on(2)].into();
    world.turn(&mut merge, usize::MAX);
    assert_eq!(orders(&world), [(1, 1), (1, 2), (1, 3)]);
    assert!(world.late.is_empty());
}

#[test]
fn one_origin_that_waits_does_not_hold_up_another() {
    let mut world = World::new(100);
    let mut merge = Merge::new(TOPICS, 100, true);
    let publish = |world: &mut World, origin, topic, delay| {
        world.publish(Publication {
            origin,
            topic,
            delay,
            is_lost: false,
        });
    };
    publish(&mut world, 1, 0, 0);
    publish(&mut world, 1, 0, 300);
    publish(&mut world, 1, 1, 0);
    publish(&mut world, 2, 1, 0);
    world.settle(&mut merge);
    assert_eq!(orders(&world), [(1, 1), (2, 1)]);
    assert_eq!(merge.deadline(), Some(world.now + PATIENCE));
    world.now += 200 * MS;
    publish(&mut world, 2, 1, 0);
    publish(&mut world, 1, 1, 0);
    world.settle(&mut merge);
    assert_eq!(orders(&world)[2..], [(2, 2)]);
    world.now += 100 * MS;
    world.settle(&mut merge);
    assert_eq!(orders(&world)[3..], [(1, 2), (1, 3), (1, 4)]);
}

#[test]
fn what_comes_after_the_bound_is_late_once() {
    let steps = vec![
        at_once(1, 0),
        turn(),
        after(1, 1, 1_500),
        after(1, 1, 1_500),
        at_once(1, 0),
        turn(),
        Step::Pass(1_000),
        turn(),
        Step::Pass(600),
        turn(),
    ];
    let world = run(steps, 100, true);
    assert_eq!(orders(&world), [(1, 1), (1, 4), (1, 2), (1, 3)]);
    assert_eq!(world.late, [Lateness::First, Lateness::Further]);
}

#[test]
fn a_hole_that_no_topic_can_fill_is_not_waited_for() {
    let mut steps = vec![at_once(1, 0), turn(), lost(1, 1)];
    steps.extend((0..TOPICS).map(|topic| at_once(1, topic)));
    steps.push(turn());
    let world = run(steps, 100, true);
    let times: BTreeSet<u64> = world.taken_at.iter().map(|(_, at)| *at).collect();
    assert_eq!(times, [SECOND].into(), "all in one moment");
    assert_eq!(orders(&world), [(1, 1), (1, 3), (1, 4), (1, 5)]);
}

/// Waits neither for best-effort topics, nor for one that is closed.
#[test]
fn a_hole_that_may_stay_is_not_waited_for() {
    for (are_reliable, closed) in [(false, false), (true, true), (true, false)] {
        let mut world = World::new(100);
        let mut merge = Merge::new(TOPICS, 100, are_reliable);
        if closed {
            merge.close(2);
        }
        world.is_strict = false;
        for (topic, delay) in [(0, 0), (1, 300), (0, 0)] {
            world.publish(Publication {
                origin: 1,
                topic,
                delay,
                is_lost: false,
            });
        }
        while world.turn(&mut merge, usize::MAX) > 0 {}
        let waits = are_reliable && !closed;
        assert_eq!(world.delivered.len(), if waits { 1 } else { 2 });
        assert_eq!(merge.deadline().is_some(), waits);
    }
}

/// Has a receiver that accepts all samples.
struct Taking(Vec<Arrival>, Vec<(u64, u64)>);

impl Ends for Taking {
    type Error = std::convert::Infallible;

    fn take(&mut self, topic: usize, merge: &mut Merge) -> Result<usize, Self::Error> {
        let all = if topic == 0 {
            std::mem::take(&mut self.0)
        } else {
            Vec::new()
        };
        all.iter().for_each(|arrival| merge.push(topic, *arrival));
        Ok(all.len())
    }

    fn deliver(&mut self, _: usize, sample: &Arrival, _: Lateness) -> Outcome {
        self.1.push((sample.origin, sample.in_feed.0));
        Outcome::Delivered
    }
}

/// Returns what comes out of these samples of origins, with their numbers in a feed.
/// One without a number is of no feed.
fn merged(of_feed: &[(u64, u64)], channel: u64) -> Vec<(u64, u64)> {
    let arrivals = (1..)
        .zip(of_feed)
        .map(|(order, &(origin, number))| Arrival {
            origin,
            order,
            number: order,
            channel: if number > 0 { channel } else { 0 },
            in_feed: (number, 0),
            ..Arrival::default()
        });
    let mut ends = Taking(arrivals.collect(), Vec::new());
    let mut merge = Merge::new(1, 100, true);
    while merge.turn(&mut ends, 0, 100).unwrap() > 0 {}
    ends.1
}

#[test]
fn samples_of_one_feed_from_several_gateways_are_in_its_order() {
    let both = [(7, 1), (8, 1), (8, 2), (7, 3), (8, 4)];
    assert_eq!(merged(&both, 5), both);
    let by_gateway = [(7, 1), (7, 3), (8, 1), (8, 2), (8, 4)];
    assert_eq!(merged(&both, 0), by_gateway, "of no feed");
    let again = [(7, 3), (8, 1), (7, 1)];
    assert_eq!(
        merged(&again, 5),
        [(7, 3), (7, 1), (8, 1)],
        "numbers begin again"
    );
    // A sample of no feed does not change that: 2 is lacking at the first gateway.
    let beside = [(7, 1), (7, 0), (7, 3), (8, 1), (8, 2), (8, 3)];
    let in_order = [(7, 1), (7, 0), (8, 1), (8, 2), (7, 3), (8, 3)];
    assert_eq!(merged(&beside, 5), in_order);
}

#[test]
fn samples_without_an_order_are_in_that_of_their_topic() {
    let arrivals = [3, 1, 2].map(|number| Arrival {
        origin: 7,
        number,
        in_feed: (number, 0),
        ..Arrival::default()
    });
    let mut ends = Taking(arrivals.to_vec(), Vec::new());
    let mut merge = Merge::new(2, 100, true);
    while merge.turn(&mut ends, 0, 100).unwrap() > 0 {}
    assert_eq!(ends.1, [(7, 1), (7, 2), (7, 3)]);
}

#[test]
fn origins_without_end_are_delivered_and_take_no_more_memory() {
    let arrivals = (1..=20_000).map(|origin| Arrival {
        origin,
        order: 1,
        number: 1,
        ..Arrival::default()
    });
    let mut ends = Taking(arrivals.collect(), Vec::new());
    let mut merge = Merge::new(2, 20_000, true);
    while merge.turn(&mut ends, 0, 256).unwrap() > 0 {}
    assert_eq!(ends.1.len(), 20_000);
    assert!(merge.senders.get(255).is_some() && merge.senders.get(256).is_none());
}
