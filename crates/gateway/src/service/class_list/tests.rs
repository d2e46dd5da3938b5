//! Tests of the classes of an instrument, by the steps that they take.

use super::super::entry_types::EntryTypes;
use super::*;
use proptest::prelude::*;
use std::cell::Cell;

/// The contents of the class that has its depth as number.
fn spec(depth: u32) -> Spec {
    Spec {
        depth: u16::try_from(depth).unwrap(),
        entries: EntryTypes::ALL,
        by_order: false,
        snapshots: false,
        interval: 0,
        checksum_every: 0,
    }
}

fn push(list: &mut ClassList, depth: u32) {
    list.push(depth, spec(depth), |number| Some(spec(number)));
}

/// Returns the classes of this many depths.
fn of(depths: u32) -> ClassList {
    let mut list = ClassList::default();
    (0..depths).for_each(|depth| push(&mut list, depth));
    list
}

/// Returns the class of a depth, and the number of classes that are looked at to find it.
fn find(list: &ClassList, depth: u32) -> (Option<u32>, usize) {
    let looks = Cell::new(0);
    let found = list.find(&spec(depth), |number| {
        looks.set(looks.get() + 1);
        Some(spec(number))
    });
    (found, looks.get())
}

#[test]
fn a_class_is_found_without_a_look_at_many_others() {
    for depths in [1, 16, 17, 16_000] {
        let list = of(depths);
        let known = [0, depths / 2, depths - 1];
        for depth in known {
            let (found, looks) = find(&list, depth);
            assert_eq!(found, Some(depth));
            assert!(looks <= 16, "{looks} of {depths}");
        }
        let (found, looks) = find(&list, depths);
        assert_eq!(found, None);
        assert!(looks <= 16, "{looks} of {depths}");
    }
}

#[test]
fn the_ends_of_all_classes_move_each_a_few_times() {
    const DEPTHS: u32 = 16_000;
    let (mut list, mut moved) = (of(DEPTHS), 0);
    for depth in 0..DEPTHS {
        let before = list.len();
        list.remove(depth, &spec(depth));
        if list.len() < before {
            moved += list.len();
        }
    }
    assert!(moved <= 2 * DEPTHS as usize, "{moved}");
    assert!(list.is_empty());
}

#[test]
fn few_classes_have_no_table() {
    let mut list = of(16);
    assert!(list.places.is_none());
    push(&mut list, 16);
    assert!(list.places.is_some());
    for depth in 0..16 {
        list.remove(depth, &spec(depth));
    }
    assert!(list.places.is_none());
    assert!(list.iter().eq([16]));
}

proptest! {
    #[test]
    fn classes_are_those_of_a_plain_list(
        steps in proptest::collection::vec((0u32..48, 0u8..5), 0..200),
    ) {
        let (mut list, mut plain) = (ClassList::default(), Vec::new());
        for (depth, kind) in steps {
            let known = plain.iter().position(|own| *own == depth);
            match known {
                Some(at) if kind < 2 => {
                    plain.remove(at);
                    list.remove(depth, &spec(depth));
                }
                None => {
                    plain.push(depth);
                    push(&mut list, depth);
                }
                Some(_) => {}
            }
            prop_assert!(list.iter().eq(plain.iter().copied()));
            prop_assert_eq!(list.is_empty(), plain.is_empty());
            prop_assert!(list.len() <= 2 * plain.len());
            for depth in 0..48 {
                let expected = plain.contains(&depth).then_some(depth);
                prop_assert_eq!(find(&list, depth).0, expected);
            }
            let by_index = (0..list.len()).filter_map(|at| list.get(at));
            let by_index: Vec<_> = by_index.filter(|number| *number != ENDED).collect();
            prop_assert_eq!(by_index, plain.clone());
        }
    }
}
