//! Several percentile curves through points that another process measured.

use super::area::{Area, Swatch};
use super::axis::{Unit, in_unit};
use super::percentile::{position, ticks};

/// Curves through some percentiles each, for a comparison; the axis is that of a
/// [`PercentileChart`](super::PercentileChart).
#[derive(Debug)]
pub struct CurvesChart<'a> {
    /// The description of the chart for screen readers.
    pub label: &'a str,
    /// Name of the value axis: `latency`.
    pub value: &'a str,
    /// Unit of the values.
    pub unit: Unit,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// One curve of a [`CurvesChart`].
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Index of its colour, 0..5.
    pub color: usize,
    /// Whether it is dashed.
    pub dashed: bool,
    /// Percentiles below 100 with their values, ascending.
    pub points: Vec<(f64, f64)>,
}

impl CurvesChart<'_> {
    /// Returns the chart as SVG.
    pub fn to_svg(&self) -> String {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let values = points().map(|(_, value)| *value);
        let mut area = match Area::new(self.label, self.unit, self.value, values) {
            Ok(area) => area,
            Err(empty) => return empty,
        };
        let highest = points().fold(99.0, |most: f64, (percent, _)| most.max(*percent));
        let nines = -(1.0 - highest / 100.0).max(1e-18).log10();
        area.x_ticks("percentile", &ticks(nines), true);
        let mut legend = Vec::new();
        for curve in &self.curves {
            self.draw(&mut area, curve, nines);
            let swatch = match curve.dashed {
                true => Swatch::Dash,
                false => Swatch::Line,
            };
            legend.push((curve.name.clone(), curve.color, swatch));
        }
        area.legend(&legend);
        area.finish()
    }

    fn draw(&self, area: &mut Area, curve: &Curve, nines: f64) {
        let color = curve.color % 5;
        let place = |area: &Area, (percent, value): (f64, f64)| {
            (area.x(position(percent / 100.0, nines)), area.y(value))
        };
        let path: Vec<_> = curve.points.iter().map(|own| place(area, *own)).collect();
        let dash = if curve.dashed { " dash" } else { "" };
        area.svg.path(&format!("line{dash} s{color}"), &path, false);
        for &(percent, value) in &curve.points {
            let title = format!("{}, {percent} %: {}", curve.name, in_unit(self.unit, value));
            let at = place(area, (percent, value));
            area.svg.dot(&format!("f{color}"), at, &title);
        }
    }
}
