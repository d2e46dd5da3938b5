//! `fanfare top`: a running gateway in the terminal, refreshed every second.

#[cfg(feature = "top")]
mod asker;
#[cfg(feature = "top")]
mod draw;
#[cfg(feature = "top")]
mod screen;
#[cfg(feature = "top")]
mod source;
#[cfg(feature = "top")]
mod view;

use anyhow::Result;
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Monitor a running gateway: lines, sessions by lag, stages, notices, rates.
///
/// Keys: q or Ctrl-C exits, s sorts the sessions by lag, queue or name, Up and Down scroll them, p
/// pauses, + and - change the refresh interval.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The control socket: `control` of the gateway's configuration.
    #[arg(long, short, value_name = "PATH", required_unless_present = "url")]
    socket: Option<PathBuf>,
    /// The console instead: http://HOST:PORT, without TLS.
    #[arg(long, value_name = "URL", conflicts_with = "socket")]
    url: Option<String>,
    /// The file of the console's token.
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,
    /// Seconds between two frames.
    #[arg(long, value_name = "SECONDS", default_value = "1")]
    #[arg(value_parser = crate::range::whole::<u64>(1..=3600))]
    interval: u64,
    /// Print one frame as text, and exit.
    #[arg(long)]
    once: bool,
    /// Columns and lines of the frame that --once prints.
    #[arg(long, value_name = "COLUMNSxLINES", requires = "once", value_parser = size)]
    size: Option<(u16, u16)>,
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parts = text.split_once('x');
    let (columns, lines) = parts.ok_or("expected COLUMNSxLINES, such as 80x24")?;
    let part = |text: &str| match text.parse() {
        Ok(part @ 10..=1000) => Ok(part),
        _ => Err("columns and lines must be between 10 and 1000"),
    };
    Ok((part(columns)?, part(lines)?))
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    #[cfg(feature = "top")]
    return screen::run(args);
    #[cfg(not(feature = "top"))]
    let _ = args;
    #[cfg(not(feature = "top"))]
    anyhow::bail!(
        "this program is built without top: cargo build --release --package fanfare --features top"
    );
}
