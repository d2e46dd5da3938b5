//! The figures of a fan-out run: as text, as JSON figures, as a page.

use std::fmt::{self, Write};

use super::options::Options;
use super::series::{Bin, Series};
use crate::figures::{Figures, rate};
use crate::histogram::Histogram;
use crate::page::Page;
use crate::plot::{
    Band, Line, PercentileChart, STANDARD_PERCENTILES, TimeChart, Unit, in_unit, thousands,
    three_digits,
};

/// The results of a capture's fan-out. Times are nanoseconds.
///
/// `Display` formats the text report; [`figures`](Self::figures) and [`to_html`](Self::to_html)
/// return the other two.
#[derive(Debug)]
pub struct Report {
    /// The options of the analysis.
    pub options: Options,
    /// Incoming application messages, marked or not.
    pub incoming: Flow,
    /// Outgoing application messages: deliveries.
    pub outgoing: Flow,
    /// Deliveries whose incoming message is not in the capture, or that carry no mark.
    pub unmatched: u64,
    /// Incoming marked messages of which the capture shows no delivery.
    pub undelivered: u64,
    /// Deliveries omitted from the latency as warm-up.
    pub skipped: u64,
    /// The times from the arrival of a message to each of its deliveries.
    pub latency: Histogram,
    /// Packets in the capture.
    pub packets: u64,
    /// Warnings for the reader of the figures.
    pub warnings: Vec<String>,
    series: Series,
}

/// Messages of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flow {
    /// The number of messages.
    pub messages: u64,
    /// Those with a time, and their range.
    timed: u64,
    first: u64,
    last: u64,
}

impl Flow {
    /// Returns messages per second from the first to the last: n messages span n-1 intervals. Zero
    /// for fewer than two, or for messages of one instant. Messages without a time do not count.
    pub fn rate(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.first) as f64 / 1e9;
        rate(self.timed, seconds)
    }

    fn count(&mut self, time: u64) {
        self.first = if self.timed == 0 {
            time
        } else {
            self.first.min(time)
        };
        self.last = self.last.max(time);
        self.timed += 1;
        self.messages += 1;
    }
}

