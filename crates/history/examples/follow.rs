//! Follows a log: `cargo run -p fanfare-history --example follow -- log [NUMBER]`
//!
//! Prints new trades, missing events, and restarts of the plant. A thread reads, at most 8 batches
//! ahead of what is printed here. Slow printing delays no other process, as the log on the disk
//! waits for its readers. Ctrl-C ends it; started again with the number after the last one printed,
//! it misses nothing and repeats nothing.

use fanfare_history::{Log, LogError, Reader, Start};
use fanfare_market::instruments::Lookup;
use fanfare_market::{Action, Delivery, Event, Flags, Kind};
use std::{error::Error, ffi::OsString, path::Path, time::Duration};

/// Opens the log at the event with this number, or at the first one.
pub(crate) fn open(folder: &Path, number: Option<OsString>) -> Result<Reader, Box<dyn Error>> {
    let number = number.map(|number| number.to_string_lossy().parse::<u64>());
    let log = Log::open(folder)?;
    match log.reader(number.transpose()?.map_or(Start::First, Start::Number)) {
        // Retention was faster: the log begins here now.
        Err(LogError::Gone { wanted, first, .. }) => {
            println!("events {wanted} to {} are gone", first - 1);
            Ok(log.reader(Start::Number(first))?)
        }
        reader => Ok(reader?),
    }
}

/// Returns what is printed of a delivery.
pub(crate) fn line(delivery: Delivery<'_>) -> Option<String> {
    match delivery {
        // With SNAPSHOT it is the last trade, shown again; other actions cancel or correct one.
        Delivery::Event(event, instruments)
            if (event.kind, event.action) == (Kind::Trade, Action::New)
                && !event.flags.has(Flags::SNAPSHOT) =>
        {
            let known = instruments.instrument(event.instrument);
            let symbol = known.map_or(&b"?"[..], |known| known.definition.name.symbol);
            let (number, symbol) = (event.number, String::from_utf8_lossy(symbol));
            let size = Some(event.size).filter(|size| *size != Event::NO_SIZE);
            let size = size.map_or("-".to_owned(), |size| size.to_string());
            Some(format!("{number} {symbol} {size} at {}", event.price))
        }
        Delivery::Event(..) | Delivery::End(_) | Delivery::Watermark(_) => None,
        Delivery::Lost { first, last } => Some(format!("events {first} to {last} are missing")),
        Delivery::Restart => Some("the plant was started again".to_owned()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next().unwrap_or("log".into());
    let mut ahead = open(folder.as_ref(), args.next())?.ahead(8, Duration::from_millis(5))?;
    loop {
        ahead.take(Duration::from_secs(1), |delivery| {
            if let Some(line) = line(delivery) {
                println!("{line}");
            }
        })?;
    }
}
