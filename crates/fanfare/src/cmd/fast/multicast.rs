//! `fanfare fast multicast`: the packets of a file, to one group or two, with optional losses.

use super::options::socket_address;
use super::packets::{Flow, check_size, each_packet};
use crate::line::{self, BATCH, DATAGRAM, Reach};
use crate::plural::counted;
use crate::print::{note, say};
use crate::range::share;
use crate::usage::misuse;
use anyhow::{Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_feed::{Header, Preamble};
use fanfare_instruments::figures::Figures;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Send the packets of a file to a multicast group, one per datagram, without their headers.
///
/// With --second the same packets go to a second group, like an exchange's lines A and B; --loss-a
/// and --loss-b drop packets at random (the same ones for the same --seed).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File of packets, - for stdin.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Group to send to.
    #[arg(short, long, value_name = "ADDRESS", default_value = "224.1.2.133")]
    address: Ipv4Addr,
    /// Port to send to.
    #[arg(
        short, long, default_value_t = 13_014,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    port: u16,
    /// Microseconds between two packets; 0: as fast as possible.
    #[arg(short, long, value_name = "MICROSECONDS", default_value_t = 0)]
    sleep: u64,
    /// Second group, ADDRESS:PORT: line B.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    second: Option<SocketAddrV4>,
    #[command(flatten)]
    reach: Reach,
    /// Share of line A's packets to drop, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    loss_a: f64,
    /// Share of line B's packets to drop, 0 to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    loss_b: f64,
    /// Seed of the choice of dropped packets.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length header in front of each packet of the file.
    #[arg(long, value_name = "HEADER", default_value = "u32le")]
    header: Header,
    /// Sequence number to put in front of each packet, counted from 1: none, seq32le, seq32be or
    /// cme.
    #[arg(long, value_name = "PREAMBLE", default_value = "none")]
    preamble: Preamble,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.header == Header::None {
        misuse!("--header none has no packets to send");
    }
    if args.second.is_none() && args.loss_b > 0.0 {
        misuse!("--loss-b needs a line B: --second is missing");
    }
    let first = SocketAddrV4::new(args.address, args.port);
    if args.second == Some(first) {
        misuse!("both lines are {first}");
    }
    for line in [Some(first), args.second].into_iter().flatten() {
        if let Err(why) = args.reach.check(line) {
            misuse!("{why}");
        }
    }
    let stop = Stop::on_interrupt()?;
    let packets = read(args, &stop)?;
    let mut lines = vec![Line::open(args, first, args.loss_a, args.seed)?];
    if let Some(second) = args.second {
        let seed = args.seed.wrapping_add(0x5bd1_e995);
        lines.push(Line::open(args, second, args.loss_b, seed)?);
    }
    let start = Instant::now();
    let sent = if args.sleep == 0 {
        flat_out(&packets, &mut lines, &stop)?
    } else {
        paced(args, &packets, &mut lines, &stop)?
    };
    report(args, sent, &lines, start.elapsed());
    Ok(ExitCode::SUCCESS)
}

/// Reads all packets of the file as datagrams, in advance, so that the disk does not set the pace.
fn read(args: &Args, stop: &Stop) -> Result<Vec<Vec<u8>>> {
    let (mut packets, mut bytes) = (Vec::new(), 0);
    each_packet(&args.file, args.header, stop, |packet| {
        let number = packets.len() as u32 + 1;
        let mut datagram = Vec::with_capacity(args.preamble.len() + packet.bytes.len());
        args.preamble.write(number, &mut datagram);
        datagram.extend_from_slice(packet.bytes);
        let len = datagram.len();
        if len > DATAGRAM {
            bail!("packet {number} has {len} bytes, too many for UDP");
        }
        bytes += len + size_of::<Vec<u8>>();
        check_size(bytes)?;
        packets.push(datagram);
        Ok(Flow::Continue(()))
    })?;
    Ok(packets)
}

