//! `fanfare store list`: the sessions, with their numbers and messages.

use super::stores::{Store, named, stores};
use crate::print::say;
use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::journal::holder;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `fanfare store list`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Stores, or folders of stores (FileStorePath of a settings file).
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// One JSON object on one line for each store.
    #[arg(long)]
    json: bool,
}

/// One line of the list.
struct Line {
    name: String,
    path: PathBuf,
    next_sender: Option<u64>,
    next_target: Option<u64>,
    messages: u64,
    bytes: u64,
    files: usize,
    durability: String,
    holder: Option<u32>,
    damages: usize,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut lines = Vec::new();
    for path in stores(&args.folders)? {
        lines.push(Line::of(&Store::open(path)?));
    }
    if args.json {
        lines.iter().for_each(|line| say!("{}", line.json()));
    } else {
        table(&lines);
    }
    Ok(ExitCode::SUCCESS)
}

impl Line {
    fn of(store: &Store) -> Self {
        let last = store.segments.last();
        let (mut messages, mut bytes) = (0, 0);
        for message in store.messages() {
            messages += 1;
            bytes += message.bytes.len() as u64;
        }
        Self {
            name: store.name(),
            path: store.path.clone(),
            next_sender: last.map(|last| last.next_sender),
            next_target: last.and_then(|last| last.next_target),
            messages,
            bytes,
            files: store.segments.len(),
            durability: named(last.and_then(|last| last.durability)),
            holder: holder(&store.path),
            damages: store.snapshot.damages().len(),
        }
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "session": self.name,
            "path": self.path.to_string_lossy(),
            "next_sender": self.next_sender,
            "next_target": self.next_target,
            "messages": self.messages,
            "bytes": self.bytes,
            "files": self.files,
            "durability": self.durability,
            "in_use_by": self.holder,
            "damages": self.damages,
        })
    }

    fn cells(&self) -> [String; 9] {
        let number = |n: Option<u64>| n.map_or("?".to_owned(), |n| n.to_string());
        let holder = self.holder.map_or("-".to_owned(), |pid| pid.to_string());
        let state = match self.damages {
            0 => "in order".to_owned(),
            1 => "1 fault".to_owned(),
            n => format!("{n} faults"),
        };
        [
            self.name.clone(),
            number(self.next_sender),
            number(self.next_target),
            self.messages.to_string(),
            self.bytes.to_string(),
            self.files.to_string(),
            self.durability.clone(),
            holder,
            state,
        ]
    }
}

const HEAD: [&str; 9] = [
    "session", "next out", "next in", "messages", "bytes", "files", "durable", "process", "state",
];
/// Columns of text are left-aligned, those of numbers right-aligned.
const IS_TEXT: [bool; 9] = [true, false, false, false, false, false, true, true, true];

fn table(lines: &[Line]) {
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(lines.iter().map(Line::cells));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in &rows {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            if IS_TEXT.get(column) == Some(&true) {
                text += &format!("{cell:<width$}  ");
            } else {
                text += &format!("{cell:>width$}  ");
            }
        }
        say!("{}", text.trim_end());
    }
}
