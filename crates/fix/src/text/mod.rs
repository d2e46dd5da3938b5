//! Messages in files as people have them: raw streams, and logs with a time before each message,
//! with `|` or `^A` in the place of SOH, with wrong lengths and sums, and with lines that are cut.
//!
//! ```
//! use fanfare_fix::text::Scanner;
//!
//! let log = b"10:00:01 in  8=FIX.4.4|9=12|35=0|34=7|58=x|10=000|\nno message\n";
//! let mut scanner = Scanner::default();
//! scanner.push(log);
//! scanner.finish();
//! let found = scanner.next().unwrap();
//! assert_eq!((found.prefix, found.line), (&b"10:00:01 in"[..], 1));
//! assert_eq!(found.message.get(34), Some(&b"7"[..]));
//! assert_eq!(found.flaws[0].to_string(), "BodyLength(9) is 12, expected 15");
//! assert_eq!(found.flaws[1].to_string(), "CheckSum(10) is 000, expected 208");
//! assert!(scanner.next().is_none());
//! assert_eq!((scanner.skipped().lines, scanner.skipped().bytes), (1, 9));
//! ```

mod flaw;
mod search;
#[cfg(test)]
mod tests;

pub use flaw::Flaw;

use crate::codec::{Frame, FrameFinder, Message, index_knowing};
use fanfare_wire::fields::SOH;
use fanfare_wire::{DataFields, FieldIndex, Kernel};
use search::{End, Separator, Start};

/// A scanner for the messages in text that comes in pieces.
///
/// The result does not depend on how the text is cut into pieces. A scanner holds at most one
/// message of the maximum length, 256 bytes before it, and the last piece.
#[derive(Debug)]
pub struct Scanner {
    max_len: usize,
    buffer: Vec<u8>,
    /// The index up to which the text is done with.
    from: usize,
    /// The byte before that index, if it belonged to no message.
    before: Option<u8>,
    /// The index up to which messages may be in the stretch that the wrong length of another one
    /// counts.
    doubted: usize,
    ended: bool,
    /// The message found, with SOH as separator.
    wire: Vec<u8>,
    index: FieldIndex,
    /// An index that takes every separator for one, in data fields too.
    plain: FieldIndex,
    flaws: Vec<Flaw>,
    skipped: Skipped,
    /// Whether the line has had something that belongs to no message.
    dirty: bool,
    /// The number of lines that are done with.
    lines: u64,
}

/// A message in the text.
#[derive(Debug)]
pub struct Found<'a> {
    /// The text before the message on its line, without blanks at either end; at most the last 256
    /// bytes.
    pub prefix: &'a [u8],
    /// The message as it would be on the wire. A wrong length or sum is unchanged. A message that
    /// is cut off has the fields up to that place.
    pub message: Message<'a>,
    /// The flaws of the message.
    pub flaws: &'a [Flaw],
    /// The line of the text on which the message begins, counted from 1.
    pub line: u64,
}

/// The amount of text that belonged to no message, blanks aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Skipped {
    /// The number of bytes.
    pub bytes: u64,
    /// The number of lines with such bytes.
    pub lines: u64,
}

/// The default maximum length of a message in text, in bytes: see [`Scanner::new`].
pub const DEFAULT_MAX_LEN: usize = 1 << 20;
/// The most bytes of a prefix.
const MAX_PREFIX: usize = 256;
/// The bytes that are kept where no message begins: a prefix, and the front of a message that is
/// cut off.
const KEPT: usize = MAX_PREFIX + 64;

impl Default for Scanner {
    /// Returns a scanner for messages of up to 1 MiB.
    fn default() -> Self {
        Self::new(DEFAULT_MAX_LEN)
    }
}

impl Scanner {
    /// Returns a scanner for messages of up to `max_len` bytes. It skips what looks like a longer
    /// message.
    #[must_use]
    pub fn new(max_len: usize) -> Self {
        Self {
            max_len: max_len.max(FrameFinder::MIN_MAX_LEN),
            buffer: Vec::new(),
            from: 0,
            before: None,
            doubted: 0,
            ended: false,
            wire: Vec::new(),
            index: FieldIndex::new(),
            plain: FieldIndex::with(DataFields::none(), Kernel::best()),
            flaws: Vec::new(),
            skipped: Skipped::default(),
            dirty: false,
            lines: 0,
        }
    }

    /// Returns a scanner for messages of up to 1 MiB. Besides the data fields of the standard it
    /// knows `pairs` of a length and a data field, as [`Decoder::knowing`] does.
    ///
    /// [`Decoder::knowing`]: crate::codec::Decoder::knowing
    #[must_use]
    pub fn knowing(pairs: &[(u32, u32)]) -> Self {
        Self {
            index: index_knowing(pairs),
            ..Self::default()
        }
    }

    /// Appends text. Call [`next`](Self::next) until it returns `None` before each call.
    pub fn push(&mut self, piece: &[u8]) {
        self.buffer.drain(..self.from);
        self.doubted = self.doubted.saturating_sub(self.from);
        self.from = 0;
        self.ended = false;
        self.buffer.extend_from_slice(piece);
    }

