//! A file of audited events, one JSON line each, with mode 0600.
//!
//! Lines pass through a bounded queue to a thread that writes them, so that no session waits for
//! the disk. Lines that do not fit into the queue, and lines that the disk does not take, are
//! counted, and a line in the file has their number as soon as it can be written.

use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::counters::{Counter, Counters};
use fanfare_engine::stop::Reload;
use fanfare_fix::session::Now;
use fanfare_wire::text::Escaped;
use fanfare_wire::{Precision, UtcTimestamp};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::SystemTime;

/// Most lines that wait for the disk.
const CAPACITY: usize = 16_384;
/// Lines written in one duty cycle.
const TURN: usize = 512;
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
    /// Opens the file to append to, with mode 0600. Returns the end for lines, and the agent that
    /// writes them. The agent reopens the file whenever `reload` is due, and calls `tell` when the
    /// file cannot be written and when it can again.
    ///
    /// # Errors
    /// The file cannot be opened.
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
        let writer = AuditWriter {
            out: open(path)?,
            path: path.to_owned(),
            lines,
            left_out,
            untold: 0,
            buffer: Vec::new(),
            trouble: None,
            written: counters.add("audit_lines", "lines written to the audit file"),
            lost: counters.add("audit_lost", "lines missing from the audit file"),
            tell: Box::new(tell),
            reload,
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
    fields: Vec<(&'static str, String)>,
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
            let end = (0..=LONGEST).rev().find(|&end| value.is_char_boundary(end));
            value.truncate(end.unwrap_or(0));
            value.push('…');
        }
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut object = Map::new();
        object.insert("time".to_owned(), Value::String(iso(self.at)));
        object.insert("event".to_owned(), Value::String(self.event.to_owned()));
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), Value::String(value.clone()));
        }
        out.extend_from_slice(Value::Object(object).to_string().as_bytes());
        out.push(b'\n');
    }
}

/// Formats a time as [`iso_of`] does.
fn iso(at: SystemTime) -> String {
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
    let mut text = [0; 32];
    let len = at.write(Precision::Micros, &mut text);
    let text = String::from_utf8_lossy(text.get(..len).unwrap_or_default()).into_owned();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}T{}Z",
        part(0..4),
        part(4..6),
        part(6..8),
        part(9..len)
    )
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.append(true).create(true).mode(0o600).open(path)
}

/// Writes the lines, on a thread that may wait for the disk.
pub struct AuditWriter {
    path: PathBuf,
    out: File,
    lines: Receiver<AuditLine>,
    left_out: Arc<AtomicU64>,
    /// The number of lost lines that no line of the file reports yet.
    untold: u64,
    buffer: Vec<u8>,
    /// The error of the file, as last reported.
    trouble: Option<String>,
    written: Counter,
    lost: Counter,
    tell: Box<dyn FnMut(String) + Send>,
    reload: Reload,
}

impl AuditWriter {
    fn turn(&mut self) -> usize {
        let mut count = 0;
        self.buffer.clear();
        for line in self.lines.try_iter().take(TURN) {
            line.write(&mut self.buffer);
            count += 1;
        }
        let lost = self.left_out.swap(0, Ordering::Relaxed);
        self.lose(lost);
        if count == 0 && (self.untold == 0 || self.trouble.is_some()) {
            return 0;
        }
        self.write(count);
        count
    }

    fn lose(&mut self, lines: u64) {
        if lines > 0 {
            self.untold += lines;
            self.lost.increment(lines);
        }
    }

    /// Writes the lines of the buffer, preceded by a line that counts those lost before.
    fn write(&mut self, count: usize) {
        let mut bytes = Vec::new();
        if self.trouble.is_some() {
            // The last line may have been cut.
            bytes.push(b'\n');
        }
        if self.untold > 0 {
            AuditLine::new("lost")
                .with("lines", self.untold)
                .write(&mut bytes);
        }
        bytes.append(&mut self.buffer);
        match self.out.write_all(&bytes) {
            Ok(()) => {
                self.untold = 0;
                self.written.increment(count as u64);
                if self.trouble.take().is_some() {
                    self.tell("writable again".to_owned());
                }
            }
            Err(error) => {
                self.lose(count as u64);
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

    /// Continues in a new file of the name, if the old one was renamed.
    fn reopen(&mut self) {
        match open(&self.path) {
            Ok(file) => self.out = file,
            Err(error) => self.tell(format!("{error}; the old file stays open")),
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

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.reload.is_due() {
            self.reopen();
        }
        Ok(self.turn())
    }

    fn on_close(&mut self, _now: Now) {
        while self.turn() > 0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        while writer.turn() > 0 {}
        let lost: Vec<Value> = place.lines();
        let lost = lost.iter().filter(|line| line["event"] == "lost");
        assert_eq!(
            lost.map(|line| line["lines"].clone()).collect::<Vec<_>>(),
            ["100"]
        );
        assert_eq!(total(&counters, "audit_lost"), 100);
        assert_eq!(total(&counters, "audit_lines"), CAPACITY as u64);
    }

    #[test]
    fn a_disk_that_is_full_costs_lines_and_no_more() {
        let place = Place::new("disk");
        let (audit, mut writer, _, counters) = begin(&place);
        writer.out = open(Path::new("/dev/full")).unwrap();
        reloaded(&audit, "one");
        assert_eq!(writer.turn(), 1);
        assert!(writer.trouble.is_some());
        writer.out = open(&place.0).unwrap();
        reloaded(&audit, "two");
        assert_eq!(writer.turn(), 1);
        let lines = place.lines();
        assert_eq!(lines[0]["lines"], "1");
        assert_eq!(lines[1]["outcome"], "two");
        assert_eq!(total(&counters, "audit_lost"), 1);
        assert!(writer.trouble.is_none());
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
}
