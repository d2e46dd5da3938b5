//! Responses in human-readable form.

use fanfare_wire::text::{SafeJson, Shown};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

use crate::print::{note, say};

/// The widest column of a table that other columns are aligned behind, in characters.
const WIDEST: usize = 40;

/// Prints the result of a command: rows as a table, fields one per line. Stderr names what there is
/// none of.
pub(super) fn show(result: &Value, command: &str) {
    for line in lines(result) {
        say!("{line}");
    }
    if let Some(none) = none(result, command) {
        note!("{none}");
    }
    if let Some(more) = result.as_object().and_then(more) {
        note!("{more}");
    }
}

/// Returns a line for a list that is empty.
fn none(result: &Value, command: &str) -> Option<String> {
    let rows = match result {
        Value::Array(rows) => rows.as_slice(),
        other => part(other.as_object()?)?,
    };
    let words = command.split_once(' ').filter(|(_, last)| *last != "list");
    let what = match words {
        Some((of, what)) => format!("{what} {of}"),
        None => command.split(' ').next().unwrap_or_default().to_owned(),
    };
    rows.is_empty().then(|| format!("no {what}"))
}

fn lines(result: &Value) -> Vec<String> {
    match result {
        Value::Array(rows) if rows.iter().any(|row| row.get("windows").is_some()) => {
            table(&windows(rows))
        }
        Value::Array(rows) => table(rows),
        Value::Object(fields) => match part(fields) {
            Some(rows) => table(rows),
            None => list(fields, "", None),
        },
        other => vec![text(other)],
    }
}

/// Returns one row per window of each stage, with times in microseconds.
fn windows(stages: &[Value]) -> Vec<Value> {
    let rows = stages.iter().flat_map(|stage| {
        let windows = stage["windows"].as_object().into_iter().flatten();
        windows.map(|(name, values)| {
            let micros = |key: &str| {
                let nanos = values[key].as_f64().filter(|_| values["count"] != 0);
                nanos.map_or_else(String::new, |nanos| format!("{:.1}", nanos / 1e3))
            };
            json!({
                "stage": stage["stage"],
                "of": stage["of"],
                "in": name,
                "count": values["count"],
                "p50 us": micros("p50_ns"),
                "p99 us": micros("p99_ns"),
                "p99.9 us": micros("p99_9_ns"),
                "max us": micros("max_ns"),
            })
        })
    });
    rows.collect()
}

/// Returns the rows of a page of a long list, or `None` if the fields are not one.
fn part(fields: &Map<String, Value>) -> Option<&[Value]> {
    let is_part = fields.contains_key("total") && fields.contains_key("next");
    let mut values = fields.values().filter(|_| is_part);
    values.find_map(|value| value.as_array().map(Vec::as_slice))
}

/// Returns how many rows of a long list there are, and how to get the next ones, unless the page
/// has all.
fn more(fields: &Map<String, Value>) -> Option<String> {
    let shown = part(fields)?.len();
    let total = fields["total"].as_u64().unwrap_or_default();
    let next = fields["next"].as_str();
    let next = next.map(|next| format!("; for more: --after {}", quoted(next)));
    (total > shown as u64).then(|| format!("{shown} of {total}{}", next.unwrap_or_default()))
}

/// Returns a text as one argument of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", Shown(text).to_string().replace('\'', r"'\''"))
}

/// Formats objects, one per line; a field that only some have is a column too.
fn table(rows: &[Value]) -> Vec<String> {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        names
            .iter()
            .map(|name| name.replace('_', " "))
            .collect::<Vec<_>>(),
    ];
    lines.extend(
        rows.iter()
            .map(|row| names.iter().map(|name| text(&row[*name])).collect()),
    );
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max();
        widest.unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let padded = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    };
    lines.iter().map(padded).collect()
}

