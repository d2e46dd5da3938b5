//! A readable log of all messages, written by another thread than the one that sends them.
//!
//! The host's thread copies what passes its sockets into a ring, which costs tens of
//! nanoseconds; a [`MessageLog`] on another thread finds the messages in it, masks passwords and
//! writes one line each. If that thread falls behind, stretches are left out of the log and
//! counted: the log never holds up a session.

use crate::agent::{Agent, AgentError};
use crate::counters::{Counter, Counters};
use crate::ring::{Consumer, Producer, Record, spsc};
use crate::stop::Reload;
use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_fix::session::{Now, SessionId};
use fanfare_wire::text::Escaped;
use fanfare_wire::{Precision, UtcTimestamp};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The two directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// The end that a host writes to: see [`Host::log_to`](super::Host::log_to).
pub struct LogTap {
    ring: Producer,
    /// Bytes left out since the last record.
    left_out: u64,
    lost: Counter,
}

/// The thread's end, an [`Agent`] for another thread.
pub struct MessageLog {
    ring: Consumer,
    lines: Lines,
    reload: Reload,
}

/// Kinds of records: the session's number and direction, or one of these.
const NAME: u32 = 1 << 31;
const LEFT_OUT: u32 = 1 << 30;
/// Time of the record in front of its bytes.
const TIME: usize = 8;
/// Longest stretch in one record.
const STRETCH: usize = 16 << 10;
/// Records taken from the ring in one turn.
const TURN: usize = 256;
/// Longest message that is put together; longer ones are logged as bytes.
const MAX_MESSAGE: usize = 1 << 20;

impl MessageLog {
    /// A log at `path`, appended to; at `max_bytes` it is renamed to `path.1`, in place of the
    /// one before, and begun again. The ring holds what has not been written yet: 4 MiB.
    ///
    /// Counts lines, bytes left out and errors of the disk in `counters`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, max_bytes: u64, counters: &Counters) -> io::Result<(LogTap, Self)> {
        let (producer, ring) = spsc(4 << 20);
        let lost = counters.add("log_lost_bytes", "bytes left out of the message log");
        let lines = Lines {
            out: open(path)?,
            written: std::fs::metadata(path)?.len(),
            path: path.to_owned(),
            max_bytes,
            names: HashMap::new(),
            partial: HashMap::new(),
            finder: FrameFinder::new(MAX_MESSAGE),
            count: counters.add("log_messages", "messages written to the message log"),
            errors: counters.add("log_errors", "failed writes to the message log"),
        };
        Ok((
            LogTap {
                ring: producer,
                left_out: 0,
                lost,
            },
            Self {
                ring,
                lines,
                reload: Reload::new(),
            },
        ))
    }

    /// Opens the file at its path again whenever this is due, so that somebody else (`logrotate`)
    /// can have renamed it. Where that fails the log goes on in the file that it has.
    #[must_use]
    pub fn reopen_on(mut self, reload: Reload) -> Self {
        self.reload = reload;
        self
    }
}

impl LogTap {
    pub(super) fn name(&mut self, session: usize, id: &SessionId) {
        let name = id.to_string();
        // A name that is left out shows as the session's number.
        let _ = self.ring.push(NAME | session as u32, name.as_bytes());
    }

    pub(super) fn bytes(&mut self, now: Now, session: usize, direction: Direction, bytes: &[u8]) {
        let kind = (session as u32) << 1 & (LEFT_OUT - 1) | direction as u32;
        for part in bytes.chunks(STRETCH) {
            if self.left_out > 0
                && self
                    .ring
                    .push(LEFT_OUT, &self.left_out.to_le_bytes())
                    .is_ok()
            {
                self.left_out = 0;
            }
            let time = now.utc.nanos().to_le_bytes();
            let fits = self.left_out == 0
                && self
                    .ring
                    .write(kind, TIME + part.len(), |room| {
                        if let Some((front, rest)) = room.split_at_mut_checked(TIME) {
                            front.copy_from_slice(&time);
                            rest.copy_from_slice(part);
                        }
                    })
                    .is_ok();
            if !fits {
                self.left_out += part.len() as u64;
                self.lost.increment(part.len() as u64);
            }
        }
    }
}

impl Agent for MessageLog {
    fn name(&self) -> &str {
        "message-log"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        let Self {
            ring,
            lines,
            reload,
        } = self;
        if reload.is_due() {
            lines.reopen();
        }
        let work = ring.read(TURN, |record| lines.take(record));
        if work == 0 {
            lines.flush();
        }
        Ok(work)
    }

    /// Writes what is still in the ring.
    fn on_close(&mut self, now: Now) {
        while matches!(self.do_work(now), Ok(1..)) {}
    }
}

/// Puts messages together and writes them.
struct Lines {
    out: BufWriter<File>,
    path: PathBuf,
    written: u64,
    max_bytes: u64,
    names: HashMap<u32, String>,
    /// Bytes of messages that are not complete, by session and direction.
    partial: HashMap<u32, Vec<u8>>,
    finder: FrameFinder,
    count: Counter,
    errors: Counter,
}

impl Lines {
    fn take(&mut self, record: Record<'_>) {
        match record.kind {
            LEFT_OUT => {
                let count = record.bytes.try_into().map_or(0, u64::from_le_bytes);
                self.partial.clear();
                self.write(format!("-- {count} bytes were left out\n").as_bytes());
            }
            kind if kind & NAME != 0 => {
                let name = String::from_utf8_lossy(record.bytes).into_owned();
                self.names.insert(kind & !NAME, name);
            }
            kind => {
                let Some((time, bytes)) = record.bytes.split_at_checked(TIME) else {
                    return;
                };
                let nanos = time.try_into().map_or(0, i64::from_le_bytes);
                self.messages(UtcTimestamp::from_nanos(nanos), kind, bytes);
            }
        }
    }

