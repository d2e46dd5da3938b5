use proptest::prelude::*;

use super::*;
use crate::histogram::Histogram;

/// Parses a chart as XML and checks for coordinates that are not numbers or outside of the picture,
/// and for labels of the horizontal axis that touch. Returns the number of these labels.
fn check(svg: &str) -> Result<usize, TestCaseError> {
    let text = standalone(svg);
    let document = roxmltree::Document::parse(&text)
        .map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
    let number = |node: roxmltree::Node<'_, '_>, name| {
        node.attribute(name)
            .map(|v| v.parse::<f64>().unwrap_or(f64::NAN))
    };
    let mut labels = Vec::new();
    for node in document.descendants().filter(|n| n.is_element()) {
        for (name, limit) in [("x", 920.0), ("x1", 920.0), ("x2", 920.0), ("cx", 920.0)]
            .into_iter()
            .chain([("y", 340.0), ("y1", 340.0), ("y2", 340.0), ("cy", 340.0)])
        {
            let value = number(node, name).unwrap_or(0.0);
            prop_assert!((0.0..=limit).contains(&value), "{name}={value} in {text}");
        }
        for name in ["width", "height"] {
            prop_assert!(number(node, name).unwrap_or(0.0) >= 0.0, "{text}");
        }
        let path = node.attribute("d").unwrap_or_default();
        prop_assert!(!path.contains("NaN") && !path.contains("inf"), "{path}");
        if node.has_tag_name(("http://www.w3.org/2000/svg", "text"))
            && number(node, "y") == Some(306.0)
            && let (Some(x), Some(text)) = (number(node, "x"), node.text())
        {
            labels.push((x, text.chars().count() as f64 * 6.0));
        }
    }
    for pair in labels.windows(2) {
        let [(left, left_width), (right, right_width)] = pair else {
            continue;
        };
        prop_assert!(
            left + left_width / 2.0 < right - right_width / 2.0,
            "{labels:?}"
        );
    }
    Ok(labels.len())
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|v| histogram.record(*v));
    histogram
}

fn duration() -> impl Strategy<Value = u64> {
    (0_u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
}

proptest! {
    #[test]
    fn percentile_charts_hold_any_values(
        one in prop::collection::vec(duration(), 0..200),
        two in prop::collection::vec(duration(), 0..200),
        single in any::<bool>(),
    ) {
        let (one, two) = (histogram(&one), histogram(&two));
        let mut series = vec![("raw", &one), ("<b>", &two)];
        series.truncate(if single { 1 } else { 2 });
        let chart =
            PercentileChart { label: "\"&<", value: "latency", unit: Unit::Nanoseconds, series };
        let data = chart.series.iter().any(|(_, h)| !h.is_empty());
        let labels = check(&chart.to_svg())?;
        prop_assert!(labels >= 4 || !data);
    }

    #[test]
    fn curves_hold_any_points(
        points in prop::collection::vec((0.0..100.0_f64, 0.0..1e12_f64), 0..9),
        dashed in any::<bool>(),
    ) {
        let curve = Curve { name: "<raw>".to_owned(), color: 7, dashed, points };
        let chart = CurvesChart {
            label: "\"&<",
            value: "latency",
            unit: Unit::Nanoseconds,
            curves: vec![curve.clone(), curve],
        };
        let labels = check(&chart.to_svg())?;
        prop_assert!(labels >= 4 || chart.curves[0].points.is_empty());
    }

    #[test]
    fn time_charts_hold_any_values(
        points in prop::collection::vec(prop::option::of(-1.0..1e12_f64), 0..300),
        interval in 1e-6..1e6_f64,
    ) {
        let band = points.iter().map(|p| p.map(|v| (v / 3.0, v))).collect();
        let chart = TimeChart {
            label: "x",
            value: "latency",
            unit: Some(Unit::Nanoseconds),
            interval,
            bands: vec![Band { name: "band".to_owned(), color: 0, points: band }],
            lines: vec![Line { name: "line".to_owned(), points, ..Line::default() }],
        };
        check(&chart.to_svg())?;
    }

    #[test]
    fn category_charts_hold_any_values(
        values in prop::collection::vec(prop::option::of(0.0..1e9_f64), 0..60),
        line in prop::collection::vec(prop::option::of(0.0..1e9_f64), 0..60),
    ) {
        let chart = CategoryChart {
            label: "x",
            value: "throughput",
            unit: Unit::Named("messages/s"),
            category: "sessions",
            categories: (0..values.len().max(line.len())).map(|i| (i * 97).to_string()).collect(),
            series: vec![
                CategorySeries { name: "bars".to_owned(), line: false, values },
                CategorySeries { name: "line".to_owned(), line: true, values: line },
            ],
        };
        check(&chart.to_svg())?;
    }
}

#[test]
fn charts_without_data_say_so() {
    let empty = Histogram::new();
    let series = vec![("x", &empty)];
    let chart = PercentileChart {
        label: "x",
        value: "v",
        unit: Unit::Nanoseconds,
        series,
    };
    assert!(chart.to_svg().contains("no data"));
    assert!(TimeChart::default().to_svg().contains("no data"));
}

#[test]
fn a_file_of_its_own_has_namespace_and_theme_once() {
    let file = standalone(&TimeChart::default().to_svg());
    assert!(
        file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" class="),
        "{file}"
    );
    assert_eq!(file.matches("<style>").count(), 1);
}
