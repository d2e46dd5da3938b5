//! A benchmark of the FIX codec alone: the cost of decoding and encoding one message, by tag and
//! through typed messages.
//!
//! Each figure is the median over batches; the batches of all figures are interleaved, so that a
//! slow minute of the machine affects all of them.

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use fanfare_fix::codec::{
    DecodeError, Decoder, EncodeError, Encoder, FieldError, FrameFinder, SendingTime,
    SessionHeader, SharedBody, SharedFrame,
};
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_fix::session::Fault;
use fanfare_wire::{DataFields, Decimal, FieldIndex, Kernel, Precision, UtcTimestamp, byte_sum};

use crate::figures::{Figures, median};

mod fields;

use fields::{build, get_entries, get_order, read_entries, read_order};

/// The figures in order: the cost of one message, in nanoseconds.
const NAMES: [&str; 11] = [
    // Frame, checksum and index of all fields of a NewOrderSingle(D) of 179 bytes, 17 fields.
    "order_index_ns",
    // The same for a MarketDataSnapshotFullRefresh(W) with 10 entries: 495 bytes, 52 fields.
    "snapshot10_index_ns",
    // The order, from its fields to a whole message, with a session's header.
    "order_encode_ns",
    // The order indexed and then checked against the dictionary of FIX.4.4, with all checks.
    "order_validate_ns",
    // The order again, each field of the header written singly.
    "order_encode_singly_ns",
    // A session's header and trailer put around the snapshot's shared body.
    "snapshot10_patch_ns",
    // Eight values of the order, indexed before: by tag, and through a generated reader.
    "order_get_ns",
    "order_read_ns",
    // Four values of each entry of the snapshot, in the same two ways.
    "snapshot10_get_ns",
    "snapshot10_read_ns",
    // The order of order_encode_ns, by a generated builder.
    "order_build_ns",
];

