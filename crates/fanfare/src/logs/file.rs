//! The program's log as a file: rotated, and complete except for lines that the disk refused.

use super::Gap;
use crate::background::{ERR, Sink};
use fanfare_engine::rotate::{RotatedFile, Rotation};
use fanfare_engine::stop::Reload;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// The interval at which the file is checked while no line comes.
const LOOK: Duration = Duration::from_millis(500);
/// The pause after a failed rotation.
const ROLL_AGAIN: Duration = Duration::from_secs(60);

/// A log file that takes whole lines. A write always succeeds: lines that the disk refuses are
/// dropped and counted, and the file has their number in their place once it accepts lines again;
/// stderr reports it at once.
pub(super) struct FileLog {
    lines: Lines<RotatedFile>,
    reload: Reload,
    is_failing: bool,
    /// The time of the next attempt at a rotation that failed.
    roll_again: Option<Instant>,
}

/// The lines to a file that may accept none, or part of one.
struct Lines<W> {
    to: W,
    gap: Gap,
    /// The rest of a line of which the file accepted the beginning.
    rest: Vec<u8>,
    left_out: u64,
}

impl FileLog {
    pub(super) fn open(
        path: &Path,
        rotation: Rotation,
        reload: Reload,
        gap: Gap,
    ) -> io::Result<Self> {
        Ok(Self {
            lines: Lines {
                to: RotatedFile::open(path, rotation)?,
                gap,
                rest: Vec::new(),
                left_out: 0,
            },
            reload,
            is_failing: false,
            roll_again: None,
        })
    }

    fn tell(&self, what: &str) {
        let path = self.lines.to.path().display();
        ERR.push(format!("fanfare: log {path}: {what}\n").into_bytes());
    }

    fn note(&mut self, outcome: io::Result<()>, doing: &str) {
        if let Err(error) = outcome {
            self.tell(&format!(
                "cannot be {doing}: {error}; it goes on in the file that is open"
            ));
        }
    }

    /// Rotates the file if due, and reopens it if requested.
    fn turn(&mut self, more: usize) {
        if self.reload.is_due() {
            let outcome = self.lines.to.reopen();
            if outcome.is_ok() {
                self.roll_again = None;
            }
            self.note(outcome, "opened again");
        }
        let utc = utc();
        let now = Instant::now();
        let is_due = self.roll_again.is_none_or(|at| now >= at);
        if is_due && self.lines.to.is_over(utc, more) {
            let outcome = self.lines.to.roll(utc);
            let again = outcome.is_err().then_some(now + ROLL_AGAIN);
            if std::mem::replace(&mut self.roll_again, again).is_none() {
                self.note(outcome, "ended");
            }
        }
        if let Some(trouble) = self.lines.to.take_trouble() {
            self.tell(&trouble);
        }
    }
}

impl<W: Write> Lines<W> {
    /// Writes the rest of a partial line, the number of dropped lines, and then these.
    fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        let (taken, outcome) = write_whole(&mut self.to, &rest);
        if outcome.is_err() {
            self.rest = rest.get(taken..).unwrap_or_default().to_vec();
            self.left_out += count_lines(lines);
            return outcome;
        }
        let before = std::mem::take(&mut self.left_out);
        if before > 0 {
            let gap = (self.gap)(before, "the disk did not take them");
            let (taken, outcome) = write_whole(&mut self.to, gap.as_bytes());
            if outcome.is_err() {
                match gap.as_bytes().get(taken..) {
                    Some(rest) if taken > 0 => self.rest = rest.to_vec(),
                    _ => self.left_out = before,
                }
                self.left_out += count_lines(lines);
                return outcome;
            }
        }
        let (taken, outcome) = write_whole(&mut self.to, lines);
        let (done, behind) = lines.split_at_checked(taken).unwrap_or_default();
        // A partial line is completed as soon as there is space.
        let is_cut = done.last().is_some_and(|&last| last != b'\n');
        let end = behind.iter().position(|&byte| byte == b'\n');
        let end = end.filter(|_| is_cut).map_or(0, |at| at + 1);
        let (rest, lost) = behind.split_at_checked(end).unwrap_or_default();
        self.rest = rest.to_vec();
        self.left_out += count_lines(lost);
        outcome
    }
}

/// Writes as much as the file accepts. Returns the number of bytes.
pub(crate) fn write_whole(to: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
        match to.write(rest) {
            Ok(0) => return (taken, Err(io::ErrorKind::WriteZero.into())),
            Ok(count) => taken += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

fn utc() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

impl Write for FileLog {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.turn(lines.len());
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
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.to.flush()
    }
}

impl Sink for FileLog {
    fn period(&self) -> Option<Duration> {
        Some(LOOK)
    }

    fn look(&mut self) {
        self.turn(0);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A disk with space for this many bytes.
    #[derive(Default)]
    pub(crate) struct Disk {
        pub(crate) has: Vec<u8>,
        pub(crate) room: usize,
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

    #[test]
    fn lines_that_the_disk_does_not_take_are_counted_in_their_place() {
        // The disk fills up at any place, and frees any amount at a time from then on.
        for room in 0..40 {
            for more in 1..40 {
                let gap: Gap = Box::new(|count, _| format!("-{count}\n"));
                let mut lines = Lines {
                    to: Disk::default(),
                    gap,
                    rest: Vec::new(),
                    left_out: 0,
                };
                lines.to.room = room;
                for _ in 0..4 {
                    let _ = lines.put(b"one\ntwo\n");
                    let _ = lines.put(b"three\n");
                    lines.to.room += more;
                }
                lines.to.room = usize::MAX;
                lines.put(b"end\n").unwrap();
                let text = String::from_utf8(lines.to.has).unwrap();
                let mut accounted = 0;
                for line in text.lines() {
                    accounted += match line.strip_prefix('-') {
                        Some(count) => count.parse::<u64>().unwrap(),
                        None => {
                            assert!(["one", "two", "three", "end"].contains(&line), "{text:?}");
                            1
                        }
                    };
                }
                assert_eq!(accounted, 4 * 3 + 1, "{text:?}");
            }
        }
    }
}
