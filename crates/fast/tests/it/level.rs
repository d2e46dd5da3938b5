//! Values read by their seats are those of the message's view.

use fanfare_fast::program::FieldId;
use fanfare_fast::{Decoder, Encoder, Fields, Level, Message, Program, Record, Value};
use fastrand::Rng;
use proptest::prelude::*;

use crate::properties::{Dice, templates};

/// Compares all fields of a level, and of the entries in it; returns how many were read by seat.
fn compare(program: &Program, ids: &[FieldId], fields: Fields<'_>, level: Level<'_>) -> usize {
    let mut read = 0;
    for (id, (field, value)) in ids.iter().zip(fields) {
        assert_eq!(*id, field.id());
        // Those of an optional group have seats, but nothing behind it does.
        let Some(seat) = program.seat(*id) else {
            continue;
        };
        read += 1;
        let is_absent = value.is_absent();
        assert_eq!(level.has(seat), !is_absent, "{}", field.name());
        let int = match value {
            Value::Unsigned(value, _) => Some(value),
            Value::Signed(value, _) => Some(value.cast_unsigned()),
            _ => None,
        };
        assert_eq!(level.int(seat), int);
        assert_eq!(level.decimal(seat), value.as_decimal());
        assert_eq!(level.text(seat), value.as_bytes());
        let entries = level.entries(seat);
        assert_eq!(entries.is_some(), value.as_sequence().is_some());
        match value {
            Value::Group(inside) => {
                read += compare(program, program.children(*id), inside, level);
            }
            Value::Sequence(all) => {
                let entries: Vec<_> = entries.unwrap().collect();
                assert_eq!(entries.len(), all.len());
                for (entry, inside) in entries.into_iter().zip(all) {
                    read += compare(program, program.children(*id), inside, entry);
                }
            }
            _ => {}
        }
    }
    read
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn seats_lead_to_the_values_of_the_view(xml in templates(), seed: u64) {
        let program = Program::parse(&xml).unwrap();
        let mut dice = Dice { program: &program, random: Rng::with_seed(seed), depth: 0 };
        let mut encoder = Encoder::new(program.clone());
        let mut decoder = Decoder::new(program.clone());
        let (mut message, mut record) = (Message::new(), Record::new());
        for _ in 0..8 {
            let template = &program.templates()[1 + dice.roll(2) as usize];
            message.fill(&program, template, &mut dice).unwrap();
            let mut bytes = Vec::new();
            if encoder.encode_or_restore(&message, &mut bytes).is_err() {
                continue;
            }
            decoder.decode_record(&bytes, &mut record).unwrap();
            prop_assert_eq!(record.rows().is_some(), record.level().is_none());
            // Rows have no seats: the same as a message.
            let template = &program.templates()[record.template_index().unwrap() as usize];
            decoder.reset();
            encoder.reset();
            let held = Record::from(message.clone());
            let view = message.view(&program).unwrap();
            let ids = program.template_fields(template);
            let read = compare(&program, ids, view.fields(), held.level().unwrap());
            prop_assert!(read > 0 || ids.iter().all(|id| program.seat(*id).is_none()));
        }
    }
}

#[test]
fn what_is_behind_something_of_any_length_has_no_seat() {
    let program = Program::parse(
        r#"<template name="T" id="1"><uInt32 name="A"/>
             <group name="G"><uInt32 name="B"/></group>
             <group name="H" presence="optional"><uInt32 name="C"/></group><uInt32 name="D"/>
             <sequence name="S"><length name="N"/><uInt32 name="E"/></sequence></template>"#,
    )
    .unwrap();
    let has_seat = |path| program.seat(program.find("T", path).unwrap()).is_some();
    for path in ["A", "G", "G.B", "H", "H.C", "S.E"] {
        assert!(has_seat(path), "{path}");
    }
    for path in ["D", "S"] {
        assert!(!has_seat(path), "{path}");
    }
}
