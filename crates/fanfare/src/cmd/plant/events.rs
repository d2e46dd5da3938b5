//! The market events of a gateway, as JSON lines in a file.
//!
//! A thread of its own reads the ring and writes: a slow disk does not delay the feeds. While the
//! disk takes nothing, the events stay in the ring. Those that are overwritten there become a line
//! of their own, with the first and the last number.

use crate::plural::counted;
use anyhow::{Context, Result};
use fanfare_engine::agent::{Agent, AgentError, Crew};
use fanfare_engine::idle::Idle;
use fanfare_engine::lines::{append_waiting, end_line, ends_within_a_line, is_same, write_whole};
use fanfare_engine::poll::Waker;
use fanfare_engine::reopen::Reopen;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_fix::session::Now;
use fanfare_gateway::EventReader;
use fanfare_market::Delivery;
use fanfare_market::instruments::Lookup;
use fanfare_market::json;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Messages of one duty cycle.
const TURN: usize = 256;

/// The size at which lines are written before the thread sleeps, bytes.
const PIECE: usize = 1 << 16;

/// The most bytes of a write, after each of which its events are counted: a stop sees by them that
/// the reader of a pipe is slow, but goes on.
const PART: usize = 1 << 14;

/// The longest sleep of the thread; lines are written before it.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// How long the stop waits for a file that takes nothing, such as a pipe whose reader has stopped.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A file of market events that is being written.
pub(super) struct EventLog {
    crew: Crew,
    reload: Reload,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    unwritten: AtomicU64,
}

/// The state of the thread.
struct Writer {
    events: EventReader,
    out: Output<File>,
    line: String,
}

/// The file, and the lines that it has not taken yet.
struct Output<W> {
    to: W,
    path: PathBuf,
    reopen: Reopen,
    lines: Vec<u8>,
    /// The bytes of the first line that the file has taken.
    begun: usize,
    /// Whether the file ends within a line of an earlier run, which is ended first.
    is_within: bool,
    /// The ends of the lines that are events.
    ends: Vec<usize>,
    /// Whether the file did not take all lines of the last attempt.
    is_failing: bool,
    counts: Arc<Counts>,
}

impl EventLog {
    /// Appends to the file from now on.
    ///
    /// # Errors
    /// The file cannot be opened, or is a pipe that nothing reads, or the thread cannot be started.
    pub(super) fn start(file: &Path, events: EventReader) -> Result<Self> {
        let counts = Arc::new(Counts::default());
        let reload = Reload::new();
        let out = Output::new(open(file)?, file, reload.clone(), Arc::clone(&counts));
        let writer = Writer {
            events,
            out,
            line: String::new(),
        };
        let mut crew = Crew::new(Stop::new());
        crew.spawn(writer, Idle::Wait(LONGEST_SLEEP), None)?;
        Ok(Self {
            crew,
            reload,
            counts,
        })
    }

    /// Continues in a new file of the name, if the old one was renamed.
    pub(super) fn reopen(&self) {
        self.reload.request();
    }

    /// Writes the remaining events of a gateway that has ended, as long as the file takes them.
    /// Returns a summary for the report.
    pub(super) fn stop(self) -> Result<String> {
        self.crew.stop().raise();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let mut progress = (0, Instant::now());
        let has_ended = self.crew.join_while(|| {
            let written = count(&self.counts.written);
            if progress.0 != written {
                progress = (written, Instant::now());
            }
            progress.1.elapsed() < LONGEST_WAIT
        })?;
        let written = counted(count(&self.counts.written), "event");
        if !has_ended {
            return Ok(format!(
                "{written} written, and no more, as the file takes nothing"
            ));
        }
        let (lost, unwritten) = (count(&self.counts.lost), count(&self.counts.unwritten));
        Ok(match lost + unwritten {
            0 => format!("{written} written"),
            _ => format!(
                "{written} written, {lost} lost because the file was behind, {unwritten} because \
                 it could not be written"
            ),
        })
    }
}

fn open(path: &Path) -> Result<File> {
    let file = append_waiting(path);
    file.with_context(|| format!("cannot write market events to {}", path.display()))
}

impl<W: Write> Output<W> {
    fn new(to: W, path: &Path, reload: Reload, counts: Arc<Counts>) -> Self {
        Self {
            to,
            path: path.to_owned(),
            reopen: Reopen::new(reload),
            lines: Vec::new(),
            begun: 0,
            is_within: ends_within_a_line(path),
            ends: Vec::new(),
            is_failing: false,
            counts,
        }
    }

    /// Adds a line, and writes if there are many.
    fn add(&mut self, line: &str, is_event: bool) {
        self.lines.extend_from_slice(line.as_bytes());
        self.lines.push(b'\n');
        if is_event {
            self.ends.push(self.lines.len());
        }
        if self.lines.len() >= PIECE && !self.is_failing {
            self.write();
        }
    }

