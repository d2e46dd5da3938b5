//! Tests of snapshots around restarts of the channel.

use super::*;
use crate::instruments::Instrument;
use crate::mapping::{Does, Snapshot};
use fanfare_feed::channel;

/// The longest time from the making of a snapshot to its arrival.
const AGE: u64 = RecoveryConfig::new(Numbering::Channel).snapshot_age;

/// A snapshot on its way to the edge.
struct Sent {
    instrument: Vec<u8>,
    last: Option<u32>,
    events: Vec<Event>,
}

/// A plant that loses nothing, and an edge, whose books are as of messages of the channel.
struct Pair {
    plant: Plant,
    edge: Edge,
    now: u64,
    /// The number of the last message.
    number: u32,
    /// The restarts that the edge has heard of.
    restarts: u16,
    sent: Vec<Sent>,
}

impl Pair {
    /// Returns a pair with live books.
    fn new() -> Self {
        let mut pair = Self {
            plant: Plant::new(1, Numbering::Channel),
            edge: edge(Numbering::Channel, Instruments::new(100)),
            now: 0,
            number: 1000,
            restarts: 0,
            sent: Vec::new(),
        };
        pair.plant.knows = [true; INSTRUMENTS as usize];
        pair.show_all();
        pair.whole_books(50);
        pair.relay(false);
        assert_eq!(pair.check().unwrap(), INSTRUMENTS);
        pair
    }

    /// Brings a snapshot of each instrument in the channel.
    fn whole_books(&mut self, price: i64) {
        (0..INSTRUMENTS).for_each(|of| self.whole_book(of, price));
    }

    /// Brings a snapshot in the channel: the plant's book, or one with a bid at this price if the
    /// plant has none.
    fn whole_book(&mut self, of: u32, price: i64) {
        self.number += 1;
        let instrument = InstrumentId(self.plant.number(of));
        let (market, mut events) = (&self.plant.course.market, Vec::new());
        if market.state(instrument) == Some(State::Live) {
            market.snapshot_of(instrument, &mut |event| events.push(*event));
        } else {
            events.push(Event {
                instrument,
                flags: Flags::SNAPSHOT,
                ..Event::EMPTY
            });
            events.push(Event {
                instrument,
                flags: Flags::SNAPSHOT.with(Flags::LAST),
                ..level(of, 0, price, 1)
            });
        }
        let snapshot = Snapshot {
            instrument,
            rpt_seq: 0,
            last_processed: None,
            total: None,
            fragment: None,
        };
        let mapped = Mapped {
            outcome: Ok(Outcome {
                does: Some(Does::Snapshot),
                number: Some(self.number.into()),
                snapshot: Some(snapshot),
                ..Outcome::UNMAPPED
            }),
            events: &events,
            faults: &[],
            unchanged: &[],
            received: self.now,
        };
        let course = &mut self.plant.course;
        course.message(self.now, Some(self.number), &mapped, &mut |_| {});
    }

    fn change(&mut self, of: u32, price: i64) {
        self.number += 1;
        let event = level(of, 0, price, 1);
        self.plant.message(self.now, self.number, &[event]);
    }

    fn restart(&mut self) {
        self.restart_if(true);
    }

    fn restart_if(&mut self, announced: bool) {
        let reset = channel::Event::Reset {
            expected: self.number + 1,
            next: 1,
            announced,
        };
        self.plant.course.unusual(self.now, &reset, &mut |_| {});
        self.number = 0;
    }

    fn relay(&mut self, is_lost: bool) {
        self.plant.relay(self.now, &mut self.edge, is_lost);
        if !is_lost {
            self.plant.course.keep_alive();
            self.plant.relay(self.now, &mut self.edge, false);
            self.restarts = self.plant.course.restarts();
        }
    }

    /// Relays the restart alone.
    fn relay_restart(&mut self) {
        let restarts = self.plant.course.restarts();
        let step = Step {
            last: u32::from(restarts) << 16,
            ..Step::new(What::Reset, 1, 0)
        };
        let (edge, origin) = (&mut self.edge, self.plant.origin);
        edge.steps(self.now, origin, &[step], &[], &mut |_| {});
        self.restarts = restarts;
    }

