//! Tests of edges whose plants restart with their channel, each in its own time.

use super::*;
use crate::book::Side;
use fanfare_feed::channel;

/// The time after which a plant is no longer waited for.
const MINUTE: u64 = 60_000 * MS;

/// An edge with plants that know one instrument. Its book is empty at a restart, and each message
/// has one change, whose RptSeq(83) is its number.
struct Site {
    edge: Edge,
    now: u64,
}

impl Site {
    fn new(plants: &[u64]) -> Self {
        let mut follower = config(Numbering::Instrument);
        follower.market.recovery.starts_empty = true;
        let config = EdgeConfig {
            follower,
            arbiter: ArbiterConfig::default(),
        };
        let mut site = Self {
            edge: Edge::new(config, Instruments::new(10)),
            now: 0,
        };
        plants.iter().for_each(|plant| site.join(*plant));
        site
    }

    /// Returns an edge with two plants that have brought one message.
    fn of_two() -> Self {
        let mut site = Self::new(&[1, 2]);
        for plant in [1, 2] {
            site.change(plant, 1, 40);
        }
        site
    }

    fn join(&mut self, plant: u64) {
        let mut bytes = Vec::new();
        let of = Plant::new(0, Numbering::Instrument);
        of.table.get(InstrumentId(0)).unwrap().write(&mut bytes);
        let edge = &mut self.edge;
        edge.instrument((self.now, 0), plant, &bytes, &mut |_| {})
            .unwrap();
    }

    fn step(&mut self, plant: u64, step: Step, events: &[Event]) {
        self.now += MS;
        let edge = &mut self.edge;
        edge.steps(self.now, plant, &[step], events, &mut |_| {});
    }

    fn restart(&mut self, plant: u64) {
        self.step(plant, Step::new(What::Reset, 1, 0), &[]);
    }

    fn change(&mut self, plant: u64, number: u32, price: i64) {
        self.change_after(plant, 0, number, price);
    }

    /// Brings a change of a plant whose channel has restarted this many times.
    fn change_after(&mut self, plant: u64, restarts: u32, number: u32, price: i64) {
        let step = Step {
            events: 1,
            last: restarts << 16,
            ..Step::new(What::Changes, number, 0)
        };
        self.step(plant, step, &[level(0, number, price, 1)]);
    }

    fn state(&self) -> Option<State> {
        self.edge.market().state(InstrumentId(0))
    }

    /// Returns the prices of the book, the highest one first, if it is live.
    fn bids(&self) -> Option<Vec<i64>> {
        let book = self.edge.market().book(InstrumentId(0))?;
        let bids = book.depth(Side::Bid).map(|level| level.price.units());
        let bids = bids.collect();
        (self.state() == Some(State::Live)).then_some(bids)
    }
}

#[test]
fn a_plant_that_restarts_twice_within_a_minute_begins_anew_twice() {
    let mut site = Site::new(&[1]);
    for price in [50, 60, 70] {
        site.change(1, 1, price);
        site.change(1, 2, price + 1);
        assert_eq!(site.bids(), Some(vec![price + 1, price]));
        site.restart(1);
        assert_ne!(site.state(), Some(State::Live));
    }
    assert_eq!(site.edge.follower_stats().resets, 3);
}

#[test]
fn a_plant_that_is_behind_comes_to_each_restart_in_turn() {
    let mut site = Site::of_two();
    for price in [50, 60] {
        site.restart(1);
        site.change(1, 1, price);
    }
    // These are from before the first restart, and between the two.
    site.change(2, 2, 41);
    site.restart(2);
    site.change(2, 1, 50);
    site.change(2, 2, 51);
    assert_eq!(site.edge.stats().of_another_time, 3);
    assert_eq!(site.bids(), Some(vec![60]));
    site.restart(2);
    site.change(2, 1, 60);
    site.change(2, 2, 61);
    site.change(1, 2, 61);
    site.change(1, 3, 62);
    assert_eq!(site.bids(), Some(vec![62, 61, 60]));
    assert_eq!(site.edge.stats().of_another_time, 3);
    assert_eq!(site.edge.follower_stats().resets, 2);
}

#[test]
fn a_plant_that_joins_after_a_restart_counts_and_may_restart() {
    let mut site = Site::new(&[1]);
    site.change(1, 1, 40);
    site.restart(1);
    site.change(1, 1, 50);
    site.join(2);
    site.change(2, 2, 51);
    assert_eq!(site.bids(), Some(vec![51, 50]));
    site.restart(2);
    site.change(2, 1, 60);
    site.change(1, 3, 52);
    assert_eq!(site.bids(), Some(vec![60]));
    site.restart(1);
    site.change(1, 2, 61);
    assert_eq!(site.bids(), Some(vec![61, 60]));
    assert_eq!(site.edge.follower_stats().resets, 2);
}

#[test]
fn a_plant_that_did_not_notice_a_restart_counts_again_after_a_minute() {
    let mut site = Site::of_two();
    site.restart(1);
    site.change(1, 1, 50);
    site.change(2, 2, 51);
    assert_eq!(site.bids(), Some(vec![50]));
    site.now += MINUTE;
    site.change(2, 2, 51);
    assert_eq!(site.bids(), Some(vec![51, 50]));
    // It is the first one to come to the next restart.
    site.restart(2);
    site.change(2, 1, 60);
    site.restart(1);
    site.change(1, 2, 61);
    assert_eq!(site.bids(), Some(vec![61, 60]));
    assert_eq!(site.edge.follower_stats().resets, 2);
}

