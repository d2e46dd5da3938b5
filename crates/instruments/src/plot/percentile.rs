//! Percentile curves on the usual logarithmic axis: each nine takes the same width.

use super::area::{Area, Swatch};
use super::axis::{Unit, in_unit};
use super::svg::{Anchor, text_width};
use crate::histogram::Histogram;

/// The percentiles in this project's reports.
pub const STANDARD_PERCENTILES: [f64; 7] = [25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// The least ratio of an axis's end to the largest value if points are named.
const NAMES_ROOM: f64 = 1.12;

/// Curves of value by percentile.
#[derive(Debug)]
pub struct PercentileChart<'a> {
    /// The description of the chart for screen readers.
    pub label: &'a str,
    /// Name of the value axis: `latency`.
    pub value: &'a str,
    /// Unit of the values in the histograms.
    pub unit: Unit,
    /// Curves with their names. With a single one, its points at the usual percentiles are named.
    pub series: Vec<(&'a str, &'a Histogram)>,
}

impl PercentileChart<'_> {
    /// Returns the chart as SVG.
    pub fn to_svg(&self) -> String {
        let extremes = self.series.iter().flat_map(|(_, h)| [h.min(), h.max()]);
        let values = extremes.flatten().map(|v| v as f64);
        // The names of points are above the curve.
        let room = if self.series.len() == 1 {
            NAMES_ROOM
        } else {
            1.0
        };
        let highest = self.series.iter().filter_map(|(_, h)| h.max()).max();
        let values = values.chain(highest.map(|v| v as f64 * room));
        let mut area = match Area::new(self.label, self.unit, self.value, values) {
            Ok(area) => area,
            Err(empty) => return empty,
        };
        let most = self.series.iter().map(|(_, h)| h.len()).max().unwrap_or(1);
        // The curve of n values ends at the share of one in n; at least 99 % is shown.
        let nines = (most as f64).log10().max(2.0);
        area.x_ticks("percentile", &ticks(nines), true);
        for (color, (_, histogram)) in self.series.iter().enumerate() {
            let points = curve(&area, histogram, nines);
            area.svg
                .path(&format!("line s{}", color % 5), &points, false);
        }
        if let [(_, histogram)] = self.series.as_slice() {
            self.name_points(&mut area, histogram, nines);
        } else {
            let names = self.series.iter().enumerate();
            let legend: Vec<_> = names
                .map(|(i, (n, _))| ((*n).into(), i, Swatch::Line))
                .collect();
            area.legend(&legend);
        }
        area.finish()
    }

    /// Draws dots at the usual percentiles with their values to the upper left, where a rising
    /// curve leaves space.
    fn name_points(&self, area: &mut Area, histogram: &Histogram, nines: f64) {
        for percent in [50.0, 90.0, 99.0, 99.9, 99.99, 99.999] {
            let place = position(percent / 100.0, nines);
            let Some(value) = histogram.percentile(percent).filter(|_| place <= 1.0) else {
                break;
            };
            let text = in_unit(self.unit, value as f64);
            let (x, y) = (area.x(place), area.y(value as f64));
            area.svg.dot("f0", (x, y), &format!("{percent} %: {text}"));
            let left = (x - 6.0).max(area.x(0.0) + text_width(&text) + 2.0);
            area.svg
                .text("strong halo", (left, y - 8.0), Anchor::End, &text);
        }
    }
}

/// Returns the fraction of the width for a share of the values: the number of nines.
pub(super) fn position(share: f64, nines: f64) -> f64 {
    // A share of one would be at infinity; the caller's range ends before.
    let beyond = (1.0 - share).max(1e-18);
    (-beyond.log10()).max(0.0) / nines
}

pub(super) fn ticks(nines: f64) -> Vec<(f64, String)> {
    let mut ticks = vec![
        (0.0, "0 %".to_owned()),
        (position(0.5, nines), "50 %".to_owned()),
    ];
    for nine in 1..=(nines + 1e-9) as usize {
        let label = match nine {
            1 => "90 %".to_owned(),
            2 => "99 %".to_owned(),
            _ => format!("99.{} %", "9".repeat(nine - 2)),
        };
        ticks.push((nine as f64 / nines, label));
    }
    ticks
}

fn curve(area: &Area, histogram: &Histogram, nines: f64) -> Vec<(f64, f64)> {
    let total = histogram.len() as f64;
    let mut below = 0.0;
    let mut points = Vec::new();
    for (value, count) in histogram.buckets() {
        let y = area.y(value as f64);
        if points.is_empty() {
            points.push((area.x(0.0), y));
        }
        below += count as f64;
        // The largest value is drawn at the share of one in all values.
        let share = (below / total).min(1.0 - 1.0 / (total + 1.0));
        points.push((area.x(position(share, nines)), y));
    }
    points
}
