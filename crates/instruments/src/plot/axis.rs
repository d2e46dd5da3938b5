//! Value axes: range, round ticks, units.

/// The unit of a chart's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Durations in nanoseconds, shown in the unit of time that suits their size.
    Nanoseconds,
    /// Plain numbers, with this name.
    Named(&'static str),
}

/// A value axis: maps values to 0..=1 from bottom to top.
pub(super) struct Axis {
    low: f64,
    high: f64,
    log: bool,
    scale: TimeScale,
    unit: Unit,
}

/// A unit of time: nanoseconds in it, its name.
type TimeScale = (f64, &'static str);

const TIME_SCALES: [TimeScale; 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];
/// Beyond this ratio of largest to smallest value, equal steps would hide the small ones.
const LOG_FROM_RATIO: f64 = 60.0;

impl Axis {
    /// Returns an axis from zero (or, when durations differ by orders of magnitude, a logarithmic
    /// one) that holds all of `values`; `None` without a finite value.
    pub(super) fn holding(unit: Unit, values: impl Iterator<Item = f64>) -> Option<Self> {
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        let mut any = false;
        for value in values.filter(|v| v.is_finite()) {
            any = true;
            max = max.max(value);
            if value > 0.0 {
                min = min.min(value);
            }
        }
        if !any {
            return None;
        }
        let scale = time_scale(if min.is_finite() {
            (min * max).sqrt()
        } else {
            max
        });
        let log = unit == Unit::Nanoseconds && min.is_finite() && max / min > LOG_FROM_RATIO;
        let (low, high) = if log {
            (10_f64.powf(min.log10().floor()), nice_above(max))
        } else {
            let high = if max > 0.0 { max } else { 1.0 };
            let step = nice_step(high, 6.0);
            (0.0, (high / step).ceil() * step)
        };
        let scale = if log { scale } else { time_scale(high) };
        Some(Self {
            low,
            high,
            log,
            scale,
            unit,
        })
    }

    /// Returns the position of the value, 0 at the bottom, 1 at the top.
    pub(super) fn position(&self, value: f64) -> f64 {
        let position = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        position.clamp(0.0, 1.0)
    }

    /// Returns the values that get a line and a label, and the labels.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = if self.log {
            log_ticks(self.low, self.high)
        } else {
            self.linear_ticks()
        };
        values
            .into_iter()
            .map(|v| (v, thousands(v / self.divisor())))
            .collect()
    }

    /// Returns the title of the axis: `latency (µs)`.
    pub(super) fn title(&self, what: &str) -> String {
        let unit = match self.unit {
            Unit::Nanoseconds => self.scale.1,
            Unit::Named(name) => name,
        };
        let log = if self.log { ", log scale" } else { "" };
        format!("{what} ({unit}{log})")
    }

    fn divisor(&self) -> f64 {
        if self.unit == Unit::Nanoseconds {
            self.scale.0
        } else {
            1.0
        }
    }

    fn linear_ticks(&self) -> Vec<f64> {
        let step = nice_step(self.high, 6.0);
        let steps = (self.high / step).round() as u32;
        (0..=steps).map(|i| f64::from(i) * step).collect()
    }
}

/// Formats a value with its unit, in three significant digits or more.
pub fn in_unit(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => {
            let (divisor, name) = time_scale(value);
            format!("{} {name}", thousands(three_digits(value / divisor)))
        }
        Unit::Named(name) => format!("{} {name}", thousands(three_digits(value))),
    }
}

/// Formats a number with separators between thousands and no more decimals than needed (at most 3).
pub fn thousands(value: f64) -> String {
    let rounded = (value * 1e3).round() / 1e3;
    let text = format!("{}", rounded.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if rounded < 0.0 { "\u{2212}" } else { "" };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{grouped}{point}{fraction}")
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides 0..`high` into at most `parts`.
pub(super) fn nice_step(high: f64, parts: f64) -> f64 {
    let raw = high / parts;
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * power >= raw * (1.0 - 1e-9));
    step.unwrap_or(10.0) * power
}

/// Returns the unit of time in which the value is at least 1 and, except for seconds, below 10,000:
/// figures of microseconds stay in microseconds, as is usual in the field.
fn time_scale(nanos: f64) -> TimeScale {
    let [ns, us, ms, s] = TIME_SCALES;
    match nanos {
        n if n < 1e3 => ns,
        n if n < 1e7 => us,
        n if n < 1e10 => ms,
        _ => s,
    }
}

/// Returns the value rounded to three significant digits, or to a whole number if that has more.
pub fn three_digits(value: f64) -> f64 {
    match value.abs() {
        v if v < 10.0 => (value * 100.0).round() / 100.0,
        v if v < 100.0 => (value * 10.0).round() / 10.0,
        _ => value.round(),
    }
}

/// Returns the smallest 1, 2 or 5 times a power of ten at or above `value`.
fn nice_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let multiple = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|m| m * power >= value * (1.0 - 1e-9));
    multiple.unwrap_or(10.0) * power
}

/// Returns 1, 2 and 5 times the powers of ten from `low` to `high`; only the powers if there are
/// many.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let multiples: &[f64] = if decades > 4.0 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let mut ticks = Vec::new();
    let mut power = low;
    while power <= high * (1.0 + 1e-9) {
        let inside = multiples
            .iter()
            .map(|m| m * power)
            .filter(|v| *v <= high * (1.0 + 1e-9));
        ticks.extend(inside);
        power *= 10.0;
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_end_on_a_round_value() {
        let axis = Axis::holding(Unit::Nanoseconds, [17e3, 863e3].into_iter()).unwrap();
        assert_eq!(labels(&axis), ["0", "200", "400", "600", "800", "1,000"]);
        assert_eq!(axis.title("latency"), "latency (µs)");
        assert!((axis.position(500e3) - 0.5).abs() < 1e-9);
        let rates = Axis::holding(Unit::Named("messages/s"), [19_840.0, 0.0].into_iter()).unwrap();
        assert_eq!(labels(&rates), ["0", "5,000", "10,000", "15,000", "20,000"]);
    }

    #[test]
    fn wide_ranges_of_time_get_a_logarithmic_axis() {
        let axis = Axis::holding(Unit::Nanoseconds, [17e3, 49e6].into_iter()).unwrap();
        assert_eq!(axis.title("latency"), "latency (µs, log scale)");
        let labels = labels(&axis);
        assert_eq!(labels.first().unwrap(), "10");
        assert_eq!(labels.last().unwrap(), "50,000");
    }

    #[test]
    fn axes_without_values_or_with_only_zero() {
        assert!(Axis::holding(Unit::Nanoseconds, [f64::NAN].into_iter()).is_none());
        let zero = Axis::holding(Unit::Named("x"), [0.0].into_iter()).unwrap();
        assert_eq!(labels(&zero).last().unwrap(), "1");
        assert!(zero.position(0.0).abs() < 1e-9);
    }

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(-1_000.25), "\u{2212}1,000.25");
        assert_eq!(thousands(0.1 + 0.2), "0.3");
        assert_eq!(in_unit(Unit::Nanoseconds, 152_790.0), "153 µs");
        assert_eq!(in_unit(Unit::Nanoseconds, 17.0), "17 ns");
        assert_eq!(in_unit(Unit::Nanoseconds, 3_071_000.0), "3,071 µs");
        assert_eq!(in_unit(Unit::Nanoseconds, 49_151_000.0), "49.2 ms");
        assert_eq!(in_unit(Unit::Named("msg/s"), 19_840.4), "19,840 msg/s");
    }
}
