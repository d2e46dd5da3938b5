//! Checks that mapping allocates nothing once it has seen the largest message, and that instruments
//! take the documented memory.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use fanfare_counting::{allocations, live_bytes_here};
use fanfare_fast::generate::{ComplexOptions, Generator, SpectraOptions};
use fanfare_fast::{Decoder, Program, Record};
use fanfare_fix::codec::{Decoder as FixDecoder, Encoder};
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::instruments::{Definition, IdSource, Name, SecurityId};
use fanfare_market::{Instruments, Mapping, Price};
use std::sync::Arc;

fn packets(mut generator: Generator) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

/// Maps all messages twice, and returns the allocations of the second time.
fn second_time(program: Program, mapping: &str, packets: &[Vec<u8>]) -> (u64, u64) {
    let program = Arc::new(program);
    let mapping = Mapping::built_in(mapping).unwrap();
    let mut mapper = mapping.for_templates(&program, 0).unwrap();
    let mut table = Instruments::new(10_000);
    let (mut decoder, mut record) = (Decoder::new(program), Record::new());
    let mut play = || {
        for packet in packets {
            decoder.reset();
            let mut bytes = &packet[..];
            while !bytes.is_empty() {
                let len = decoder.decode_record(bytes, &mut record).unwrap();
                bytes = &bytes[len..];
                mapper.record(&mut table, 1, &record).unwrap();
            }
        }
    };
    play();
    let count = allocations(play);
    (count, mapper.counts().events)
}

#[test]
fn mapping_fast_messages_allocates_nothing() {
    let program = Program::complex();
    let options = ComplexOptions::default();
    let all = packets(Generator::complex(program.clone(), 500, None, options));
    let (count, events) = second_time(program, "builtin:complex", &all);
    assert!(count == 0 && events > 2_000, "{count} {events}");
    for snapshots in [false, true] {
        let program = Program::spectra();
        let options = SpectraOptions {
            snapshots,
            trades: 10,
            ..SpectraOptions::default()
        };
        let all = packets(Generator::spectra(program.clone(), 500, None, options));
        let (count, events) = second_time(program, "builtin:spectra", &all);
        assert!(count == 0 && events > 1_000, "{count} {events}");
    }
}

#[test]
fn mapping_fix_messages_allocates_nothing() {
    let mapping = Mapping::built_in("builtin:fix").unwrap();
    let dictionary = Dictionary::built_in(Version::Fix44);
    let mut mapper = mapping.for_fix(&dictionary, 0).unwrap();
    let mut table = Instruments::new(10);
    let mut room = [0; 1000];
    let mut message = Encoder::new(&mut room, b"FIX.4.4", b"X");
    message.str(49, "E").str(56, "C").u64(34, 1);
    message.str(52, "20261120-12:34:56.123").u64(268, 2);
    for side in ["0", "1"] {
        message
            .u64(279, 0)
            .str(269, side)
            .str(278, "an order's long number");
        message
            .str(55, "a symbol of many bytes")
            .str(270, "10.25")
            .u64(271, 5);
        message.str(273, "12:34:56.123");
    }
    let range = message.finish().unwrap();
    let mut decoder = FixDecoder::new();
    let mut play = || {
        for _ in 0..100 {
            let message = decoder.decode(&room[range.clone()]).unwrap();
            mapper.message(&mut table, 1, &message).unwrap();
        }
    };
    play();
    assert_eq!(allocations(play), 0);
    assert_eq!(mapper.counts().events, 400);
}

/// Defines an instrument with all usual fields.
fn define(table: &mut Instruments, number: u64) -> bool {
    let symbol = format!("SYM{number:09}");
    let definition = Definition {
        name: Name {
            symbol: symbol.as_bytes(),
            id: SecurityId::Number(number * 7 + 1),
            source: IdSource::parse(b"8").unwrap(),
        },
        description: b"A future on an index, to be delivered",
        security_type: b"FUT",
        cfi: b"FXXXXX",
        currency: b"RUB",
        market: b"RTSX",
        segment: b"D",
        tick: Price::from_units(10_000_000_000),
        depth: 20,
        ..Definition::default()
    };
    table.define(&definition).is_ok()
}

/// Adds a million instruments, and nine million fictitious ones.
#[test]
fn a_million_instruments_take_less_than_300_megabytes() {
    let before = live_bytes_here();
    let mut table = Instruments::new(1_000_000);
    let mut most = 0;
    for number in 0..1_000_000 {
        assert!(define(&mut table, number));
        if number % 1024 == 0 {
            most = most.max(live_bytes_here() - before);
        }
    }
    let live = live_bytes_here() - before;
    println!(
        "a million instruments: {} MB, at most {} MB",
        live >> 20,
        most.max(live) >> 20
    );
    assert!(live < 300 << 20 && most < 300 << 20, "{live} {most}");
    // Nine million more are refused, and take no memory.
    for number in 1_000_000..10_000_000 {
        let name = Name {
            id: SecurityId::Number(number * 7 + 1),
            source: IdSource::parse(b"8").unwrap(),
            ..Name::default()
        };
        assert!(table.see(&name).is_err());
    }
    assert_eq!((table.len(), table.refused()), (1_000_000, 9_000_000));
    // The harness allocates a little meanwhile.
    assert!(live_bytes_here() - before < live + (1 << 16));
    let count = allocations(|| {
        for number in (0..1_000_000).step_by(997) {
            let source = IdSource::parse(b"8").unwrap();
            let found = table.by_id(SecurityId::Number(number * 7 + 1), source);
            assert_eq!(found.map(|found| u64::from(found.0)), Some(number));
            let known = table.get(found.unwrap()).unwrap().definition;
            assert_eq!(table.by_symbol(known.name.symbol), found);
        }
    });
    assert_eq!(count, 0);
}
