//! Events as DBN.

use super::output::Output;
use super::{Args, Sink};
use crate::cmd::history::range::Chosen;
use crate::print::note;
use anyhow::{Context, Result};
use fanfare_history::{AsOf, At, Log, LogError, Start};
use fanfare_market::Values;
use fanfare_market::book::BookKind;
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use fanfare_market::event::{Event, Kind};
use fanfare_market::instruments::Directory;
use std::io::{self, BufWriter, Write};

/// The most values beyond DBN that are named; all are counted.
const REMARKS: u64 = 50;

pub(super) struct Dbn {
    to_dbn: ToDbn,
    values: Values,
    config: DbnConfig,
    dataset: String,
    is_begun: bool,
    /// Values that the converters before the last restart of the plant could not represent.
    lost: u64,
    bytes: Vec<u8>,
    out: BufWriter<Output>,
}

impl Dbn {
    pub(super) fn new(args: &Args, log: &Log, output: Output) -> Result<Self> {
        let schemas = match args.schema.as_slice() {
            [] => Schemas::MIXED,
            some => Schemas::new(some).context("--schema: mbp-1 and mbp-10 exclude each other")?,
        };
        // A book of numbered levels has exactly as many as the feed sends.
        let reader = log.reader(Start::Now)?;
        let feeds = reader.run().into_iter().flat_map(|run| &run.feeds);
        let numbered = feeds.filter(|feed| feed.book.kind() == BookKind::Levels);
        let depth = numbered.map(|feed| feed.book.levels()).max();
        let mut config = DbnConfig::new(schemas);
        if let Some(depth) = depth.and_then(|depth| u16::try_from(depth).ok()) {
            config.depth = depth;
        }
        let has_books = [Schema::Mbo, Schema::Mbp1, Schema::Mbp10];
        let first = args.range.first(log)?;
        let begin = match has_books.into_iter().any(|schema| schemas.has(schema)) {
            true => pictures(log, first)?,
            false => None,
        };
        let mut dbn = Self {
            to_dbn: ToDbn::new(config)?,
            values: Values::default(),
            config,
            dataset: args.dataset.clone(),
            is_begun: false,
            lost: 0,
            bytes: Vec::new(),
            out: BufWriter::with_capacity(1 << 16, output),
        };
        if let Some(books) = begin {
            dbn.show(&books, &mut args.choice.begin())?;
        }
        Ok(dbn)
    }

    /// Writes the books as snapshots, as the base of the changes that follow.
    fn show(&mut self, books: &AsOf, chosen: &mut Chosen<'_>) -> Result<()> {
        let (table, mut shown) = (books.directory(), Vec::new());
        for instrument in books.view.numbers() {
            let feeds = books
                .run
                .feeds
                .iter()
                .filter(|feed| feed.base <= instrument.0);
            let source = feeds.count() as u16;
            if let Some(seen) = books.view.get(instrument) {
                seen.show(instrument, source, &mut |event| shown.push(*event));
            }
            for event in &shown {
                self.values.take(event);
            }
            // Trades and statistics precede the snapshot.
            shown.retain(|event| {
                let is_book = matches!(event.kind, Kind::Clear | Kind::Level | Kind::Order);
                is_book || event.kind == Kind::State
            });
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
fn pictures(log: &Log, first: u64) -> Result<Option<AsOf>> {
    match log.as_of(At::Before(first)) {
        Ok(books) => Ok(Some(books)),
        // The log begins here, and has no earlier state.
        Err(LogError::Gone { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Sink for Dbn {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()> {
        let times = [event.ts_recv, event.ts_event];
        let is_known = |time: &u64| *time != 0 && *time != Event::NO_TIME;
        self.begin(times.into_iter().find(is_known).unwrap_or(0));
        if self.values.take(event) {
            // The log shows it again, to readers that lost it.
            return self.flush();
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

    fn lost(&mut self, _: u64, _: u64) -> Result<()> {
        self.to_dbn.lose_all();
        self.to_dbn.gap();
        Ok(())
    }

    /// Handles a restart: instruments may have other numbers from here on, and their symbols are
    /// repeated.
    fn restart(&mut self) -> Result<()> {
        self.lost = self.lost_values();
        self.to_dbn = ToDbn::new(self.config)?;
        self.values = Values::default();
        Ok(())
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