/// Formats fields, one per line behind `before`. The field `of` is part of that.
fn list(fields: &Map<String, Value>, before: &str, of: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in fields {
        let title = name.replace('_', " ");
        match value {
            Value::Array(rows) if rows.first().is_some_and(Value::is_object) => {
                let mut named = HashMap::new();
                for row in rows.iter().filter_map(Value::as_object) {
                    let own = own_name(row);
                    let shown = own.map_or_else(|| title.clone(), |own| name_of(row, own));
                    // Another row of the same name has its number.
                    let same = named.entry(shown.clone()).or_insert(0);
                    *same += 1;
                    let shown = match (own, *same) {
                        (Some(_), 2..) => format!("{shown} {same}"),
                        _ => shown,
                    };
                    lines.extend(list(row, &format!("{before}{shown} "), own));
                }
            }
            Value::Object(own) => lines.extend(list(own, &format!("{before}{title} "), None)),
            // A null field is omitted.
            Value::Null => {}
            _ if of == Some(name.as_str()) => {}
            value => {
                let line = format!("{before}{title}: {}", text(value));
                lines.push(line.trim_end().to_owned());
            }
        }
    }
    lines
}

/// Returns the field that names a row, if it has one.
fn own_name(row: &Map<String, Value>) -> Option<&'static str> {
    let mut names = ["name", "channel", "line"].into_iter();
    names.find(|&name| row.get(name).is_some_and(Value::is_string))
}

/// Returns the name of a row. Lines with snapshots have the letters of other lines.
fn name_of(row: &Map<String, Value>, own: &str) -> String {
    let of = row.get("use").and_then(Value::as_str);
    match of.filter(|of| *of != "changes") {
        Some(of) => format!("{} {}", safe(of), text(&row[own])),
        None => text(&row[own]),
    }
}

