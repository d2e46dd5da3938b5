//! Tests of edges with plants that lose messages, die and return.

mod election;
mod restarts;
mod returns;
mod snapshots;
mod times;

use super::*;
use crate::book::BookConfig;
use crate::event::{Action, entry};
use crate::follower::{Course, FollowerConfig, Mapped};
use crate::instruments::{Definition, Instruments, Name};
use crate::mapping::Outcome;
use crate::market::{Market, MarketConfig};
use crate::price::Price;
use fanfare_feed::arbiter::ArbiterConfig;
use fanfare_feed::recovery::{Numbering, RecoveryConfig};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const INSTRUMENTS: u32 = 4;

fn config(numbering: Numbering) -> FollowerConfig {
    FollowerConfig::new(MarketConfig {
        book: BookConfig::by_price(20).unwrap(),
        recovery: RecoveryConfig {
            starts_empty: false,
            ..RecoveryConfig::new(numbering)
        },
        has_natural_refresh: false,
        source: 1,
    })
}

fn edge(numbering: Numbering, table: Instruments) -> Edge {
    let config = EdgeConfig {
        follower: config(numbering),
        arbiter: ArbiterConfig::default(),
    };
    Edge::new(config, table)
}

/// A plant, and the steps that it relays.
struct Plant {
    course: Course,
    table: Instruments,
    origin: u64,
    is_alive: bool,
    /// The instruments of the feed that it knows. It ignores messages about others.
    knows: [bool; INSTRUMENTS as usize],
}

impl Plant {
    fn new(origin: u64, numbering: Numbering) -> Self {
        let mut table = Instruments::new(100);
        // No two plants number them alike.
        for at in 0..INSTRUMENTS {
            let of = (at + origin as u32) % INSTRUMENTS;
            let symbol = [b'A' + of as u8];
            let name = Name::of_symbol(&symbol);
            let definition = Definition::named(name);
            table.define(&definition).unwrap();
        }
        let mut course = Course::new(config(numbering));
        course.keep_steps();
        Self {
            course,
            table,
            origin,
            is_alive: true,
            knows: [origin == 0; INSTRUMENTS as usize],
        }
    }

    /// Returns the plant's number of an instrument of the feed.
    fn number(&self, of: u32) -> u32 {
        (of + INSTRUMENTS - self.origin as u32 % INSTRUMENTS) % INSTRUMENTS
    }

    fn message(&mut self, now: u64, number: u32, events: &[Event]) {
        let own = |event: &Event| Event {
            instrument: InstrumentId(self.number(event.instrument.0)),
            ..*event
        };
        let is_known = |event: &&Event| self.knows[event.instrument.0 as usize];
        let events: Vec<Event> = events.iter().filter(is_known).map(own).collect();
        let mapped = Mapped {
            outcome: Ok(Outcome::UNMAPPED),
            events: &events,
            faults: &[],
            unchanged: &[],
            received: now,
        };
        self.course.message(now, Some(number), &mapped, &mut |_| {});
    }

    /// Processes a snapshot of the feed's snapshot line.
    fn snapshot(&mut self, now: u64, of: u32, last: u32, snapshot: &[Event]) {
        let instrument = InstrumentId(self.number(of));
        self.knows[of as usize] = true;
        let own = |event: &Event| Event {
            instrument,
            ..*event
        };
        let events: Vec<Event> = snapshot.iter().map(own).collect();
        let market = &mut self.course.market;
        market.snapshot((now, now), Some(last), &events, &mut |_| {});
    }

    fn relay(&mut self, now: u64, edge: &mut Edge, is_lost: bool) {
        let Some(steps) = self.course.steps() else {
            return;
        };
        if !is_lost {
            steps.parts(3, |steps, events| {
                edge.steps(now, self.origin, steps, events, &mut |_| {});
            });
        }
        steps.clear();
    }

    fn show(&self, now: u64, of: u32, edge: &mut Edge) {
        if !self.knows[of as usize] {
            return;
        }
        let id = InstrumentId(self.number(of));
        let mut bytes = Vec::new();
        self.table.get(id).unwrap().write(&mut bytes);
        Relayed::mark(&mut bytes, self.course.restarts());
        let (market, mut events) = (&self.course.market, Vec::new());
        let state = market.state(id);
        if state == Some(State::Live) {
            market.snapshot_of(id, &mut |event| events.push(*event));
        }
        let snapshot = Relayed {
            instrument: &bytes,
            is_closed: state == Some(State::Closed),
            last: self.course.last_number(),
            received: now,
            events: &events,
        };
        edge.snapshot(now, self.origin, &snapshot, &mut |_| {});
    }
}