    /// Ends the text: an incomplete message at the end is returned as it is. Call it also where
    /// text is missing. A new text may be appended once [`next`](Self::next) has returned `None`.
    pub fn finish(&mut self) {
        self.ended = true;
    }

    /// Returns the amount of text that belongs to no message so far.
    #[must_use]
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Returns the next message, or `None` if more text is needed or all text has been searched.
    #[allow(
        clippy::should_implement_trait,
        reason = "what it gives borrows from it"
    )]
    pub fn next(&mut self) -> Option<Found<'_>> {
        let (prefix, start, end, separator) = self.locate()?;
        self.take(start, end, separator);
        (self.from, self.before) = (end, None);
        let line = self.lines + 1;
        let text = self.buffer.get(prefix..end).unwrap_or_default();
        self.lines += text.iter().filter(|byte| **byte == b'\n').count() as u64;
        let Self {
            buffer,
            wire,
            index,
            plain,
            flaws,
            ..
        } = self;
        let index = flaw::examine(wire, index, plain, flaws);
        Some(Found {
            prefix: buffer.get(prefix..start).unwrap_or_default().trim_ascii(),
            message: Message::new(wire, index),
            flaws,
            line,
        })
    }

    /// Returns the place of the next message in the buffer: the start of its prefix, its start, its
    /// end, and its separator.
    fn locate(&mut self) -> Option<(usize, usize, usize, Separator)> {
        loop {
            let text = self.buffer.get(self.from..).unwrap_or_default();
            let (start, separator) = match search::start(text, self.before, self.ended) {
                Start::At(at, separator) => (self.from + at, separator),
                Start::Nowhere => {
                    self.skip_all();
                    return None;
                }
            };
            let prefix = self.line_of(start, MAX_PREFIX);
            let rest = self.buffer.get(start..).unwrap_or_default();
            let mut doubted = self.doubted.saturating_sub(start);
            let end = search::end(rest, separator, self.max_len, self.ended, &mut doubted);
            self.doubted = self.doubted.max(start + doubted);
            match end {
                End::At(end) => {
                    self.skip(prefix);
                    return Some((prefix, start, start + end, separator));
                }
                End::NeedsMore => {
                    self.skip(prefix);
                    return None;
                }
                End::TooFar => self.skip(start + 1),
            }
        }
    }

    /// Returns the start of the line of the byte at `at`, or of the last `most` bytes before `at`
    /// if the line is longer.
    fn line_of(&self, at: usize, most: usize) -> usize {
        let earliest = self.from.max(at.saturating_sub(most));
        let before = self.buffer.get(earliest..at).unwrap_or_default();
        let newline = before.iter().rposition(|&byte| byte == b'\n');
        newline.map_or(earliest, |newline| earliest + newline + 1)
    }

    /// Skips the buffer, in which no message begins. The last bytes are kept, as they may be the
    /// front of a line with a message.
    fn skip_all(&mut self) {
        let end = self.buffer.len();
        let keep = if self.ended {
            end
        } else {
            self.line_of(end, KEPT)
        };
        self.skip(keep);
        if self.ended && std::mem::take(&mut self.dirty) {
            self.skipped.lines += 1;
        }
    }

    /// Skips everything before `end`, which belongs to no message.
    fn skip(&mut self, end: usize) {
        for &byte in self.buffer.get(self.from..end).unwrap_or_default() {
            if byte == b'\n' {
                self.lines += 1;
                self.skipped.lines += u64::from(std::mem::take(&mut self.dirty));
            } else if !byte.is_ascii_whitespace() {
                self.skipped.bytes += 1;
                self.dirty = true;
            }
            self.before = Some(byte);
        }
        self.from = end;
    }

    /// Writes the message to `wire` as it would be on the wire.
    fn take(&mut self, start: usize, end: usize, separator: Separator) {
        let text = self.buffer.get(start..end).unwrap_or_default();
        self.wire.clear();
        if separator.is_soh() {
            self.wire.extend_from_slice(text);
        } else {
            replace(text, separator, true, &mut self.wire);
            if !self.is_whole() {
                self.wire.clear();
                replace(text, separator, false, &mut self.wire);
            }
        }
        // A data field may swallow the last separator: then it was none.
        if self.wire.last() != Some(&SOH) {
            self.wire.push(SOH);
        }
    }

    fn is_whole(&self) -> bool {
        let frame = FrameFinder::new(self.max_len).find(&self.wire);
        matches!(frame, Frame::Message { start: 0, end } if end == self.wire.len())
    }
}

/// Writes `text` to `wire` with SOH for the separator. If `each` is false, only separators before a
/// tag and `=` are replaced, as the others belong to a value.
fn replace(text: &[u8], separator: Separator, each: bool, wire: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = separator.find(rest) {
        let (piece, behind) = rest.split_at(at);
        wire.extend_from_slice(piece);
        let behind = behind.get(separator.len()..).unwrap_or_default();
        if each || behind.is_empty() || search::is_field(behind) {
            wire.push(SOH);
        } else {
            wire.extend_from_slice(separator.bytes());
        }
        rest = behind;
    }
    wire.extend_from_slice(rest);
}
