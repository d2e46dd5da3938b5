//! `fanfare ctl`: queries and controls a running program over its control socket.

mod asked;
mod show;

use anyhow::{Context, Result};
use asked::Asked;
use clap::Args as ClapArgs;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::print::{note, say};

/// The longest time to a response: a reload waits for the sessions that it ends.
const PATIENCE: Duration = Duration::from_secs(90);
/// The exit status of wrong usage.
const USAGE: u8 = 2;

/// Query and control a running gateway, `fix acceptor` or `fix initiator` over its control socket.
///
/// A command that the program does not have, or a field that it does not take, is wrong usage.
///
/// Exit status: 0 done, 1 failed (one sentence on stderr states why), 2 wrong usage.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The control socket: `control` of a gateway's configuration, `--control` of `fix acceptor`
    /// and `fix initiator`.
    #[arg(long, short, value_name = "PATH")]
    socket: PathBuf,
    /// Print the response as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    asked: Asked,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let answer = ask(args).with_context(|| args.socket.display().to_string())?;
    if answer["ok"] != true {
        let why = show::text(&answer["error"]);
        note!("fanfare: {}: {why}", args.socket.display());
        return Ok(match answer["fault"] == "usage" {
            true => ExitCode::from(USAGE),
            false => ExitCode::FAILURE,
        });
    }
    let result = &answer["result"];
    match args.json {
        true => say!("{result}"),
        false => show::show(result),
    }
    Ok(ExitCode::SUCCESS)
}

/// Sends the command and returns its result.
fn ask(args: &Args) -> Result<Value> {
    let mut stream = UnixStream::connect(&args.socket).context("cannot connect")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The response "too many connections" may already have arrived.
    let sent = stream.write_all(format!("{}\n", args.asked.request()).as_bytes());
    let mut line = String::new();
    let read = BufReader::new(stream).read_line(&mut line);
    read.and(sent).context("no answer")?;
    serde_json::from_str(&line).context("no answer")
}