/// Sends batches, one line after the other. Returns the number of packets taken from the file.
fn flat_out(packets: &[Vec<u8>], lines: &mut [Line], stop: &Stop) -> Result<usize> {
    let mut taken = 0;
    let mut batch: Vec<&[u8]> = Vec::with_capacity(BATCH);
    for chunk in packets.chunks(BATCH) {
        if stop.is_raised() {
            break;
        }
        for line in &mut *lines {
            batch.clear();
            let kept = |(i, packet)| line.keeps(taken + i).then_some(packet);
            let packets = chunk.iter().map(Vec::as_slice).enumerate();
            batch.extend(packets.filter_map(kept));
            line.line.send_all(&batch)?;
        }
        taken += chunk.len();
    }
    Ok(taken)
}

/// Sends one packet each `--sleep`, by the clock: a late packet does not delay the others.
fn paced(args: &Args, packets: &[Vec<u8>], lines: &mut [Line], stop: &Stop) -> Result<usize> {
    let pace = Duration::from_micros(args.sleep);
    let mut due = Instant::now();
    for (taken, packet) in packets.iter().enumerate() {
        // A long sleep is divided, so that Ctrl-C takes effect.
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if stop.is_raised() {
                return Ok(taken);
            }
            thread::sleep(left.min(Duration::from_millis(100)));
        }
        if stop.is_raised() {
            return Ok(taken);
        }
        for line in &mut *lines {
            if line.keeps(taken) {
                line.line.send_all(&[packet])?;
            }
        }
        due += pace;
    }
    Ok(packets.len())
}

/// A group, with its losses.
struct Line {
    line: line::Line,
    loss: f64,
    random: u64,
    /// The packets that were dropped, in order.
    left_out: Vec<usize>,
}

impl Line {
    fn open(args: &Args, to: SocketAddrV4, loss: f64, seed: u64) -> Result<Self> {
        Ok(Self {
            line: line::Line::open(args.reach, to)?,
            loss,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            left_out: Vec::new(),
        })
    }

    /// Returns whether the next packet, the file's `index`-th, is sent (xorshift; the upper 53 bits
    /// as a share).
    fn keeps(&mut self, index: usize) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let share = (self.random >> 11) as f64 / (1u64 << 53) as f64;
        let keeps = share >= self.loss;
        if !keeps {
            self.left_out.push(index);
        }
        keeps
    }
}

/// Returns the number of packets that neither line carried.
fn on_both(a: &[usize], b: &[usize]) -> u64 {
    let lost = a.iter().filter(|index| b.binary_search(index).is_ok());
    lost.count() as u64
}

fn report(args: &Args, packets: usize, lines: &[Line], elapsed: Duration) {
    if let (false, [a, b]) = (args.json, lines) {
        let neither = on_both(&a.left_out, &b.left_out);
        note!("{} on neither line", counted(neither, "packet"));
    }
    let datagrams: u64 = lines.iter().map(|line| line.line.sent()).sum();
    let rate = datagrams as f64 / elapsed.as_secs_f64().max(1e-9);
    if !args.json {
        for line in lines {
            note!(
                "{}: {} sent, {} left out",
                line.line.to(),
                counted(line.line.sent(), "packet"),
                line.left_out.len()
            );
        }
        note!(
            "{} in {:.3} s, {rate:.0} datagrams/s",
            counted(packets as u64, "packet"),
            elapsed.as_secs_f64()
        );
        return;
    }
    let mut figures = Figures::new("fast multicast");
    figures.count("packets", packets as u64);
    for (name, line) in ["line_a", "line_b"].iter().zip(lines) {
        figures.count(&format!("{name}_packets"), line.line.sent());
        figures.count(&format!("{name}_left_out"), line.left_out.len() as u64);
    }
    if let [a, b] = lines {
        figures.count("both_left_out", on_both(&a.left_out, &b.left_out));
    }
    figures.add("elapsed_us", elapsed.as_nanos() as f64 / 1e3);
    figures.add("rate_per_s", rate);
    say!("{}", figures.to_json());
}
