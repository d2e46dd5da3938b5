//! Instructions of ten hot paths, counted by callgrind: no noise of the machine is in them.
//!
//! `make bench-guard` fails where one takes more than 3 % above the number that stands here, or
//! does not do its work, and warns where one takes 3 % less. Where more is meant, or a path takes
//! fewer, the new number goes in. Numbers are those of Rust 1.95 on a processor with AVX2, which
//! valgrind imitates. What a path did is checked after it (`teardown`), where nothing is counted.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot begin has to end"
)]

use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::program::{Field, Program};
use fanfare_fast::{Decimal as FastDecimal, Decoder as FastDecoder, Record, Visitor};
use fanfare_feed::{Arbiter, ArbiterConfig, Line, Unit};
use fanfare_fix::codec::{Decoder, Encoder, SendingTime, SessionHeader, SharedBody, SharedFrame};
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_fix::session::{
    Config, MemoryStore, Now, Scratch, Session, SessionId, Version as SessionVersion,
};
use fanfare_fix::{msg_type, tag};
use fanfare_market::{FastMapper, Instruments, Mapping};
use fanfare_wire::{Decimal, Precision, UtcTimestamp};
use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use std::hint::black_box;
use std::sync::Arc;

/// How often each is done.
const TIMES: u64 = 1000;
/// More instructions than this share of what stands here are too many.
const PERCENT: u64 = 103;
const TIME: UtcTimestamp = UtcTimestamp::from_nanos(1_795_178_096_123_000_000);

/// Returns a configuration that fails a path above `instructions`, with the tolerance added.
fn limit(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, instructions * PERCENT / 100)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

fn header() -> SessionHeader {
    SessionHeader::new(b"FIX.4.4", b"BUYSIDE", b"SELLSIDE").unwrap()
}

fn write_order(buf: &mut [u8], header: &SessionHeader, seq: u64) -> usize {
    let sending = SendingTime::new(TIME, Precision::Millis);
    let mut order = Encoder::with_header(buf, header, b"D", seq, &sending);
    order
        .str(tag::CL_ORD_ID, "ORDER0001234")
        .char(tag::HANDL_INST, b'1');
    order.str(tag::SYMBOL, "EURUSD").char(tag::SIDE, b'1');
    order.timestamp(tag::TRANSACT_TIME, TIME, Precision::Millis);
    order.u64(tag::ORDER_QTY, 100_000).char(tag::ORD_TYPE, b'2');
    order
        .decimal(tag::PRICE, Decimal::new(123_456, -5))
        .char(tag::TIME_IN_FORCE, b'0');
    order.finish().unwrap().end
}

fn order() -> (Decoder, Vec<u8>) {
    let mut buf = [0; 512];
    let len = write_order(&mut buf, &header(), 1234);
    let (mut decoder, bytes) = (Decoder::new(), buf[..len].to_vec());
    decoder.decode(&bytes).unwrap();
    (decoder, bytes)
}

/// Checks that all went well.
fn is_all(count: u64) {
    assert_eq!(count, TIMES);
}

/// Checks that a message is whole, and the last one.
fn is_last(message: Vec<u8>) {
    let mut decoder = Decoder::new();
    let message = decoder.decode(&message).unwrap();
    assert_eq!(message.u64(tag::MSG_SEQ_NUM), Ok(TIMES - 1));
}

#[library_benchmark]
#[bench::order(args = (order()), config = limit(832_426), teardown = is_all)]
fn fix_index((mut decoder, bytes): (Decoder, Vec<u8>)) -> u64 {
    let mut fine = 0;
    for _ in 0..TIMES {
        fine += u64::from(black_box(decoder.decode(black_box(&bytes)).is_ok()));
    }
    fine
}

fn with_dictionary() -> (Decoder, Vec<u8>, Arc<Dictionary>) {
    let ((mut decoder, bytes), known) = (order(), Dictionary::built_in(Version::Fix44));
    let message = decoder.decode(&bytes).unwrap();
    assert!(known.validate(&message, Switches::default()).is_ok());
    (decoder, bytes, known)
}

#[library_benchmark]
#[bench::order(args = (with_dictionary()), config = limit(2_862_510), teardown = is_all)]
fn fix_validate((mut decoder, bytes, known): (Decoder, Vec<u8>, Arc<Dictionary>)) -> u64 {
    let mut valid = 0;
    for _ in 0..TIMES {
        let message = decoder.decode(black_box(&bytes));
        let is_valid = message.is_ok_and(|m| known.validate(&m, Switches::default()).is_ok());
        valid += u64::from(black_box(is_valid));
    }
    valid
}

