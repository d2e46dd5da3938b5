//! The FIX part: server with capture, 200 consumers, 50 producers, about ten seconds, report.

use anyhow::Result;
use fanfare_instruments::fanout::{Options, Report};
use fanfare_instruments::figures::Printed;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::plain::Comparison;
use super::stages::{self, Stage};
use super::{Demo, Part, READY, RUN};
use crate::children::Fanfare;
use crate::cmd::fanout::report;
use crate::print::note;

/// The part of the fan-out; its figures are named `fanout_…`.
pub(super) const PART: Part = Part {
    title: "FIX fan-out",
    about: "One message at a time to 200 consumers, beside plain sockets; then 50 producers, one \
            message in 50 for all consumers: wire to wire through the gateway, from a capture, and \
            from stage to stage inside of it.",
    run,
};

const CONSUMERS: u64 = 200;
const PRODUCERS: u64 = 50;
/// Messages of each producer, at `RATE` a second: ten seconds.
const MESSAGES: u64 = 1000;
const RATE: u64 = 100;
/// The number of messages of which one goes to every consumer.
const MARKED: u64 = 50;
/// Messages of the comparison with plain sockets.
const ROUNDS: &str = "1000";
/// Deliveries at the start that the latency report omits as warm-up.
const SKIP: u64 = 1000;

fn run(demo: &mut Demo) -> Result<()> {
    note!("{ROUNDS} messages to {CONSUMERS} consumers, in turns with plain sockets");
    let beside = Comparison::measure(demo, CONSUMERS, ROUNDS)?;
    if demo.stop.is_raised() {
        return Ok(());
    }
    beside.tell(&mut demo.text, CONSUMERS)?;
    beside.add_figures(demo);
    demo.begin_page(&PART);
    beside.add_to(demo)?;
    through_a_gateway(demo)
}

/// Runs a gateway under load, with a capture of its traffic.
fn through_a_gateway(demo: &mut Demo) -> Result<()> {
    let capture = demo.scratch.file("fanout.pcap");
    let (config, control) = configure(demo)?;
    let (server, producers_at, consumers_at) = start_server(demo, &capture, &config)?;
    note!("gateway: producers on {producers_at}, consumers on {consumers_at}");
    let consumers = start_consumers(demo, consumers_at)?;
    note!("{CONSUMERS} consumers logged on");
    let producers = start_producers(demo, producers_at)?;
    note!(
        "{PRODUCERS} producers send {RATE} messages/s each for {} s",
        MESSAGES / RATE
    );
    let (sent, received) = (producers.figures(RUN)?, consumers.figures(RUN)?);
    // An interrupted gateway has ended already.
    let stages = control.and_then(|control| stages::ask(&control).ok());
    let stages = stages.unwrap_or_default();
    server.interrupt()?;
    let told = server.finish(READY)?;
    add_load(demo, &sent, &received)?;
    let ports = (producers_at, consumers_at);
    if let Some(report) = read_capture(&mut demo.text, &told, &capture, ports)? {
        add_capture(demo, &told, &report)?;
        report.add_to(&mut demo.page);
    }
    add_stages(demo, &stages)
}

fn add_stages(demo: &mut Demo, stages: &[Stage]) -> Result<()> {
    stages::tell(&mut demo.text, stages)?;
    stages::add(demo, stages);
    Ok(())
}

/// Writes the gateway's configuration. Also returns its control socket, unless its path would be
/// too long.
fn configure(demo: &Demo) -> Result<(PathBuf, Option<PathBuf>)> {
    let (config, control) = (demo.scratch.file("gateway.toml"), demo.scratch.file("ctl"));
    let control = Some(control).filter(|path| path.as_os_str().len() <= stages::LONGEST_PATH);
    let text = match &control {
        Some(path) => format!("control = {:?}\n", path.to_string_lossy()),
        None => String::new(),
    };
    std::fs::write(&config, text)?;
    Ok((config, control))
}

fn start_server(
    demo: &Demo,
    capture: &Path,
    config: &Path,
) -> Result<(Fanfare, SocketAddr, SocketAddr)> {
    let (file, config) = (capture.to_string_lossy(), config.to_string_lossy());
    let args = [
        "fanout",
        "server",
        "--quiet",
        "--capture",
        &file,
        "--config",
        &config,
    ];
    let ports = ["--producer-port", "0", "--consumer-port", "0"];
    let mut server = demo.start(&[&args, &ports])?;
    let (mut producers, mut consumers, mut captures) = (None, None, false);
    // Lines of stdout and of stderr arrive in any order.
    let ports = server.wait_line(READY, |line| {
        producers = producers.or_else(|| after(line, "Listening for producers on "));
        consumers = consumers.or_else(|| after(line, "Listening for consumers on "));
        captures |= line.starts_with("Capturing") || line.contains("without a capture");
        if is_warning(line) {
            note!("{line}");
        }
        producers.zip(consumers).filter(|_| captures)
    })?;
    Ok((server, ports.0, ports.1))
}

/// Returns whether a line of the server's log is a warning: `TIME WARN TARGET: TEXT`.
fn is_warning(line: &str) -> bool {
    line.split(' ').nth(1) == Some("WARN")
}

