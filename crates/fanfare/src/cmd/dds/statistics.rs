//! The statistics table: name, count, sum, mean, std_dev, min, p50, p99, max.

use crate::print::say;
use fanfare_instruments::histogram::Histogram;

/// Prints the table, times in microseconds; rows without a record are omitted.
pub(crate) fn print(rows: &[(String, &Histogram)]) {
    let rows: Vec<_> = rows.iter().filter(|(_, s)| !s.is_empty()).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(4);
    say!(
        "{:width$} {:>8} {:>14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "name",
        "count",
        "sum",
        "mean",
        "std_dev",
        "min",
        "p50",
        "p99",
        "max"
    );
    for (name, s) in rows {
        say!(
            "{name:width$} {:>8} {:>14.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
            s.len(),
            s.mean_micros() * s.len() as f64,
            s.mean_micros(),
            s.deviation() / 1e3,
            s.micros(0.0),
            s.micros(50.0),
            s.micros(99.0),
            s.micros(100.0),
        );
    }
}
