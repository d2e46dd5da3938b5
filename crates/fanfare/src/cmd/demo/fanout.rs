//! The FIX part: server with capture, 200 consumers, 50 producers, about ten seconds, report.

use anyhow::Result;
use fanfare_engine::stop::Stop;
use fanfare_instruments::fanout::{Options, Report};
use fanfare_instruments::figures::Figures;
use fanfare_instruments::page::Page;
use serde_json::Value;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::children::{Fanfare, figure, json};
use crate::cmd::fanout::report;
use crate::print::note;
use crate::scratch::Scratch;

const CONSUMERS: u64 = 200;
const PRODUCERS: u64 = 50;
/// Messages of each producer, at `RATE` a second: ten seconds.
const MESSAGES: u64 = 1000;
const RATE: u64 = 100;
/// One of so many messages goes to every consumer.
const MARKED: u64 = 50;
/// Deliveries that are left out of the latency report as warm-up.
const SKIP: u64 = 1000;

/// How long a process may take to get ready, and to end.
const READY: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(120);

/// Runs it, adds its figures, named `fanout_…`, and its part of the page; the text for the
/// terminal.
pub(crate) fn run(
    scratch: &Scratch,
    figures: &mut Figures,
    page: &mut Page,
    stop: &Stop,
) -> Result<String> {
    let capture = scratch.file("fanout.pcap");
    let (server, producers_at, consumers_at) = start_server(&capture, stop)?;
    note!("gateway: producers on {producers_at}, consumers on {consumers_at}");
    let consumers = start_consumers(consumers_at, stop)?;
    note!("{CONSUMERS} consumers logged on");
    let producers = start_producers(producers_at, stop)?;
    note!(
        "{PRODUCERS} producers send {RATE} messages/s each for {} s",
        MESSAGES / RATE
    );
    let sent = json(&producers.finish_any(RUN)?)?;
    let received = json(&consumers.finish_any(RUN)?)?;
    server.interrupt()?;
    let told = server.finish(READY)?;
    let mut text = String::from("\nFIX fan-out\n");
    if stop.is_raised() {
        text.push_str("interrupted: this is the report so far\n");
    }
    add_load(&mut text, figures, &sent, &received)?;
    if let Some(report) = read_capture(&mut text, &told, &capture, (producers_at, consumers_at))? {
        add_capture(&mut text, figures, &told, &report)?;
        page.part(
            "FIX fan-out",
            "50 producers, one message in 50 for all of 200 consumers; wire to wire through the \
             gateway, from a capture.",
        );
        report.add_to(page);
    }
    Ok(text)
}

fn start_server(capture: &Path, stop: &Stop) -> Result<(Fanfare, SocketAddr, SocketAddr)> {
    let file = capture.to_string_lossy();
    let ports = ["--producer-port", "0", "--consumer-port", "0"];
    let mut args = vec!["fanout", "server", "--quiet", "--capture", &file];
    args.extend(ports);
    let mut server = Fanfare::start(&args, stop)?;
    let (mut producers, mut consumers, mut captures) = (None, None, false);
    // Lines of stdout and of stderr come in any order.
    let ports = server.wait_line(READY, |line| {
        producers = producers.or_else(|| after(line, "Listening for producers on "));
        consumers = consumers.or_else(|| after(line, "Listening for consumers on "));
        captures |= line.starts_with("Capturing") || line.contains("without a capture");
        if line.starts_with("warning") {
            note!("{line}");
        }
        producers.zip(consumers).filter(|_| captures)
    })?;
    Ok((server, ports.0, ports.1))
}

fn start_consumers(at: SocketAddr, stop: &Stop) -> Result<Fanfare> {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let clients = CONSUMERS.to_string();
    let expected = (PRODUCERS * MESSAGES / MARKED * CONSUMERS).to_string();
    let args = ["fanout", "consumers", &host, &clients, "0", "--port", &port];
    let rest = ["--messages", &expected, "--from-start", "--json"];
    let mut consumers = Fanfare::start(&[&args[..], &rest[..]].concat(), stop)?;
    consumers.wait_line(READY, |line| line.contains("logged on").then_some(()))?;
    Ok(consumers)
}

fn start_producers(at: SocketAddr, stop: &Stop) -> Result<Fanfare> {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let numbers = [PRODUCERS, MESSAGES, RATE, MARKED].map(|n| n.to_string());
    let [clients, messages, rate, marked] = &numbers;
    let args = [
        "fanout",
        "producers",
        &host,
        clients,
        messages,
        rate,
        marked,
    ];
    Fanfare::start(&[&args[..], &["--port", &port, "--json"]].concat(), stop)
}

fn after<T: std::str::FromStr>(line: &str, prefix: &str) -> Option<T> {
    line.strip_prefix(prefix)?.trim().parse().ok()
}

/// What the load generators say: the producers' rate, and whether each consumer has everything.
fn add_load(
    text: &mut String,
    figures: &mut Figures,
    sent: &Value,
    received: &Value,
) -> Result<()> {
    let deliveries = figure(received, "received")?;
    let duplicates = figure(received, "duplicates")?;
    // Of what was sent, not of what was planned: the run may have been interrupted.
    let due = figure(sent, "marked")? * CONSUMERS as f64;
    let mut lost = (due + duplicates - deliveries).max(0.0) + duplicates;
    lost += figure(received, "reordered")? + figure(received, "unreadable_marks")?;
    writeln!(
        text,
        "sent {} messages at {:.0}/s, {} marked; {deliveries} deliveries, {lost} lost, doubled \
         or out of order",
        figure(sent, "sent")?,
        figure(sent, "rate_per_s")?,
        figure(sent, "marked")?,
    )?;
    figures.add("fanout_in_rate_per_s", figure(sent, "rate_per_s")?);
    figures.add("fanout_out_rate_per_s", figure(received, "rate_per_s")?);
    figures.add("fanout_lost", lost);
    let whole = [sent, received]
        .iter()
        .all(|part| part.get("ok") == Some(&true.into()));
    figures.set_ok(figures.is_ok() && lost == 0.0 && whole);
    Ok(())
}

/// The server's packet counts and the report of its capture, if there is one.
fn read_capture(
    text: &mut String,
    told: &str,
    capture: &Path,
    (producers, consumers): (SocketAddr, SocketAddr),
) -> Result<Option<Report>> {
    let packets: Vec<&str> = packet_lines(told).collect();
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

fn packet_lines(told: &str) -> impl Iterator<Item = &str> {
    told.lines().filter(|line| line.contains("packets"))
}

/// What the capture says: rates and latency as on the wire.
fn add_capture(
    text: &mut String,
    figures: &mut Figures,
    told: &str,
    report: &Report,
) -> Result<()> {
    write!(text, "{report}")?;
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
            figures.add(&format!("fanout_{name}"), value);
        }
    }
    let dropped =
        packet_lines(told).find_map(|line| line.strip_suffix(" packets dropped by kernel"));
    if let Some(dropped) = dropped.and_then(|n| n.parse().ok()) {
        figures.count("fanout_packets_dropped", dropped);
    }
    Ok(())
}
