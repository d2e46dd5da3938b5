//! Search for whole messages in a stream of bytes.
//!
//! The transport of FIX is `8=BeginString|9=BodyLength|35=…|…|10=CheckSum|`. BodyLength(9) counts
//! the bytes after its own separator up to the one before `10=`. CheckSum(10) is the sum of all
//! bytes before `10=` modulo 256, in three digits.

use fanfare_wire::byte_sum;
use fanfare_wire::fields::{SOH, separators_in};
use fanfare_wire::int::{parse_last_of_eight, parse_u64};

/// The length of the trailer `10=ddd|`.
pub(crate) const TRAILER: usize = 7;

/// The bytes before the value of CheckSum(10).
const CHECK_SUM: &[u8] = b"\x0110=";

/// A finder of the next message in a caller's buffer. It holds no bytes: the caller keeps a partial
/// message.
///
/// - Bytes before `8=` are noise and skipped.
/// - The end is the next `|10=…|` after as many bytes as BodyLength(9) says. If it is not exactly
///   there, or the sum differs, the whole stretch is garbled and to be dropped, even if a message
///   begins inside of it.
/// - With an unusable BodyLength(9) the stretch ends with the next `|10=…|`.
/// - A stretch without an end within the maximum length is garbled. The bytes after it are noise.
///
/// The outcomes do not depend on how the stream is cut into reads.
#[derive(Clone, Copy, Debug)]
pub struct FrameFinder {
    max_len: usize,
}

/// The item at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message with the right BodyLength(9) and CheckSum(10) at `start..end`.
    Message {
        /// The number of bytes of noise before the message, to be skipped.
        start: usize,
        /// The index after the message's last byte.
        end: usize,
    },
    /// The beginning of a message, or nothing. More bytes are to be read.
    Partial {
        /// The number of bytes of noise, which may be dropped.
        start: usize,
        /// The least length of the buffer, counted from its front, that may change the outcome, if
        /// it is known.
        need: Option<usize>,
    },
    /// No message. Everything before `end` is to be dropped.
    Garbled {
        /// The number of bytes of noise before the stretch.
        start: usize,
        /// The index at which the search goes on, greater than `start`.
        end: usize,
        /// The reason.
        why: Garbled,
    },
}

/// The reason why a stretch of bytes is no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Garbled {
    /// BeginString(8) is empty or longer than 15 bytes.
    #[error("BeginString(8) is empty or too long")]
    BadBeginString,
    /// The second field is not BodyLength(9), or its value is no number, or the message ends
    /// elsewhere.
    #[error("BodyLength(9) is missing or wrong")]
    BadBodyLength,
    /// BodyLength(9) makes the message longer than the maximum.
    #[error("BodyLength(9) exceeds the maximum message size")]
    BodyLengthTooLarge,
    /// The third field is not MsgType(35).
    #[error("the third field is not MsgType(35)")]
    ThirdFieldNotMsgType,
    /// CheckSum(10) is not three digits.
    #[error("CheckSum(10) is not three digits")]
    MissingCheckSum,
    /// CheckSum(10) is not the sum of the bytes.
    #[error("CheckSum(10) is wrong")]
    BadCheckSum,
    /// The message has no end within the maximum length.
    #[error("the message does not end within the maximum message size")]
    TooLong,
    /// A tag or MsgSeqNum(34) is no number, or BeginString(8), BodyLength(9) or CheckSum(10) is
    /// repeated.
    #[error(
        "a tag or MsgSeqNum(34) is not a number, or BeginString(8), BodyLength(9) or CheckSum(10) \
         is repeated"
    )]
    BrokenFields,
}

impl FrameFinder {
    /// The default maximum length of a message: 64 KiB.
    pub const DEFAULT_MAX_LEN: usize = 64 * 1024;

    /// The least maximum length: 64 bytes.
    pub const MIN_MAX_LEN: usize = 64;