/// Returns an object in words: `changes, from 5, to 7`.
fn words(of: &Map<String, Value>) -> String {
    let words = of.iter().filter_map(|(name, value)| {
        let title = name.replace('_', " ");
        match value {
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some(title),
            value if name == "what" => Some(text(value)),
            value => Some(format!("{title} {}", text(value))),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Returns the text without control characters that move a cursor, on the same number of lines.
/// The program has escaped what peers sent.
fn safe(text: &str) -> String {
    let lines = text.split('\n').map(|line| Shown(line).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => safe(text),
        Value::Null => String::new(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(of) => words(of),
        other => SafeJson(other).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_book_have_their_side() {
        let books = json!({
            "number": 7, "live": true,
            "books": [{
                "symbol": "SIZ6", "state": "recovering", "lacks": {"what": "snapshot"},
                "bids": [
                    {"price": "99.5", "size": 5, "ids": [{"id": "17", "size": 5}]},
                    {"price": "99", "size": 6},
                ],
                "offers": [{"price": "100", "size": 7}],
                "values": [{"type": "6", "name": "settlement price", "price": "98"},
                    {"type": "x", "name": null, "size": 2}],
                "trades": [],
            }],
        });
        let expected = [
            "number: 7",
            "live: yes",
            "books symbol: SIZ6",
            "books state: recovering",
            "books lacks what: snapshot",
            "books bids price: 99.5",
            "books bids size: 5",
            "books bids ids id: 17",
            "books bids ids size: 5",
            "books bids price: 99",
            "books bids size: 6",
            "books offers price: 100",
            "books offers size: 7",
            "books settlement price type: 6",
            "books settlement price price: 98",
            "books values type: x",
            "books values size: 2",
            "books trades:",
        ];
        assert_eq!(lines(&books), expected);
    }

    #[test]
    fn objects_within_objects_are_fields() {
        let status = json!({
            "events": {"next": 5, "per_s": null},
            "ports": [{"name": "producers", "open": false}],
        });
        assert_eq!(lines(&status), ["events next: 5", "producers open: no"]);
        let feeds = json!({"feeds": [{
            "channel": "spectra", "gaps": 2,
            "lines": [{"line": "A", "behind": {"count": 3}}],
        }]});
        let expected = ["spectra gaps: 2", "spectra A behind count: 3"];
        assert_eq!(lines(&feeds), expected);
    }

    #[test]
    fn rows_are_a_table() {
        let rows = json!([{"a_b": "x", "c": 10}, {"a_b": "long", "d": true}]);
        let expected = ["a b   c   d", "x     10", "long      yes"];
        assert_eq!(lines(&rows), expected);
        let page = json!({"total": 2, "next": null, "rows": rows});
        assert_eq!(lines(&page), expected);
        assert_eq!(page.as_object().and_then(more), None);
        assert!(lines(&json!([])).is_empty());
    }

    #[test]
    fn an_object_of_a_cell_is_in_words() {
        let rows = json!([
            {"symbol": "A", "lacks": {"what": "snapshot", "after_fault": true}},
            {"symbol": "B", "lacks": {"what": "changes", "from": 5, "to": 7}},
            {"symbol": "C", "lacks": null},
        ]);
        let expected = [
            "symbol  lacks",
            "A       snapshot, after fault",
            "B       changes, from 5, to 7",
        ];
        assert_eq!(lines(&rows)[..3], expected);
    }

    #[test]
    fn a_long_cell_pads_no_other_row() {
        let rows = json!([{"a": "x".repeat(1_000), "b": 1}, {"a": "y", "b": 2}]);
        let lines = lines(&rows);
        assert_eq!(lines[1], format!("{}  1", "x".repeat(1_000)));
        assert_eq!(lines[2], format!("{:WIDEST$}  2", "y"));
    }

    #[test]
    fn rows_of_one_name_are_told_apart() {
        let line = |of: &str, packets: u64| json!({"line": "A", "use": of, "packets": packets});
        let feeds = json!({"feeds": [{
            "channel": "spectra",
            "lines": [line("changes", 1), line("snapshots", 2), line("snapshots", 3)],
        }]});
        let expected = [
            "spectra A use: changes",
            "spectra A packets: 1",
            "spectra snapshots A use: snapshots",
            "spectra snapshots A packets: 2",
            "spectra snapshots A 2 use: snapshots",
            "spectra snapshots A 2 packets: 3",
        ];
        assert_eq!(lines(&feeds), expected);
    }

    #[test]
    fn an_empty_list_is_named() {
        let page = json!({"total": 0, "next": null, "sessions": []});
        for (result, command, expected) in [
            (page, "sessions", Some("no sessions")),
            (json!([]), "users", Some("no users")),
            (json!([]), "sessions list", Some("no sessions")),
            (json!([]), "sessions stopped", Some("no stopped sessions")),
            (json!([1]), "users", None),
            (json!({"ports": []}), "status", None),
        ] {
            assert_eq!(none(&result, command).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn text_that_the_program_has_escaped_is_printed_as_it_is() {
        let name = r"D\\1\u{1b}";
        assert_eq!(text(&json!(name)), name);
        assert_eq!(text(&json!("a\u{1b}[2J\nb\u{9b}")), "a\\u{1b}[2J\nb\\u{9b}");
        let row = json!([{"lacks": {"what": "\u{202e}"}}]);
        assert_eq!(lines(&row)[1], r"\u{202e}");
    }

    #[test]
    fn the_hint_for_more_is_one_argument_of_a_shell() {
        for (next, argument) in [
            ("consumers O'BRIEN", r"'consumers O'\''BRIEN'"),
            ("x';cmd #", r"'x'\'';cmd #'"),
            ("a\nb", r"'a\nb'"),
        ] {
            let page = json!({"total": 9, "next": next, "sessions": [{"sender": "A"}]});
            let hint = page.as_object().and_then(more).unwrap();
            assert_eq!(hint, format!("1 of 9; for more: --after {argument}"));
        }
    }
}
