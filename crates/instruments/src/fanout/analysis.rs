//! Computes the figures of a report from a capture of the gateway's traffic.

use std::collections::HashMap;
use std::io::{self, Read};

use fanfare_fix::codec::{Decoder, Message};
use fanfare_fix::tag::{FANOUT_ID, POSS_DUP_FLAG};

use super::matcher::Matcher;
use super::options::Options;
use super::report::Report;
use crate::ip::UnknownLinks;
use crate::messages::MessageStream;
use crate::pcap::{End, PcapError, Reader};
use crate::tcp::{Endpoint, NoSegment, Segment, segment};

/// The most connections followed; the segments of further ones are counted and ignored.
const MAX_CONNECTIONS: usize = 1 << 16;
const CUT_HEADERS: &str = "packets were left out, as their headers were captured in part";
const UNKNOWN_LINKS: &str = "packets were left out, as their link type is not supported";
/// The time of packets without a stamp. It is later than any other: a message has the latest time
/// of its packets, and therefore this one if one of them has no stamp.
const UNSTAMPED: u64 = u64::MAX;

/// The error of an analysis.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// The input cannot be read as a capture.
    #[error(transparent)]
    Pcap(#[from] PcapError),
    /// A read failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The capture holds other traffic, or none; the text describes it.
    #[error("no fan-out traffic in the capture: {0}")]
    OtherTraffic(String),
    /// No packet has a time: a pcapng of simple packet blocks.
    #[error("no packet in the capture has a time stamp")]
    Unstamped,
}

/// Reads a capture to its end and reports on the fan-out in it. A truncated or damaged capture is
/// reported on up to there, with a warning.
///
/// # Errors
/// [`AnalysisError`] if the input is not a capture, has no such traffic, or a read fails.
pub fn analyse(capture: impl Read, options: Options) -> Result<Report, AnalysisError> {
    let mut reader = Reader::new(capture)?;
    let mut analysis = Analysis::new(options);
    while let Some(packet) = reader.next_packet()? {
        analysis.seen.packets += 1;
        let time = packet.time.unwrap_or(UNSTAMPED);
        analysis.seen.unstamped += u64::from(packet.time.is_none());
        match segment(&packet) {
            Ok(segment) => analysis.segment(time, &segment),
            Err(NoSegment::UnknownLink(link)) => analysis.seen.unknown_links.add(link),
            Err(NoSegment::Fragment(_)) => analysis.seen.fragments += 1,
            Err(NoSegment::Cut(_)) => analysis.seen.cut_headers += 1,
            Err(_) => {}
        }
    }
    analysis.finish(reader.end().unwrap_or(End::Complete))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
}

struct Analysis {
    options: Options,
    decoder: Decoder,
    connections: HashMap<(Endpoint, Endpoint), (Direction, MessageStream)>,
    tally: Tally,
    seen: Seen,
}

/// The totals of the messages.
struct Tally {
    report: Report,
    matcher: Matcher,
    messages: u64,
}

/// The counts of packets, for warnings and for the error of a useless capture.
#[derive(Default)]
struct Seen {
    packets: u64,
    tcp: u64,
    ours: u64,
    cut: u64,
    cut_headers: u64,
    fragments: u64,
    unstamped: u64,
    too_many: u64,
    unknown_links: UnknownLinks,
    /// Segments by port, as source or destination: at most 65,536 entries.
    ports: HashMap<u16, u64>,
}

impl Analysis {
    fn new(options: Options) -> Self {
        let report = Report::new(options);
        Self {
            options,
            decoder: Decoder::new(),
            connections: HashMap::new(),
            tally: Tally {
                report,
                matcher: Matcher::default(),
                messages: 0,
            },
            seen: Seen::default(),
        }
    }

