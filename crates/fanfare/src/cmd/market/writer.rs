//! Messages of a feed to events on stdout.

use super::json;
use crate::cmd::fast::decode::sink::Taking;
use crate::print::note;
use crate::progress;
use fanfare_fast::{Message, Record};
use fanfare_market::event::{Event, InstrumentId};
use fanfare_market::instruments::Name;
use fanfare_market::mapping::{MapError, Outcome};
use fanfare_market::{FastMapper, Instruments};
use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;

/// Faults that are shown; all are counted.
const REMARKS: u64 = 50;

/// What a feed is mapped with, and to.
pub(super) struct Mapped {
    pub(super) mapper: FastMapper,
    pub(super) table: Instruments,
    /// The events of this symbol or ID alone.
    symbol: Option<String>,
    /// So many events at most.
    limit: u64,
    out: Option<BufWriter<io::Stdout>>,
    line: String,
    /// The number of the last event.
    number: u64,
    pub(super) written: u64,
    remarks: u64,
}

impl Mapped {
    /// Events are written if `writes`, and otherwise only take place.
    pub(super) fn new(mapper: FastMapper, table: Instruments, writes: bool) -> Self {
        if writes {
            progress::give_way();
        }
        Self {
            mapper,
            table,
            symbol: None,
            limit: u64::MAX,
            out: writes.then(|| BufWriter::with_capacity(1 << 16, io::stdout())),
            line: String::new(),
            number: 0,
            written: 0,
            remarks: 0,
        }
    }

    pub(super) fn only(mut self, symbol: Option<&str>, limit: Option<u64>) -> Self {
        self.symbol = symbol.map(str::to_owned);
        self.limit = limit.unwrap_or(u64::MAX);
        self
    }

    fn take(&mut self, mapped: Result<Outcome, MapError>) -> io::Result<bool> {
        let is_used = mapped.is_ok();
        if !is_used {
            self.remark();
        }
        for at in 0..self.mapper.events().len() {
            self.number += 1;
            let Some(event) = self.mapper.events().get(at).copied() else {
                continue;
            };
            let number = self.number;
            self.write(&Event { number, ..event })?;
        }
        Ok(is_used)
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        if self.written == self.limit || !self.is_wanted(event.instrument) {
            return Ok(());
        }
        self.written += 1;
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        self.line.clear();
        json::event(event, &self.table, &mut self.line);
        self.line.push('\n');
        out.write_all(self.line.as_bytes())
    }

    fn is_wanted(&self, instrument: InstrumentId) -> bool {
        let Some(wanted) = &self.symbol else {
            return true;
        };
        let known = self.table.get(instrument);
        known.is_some_and(|known| is_called(&known.definition.name, wanted))
    }

    #[cold]
    fn remark(&mut self) {
        for fault in self.mapper.faults() {
            self.remarks += 1;
            if self.remarks <= REMARKS {
                note!("fanfare: {}", self.mapper.describe(fault, &self.table));
            } else if self.remarks == REMARKS + 1 {
                note!("fanfare: what more there is of this kind is only counted");
            }
        }
    }
}

/// By its symbol, or by its ID.
fn is_called(name: &Name<'_>, wanted: &str) -> bool {
    name.symbol == wanted.as_bytes() || name.id.to_string() == wanted
}

/// A [`Mapped`] that the sink of a feed and the command share.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Rc<RefCell<Mapped>>);

impl Taking for Shared {
    fn record(&mut self, record: &Record, received: u64) -> io::Result<bool> {
        let mapped = &mut *self.0.borrow_mut();
        let outcome = mapped.mapper.record(&mut mapped.table, received, record);
        mapped.take(outcome)
    }

    fn message(&mut self, message: &Message) -> io::Result<bool> {
        let mapped = &mut *self.0.borrow_mut();
        let outcome = mapped.mapper.message(&mut mapped.table, 0, message);
        mapped.take(outcome)
    }

    fn is_full(&self) -> bool {
        let mapped = self.0.borrow();
        mapped.written >= mapped.limit
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0.borrow_mut().out {
            Some(out) => out.flush(),
            None => Ok(()),
        }
    }
}
