//! Whole lines to a file that may refuse them, as one on a full disk does.

use crate::{private, sys};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The writer of whole lines to a file that may accept none, or part of one.
///
/// Lines that the file refuses are dropped and counted, and a line with their number takes their
/// place as soon as the file accepts it. A line of which the file has taken the beginning is
/// completed first.
pub struct Lines<W> {
    to: W,
    gap: Gap,
    begun: Begun,
    /// Whether the file ends within a line of an earlier run, which is ended first.
    is_within: bool,
    /// The number of dropped lines that no line of the file reports yet.
    untold: u64,
    written: u64,
    lost: u64,
}

/// The function that makes the line in the place of dropped lines, from their number.
type Gap = Box<dyn Fn(u64) -> Vec<u8> + Send>;

/// A line of which the file has taken the beginning; empty without one.
#[derive(Default)]
struct Begun {
    line: Vec<u8>,
    /// The bytes that the file has taken.
    taken: usize,
    /// Whether the line stands for dropped ones.
    is_gap: bool,
}

impl<W: Write> Lines<W> {
    /// Makes a writer to a file that ends with a whole line; to another one,
    /// [`end_line`](Self::end_line) comes first. `gap` makes the line, with its end,
    /// that takes the place of dropped lines, from their number.
    pub fn new(to: W, gap: impl Fn(u64) -> Vec<u8> + Send + 'static) -> Self {
        Self {
            to,
            gap: Box::new(gap),
            begun: Begun::default(),
            is_within: false,
            untold: 0,
            written: 0,
            lost: 0,
        }
    }

    /// Writes lines, each with its end, after those that wait. Without lines, tries again to write
    /// those that wait.
    ///
    /// # Errors
    /// The file does not accept all lines: those of which it has taken nothing are dropped.
    pub fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.catch_up() {
            self.leave_out(count(lines));
            return Err(error);
        }
        let (kept, outcome) = self.write(lines, false);
        self.leave_out(count(lines.get(kept..).unwrap_or_default()));
        outcome
    }

    /// Counts lines that were dropped before they came here.
    pub const fn leave_out(&mut self, lines: u64) {
        self.untold += lines;
        self.lost += lines;
    }

    /// Continues in another file. `change` replaces the file, and returns whether it is another
    /// one: that has the whole line of which the old one has taken the beginning.
    pub fn switch(&mut self, change: impl FnOnce(&mut W) -> bool) {
        // The old file may take the rest by now.
        let _ = self.put(b"");
        if change(&mut self.to) {
            self.begun.taken = 0;
            self.is_within = false;
        }
    }

    /// Ends the line within which the file ends, before anything else is written to it. To be
    /// called for a file that others have written, before the first line.
    pub const fn end_line(&mut self) {
        self.is_within = true;
    }

    /// Returns the file.
    pub const fn get_ref(&self) -> &W {
        &self.to
    }

    /// Returns the file. It is replaced by [`switch`](Self::switch) alone.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.to
    }

    /// Returns the number of lines that the file has taken whole, without those for dropped ones.
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Returns the number of dropped lines.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Completes the line that the file has begun, and writes the number of dropped lines.
    fn catch_up(&mut self) -> io::Result<()> {
        self.complete()?;
        if self.untold == 0 {
            return Ok(());
        }
        let gap = (self.gap)(self.untold);
        let (kept, outcome) = self.write(&gap, true);
        if kept > 0 {
            self.untold = 0;
        }
        outcome
    }

    fn complete(&mut self) -> io::Result<()> {
        end_line(&mut self.to, &mut self.is_within)?;
        let Begun {
            line,
            taken,
            is_gap,
        } = &mut self.begun;
        let rest = line.get(*taken..).unwrap_or_default();
        let (more, outcome) = write_whole(&mut self.to, rest);
        *taken += more;
        if outcome.is_ok() {
            if !*is_gap {
                self.written += count(line);
            }
            self.begun = Begun::default();
        }
        outcome
    }

    /// Writes lines, and keeps one of which the file takes only the beginning. Returns the bytes of
    /// the lines that are written or kept.
    fn write(&mut self, lines: &[u8], is_gap: bool) -> (usize, io::Result<()>) {
        let is_end = |&byte: &u8| byte == b'\n';
        let (taken, outcome) = write_whole(&mut self.to, lines);
        let (done, rest) = lines.split_at_checked(taken).unwrap_or_default();
        if !is_gap {
            self.written += count(done);
        }
        let start = done.iter().rposition(is_end).map_or(0, |at| at + 1);
        if start == taken {
            return (taken, outcome);
        }
        let end = rest.iter().position(is_end);
        let end = end.map_or(lines.len(), |at| taken + at + 1);
        self.begun = Begun {
            line: lines.get(start..end).unwrap_or_default().to_vec(),
            taken: taken - start,
            is_gap,
        };
        (end, outcome)
    }
}

