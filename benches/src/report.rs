//! What contests came to: as text, as JSON, as a page.

use crate::contest::{Outcome, Row};
use fanfare_instruments::figures::Environment;
use fanfare_instruments::page::Page;
use fanfare_instruments::plot::{CategoryChart, CategorySeries, Unit, thousands, three_digits};
use serde_json::{Value, json};

/// A value with three significant digits, or whole.
fn short(value: f64) -> String {
    thousands(three_digits(value))
}

/// Cells of a row: who, then for each figure the median, the spread, and how many times better
/// Fanfare is.
fn cells(outcome: &Outcome, row: &Row) -> Vec<String> {
    let mut cells = vec![format!("{} ({})", row.name, row.how)];
    for at in 0..outcome.figures.len() {
        let (least, most) = row.spread(at);
        cells.push(short(row.median(at)));
        cells.push(format!("{} to {}", short(least), short(most)));
        cells.push(format!("{:.2}", outcome.times(row, at)));
    }
    cells
}

/// Turns that failed, and who does not take part.
fn missing(outcome: &Outcome) -> Vec<String> {
    let failed = outcome.failed.iter().map(|who| format!("Failed: {who}"));
    let absent = outcome.absent.iter().map(|who| format!("Absent: {who}"));
    failed.chain(absent).collect()
}

fn head(outcome: &Outcome) -> Vec<String> {
    let mut head = vec![String::new()];
    for figure in &outcome.figures {
        head.push(format!("{}, {}", figure.name, figure.unit));
        head.push("spread".to_owned());
        head.push("Fanfare is times better".to_owned());
    }
    head
}

pub(crate) fn text(outcome: &Outcome) -> String {
    let rows: Vec<_> = outcome.rows.iter().map(|row| cells(outcome, row)).collect();
    let head = head(outcome);
    let width = |column: usize| {
        let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = format!("{}\n{}\n", outcome.title, outcome.what);
    for ahead in outcome.ahead() {
        text += &format!("{ahead}\n");
    }
    for row in [&head].into_iter().chain(&rows) {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:width$}", width = width(column)),
            _ => format!("{cell:>width$}", width = width(column)),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text += "\n";
    }
    for missing in missing(outcome) {
        text += &format!("{missing}\n");
    }
    text
}

/// Returns the tables of all contests as Markdown, preceded by the peers that are ahead.
pub(crate) fn markdown(outcomes: &[Outcome]) -> String {
    let environment = Environment::collect().to_json();
    let of = |key: &str| environment[key].as_str().unwrap_or_default();
    let (date, _) = of("date").split_once('T').unwrap_or_default();
    let mut text = format!(
        "Measured on {date}, {}, {} cores, {}.\n\n",
        of("cpu"),
        environment["cores"],
        of("kernel").split('-').next().unwrap_or_default()
    );
    let ahead: Vec<String> = outcomes.iter().flat_map(Outcome::ahead).collect();
    text += match ahead.is_empty() {
        true => "No peer is ahead in any figure.\n",
        false => "Ahead of Fanfare:\n\n",
    };
    for who in ahead {
        text += &format!("- {who}\n");
    }
    for outcome in outcomes {
        text += &format!(
            "\n### {}\n\n{} The harness is `{}`.\n\n",
            outcome.title, outcome.what, outcome.source
        );
        text += &table(outcome);
        for missing in missing(outcome) {
            text += &format!("\n{missing}\n");
        }
    }
    text
}

/// A row for each contestant; for each figure its median, its spread, and how many times better
/// Fanfare is.
fn table(outcome: &Outcome) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let head = outcome.figures.iter().flat_map(|figure| {
        let name = format!("{}, {}", figure.name, figure.unit);
        [name, "spread".to_owned(), "times".to_owned()]
    });
    let head: Vec<String> = [String::new()].into_iter().chain(head).collect();
    let rule = vec!["---".to_owned(); head.len()];
    let rows = outcome.rows.iter().map(|row| line(cells(outcome, row)));
    [line(head), line(rule)].into_iter().chain(rows).collect()
}

