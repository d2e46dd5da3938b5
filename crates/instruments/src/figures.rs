//! The JSON object that every measuring command prints.
//!
//! ```
//! use fanfare_instruments::figures::Figures;
//!
//! let mut figures = Figures::new("fanout report");
//! figures.count("deliveries", 200);
//! figures.add("p50_us", 135.25);
//! let json = figures.to_json();
//! assert_eq!(json["figures"]["p50_us"], 135.25);
//! assert_eq!(json["ok"], true);
//! ```

use std::fs;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use fanfare_wire::UtcTimestamp;
use serde_json::{Map, Number, Value, json};

use crate::histogram::{Histogram, rank};
use crate::plot::STANDARD_PERCENTILES;

/// Figures of one run of one command, in the order in which they were added.
#[derive(Debug, Clone)]
pub struct Figures {
    command: String,
    ok: bool,
    figures: Map<String, Value>,
    environment: Environment,
}

impl Figures {
    /// Creates an object without figures, with `ok` and the current environment of this machine.
    /// `command` is the subcommand as typed, without the program's name: `fanout report`.
    pub fn new(command: &str) -> Self {
        Self {
            command: command.to_owned(),
            ok: true,
            figures: Map::new(),
            environment: Environment::collect(),
        }
    }

    /// Adds or replaces a figure. `name` is snake_case and ends in its unit. The value is rounded
    /// to six decimals; one that is not finite (nothing was measured) omits the figure, since JSON
    /// has no such number and zero would be read as a result.
    pub fn add(&mut self, name: &str, value: f64) {
        let rounded = (value * 1e6).round() / 1e6;
        if let Some(number) = Number::from_f64(rounded) {
            self.figures.insert(name.to_owned(), Value::Number(number));
        }
    }

    /// Adds the standard percentiles of times in nanoseconds as figures in microseconds: `p50_us`,
    /// `p99_9_us` and so on, with the prefix `prefix`.
    pub fn percentiles(&mut self, prefix: &str, nanos: &Histogram) {
        for percent in STANDARD_PERCENTILES {
            let name = percent.to_string().replace('.', "_");
            self.add(&format!("{prefix}p{name}_us"), nanos.micros(percent));
        }
    }

    /// Adds or replaces a figure that is a count.
    pub fn count(&mut self, name: &str, value: u64) {
        self.figures.insert(name.to_owned(), Value::from(value));
    }

    /// Adds whole numbers, in order.
    pub fn list(&mut self, name: &str, values: Vec<u64>) {
        self.figures.insert(name.to_owned(), Value::from(values));
    }

    /// Adds figures that another process printed, each with `prefix` before its name: those with
    /// these names, or all if there are none. If the other process is not `ok`, neither is this
    /// one.
    pub fn absorb(&mut self, prefix: &str, other: &Printed, names: &[&str]) {
        for (name, value) in other.iter() {
            if value.is_number() && (names.is_empty() || names.contains(&name)) {
                self.figures
                    .insert(format!("{prefix}{name}"), value.clone());
            }
        }
        self.ok &= other.is_ok();
    }

    /// Returns the value of a figure, if it was added.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.figures.get(name).and_then(Value::as_f64)
    }

    /// Returns all figures by name, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> + '_ {
        self.figures
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?)))
    }

    /// Returns whether the command succeeded.
    pub fn is_ok(&self) -> bool {
        self.ok
    }

    /// Sets whether the command succeeded; true by default.
    pub fn set_ok(&mut self, ok: bool) {
        self.ok = ok;
    }

    /// Returns the environment of the figures.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the object `{"command", "ok", "figures", "environment"}`.
    pub fn to_json(&self) -> Value {
        json!({
            "command": self.command,
            "ok": self.ok,
            "figures": self.figures,
            "environment": self.environment.to_json(),
        })
    }
}

/// Figures that another process printed.
#[derive(Debug, Clone, PartialEq)]
pub struct Printed(Value);

/// The error of a figure that the process did not print.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the measured process printed no figure `{0}`")]
pub struct NoFigure(String);

impl Printed {
    /// Parses one JSON object.
    ///
    /// # Errors
    /// The text is not one.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let object: Map<String, Value> = serde_json::from_str(text.trim())?;
        Ok(Self(object.into()))
    }

    /// Returns a figure.
    ///
    /// # Errors
    /// There is none of that name: nothing was measured.
    pub fn figure(&self, name: &str) -> Result<f64, NoFigure> {
        let value = self.iter().find(|(key, _)| *key == name);
        let value = value.and_then(|(_, value)| value.as_f64());
        value.ok_or_else(|| NoFigure(name.to_owned()))
    }

    /// Returns whole numbers in order; none if there is no such list.
    pub fn list(&self, name: &str) -> Vec<f64> {
        let value = self.iter().find(|(key, _)| *key == name);
        let values = value.and_then(|(_, value)| value.as_array());
        let values = values.into_iter().flatten();
        values.filter_map(Value::as_f64).collect()
    }

    /// Returns whether the process succeeded.
    pub fn is_ok(&self) -> bool {
        self.0.get("ok") == Some(&Value::Bool(true))
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let figures = self.0.get("figures").and_then(Value::as_object);
        let figures = figures.into_iter().flatten();
        figures.map(|(name, value)| (name.as_str(), value))
    }
}

/// Returns messages per second, from the first to the last of `count` in `seconds`; 0 for fewer
/// than two.
pub fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        count.saturating_sub(1) as f64 / seconds
    } else {
        0.0
    }
}

/// Returns the middle value, the mean of both for an even number of values; NaN for none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(values.len().saturating_sub(1) / 2), at(values.len() / 2))
}

