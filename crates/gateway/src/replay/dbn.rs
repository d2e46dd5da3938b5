//! A file of DBN as a source, whose records become the events of one feed.

use super::error::ReplayError;
use super::file::{DbnFile, DbnFileError};
use super::piece::Piece;
use fanfare_history::{FeedInfo, Run};
use fanfare_market::book::ConfigError;
use fanfare_market::{BookConfig, Event, Flags, InstrumentId, Instruments, Kind};
use std::io;
use std::path::Path;

/// The most instruments of a file.
const INSTRUMENTS: usize = 10_000_000;
/// The levels of a side, which are those of a record, and the orders of a book.
const LEVELS: u32 = 10;
const ORDERS: (u32, u32) = (10_000, 1_000_000);
/// The records in which the first change of a book is searched for.
const LOOKED: usize = 1_000_000;
/// The most events of a message, if the records do not mark its end.
const MOST: usize = 256;

/// Returns the run that a file stands for: one feed.
pub(super) fn run(path: &Path) -> Result<Run, ReplayError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok(Run {
        number: 1,
        start: 0,
        feeds: vec![FeedInfo {
            name: name.into_owned(),
            base: 0,
            book: book_of(path)?,
        }],
    })
}

/// Returns the books of a file: by order, or by price.
pub(crate) fn book_of(path: &Path) -> Result<BookConfig, ReplayError> {
    let cannot = |error| ReplayError::Dbn(path.display().to_string(), error);
    check_kind(path).map_err(cannot)?;
    let mut file = DbnFile::open(path, 1).map_err(cannot)?;
    let (mut table, mut has_orders) = (Instruments::new(INSTRUMENTS), None);
    for _ in 0..LOOKED {
        let more = file.read(&mut table);
        for event in file.events() {
            match event.kind {
                Kind::Order => has_orders = Some(true),
                Kind::Level => has_orders = Some(false),
                _ => {}
            }
        }
        match more {
            _ if has_orders.is_some() => break,
            Ok(true) => {}
            Ok(false) => break,
            // A damaged file is replayed up to the damage, if any of it is readable.
            Err(error) if file.counts().records == 0 => return Err(cannot(error)),
            Err(_) => break,
        }
    }
    book(has_orders == Some(true)).map_err(|_| ReplayError::Books)
}

/// Refuses a pipe and the like, because the file is read more than once.
fn check_kind(path: &Path) -> Result<(), DbnFileError> {
    match std::fs::metadata(path)?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is not a regular file").into()),
    }
}

/// Returns the books of a file, or of a live stream: by order, or by price.
pub(super) fn book(has_orders: bool) -> Result<BookConfig, ConfigError> {
    match has_orders {
        true => BookConfig::by_order(ORDERS.0, ORDERS.1),
        false => BookConfig::by_price(LEVELS),
    }
}

/// The reader of a file, message by message.
pub(super) struct DbnPlay {
    file: DbnFile,
    table: Instruments,
    messages: Messages,
}

/// The messages that records are of, with the plant's numbers of their instruments.
pub(super) struct Messages {
    /// The number of instruments that were passed on.
    known: usize,
    events: Vec<Event>,
    room: Vec<u8>,
    /// The latest time of arrival so far.
    clock: u64,
    shift: u64,
    /// The plant's number of the first instrument.
    base: u32,
}

/// The number of a file among the feeds of a plant.
#[derive(Clone, Copy)]
pub(crate) struct DbnPlace {
    /// The number of the feed, from 1.
    pub(super) source: u16,
    /// The plant's number of its first instrument, and the most instruments. Further ones are
    /// refused.
    base: u32,
    instruments: usize,
}

impl DbnPlace {
    pub(crate) const fn new(source: u16, base: u32, instruments: u32) -> Self {
        Self {
            source,
            base,
            instruments: instruments as usize,
        }
    }

