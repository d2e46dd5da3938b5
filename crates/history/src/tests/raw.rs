//! Tests of raw logs.

use super::{Folder, OFTEN, keep, open};
use crate::{KeeperConfig, Log, Raw, RawDelivery, RawLine, Source as RawSource, Start, Writer};
use std::path::Path;

/// A datagram or message with its number, or a range that was lost.
#[derive(Debug, PartialEq, Eq, Clone)]
enum Arrived {
    Raw(u64, u64, RawLine, Vec<u8>),
    Lost(u64, u64),
}

fn arrivals(folder: &Path, start: Start) -> Vec<Arrived> {
    let mut reader = Log::open(folder).unwrap().reader(start).unwrap();
    let mut all = Vec::new();
    let mut take = |delivery: RawDelivery<'_>| match delivery {
        RawDelivery::Raw(raw) => {
            let bytes = raw.bytes.to_vec();
            all.push(Arrived::Raw(raw.number, raw.received, raw.line, bytes));
        }
        RawDelivery::Lost { first, last } => all.push(Arrived::Lost(first, last)),
        RawDelivery::Restart => {}
    };
    while reader.read_raw(7, &mut take).unwrap() > 0 {}
    all
}

const LINE: RawLine = RawLine {
    source: RawSource::Line,
    feed: 1,
    line: 0,
    address: std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 9),
};

/// Appends random datagrams and messages with a few gaps. Returns them and the last time.
fn append_raw(writer: &mut Writer, count: usize) -> (Vec<Arrived>, u64) {
    let mut rng = fastrand::Rng::with_seed(5);
    let (mut expected, mut time) = (Vec::new(), 1000);
    while expected.len() < count {
        let bytes: Vec<u8> = (0..rng.usize(..2000)).map(|_| rng.u8(..4)).collect();
        time += rng.u64(..50);
        let source = [RawSource::Line, RawSource::Snapshots, RawSource::Fix][rng.usize(..3)];
        let line = RawLine {
            source,
            feed: rng.u16(..),
            line: rng.u16(..4),
            address: std::net::SocketAddrV4::new(rng.u32(..).into(), rng.u16(..)),
        };
        if rng.u8(..100) == 0 {
            let next = writer.next();
            writer.lost(next, next + 4).unwrap();
            expected.push(Arrived::Lost(next, next + 4));
        }
        let number = writer.next();
        put_raw(writer, line, time, &bytes);
        expected.push(Arrived::Raw(number, time, line, bytes));
        if rng.u8(..50) == 0 {
            writer.commit().unwrap();
        }
    }
    let number = writer.next();
    put_raw(writer, LINE, time, &vec![0; Raw::MOST + 1]);
    expected.push(Arrived::Lost(number, number));
    writer.commit().unwrap();
    (expected, time)
}

fn put_raw(writer: &mut Writer, line: RawLine, received: u64, bytes: &[u8]) {
    let raw = Raw {
        number: 0,
        received,
        line,
        bytes,
    };
    writer.raw(&raw).unwrap();
}

#[test]
fn what_arrived_is_there_again_from_any_number_and_time() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let (expected, time) = append_raw(&mut writer, 4000);
    let same = || {
        assert_eq!(arrivals(&folder.0, Start::First), expected);
        for at in [1, 1500, 3999] {
            let Arrived::Raw(number, time, ..) = expected[at].clone() else {
                continue;
            };
            assert_eq!(arrivals(&folder.0, Start::Number(number)), expected[at..]);
            let is_behind = |one: &Arrived| matches!(one, Arrived::Raw(_, own, ..) if *own >= time);
            let from = expected.iter().position(is_behind).unwrap();
            assert_eq!(arrivals(&folder.0, Start::Time(time)), expected[from..]);
        }
    };
    same();
    let keeper = keep(&folder.0, OFTEN);
    assert!(keeper.stats().compacted > 1, "{:?}", keeper.stats());
    same();
    let verified = Log::open(&folder.0).unwrap().verify(|_, _| true).unwrap();
    let raw = expected.iter();
    let raw = raw.filter(|one| matches!(one, Arrived::Raw(..))).count();
    assert_eq!((verified.raw, verified.events), (raw as u64, 0));
    assert!(verified.is_whole());
    let next = writer.next();
    drop((writer, keeper));
    let (_, opened) = open(&folder.0);
    assert_eq!((opened.next, opened.time), (next, time));
}

#[test]
fn what_arrived_goes_with_retention() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let (_, time) = append_raw(&mut writer, 4000);
    let (number, late) = (writer.next(), time + 1_000_000);
    for _ in 0..2 {
        writer.roll().unwrap();
        put_raw(&mut writer, LINE, late, b"last");
    }
    writer.roll().unwrap();
    let retain = KeeperConfig {
        keep_nanos: Some(1),
        ..OFTEN
    };
    let keeper = keep(&folder.0, retain);
    assert!(keeper.stats().removed > 1, "{:?}", keeper.stats());
    let left = arrivals(&folder.0, Start::First);
    let last = Arrived::Raw(number + 1, late, LINE, b"last".to_vec());
    assert!(left.len() < 3 && left.contains(&last), "{left:?}");
}
