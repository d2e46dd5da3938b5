//! Tests of edges whose plants are gone or silent, and to which other plants come.

use super::*;

/// Returns a world whose plants are gone, and the first of which has come again. It has named all
/// instruments and received nothing.
fn returned() -> World {
    let mut world = whole(Numbering::Channel);
    run(&mut world, [Act::Die(0), Act::Die(1), Act::Die(0)]);
    for of in 0..INSTRUMENTS {
        world.teach(0, of);
    }
    assert_eq!(world.state_of(b"A"), Some(State::Stale));
    world
}

fn bring(world: &mut World, steps: &[Step]) {
    let (now, origin) = (world.now, world.plants[0].origin);
    world.edge.steps(now, origin, steps, &[], &mut |_| {});
}

#[test]
fn books_are_stale_until_a_plant_shows_the_number_where_the_edge_is() {
    // The position of one behind it may be of the numbers before or after a restart.
    for (back, expected) in [(1, State::Stale), (0, State::Live)] {
        let mut world = returned();
        bring(&mut world, &[Step::silence(false)]);
        assert_eq!(world.state_of(b"A"), Some(State::Stale));
        let position = Step::position(world.number - back);
        bring(&mut world, &[Step::silence(false), position]);
        assert_eq!(world.state_of(b"A"), Some(expected));
        assert_eq!(world.edge.last_number(), Some(world.number));
    }
}

#[test]
fn books_are_stale_while_a_plant_that_is_heard_has_shown_a_later_number() {
    let mut world = returned();
    run(&mut world, [Act::Die(1)]);
    for of in 0..INSTRUMENTS {
        world.teach(1, of);
    }
    let (now, number) = (world.now, world.number);
    let [first, second] = [0, 1].map(|at| world.plants[at].origin);
    let later = Step::position(number + 5);
    for (origin, steps) in [
        (first, [Step::silence(false), Step::position(number - 1)]),
        // The first one may be about to bring what is missing up to there.
        (second, [Step::silence(false), later]),
        (first, [Step::silence(false), Step::position(number)]),
    ] {
        world.edge.steps(now, origin, &steps, &[], &mut |_| {});
        assert_eq!(world.state_of(b"A"), Some(State::Stale));
        assert_eq!(world.edge.last_number(), Some(number));
    }
    // It is silent, and brings nothing.
    let edge = &mut world.edge;
    edge.steps(now, first, &[Step::silence(true)], &[], &mut |_| {});
    edge.steps(now, second, &[later], &[], &mut |_| {});
    assert_eq!(edge.last_number(), Some(number + 5));
    let state = world.state_of(b"A");
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
}

#[test]
fn books_are_stale_while_a_gap_behind_the_last_plants_is_awaited() {
    let mut world = returned();
    let later = Step::new(What::Changes, world.number + 2, 0);
    bring(&mut world, &[Step::silence(false), later]);
    bring(&mut world, &[Step::silence(false)]);
    assert_eq!(world.state_of(b"A"), Some(State::Stale));
    let now = world.now + ArbiterConfig::default().gap_timeout;
    world.edge.handle_timeout(now, &mut |_| {});
    let state = world.state_of(b"A");
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
}

#[test]
fn a_plant_that_has_brought_nothing_hears_nothing() {
    let mut world = whole(Numbering::Channel);
    run(&mut world, [Act::Die(1), Act::Die(1)]);
    for of in 0..INSTRUMENTS {
        world.teach(1, of);
    }
    let now = world.now;
    let origins = [0, 1].map(|at| world.plants[at].origin);
    let edge = &mut world.edge;
    for (origin, is_silent) in [(origins[1], false), (origins[0], true), (origins[1], false)] {
        edge.steps(now, origin, &[Step::silence(is_silent)], &[], &mut |_| {});
    }
    assert_eq!(world.state_of(b"A"), Some(State::Stale));
}

#[test]
fn no_state_changes_while_one_plant_of_two_is_there() {
    let mut world = whole(Numbering::Channel);
    let [first, second] = [0, 1].map(|at| world.plants[at].origin);
    let (now, number) = (world.now, world.number);
    let mut states = 0;
    let mut send = |event: &Event| states += u32::from(event.kind == Kind::State);
    let edge = &mut world.edge;
    edge.gone(now, first, &mut send);
    let quiet = [Step::silence(false), Step::position(number)];
    edge.steps(now, second, &quiet, &[], &mut send);
    // Another plant comes, and is silent about its position at first.
    edge.steps(now, 99, &quiet[..1], &[], &mut send);
    edge.steps(now, 99, &quiet, &[], &mut send);
    assert_eq!(states, 0);
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}
