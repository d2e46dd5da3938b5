//! Lines merged to one stream: packets go to a channel, and its deliveries to the sink.

use super::sink::Sink;
use super::{Args, decoder};
use crate::cmd::fast::options::Sequence;
use crate::cmd::fast::packets::Flow;
use crate::cmd::fast::packets::frame_code;
use crate::cmd::fast::stopwatch::stopwatch;
use anyhow::{Result, anyhow};
use fanfare_fast::Record;
use fanfare_feed::channel::{
    BadPacket, Channel, ChannelConfig, ChannelError, Datagram, Delivered, Event, Events, Fault,
    Loss, Stopwatch,
};
use fanfare_feed::{Arbiter, ArbiterConfig, FrameErrorKind, Refusal, Start};
use std::io;
use std::time::Duration;

/// Returns how lines are arbitrated; `wait` is how long the first packet waits for an earlier one,
/// ns.
pub(crate) fn arbitration(args: &Args, wait: u64) -> ArbiterConfig {
    ArbiterConfig {
        hold_back: args.arbitration.hold_back as usize,
        gap_timeout: args.arbitration.gap_timeout.saturating_mul(1_000_000),
        start: Start::First { wait },
        max_unit_bytes: 1 << 20,
        restart_timeout: args.arbitration.restart_after.saturating_mul(1_000_000),
        ..ArbiterConfig::default()
    }
}

/// Returns the configuration of a channel with this number of lines, from the arguments.
pub(crate) fn channel_config(args: &Args, lines: usize, wait: u64) -> ChannelConfig {
    let mut config = ChannelConfig::new(lines);
    config.preamble = args.framing.preamble;
    config.keep_dictionary = args.framing.keep_dictionary;
    config.sequence = match &args.sequence {
        Sequence::Field(field) => Some(field.clone()),
        Sequence::None => None,
    };
    config.stopwatch = args.empty.then_some(Stopwatch::Packets(stopwatch));
    config.arbiter = arbitration(args, wait);
    config
}

/// Returns the error of a channel in the words of the command.
pub(crate) fn refused(error: ChannelError) -> anyhow::Error {
    match error {
        ChannelError::NoNumbers => {
            anyhow!("two lines need sequence numbers: give --preamble or --sequence FIELD")
        }
        other => other.into(),
    }
}

/// A feed of one or two lines, up to its decoded messages.
pub(crate) struct Feed {
    channel: Channel,
    taker: Taker,
}

impl Feed {
    /// Creates a feed; `wait` is how long the first packet waits for an earlier one, ns.
    pub(crate) fn new(args: &Args, sink: Sink, lines: usize, wait: u64) -> Result<Self> {
        Self::with(args, sink, channel_config(args, lines, wait))
    }

    /// Creates a feed of packets in order of arrival, whatever their numbers. Where previous values
    /// outlive packets, the numbers show which packets build on one that is missing.
    pub(crate) fn plain(args: &Args, sink: Sink) -> Result<Self> {
        let mut config = channel_config(args, 1, 0);
        let field = config.sequence.take().filter(|_| config.keep_dictionary);
        config.sequence = field.filter(|field| !field.find(sink.program()).is_empty());
        config.as_it_comes = config.sequence.is_some();
        Self::with(args, sink, config)
    }

    /// Creates a feed with a configuration.
    pub(crate) fn with(args: &Args, sink: Sink, config: ChannelConfig) -> Result<Self> {
        let decoder = decoder(args, sink.program());
        let channel = Channel::new(decoder, config).map_err(refused)?;
        Ok(Self::of(channel, Taker::new(sink)))
    }

    /// Creates a feed from a channel and the taker of its deliveries.
    pub(crate) const fn of(channel: Channel, taker: Taker) -> Self {
        Self { channel, taker }
    }

    pub(crate) fn sink(&mut self) -> &mut Sink {
        &mut self.taker.sink
    }

    /// Takes a datagram, or a packet of a file.
    pub(crate) fn receive(&mut self, datagram: Datagram<'_>) -> io::Result<Flow> {
        self.taker.drain(self.channel.receive(datagram))
    }

    /// Returns the channel that packets are taken from, for their numbers before their delivery.
    pub(crate) const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// Sets the time to `now`, and declares packets that are overdue as missing.
    pub(crate) fn tick(&mut self, now: u64) -> io::Result<Flow> {
        self.taker.drain(self.channel.handle_timeout(now))
    }

