//! `/metrics`: every counter and histogram of the gateway in the formats of Prometheus.
//!
//! The source of a value (an agent, a feed, a topic) is the label `agent`. Sessions have no series
//! of their own, so that the number of series does not grow with theirs.

use fanfare_engine::counters::{Counters, Distribution, HistogramReading, Kind, Reading, sentence};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A format of the response to a scraper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, version 0.0.4.
    Text,
}

impl Format {
    /// Returns the format requested by the header `Accept`.
    pub(crate) fn accepted(accept: &str) -> Self {
        match accept.contains("application/openmetrics-text") {
            true => Self::OpenMetrics,
            false => Self::Text,
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The bounds of a histogram's buckets: powers of two of a nanosecond, at which the counts are
/// exact. They are every power from 1 us to 17 ms, then 134 ms and 1.07 s: with the bucket of all
/// values, 18 series for any distribution.
const BOUNDS: [u32; 17] = [
    10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 27, 30,
];

/// Renders all counters and histograms for a scraper.
pub(crate) fn render(counters: &Counters, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("fanfare");
    registry.register_collector(Box::new(Readings::of(counters.sums())));
    registry.register_collector(Box::new(Histograms::of(counters.histograms())));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(match format {
        Format::OpenMetrics => text,
        Format::Text => plain(&text),
    })
}

/// The readings, by name.
#[derive(Debug)]
struct Readings(BTreeMap<String, Family>);

#[derive(Debug)]
struct Family {
    kind: Kind,
    help: String,
    /// The values by label.
    series: BTreeMap<String, u64>,
}

impl Readings {
    fn of(all: Vec<Reading>) -> Self {
        let mut families = BTreeMap::new();
        for reading in all {
            let family = families.entry(name(&reading.name));
            let family = family.or_insert_with(|| Family {
                kind: reading.kind,
                help: sentence(&reading.description),
                series: BTreeMap::new(),
            });
            family.series.insert(reading.of, reading.value);
        }
        Self(families)
    }
}

impl Family {
    /// Encodes a value: a time in units of which a second has `per_second`, or a plain number.
    fn encode(&self, value: u64, per_second: Option<f64>, to: MetricEncoder<'_>) -> fmt::Result {
        let seconds = per_second.map(|units| value as f64 / units);
        match (self.kind, seconds) {
            (Kind::Count, None) => ConstCounter::new(value).encode(to),
            (Kind::Count, Some(seconds)) => ConstCounter::new(seconds).encode(to),
            (Kind::Gauge, None) => {
                ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(to)
            }
            (Kind::Gauge, Some(seconds)) => ConstGauge::new(seconds).encode(to),
        }
    }
}

impl Collector for Readings {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, family) in &self.0 {
            let kind = match family.kind {
                Kind::Count => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
            };
            let (name, per_second) = in_seconds(name);
            let unit = per_second.map(|_| &Unit::Seconds);
            let mut metric = encoder.encode_descriptor(name, &family.help, unit, kind)?;
            if let (1, Some(&value)) = (family.series.len(), family.series.get("")) {
                family.encode(value, per_second, metric)?;
                continue;
            }
            for (of, &value) in &family.series {
                let labels: &[(&str, &str)] = &[("agent", of)];
                family.encode(value, per_second, metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Histograms of durations, by name.
#[derive(Debug)]
struct Histograms(BTreeMap<String, Durations>);

#[derive(Debug)]
struct Durations {
    help: String,
    /// The values by label. Histograms of the same name and owner are one series.
    series: BTreeMap<String, Distribution>,
}

impl Histograms {
    fn of(all: Vec<HistogramReading>) -> Self {
        let mut families = BTreeMap::new();
        for reading in all {
            let family = families.entry(name(&reading.name));
            let family = family.or_insert_with(|| Durations {
                help: sentence(&reading.description),
                series: BTreeMap::new(),
            });
            let values = family.series.entry(reading.of);
            values
                .and_modify(|own| own.merge(&reading.distribution))
                .or_insert(reading.distribution);
        }
        Self(families)
    }
}

impl Collector for Histograms {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (unit, kind) = (Some(&Unit::Seconds), MetricType::Histogram);
        for (name, family) in &self.0 {
            let mut metric = encoder.encode_descriptor(name, &family.help, unit, kind)?;
            for (of, values) in &family.series {
                let labels: &[(&str, &str)] = &[("agent", of)];
                encode_histogram(values, metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

fn encode_histogram(of: &Distribution, mut to: MetricEncoder<'_>) -> fmt::Result {
    let seconds = |nanos: f64| nanos / 1e9;
    let (mut buckets, mut before) = (Vec::with_capacity(BOUNDS.len() + 1), 0);
    for exponent in BOUNDS {
        let below = of.below(exponent);
        buckets.push((seconds((1u64 << exponent) as f64), below - before));
        before = below;
    }
    let count = of.count();
    buckets.push((f64::INFINITY, count - before));
    to.encode_histogram::<[(&str, &str); 0]>(seconds(of.sum() as f64), count, &buckets, None)
}

/// Returns a name without the unit of a time, and how many of these a second has. The base unit of
/// times is the second, so that the name of the series ends with `_seconds`.
fn in_seconds(name: &str) -> (&str, Option<f64>) {
    let units = [("_ns", 1e9), ("_us", 1e6), ("_ms", 1e3)];
    let mut found = units.into_iter().filter_map(|(suffix, per_second)| {
        let name = name.strip_suffix(suffix)?;
        Some((name, Some(per_second)))
    });
    found.next().unwrap_or((name, None))
}

/// Returns a name that is valid in Prometheus.
fn name(of: &str) -> String {
    let fits = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '_',
    };
    of.chars().map(fits).collect()
}

/// Converts to the text format of Prometheus, where a counter's `HELP` and `TYPE` have its name
/// with `_total`.
fn plain(open_metrics: &str) -> String {
    let counter = |line: &str| {
        let name = line.strip_prefix("# TYPE ")?.strip_suffix(" counter")?;
        Some(name.to_owned())
    };
    let counters: BTreeSet<String> = open_metrics.lines().filter_map(counter).collect();
    let mut text = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines().filter(|&line| line != "# EOF") {
        let comment = ["# HELP ", "# TYPE "].into_iter().find_map(|what| {
            let (name, rest) = line.strip_prefix(what)?.split_once(' ')?;
            let suffix = if counters.contains(name) {
                "_total"
            } else {
                ""
            };
            Some(format!("{what}{name}{suffix} {rest}"))
        });
        text += comment.as_deref().unwrap_or(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        let counters = Counters::new();
        for (of, value) in [("worker0", 3), ("worker1", 4)] {
            let counter = counters.add_of(of, "deliveries", Kind::Count, "messages");
            counter.increment(value);
        }
        counters
            .add_of("A \"b\"\\\n", "waiting", Kind::Gauge, "connections now")
            .set(7);
        counters.add("ring-too long", "odd").increment(1);
        counters
    }

    #[test]
    fn both_formats_have_every_series() {
        let open = render(&counters(), Format::OpenMetrics).unwrap();
        let series = [
            "fanfare_deliveries_total{agent=\"worker0\"} 3\n",
            "fanfare_deliveries_total{agent=\"worker1\"} 4\n",
            "fanfare_waiting{agent=\"A \\\"b\\\"\\\\\\n\"} 7\n",
            "fanfare_ring_too_long_total 1\n",
        ];
        let text = render(&counters(), Format::Text).unwrap();
        for one in series {
            assert!(open.contains(one), "{one} in {open}");
            assert!(text.contains(one), "{one} in {text}");
        }
        assert!(open.contains("# TYPE fanfare_deliveries counter\n") && open.ends_with("# EOF\n"));
        assert!(text.contains("# HELP fanfare_deliveries_total Messages.\n"));
        assert!(text.contains("# TYPE fanfare_deliveries_total counter\n"));
        assert!(text.contains("# TYPE fanfare_waiting gauge\n") && !text.contains("EOF"));
    }

    #[test]
    fn durations_are_histograms_of_seconds() {
        let counters = Counters::new();
        let ring = counters.add_histogram("worker0", "stage_ring", "time in the ring");
        for nanos in [5, 1_023, 1_024, 3_000_000_000] {
            ring.record(nanos);
        }
        let text = render(&counters, Format::Text).unwrap();
        for line in [
            "# HELP fanfare_stage_ring_seconds Time in the ring.\n",
            "# TYPE fanfare_stage_ring_seconds histogram\n",
            "fanfare_stage_ring_seconds_bucket{le=\"0.000001024\",agent=\"worker0\"} 2\n",
            "fanfare_stage_ring_seconds_bucket{le=\"0.000002048\",agent=\"worker0\"} 3\n",
            "fanfare_stage_ring_seconds_bucket{le=\"+Inf\",agent=\"worker0\"} 4\n",
            "fanfare_stage_ring_seconds_count{agent=\"worker0\"} 4\n",
            "fanfare_stage_ring_seconds_sum{agent=\"worker0\"} 3.000002052\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let series = text.lines().filter(|line| line.contains("_bucket{"));
        assert_eq!(series.count(), 18);
    }

    #[test]
    fn times_are_in_seconds() {
        let counters = Counters::new();
        let add = |name, kind| counters.add_of("A", name, kind, "x");
        add("line_behind", Kind::Count).set(7);
        add("line_behind_ns", Kind::Count).set(1_500_000);
        add("line_behind_max_ns", Kind::Gauge).set(2_000_000_000);
        add("line_heard_ms", Kind::Gauge).set(1_700_000_000_123);
        for format in [Format::OpenMetrics, Format::Text] {
            let text = render(&counters, format).unwrap();
            for line in [
                "fanfare_line_behind_total{agent=\"A\"} 7\n",
                "fanfare_line_behind_seconds_total{agent=\"A\"} 0.0015\n",
                "# TYPE fanfare_line_behind_max_seconds gauge\n",
                "fanfare_line_behind_max_seconds{agent=\"A\"} 2.0\n",
                "fanfare_line_heard_seconds{agent=\"A\"} 1700000000.123\n",
            ] {
                assert!(text.contains(line), "{line} in {text}");
            }
            assert!(!text.contains("_ns") && !text.contains("_ms"), "{text}");
        }
    }

    #[test]
    fn a_series_that_several_measure_is_there_once() {
        let counters = Counters::new();
        for nanos in [5, 1_023] {
            let ring = counters.add_histogram("dds", "stage_ring", "time in the ring");
            ring.record(nanos);
            counters.add("x", "messages").increment(nanos);
        }
        let text = render(&counters, Format::OpenMetrics).unwrap();
        for line in [
            "fanfare_stage_ring_seconds_count{agent=\"dds\"} 2\n",
            "fanfare_stage_ring_seconds_bucket{le=\"0.000001024\",agent=\"dds\"} 2\n",
            "fanfare_x_total 1028\n",
        ] {
            assert_eq!(text.matches(line).count(), 1, "{line} in {text}");
        }
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_accepts() {
        let prometheus = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Text);
    }
}
