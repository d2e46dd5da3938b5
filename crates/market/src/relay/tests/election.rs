//! Tests of edges whose plants know different instruments, or bring nothing.

use super::*;

const NUMBERINGS: [Numbering; 2] = [Numbering::Instrument, Numbering::Channel];

/// Returns a message that all plants and the edge receive.
fn message(of: u32) -> Act {
    Act::Message(of, 7, [false; 2], [false; 2])
}

/// Returns a world after one message, whose plants then learn these instruments.
fn knowing(numbering: Numbering, instruments: [&[u32]; 2]) -> World {
    let mut world = World::new(numbering);
    run(&mut world, [message(0)]);
    for (at, own) in instruments.iter().enumerate() {
        own.iter().for_each(|of| world.teach(at, *of));
    }
    world
}

/// Lets the plants receive a change of this instrument, without their steps.
fn receive(world: &mut World, of: u32) {
    world.number += 1;
    let rpt_seq = &mut world.rpt_seq[of as usize];
    *rpt_seq += 1;
    let event = [level(of, *rpt_seq, 7, 1)];
    world.truth.message(world.now, world.number, &event);
    for plant in &mut world.plants {
        plant.message(world.now, world.number, &event);
    }
}

fn relay(world: &mut World, at: usize) {
    world.plants[at].relay(world.now, &mut world.edge, false);
}

fn step(world: &mut World, at: usize, step: Step) {
    let (now, origin) = (world.now, world.plants[at].origin);
    world.edge.steps(now, origin, &[step], &[], &mut |_| {});
}

/// Names another instrument to the edge.
fn name(plant: &mut Plant, now: u64, edge: &mut Edge) {
    let definition = Definition::named(Name::of_symbol(b"E"));
    let id = plant.table.define(&definition).unwrap().instrument;
    let mut bytes = Vec::new();
    plant.table.get(id).unwrap().write(&mut bytes);
    edge.instrument((now, 0), plant.origin, &bytes, &mut |_| {})
        .unwrap();
}

/// Adds a plant that names all instruments and another one, and brings nothing.
fn join_idle(world: &mut World) -> Plant {
    let mut other = Plant::new(9, world.numbering);
    other.knows = [true; INSTRUMENTS as usize];
    for of in 0..INSTRUMENTS {
        other.show(world.now, of, &mut world.edge);
    }
    name(&mut other, world.now, &mut world.edge);
    other
}

fn hear(world: &mut World, plant: &Plant) {
    let steps = [Step::silence(false)];
    let edge = &mut world.edge;
    edge.steps(world.now, plant.origin, &steps, &[], &mut |_| {});
}

#[test]
fn of_plants_that_each_lack_an_instrument_one_leads() {
    for numbering in NUMBERINGS {
        let mut world = knowing(numbering, [&[0, 1, 2], &[1, 2, 3]]);
        run(&mut world, (0..INSTRUMENTS).map(message));
        assert_eq!(world.check().unwrap(), 3);
        assert_eq!(world.edge.last_number(), Some(world.number));
        assert_eq!(world.edge.lacking(), 1);
        // The other one knows more than a plant that is gone.
        run(&mut world, [Act::Die(0)]);
        run(&mut world, (0..INSTRUMENTS).map(message));
        run(&mut world, [Act::Show(1, 3)]);
        assert_eq!(world.check().unwrap(), 3);
        assert_eq!(world.edge.lacking(), 0);
        world.heal();
        assert_eq!(world.check().unwrap(), INSTRUMENTS);
    }
}

