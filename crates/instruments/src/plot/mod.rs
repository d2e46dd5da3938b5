//! Charts as SVG text: percentile curves, values over time, values by category.
//!
//! The writer replaces a plotting crate: inline in a page the charts follow its light or dark
//! theme through CSS classes, which the crates do not support, and the axes that a latency report
//! needs (percentiles on a logarithmic scale, values with units) would have to be drawn anyway
//! (ADR 0036).
//!
//! Every chart has `to_svg`, for inline use in a page that includes [`THEME`]; [`standalone`] makes
//! a file of it. A chart without data has a text in its place and keeps its size.

mod area;
mod axis;
mod category;
mod curves;
mod percentile;
mod svg;
#[cfg(test)]
mod tests;
mod theme;
mod time;

pub use axis::{Unit, in_unit, thousands, three_digits};
pub use category::{CategoryChart, CategorySeries};
pub use curves::{Curve, CurvesChart};
pub use percentile::{PercentileChart, STANDARD_PERCENTILES};
pub use svg::escape;
pub use time::{Band, Line, TimeChart};

/// The CSS of the charts' colours, light and dark, needed once per page.
pub const THEME: &str = include_str!("theme.css");

/// Returns a chart as a file of its own, with namespace and theme inside. It has no CSS variables,
/// which librsvg and CairoSVG do not support.
pub fn standalone(svg: &str) -> String {
    let open = "<svg xmlns=\"http://www.w3.org/2000/svg\"";
    let body = svg.replacen("<svg", open, 1);
    let Some((head, rest)) = body.split_once('>') else {
        return body;
    };
    // The background has the size of the view box.
    let size = head
        .split_once("viewBox=\"0 0 ")
        .and_then(|(_, size)| size.split_once('"'));
    let (width, height) = size
        .and_then(|(size, _)| size.split_once(' '))
        .unwrap_or_default();
    let paper = format!("class=\"paper\" width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"");
    let theme = theme::literal();
    format!("{head}><style>{theme}</style><rect {paper}/>{rest}\n")
}