    /// Counts events that were overwritten before they were read, and adds a line about them.
    fn lose(&mut self, first: u64, last: u64, line: &mut String) {
        let lost = last - first + 1;
        self.counts.lost.fetch_add(lost, Ordering::Relaxed);
        json::lost(first, last, line);
        self.add(line, false);
    }

    /// Writes the lines. Returns false if the file does not take them all; the others are kept.
    fn write(&mut self) -> bool {
        let outcome = self.put();
        let was_failing = std::mem::replace(&mut self.is_failing, outcome.is_err());
        let path = self.path.display();
        match outcome {
            Err(error) if !was_failing => {
                tracing::warn!(
                    target: "files",
                    "market events cannot be written to {path}, the next attempt follows: {error}"
                );
            }
            Ok(()) if was_failing => {
                tracing::warn!(target: "files", "market events are written to {path} again");
            }
            _ => {}
        }
        !self.is_failing
    }

    /// Writes as much of the lines as the file takes.
    fn put(&mut self) -> io::Result<()> {
        end_line(&mut self.to, &mut self.is_within)?;
        while let Some(rest) = self.lines.get(self.begun..).filter(|rest| !rest.is_empty()) {
            let part = rest.get(..PART).unwrap_or(rest);
            let (taken, outcome) = write_whole(&mut self.to, part);
            self.begun += taken;
            self.drop_written();
            outcome?;
        }
        Ok(())
    }

    /// Drops the lines that the file has taken, and counts their events.
    fn drop_written(&mut self) {
        let taken = self.lines.get(..self.begun).unwrap_or_default();
        let end = taken.iter().rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        let events = self.ends.partition_point(|&end| end <= whole);
        self.counts
            .written
            .fetch_add(events as u64, Ordering::Relaxed);
        self.ends.drain(..events);
        self.ends.iter_mut().for_each(|end| *end -= whole);
        self.lines.drain(..whole);
        self.begun -= whole;
    }

    /// Drops the lines that the file has not taken, and counts their events.
    fn give_up(&mut self) {
        let unwritten = self.ends.len() as u64;
        self.counts
            .unwritten
            .fetch_add(unwritten, Ordering::Relaxed);
        self.lines.clear();
        self.ends.clear();
        self.begun = 0;
    }
}

impl Output<File> {
    /// Opens the file at the path again, if that is due at `now`. A failure is reported once for
    /// each request; events are written to the old file until an attempt succeeds.
    fn look(&mut self, now: u64) {
        if !self.reopen.is_due(now) {
            return;
        }
        self.write();
        match open(&self.path) {
            Ok(file) => {
                self.reopen.done();
                // A new file has the whole line of which the old one took the beginning.
                if !is_same(&self.to, &file) {
                    self.begun = 0;
                    self.is_within = ends_within_a_line(&self.path);
                }
                self.to = file;
            }
            Err(error) if self.reopen.is_requested() => {
                tracing::warn!(target: "files", "{error:#}; market events go on in the old file");
            }
            Err(_) => {}
        }
    }
}

impl Writer {
    fn turn(&mut self) -> usize {
        let Self { events, out, line } = self;
        events.read(TURN, |delivery| {
            line.clear();
            match delivery {
                Delivery::End(_) | Delivery::Watermark(_) => return,
                Delivery::Restart => line.push_str(json::RESTART),
                Delivery::Event(event, directory) => {
                    let known = directory.instrument(event.instrument);
                    json::event(event, known.as_ref(), line);
                }
                Delivery::Lost { first, last } => return out.lose(first, last, line),
            }
            out.add(line, matches!(delivery, Delivery::Event(..)));
        })
    }
}

impl Agent for Writer {
    fn name(&self) -> &str {
        "events"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.out.look(now.mono);
        match self.out.is_failing {
            true => Ok(0),
            false => Ok(self.turn()),
        }
    }

    fn on_close(&mut self, _now: Now) {
        let (mut is_written, mut read) = (true, 1);
        while read > 0 {
            read = self.turn();
            if let Some((first, last)) = self.events.take_lost_at_end() {
                self.line.clear();
                self.out.lose(first, last, &mut self.line);
            }
            // Nothing is written behind events that were given up: the file would have a hole.
            is_written = is_written && self.out.write();
            if !is_written {
                self.out.give_up();
            }
        }
    }

    fn before_sleep(&mut self) {
        // While the file takes nothing, events wake nobody: the next attempt is due by time.
        if self.out.write() {
            self.events.waker().prepare_sleep();
        }
    }