fn level(of: u32, rpt_seq: u32, price: i64, size: i64) -> Event {
    let action = match size {
        0 => Action::Delete,
        _ => Action::New,
    };
    Event {
        kind: Kind::Level,
        instrument: InstrumentId(of),
        rpt_seq,
        action,
        entry: entry::BID,
        price: Price::from_units(price),
        size,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

/// A step of the scenario.
#[derive(Debug, Clone)]
enum Act {
    /// A message with a change of this instrument, the plants that do not receive it, and those
    /// whose steps the edge does not.
    Message(u32, i64, [bool; 2], [bool; 2]),
    /// The plant shows an instrument to the edge.
    Show(usize, u32),
    /// The snapshot line shows an instrument to the plants.
    Snapshot(u32),
    /// The plant is gone, or returns.
    Die(usize),
    /// Time passes.
    Wait,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let seldom = || proptest::bool::weighted(0.1);
    let act = prop_oneof![
        10 => (0..INSTRUMENTS, 1i64..12, [seldom(), seldom()], [seldom(), seldom()])
            .prop_map(|(of, price, a, b)| Act::Message(of, price, a, b)),
        3 => (0usize..2, 0..INSTRUMENTS).prop_map(|(plant, of)| Act::Show(plant, of)),
        2 => (0..INSTRUMENTS).prop_map(Act::Snapshot),
        1 => (0usize..2).prop_map(Act::Die),
        2 => Just(Act::Wait),
    ];
    proptest::collection::vec(act, 1..200)
}

/// The feed with its true books, its plants, and an edge.
struct World {
    now: u64,
    number: u32,
    rpt_seq: [u32; INSTRUMENTS as usize],
    /// The prices of each book.
    prices: [std::collections::BTreeSet<i64>; INSTRUMENTS as usize],
    /// The reference: a plant that loses nothing.
    truth: Plant,
    plants: [Plant; 2],
    edge: Edge,
    numbering: Numbering,
    origins: u64,
}

impl World {
    fn new(numbering: Numbering) -> Self {
        let mut world = Self {
            now: 0,
            number: 1000,
            rpt_seq: [0; INSTRUMENTS as usize],
            prices: Default::default(),
            truth: Plant::new(0, numbering),
            plants: [Plant::new(1, numbering), Plant::new(2, numbering)],
            edge: edge(numbering, Instruments::new(100)),
            numbering,
            origins: 2,
        };
        // The reference begins with empty books.
        let all: Vec<_> = (0..INSTRUMENTS).collect();
        world.truth.message(0, 1000, &[]);
        for of in all {
            let empty = Event {
                flags: Flags::SNAPSHOT.with(Flags::LAST),
                ..Event::EMPTY
            };
            world.truth.snapshot(0, of, 1000, &[empty]);
        }
        world
    }

    fn act(&mut self, act: &Act) {
        self.now += MS;
        match *act {
            Act::Message(of, price, unheard, lost) => {
                self.number += 1;
                let rpt_seq = &mut self.rpt_seq[of as usize];
                *rpt_seq += 1;
                let prices = &mut self.prices[of as usize];
                let size = match self.number.is_multiple_of(3) && prices.remove(&price) {
                    true => 0,
                    false => 1 + i64::from(self.number % 5),
                };
                if size > 0 {
                    prices.insert(price);
                }
                let event = level(of, *rpt_seq, price, size);
                self.truth.message(self.now, self.number, &[event]);
                for (at, plant) in self.plants.iter_mut().enumerate() {
                    if plant.is_alive && !unheard[at] {
                        plant.message(self.now, self.number, &[event]);
                    }
                    plant.relay(self.now, &mut self.edge, lost[at] || !plant.is_alive);
                }
            }
            Act::Show(at, of) => {
                if self.plants[at].is_alive {
                    self.plants[at].show(self.now, of, &mut self.edge);
                }
            }
            Act::Snapshot(of) => {
                let snapshot = self.truth_of(of);
                for plant in self.plants.iter_mut().filter(|plant| plant.is_alive) {
                    plant.snapshot(self.now, of, self.number, &snapshot);
                }
            }
            Act::Die(at) if self.plants[at].is_alive => {
                self.plants[at].is_alive = false;
                self.edge
                    .gone(self.now, self.plants[at].origin, &mut |_| {});
            }
            Act::Die(at) => {
                self.origins += 1;
                self.plants[at] = Plant::new(self.origins, self.numbering);
            }
            Act::Wait => {
                self.now += 100 * MS;
                self.edge.handle_timeout(self.now, &mut |_| {});
            }
        }
    }

    /// Returns the edge's state of an instrument: whether it is live, and its book as a snapshot.
    fn snapshot(market: &Market, id: InstrumentId) -> Vec<Event> {
        let mut all = Vec::new();
        market.snapshot_of(id, &mut |event| {
            all.push(Event {
                instrument: InstrumentId(0),
                ..*event
            });
        });
        all
    }

    /// Shows an instrument to one plant, and its snapshot of it to the edge.
    fn teach(&mut self, at: usize, of: u32) {
        let snapshot = self.truth_of(of);
        let plant = &mut self.plants[at];
        plant.snapshot(self.now, of, self.number, &snapshot);
        plant.show(self.now, of, &mut self.edge);
    }

    /// Returns the edge's state of an instrument that it knows.
    fn state_of(&self, symbol: &[u8]) -> Option<State> {
        let id = self.edge.instruments().by_symbol(symbol).unwrap();
        self.edge.market().state(id)
    }

    /// Returns the snapshot of the feed's snapshot line.
    fn truth_of(&self, of: u32) -> Vec<Event> {
        let mut snapshot = Vec::new();
        let id = InstrumentId(self.truth.number(of));
        let market = &self.truth.course.market;
        market.snapshot_of(id, &mut |event| snapshot.push(*event));
        snapshot
    }

    /// Checks that every live instrument without messages in transit equals the reference.
    fn check(&self) -> Result<u32, TestCaseError> {
        let mut live = 0;
        for of in 0..INSTRUMENTS {
            let symbol = [b'A' + of as u8];
            let Some(own) = self.edge.instruments().by_symbol(&symbol) else {
                continue;
            };
            let market = self.edge.market();
            if market.state(own) != Some(State::Live) {
                continue;
            }
            let truth = &self.truth.course.market;
            let id = InstrumentId(self.truth.number(of));
            let is_current = match self.numbering {
                Numbering::Instrument => market.position(own) == truth.position(id),
                Numbering::Channel => self.edge.last_number() == Some(self.number),
            };
            if is_current {
                live += 1;
                let (own, truth) = (Self::snapshot(market, own), Self::snapshot(truth, id));
                prop_assert_eq!(own, truth, "instrument {}", of);
            }
        }
        Ok(live)
    }

    /// Lets all plants show all instruments again, so that everything recovers.
    fn heal(&mut self) {
        for at in 0..2 {
            if !self.plants[at].is_alive {
                self.act(&Act::Die(at));
            }
        }
        for _ in 0..4 {
            for of in 0..INSTRUMENTS {
                self.act(&Act::Message(of, 5, [false; 2], [false; 2]));
                self.act(&Act::Snapshot(of));
            }
            self.act(&Act::Wait);
            for of in 0..INSTRUMENTS {
                self.act(&Act::Show(0, of));
                self.act(&Act::Show(1, of));
            }
        }
    }
}

proptest! {
    #[test]
    fn an_edge_is_never_silently_wrong_and_always_comes_back(
        acts in acts(),
        by_channel in any::<bool>(),
    ) {
        let numbering = match by_channel {
            true => Numbering::Channel,
            false => Numbering::Instrument,
        };
        let mut world = World::new(numbering);
        for act in &acts {
            world.act(act);
            world.check()?;
        }
        world.heal();
        prop_assert_eq!(world.check()?, INSTRUMENTS);
    }

    #[test]
    fn steps_and_bytes_are_the_same(bytes: [u8; Step::SIZE]) {
        if let Some(step) = Step::from_bytes(&bytes) {
            prop_assert_eq!(Step::from_bytes(&step.to_bytes()), Some(step));
        }
    }
}

fn run(world: &mut World, acts: impl IntoIterator<Item = Act>) {
    acts.into_iter().for_each(|act| world.act(&act));
}

fn whole(numbering: Numbering) -> World {
    let mut world = World::new(numbering);
    world.heal();
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
    world
}

#[test]
fn the_end_of_one_of_two_plants_changes_nothing() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let mut world = whole(numbering);
        let before = world.edge.market().recovery_stats().recoveries;
        let message = |of| Act::Message(of, 7, [false; 2], [false; 2]);
        run(
            &mut world,
            [message(0), Act::Die(0), message(1), message(2)],
        );
        assert_eq!(world.check().unwrap(), INSTRUMENTS);
        assert_eq!(world.edge.market().recovery_stats().recoveries, before);
    }
}

