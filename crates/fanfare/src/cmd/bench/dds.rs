//! `fanfare bench dds`: writing and reading against a plain C program on the same Cyclone DDS.

use super::dds_ends::{Child, End, Ends, Ours};
use super::dds_stalled::{self, Stalled};
use crate::print::{figures_out, note, say};
use anyhow::{Result, bail};
use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_dds::{DomainConfig, Transport};
use fanfare_engine::cpu;
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program};
use fanfare_instruments::figures::{Figures, median};
use fanfare_instruments::raw_dds::{CProgram, Role};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Writing and reading against a plain C program on the same Cyclone DDS: round trip and
/// throughput of the Quote sample between two processes over UDP loopback; half the round trip
/// through shared memory, both sides spinning; the time to convert and write one; and to decode
/// and convert.
///
/// Each process is pinned to a processor of its own; the round trip is also measured with both on
/// one. The programs take turns in slices, and ratios are medians of the ratios of slices.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Domain ids used: this one and the next.
    #[arg(long, value_name = "ID", default_value_t = 190)]
    pub(super) domain: u32,
    /// Round trips of each program in each round.
    #[arg(long, value_name = "COUNT", default_value_t = 4_000,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(super) round_trips: u32,
    /// Rounds of each kind, each with new processes.
    #[arg(long, value_name = "COUNT", default_value_t = 7)]
    pub(super) rounds: usize,
    /// Measure instead what a reader that is stopped, beside the one that answers, does to the
    /// round trip: while it loses the oldest samples, or until its lease ends and it is forgotten.
    #[arg(long, value_name = "POLICY")]
    stalled: Option<Stalled>,
    /// Be the other process, in this role.
    #[arg(long, hide = true)]
    end: Option<End>,
    /// Be there, on this processor.
    #[arg(long, hide = true)]
    cpu: Option<usize>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(end) = args.end {
        if let Some(cpu) = args.cpu {
            cpu::pin_to(cpu)?;
        }
        let policy = args.stalled.unwrap_or(Stalled::Drop);
        super::dds_ends::serve(end, &config(args.domain), policy)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut figures = Figures::new("bench dds");
    if let Some(policy) = args.stalled {
        note!("a reader that stops: {} rounds", args.rounds);
        dds_stalled::figures(args, policy, &mut figures)?;
        return Ok(figures_out(&figures, args.json));
    }
    note!(
        "round trips: {} rounds of {} each",
        args.rounds,
        args.round_trips
    );
    super::dds_trips::figures(args, &mut figures)?;
    let (here, there) = super::processors()?;
    note!("shared memory: {} rounds", args.rounds);
    let one_way = on(here, || {
        super::dds_shm::one_way(args.domain, there, args.rounds, SHM_ROUND_TRIPS)
    })?;
    figures.add("shm_oneway_p50_us", one_way / 1e3);
    note!("throughput: {} rounds each", args.rounds);
    on(here, || throughput(args, there, &mut figures))?;
    note!("writing: {} rounds each", args.rounds);
    on(here, || {
        super::dds_write::figures(args.domain, there, args.rounds, &mut figures)
    })?;
    note!("conversion");
    figures.add("convert_simple_ns", convert(Program::simple(), simple())?);
    figures.add(
        "convert_complex_ns",
        convert(Program::complex(), complex())?,
    );
    if args.json {
        return Ok(figures_out(&figures, true));
    }
    print(&figures);
    Ok(ExitCode::SUCCESS)
}

/// Runs `f` in a thread on that processor. What Cyclone DDS starts there stays on it too.
pub(super) fn on<T: Send>(
    processor: Option<usize>,
    f: impl FnOnce() -> Result<T> + Send,
) -> Result<T> {
    let pinned = || {
        if let Some(processor) = processor {
            cpu::pin_to(processor)?;
        }
        f()
    };
    let result = thread::scope(|scope| scope.spawn(pinned).join());
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

pub(super) fn config(domain: u32) -> DomainConfig {
    DomainConfig::new(domain).transport(Transport::Udp)
}

fn throughput(args: &Args, there: Option<usize>, figures: &mut Figures) -> Result<()> {
    let (mut raw_rates, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        raw_rates.push(flow(args.domain, End::RawSink, there, |at| {
            let mut source = CProgram::open(&config(at), Role::Source, true)?;
            wait("the other process", || source.is_matched())?;
            settle();
            let n = source.flow(FLOW.as_nanos() as u64);
            Ok((Ends::Raw(source), n))
        })?);
        rates.push(flow(args.domain + 1, End::Sink, there, |at| {
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
fn flow(
    domain: u32,
    end: End,
    there: Option<usize>,
    source: impl FnOnce(u32) -> Result<(Ends, u64)>,
) -> Result<f64> {
    let mut sink = Child::start(end, domain, there)?;
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
        thread::sleep(Duration::from_millis(5));
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

pub(super) fn median_of(nanos: &[u64]) -> f64 {
    median(nanos.iter().map(|n| *n as f64).collect())
}

/// That this side knows the other does not mean that the other knows this one.
pub(super) fn settle() {
    thread::sleep(Duration::from_millis(300));
}

/// Looks again and again, sleeping: the processors belong to what is measured.
pub(super) fn wait(what: &str, mut over: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(30);
    while !over() {
        if Instant::now() > end {
            bail!("waited 30 s for {what}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn print(figures: &Figures) {
    let v = |name: &str| figures.value(name).unwrap_or(f64::NAN);
    for (prefix, place) in [("", ""), ("one_core_", ", both ends on one processor")] {
        let v = |name: &str| v(&format!("{prefix}{name}"));
        if v("ratio_p50").is_nan() {
            continue;
        }
        say!(
            "round trip p50{place}: {:.1} us, plain C {:.1} us, ratio {:.3} ({:.3} to {:.3})",
            v("roundtrip_p50_us"),
            v("raw_roundtrip_p50_us"),
            v("ratio_p50"),
            v("ratio_p50_low"),
            v("ratio_p50_high")
        );
    }
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
