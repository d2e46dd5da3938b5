//! The events of a call, taken one by one.

use super::Channel;
use super::config::{BadPacket, Datagram, Delivered, Event, Fault};
use super::packet::{Packet, PacketReader};
use crate::arbiter::{self, Gap, Refusal};
use crate::framing::{FrameErrorKind, Header, Split};
use crate::line::Line;
use fanfare_fast::Program;
use std::ops::ControlFlow;

/// Most runs of numbers in a packet, unless previous values outlive packets: each one is decoded
/// from the front of the packet on.
const MOST_RUNS: usize = 16;

/// The packet being delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) packet: Packet,
    /// Whether waiting packets without a number are due.
    pub(super) is_end: bool,
    /// Whether another line has brought the same bytes, which could not be decoded to their end.
    pub(super) is_known_bad: bool,
    is_delivering: bool,
    /// The offset of the messages that are taken from the packet; above 0 for those of a new run.
    pub(super) from: usize,
    /// The offset of its messages of a new run, which are taken next, when the SequenceReset in
    /// front of them has had its effect; 0 if there are none.
    rest: usize,
    /// The count of new runs in it so far, if there are any.
    runs: usize,
    /// Whether its messages are decoded one by one, as they are delivered.
    pub(super) streams: bool,
    /// Whether they are decoded from the copy of a packet that has waited.
    is_own: bool,
    /// Whether the packet is passed to the arbiter at its end.
    pub(super) tells: bool,
    /// The number of all its messages.
    pub(super) preamble: Option<u32>,
    /// The index of the next message.
    at: usize,
    /// The number of sequence numbers to leave out.
    skip: u32,
    line: Line,
    received: u64,
    /// The offset of its first message.
    offset: u64,
    /// The length of the packet.
    len: usize,
    /// The count of its messages delivered so far.
    delivered: u32,
    /// The bytes of a packet that waited.
    own: Vec<u8>,
    /// A packet that was left out.
    pub(super) refused: Option<BadPacket>,
}

impl Default for Delivery {
    fn default() -> Self {
        Self {
            packet: Packet::default(),
            is_end: false,
            is_known_bad: false,
            is_delivering: false,
            from: 0,
            rest: 0,
            runs: 0,
            streams: false,
            is_own: false,
            tells: false,
            preamble: None,
            at: 0,
            skip: 0,
            line: Line::A,
            received: 0,
            offset: 0,
            len: 0,
            delivered: 0,
            own: Vec::new(),
            refused: None,
        }
    }
}

impl Delivery {
    /// Begins the delivery of the packet in hand, except for its first numbers; `start` is the
    /// length of its preamble.
    pub(super) const fn begin(&mut self, of: &Datagram<'_>, start: usize, skip: u32) {
        self.is_delivering = true;
        (self.streams, self.is_own) = (false, false);
        self.at = 0;
        self.delivered = 0;
        self.skip = skip;
        self.line = of.line;
        self.received = of.received;
        self.offset = of.offset + start as u64;
        self.len = of.bytes.len();
    }

    /// Discards the messages that were not taken.
    pub(super) const fn drop_rest(&mut self) {
        self.is_delivering = false;
        (self.from, self.rest) = (0, 0);
    }

    /// Returns whether a packet is delivered as it is decoded.
    #[inline]
    const fn is_streaming(&self) -> bool {
        self.is_delivering && self.streams
    }

