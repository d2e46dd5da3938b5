//! The amendments file: differences between the Repository and the tables. The head of the file
//! describes it.

use super::VERSIONS;
use super::repository::Enum;

/// One line of the file.
pub(super) struct Amendment {
    pub(super) version: String,
    pub(super) change: Change,
}

pub(super) enum Change {
    Field {
        tag: u32,
        name: String,
        kind: String,
    },
    Enum {
        tag: u32,
        values: Vec<Enum>,
    },
    Open {
        tag: u32,
    },
    Component {
        name: String,
        items: String,
    },
}

pub(super) fn parse(text: &str) -> Result<Vec<Amendment>, String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(i, line)| parse_line(line).ok_or(format!("amendments.txt:{}: {line}", i + 1)))
        .collect()
}

fn parse_line(line: &str) -> Option<Amendment> {
    let mut words = line.split(' ');
    let version = words.next().filter(|v| VERSIONS.contains(v))?.to_owned();
    let verb = words.next()?;
    let subject = words.next()?;
    let change = match verb {
        "field" => Change::Field {
            tag: subject.parse().ok()?,
            name: words.next()?.to_owned(),
            kind: words.next()?.to_owned(),
        },
        "enum" => Change::Enum {
            tag: subject.parse().ok()?,
            values: words.by_ref().map(Enum::parse).collect::<Option<_>>()?,
        },
        "open" => Change::Open {
            tag: subject.parse().ok()?,
        },
        "component" => Change::Component {
            name: subject.to_owned(),
            items: words.by_ref().collect::<Vec<_>>().join(" "),
        },
        _ => return None,
    };
    words
        .next()
        .is_none()
        .then_some(Amendment { version, change })
}
