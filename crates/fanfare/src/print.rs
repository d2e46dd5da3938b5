//! Output of the commands: a closed pipe is not an error, a full disk is.

use crate::background::{ERR, OUT, Queue};
use crate::progress;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The first error of a line on stdout.
static UNPRINTED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line on stdout. A closed pipe mutes it: the run continues and ends as usual. After
/// another error the run continues as well, but fails at its end.
macro_rules! say {
    ($($arg:tt)*) => { $crate::print::out(format_args!($($arg)*)) };
}

/// Prints a line on stderr: progress and remarks, since stdout belongs to `--json`.
macro_rules! note {
    ($($arg:tt)*) => { $crate::print::err(format_args!($($arg)*)) };
}

pub(crate) use {note, say};

pub(crate) fn line(mut to: impl Write, text: fmt::Arguments<'_>) -> io::Result<()> {
    writeln!(to, "{text}").and_then(|()| to.flush())
}

pub(crate) fn out(text: fmt::Arguments<'_>) {
    progress::clear();
    if OUT.is_on() {
        OUT.push(format!("{text}\n").into_bytes());
    } else {
        keep(line(io::stdout(), text));
    }
}

pub(crate) fn err(text: fmt::Arguments<'_>) {
    progress::clear();
    if ERR.is_on() {
        ERR.push(format!("{text}\n").into_bytes());
    } else {
        // An error of stderr cannot be reported anywhere.
        let _ = line(io::stderr(), text);
    }
}

/// Remarks on stderr about a feed: the first ones are shown, all are counted. A garbled feed of an
/// hour has as many errors as packets, and each line waits for the terminal.
#[derive(Debug, Default)]
pub(crate) struct Remarks(u64);

impl Remarks {
    /// The most remarks that are shown.
    const MOST: u64 = 50;

    /// Counts a remark, and prints it if it is one of the first.
    #[cold]
    pub(crate) fn push(&mut self, text: fmt::Arguments<'_>) {
        self.push_to(text, err);
    }

    fn push_to(&mut self, text: fmt::Arguments<'_>, print: impl FnOnce(fmt::Arguments<'_>)) {
        self.0 += 1;
        if self.0 <= Self::MOST {
            print(text);
        } else if self.0 == Self::MOST + 1 {
            print(format_args!(
                "fanfare: further ones of this kind are only counted"
            ));
        }
    }

    /// Returns whether there was none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// Stdout, whose errors name it, and are told from those of sockets and files: only [`is_unread`]
/// ones are no failure of the command.
#[derive(Debug, Default)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(of_stdout)
    }
}

/// The cause of a broken pipe that is stdout.
#[derive(Debug)]
struct Unread;

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads stdout")
    }
}

impl std::error::Error for Unread {}

fn of_stdout(error: io::Error) -> io::Error {
    match error.kind() {
        kind @ io::ErrorKind::BrokenPipe => io::Error::new(kind, Unread),
        kind => io::Error::new(kind, format!("cannot write to stdout: {error}")),
    }
}

/// Buffered stdout. A flush writes the buffer, in the background if lines are written there.
#[derive(Default)]
pub(crate) struct Out(Vec<u8>);

/// The size at which the buffer is written without a flush.
const PIECE: usize = 64 << 10;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > PIECE && !OUT.is_on() {
            self.flush()?;
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        progress::give_way();
        if OUT.is_on() {
            OUT.push(std::mem::take(&mut self.0));
            return Ok(());
        }
        let written = Stdout.write_all(&self.0).and_then(|()| Stdout.flush());
        self.0.clear();
        written
    }
}

/// Keeps an error of printing, for [`printed`].
pub(crate) fn keep(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = UNPRINTED.set(error);
    }
}

/// Returns the exit status of a command that returns `code`, or failure if its output could not be
/// printed.
pub(crate) fn printed(code: ExitCode) -> ExitCode {
    end_of(&OUT);
    match UNPRINTED.get() {
        None => code,
        Some(error) => {
            note!("fanfare: cannot write to stdout: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Waits until everything is written, and keeps the error of that.
fn end_of(stdout: &Queue) {
    crate::background::end();
    if let Some(error) = stdout.take_failure() {
        keep(Err(error));
    }
}

/// Writes the output before an error.
impl Drop for Out {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Prints figures, as one JSON object or as lines, and returns their exit status.
pub(crate) fn figures_out(figures: &Figures, json: bool) -> ExitCode {
    if json {
        say!("{}", figures.to_json());
    } else {
        figures
            .iter()
            .for_each(|(name, value)| say!("{name:>24} {value:14.2}"));
    }
    exit_code(figures.is_ok())
}

/// Prints the figures of a measurement as [`figures_out`] does. If `stop` was raised, they are
/// those so far, and not ok.
pub(crate) fn measured_out(mut figures: Figures, json: bool, stop: &Stop) -> ExitCode {
    if is_cut_short(stop) {
        figures.set_ok(false);
    }
    figures_out(&figures, json)
}

/// Returns whether `stop` was raised before the end of a measurement, and says so.
pub(crate) fn is_cut_short(stop: &Stop) -> bool {
    let is_raised = stop.is_raised();
    if is_raised {
        note!("interrupted: these are the figures so far");
    }
    is_raised
}

/// Returns the exit status of a command: success if `ok`.
pub(crate) fn exit_code(ok: bool) -> ExitCode {
    ExitCode::from(u8::from(!ok))
}

/// Returns whether the error is a write to stdout after its reader has gone.
pub(crate) fn is_unread(error: &anyhow::Error) -> bool {
    let io_errors = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    let mut causes = io_errors.filter_map(|error| error.get_ref());
    causes.any(|cause| cause.is::<Unread>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_feed_of_errors_is_remarked_fifty_times() {
        let (mut remarks, mut lines) = (Remarks::default(), Vec::new());
        assert!(remarks.is_empty());
        for number in 1..=60 {
            remarks.push_to(format_args!("packet {number}"), |line| {
                lines.push(line.to_string());
            });
        }
        assert!(!remarks.is_empty());
        assert_eq!(lines.len(), 51);
        assert_eq!(lines[49], "packet 50");
        assert!(lines[50].ends_with("are only counted"), "{lines:?}");
    }

    #[test]
    fn only_a_broken_pipe_of_stdout_is_no_failure() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let stdout = Err::<(), _>(of_stdout(broken())).context("cannot print");
        assert!(is_unread(&stdout.unwrap_err()));
        let socket = Err::<(), _>(broken()).context("no answer");
        assert!(!is_unread(&socket.unwrap_err()));
        let full = of_stdout(io::ErrorKind::StorageFull.into());
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let told = full.to_string();
        assert!(told.starts_with("cannot write to stdout: "), "{told}");
        assert!(!is_unread(&full.into()));
    }
}
