//! Follows a log: `cargo run -p fanfare-history --example follow -- log [NUMBER]`
//!
//! A thread reads, at most 8 batches ahead of what is printed here. Slow printing delays no other
//! process, as the log on the disk waits for its readers. It prints trades, missing events, and
//! restarts of the plant. Ctrl-C ends it; started again with the number after the last one printed,
//! it misses nothing and repeats nothing.
#![allow(clippy::print_stdout, reason = "an example")]

use fanfare_history::{Log, LogError, Start};
use fanfare_market::instruments::Lookup;
use fanfare_market::{Delivery, Flags, Kind};
use std::path::PathBuf;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_else(|| "log".into()));
    let number = args.next().and_then(|number| number.to_str()?.parse().ok());
    let log = Log::open(&folder)?;
    let reader = match log.reader(number.map_or(Start::First, Start::Number)) {
        // Retention was faster: the log begins here now.
        Err(LogError::Gone { wanted, first, .. }) => {
            println!("events {wanted} to {} are gone", first - 1);
            log.reader(Start::Number(first))?
        }
        reader => reader?,
    };
    let mut ahead = reader.ahead(8, Duration::from_millis(5))?;
    loop {
        ahead.take(Duration::from_secs(1), |delivery| match delivery {
            // With SNAPSHOT it is the last trade, shown again.
            Delivery::Event(event, instruments)
                if event.kind == Kind::Trade && !event.flags.has(Flags::SNAPSHOT) =>
            {
                let known = instruments.instrument(event.instrument);
                let symbol = known.map_or(&b"?"[..], |known| known.definition.name.symbol);
                let symbol = String::from_utf8_lossy(symbol);
                println!(
                    "{} {symbol} {} at {}",
                    event.number, event.size, event.price
                );
            }
            Delivery::Event(..) | Delivery::End(_) | Delivery::Watermark(_) => {}
            Delivery::Lost { first, last } => println!("events {first} to {last} are missing"),
            Delivery::Restart => println!("the plant was started again"),
        })?;
    }
}
