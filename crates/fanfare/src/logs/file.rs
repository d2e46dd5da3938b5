//! The program's log as a file: rotated, and complete except for lines that the disk refused.

use super::Gap;
use crate::background::{ERR, Sink};
use fanfare_engine::clock;
use fanfare_engine::lines::{Lines, ends_within_a_line};
use fanfare_engine::reopen::Reopen;
use fanfare_engine::rotate::{RotatedFile, Rotation};
use fanfare_engine::stop::Reload;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The interval at which the file is checked while no line comes.
const LOOK: Duration = Duration::from_millis(500);

/// A log file that takes whole lines. A write always succeeds: lines that the disk refuses are
/// dropped and counted, and the file has their number in their place once it accepts lines again;
/// stderr reports it at once.
pub(super) struct FileLog {
    lines: Lines<RotatedFile>,
    is_failing: bool,
    /// The monotonic time of the next attempt at a rotation that failed, in nanoseconds.
    roll_again: Option<u64>,
    reopen: Reopen,
}

impl FileLog {
    pub(super) fn open(
        path: &Path,
        rotation: Rotation,
        reload: Reload,
        gap: Gap,
    ) -> io::Result<Self> {
        let is_cut = ends_within_a_line(path);
        let file = RotatedFile::open(path, rotation)?;
        let gap = move |count| gap(count, "the disk did not take them").into_bytes();
        let mut lines = Lines::new(file, gap);
        if is_cut {
            lines.end_line();
        }
        Ok(Self {
            lines,
            is_failing: false,
            roll_again: None,
            reopen: Reopen::new(reload),
        })
    }

    fn tell(&self, what: &str) {
        let path = self.lines.get_ref().path().display();
        ERR.push(format!("fanfare: log {path}: {what}\n").into_bytes());
    }

    fn note(&mut self, outcome: io::Result<()>, doing: &str) {
        if let Err(error) = outcome {
            self.tell(&format!(
                "cannot be {doing}: {error}; it goes on in the file that is open"
            ));
        }
    }

    /// Opens the file again if due, and rotates it if that is due before `more` bytes are written.
    /// `now` is monotonic, in nanoseconds.
    fn turn(&mut self, now: u64, more: usize) {
        if self.reopen.is_due(now) {
            let outcome = self.switch(RotatedFile::reopen);
            if self.reopen.is_requested() {
                self.note(outcome, "opened again");
            }
        }
        let utc = utc();
        let is_due = self.roll_again.is_none_or(|at| now >= at);
        if is_due && self.lines.get_mut().is_over(utc, more) {
            let outcome = self.switch(|file| file.roll(utc));
            let again = now.saturating_add(Reopen::INTERVAL);
            let again = outcome.is_err().then_some(again);
            if std::mem::replace(&mut self.roll_again, again).is_none() {
                self.note(outcome, "ended");
            }
        }
        if let Some(trouble) = self.lines.get_ref().take_trouble() {
            self.tell(&trouble);
        }
    }

    /// Replaces the file.
    fn switch(
        &mut self,
        change: impl FnOnce(&mut RotatedFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let (mut outcome, mut is_other) = (Ok(()), false);
        self.lines.switch(|file| {
            outcome = change(file);
            is_other = file.take_change();
            is_other
        });
        if is_other && ends_within_a_line(self.lines.get_ref().path()) {
            self.lines.end_line();
        }
        if outcome.is_ok() {
            self.roll_again = None;
            self.reopen.done();
        }
        outcome
    }

    /// Writes lines, and those that the file did not accept before.
    fn put(&mut self, lines: &[u8]) {
        let outcome = self.lines.put(lines);
        let was_failing = std::mem::replace(&mut self.is_failing, outcome.is_err());
        match outcome {
            Err(error) if !was_failing => {
                self.tell(&format!(
                    "{error}; lines are left out and counted until it takes them"
                ));
            }
            Ok(()) if was_failing => self.tell("writable again"),
            _ => {}
        }
    }
}

fn utc() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

impl Write for FileLog {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.turn(clock::monotonic(), lines.len());
        self.put(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.get_mut().flush()
    }
}

impl Sink for FileLog {
    fn period(&self) -> Option<Duration> {
        Some(LOOK)
    }

    fn look(&mut self) {
        self.turn(clock::monotonic(), 0);
        self.put(b"");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reopened::{self, Log};

    impl Log for FileLog {
        fn begin(path: &Path, requests: Reload) -> Self {
            let gap = Box::new(|count: u64, why: &str| format!("-{count}: {why}\n"));
            Self::open(path, Rotation::default(), requests, gap).unwrap()
        }

        fn open_if_due(&mut self, now: u64) {
            self.turn(now, 0);
        }

        fn put_line(&mut self, line: &str) {
            self.put(format!("{line}\n").as_bytes());
        }
    }

    #[test]
    fn a_file_that_was_renamed_is_begun_anew() {
        reopened::after_a_rename::<FileLog>("log-renamed");
    }

    #[test]
    fn a_file_whose_folder_is_missing_is_tried_again_every_minute() {
        reopened::while_the_folder_is_missing::<FileLog>("log-missing");
    }
}
