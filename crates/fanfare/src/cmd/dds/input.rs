//! The input of published messages: a file, or one or two multicast lines, which a thread of their
//! own receives.
//!
//! A ring of samples lies between that thread and the one that publishes: a DataWriter that is
//! slower than the feed for a while costs no datagram. When the ring is full, datagrams stay with
//! the kernel, which drops and counts those beyond its buffer.

use crate::cmd::fast::packets::{Flow, PacketFile, each_packet_of};
use crate::cmd::fast::stopwatch::stopwatch;
use crate::print::note;
use anyhow::{Result, anyhow};
use fanfare_dds::fast::Converted;
use fanfare_engine::clock::Clock;
use fanfare_engine::feed::{LineConfig, Receiver, ReceiverConfig};
use fanfare_engine::ring::{Consumer, Producer, WriteError, spsc};
use fanfare_engine::stop::Stop;
use fanfare_fast::Decoder;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram, Event, Stopwatch, Unnumbered};
use fanfare_feed::{Line, LineStats, Start};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::thread::{self, Thread};
use std::time::Duration;

/// The time to wait for a missing packet, ns.
const GAP_TIMEOUT: u64 = 100_000_000;
/// The interval at which Ctrl-C is polled.
const LOOK: Duration = Duration::from_millis(10);
/// The interval at which a full ring is polled.
const FULL: Duration = Duration::from_micros(200);

/// Reads all messages of an open file, in order.
pub(crate) fn file(
    file: PacketFile,
    path: &Path,
    decoder: Decoder,
    stop: &Stop,
    mut take: impl FnMut(Event<'_>) -> Result<Flow>,
) -> Result<()> {
    let mut config = ChannelConfig::new(1);
    config.sequence = None;
    config.stopwatch = Some(Stopwatch::Messages(stopwatch));
    let mut channel = Channel::new(decoder, config)?;
    each_packet_of(file, path, stop, |packet| {
        let mut events = channel.receive(Datagram {
            line: Line::A,
            now: 0,
            received: 0,
            offset: packet.offset,
            bytes: packet.bytes,
        });
        while let Some(event) = events.next() {
            if take(event)?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    })
}

/// A multicast input.
pub(crate) struct Source<'a> {
    /// One group, or two that carry the same feed.
    pub(crate) groups: &'a [SocketAddrV4],
    /// Address of the interface.
    pub(crate) interface: Ipv4Addr,
    /// The silence after which the feed has ended.
    pub(crate) idle: Option<Duration>,
    /// Bytes of samples that may be queued to be written.
    pub(crate) backlog: usize,
}

impl Source<'_> {
    fn config(&self) -> ReceiverConfig {
        let lines = self.groups.iter().map(|group| LineConfig {
            interface: self.interface,
            ..LineConfig::new(*group)
        });
        let mut config = ReceiverConfig::new(lines.collect());
        let several = self.groups.len() > 1;
        let gap_timeout = if several { GAP_TIMEOUT } else { 0 };
        let channel = &mut config.channel;
        channel.as_it_comes = !several;
        if several {
            channel.unnumbered = Unnumbered::AtTheEnd;
        }
        channel.arbiter.gap_timeout = gap_timeout;
        channel.arbiter.start = Start::First { wait: gap_timeout };
        channel.stopwatch = Some(Stopwatch::Messages(stopwatch));
        config
    }
}

/// The losses of a feed, and the statistics of its lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Losses {
    /// Sequence numbers that came on no line.
    pub(crate) missing: u64,
    /// Datagrams that the kernel dropped because the receiver was slow.
    pub(crate) kernel_drops: u64,
    /// The statistics of each line, if there are several.
    pub(crate) lines: Vec<LineStats>,
    /// The losses in each tenth of a second.
    pub(crate) over_time: OverTime,
}

/// Numbers lost in each tenth of a second: by line, and on all lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct OverTime {
    pub(crate) lines: Vec<Vec<u64>>,
    pub(crate) missing: Vec<u64>,
    /// The end of the current tenth, monotonic; 0 before the first datagram.
    end: u64,
    /// The sums at the end of the last one: of each line, then of all.
    before: Vec<u64>,
}

/// The length of an interval, ns, and the number of intervals kept: ten minutes.
const INTERVAL: u64 = 100_000_000;
const MOST_INTERVALS: usize = 6_000;

impl OverTime {
    /// Records the receiver's counters, at the end of each interval since the first datagram.
    fn look(&mut self, now: u64, receiver: &Receiver, count: usize) {
        if self.end == 0 && receiver.datagrams() > 0 {
            self.end = now + INTERVAL;
            self.lines = vec![Vec::new(); count];
            self.before = vec![0; count + 1];
        }
        while self.end != 0 && now >= self.end && self.missing.len() < MOST_INTERVALS {
            self.end += INTERVAL;
            self.note(receiver);
        }
    }

