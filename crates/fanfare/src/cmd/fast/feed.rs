//! Lines to one stream: sequence numbers read, packets arbitrated, and what is in turn decoded.

use super::decode::{Args, decoder};
use super::options::Sequence;
use super::output::Output;
use super::sink::{Flow, Sink, Skip, number};
use anyhow::{Result, bail};
use fanfare_fast::Message;
use fanfare_fast::program::FieldId;
use fanfare_feed::{
    Arbiter, ArbiterConfig, Event, Line, MessageNumbers, PacketNumbers, Preamble, SequenceField,
    Start, Unit, Verdict, new_numbers,
};
use std::io;

/// A feed of one or two lines, up to its decoded messages.
pub(crate) struct Feed {
    preamble: Preamble,
    numbers: Option<MessageNumbers>,
    fields: Vec<FieldId>,
    /// The fields that say which number comes next.
    new_numbers: Vec<FieldId>,
    /// Reads what packets with a preamble say of the numbers behind them.
    announcements: Option<MessageNumbers>,
    /// What was said last.
    announced: Option<u32>,
    arbiter: Arbiter,
    sink: Sink,
    /// The packet without a number that says the feed is over; its turn is at the end.
    last: Vec<u8>,
    is_over: bool,
}

/// A packet with what is known of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) line: Line,
    /// When it was read, on the arbiter's clock, ns.
    pub(crate) now: u64,
    /// When it was received, ns.
    pub(crate) stamp: u64,
    /// Where its messages stand in their file.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
}

impl Feed {
    /// `wait` is how long the first packet waits for an earlier one, ns.
    pub(crate) fn new(args: &Args, sink: Sink, lines: usize, wait: u64) -> Result<Self> {
        let preamble = args.framing.preamble;
        let field = match &args.sequence {
            Sequence::Field(field) => Some(field),
            Sequence::None => None,
        };
        let by_field = |field: &SequenceField| {
            let decoder = decoder(args, sink.program());
            MessageNumbers::new(decoder, field).map(|n| (n, field.find(sink.program())))
        };
        let found = field.filter(|_| preamble.is_empty()).and_then(by_field);
        if let Some(field) = field
            && preamble.is_empty()
            && found.is_none()
            && *field != SequenceField::Auto
        {
            bail!("no template has an integer field `{field}` to take sequence numbers from");
        }
        if lines > 1 && preamble.is_empty() && found.is_none() {
            bail!("two lines need sequence numbers: give --preamble or --sequence FIELD");
        }
        let (numbers, fields) = found.unzip();
        let config = ArbiterConfig {
            hold_back: args.arbitration.hold_back as usize,
            gap_timeout: args.arbitration.gap_timeout.saturating_mul(1_000_000),
            start: Start::First { wait },
            max_unit_bytes: 1 << 20,
            restart_timeout: args.arbitration.restart_after.saturating_mul(1_000_000),
            ..ArbiterConfig::default()
        };
        let announcements = match numbers {
            Some(_) => None,
            None => MessageNumbers::announcements(decoder(args, sink.program())),
        };
        Ok(Self {
            new_numbers: new_numbers(sink.program()),
            announcements,
            announced: None,
            preamble,
            numbers,
            fields: fields.unwrap_or_default(),
            arbiter: Arbiter::new(config),
            sink,
            last: Vec::new(),
            is_over: false,
        })
    }

    pub(crate) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    pub(crate) fn arbiter(&self) -> &Arbiter {
        &self.arbiter
    }