/// The lines between which a document has the tables.
const BEGIN: &str = "<!-- bench-peers: begin -->\n";
const END: &str = "<!-- bench-peers: end -->\n";

/// Returns the document with these tables in place of those that it has.
pub(crate) fn replaced(document: &str, tables: &str) -> Option<String> {
    let (front, rest) = document.split_once(BEGIN)?;
    let (_, back) = rest.split_once(END)?;
    Some(format!("{front}{BEGIN}{tables}{END}{back}"))
}

pub(crate) fn json(outcomes: &[Outcome]) -> Value {
    let contests = outcomes.iter().map(|outcome| {
        let rows = outcome.rows.iter().map(|row| {
            let figures = outcome.figures.iter().enumerate().map(|(at, figure)| {
                let (least, most) = row.spread(at);
                json!({
                    "figure": figure.name,
                    "unit": figure.unit,
                    "more_is_better": figure.is_rate,
                    "median": row.median(at),
                    "least": least,
                    "most": most,
                    "fanfare_times_better": outcome.times(row, at),
                    "turns": row.turns(at),
                })
            });
            json!({
                "name": row.name,
                "how": row.how,
                "figures": figures.collect::<Vec<_>>(),
            })
        });
        json!({
            "id": outcome.id,
            "title": outcome.title,
            "what": outcome.what,
            "source": outcome.source,
            "contestants": rows.collect::<Vec<_>>(),
            "ahead": outcome.ahead(),
            "absent": outcome.absent,
            "failed": outcome.failed,
        })
    });
    json!({
        "command": "bench-peers",
        "environment": Environment::collect().to_json(),
        "contests": contests.collect::<Vec<_>>(),
    })
}

/// A contestant this many times behind would leave no bar of the others to be seen.
const CHART_LIMIT: f64 = 300.0;

pub(crate) fn html(outcomes: &[Outcome]) -> String {
    let mut page = Page::new(
        "Fanfare beside its peers",
        "The same work on the same bytes, in turns, on one machine: make bench-peers",
    );
    let ahead: Vec<String> = outcomes.iter().flat_map(Outcome::ahead).collect();
    page.warnings(&ahead);
    for outcome in outcomes {
        let text = format!("{} The harness is {}.", outcome.what, outcome.source);
        page.part(&outcome.title, &text);
        for (at, figure) in outcome.figures.iter().enumerate() {
            let better = if figure.is_rate { "more" } else { "less" };
            let is_near = |row: &&Row| outcome.times(row, at) < CHART_LIMIT;
            let rows = || outcome.rows.iter().filter(is_near);
            let chart = CategoryChart {
                label: &outcome.title,
                value: figure.name,
                unit: Unit::Named(figure.unit),
                category: "",
                categories: rows().map(|row| row.name.to_owned()).collect(),
                series: vec![CategorySeries::bars(
                    figure.name,
                    rows().map(|row| Some(row.median(at))),
                )],
            };
            let caption = format!(
                "Medians of all turns; {better} is better. The table alone has those that Fanfare \
                 is {CHART_LIMIT} times better than."
            );
            page.chart(figure.name, &caption, &chart.to_svg());
        }
        let rows: Vec<_> = outcome.rows.iter().map(|row| cells(outcome, row)).collect();
        let head = head(outcome);
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        page.table("", &head, &rows);
        page.warnings(&missing(outcome));
    }
    page.environment(&Environment::collect());
    page.to_html()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_what_is_around_its_tables() {
        let document = format!("front\n{BEGIN}old\n{END}back\n");
        let new = replaced(&document, "new\n").unwrap();
        assert_eq!(new, format!("front\n{BEGIN}new\n{END}back\n"));
        assert_eq!(replaced("no marks\n", "new\n"), None);
    }
}
