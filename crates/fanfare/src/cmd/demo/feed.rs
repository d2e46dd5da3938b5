//! The FAST part: a feed is generated, multicast on two lossy lines, arbitrated, decoded, published
//! to DDS, received, compared with the file, and echoed.

use anyhow::{Context, Result};
use fanfare_instruments::figures::Printed;
use fanfare_instruments::plot::{
    CategoryChart, CategorySeries, Line, TimeChart, Unit, thousands, three_digits,
};
use std::fmt::Write;
use std::net::{Ipv4Addr, UdpSocket};

use super::{Demo, Part, READY, RUN};
use crate::address::free_udp_port;
use crate::print::note;

/// The part of the feed; its figures are named `feed_…`.
pub(super) const PART: Part = Part {
    title: "FAST feed to DDS",
    about: "Generated, multicast on two lines that each lose one packet in twenty, arbitrated, \
            decoded, published, received, compared with the file, and echoed.",
    run,
};

/// Messages of each set-up, as in the article.
const MESSAGES: &str = "30000";
/// The share of packets that each line drops.
const LOSS: &str = "0.05";

/// The set-ups, each with the microseconds between two of its packets: simple packs many messages
/// into one.
const SETUPS: [(&str, &str); 2] = [("simple", "2500"), ("complex", "150")];

/// The percentiles of the chart.
const SHOWN: [&str; 4] = ["p50", "p90", "p99", "p99_9"];

fn run(demo: &mut Demo) -> Result<()> {
    let mut outcomes = Vec::new();
    let measured = measure(demo, &mut outcomes);
    add_part(demo, &outcomes);
    measured
}

/// Measures the set-ups, up to one that fails.
fn measure(demo: &mut Demo, outcomes: &mut Vec<Outcome>) -> Result<()> {
    for (setup, pace) in SETUPS {
        if demo.stop.is_raised() {
            break;
        }
        note!("{setup} feed: generator, two lossy multicast lines, publisher, subscriber, echo");
        let outcome =
            Outcome::of(demo, setup, pace).with_context(|| format!("the {setup} feed"))?;
        outcome.add_to(demo);
        let told = outcome.tell(&mut demo.text);
        outcomes.push(outcome);
        told?;
    }
    Ok(())
}

/// Returns a domain from 20 to 94 that no other demo and no test has, and the socket that reserves
/// it, at a port of the domain that RTPS does not use. From 101 on, sockets of other programs may
/// have the ports of a domain, and `bench dds` has 98 and 99.
fn own_domain(process: u32) -> Result<(u32, UdpSocket)> {
    let mut ids = (0..75).map(|more| 20 + (process % 75 + more) % 75);
    let reserved = ids.find_map(|id| {
        let port = u16::try_from(7_400 + 250 * id + 9).ok()?;
        Some((id, UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?))
    });
    reserved.context("other programs have all DDS domains from 20 to 94")
}

/// The output of the three processes of a set-up.
struct Outcome {
    setup: &'static str,
    sent: Printed,
    published: Printed,
    received: Printed,
}

impl Outcome {
    fn of(demo: &Demo, setup: &'static str, pace: &str) -> Result<Self> {
        let file = demo.scratch.file(&format!("{setup}.dat"));
        let file = file.to_string_lossy();
        let generate = ["fast", "generate", setup, "-n", MESSAGES, "-o", &file];
        demo.start(&[&generate])?.finish(READY)?;
        let (domain, _reserved) = own_domain(std::process::id())?;
        let domain = domain.to_string();
        let in_domain = ["--domain", &domain, "--json"];
        let subscribe = ["dds", "subscribe", setup, "--check", &file, "--idle", "30"];
        let mut subscriber = demo.start(&[&subscribe, &in_domain])?;
        subscriber.wait_lines(READY, "Finished", 1)?;
        let (a, b) = (free_udp_port()?, free_udp_port()?);
        let (line_a, line_b) = (format!("224.1.2.133:{a}"), format!("224.1.2.134:{b}"));
        let lines = ["--multicast", &line_a, "--multicast", &line_b];
        // With one sample in flight, the latency is that of DDS, without a queue in front of it.
        let publish = ["dds", "publish", setup, "--idle", "15", "--in-flight", "1"];
        let mut publisher = demo.start(&[&publish, &lines, &in_domain])?;
        publisher.wait_lines(READY, "receiving", 2)?;
        let port = a.to_string();
        let multicast = ["fast", "multicast", "-f", &file, "-p", &port, "-s", pace];
        let losses = ["--loss-a", LOSS, "--loss-b", LOSS, "--second", &line_b];
        let sender = demo.start(&[&multicast, &losses, &["--json"]])?;
        Ok(Self {
            setup,
            sent: sender.figures(RUN)?,
            published: publisher.figures(RUN)?,
            received: subscriber.figures(RUN)?,
        })
    }

