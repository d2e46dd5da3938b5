//! The fan-out alternating with plain sockets: the overhead of the gateway.

use anyhow::Result;
use fanfare_instruments::bench::fanout::PERCENTILES;
use fanfare_instruments::figures::Printed;
use fanfare_instruments::plot::{Curve, CurvesChart, Unit, thousands, three_digits};
use std::fmt::Write;

use super::{Demo, RUN};

/// The consumers, by the order of delivery, with their labels on the page.
const CONSUMERS: [(&str, &str); 3] = [
    ("first", "First consumer"),
    ("median", "Median consumer"),
    ("last", "Last consumer"),
];

/// Figures of the gateway and plain sockets, alternating.
pub(super) struct Comparison(Printed);

impl Comparison {
    /// Measures messages to `consumers`, one at a time, through both.
    pub(super) fn measure(demo: &Demo, consumers: u64, rounds: &str) -> Result<Self> {
        let consumers = consumers.to_string();
        let bench = ["bench", "fanout", "--json", "--consumers", &consumers];
        let figures = demo.start(&[&bench, &["--rounds", rounds]])?.figures(RUN)?;
        Ok(Self(figures))
    }

    fn row(&self, consumer: &str, percentile: &str) -> Result<[f64; 3]> {
        let figure = |front: &str| self.0.figure(&format!("{front}{consumer}_{percentile}_us"));
        let (ours, plain) = (figure("")?, figure("raw_")?);
        Ok([ours, plain, ours / plain])
    }

    /// Writes the lines of the report.
    pub(super) fn tell(&self, text: &mut String, consumers: u64) -> Result<()> {
        writeln!(
            text,
            "one message to {consumers} consumers, in turns with plain sockets (us):"
        )?;
        for (consumer, _) in CONSUMERS {
            let [p50, plain_p50, ratio_p50] = self.row(consumer, "p50")?;
            let [p99, plain_p99, ratio_p99] = self.row(consumer, "p99")?;
            writeln!(
                text,
                "{consumer:>6} consumer: p50 {p50:>7.1}, plain {plain_p50:>7.1}, ratio \
                 {ratio_p50:.2};  p99 {p99:>7.1}, plain {plain_p99:>7.1}, ratio {ratio_p99:.2}"
            )?;
        }
        Ok(())
    }

    /// Adds the figures, named `fanout_beside_…`.
    pub(super) fn add_figures(&self, demo: &mut Demo) {
        demo.figures.absorb("fanout_beside_", &self.0, &[]);
    }

    /// Adds tiles, the curves and the table of the page.
    pub(super) fn add_to(&self, demo: &mut Demo) -> Result<()> {
        let mut tiles = Vec::new();
        for (consumer, name) in CONSUMERS {
            for percentile in ["p50", "p99"] {
                let [ours, _, ratio] = self.row(consumer, percentile)?;
                tiles.push((
                    format!("{name}, {percentile}"),
                    thousands(three_digits(ours)),
                    "µs",
                    format!("{ratio:.2} × plain sockets"),
                ));
            }
        }
        demo.page.tiles_with_notes(&tiles);
        let chart = CurvesChart {
            label: "The gateway beside plain sockets, by percentile",
            value: "latency",
            unit: Unit::Nanoseconds,
            curves: self.curves(),
        };
        demo.page.chart(
            "Beside plain sockets",
            "One message at a time to all consumers, in turns through the gateway and by one send \
             to each of as many plain sockets: the distance between the two curves is what the \
             gateway adds.",
            &chart.to_svg(),
        );
        let mut rows = Vec::new();
        for (consumer, name) in CONSUMERS {
            for percentile in ["p50", "p99"] {
                let [ours, plain, ratio] = self.row(consumer, percentile)?;
                let time = |us| format!("{} µs", thousands(three_digits(us)));
                rows.push(vec![
                    format!("{name}, {percentile}"),
                    time(ours),
                    time(plain),
                    format!("{ratio:.2}"),
                ]);
            }
        }
        let head = ["", "gateway", "plain sockets", "ratio"];
        demo.page.table("Beside plain sockets", &head, &rows);
        Ok(())
    }

    fn curves(&self) -> Vec<Curve> {
        let kinds = [("last", 0), ("median", 2)];
        let curves = kinds.into_iter().flat_map(|(consumer, color)| {
            [("", "gateway", false), ("raw_", "plain", true)].map(|(front, name, dashed)| {
                let value = |percentile: &str| {
                    let name = format!("{front}{consumer}_{percentile}_us");
                    self.0.figure(&name).ok()
                };
                let points = PERCENTILES.iter();
                Curve {
                    name: format!("{consumer}, {name}"),
                    color: color + usize::from(dashed),
                    dashed,
                    points: points
                        .filter_map(|(name, percent)| Some((*percent, value(name)? * 1e3)))
                        .collect(),
                }
            })
        });
        curves.collect()
    }
}
