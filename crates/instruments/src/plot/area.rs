//! The rectangle of a chart with its frame, grid, axes and legend.

use super::axis::{Axis, Unit};
use super::svg::{Anchor, Svg, text_width};

pub(super) const WIDTH: f64 = 920.0;
pub(super) const HEIGHT: f64 = 340.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 52.0;

/// The marker of a series in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swatch {
    Line,
    Dash,
    Fill,
    Band,
}

/// A chart with its vertical axis drawn; series are drawn by fractions of its area.
pub(super) struct Area {
    pub(super) svg: Svg,
    axis: Axis,
}

impl Area {
    /// Draws frame, horizontal grid, tick labels and title of the value axis. Without a finite
    /// value, returns the whole chart, with a text that there is no data.
    pub(super) fn new(
        label: &str,
        unit: Unit,
        value_title: &str,
        values: impl Iterator<Item = f64>,
    ) -> Result<Self, String> {
        let mut svg = Svg::new(WIDTH, HEIGHT, label);
        let Some(axis) = Axis::holding(unit, values) else {
            svg.frame((LEFT, TOP), (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM));
            let middle = ((LEFT + WIDTH - RIGHT) / 2.0, (TOP + HEIGHT - BOTTOM) / 2.0);
            svg.text("label", middle, Anchor::Middle, "no data");
            return Err(svg.finish());
        };
        let mut area = Self { svg, axis };
        let mut last_label = f64::INFINITY;
        for (value, label) in area.axis.ticks() {
            let y = area.y(value);
            area.svg.line("grid", (LEFT, y), (WIDTH - RIGHT, y));
            if last_label - y >= 14.0 {
                area.svg
                    .text("", (LEFT - 8.0, y + 4.0), Anchor::End, &label);
                last_label = y;
            }
        }
        let title = area.axis.title(value_title);
        area.svg
            .text("label", (14.0, TOP - 18.0), Anchor::Start, &title);
        Ok(area)
    }

    /// Returns the horizontal pixel of a fraction 0..=1 of the width.
    pub(super) fn x(&self, fraction: f64) -> f64 {
        LEFT + fraction.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    /// Returns the vertical pixel of a value.
    pub(super) fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.axis.position(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// Returns the vertical pixel of the bottom.
    pub(super) fn bottom(&self) -> f64 {
        HEIGHT - BOTTOM
    }

    /// Draws ticks of the horizontal axis at fractions of the width, with optional grid lines; a
    /// label that would touch the one before it is omitted.
    pub(super) fn x_ticks(&mut self, title: &str, ticks: &[(f64, String)], grid: bool) {
        let mut free_from = f64::NEG_INFINITY;
        for (fraction, label) in ticks {
            let x = self.x(*fraction);
            let half = text_width(label) / 2.0;
            if grid {
                self.svg.line("grid", (x, TOP), (x, self.bottom()));
            }
            if x - half >= free_from {
                // The last labels are moved in, so that they end within the picture.
                let at = x.min(WIDTH - half - 2.0);
                self.svg
                    .text("", (at, self.bottom() + 18.0), Anchor::Middle, label);
                free_from = x + half + 8.0;
            }
        }
        let middle = self.x(0.5);
        self.svg
            .text("label", (middle, HEIGHT - 10.0), Anchor::Middle, title);
    }

    /// Draws the names of the series at the upper right, last to first from the right.
    pub(super) fn legend(&mut self, entries: &[(String, usize, Swatch)]) {
        let mut x = WIDTH - RIGHT;
        let y = TOP - 18.0;
        for (name, color, swatch) in entries.iter().rev() {
            self.svg.text("label", (x, y), Anchor::End, name);
            x -= text_width(name) + 6.0;
            let (from, to) = ((x - 22.0, y - 4.0), (x, y - 4.0));
            let color = color % 5;
            match swatch {
                Swatch::Line => self.svg.line(&format!("line s{color}"), from, to),
                Swatch::Dash => self.svg.line(&format!("line dash s{color}"), from, to),
                Swatch::Fill | Swatch::Band => {
                    let class = if *swatch == Swatch::Band { "band " } else { "" };
                    let at = (x - 22.0, y - 10.0);
                    self.svg
                        .bar(&format!("{class}f{color}"), at, (22.0, 11.0), name);
                }
            }
            x -= 40.0;
        }
    }

    /// Draws the frame over everything and ends the chart.
    pub(super) fn finish(mut self) -> String {
        self.svg
            .frame((LEFT, TOP), (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM));
        self.svg.finish()
    }
}