impl Report {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            incoming: Flow::default(),
            outgoing: Flow::default(),
            unmatched: 0,
            undelivered: 0,
            skipped: 0,
            latency: Histogram::new(),
            packets: 0,
            warnings: Vec::new(),
            series: Series::default(),
        }
    }

    pub(super) fn incoming(&mut self, time: u64) {
        self.incoming.count(time);
        self.series.incoming(time);
    }

    pub(super) fn outgoing(&mut self, time: u64) {
        self.outgoing.count(time);
        self.series.outgoing(time);
    }

    /// Records a delivery at `time`, `nanos` nanoseconds after its message came in.
    pub(super) fn latency(&mut self, time: u64, nanos: u64) {
        if self.skipped < self.options.skip {
            self.skipped += 1;
        } else {
            self.latency.record(nanos);
            self.series.latency(time, nanos);
        }
    }

    /// Adds warnings of parts of the run that are missing in the capture.
    pub(super) fn warn_of_what_is_missing(&mut self) {
        let Options {
            in_port,
            out_port,
            skip,
        } = self.options;
        let all_skipped = self.all_skipped();
        let mut warn = |text: String| self.warnings.push(text);
        if self.incoming.messages == 0 {
            warn(format!(
                "no application message to port {in_port} is in the capture"
            ));
        }
        if self.outgoing.messages == 0 {
            warn(format!(
                "no application message from port {out_port} is in the capture"
            ));
        }
        if self.unmatched > 0 {
            let n = self.unmatched;
            warn(format!(
                "{n} deliveries have no incoming message in the capture"
            ));
        }
        if self.undelivered > 0 {
            let n = self.undelivered;
            warn(format!(
                "{n} marked messages have no delivery in the capture"
            ));
        }
        if let Some(n) = all_skipped {
            warn(format!(
                "no latency: all {n} deliveries are within the first {skip} that are skipped"
            ));
        }
    }

    /// Returns the number of deliveries if all of them were skipped: nothing was measured then.
    #[must_use]
    pub fn all_skipped(&self) -> Option<u64> {
        (self.latency.is_empty() && self.skipped > 0).then_some(self.skipped)
    }

    /// Returns the figures of `fanfare fanout report`. Latencies are omitted if none was measured.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::new("fanout report");
        figures.add("in_rate_per_s", self.incoming.rate());
        figures.add("out_rate_per_s", self.outgoing.rate());
        figures.count("deliveries", self.outgoing.messages);
        figures.count("unmatched", self.unmatched);
        figures.add("min_us", self.latency.micros(0.0));
        figures.add("max_us", self.latency.micros(100.0));
        figures.add("mean_us", self.latency.mean_micros());
        figures.percentiles("", &self.latency);
        figures.count("in_messages", self.incoming.messages);
        figures.count("measured", self.latency.len());
        figures.count("skipped", self.skipped);
        figures.count("undelivered", self.undelivered);
        figures.count("packets", self.packets);
        figures
    }

    /// Returns the report as one page with charts. `source` names the capture.
    pub fn to_html(&self, source: &str) -> String {
        let subtitle = format!("Wire to wire through the gateway, from the capture {source}");
        let mut page = Page::new("Fan-out latency", &subtitle);
        self.add_to(&mut page);
        page.environment(self.figures().environment());
        page.to_html()
    }

    /// Adds the report's tiles, charts and table to a page.
    pub fn add_to(&self, page: &mut Page) {
        let latency = |percent| match self.latency.percentile(percent) {
            Some(v) => thousands(three_digits(v as f64 / 1e3)),
            None => "\u{2013}".to_owned(),
        };
        page.tiles(&[
            ("IN rate", thousands(self.incoming.rate().round()), "msg/s"),
            ("OUT rate", thousands(self.outgoing.rate().round()), "msg/s"),
            ("Median", latency(50.0), "µs"),
            ("99 %", latency(99.0), "µs"),
            ("99.9 %", latency(99.9), "µs"),
            ("Deliveries", thousands(self.outgoing.messages as f64), ""),
        ]);
        page.warnings(&self.warnings);
        page.chart(
            "Latency by percentile",
            "Each nine takes the same width: the share of deliveries that were at least as fast.",
            &self.percentile_chart(),
        );
        page.chart(
            "Latency over time",
            "Fastest delivery, median and 99 % of each interval.",
            &self.latency_chart(),
        );
        page.chart(
            "Message rates",
            "Incoming messages of all producers and outgoing deliveries to all consumers.",
            &self.rate_chart(),
        );
        page.table("Figures", &[], &self.rows());
    }

    fn percentile_chart(&self) -> String {
        PercentileChart {
            label: "Latency by percentile",
            value: "latency",
            unit: Unit::Nanoseconds,
            series: vec![("deliveries", &self.latency)],
        }
        .to_svg()
    }

    fn latency_chart(&self) -> String {
        let (interval, bins) = self.series.bins();
        let percentile = |bin: &Bin, percent| {
            let value = bin.latency.as_ref().and_then(|h| h.percentile(percent));
            value.map(|v| v as f64)
        };
        let points = |percent| {
            bins.iter()
                .map(|b| percentile(b, percent))
                .collect::<Vec<_>>()
        };
        let (min, p99) = (points(0.0), points(99.0));
        let band = min
            .iter()
            .zip(&p99)
            .map(|(low, high)| low.zip(*high))
            .collect();
        let name = |name: &str| name.to_owned();
        TimeChart {
            label: "Latency over time",
            value: "latency",
            unit: Some(Unit::Nanoseconds),
            interval,
            bands: vec![Band {
                name: name("min to 99 %"),
                color: 0,
                points: band,
            }],
            lines: vec![
                Line {
                    name: name("99 %"),
                    color: 1,
                    dashed: true,
                    points: p99,
                },
                Line {
                    name: name("median"),
                    color: 0,
                    dashed: false,
                    points: points(50.0),
                },
                Line {
                    name: name("min"),
                    color: 2,
                    dashed: false,
                    points: min,
                },
            ],
        }
        .to_svg()
    }

    fn rate_chart(&self) -> String {
        let (interval, mut bins) = self.series.coarser(48);
        // The last interval ends with the run, not at its boundary: its rate would be too low.
        if bins.len() > 1 {
            bins.pop();
        }
        let rate = |count: fn(&Bin) -> u64| {
            bins.iter()
                .map(|b| Some(count(b) as f64 / interval))
                .collect::<Vec<_>>()
        };
        let line = |name: &str, color, points| Line {
            name: name.to_owned(),
            color,
            dashed: false,
            points,
        };
        TimeChart {
            label: "Message rates over time",
            value: "rate",
            unit: Some(Unit::Named("msg/s")),
            interval,
            bands: Vec::new(),
            lines: vec![
                line("IN", 2, rate(|b| b.incoming)),
                line("OUT", 0, rate(|b| b.outgoing)),
            ],
        }
        .to_svg()
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let time = |value: Option<u64>| match value {
            Some(v) => in_unit(Unit::Nanoseconds, v as f64),
            None => "\u{2013}".to_owned(),
        };
        let count = |value: u64| thousands(value as f64);
        let rate = |flow: &Flow| format!("{} msg/s", thousands(flow.rate().round()));
        let mean = self.latency.mean().map(|v| v.round() as u64);
        let mut rows = vec![
            ("IN rate", rate(&self.incoming)),
            ("OUT rate", rate(&self.outgoing)),
            ("Incoming messages", count(self.incoming.messages)),
            ("Deliveries", count(self.outgoing.messages)),
            ("Deliveries measured", count(self.latency.len())),
            ("Deliveries skipped as warm-up", count(self.skipped)),
            ("Deliveries without incoming message", count(self.unmatched)),
            ("Marked messages without delivery", count(self.undelivered)),
            ("Packets in the capture", count(self.packets)),
            ("Minimum", time(self.latency.min())),
            ("Mean", time(mean)),
        ]
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect::<Vec<_>>();
        for percent in STANDARD_PERCENTILES {
            rows.push(vec![
                format!("{percent} %"),
                time(self.latency.percentile(percent)),
            ]);
        }
        rows.push(vec!["Maximum".to_owned(), time(self.latency.max())]);
        rows
    }
}

/// Formats the text report, latencies in whole microseconds; without latency lines if none was
/// measured.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (incoming, outgoing) = (self.incoming.rate(), self.outgoing.rate());
        writeln!(
            f,
            "IN rate: {incoming:.0} (msg/sec), OUT rate: {outgoing:.0} (msg/sec)"
        )?;
        let (Some(min), Some(max), Some(mean)) =
            (self.latency.min(), self.latency.max(), self.latency.mean())
        else {
            return Ok(());
        };
        let micros = |nanos: u64| (nanos as f64 / 1e3).round();
        let (min, max, mean) = (micros(min), micros(max), mean / 1e3);
        writeln!(f, "MIN: {min} (us), MAX: {max} (us), MEAN: {mean:.2} (us)")?;
        let mut lines = String::new();
        for percent in STANDARD_PERCENTILES {
            let value = self.latency.percentile(percent).map_or(0.0, micros);
            writeln!(lines, "{percent:.2} percentile: {value} (us)")?;
        }
        f.write_str(&lines)
    }
}
