//! Maps messages of a FAST feed to events.

use super::printer::Printer;
use crate::cmd::fast::decode::sink::Taking;
use fanfare_fast::{Message, Record};
use fanfare_market::mapping::{MapError, Outcome};
use fanfare_market::{FastMapper, Fragments};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// The mapper of a feed and the consumer of its events.
pub(super) struct Mapped {
    pub(super) mapper: FastMapper,
    pub(super) fragments: Fragments,
    pub(super) printer: Printer,
}

impl Mapped {
    fn take(&mut self, mapped: Result<Outcome, MapError>) -> io::Result<bool> {
        for fault in self.mapper.faults() {
            let what = self.mapper.describe(fault, &self.printer.table);
            self.printer.remark(&what);
        }
        let outcome = match mapped {
            Ok(outcome) => outcome,
            Err(error) => {
                self.fragments.pass(&error.outcome());
                self.printer.events(self.mapper.events(), None)?;
                return Ok(false);
            }
        };
        self.printer.message(outcome.number);
        if let Some(whole) = self.fragments.take(&outcome, self.mapper.events()) {
            self.printer.events(whole.events, outcome.number)?;
        }
        Ok(true)
    }
}

/// A [`Mapped`] that the sink of a feed and the command share.
#[derive(Clone)]
pub(super) struct Shared(pub(super) Rc<RefCell<Mapped>>);

impl Taking for Shared {
    fn record(&mut self, record: &Record, received: u64) -> io::Result<bool> {
        let mapped = &mut *self.0.borrow_mut();
        let table = &mut mapped.printer.table;
        let outcome = mapped.mapper.record(table, received, record);
        mapped.take(outcome)
    }

    fn message(&mut self, message: &Message) -> io::Result<bool> {
        let mapped = &mut *self.0.borrow_mut();
        let table = &mut mapped.printer.table;
        let outcome = mapped.mapper.message(table, 0, message);
        mapped.take(outcome)
    }

    fn is_full(&self) -> bool {
        self.0.borrow().printer.is_full()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.borrow_mut().printer.flush()
    }
}