    /// Whether the feed has said that it is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over || self.sink.is_over()
    }

    /// Reads a packet's sequence number: its preamble, or its messages.
    pub(crate) fn number(&mut self, packet: &[u8]) -> PacketNumbers {
        match (self.preamble.split(packet), &mut self.numbers) {
            (Ok((Some(sequence), body)), _) => PacketNumbers {
                first: Some(sequence),
                count: 1,
                next: self.announcements.as_mut().and_then(|n| n.read(body).next),
            },
            (Ok((None, body)), Some(numbers)) => numbers.read(body),
            _ => PacketNumbers::default(),
        }
    }

    /// Cuts a packet off a stream in which each begins with a Reset; all of it if there are no
    /// numbers to read.
    pub(crate) fn cut<'b>(&mut self, stream: &'b [u8]) -> &'b [u8] {
        match &mut self.numbers {
            Some(numbers) => numbers.cut(stream).0,
            None => stream,
        }
    }

    /// Takes a message of a continuous stream, which the sink has in hand. A hole before it is
    /// told at once: nothing else can bring what is missing. One that came before is left out.
    pub(crate) fn in_hand(&mut self) -> io::Result<()> {
        let numbers = self.numbers_of(None);
        let Some(sequence) = numbers.first else {
            return self.sink.deliver();
        };
        let verdict = self.turn(Line::A, numbers, &[], |sink, number| {
            match number == sequence {
                true => sink.deliver(),
                // It was delivered when it was doubtful.
                false => Ok(()),
            }
        })?;
        match verdict {
            Verdict::Suspect => self.sink.deliver(),
            _ => Ok(()),
        }
    }

    /// The numbers of a message of a continuous stream; without one, of that in the sink's hand.
    pub(crate) fn numbers_of(&self, message: Option<&Message>) -> PacketNumbers {
        let number = |fields: &[FieldId]| match message {
            Some(message) => number(message, self.sink.program(), fields),
            None => self.sink.number(fields),
        };
        PacketNumbers {
            first: number(&self.fields),
            count: 1,
            next: number(&self.new_numbers),
        }
    }

    /// Takes a message of a continuous stream that has a number and comes before all that other
    /// lines will bring: a hole before it is told at once. `deliver` gets the numbers of the
    /// messages that are in turn: this one, or one that was doubtful before.
    pub(crate) fn turn(
        &mut self,
        line: Line,
        numbers: PacketNumbers,
        bytes: &[u8],
        mut deliver: impl FnMut(&mut Sink, u32) -> io::Result<()>,
    ) -> io::Result<Verdict> {
        let sequence = numbers.first.unwrap_or_default();
        let unit = Unit {
            sequence,
            count: 1,
            bytes,
        };
        let verdict = self.arbiter.receive(0, line, unit);
        if let Some(next) = numbers.next
            && self.arbiter.announce(next)
        {
            self.announced = Some(next);
        }
        match verdict {
            Verdict::Deliver { .. } => deliver(&mut self.sink, sequence)?,
            Verdict::Held => self.arbiter.flush(),
            _ => {}
        }
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) => deliver(&mut self.sink, unit.sequence)?,
                other => remark(&other, self.announced, self.sink.output()),
            }
        }
        Ok(verdict)
    }

    /// Takes a packet.
    pub(crate) fn receive(&mut self, received: Received<'_>) -> io::Result<Flow> {
        self.sink.counts.line_packets[received.line.index()] += 1;
        if let Err(short) = self.preamble.split(received.bytes) {
            return self.sink.error("EOF", received.offset, &short.to_string());
        }
        let numbers = self.number(received.bytes);
        let Some(sequence) = numbers.first else {
            return self.unnumbered(received);
        };
        let unit = Unit {
            sequence,
            count: numbers.count,
            bytes: received.bytes,
        };
        let (now, stamp, line) = (received.now, received.stamp, received.line);
        let verdict = self.arbiter.receive_stamped(now, stamp, line, unit);
        if let Some(next) = numbers.next
            && self.arbiter.announce(next)
        {
            self.announced = Some(next);
        }
        if let Verdict::Refused(why) = verdict {
            let text = format_args!("line {line}, byte {}: left out: {why}", received.offset);
            self.sink.output().remark(text);
        }
        if let Verdict::Deliver { skip } = verdict {
            let body = self
                .preamble
                .split(received.bytes)
                .map_or(&[][..], |(_, body)| body);
            let offset = received.offset + self.preamble.len() as u64;
            let skip = skipping(&self.fields, sequence, skip);
            if self.sink.packet(body, offset, skip)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        self.drain()
    }

    /// It is `now`: declares what has been missing for too long.
    pub(crate) fn tick(&mut self, now: u64) -> io::Result<Flow> {
        self.arbiter.handle_timeout(now);
        self.drain()
    }

    /// The end: everything that waits comes out.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.arbiter.flush();
        if self.drain()? == Flow::Continue && !self.last.is_empty() {
            let last = std::mem::take(&mut self.last);
            self.sink.packet(&last, 0, None)?;
        }
        Ok(())
    }

    /// A packet outside the sequence: decoded as it comes; the one that ends the feed waits for
    /// the other line's rest.
    fn unnumbered(&mut self, received: Received<'_>) -> io::Result<Flow> {
        if !self.sink.ends_feed(received.bytes) {
            return self.sink.packet(received.bytes, received.offset, None);
        }
        self.is_over = true;
        self.last.clear();
        self.last.extend_from_slice(received.bytes);
        Ok(Flow::Continue)
    }

    fn drain(&mut self) -> io::Result<Flow> {
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) => {
                    let body = self.preamble.split(unit.bytes).map_or(&[][..], |(_, b)| b);
                    let skip = skipping(&self.fields, unit.sequence, unit.skip);
                    if self.sink.packet(body, 0, skip)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                other => remark(&other, self.announced, self.sink.output()),
            }
        }
        Ok(Flow::Continue)
    }
}

/// Writes a line for a gap, and for numbers that begin again without having been announced.
fn remark(event: &Event<'_>, announced: Option<u32>, output: &mut Output) {
    match *event {
        Event::Gap(gap) => {
            let (first, last, count) = (gap.first, gap.last(), gap.count);
            output.remark(format_args!("gap: {first} to {last} missing ({count})"));
        }
        Event::Reset { next, .. } if announced == Some(next) => {}
        Event::Reset { expected, next } => {
            let last = expected.wrapping_sub(1);
            output.remark(format_args!("sequence reset: {next} after {last}"));
        }
        Event::Unit(_) | Event::Recover(_) => {}
    }
}

fn skipping(fields: &[FieldId], first: u32, count: u32) -> Option<Skip<'_>> {
    (count > 0).then_some(Skip {
        first,
        count,
        fields,
    })
}
