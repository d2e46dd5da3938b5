//! All runs of a measurement: a table, figures, a chart.

use std::fmt::Write as _;

use crate::figures::Figures;
use crate::plot::{CategoryChart, CategorySeries, Unit, standalone, thousands};

/// The runs with one number of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// How many sessions.
    pub sessions: usize,
    /// Messages a second of each run.
    pub rates: Vec<f64>,
    /// t1 and t2 of each run: when the first and the last order had been received, monotonic
    /// nanoseconds.
    pub spans: Vec<(u64, u64)>,
}

/// Throughput by number of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// In the order in which they were asked for.
    pub rows: Vec<Row>,
    /// Runs that were made.
    pub runs: u64,
    /// Sessions over all runs.
    pub sessions: u64,
    /// Orders over all runs that did not come.
    pub lost: u64,
    /// Orders over all runs that came with other content or in another order.
    pub wrong: u64,
    /// Orders over all runs that the journals had afterwards; none without persistence.
    pub persisted: Option<u64>,
}

/// What came of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Messages a second.
    pub rate: f64,
    /// Monotonic nanoseconds when the acceptor had the first order.
    pub t1: u64,
    /// And when it had the last one.
    pub t2: u64,
    /// Orders that did not come.
    pub lost: u64,
    /// Orders that came with other content or in another order.
    pub wrong: u64,
    /// Orders found in the journals afterwards, if they were kept.
    pub persisted: Option<u64>,
}

impl Row {
    /// The arithmetic mean of the runs; NaN without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }

    /// How long all runs took from t1 to t2, seconds.
    #[must_use]
    pub fn measured(&self) -> f64 {
        let spans = self.spans.iter().map(|(t1, t2)| t2.saturating_sub(*t1));
        spans.sum::<u64>() as f64 / 1e9
    }
}

impl Summary {
    /// Adds a run of the row at `index`.
    pub fn add(&mut self, index: usize, outcome: &Outcome) {
        if let Some(row) = self.rows.get_mut(index) {
            row.rates.push(outcome.rate);
            row.spans.push((outcome.t1, outcome.t2));
            self.runs += 1;
            self.sessions += row.sessions as u64;
        }
        self.lost += outcome.lost;
        self.wrong += outcome.wrong;
        if let (Some(all), Some(found)) = (&mut self.persisted, outcome.persisted) {
            *all += found;
        }
    }

    /// The rate of the last row over that of the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.rows.first(), self.rows.last()) {
            (Some(first), Some(last)) => last.mean() / first.mean(),
            _ => f64::NAN,
        }
    }

    /// Adds all figures under the names that they have in JSON.
    pub fn add_to(&self, figures: &mut Figures) {
        for row in &self.rows {
            let name = |what: &str| format!("sessions_{}_{what}", row.sessions);
            figures.add(&name("per_s"), row.mean());
            figures.count(&name("runs"), row.rates.len() as u64);
            figures.add(&name("measured_s"), row.measured());
            let spans = row.spans.iter();
            let (t1, t2): (Vec<u64>, Vec<u64>) = spans.copied().unzip();
            figures.list(&name("t1_ns"), t1);
            figures.list(&name("t2_ns"), t2);
        }
        figures.add("ratio_last_to_first", self.ratio());
        figures.count("lost", self.lost);
        figures.count("wrong", self.wrong);
        if let Some(persisted) = self.persisted {
            figures.count("persisted", persisted);
        }
    }

    /// The table: a row for each number of sessions, with the mean of its runs.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:>11}  {:>18}  {:>22}\n",
            "Chart Index", "Number of Sessions", "Mean Messages / second"
        );
        for (index, row) in self.rows.iter().enumerate() {
            let mean = match row.mean() {
                mean if mean.is_finite() => thousands(mean.round()),
                _ => "-".to_owned(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:>11}  {:>18}  {mean:>22}", index + 1, row.sessions);
        }
        text
    }

    /// The chart as an SVG file.
    #[must_use]
    pub fn chart(&self) -> String {
        let mean = |row: &Row| Some(row.mean()).filter(|mean| mean.is_finite());
        let chart = CategoryChart {
            label: "Throughput by number of sessions",
            value: "throughput",
            unit: Unit::Named("messages/s"),
            category: "sessions",
            categories: self
                .rows
                .iter()
                .map(|row| row.sessions.to_string())
                .collect(),
            series: vec![CategorySeries::bars(
                "mean of all runs",
                self.rows.iter().map(mean),
            )],
        };
        standalone(&chart.to_svg())
    }
}
