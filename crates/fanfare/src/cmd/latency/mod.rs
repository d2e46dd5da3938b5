//! `fanfare latency …`: a server and a client that measure round trips of orders.

mod client;
mod server;

use anyhow::Result;
use clap::Subcommand;
use fanfare_engine::host::StoreKind;
use fanfare_engine::journal::Options;
use std::path::PathBuf;
use std::process::ExitCode;

/// Round trips of orders: a server that acknowledges each, a client that measures.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send orders and print the latency of their reports.
    Client(client::Args),
    /// Respond to each NewOrderSingle(D) with an ExecutionReport(8).
    Server(server::Args),
}

/// The store of the sessions.
#[derive(clap::Args)]
struct StoreArgs {
    /// Persist every message in a journal under this folder.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Start even if the journal has lost messages: intact messages are saved, and the damaged
    /// journal is kept beside the new one.
    #[arg(long, requires = "store")]
    accept_loss: bool,
}

impl StoreArgs {
    /// Returns the kind of the store. The segments of a journal that is measured have their full
    /// size from the start.
    fn kind(&self) -> StoreKind {
        let Some(folder) = &self.store else {
            return StoreKind::default();
        };
        let options = Options {
            accept_loss: self.accept_loss,
            ..Options::default()
        };
        StoreKind::Journal(folder.clone(), options.full_from_the_start())
    }
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Client(args) => client::run(args),
        Command::Server(args) => server::run(args),
    }
}