#[library_benchmark]
#[bench::order(args = (header()), config = limit(691_362), teardown = is_last)]
fn fix_encode(header: SessionHeader) -> Vec<u8> {
    let (mut buf, mut len) = ([0; 512], 0);
    for seq in 0..TIMES {
        len = black_box(write_order(&mut buf, black_box(&header), seq));
    }
    buf[..len].to_vec()
}

fn shared() -> (SessionHeader, SharedFrame) {
    let body =
        SharedBody::new(b"W", b"262=R\x0155=EURUSD\x01268=1\x01269=0\x01270=1.2\x01").unwrap();
    let mut frame = SharedFrame::new(body.fields().len());
    frame.load(&body).unwrap();
    (header(), frame)
}

#[library_benchmark]
#[bench::snapshot(args = (shared()), config = limit(452_987), teardown = is_last)]
fn fix_patch((header, mut frame): (SessionHeader, SharedFrame)) -> Vec<u8> {
    let time = SendingTime::new(TIME, Precision::Millis);
    let mut message: &[u8] = &[];
    for seq in 0..TIMES {
        message = black_box(frame.patch(&header, seq, &time));
    }
    message.to_vec()
}

const NOW: Now = Now {
    mono: 1_000,
    utc: TIME,
};

/// A session that is logged on, and orders for it.
fn session() -> (Session<MemoryStore>, Vec<u8>) {
    let config = |us, them| Config::new(SessionId::new(SessionVersion::Fix44, us, them));
    let mut buy = Session::initiator(config("BUYSIDE", "SELLSIDE"), MemoryStore::default());
    let mut sell = Session::acceptor(config("SELLSIDE", "BUYSIDE"), MemoryStore::default());
    buy.connected(NOW);
    sell.connected(NOW);
    let mut scratch = Scratch::new(64 << 10);
    let logon = buy.poll_transmit().to_vec();
    buy.transmitted(logon.len());
    sell.handle_bytes(NOW, &mut scratch, &logon);
    let answer = sell.poll_transmit().to_vec();
    sell.transmitted(answer.len());
    buy.handle_bytes(NOW, &mut scratch, &answer);
    assert!(sell.is_logged_on() && buy.is_logged_on());
    let mut orders = Vec::new();
    for _ in 0..TIMES {
        let sent = buy.send(NOW, msg_type::NEW_ORDER_SINGLE, |order| {
            order
                .str(tag::CL_ORD_ID, "ORDER0001234")
                .str(tag::SYMBOL, "EURUSD");
        });
        sent.unwrap();
        orders.extend_from_slice(buy.poll_transmit());
        buy.transmitted(buy.poll_transmit().len());
    }
    (sell, orders)
}

#[library_benchmark]
#[bench::orders(args = (session()), config = limit(1_387_470), teardown = is_all)]
fn session_receive((mut session, orders): (Session<MemoryStore>, Vec<u8>)) -> u64 {
    let (mut scratch, mut done, mut events) = (Scratch::new(64 << 10), 0, 0);
    while let Some(rest) = orders.get(done..).filter(|rest| !rest.is_empty()) {
        let step = session.handle_bytes(NOW, &mut scratch, rest);
        events += u64::from(step.event.is_some());
        done += step.consumed;
    }
    events
}

/// Checks that as many reports were sent, and bytes for each.
fn are_reports((sent, bytes): (u64, usize)) {
    is_all(sent);
    assert!(bytes as u64 > 80 * TIMES, "{bytes} bytes");
}

#[library_benchmark]
#[bench::orders(args = (session()), config = limit(1_120_572), teardown = are_reports)]
fn session_send((mut session, _): (Session<MemoryStore>, Vec<u8>)) -> (u64, usize) {
    let (mut count, mut bytes) = (0, 0);
    for _ in 0..TIMES {
        let sent = session.send(NOW, msg_type::EXECUTION_REPORT, |report| {
            report
                .str(tag::CL_ORD_ID, "ORDER0001234")
                .char(tag::EXEC_TYPE, b'0');
        });
        count += u64::from(black_box(sent.is_ok()));
        let len = session.poll_transmit().len();
        session.transmitted(len);
        bytes += len;
    }
    (count, bytes)
}

/// Adds up what a message holds.
#[derive(Default)]
struct Sum(u64);

impl Visitor for Sum {
    fn unsigned(&mut self, _: &Field, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }

    fn signed(&mut self, _: &Field, value: i64) {
        self.0 = self.0.wrapping_add(value as u64);
    }

