//! The messages to send, from a file or stdin.

use super::super::cat::Pieces;
use super::super::echo::is_renewed;
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_fix::codec::Message;
use fanfare_fix::session::SubIds;
use fanfare_fix::text::{Flaw, Scanner};
use fanfare_fix::{msg_type, tag};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// A message, without the fields that its session sets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Outgoing {
    /// The number of its line, from 1.
    pub(super) line: u64,
    pub(super) msg_type: Vec<u8>,
    /// SenderCompID(49) and TargetCompID(56), if it has both.
    pub(super) comp_ids: Option<(Vec<u8>, Vec<u8>)>,
    /// Further header fields, ascending.
    pub(super) header: Vec<(u32, Vec<u8>)>,
    /// Encoded fields.
    pub(super) body: Vec<u8>,
}

/// Messages that may be queued.
const WAITING: usize = 256;
/// The longest line, bytes.
const MAX_LINE: usize = 1 << 20;
/// The most bytes in the fields of a message. With the session's own header, such a message has at
/// most the 64 KiB that a session receives by default: a longer one would end the session each time
/// that it is sent.
const MAX_FIELDS: usize = 60 << 10;
const SOH: u8 = 1;

/// Reads messages in a thread of its own, which ends with the input, its first error, or the drop
/// of the receiver. `data_fields` are those that the standard does not have.
pub(super) fn read(
    path: &Path,
    data_fields: Vec<(u32, u32)>,
    stop: Stop,
) -> Result<Receiver<Result<Outgoing>>> {
    let input = Pieces::open(path, stop)?;
    let (to, messages) = sync_channel(WAITING);
    thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || {
            let name = input.name().to_owned();
            if let Err(error) = forward(input, &data_fields, &to) {
                // The receiver may be gone.
                let _ = to.send(Err(error.context(name)));
            }
        })?;
    Ok(messages)
}

fn forward(
    mut input: Pieces,
    data_fields: &[(u32, u32)],
    to: &SyncSender<Result<Outgoing>>,
) -> Result<()> {
    let mut lines = Lines::default();
    while let Some(piece) = input.next_piece()? {
        lines.push(&piece);
        if !hand_on(&mut lines, false, data_fields, to)? {
            return Ok(());
        }
    }
    hand_on(&mut lines, true, data_fields, to).map(drop)
}

