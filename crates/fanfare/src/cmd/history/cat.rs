//! `fanfare history cat`: the events of a log.

use super::Place;
use super::range::{Choice, Chosen, Range};
use crate::print::Out;
use anyhow::Result;
use fanfare_engine::stop::Stop;
use fanfare_history::Pushed;
use fanfare_history::moment::utc;
use fanfare_market::Delivery;
use fanfare_market::event::Event;
use fanfare_market::instruments::{Instrument, Lookup};
use fanfare_market::json::{self, Value};
use fanfare_wire::text::Escaped;
use std::io::Write;
use std::process::ExitCode;

/// Print the events of a log, one per line: number, time of arrival, symbol, kind, and further
/// fields.
///
/// With --json, each event has the form of `fanfare market events`. Missing events and restarts of
/// the plant have lines of their own: {"lost":{"first":…,"last":…}}, {"restart":true}.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    choice: Choice,
    /// Continue with new events as they are written, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Print JSON objects, one per line.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let log = args.place.open_events()?;
    let stop = Stop::on_interrupt()?;
    let mut printer = Printer {
        is_json: args.json,
        chosen: args.choice.begin(),
        line: String::new(),
        out: Out::default(),
    };
    if args.follow {
        args.range.follow(&log, &stop, |pushed| match pushed {
            Pushed::Delivery(delivery) => printer.print(delivery),
            Pushed::Idle(_) => Ok(printer.out.flush()?),
        })?;
    } else {
        let each = |delivery: Delivery<'_>| printer.print(delivery);
        args.range.read(&log, &stop, each)?;
    }
    printer.out.flush()?;
    printer.chosen.tell();
    Ok(ExitCode::SUCCESS)
}

struct Printer<'a> {
    is_json: bool,
    chosen: Chosen<'a>,
    line: String,
    out: Out,
}

impl Printer<'_> {
    fn print(&mut self, delivery: Delivery<'_>) -> Result<()> {
        self.line.clear();
        match delivery {
            Delivery::Event(event, table) => {
                if !self.chosen.wants(event, table) {
                    return Ok(());
                }
                let known = table.instrument(event.instrument);
                match self.is_json {
                    true => json::event(event, known.as_ref(), &mut self.line),
                    false => text(event, known.as_ref(), &mut self.line),
                }
            }
            Delivery::Lost { first, last } => {
                self.chosen.forget();
                match self.is_json {
                    true => json::lost(first, last, &mut self.line),
                    false => self.line = format!("events {first} to {last} are missing"),
                }
            }
            Delivery::Restart => {
                self.chosen.forget();
                self.line = match self.is_json {
                    true => json::RESTART.to_owned(),
                    false => "the plant was started again".to_owned(),
                };
            }
            Delivery::End(_) | Delivery::Watermark(_) => return Ok(()),
        }
        self.line.push('\n');
        Ok(self.out.write_all(self.line.as_bytes())?)
    }
}

/// Formats a line of text, without its end.
fn text(event: &Event, known: Option<&Instrument<'_>>, line: &mut String) {
    let time = match event.ts_recv {
        0 | Event::NO_TIME => "-".to_owned(),
        time => utc(time),
    };
    let symbol = known.map(|known| known.definition.name.symbol);
    let symbol = symbol.filter(|symbol| !symbol.is_empty()).unwrap_or(b"-");
    let symbol = Escaped::new(symbol);
    *line = format!("{} {time} {symbol} {}", event.number, event.kind.name());
    json::fields(event, known, &mut |name, value| {
        if ["number", "kind", "ts_recv", "symbol"].contains(&name) {
            return;
        }
        line.extend([" ", name]);
        match value {
            Value::True => {}
            Value::Number(value) | Value::Plain(value) => line.push_str(&format!("={value}")),
            Value::Text(bytes) => line.extend(["=", &Escaped::new(bytes).to_string()]),
            Value::Definition(known) => {
                line.push('=');
                json::definition(known, line);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::event::InstrumentId;
    use fanfare_market::instruments::{Definition, IdSource, Name, SecurityId};

    #[test]
    fn text_of_a_feed_stays_on_its_line() {
        let name = Name {
            symbol: b"A\x1b[2J",
            id: SecurityId::Text(b"X\x1b[2J\n"),
            source: IdSource::NONE,
        };
        let known = Instrument {
            instrument: InstrumentId(0),
            definition: Definition::named(name),
            revision: 0,
            status: 0,
        };
        let event = Event {
            entry: 7,
            ..Event::EMPTY
        };
        let mut line = String::new();
        text(&event, Some(&known), &mut line);
        assert!(!line.contains(char::is_control), "{line:?}");
        for shown in [
            r" A\u{1b}[2J ",
            r" security_id=X\u{1b}[2J\n ",
            r" entry=\u{7}",
        ] {
            assert!(line.contains(shown), "{shown} in {line}");
        }
    }
}
