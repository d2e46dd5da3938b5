//! Multicast: one or two groups, batch by batch.

use super::decode::{Args, Outcome};
use super::feed::{Feed, Received};
use super::sink::{Flow, Sink};
use crate::print::{counted, note};
use anyhow::{Context, Result};
use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Receiver, ReceiverConfig};
use fanfare_feed::{Header, Line, Pace, Split};
use std::io::{IsTerminal, stderr};
use std::net::SocketAddrV4;
use std::time::Duration;

/// How often Ctrl-C is looked for.
const LOOK: u64 = 100_000_000;
const SECOND: u64 = 1_000_000_000;
/// The longest datagram there is.
const DATAGRAM: usize = 65_536;
/// Datagrams taken from a line in one turn.
const BATCH: usize = 64;

/// Receives until the feed says that it is over, is silent for too long, or Ctrl-C.
pub(crate) fn run(args: &Args, groups: &[SocketAddrV4], sink: Sink) -> Result<Outcome> {
    let stop = Stop::on_interrupt()?;
    let gap_timeout = args.arbitration.gap_timeout.saturating_mul(1_000_000);
    let wait = if groups.len() > 1 { gap_timeout } else { 0 };
    let mut live = Live {
        feed: Feed::new(args, sink, groups.len(), wait)?,
        lines: open(args, groups)?,
        clock: Clock::new(),
        pace: Pace::new(gap_timeout),
        header: args.framing.header.unwrap_or(Header::None),
        silent_since: 0,
        first: None,
        last: 0,
    };
    let mut poller = Poller::new(groups.len())?;
    for (i, line) in live.lines.iter().enumerate() {
        poller.add(line, Token(i as u64), Interest::Read)?;
    }
    // After the last message there is nothing to wait for but the other line's rest.
    let linger = gap_timeout.max(LOOK);
    let idle = args
        .network
        .idle
        .map_or(u64::MAX, |s| (s * SECOND as f64) as u64);
    let mut progress = Progress::new();
    live.silent_since = live.clock.read().mono;
    while !stop.is_raised() {
        let (took, flow) = live.turn()?;
        let now = live.clock.read().mono;
        if took > 0 {
            live.last = now;
        }
        if flow == Flow::Stop {
            break;
        }
        let silent = now - live.silent_since;
        if silent >= idle || (live.feed.is_over() && silent >= linger) {
            break;
        }
        progress.show(now, &mut live.feed);
        if took == 0 && !args.network.spin {
            live.feed.sink().output().flush()?;
            poller.poll(Some(live.sleep(now)))?;
        }
    }
    live.finish()
}

fn open(args: &Args, groups: &[SocketAddrV4]) -> Result<Vec<Receiver>> {
    let mut lines = Vec::new();
    for group in groups {
        let config = ReceiverConfig {
            interface: args.network.interface,
            buffer: args.network.buffer,
            datagram: DATAGRAM,
            batch: BATCH,
            ..ReceiverConfig::new(*group)
        };
        let receiver = Receiver::open(&config)
            .with_context(|| format!("cannot receive {group} on {}", config.interface))?;
        if let Some(small) = receiver.small_buffer() {
            note!("fanfare: {small}");
        }
        note!("receiving {group} on {}", config.interface);
        lines.push(receiver);
    }
    Ok(lines)
}

struct Live {
    feed: Feed,
    lines: Vec<Receiver>,
    clock: Clock,
    pace: Pace,
    header: Header,
    silent_since: u64,
    /// When the first datagram came, and when the work on the last was done.
    first: Option<u64>,
    last: u64,
}

impl Live {
    /// Takes one batch from each line, then declares what has been missing for too long; how many
    /// datagrams.
    fn turn(&mut self) -> Result<(usize, Flow)> {
        let time = self.pace.time(self.clock.read().mono);
        let (took, is_behind, flow) = self.batches(time)?;
        self.pace.took(took, is_behind);
        if flow == Flow::Stop {
            return Ok((took, flow));
        }
        Ok((took, self.feed.tick(time)?))
    }

    /// One batch from each line: how many datagrams, and whether a line had a whole batch.
    fn batches(&mut self, time: u64) -> Result<(usize, bool, Flow)> {
        let (mut took, mut is_behind) = (0, false);
        for (index, receiver) in self.lines.iter_mut().enumerate() {
            let Some(line) = Line::new(index) else {
                continue;
            };
            let count = receiver.receive()?;
            if count == 0 {
                continue;
            }
            took += count;
            is_behind |= count >= BATCH;
            let now = self.clock.read().mono;
            self.silent_since = now;
            self.first.get_or_insert(now);
            for i in 0..count {
                let datagram = receiver.datagram(i);
                let stamp = datagram.received.map_or(now, |t| t.nanos().unsigned_abs());
                let received = Received {
                    line,
                    now: time,
                    stamp,
                    offset: 0,
                    bytes: datagram.bytes,
                };
                if take(&mut self.feed, self.header, received)? == Flow::Stop {
                    return Ok((took, is_behind, Flow::Stop));
                }
            }
        }
        Ok((took, is_behind, Flow::Continue))
    }

    /// How long nothing can happen unless a packet comes.
    fn sleep(&self, now: u64) -> Duration {
        let deadline = self.feed.arbiter().poll_timeout();
        let deadline = deadline.map(|time| self.pace.real(time));
        let left = deadline.map_or(LOOK, |t| t.saturating_sub(now).max(1_000_000));
        Duration::from_nanos(left.min(LOOK))
    }

    fn finish(mut self) -> Result<Outcome> {
        self.feed.finish()?;
        let first = self.first.unwrap_or(self.last);
        self.feed.sink().counts.receiving = Duration::from_nanos(self.last - first);
        for line in &self.lines {
            self.feed.sink().counts.kernel_drops += line.kernel_drops().unwrap_or(0);
        }
        Ok(Outcome::Arbitrated(Box::new(self.feed)))
    }
}

/// A datagram is a packet, or holds packets with headers.
pub(crate) fn take(feed: &mut Feed, header: Header, received: Received<'_>) -> Result<Flow> {
    if header == Header::None {
        return Ok(feed.receive(received)?);
    }
    let mut rest = received.bytes;
    let mut offset = 0;
    while !rest.is_empty() {
        let body = match header.split(rest, DATAGRAM) {
            Ok(Split::Packet(body)) => body,
            Ok(Split::Partial { need }) => {
                let text = format!("datagram is cut: {} of at least {need} bytes", rest.len());
                return Ok(feed.sink().error("EOF", offset, &text)?);
            }
            Err(kind) => {
                let code = super::packets::frame_code(kind);
                return Ok(feed.sink().error(code, offset, &kind.to_string())?);
            }
        };
        let packet = Received {
            offset: offset + body.start as u64,
            bytes: rest.get(body.clone()).unwrap_or_default(),
            ..received
        };
        if feed.receive(packet)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
        offset += body.end as u64;
        rest = rest.get(body.end..).unwrap_or_default();
    }
    Ok(Flow::Continue)
}

/// A line a second for whoever watches; nothing in a pipe.
struct Progress {
    visible: bool,
    next: u64,
}

impl Progress {
    fn new() -> Self {
        Self {
            visible: stderr().is_terminal(),
            next: 0,
        }
    }

    fn show(&mut self, now: u64, feed: &mut Feed) {
        if self.visible && now >= self.next {
            self.next = now + SECOND;
            let counts = feed.sink().counts;
            if counts.packets > 0 {
                let messages = counted(counts.messages, "message");
                note!("{messages} in {}", counted(counts.packets, "packet"));
            }
        }
    }
}
