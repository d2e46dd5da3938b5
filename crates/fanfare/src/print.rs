//! Output of the commands: a reader that closed its end of the pipe is no error, a full disk is.

use crate::background::{ERR, OUT, Queue};
use crate::progress;
use fanfare_instruments::figures::Figures;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Why a line could not be printed on stdout, for the first one that could not.
static UNPRINTED: OnceLock<io::Error> = OnceLock::new();

/// A line on stdout. A closed pipe mutes it: the run goes on and ends as it would. Where it cannot
/// be written the run goes on as well, but has failed.
macro_rules! say {
    ($($arg:tt)*) => { $crate::print::out(format_args!($($arg)*)) };
}

/// A line on stderr: progress and remarks, where stdout belongs to `--json`.
macro_rules! note {
    ($($arg:tt)*) => { $crate::print::err(format_args!($($arg)*)) };
}

pub(crate) use {note, say};

pub(crate) fn line(mut to: impl Write, text: std::fmt::Arguments<'_>) -> io::Result<()> {
    writeln!(to, "{text}").and_then(|()| to.flush())
}

pub(crate) fn out(text: std::fmt::Arguments<'_>) {
    progress::clear();
    if OUT.is_on() {
        OUT.push(format!("{text}\n").into_bytes());
    } else {
        keep(line(io::stdout(), text));
    }
}

pub(crate) fn err(text: std::fmt::Arguments<'_>) {
    progress::clear();
    if ERR.is_on() {
        ERR.push(format!("{text}\n").into_bytes());
    } else {
        // An error of stderr cannot be reported anywhere.
        let _ = line(io::stderr(), text);
    }
}

/// Buffered stdout. A flush writes what has been buffered, in the background if lines are
/// written there.
#[derive(Default)]
pub(crate) struct Out(Vec<u8>);

/// Bytes that are buffered before they are written without a flush.
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
        let mut stdout = io::stdout();
        let written = stdout.write_all(&self.0).and_then(|()| stdout.flush());
        self.0.clear();
        written
    }
}

/// Keeps in mind that something could not be printed, for [`printed`].
pub(crate) fn keep(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = UNPRINTED.set(error);
    }
}

/// The exit status of a command that gives `code`, if all that it said could be printed.
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

/// Waits until everything is written, and keeps the error if it could not be.
fn end_of(stdout: &Queue) {
    crate::background::end();
    if let Some(error) = stdout.take_failure() {
        keep(Err(error));
    }
}

/// Writes what was printed before an error.
impl Drop for Out {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Prints figures, as one JSON object or as lines, and gives the exit status they ask for.
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

/// What a command ends with: success if all was in order.
pub(crate) fn exit_code(ok: bool) -> ExitCode {
    ExitCode::from(u8::from(!ok))
}

/// Whether the error is a write to a pipe whose reader has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut io_errors = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    io_errors.any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
