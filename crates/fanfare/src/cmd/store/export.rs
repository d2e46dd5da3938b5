//! `fanfare store export`: the messages of a store.

use super::stores::{Store, counts, stores_counted};
use crate::plural::counted;
use crate::print::{Stdout, note};
use crate::progress;
use crate::usage::misuse;
use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use fanfare_engine::journal::{Found, Record};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `fanfare store export`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Stores, or folders of stores.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Format of the messages, one per line, with * for passwords. In JSON each byte becomes the
    /// character of that number, so that nothing is lost: {"seq": N, "kind": "app" or "admin",
    /// "message": …}. A store that also has received messages (KeepReceived=Y) lists them after
    /// those sent; each line begins with `out` or `in`, and each object has "direction".
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// First MsgSeqNum(34).
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Last MsgSeqNum(34).
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    to: u64,
    /// Include messages that a lower number has superseded, and resends, which earlier versions
    /// stored.
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Fields separated by |; control characters, backslashes and bytes that are not UTF-8 are
    /// escaped (\n, \u{1b}, \\, \xff).
    Text,
    /// One JSON object per message.
    Json,
    /// The bytes as on the wire.
    Raw,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.from > args.to {
        misuse!("--from {} is above --to {}", args.from, args.to);
    }
    let format = if args.json { Format::Json } else { args.format };
    progress::give_way();
    let mut out = BufWriter::new(Stdout);
    let mut code = ExitCode::SUCCESS;
    for path in stores_counted(&args.folders)? {
        let store = Store::open(path)?;
        let mut files_done = 0;
        for found in store.snapshot.records() {
            let (Found::Good(Record { segment, .. }) | Found::Bad { segment, .. }) = found;
            progress::advance_to(&mut files_done, segment);
            match found {
                Found::Good(record) if args.wants(&record) => {
                    write(&record, format, store.direction(), &mut out)?;
                }
                _ => {}
            }
        }
        progress::advance_to(&mut files_done, store.segments.len());
        let faults = store.snapshot.damages().len();
        if faults > 0 {
            out.flush()?;
            let faults = counted(faults as u64, "fault");
            let (name, path) = (store.name(), store.path.display());
            note!("{name}: {faults}, `fanfare store verify {path}` says where");
            code = ExitCode::FAILURE;
        }
    }
    out.flush()?;
    Ok(code)
}

/// Writes one line; in a store of both directions each message is marked with its own.
fn write(
    record: &Record<'_>,
    format: Format,
    direction: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    match (format, direction) {
        (Format::Text, direction) => {
            if let Some(direction) = direction {
                write!(out, "{direction:3} ")?;
            }
            record.write_text(out)
        }
        (Format::Json, None) => record.write_json(out),
        (Format::Json, Some(direction)) => {
            let mut object = Vec::new();
            record.write_json(&mut object)?;
            write!(out, "{{\"direction\":\"{direction}\",")?;
            out.write_all(object.get(1..).unwrap_or_default())
        }
        (Format::Raw, _) => {
            out.write_all(&record.shown())?;
            out.write_all(b"\n")
        }
    }
}

impl Args {
    fn wants(&self, record: &Record<'_>) -> bool {
        let in_range = (self.from..=self.to).contains(&record.seq);
        in_range && !record.bytes.is_empty() && (self.all || counts(record))
    }
}
