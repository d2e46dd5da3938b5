//! Values over time.

use super::area::{Area, Swatch};
use super::axis::{Unit, nice_step, thousands};

/// Values over time as lines and bands.
#[derive(Debug, Default)]
pub struct TimeChart<'a> {
    /// The description of the chart for screen readers.
    pub label: &'a str,
    /// Name of the value axis: `latency`.
    pub value: &'a str,
    /// Unit of the values; plain numbers by default.
    pub unit: Option<Unit>,
    /// Seconds between the points of every series; the first point is at half of it.
    pub interval: f64,
    /// Areas between two values, drawn first.
    pub bands: Vec<Band>,
    /// Lines, drawn over the bands.
    pub lines: Vec<Line>,
}

/// An area between a lower and an upper value at each interval.
#[derive(Debug, Default)]
pub struct Band {
    /// Its name in the legend.
    pub name: String,
    /// Index of its colour, 0..5.
    pub color: usize,
    /// (lower, upper), `None` if nothing was measured.
    pub points: Vec<Option<(f64, f64)>>,
}

/// A line through one value at each interval.
#[derive(Debug, Default)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Index of its colour, 0..5.
    pub color: usize,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Values, `None` if nothing was measured.
    pub points: Vec<Option<f64>>,
}

impl TimeChart<'_> {
    /// Returns the chart as SVG.
    pub fn to_svg(&self) -> String {
        let bands = self.bands.iter().flat_map(|b| &b.points).flatten();
        let lines = self.lines.iter().flat_map(|l| &l.points).flatten();
        let values = bands
            .flat_map(|(low, high)| [*low, *high])
            .chain(lines.copied());
        let unit = self.unit.unwrap_or(Unit::Named("count"));
        let mut area = match Area::new(self.label, unit, self.value, values) {
            Ok(area) => area,
            Err(empty) => return empty,
        };
        let intervals = self.intervals().max(1) as f64;
        area.x_ticks("time (s)", &ticks(intervals * self.interval), true);
        let x = |i: usize| (i as f64 + 0.5) / intervals;
        for band in &self.bands {
            for (start, run) in runs(&band.points) {
                let lower = run.iter().enumerate().rev().map(|(i, (low, _))| (i, *low));
                let upper = run.iter().enumerate().map(|(i, (_, high))| (i, *high));
                let outline = upper.chain(lower);
                let points: Vec<_> = outline
                    .map(|(i, v)| (area.x(x(start + i)), area.y(v)))
                    .collect();
                area.svg
                    .path(&format!("band f{}", band.color % 5), &points, true);
            }
        }
        for line in &self.lines {
            let dash = if line.dashed { " dash" } else { "" };
            for (start, run) in runs(&line.points) {
                let points = run.iter().enumerate();
                let points: Vec<_> = points
                    .map(|(i, v)| (area.x(x(start + i)), area.y(*v)))
                    .collect();
                let class = format!("line{dash} s{}", line.color % 5);
                match points.as_slice() {
                    [only] => area
                        .svg
                        .dot(&format!("f{}", line.color % 5), *only, &line.name),
                    _ => area.svg.path(&class, &points, false),
                }
            }
        }
        area.legend(&self.legend());
        area.finish()
    }

    fn intervals(&self) -> usize {
        let bands = self.bands.iter().map(|b| b.points.len());
        bands
            .chain(self.lines.iter().map(|l| l.points.len()))
            .max()
            .unwrap_or(0)
    }

    fn legend(&self) -> Vec<(String, usize, Swatch)> {
        let bands = self
            .bands
            .iter()
            .map(|b| (b.name.clone(), b.color, Swatch::Band));
        let swatch = |l: &Line| if l.dashed { Swatch::Dash } else { Swatch::Line };
        let lines = self
            .lines
            .iter()
            .map(|l| (l.name.clone(), l.color, swatch(l)));
        lines.chain(bands).collect()
    }
}

fn ticks(seconds: f64) -> Vec<(f64, String)> {
    if seconds <= 0.0 {
        return Vec::new();
    }
    let step = nice_step(seconds, 10.0);
    let count = (seconds / step + 1e-9) as u32;
    let ticks = (0..=count).map(|i| f64::from(i) * step);
    ticks.map(|t| (t / seconds, thousands(t))).collect()
}

/// Returns the stretches of points without a gap, each with the index of its first.
fn runs<T: Copy>(points: &[Option<T>]) -> Vec<(usize, Vec<T>)> {
    let mut runs: Vec<(usize, Vec<T>)> = Vec::new();
    let mut open = false;
    for (i, point) in points.iter().enumerate() {
        match (point, runs.last_mut()) {
            (Some(value), Some((_, run))) if open => run.push(*value),
            (Some(value), _) => runs.push((i, vec![*value])),
            (None, _) => {}
        }
        open = point.is_some();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_split_a_series() {
        let points = [None, Some(1), Some(2), None, None, Some(3)];
        assert_eq!(runs(&points), [(1, vec![1, 2]), (5, vec![3])]);
        assert!(runs::<u8>(&[None]).is_empty());
    }

    #[test]
    fn time_ticks_are_round_and_end_within_the_chart() {
        let ticks = ticks(9.98);
        assert_eq!(ticks.last().unwrap().1, "9");
        assert!(ticks.iter().all(|(at, _)| (0.0..=1.0).contains(at)));
        assert!(super::ticks(0.0).is_empty());
    }
}
