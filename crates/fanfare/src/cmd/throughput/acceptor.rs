//! `fanfare throughput acceptor`: receives orders and checks them.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::throughput::{AcceptorOptions, Acceptors};
use std::net::IpAddr;
use std::process::ExitCode;

use super::options::{Load, sessions};
use crate::print::{figures_out, note};

/// Options of `fanfare throughput acceptor`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Sessions: BUY-1 to BUY-N as SenderCompID, SELL as TargetCompID.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = sessions())]
    sessions: usize,
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    address: IpAddr,
    /// Port to listen on; with more threads the following ones too. 0: the system chooses.
    #[arg(long, value_name = "PORT", default_value_t = 7070)]
    port: u16,
    #[command(flatten)]
    load: Load,
}

/// The prefix of the line on stderr with the address it listens on.
pub(super) const LISTENING: &str = "listening on ";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let acceptors = Acceptors::listen(&AcceptorOptions {
        sessions: args.sessions,
        messages: args.load.messages,
        orders: args.load.orders()?,
        address: args.address,
        port: args.port,
        threads: args.load.threads,
    })?;
    let addresses: Vec<String> = acceptors
        .addresses()
        .iter()
        .map(ToString::to_string)
        .collect();
    note!("{LISTENING}{}", addresses.join(" "));
    let (tally, trouble) = acceptors.run(&stop)?;
    if let Some(trouble) = trouble {
        note!("{trouble}");
    }
    let mut figures = Figures::new("throughput acceptor");
    figures.count("received", tally.received);
    figures.count("lost", tally.lost);
    figures.count("wrong", tally.wrong);
    figures.add("rate_per_s", tally.rate());
    if let Some((t1, t2)) = tally.span {
        figures.count("t1_ns", t1);
        figures.count("t2_ns", t2);
    }
    figures.set_ok(tally.is_clean());
    Ok(figures_out(&figures, args.load.json))
}
