//! Multicast: one or two groups, batch by batch.

use super::feed::{Feed, Taker, channel_config, refused};
use super::sink::Sink;
use super::{Args, Outcome, decoder};
use crate::plural::counted;
use crate::print::note;
use anyhow::Result;
use fanfare_engine::clock::Clock;
use fanfare_engine::feed::{LineConfig, OpenError, Receiver, ReceiverConfig};
use fanfare_engine::stop::Stop;
use fanfare_feed::channel::Channel;
use std::io::{IsTerminal, stderr};
use std::net::SocketAddrV4;
use std::time::Duration;

/// The interval at which Ctrl-C is polled, ns.
const LOOK: u64 = 100_000_000;
const SECOND: u64 = 1_000_000_000;

/// Receives until the feed announces its end, is silent for too long, or Ctrl-C.
pub(crate) fn run(args: &Args, groups: &[SocketAddrV4], sink: Sink) -> Result<Outcome> {
    let stop = Stop::on_interrupt()?;
    let gap_timeout = args.arbitration.gap_timeout.saturating_mul(1_000_000);
    let mut receiver = open(args, groups, &sink)?;
    let mut taker = Taker::new(sink);
    let mut clock = Clock::new();
    // After the last message only the rest of the other line is due.
    let linger = gap_timeout.max(LOOK);
    let idle = args
        .network
        .idle
        .map_or(u64::MAX, |s| (s * SECOND as f64) as u64);
    let mut progress = Progress::new();
    let (mut first, mut last) = (None, 0);
    while !stop.is_raised() {
        let begin = clock.read().mono;
        let turn = receiver.turn(begin, |event| taker.take(event))?;
        let now = clock.read().mono;
        if turn.datagrams > 0 {
            first.get_or_insert(begin);
            last = now;
        }
        let silent = now - receiver.last();
        let is_over = taker.is_over() && silent >= linger;
        if turn.flow.is_break() || silent >= idle || is_over {
            break;
        }
        progress.show(now, receiver.channel(), taker.sink());
        if turn.datagrams == 0 && !args.network.spin {
            taker.sink().flush()?;
            receiver.wait(sleep(&receiver, now))?;
        }
    }
    let counts = &mut taker.sink().counts;
    counts.receiving = Duration::from_nanos(last - first.unwrap_or(last));
    counts.kernel_drops += receiver.kernel_drops();
    let (sink, arbiter) = Feed::of(receiver.into_channel(), taker).finish()?;
    Ok(Outcome::arbitrated(sink, arbiter))
}

fn open(args: &Args, groups: &[SocketAddrV4], sink: &Sink) -> Result<Receiver> {
    let wait = match groups.len() {
        0 | 1 => 0,
        _ => args.arbitration.gap_timeout.saturating_mul(1_000_000),
    };
    let interface = args.network.interface;
    let lines = groups.iter().map(|group| LineConfig {
        interface,
        ..LineConfig::new(*group)
    });
    let mut channel = channel_config(args, groups.len(), wait);
    channel.header = args.framing.header.unwrap_or(fanfare_feed::Header::None);
    let config = ReceiverConfig {
        lines: lines.collect(),
        buffer: args.network.buffer,
        channel,
    };
    let receiver = match Receiver::open(config, decoder(args, sink.program())) {
        Err(OpenError::Channel(error)) => return Err(refused(error)),
        other => other?,
    };
    if let Some(small) = receiver.small_buffer() {
        note!("fanfare: {small}");
    }
    for group in groups {
        note!("receiving {group} on {interface}");
    }
    Ok(receiver)
}

/// Returns how long nothing can happen without a packet.
fn sleep(receiver: &Receiver, now: u64) -> Duration {
    let deadline = receiver.next_timer();
    let left = deadline.map_or(LOOK, |t| t.saturating_sub(now).max(1_000_000));
    Duration::from_nanos(left.min(LOOK))
}

/// A progress line per second on a terminal; nothing in a pipe.
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

    fn show(&mut self, now: u64, channel: &Channel, sink: &Sink) {
        if self.visible && now >= self.next {
            self.next = now + SECOND;
            let packets = channel.stats().delivered;
            if packets > 0 {
                let messages = counted(sink.counts.messages, "message");
                note!("{messages} in {}", counted(packets, "packet"));
            }
        }
    }
}
