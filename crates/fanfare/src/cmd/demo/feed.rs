//! The FAST part: a feed generated, multicast on two lossy lines, arbitrated, decoded, published
//! to DDS, received, compared with the file, and echoed.

use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::page::Page;
use fanfare_instruments::plot::{CategoryChart, CategorySeries, Unit, thousands, three_digits};
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

use crate::address::free_udp_port;
use crate::children::{Fanfare, figure, json};
use crate::print::note;
use crate::scratch::Scratch;

/// Messages of each set-up, as in the article.
const MESSAGES: &str = "30000";
/// Packets that each line leaves out.
const LOSS: &str = "0.05";

/// How long a process may take to get ready, and to end.
const READY: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(120);

/// A set-up, and the microseconds between two of its packets: simple packs many messages into
/// one.
const SETUPS: [(&str, &str); 2] = [("simple", "2500"), ("complex", "150")];

/// The percentiles of the chart.
const SHOWN: [&str; 4] = ["p50", "p90", "p99", "p99_9"];

/// Runs it, adds its figures, named `feed_…`, and its part of the page; the text for the terminal.
pub(crate) fn run(
    scratch: &Scratch,
    figures: &mut Figures,
    page: &mut Page,
    stop: &Stop,
) -> Result<String> {
    let mut text = String::from("\nFAST feed to DDS\n");
    let mut outcomes = Vec::new();
    for (setup, pace) in SETUPS {
        if stop.is_raised() {
            text.push_str("interrupted: this is the report so far\n");
            break;
        }
        note!("{setup} feed: generator, two lossy multicast lines, publisher, subscriber, echo");
        let outcome =
            Outcome::of(setup, pace, scratch, stop).with_context(|| format!("the {setup} feed"))?;
        outcome.tell(&mut text)?;
        outcome.add_to(figures);
        outcomes.push(outcome);
    }
    add_part(page, &outcomes);
    Ok(text)
}

/// What the three processes of a set-up said.
struct Outcome {
    setup: &'static str,
    sent: Value,
    published: Value,
    received: Value,
}

impl Outcome {
    fn of(setup: &'static str, pace: &str, scratch: &Scratch, stop: &Stop) -> Result<Self> {
        let file = scratch.file(&format!("{setup}.dat"));
        let file = file.to_string_lossy();
        let generate = ["fast", "generate", setup, "-n", MESSAGES, "-o", &file];
        Fanfare::start(&generate, stop)?.finish(READY)?;
        // Not the default domain: other participants of this machine are none of ours.
        let domain = (std::process::id() % 200 + 20).to_string();
        let in_domain = ["--domain", &domain, "--json"];
        let subscribe = ["dds", "subscribe", setup, "--check", &file, "--idle", "30"];
        let mut subscriber = Fanfare::start(&[&subscribe[..], &in_domain].concat(), stop)?;
        subscriber.wait_line(READY, |l| l.starts_with("Finished").then_some(()))?;
        let (a, b) = (free_udp_port()?, free_udp_port()?);
        let (line_a, line_b) = (format!("224.1.2.133:{a}"), format!("224.1.2.134:{b}"));
        let lines = ["--multicast", &line_a, "--multicast", &line_b];
        // One sample under way at a time: the latency of DDS, not of a queue in front of it.
        let publish = ["dds", "publish", setup, "--idle", "15", "--in-flight", "1"];
        let publish = [&publish[..], &lines, &in_domain].concat();
        let mut publisher = Fanfare::start(&publish, stop)?;
        let mut receiving = 0;
        publisher.wait_line(READY, |l| {
            receiving += u32::from(l.starts_with("receiving"));
            (receiving == 2).then_some(())
        })?;
        let port = a.to_string();
        let multicast = ["fast", "multicast", "-f", &file, "-p", &port, "-s", pace];
        let losses = ["--loss-a", LOSS, "--loss-b", LOSS, "--second", &line_b];
        let sender = Fanfare::start(&[&multicast[..], &losses, &["--json"]].concat(), stop)?;
        Ok(Self {
            setup,
            sent: json(&sender.finish_any(RUN)?)?,
            published: json(&publisher.finish_any(RUN)?)?,
            received: json(&subscriber.finish_any(RUN)?)?,
        })
    }

    /// Nothing dropped, everything echoed, every sample as in the file.
    fn is_ok(&self) -> bool {
        let drops = figure(&self.published, "kernel_drops");
        let parts = [&self.published, &self.received];
        drops.is_ok_and(|n| n == 0.0) && parts.iter().all(|p| p.get("ok") == Some(&true.into()))
    }