    fn segment(&mut self, time: u64, segment: &Segment<'_>) {
        self.seen.tcp += 1;
        let direction = if segment.destination.port == self.options.in_port {
            Direction::In
        } else if segment.source.port == self.options.out_port {
            Direction::Out
        } else {
            for port in [segment.source.port, segment.destination.port] {
                *self.seen.ports.entry(port).or_default() += 1;
            }
            return;
        };
        self.seen.ours += 1;
        self.seen.cut += u64::from(segment.cut > 0);
        let key = (segment.source, segment.destination);
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&key) {
            self.seen.too_many += 1;
            return;
        }
        let Self {
            connections,
            decoder,
            tally,
            ..
        } = self;
        let new = || (direction, MessageStream::default());
        let (direction, stream) = connections.entry(key).or_insert_with(new);
        let mut sink = |time, message: &Message<'_>| tally.message(*direction, time, message);
        stream.push(decoder, time, segment, &mut sink);
    }

    fn finish(mut self, end: End) -> Result<Report, AnalysisError> {
        let (mut holes, mut garbled) = (0, 0);
        for (direction, stream) in self.connections.values_mut() {
            let tally = &mut self.tally;
            let mut sink = |time, message: &Message<'_>| tally.message(*direction, time, message);
            stream.finish(&mut self.decoder, &mut sink);
            holes += stream.holes();
            garbled += stream.garbled();
        }
        if self.tally.messages == 0 {
            return Err(AnalysisError::OtherTraffic(
                self.seen.instead(self.options, end),
            ));
        }
        if self.seen.unstamped == self.seen.packets {
            return Err(AnalysisError::Unstamped);
        }
        let Tally {
            mut report,
            matcher,
            ..
        } = self.tally;
        report.unmatched += matcher.unmatched();
        report.undelivered = matcher.undelivered();
        report.packets = self.seen.packets;
        let mut warn = |text: String| report.warnings.push(text);
        if end != End::Complete {
            warn(end.to_string());
        }
        if holes > 0 {
            let why = if self.seen.cut > 0 {
                "the snap length"
            } else {
                "lost packets"
            };
            warn(format!(
                "the TCP streams have {holes} holes ({why}): their messages are missing"
            ));
        }
        let counts = [
            (garbled, "garbled messages were left out"),
            (self.seen.fragments, "IP fragments were left out"),
            (self.seen.cut_headers, CUT_HEADERS),
            (self.seen.unknown_links.count(), UNKNOWN_LINKS),
            (
                self.seen.too_many,
                "segments of further connections were left out",
            ),
            (
                self.seen.unstamped,
                "packets have no time stamp: their messages are neither matched nor timed",
            ),
            (
                matcher.repeated(),
                "incoming messages repeat a FanoutID(20001) before its last delivery, or are \
                 resent: the first counts",
            ),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            warn(format!("{count} {what}"));
        }
        report.warn_of_what_is_missing();
        Ok(report)
    }
}

impl Tally {
    fn message(&mut self, direction: Direction, time: u64, message: &Message<'_>) {
        self.messages += 1;
        if is_session_level(message.msg_type()) {
            return;
        }
        let Self {
            report, matcher, ..
        } = self;
        let mark = message.get(FANOUT_ID);
        match direction {
            Direction::In if time == UNSTAMPED => report.incoming.messages += 1,
            Direction::Out if time == UNSTAMPED => report.outgoing.messages += 1,
            Direction::In => {
                report.incoming(time);
                if let Some(mark) = mark {
                    let is_resent = message.get(POSS_DUP_FLAG) == Some(b"Y");
                    let matched = |time, nanos| report.latency(time, nanos);
                    matcher.incoming(mark, time, is_resent, matched);
                }
            }
            Direction::Out => {
                report.outgoing(time);
                match mark.map(|mark| matcher.outgoing(mark, time)) {
                    Some(Some(nanos)) => report.latency(time, nanos),
                    Some(None) => {}
                    None => report.unmatched += 1,
                }
            }
        }
    }
}

impl Seen {
    /// Describes the contents of a capture without messages on the two ports.
    fn instead(&self, options: Options, end: End) -> String {
        let Options {
            in_port, out_port, ..
        } = options;
        let what = if self.packets == 0 {
            "it has no packets".to_owned()
        } else if let (0, Some(link)) = (self.tcp, self.unknown_links.last()) {
            format!("link type {} is not supported", link.0)
        } else if self.tcp == 0 && self.cut_headers > 0 {
            let (cut, packets) = (self.cut_headers, self.packets);
            format!("{cut} of its {packets} packets were captured with a part of their headers")
        } else if self.tcp == 0 {
            format!("none of its {} packets is TCP", self.packets)
        } else if self.ours == 0 {
            let (tcp, ports) = (self.tcp, self.busiest_ports());
            format!(
                "none of its {tcp} TCP segments goes to port {in_port} or comes from port \
                 {out_port}; its busiest ports are {ports}"
            )
        } else {
            let ours = self.ours;
            format!(
                "{ours} TCP segments go to port {in_port} or come from port {out_port}, but no \
                 FIX message is in them"
            )
        };
        if end == End::Complete {
            what
        } else {
            format!("{what}; {end}")
        }
    }

    fn busiest_ports(&self) -> String {
        let mut ports: Vec<_> = self
            .ports
            .iter()
            .map(|(port, count)| (*count, *port))
            .collect();
        ports.sort_unstable_by(|a, b| b.cmp(a));
        let names: Vec<_> = ports
            .iter()
            .take(4)
            .map(|(_, port)| port.to_string())
            .collect();
        names.join(", ")
    }
}

/// Returns whether this is Heartbeat, TestRequest, ResendRequest, Reject, SequenceReset, Logout or
/// Logon.
fn is_session_level(msg_type: &[u8]) -> bool {
    matches!(msg_type, [b'0'..=b'5' | b'A'])
}
