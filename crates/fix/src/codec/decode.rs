//! Decoding of received bytes as messages.

use super::frame::{Frame, FrameFinder, Garbled, Sought, check_sum, ends_in_its_sum};
use super::message::Message;
use crate::tag;
use core::fmt;
use fanfare_wire::fields::{Fault, FaultKind};
use fanfare_wire::{DataFields, FieldIndex, Kernel};

/// A decoder that finds, checks and indexes messages in a caller's buffer. One decoder serves any
/// number of streams, one after the other. Between two calls it holds no bytes, only its arrays.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    finder: FrameFinder,
    index: FieldIndex,
}

/// The next item at the front of a buffer.
#[derive(Clone, Copy, Debug)]
pub enum Next<'a> {
    /// A whole message.
    Message {
        /// The number of bytes of noise before the message.
        skipped: usize,
        /// The message.
        message: Message<'a>,
        /// The index at which the next call begins.
        end: usize,
    },
    /// A stretch with the right BodyLength(9) and CheckSum(10) whose fields are broken.
    Malformed {
        /// The number of bytes of noise before the stretch.
        skipped: usize,
        /// The fault, with its offset from the `8=` of the message.
        error: DecodeError,
        /// The index at which the next call begins.
        end: usize,
    },
    /// The beginning of a message, or nothing. See [`Frame::Partial`].
    Partial {
        /// The number of bytes of noise, which may be dropped.
        skipped: usize,
        /// The least length of the buffer that may change the outcome, if it is known.
        need: Option<usize>,
    },
    /// A garbled stretch, which is to be dropped. See [`Frame::Garbled`].
    Garbled {
        /// The number of bytes of noise before the stretch.
        skipped: usize,
        /// The reason.
        why: Garbled,
        /// The index at which the next call begins.
        end: usize,
    },
}

/// The reason why bytes are not one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The frame is not right.
    Garbled(Garbled),
    /// The bytes are not exactly one message: some are missing, or others precede or follow it.
    NotOneMessage,
    /// The frame is right, but its fields are broken at an offset, counted in bytes from `8=`.
    Field(Fault),
}

/// Returns an index that knows `pairs` of a length and a data field, besides those of the standard.
pub(crate) fn index_knowing(pairs: &[(u32, u32)]) -> FieldIndex {
    let standard = DataFields::standard();
    let all = pairs
        .iter()
        .fold(standard, |all, &(length, data)| all.with(length, data));
    FieldIndex::with(all, Kernel::best())
}

impl Decoder {
    /// Returns a decoder with the default maximum length, the standard's data fields and the
    /// fastest kernel.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a decoder with the given limits and data fields.
    pub fn with(finder: FrameFinder, index: FieldIndex) -> Self {
        Self { finder, index }
    }

    /// Returns a decoder with the limits of `finder`. Besides the data fields of the standard it
    /// knows `pairs` of a length and a data field.
    pub fn knowing(finder: FrameFinder, pairs: &[(u32, u32)]) -> Self {
        Self::with(finder, index_knowing(pairs))
    }

    /// Returns the frame finder in use. It looks at a buffer without decoding.
    pub fn finder(&self) -> FrameFinder {
        self.finder
    }

    /// Finds, checks and indexes the next message in `bytes`.
    ///
    /// Call it again with the bytes from `end` on until it returns [`Next::Partial`]. Then drop the
    /// bytes before `skipped`, keep the rest, and call it again when more bytes have been read.
    #[inline]
    pub fn next<'a>(&'a mut self, bytes: &'a [u8]) -> Next<'a> {
        self.next_further(bytes, &mut Sought::default())
    }

    /// Finds the next message as [`Decoder::next`] does, and continues a search as
    /// [`FrameFinder::find_further`] does.
    #[inline]
    pub(crate) fn next_further<'a>(&'a mut self, bytes: &'a [u8], sought: &mut Sought) -> Next<'a> {
        if let Some(end) = self.finder.plain_end(bytes)
            && let Some(frame) = bytes.get(..end)
            && self.index_plain(frame)
        {
            return Next::Message {
                skipped: 0,
                message: Message::new(frame, &self.index),
                end,
            };
        }
        self.next_slow(bytes, sought)
    }