    fn messages(&mut self, time: UtcTimestamp, stream: u32, bytes: &[u8]) {
        let mut all = self.partial.remove(&stream).unwrap_or_default();
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (end, whole) = match self.finder.find(rest) {
                Frame::Message { end, .. } | Frame::Garbled { end, .. } => (end.max(1), true),
                // What stands in front of a message that has begun belongs to none.
                Frame::Partial { start, .. } => (start, false),
            };
            let Some((message, behind)) = rest.split_at_checked(end) else {
                break;
            };
            if !message.is_empty() {
                self.line(time, stream, message);
            }
            rest = behind;
            if !whole {
                break;
            }
        }
        if !rest.is_empty() {
            self.partial.insert(stream, rest.to_vec());
        }
    }

    fn line(&mut self, time: UtcTimestamp, stream: u32, message: &[u8]) {
        let mut text = [0; UtcTimestamp::MAX_LEN];
        let len = time.write(Precision::Nanos, &mut text);
        let mut line = text.get(..len).unwrap_or_default().to_vec();
        let session = stream >> 1;
        let name = self.names.get(&session);
        let name = name.map_or_else(|| format!("session {session}"), Clone::clone);
        let direction = if stream & 1 == Direction::In as u32 {
            "in "
        } else {
            "out"
        };
        line.extend_from_slice(format!(" {name} {direction} ").as_bytes());
        masked(message, &mut line);
        line.push(b'\n');
        self.count.increment(1);
        self.write(&line);
    }

    fn write(&mut self, line: &[u8]) {
        if self.written > 0 && self.written + line.len() as u64 > self.max_bytes {
            self.begin_again();
        }
        match self.out.write_all(line) {
            Ok(()) => self.written += line.len() as u64,
            Err(_) => self.errors.increment(1),
        }
    }

    fn begin_again(&mut self) {
        self.flush();
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        match std::fs::rename(&self.path, older).and_then(|()| open(&self.path)) {
            Ok(out) => (self.out, self.written) = (out, 0),
            Err(_) => self.errors.increment(1),
        }
    }

    fn reopen(&mut self) {
        self.flush();
        let len = |path| std::fs::metadata(path).map(|file| file.len());
        match open(&self.path).and_then(|out| Ok((out, len(&self.path)?))) {
            Ok((out, written)) => (self.out, self.written) = (out, written),
            Err(_) => self.errors.increment(1),
        }
    }

    fn flush(&mut self) {
        if self.out.flush().is_err() {
            self.errors.increment(1);
        }
    }
}

fn open(path: &Path) -> io::Result<BufWriter<File>> {
    Ok(BufWriter::new(
        File::options().append(true).create(true).open(path)?,
    ))
}

/// Fields whose values are secrets: Password(554), NewPassword(925), EncryptedPassword(1402),
/// EncryptedNewPassword(1404).
const SECRETS: [&[u8]; 4] = [b"554", b"925", b"1402", b"1404"];

/// Writes a message with `|` for SOH, what is no text [`Escaped`], and `***` for secrets;
/// RawData(96) of a Logon counts as one.
fn masked(message: &[u8], out: &mut Vec<u8>) {
    let is_logon = message.windows(6).any(|bytes| bytes == b"\x0135=A\x01");
    for field in message.split_inclusive(|&byte| byte == 1) {
        let tag = field.split(|&byte| byte == b'=').next().unwrap_or_default();
        if SECRETS.contains(&tag) || (is_logon && tag == b"96") {
            out.extend_from_slice(tag);
            out.extend_from_slice(b"=***|");
            continue;
        }
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{}", Escaped::fields(field));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_nothing_else() {
        let mut out = Vec::new();
        let logon = b"8=FIX.4.4\x0135=A\x01553=me\x01554=pw\x0195=3\x0196=a\x02c\x01925=new\x01";
        masked(logon, &mut out);
        assert_eq!(out, b"8=FIX.4.4|35=A|553=me|554=***|95=3|96=***|925=***|");
        out.clear();
        masked(b"8=FIX.4.4\x0135=B\x0196=a\n\xc2\x9b\xff\\c\x01", &mut out);
        assert_eq!(out, br"8=FIX.4.4|35=B|96=a\n\u{9b}\xff\\c|");
    }

    #[test]
    fn a_log_that_falls_behind_says_so_and_goes_on() {
        let name = format!("fanfare-log-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let counters = Counters::new();
        let (mut tap, mut log) = MessageLog::open(&path, 1 << 20, &counters).unwrap();
        let now = Now {
            mono: 0,
            utc: UtcTimestamp::from_nanos(0),
        };
        let beat = b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01";
        let flood = vec![b'x'; 8 << 20];
        tap.bytes(now, 3, Direction::In, &flood);
        let lost = tap.left_out;
        assert!(lost > 0);
        while log.do_work(now).unwrap() > 0 {}
        tap.bytes(now, 3, Direction::Out, beat);
        log.on_close(now);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let expected = format!(
            "-- {lost} bytes were left out\n\
             19700101-00:00:00.000000000 session 3 out 8=FIX.4.4|9=5|35=0|10=163|\n"
        );
        assert!(
            text.ends_with(&expected),
            "{}",
            &text[text.len().saturating_sub(200)..]
        );
    }
}
