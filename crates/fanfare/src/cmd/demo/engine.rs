//! The FIX engine's part: the round trip of an order beside plain sockets, and throughput over
//! many sessions with every order kept.

use anyhow::Result;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::page::Page;
use fanfare_instruments::plot::{CategoryChart, CategorySeries, Unit};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

use crate::children::{Fanfare, figure, json};
use crate::print::note;
use crate::scratch::Scratch;

const ROUND_TRIPS: &str = "20000";
const SESSIONS: [&str; 3] = ["1", "10", "100"];
const ORDERS: &str = "10000";
const RUN: Duration = Duration::from_secs(120);

/// Runs both, adds their figures, named `latency_…` and `throughput_…`, and their part of the
/// page; the text for the terminal.
pub(crate) fn run(
    scratch: &Scratch,
    figures: &mut Figures,
    page: &mut Page,
    stop: &Stop,
) -> Result<String> {
    let mut text = String::from("\nFIX engine\n");
    note!(
        "round trips of an order and its report: plain sockets, sessions, sessions with journals"
    );
    let store = scratch.file("journals");
    let store = store.to_string_lossy();
    let latency = [
        "bench",
        "latency",
        "--rounds",
        ROUND_TRIPS,
        "--store",
        &store,
    ];
    let latency = part(&latency, stop)?;
    note!("throughput over {} sessions", SESSIONS.join(", "));
    let sessions = SESSIONS.join(",");
    let throughput = [
        "throughput",
        "run",
        "--sessions",
        &sessions,
        "--runs",
        "1",
        "--at-least",
        "0",
    ];
    let throughput = part(&[&throughput[..], &["--messages", ORDERS]].concat(), stop)?;
    tell(&mut text, &latency, &throughput)?;
    for (prefix, from) in [("latency_", &latency), ("throughput_", &throughput)] {
        absorb(figures, prefix, from);
    }
    add_part(page, &latency, &throughput);
    Ok(text)
}

/// Another run of this binary to its end: its object.
fn part(args: &[&str], stop: &Stop) -> Result<Value> {
    let child = Fanfare::start(&[args, &["--json"]].concat(), stop)?;
    json(&child.finish_any(RUN)?)
}

/// Adds all figures of a part, and whether it did what it should.
fn absorb(figures: &mut Figures, prefix: &str, from: &Value) {
    let all = from.get("figures").and_then(Value::as_object);
    for (name, value) in all.into_iter().flatten() {
        if let Some(value) = value.as_f64() {
            figures.add(&format!("{prefix}{name}"), value);
        }
    }
    figures.set_ok(figures.is_ok() && from.get("ok") == Some(&true.into()));
}

fn tell(text: &mut String, latency: &Value, throughput: &Value) -> Result<()> {
    writeln!(
        text,
        "round trip of an order and its report: plain sockets p50 {:.2} us, p99 {:.2} us; through \
         two sessions p50 {:.2} us, p99 {:.2} us; with journals p50 {:.2} us",
        figure(latency, "raw_p50_us")?,
        figure(latency, "raw_p99_us")?,
        figure(latency, "p50_us")?,
        figure(latency, "p99_us")?,
        figure(latency, "stored_p50_us")?,
    )?;
    for n in SESSIONS {
        let rate = figure(throughput, &format!("sessions_{n}_per_s"))?;
        let plural = if n == "1" { "" } else { "s" };
        writeln!(
            text,
            "{n} session{plural}, every order kept: {rate:.0} orders/s"
        )?;
    }
    writeln!(text, "{} orders lost", figure(throughput, "lost")?)?;
    Ok(())
}

/// What was measured, and with which figure's name it starts.
const KINDS: [(&str, &str); 3] = [
    ("plain sockets", "raw_"),
    ("two sessions", ""),
    ("with journals", "stored_"),
];

fn add_part(page: &mut Page, latency: &Value, throughput: &Value) {
    page.part(
        "FIX engine",
        "The round trip of a NewOrderSingle(D) and its ExecutionReport(8), in turns with plain \
         sockets; and orders a second over many sessions, every one kept by the side that sends.",
    );
    let bars = |name: &str, percentile: &str| CategorySeries {
        name: name.to_owned(),
        line: false,
        values: KINDS
            .iter()
            .map(|(_, front)| figure(latency, &format!("{front}{percentile}_us")).ok())
            .map(|us| us.map(|us| us * 1e3))
            .collect(),
    };
    let chart = CategoryChart {
        label: "Round trip of an order",
        value: "round trip",
        unit: Unit::Nanoseconds,
        category: "through",
        categories: KINDS.map(|(name, _)| name.to_owned()).to_vec(),
        series: vec![bars("p50", "p50"), bars("p99", "p99")],
    };
    page.chart(
        "Round trip of an order",
        "Both ends spin, each on a processor of its own.",
        &chart.to_svg(),
    );
    let rate = |n: &str| figure(throughput, &format!("sessions_{n}_per_s")).ok();
    let chart = CategoryChart {
        label: "Orders a second by number of sessions",
        value: "throughput",
        unit: Unit::Named("orders/s"),
        category: "sessions",
        categories: SESSIONS.map(str::to_owned).to_vec(),
        series: vec![CategorySeries {
            name: "orders".to_owned(),
            line: false,
            values: SESSIONS.iter().map(|n| rate(n)).collect(),
        }],
    };
    page.chart(
        "Throughput",
        "From the first order parsed to the last, all sessions together.",
        &chart.to_svg(),
    );
}