    /// Returns the index of the next message that was not delivered before.
    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.at < self.packet.len() {
            let index = self.at;
            self.at += 1;
            if !self.is_before(index) {
                self.delivered += 1;
                return Some(index);
            }
        }
        None
    }

    /// Decodes the next message, as [`Channel::stream`].
    #[inline(always)]
    fn stream(&mut self, reader: &mut PacketReader, body: &[u8]) -> Option<usize> {
        loop {
            if let Some(next) = self.next() {
                if let (Some(number), Some(message)) = (self.preamble, self.packet.message(next)) {
                    message.set_number(Some(number.into()));
                    message.index = self.delivered - 1;
                }
                return Some(next);
            }
            if !reader.replace(body, &mut self.packet) {
                return None;
            }
            self.at = 0;
        }
    }

    /// Delivers a message of the packet.
    #[inline(always)]
    fn lend<'d>(&'d mut self, program: &'d Program, index: usize) -> Option<Delivered<'d>> {
        let is_last =
            self.preamble.is_none() || self.at >= self.packet.len() && self.packet.is_at_end();
        let message = self.packet.message(index)?;
        let (number, decoding) = (message.number(), message.decoding);
        Some(Delivered {
            record: &mut message.record,
            program,
            number,
            index: message.index,
            line: self.line,
            received: self.received,
            packet_len: self.len,
            is_first: self.delivered == 1,
            is_last,
            decoding,
        })
    }

    /// Returns whether a message was delivered before. One without a number belongs to its
    /// neighbours.
    #[inline]
    fn is_before(&mut self, index: usize) -> bool {
        if self.skip == 0 {
            return false;
        }
        let first = self.packet.numbers().first.unwrap_or_default();
        let number = self.packet.number(index);
        if number.is_none_or(|number| number.wrapping_sub(first) < self.skip) {
            return true;
        }
        self.skip = 0;
        false
    }
}

/// The events of a call of a [`Channel`]. To be taken to the end with [`next`](Self::next).
#[derive(Debug)]
#[must_use = "what is not taken is lost"]
pub struct Events<'c, 'b> {
    channel: &'c mut Channel,
    datagram: Option<Datagram<'b>>,
    /// The packet taken last.
    packet: Option<Datagram<'b>>,
}

/// An event that waits to be taken.
enum Step {
    Message(usize),
    Bad(BadPacket),
    Gap(Gap),
    Recover(Gap),
    Reset {
        expected: u32,
        next: u32,
        announced: bool,
    },
}

impl<'c, 'b> Events<'c, 'b> {
    /// Makes the events of a datagram whose packets are still to be taken.
    pub(super) const fn of(channel: &'c mut Channel, datagram: Datagram<'b>) -> Self {
        Self {
            channel,
            datagram: Some(datagram),
            packet: None,
        }
    }

    /// Makes the events that are due without a datagram.
    pub(super) const fn behind(channel: &'c mut Channel) -> Self {
        Self {
            channel,
            datagram: None,
            packet: None,
        }
    }

