//! The configuration of a channel, and its events.

use crate::arbiter::{ArbiterConfig, Gap, Refusal};
use crate::framing::{FrameErrorKind, Header};
use crate::line::Line;
use crate::numbers::SequenceField;
use crate::preamble::{Preamble, TooShort};
use fanfare_fast::program::FieldId;
use fanfare_fast::{CodecError, Program, Record};
use std::fmt;

/// How the lines of a feed look.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// How many lines there are, 1 to [`Line::MAX`].
    pub lines: usize,
    /// The length headers of the packets within a datagram; without, a datagram is a packet.
    pub header: Header,
    /// What stands in front of a packet's messages. One with a number numbers the packets; without,
    /// the messages are numbered by themselves.
    pub preamble: Preamble,
    /// The field with the sequence number of a message. Without one, and without a preamble,
    /// packets pass as they come.
    pub sequence: Option<SequenceField>,
    /// Previous values of operators outlive the packet, each line's its own. Every packet of a line
    /// must come then, once and in order.
    pub keep_dictionary: bool,
    /// With one line: every packet is delivered when it comes, whether its number is new or not.
    /// What is missing is told at once, as no other line can bring it, and what lies far from all
    /// before is a restart.
    pub as_it_comes: bool,
    /// When a packet without a number has its turn.
    pub unnumbered: Unnumbered,
    /// What measures how long decoding takes; `None` measures nothing.
    pub stopwatch: Option<Stopwatch>,
    /// The arbitration.
    pub arbiter: ArbiterConfig,
}

impl ChannelConfig {
    /// Datagrams that are packets, with a sequence number found in the templates; one dictionary a
    /// packet; packets without a number at once.
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

    /// Checks that lines with these templates can be arbitrated; returns the fields that hold
    /// sequence numbers.
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

/// A monotonic clock in nanoseconds, and what is measured with it.
#[derive(Debug, Clone, Copy)]
pub enum Stopwatch {
    /// Each message ([`Delivered::decoding`]). The clock is read twice a message, which is part of
    /// the figures, as messages are not decoded while it is read.
    Messages(fn() -> u64),
    /// Packets ([`ChannelStats::decoding`]), until the caller has taken the last message: for
    /// callers that do little with messages.
    Packets(fn() -> u64),
}

/// When a packet without a number has its turn, in a feed that has numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unnumbered {
    /// At once, from each line.
    #[default]
    AtOnce,
    /// Once, when all lines have been silent for the time of a gap, and behind what waits: it says
    /// that the feed is over. At most 16 wait; what comes beyond is dropped and counted. A packet
    /// that cannot be decoded does not wait.
    AtTheEnd,
}

/// Why a channel cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelError {
    /// No template has an integer field of this name or tag at its top level.
    NoField(SequenceField),
    /// Several lines can only be arbitrated by numbers, and there are none.
    NoNumbers,
    /// More lines than [`Line::MAX`], or none.
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
            Self::Lines(lines) => write!(f, "{lines} lines: a feed has 1 to {}", Line::MAX),
        }
    }
}

impl std::error::Error for ChannelError {}

/// A datagram as it came.
#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    /// The line that brought it.
    pub line: Line,
    /// When it was read, ns, on the clock of the arbitration; never back.
    pub now: u64,
    /// When it arrived, ns, by any clock that all lines share.
    pub received: u64,
    /// Where it stands in its file; 0 for one from a socket.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// An event of a [`Channel`](super::Channel).
#[derive(Debug)]
pub enum Event<'a> {
    /// A message, in turn.
    Message(Delivered<'a>),
    /// A packet that cannot be decoded or used: what is left of it is left out.
    Bad(BadPacket),
    /// Nothing brought these numbers in time; the feed goes on behind them.
    Gap(Gap),
    /// These numbers are missing, and may still be brought until the recovery time-out.
    Recover(Gap),
    /// The numbers begin again.
    Reset {
        /// The number that would have come next.
        expected: u32,
        /// The number that comes next.
        next: u32,
        /// The feed has announced it, in a SequenceReset.
        announced: bool,
    },
}

/// A message, in turn.
#[derive(Debug)]
pub struct Delivered<'a> {
    /// The message.
    pub record: &'a mut Record,
    /// The program that it was decoded with.
    pub program: &'a Program,
    /// Its number: its own, or that of its packet's preamble. `None` if it has none.
    pub number: Option<u64>,
    /// Which of the messages of its packet with this number it is, from 0.
    pub index: u32,
    /// The line that brought it.
    pub line: Line,
    /// When it arrived, as in [`Datagram::received`].
    pub received: u64,
    /// The length of its packet in bytes, with the preamble.
    pub packet_len: usize,
    /// Whether it is the first of its packet that is delivered.
    pub is_first: bool,
    /// How long it took to decode, ns; 0 if that is not measured.
    pub decoding: u64,
}

/// A packet that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadPacket {
    /// The line that brought it.
    pub line: Line,
    /// Where its first message stands, as in [`Datagram::offset`]; 0 for a packet that waited.
    pub offset: u64,
    /// The length of the packet in bytes; 0 where its length header is wrong.
    pub len: usize,
    /// The count of its messages that were delivered.
    pub delivered: u32,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A message; the offset in it counts from [`BadPacket::offset`].
    Codec(CodecError),
    /// The length header.
    Frame(FrameErrorKind),
    /// The preamble.
    Preamble(TooShort),
    /// The arbiter cannot use its numbers.
    Refused(Refusal),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codec(error) => error.fmt(f),
            Self::Frame(kind) => kind.fmt(f),
            Self::Preamble(short) => short.fmt(f),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

/// What a channel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelStats {
    /// Packets received, of each line.
    pub packets: [u64; Line::MAX],
    /// Packets that were decoded, be it in part.
    pub decoded: u64,
    /// Packets that waited and were decoded a second time: more waited than are kept decoded.
    pub decoded_again: u64,
    /// How long that took, ns; 0 if it is not measured.
    pub decoding: u64,
    /// Packets delivered, be it in part.
    pub delivered: u64,
    /// Their bytes, without preambles.
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
