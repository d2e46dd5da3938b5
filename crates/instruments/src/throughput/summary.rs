//! All runs of a measurement: a table, figures, a chart.

use std::fmt::Write as _;

use fanfare_engine::stop::Stop;

use crate::figures::{Figures, Printed};
use crate::plot::{CategoryChart, CategorySeries, Unit, standalone, thousands};

/// The runs with one number of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The number of sessions.
    pub sessions: usize,
    /// Messages per second of each run.
    pub rates: Vec<f64>,
    /// The times t1 and t2 of each run: when the first and the last order had been received,
    /// monotonic nanoseconds.
    pub spans: Vec<(u64, u64)>,
}

/// Throughput by number of sessions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// The rows, in the requested order.
    pub rows: Vec<Row>,
    /// The number of runs made.
    pub runs: u64,
    /// Sessions over all runs.
    pub sessions: u64,
    /// Orders over all runs that are missing.
    pub lost: u64,
    /// Orders over all runs that came with other content or in another order.
    pub wrong: u64,
    /// Orders over all runs in the journals afterwards; `None` without persistence.
    pub persisted: Option<u64>,
}

/// The result of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Messages per second.
    pub rate: f64,
    /// The monotonic nanoseconds at which the acceptor had the first order.
    pub t1: u64,
    /// The monotonic nanoseconds at which it had the last one.
    pub t2: u64,
    /// Orders that are missing.
    pub lost: u64,
    /// Orders that came with other content or in another order.
    pub wrong: u64,
    /// Orders found in the journals afterwards, if they were persisted.
    pub persisted: Option<u64>,
}

impl Outcome {
    /// Returns the outcome in the acceptor's figures, without the journals.
    #[must_use]
    pub fn of(received: &Printed) -> Self {
        let figure = |name| received.figure(name).unwrap_or(f64::NAN);
        Self {
            rate: figure("rate_per_s"),
            t1: figure("t1_ns") as u64,
            t2: figure("t2_ns") as u64,
            lost: figure("lost") as u64,
            wrong: figure("wrong") as u64,
            persisted: None,
        }
    }
}

/// The most runs of a number of sessions.
pub const MOST_RUNS: u64 = 1000;

/// The number of runs of each row.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Runs of each, at most [`MOST_RUNS`].
    pub runs: u64,
    /// The seconds from t1 to t2, over all runs of a row, up to which further runs are made.
    pub at_least: f64,
}

impl Row {
    /// Returns the arithmetic mean of the runs; NaN without any.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.rates.iter().sum::<f64>() / self.rates.len() as f64
    }

    /// Returns the time of all runs from t1 to t2, seconds.
    #[must_use]
    pub fn measured(&self) -> f64 {
        let spans = self.spans.iter().map(|(t1, t2)| t2.saturating_sub(*t1));
        spans.sum::<u64>() as f64 / 1e9
    }
}

impl Summary {
    /// Creates a summary with a row for each of these numbers of sessions, without a run.
    #[must_use]
    pub fn new(sessions: &[usize], persists: bool) -> Self {
        let rows = sessions.iter().map(|&sessions| Row {
            sessions,
            ..Row::default()
        });
        Self {
            rows: rows.collect(),
            persisted: persists.then_some(0),
            ..Self::default()
        }
    }

    /// Makes all runs, with the rows interleaved: `measure` is called with the number of the run,
    /// the row and its sessions, and returns `None` if it was interrupted. Returns false in that
    /// case, or if `stop` was raised. Earlier results stay in the summary in any case.
    ///
    /// # Errors
    /// That of `measure`, at once.
    pub fn measure<E>(
        &mut self,
        plan: Plan,
        stop: &Stop,
        mut measure: impl FnMut(u64, usize, usize) -> Result<Option<Outcome>, E>,
    ) -> Result<bool, E> {
        for run in 1..=MOST_RUNS {
            let wants = |row: &Row| run <= plan.runs || row.measured() < plan.at_least;
            let wanted: Vec<usize> = (0..self.rows.len())
                .filter(|&row| wants(&self.rows[row]))
                .collect();
            if wanted.is_empty() {
                break;
            }
            for row in wanted {
                if stop.is_raised() {
                    return Ok(false);
                }
                let Some(outcome) = measure(run, row, self.rows[row].sessions)? else {
                    return Ok(false);
                };
                self.add(row, &outcome);
            }
        }
        Ok(true)
    }

    /// Returns whether every order of `messages` per session came, and is in the journals if these
    /// `hold` all.
    #[must_use]
    pub fn is_whole(&self, messages: u64, holds: bool) -> bool {
        let persisted = self.persisted.filter(|_| holds);
        let is_kept = persisted.is_none_or(|found| found == self.sessions * messages);
        self.lost == 0 && self.wrong == 0 && is_kept
    }

    /// Adds a run of the row at `index`.
    pub(super) fn add(&mut self, index: usize, outcome: &Outcome) {
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

    /// Returns the ratio of the last row's rate to that of the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.rows.first(), self.rows.last()) {
            (Some(first), Some(last)) => last.mean() / first.mean(),
            _ => f64::NAN,
        }
    }

    /// Adds all figures under their names in JSON.
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

    /// Returns the table: a row for each number of sessions, with the mean of its runs.
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

    /// Returns the chart as an SVG file.
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