    /// Returns the next event, or `None` if all are taken.
    #[allow(clippy::should_implement_trait, reason = "it lends the message")]
    #[inline]
    pub fn next(&mut self) -> Option<Event<'_>> {
        if self.channel.hand.is_streaming()
            && let Some(index) = self.stream()
        {
            return self.channel.lend(index).map(Event::Message);
        }
        self.next_step()
    }

    /// Calls `take` with each event until it returns [`ControlFlow::Break`] or an error. The
    /// remaining events are then lost, but counted as delivered.
    ///
    /// # Errors
    /// Those of `take`.
    #[inline]
    pub fn try_for_each<E>(
        mut self,
        mut take: impl FnMut(Event<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        loop {
            let mut flow = Ok(ControlFlow::Continue(()));
            if self.channel.hand.is_delivering {
                flow = self.deliver(&mut take);
            }
            if matches!(flow, Ok(ControlFlow::Continue(()))) {
                let Some(event) = self.next_step() else {
                    return flow;
                };
                flow = take(event);
            }
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                self.end_packet();
                return flow;
            }
        }
    }

    /// Delivers the messages of the packet in hand.
    #[inline(always)]
    fn deliver<E>(
        &mut self,
        take: &mut impl FnMut(Event<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let is_own = self.packet.is_none() || self.channel.hand.is_own;
        let mut own = Vec::new();
        let bytes = match &self.packet {
            Some(datagram) if !is_own => datagram.bytes,
            _ => {
                own = std::mem::take(&mut self.channel.hand.own);
                &own
            }
        };
        let flow = self.channel.deliver_all(bytes, take);
        if is_own {
            self.channel.hand.own = own;
        }
        flow
    }

    /// Decodes the rest of a packet that is in order, so that the arbiter knows all its numbers.
    #[cold]
    fn end_packet(&mut self) {
        loop {
            if let Some(datagram) = self.streamed() {
                while self.channel.stream(datagram.bytes).is_some() {}
                self.channel.count_decoding();
                self.channel.end_stream(datagram);
            }
            self.channel.hand.is_delivering = false;
            let Some(datagram) = self.rest() else {
                return self.channel.hand.drop_rest();
            };
            // A fault is one of the events that are lost.
            let _ = self.channel.take(datagram);
        }
    }

    /// Returns the packet taken last, if it is delivered as it is decoded.
    fn streamed(&self) -> Option<Datagram<'b>> {
        let hand = &self.channel.hand;
        self.packet.filter(|_| hand.is_streaming() && !hand.is_own)
    }

    /// Returns the packet taken last, if messages of a new run in it are next.
    fn rest(&mut self) -> Option<Datagram<'b>> {
        let hand = &mut self.channel.hand;
        hand.from = std::mem::take(&mut hand.rest);
        if hand.from == 0 {
            return None;
        }
        self.packet
    }

    /// Returns the index of the next message of the packet in hand, which is delivered as it is
    /// decoded; `None` at its end.
    #[inline(always)]
    fn stream(&mut self) -> Option<usize> {
        let channel = &mut *self.channel;
        if let Some(datagram) = self.packet.as_ref().filter(|_| !channel.hand.is_own) {
            return channel.stream(datagram.bytes);
        }
        // The packet has waited, and the hand has a copy of it.
        let own = std::mem::take(&mut channel.hand.own);
        let goes_on = channel.stream(&own);
        channel.hand.own = own;
        goes_on
    }

    /// Returns the next event that is not a message of the packet being decoded.
    fn next_step(&mut self) -> Option<Event<'_>> {
        let step = self.step()?;
        let channel = &mut *self.channel;
        Some(match step {
            Step::Bad(bad) => Event::Bad(bad),
            Step::Gap(gap) => Event::Gap(gap),
            Step::Recover(gap) => Event::Recover(gap),
            Step::Reset {
                expected,
                next,
                announced,
            } => Event::Reset {
                expected,
                next,
                announced,
            },
            Step::Message(index) => Event::Message(channel.lend(index)?),
        })
    }

    fn step(&mut self) -> Option<Step> {
        loop {
            if self.channel.hand.is_delivering {
                let next = match self.channel.hand.streams {
                    true => self.stream(),
                    false => self.channel.hand.next(),
                };
                if let Some(index) = next {
                    return Some(Step::Message(index));
                }
                if self.channel.hand.streams {
                    self.channel.count_decoding();
                }
                if let Some(datagram) = self.streamed() {
                    self.channel.end_stream(datagram);
                }
                self.channel.hand.is_delivering = false;
                if let Some(bad) = self.channel.fault() {
                    return Some(Step::Bad(bad));
                }
            }
            if let Some(bad) = self.channel.hand.refused.take() {
                return Some(Step::Bad(bad));
            }
            if let Some(step) = self.channel.arbitrated() {
                return Some(step);
            }
            if self.channel.hand.is_delivering {
                continue;
            }
            if let Some(datagram) = self.next_packet() {
                match datagram {
                    Ok(datagram) => {
                        self.packet = Some(datagram);
                        if let Err(bad) = self.channel.take(datagram) {
                            return Some(Step::Bad(bad));
                        }
                    }
                    Err(bad) => return Some(Step::Bad(bad)),
                }
            } else if !self.channel.take_unnumbered() {
                return None;
            }
        }
    }

    /// Returns the last packet again, if messages of a new run in it are next, or cuts the next one
    /// off the datagram.
    fn next_packet(&mut self) -> Option<Result<Datagram<'b>, BadPacket>> {
        if let Some(datagram) = self.rest() {
            return Some(Ok(datagram));
        }
        let datagram = self.datagram.take()?;
        let header = self.channel.config.header;
        if header == Header::None {
            return Some(Ok(datagram));
        }
        if datagram.bytes.is_empty() {
            return None;
        }
        let limit = self.channel.config.arbiter.max_unit_bytes;
        let body = match header.split(datagram.bytes, limit) {
            Ok(Split::Packet(body)) => body,
            Ok(Split::Partial { need }) => {
                let have = datagram.bytes.len();
                return Some(Err(bad(
                    &datagram,
                    FrameErrorKind::Truncated { need, have },
                )));
            }
            Err(kind) => return Some(Err(bad(&datagram, kind))),
        };
        let rest = datagram.bytes.get(body.end..).unwrap_or_default();
        self.datagram = Some(Datagram {
            offset: datagram.offset + body.end as u64,
            bytes: rest,
            ..datagram
        });
        Some(Ok(Datagram {
            offset: datagram.offset + body.start as u64,
            bytes: datagram.bytes.get(body).unwrap_or_default(),
            ..datagram
        }))
    }
}