    /// Returns a finder of messages of at most `max_len` bytes, all fields included. With `max_len`
    /// bytes from a message's `8=` on, the outcome is never [`Frame::Partial`]. A smaller value
    /// counts as [`FrameFinder::MIN_MAX_LEN`].
    pub const fn new(max_len: usize) -> Self {
        Self {
            max_len: if max_len < Self::MIN_MAX_LEN {
                Self::MIN_MAX_LEN
            } else {
                max_len
            },
        }
    }

    /// Returns the maximum length of a message in bytes.
    pub const fn max_len(&self) -> usize {
        self.max_len
    }

    /// Finds the next message from the front of `bytes`. The search does not allocate, and takes
    /// time linear in the length of one message and the noise before it.
    pub fn find(&self, bytes: &[u8]) -> Frame {
        self.find_further(bytes, &mut Sought::default())
    }

    /// Finds the next message of a stream that comes in pieces. `sought` holds the notes of the
    /// previous call, which had a prefix of these bytes, perhaps with noise before them. All calls
    /// for a garbled stretch together take time linear in its length.
    pub fn find_further(&self, bytes: &[u8], sought: &mut Sought) -> Frame {
        let found = self.locate(bytes, sought);
        if let Frame::Message { start, end } = found {
            let message = &bytes[start..end];
            if let Err(why) = check_sum(byte_sum(message), message) {
                return Frame::Garbled { start, end, why };
            }
        }
        found
    }

    /// Finds the next message as [`FrameFinder::find_further`] does, but neither reads nor compares
    /// CheckSum(10): see [`check_sum`].
    #[inline]
    fn locate(&self, bytes: &[u8], sought: &mut Sought) -> Frame {
        if let Some(end) = self.locate_plain(bytes) {
            return Frame::Message { start: 0, end };
        }
        self.locate_slow(bytes, sought)
    }

    /// Returns the end of a whole message of the expected shape at the front of `bytes`.
    ///
    /// Any other shape is left to [`FrameFinder::locate_slow`], the oracle of this function.
    #[inline]
    fn locate_plain(&self, bytes: &[u8]) -> Option<usize> {
        let end = self.plain_end(bytes)?;
        Trailer::of(bytes.get(..end)?)?.is_plain().then_some(end)
    }