    /// Ends the feed: delivers everything that is held back, up to the limit of messages.
    pub(crate) fn finish(self) -> io::Result<(Sink, Arbiter)> {
        let Self {
            mut channel,
            mut taker,
        } = self;
        if !taker.sink.is_full() && taker.drain(channel.finish())?.is_continue() {
            taker.deliver_last()?;
        }
        let (mut sink, withheld) = (taker.sink, taker.withheld);
        let stats = channel.stats();
        sink.counts.packets = stats.delivered - withheld.0;
        sink.counts.bytes = stats.delivered_bytes - withheld.1;
        sink.counts.line_packets = stats.packets;
        sink.decoding += Duration::from_nanos(stats.decoding);
        Ok((sink, channel.into_arbiter()))
    }
}

/// The message that ends the feed.
struct Last {
    record: Record,
    received: u64,
    packet_len: u64,
}

/// The taker of a channel's deliveries.
pub(crate) struct Taker {
    sink: Sink,
    /// The unnumbered message that ends the feed; it is delivered last.
    last: Option<Last>,
    /// Packets with that message that were not delivered, and their bytes.
    withheld: (u64, u64),
    is_over: bool,
}

impl Taker {
    pub(crate) const fn new(sink: Sink) -> Self {
        Self {
            sink,
            last: None,
            withheld: (0, 0),
            is_over: false,
        }
    }

    pub(crate) const fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Returns whether the feed has announced its end.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    fn drain(&mut self, events: Events<'_, '_>) -> io::Result<Flow> {
        events.try_for_each(|event| self.take(event))
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, event: Event<'_>) -> io::Result<Flow> {
        match event {
            Event::Message(message) => self.message(message),
            other => self.remark(&other),
        }
    }

    #[cold]
    fn remark(&mut self, event: &Event<'_>) -> io::Result<Flow> {
        match *event {
            Event::Bad(bad) => return self.bad(&bad),
            Event::Gap(gap) => {
                let (first, last, count) = (gap.first, gap.last(), gap.count);
                let text = format_args!("gap: {first} to {last} missing ({count})");
                self.sink.output().remark(text);
            }
            Event::Reset {
                expected,
                next,
                announced: false,
            } => {
                let last = expected.wrapping_sub(1);
                let text = format_args!("sequence reset: {next} after {last}");
                self.sink.output().remark(text);
            }
            Event::Reset { .. } | Event::Recover(_) | Event::Message(_) => {}
        }
        Ok(Flow::Continue(()))
    }

    #[inline(always)]
    fn message(&mut self, message: Delivered<'_>) -> io::Result<Flow> {
        if self.sink.ends_feed(message.record) {
            return self.end(message);
        }
        self.sink.record(message.record, message.received)
    }

    #[cold]
    fn end(&mut self, message: Delivered<'_>) -> io::Result<Flow> {
        self.is_over = true;
        if message.number.is_some() || !message.is_first {
            return self.sink.record(message.record, message.received);
        }
        let len = message.packet_len as u64;
        self.withheld.0 += 1;
        self.withheld.1 += len;
        self.last = Some(Last {
            record: message.record.clone(),
            received: message.received,
            packet_len: len,
        });
        Ok(Flow::Continue(()))
    }

    fn bad(&mut self, bad: &BadPacket) -> io::Result<Flow> {
        match bad.fault {
            Fault::Codec(error) => self.sink.codec_error(&error, bad.offset),
            Fault::Frame(kind) => {
                let text = match kind {
                    FrameErrorKind::Truncated { need, have } => {
                        format!("datagram is cut: {have} of at least {need} bytes")
                    }
                    _ => kind.to_string(),
                };
                self.sink.error(frame_code(kind), bad.offset, &text)
            }
            Fault::Preamble(short) => self.sink.error("EOF", bad.offset, &short.to_string()),
            // A straggler of a sequence that is over is not needed.
            Fault::Refused(why @ Refusal::Stale) => {
                let (line, offset) = (bad.line, bad.offset);
                let text = format_args!("line {line}, byte {offset}: left out: {why}");
                self.sink.output().remark(text);
                Ok(Flow::Continue(()))
            }
            Fault::Refused(why) => {
                let code = match why {
                    Refusal::Order => "ORDER",
                    _ => "LIMIT",
                };
                let text = format!("line {}: left out: {why}", bad.line);
                self.sink.error(code, bad.offset, &text)
            }
            Fault::Lost(Loss::Error(code)) => {
                let text = "left out: it builds on a packet with an error";
                self.sink.error(code.as_str(), bad.offset, text)
            }
            Fault::Lost(Loss::Gap) => {
                let text = "left out: it builds on a packet that is missing or repeated";
                self.sink.error("GAP", bad.offset, text)
            }
        }
    }

    /// Delivers the message that ends the feed, behind the rest of all lines.
    fn deliver_last(&mut self) -> io::Result<()> {
        if let Some(mut last) = self.last.take() {
            self.withheld.0 -= 1;
            self.withheld.1 -= last.packet_len;
            // The end is final, whatever the limit of messages.
            let _ = self.sink.record(&mut last.record, last.received)?;
        }
        Ok(())
    }
}
