//! The messages of a capture: its TCP streams are reassembled, and each is scanned by itself.

use super::pieces::Pieces;
use super::printer::Printer;
use crate::print::note;
use anyhow::Result;
use fanfare_fix::text::{Scanner, Skipped};
use fanfare_instruments::ip::UnknownLinks;
use fanfare_instruments::pcap::{End, Reader};
use fanfare_instruments::tcp::{Endpoint, NoSegment, Piece, Segment, Stream, segment};
use fanfare_wire::UtcTimestamp;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// The most directions of connections that are followed; more are counted and reported.
const MOST: usize = 10_000;

/// One direction of one connection.
struct Flow {
    stream: Stream,
    scanner: Scanner,
    ends: String,
    /// Capture time of the newest packet.
    time: u64,
}

pub(super) fn print(
    input: &mut Pieces,
    printer: &mut Printer,
    data_fields: &[(u32, u32)],
) -> Result<Skipped> {
    let mut reader = Reader::new(input)?;
    let mut flows: Vec<Flow> = Vec::new();
    let mut known: HashMap<(Endpoint, Endpoint), usize> = HashMap::new();
    let (mut other, mut ignored) = (0_u64, 0_u64);
    let mut unknown_links = UnknownLinks::default();
    while let Some(packet) = reader.next_packet()? {
        let segment = match segment(&packet) {
            Ok(segment) => segment,
            Err(reason) => {
                if let NoSegment::UnknownLink(link) = reason {
                    unknown_links.add(link);
                }
                other += 1;
                continue;
            }
        };
        let key = (segment.source, segment.destination);
        let number = match known.get(&key) {
            Some(&number) => number,
            None if flows.len() == MOST => {
                ignored += 1;
                continue;
            }
            None => {
                flows.push(Flow::new(&segment, data_fields));
                known.insert(key, flows.len() - 1);
                flows.len() - 1
            }
        };
        if let Some(flow) = flows.get_mut(number) {
            flow.take(packet.time.unwrap_or(0), &segment, printer)?;
        }
    }
    let mut skipped = Skipped::default();
    for flow in &mut flows {
        let of_flow = flow.end(printer)?;
        skipped.bytes += of_flow.bytes;
        skipped.lines += of_flow.lines;
    }
    match reader.end() {
        None | Some(End::Complete) => {}
        Some(end) => note!("warning: {end}"),
    }
    if unknown_links.count() > 0 {
        note!("warning: {unknown_links}");
    }
    if ignored > 0 {
        note!("warning: more than {MOST} streams; {ignored} packets of others left out");
    }
    if flows.is_empty() && other > 0 {
        note!("warning: none of the {other} packets is TCP");
    }
    Ok(skipped)
}

impl Flow {
    fn new(segment: &Segment<'_>, data_fields: &[(u32, u32)]) -> Self {
        let (from, to) = (address(segment.source), address(segment.destination));
        Self {
            stream: Stream::default(),
            scanner: Scanner::knowing(data_fields),
            ends: format!("{from} -> {to}"),
            time: 0,
        }
    }

    fn take(&mut self, time: u64, segment: &Segment<'_>, printer: &mut Printer) -> Result<()> {
        let Self {
            stream,
            scanner,
            ends,
            time: latest,
        } = self;
        let mut result = Ok(());
        stream.push(time, segment, &mut |piece| {
            *latest = time;
            if result.is_ok() {
                result = hand_on(scanner, printer, ends, time, piece);
            }
        });
        result
    }

    /// Ends the capture: prints messages behind a hole, and counts incomplete ones.
    fn end(&mut self, printer: &mut Printer) -> Result<Skipped> {
        let Self {
            stream,
            scanner,
            ends,
            time,
        } = self;
        let mut result = Ok(());
        stream.flush(&mut |piece| {
            if result.is_ok() {
                result = hand_on(scanner, printer, ends, *time, piece);
            }
        });
        result?;
        hand_on(scanner, printer, ends, *time, Piece::Hole)?;
        Ok(scanner.skipped())
    }
}

fn hand_on(
    scanner: &mut Scanner,
    printer: &mut Printer,
    ends: &str,
    time: u64,
    piece: Piece<'_>,
) -> Result<()> {
    match piece {
        Piece::Bytes { bytes, .. } => scanner.push(bytes),
        Piece::Hole => scanner.finish(),
    }
    let stamp = UtcTimestamp::from_nanos(time.cast_signed());
    printer.all_of(scanner, Some(&format!("{stamp} {ends}")))
}

/// Returns an address, with an IPv4-mapped IPv6 address as IPv4.
fn address(end: Endpoint) -> SocketAddr {
    let ip = match end.ip {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(end.ip, IpAddr::V4),
        IpAddr::V4(_) => end.ip,
    };
    SocketAddr::new(ip, end.port)
}
