//! `fanfare history`: queries of the log on disk.

mod book;
mod cat;
mod export;
mod info;
mod ls;
mod range;
mod raw;
mod repair;
mod verify;

use anyhow::ensure;
use clap::Subcommand;
use fanfare_history::Log;
use std::path::PathBuf;
use std::process::ExitCode;

/// The commands of `fanfare history`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ls(ls::Args),
    Info(info::Args),
    Cat(cat::Args),
    Book(book::Args),
    Export(export::Args),
    Raw(raw::Args),
    Repair(repair::Args),
    Verify(verify::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Ls(args) => ls::run(args),
        Command::Info(args) => info::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Book(args) => book::run(args),
        Command::Export(args) => export::run(args),
        Command::Raw(args) => raw::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// The folder of a log.
#[derive(Debug, clap::Args)]
struct Place {
    /// Folder of the log: `history.folder` of a gateway.
    #[arg(value_name = "DIR", default_value = "log")]
    folder: PathBuf,
}

impl Place {
    fn open(&self) -> anyhow::Result<Log> {
        Ok(Log::open(&self.folder)?)
    }

    /// Opens a log of market events.
    fn open_events(&self) -> anyhow::Result<Log> {
        let log = self.open()?;
        // A segment that cannot be read is reported by its reader.
        ensure!(
            !log.is_raw().unwrap_or(false),
            "`{}` is a raw log, of datagrams and messages: `fanfare history raw` prints it",
            self.folder.display()
        );
        Ok(log)
    }
}

/// Returns a number of entries of a raw log: "1 datagram or message", "2 datagrams and messages".
fn raw_entries(n: u64) -> String {
    match n {
        1 => "1 datagram or message".to_owned(),
        n => format!("{n} datagrams and messages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_entry_of_a_raw_log_is_a_datagram_or_a_message() {
        let told = [0, 1, 2].map(raw_entries);
        let expected = [
            "0 datagrams and messages",
            "1 datagram or message",
            "2 datagrams and messages",
        ];
        assert_eq!(told, expected);
    }
}
