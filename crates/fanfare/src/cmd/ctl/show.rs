//! Responses in human-readable form.

use fanfare_wire::text::Escaped;
use serde_json::{Map, Value, json};

use crate::print::{note, say};

/// Prints a result: rows as a table, fields one per line.
pub(super) fn show(result: &Value) {
    match result {
        Value::Array(rows) if rows.iter().any(|row| row.get("windows").is_some()) => {
            table(&windows(rows));
        }
        Value::Array(rows) => table(rows),
        Value::Object(fields) => match part(fields) {
            Some(rows) => paged(fields, rows),
            None => list(fields, ""),
        },
        other => say!("{}", text(other)),
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

fn paged(fields: &Map<String, Value>, rows: &[Value]) {
    table(rows);
    let total = fields["total"].as_u64().unwrap_or_default();
    if total > rows.len() as u64 {
        let next = fields["next"].as_str();
        let next = next.map(|next| format!("; for more: --after '{}'", escaped(next)));
        note!("{} of {total}{}", rows.len(), next.unwrap_or_default());
    }
}

/// Prints objects, one per line; a field that only some have is a column too.
fn table(rows: &[Value]) {
    let mut names: Vec<&String> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return;
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
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        say!("{}", cells.join("  ").trim_end());
    }
}

/// Prints fields, one per line.
fn list(fields: &Map<String, Value>, before: &str) {
    for (name, value) in fields {
        match value {
            Value::Array(rows) if rows.first().is_some_and(Value::is_object) => {
                for row in rows.iter().filter_map(Value::as_object) {
                    let names = ["name", "channel", "line"];
                    let own = names.into_iter().find_map(|name| row.get(name));
                    let own = own.map(text).unwrap_or_default();
                    list(row, &format!("{before}{own} "));
                }
            }
            // A null field is omitted.
            Value::Null => {}
            _ if name == "name" => {}
            value => say!("{before}{}: {}", name.replace('_', " "), text(value)),
        }
    }
}

/// Returns the text without control characters that move a cursor, on the same number of lines.
fn escaped(text: &str) -> String {
    let lines = text.split('\n').map(|line| Escaped::text(line).to_string());
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => escaped(text),
        Value::Null => String::new(),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
