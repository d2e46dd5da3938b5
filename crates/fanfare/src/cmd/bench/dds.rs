//! `fanfare bench dds`: the bus against a plain C program on the same Cyclone DDS.

use super::dds_ends::{Child, End, Ends, Ours};
use crate::print::{note, say};
use anyhow::{Result, bail};
use fanfare_bus::baseline::{CProgram, Role};
use fanfare_bus::fast::{Converter, Mapping, TypeOptions};
use fanfare_bus::{DomainConfig, Transport};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program};
use fanfare_latency::figures::{Figures, median};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bus against a plain C program on the same Cyclone DDS: round trip and throughput of the
/// Quote sample between two processes over UDP loopback; half the round trip through shared
/// memory, both sides spinning; the time to convert and write one; and to decode and convert.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Domain ids used: this one and the next.
    #[arg(long, value_name = "ID", default_value_t = 190)]
    domain: u32,
    /// Round trips in each round.
    #[arg(long, value_name = "COUNT", default_value_t = 2_000)]
    round_trips: u32,
    /// Rounds of each kind, one kind after the other; the median round counts.
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    rounds: usize,
    /// Be the other process, in this role.
    #[arg(long, hide = true)]
    end: Option<End>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(end) = args.end {
        super::dds_ends::serve(end, &config(args.domain))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut figures = Figures::new("bench dds");
    note!(
        "round trips: {} rounds of {} each",
        args.rounds,
        args.round_trips
    );
    round_trips(args, &mut figures)?;
    note!("shared memory: {} rounds", args.rounds);
    let one_way = super::dds_shm::one_way(args.domain, args.rounds, SHM_ROUND_TRIPS)?;
    figures.add("shm_oneway_p50_us", one_way / 1e3);
    note!("throughput: {} rounds each", args.rounds);
    throughput(args, &mut figures)?;
    note!("writing: {} rounds each", args.rounds);
    super::dds_write::figures(args.domain, args.rounds, &mut figures)?;
    note!("conversion");
    figures.add("convert_simple_ns", convert(Program::simple(), simple())?);
    figures.add(
        "convert_complex_ns",
        convert(Program::complex(), complex())?,
    );
    if args.json {
        say!("{}", figures.to_json());
    } else {
        print(&figures);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn config(domain: u32) -> DomainConfig {
    DomainConfig::new(domain).transport(Transport::Udp)
}

fn round_trips(args: &Args, figures: &mut Figures) -> Result<()> {
    let (raw_at, ours_at) = (args.domain, args.domain + 1);
    let _raw_pong = Child::start(End::RawPong, raw_at)?;
    let _pong = Child::start(End::Pong, ours_at)?;
    let mut raw = CProgram::open(&config(raw_at), Role::Ping, false)?;
    let ours = Ours::ping(&config(ours_at))?;
    wait("the other process", || {
        raw.is_matched() && ours.is_matched()
    })?;
    let (mut raw_medians, mut medians) = (Vec::new(), Vec::new());
    // The first round of each warms up.
    for round in 0..=args.rounds {
        raw.ping(args.round_trips);
        wait("the C program's echoes", || {
            raw.round_trips().len() >= args.round_trips as usize
        })?;
        let raw_p50 = median_of(raw.round_trips());
        ours.start(args.round_trips);
        wait("the echoes", || ours.done() >= args.round_trips)?;
        let p50 = median_of(&ours.round_trips());
        if round > 0 {
            raw_medians.push(raw_p50);
            medians.push(p50);
        }
    }
    let ratios = medians
        .iter()
        .zip(&raw_medians)
        .map(|(a, b)| a / b)
        .collect();
    figures.add("raw_roundtrip_p50_us", median(raw_medians) / 1e3);
    figures.add("roundtrip_p50_us", median(medians) / 1e3);
    figures.add("ratio_p50", median(ratios));
    Ok(())
}

fn throughput(args: &Args, figures: &mut Figures) -> Result<()> {
    let (mut raw_rates, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        raw_rates.push(flow(args.domain, End::RawSink, |at| {
            let mut source = CProgram::open(&config(at), Role::Source, true)?;
            wait("the other process", || source.is_matched())?;
            settle();
            let n = source.flow(FLOW.as_nanos() as u64);
            Ok((Ends::Raw(source), n))
        })?);
        rates.push(flow(args.domain + 1, End::Sink, |at| {
            let mut source = Ours::source(&config(at), true)?;
            wait("the other process", || source.is_matched())?;
            settle();
            let n = source.flow(FLOW)?;
            Ok((Ends::Ours(source), n))
        })?);
    }
    let ratios = rates.iter().zip(&raw_rates).map(|(a, b)| a / b).collect();
    figures.add("raw_rate_per_s", median(raw_rates));
    figures.add("rate_per_s", median(rates));
    figures.add("ratio_rate", median(ratios));
    Ok(())
}

/// Round trips in each round through shared memory.
const SHM_ROUND_TRIPS: u32 = 100_000;
/// How long a source writes.
const FLOW: Duration = Duration::from_millis(500);

/// Samples a second as the sink saw them; all must have come.
fn flow(domain: u32, end: End, source: impl FnOnce(u32) -> Result<(Ends, u64)>) -> Result<f64> {
    let mut sink = Child::start(end, domain)?;
    let (_open, written) = source(domain)?;
    let begin = Instant::now();
    loop {
        let (count, nanos) = sink.ask()?;
        if count >= written {
            return Ok(count as f64 / (nanos as f64 / 1e9));
        }
        if begin.elapsed() > Duration::from_secs(10) {
            bail!("{count} of {written} samples arrived");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

type Packets = Vec<Vec<u8>>;

fn simple() -> Result<Packets> {
    packets(Generator::simple(Program::simple(), 30_000, PACKET_SIZE))
}

fn complex() -> Result<Packets> {
    let options = ComplexOptions::default();
    packets(Generator::complex(
        Program::complex(),
        30_000,
        None,
        options,
    ))
}

fn packets(mut feed: Generator) -> Result<Packets> {
    let mut all = Vec::new();
    while let Some(packet) = feed.next_packet()? {
        all.push(packet.to_vec());
    }
    Ok(all)
}

/// Passes over a feed that is converted: some tenths of a second, the first of which warm up.
const PASSES: usize = 60;

/// Nanoseconds to decode a message and convert it to its samples: the median of all passes.
fn convert(program: Program, feed: Result<Packets>) -> Result<f64> {
    let feed = feed?;
    let program = Arc::new(program);
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default())?;
    let mut converter = Converter::new(Arc::new(mapping), 1 << 16);
    let mut decoder = Decoder::new(program);
    let mut passes = Vec::new();
    for _ in 0..PASSES {
        let begin = Instant::now();
        let (mut messages, mut bytes) = (0_u64, 0_usize);
        for packet in &feed {
            decoder.reset();
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let len = converter.decode(&mut decoder, rest)?;
                rest = rest.get(len..).unwrap_or_default();
                converter.samples(|s| bytes += std::hint::black_box(s.cdr).len())?;
                messages += 1;
            }
        }
        std::hint::black_box(bytes);
        passes.push(begin.elapsed().as_nanos() as f64 / messages as f64);
    }
    Ok(median(passes))
}

fn median_of(nanos: &[u64]) -> f64 {
    median(nanos.iter().map(|n| *n as f64).collect())
}

/// That this side knows the other does not mean that the other knows this one.
pub(super) fn settle() {
    std::thread::sleep(Duration::from_millis(300));
}

/// Looks again and again, sleeping: the processors belong to what is measured.
pub(super) fn wait(what: &str, mut over: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    while !over() {
        if Instant::now() > end {
            bail!("waited 30 s for {what}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn print(figures: &Figures) {
    let v = |name: &str| figures.value(name).unwrap_or(f64::NAN);
    say!(
        "round trip p50: {:.1} us, plain C {:.1} us, ratio {:.3}",
        v("roundtrip_p50_us"),
        v("raw_roundtrip_p50_us"),
        v("ratio_p50")
    );
    say!(
        "shared memory, one way p50: {:.3} us",
        v("shm_oneway_p50_us")
    );
    say!(
        "throughput: {:.0} samples/s, plain C {:.0}, ratio {:.3}",
        v("rate_per_s"),
        v("raw_rate_per_s"),
        v("ratio_rate")
    );
    say!(
        "convert + write: {:.0} ns a sample, plain C {:.0}, {:.0} more",
        v("convert_write_ns"),
        v("raw_write_ns"),
        v("convert_write_over_raw_ns")
    );
    say!(
        "decode + convert: simple {:.1} ns, complex {:.1} ns a message",
        v("convert_simple_ns"),
        v("convert_complex_ns")
    );
}
