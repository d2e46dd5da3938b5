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

/// The day and the machine of this run.
fn run() -> String {
    let environment = Environment::collect().to_json();
    let of = |key: &str| environment[key].as_str().unwrap_or_default();
    let (date, _) = of("date").split_once('T').unwrap_or_default();
    format!(
        "{date}, {}, {} cores, {}",
        of("cpu"),
        environment["cores"],
        of("kernel").split('-').next().unwrap_or_default()
    )
}

/// What a document says about a contest.
struct Part {
    title: String,
    /// The peers that are ahead of Fanfare.
    ahead: Vec<String>,
    text: String,
}

impl Part {
    /// The text of a contest ends with `run`, which is empty for one of the whole run.
    fn of(outcome: &Outcome, run: &str) -> Self {
        let (what, source) = (&outcome.what, outcome.source);
        let mut text = format!("{what} The harness is `{source}`.{run}\n\n");
        text += &table(outcome);
        for missing in missing(outcome) {
            text += &format!("\n{missing}\n");
        }
        Self {
            title: outcome.title.clone(),
            ahead: outcome.ahead(),
            text,
        }
    }
}

/// Returns Markdown: when all was measured, the peers that are ahead, and the contests.
fn markdown(measured: &str, parts: &[Part]) -> String {
    let ahead: Vec<&String> = parts.iter().flat_map(|part| &part.ahead).collect();
    let mut text = format!("{measured}\n\n");
    text += match ahead.is_empty() {
        true => "No peer is ahead in any figure.\n",
        false => "Ahead of Fanfare:\n\n",
    };
    for who in ahead {
        text += &format!("- {who}\n");
    }
    for part in parts {
        text += &format!("\n### {}\n\n{}", part.title, part.text);
    }
    text
}

/// Splits what [`markdown`] returned.
fn parts(markdown: &str) -> (&str, Vec<Part>) {
    let mut sections = markdown.split("\n### ");
    let head = sections.next().unwrap_or_default();
    let part = |section: &str| {
        let (title, text) = section.split_once("\n\n").unwrap_or((section, ""));
        let own = format!("{title}: ");
        let ahead = head.lines().filter_map(|line| line.strip_prefix("- "));
        let ahead = ahead.filter(|who| who.starts_with(&own));
        Part {
            title: title.to_owned(),
            ahead: ahead.map(str::to_owned).collect(),
            text: text.to_owned(),
        }
    };
    let parts = sections.map(part).collect();
    (head.lines().next().unwrap_or_default(), parts)
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
pub(crate) const BEGIN: &str = "<!-- bench-peers: begin -->\n";
pub(crate) const END: &str = "<!-- bench-peers: end -->\n";

/// Returns the document with the contests of this run in place of all that it has.
pub(crate) fn replaced(document: &str, outcomes: &[Outcome]) -> Option<String> {
    let measured = format!("Measured on {}, unless a contest names its own run.", run());
    let parts: Vec<Part> = outcomes.iter().map(|one| Part::of(one, "")).collect();
    between_marks(document, |_| markdown(&measured, &parts))
}

/// Returns the document with the contests of this run in place of those of the same titles, each
/// with the day and the machine of this run.
pub(crate) fn renewed(document: &str, outcomes: &[Outcome]) -> Option<String> {
    let run = format!(" Measured apart from the others on {}.", run());
    between_marks(document, |tables| {
        let (measured, mut parts) = parts(tables);
        for part in outcomes.iter().map(|one| Part::of(one, &run)) {
            match parts.iter_mut().find(|known| known.title == part.title) {
                Some(known) => *known = part,
                None => parts.push(part),
            }
        }
        markdown(measured, &parts)
    })
}

fn between_marks(document: &str, new: impl FnOnce(&str) -> String) -> Option<String> {
    let (front, rest) = document.split_once(BEGIN)?;
    let (old, back) = rest.split_once(END)?;
    Some(format!("{front}{BEGIN}{}{END}{back}", new(old)))
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
    use crate::contest::{Contest, Contestant};
    use fanfare_engine::stop::Stop;

    /// A contest in which Fanfare takes 10 ns and a peer as many as this.
    fn outcome(title: &str, theirs: f64) -> Outcome {
        let contestants = vec![
            Contestant::new("Fanfare", "", || Ok(vec![10.0])),
            Contestant::new("Peer", "", move || Ok(vec![theirs])),
        ];
        let contest = Contest::of_a_test(title, contestants);
        contest.run(1, &Stop::new()).unwrap()
    }

    #[test]
    fn a_document_keeps_what_is_around_its_tables() {
        let document = format!("front\n{BEGIN}old\n{END}back\n");
        let new = replaced(&document, &[outcome("One", 20.0)]).unwrap();
        let (front, back) = (
            format!("front\n{BEGIN}Measured on "),
            format!("| 2.00 |\n{END}back\n"),
        );
        assert!(new.starts_with(&front) && new.ends_with(&back), "{new}");
        assert!(new.contains("\n\nNo peer is ahead in any figure.\n\n### One\n\n"));
        assert!(!new.contains("old\n"));
        assert!(replaced("no marks\n", &[]).is_none());
    }

    #[test]
    fn some_contests_take_the_places_of_their_predecessors() {
        let all = [
            outcome("One", 5.0),
            outcome("One, more", 5.0),
            outcome("Two", 5.0),
        ];
        let document = replaced(&format!("{BEGIN}{END}"), &all).unwrap();
        assert_eq!(renewed(&document, &[]).unwrap(), document);
        let some = [outcome("One, more", 20.0), outcome("Three", 2.0)];
        let new = renewed(&document, &some).unwrap();
        let (head, sections) = new.split_once("\n### One\n").unwrap();
        let ahead = head.lines().filter(|line| line.starts_with("- "));
        assert_eq!(
            ahead.collect::<Vec<_>>(),
            [
                "- One: Peer is ahead in time (0.50 of Fanfare's)",
                "- Two: Peer is ahead in time (0.50 of Fanfare's)",
                "- Three: Peer is ahead in time (0.20 of Fanfare's)",
            ]
        );
        let titles = sections.lines().filter(|line| line.starts_with("###"));
        let titles: Vec<&str> = titles.collect();
        assert_eq!(titles, ["### One, more", "### Two", "### Three"]);
        let apart = "The harness is `source`. Measured apart from the others on ";
        assert_eq!(sections.matches(apart).count(), 2);
        let renewed_again = renewed(&new, &[outcome("Three", 20.0)]).unwrap();
        assert_eq!(renewed_again.matches(apart).count(), 2);
        assert!(!renewed_again.contains("Three: Peer"), "{renewed_again}");
    }
}
