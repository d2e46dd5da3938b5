//! The configuration of a channel, and its events.

use crate::arbiter::{ArbiterConfig, Gap, Refusal};
use crate::framing::{FrameErrorKind, Header};
use crate::line::Line;
use crate::numbers::SequenceField;
use crate::preamble::{Preamble, TooShort};
use fanfare_fast::program::FieldId;
use fanfare_fast::{CodecError, ErrorCode, Program, Record};
use std::fmt;

/// The format and arbitration of a feed's lines.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// The number of lines, 1 to [`Line::MAX`].
    pub lines: usize,
    /// The length headers of the packets within a datagram; without one, a datagram is a packet.
    pub header: Header,
    /// The preamble of a packet. One with a number numbers the packets; without a number the
    /// messages have their own.
    pub preamble: Preamble,
    /// The field with the sequence number of a message. Without one, and without a preamble,
    /// packets pass in the order of arrival.
    pub sequence: Option<SequenceField>,
    /// Whether previous values of operators outlive the packet, separately for each line. Every
    /// packet of a line must then arrive once and in order: behind a packet that cannot be decoded,
    /// and behind one whose number is not the next of its line, those of the line are left out
    /// ([`Fault::Lost`]) up to one that begins with a message which clears the previous values.
    /// Without numbers, and where numbers are previous values themselves, a missing packet is not
    /// noticed.
    pub keep_dictionary: bool,
    /// Whether, with one line, every packet is delivered when it arrives, even if its number is not
    /// new. Missing numbers are reported at once, as no other line can bring them, and numbers far
    /// from all before are a restart. Behind the end of a run, a packet of it that arrives late, or
    /// again with the same bytes, is left out if its number would be a later one of the new run.
    ///
    /// With one line, unless `keep_dictionary` is set and this is not, a packet ends in front of a
    /// message whose number is more than 1,024 further ahead than the next one
    /// ([`Refusal::Order`]); numbers that are left out within a packet are not reported, but show
    /// in those of its messages. Otherwise a packet ends in front of a message whose number is
    /// neither one of those before it in the packet nor the next one.
    ///
    /// In all cases, messages behind a SequenceReset in its packet are treated as a packet of their
    /// own if the first of them has one of the first 1,025 numbers of the new run: they are
    /// delivered behind [`Event::Reset`], with their own gaps. A packet ends in front of the
    /// seventeenth run, unless `keep_dictionary` is set.
    pub as_it_comes: bool,
    /// When a packet without a number is delivered.
    pub unnumbered: Unnumbered,
    /// The clock of the decoding times; `None` measures nothing.
    pub stopwatch: Option<Stopwatch>,
    /// The arbitration.
    pub arbiter: ArbiterConfig,
}

impl ChannelConfig {
    /// Makes a configuration of datagrams that are packets, with a sequence number found in the
    /// templates, one dictionary a packet, and packets without a number delivered at once.
    pub fn new(lines: usize) -> Self {
        Self {
            lines,
            header: Header::None,
            preamble: Preamble::None,
            sequence: Some(SequenceField::Auto),
            keep_dictionary: false,
            as_it_comes: false,
            unnumbered: Unnumbered::AtOnce,
            stopwatch: None,
            arbiter: ArbiterConfig::default(),
        }
    }

    /// Returns whether all packets are delivered, even if their numbers are not new.
    pub(super) const fn passes(&self) -> bool {
        self.as_it_comes && self.lines == 1
    }

    /// Returns whether the messages of a packet may leave out numbers or go back. Of several lines,
    /// another one may have what one leaves out.
    pub(super) const fn has_slack(&self) -> bool {
        self.lines == 1 && (self.as_it_comes || !self.keep_dictionary)
    }

    /// Checks that lines with these templates can be arbitrated; returns the fields with sequence
    /// numbers.
    ///
    /// # Errors
    /// See [`ChannelError`].
    pub fn check(&self, program: &Program) -> Result<Vec<FieldId>, ChannelError> {
        if self.lines == 0 || self.lines > Line::MAX {
            return Err(ChannelError::Lines(self.lines));
        }
        let has_preamble = !self.preamble.is_empty();
        let field = self.sequence.as_ref().filter(|_| !has_preamble);
        let numbers = field.map(|field| field.find(program)).unwrap_or_default();
        if let Some(field) = field
            && numbers.is_empty()
            && *field != SequenceField::Auto
        {
            return Err(ChannelError::NoField(field.clone()));
        }
        if self.lines > 1 && !has_preamble && numbers.is_empty() {
            return Err(ChannelError::NoNumbers);
        }
        Ok(numbers)
    }
}

/// A monotonic clock in nanoseconds, and the extent of its measurements.
#[derive(Debug, Clone, Copy)]
pub enum Stopwatch {
    /// Each message ([`Delivered::decoding`]). The clock is read twice a message, which is part of
    /// the figures, as no message is decoded while it is read.
    Messages(fn() -> u64),
    /// Packets ([`ChannelStats::decoding`]), until the caller has taken the last message, for
    /// callers that do little with messages.
    Packets(fn() -> u64),
}

/// When a packet without a number is delivered, in a feed that has numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unnumbered {
    /// At once, from each line.
    #[default]
    AtOnce,
    /// Once, after all lines have been silent for the time of a gap, and after all waiting packets:
    /// it announces the end of the feed. At most 16 wait; further ones are dropped and counted. A
    /// packet that cannot be decoded does not wait.
    AtTheEnd,
}

