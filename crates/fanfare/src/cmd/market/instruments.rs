//! `fanfare market instruments`: the table of instruments, from a file or a feed.

use super::feed::{Errors, Feed};
use super::options::{INSTRUMENTS, MAPPING_HELP, read_table};
use super::printer::Printer;
use super::{events, json};
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::usage::misuse;
use anyhow::Result;
use fanfare_market::Instruments;
use fanfare_market::instruments::Instrument;
use fanfare_wire::text::{Escaped, readable};
use std::path::PathBuf;
use std::process::ExitCode;

/// List instruments: those of a file, or those that a feed defines or mentions.
///
/// A file is CSV with a header line (symbol, id, source, description, type, cfi, currency, market,
/// segment, underlying, maturity-month, tick, multiplier, strike, low-limit, high-limit, maturity,
/// depth, book-type, status), or TOML with tables `[[instrument]]` of these keys.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Instruments as CSV, or as TOML if the name ends in .toml.
    #[arg(value_name = "FILE")]
    table: Option<PathBuf>,
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    errors: Errors,
    /// Mapping of the feed; default: the built-in one that fits the templates.
    #[arg(short, long, value_name = "MAPPING", long_help = MAPPING_HELP)]
    mapping: Option<String>,
    /// Only the instrument with this symbol or SecurityID.
    #[arg(long, value_name = "SYMBOL")]
    symbol: Option<String>,
    /// One JSON object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut table = Instruments::new(INSTRUMENTS);
    if let Some(file) = &args.table {
        read_table(file, &mut table)?;
    }
    if !args.feed.is_wanted() {
        if args.table.is_none() {
            misuse!("expected a file of instruments, or a feed with --templates");
        }
        return Ok(print(args, &table, true));
    }
    let feed = (&args.feed, args.errors);
    let prepare = || Ok(Printer::silent(table));
    let (mapped, outcome) = events::play(feed, args.mapping.as_deref(), prepare)?;
    let is_ok = outcome.errors() == 0;
    Ok(print(args, &mapped.0.borrow().printer.table, is_ok))
}

fn print(args: &Args, table: &Instruments, is_ok: bool) -> ExitCode {
    let mut count = 0;
    if !args.json {
        say!("{}", line("number", "symbol", "id", "source", "definition"));
    }
    for known in table.iter() {
        let name = known.definition.name;
        if let Some(wanted) = &args.symbol
            && *readable(name.symbol) != **wanted
            && name.id.to_string() != *wanted
        {
            continue;
        }
        count += 1;
        match args.json {
            true => {
                let mut text = String::new();
                fanfare_market::json::instrument(&known, &mut text);
                say!("{text}");
            }
            false => {
                let number = known.instrument.0.to_string();
                let id = name.id.bytes();
                let texts = [name.symbol, &*id, name.source.as_bytes()];
                let texts = texts.map(|text| Escaped::new(text).to_string());
                let [symbol, id, source] = &texts;
                let rest = definition(&known);
                say!("{}", line(&number, symbol, id, source, &rest));
            }
        }
    }
    let is_found = args.symbol.is_none() || count > 0;
    match &args.symbol {
        Some(wanted) if count == 0 => note!("fanfare: there is no instrument `{wanted}`"),
        _ => note!("{}", counted(count, "instrument")),
    }
    exit_code(is_ok && is_found)
}

fn line(number: &str, symbol: &str, id: &str, source: &str, rest: &str) -> String {
    let line = format!("{number:>8}  {symbol:<16} {id:>20} {source:>6}  {rest}");
    line.trim_end().to_owned()
}

fn definition(known: &Instrument<'_>) -> String {
    if known.revision == 0 {
        return "never defined".to_owned();
    }
    let object = json::definition(known);
    let parts = object.iter().map(|(key, value)| match value.as_str() {
        Some(text) => format!("{key}={}", Escaped::text(text)),
        None => format!("{key}={value}"),
    });
    parts.collect::<Vec<_>>().join(" ")
}