fn start_consumers(demo: &Demo, at: SocketAddr) -> Result<Fanfare> {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let clients = CONSUMERS.to_string();
    let expected = (PRODUCERS * MESSAGES / MARKED * CONSUMERS).to_string();
    let args = ["fanout", "consumers", &host, &clients, "0", "--port", &port];
    let rest = ["--messages", &expected, "--from-start", "--json"];
    let mut consumers = demo.start(&[&args, &rest])?;
    consumers.wait_line(READY, |line| line.contains("logged on").then_some(()))?;
    Ok(consumers)
}

fn start_producers(demo: &Demo, at: SocketAddr) -> Result<Fanfare> {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let numbers = [PRODUCERS, MESSAGES, RATE, MARKED].map(|n| n.to_string());
    let numbers = numbers.each_ref().map(String::as_str);
    let args = ["fanout", "producers", &host];
    let mut producers = demo.start(&[&args, &numbers, &["--port", &port, "--json"]])?;
    producers.wait_line(READY, |line| line.contains("logged on").then_some(()))?;
    Ok(producers)
}

fn after<T: std::str::FromStr>(line: &str, prefix: &str) -> Option<T> {
    line.strip_prefix(prefix)?.trim().parse().ok()
}

/// Adds the results of the load generators: the producers' rate, and whether each consumer is
/// complete.
fn add_load(demo: &mut Demo, sent: &Printed, received: &Printed) -> Result<()> {
    let deliveries = received.figure("received")?;
    let duplicates = received.figure("duplicates")?;
    // Relative to the messages sent, not to those planned: the run may have been interrupted.
    let due = sent.figure("marked")? * CONSUMERS as f64;
    let mut lost = (due + duplicates - deliveries).max(0.0) + duplicates;
    lost += received.figure("reordered")? + received.figure("unreadable_marks")?;
    writeln!(
        demo.text,
        "sent {} messages at {:.0}/s, {} marked; {deliveries} deliveries, {lost} lost, doubled \
         or out of order",
        sent.figure("sent")?,
        sent.figure("rate_per_s")?,
        sent.figure("marked")?,
    )?;
    let figures = &mut demo.figures;
    figures.add("fanout_in_rate_per_s", sent.figure("rate_per_s")?);
    figures.add("fanout_out_rate_per_s", received.figure("rate_per_s")?);
    figures.add("fanout_lost", lost);
    let whole = sent.is_ok() && received.is_ok();
    figures.set_ok(figures.is_ok() && lost == 0.0 && whole);
    Ok(())
}

/// Reads the server's packet counts and the report of its capture, if there is one.
fn read_capture(
    text: &mut String,
    told: &str,
    capture: &Path,
    (producers, consumers): (SocketAddr, SocketAddr),
) -> Result<Option<Report>> {
    let packets = told.lines().filter(|line| packets(line).is_some());
    let packets: Vec<&str> = packets.collect();
    if packets.is_empty() {
        writeln!(text, "no capture, so no latency: see the warning above")?;
        return Ok(None);
    }
    writeln!(text, "{}", packets.join(", "))?;
    let options = Options {
        in_port: producers.port(),
        out_port: consumers.port(),
        skip: SKIP,
    };
    report::read(capture, options).map(Some)
}

/// Parses a line `N packets WHAT` of the server's capture; a single one is `1 packet WHAT`.
fn packets(line: &str) -> Option<(u64, &str)> {
    let (number, rest) = line.split_once(' ')?;
    let what = rest.strip_prefix("packet")?;
    let what = what.strip_prefix('s').unwrap_or(what).strip_prefix(' ')?;
    Some((number.parse().ok()?, what))
}

/// Adds the results of the capture: rates and latency on the wire.
fn add_capture(demo: &mut Demo, told: &str, report: &Report) -> Result<()> {
    write!(demo.text, "{report}")?;
    let measured = report.figures();
    for name in [
        "in_rate_per_s",
        "out_rate_per_s",
        "p50_us",
        "p99_us",
        "p99_9_us",
        "max_us",
    ] {
        if let Some(value) = measured.value(name) {
            demo.figures.add(&format!("fanout_{name}"), value);
        }
    }
    let mut packets = told.lines().filter_map(packets);
    if let Some((dropped, _)) = packets.find(|(_, what)| *what == "dropped by kernel") {
        demo.figures.count("fanout_packets_dropped", dropped);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_server_are_understood() {
        let warning = "2026-11-25T10:17:34.123456Z WARN files: no right; running without a capture";
        assert!(is_warning(warning));
        assert!(!is_warning(
            "2026-11-25T10:17:34.123456Z INFO program: WARN is a level"
        ));
        assert!(!is_warning("Capturing ports 1 and 2 into x"));
        for (line, number) in [("0 packets", 0), ("1 packet", 1), ("20 packets", 20)] {
            let line = format!("{line} dropped by kernel");
            assert_eq!(packets(&line), Some((number, "dropped by kernel")));
        }
        for line in ["packets dropped by kernel", "2 sessions", "1 packet", ""] {
            assert_eq!(packets(line), None, "{line}");
        }
    }
}
