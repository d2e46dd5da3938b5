//! Output of the commands: a reader that closed its end of the pipe is no error.

use fanfare_latency::figures::Figures;
use std::io::{self, Write};
use std::process::ExitCode;

/// A line on stdout. A closed pipe mutes it: the run goes on and ends as it would.
macro_rules! say {
    ($($arg:tt)*) => { $crate::print::line(std::io::stdout(), format_args!($($arg)*)) };
}

/// A line on stderr: progress and remarks, where stdout belongs to `--json`.
macro_rules! note {
    ($($arg:tt)*) => { $crate::print::line(std::io::stderr(), format_args!($($arg)*)) };
}

pub(crate) use {note, say};

pub(crate) fn line(mut to: impl Write, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(to, "{text}").and_then(|()| to.flush());
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
    if figures.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Whether the error is a write to a pipe whose reader has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut io_errors = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    io_errors.any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