/// Returns the smallest value that at least `percent` percent of them do not exceed; NaN for none.
pub fn percentile(values: &[u64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = rank(percent, sorted.len() as u64) as usize;
    sorted.get(rank - 1).map_or(f64::NAN, |&value| value as f64)
}

/// The conditions of a figure besides the program: the machine and the day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// The processor's name from the kernel.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The kernel's name and release.
    pub kernel: String,
    /// Version of Fanfare.
    pub version: String,
    /// UTC, ISO 8601, to the second.
    pub date: String,
}

impl Environment {
    /// Reads the environment of this process. A value that cannot be read is `unknown`.
    pub fn collect() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let read = |path| fs::read_to_string(path).unwrap_or_else(|_| "unknown".to_owned());
        let os = read("/proc/sys/kernel/ostype");
        let release = read("/proc/sys/kernel/osrelease");
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            cpu: cpu_name(&cpuinfo).to_owned(),
            cores: available_parallelism().map_or(1, usize::from),
            kernel: format!("{} {}", os.trim(), release.trim()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: iso_date(since_epoch.as_secs()),
        }
    }

    /// Returns the environment as a JSON object.
    pub fn to_json(&self) -> Value {
        json!({
            "cpu": self.cpu,
            "cores": self.cores,
            "kernel": self.kernel,
            "version": self.version,
            "date": self.date,
        })
    }
}

/// Returns the first processor's name in the text of /proc/cpuinfo.
fn cpu_name(cpuinfo: &str) -> &str {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| matches!(key.trim(), "model name" | "Model" | "cpu model"))
        .map_or("unknown", |(_, name)| name.trim())
}

/// Formats seconds since 1970 as `2026-11-21T03:20:00Z`.
fn iso_date(secs: u64) -> String {
    let time = UtcTimestamp::from_nanos(secs.cast_signed().saturating_mul(1_000_000_000));
    // The format of FIX, without the fraction: 20261121-03:20:00.
    let text = format!("{time:.17}");
    let (year, month, day) = (&text[..4], &text[4..6], &text[6..8]);
    format!("{year}-{month}-{day}T{}Z", &text[9..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_has_the_agreed_shape_and_keeps_the_order() {
        let mut figures = Figures::new("bench codec");
        figures.add("order_index_ns", 21.5);
        figures.count("lost", 0);
        figures.add("a_ratio", 1.0 / 3.0);
        let text = figures.to_json().to_string();
        let head = r#"{"command":"bench codec","ok":true,"figures":"#;
        assert!(text.starts_with(head), "{text}");
        let body = r#"{"order_index_ns":21.5,"lost":0,"a_ratio":0.333333}"#;
        assert!(text.contains(body), "{text}");
        for key in ["cpu", "cores", "kernel", "version", "date"] {
            assert!(!figures.to_json()["environment"][key].is_null(), "{key}");
        }
    }

    #[test]
    fn a_figure_that_is_no_number_is_left_out() {
        let mut figures = Figures::new("x");
        figures.add("p50_us", f64::NAN);
        figures.add("rate_per_s", f64::INFINITY);
        assert_eq!(figures.to_json()["figures"], json!({}));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_both_middle_values() {
        let of = |values: &[f64]| median(values.to_vec());
        assert_eq!((of(&[1.0, 2.0]), of(&[9.0, 3.0, 1.0, 2.0])), (1.5, 2.5));
        assert_eq!((of(&[3.0]), of(&[9.0, 1.0, 2.0])), (3.0, 2.0));
        assert!(of(&[]).is_nan());
    }

    #[test]
    fn the_rank_of_round_percentages_is_exact() {
        let values: Vec<u64> = (1..=1000).rev().collect();
        let percentiles = [0.0, 50.0, 99.9, 100.0].map(|percent| percentile(&values, percent));
        assert_eq!(percentiles, [1.0, 500.0, 999.0, 1000.0]);
        assert!(percentile(&[], 50.0).is_nan());
    }

    #[test]
    fn absorbed_figures_carry_the_prefix_and_the_failure() {
        let mut part = Figures::new("fanout report");
        part.add("p50_us", 2.5);
        part.count("packets", 3);
        part.list("t1_ns", vec![7]);
        part.set_ok(false);
        let printed = Printed::parse(&format!("{}\n", part.to_json())).unwrap();
        assert_eq!(printed.figure("p50_us"), Ok(2.5));
        let error = printed.figure("p51_us").unwrap_err().to_string();
        assert_eq!(error, "the measured process printed no figure `p51_us`");
        assert_eq!(
            (printed.list("t1_ns"), printed.list("t2_ns")),
            (vec![7.0], vec![])
        );
        let mut whole = Figures::new("demo");
        whole.absorb("fanout_", &printed, &["p50_us"]);
        assert_eq!(whole.value("fanout_p50_us"), Some(2.5));
        assert_eq!(whole.iter().count(), 1);
        assert_eq!(whole.to_json()["ok"], false);
        whole.absorb("all_", &printed, &[]);
        assert_eq!(whole.iter().count(), 3, "lists are left out");
        assert!(Printed::parse("[]").is_err());
    }

    #[test]
    fn dates_of_leap_years_and_century_ends() {
        assert_eq!(iso_date(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_date(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(iso_date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_date(1_795_230_732), "2026-11-21T03:12:12Z");
        assert_eq!(iso_date(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn cpu_names_of_several_architectures() {
        assert_eq!(
            cpu_name("processor : 0\nmodel name\t: AMD EPYC\n"),
            "AMD EPYC"
        );
        assert_eq!(
            cpu_name("Hardware : x\nModel : Raspberry Pi 5\n"),
            "Raspberry Pi 5"
        );
        assert_eq!(cpu_name(""), "unknown");
    }
}
