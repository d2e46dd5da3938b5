//! The lines of a message log, from the records of its ring to the file.

use super::{BEGINS, Direction, Health, LEFT_OUT, LogTrouble, NAME, OVERLAP, TIME};
use crate::counters::{Counter, Counters};
use crate::lines::{end_line, ends_within_a_line, write_whole};
use crate::reopen::Reopen;
use crate::ring::Record;
use crate::rotate::{RotatedFile, Rotation};
use crate::stop::Reload;
use fanfare_fix::codec::{Frame, FrameFinder, Sought, secrets};
use fanfare_fix::session::Now;
use fanfare_wire::text::Escaped;
use fanfare_wire::{Precision, UtcTimestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
#[cfg(test)]
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Longest message that is assembled; longer ones are logged as bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// Size of the pieces in which lines are written.
const PIECE: usize = 64 << 10;
/// The bit of a session's second connection: see [`OVERLAP`].
const SECOND: u32 = OVERLAP as u32;
/// Most bytes of lines kept while the disk refuses writes.
const MAX_WAITING: usize = 1 << 20;

/// Assembles messages and writes them.
pub(super) struct Lines {
    out: RotatedFile,
    /// The time at which the duty cycle began.
    now: Now,
    /// The time of the next attempt to end a file that could not be ended.
    roll_again: Option<u64>,
    reopen: Reopen,
    /// The lines that are not written yet, whole.
    waiting: Vec<u8>,
    /// The number of bytes of the first waiting line that the file has taken.
    begun: usize,
    /// Whether the file ends within a line of an earlier run, which is ended first.
    is_within: bool,
    /// Whether the last write failed.
    failing: bool,
    /// The number of bytes of lines left out while writes failed.
    left_out: u64,
    names: HashMap<u32, String>,
    /// The bytes of incomplete messages, by session and direction, the time of the last ones, and
    /// what was searched of them.
    partial: BTreeMap<u32, (UtcTimestamp, Vec<u8>, Sought)>,
    /// The streams whose next bytes are known to begin a message, since bytes were left out; `None`
    /// before. The next bytes of other streams may be the rest of a secret.
    mended: Option<BTreeSet<u32>>,
    finder: FrameFinder,
    count: Counter,
    errors: Counter,
    lost: Counter,
    pub(super) health: Arc<Health>,
}

impl Lines {
    /// Opens the file at `path`, to which it appends.
    pub(super) fn open(
        path: &Path,
        rotation: Rotation,
        counters: &Counters,
        health: Arc<Health>,
    ) -> io::Result<Self> {
        Ok(Self {
            out: RotatedFile::open(path, rotation)?,
            now: Now {
                mono: 0,
                utc: UtcTimestamp::from_nanos(0),
            },
            roll_again: None,
            reopen: Reopen::default(),
            waiting: Vec::with_capacity(2 * PIECE),
            begun: 0,
            is_within: ends_within_a_line(path),
            failing: false,
            left_out: 0,
            names: HashMap::new(),
            partial: BTreeMap::new(),
            mended: None,
            finder: FrameFinder::new(MAX_MESSAGE),
            count: counters.add("log_messages", "messages written to the message log"),
            errors: counters.add("log_errors", "failed writes to the message log"),
            lost: counters.add(
                "log_unwritten_bytes",
                "bytes of lines that were not written to the disk",
            ),
            health,
        })
    }

    /// Opens the file again whenever `reload` is due.
    pub(super) fn reopen_on(&mut self, reload: Reload) {
        self.reopen = Reopen::new(reload);
    }

    /// Returns whether the last write failed.
    pub(super) const fn is_failing(&self) -> bool {
        self.failing
    }

    pub(super) fn take(&mut self, record: Record<'_>) {
        match record.kind {
            LEFT_OUT => {
                let count = record.bytes.try_into().map_or(0, u64::from_le_bytes);
                // The next bytes of any session may belong to a later message.
                self.end_all();
                self.mended = Some(BTreeSet::new());
                self.write(format!("-- {count} bytes were left out\n").as_bytes());
            }
            kind if kind & NAME != 0 => {
                self.end(kind & !NAME);
                self.end(kind & !NAME | SECOND);
                let name = String::from_utf8_lossy(record.bytes).into_owned();
                self.names.insert(kind & !NAME, name);
            }
            kind if kind & BEGINS == BEGINS => self.end(kind & !BEGINS),
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
        let (_, mut all, mut sought) = self.partial.remove(&stream).unwrap_or_default();
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let found = self.finder.find_further(rest, &mut sought);
            if let Frame::Message { start, .. } = found
                && self.is_torn(stream)
            {
                let (before, message) = rest.split_at_checked(start).unwrap_or_default();
                self.line(time, stream, before);
                self.mend(stream);
                rest = message;
                continue;
            }
            let (end, whole) = match found {
                Frame::Message { end, .. } | Frame::Garbled { end, .. } => (end.max(1), true),
                // The bytes in front of a message that has begun belong to no message.
                Frame::Partial { start, .. } => (start, false),
            };
            let Some((message, behind)) = rest.split_at_checked(end) else {
                break;
            };
            self.line(time, stream, message);
            rest = behind;
            if !whole {
                break;
            }
        }
        let done = all.len() - rest.len();
        if done < all.len() {
            all.drain(..done);
            if done > 0 {
                all.shrink_to(2 * all.len());
            }
            self.partial.insert(stream, (time, all, sought));
        }
    }

    /// Writes the incomplete messages of a connection, each on a line of its own.
    fn end(&mut self, connection: u32) {
        for stream in [connection << 1, connection << 1 | 1] {
            if let Some((time, rest, _)) = self.partial.remove(&stream) {
                self.line(time, stream, &rest);
            }
            self.mend(stream);
        }
    }

    /// Writes the incomplete messages of all sessions.
    fn end_all(&mut self) {
        while let Some((stream, (time, rest, _))) = self.partial.pop_first() {
            self.line(time, stream, &rest);
        }
    }

    /// Returns whether the next bytes of a stream may be the rest of a secret.
    fn is_torn(&self, stream: u32) -> bool {
        let mended = self.mended.as_ref();
        mended.is_some_and(|mended| !mended.contains(&stream))
    }

    /// Notes that the next bytes of a stream begin a message.
    fn mend(&mut self, stream: u32) {
        if let Some(mended) = &mut self.mended {
            mended.insert(stream);
        }
    }

    /// Writes a message or other bytes of a stream, if there are any.
    fn line(&mut self, time: UtcTimestamp, stream: u32, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut line = time.text(Precision::Nanos).as_str().as_bytes().to_vec();
        let session = stream >> 1 & !SECOND;
        let name = self.names.get(&session);
        let name = name.map_or_else(|| format!("session {session}"), Clone::clone);
        let direction = if stream & 1 == Direction::In as u32 {
            "in "
        } else {
            "out"
        };
        line.extend_from_slice(format!(" {name} {direction} ").as_bytes());
        match self.is_torn(stream) {
            true => line.extend_from_slice(format!("*** ({} bytes)", bytes.len()).as_bytes()),
            false => masked(bytes, &mut line),
        }
        line.push(b'\n');
        self.count.increment(1);
        self.write(&line);
    }

    fn write(&mut self, line: &[u8]) {
        let len = self.waiting.len() - self.begun + line.len();
        if self.out.is_over(self.now.utc.nanos(), len) {
            self.begin_again();
        }
        if len > MAX_WAITING && self.failing {
            self.left_out += line.len() as u64;
            self.lost.increment(line.len() as u64);
            return;
        }
        self.waiting.extend_from_slice(line);
        if self.waiting.len() >= PIECE && !self.failing {
            self.flush();
        }
    }

    /// Opens the file again if due, and ends a file whose day is over, even while no message
    /// arrives.
    pub(super) fn look(&mut self, now: Now) {
        self.now = now;
        if self.reopen.is_due(now.mono) {
            self.open_again();
        }
        if self.out.is_over(now.utc.nanos(), 0) {
            self.begin_again();
        }
        if let Some(trouble) = self.out.take_trouble() {
            self.health.report(LogTrouble::Kept(trouble));
        }
    }

    /// Ends the file and begins a new one. If that fails, it is reported once, and lines go to the
    /// open file until a later attempt succeeds.
    fn begin_again(&mut self) {
        if self.roll_again.is_some_and(|at| self.now.mono < at) {
            return;
        }
        self.flush();
        if self.failing {
            return;
        }
        let utc = self.now.utc.nanos();
        if let Err(error) = self.switch(|out| out.roll(utc)) {
            let again = self.now.mono.saturating_add(Reopen::INTERVAL);
            let is_known = self.roll_again.replace(again).is_some();
            self.stays_open(&error, is_known);
        }
    }

    /// Opens the file at its path again. If that fails, it is reported once for each request, and
    /// lines go to the open file until a later attempt succeeds.
    pub(super) fn open_again(&mut self) {
        self.flush();
        if let Err(error) = self.switch(RotatedFile::reopen) {
            self.stays_open(&error, !self.reopen.is_requested());
        }
    }

    /// Replaces the file. A line that the old file has only in part is written whole to the new
    /// one.
    fn switch(
        &mut self,
        change: impl FnOnce(&mut RotatedFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let outcome = change(&mut self.out);
        if self.out.take_change() {
            self.begun = 0;
            self.is_within = ends_within_a_line(self.out.path());
        }
        if outcome.is_ok() {
            self.roll_again = None;
            self.reopen.done();
        }
        outcome
    }

    fn stays_open(&mut self, error: &io::Error, is_known: bool) {
        self.errors.increment(1);
        if !is_known {
            let path = self.out.path().display();
            let why = format!("{path}: {error}");
            self.health.report(LogTrouble::Kept(why));
        }
    }

    /// Writes the waiting lines, as far as the disk accepts them.
    pub(super) fn flush(&mut self) {
        match self.put() {
            Ok(()) if self.failing => self.recovered(),
            Ok(()) => {}
            Err(error) => self.fail(&error),
        }
    }

    /// Writes them, behind the end of a line that an earlier run has begun.
    fn put(&mut self) -> io::Result<()> {
        end_line(&mut self.out, &mut self.is_within)?;
        let rest = self.waiting.get(self.begun..).unwrap_or_default();
        let (taken, outcome) = write_whole(&mut self.out, rest);
        self.begun += taken;
        let done = self.waiting.get(..self.begun).unwrap_or_default();
        let end = done.iter().rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        self.waiting.drain(..whole);
        self.begun -= whole;
        outcome
    }

    /// Writes the lines that have not been written, at the end of the log.
    pub(super) fn close(&mut self) {
        self.end_all();
        self.flush();
        // The bytes that the disk has refused until now are lost.
        let unwritten = self.waiting.len() - self.begun;
        self.lost.increment(unwritten as u64);
    }

    fn fail(&mut self, error: &io::Error) {
        self.errors.increment(1);
        if !std::mem::replace(&mut self.failing, true) {
            let path = self.out.path().display();
            self.health
                .report(LogTrouble::Disk(format!("{path}: {error}")));
        }
    }

    fn recovered(&mut self) {
        self.failing = false;
        let bytes = std::mem::take(&mut self.left_out);
        if bytes > 0 {
            self.write(
                format!("-- {bytes} bytes were left out: the disk refused them\n").as_bytes(),
            );
        }
        self.health.report(LogTrouble::DiskAgain { bytes });
    }
}

#[cfg(test)]
impl Lines {
    /// Writes to this file instead of its own; `None` restores its own.
    pub(super) fn write_to(&mut self, file: Option<File>) {
        self.out.write_to(file);
    }
}

/// Writes a message with `|` for SOH, unsafe characters [`Escaped`], and `***` for [secrets].
pub(super) fn masked(message: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    for secret in secrets(message) {
        escaped(message.get(at..secret.start).unwrap_or_default(), out);
        out.extend_from_slice(b"***");
        at = secret.end;
    }
    escaped(message.get(at..).unwrap_or_default(), out);
}

fn escaped(fields: &[u8], out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{}", Escaped::fields(fields));
}