#[test]
fn what_one_plant_lost_the_other_brings() {
    let mut world = whole(Numbering::Channel);
    let message = |of, first| Act::Message(of, 7, [first, !first], [false; 2]);
    run(
        &mut world,
        (0..40).map(|n| message(n % INSTRUMENTS, n % 2 == 0)),
    );
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
    assert_eq!(world.edge.arbiter_stats().gaps, 0);
}

#[test]
fn without_plants_books_are_stale_and_what_was_missed_is_known() {
    let mut world = whole(Numbering::Channel);
    run(&mut world, [Act::Die(0), Act::Die(1)]);
    let id = world.edge.instruments().by_symbol(b"A").unwrap();
    assert_eq!(world.edge.market().state(id), Some(State::Stale));
    run(
        &mut world,
        [Act::Message(0, 7, [true; 2], [true; 2]), Act::Die(0)],
    );
    let step = Step::position(world.number);
    let origin = world.plants[0].origin;
    world
        .edge
        .steps(world.now, origin, &[step], &[], &mut |_| {});
    let state = world.edge.market().state(id);
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
    world.heal();
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}

#[test]
fn late_snapshots_do_not_bring_a_plant_back() {
    let mut world = whole(Numbering::Instrument);
    run(&mut world, [Act::Die(0)]);
    let plant = &world.plants[0];
    plant.show(world.now, 0, &mut world.edge);
    assert_eq!(world.edge.plants(), 1);
    // A plant that only seemed gone has steps again.
    let step = Step::position(world.number);
    let edge = &mut world.edge;
    edge.steps(world.now, plant.origin, &[step], &[], &mut |_| {});
    plant.show(world.now, 0, edge);
    assert_eq!(edge.plants(), 2);
}

