//! A file of audited events, one JSON line each. It is made with mode 0600.
//!
//! Lines pass through a bounded queue to a thread that writes them, so that no session waits for
//! the disk; the thread waits for no reader of a pipe. Lines that do not fit into the queue, and
//! lines that the disk does not take, are counted, and a line in the file has their number as soon
//! as it can be written.

use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::counters::{Counter, Counters};
use fanfare_engine::lines::{Lines, append_at_once, ends_within_a_line, is_same};
use fanfare_engine::reopen::Reopen;
use fanfare_engine::stop::Reload;
use fanfare_fix::session::{Now, SECOND};
use fanfare_wire::text::{Escaped, beginning};
use fanfare_wire::{Precision, UtcTimestamp};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::SystemTime;

/// Most lines that wait for the disk.
const CAPACITY: usize = 16_384;
/// Lines written in one duty cycle.
const TURN: usize = 512;
/// The pause after a failed write while no line comes, in nanoseconds.
const AGAIN: u64 = SECOND / 2;
/// The longest value in a line, in bytes.
const LONGEST: usize = 1024;

/// The end that takes lines, from any thread. Clones share the file. Without a file, lines are not
/// made.
#[derive(Clone, Default)]
pub struct AuditFile(Option<End>);

#[derive(Clone)]
struct End {
    lines: SyncSender<AuditLine>,
    left_out: Arc<AtomicU64>,
}

impl AuditFile {
    /// Opens the file to append to, with mode 0600. Other users lose their rights on an existing
    /// one, where the system permits it. Returns the end for lines, and the agent that writes them.
    /// The agent reopens the file whenever `reload` is due, and calls `tell` when the file cannot
    /// be written and when it can again.
    ///
    /// # Errors
    /// The file cannot be opened, or is a pipe that nothing reads.
    pub fn open(
        path: &Path,
        counters: &Counters,
        reload: Reload,
        tell: impl FnMut(String) + Send + 'static,
    ) -> io::Result<(Self, AuditWriter)> {
        let (sender, lines) = sync_channel(CAPACITY);
        let left_out = Arc::new(AtomicU64::new(0));
        let end = End {
            lines: sender,
            left_out: Arc::clone(&left_out),
        };
        let mut out = Lines::new(append_at_once(path)?, lost);
        if ends_within_a_line(path) {
            out.end_line();
        }
        let writer = AuditWriter {
            out,
            path: path.to_owned(),
            lines,
            left_out,
            buffer: Vec::new(),
            trouble: None,
            again: 0,
            reopen: Reopen::new(reload),
            written: counters.add("audit_lines", "lines written to the audit file"),
            lost: counters.add("audit_lost", "lines missing from the audit file"),
            tell: Box::new(tell),
        };
        Ok((Self(Some(end)), writer))
    }

    /// Writes a line, which is only made if there is a file. Never waits.
    pub fn send(&self, line: impl FnOnce() -> AuditLine) {
        let Some(end) = &self.0 else {
            return;
        };
        if let Err(TrySendError::Full(_)) = end.lines.try_send(line()) {
            end.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes a line on a command of an operator.
    pub fn operator(&self, by: &str, command: &str, outcome: &str) {
        self.send(|| {
            AuditLine::new("operator")
                .with("by", by)
                .with("command", Escaped::text(command))
                .with("outcome", Escaped::text(outcome))
        });
    }
}

impl std::fmt::Debug for AuditFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AuditFile").field(&self.0.is_some()).finish()
    }
}

/// One line.
#[derive(Debug)]
pub struct AuditLine {
    at: SystemTime,
    event: &'static str,
    fields: Vec<(&'static str, Value)>,
}

impl AuditLine {
    /// Makes a line on this event, at this time.
    #[must_use]
    pub fn new(event: &'static str) -> Self {
        Self {
            at: SystemTime::now(),
            event,
            fields: Vec::with_capacity(6),
        }
    }