    fn decimal(&mut self, _: &Field, value: FastDecimal) {
        self.0 = self.0.wrapping_add(value.mantissa as u64);
    }

    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.0 = self.0.wrapping_add(value.len() as u64);
    }
}

fn packets(mut feed: Generator) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    packets
}

fn simple() -> Feed {
    let feed = Generator::simple(Program::simple(), TIMES, PACKET_SIZE);
    (FastDecoder::new(Program::simple()), packets(feed))
}

fn complex() -> Feed {
    let feed = Generator::complex(Program::complex(), TIMES, None, ComplexOptions::default());
    (FastDecoder::new(Program::complex()), packets(feed))
}

/// A decoder, and the packets for it.
type Feed = (FastDecoder, Vec<Vec<u8>>);

/// All messages of a feed.
fn records((mut decoder, packets): Feed) -> Vec<Record> {
    let mut records = Vec::new();
    for packet in &packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let mut record = Record::new();
            let len = decoder.decode_record(rest, &mut record).unwrap();
            records.push(record);
            rest = rest.get(len..).unwrap_or_default();
        }
    }
    records
}

/// Checks that `found` equals the sum over the records of the feed, which another decoder reads.
fn is_sum_of(program: &Program, feed: Feed, found: u64) {
    let (records, mut sum) = (records(feed), Sum::default());
    // The last message says that the feed is done.
    assert_eq!(records.len() as u64, TIMES + 1);
    for record in &records {
        record.visit(program, &mut sum);
    }
    assert_eq!(found, sum.0);
}

fn is_sum_of_simple(found: u64) {
    is_sum_of(&Program::simple(), simple(), found);
}

fn is_sum_of_complex(found: u64) {
    is_sum_of(&Program::complex(), complex(), found);
}

#[library_benchmark]
#[bench::simple(args = (simple()), config = limit(537_505), teardown = is_sum_of_simple)]
#[bench::complex(args = (complex()), config = limit(2_583_926), teardown = is_sum_of_complex)]
fn fast_decode((mut decoder, packets): Feed) -> u64 {
    let mut sum = Sum::default();
    for packet in &packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let len = decoder.decode(rest, &mut sum).unwrap();
            rest = rest.get(len..).unwrap_or_default();
        }
    }
    sum.0
}

/// Records of the complex feed, and what makes events of them.
fn mapped() -> (FastMapper, Instruments, Vec<Record>) {
    let (program, mapping) = (Program::complex(), Mapping::built_in("builtin:complex"));
    let mapper = mapping.unwrap().for_templates(&Arc::new(program), 1);
    let instruments = Instruments::new(1 << 16);
    (mapper.unwrap(), instruments, records(complex()))
}

/// Checks that messages had their events: three each in the mean.
fn are_events(count: usize) {
    assert!(count as u64 > 2 * TIMES, "{count} events");
}

#[library_benchmark]
#[bench::complex(args = (mapped()), config = limit(1_844_072), teardown = are_events)]
fn market_map((mut mapper, mut table, records): (FastMapper, Instruments, Vec<Record>)) -> usize {
    let mut events = 0;
    for record in &records {
        // What has no instrument makes no events.
        let _ = mapper.record(&mut table, 1, record);
        events += mapper.events().len();
    }
    events
}

fn two_lines() -> Arbiter {
    Arbiter::new(ArbiterConfig::default())
}

/// Checks that each packet came from one line or the other.
fn is_gapless(arbiter: Arbiter) {
    assert_eq!(arbiter.expected(), Some(TIMES as u32));
    assert!(arbiter.missing().is_empty());
}

#[library_benchmark]
#[bench::two_lines(args = (two_lines()), config = limit(1_622_189), teardown = is_gapless)]
fn feed_arbitrate(mut arbiter: Arbiter) -> Arbiter {
    let bytes = [7; 200];
    for i in 0..TIMES as u32 {
        // Line B is 16 packets behind, and line A leaves out every twentieth.
        let of_a = Some(i).filter(|i| i % 20 != 1);
        for (line, sequence) in [(Line::A, of_a), (Line::B, i.checked_sub(16))] {
            let Some(sequence) = sequence else { continue };
            let unit = Unit {
                sequence,
                count: 1,
                bytes: &bytes,
            };
            black_box(arbiter.receive(u64::from(i) * 1000, line, unit));
            while let Some(event) = arbiter.poll_event() {
                black_box(event);
            }
        }
    }
    arbiter
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [
        fix_index,
        fix_validate,
        fix_encode,
        fix_patch,
        session_receive,
        session_send,
        fast_decode,
        market_map,
        feed_arbitrate
    ]
);

main!(library_benchmark_groups = hot_paths);