#[test]
fn instruments_known_in_advance_keep_their_numbers() {
    let mut plant = Plant::new(1, Numbering::Channel);
    plant.knows = [true; INSTRUMENTS as usize];
    let table = Plant::new(2, Numbering::Channel).table;
    let names = |table: &Instruments| {
        let all = table.iter();
        all.map(|known| known.definition.name.symbol.to_vec())
            .collect::<Vec<_>>()
    };
    let expected = names(&table);
    assert_ne!(expected, names(&plant.table));
    let mut edge = edge(Numbering::Channel, table);
    for of in 0..INSTRUMENTS {
        plant.show(0, of, &mut edge);
    }
    assert_eq!(names(edge.instruments()), expected);
}

#[test]
fn a_position_drops_no_message_that_waits_behind_a_gap() {
    let mut world = whole(Numbering::Instrument);
    run(&mut world, [Act::Die(1)]);
    let (number, plant) = (world.number, &world.plants[0]);
    let trade = Event {
        kind: Kind::Trade,
        ..level(plant.number(0), world.rpt_seq[0] + 1, 7, 1)
    };
    let mut trades = 0;
    let mut send = |event: &Event| trades += u32::from(event.kind == Kind::Trade);
    let message = |number, events| Step {
        events,
        ..Step::new(What::Changes, number, 0)
    };
    let steps = [message(number + 2, 1), Step::position(number + 2)];
    let edge = &mut world.edge;
    edge.steps(world.now, plant.origin, &steps, &[trade], &mut send);
    let lost = u64::from(number) + 1;
    let missing: Vec<_> = edge.market().missing().ranges().flatten().collect();
    assert_eq!(missing, [lost]);
    assert_eq!(edge.last_number(), Some(number + 2));
    // The plant recovers it by a replay.
    let steps = [message(number + 1, 0)];
    edge.steps(world.now, plant.origin, &steps, &[], &mut send);
    assert!(edge.market().missing().is_empty());
    assert_eq!(trades, 1);
}