#[test]
fn a_plant_that_was_gone_at_a_restart_makes_it_no_second_time() {
    for notices in [true, false] {
        let mut site = Site::of_two();
        site.edge.gone(site.now, 1, &mut |_| {});
        site.restart(2);
        site.change(2, 1, 50);
        site.now += MINUTE;
        site.join(1);
        let restarts = u32::from(notices);
        site.change_after(1, restarts, 2, 51);
        assert_eq!(site.edge.follower_stats().resets, 1);
        assert_eq!(site.bids(), Some(vec![51, 50]));
        site.change(2, 3, 52);
        assert_eq!(site.bids(), Some(vec![52, 51, 50]));
        // It is the first one to come to the next restart.
        let step = Step {
            last: (restarts + 1) << 16,
            ..Step::new(What::Reset, 1, 0)
        };
        site.step(1, step, &[]);
        site.restart(2);
        site.change(2, 1, 60);
        assert_eq!(site.bids(), Some(vec![60]));
        assert_eq!(site.edge.follower_stats().resets, 2);
    }
}

#[test]
fn a_plant_that_is_behind_keeps_no_book_from_being_stale() {
    let mut site = Site::of_two();
    site.restart(1);
    site.change(1, 1, 50);
    site.step(1, Step::silence(true), &[]);
    assert_eq!(site.state(), Some(State::Stale));
    site.step(2, Step::silence(false), &[]);
    assert_eq!(site.state(), Some(State::Stale));
    site.restart(2);
    site.step(2, Step::silence(false), &[]);
    assert_eq!(site.state(), Some(State::Stale));
    site.step(2, Step::position(1), &[]);
    assert_eq!(site.state(), Some(State::Live));
}

#[test]
fn restarts_whose_steps_are_lost_count_all() {
    let mut site = Site::of_two();
    for price in [50, 60] {
        site.restart(1);
        site.change(1, 1, price);
    }
    let step = Step {
        events: 1,
        last: 2 << 16,
        ..Step::new(What::Changes, 2, 0)
    };
    site.step(2, step, &[level(0, 2, 61, 1)]);
    assert_eq!(site.bids(), Some(vec![61, 60]));
    assert_eq!(site.edge.follower_stats().resets, 2);
}

#[test]
fn a_restart_whose_step_is_lost_is_noticed() {
    for (is_cut_off, is_quiet) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = whole(Numbering::Channel);
        run(&mut world, [Act::Die(1)]);
        let (now, plant) = (world.now, &mut world.plants[0]);
        let edge = &mut world.edge;
        let reset = channel::Event::Reset {
            expected: world.number + 1,
            next: 1,
            announced: true,
        };
        if is_cut_off {
            edge.gone(now, plant.origin, &mut |_| {});
        }
        plant.course.unusual(now, &reset, &mut |_| {});
        plant.relay(now, edge, true);
        assert_eq!(edge.follower_stats().resets, 0);
        match is_quiet {
            true => plant.course.keep_alive(),
            false => plant.message(now, 1, &[]),
        }
        plant.relay(now, edge, false);
        assert_eq!(edge.follower_stats().resets, 1);
        assert_eq!(edge.last_number(), Some(u32::from(!is_quiet)));
        let state = world.state_of(b"A");
        assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
    }
}

#[test]
fn another_mapping_whose_step_is_lost_is_noticed() {
    let mut world = whole(Numbering::Channel);
    let plant = &mut world.plants[0];
    plant.course.distrust(world.now, &mut |_| {});
    plant.relay(world.now, &mut world.edge, true);
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
    run(
        &mut world,
        [Act::Message(0, 7, [false; 2], [false; 2]), Act::Wait],
    );
    assert_eq!(world.check().unwrap(), 0);
    world.heal();
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}

/// Returns the price of a message after these restarts.
fn price(restarts: usize, number: u32) -> i64 {
    100 * (1 + restarts as i64) + i64::from(number)
}

proptest! {
    #[test]
    fn each_restart_is_made_once_in_any_order_of_plants(
        order in proptest::collection::vec(0_usize..3, 0..100),
        lens in proptest::collection::vec(0_u32..4, 1..5),
    ) {
        let plants = [1, 2, 3];
        let mut site = Site::new(&plants);
        // The numbers of the messages, or `None` for a restart.
        let mut feed = vec![(0, Some(1))];
        for (restarts, len) in lens.iter().enumerate() {
            feed.push((restarts + 1, None));
            feed.extend((1..=*len).map(|number| (restarts + 1, Some(number))));
        }
        let rest = (0..plants.len()).flat_map(|plant| vec![plant; feed.len()]);
        let mut at = [0; 3];
        for plant in order.iter().copied().chain(rest) {
            let Some((restarts, number)) = feed.get(at[plant]) else {
                continue;
            };
            at[plant] += 1;
            match number {
                None => site.restart(plants[plant]),
                Some(number) => site.change(plants[plant], *number, price(*restarts, *number)),
            }
            let restarts = site.edge.follower_stats().resets as usize;
            let last = site.edge.last_number().unwrap_or_default();
            let expected: Vec<_> = (1..=last).rev().map(|number| price(restarts, number)).collect();
            let is_empty = expected.is_empty();
            prop_assert_eq!(site.bids(), (!is_empty).then_some(expected));
        }
        prop_assert_eq!(site.edge.follower_stats().resets, lens.len() as u64);
        prop_assert_eq!(site.edge.last_number(), lens.last().copied());
    }
}
