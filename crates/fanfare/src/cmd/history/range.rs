//! The selection of part of a log.

use crate::cmd::market::snapshot::some_names;
use crate::plural::counted;
use crate::print::note;
use crate::progress;
use anyhow::{Result, bail};
use clap::builder::NonEmptyStringValueParser;
use fanfare_engine::stop::Stop;
use fanfare_history::moment::Moment;
use fanfare_history::{Log, Pushed, Reader, Start};
use fanfare_market::Delivery;
use fanfare_market::event::{Event, InstrumentId, Kind};
use fanfare_market::instruments::{Directory, Instrument, Lookup, Name};
use fanfare_wire::text::readable;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

/// Records that are read between two checks for Ctrl-C.
pub(super) const AT_ONCE: usize = 4_096;
/// The interval at which the end of a log is polled.
const LOOK: Duration = Duration::from_millis(20);

/// The range of a log.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct Range {
    /// From this moment on: 2026-11-23T10:31:05.5Z, 10:31:05.5 (UTC, of the day on which the log
    /// begins), +5.5 (seconds after its beginning), -5.5 (before its end), day (midnight UTC before
    /// its end), or the number of an event.
    #[arg(long, value_name = "TIME|NUMBER", allow_negative_numbers = true)]
    from: Option<Moment>,
    /// Up to this moment, exclusive.
    #[arg(long, value_name = "TIME|NUMBER", allow_negative_numbers = true)]
    to: Option<Moment>,
}

/// The selection of events.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Choice {
    /// Only events of these instruments: symbols, SecurityIDs, or prefixes of symbols with *.
    #[arg(
        long, value_name = "SYMBOL,...", value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    symbol: Vec<String>,
    /// Only events of these kinds: definition, level, order, trade, statistic, status, state,
    /// clear.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', value_parser = kind)]
    kind: Vec<Kind>,
}

fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| {
        let names = Kind::ALL.map(Kind::name).join(", ");
        format!("unknown kind `{name}`: expected one of {names}")
    })
}

impl Range {
    /// Returns a reader of the range, and the number after its last event if it has an end.
    pub(super) fn open(self, log: &Log) -> Result<(Reader, Option<u64>)> {
        let start = self.from.map_or(Ok(Start::First), |from| log.place(from))?;
        let mut reader = log.reader(start)?;
        let end = match self.to.map(|to| log.place(to)).transpose()? {
            None => None,
            Some(Start::Number(number)) => Some(number),
            Some(time) => Some(log.reader(time)?.next_number()),
        };
        if let Some(end) = end {
            reader.stop_before(end);
        }
        Ok((reader, end))
    }

    /// Returns the range by the numbers of its events, which the growth of the log does not move.
    pub(super) fn fixed(self, log: &Log) -> Result<Self> {
        let (reader, end) = self.open(log)?;
        Ok(Self {
            from: Some(Moment::Number(reader.next_number())),
            to: end.map(Moment::Number),
        })
    }

    /// Returns the number of the first event.
    pub(super) fn first(self, log: &Log) -> Result<u64> {
        Ok(self.open(log)?.0.next_number())
    }

    /// Calls `each` with every delivery of the range, until it fails or Ctrl-C comes. Returns false
    /// after Ctrl-C.
    pub(super) fn read(
        self,
        log: &Log,
        stop: &Stop,
        mut each: impl FnMut(Delivery<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (mut reader, end) = self.open(log)?;
        let end = end.unwrap_or(u64::MAX).min(log.extent()?.next);
        reader.stop_before(end);
        progress::begin_events(end.saturating_sub(reader.next_number()));
        while !stop.is_raised() {
            let before = reader.next_number();
            if read(&mut reader, &mut each)? == 0 {
                return Ok(true);
            }
            progress::advance(reader.next_number() - before);
        }
        Ok(false)
    }

    /// Calls `each` with every delivery of the range, and with those written from now on, until it
    /// fails or Ctrl-C comes.
    pub(super) fn follow(
        self,
        log: &Log,
        stop: &Stop,
        mut each: impl FnMut(Pushed<'_>) -> Result<()>,
    ) -> Result<()> {
        let (reader, end) = self.open(log)?;
        reader.push(LOOK, |pushed| {
            let outcome = each(pushed);
            let is_at_end =
                matches!(pushed, Pushed::Idle(next) if end.is_some_and(|end| next >= end));
            match outcome.is_err() || is_at_end || stop.is_raised() {
                true => ControlFlow::Break(outcome),
                false => ControlFlow::Continue(()),
            }
        })?
    }
}

fn read(reader: &mut Reader, each: &mut impl FnMut(Delivery<'_>) -> Result<()>) -> Result<usize> {
    let mut failed = Ok(());
    let read = reader.read(AT_ONCE, |delivery| {
        if failed.is_ok() {
            failed = each(delivery);
        }
    })?;
    failed.map(|()| read)
}

/// The selection, with the matches so far.
pub(super) struct Chosen<'a> {
    choice: &'a Choice,
    /// Whether events of an instrument are selected.
    known: HashMap<u32, bool>,
    /// For each symbol, whether an instrument had it.
    found: Vec<bool>,
    /// The number of events whose instruments are not known, as damage hides their definitions.
    nameless: u64,
}

impl Choice {
    pub(super) fn begin(&self) -> Chosen<'_> {
        Chosen {
            choice: self,
            known: HashMap::new(),
            found: vec![false; self.symbol.len()],
            nameless: 0,
        }
    }
}

impl Chosen<'_> {
    /// Forgets the matches, where the plant was started again or events are missing: instruments
    /// may have other numbers or names from here on.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    pub(super) fn wants(&mut self, event: &Event, table: &Directory) -> bool {
        // A definition may have another name, also if definitions are not selected.
        if event.kind == Kind::Definition {
            self.known.remove(&event.instrument.0);
        }
        if !self.choice.kind.is_empty() && !self.choice.kind.contains(&event.kind) {
            return false;
        }
        if self.choice.symbol.is_empty() {
            return true;
        }
        if let Some(wanted) = self.known.get(&event.instrument.0) {
            return *wanted;
        }
        let Some(known) = table.instrument(event.instrument) else {
            self.nameless += u64::from(event.instrument != InstrumentId::ALL);
            return false;
        };
        let mut is_wanted = false;
        for (symbol, found) in self.choice.symbol.iter().zip(&mut self.found) {
            let fits = is_called(&known.definition.name, symbol);
            *found |= fits;
            is_wanted |= fits;
        }
        self.known.insert(event.instrument.0, is_wanted);
        is_wanted
    }

    /// Prints the symbols without an event, and the number of events that may have been theirs.
    /// Returns whether no such event was left out.
    pub(super) fn tell(&self) -> bool {
        let all = self.choice.symbol.iter().zip(&self.found);
        for (symbol, _) in all.filter(|(_, found)| !**found) {
            note!("fanfare: there is no event of `{symbol}` in this part of the log");
        }
        if self.nameless > 0 {
            let events = counted(self.nameless, "event");
            note!("fanfare: {events} left out: damage hides the names of their instruments");
        }
        self.nameless == 0
    }
}