#[test]
fn a_replay_behind_a_position_is_applied() {
    for is_late in [true, false] {
        let mut world = whole(Numbering::Instrument);
        run(&mut world, [Act::Die(1)]);
        let (number, plant) = (world.number + 1, &world.plants[0]);
        let trade = Event {
            kind: Kind::Trade,
            ..level(plant.number(0), world.rpt_seq[0] + 1, 7, 1)
        };
        let mut trades = 0;
        let mut send = |event: &Event| trades += u32::from(event.kind == Kind::Trade);
        let edge = &mut world.edge;
        // The plant could not decode the last packet so far.
        let steps = [Step::position(number)];
        edge.steps(world.now, plant.origin, &steps, &[], &mut send);
        let missing: Vec<_> = edge.market().missing().ranges().flatten().collect();
        assert_eq!((missing.len(), edge.stats().undelivered), (1, 1));
        let replayed = Step {
            events: 1,
            is_late,
            ..Step::new(What::Changes, number, 0)
        };
        for _ in 0..2 {
            edge.steps(world.now, plant.origin, &[replayed], &[trade], &mut send);
        }
        assert!(edge.market().missing().is_empty());
        assert_eq!(edge.last_number(), Some(number));
        assert_eq!(trades, 1);
    }
}

#[test]
fn a_replay_from_far_behind_is_no_restart() {
    let mut world = whole(Numbering::Channel);
    let (now, number) = (world.now, world.number);
    let origins = [0, 1].map(|at| world.plants[at].origin);
    let message = |ahead| Step::new(What::Changes, number + ahead, 0);
    let late = |ahead| Step {
        is_late: true,
        ..message(ahead)
    };
    let later: Vec<_> = (3..=2_000).map(message).collect();
    let edge = &mut world.edge;
    let before = edge.follower_stats().late;
    let mut send = |_: &Event| {};
    for steps in [&later[..], &[late(1), late(2)]] {
        for origin in origins {
            edge.steps(now, origin, steps, &[], &mut send);
        }
    }
    assert_eq!(edge.follower_stats().late, before + 2);
    assert!(edge.market().missing().is_empty());
    assert_eq!(edge.follower_stats().resets, 0);
    assert_eq!(edge.last_number(), Some(number + 2_000));
}

#[test]
fn a_replay_that_another_plant_brings_in_turn_is_applied_once() {
    let mut world = whole(Numbering::Channel);
    let number = world.number;
    let [first, second] = [0, 1].map(|at| (world.plants[at].origin, world.plants[at].number(0)));
    let mut trades = 0;
    let mut send = |event: &Event| trades += u32::from(event.kind == Kind::Trade);
    let edge = &mut world.edge;
    let later = Step::new(What::Changes, number + 2, 0);
    edge.steps(world.now, first.0, &[later], &[], &mut send);
    let now = world.now + ArbiterConfig::default().gap_timeout;
    edge.handle_timeout(now, &mut send);
    assert_eq!(edge.market().missing().ranges().count(), 1);
    let late = edge.follower_stats().late;
    for ((origin, instrument), is_late) in [(first, true), (second, false)] {
        let step = Step {
            events: 1,
            is_late,
            ..Step::new(What::Changes, number + 1, 0)
        };
        let trade = Event {
            kind: Kind::Trade,
            ..level(instrument, 1, 7, 1)
        };
        edge.steps(now, origin, &[step], &[trade], &mut send);
    }
    assert!(edge.market().missing().is_empty());
    assert_eq!(edge.follower_stats().late, late + 1);
    assert_eq!(trades, 1);
}

#[test]
fn numbers_without_an_event_reach_the_edge() {
    let mut world = whole(Numbering::Instrument);
    let before = world.edge.market().recovery_stats().recoveries;
    world.number += 1;
    world.rpt_seq[0] += 1;
    let number = [Event::bare_number(InstrumentId(0), world.rpt_seq[0])];
    world.truth.message(world.now, world.number, &number);
    for plant in &mut world.plants {
        plant.message(world.now, world.number, &number);
        plant.relay(world.now, &mut world.edge, false);
    }
    run(&mut world, [Act::Message(0, 7, [false; 2], [false; 2])]);
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
    assert_eq!(world.edge.market().recovery_stats().recoveries, before);
}

#[test]
fn a_plant_that_begins_anew_later_than_another_is_waited_for() {
    let mut world = whole(Numbering::Instrument);
    let [first, second] = [0, 1].map(|at| world.plants[at].origin);
    let reset = Step::new(What::Reset, 1, 0);
    let message = |number| Step::new(What::Changes, number, 0);
    let edge = &mut world.edge;
    let mut send = |_: &Event| {};
    edge.steps(1, first, &[reset, message(1), message(2)], &[], &mut send);
    let old = world.number + 1;
    edge.steps(2, second, &[message(old)], &[], &mut send);
    assert_eq!(edge.stats().of_another_time, 1);
    edge.steps(
        3,
        second,
        &[reset, message(1), message(2), message(3)],
        &[],
        &mut send,
    );
    edge.steps(4, first, &[message(3), message(4)], &[], &mut send);
    assert_eq!(edge.arbiter_stats().resets, 1);
    assert_eq!(
        (edge.last_number(), edge.stats().of_another_time),
        (Some(4), 1)
    );
}