    /// Adds a field. An empty value is left out, and one longer than 1,024 bytes is cut.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Display) -> Self {
        let mut value = value.to_string();
        if value.len() > LONGEST {
            value.truncate(beginning(&value, LONGEST).len());
            value.push('…');
        }
        if !value.is_empty() {
            self.fields.push((name, Value::String(value)));
        }
        self
    }

    /// Adds a field with a number.
    fn with_number(mut self, name: &'static str, value: u64) -> Self {
        self.fields.push((name, Value::from(value)));
        self
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Map::new();
        object.insert("time".to_owned(), Value::String(iso(self.at)));
        object.insert("event".to_owned(), Value::String(self.event.to_owned()));
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), value.clone());
        }
        out.extend_from_slice(Value::Object(object).to_string().as_bytes());
        out.push(b'\n');
    }
}

/// Formats a time as [`iso_of`] does.
#[must_use]
pub fn iso(at: SystemTime) -> String {
    let nanos = at
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos();
    iso_of(UtcTimestamp::from_nanos(
        i64::try_from(nanos).unwrap_or(i64::MAX),
    ))
}

/// Formats a time as `2026-11-23T12:30:00.123456Z`.
#[must_use]
pub fn iso_of(at: UtcTimestamp) -> String {
    let text = at.text(Precision::Micros);
    let text = text.as_str();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}T{}Z",
        part(0..4),
        part(4..6),
        part(6..8),
        part(9..text.len())
    )
}

/// Makes the line in the place of lost ones.
fn lost(lines: u64) -> Vec<u8> {
    let mut line = Vec::new();
    let lost = AuditLine::new("lost").with_number("lines", lines);
    lost.write(&mut line);
    line
}

/// Writes the lines, on a thread that may wait for the disk.
pub struct AuditWriter {
    path: PathBuf,
    out: Lines<File>,
    lines: Receiver<AuditLine>,
    left_out: Arc<AtomicU64>,
    buffer: Vec<u8>,
    /// The error of the file, as last reported.
    trouble: Option<String>,
    /// The monotonic time of the next attempt after a failed write, unless lines come before.
    again: u64,
    reopen: Reopen,
    written: Counter,
    lost: Counter,
    tell: Box<dyn FnMut(String) + Send>,
}

impl AuditWriter {
    /// Writes the lines that wait, at `now`. Returns their number.
    fn turn(&mut self, now: u64) -> usize {
        let mut count = 0;
        self.buffer.clear();
        for line in self.lines.try_iter().take(TURN) {
            line.write(&mut self.buffer);
            count += 1;
        }
        self.out.leave_out(self.left_out.swap(0, Ordering::Relaxed));
        if count > 0 || now >= self.again {
            self.write(now);
        }
        count
    }

    /// Writes the lines of the buffer, and what the file did not accept before.
    fn write(&mut self, now: u64) {
        let outcome = self.out.put(&self.buffer);
        self.written.set(self.out.written());
        self.lost.set(self.out.lost());
        match outcome {
            Ok(()) => {
                if self.trouble.take().is_some() {
                    self.tell("writable again".to_owned());
                }
            }
            Err(error) => {
                self.again = now.saturating_add(AGAIN);
                self.fail(error.to_string());
            }
        }
    }

    fn fail(&mut self, error: String) {
        if self.trouble.as_ref() != Some(&error) {
            self.tell(format!("{error}; lost lines are counted"));
            self.trouble = Some(error);
        }
    }

    fn tell(&mut self, what: String) {
        (self.tell)(what);
    }

    /// Continues in a new file of the name, if the old one was renamed. If that fails, it is
    /// reported once for each request, and lines go to the open file until a later attempt
    /// succeeds.
    fn open_again(&mut self) {
        match append_at_once(&self.path) {
            Ok(file) => {
                self.reopen.done();
                let is_other = !is_same(self.out.get_ref(), &file);
                self.out.switch(|out| {
                    *out = file;
                    is_other
                });
                if is_other && ends_within_a_line(&self.path) {
                    self.out.end_line();
                }
            }
            Err(error) if self.reopen.is_requested() => {
                self.tell(format!("{error}; the old file stays open"));
            }
            Err(_) => {}
        }
    }
}