    /// Makes a snapshot, which is on its way from then on.
    fn make(&mut self, of: u32) {
        let plant = &self.plant;
        let id = InstrumentId(plant.number(of));
        let (mut instrument, mut events) = (Vec::new(), Vec::new());
        plant.table.get(id).unwrap().write(&mut instrument);
        Relayed::mark(&mut instrument, plant.course.restarts());
        let market = &plant.course.market;
        if market.state(id) == Some(State::Live) {
            market.snapshot_of(id, &mut |event| events.push(*event));
        }
        let last = plant.course.last_number();
        self.sent.push(Sent {
            instrument,
            last,
            events,
        });
    }

    /// Brings a snapshot to the edge.
    fn show(&mut self, at: usize) {
        let sent = self.sent.swap_remove(at);
        let snapshot = Relayed {
            instrument: &sent.instrument,
            is_closed: false,
            last: sent.last,
            received: self.now,
            events: &sent.events,
        };
        let origin = self.plant.origin;
        self.edge.snapshot(self.now, origin, &snapshot, &mut |_| {});
    }

    fn show_all(&mut self) {
        (0..INSTRUMENTS).for_each(|of| self.make(of));
        while !self.sent.is_empty() {
            self.show(0);
        }
    }

    /// Checks that each live book of an edge that is as of the last message is that of the plant.
    /// Returns their number.
    fn check(&self) -> Result<u32, TestCaseError> {
        let is_current = self.edge.last_number() == Some(self.number)
            && self.restarts == self.plant.course.restarts();
        let mut live = 0;
        for of in (0..INSTRUMENTS).filter(|_| is_current) {
            let symbol = [b'A' + of as u8];
            let own = self.edge.instruments().by_symbol(&symbol).unwrap();
            let market = self.edge.market();
            if market.state(own) != Some(State::Live) {
                continue;
            }
            live += 1;
            let id = InstrumentId(self.plant.number(of));
            let of_plant = &self.plant.course.market;
            prop_assert_eq!(of_plant.state(id), Some(State::Live), "instrument {}", of);
            let (own, expected) = (World::snapshot(market, own), World::snapshot(of_plant, id));
            prop_assert_eq!(own, expected, "instrument {}", of);
        }
        Ok(live)
    }
}

#[test]
fn snapshots_in_the_channel_restore_books_at_once_behind_an_announced_restart() {
    for announced in [true, false] {
        let mut pair = Pair::new();
        pair.restart_if(announced);
        pair.whole_books(60);
        for of in 0..INSTRUMENTS {
            let id = InstrumentId(pair.plant.number(of));
            let state = pair.plant.course.market.state(id);
            assert_eq!(state == Some(State::Live), announced, "{state:?}");
        }
        // The steps do not have whether it was announced. The plant's snapshots follow its states.
        pair.relay(false);
        assert_eq!(pair.check().unwrap(), 0);
        pair.show_all();
        let live = if announced { INSTRUMENTS } else { 0 };
        assert_eq!(pair.check().unwrap(), live);
    }
}

#[test]
fn snapshots_of_a_plant_restore_books_at_once_behind_a_restart() {
    let mut pair = Pair::new();
    pair.restart();
    pair.relay(false);
    pair.whole_books(60);
    // The edge does not hear of them.
    pair.relay(true);
    pair.relay(false);
    assert_eq!(pair.check().unwrap(), 0);
    pair.show_all();
    assert_eq!(pair.check().unwrap(), INSTRUMENTS);
}

#[test]
fn a_snapshot_that_comes_in_front_of_its_restart_waits_for_that() {
    let mut pair = Pair::new();
    pair.restart();
    pair.whole_books(60);
    pair.show_all();
    // The others are lost.
    pair.relay(true);
    pair.relay_restart();
    pair.relay(false);
    assert_eq!(pair.check().unwrap(), INSTRUMENTS);
}

#[test]
fn a_snapshot_from_before_a_restart_is_never_taken() {
    let mut pair = Pair::new();
    pair.change(0, 55);
    pair.make(0);
    pair.restart();
    pair.change(0, 65);
    pair.relay(false);
    pair.now += 2 * AGE;
    pair.show(0);
    assert_eq!(pair.check().unwrap(), 0);
}

