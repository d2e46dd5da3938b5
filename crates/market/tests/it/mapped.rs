//! Real and generated feeds: the compiled mapping against the obvious one.

use crate::walk::Walk;
use fanfare_fast::generate::{ComplexOptions, Generator, SpectraOptions};
use fanfare_fast::{Decoder, Message, Program, Record};
use fanfare_market::event::{Event, Kind};
use fanfare_market::instruments::{IdSource, SecurityId};
use fanfare_market::{FastMapper, Instruments, Mapping};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// A mapper, and the walk that it is compared with.
struct Both {
    mapper: FastMapper,
    table: Instruments,
    walk: Walk,
    record: Record,
    /// The message decoded for the walk, which keeps the state of the mapper's decoder.
    message: Message,
    oracle: Decoder,
    decoder: Decoder,
}

impl Both {
    fn new(program: Program, mapping: &str) -> Self {
        let program = Arc::new(program);
        let mapping = Mapping::built_in(mapping).unwrap();
        Self {
            mapper: mapping.for_templates(&program, 3).unwrap(),
            table: Instruments::new(100_000),
            walk: Walk::default(),
            record: Record::new(),
            message: Message::new(),
            oracle: Decoder::new(program.clone()),
            decoder: Decoder::new(program),
        }
    }

    /// Plays consecutive messages. Returns the number of events.
    fn play(&mut self, mut bytes: &[u8], ts_recv: u64) -> usize {
        let mut count = 0;
        while !bytes.is_empty() {
            let len = self.decoder.decode_record(bytes, &mut self.record).unwrap();
            assert_eq!(self.oracle.decode(bytes, &mut self.message), Ok(len));
            bytes = &bytes[len..];
            count += self.compare(ts_recv);
        }
        count
    }

    fn compare(&mut self, ts_recv: u64) -> usize {
        self.walk.events.clear();
        self.walk.message(self.decoder.program(), &self.message);
        for event in &mut self.walk.events {
            (event.ts_recv, event.source) = (ts_recv, 3);
        }
        let table = &mut self.table;
        let outcome = self.mapper.record(table, ts_recv, &self.record).unwrap();
        assert_eq!(self.mapper.events(), self.walk.events);
        // The same from a message.
        let again = self.mapper.message(table, ts_recv, &self.message).unwrap();
        assert_eq!(
            (self.mapper.events(), again),
            (&self.walk.events[..], outcome)
        );
        self.walk.events.len()
    }

    /// Checks that the instruments are those that the walk has seen.
    fn check_table(&self) {
        assert_eq!(self.table.len(), self.walk.instruments.len());
        let source = self.table.iter().next().unwrap().definition.name.source;
        for (id, place) in &self.walk.instruments {
            let found = self.table.by_id(SecurityId::Number(*id), source);
            assert_eq!(found.map(|found| found.0), Some(*place));
        }
    }
}

/// Returns a file of the exchange, if it exists.
fn moex(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let folder = std::fs::read_dir(&folder)
        .is_ok()
        .then_some(folder)
        .or_else(|| {
            let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data");
            let beside = beside.join("moex-spectra");
            std::fs::read_dir(&beside).is_ok().then_some(beside)
        });
    match folder {
        Some(folder) => Some(std::fs::read(folder.join(name)).unwrap()),
        None => {
            println!("skipped: ../shared/data/moex-spectra is not there");
            None
        }
    }
}

#[test]
fn the_increments_of_spectra_give_an_event_for_each_entry() {
    let (Some(templates), Some(bytes)) = (moex("templates.xml"), moex("increment_a.dat")) else {
        return;
    };
    let program = Program::parse(std::str::from_utf8(&templates).unwrap()).unwrap();
    let mut both = Both::new(program, "builtin:spectra");
    assert_eq!(both.play(&bytes, 77), 22_104);
    both.check_table();
    assert_eq!(both.table.len(), 9);
    let eight = IdSource::parse(b"8").unwrap();
    assert!(
        both.table
            .by_id(SecurityId::Number(49_634_118), eight)
            .is_some()
    );
    let counts = both.mapper.counts();
    // Each message was mapped twice.
    assert_eq!((counts.messages, counts.events), (2 * 16_202, 2 * 22_104));
    assert_eq!((counts.faults, counts.unmapped, counts.no_rule), (0, 0, 0));
}

#[test]
fn snapshots_of_spectra_are_mapped_whole() {
    let (Some(templates), Some(bytes)) = (moex("templates.xml"), moex("snapshot.dat")) else {
        return;
    };
    let program = Program::parse(std::str::from_utf8(&templates).unwrap()).unwrap();
    let mut both = Both::new(program, "builtin:spectra");
    // 7,848 snapshots, 55,417 entries of which 8 mark an empty book, 733 session states.
    assert_eq!(both.play(&bytes, 77), 7_848 + 55_417 - 8 + 733);
    both.check_table();
    assert_eq!(both.mapper.counts().unmapped, 0);
}

/// Plays all packets of a generator, each decoded with empty dictionaries.
fn generated(both: &mut Both, mut generator: Generator) -> usize {
    let mut count = 0;
    while let Some(packet) = generator.next_packet().unwrap() {
        both.decoder.reset();
        both.oracle.reset();
        let packet = packet.to_vec();
        count += both.play(&packet, 5);
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn generated_complex_feeds_give_the_events_of_the_walk(
        count in 1..300_u64, sequence_length in 1..12_u32, split: bool, size in 20..2000_usize,
    ) {
        let program = Program::complex();
        let mut both = Both::new(program.clone(), "builtin:complex");
        let options = ComplexOptions { sequence_length, split };
        let generator = Generator::complex(program, count, Some(size), options);
        prop_assert!(count < 2 || generated(&mut both, generator) > 0);
    }

    #[test]
    fn generated_feeds_of_spectra_give_the_events_of_the_walk(
        count in 1..200_u64, seed: u64, snapshots: bool, trades in 0..50_u32,
    ) {
        let program = Program::spectra();
        let mut both = Both::new(program.clone(), "builtin:spectra");
        let options = SpectraOptions { seed, snapshots, trades };
        let generator = Generator::spectra(program, count, None, options);
        prop_assert!(generated(&mut both, generator) > 0);
    }
}

/// Checks that trades and statistics are generated, so that the walk is not only about levels.
#[test]
fn generated_feeds_have_all_kinds() {
    let program = Program::spectra();
    let mut both = Both::new(program.clone(), "builtin:spectra");
    let options = SpectraOptions {
        trades: 20,
        ..SpectraOptions::default()
    };
    let mut generator = Generator::spectra(program, 300, None, options);
    let mut kinds = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        both.decoder.reset();
        both.oracle.reset();
        let packet = packet.to_vec();
        both.play(&packet, 5);
        kinds.extend(both.walk.events.iter().map(|event: &Event| event.kind));
    }
    assert!(kinds.contains(&Kind::Level) && kinds.contains(&Kind::Trade));
}