/// Writes as much as the file accepts. Returns the number of bytes.
pub fn write_whole(to: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
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

/// Ends the line within which a file ends, if `is_within` is set, and clears it.
///
/// # Errors
/// The file does not accept the end: `is_within` stays set.
pub fn end_line(to: &mut impl Write, is_within: &mut bool) -> io::Result<()> {
    if *is_within {
        write_whole(to, b"\n").1?;
        *is_within = false;
    }
    Ok(())
}

/// Opens a file to append lines to, and makes it with mode 0600 if it does not exist. The rights of
/// other users on an existing one are removed, where the system permits it. A device or a pipe is
/// left as it is.
///
/// # Errors
/// The file cannot be opened.
pub fn append_to(path: &Path) -> io::Result<File> {
    append(path, 0)
}

/// Does what [`append_to`] does, and waits for no reader of a pipe: neither here nor in a write, as
/// a pipe that is full refuses lines like a full disk.
///
/// # Errors
/// The file cannot be opened, or is a pipe that nothing reads ([`io::ErrorKind::NotConnected`]).
pub fn append_at_once(path: &Path) -> io::Result<File> {
    append(path, libc::O_NONBLOCK).map_err(|error| unread(path, error))
}

/// Opens a file to append lines to, and makes it if it does not exist. Leaves its rights as they
/// are. Waits for no reader of a pipe, though a write to a pipe that is full waits.
///
/// # Errors
/// Those of [`append_at_once`].
pub fn append_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let at_once = options.append(true).custom_flags(libc::O_NONBLOCK);
    let file = at_once.create(true).open(path);
    let file = file.map_err(|error| unread(path, error))?;
    sys::file::wait(file.as_fd())?;
    Ok(file)
}

/// Returns the error of opening a pipe that nothing reads in its own words.
fn unread(path: &Path, error: io::Error) -> io::Error {
    let is_pipe = || std::fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo());
    match error.raw_os_error() {
        // The system's text is about devices. A socket has the same error.
        Some(libc::ENXIO) if is_pipe() => io::Error::new(
            io::ErrorKind::NotConnected,
            "it is a pipe that nothing reads",
        ),
        _ => error,
    }
}

fn append(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = private::file_options();
    options.append(true).create(true).custom_flags(flags);
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        private::close_file_to_others(&file)?;
    }
    Ok(file)
}

/// Returns whether both are the same file, whatever its names.
#[must_use]
pub fn is_same(one: &File, other: &File) -> bool {
    let id = |file: &File| file.metadata().map(|data| (data.dev(), data.ino())).ok();
    id(one) == id(other)
}

/// Returns whether the file of this path ends within a line, as one does whose writer was cut off.
#[must_use]
pub fn ends_within_a_line(path: &Path) -> bool {
    let last = || {
        // A FIFO is not opened: that would wait.
        let len = std::fs::metadata(path)
            .ok()
            .filter(|of| of.is_file())?
            .len();
        let mut last = [0];
        let file = File::open(path).ok()?;
        file.read_exact_at(&mut last, len.checked_sub(1)?).ok()?;
        Some(last != *b"\n")
    };
    last().unwrap_or(false)
}

fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with space for this many bytes.
    #[derive(Default)]
    struct Disk {
        has: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = &bytes[..self.room.min(bytes.len())];
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

    fn lines(room: usize) -> Lines<Disk> {
        let disk = Disk {
            room,
            ..Disk::default()
        };
        Lines::new(disk, |count| format!("-{count}\n").into_bytes())
    }

    /// Writes the last line to a disk with space for it, and checks that each of `sent` lines is in
    /// one of the files or counted there, and that the counts are those of the files.
    fn check(mut lines: Lines<Disk>, mut files: Vec<Vec<u8>>, sent: u64) {
        lines.get_mut().room = usize::MAX;
        lines.put(b"end\n").unwrap();
        let (mut written, mut lost) = (0, 0);
        files.push(std::mem::take(&mut lines.get_mut().has));
        for file in &files {
            let text = str::from_utf8(file).unwrap();
            // The end of a full disk may be within a line.
            let whole = text.rfind('\n').map_or(0, |at| at + 1);
            for line in text[..whole].lines() {
                match line.strip_prefix('-') {
                    Some(count) => lost += count.parse::<u64>().unwrap(),
                    None => {
                        assert!(["one", "two", "three", "end"].contains(&line), "{files:?}");
                        written += 1;
                    }
                }
            }
        }
        assert_eq!(written + lost, sent + 1, "{files:?}");
        assert_eq!((lines.written(), lines.lost()), (written, lost));
    }

    #[test]
    fn lines_that_the_disk_does_not_take_are_counted_in_their_place() {
        // The disk fills up at any place, and frees any amount at a time from then on.
        for room in 0..40 {
            for more in 1..40 {
                let mut lines = lines(room);
                for _ in 0..4 {
                    let _ = lines.put(b"one\ntwo\n");
                    let _ = lines.put(b"three\n");
                    lines.get_mut().room += more;
                }
                check(lines, Vec::new(), 4 * 3);
            }
        }
    }

    #[test]
    fn a_new_file_begins_with_a_whole_line() {
        for room in 0..40 {
            for more in 0..20 {
                let (mut lines, mut files) = (lines(room), Vec::new());
                for _ in 0..4 {
                    let _ = lines.put(b"one\ntwo\n");
                    let _ = lines.put(b"three\n");
                    lines.switch(|to| {
                        files.push(std::mem::take(&mut to.has));
                        to.room = more;
                        true
                    });
                }
                check(lines, files, 4 * 3);
            }
        }
    }

    #[test]
    fn a_file_that_is_opened_again_has_the_rest_of_its_line() {
        let mut lines = lines(2);
        assert!(lines.put(b"one\ntwo\n").is_err());
        lines.switch(|to| {
            to.room = 8;
            false
        });
        assert_eq!((lines.written(), lines.lost()), (0, 1));
        lines.put(b"").unwrap();
        assert_eq!(lines.get_ref().has, b"one\n-1\n");
        assert_eq!((lines.written(), lines.lost()), (1, 1));
    }

    #[test]
    fn a_line_of_an_earlier_run_is_ended_before_the_first_one() {
        let mut lines = lines(0);
        lines.get_mut().has = b"ol".to_vec();
        lines.end_line();
        assert!(lines.put(b"one\n").is_err());
        lines.get_mut().room = usize::MAX;
        lines.put(b"two\n").unwrap();
        assert_eq!(lines.get_ref().has, b"ol\n-1\ntwo\n");
        assert_eq!((lines.written(), lines.lost()), (1, 1));
    }

    #[test]
    fn a_next_file_that_ends_within_a_line_has_the_whole_line_that_was_begun() {
        let mut lines = lines(2);
        assert!(lines.put(b"one\n").is_err());
        lines.switch(|to| {
            to.has = b"ol".to_vec();
            to.room = usize::MAX;
            true
        });
        lines.end_line();
        lines.put(b"two\n").unwrap();
        assert_eq!(lines.get_ref().has, b"ol\none\ntwo\n");
        assert_eq!((lines.written(), lines.lost()), (2, 0));
    }

    #[test]
    fn a_file_that_ends_within_a_line_is_told_from_others() {
        let name = format!("fanfare-lines-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        for (text, is_within) in [
            ("", false),
            ("{\"a\":1}\n", false),
            ("{\"a\":1}\n{\"a", true),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(ends_within_a_line(&path), is_within, "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(!ends_within_a_line(&path));
    }

    #[test]
    fn lines_dropped_elsewhere_are_counted_before_the_next_one() {
        let mut lines = lines(usize::MAX);
        lines.leave_out(7);
        lines.put(b"one\n").unwrap();
        assert_eq!(lines.get_ref().has, b"-7\none\n");
        assert_eq!((lines.written(), lines.lost()), (1, 7));
    }

    #[test]
    fn a_socket_is_not_called_a_pipe() {
        let name = format!("fanfare-lines-socket-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = append_at_once(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
        drop(socket);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pipe_is_opened_and_written_without_a_wait_for_its_reader() {
        let name = format!("fanfare-lines-pipe-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let unread = append_at_once(&path).unwrap_err();
        assert_eq!(unread.kind(), io::ErrorKind::NotConnected);
        assert_eq!(unread.to_string(), "it is a pipe that nothing reads");
        let reader = crate::poll::open(&path).unwrap();
        let mut pipe = append_at_once(&path).unwrap();
        let (taken, full) = write_whole(&mut pipe, &vec![b'x'; 1 << 22]);
        assert!(taken > 0);
        assert_eq!(full.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(reader);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_pipe_is_opened_without_a_wait_for_its_reader_and_written_with_one() {
        let name = format!("fanfare-lines-waiting-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let unread = append_waiting(&path).unwrap_err();
        assert_eq!(unread.to_string(), "it is a pipe that nothing reads");
        let first = crate::poll::open(&path).unwrap();
        let mut pipe = append_waiting(&path).unwrap();
        let second = File::open(&path).unwrap();
        drop(first);
        // Much more than a pipe has room for.
        let all = 1 << 22;
        let reader = std::thread::spawn(move || io::copy(&mut &second, &mut io::sink()));
        let (taken, outcome) = write_whole(&mut pipe, &vec![b'x'; all]);
        drop(pipe);
        outcome.unwrap();
        let read = reader.join().unwrap().unwrap();
        assert_eq!((taken as u64, read), (all as u64, all as u64));
        std::fs::remove_file(&path).unwrap();
    }
}