#[test]
fn a_plant_that_knows_more_leads_and_what_it_lacks_recovers() {
    for numbering in NUMBERINGS {
        let mut world = knowing(numbering, [&[0, 1], &[1]]);
        run(&mut world, (0..INSTRUMENTS).map(message));
        assert_eq!(world.check().unwrap(), 2);
        world.teach(1, 2);
        assert_eq!(world.state_of(b"C"), None);
        world.teach(1, 3);
        // It waits for a second.
        run(&mut world, [message(0)]);
        assert_eq!(world.edge.lacking(), 2);
        assert_eq!(world.check().unwrap(), 2);
        run(&mut world, std::iter::repeat_n(Act::Wait, 10));
        run(&mut world, [message(0), Act::Show(1, 2), Act::Show(1, 3)]);
        assert_eq!(world.edge.lacking(), 1);
        assert_eq!(world.check().unwrap(), 3);
        let state = world.state_of(b"A");
        assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
        // Its later changes would be left out.
        run(&mut world, [Act::Show(0, 0)]);
        assert_eq!(world.state_of(b"A"), state);
        world.teach(1, 0);
        assert_eq!(world.check().unwrap(), INSTRUMENTS);
    }
}

#[test]
fn a_plant_that_names_an_instrument_first_does_not_lead_for_a_moment() {
    let mut world = knowing(Numbering::Channel, [&[0, 1, 2], &[1, 2, 3]]);
    for names in [false, true] {
        world.number += 1;
        let [first, second] = &mut world.plants;
        first.message(world.now, world.number, &[]);
        second.message(world.now, world.number, &[]);
        if names {
            name(second, world.now, &mut world.edge);
        }
        second.relay(world.now, &mut world.edge, false);
    }
    // The messages come from the first one only now.
    let [first, _] = &mut world.plants;
    first.relay(world.now, &mut world.edge, false);
    name(first, world.now, &mut world.edge);
    run(&mut world, [Act::Wait, message(1)]);
    assert_eq!(world.edge.arbiter_stats().gaps, 0);
    assert_eq!(world.edge.last_number(), Some(world.number));
    assert_eq!(world.state_of(b"A"), Some(State::Live));
}

#[test]
fn a_plant_that_knows_most_but_brings_nothing_does_not_lead() {
    for numbering in NUMBERINGS {
        for leads_before in [true, false] {
            let mut world = match leads_before {
                true => World::new(numbering),
                false => whole(numbering),
            };
            let other = join_idle(&mut world);
            if leads_before {
                world.heal();
            }
            for of in 0..INSTRUMENTS {
                hear(&mut world, &other);
                run(&mut world, [message(of)]);
            }
            assert_eq!(world.check().unwrap(), INSTRUMENTS);
            assert_eq!(world.edge.last_number(), Some(world.number));
            assert_eq!(world.edge.lacking(), 1);
        }
    }
}

#[test]
fn without_numbers_a_plant_that_brings_nothing_does_not_lead() {
    let mut world = World::new(Numbering::Channel);
    let other = join_idle(&mut world);
    hear(&mut world, &other);
    let mut trades = 0;
    let mut send = |event: &Event| trades += u32::from(event.kind == Kind::Trade);
    let step = Step {
        events: 1,
        ..Step::new(What::Unnumbered, 0, 0)
    };
    for plant in &mut world.plants {
        plant.knows[0] = true;
        plant.show(world.now, 0, &mut world.edge);
        let trade = Event {
            kind: Kind::Trade,
            ..level(plant.number(0), 0, 7, 1)
        };
        let edge = &mut world.edge;
        edge.steps(world.now, plant.origin, &[step], &[trade], &mut send);
    }
    assert_eq!(trades, 1);
}