/// The reason why a channel cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelError {
    /// No template has an integer field of this name or tag at its top level.
    NoField(SequenceField),
    /// Several lines can only be arbitrated by numbers, which are missing.
    NoNumbers,
    /// The number of lines is 0, or above [`Line::MAX`].
    Lines(usize),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoField(field) => write!(
                f,
                "no template has an integer field `{field}` to take sequence numbers from"
            ),
            Self::NoNumbers => f.write_str(
                "several lines need sequence numbers: a preamble, or a field of the templates",
            ),
            Self::Lines(lines) => write!(f, "{lines} lines: a feed must have 1 to {}", Line::MAX),
        }
    }
}

impl std::error::Error for ChannelError {}

/// A datagram, as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// The line that brought it.
    pub line: Line,
    /// The time at which it was read in ns, on the clock of the arbitration; never decreasing.
    pub now: u64,
    /// The time at which it arrived in ns, by any clock that all lines share.
    pub received: u64,
    /// Its offset in its file; 0 for one from a socket.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// An event of a [`Channel`](super::Channel).
#[derive(Debug)]
pub enum Event<'a> {
    /// A message, in order.
    Message(Delivered<'a>),
    /// A packet that cannot be decoded or used; the rest of it is left out.
    Bad(BadPacket),
    /// These numbers did not arrive in time; the feed continues after them.
    Gap(Gap),
    /// These numbers are missing, and may still arrive until the recovery time-out.
    Recover(Gap),
    /// The numbers restart.
    Reset {
        /// The number that would have been next.
        expected: u32,
        /// The number that is next.
        next: u32,
        /// Whether the feed has announced it, in a SequenceReset.
        announced: bool,
    },
}

/// A message, in order.
#[derive(Debug)]
pub struct Delivered<'a> {
    /// The message.
    pub record: &'a mut Record,
    /// The program that it was decoded with.
    pub program: &'a Program,
    /// The number of the message itself, or of its packet's preamble; `None` without either.
    pub number: Option<u64>,
    /// Its index among the messages of its packet with this number, from 0.
    pub index: u32,
    /// The line that brought it.
    pub line: Line,
    /// The time at which it arrived, as in [`Datagram::received`].
    pub received: u64,
    /// The length of its packet in bytes, with the preamble. A packet may end where a new run
    /// begins in it.
    pub packet_len: usize,
    /// Whether it is the first message of its packet that is delivered.
    pub is_first: bool,
    /// Whether it is the last message of its packet, which was decoded to its end, if the preamble
    /// numbers the packet; true for all other messages.
    pub is_last: bool,
    /// The time its decoding took in ns; 0 if that is not measured.
    pub decoding: u64,
}

/// A packet that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPacket {
    /// The line that brought it.
    pub line: Line,
    /// The offset of its first message, as in [`Datagram::offset`]; 0 for a packet that waited.
    pub offset: u64,
    /// The length of the packet in bytes; 0 where its length header is wrong.
    pub len: usize,
    /// The count of its messages that were delivered.
    pub delivered: u32,
    /// The number of its preamble; `None` without one, or if the fault is not in a message.
    pub number: Option<u32>,
    /// The fault.
    pub fault: Fault,
}

/// A fault of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// In a message; the offset in it counts from [`BadPacket::offset`].
    Codec(CodecError),
    /// In the length header.
    Frame(FrameErrorKind),
    /// In the preamble.
    Preamble(TooShort),
    /// In its numbers, or those of its messages, which the arbiter cannot use.
    Refused(Refusal),
    /// In a packet of its line before it, whose previous values it builds on
    /// ([`ChannelConfig::keep_dictionary`]).
    Lost(Loss),
}

/// The reason why the previous values that a packet builds on are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// A packet had this error.
    Error(ErrorCode),
    /// A packet is missing on the line, or arrived out of order or twice.
    Gap,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(error) => error.fmt(f),
            Self::Frame(kind) => kind.fmt(f),
            Self::Preamble(short) => short.fmt(f),
            Self::Refused(why) => why.fmt(f),
            Self::Lost(Loss::Error(code)) => {
                write!(f, "{code} in a packet that this one builds on")
            }
            Self::Lost(Loss::Gap) => f.write_str("gap in the packets that this one builds on"),
        }
    }
}

/// The counters of a channel. Messages of a new run behind a SequenceReset in their packet count as
/// a packet of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelStats {
    /// Packets received from each line.
    pub packets: [u64; Line::MAX],
    /// Packets that were decoded, at least in part.
    pub decoded: u64,
    /// Packets that waited and were decoded twice, as more waited than are kept decoded.
    pub decoded_again: u64,
    /// The time spent decoding, in ns; 0 if it is not measured.
    pub decoding: u64,
    /// Packets delivered, at least in part.
    pub delivered: u64,
    /// Bytes of delivered packets, without preambles.
    pub delivered_bytes: u64,
    /// Packets delivered that could not be decoded to their end.
    pub bad: u64,
    /// Packets without a number that were left out because too many waited.
    pub unnumbered_dropped: u64,
}

impl ChannelStats {
    /// Counts a delivered packet; `bytes` is its length without the preamble.
    pub(super) const fn deliver(&mut self, bytes: usize) {
        self.delivered += 1;
        self.delivered_bytes += bytes as u64;
    }
}