/// The error of the benchmark of the codec.
#[derive(Debug, thiserror::Error)]
pub enum CodecBenchError {
    /// This processor does not support the requested kernel.
    #[error("this processor has no {0} kernel")]
    NoKernel(&'static str),
    /// A message of the benchmark itself could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A message of the benchmark itself could not be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A message of the benchmark itself is not valid.
    #[error("the benchmark's order is not valid: {0}")]
    Invalid(Fault),
    /// A message of the benchmark itself does not have the fields that are read.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Batches of each figure; an odd number, for the median. Tests only need a figure.
const BATCHES: usize = if cfg!(test) { 3 } else { 101 };

/// Rounds before each batch that are not timed.
const WARM_UP: u64 = 200;

/// Rounds of a batch: about 0.1 ms.
const ROUNDS: usize = 2_000;

/// Measures for well under a second, with `kernel` or the fastest that this processor supports.
///
/// # Errors
/// The processor does not support the kernel.
pub fn add_figures(figures: &mut Figures, kernel: Option<Kernel>) -> Result<(), CodecBenchError> {
    let kernel = kernel.unwrap_or_else(Kernel::best);
    if !kernel.is_available() {
        return Err(CodecBenchError::NoKernel(kernel.name()));
    }
    let index = FieldIndex::with(DataFields::standard(), kernel);
    let decoder = || Decoder::with(FrameFinder::default(), index.clone());
    let (mut decoder, mut of_order, mut of_snapshot) = (decoder(), decoder(), decoder());
    let (order, snapshot) = (Paged::new(&order()), Paged::new(&snapshot()));
    let (order, snapshot) = (order.bytes(), snapshot.bytes());
    // Both must be correct before they are timed.
    let dictionary = Dictionary::built_in(Version::Fix44);
    let switches = Switches::default();
    dictionary
        .validate(&decoder.decode(order)?, switches)
        .map_err(CodecBenchError::Invalid)?;
    let body = decoder.decode(snapshot)?.body().to_vec();
    let body = SharedBody::new(b"W", &body)?;
    let mut frame = SharedFrame::new(body.fields().len());
    frame.load(&body)?;
    let header = SessionHeader::new(b"FIX.4.4", b"BUYSIDE", b"SELLSIDE")?;
    encode(&header, 1, &mut [0; 512])?;
    encode_singly(1, &mut [0; 512])?;
    build(&header, 1, &mut [0; 512])?;
    let (fields, entries) = (&of_order.decode(order)?, &of_snapshot.decode(snapshot)?);
    get_order(fields)?;
    read_order(fields)?;
    get_entries(entries)?;
    read_entries(entries)?;

    let mut buf = [0; 512];
    let time = SendingTime::new(TIME, Precision::Millis);
    let mut batches: [Vec<f64>; NAMES.len()] = Default::default();
    for batch in 0..BATCHES as u64 {
        let first = 1_000_000 + batch * ROUNDS as u64;
        let timed = [
            time_batch(|_| decoder.decode(black_box(order)).is_ok()),
            time_batch(|_| decoder.decode(black_box(snapshot)).is_ok()),
            time_batch(|round| encode(&header, first + round, &mut buf).is_ok()),
            time_batch(|_| {
                let order = decoder.decode(black_box(order));
                order.is_ok_and(|order| dictionary.validate(&order, switches).is_ok())
            }),
            time_batch(|round| encode_singly(first + round, &mut buf).is_ok()),
            time_batch(|round| !frame.patch(&header, first + round, &time).is_empty()),
            time_batch(|_| get_order(black_box(fields)).is_ok()),
            time_batch(|_| read_order(black_box(fields)).is_ok()),
            time_batch(|_| get_entries(black_box(entries)).is_ok()),
            time_batch(|_| read_entries(black_box(entries)).is_ok()),
            time_batch(|round| build(&header, first + round, &mut buf).is_ok()),
        ];
        for (batches, ns) in batches.iter_mut().zip(timed) {
            batches.push(ns);
        }
    }
    for (name, batches) in NAMES.into_iter().zip(batches) {
        figures.add(name, median(batches));
    }
    Ok(())
}

/// A message at the front of a page, as in a receive buffer: across the border of two pages it
/// takes 5 ns more, and its place in an allocation is chance.
struct Paged {
    room: Vec<u8>,
    place: Range<usize>,
}

impl Paged {
    fn new(message: &[u8]) -> Self {
        const PAGE: usize = 4096;
        let mut room = vec![0; PAGE + message.len()];
        let first = room.as_ptr().align_offset(PAGE).min(PAGE);
        let place = first..first + message.len();
        room[place.clone()].copy_from_slice(message);
        Self { room, place }
    }

    fn bytes(&self) -> &[u8] {
        &self.room[self.place.clone()]
    }
}

/// Returns the nanoseconds of a round.
fn time_batch(mut work: impl FnMut(u64) -> bool) -> f64 {
    // The other kinds of work have filled the caches and trained the branch predictor until here.
    for round in 0..WARM_UP {
        black_box(work(round));
    }
    let start = Instant::now();
    for round in 0..ROUNDS as u64 {
        black_box(work(round));
    }
    start.elapsed().as_nanos() as f64 / ROUNDS as f64
}

/// 2026-11-20, 12:34:56.123.
const TIME: UtcTimestamp = UtcTimestamp::from_nanos(1_795_178_096_123_000_000);

/// Returns the time of an order: a million per second.
fn time_of(seq: u64) -> UtcTimestamp {
    let since = seq as i64 - 1_234_567;
    black_box(UtcTimestamp::from_nanos(TIME.nanos() + since * 1_000))
}

/// Encodes a NewOrderSingle(D) after the session's header.
fn encode(header: &SessionHeader, seq: u64, buf: &mut [u8]) -> Result<usize, EncodeError> {
    let now = time_of(seq);
    let sending = SendingTime::new(now, Precision::Millis);
    body(Encoder::with_header(buf, header, b"D", seq, &sending), now)
}

/// Encodes the same message, each field singly.
fn encode_singly(seq: u64, buf: &mut [u8]) -> Result<usize, EncodeError> {
    let now = time_of(seq);
    let mut order = Encoder::new(buf, b"FIX.4.4", b"D");
    order
        .str(49, black_box("BUYSIDE"))
        .str(56, black_box("SELLSIDE"))
        .u64(34, seq);
    order.timestamp(52, now, Precision::Millis);
    body(order, now)
}

/// Encodes the fields behind the header, and returns the length of the message.
#[inline(always)]
fn body(mut order: Encoder<'_>, now: UtcTimestamp) -> Result<usize, EncodeError> {
    order
        .str(11, black_box("ORDER0001234"))
        .char(21, b'1')
        .str(55, black_box("EURUSD"));
    order
        .char(54, b'1')
        .timestamp(60, now, Precision::Millis)
        .u64(38, black_box(100_000));
    order
        .char(40, b'2')
        .decimal(44, black_box(Decimal::new(123_456, -5)))
        .char(59, b'0');
    Ok(order.finish()?.end)
}

/// Returns a message of 179 bytes, 17 fields.
fn order() -> Vec<u8> {
    message(
        "35=D|49=BUYSIDE|56=SELLSIDE|34=1234567|52=20261120-12:34:56.123|11=ORDER0001234|21=1|\
         55=EURUSD|54=1|60=20261120-12:34:56.123|38=100000|40=2|44=1.23456|59=0|",
    )
}

/// Returns a message of 495 bytes, 52 fields.
fn snapshot() -> Vec<u8> {
    let head = "35=W|49=EXCHANGE|56=TRADER|34=1234567|52=20261120-12:34:56.123|262=REQ1|\
                55=EURUSD|20001=7-1234|268=10|";
    let entry = |i: usize| {
        let (side, orders) = (i & 1, i / 2 + 1);
        format!("269={side}|270=1.2345{i}|271=10000{i}00|290={orders}|")
    };
    message(
        &(0..10)
            .map(entry)
            .fold(head.to_owned(), |body, entry| body + &entry),
    )
}

/// Returns the message of `body`, with `|` for the separator, with header and trailer.
fn message(body: &str) -> Vec<u8> {
    let separated = |text: String| text.replace('|', "\x01").into_bytes();
    let mut bytes = separated(format!("8=FIX.4.4|9={}|{body}", body.len()));
    let sum = byte_sum(&bytes);
    bytes.extend(separated(format!("10={sum:03}|")));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_are_those_of_the_targets() {
        let mut decoder = Decoder::new();
        assert_eq!(
            (order().len(), decoder.decode(&order()).unwrap().len()),
            (179, 17)
        );
        assert_eq!(
            (snapshot().len(), decoder.decode(&snapshot()).unwrap().len()),
            (495, 52)
        );
        assert_eq!(
            decoder
                .decode(&snapshot())
                .unwrap()
                .group(268)
                .unwrap()
                .len(),
            10
        );
    }

    /// Returns the order, with the required fields before the others.
    fn built() -> Vec<u8> {
        message(
            "35=D|49=BUYSIDE|56=SELLSIDE|34=1234567|52=20261120-12:34:56.123|11=ORDER0001234|\
             55=EURUSD|54=1|60=20261120-12:34:56.123|40=2|21=1|38=100000|44=1.23456|59=0|",
        )
    }

    #[test]
    fn both_ways_read_the_same() {
        let (mut of_order, mut of_snapshot) = (Decoder::new(), Decoder::new());
        let (order, snapshot) = (order(), snapshot());
        let order = of_order.decode(&order).unwrap();
        assert_eq!(get_order(&order), read_order(&order));
        let snapshot = of_snapshot.decode(&snapshot).unwrap();
        assert_eq!(get_entries(&snapshot), read_entries(&snapshot));
        assert!(get_entries(&snapshot).is_ok_and(|sum| sum > 0));
    }

    #[test]
    fn every_way_encodes_the_same_order() {
        let header = SessionHeader::new(b"FIX.4.4", b"BUYSIDE", b"SELLSIDE").unwrap();
        let (mut one, mut other) = ([0; 512], [0; 512]);
        let end = encode(&header, 1_234_567, &mut one).unwrap();
        assert_eq!(encode_singly(1_234_567, &mut other), Ok(end));
        assert_eq!(one[..end], other[..end]);
        assert!(one[..end].ends_with(&order()));
        let end = build(&header, 1_234_567, &mut one).unwrap();
        assert_eq!(one[..end].len(), other[..end].len());
        assert!(one[..end].ends_with(&built()));
    }

    #[test]
    fn each_figure_is_measured() {
        for kernel in Kernel::ALL
            .into_iter()
            .filter(|kernel| kernel.is_available())
        {
            let mut figures = Figures::new("bench codec");
            add_figures(&mut figures, Some(kernel)).unwrap();
            let json = figures.to_json();
            for name in [
                "order_index_ns",
                "snapshot10_index_ns",
                "order_encode_ns",
                "order_validate_ns",
                "order_read_ns",
                "order_build_ns",
            ] {
                assert!(
                    json["figures"][name].as_f64().is_some_and(|ns| ns > 0.0),
                    "{name}"
                );
            }
        }
    }
}