    fn waker(&self) -> Option<&Waker> {
        Some(self.events.waker())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reopened::{self, Log};
    use crate::scratch::Scratch;

    /// A disk with space for this many bytes.
    #[derive(Default)]
    struct Disk {
        has: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.get(..self.room.min(bytes.len())).unwrap();
            if taken.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.has.extend_from_slice(taken);
            self.room -= taken.len();
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn output(room: usize) -> Output<Disk> {
        let disk = Disk {
            room,
            ..Disk::default()
        };
        Output::new(disk, Path::new("events"), Reload::new(), Arc::default())
    }

    fn written<W>(out: &Output<W>) -> usize {
        out.counts.written.load(Ordering::Relaxed) as usize
    }

    #[test]
    fn an_event_is_counted_once_the_disk_has_all_of_its_line() {
        // The disk fills up at any place, and frees any amount at a time from then on.
        for room in 0..30 {
            for more in 1..30 {
                let (mut out, mut all) = (output(room), String::new());
                for number in 0..9 {
                    let line = format!("event {number}");
                    out.add(&line, true);
                    out.add("restart", false);
                    all += &format!("{line}\nrestart\n");
                    let is_written = out.write();
                    let text = String::from_utf8(out.to.has.clone()).unwrap();
                    let events = text.split_inclusive('\n');
                    let events = events.filter(|line| line.len() == "event 0\n".len());
                    let events = events.filter(|line| line.starts_with("event "));
                    assert_eq!(written(&out), events.count(), "{text:?}");
                    assert_eq!(is_written, text == all);
                    out.to.room += more;
                }
                out.to.room = usize::MAX;
                assert!(out.write());
                assert_eq!(out.to.has, all.as_bytes());
                assert_eq!(written(&out), 9);
            }
        }
    }

    #[test]
    fn what_the_disk_does_not_take_at_the_end_is_counted_as_unwritten() {
        let mut out = output(12);
        (0..3).for_each(|number| out.add(&format!("event {number}"), true));
        assert!(!out.write());
        out.give_up();
        assert_eq!(written(&out), 1);
        assert_eq!(out.counts.unwritten.load(Ordering::Relaxed), 2);
        assert!(out.write());
        assert_eq!(out.to.has, b"event 0\neven");
    }

    /// A pipe, with the number of events that were counted as written before each write to it.
    struct Pipe {
        counts: Arc<Counts>,
        before: Vec<u64>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let written = self.counts.written.load(Ordering::Relaxed);
            self.before.push(written);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn events_of_a_piece_are_counted_while_the_reader_of_a_pipe_takes_it() {
        let counts = Arc::<Counts>::default();
        let pipe = Pipe {
            counts: Arc::clone(&counts),
            before: Vec::new(),
        };
        let mut out = Output::new(pipe, Path::new("events"), Reload::new(), counts);
        // Nothing is written before the last of them.
        (0..60).for_each(|_| out.add(&"x".repeat(1_000), true));
        assert!(out.write());
        let before = &out.to.before;
        let is_rising = before.is_sorted_by(|one, next| one < next);
        assert!(is_rising && before.len() > 2, "{before:?}");
        assert_eq!(written(&out), 60);
    }

    impl Log for Output<File> {
        fn begin(path: &Path, requests: Reload) -> Self {
            Self::new(open(path).unwrap(), path, requests, Arc::default())
        }

        fn open_if_due(&mut self, now: u64) {
            self.look(now);
        }

        fn put_line(&mut self, line: &str) {
            self.add(line, true);
            assert!(self.write());
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_begun_anew() {
        let out: Output<File> = reopened::after_a_rename("events-renamed");
        assert_eq!(written(&out), 3);
    }

    #[test]
    fn a_file_that_ends_within_a_line_has_the_next_event_on_a_line_of_its_own() {
        let scratch = Scratch::new("events-half").unwrap();
        let path = scratch.file("log");
        let requests = Reload::new();
        let mut out = Output::<File>::begin(&path, requests.clone());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "{\"ev").unwrap();
        requests.request();
        out.open_if_due(0);
        out.put_line("event 1");
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((text.as_str(), written(&out)), ("{\"ev\nevent 1\n", 1));
    }

    #[test]
    fn a_half_line_that_a_full_disk_never_ended_leaves_nothing_to_the_next_file() {
        let scratch = Scratch::new("events-full-half").unwrap();
        let (path, moved) = (scratch.file("log"), scratch.file("log.1"));
        std::fs::write(&path, "{\"ev").unwrap();
        let requests = Reload::new();
        let mut out = Output::<File>::begin(&path, requests.clone());
        out.to = File::options().write(true).open("/dev/full").unwrap();
        assert!(!out.write());
        std::fs::rename(&path, &moved).unwrap();
        requests.request();
        out.open_if_due(0);
        out.put_line("event 1");
        let texts = [moved, path].map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!(texts, ["{\"ev", "event 1\n"]);
    }

    #[test]
    fn a_file_whose_folder_is_missing_is_tried_again_every_minute() {
        reopened::while_the_folder_is_missing::<Output<File>>("events-missing");
    }
}
