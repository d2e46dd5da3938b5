//! `fanfare bench dds`: writing and reading against a plain C program on the same Cyclone DDS.

use super::{Part, Stalled, add_all, processors};
use crate::children::this_binary;
use crate::print::{measured_out, note, say};
use crate::range::whole;
use crate::usage::misuse;
use anyhow::{Result, anyhow};
use fanfare_engine::cpu;
use fanfare_engine::process::Process;
use fanfare_engine::stop::Stop;
use fanfare_gateway::SlowPolicy;
use fanfare_instruments::bench::BenchError;
use fanfare_instruments::bench::dds::{DdsBench, End, Other, add_conversion, serve};
use fanfare_instruments::figures::Figures;
use std::io;
use std::process::{ExitCode, Stdio};

/// The last domain id whose ports exist (DDSI-RTPS 9.6.1.1).
const LAST_DOMAIN: u32 = 232;

/// Measure writing and reading against a plain C program on the same Cyclone DDS.
///
/// The benchmark measures the round trip and the throughput of the Quote sample between two
/// processes over UDP loopback; half the round trip through shared memory, with both sides
/// spinning; the time to convert and write one sample; and the time to decode and convert one.
/// Both programs read all members of each sample that they take.
///
/// Each process is pinned to a processor of its own; the round trip is also measured with both on
/// one. The programs alternate in slices, and ratios are medians of the ratios of slices.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// First of two consecutive domain ids, or the only one of `--stalled`. From 101 on, sockets of
    /// other programs may have the ports of a domain.
    #[arg(long, value_name = "ID", default_value_t = 98,
          value_parser = whole::<u32>(0..=u64::from(LAST_DOMAIN)))]
    domain: u32,
    /// Round trips of each program in each round.
    #[arg(long, value_name = "COUNT", default_value_t = 4_000,
          value_parser = whole::<u32>(1..=65_536))]
    round_trips: u32,
    /// Rounds of each kind, each with new processes.
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = whole::<usize>(1..=1000))]
    rounds: usize,
    /// Measure instead how a stopped reader, beside the one that echoes, affects the round trip:
    /// while it loses the oldest samples, or until its lease ends and it is dropped.
    #[arg(long, value_name = "POLICY")]
    stalled: Option<Stalled>,
    /// Run as the other process, in this role.
    #[arg(long, hide = true, value_parser = end)]
    end: Option<End>,
    /// Run the other process on this processor.
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
        serve(&Other {
            end,
            domain: args.domain,
            cpu: args.cpu,
            policy: args.stalled.map_or(SlowPolicy::Drop, |stalled| stalled.0),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    check_domains(args)?;
    let stop = Stop::on_interrupt()?;
    let mut figures = Figures::new("bench dds");
    let bench = DdsBench {
        domain: args.domain,
        round_trips: args.round_trips,
        rounds: args.rounds,
        processors: processors()?,
        start: &start,
        stop: &stop,
    };
    if let Some(Stalled(policy)) = args.stalled {
        note!("a reader that stops: {} rounds", args.rounds);
        bench.add_stalled(policy, &mut figures)?;
        return Ok(measured_out(figures, args.json, &stop));
    }
    measure(&bench, &mut figures)?;
    if args.json || stop.is_raised() {
        return Ok(measured_out(figures, args.json, &stop));
    }
    print(&figures);
    Ok(ExitCode::SUCCESS)
}

/// Returns an error unless the domains of the parent process exist.
fn check_domains(args: &Args) -> Result<()> {
    if args.stalled.is_none() && args.domain == LAST_DOMAIN {
        misuse!(
            "--domain {LAST_DOMAIN} is the last domain: without --stalled, the one behind it is \
             used as well"
        );
    }
    Ok(())
}

/// Adds the figures of all measurements.
fn measure(bench: &DdsBench<'_>, figures: &mut Figures) -> Result<(), BenchError> {
    let (rounds, trips) = (bench.rounds, bench.round_trips);
    let parts: [Part<'_>; 5] = [
        (
            format!("round trips: {rounds} rounds of {trips} each"),
            &|figures| bench.add_round_trips(figures),
        ),
        (format!("shared memory: {rounds} rounds"), &|figures| {
            bench.add_shared_memory(figures)
        }),
        (format!("throughput: {rounds} rounds each"), &|figures| {
            bench.add_throughput(figures)
        }),
        (format!("writing: {rounds} rounds each"), &|figures| {
            bench.add_writing(figures)
        }),
        ("conversion".to_owned(), &add_conversion),
    ];
    add_all(&parts, figures, bench.stop)
}

fn end(name: &str) -> Result<End> {
    let found = End::ALL.into_iter().find(|end| end.name() == name);
    found.ok_or_else(|| anyhow!("unknown end of the measurement"))
}

/// Starts the other process: this command with `--end`.
fn start(other: &Other) -> io::Result<Process> {
    let mut command = this_binary().map_err(io::Error::other)?;
    command
        .args(["bench", "dds", "--end", other.end.name()])
        .args(["--domain", &other.domain.to_string()])
        .args(["--stalled", Stalled(other.policy).name()]);
    if let Some(cpu) = other.cpu {
        command.args(["--cpu", &cpu.to_string()]);
    }
    Process::start(command.stdin(Stdio::piped()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::{STATUS, status_of};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_default_domains_have_no_ephemeral_ports() {
        let domain = Line::parse_from(["bench"]).args.domain;
        // The first port of the domain behind them (DDSI-RTPS 9.6.1.1).
        assert!(7_400 + 250 * (domain + 2) < 32_768, "{domain}");
    }

    #[test]
    fn a_run_has_a_round_and_domains_that_exist() {
        for wrong in [
            ["--rounds", "0"],
            ["--round-trips", "0"],
            ["--domain", "233"],
        ] {
            let line = ["bench"].into_iter().chain(wrong);
            assert!(Line::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_domain_behind_the_first_one_exists_too() {
        let check = |line: &[&str]| {
            let line = ["bench"].into_iter().chain(line.iter().copied());
            check_domains(&Line::parse_from(line).args)
        };
        let wrong = check(&["--domain", "232"]).unwrap_err();
        assert_eq!(status_of(&wrong), ExitCode::from(STATUS));
        check(&["--domain", "231"]).unwrap();
        check(&["--domain", "232", "--stalled", "drop"]).unwrap();
    }
}