    /// Returns the next message in `bytes`, or `None` while it is not whole. A malformed message
    /// has only the fields before the fault: its header, if the fault is in the body.
    ///
    /// # Errors
    /// Returns an error if the frame is not right.
    pub(crate) fn front<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<Message<'a>>, Garbled> {
        let (start, end) = match self.next(bytes) {
            Next::Message { skipped, end, .. } | Next::Malformed { skipped, end, .. } => {
                (skipped, end)
            }
            Next::Partial { .. } => return Ok(None),
            Next::Garbled { why, .. } => return Err(why),
        };
        let frame = bytes.get(start..end).unwrap_or_default();
        Ok(Some(Message::new(frame, &self.index)))
    }

    /// Indexes `frame`, whose head is right, and returns whether everything else is right too.
    #[inline(always)]
    fn index_plain(&mut self, frame: &[u8]) -> bool {
        let indexed = self.index.index(frame);
        ends_in_its_sum(indexed.sum, frame)
            && indexed.fault.is_none()
            && (!indexed.may_hold_data || self.swallowed_trailer().is_none())
    }

    /// Decodes any bytes. It is the oracle of the short way, and also finds the fault.
    #[cold]
    #[inline(never)]
    fn next_slow<'a>(&'a mut self, bytes: &'a [u8], sought: &mut Sought) -> Next<'a> {
        let (start, end) = match self.finder.locate_slow(bytes, sought) {
            Frame::Message { start, end } => (start, end),
            Frame::Partial { start, need } => {
                return Next::Partial {
                    skipped: start,
                    need,
                };
            }
            Frame::Garbled { start, end, why } => {
                return Next::Garbled {
                    skipped: start,
                    why,
                    end,
                };
            }
        };
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

    /// Returns the fault of a message with a data field whose length reaches over CheckSum(10) to
    /// the last separator.
    #[inline]
    fn swallowed_trailer(&self) -> Option<Fault> {
        let tags = self.index.tags();
        if tags.last() == Some(&tag::CHECK_SUM) {
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

    /// Decodes `frame`, which must be exactly one message.
    ///
    /// # Errors
    /// Returns an error if `frame` is garbled or incomplete, if other bytes precede or follow the
    /// message, or if its fields are broken.
    #[inline]
    pub fn decode<'a>(&'a mut self, frame: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        // The length comes from the slice, so that indexing need not wait for BodyLength.
        if self.finder.plain_end(frame) == Some(frame.len()) && self.index_plain(frame) {
            return Ok(Message::new(frame, &self.index));
        }
        self.decode_slow(frame)
    }

    #[cold]
    #[inline(never)]
    fn decode_slow<'a>(&'a mut self, frame: &'a [u8]) -> Result<Message<'a>, DecodeError> {
        match self.next_slow(frame, &mut Sought::default()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_wire::byte_sum;
    use fanfare_wire::fields::SOH;
    use proptest::prelude::*;

    fn wire(text: &str) -> Vec<u8> {
        text.bytes()
            .map(|byte| if byte == b'|' { SOH } else { byte })
            .collect()
    }

    /// Returns one message, right or nearly so.
    fn near_message() -> impl Strategy<Value = Vec<u8>> {
        let begin = prop_oneof![
            3 => "FIX\\.4\\.[0-9x|]", 2 => Just("FIXT.1.1".to_owned()), 1 => "[FIXT.14]{0,9}"];
        let field = prop_oneof![
            5 => "[1-9][0-9]{0,5}=[a-z=]{0,30}\\|",
            1 => Just("95=3|96=a|b|".to_owned()),
            1 => "95=[0-9]{1,2}\\|96=[a-z|]{0,9}\\|",
            1 => "[0-9=|]{0,5}",
        ];
        let fields = proptest::collection::vec(field, 0..12).prop_map(|fields| fields.concat());
        let body = (prop_oneof![9 => Just("35=D|"), 1 => Just("34=1|")], fields);
        let off = prop_oneof![9 => Just(0), 1 => -3..4_isize];
        let sum_off = prop_oneof![9 => Just(0), 1 => 0..255_u8];
        (begin, body, off, "0{0,2}", sum_off).prop_map(
            |(begin, (first, rest), off, zeros, more)| {
                let length = (first.len() + rest.len()).saturating_add_signed(off);
                let front = wire(&format!("8={begin}|9={zeros}{length}|{first}{rest}"));
                let sum = byte_sum(&front).wrapping_add(more);
                [front, wire(&format!("10={sum:03}|"))].concat()
            },
        )
    }

    proptest! {
        #[test]
        fn the_short_way_decides_as_the_slow_one(
            bytes in near_message(),
            behind in "[8=|a-z]{0,4}",
            flip in (0..250_usize, any::<u8>()),
        ) {
            let mut flipped = bytes.clone();
            if let Some(byte) = flipped.get_mut(flip.0) {
                *byte = flip.1;
            }
            let longer = [&bytes[..], &wire(&behind)].concat();
            let (mut decoder, mut oracle) = (Decoder::new(), Decoder::new());
            for bytes in [&bytes, &flipped, &longer] {
                let mut sought = Sought::default();
                let (next, slow) = (decoder.next(bytes), oracle.next_slow(bytes, &mut sought));
                prop_assert_eq!(format!("{:?}", next), format!("{:?}", slow));
                let (one, slow) = (decoder.decode(bytes), oracle.decode_slow(bytes));
                prop_assert_eq!(format!("{:?}", one), format!("{:?}", slow));
            }
        }
    }

    #[test]
    fn usual_messages_take_the_short_way() {
        for begin in ["FIX.4.0", "FIX.4.2", "FIX.4.4", "FIXT.1.1"] {
            for len in [1, 5, 60, 500, 2000, 12_000] {
                let body = format!("35=D|58={}|", "x".repeat(len));
                let front = wire(&format!("8={begin}|9={}|{body}", body.len()));
                let trailer = wire(&format!("10={:03}|", byte_sum(&front)));
                let bytes = [front, trailer].concat();
                let mut decoder = Decoder::new();
                let end = decoder.finder.plain_end(&bytes);
                assert_eq!(end, Some(bytes.len()), "{begin} {len}");
                assert!(decoder.index_plain(&bytes));
            }
        }
    }
}
