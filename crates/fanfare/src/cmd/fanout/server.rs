//! `fanfare fanout server`: the gateway as a service, with a capture of its traffic if asked for.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, Threads, descriptors_wanted};
use fanfare_latency::capture::{Capture, CaptureOptions};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::print::{note, say};

/// Options of `fanfare fanout server`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Fan-out workers, each with its own group of consumers [default: 1].
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// A thread for each worker instead of one for all (pays with more than two cores).
    #[arg(long)]
    dedicated: bool,
    /// Capture the traffic of both ports into this file (needs the right to capture).
    #[arg(long, value_name = "FILE.pcap")]
    capture: Option<PathBuf>,
    /// TOML configuration; the other options take precedence over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, for both ports [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Port for producers; 0 lets the system choose [default: 3000].
    #[arg(long, value_name = "PORT")]
    producer_port: Option<u16>,
    /// Port for consumers; 0 lets the system choose [default: 3001].
    #[arg(long, value_name = "PORT")]
    consumer_port: Option<u16>,
    /// Print only sessions that end in another way than by a Logout.
    #[arg(long, short)]
    quiet: bool,
}

/// How often the sessions that came and went are printed.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let config = configuration(args)?;
    let wanted = descriptors_wanted(&config.producers, &config.consumers);
    let files = raise_open_files(wanted).context("cannot read the limit of open files")?;
    if files < wanted {
        note!(
            "the system allows {files} open files: about {} sessions",
            files.saturating_sub(64)
        );
    }
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    say!(
        "Launching {} message dispatcher {}",
        config.workers,
        plural(config.workers, "worker")
    );
    let gateway = Gateway::start(&config, stop.clone())?;
    say!("Listening for producers on {}", gateway.producers());
    say!("Listening for consumers on {}", gateway.consumers());
    let capture = start_capture(args, &gateway);
    while !stop.is_raised() {
        print_notices(args, &gateway);
        std::thread::sleep(LOOK);
    }
    print_notices(args, &gateway);
    report(&gateway);
    gateway.join()?;
    if let Some(capture) = capture {
        stop_capture(capture)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Without the right to capture, the gateway runs all the same.
fn start_capture(args: &Args, gateway: &Gateway) -> Option<Capture> {
    let file = args.capture.as_ref()?;
    let ports = [gateway.producers().port(), gateway.consumers().port()];
    match Capture::start(CaptureOptions::new(file, &ports)) {
        Ok(capture) => {
            say!(
                "Capturing ports {} and {} into {}",
                ports[0],
                ports[1],
                file.display()
            );
            Some(capture)
        }
        Err(e) => {
            note!("warning: {e}; running without a capture");
            None
        }
    }
}

fn stop_capture(capture: Capture) -> Result<()> {
    let stats = capture.stop()?;
    say!("{} packets captured", stats.captured);
    say!("{} packets received by filter", stats.received);
    say!("{} packets dropped by kernel", stats.dropped);
    Ok(())
}

/// The configuration of the file, or the default one, with the options on top.
fn configuration(args: &Args) -> Result<Config> {
    let mut config = match &args.config {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Config::from_toml(&text).with_context(|| path.display().to_string())?
        }
        None => Config::default(),
    };
    if let Some(workers) = args.workers {
        config.workers = workers;
    }
    if args.dedicated {
        config.threads = Threads::Dedicated;
    }
    if let Some(bind) = args.bind {
        config.producers.bind = bind;
        config.consumers.bind = bind;
    }
    if let Some(port) = args.producer_port {
        config.producers.port = port;
    }
    if let Some(port) = args.consumer_port {
        config.consumers.port = port;
    }
    Ok(config)
}

fn print_notices(args: &Args, gateway: &Gateway) {
    for notice in gateway.notices() {
        if !args.quiet || notice.is_trouble() {
            note!("{notice}");
        }
    }
}

fn report(gateway: &Gateway) {
    let count = |name: &str| gateway.count(name);
    let (received, marked) = (count("received"), count("marked"));
    let (deliveries, dropped) = (count("deliveries"), count("dropped"));
    say!("{received} messages received, {marked} marked: {deliveries} deliveries");
    say!(
        "{dropped} dropped, {} slow consumers disconnected",
        count("slow_consumers")
    );
}

fn plural(n: usize, word: &str) -> String {
    if n == 1 {
        word.to_owned()
    } else {
        format!("{word}s")
    }
}
