//! Books as of any moment: a checkpoint, and the events after it.

use crate::error::LogError;
use crate::formers::Formers;
use crate::known::Known;
use crate::place::{self, At, Border, Start};
use crate::reader::{self, Reader};
use crate::run::Run;
use fanfare_market::dbn::live::Encoder;
use fanfare_market::event::{InstrumentId, Kind as EventKind};
use fanfare_market::instruments::Directory;
use fanfare_market::{Delivery, Event, View};
use std::mem;
use std::path::Path;

/// All books as of a moment, which can be advanced from there.
#[derive(Debug)]
pub struct AsOf {
    /// The number of the last event before the moment, 0 if there is none.
    pub number: u64,
    /// The time of the log: the latest time of arrival up to the moment, in nanoseconds since
    /// 1970-01-01 UTC.
    pub time: u64,
    /// The run of the plant.
    pub run: Run,
    /// The instruments and their books.
    pub view: View,
    /// The last status of the trading session of each feed.
    pub of_all: Vec<Event>,
    reader: Reader,
    /// Whether the last event before the moment is missing.
    ends_lost: bool,
}

/// Most instruments of a plant: an event of a higher one is invalid.
const MOST_INSTRUMENTS: u32 = 1 << 28;

impl AsOf {
    pub(crate) fn of(folder: &Path, at: At) -> Result<Self, LogError> {
        Self::before(folder, at).map_err(|error| match (error, at) {
            // The reader begins behind it.
            (LogError::Gone { first, time, .. }, At::Number(wanted @ 1..)) => LogError::Gone {
                wanted,
                first,
                time,
            },
            (error, _) => error,
        })
    }

    fn before(folder: &Path, at: At) -> Result<Self, LogError> {
        let (start, border) = match at {
            At::Number(number) => (Start::Number(number.saturating_add(1)), Border::Keep),
            At::Time(time) => (Start::Time(time.saturating_add(1)), Border::Keep),
            At::Before(number) => (Start::Number(number), Border::Cross),
            At::End => (Start::Now, Border::Cross),
        };
        place::begin(folder)?.check(start)?;
        let end = reader::number_of(folder, start)?;
        let mut books = Self::behind(folder, Known::before(folder, end)?, border)?;
        // Again: retention may have removed segments before the first one was opened.
        place::begin(folder)?.check(start)?;
        books.reader.stop_before(end);
        while books.follow(usize::MAX)? > 0 {}
        let next = books.reader.next_number();
        if next < end {
            return Err(LogError::NotYet {
                wanted: end - 1,
                next,
            });
        }
        books.reader.stop_before(u64::MAX);
        Ok(books)
    }

    /// Returns the books of a checkpoint, to be advanced by the events after it in the log.
    pub(crate) fn behind(
        folder: &Path,
        mut known: Known,
        border: Border,
    ) -> Result<Self, LogError> {
        let (events, lost) = (mem::take(&mut known.events), mem::take(&mut known.lost));
        let (number, time) = (known.number, known.time);
        let has_lost_others = known.has_lost_others;
        let run = known.run.clone().unwrap_or_default();
        let begin = place::begin_header(folder)?;
        let from = begin.first.max(number + 1);
        // A log may begin with any number, and nothing precedes it.
        let is_begin = number == 0 && begin.ordinal == 1 && begin.time == 0;
        let mut books = Self {
            number,
            time,
            view: View::new(run.books()),
            of_all: Vec::new(),
            reader: Reader::behind(folder, known, from, border)?,
            ends_lost: false,
            run,
        };
        for event in &events {
            books.apply(event);
        }
        for instrument in lost {
            books.view.open(InstrumentId(instrument)).lose();
        }
        if has_lost_others {
            books.view.lose_others();
        }
        books.take_run();
        if number + 1 < from && !is_begin {
            // Nothing can be read of the events between, in which books of this run may have begun.
            books.view.lose_all();
        }
        Ok(books)
    }

