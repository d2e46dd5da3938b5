//! The part of the FIX engine: the round trip of an order compared with plain sockets, and
//! throughput over many sessions with every order persisted.

use anyhow::Result;
use fanfare_instruments::figures::Printed;
use fanfare_instruments::plot::{CategoryChart, CategorySeries, Unit, thousands, three_digits};
use std::fmt::Write;

use super::{Demo, Part, RUN};
use crate::print::note;

const ROUND_TRIPS: &str = "20000";
const SESSIONS: [&str; 3] = ["1", "10", "100"];
const ORDERS: &str = "10000";

/// The engine's part; its figures are named `latency_…` and `throughput_…`.
pub(super) const PART: Part = Part {
    title: "FIX engine",
    about: "The round trip of a NewOrderSingle(D) and its ExecutionReport(8), in turns with plain \
            sockets; and orders a second over many sessions, every one kept by the side that \
            sends.",
    run,
};

fn run(demo: &mut Demo) -> Result<()> {
    note!(
        "round trips of an order and its report: plain sockets, sessions, sessions with journals"
    );
    let store = demo.scratch.file("journals");
    let store = store.to_string_lossy();
    let latency = ["bench", "latency", "--rounds", ROUND_TRIPS, "--json"];
    let latency = demo
        .start(&[&latency, &["--store", &store]])?
        .figures(RUN)?;
    let sessions = SESSIONS.join(",");
    note!("throughput over {} sessions", SESSIONS.join(", "));
    let throughput = ["throughput", "run", "--sessions", &sessions, "--json"];
    let limits = ["--runs", "1", "--at-least", "0", "--messages", ORDERS];
    let throughput = demo.start(&[&throughput, &limits])?.figures(RUN)?;
    report(demo, &latency, &throughput)
}

/// Adds figures and charts, then the text: after Ctrl-C it ends before the first missing figure.
fn report(demo: &mut Demo, latency: &Printed, throughput: &Printed) -> Result<()> {
    demo.figures.absorb("latency_", latency, &[]);
    demo.figures.absorb("throughput_", throughput, &[]);
    add_part(demo, latency, throughput);
    tell(&mut demo.text, latency, throughput)
}

fn tell(text: &mut String, latency: &Printed, throughput: &Printed) -> Result<()> {
    writeln!(
        text,
        "round trip of an order and its report: plain sockets p50 {:.2} us, p99 {:.2} us; through \
         two sessions p50 {:.2} us, ratio {:.2}, p99 {:.2} us, ratio {:.2}; with journals p50 \
         {:.2} us, ratio {:.2}",
        latency.figure("raw_p50_us")?,
        latency.figure("raw_p99_us")?,
        latency.figure("p50_us")?,
        latency.figure("ratio_p50")?,
        latency.figure("p99_us")?,
        latency.figure("ratio_p99")?,
        latency.figure("stored_p50_us")?,
        latency.figure("ratio_stored_p50")?,
    )?;
    for n in SESSIONS {
        let rate = throughput.figure(&format!("sessions_{n}_per_s"))?;
        let plural = if n == "1" { "" } else { "s" };
        writeln!(
            text,
            "{n} session{plural}, every order kept: {rate:.0} orders/s"
        )?;
    }
    writeln!(text, "{} orders lost", throughput.figure("lost")?)?;
    Ok(())
}

/// Returns the key figures; those of round trips with their ratio to plain sockets.
fn tiles(latency: &Printed, throughput: &Printed) -> Vec<(String, String, &'static str, String)> {
    let unknown = || "\u{2013}".to_owned();
    let trip = |title: &str, name: &str| {
        let figure = latency.figure(&format!("{name}_us")).ok();
        let ratio = latency.figure(&format!("ratio_{name}")).ok();
        let ratio = ratio.map_or_else(unknown, |ratio| format!("{ratio:.2}"));
        let value = figure.map_or_else(unknown, three_digits_of);
        let note = format!("{ratio} × plain sockets");
        (title.to_owned(), value, "µs", note)
    };
    let rate = |sessions: &str| {
        let rate = throughput
            .figure(&format!("sessions_{sessions}_per_s"))
            .ok();
        let value = rate.map_or_else(unknown, |rate| thousands(rate.round()));
        let title = format!("Sessions: {sessions}");
        (title, value, "orders/s", "every order kept".to_owned())
    };
    vec![
        trip("Round trip, p50", "p50"),
        trip("Round trip, p99", "p99"),
        trip("With journals, p50", "stored_p50"),
        rate(SESSIONS[0]),
        rate(SESSIONS[2]),
    ]
}

fn three_digits_of(value: f64) -> String {
    thousands(three_digits(value))
}

/// The kinds of round trips, and the prefixes of their figures.
const KINDS: [(&str, &str); 3] = [
    ("plain sockets", "raw_"),
    ("two sessions", ""),
    ("with journals", "stored_"),
];

fn add_part(demo: &mut Demo, latency: &Printed, throughput: &Printed) {
    demo.begin_page(&PART);
    demo.page.tiles_with_notes(&tiles(latency, throughput));
    let bars = |percentile: &str| {
        let figure = |front: &str| latency.figure(&format!("{front}{percentile}_us")).ok();
        let nanos = KINDS.map(|(_, front)| figure(front).map(|us| us * 1e3));
        CategorySeries::bars(percentile, nanos.into_iter())
    };
    let chart = CategoryChart {
        label: "Round trip of an order",
        value: "round trip",
        unit: Unit::Nanoseconds,
        category: "through",
        categories: KINDS.map(|(name, _)| name.to_owned()).to_vec(),
        series: vec![bars("p50"), bars("p99")],
    };
    demo.chart(
        "Round trip of an order",
        "Both ends spin, each on a processor of its own.",
        &chart,
    );
    let rate = |n: &&str| throughput.figure(&format!("sessions_{n}_per_s")).ok();
    let chart = CategoryChart {
        label: "Orders a second by number of sessions",
        value: "throughput",
        unit: Unit::Named("orders/s"),
        category: "sessions",
        categories: SESSIONS.map(str::to_owned).to_vec(),
        series: vec![CategorySeries::bars("orders", SESSIONS.iter().map(rate))],
    };
    demo.chart(
        "Throughput",
        "From the first order parsed to the last, all sessions together.",
        &chart,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::stop::Stop;

    #[test]
    fn figures_of_before_an_interrupt_are_reported() {
        let printed = |text| Printed::parse(text).unwrap();
        let latency = printed(r#"{"ok": true, "figures": {"p50_us": 2.5}}"#);
        let throughput = printed(r#"{"ok": false, "figures": {"sessions_1_per_s": 7.0}}"#);
        let mut demo = Demo::new(Stop::new()).unwrap();
        assert!(report(&mut demo, &latency, &throughput).is_err());
        for (name, value) in [
            ("latency_p50_us", 2.5),
            ("throughput_sessions_1_per_s", 7.0),
        ] {
            assert_eq!(demo.figures.value(name), Some(value), "{name}");
        }
        assert!(demo.page.to_html().contains(PART.title));
    }
}