    /// Ends the current interval.
    fn note(&mut self, receiver: &Receiver) {
        let arbiter = receiver.channel().arbiter();
        let lines = (0..self.lines.len()).filter_map(Line::new);
        let sums = lines.map(|line| arbiter.line(line).lost);
        let sums = sums.chain([arbiter.stats().missing]);
        let places = self.lines.iter_mut().chain([&mut self.missing]);
        for ((sum, before), place) in sums.zip(&mut self.before).zip(places) {
            // Numbers that came late are no longer lost.
            place.push(sum.saturating_sub(*before));
            *before = sum;
        }
    }
}

/// Receives messages from multicast until `make` or `write` has enough, the lines are silent for
/// too long, or Ctrl-C. A thread of its own receives and makes samples, which go through a ring to
/// `write`, on the caller's thread.
pub(crate) fn multicast(
    source: &Source<'_>,
    decoder: Decoder,
    stop: &Stop,
    mut make: impl FnMut(Event<'_>, &mut SampleRing) -> Result<Flow> + Send,
    mut write: impl FnMut(&[u8]) -> Result<Flow>,
) -> Result<Losses> {
    let mut receiver = Receiver::open(source.config(), decoder)?;
    if let Some(small) = receiver.small_buffer() {
        note!("fanfare: {small}");
    }
    for group in source.groups {
        note!("receiving {group} on {}", source.interface);
    }
    let (producer, mut consumer) = spsc(source.backlog);
    let (taker, enough) = (thread::current(), Stop::new());
    let mut ring = SampleRing {
        ring: producer,
        taker: taker.clone(),
        enough: enough.clone(),
    };
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let lines = source.groups.len();
            let losses = receive(&mut receiver, (source.idle, lines), &mut ring, &mut make);
            drop(ring);
            taker.unpark();
            losses
        });
        let taken = take(&mut consumer, stop, &mut write);
        enough.raise();
        let losses = receiving.join();
        taken?;
        losses.map_err(|_| anyhow!("the thread that receives has panicked"))?
    })
}

/// Takes samples out of the ring until its end.
fn take(
    ring: &mut Consumer,
    stop: &Stop,
    write: &mut impl FnMut(&[u8]) -> Result<Flow>,
) -> Result<()> {
    while !stop.is_raised() {
        let mut flow = Ok(Flow::Continue(()));
        let taken = ring.read(1, |sample| flow = write(sample.bytes));
        if flow?.is_break() || (taken == 0 && ring.is_finished()) {
            break;
        }
        if taken == 0 {
            thread::park_timeout(LOOK);
        }
    }
    Ok(())
}

/// Receives until `make` has enough, or the lines are silent for too long.
fn receive(
    receiver: &mut Receiver,
    (idle, lines): (Option<Duration>, usize),
    ring: &mut SampleRing,
    make: &mut impl FnMut(Event<'_>, &mut SampleRing) -> Result<Flow>,
) -> Result<Losses> {
    let mut clock = Clock::new();
    let mut over_time = OverTime::default();
    let idle = idle.map_or(u128::MAX, |d| d.as_nanos());
    while !ring.enough.is_raised() {
        let turn = receiver.turn(clock.read().mono, |event| {
            if let Event::Gap(gap) = event {
                let (first, last, count) = (gap.first, gap.last(), gap.count);
                note!("gap: {first} to {last} missing ({count})");
                return Ok(Flow::Continue(()));
            }
            make(event, ring)
        })?;
        let now = clock.read().mono;
        over_time.look(now, receiver, lines);
        let silent = now.saturating_sub(receiver.last());
        if turn.flow.is_break() || u128::from(silent) >= idle {
            break;
        }
        ring.taker.unpark();
        if turn.datagrams == 0 {
            receiver.wait(LOOK)?;
        }
    }
    over_time.note(receiver);
    let arbiter = receiver.channel().arbiter();
    let all = (0..lines).filter_map(Line::new).filter(|_| lines > 1);
    Ok(Losses {
        missing: arbiter.stats().missing,
        kernel_drops: receiver.kernel_drops(),
        lines: all.map(|line| *arbiter.line(line)).collect(),
        over_time,
    })
}

/// The ring of samples to the thread that writes them.
pub(crate) struct SampleRing {
    ring: Producer,
    taker: Thread,
    enough: Stop,
}

impl SampleRing {
    /// Puts a sample into the ring, and waits while it is full. Returns whether more is wanted.
    ///
    /// # Errors
    /// [`WriteError::TooLong`] for a sample above half of the ring.
    pub(crate) fn put(&mut self, sample: &Converted<'_>) -> Result<Flow> {
        loop {
            let len = sample.written_len();
            match self.ring.write(0, len, |room| sample.write(room)) {
                Ok(_) => return Ok(Flow::Continue(())),
                Err(WriteError::Full) if self.enough.is_raised() => return Ok(Flow::Break(())),
                Err(WriteError::Full) => {
                    self.taker.unpark();
                    thread::sleep(FULL);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
