//! `fanfare throughput initiator`: sends orders, and persists them.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::throughput::{InitiatorOptions, Initiators};
use std::net::SocketAddr;
use std::process::ExitCode;

use super::options::{Load, Store, sessions};
use crate::address::resolve;
use crate::print::{figures_out, note};
use crate::scratch::Scratch;

/// Options of `fanfare throughput initiator`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The acceptor's host: a name or an address.
    host: String,
    /// The acceptor's port, or ports if it has several threads; sessions are distributed
    /// round-robin.
    #[arg(value_name = "PORT", default_value = "7070", num_args = 1..)]
    ports: Vec<u16>,
    /// Sessions: BUY-1 to BUY-N as SenderCompID, SELL as TargetCompID.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = sessions())]
    sessions: usize,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    store: Store,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let addresses: Result<Vec<SocketAddr>> = args
        .ports
        .iter()
        .map(|&port| resolve(&args.host, port))
        .collect();
    // `throughput run` passes a folder of its own, so that none is left when it kills this process.
    let scratch;
    let base = match &args.store.store {
        Some(folder) => folder.clone(),
        None => {
            scratch =
                Scratch::new("throughput").context("cannot make a folder for the journals")?;
            scratch.file("journals")
        }
    };
    let initiators = Initiators::open(&InitiatorOptions {
        sessions: args.sessions,
        messages: args.load.messages,
        orders: args.load.orders()?,
        addresses: addresses?,
        store: args.store.kind(&base, args.sessions),
        threads: args.load.threads,
    })?;
    let sent = initiators.run(&stop)?;
    if let Some(trouble) = &sent.trouble {
        note!("{trouble}");
    }
    let mut figures = Figures::new("throughput initiator");
    figures.count("sent", sent.orders);
    figures.count("segment_stalls", sent.stalls);
    figures.set_ok(sent.complete && sent.trouble.is_none());
    Ok(figures_out(&figures, args.load.json))
}
