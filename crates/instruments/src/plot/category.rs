//! Values by category: adjacent bars, and lines across, for a comparison.

use super::area::{Area, Swatch};
use super::axis::{Unit, in_unit, thousands};
use super::svg::{Anchor, text_width};

/// Values of several series at the same categories, from zero.
#[derive(Debug)]
pub struct CategoryChart<'a> {
    /// The description of the chart for screen readers.
    pub label: &'a str,
    /// Name of the value axis: `throughput`.
    pub value: &'a str,
    /// Unit of the values.
    pub unit: Unit,
    /// Name of the horizontal axis: `sessions`.
    pub category: &'a str,
    /// The categories from left to right.
    pub categories: Vec<String>,
    /// One value for each category, in the same order.
    pub series: Vec<CategorySeries>,
}

/// One series of a [`CategoryChart`].
#[derive(Debug, Default)]
pub struct CategorySeries {
    /// Its name in the legend.
    pub name: String,
    /// Whether it is drawn as a line with dots over the bars, instead of as bars.
    pub line: bool,
    /// A value for each category, `None` if nothing was measured.
    pub values: Vec<Option<f64>>,
}

impl CategorySeries {
    /// Creates a series that is drawn as bars.
    pub fn bars(name: &str, values: impl Iterator<Item = Option<f64>>) -> Self {
        Self {
            name: name.to_owned(),
            line: false,
            values: values.collect(),
        }
    }
}

impl CategoryChart<'_> {
    /// Returns the chart as SVG.
    pub fn to_svg(&self) -> String {
        let values = self
            .series
            .iter()
            .flat_map(|s| &s.values)
            .flatten()
            .copied();
        let mut area = match Area::new(self.label, self.unit, self.value, values) {
            Ok(area) => area,
            Err(empty) => return empty,
        };
        let middles = |i: usize| (i as f64 + 0.5) / self.categories.len().max(1) as f64;
        let names = self.categories.iter().enumerate();
        let ticks: Vec<_> = names.map(|(i, name)| (middles(i), name.clone())).collect();
        area.x_ticks(self.category, &ticks, false);
        let bars = self.series.iter().filter(|s| !s.line).count();
        let (mut bar, mut legend) = (0, Vec::new());
        for (color, series) in self.series.iter().enumerate() {
            if series.line {
                self.draw_line(&mut area, color, series);
            } else {
                self.draw_bars(&mut area, color, series, (bar, bars));
                bar += 1;
            }
            let swatch = if series.line {
                Swatch::Line
            } else {
                Swatch::Fill
            };
            legend.push((series.name.clone(), color, swatch));
        }
        area.legend(&legend);
        area.finish()
    }

    /// Draws the bars of the series that is the `at`-th of `of` within each category.
    fn draw_bars(
        &self,
        area: &mut Area,
        color: usize,
        series: &CategorySeries,
        (at, of): (usize, usize),
    ) {
        let slot = 1.0 / self.categories.len().max(1) as f64;
        let width = slot * 0.76 / of as f64;
        for (i, value) in series.values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let from = (i as f64 + 0.12) * slot + at as f64 * width;
            let (left, right) = (area.x(from), area.x(from + width * 0.94));
            let (top, bottom) = (area.y(value), area.bottom());
            let name = self.categories.get(i).map_or("", |n| n);
            let title = format!("{}, {name}: {}", series.name, in_unit(self.unit, value));
            let class = format!("f{}", color % 5);
            area.svg
                .bar(&class, (left, top), (right - left, bottom - top), &title);
            let text = thousands(value.round());
            if text_width(&text) <= right - left && self.unit != Unit::Nanoseconds {
                let middle = f64::midpoint(left, right);
                area.svg
                    .text("strong halo", (middle, top - 5.0), Anchor::Middle, &text);
            }
        }
    }

    fn draw_line(&self, area: &mut Area, color: usize, series: &CategorySeries) {
        let slot = 1.0 / self.categories.len().max(1) as f64;
        let values = series.values.iter().enumerate();
        let points: Vec<_> = values
            .filter_map(|(i, v)| v.map(|v| (area.x((i as f64 + 0.5) * slot), area.y(v), v)))
            .collect();
        let path: Vec<_> = points.iter().map(|(x, y, _)| (*x, *y)).collect();
        area.svg.path(&format!("line s{}", color % 5), &path, false);
        for (x, y, value) in points {
            let title = format!("{}: {}", series.name, in_unit(self.unit, value));
            area.svg.dot(&format!("f{}", color % 5), (x, y), &title);
        }
    }
}
