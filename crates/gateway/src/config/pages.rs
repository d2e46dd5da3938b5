//! The pages about the configuration, held against it: they have every key, their blocks of TOML
//! parse, and their defaults are the program's.

use super::Config;
use crate::config::console::ConsoleConfig;
use crate::dbn::config::DbnConfig;
use crate::notice::program_log::ProgramLog;
use std::collections::BTreeSet;

const PAGES: [&str; 3] = ["gateway", "dbn", "kafka"];

/// Tables that have the keys of another one, as their comments in the pages say.
const SAME: [(&str, &str); 9] = [
    ("consumers", "producers"),
    ("dds.subscribe", "dds.publish"),
    ("edge", "feed.edges"),
    ("edge.book", "feed.book"),
    ("feed.edges", "dds.publish"),
    ("feed.publish", "dds.publish"),
    ("feed.snapshot", "feed"),
    ("log.rotate", "message_log.rotate"),
    ("producers.sessions", "user.sessions"),
];

fn page(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    std::fs::read_to_string(format!("{folder}/{name}.md")).unwrap()
}

/// Returns the blocks of TOML of a page.
fn blocks(page: &str) -> impl Iterator<Item = &str> {
    let rest = page.split("\n```toml\n").skip(1);
    rest.map(|rest| rest.split_once("\n```\n").unwrap().0)
}

/// Returns a block with the keys that are commented out in it.
fn with_all_keys(block: &str) -> String {
    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let line = |line: &str| {
        let inner = line.strip_prefix('#').map(str::trim_start);
        let key = inner.filter(|text| text.split_once(" = ").is_some_and(|(key, _)| is_name(key)));
        format!("{}\n", key.unwrap_or(line))
    };
    block.lines().map(line).collect()
}

/// Returns the path of a key in a table.
fn under(table: &str, key: &str) -> String {
    match table.is_empty() {
        true => key.to_owned(),
        false => format!("{table}.{key}"),
    }
}

/// Adds the keys of the configuration, as the error about a key that no table has names them.
/// `before` and `after` enclose the keys of a table.
fn add_of_program(before: &str, after: &str, table: &str, keys: &mut BTreeSet<String>) {
    let text = format!("{before}no_such_key = 0{after}");
    let Err(error) = toml::from_str::<Config>(&text) else {
        return;
    };
    let names = error.message();
    let Some(names) = names.strip_prefix("unknown field `no_such_key`, expected ") else {
        return;
    };
    for name in names.split('`').skip(1).step_by(2) {
        let path = under(table, name);
        // A table is also read from an array, of its values, in which the first one may be a table.
        let known = keys.len();
        for [open, close] in [["{ ", " }"], ["[{ ", " }]"]] {
            if keys.len() == known {
                let before = format!("{before}{name} = {open}");
                add_of_program(&before, &format!("{close}{after}"), &path, keys);
            }
        }
        keys.insert(path);
    }
}

/// Adds the keys of a table of a page.
fn add_of_page(values: &toml::Table, table: &str, keys: &mut BTreeSet<String>) {
    for (key, value) in values {
        let path = under(table, key);
        for below in tables(value) {
            add_of_page(below, &path, keys);
        }
        keys.insert(path);
    }
}

/// Returns the tables that a value is, or has as an array.
fn tables(value: &toml::Value) -> Vec<&toml::Table> {
    match value {
        toml::Value::Table(table) => vec![table],
        toml::Value::Array(values) => values.iter().flat_map(tables).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether a page has the key, or that of a table with the same keys.
fn is_told(keys: &BTreeSet<String>, path: &str) -> bool {
    let of_same = |&(own, other): &(&str, &str)| {
        let rest = path.strip_prefix(own);
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('.'));
        rest.is_some_and(|rest| is_told(keys, &format!("{other}{rest}")))
    };
    keys.contains(path) || SAME.iter().any(of_same)
}

#[test]
fn the_pages_have_every_key() {
    let (mut own, mut told) = (BTreeSet::new(), BTreeSet::new());
    add_of_program("", "", "", &mut own);
    for page in PAGES.map(page) {
        for block in blocks(&page) {
            let values: toml::Table = toml::from_str(&with_all_keys(block)).unwrap();
            add_of_page(&values, "", &mut told);
        }
    }
    assert!(own.contains("edge.book.depth"), "{own:?}");
    let missing: Vec<&String> = own.iter().filter(|key| !is_told(&told, key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_blocks_of_the_pages_parse() {
    for name in PAGES {
        let page = page(name);
        assert!(blocks(&page).count() > 0, "{name}");
        for block in blocks(&page) {
            let whole = with_all_keys(block);
            let parsed = toml::from_str::<Config>(&whole);
            assert!(parsed.is_ok(), "{name}: {parsed:?}\n{whole}");
        }
    }
}

#[test]
fn the_defaults_of_the_pages_are_those_of_the_program() {
    let of_first_block = |name: &str| -> Config {
        let page = page(name);
        toml::from_str(blocks(&page).next().unwrap()).unwrap()
    };
    let config = of_first_block("gateway");
    let log = ProgramLog {
        level: Some("info".to_owned()),
        ..ProgramLog::default()
    };
    assert_eq!(config.log, log);
    assert_eq!(config.console, Some(ConsoleConfig::default()));
    let plain = Config {
        log: ProgramLog::default(),
        console: None,
        message_log: None,
        ..config
    };
    assert_eq!(plain, Config::default());
    assert_eq!(of_first_block("dbn").dbn, Some(DbnConfig::default()));
}
