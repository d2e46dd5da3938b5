//! Continuous streams whose numbers are checked, message by message.

use super::Args;
use super::feed::arbitration;
use super::sink::{Sink, number};
use crate::cmd::fast::options::Sequence;
use anyhow::{Result, bail};
use fanfare_fast::Message;
use fanfare_fast::program::FieldId;
use fanfare_feed::{
    Arbiter, Event, Line, PacketNumbers, SequenceField, Unit, Verdict, new_numbers,
};
use std::io;

/// A sink for messages of streams in the order of their numbers. Each message is a unit of its own.
pub(crate) struct Numbered {
    fields: Vec<FieldId>,
    /// The fields that announce the next number.
    new_numbers: Vec<FieldId>,
    arbiter: Arbiter,
    sink: Sink,
}

impl Numbered {
    /// Creates a sink for a number of streams.
    pub(crate) fn new(args: &Args, sink: Sink, lines: usize) -> Result<Self> {
        let fields = match &args.sequence {
            Sequence::Field(field) => field.find(sink.program()),
            Sequence::None => Vec::new(),
        };
        if let (Sequence::Field(field), []) = (&args.sequence, &fields[..])
            && *field != SequenceField::Auto
        {
            bail!("no template has an integer field `{field}` to take sequence numbers from");
        }
        if lines > 1 && fields.is_empty() {
            bail!("two lines need sequence numbers: give --preamble or --sequence FIELD");
        }
        Ok(Self {
            new_numbers: new_numbers(sink.program()),
            fields,
            arbiter: Arbiter::new(arbitration(args, 0)),
            sink,
        })
    }

    pub(crate) fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Ends the streams: delivers everything that is held back.
    pub(crate) fn finish(mut self) -> (Sink, Arbiter) {
        self.arbiter.flush();
        // Nothing waits: what did was delivered at once.
        while self.next_held().is_some() {}
        (self.sink, self.arbiter)
    }

    /// Returns the numbers of a message of a continuous stream.
    pub(crate) fn numbers_of(&self, message: &Message) -> PacketNumbers {
        let number = |fields: &[FieldId]| number(message, self.sink.program(), fields);
        PacketNumbers {
            first: number(&self.fields),
            count: 1,
            next: number(&self.new_numbers),
        }
    }

    /// Takes a numbered message of a continuous stream that precedes all that other lines will
    /// bring: a hole before it is a gap at once. Calls `deliver` with the numbers of the messages
    /// to deliver: this one, or one that was doubtful before.
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
        if let Some(next) = numbers.next {
            self.arbiter.announce(next);
        }
        match verdict {
            Verdict::Deliver { .. } => deliver(&mut self.sink, sequence)?,
            Verdict::Held => self.arbiter.flush(),
            _ => {}
        }
        while let Some(sequence) = self.next_held() {
            deliver(&mut self.sink, sequence)?;
        }
        Ok(verdict)
    }

    /// Returns the number of the next message that waited. Writes a line for a gap, and for numbers
    /// that restart without an announcement.
    fn next_held(&mut self) -> Option<u32> {
        loop {
            match self.arbiter.poll_event()? {
                Event::Unit(unit) => return Some(unit.sequence),
                Event::Gap(gap) => {
                    let (first, last, count) = (gap.first, gap.last(), gap.count);
                    let text = format_args!("gap: {first} to {last} missing ({count})");
                    self.sink.output().remark(text);
                }
                Event::Reset { expected, next } => {
                    if !self.arbiter.is_announced() {
                        let last = expected.wrapping_sub(1);
                        let text = format_args!("sequence reset: {next} after {last}");
                        self.sink.output().remark(text);
                    }
                }
                Event::Recover(_) => {}
            }
        }
    }
}