impl std::fmt::Debug for AuditWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("AuditWriter");
        debug.field("path", &self.path).finish_non_exhaustive()
    }
}

impl Agent for AuditWriter {
    fn name(&self) -> &str {
        "audit"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.reopen.is_due(now.mono) {
            self.open_again();
        }
        Ok(self.turn(now.mono))
    }

    fn on_close(&mut self, _now: Now) {
        // The last turn, without lines, is one more attempt.
        while self.turn(u64::MAX) > 0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let name = format!("fanfare-audit-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn lines(&self) -> Vec<Value> {
            let text = std::fs::read_to_string(&self.0).unwrap();
            let lines = text.lines().filter(|line| !line.is_empty());
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect()
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn begin(place: &Place) -> (AuditFile, AuditWriter, Reload, Counters) {
        let (counters, reload) = (Counters::new(), Reload::new());
        let opened = AuditFile::open(&place.0, &counters, reload.clone(), |_| {});
        let (audit, writer) = opened.unwrap();
        (audit, writer, reload, counters)
    }

    fn reloaded(audit: &AuditFile, outcome: &str) {
        audit.send(|| AuditLine::new("reload").with("outcome", outcome));
    }

    /// Makes the writer continue in this file.
    fn continue_in(writer: &mut AuditWriter, path: &Path) {
        writer.out.switch(|out| {
            *out = append_at_once(path).unwrap();
            true
        });
    }

    fn total(counters: &Counters, name: &str) -> u64 {
        let all = counters.snapshot().into_iter();
        let named = all.filter(|reading| reading.name == name);
        named.map(|reading| reading.value).sum()
    }

    #[test]
    fn nobody_waits_for_the_file_and_what_is_lost_is_told() {
        let place = Place::new("full");
        let (audit, mut writer, _, counters) = begin(&place);
        for _ in 0..CAPACITY + 100 {
            reloaded(&audit, "x");
        }
        while writer.turn(0) > 0 {}
        let lost: Vec<Value> = place.lines();
        let lost = lost.iter().filter(|line| line["event"] == "lost");
        assert_eq!(
            lost.map(|line| line["lines"].clone()).collect::<Vec<_>>(),
            [100]
        );
        assert_eq!(total(&counters, "audit_lost"), 100);
        assert_eq!(total(&counters, "audit_lines"), CAPACITY as u64);
    }

    #[test]
    fn a_disk_that_is_full_costs_lines_and_no_more() {
        let place = Place::new("disk");
        let (audit, mut writer, _, counters) = begin(&place);
        continue_in(&mut writer, Path::new("/dev/full"));
        reloaded(&audit, "one");
        assert_eq!(writer.turn(0), 1);
        assert!(writer.trouble.is_some());
        continue_in(&mut writer, &place.0);
        reloaded(&audit, "two");
        assert_eq!(writer.turn(0), 1);
        let lines = place.lines();
        assert_eq!(lines[0]["lines"], 1);
        assert_eq!(lines[1]["outcome"], "two");
        assert_eq!(total(&counters, "audit_lost"), 1);
        assert_eq!(total(&counters, "audit_lines"), 1);
        assert!(writer.trouble.is_none());
    }

    #[test]
    fn what_is_lost_is_told_without_a_further_line() {
        let place = Place::new("told");
        let (audit, mut writer, ..) = begin(&place);
        let fill = |writer: &mut AuditWriter, now| {
            continue_in(writer, Path::new("/dev/full"));
            reloaded(&audit, "x");
            assert_eq!(writer.turn(now), 1);
            continue_in(writer, &place.0);
        };
        fill(&mut writer, 5);
        for (now, told) in [(5, 0), (4 + AGAIN, 0), (5 + AGAIN, 1)] {
            assert_eq!(writer.turn(now), 0);
            assert_eq!(place.lines().len(), told, "{now}");
        }
        assert!(writer.trouble.is_none());
        fill(&mut writer, 6 + AGAIN);
        writer.on_close(fanfare_engine::clock::Clock::new().read());
        let told = place.lines();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|line| line["lines"] == 1), "{told:?}");
    }

