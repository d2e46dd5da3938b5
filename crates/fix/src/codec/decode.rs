//! From received bytes to messages.

use super::frame::{Frame, FrameFinder, Garbled, check_sum};
use super::message::Message;
use super::tags;
use core::fmt;
use fanfare_wire::FieldIndex;
use fanfare_wire::fields::{Fault, FaultKind};

/// Finds, checks and indexes messages in a caller's buffer. One decoder serves any number of
/// streams, one after the other: between two calls it holds no bytes, only its arrays.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    finder: FrameFinder,
    index: FieldIndex,
}

/// The next thing at the front of a buffer.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// A whole message.
    Message {
        /// Bytes of noise that were skipped in front of it.
        skipped: usize,
        /// The message.
        message: Message<'a>,
        /// Where to go on in the buffer.
        end: usize,
    },
    /// A stretch with right BodyLength and CheckSum whose fields are broken.
    Malformed {
        /// Bytes of noise that were skipped in front of it.
        skipped: usize,
        /// What is broken, and where in the message (from its `8=` on).
        error: DecodeError,
        /// Where to go on in the buffer.
        end: usize,
    },
    /// No whole message yet; see [`Frame::Partial`].
    Partial {
        /// Bytes of noise in front; they may be dropped.
        skipped: usize,
        /// The least length of the buffer that may change the outcome, where known.
        need: Option<usize>,
    },
    /// A garbled stretch, to be dropped; see [`Frame::Garbled`].
    Garbled {
        /// Bytes of noise that were skipped in front of it.
        skipped: usize,
        /// What was wrong.
        why: Garbled,
        /// Where to go on in the buffer.
        end: usize,
    },
}

/// Why bytes are not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The frame is not right.
    Garbled(Garbled),
    /// The bytes are not exactly one message: too few, or more behind or in front of it.
    NotOneMessage,
    /// The frame is right, but its fields are broken at an offset (bytes from `8=`).
    Field(Fault),
}

impl Decoder {
    /// A decoder with the default maximum length, the standard's data fields and the fastest
    /// kernel.
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder with its own limits and data fields.
    pub fn with(finder: FrameFinder, index: FieldIndex) -> Self {
        Self { finder, index }
    }

    /// The frame finder in use, for a look at a buffer without decoding.
    pub fn finder(&self) -> FrameFinder {
        self.finder
    }

    /// Finds, checks and indexes the next message in `bytes`.
    ///
    /// Call it again with the bytes from `end` on until it says [`Next::Partial`]; keep what is
    /// left behind `skipped`, read more, and go on.
    #[inline]
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Next<'a> {
        match self.finder.locate(bytes) {
            Frame::Message { start, end } => self.checked(bytes, start, end),
            Frame::Partial { start, need } => Next::Partial {
                skipped: start,
                need,
            },
            Frame::Garbled { start, end, why } => Next::Garbled {
                skipped: start,
                why,
                end,
            },
        }
    }

    #[inline(always)]
    fn checked<'a>(&'a mut self, bytes: &'a [u8], start: usize, end: usize) -> Next<'a> {
        let frame = bytes.get(start..end).unwrap_or_default();
        let indexed = self.index.index(frame);
        if let Err(why) = check_sum(indexed.sum, frame) {
            return Next::Garbled {
                skipped: start,
                why,
                end,
            };
        }
        let fault = match indexed.fault {
            None if indexed.may_hold_data => self.swallowed_trailer(),
            fault => fault,
        };
        match fault {
            None => Next::Message {
                skipped: start,
                message: Message::new(frame, &self.index),
                end,
            },
            Some(fault) => Next::Malformed {
                skipped: start,
                error: DecodeError::Field(fault),
                end,
            },
        }
    }

    /// A data field whose length reaches over CheckSum(10) to the last separator.
    #[inline]
    fn swallowed_trailer(&self) -> Option<Fault> {
        let tags = self.index.tags();
        if tags.last() == Some(&tags::CHECK_SUM) {
            return None;
        }
        let offset = self
            .index
            .ends()
            .iter()
            .rev()
            .nth(1)
            .map_or(0, |&end| end + 1);
        Some(Fault {
            offset,
            kind: FaultKind::DataLength,
        })
    }

    /// Decodes `frame`, which is to be exactly one message.
    ///
    /// # Errors
    /// It is not: garbled, incomplete, with more in front or behind, or with broken fields.
    #[inline]
    pub fn decode<'a>(&'a mut self, frame: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        match self.next(frame) {
            Next::Message {
                skipped: 0,
                message,
                end,
            } if end == frame.len() => Ok(message),
            Next::Malformed { error, .. } => Err(error),
            Next::Garbled { why, .. } => Err(DecodeError::Garbled(why)),
            Next::Message { .. } | Next::Partial { .. } => Err(DecodeError::NotOneMessage),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = match self {
            Self::Garbled(why) => return why.fmt(f),
            Self::NotOneMessage => return f.write_str("the bytes are not exactly one message"),
            Self::Field(fault) => fault,
        };
        let what = match fault.kind {
            FaultKind::NoEquals => "a field has no '='",
            FaultKind::Unterminated => "the last field has no end",
            FaultKind::DataLength => "a data field does not have the length announced",
            FaultKind::TooManyFields => "too many fields",
            FaultKind::TooLong => "the message is too long",
        };
        write!(f, "{what} (at offset {})", fault.offset)
    }
}

impl core::error::Error for DecodeError {}
