//! A channel: the lines of one feed in, its decoded messages out, each once and in order.
//!
//! A packet that is in order is decoded once: its sequence numbers are read from its messages, and
//! the same messages are delivered, one by one. Of one that waits (see the
//! [arbiter](crate::arbiter)) the bytes are kept, which is faster than keeping its messages, and
//! decoded again later. A packet that another line has brought is recognized by its bytes, and is
//! not decoded.
//!
//! Messages of a new run behind a SequenceReset (a message with NewSeqNo(36)) in its packet are
//! taken as a packet of their own, once the SequenceReset has had its effect; so are those behind
//! each further one. Their unit has the bytes of the packet from its front on, as they may build on
//! the messages in front of them. While the arbiter doubts the messages in front of them, they are
//! left out and counted as refused: the parts of one packet do not confirm each other.
//!
//! The caller takes all events of a call with [`Events::next`], until it returns `None`; events
//! that are not taken are lost. [`Channel::poll_timeout`] returns when to call
//! [`Channel::handle_timeout`].
//!
//! ```
//! use fanfare_fast::{Decoder, Program};
//! use fanfare_feed::channel::{Channel, ChannelConfig, Datagram, Event};
//! use fanfare_feed::Line;
//!
//! let program = Program::parse(
//!     r#"<template name="Tick" id="1"><uInt32 name="MsgSeqNum" id="34"/></template>"#,
//! )?;
//! let mut channel = Channel::new(Decoder::new(program), ChannelConfig::new(2))?;
//! let mut numbers = Vec::new();
//! // Line A brings 7 and 9, line B brings 8 and 9.
//! for (line, number) in [(Line::A, 7), (Line::A, 9), (Line::B, 8), (Line::B, 9)] {
//!     let bytes = &[0xc0, 0x81, 0x80 | number];
//!     let datagram = Datagram { line, now: 0, received: 0, offset: 0, bytes };
//!     let mut events = channel.receive(datagram);
//!     while let Some(event) = events.next() {
//!         if let Event::Message(message) = event {
//!             numbers.extend(message.number);
//!         }
//!     }
//! }
//! assert_eq!(numbers, [7, 8, 9]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod events;
mod kept;
mod packet;
#[cfg(test)]
mod tests;

pub use config::{
    BadPacket, ChannelConfig, ChannelError, ChannelStats, Datagram, Delivered, Event, Fault, Loss,
    Stopwatch, Unnumbered,
};
pub use events::Events;

use crate::arbiter::{Arbiter, MAX_COUNT, Refusal, Unit, Verdict};
use crate::line::Line;
use crate::numbers::{PacketNumbers, new_numbers};
use crate::preamble::TooShort;
use crate::recent::Recent;
use crate::serial::is_before;
use events::Delivery;
use fanfare_fast::{Decoder, Program};
use kept::Kept;
use packet::{Extent, Learned, Packet, PacketReader};
use std::collections::VecDeque;

/// Most packets without a number that wait.
const MOST_UNNUMBERED: usize = 16;

/// The lines of one feed, arbitrated and decoded. See the module's text.
///
/// A channel allocates when it is made, and later only for packets that are longer, or wait in
/// greater number, than any before. It keeps the bytes of packets that wait, at most
/// [`max_unit_bytes`](crate::ArbiterConfig::max_unit_bytes) for each of
/// [`hold_back`](crate::ArbiterConfig::hold_back), and up to four decoded messages of those that
/// follow a SequenceReset in their packet; with [`ChannelConfig::keep_dictionary`] it keeps all
/// messages decoded.
#[derive(Debug)]
pub struct Channel {
    config: ChannelConfig,
    /// The decoders: one, or one for each line where each has its own dictionary.
    readers: Vec<PacketReader>,
    /// Whether messages have numbers.
    is_numbered: bool,
    /// Whether messages announce the next number.
    announces: bool,
    arbiter: Arbiter,
    /// What was learned of packets read lately.
    recent: Option<Recent<Learned>>,
    kept: Kept,
    /// The packet that the arbiter doubts.
    suspect: Packet,
    hand: Delivery,
    unnumbered: VecDeque<(Line, u64, Vec<u8>)>,
    /// The time at which a line last brought a packet.
    last_received: u64,
    stats: ChannelStats,
}

