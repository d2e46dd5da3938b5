//! Tests of the times of arrival that an edge passes on.

use super::*;

#[test]
fn what_a_snapshot_brings_arrived_with_it() {
    let mut world = World::new(Numbering::Channel);
    run(&mut world, [Act::Message(0, 7, [false; 2], [false; 2])]);
    let (now, number, book) = (world.now, world.number, world.truth_of(0));
    let plant = &mut world.plants[0];
    plant.snapshot(now, 0, number, &book);
    let [shown, named] = [0, 1].map(|of| InstrumentId(plant.number(of)));
    plant.table.set_status(shown, 17);
    let mut events = Vec::new();
    let market = &plant.course.market;
    market.snapshot_of(shown, &mut |event| events.push(*event));
    // The last values have times of their own.
    events.push(Event {
        kind: Kind::Trade,
        ts_recv: 5,
        ..level(shown.0, 0, 7, 1)
    });
    let [shown, named] = [shown, named].map(|id| {
        let mut bytes = Vec::new();
        plant.table.get(id).unwrap().write(&mut bytes);
        bytes
    });
    let snapshot = Relayed {
        instrument: &shown,
        is_closed: false,
        last: Some(number),
        received: 77,
        events: &events,
    };
    let mut seen = Vec::new();
    let mut send = |event: &Event| seen.push((event.kind, event.ts_recv));
    let (edge, origin) = (&mut world.edge, plant.origin);
    edge.snapshot(now, origin, &snapshot, &mut send);
    edge.instrument((now, 88), origin, &named, &mut send)
        .unwrap();
    let of = |kind: Kind| {
        let all = seen.iter().filter(move |(own, _)| *own == kind);
        all.map(|(_, time)| *time).collect::<Vec<_>>()
    };
    for kind in [Kind::Status, Kind::Clear, Kind::Level, Kind::State] {
        assert_eq!(of(kind), [77], "{kind:?}");
    }
    assert_eq!(of(Kind::Definition), [77, 88]);
    assert_eq!(of(Kind::Trade), [5]);
}