    fn tell(&self, text: &mut String) -> Result<()> {
        let (sent, published, received) = (&self.sent, &self.published, &self.received);
        writeln!(
            text,
            "{}: {} packets a line, of which A left out {}, B {}, both {}; {} messages decoded, \
             {} missing, {} dropped by the kernel",
            self.setup,
            figure(sent, "packets")?,
            figure(sent, "line_a_left_out")?,
            figure(sent, "line_b_left_out")?,
            figure(sent, "both_left_out")?,
            figure(published, "messages")?,
            figure(published, "missing")?,
            figure(published, "kernel_drops")?,
        )?;
        writeln!(
            text,
            "{} samples published, {} echoed; {} received, {} as in the file, {} not",
            figure(published, "samples")?,
            figure(published, "echoes")?,
            figure(received, "samples")?,
            figure(received, "equal")?,
            figure(received, "wrong")?,
        )?;
        let trip = |p: &str| figure(published, &format!("roundtrip_{p}_us"));
        writeln!(
            text,
            "decode {:.0} ns, decode and convert {:.0} ns a message; round trip p50 {:.1} us, p99 \
             {:.1} us; latency p50 {:.1} us",
            figure(published, "decode_ns")?,
            figure(published, "convert_ns")?,
            trip("p50")?,
            trip("p99")?,
            figure(published, "latency_p50_us")?,
        )?;
        Ok(())
    }

    fn add_to(&self, figures: &mut Figures) {
        let setup = self.setup;
        let all = [
            (&self.sent, "both_left_out"),
            (&self.published, "messages"),
            (&self.published, "missing"),
            (&self.published, "kernel_drops"),
            (&self.published, "samples"),
            (&self.published, "echoes"),
            (&self.received, "equal"),
            (&self.received, "wrong"),
            (&self.published, "decode_ns"),
            (&self.published, "convert_ns"),
            (&self.published, "roundtrip_p50_us"),
            (&self.published, "roundtrip_p99_us"),
            (&self.published, "latency_p50_us"),
        ];
        for (from, name) in all {
            if let Ok(value) = figure(from, name) {
                figures.add(&format!("feed_{setup}_{name}"), value);
            }
        }
        figures.set_ok(figures.is_ok() && self.is_ok());
    }

    /// A value of the page's table.
    fn cell(&self, name: &str) -> String {
        let from = [&self.published, &self.received, &self.sent];
        let value = from.iter().find_map(|part| figure(part, name).ok());
        value.map_or("\u{2013}".to_owned(), |v| {
            thousands(if v < 1000.0 {
                three_digits(v)
            } else {
                v.round()
            })
        })
    }
}

/// Figures of the table: what the page calls them, and what the commands do.
const ROWS: [(&str, &str); 13] = [
    ("Packets sent on each line", "packets"),
    ("Left out on line A", "line_a_left_out"),
    ("Left out on line B", "line_b_left_out"),
    ("Left out on both", "both_left_out"),
    ("Messages decoded", "messages"),
    ("Messages missing", "missing"),
    ("Datagrams dropped by the kernel", "kernel_drops"),
    ("Samples published", "samples"),
    ("Echoes", "echoes"),
    ("Samples as in the file", "equal"),
    ("Samples not as in the file", "wrong"),
    ("Decode, ns a message", "decode_ns"),
    ("Decode and convert, ns a message", "convert_ns"),
];

fn add_part(page: &mut Page, outcomes: &[Outcome]) {
    if outcomes.is_empty() {
        return;
    }
    page.part(
        "FAST feed to DDS",
        "Generated, multicast on two lines that each lose one packet in twenty, arbitrated, \
         decoded, published, received, compared with the file, and echoed.",
    );
    let series = |o: &Outcome| CategorySeries {
        name: o.setup.to_owned(),
        line: false,
        values: SHOWN
            .iter()
            .map(|p| figure(&o.published, &format!("roundtrip_{p}_us")).ok())
            .map(|us| us.map(|us| us * 1e3))
            .collect(),
    };
    let chart = CategoryChart {
        label: "Round trip over DDS by percentile",
        value: "round trip",
        unit: Unit::Nanoseconds,
        category: "percentile",
        categories: ["50 %", "90 %", "99 %", "99.9 %"]
            .map(str::to_owned)
            .to_vec(),
        series: outcomes.iter().map(series).collect(),
    };
    page.chart(
        "Round trip over DDS",
        "From the write of a sample to the arrival of its echo.",
        &chart.to_svg(),
    );
    let mut head = vec![""];
    head.extend(outcomes.iter().map(|o| o.setup));
    let rows = ROWS.map(|(name, key)| {
        let cells = outcomes.iter().map(|o| o.cell(key));
        std::iter::once(name.to_owned()).chain(cells).collect()
    });
    page.table("Figures of the feed", &head, &rows);
}