/// Passes the messages on. Returns false if the receiver is gone.
fn hand_on(
    lines: &mut Lines,
    at_end: bool,
    data_fields: &[(u32, u32)],
    to: &SyncSender<Result<Outgoing>>,
) -> Result<bool> {
    while let Some((number, line)) = lines.next(at_end)? {
        let messages = parse(number, line, data_fields);
        for message in messages.with_context(|| format!("line {number}"))? {
            if to.send(Ok(message)).is_err() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A splitter of bytes into lines. A stream of messages without line ends is split behind each
/// CheckSum(10).
#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The end of the lines that were returned.
    at: usize,
    /// The offset up to which the next line has no end.
    searched: usize,
    number: u64,
}

impl Lines {
    /// Adds bytes, and drops the lines that were returned.
    fn push(&mut self, piece: &[u8]) {
        self.bytes.drain(..self.at);
        self.searched = self.searched.saturating_sub(self.at);
        self.at = 0;
        self.bytes.extend_from_slice(piece);
    }

    /// Returns the next complete line with its number; at the end of the input also one without a
    /// line end.
    fn next(&mut self, at_end: bool) -> Result<Option<(u64, &[u8])>> {
        let pending = self.bytes.get(self.at..).unwrap_or_default();
        let known = self.searched.saturating_sub(self.at);
        let unsearched = pending.get(known..).unwrap_or_default();
        let len = match unsearched.iter().position(|&byte| byte == b'\n') {
            Some(at) => known + at + 1,
            None if at_end => pending.len(),
            None if pending.len() >= MAX_LINE / 2 => behind_check_sum(pending),
            None => 0,
        };
        if len > MAX_LINE || (len == 0 && pending.len() > MAX_LINE) {
            bail!("line {} is longer than {MAX_LINE} bytes", self.number + 1);
        }
        if len == 0 {
            self.searched = self.bytes.len();
            return Ok(None);
        }
        self.number += 1;
        let begin = self.at;
        self.at += len;
        let line = self.bytes.get(begin..self.at).unwrap_or_default();
        Ok(Some((self.number, line)))
    }
}

/// Returns the offset behind the last complete trailer of a stream on the wire; 0 without one.
fn behind_check_sum(bytes: &[u8]) -> usize {
    let is_trailer = |window: &[u8]| {
        matches!(window, [SOH, b'1', b'0', b'=', a, b, c, SOH]
            if [a, b, c].iter().all(|digit| digit.is_ascii_digit()))
    };
    let last = bytes.windows(8).rposition(is_trailer);
    last.map_or(0, |at| at + 8)
}

/// Returns the messages of a line: none if it is blank or a comment.
fn parse(line: u64, text: &[u8], data_fields: &[(u32, u32)]) -> Result<Vec<Outgoing>> {
    let text = text.trim_ascii();
    if text.is_empty() || text.starts_with(b"#") {
        return Ok(Vec::new());
    }
    let mut scanner = Scanner::knowing(data_fields);
    if text.windows(5).any(|window| window == b"8=FIX") {
        scanner.push(text);
    } else if begins_with_a_field(text) {
        scanner.push(&framed(text));
    }
    scanner.finish();
    let bars = !text.contains(&SOH);
    let mut messages = Vec::new();
    while let Some(found) = scanner.next() {
        for flaw in found.flaws {
            // BodyLength(9) and CheckSum(10) are computed anew.
            if !matches!(flaw, Flaw::BodyLength { .. } | Flaw::CheckSum { .. }) {
                bail!("{flaw}");
            }
        }
        messages.push(Outgoing::of(line, &found.message, bars)?);
    }
    if messages.is_empty() {
        bail!("expected a message (8=FIX…) or fields (35=D|55=IBM|…)");
    }
    Ok(messages)
}

fn begins_with_a_field(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && text.get(digits) == Some(&b'=')
}

/// Frames bare fields as a message, with their separator.
fn framed(fields: &[u8]) -> Vec<u8> {
    let separator = match fields.contains(&SOH) {
        true => SOH,
        false => b'|',
    };
    let mut message = b"8=FIX.4.4_9=0_".to_vec();
    message.extend_from_slice(fields);
    if fields.last() != Some(&separator) {
        message.push(separator);
    }
    message.extend_from_slice(b"10=000_");
    let (front, back) = (13, message.len() - 1);
    for place in [9, front, back] {
        if let Some(byte) = message.get_mut(place) {
            *byte = separator;
        }
    }
    message
}

impl Outgoing {
    /// Creates one from a message; `bars`: the fields were separated by `|`.
    fn of(line: u64, message: &Message<'_>, bars: bool) -> Result<Self> {
        let msg_type = message.msg_type().to_vec();
        let comp_ids = message.get(tag::SENDER_COMP_ID).map(<[u8]>::to_vec);
        let comp_ids = comp_ids.zip(message.get(tag::TARGET_COMP_ID).map(<[u8]>::to_vec));
        let (mut header, mut body) = (Vec::new(), Vec::new());
        for (position, field) in message.fields().enumerate() {
            if field.tag == 0 {
                bail!("`{}` is not a tag", field.tag_bytes().escape_ascii());
            }
            if field.value.is_empty() {
                bail!("field {} has no value", field.tag);
            }
            if bars && field.value.contains(&b'|') && !is_data(message, position) {
                let value = field.value.escape_ascii();
                bail!(
                    "in {}={value} the | is not followed by a tag and `=`",
                    field.tag
                );
            }
            if is_renewed(field.tag)
                || tag::is_trailer(field.tag)
                || field.tag == tag::LAST_MSG_SEQ_NUM_PROCESSED
            {
                continue;
            }
            if tag::is_header(field.tag) {
                header.push((field.tag, field.value.to_vec()));
            } else {
                body.extend_from_slice(message.encoded(position).unwrap_or_default());
            }
        }
        let in_header: usize = header.iter().map(|(_, value)| value.len()).sum();
        let length = in_header + body.len();
        if length > MAX_FIELDS {
            bail!("the fields have {length} bytes, more than {MAX_FIELDS}");
        }
        header.sort_by_key(|field| field.0);
        Ok(Self {
            line,
            msg_type,
            comp_ids,
            header,
            body,
        })
    }

    /// Returns the SubIDs and LocationIDs that it names.
    pub(super) fn sub_ids(&self) -> SubIds {
        let id = |tag| {
            let found = self.header.iter().find(|field| field.0 == tag);
            found.map_or_else(String::new, |(_, value)| {
                String::from_utf8_lossy(value).into_owned()
            })
        };
        SubIds {
            sender: id(tag::SENDER_SUB_ID).into(),
            sender_location: id(tag::SENDER_LOCATION_ID).into(),
            target: id(tag::TARGET_SUB_ID).into(),
            target_location: id(tag::TARGET_LOCATION_ID).into(),
            ..SubIds::default()
        }
    }

    /// Returns whether messages of this type are the session layer's own.
    pub(super) fn is_the_sessions(&self) -> bool {
        msg_type::is_session(&self.msg_type)
    }
}

/// Returns whether the field before is the length of this one, whose value is arbitrary bytes.
fn is_data(message: &Message<'_>, position: usize) -> bool {
    let len = message.field(position).map(|field| field.value.len());
    let before = position.checked_sub(1).and_then(|at| message.field(at));
    let told = before.and_then(|field| std::str::from_utf8(field.value).ok()?.parse().ok());
    told.is_some() && told == len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace('\x01', "|")
    }

    fn one(text: &str) -> Outgoing {
        let mut messages = parse(7, text.as_bytes(), &[]).unwrap();
        assert_eq!(messages.len(), 1, "{text}");
        messages.remove(0)
    }

    #[test]
    fn fields_and_whole_messages_are_the_same_message() {
        let bare = one("35=D|115=X|50=me|11=1|58=a b|55=IBM\r\n");
        assert_eq!(bare.msg_type, b"D");
        assert_eq!(shown(&bare.body), "11=1|58=a b|55=IBM|");
        let header: Vec<_> = bare.header.iter().map(|field| field.0).collect();
        assert_eq!(header, [50, 115]);
        for text in [
            "35=D|115=X|50=me|11=1|58=a b|55=IBM|",
            "35=D\x01115=X\x0150=me\x0111=1\x0158=a b\x0155=IBM\x01",
            "10:00:01 out 8=FIX.4.2|9=5|35=D|34=7|52=x|50=me|115=X|11=1|58=a b|55=IBM|10=000|",
        ] {
            assert_eq!(one(text), bare, "{text}");
        }
    }

    #[test]
    fn lines_may_hold_several_messages_and_their_comp_ids() {
        let text = "8=FIX.4.4|9=5|35=D|49=A|56=B|11=1|10=000|8=FIX.4.4|9=5|35=F|11=2|10=000|";
        let messages = parse(1, text.as_bytes(), &[]).unwrap();
        let comp_ids = Some((b"A".to_vec(), b"B".to_vec()));
        assert_eq!(messages[0].comp_ids, comp_ids);
        assert_eq!(
            (&*messages[1].msg_type, &messages[1].comp_ids),
            (&b"F"[..], &None)
        );
    }

    #[test]
    fn data_may_hold_separators() {
        let email = one("35=C|164=1|95=3|96=a|b|33=1|");
        assert_eq!(shown(&email.body), "164=1|95=3|96=a|b|33=1|");
    }

    #[test]
    fn data_of_a_dictionarys_own_may_hold_separators() {
        let text = b"35=D\x016032=5\x016033=x\x0111=\x0154=1\x01";
        let error = parse(1, text, &[]).unwrap_err();
        assert_eq!(error.to_string(), "field 11 has no value");
        let messages = parse(1, text, &[(6032, 6033)]).unwrap();
        assert_eq!(shown(&messages[0].body), "6032=5|6033=x|11=|54=1|");
    }

    #[test]
    fn blank_lines_and_comments_are_none_and_faults_are_told() {
        for text in ["", "  \r\n", "# 35=D|"] {
            assert_eq!(parse(1, text.as_bytes(), &[]).unwrap(), []);
        }
        for (text, why) in [
            ("hello", "expected a message"),
            ("55=IBM|35=D|", "third field is not MsgType"),
            ("35=D|11=|", "field 11 has no value"),
            ("35=D|x=1|", "in 35=D|x=1 the |"),
            ("35=D|11=1|x=2|55=IBM", "in 11=1|x=2 the |"),
            ("35=D\x01x=1\x01", "`x` is not a tag"),
            ("35=D\x0111", "no '='"),
            ("8=FIX.4.4|9=50|35=D|11=1|", "CheckSum(10) is missing"),
        ] {
            let error = parse(1, text.as_bytes(), &[]).unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_counterparty_would_not_receive_is_refused() {
        let text = |len: usize| format!("35=B|148={}|", "x".repeat(len - "148=|".len()));
        assert_eq!(one(&text(MAX_FIELDS)).body.len(), MAX_FIELDS);
        let error = parse(1, text(MAX_FIELDS + 1).as_bytes(), &[]).unwrap_err();
        let why = "the fields have 61441 bytes, more than 61440";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"35=D|11=1|\n\n35=D|11=2|\nlast";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut all = Vec::new();
            for piece in [&text[..cut], &text[cut..]] {
                lines.push(piece);
                while let Some((number, line)) = lines.next(false).unwrap() {
                    all.push((number, shown(line)));
                }
            }
            assert_eq!(lines.next(true).unwrap(), Some((4, &b"last"[..])));
            assert_eq!(lines.next(true).unwrap(), None);
            let expected = [(1, "35=D|11=1|\n"), (2, "\n"), (3, "35=D|11=2|\n")];
            assert_eq!(all, expected.map(|(line, text)| (line, text.to_owned())));
        }
    }

    #[test]
    fn a_stream_without_lines_is_cut_and_a_line_without_end_refused() {
        let message = b"8=FIX.4.4\x019=5\x0135=D\x0111=1\x0110=000\x01";
        let mut lines = Lines::default();
        let count = (MAX_LINE / 2).div_ceil(message.len());
        lines.push(&message.repeat(count));
        lines.push(b"8=FIX");
        let (_, line) = lines.next(false).unwrap().unwrap();
        assert_eq!(line.len(), count * message.len());
        assert_eq!(parse(1, line, &[]).unwrap().len(), count);
        assert_eq!(lines.next(true).unwrap(), Some((2, &b"8=FIX"[..])));
        lines.push(&vec![b'x'; MAX_LINE + 1]);
        assert!(lines.next(false).is_err());
    }
}
