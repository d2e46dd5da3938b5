//! The generated feeds: as the rules say, decodable with and without empty dictionaries at the
//! packet boundaries, and the same bytes when encoded again.

use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Encoder, Message, MessageView, Program};

use crate::common::to_hex;

pub(crate) fn packets_of(mut generator: Generator) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

/// Decodes packets, shows each message, and checks that it encodes to the same bytes.
pub(crate) fn each(
    program: &Program,
    packets: &[Vec<u8>],
    empty: bool,
    mut show: impl FnMut(MessageView<'_>),
) {
    let mut decoder = Decoder::new(program.clone());
    let mut encoder = Encoder::new(program.clone());
    let mut message = Message::new();
    for packet in packets {
        if empty {
            decoder.reset();
        }
        encoder.reset();
        let (mut at, mut again) = (0, Vec::new());
        while at < packet.len() {
            at += decoder.decode(&packet[at..], &mut message).unwrap();
            encoder.encode(&message, &mut again).unwrap();
            show(message.view(program).unwrap());
        }
        assert_eq!(to_hex(&again), to_hex(packet));
    }
}

#[test]
fn orders_fill_packets_of_1024_bytes() {
    let program = Program::simple();
    let packets = packets_of(Generator::simple(program.clone(), 30_000, PACKET_SIZE));
    let bytes: usize = packets.iter().map(Vec::len).sum();
    assert!(packets.iter().all(|packet| packet.len() <= 1024));
    assert!(
        packets[..packets.len() - 1]
            .iter()
            .all(|packet| packet.len() > 990)
    );
    let mean = bytes as f64 / 30_001.0;
    assert!((11.2..11.6).contains(&mean), "{mean} bytes a message");
    let mut counts = std::collections::BTreeMap::new();
    let mut number = 0;
    each(&program, &packets, true, |message| {
        *counts.entry(message.template().id().unwrap()).or_insert(0) += 1;
        number += 1;
        if let Some(sequence) = message.get("SequenceNumber") {
            assert_eq!(sequence.as_u64(), Some(number));
        }
    });
    assert_eq!(
        counts.into_iter().collect::<Vec<_>>(),
        [(1, 7500), (2, 7500), (3, 7500), (4, 7500), (99, 1)]
    );
}

#[test]
fn market_data_is_one_message_a_packet() {
    let program = Program::complex();
    let options = ComplexOptions::default();
    let packets = packets_of(Generator::complex(program.clone(), 30_000, None, options));
    assert_eq!(packets.len(), 30_001);
    let bytes: usize = packets.iter().map(Vec::len).sum();
    assert!(
        (66.4..66.6).contains(&(bytes as f64 / 30_001.0)),
        "{bytes} bytes"
    );
    for empty in [true, false] {
        let (mut requests, mut entries, mut done) = (0, 0, 0);
        each(&program, &packets, empty, |message| {
            match message.template().id() {
                Some(1) => {
                    let sequence = message.get("MDEntries").unwrap();
                    entries += sequence.as_sequence().unwrap().len();
                }
                Some(2) => requests += 1,
                _ => done += 1,
            }
        });
        assert_eq!((requests, entries, done), (300, 89_700, 1));
    }
}

#[test]
fn the_first_packets_are_as_the_rules_say() {
    let options = ComplexOptions::default();
    let packets = packets_of(Generator::complex(Program::complex(), 2, None, options));
    // QuoteRequest: presence map, identifier, MsgSeqNum 1, SendingTime 58782, no QuoteReqID, one
    // entry: its map (Side and QuoteType are the defaults), OrderQty 1, TransactTime, SecurityID.
    assert_eq!(
        to_hex(&packets[0]),
        "c0 82 81 03 4b 9e 80 81 80 82 03 4b 9d 80"
    );
    // MarketData 1 has two entries; the second one repeats much of the first.
    assert_eq!(
        packets[1][..11],
        [
            0xc0, 0x81, 0x82, 0x03, 0x4b, 0x9f, 0x09, 0x4a, 0x68, 0xf1, 0x82
        ]
    );
    assert_eq!(to_hex(&packets[2]), "c0 e3");
    let many = packets_of(Generator::complex(
        Program::complex(),
        300,
        Some(1000),
        ComplexOptions {
            sequence_length: 1,
            split: false,
        },
    ));
    assert!(many.len() < 50 && many.iter().all(|packet| packet.len() <= 1000));
    each(&Program::complex(), &many, true, |message| {
        if let Some(entries) = message.get("MDEntries") {
            assert_eq!(entries.as_sequence().unwrap().len(), 1);
        }
    });
}