    /// Returns where a message with the expected head ends by its BodyLength(9), or `None` if it is
    /// not all there. The end itself is not checked: see [`ends_in_its_sum`].
    #[inline]
    pub(crate) fn plain_end(&self, bytes: &[u8]) -> Option<usize> {
        let (body, body_length) = plain_head(bytes)?;
        let end = body + body_length + TRAILER;
        (end <= bytes.len() && end <= self.max_len).then_some(end)
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn locate_slow(&self, bytes: &[u8], sought: &mut Sought) -> Frame {
        let found = self.locate_from(bytes, sought);
        // Any other outcome ends the stretch, or comes without a search.
        if !matches!(found, Frame::Partial { need: None, .. }) {
            *sought = Sought::default();
        }
        found
    }

    fn locate_from(&self, bytes: &[u8], sought: &mut Sought) -> Frame {
        let Some(start) = find(bytes, b"8=") else {
            // A trailing 8 may be the first half of `8=`.
            let start = bytes.len() - usize::from(bytes.last() == Some(&b'8'));
            return Frame::Partial { start, need: None };
        };
        // What lies behind the maximum has no influence, so that cutting the stream has none.
        let message = &bytes[start..bytes.len().min(start.saturating_add(self.max_len))];
        let stretch = match Head::parse(message) {
            Ok(None) => Stretch::Partial(None),
            Ok(Some(head)) => self.stretch(message, &head, sought),
            Err((from, why)) => sought.stretch(message, from, why),
        };
        match stretch {
            Stretch::Partial(need) if message.len() < self.max_len => Frame::Partial {
                start,
                need: need.map(|need| start + need),
            },
            Stretch::Partial(_) => Frame::Garbled {
                start,
                end: start + message.len(),
                why: Garbled::TooLong,
            },
            Stretch::Message(end) => Frame::Message {
                start,
                end: start + end,
            },
            Stretch::Garbled(end, why) => Frame::Garbled {
                start,
                end: start + end,
                why,
            },
        }
    }

    /// Finds the end of a message whose first two fields are right.
    fn stretch(&self, message: &[u8], head: &Head, sought: &mut Sought) -> Stretch {
        let Some(exact_end) = head.exact_end().filter(|&end| end <= self.max_len) else {
            return sought.stretch(message, head.body, Garbled::BodyLengthTooLarge);
        };
        // The separator in front of `10=` counts as part of the body.
        let from = exact_end - TRAILER - 1;
        let end = match sought.stretch(message, from, Garbled::BadBodyLength) {
            Stretch::Garbled(end, Garbled::BadBodyLength) => end,
            Stretch::Partial(_) if message.len() < exact_end => {
                return Stretch::Partial(Some(exact_end));
            }
            other => return other,
        };
        let at_length = message.get(from..).unwrap_or_default();
        if !at_length.starts_with(CHECK_SUM) {
            return Stretch::Garbled(end, Garbled::BadBodyLength);
        }
        if head.has_msg_type(message) != Some(true) {
            return Stretch::Garbled(end, Garbled::ThirdFieldNotMsgType);
        }
        if end != exact_end {
            return Stretch::Garbled(end, Garbled::MissingCheckSum);
        }
        Stretch::Message(end)
    }
}

impl Default for FrameFinder {
    fn default() -> Self {
        Self::new(Self::DEFAULT_MAX_LEN)
    }
}

/// The progress of the search for the end of a garbled stretch, for [`FrameFinder::find_further`].
/// The default value is for a new stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sought {
    /// The index in the stretch at which the search goes on.
    at: usize,
    /// Whether `|10=` has been found before that index, but not yet the end of its value.
    in_value: bool,
}

impl Sought {
    /// Returns the stretch up to the next `|10=…|` at or after `from`. `why` is the reason why it
    /// is garbled.
    fn stretch(&mut self, message: &[u8], from: usize, why: Garbled) -> Stretch {
        let end = self.end(message, from);
        end.map_or(Stretch::Partial(None), |end| Stretch::Garbled(end, why))
    }

    fn end(&mut self, message: &[u8], from: usize) -> Option<usize> {
        if !self.in_value {
            self.at = self.at.max(from);
            let rest = message.get(self.at..)?;
            let Some(at) = find(rest, CHECK_SUM) else {
                // It may have begun at the end.
                self.at += rest.len().saturating_sub(CHECK_SUM.len() - 1);
                return None;
            };
            self.at += at + CHECK_SUM.len();
            self.in_value = true;
        }
        let rest = message.get(self.at..)?;
        let Some(len) = rest.iter().position(|&byte| byte == SOH) else {
            self.at += rest.len();
            return None;
        };
        Some(self.at + len + 1)
    }
}

/// Compares CheckSum(10) of `message`, which ends in a trailer `10=…|`, with `sum`, the sum of all
/// its bytes, the trailer included.
#[inline]
pub(crate) fn check_sum(sum: u8, message: &[u8]) -> Result<(), Garbled> {
    let trailer = Trailer::of(message).ok_or(Garbled::MissingCheckSum)?;
    let [hundreds, tens, ones] = trailer.digits().ok_or(Garbled::MissingCheckSum)?;
    const CONSTANT: u32 = b'1' as u32 + b'0' as u32 + b'=' as u32 + 3 * b'0' as u32 + SOH as u32;
    let sum = u32::from(sum).wrapping_sub(CONSTANT + hundreds + tens + ones) & 0xff;
    if hundreds * 100 + tens * 10 + ones == sum {
        Ok(())
    } else {
        Err(Garbled::BadCheckSum)
    }
}

