//! Search for the start and the end of messages in text.

use fanfare_wire::fields::SOH;
use fanfare_wire::int::parse_u64;

/// A sequence of bytes in the place of SOH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Separator(&'static [u8]);

/// The separators that terminals, editors and loggers write.
const SEPARATORS: [Separator; 7] = [
    Separator(&[SOH]),
    Separator(b"|"),
    Separator(b"^A"),
    Separator(b"<SOH>"),
    Separator(b"\\x01"),
    Separator(b"\\u0001"),
    Separator("\u{2401}".as_bytes()),
];

impl Separator {
    pub(super) fn is_soh(self) -> bool {
        self.0 == [SOH]
    }

    pub(super) fn bytes(self) -> &'static [u8] {
        self.0
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    /// Returns the index of the first separator in `text`.
    pub(super) fn find(self, text: &[u8]) -> Option<usize> {
        let mut from = 0;
        let first = *self.0.first()?;
        while let Some(at) = text.get(from..)?.iter().position(|&byte| byte == first) {
            if text.get(from + at..)?.starts_with(self.0) {
                return Some(from + at);
            }
            from += at + 1;
        }
        None
    }
}

/// The start of a message in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// The index of the start, and the separator of the message.
    At(usize, Separator),
    /// No start yet.
    Nowhere,
}

/// The end of a message in text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    At(usize),
    NeedsMore,
    /// The message does not end within the maximum length.
    TooFar,
}

const BEGIN: &[u8] = b"8=FIX";
/// The longest BeginString(8) after `FIX`, in bytes.
const MAX_VERSION: usize = 12;

/// The answer to a question about text that may be cut off.
enum Answer<T> {
    Yes(T),
    No,
    /// The text ends too soon for an answer.
    Perhaps,
}

/// Returns the first `8=FIX…` that a separator and the tag of a field follow. A start that the end
/// of the text cuts off is not returned; it is found again when there is more text. `before` is the
/// byte before the text.
pub(super) fn start(text: &[u8], before: Option<u8>, ended: bool) -> Start {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(begin) {
        let at = from + at;
        match separator_at(text, at, before) {
            Answer::Yes(separator) => return Start::At(at, separator),
            Answer::Perhaps if !ended => return Start::Nowhere,
            _ => from = at + 1,
        }
    }
    Start::Nowhere
}

/// Returns the index of the first `8=FIX`.
fn begin(text: &[u8]) -> Option<usize> {
    text.windows(BEGIN.len()).position(|w| w == BEGIN)
}

/// Returns the separator of the message that starts at `at`, if one starts there.
fn separator_at(text: &[u8], at: usize, before: Option<u8>) -> Answer<Separator> {
    // A digit in front makes it another field.
    let before = match at.checked_sub(1) {
        Some(at) => text.get(at).copied(),
        None => before,
    };
    if before.is_some_and(|byte| byte.is_ascii_digit()) {
        return Answer::No;
    }
    let Some(rest) = text.get(at..).and_then(|rest| rest.strip_prefix(BEGIN)) else {
        return Answer::No;
    };
    let version = rest
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'.')
        .count();
    if version > MAX_VERSION {
        return Answer::No;
    }
    let rest = rest.get(version..).unwrap_or_default();
    for separator in SEPARATORS {
        match rest.strip_prefix(separator.bytes()) {
            Some(behind) => {
                return match is_field_at_all(behind) {
                    Answer::Yes(()) => Answer::Yes(separator),
                    Answer::No => Answer::No,
                    Answer::Perhaps => Answer::Perhaps,
                };
            }
            None if separator.bytes().starts_with(rest) => return Answer::Perhaps,
            None => {}
        }
    }
    Answer::No
}

/// Returns whether `text` starts with a tag and `=`.
pub(super) fn is_field(text: &[u8]) -> bool {
    matches!(is_field_at_all(text), Answer::Yes(()))
}

fn is_field_at_all(text: &[u8]) -> Answer<()> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match text.get(digits) {
        Some(b'=') if (1..10).contains(&digits) => Answer::Yes(()),
        None if digits < 10 => Answer::Perhaps,
        _ => Answer::No,
    }
}

/// Returns the end of the message at the front of `text`. The end is where BodyLength(9) says, if a
/// CheckSum(10) is there. Otherwise it is after the first CheckSum(10), or where the line or the
/// text ends or another message begins.
///
/// `doubted` is the end of the stretch into which the wrong length of a message leads, this one or
/// an earlier one; 0 if there is none. Within that stretch no length is followed beyond the start
/// of the next message, as otherwise each of many lengths would be followed through all messages.
pub(super) fn end(
    text: &[u8],
    separator: Separator,
    max_len: usize,
    ended: bool,
    doubted: &mut usize,
) -> End {
    let is_all = text.len() >= max_len;
    let text = text.get(..max_len).unwrap_or(text);
    let ended = ended || is_all;
    match by_length(text, separator, ended, doubted) {
        Answer::Yes(end) => return End::At(end),
        Answer::Perhaps => return End::NeedsMore,
        Answer::No => {}
    }
    match by_trailer(text, separator, ended) {
        Some(end) => End::At(end),
        None if is_all => End::TooFar,
        None if ended => End::At(text.trim_ascii_end().len()),
        None => End::NeedsMore,
    }
}

