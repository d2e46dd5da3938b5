//! `fanfare bench feed`: a feed over two lossy multicast lines, decoded, alternating with a raw
//! sender and receiver of the same datagrams.

use anyhow::{Context, Result};
use clap::{Args as ClapArgs, ValueEnum};
use fanfare_engine::stop::Stop;
use fanfare_feed::Header;
use fanfare_instruments::bench::datagrams::{Run, add_turns};
use fanfare_instruments::figures::{Figures, Printed};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::address::free_udp_port;
use crate::children::Fanfare;
use crate::cmd::fast::packets::{Flow, each_packet};
use crate::print::measured_out;
use crate::range::{share, whole};
use crate::scratch::Scratch;

/// Options of `fanfare bench feed`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The generated feed.
    #[arg(value_enum, default_value_t = Feed::Complex)]
    feed: Feed,
    /// Messages of the feed. The default yields 30,000 packets; fewer end before their rate can be
    /// measured.
    #[arg(short = 'n', long, value_name = "N", value_parser = whole::<u32>(1..=10_000_000))]
    count: Option<u32>,
    /// Share of the packets that each line leaves out, from 0 to below 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = loss)]
    loss: f64,
    /// Runs of each, interleaved; the figures are medians.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole::<u32>(1..=1000))]
    runs: u32,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Parses a share below 1: some packets have to arrive.
fn loss(text: &str) -> Result<f64, String> {
    match share(text)? {
        1.0 => Err("must be at least 0 and below 1".to_owned()),
        loss => Ok(loss),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Feed {
    /// Many messages in a packet.
    Simple,
    /// One message in a packet.
    Complex,
}

impl Feed {
    /// Returns the approximate number of messages in a packet.
    const fn in_packet(self) -> u32 {
        match self {
            Self::Simple => 90,
            Self::Complex => 1,
        }
    }
}

/// The longest time that a process may take.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let count = args.count.unwrap_or(30_000 * args.feed.in_packet());
    let stop = Stop::on_interrupt()?;
    let scratch = Scratch::new("feed").context("cannot make a folder for the feed")?;
    let file = scratch.file("feed.dat");
    let feed = match args.feed {
        Feed::Simple => "simple",
        Feed::Complex => "complex",
    };
    let (count, path) = (count.to_string(), file.to_string_lossy());
    let generate = ["fast", "generate", feed, "-n", &count, "-o", &path];
    let generated = Fanfare::start(&generate, &stop)?.finish(LIMIT);
    let packets = match stop.is_raised() {
        // The file may be incomplete. Nothing is measured.
        true => Vec::new(),
        false => {
            generated?;
            read(&file, &stop)?
        }
    };
    let mut figures = Figures::new("bench feed");
    add_turns(
        &mut figures,
        &packets,
        args.runs,
        &stop,
        || Ok::<_, anyhow::Error>([group(1)?, group(2)?]),
        |seed| ours(args, feed, &path, seed, &stop),
    )?;
    Ok(measured_out(figures, args.json, &stop))
}

/// Reads the datagrams of a file, until `stop` is raised.
fn read(file: &Path, stop: &Stop) -> Result<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    each_packet(file, Header::U32Le, stop, |packet| {
        packets.push(packet.bytes.to_vec());
        Ok(Flow::Continue(()))
    })?;
    Ok(packets)
}

/// Returns a multicast group with a port that is free now.
fn group(last: u8) -> Result<SocketAddrV4> {
    let group = Ipv4Addr::new(239, 255, 79, last);
    Ok(SocketAddrV4::new(group, free_udp_port()?))
}

/// Runs `fast multicast` and `fast decode` once, as two processes.
fn ours(args: &Args, feed: &str, file: &str, seed: u32, stop: &Stop) -> Result<Run> {
    let (a, b) = (group(1)?, group(2)?);
    let templates = format!("builtin:{feed}");
    let (line_a, line_b) = (a.to_string(), b.to_string());
    let decode = ["fast", "decode", "-t", &templates, "--multicast", &line_a];
    let rest = ["--multicast", &line_b, "--idle", "5", "--spin", "--json"];
    let mut receiver = Fanfare::start(&[&decode[..], &rest].concat(), stop)?;
    receiver.wait_lines(LIMIT, "receiving", 2)?;
    let (address, port) = (a.ip().to_string(), a.port().to_string());
    let (loss, seed) = (args.loss.to_string(), seed.to_string());
    let multicast = ["fast", "multicast", "-f", file, "-a", &address, "-p", &port];
    let losses = ["--loss-a", &loss, "--loss-b", &loss, "--seed", &seed];
    let second = ["--second", &line_b, "--json"];
    let sender = Fanfare::start(&[&multicast[..], &losses, &second].concat(), stop)?;
    let sent = sender.figures(LIMIT)?;
    let received = receiver.figures(LIMIT)?;
    let count = |of: &Printed, name: &str| of.figure(name).map(|value| value as u64);
    let mut missing = 0;
    for (line, group) in [("line_a_packets", a), ("line_b_packets", b)] {
        missing += lost(count(&sent, line)?, count(&received, line)?, group)?;
    }
    Ok(Run {
        rate: received.figure("rate_per_s")?,
        lost: missing,
        kernel_drops: count(&received, "kernel_drops")?,
        errors: count(&received, "errors")?,
    })
}

/// Returns the number of datagrams that were sent to a group and not received.
///
/// # Errors
/// More were received than sent.
fn lost(sent: u64, received: u64, group: SocketAddrV4) -> Result<u64> {
    sent.checked_sub(received).with_context(|| {
        format!("{received} datagrams to {group} of {sent} sent: another program sends to it, too")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_of_another_sender_are_an_error() {
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 79, 1), 7);
        assert_eq!(lost(5, 3, group).unwrap(), 2);
        assert_eq!(lost(5, 5, group).unwrap(), 0);
        let error = lost(5, 6, group).unwrap_err().to_string();
        assert!(
            error.starts_with("6 datagrams to 239.255.79.1:7 of 5 sent: "),
            "{error}"
        );
    }
}