/// Returns whether `message` ends in `|10=ddd|` with the sum of the bytes before it. `sum` is the
/// sum of all bytes of `message`. [`check_sum`] finds the fault.
#[inline]
pub(crate) fn ends_in_its_sum(sum: u8, message: &[u8]) -> bool {
    /// The right end of a message for each sum.
    static ENDS: [u64; 256] = {
        let mut ends = [0; 256];
        let mut sum = 0;
        while sum < 256 {
            let [hundreds, tens, ones] = [sum / 100, sum / 10 % 10, sum % 10];
            let digits = [b'0' + hundreds as u8, b'0' + tens as u8, b'0' + ones as u8];
            let [hundreds, tens, ones] = digits;
            let end = [SOH, b'1', b'0', b'=', hundreds, tens, ones, SOH];
            ends[sum] = u64::from_le_bytes(end);
            sum += 1;
        }
        ends
    };
    let Some(last) = message.last_chunk::<8>() else {
        return false;
    };
    let end = u64::from_le_bytes(*last);
    // The digits are added up in the third byte of a product.
    let digits = ((end >> 32 & 0x000f_0f0f) * 0x0001_0101) >> 16;
    const OTHERS: u8 =
        (b'1' as u32 + b'0' as u32 + b'=' as u32 + 3 * b'0' as u32 + SOH as u32) as u8;
    let trailer = OTHERS.wrapping_add(digits as u8);
    end == ENDS[usize::from(sum.wrapping_sub(trailer))]
}

/// The last eight bytes of a message, the first one lowest: `|10=ddd|`.
#[derive(Clone, Copy)]
struct Trailer(u64);

impl Trailer {
    #[inline]
    fn of(message: &[u8]) -> Option<Self> {
        let last = message.last_chunk::<8>()?;
        Some(Self(u64::from_le_bytes(*last)))
    }

    /// Returns whether the separators, the tag and the digits are in their places.
    #[inline]
    fn is_plain(self) -> bool {
        const FRAME: u64 = u64::from_le_bytes(*b"\x0110=\0\0\0\x01");
        self.0 & 0xff00_0000_ffff_ffff == FRAME && self.digits().is_some()
    }

    /// Returns the three digits of CheckSum(10), or `None` if they are not digits.
    #[inline]
    fn digits(self) -> Option<[u32; 3]> {
        three_digits((self.0 >> 32) as u32)
    }
}

/// Returns the lowest three bytes of a word as digits, or `None` if one of them is no digit.
#[inline]
fn three_digits(word: u32) -> Option<[u32; 3]> {
    let digits = (word & 0x00ff_ffff) ^ 0x0030_3030;
    let above_nine = (digits + 0x0076_7676) | digits;
    let digit = |i: u32| digits >> (8 * i) & 0xff;
    (above_nine & 0x0080_8080 == 0).then(|| [digit(0), digit(1), digit(2)])
}

/// Returns where the body begins and how long it is, for a message that begins with `8=FIX.4.` and
/// a digit or `8=FIXT.1.1`, a BodyLength(9) of one to seven digits, and MsgType(35).
#[inline]
fn plain_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = bytes.first_chunk::<21>()?;
    let eight = |at: usize| {
        let eight = head.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*eight))
    };
    let (first, second) = (eight(0)?, eight(8)?);
    const FIX4: u64 = u64::from_le_bytes(*b"8=FIX.4.");
    const FIXT: u64 = u64::from_le_bytes(*b"8=FIXT.1");
    const FIX4_NEXT: u64 = u64::from_le_bytes(*b"0\x019=\0\0\0\0");
    const FIXT_NEXT: u64 = u64::from_le_bytes(*b".1\x019=\0\0\0");
    // The first digit of BodyLength; the last one of `FIX.4.x` may be 0 to 7.
    let at = if first == FIX4 && second & 0xffff_fff8 == FIX4_NEXT {
        12
    } else if first == FIXT && second & 0xff_ffff_ffff == FIXT_NEXT {
        13
    } else {
        return None;
    };
    let text = eight(at)?;
    const THREE: u64 = u64::from_le_bytes(*b"\0\0\0\x0135=\0");
    if text & 0x00ff_ffff_ff00_0000 == THREE {
        let [hundreds, tens, ones] = three_digits(text as u32)?;
        let body_length = hundreds * 100 + tens * 10 + ones;
        return Some((at + 3 + 1, body_length as usize));
    }
    let separators = separators_in(text);
    if separators == 0 {
        return None;
    }
    let count = separators.trailing_zeros() as usize / 8;
    let body_length = parse_last_of_eight(text.checked_shl(64 - 8 * count as u32)?, count)?;
    let body = at + count + 1;
    let has_msg_type = bytes.get(body..body + 3)? == b"35=";
    has_msg_type.then_some((body, body_length as usize))
}