const fn bad(datagram: &Datagram<'_>, kind: FrameErrorKind) -> BadPacket {
    BadPacket {
        line: datagram.line,
        offset: datagram.offset,
        len: 0,
        delivered: 0,
        number: None,
        fault: Fault::Frame(kind),
    }
}

impl Channel {
    /// Takes the messages of a packet from an offset on, up to those of a new run.
    #[inline(always)]
    fn take(&mut self, mut datagram: Datagram<'_>) -> Result<(), BadPacket> {
        if let Err(bad) = self.number(datagram, self.hand.from == 0) {
            self.stats.packets[bad.line.index()] += 1;
            return Err(bad);
        }
        let rest = self.hand.packet.rest();
        if rest > 0 {
            datagram.bytes = self.split(datagram, rest);
        }
        self.take_in(datagram);
        Ok(())
    }

    /// Cuts off the messages of a new run, which are next unless the packet has too many runs.
    /// Returns the bytes in front of them.
    #[cold]
    fn split<'b>(&mut self, datagram: Datagram<'b>, rest: usize) -> &'b [u8] {
        self.hand.runs = match self.hand.from {
            0 => 1,
            _ => self.hand.runs + 1,
        };
        if self.hand.runs < MOST_RUNS || self.config.keep_dictionary {
            self.hand.rest = rest;
        } else {
            self.refuse(datagram, Refusal::Order);
        }
        let end = self.config.preamble.len() + rest;
        datagram.bytes.get(..end).unwrap_or(datagram.bytes)
    }

    /// Returns the index of the next message of the packet in hand, which has these bytes and is
    /// delivered as it is decoded; `None` at its end.
    #[inline(always)]
    fn stream(&mut self, bytes: &[u8]) -> Option<usize> {
        let body = self.body(bytes);
        let index = self.hand.line.index().min(self.readers.len() - 1);
        self.hand.stream(self.readers.get_mut(index)?, body)
    }

    /// Delivers all messages of the packet in hand, which has these bytes. They are never in memory
    /// as events: loads right after the stores would stall the processor.
    #[inline(always)]
    fn deliver_all<E>(
        &mut self,
        bytes: &[u8],
        take: &mut impl FnMut(Event<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<ControlFlow<()>, E> {
        let body = self.body(bytes);
        let index = self.hand.line.index().min(self.readers.len() - 1);
        let Self { readers, hand, .. } = self;
        let reader = &mut readers[index];
        while let Some(index) = match hand.streams {
            true => hand.stream(reader, body),
            false => hand.next(),
        } && let Some(message) = hand.lend(reader.program(), index)
        {
            if take(Event::Message(message))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns a message of the packet in hand.
    #[inline(always)]
    fn lend(&mut self, index: usize) -> Option<Delivered<'_>> {
        self.hand.lend(self.readers.first()?.program(), index)
    }

    /// Counts the decoding of a packet that was delivered as it was decoded.
    fn count_decoding(&mut self) {
        let index = self.hand.line.index().min(self.readers.len() - 1);
        self.readers[index].stop(&mut self.hand.packet);
        self.stats.decoding += self.hand.packet.decoding();
    }

    /// Ends a packet that has just been received.
    fn end_stream(&mut self, datagram: Datagram<'_>) {
        self.stats.decoded += 1;
        if !std::mem::take(&mut self.hand.tells) {
            return;
        }
        let (numbers, rest) = (self.hand.packet.numbers(), self.hand.packet.rest());
        // The packet was in order by its first number, and no other packet has arrived since. Its
        // unit ends where it does on a line on which the packet is read before it is delivered, so
        // that both have the same bytes.
        let unit = match rest {
            0 => datagram.bytes,
            rest => {
                let end = self.config.preamble.len() + rest;
                datagram.bytes.get(..end).unwrap_or(datagram.bytes)
            }
        };
        let of_unit = Datagram {
            bytes: unit,
            ..datagram
        };
        self.arbitrate_in_hand(of_unit, numbers);
        let body = self.body(datagram.bytes);
        if rest > 0 {
            let front = self.split(datagram, rest);
            // All of it was counted.
            self.stats.delivered_bytes -= (datagram.bytes.len() - front.len()) as u64;
        }
        if let Some(recent) = &mut self.recent {
            recent.keep(body, self.hand.packet.learned());
        }
    }

    /// Returns why the packet in hand ended early.
    fn fault(&mut self) -> Option<BadPacket> {
        let fault = self.hand.packet.take_fault()?;
        self.stats.bad += 1;
        Some(BadPacket {
            line: self.hand.line,
            offset: self.hand.offset,
            len: self.hand.len,
            delivered: self.hand.delivered,
            number: self.hand.preamble,
            fault,
        })
    }

    /// Takes the events of the arbiter; a packet that is now in order becomes that in hand.
    fn arbitrated(&mut self) -> Option<Step> {
        let start = self.config.preamble.len();
        let Self {
            arbiter,
            kept,
            hand,
            readers,
            stats,
            config,
            ..
        } = self;
        match arbiter.poll_event()? {
            arbiter::Event::Gap(gap) => Some(Step::Gap(gap)),
            arbiter::Event::Recover(gap) => Some(Step::Recover(gap)),
            arbiter::Event::Reset { expected, next } => Some(Step::Reset {
                expected,
                next,
                announced: arbiter.is_announced(),
            }),
            arbiter::Event::Unit(unit) => {
                let is_kept = kept.take(unit.ticket, &mut hand.packet);
                let is_whole = config.keep_dictionary || is_kept && hand.packet.is_decoded();
                let from = if is_kept { hand.packet.from() } else { 0 };
                let of = Datagram {
                    line: unit.line,
                    now: 0,
                    received: unit.received,
                    offset: 0,
                    bytes: unit.bytes,
                };
                let body = unit.bytes.get(start..).unwrap_or_default();
                hand.begin(&of, 0, unit.skip);
                hand.preamble = (start > 0).then_some(unit.sequence);
                if !is_whole {
                    hand.own.clear();
                    hand.own.extend_from_slice(unit.bytes);
                    let index = unit.line.index().min(readers.len() - 1);
                    readers[index].begin_at(body, from, &mut hand.packet);
                    hand.packet.stream();
                    (hand.streams, hand.is_own, hand.tells) = (true, true, false);
                    stats.decoded += 1;
                    stats.decoded_again += u64::from(start == 0);
                }
                stats.deliver(body.len().saturating_sub(from));
                None
            }
        }
    }

    /// Takes the next packet without a number in hand, if the lines have ended.
    fn take_unnumbered(&mut self) -> bool {
        if !std::mem::take(&mut self.hand.is_end) {
            return false;
        }
        let Some((line, received, bytes)) = self.unnumbered.pop_front() else {
            return false;
        };
        self.hand.is_end = true;
        let datagram = Datagram {
            line,
            now: self.last_received,
            received,
            offset: 0,
            bytes: &bytes,
        };
        self.read(line, self.body(&bytes));
        self.deliver(datagram, 0);
        (self.hand.own, self.hand.is_own) = (bytes, true);
        true
    }
}