impl Channel {
    /// Returns a channel that has received nothing, for the templates of `decoder`.
    ///
    /// # Errors
    /// The templates have no such sequence number, or the lines cannot be distinguished without
    /// one.
    pub fn new(mut decoder: Decoder, config: ChannelConfig) -> Result<Self, ChannelError> {
        decoder.reset();
        let program = decoder.program();
        let numbers = config.check(program)?;
        let is_numbered = !numbers.is_empty();
        let announces = !new_numbers(program).is_empty();
        let readers = if config.keep_dictionary {
            config.lines
        } else {
            1
        };
        let reader = || PacketReader::new(decoder.clone(), &numbers, &config);
        Ok(Self {
            readers: std::iter::repeat_with(reader).take(readers).collect(),
            is_numbered,
            announces,
            arbiter: Arbiter::new(config.arbiter),
            recent: (config.lines > 1 && !config.keep_dictionary).then(Recent::new),
            kept: Kept::default(),
            suspect: Packet::default(),
            hand: Delivery::default(),
            unnumbered: VecDeque::new(),
            last_received: 0,
            stats: ChannelStats::default(),
            config,
        })
    }

    /// Takes a datagram.
    pub fn receive<'b>(&mut self, datagram: Datagram<'b>) -> Events<'_, 'b> {
        self.last_received = datagram.now;
        self.hand.drop_rest();
        Events::of(self, datagram)
    }

    /// Reads the numbers of a packet without receiving it, so that a caller with several recordings
    /// can receive the packet with the lowest numbers first. The packet has no length header. A
    /// packet that is shorter than its preamble has no numbers. Statistics do not change. Not for
    /// lines with [`ChannelConfig::keep_dictionary`], which read a packet once.
    pub fn numbers(&mut self, datagram: Datagram<'_>) -> PacketNumbers {
        self.hand.drop_rest();
        let stats = self.stats;
        let read = self.number(datagram, false);
        self.stats = stats;
        match read {
            Ok(()) => self.hand.packet.numbers(),
            Err(_) => PacketNumbers::default(),
        }
    }

    /// Finds the first packet of a stream without framing in which each packet begins with a Reset
    /// message (template 120), as recorded from MOEX. Returns its length and its numbers. The
    /// packet ends in front of the next Reset that follows another message, or with `stream`.
    pub fn cut(&mut self, line: Line, stream: &[u8]) -> (usize, PacketNumbers) {
        self.hand.drop_rest();
        let index = line.index().min(self.readers.len() - 1);
        let packet = &mut self.hand.packet;
        let len = self.readers[index].read(stream, Extent::UpToReset, packet);
        if let (Some(recent), Some(cut)) = (&mut self.recent, stream.get(..len)) {
            recent.keep(cut, packet.learned());
        }
        (len, packet.numbers())
    }

    /// Sets the time to `now`, on the clock of the arbitration: numbers that have been missing for
    /// too long are declared lost.
    pub fn handle_timeout(&mut self, now: u64) -> Events<'_, 'static> {
        self.hand.drop_rest();
        self.arbiter.handle_timeout(now);
        if !self.unnumbered.is_empty() && now >= self.end_of_silence() {
            self.end();
        }
        Events::behind(self)
    }

    /// Ends all lines: everything that waits is delivered.
    pub fn finish(&mut self) -> Events<'_, 'static> {
        self.hand.drop_rest();
        self.end();
        Events::behind(self)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), in nanoseconds; valid once
    /// [`Events::next`] has returned `None`.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let silence = (!self.unnumbered.is_empty()).then(|| self.end_of_silence());
        let gap = self.arbiter.poll_timeout();
        [silence, gap].into_iter().flatten().min()
    }

    /// Returns the arbiter, with the counters of each line and what is missing.
    #[must_use]
    pub const fn arbiter(&self) -> &Arbiter {
        &self.arbiter
    }

    /// Ends the channel and returns its arbiter.
    #[must_use]
    pub fn into_arbiter(self) -> Arbiter {
        self.arbiter
    }

    /// Returns the counters of the channel.
    #[must_use]
    pub const fn stats(&self) -> ChannelStats {
        self.stats
    }

    /// Returns the program that decodes messages.
    ///
    /// # Panics
    /// Never: there is at least one line.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.readers[0].program()
    }

    fn end_of_silence(&self) -> u64 {
        self.last_received
            .saturating_add(self.config.arbiter.gap_timeout)
    }

    /// Makes every waiting packet due.
    fn end(&mut self) {
        self.arbiter.flush();
        self.hand.is_end = true;
    }

    /// Reads the numbers of a packet that begins with its preamble into the hand; if it `streams`,
    /// only the first if the packet is in order.
    fn number(&mut self, datagram: Datagram<'_>, streams: bool) -> Result<(), BadPacket> {
        let split = self.config.preamble.split(datagram.bytes);
        let (number, body) = split.map_err(|short| too_short(&datagram, short))?;
        let known = match &self.recent {
            Some(recent) if self.hand.from == 0 => recent.find(body),
            _ => None,
        };
        self.hand.is_known_bad = known.is_some_and(|known| !known.is_whole);
        self.hand.tells = false;
        // A dictionary that outlives packets must decode each of them when it arrives.
        let is_read = self.announces
            || match number {
                Some(_) => self.config.keep_dictionary,
                None => self.is_numbered,
            };
        if let Some(known) = known {
            self.hand.packet.recall(known);
        } else if !is_read {
            self.hand.packet.clear(PacketNumbers::default());
        } else {
            self.read_numbers(datagram.line, body, number, streams);
        }
        // Another line may bring the same packet whole.
        if self.config.lines > 1
            && let Some(&fault @ Fault::Lost(_)) = self.hand.packet.fault()
        {
            let start = self.config.preamble.len();
            return Err(BadPacket {
                line: datagram.line,
                offset: datagram.offset + start as u64,
                len: datagram.bytes.len(),
                delivered: 0,
                number,
                fault,
            });
        }
        self.hand.preamble = number;
        self.hand.packet.number_by(number);
        Ok(())
    }

    /// Decodes a packet for its numbers; if it `streams`, only its first message if that is in
    /// order, as then all of them are delivered one by one. A packet with the `number` of a
    /// preamble is decoded whole.
    fn read_numbers(&mut self, line: Line, body: &[u8], number: Option<u32>, streams: bool) {
        let index = line.index().min(self.readers.len() - 1);
        let Self {
            readers,
            hand,
            arbiter,
            ..
        } = self;
        let reader = &mut readers[index];
        reader.begin_at(body, hand.from, &mut hand.packet);
        if let Some(number) = number.filter(|_| self.config.keep_dictionary) {
            reader.follow(number);
        }
        let mut goes_on = reader.advance(body, Extent::Whole, &mut hand.packet);
        let first = hand.packet.numbers().first;
        let fits = body.len() + self.config.preamble.len() <= self.config.arbiter.max_unit_bytes;
        let streams = streams && number.is_none();
        if goes_on && fits && streams && first.is_some_and(|n| arbiter.is_next(line, n)) {
            hand.tells = true;
            return;
        }
        while goes_on {
            reader.limit(&mut hand.packet);
            goes_on = reader.advance(body, Extent::Whole, &mut hand.packet);
        }
        reader.finish(&mut hand.packet);
        self.stats.decoded += 1;
        self.stats.decoding += self.hand.packet.decoding();
        if let Some(recent) = self.recent.as_mut().filter(|_| self.hand.from == 0) {
            recent.keep(body, self.hand.packet.learned());
        }
    }

    /// Decodes the messages of a packet into the hand.
    fn read(&mut self, line: Line, body: &[u8]) {
        let index = line.index().min(self.readers.len() - 1);
        let Self { readers, hand, .. } = self;
        readers[index].read(body, Extent::Whole, &mut hand.packet);
        self.stats.decoded += 1;
        self.stats.decoding += self.hand.packet.decoding();
    }

    /// Determines whether the packet in hand is delivered now, waits, or is dropped.
    #[inline(always)]
    fn take_in(&mut self, datagram: Datagram<'_>) {
        let Datagram {
            line,
            now,
            received,
            bytes,
            ..
        } = datagram;
        if self.hand.packet.from() > 0 && self.arbiter.refuses_rest(line) {
            return;
        }
        self.stats.packets[line.index()] += 1;
        let numbers = self.hand.packet.numbers();
        let Some(sequence) = numbers.first else {
            return self.without_number(datagram);
        };
        if self.hand.tells {
            self.hand.packet.stream();
            return self.begin_stream(datagram, 0);
        }
        let unit = Unit {
            sequence,
            count: numbers.count,
            bytes,
        };
        let mut verdict = self.arbiter.receive_stamped(now, received, line, unit);
        if self.config.passes() {
            verdict = match verdict {
                Verdict::Suspect if self.refuses_undecodable(datagram) => return,
                Verdict::Suspect => {
                    self.arbiter.reset(sequence);
                    self.arbiter.receive_stamped(now, received, line, unit)
                }
                Verdict::Held => {
                    self.arbiter.flush();
                    verdict
                }
                Verdict::Late { .. } if self.is_ahead(sequence) => verdict,
                // With other bytes, it is of the new run, behind numbers that were lost.
                Verdict::Duplicate
                    if self.is_ahead(sequence) && self.arbiter.is_again(numbers.count) =>
                {
                    verdict
                }
                _ => Verdict::Deliver { skip: 0 },
            };
        }
        self.announce(numbers);
        if let Some(ticket) = self.arbiter.confirmed()
            && self.is_kept(&self.suspect)
        {
            self.kept.put(ticket, &mut self.suspect);
        }
        match verdict {
            Verdict::Deliver { skip } => self.deliver(datagram, skip),
            Verdict::Held | Verdict::Suspect => self.keep(),
            Verdict::Refused(why) => self.refuse(datagram, why),
            // Messages are delivered in order, which consumers rely on. One that can use late ones
            // still misses these, whatever the arbiter does, and asks its replay for them.
            Verdict::Duplicate | Verdict::Late { .. } => {}
        }
    }

    /// Refuses a packet with a number far from the others if no message of it can be read, as no
    /// other line shows that it does not begin a new run. Returns whether it was refused.
    #[cold]
    fn refuses_undecodable(&mut self, datagram: Datagram<'_>) -> bool {
        if self.hand.preamble.is_none() || self.hand.packet.from() > 0 {
            return false;
        }
        if !self.hand.packet.is_decoded() {
            self.read(datagram.line, self.body(datagram.bytes));
            self.hand.packet.number_by(self.hand.preamble);
        }
        if !self.hand.packet.is_undecodable() {
            return false;
        }
        let start = self.config.preamble.len();
        self.stats.bad += 1;
        self.hand.refused = self.hand.packet.take_fault().map(|fault| BadPacket {
            line: datagram.line,
            offset: datagram.offset + start as u64,
            len: datagram.bytes.len(),
            delivered: 0,
            number: None,
            fault,
        });
        true
    }

    /// Returns whether a number is not below the next one. A packet with such a number that brings
    /// the arbiter nothing new belongs to a run that is over.
    #[cold]
    fn is_ahead(&self, sequence: u32) -> bool {
        let next = self.arbiter.expected();
        next.is_some_and(|next| !is_before(sequence, next))
    }

    /// Leaves out a packet that cannot be used.
    #[cold]
    fn refuse(&mut self, datagram: Datagram<'_>, why: Refusal) {
        self.hand.refused = Some(BadPacket {
            line: datagram.line,
            offset: datagram.offset,
            len: datagram.bytes.len(),
            delivered: 0,
            number: None,
            fault: Fault::Refused(why),
        });
    }

    fn announce(&mut self, numbers: PacketNumbers) {
        if let Some(next) = numbers.next {
            self.arbiter.announce(next);
        }
    }

    /// Passes a packet that was in order, and is delivered, to the arbiter: in several units if it
    /// has more numbers than one may have.
    fn arbitrate_in_hand(&mut self, datagram: Datagram<'_>, numbers: PacketNumbers) {
        let (now, received, line) = (datagram.now, datagram.received, datagram.line);
        let mut sequence = numbers.first.unwrap_or_default();
        let mut left = numbers.count;
        while left > 0 {
            let unit = Unit {
                sequence,
                count: left.min(MAX_COUNT),
                bytes: datagram.bytes,
            };
            // A unit that is in order is not refused.
            self.arbiter.receive_stamped(now, received, line, unit);
            sequence = sequence.wrapping_add(unit.count);
            left -= unit.count;
        }
        self.announce(numbers);
    }

    /// Keeps the packet in hand until it is in order.
    fn keep(&mut self) {
        match self.arbiter.ticket() {
            None => std::mem::swap(&mut self.suspect, &mut self.hand.packet),
            Some(ticket) if self.is_kept(&self.hand.packet) => {
                self.kept.put(ticket, &mut self.hand.packet);
            }
            Some(_) => {}
        }
    }

    /// Returns whether the bytes of a packet that waits are not enough to deliver it.
    const fn is_kept(&self, packet: &Packet) -> bool {
        packet.from() > 0 || self.config.keep_dictionary && packet.is_decoded()
    }

    /// Begins to deliver the packet in hand, which is in order.
    fn deliver(&mut self, datagram: Datagram<'_>, skip: u32) {
        if self.hand.packet.is_decoded() {
            return self.begin(datagram, skip);
        }
        let (body, from) = (self.body(datagram.bytes), self.hand.packet.from());
        let index = datagram.line.index().min(self.readers.len() - 1);
        self.readers[index].begin_at(body, from, &mut self.hand.packet);
        self.hand.packet.stream();
        self.begin_stream(datagram, skip);
    }

    /// Begins to deliver the packet in hand as it is decoded.
    fn begin_stream(&mut self, datagram: Datagram<'_>, skip: u32) {
        self.begin(datagram, skip);
        self.hand.streams = true;
    }

    fn begin(&mut self, datagram: Datagram<'_>, skip: u32) {
        let start = self.config.preamble.len();
        self.hand.begin(&datagram, start, skip);
        let len = self.body(datagram.bytes).len();
        let from = self.hand.packet.from();
        self.stats.deliver(len.saturating_sub(from));
    }

    /// Returns the bytes of a packet behind its preamble.
    #[inline(always)]
    fn body<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.config.preamble.len()..).unwrap_or_default()
    }

    fn without_number(&mut self, datagram: Datagram<'_>) {
        let is_numbered = self.is_numbered || !self.config.preamble.is_empty();
        let is_bad = self.hand.packet.fault().is_some();
        if !is_numbered || self.config.unnumbered == Unnumbered::AtOnce || is_bad {
            return self.deliver(datagram, 0);
        }
        if self.hand.is_known_bad {
            return;
        }
        let is_known = self
            .unnumbered
            .iter()
            .any(|(_, _, known)| known == datagram.bytes);
        if is_known {
            return;
        }
        if self.unnumbered.len() >= MOST_UNNUMBERED {
            self.stats.unnumbered_dropped += 1;
            return;
        }
        let Datagram {
            line,
            received,
            bytes,
            ..
        } = datagram;
        self.unnumbered.push_back((line, received, bytes.to_vec()));
    }
}

const fn too_short(datagram: &Datagram<'_>, short: TooShort) -> BadPacket {
    BadPacket {
        line: datagram.line,
        offset: datagram.offset,
        len: 0,
        delivered: 0,
        number: None,
        fault: Fault::Preamble(short),
    }
}
