//! A feed from a packet capture: one or two groups, in the time of the capture.

use super::feed::{Feed, channel_config};
use super::sink::Sink;
use super::{Args, Outcome};
use crate::cmd::fast::packets::Flow;
use crate::print::note;
use crate::progress;
use anyhow::{Context, Result, bail, ensure};
use fanfare_engine::stop::Stop;
use fanfare_feed::channel::Datagram as Packet;
use fanfare_feed::{Header, Line};
use fanfare_instruments::ip::{Destination, Endpoint, NoSegment, UnknownLinks};
use fanfare_instruments::pcap::{End, LinkType, Reader};
use fanfare_instruments::udp::{Datagram, datagram};
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;

/// Plays the datagrams of a capture to the groups of `--multicast`, or to the only group in it.
/// Messages have the stamps of their packets, and time-outs follow the latest stamp.
pub(crate) fn run(args: &Args, path: &Path, sink: Sink) -> Result<Outcome> {
    let cannot = || format!("cannot read `{}`", path.display());
    let file = File::open(path).with_context(cannot)?;
    // From here on Ctrl-C ends the loop. Before, it ends the process: a FIFO may have no writer.
    let stop = Stop::on_interrupt()?;
    let mut reader = Reader::new(progress::watch(file)).with_context(cannot)?;
    let wait = match args.multicast.len() {
        0 | 1 => 0,
        _ => args.arbitration.gap_timeout.saturating_mul(1_000_000),
    };
    let mut config = channel_config(args, args.multicast.len().max(1), wait);
    config.header = args.framing.header.unwrap_or(Header::None);
    let feed = Feed::with(args, sink, config)?;
    let mut play = Play {
        feed,
        groups: args.multicast.iter().map(|g| end(*g)).collect(),
        is_told: !args.multicast.is_empty(),
        waiting: Vec::new(),
        unjudged: 0,
        now: 0,
        count: 0,
        unknown_links: UnknownLinks::default(),
    };
    while !stop.is_raised() {
        let Some(packet) = reader.next_packet().with_context(cannot)? else {
            break;
        };
        // Stamps go back where captures of several interfaces are merged; the clock never does.
        let received = packet.time.unwrap_or(play.now);
        play.now = play.now.max(received);
        let flow = match datagram(&packet) {
            Ok(datagram) => play.datagram(received, &datagram)?,
            Err(reason) => play.other(reason)?,
        };
        if flow.is_break() {
            break;
        }
    }
    play.finish(reader.end(), path)
}

/// Most packets without a datagram that wait for the first datagram. Further ones are only counted.
const MOST_WAITING: usize = 4_096;

fn end(group: std::net::SocketAddrV4) -> Endpoint {
    let (ip, port) = (SocketAddr::V4(group).ip(), group.port());
    Endpoint { ip, port }
}

struct Play {
    feed: Feed,
    /// The destination of each line.
    groups: Vec<Endpoint>,
    /// Whether the groups were given; otherwise they are found in the capture.
    is_told: bool,
    /// The packets without a datagram so far, while no group is known: at most [`MOST_WAITING`].
    waiting: Vec<NoSegment>,
    /// Further such packets.
    unjudged: u64,
    /// The latest stamp so far, ns: the clock of the time-outs.
    now: u64,
    /// Datagrams of the groups so far, with those that cannot be read.
    count: u64,
    unknown_links: UnknownLinks,
}

impl Play {
    fn datagram(&mut self, received: u64, datagram: &Datagram<'_>) -> Result<Flow> {
        let to = datagram.destination;
        if self.groups.is_empty() {
            self.groups.push(to);
            if self.judge_waiting()?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        let line = self.groups.iter().position(|group| *group == to);
        let Some(line) = line.and_then(Line::new) else {
            ensure!(
                self.is_told,
                "the capture has datagrams to {} and to {to}: name the lines with --multicast",
                self.groups[0]
            );
            return Ok(Flow::Continue(()));
        };
        self.count += 1;
        if self.feed.tick(self.now)?.is_break() {
            return Ok(Flow::Break(()));
        }
        if datagram.cut > 0 {
            let text = format!(
                "the capture has {} of the {} bytes of a datagram to {to}",
                datagram.payload.len(),
                datagram.payload.len() + datagram.cut
            );
            return Ok(self.feed.sink().packet_error("EOF", &text)?);
        }
        Ok(self.feed.receive(Packet {
            line,
            now: self.now,
            received,
            offset: 0,
            bytes: datagram.payload,
        })?)
    }

    /// Handles a packet that has no datagram: other traffic is ignored, and a packet that may be of
    /// the groups is an error. While none is known, it waits.
    fn other(&mut self, reason: NoSegment) -> Result<Flow> {
        if let NoSegment::UnknownLink(link) = reason {
            self.unknown_links.add(link);
        }
        let Some(to) = reason.spoilt() else {
            return Ok(Flow::Continue(()));
        };
        if !self.groups.is_empty() {
            return self.judge(reason, to);
        }
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push(reason);
        } else {
            self.unjudged += 1;
        }
        Ok(Flow::Continue(()))
    }

    /// Reports a packet without a datagram that may be of the groups; while none is known, any may.
    fn judge(&mut self, reason: NoSegment, to: Destination) -> Result<Flow> {
        if !self.groups.is_empty() && !self.groups.iter().any(|group| to.may_be(*group)) {
            return Ok(Flow::Continue(()));
        }
        self.count += 1;
        let code = match reason {
            NoSegment::Cut(_) => "EOF",
            _ => "IP",
        };
        Ok(self.feed.sink().packet_error(code, &reason.to_string())?)
    }

    /// Handles the packets that have waited for the first datagram.
    fn judge_waiting(&mut self) -> Result<Flow> {
        for reason in std::mem::take(&mut self.waiting) {
            if let Some(to) = reason.spoilt()
                && self.judge(reason, to)?.is_break()
            {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }

    fn finish(mut self, end: Option<End>, path: &Path) -> Result<Outcome> {
        // None is left if a datagram has come. An error changes the status, and ends nothing here.
        let _ = self.judge_waiting()?;
        // While no group is known, packets without a datagram may be of other traffic.
        let has_datagram = self.count > 0 && !self.groups.is_empty();
        let (sink, arbiter) = self.feed.finish()?;
        let unknown_links = self.unknown_links;
        if let (false, Some(LinkType(link))) = (has_datagram, unknown_links.last()) {
            bail!("`{}`: link type {link} is not supported", path.display());
        }
        if unknown_links.count() > 0 {
            note!("fanfare: `{}`: {unknown_links}", path.display());
        }
        if let Some(end) = end.filter(|end| *end != End::Complete) {
            note!("fanfare: `{}`: {end}", path.display());
        }
        if self.unjudged > 0 {
            note!(
                "fanfare: `{}`: {} further packets without a datagram are in front of the first \
                 datagram, and are left out",
                path.display(),
                self.unjudged
            );
        }
        if !has_datagram {
            note!("fanfare: `{}` has no datagram of the feed", path.display());
        }
        Ok(Outcome::arbitrated(sink, arbiter))
    }
}
