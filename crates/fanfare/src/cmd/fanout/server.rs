//! `fanfare fanout server`: the gateway as a service, with an optional capture of its traffic.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_gateway::{Config, Threads};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::cmd::plant::{self, When};
use crate::logs::LogArgs;
use crate::range::whole;

/// Options of `fanfare fanout server`.
#[derive(Debug, ClapArgs)]
#[group(skip)] // `dds bridge` has these options too
pub(crate) struct Args {
    /// Fan-out workers, 1 to 64, each with its own group of consumers; several have a thread each
    /// [default: 1].
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=64))]
    workers: Option<usize>,
    /// A thread for each worker and one for the rest, even if there is one worker.
    #[arg(long)]
    dedicated: bool,
    /// One thread for all workers and the rest, even if there are several (pays off with one or two
    /// cores).
    #[arg(long, conflicts_with = "dedicated")]
    shared: bool,
    /// Most connections at a time on each of the two ports, logged on or not, 1 to 100000
    /// [default: 4096].
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=100_000))]
    max_sessions: Option<usize>,
    /// Capture the traffic of both ports into this file (needs the right to capture).
    #[arg(long, value_name = "FILE.pcap")]
    capture: Option<PathBuf>,
    /// TOML configuration; the other options take precedence over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, for both ports [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Allow anyone to log on to both ports, from other machines too; otherwise --bind needs users
    /// in the configuration.
    #[arg(long)]
    open: bool,
    /// Port for producers; 0 lets the system choose [default: 3000].
    #[arg(long, value_name = "PORT")]
    producer_port: Option<u16>,
    /// Port for consumers; 0 lets the system choose [default: 3001].
    #[arg(long, value_name = "PORT")]
    consumer_port: Option<u16>,
    /// Log warnings and errors only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = args.configuration(When::Start)?;
    let reread = || args.configuration(When::Reload);
    plant::run(&config, args.quiet, &args.log, &reread)
}

impl Args {
    /// Returns the configuration of the file, or the default one, overridden by the options.
    pub(crate) fn configuration(&self, when: When) -> Result<Config> {
        let mut config = match &self.config {
            Some(path) => plant::read(path, when)?,
            None => Config::default(),
        };
        if let Some(workers) = self.workers {
            config.workers = workers;
        }
        if self.dedicated {
            config.threads = Threads::Dedicated;
        }
        if self.shared {
            config.threads = Threads::Shared;
        }
        if let Some(most) = self.max_sessions {
            config.producers.max_sessions = most;
            config.consumers.max_sessions = most;
        }
        if let Some(bind) = self.bind {
            config.producers.bind = bind;
            config.consumers.bind = bind;
        }
        if self.open {
            config.producers.open = true;
            config.consumers.open = true;
        }
        if let Some(port) = self.producer_port {
            config.producers.port = port;
        }
        if let Some(port) = self.consumer_port {
            config.consumers.port = port;
        }
        if let Some(file) = &self.capture {
            config.capture = Some(file.clone());
        }
        config.check()?;
        plant::check_outputs(&config, self.config.as_deref())?;
        Ok(config)
    }
}