/// Returns the end of the message by BodyLength(9).
fn by_length(text: &[u8], separator: Separator, ended: bool, doubted: &mut usize) -> Answer<usize> {
    let missing = if ended { Answer::No } else { Answer::Perhaps };
    let Some(first) = separator.find(text) else {
        return missing;
    };
    let behind = text.get(first + separator.len()..).unwrap_or_default();
    let Some(rest) = behind.strip_prefix(b"9=") else {
        let is_cut = b"9=".starts_with(behind);
        return if is_cut { missing } else { Answer::No };
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = rest.get(..digits).unwrap_or_default();
    let behind = rest.get(digits..).unwrap_or_default();
    let Some(body) = behind.strip_prefix(separator.bytes()) else {
        let is_cut = separator.bytes().starts_with(behind);
        return if is_cut { missing } else { Answer::No };
    };
    let Some(length) = parse_u64(value).and_then(|length| usize::try_from(length).ok()) else {
        return Answer::No;
    };
    let from = text.len() - body.len();
    let is_walked = !separator.is_soh();
    let next = if is_walked && *doubted > 0 {
        begin(body)
    } else {
        None
    };
    let (reach, missing) = match next {
        Some(next) => (body.get(..next).unwrap_or_default(), Answer::No),
        None => (body, missing),
    };
    let (at, walked) = walk(reach, separator, length);
    let (front, behind) = body.split_at_checked(at).unwrap_or_default();
    let answer = match walked {
        // The separator in front of it is part of the body.
        Answer::Yes(()) if front.ends_with(separator.bytes()) => trailer(behind, separator, ended),
        Answer::Perhaps => missing,
        _ => Answer::No,
    };
    match answer {
        Answer::Yes(len) => Answer::Yes(from + at + len),
        Answer::No => {
            if is_walked && *doubted == 0 {
                *doubted = from + at;
            }
            Answer::No
        }
        Answer::Perhaps => Answer::Perhaps,
    }
}

/// Walks `length` bytes on, where a separator counts as one, and returns the end of the walk and
/// whether all bytes are there. Messages with another separator than SOH are text, and end with
/// their line.
fn walk(body: &[u8], separator: Separator, length: usize) -> (usize, Answer<()>) {
    if separator.is_soh() {
        return match body.len() >= length {
            true => (length, Answer::Yes(())),
            false => (body.len(), Answer::Perhaps),
        };
    }
    let (mut at, mut left) = (0, length);
    while left > 0 {
        let rest = body.get(at..).unwrap_or_default();
        match rest.first() {
            None => return (at, Answer::Perhaps),
            Some(b'\n') => return (at, Answer::No),
            Some(_) if rest.starts_with(separator.bytes()) => at += separator.len(),
            Some(_) if separator.bytes().starts_with(rest) => return (at, Answer::Perhaps),
            Some(_) => at += 1,
        }
        left -= 1;
    }
    (at, Answer::Yes(()))
}

/// Returns the length of `10=…` and of the separator after it, which may be missing.
fn trailer(text: &[u8], separator: Separator, ended: bool) -> Answer<usize> {
    const TAG: &[u8] = b"10=";
    let Some(rest) = text.strip_prefix(TAG) else {
        let is_cut = TAG.starts_with(text) && !ended;
        return if is_cut { Answer::Perhaps } else { Answer::No };
    };
    let value = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let value = value.take(MAX_CHECK_SUM).count();
    let behind = rest.get(value..).unwrap_or_default();
    if behind.starts_with(separator.bytes()) {
        return Answer::Yes(TAG.len() + value + separator.len());
    }
    if separator.bytes().starts_with(behind) && !ended {
        return Answer::Perhaps;
    }
    Answer::Yes(TAG.len() + value)
}

/// The most bytes that are taken for the value of CheckSum(10).
const MAX_CHECK_SUM: usize = 8;

/// Returns the end of the message by the first CheckSum(10), or by the end of the line or the next
/// message if that comes first. Returns `None` if none of them comes.
fn by_trailer(text: &[u8], separator: Separator, ended: bool) -> Option<usize> {
    let mut at = 1;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(b"\n") {
            return Some(text.get(..at)?.trim_ascii_end().len());
        }
        if let Some(behind) = rest.strip_prefix(separator.bytes()) {
            match trailer(behind, separator, ended) {
                Answer::Yes(len) => return Some(at + separator.len() + len),
                Answer::Perhaps => return None,
                Answer::No => {}
            }
        }
        if rest.starts_with(BEGIN) {
            match separator_at(text, at, None) {
                Answer::Yes(_) => return Some(at),
                Answer::Perhaps if !ended => return None,
                _ => {}
            }
        }
        at += 1;
    }
    None
}
