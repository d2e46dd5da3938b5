//! The few SVG elements of the charts.

use std::fmt::Write;

use super::theme::class as class_of;

/// The alignment of a text to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// SVG text under construction. Coordinates are pixels of the view box.
pub(super) struct Svg {
    text: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = escape(title);
        let text = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"system-ui, sans-serif\" font-size=\"12\" aria-label=\"{title}\">"
        );
        Self { text }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (class, (x1, y1), (x2, y2)) = (class_of(class, false), round(from), round(to));
        self.push(format_args!(
            "<line {class} x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        ));
    }

    /// Draws a line through all points; points closer than a third of a pixel to the one before are
    /// omitted, so that a long series stays small.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool) {
        let mut data = String::new();
        let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (i, &point) in points.iter().enumerate() {
            let near = (point.0 - last.0).abs() < 0.33 && (point.1 - last.1).abs() < 0.33;
            if near && i + 1 < points.len() {
                continue;
            }
            last = point;
            let (x, y) = round(point);
            // Writing to a String cannot fail.
            let _ = write!(data, "{}{x} {y}", if data.is_empty() { "M" } else { "L" });
        }
        if !data.is_empty() {
            let class = class_of(class, false);
            let close = if closed { "Z" } else { "" };
            self.push(format_args!("<path {class} d=\"{data}{close}\"/>"));
        }
    }

    /// Draws a rectangle with a tooltip.
    pub(super) fn bar(&mut self, class: &str, at: (f64, f64), size: (f64, f64), title: &str) {
        let ((x, y), (w, h), title) = (round(at), round(size), escape(title));
        let class = class_of(class, false);
        self.push(format_args!(
            "<rect {class} x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\">\
             <title>{title}</title></rect>"
        ));
    }

    pub(super) fn frame(&mut self, at: (f64, f64), size: (f64, f64)) {
        let (class, (x, y), (w, h)) = (class_of("frame", false), round(at), round(size));
        self.push(format_args!(
            "<rect {class} x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/>"
        ));
    }

    pub(super) fn dot(&mut self, class: &str, at: (f64, f64), title: &str) {
        let (class, (x, y), title) = (class_of(class, false), round(at), escape(title));
        self.push(format_args!(
            "<circle {class} cx=\"{x}\" cy=\"{y}\" r=\"3.5\">\
             <title>{title}</title></circle>"
        ));
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let (class, (x, y), text) = (class_of(class, true), round(at), escape(text));
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            "<text {class} x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(element);
    }
}

/// Escapes a text for markup and attribute values.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Control characters are not XML characters.
            c if c.is_control() && c != '\n' && c != '\t' => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Returns the approximate width of a text at 12 px, for placing adjacent labels; rather too wide.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        ' ' | ',' | '.' | 'i' | 'j' | 'l' | '(' | ')' => 4.2,
        'A'..='Z' | 'm' | 'w' | '%' => 10.4,
        _ => 7.7,
    };
    text.chars().map(width).sum()
}

fn round((x, y): (f64, f64)) -> (f64, f64) {
    ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0)
}