/// Matches, by the texts that columns have, by symbol, by ID, or by a prefix of the symbol.
fn is_called(name: &Name<'_>, wanted: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(prefix) => readable(name.symbol).starts_with(prefix),
        None => *readable(name.symbol) == *wanted || name.id.to_string() == wanted,
    }
}

/// Returns the instruments of a log.
pub(super) fn instruments(table: &Directory) -> impl Iterator<Item = Instrument<'_>> {
    table
        .iter()
        .filter_map(|(number, _)| table.instrument(number))
}

/// Returns the instruments with this symbol or SecurityID.
pub(super) fn find(table: &Directory, wanted: &str) -> Result<Vec<InstrumentId>> {
    let named = instruments(table).filter(|known| is_called(&known.definition.name, wanted));
    let found: Vec<_> = named.map(|known| known.instrument).collect();
    if found.is_empty() {
        bail!(
            "the log has no instrument {wanted:?} at this moment (it has {})",
            some_names(instruments(table), table.len())
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_history::{Writer, WriterConfig};
    use fanfare_market::instruments::Definition;

    const SECOND: u64 = 1_000_000_000;

    /// Sets the symbol of instrument 7 in the table.
    fn name(table: &mut Directory, symbol: &[u8]) {
        let known = Instrument {
            instrument: InstrumentId(7),
            definition: Definition::named(Name::of_symbol(symbol)),
            revision: 0,
            status: 0,
        };
        let mut bytes = Vec::new();
        known.write(&mut bytes);
        table.take(&bytes);
    }

    #[test]
    fn names_that_are_not_utf_8_are_chosen_by_their_escaped_form() {
        let name = Name::of_symbol(b"\xcf\xe0");
        for (wanted, fits) in [
            (r"\xcf\xe0", true),
            (r"\xcf*", true),
            (r"\xcf\xe1", false),
            ("\u{fffd}*", false),
        ] {
            assert_eq!(is_called(&name, wanted), fits, "{wanted}");
        }
    }

    #[test]
    fn a_selection_of_trades_follows_the_names_of_instruments() {
        let choice = Choice {
            symbol: vec!["NEW".to_owned()],
            kind: vec![Kind::Trade],
        };
        let mut chosen = choice.begin();
        let event = |kind| Event {
            kind,
            instrument: InstrumentId(7),
            ..Event::EMPTY
        };
        let mut table = Directory::new();
        name(&mut table, b"OLD");
        assert!(!chosen.wants(&event(Kind::Trade), &table));
        name(&mut table, b"NEW");
        assert!(!chosen.wants(&event(Kind::Definition), &table), "its kind");
        assert!(chosen.wants(&event(Kind::Trade), &table));
        // The definition is among missing events.
        name(&mut table, b"OLD");
        chosen.forget();
        assert!(!chosen.wants(&event(Kind::Trade), &table));
    }

    #[test]
    fn a_fixed_range_does_not_move_as_the_log_grows() {
        let folder = std::env::temp_dir().join(format!("fanfare-range-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let (mut writer, _) =
            Writer::open(&folder, WriterConfig::default(), Vec::new(), SECOND).unwrap();
        let mut append = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                let event = Event {
                    number,
                    ts_recv: number * SECOND,
                    ..Event::EMPTY
                };
                writer.events(&[event.to_bytes()]).unwrap();
            }
            writer.commit().unwrap();
        };
        append(1..10);
        let log = Log::open(&folder).unwrap();
        let range = Range {
            from: Some(Moment::Before(SECOND)),
            to: None,
        };
        let first = range.first(&log).unwrap();
        let fixed = range.fixed(&log).unwrap();
        append(10..20);
        assert_eq!(fixed.first(&log).unwrap(), first);
        assert!(range.first(&log).unwrap() > first, "it follows the end");
        let _ = std::fs::remove_dir_all(&folder);
    }
}