    /// Returns the empty table of its instruments.
    pub(super) fn table(self) -> Instruments {
        Instruments::new(self.instruments)
    }
}

/// The numbers of the only feed.
pub(super) const ALONE: DbnPlace = DbnPlace {
    source: 1,
    base: 0,
    instruments: INSTRUMENTS,
};

impl DbnPlay {
    /// Opens a file. `shift` is added to the numbers of events.
    pub(super) fn open(path: &Path, place: DbnPlace, shift: u64) -> Result<Self, DbnFileError> {
        Ok(Self {
            file: DbnFile::open(path, place.source)?,
            table: place.table(),
            messages: Messages::new(place, shift),
        })
    }

    /// Adds the next record to the piece. Returns false at the end.
    pub(super) fn read(&mut self, piece: &mut Piece) -> Result<bool, DbnFileError> {
        let more = self.file.read(&mut self.table);
        self.messages.introduce(&self.table, piece);
        for event in self.file.events() {
            self.messages.take(*event, &self.table, piece);
        }
        if !matches!(more, Ok(true)) {
            self.messages.end(piece);
        }
        more
    }
}

impl Messages {
    /// Begins with the first message of a feed. `shift` is added to the numbers of events.
    pub(super) const fn new(place: DbnPlace, shift: u64) -> Self {
        Self {
            known: 0,
            events: Vec::new(),
            room: Vec::new(),
            clock: 0,
            shift,
            base: place.base,
        }
    }

    /// Adds the instruments of the table that are new to the piece.
    pub(super) fn introduce(&mut self, table: &Instruments, piece: &mut Piece) {
        for at in self.known..table.len() {
            self.put_instrument(at as u32, table, piece);
        }
        self.known = table.len();
    }

    /// Adds an event to its message, and the messages before it to the piece.
    pub(super) fn take(&mut self, event: Event, table: &Instruments, piece: &mut Piece) {
        let is_of_other = |first: &Event| first.ts_recv != event.ts_recv;
        let is_over = self.events.first().is_some_and(is_of_other);
        if is_over || self.events.len() >= MOST {
            self.put_events(!is_over, piece);
        }
        if matches!(event.kind, Kind::Definition | Kind::Status) {
            self.put_instrument(event.instrument.0, table, piece);
        }
        let times = [event.ts_recv, event.ts_event];
        let time = times.into_iter().find(|time| *time != Event::NO_TIME);
        self.clock = self.clock.max(time.unwrap_or(0));
        let mut event = event;
        event.number += self.shift;
        if event.instrument != InstrumentId::ALL {
            event.instrument.0 += self.base;
        }
        self.events.push(event);
        if event.flags.has(Flags::LAST) {
            self.put_events(false, piece);
        }
    }

    /// Adds the message of the last events to the piece.
    pub(super) fn end(&mut self, piece: &mut Piece) {
        self.put_events(false, piece);
    }

    /// Ends the message with its last event so far, and adds it to the piece, because the event
    /// that would end it is left out or does not come.
    pub(super) fn finish(&mut self, piece: &mut Piece) {
        if let Some(last) = self.events.last_mut() {
            last.flags = last.flags.with(Flags::LAST);
        }
        self.put_events(false, piece);
    }

    /// Returns whether events of a message wait for its end.
    pub(super) const fn is_open(&self) -> bool {
        !self.events.is_empty()
    }

    /// Adds the collected events to the piece. `continues` is set if others of their message
    /// follow.
    fn put_events(&mut self, continues: bool, piece: &mut Piece) {
        piece.message(self.clock, &self.events, continues);
        self.events.clear();
    }

    fn put_instrument(&mut self, number: u32, table: &Instruments, piece: &mut Piece) {
        if let Some(mut known) = table.get(InstrumentId(number)) {
            known.instrument.0 += self.base;
            known.write(&mut self.room);
            piece.instrument(&self.room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_twice_is_refused() {
        let error = book_of(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "/dev/null: it is not a regular file");
    }
}