#[test]
fn a_snapshot_from_before_a_restart_is_not_taken_by_an_edge_that_joins_after_it() {
    for is_gone in [false, true] {
        let mut pair = Pair::new();
        (0..INSTRUMENTS).for_each(|of| pair.make(of));
        pair.restart();
        pair.relay(true);
        pair.edge = edge(Numbering::Channel, Instruments::new(100));
        while !pair.sent.is_empty() {
            pair.show(0);
        }
        if is_gone {
            let (edge, origin) = (&mut pair.edge, pair.plant.origin);
            edge.gone(pair.now, origin, &mut |_| {});
        }
        pair.change(0, 65);
        pair.relay(false);
        assert_eq!(pair.check().unwrap(), 0);
        pair.show_all();
        pair.whole_books(60);
        pair.relay(false);
        pair.show_all();
        assert_eq!(pair.check().unwrap(), INSTRUMENTS);
    }
}

#[test]
fn a_snapshot_in_front_of_the_first_step_of_its_plant_is_taken_with_that() {
    let mut pair = Pair::new();
    pair.edge = edge(Numbering::Channel, Instruments::new(100));
    pair.show_all();
    pair.relay(false);
    assert_eq!(pair.check().unwrap(), INSTRUMENTS);
}

#[test]
fn a_snapshot_without_a_book_from_before_a_restart_only_names_its_instrument() {
    let mut pair = Pair::new();
    let id = InstrumentId(pair.plant.number(0));
    // The plant has no books: its snapshots have the status alone.
    pair.restart();
    pair.plant.table.set_status(id, 18);
    pair.make(0);
    pair.restart();
    pair.relay(false);
    pair.plant.table.set_status(id, 17);
    pair.make(0);
    // The later one arrives first.
    for at in [1, 0] {
        pair.show(at);
        let own = pair.edge.instruments().by_symbol(b"A").unwrap();
        assert_eq!(pair.edge.instruments().get(own).unwrap().status, 17);
    }
}

#[test]
fn a_snapshot_of_an_earlier_version_is_taken_once_none_is_of_the_numbers_before() {
    let mut pair = Pair::new();
    pair.restart();
    pair.relay(false);
    pair.whole_books(60);
    pair.relay(true);
    pair.relay(false);
    for (wait, live) in [(AGE - 1, 0), (1, INSTRUMENTS)] {
        pair.now += wait;
        (0..INSTRUMENTS).for_each(|of| pair.make(of));
        while let Some(sent) = pair.sent.first_mut() {
            Instrument::set_mark(&mut sent.instrument, 0);
            pair.show(0);
        }
        assert_eq!(pair.check().unwrap(), live);
    }
}

/// A step of the scenario.
#[derive(Debug, Clone)]
enum Turn {
    Change(u32, i64),
    WholeBook(u32, i64),
    Restart,
    /// The plant makes a snapshot.
    Make(u32),
    /// One of the snapshots under way reaches the edge.
    Show(usize),
    /// The steps so far reach the edge, or are lost.
    Relay(bool),
    Wait,
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        6 => (0..INSTRUMENTS, 1_i64..9).prop_map(|(of, price)| Turn::Change(of, price)),
        4 => (0..INSTRUMENTS, 1_i64..9).prop_map(|(of, price)| Turn::WholeBook(of, price)),
        1 => Just(Turn::Restart),
        4 => (0..INSTRUMENTS).prop_map(Turn::Make),
        4 => (0_usize..8).prop_map(Turn::Show),
        4 => proptest::bool::weighted(0.2).prop_map(Turn::Relay),
        1 => Just(Turn::Wait),
    ];
    proptest::collection::vec(turn, 1..150)
}

proptest! {
    #[test]
    fn books_around_restarts_are_never_wrong_and_come_back_at_once(turns in turns()) {
        let mut pair = Pair::new();
        for turn in turns {
            pair.now += MS;
            match turn {
                Turn::Change(of, price) => pair.change(of, price),
                Turn::WholeBook(of, price) => pair.whole_book(of, price),
                Turn::Restart => pair.restart(),
                Turn::Make(of) => pair.make(of),
                Turn::Show(at) if at < pair.sent.len() => pair.show(at),
                Turn::Show(_) => {}
                Turn::Relay(is_lost) => pair.relay(is_lost),
                Turn::Wait => {
                    pair.now += 100 * MS;
                    pair.edge.handle_timeout(pair.now, &mut |_| {});
                }
            }
            pair.check()?;
        }
        pair.whole_books(7);
        pair.relay(false);
        pair.show_all();
        prop_assert_eq!(pair.check()?, INSTRUMENTS);
    }
}