    /// Returns the instruments.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        self.reader.directory()
    }

    /// Calls `each` with a snapshot of every instrument: definition, state, book and last values,
    /// as events.
    pub fn show(&self, mut each: impl FnMut(&Event)) {
        for instrument in self.view.numbers() {
            if let Some(seen) = self.view.get(instrument) {
                seen.show(instrument, self.source_of(instrument), &mut each);
            }
        }
    }

    /// Brings an encoder that has had no events to this moment.
    pub fn seed(&self, encoder: &mut Encoder) {
        self.show(|event| encoder.seed(event));
        self.lost().for_each(|lost| encoder.seed_lost(lost));
    }

    /// Returns the instruments whose books are not known until they are shown, as events were lost.
    /// [`InstrumentId::ALL`] stands for those without events so far.
    pub fn lost(&self) -> impl Iterator<Item = InstrumentId> {
        let is_lost = move |number| self.view.get(number).is_some_and(|seen| seen.is_lost());
        let known = self.view.numbers().filter(move |number| is_lost(*number));
        known.chain(self.view.has_lost_others().then_some(InstrumentId::ALL))
    }

    /// Keeps instruments as they were at the last event, from now on.
    pub(crate) const fn keep_formers(&mut self) {
        self.reader.keep_formers();
    }

    /// Returns the instruments as they were at the last event, if they are kept.
    pub(crate) const fn formers(&self) -> &Formers {
        self.reader.formers()
    }

    /// Returns the ordinal of the segment being read.
    pub(crate) const fn segment(&self) -> u64 {
        self.reader.segment()
    }

    /// Advances to the start of the segment being read, whose predecessor was read to its end.
    pub(crate) fn skip_lost(&mut self) {
        if self.reader.skip_lost() {
            self.view.lose_all();
            self.number = self.reader.next_number() - 1;
        }
    }

    /// Passes over missing events that reach beyond the place where the books stop. Returns how
    /// many records were read.
    pub(crate) fn pass_lost(&mut self) -> Result<usize, LogError> {
        if !self.ends_lost {
            return Ok(0);
        }
        self.stop_before(u64::MAX);
        self.follow(1)
    }

    /// Stops at the event in front of this one.
    pub(crate) const fn stop_before(&mut self, number: u64) {
        self.reader.stop_before(number);
    }

    /// Takes over the run of the reader, which has the feeds of the books.
    fn take_run(&mut self) {
        let run = self.reader.run().filter(|run| **run != self.run).cloned();
        if let Some(run) = run {
            // The record of the run, or the border to it, could not be read, or events were lost
            // before any run was known.
            let is_unsure = self.reader.take_unsure()
                || run.number == self.run.number
                || self.run.number == 0 && self.view.has_lost_others();
            self.run = run;
            self.view = View::new(self.run.books());
            self.of_all.clear();
            if is_unsure {
                self.lose_known();
            }
        }
    }

    /// Records that no book is known until it is shown: it may have begun before the new view.
    fn lose_known(&mut self) {
        for (number, _) in self.reader.directory().iter() {
            if number.0 < MOST_INSTRUMENTS {
                self.view.open(number);
            }
        }
        self.view.lose_all();
    }

    /// Advances by at most `limit` messages of the log, and returns how many records were read.
    /// Does not wait.
    ///
    /// # Errors
    /// Those of [`Reader::read`].
    pub fn follow(&mut self, limit: usize) -> Result<usize, LogError> {
        let mut taken = Taken {
            time: self.time,
            view: &mut self.view,
            of_all: &mut self.of_all,
        };
        let ends_lost = &mut self.ends_lost;
        // A call ends where another segment, and perhaps another run, begins: its books may be
        // others.
        let read = self.reader.read(limit, |delivery| match delivery {
            Delivery::Event(event, _) => {
                taken.apply(event);
                *ends_lost = false;
            }
            Delivery::Lost { .. } => {
                taken.view.lose_all();
                *ends_lost = true;
            }
            Delivery::End(_) | Delivery::Restart | Delivery::Watermark(_) => {}
        })?;
        self.time = taken.time.max(self.reader.raw_time());
        self.number = self.reader.next_number() - 1;
        self.take_run();
        Ok(read)
    }

    fn apply(&mut self, event: &Event) {
        let mut taken = Taken {
            time: self.time,
            view: &mut self.view,
            of_all: &mut self.of_all,
        };
        taken.apply(event);
        self.time = taken.time;
    }

    /// Returns the feed of an instrument, from 1.
    #[must_use]
    pub fn source_of(&self, instrument: InstrumentId) -> u16 {
        self.run.source_of(instrument)
    }
}

/// The parts that events change.
struct Taken<'a> {
    time: u64,
    view: &'a mut View,
    of_all: &'a mut Vec<Event>,
}

impl Taken<'_> {
    #[inline]
    fn apply(&mut self, event: &Event) {
        if event.ts_recv != Event::NO_TIME {
            self.time = self.time.max(event.ts_recv);
        }
        if event.instrument == InstrumentId::ALL {
            if event.kind == EventKind::Status {
                self.of_all.retain(|own| own.source != event.source);
                self.of_all.push(*event);
            }
        } else if event.instrument.0 < MOST_INSTRUMENTS {
            self.view.apply(event);
        }
    }
}
