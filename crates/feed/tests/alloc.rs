//! Checks that nothing is allocated after warm-up: arbitration with losses on both lines, alone and
//! with decoding, framing, preambles.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_counting::allocations;
use fanfare_fast::{Decoder, Program};
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram, Event as ChannelEvent};
use fanfare_feed::recovery::{
    Increment, Numbering, Recovery, RecoveryConfig, Sink, Snapshot, State,
};
use fanfare_feed::{
    Arbiter, ArbiterConfig, Deframer, Event, Header, Line, Preamble, Unit, Verdict,
};

/// Sends packets `from..to` over both lines; A loses each 7th, B each 5th, both each 35th.
fn exchange(arbiter: &mut Arbiter, from: u32, to: u32) -> (u64, u64) {
    let (mut delivered, mut missing) = (0, 0);
    for i in from..to {
        let now = u64::from(i) * 1_000_000;
        for (line, loses, sequence) in [(Line::A, 7, i), (Line::B, 5, i.wrapping_sub(10))] {
            if sequence.is_multiple_of(loses) {
                continue;
            }
            let unit = Unit {
                sequence,
                count: 1,
                bytes: &[7; 900],
            };
            if let Verdict::Deliver { .. } = arbiter.receive(now, line, unit) {
                delivered += 1;
            }
            while let Some(event) = arbiter.poll_event() {
                match event {
                    Event::Unit(_) => delivered += 1,
                    Event::Gap(gap) => missing += u64::from(gap.count),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (delivered, missing)
}

fn deframe(deframer: &mut Deframer, stream: &[u8]) -> u32 {
    let mut sum = 0u32;
    for piece in stream.chunks(700) {
        deframer.space()[..piece.len()].copy_from_slice(piece);
        deframer.filled(piece.len());
        while let Ok(Some(packet)) = deframer.next_packet() {
            let (sequence, _) = Preamble::Seq32Le.split(packet.bytes).unwrap();
            sum = sum.wrapping_add(sequence.unwrap());
        }
    }
    sum
}

/// Sends quotes `from..to` over both lines with the same losses, and decodes them.
fn deliver(channel: &mut Channel, from: u32, to: u32) -> (u64, u64) {
    let (mut delivered, mut missing) = (0, 0);
    for i in from..to {
        let now = u64::from(i) * 1_000_000;
        for (line, loses, n) in [(Line::A, 7, i), (Line::B, 5, i.wrapping_sub(10))] {
            if n.is_multiple_of(loses) {
                continue;
            }
            // The number has three groups, and no row holds the string.
            let number = [
                (n >> 14) as u8 & 0x7f | 1,
                (n >> 7) as u8 & 0x7f,
                n as u8 | 0x80,
            ];
            let mut packet = [0u8; 48];
            packet[..2].copy_from_slice(&[0xc0, 0x81]);
            packet[2..5].copy_from_slice(&number);
            packet[5..47].fill(b'x');
            packet[47] = b'y' | 0x80;
            let mut events = channel.receive(Datagram {
                line,
                now,
                received: now,
                offset: 0,
                bytes: &packet,
            });
            while let Some(event) = events.next() {
                match event {
                    ChannelEvent::Message(_) => delivered += 1,
                    ChannelEvent::Gap(gap) => missing += u64::from(gap.count),
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (delivered, missing)
}

#[test]
fn steady_state_does_not_allocate() {
    let xml = r#"<template name="T" id="1"><uInt32 name="MsgSeqNum" id="34"/>
        <string name="Text" id="58"/></template>"#;
    let decoder = Decoder::new(Program::parse(xml).unwrap());
    let mut channel = Channel::new(decoder, ChannelConfig::new(2)).unwrap();
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    let mut deframer = Deframer::new(Header::U32Le, 1500);
    let mut stream = Vec::new();
    for i in 0..100u32 {
        Header::U32Le.write(40, &mut stream).unwrap();
        Preamble::Seq32Le.write(i, &mut stream);
        stream.extend_from_slice(&[1; 36]);
    }
    exchange(&mut arbiter, 1_000, 2_000);
    deliver(&mut channel, 20_000, 21_000);
    deframe(&mut deframer, &stream);
    let (mut delivered, mut missing, mut sum) = (0, 0, 0);
    let count = allocations(|| {
        (delivered, missing) = exchange(&mut arbiter, 2_000, 30_000);
        sum = deframe(&mut deframer, &stream);
    });
    assert_eq!(count, 0);
    let (mut messages, mut gaps) = (0, 0);
    let count = allocations(|| (messages, gaps) = deliver(&mut channel, 21_000, 30_000));
    assert_eq!(count, 0, "by the channel");
    assert!(messages > 8_700 && gaps > 250, "{messages} {gaps}");
    assert_eq!(sum, 99 * 100 / 2);
    assert!(
        delivered > 27_000 && missing == 800,
        "{delivered} {missing}"
    );
}

/// Sends cycles of 20 numbers over both lines, B one packet behind A, which loses each 19th.
/// Messages of the next cycle follow the SequenceReset in its packet, which waits for B.
fn restart(channel: &mut Channel, cycles: u64) -> (u64, u64) {
    let (mut delivered, mut resets) = (0, 0);
    for step in 0..18 * cycles {
        for (line, at) in [(Line::A, Some(step)), (Line::B, step.checked_sub(1))] {
            let Some(number) = at.map(|at| (at % 18 + 3) as u8) else {
                continue;
            };
            let plain = [0xc0, 0x81, 0x80 | number];
            let bytes: &[u8] = match (number, line) {
                (19, Line::A) => continue,
                (20, _) => &[0xc0, 0x82, 0x94, 0x81, 0xc0, 0x81, 0x81, 0xc0, 0x81, 0x82],
                _ => &plain,
            };
            let mut events = channel.receive(Datagram {
                line,
                now: step,
                received: step,
                offset: 0,
                bytes,
            });
            while let Some(event) = events.next() {
                match event {
                    ChannelEvent::Message(_) => delivered += 1,
                    ChannelEvent::Reset { .. } => resets += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    (delivered, resets)
}

#[test]
fn messages_behind_a_reset_in_its_packet_allocate_nothing_once_warm() {
    let xml = r#"<templates><template name="T" id="1"><uInt32 name="MsgSeqNum" id="34"/></template>
        <template name="SequenceReset" id="2"><uInt32 name="MsgSeqNum" id="34"/>
        <uInt32 name="NewSeqNo" id="36"/></template></templates>"#;
    let decoder = Decoder::new(Program::parse(xml).unwrap());
    let mut channel = Channel::new(decoder, ChannelConfig::new(2)).unwrap();
    restart(&mut channel, 20);
    let mut told = (0, 0);
    let count = allocations(|| told = restart(&mut channel, 500));
    assert_eq!(count, 0);
    assert_eq!(told, (500 * 20, 500));
}

/// A sink that counts its calls.
#[derive(Default)]
struct Count(u64);

impl Sink<[u64; 8]> for Count {
    fn apply(&mut self, _: u32, _: &[u64; 8]) {
        self.0 += 1;
    }

    fn superseded(&mut self, _: u32, _: &[u64; 8]) {}

    fn dropped(&mut self, _: u32, _: &[u64; 8]) {}

    fn snapshot(&mut self, _: u32, _: &[[u64; 8]]) {
        self.0 += 1;
    }

    fn clear(&mut self, _: u32) {}

    fn state(&mut self, _: u32, _: State) {}
}

/// Sends changes of 100 instruments: of each hundred messages one is lost, and snapshots follow.
fn recover(recovery: &mut Recovery<[u64; 8]>, from: u64, to: u64) -> u64 {
    let mut count = Count::default();
    for sequence in from..to {
        if sequence % 100 == 50 {
            recovery.gap(sequence, sequence..sequence + 1, &mut count);
            continue;
        }
        let increment = Increment {
            instrument: (sequence % 97) as u32,
            rpt_seq: (sequence / 97 + 1) as u32,
            sequence,
            item: [sequence; 8],
        };
        recovery.increment(increment, &mut count).unwrap();
        if sequence % 100 == 99 {
            for instrument in 0..97 {
                let changes = (sequence + 97 - u64::from(instrument)) / 97;
                let snapshot = Snapshot {
                    instrument,
                    rpt_seq: Some(changes as u32),
                    last_processed: Some(sequence as u32),
                    items: &[[sequence; 8]],
                };
                recovery.snapshot(sequence, snapshot, &mut count).unwrap();
            }
        }
    }
    count.0
}

#[test]
fn recovery_allocates_nothing_once_warm() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    recover(&mut recovery, 0, 20_000);
    let mut told = 0;
    let allocated = allocations(|| told = recover(&mut recovery, 20_000, 60_000));
    assert_eq!(allocated, 0);
    let stats = recovery.stats();
    assert!(told > 30_000 && stats.recovered > 1_000, "{stats:?}");
}