    #[test]
    fn a_file_that_ends_within_a_line_goes_on_with_the_next_one() {
        let place = Place::new("within");
        let cut_off = || std::fs::write(&place.0, "{\"time").unwrap();
        let last = || {
            let text = std::fs::read_to_string(&place.0).unwrap();
            let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
            line["outcome"].clone()
        };
        cut_off();
        let (audit, mut writer, reload, _) = begin(&place);
        let now = fanfare_engine::clock::Clock::new().read();
        reloaded(&audit, "one");
        writer.do_work(now).unwrap();
        assert_eq!(last(), "one");
        std::fs::remove_file(&place.0).unwrap();
        cut_off();
        reload.request();
        reloaded(&audit, "two");
        writer.do_work(now).unwrap();
        assert_eq!(last(), "two");
    }

    #[test]
    fn an_existing_file_is_closed_to_others() {
        let place = Place::new("rights");
        let open_to_others = || {
            std::fs::write(&place.0, "{}\n").unwrap();
            std::fs::set_permissions(&place.0, Permissions::from_mode(0o644)).unwrap();
        };
        let mode = || std::fs::metadata(&place.0).unwrap().permissions().mode() & 0o777;
        open_to_others();
        let (_, mut writer, reload, _) = begin(&place);
        assert_eq!(mode(), 0o600);
        std::fs::remove_file(&place.0).unwrap();
        open_to_others();
        reload.request();
        let now = fanfare_engine::clock::Clock::new().read();
        writer.do_work(now).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_file_that_was_renamed_is_begun_anew() {
        let (place, moved) = (Place::new("old"), Place::new("moved"));
        let (audit, mut writer, reload, _) = begin(&place);
        let now = fanfare_engine::clock::Clock::new().read();
        reloaded(&audit, "one");
        writer.do_work(now).unwrap();
        std::fs::rename(&place.0, &moved.0).unwrap();
        reloaded(&audit, "two");
        writer.do_work(now).unwrap();
        reload.request();
        reloaded(&audit, "three");
        writer.do_work(now).unwrap();
        assert_eq!((moved.lines().len(), place.lines().len()), (2, 1));
    }

    #[test]
    fn a_pipe_that_nothing_reads_is_no_file_to_continue_in() {
        let (place, moved) = (Place::new("pipe"), Place::new("before"));
        let (audit, mut writer, reload, _) = begin(&place);
        let now = fanfare_engine::clock::Clock::new().read();
        std::fs::rename(&place.0, &moved.0).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&place.0).status();
        assert!(made.unwrap().success());
        reload.request();
        reloaded(&audit, "one");
        writer.do_work(now).unwrap();
        writer.on_close(now);
        assert_eq!(moved.lines().len(), 1);
        let (counters, reload) = (Counters::new(), Reload::new());
        assert!(AuditFile::open(&place.0, &counters, reload, |_| {}).is_err());
    }

    #[test]
    fn a_file_that_cannot_be_opened_again_is_tried_every_minute() {
        let (place, moved) = (Place::new("blocked"), Place::new("kept"));
        let (audit, mut writer, reload, _) = begin(&place);
        let mut now = fanfare_engine::clock::Clock::new().read();
        std::fs::rename(&place.0, &moved.0).unwrap();
        // A folder cannot be opened for writing.
        std::fs::create_dir(&place.0).unwrap();
        reload.request();
        reloaded(&audit, "one");
        writer.do_work(now).unwrap();
        std::fs::remove_dir(&place.0).unwrap();
        now.mono += Reopen::INTERVAL - 1;
        reloaded(&audit, "two");
        writer.do_work(now).unwrap();
        assert!(!place.0.exists());
        now.mono += 1;
        reloaded(&audit, "three");
        writer.do_work(now).unwrap();
        assert_eq!((moved.lines().len(), place.lines().len()), (2, 1));
        assert!(!writer.reopen.is_due(u64::MAX));
    }
}