enum Stretch {
    Partial(Option<usize>),
    Message(usize),
    Garbled(usize, Garbled),
}

/// The first two fields of a message.
struct Head {
    /// The offset of the first byte that BodyLength(9) counts.
    body: usize,
    body_length: u64,
}

/// The longest BeginString(8) that is accepted, in bytes. Those of the standard have 7 or 8.
const MAX_BEGIN_STRING: usize = 15;

/// The most digits of BodyLength(9) that are read. Leading zeros are allowed.
const MAX_LENGTH_DIGITS: usize = 19;

impl Head {
    /// Parses `8=…|9=…|` at the front of `message`, which begins with `8=` or is too short.
    ///
    /// Returns `None` if `message` ends too soon. The error has the offset at which the search for
    /// the end of the message begins.
    #[inline]
    fn parse(message: &[u8]) -> Result<Option<Self>, (usize, Garbled)> {
        let Some(rest) = message.strip_prefix(b"8=") else {
            return Ok(None);
        };
        let begin_string = match separator(rest, MAX_BEGIN_STRING) {
            Some(0) => return Err((2, Garbled::BadBeginString)),
            Some(len) => len,
            None if rest.len() > MAX_BEGIN_STRING => return Err((2, Garbled::BadBeginString)),
            None => return Ok(None),
        };
        // One past `8=`, the value and the separator.
        let second = begin_string + 3;
        let Some(rest) = message
            .get(second..)
            .and_then(|rest| rest.strip_prefix(b"9="))
        else {
            let cut = b"9=".starts_with(message.get(second..).unwrap_or_default());
            let error = Err((second - 1, Garbled::BadBodyLength));
            return if cut { Ok(None) } else { error };
        };
        let Some(digits) = separator(rest, MAX_LENGTH_DIGITS) else {
            let error = Err((second - 1, Garbled::BadBodyLength));
            return if rest.len() > MAX_LENGTH_DIGITS {
                error
            } else {
                Ok(None)
            };
        };
        match parse_u64(&rest[..digits]) {
            Some(body_length) => Ok(Some(Self {
                body: second + 2 + digits + 1,
                body_length,
            })),
            None => Err((second - 1, Garbled::BadBodyLength)),
        }
    }

    /// Returns the end of the message by BodyLength(9), or `None` if it exceeds the address space.
    #[inline]
    fn exact_end(&self) -> Option<usize> {
        let length = usize::try_from(self.body_length).ok()?;
        self.body.checked_add(length)?.checked_add(TRAILER)
    }

    /// Returns whether the third field is MsgType(35), or `None` if `message` ends too soon.
    #[inline]
    fn has_msg_type(&self, message: &[u8]) -> Option<bool> {
        let third = message.get(self.body..self.body + 3)?;
        Some(third == b"35=")
    }
}

/// Returns the length that the message at the front of `bytes` has by its BodyLength(9), or `None`
/// if it has no such field or the length exceeds the address space.
pub(crate) fn announced_len(bytes: &[u8]) -> Option<usize> {
    Head::parse(bytes).ok()??.exact_end()
}

/// Returns the offset of the first separator, or `None` if it is not at most `max`.
#[inline]
fn separator(bytes: &[u8], max: usize) -> Option<usize> {
    bytes.iter().take(max + 1).position(|&byte| byte == SOH)
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

#[cfg(test)]
mod tests;