#[test]
fn a_plant_that_stops_no_longer_leads() {
    let other_alone = |of| Act::Message(of, 7, [true, false], [false; 2]);
    for numbering in NUMBERINGS {
        for is_silent in [true, false] {
            let mut world = knowing(numbering, [&[0, 1, 2, 3], &[0, 1, 2]]);
            run(&mut world, (0..INSTRUMENTS).map(message));
            assert_eq!(world.check().unwrap(), INSTRUMENTS);
            if is_silent {
                step(&mut world, 0, Step::silence(true));
                run(&mut world, std::iter::repeat_n(Act::Wait, 10));
                step(&mut world, 0, Step::silence(true));
            } else {
                run(&mut world, [other_alone(0)]);
                assert_ne!(world.edge.last_number(), Some(world.number));
                run(&mut world, std::iter::repeat_n(Act::Wait, 10));
                run(&mut world, [other_alone(0), Act::Wait]);
                run(&mut world, (0..3).map(|of| Act::Show(1, of)));
            }
            run(&mut world, (0..INSTRUMENTS).map(other_alone));
            assert_eq!(world.edge.last_number(), Some(world.number));
            assert_eq!(world.check().unwrap(), 3);
            let state = world.state_of(b"D");
            assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
        }
    }
}

#[test]
fn the_position_of_the_only_plant_that_counts_shows_a_loss() {
    let mut world = knowing(Numbering::Channel, [&[0, 1, 2], &[1, 2, 3]]);
    run(&mut world, [message(1)]);
    assert_eq!(world.state_of(b"B"), Some(State::Live));
    let lost = Act::Message(1, 7, [false; 2], [true, false]);
    run(&mut world, [lost]);
    let position = Step::position(world.number);
    step(&mut world, 1, position);
    assert_eq!(world.state_of(b"B"), Some(State::Live));
    step(&mut world, 0, position);
    let state = world.state_of(b"B");
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
    assert_eq!(world.edge.stats().undelivered, 1);
}

#[test]
fn a_position_that_all_plants_have_passed_shows_a_loss() {
    let mut world = whole(Numbering::Channel);
    run(&mut world, [Act::Message(0, 7, [false; 2], [true; 2])]);
    let position = Step::position(world.number);
    step(&mut world, 0, position);
    assert_eq!(world.state_of(b"A"), Some(State::Live));
    step(&mut world, 1, position);
    let state = world.state_of(b"A");
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
    assert_eq!(world.edge.stats().undelivered, 1);
}

#[test]
fn a_position_that_a_plant_does_not_reach_within_a_second_shows_a_loss() {
    let mut world = whole(Numbering::Channel);
    run(&mut world, [Act::Message(0, 7, [false; 2], [true; 2])]);
    // The other plant hangs, though its lines are not silent.
    let position = Step::position(world.number);
    for (waits, undelivered) in [(0, 0), (9, 0), (1, 1)] {
        run(&mut world, std::iter::repeat_n(Act::Wait, waits));
        step(&mut world, 0, position);
        assert_eq!(world.edge.stats().undelivered, undelivered);
    }
    let state = world.state_of(b"A");
    assert!(matches!(state, Some(State::Recovering(_))), "{state:?}");
}

#[test]
fn a_position_before_the_steps_of_another_plant_shows_no_loss() {
    let mut world = whole(Numbering::Channel);
    receive(&mut world, 0);
    let position = Step::position(world.number);
    step(&mut world, 0, position);
    relay(&mut world, 1);
    step(&mut world, 1, position);
    assert_eq!(world.edge.stats().undelivered, 0);
    assert_eq!(world.edge.last_number(), Some(world.number));
    assert_eq!(world.check().unwrap(), INSTRUMENTS);
}

#[test]
fn plants_that_fall_silent_one_after_the_other_do_not_change_the_lead() {
    for numbering in NUMBERINGS {
        let mut world = knowing(numbering, [&[0, 1, 2], &[1, 3]]);
        run(&mut world, (0..INSTRUMENTS).map(message));
        step(&mut world, 0, Step::silence(true));
        step(&mut world, 1, Step::silence(true));
        assert_eq!(world.state_of(b"A"), Some(State::Stale));
        receive(&mut world, 1);
        relay(&mut world, 1);
        relay(&mut world, 0);
        for symbol in [b"A", b"C"] {
            assert_eq!(world.state_of(symbol), Some(State::Live));
        }
        assert_eq!(world.edge.lacking(), 1);
        assert_eq!(world.check().unwrap(), 3);
    }
}