    fn tell(&self, text: &mut String) -> Result<()> {
        let (sent, published, received) = (&self.sent, &self.published, &self.received);
        writeln!(
            text,
            "{}: {} packets a line, of which A left out {}, B {}, both {}; {} messages decoded, \
             {} missing, {} dropped by the kernel",
            self.setup,
            sent.figure("packets")?,
            sent.figure("line_a_left_out")?,
            sent.figure("line_b_left_out")?,
            sent.figure("both_left_out")?,
            published.figure("messages")?,
            published.figure("missing")?,
            published.figure("kernel_drops")?,
        )?;
        writeln!(
            text,
            "{} samples published, {} echoed; {} received, {} as in the file, {} not",
            published.figure("samples")?,
            published.figure("echoes")?,
            received.figure("samples")?,
            received.figure("equal")?,
            received.figure("wrong")?,
        )?;
        for line in ["a", "b"] {
            let figure = |what: &str| published.figure(&format!("line_{line}_{what}"));
            let (first, duplicate) = (figure("first")?, figure("duplicate")?);
            writeln!(
                text,
                "line {}: first with {first} packets, behind the other with {duplicate}, by {:.1} \
                 us in the mean",
                line.to_uppercase(),
                figure("late_mean_us")?,
            )?;
        }
        let trip = |p: &str| published.figure(&format!("roundtrip_{p}_us"));
        writeln!(
            text,
            "decode {:.0} ns, decode and convert {:.0} ns a message; round trip p50 {:.1} us, p99 \
             {:.1} us; latency p50 {:.1} us",
            published.figure("decode_ns")?,
            published.figure("convert_ns")?,
            trip("p50")?,
            trip("p99")?,
            published.figure("latency_p50_us")?,
        )?;
        Ok(())
    }

    fn add_to(&self, demo: &mut Demo) {
        let published = [
            "messages",
            "missing",
            "kernel_drops",
            "samples",
            "echoes",
            "decode_ns",
            "convert_ns",
            "roundtrip_p50_us",
            "roundtrip_p99_us",
            "latency_p50_us",
            "line_a_first",
            "line_a_duplicate",
            "line_a_late_mean_us",
            "line_b_first",
            "line_b_duplicate",
            "line_b_late_mean_us",
        ];
        let (front, figures) = (format!("feed_{}_", self.setup), &mut demo.figures);
        figures.absorb(&front, &self.sent, &["both_left_out"]);
        figures.absorb(&front, &self.published, &published);
        figures.absorb(&front, &self.received, &["equal", "wrong"]);
        let dropped = self.published.figure("kernel_drops") != Ok(0.0);
        figures.set_ok(figures.is_ok() && !dropped);
    }

    /// Adds the losses of each line over time, and those of them that the other line did not fill.
    fn add_losses(&self, demo: &mut Demo) {
        let lost = |name: &str, of: &str, color, dashed| {
            let values = self.published.list(&format!("{name}_by_100_ms"));
            Line {
                name: of.to_owned(),
                color,
                dashed,
                points: values.into_iter().map(Some).collect(),
            }
        };
        let chart = TimeChart {
            label: "Packets lost over time",
            value: "lost",
            unit: Some(Unit::Named("sequence numbers")),
            interval: 0.1,
            bands: Vec::new(),
            lines: vec![
                lost("line_a_lost", "line A", 0, false),
                lost("line_b_lost", "line B", 2, false),
                lost("missing", "missing on both", 1, true),
            ],
        };
        let title = format!("Lost and recovered, {} feed", self.setup);
        let about = "What each line lost in each tenth of a second. All but what both lost came \
                     by the other line.";
        demo.page.chart(&title, about, &chart.to_svg());
    }

    /// Returns a value for the page's table.
    fn cell(&self, name: &str) -> String {
        let from = [&self.published, &self.received, &self.sent];
        let value = from.iter().find_map(|part| part.figure(name).ok());
        value.map_or("\u{2013}".to_owned(), |v| {
            thousands(if v < 1000.0 {
                three_digits(v)
            } else {
                v.round()
            })
        })
    }
}

/// The figures of the table: the label on the page, and the name in the commands' output.
const ROWS: [(&str, &str); 19] = [
    ("Packets sent on each line", "packets"),
    ("Left out on line A", "line_a_left_out"),
    ("Left out on line B", "line_b_left_out"),
    ("Left out on both", "both_left_out"),
    ("Line A first, packets", "line_a_first"),
    ("Line B first, packets", "line_b_first"),
    ("Line A behind B, packets", "line_a_duplicate"),
    ("Line B behind A, packets", "line_b_duplicate"),
    ("Line A behind B, mean, µs", "line_a_late_mean_us"),
    ("Line B behind A, mean, µs", "line_b_late_mean_us"),
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

fn add_part(demo: &mut Demo, outcomes: &[Outcome]) {
    if outcomes.is_empty() {
        return;
    }
    demo.begin_page(&PART);
    let series = |o: &Outcome| {
        let figure = |p: &&str| o.published.figure(&format!("roundtrip_{p}_us")).ok();
        let nanos = SHOWN.iter().map(|p| figure(p).map(|us| us * 1e3));
        CategorySeries::bars(o.setup, nanos)
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
    demo.chart(
        "Round trip over DDS",
        "From the write of a sample to the arrival of its echo.",
        &chart,
    );
    for outcome in outcomes {
        outcome.add_losses(demo);
    }
    let mut head = vec![""];
    head.extend(outcomes.iter().map(|o| o.setup));
    let rows = ROWS.map(|(name, key)| {
        let cells = outcomes.iter().map(|o| o.cell(key));
        std::iter::once(name.to_owned()).chain(cells).collect()
    });
    demo.page.table("Figures of the feed", &head, &rows);
}

#[cfg(test)]
mod tests {
    use super::own_domain;

    #[test]
    fn no_domain_has_ephemeral_ports_or_is_that_of_a_benchmark() {
        for process in [0, 74, 1_000, u32::MAX] {
            let (domain, _reserved) = own_domain(process).unwrap();
            assert!((20..98).contains(&domain), "{domain}");
        }
    }

    #[test]
    fn each_demo_has_another_domain() {
        // Without a reservation both processes would have the same one.
        let (first, _first) = own_domain(74).unwrap();
        let (second, _second) = own_domain(149).unwrap();
        assert_ne!(first, second);
    }
}
