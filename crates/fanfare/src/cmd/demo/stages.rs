//! The times between the stages of a gateway of the demo, read at its control socket.

use anyhow::{Context, Result};
use fanfare_instruments::plot::{CategoryChart, CategorySeries, Unit};
use serde_json::Value;
use std::fmt::Write;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::Demo;

/// The longest time to a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// The stages in the order in which a message takes them.
const ORDER: [&str; 4] = ["decode", "ring", "socket", "total"];

/// The longest path of a Unix socket, bytes.
pub(super) const LONGEST_PATH: usize = 107;

/// A stage, over all messages.
pub(super) struct Stage {
    name: String,
    of: String,
    count: u64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// Requests the stages of a gateway, and returns those with measurements.
pub(super) fn ask(socket: &Path) -> Result<Vec<Stage>> {
    let mut stream = UnixStream::connect(socket).context("the gateway's control socket")?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"{\"command\":\"stages\"}\n")?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line).context("the gateway's stages")?;
    let stages = answer["result"].as_array().into_iter().flatten();
    let stages = stages.map(|stage| {
        let (text, all) = (|key: &str| stage[key].as_str(), &stage["windows"]["all"]);
        let nanos = |key: &str| all[key].as_f64().unwrap_or_default();
        Stage {
            name: text("stage").unwrap_or_default().to_owned(),
            of: text("of").unwrap_or_default().to_owned(),
            count: all["count"].as_u64().unwrap_or_default(),
            p50: nanos("p50_ns"),
            p99: nanos("p99_ns"),
            max: nanos("max_ns"),
        }
    });
    let mut stages: Vec<_> = stages.filter(|stage| stage.count > 0).collect();
    stages.sort_by_key(|stage| ORDER.iter().position(|name| *name == stage.name));
    Ok(stages)
}

/// Writes a line of the report.
pub(super) fn tell(text: &mut String, stages: &[Stage]) -> Result<()> {
    if stages.is_empty() {
        return Ok(());
    }
    let stages = stages.iter().map(|stage| {
        let [p50, p99] = [stage.p50, stage.p99].map(|nanos| nanos / 1e3);
        format!("{} p50 {p50:.1} us, p99 {p99:.1}", stage.name)
    });
    let stages: Vec<_> = stages.collect();
    writeln!(text, "inside the gateway: {}", stages.join("; "))?;
    Ok(())
}

/// Adds the figures, and the chart of the page.
pub(super) fn add(demo: &mut Demo, stages: &[Stage]) {
    for stage in stages {
        let values = [("p50", stage.p50), ("p99", stage.p99), ("max", stage.max)];
        for (name, nanos) in values {
            let name = format!("fanout_stage_{}_{name}_us", stage.name);
            demo.figures.add(&name, nanos / 1e3);
        }
    }
    if stages.is_empty() {
        return;
    }
    let bars = |name: &str, value: fn(&Stage) -> f64| {
        CategorySeries::bars(name, stages.iter().map(|stage| Some(value(stage))))
    };
    let chart = CategoryChart {
        label: "Stages inside the gateway",
        value: "time",
        unit: Unit::Nanoseconds,
        category: "stage",
        categories: stages
            .iter()
            .map(|stage| format!("{} ({})", stage.name, stage.of))
            .collect(),
        series: vec![
            bars("p50", |stage| stage.p50),
            bars("p99", |stage| stage.p99),
        ],
    };
    demo.chart(
        "Inside the gateway",
        "Measured by the gateway itself: from the turn that reads a producer's bytes to the ring, \
         in the ring, to the last of all consumers, and all of it. Ingress and worker share a \
         thread here: nothing waits in the ring.",
        &chart,
    );
}
