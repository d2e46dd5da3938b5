//! Events as DBN.

use super::output::Output;
use super::{Args, Sink};
use crate::cmd::history::range::{Chosen, Range};
use crate::cmd::market::printer::schemas;
use crate::print::note;
use anyhow::Result;
use fanfare_history::{AsOf, At, Log, LogError, Run};
use fanfare_market::dbn::live::{SystemCode, system};
use fanfare_market::dbn::{DbnConfig, RESTARTED, Schema, ToDbn};
use fanfare_market::event::{Event, InstrumentId, Kind};
use fanfare_market::instruments::Directory;
use fanfare_market::{Values, state};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::mem;

/// The most values beyond DBN that are named; all are counted.
const REMARKS: u64 = 50;

pub(super) struct Dbn {
    log: Log,
    to_dbn: ToDbn,
    values: Values,
    config: DbnConfig,
    dataset: String,
    has_books: bool,
    /// The instruments of this run with events of books, and their feeds.
    books: BTreeMap<InstrumentId, u16>,
    /// Those of them that are not marked since their last Clear.
    unmarked: BTreeMap<InstrumentId, u16>,
    /// The time of arrival of the last event.
    time: u64,
    is_begun: bool,
    /// Whether the next event is the first one of its run, and whether events before it were lost.
    is_new_run: bool,
    has_lost: bool,
    /// Values that the converters before the last restart of the plant could not represent.
    lost: u64,
    bytes: Vec<u8>,
    out: BufWriter<Output>,
}

impl Dbn {
    pub(super) fn new(args: &Args, range: Range, log: &Log, output: Output) -> Result<Self> {
        let schemas = schemas(&args.schema)?;
        let config = DbnConfig::new(schemas);
        let of_books = [Schema::Mbo, Schema::Mbp1, Schema::Mbp10];
        let has_books = of_books.into_iter().any(|schema| schemas.has(schema));
        let first = range.first(log)?;
        let begin = match has_books {
            true => snapshots(log, first)?,
            false => None,
        };
        let mut dbn = Self {
            log: log.clone(),
            to_dbn: ToDbn::new(config)?,
            values: Values::default(),
            config,
            dataset: args.dataset.clone(),
            has_books,
            books: BTreeMap::new(),
            unmarked: BTreeMap::new(),
            time: Event::NO_TIME,
            is_begun: false,
            is_new_run: true,
            has_lost: false,
            lost: 0,
            bytes: Vec::new(),
            out: BufWriter::with_capacity(1 << 16, output),
        };
        if let Some(books) = begin {
            dbn.begin_run(&books.run)?;
            dbn.show(&books, &mut args.choice.begin())?;
        }
        Ok(dbn)
    }

    /// Begins a run of the plant: its instruments may have other numbers than before, and their
    /// symbols are repeated.
    fn begin_run(&mut self, run: &Run) -> Result<()> {
        self.is_new_run = false;
        self.lost = self.lost_values();
        let to_dbn = ToDbn::new(self.config)?.with_books(run.books());
        self.to_dbn = to_dbn.with_bases(run.bases());
        self.values = Values::default();
        if self.has_lost {
            self.to_dbn.lose_all();
        }
        Ok(())
    }

    /// Writes the books as snapshots, as the base of the changes that follow.
    fn show(&mut self, books: &AsOf, chosen: &mut Chosen<'_>) -> Result<()> {
        let (table, mut shown) = (books.directory(), Vec::new());
        for instrument in books.view.numbers() {
            let source = books.source_of(instrument);
            if let Some(seen) = books.view.get(instrument) {
                seen.show(instrument, source, &mut |event| shown.push(*event));
            }
            for event in &shown {
                self.values.take(event);
            }
            // Trades and statistics precede the snapshot.
            shown.retain(|event| event.kind.is_of_book() || event.kind == Kind::State);
            for event in shown.drain(..) {
                let event = Event {
                    ts_recv: books.time,
                    ..event
                };
                if chosen.wants(&event, table) {
                    self.event(&event, table)?;
                }
            }
        }
        for instrument in books.lost() {
            self.to_dbn.lose_book(instrument);
        }
        Ok(())
    }

    fn begin(&mut self, start: u64) {
        if !self.is_begun {
            self.is_begun = true;
            self.to_dbn.metadata(&self.dataset, start, &mut self.bytes);
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}

/// Returns the books before the event with this number, if there are any.
fn snapshots(log: &Log, first: u64) -> Result<Option<AsOf>> {
    match log.as_of(At::Before(first)) {
        Ok(books) => Ok(Some(books)),
        // The log begins here, and has no earlier state.
        Err(LogError::Gone { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Sink for Dbn {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()> {
        if self.is_new_run {
            self.begin_run(&self.log.run_of(event.number)?)?;
        }
        let times = [event.ts_recv, event.ts_event];
        let is_known = |time: &u64| *time != 0 && *time != Event::NO_TIME;
        self.begin(times.into_iter().find(is_known).unwrap_or(0));
        if self.values.take(event) {
            // The log shows it again, to readers that lost it.
            return self.flush();
        }
        self.time = event.ts_recv;
        if self.has_books && event.kind.is_of_book() {
            let is_first = self.books.insert(event.instrument, event.source).is_none();
            if is_first || event.kind == Kind::Clear {
                self.unmarked.insert(event.instrument, event.source);
            }
        }
        self.to_dbn.write(event, 0, table, &mut self.bytes);
        let before = self.lost_values() - self.to_dbn.lost().len() as u64;
        for lost in self
            .to_dbn
            .lost()
            .iter()
            .take(REMARKS.saturating_sub(before) as usize)
        {
            note!("fanfare: {}", lost.describe(table));
        }
        self.flush()
    }

    /// Marks the books that were written, because some may have no later record. Until a book is
    /// cleared, all its records are marked.
    fn lost(&mut self, _: u64, _: u64) -> Result<()> {
        self.has_lost = true;
        self.to_dbn.lose_all();
        self.to_dbn.gap();
        // No instruments: the symbols were written.
        let table = Directory::new();
        for (instrument, source) in mem::take(&mut self.unmarked) {
            let end = Event {
                instrument,
                source,
                ts_recv: self.time,
                ..Event::EMPTY
            };
            self.to_dbn.note_loss(&end, &table, &mut self.bytes);
            self.flush()?;
        }
        self.flush()
    }

    /// Clears the books that were written, because the next run may not show them.
    fn restart(&mut self) -> Result<()> {
        (self.is_new_run, self.has_lost) = (true, false);
        self.unmarked.clear();
        // No instruments: the symbols were written, and the numbers may be those of others.
        let table = Directory::new();
        for (instrument, source) in mem::take(&mut self.books) {
            for event in state::forget_book(instrument, source, self.time) {
                self.to_dbn.write(&event, 0, &table, &mut self.bytes);
            }
        }
        if self.is_begun {
            system(SystemCode::Unset, RESTARTED, self.time, &mut self.bytes);
        }
        self.flush()
    }

    fn lost_values(&self) -> u64 {
        self.lost + self.to_dbn.counts().lost
    }

    fn finish(mut self: Box<Self>) -> Result<Output> {
        self.begin(0);
        self.flush()?;
        if self.lost_values() > 0 {
            note!(
                "fanfare: values that DBN cannot hold: {}",
                self.lost_values()
            );
        }
        Ok(self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?)
    }
}
