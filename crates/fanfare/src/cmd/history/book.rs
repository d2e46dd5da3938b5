//! `fanfare history book`: a book as of a moment.

use super::Place;
use super::range::find;
use crate::cmd::market::json;
use crate::cmd::market::snapshot::Snapshot;
use crate::print::say;
use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use fanfare_history::moment::{Moment, utc};
use fanfare_history::{AsOf, At};
use fanfare_market::event::{Event, InstrumentId};
use fanfare_market::instruments::Lookup;
use fanfare_wire::text::SafeJson;
use serde_json::Value;
use std::process::ExitCode;

/// Print the book of an instrument as it was at a moment, with its state.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// The moment: 2026-11-23T10:31:05.5Z, 10:31:05.5 (UTC, of the day on which the log begins),
    /// +5.5 (seconds after its beginning), -5.5 (before its end), day (midnight UTC before its
    /// end), or the number of an event; events of that moment are included. Default: the end of the
    /// log.
    #[arg(long, value_name = "TIME|NUMBER", allow_negative_numbers = true)]
    at: Option<Moment>,
    /// Symbol(55) or SecurityID(48) of the instrument, or a prefix with *.
    #[arg(long, value_name = "SYMBOL", value_parser = NonEmptyStringValueParser::new())]
    symbol: String,
    /// Most levels of a side.
    #[arg(long, value_name = "LEVELS", value_parser = crate::range::whole::<u32>(1..=1 << 24))]
    depth: Option<u32>,
    /// Print a JSON object for each instrument, with trades and statistics of the session.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let log = args.place.open_events()?;
    let at = args.at.map_or(Ok(At::End), |at| log.at(at))?;
    let books = log.as_of(at)?;
    for instrument in find(books.directory(), &args.symbol)? {
        show(args, &books, instrument);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &Args, books: &AsOf, instrument: InstrumentId) {
    let seen = books.view.get(instrument);
    let book = seen.and_then(|seen| seen.book.as_ref());
    let table = books.directory();
    let snapshot = Snapshot {
        known: table.instrument(instrument),
        state: seen.map(|seen| seen.state),
        rpt_seq: book
            .map(|book| book.rpt_seq())
            .filter(|rpt_seq| *rpt_seq != 0),
        book,
        depth: args.depth.map_or(usize::MAX, |depth| depth as usize),
    };
    let time = (books.time != 0).then(|| utc(books.time));
    let feed = books.run.source_of(instrument);
    if !args.json {
        let time = time.map_or_else(String::new, |time| format!(", {time}"));
        let feed = match feed {
            0 => String::new(),
            feed => format!(", feed {feed}"),
        };
        say!(
            "as of event {}{time}{feed}, instrument {}",
            books.number,
            instrument.0
        );
        return say!("{}", snapshot.table());
    }
    let mut object = serde_json::Map::new();
    object.insert("number".to_owned(), books.number.into());
    object.insert("time".to_owned(), time.into());
    object.insert("run".to_owned(), books.run.number.into());
    object.insert("feed".to_owned(), (feed != 0).then_some(feed).into());
    object.insert("instrument".to_owned(), instrument.0.into());
    object.append(&mut snapshot.object());
    let known = table.instrument(instrument);
    let value = |event: &Event| Value::Object(json::object(event, known.as_ref()));
    let status = seen.and_then(|seen| seen.status.as_ref()).map(value);
    object.insert("status".to_owned(), status.into());
    let last = seen.into_iter().flat_map(|seen| seen.last.iter());
    object.insert("last".to_owned(), last.map(value).collect());
    say!("{}", SafeJson(Value::Object(object)));
}