#[test]
fn a_status_in_a_snapshot_waits_for_the_messages_before_it() {
    let mut world = whole(Numbering::Instrument);
    run(&mut world, [Act::Die(1)]);
    let (now, number, plant) = (world.now, world.number, &mut world.plants[0]);
    let instrument = InstrumentId(plant.number(0));
    let of = |status| Event {
        instrument,
        kind: Kind::Status,
        id: status,
        ..Event::EMPTY
    };
    let message = |ahead| Step {
        events: 1,
        ..Step::new(What::Changes, number + ahead, 0)
    };
    let mut seen = Vec::new();
    let mut send = |event: &Event| {
        if event.kind == Kind::Status {
            seen.push(event.id);
        }
    };
    let cases: [(u16, u32, &[Step], &[Event]); 4] = [
        (17, 0, &[], &[]),
        (19, 2, &[message(1), message(2)], &[of(18), of(19)]),
        // The message is missing.
        (20, 3, &[Step::position(number + 3)], &[]),
        // The messages never arrive.
        (21, 9, &[], &[]),
    ];
    for (status, ahead, steps, events) in cases {
        plant.table.set_status(instrument, status);
        let mut bytes = Vec::new();
        plant.table.get(instrument).unwrap().write(&mut bytes);
        let snapshot = Relayed {
            instrument: &bytes,
            is_closed: false,
            last: Some(number + ahead),
            received: now,
            events: &[],
        };
        let (edge, origin) = (&mut world.edge, plant.origin);
        edge.snapshot(now, origin, &snapshot, &mut send);
        edge.steps(now, origin, steps, events, &mut send);
    }
    let overdue = now + 1_000 * MS;
    assert!(world.edge.poll_timeout().is_some_and(|at| at <= overdue));
    world.edge.handle_timeout(overdue, &mut send);
    assert_eq!(seen, [17, 18, 19, 20, 21]);
}

#[test]
fn another_mapping_at_a_plant_begins_all_books_anew() {
    let mut world = whole(Numbering::Channel);
    let [plant, _] = &mut world.plants;
    plant.course.distrust(world.now, &mut |_| {});
    plant.relay(world.now, &mut world.edge, false);
    assert_eq!(world.check().unwrap(), 0);
    world.heal();
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}

#[test]
fn a_packet_that_lacks_several_messages_has_no_steps() {
    let mut steps = Steps::with_room();
    for _ in 0..2 {
        steps.changes(5, 0, &[]);
        steps.cut(5);
    }
    steps.changes(5, 0, &[]);
    assert!(steps.is_empty());
    // The same packet comes again, from a replay.
    steps.begin_packet(false);
    steps.changes(5, 0, &[]);
    assert_eq!(steps.steps.len(), 1);
    steps.changes(6, 0, &[]);
    assert_eq!(steps.steps.len(), 2);
}

#[test]
fn the_end_of_an_instrument_comes_with_the_snapshots_of_the_first_plant() {
    let mut world = whole(Numbering::Instrument);
    let id = world.edge.instruments().by_symbol(b"A").unwrap();
    let number = InstrumentId(world.plants[0].number(0));
    let show = |world: &mut World, at: usize| {
        world.plants[at].show(world.now, 0, &mut world.edge);
        world.edge.market().state(id)
    };
    world.plants[0].course.market.close(number, &mut |_| {});
    assert_eq!(show(&mut world, 0), Some(State::Closed));
    assert_eq!(show(&mut world, 1), Some(State::Closed));
    world.plants[0].course.market.open(number, &mut |_| {});
    let closed = show(&mut world, 0);
    assert_eq!(closed, Some(State::Closed), "the plant has no book of it");
    world.act(&Act::Snapshot(0));
    assert_eq!(show(&mut world, 0), Some(State::Live));
    let (plant, mut bytes) = (&world.plants[0], Vec::new());
    plant.table.get(number).unwrap().write(&mut bytes);
    let before = Relayed {
        instrument: &bytes,
        is_closed: true,
        last: plant.course.last_number().map(|last| last - 1),
        received: world.now,
        events: &[],
    };
    let edge = &mut world.edge;
    edge.snapshot(world.now, plant.origin, &before, &mut |_| {});
    assert_eq!(edge.market().state(id), Some(State::Live));
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}
