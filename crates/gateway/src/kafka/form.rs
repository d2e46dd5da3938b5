//! The conversion of events to messages.

use super::config::{self, Kafka, KafkaFormat};
use super::topic::{Message, To, TopicError, What};
use crate::service::Pattern;
use fanfare_history::Run;
use fanfare_market::book::{BookConfig, ConfigError};
use fanfare_market::dbn::live::{Batch, Encoder, LiveSchemas, SystemCode};
use fanfare_market::dbn::{DbnConfig, Schemas};
use fanfare_market::instruments::{Directory, Lookup, SecurityId};
use fanfare_market::{Event, InstrumentId, Kind, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The function that is called with each message.
pub(super) type Put<'a> = &'a mut dyn FnMut(&Message<'_>) -> Result<(), TopicError>;

/// The converter of events to messages.
pub(super) struct Form {
    chosen: Chosen,
    kinds: Vec<Kind>,
    line: String,
    dbn: Option<Dbn>,
}

struct Dbn {
    encoder: Encoder,
    books: Vec<BookConfig>,
    /// The numbers of the first instruments of the feeds, if they are known.
    bases: Vec<u32>,
    schemas: LiveSchemas,
    batch: Batch,
    room: Vec<u8>,
}

/// The instruments that were chosen, and their keys.
struct Chosen {
    patterns: Vec<Pattern>,
    /// The key of each instrument, or `None` if it is not wanted.
    known: HashMap<u32, Option<Vec<u8>>>,
}

impl Chosen {
    fn key(&mut self, instrument: InstrumentId, table: &Directory) -> Option<&[u8]> {
        let patterns = &self.patterns;
        let known = match self.known.entry(instrument.0) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                // An instrument whose record was lost is unknown only until it is shown again.
                let name = table.instrument(instrument)?.definition.name;
                let key = match (name.symbol, name.id) {
                    ([], SecurityId::Text(id)) => id.to_vec(),
                    ([], id) => id.to_string().into_bytes(),
                    (symbol, _) => symbol.to_vec(),
                };
                let is_wanted = patterns.is_empty() || patterns.iter().any(|own| own.fits(&key));
                place.insert(is_wanted.then_some(key))
            }
        };
        known.as_deref()
    }
}

impl Form {
    /// `bases` are the numbers of the first instruments of the feeds, if they are known.
    pub(super) fn new(
        config: &Kafka,
        (books, bases): (Vec<BookConfig>, Vec<u32>),
    ) -> Result<Self, ConfigError> {
        let schemas = config
            .schemas
            .iter()
            .filter_map(|name| config::schema(name));
        let schemas = schemas.fold(LiveSchemas::NONE, |all, one| all.with(one.alone()));
        let dbn = match config.format {
            KafkaFormat::Json => None,
            KafkaFormat::Dbn => Some(Dbn {
                encoder: encoder_of(&books, &bases)?,
                books,
                bases,
                schemas,
                batch: Batch::default(),
                room: Vec::new(),
            }),
        };
        let patterns = config.instruments.iter();
        Ok(Self {
            chosen: Chosen {
                patterns: patterns
                    .map(|text| Pattern::parse(text.as_bytes()))
                    .collect(),
                known: HashMap::new(),
            },
            kinds: config
                .kinds
                .iter()
                .filter_map(|name| config::kind(name))
                .collect(),
            line: String::new(),
            dbn,
        })
    }

    /// Returns the encoder whose books are brought to the current position by the earlier events.
    pub(super) fn encoder(&mut self) -> Option<&mut Encoder> {
        self.dbn.as_mut().map(|dbn| &mut dbn.encoder)
    }

    /// Starts the conversion once the books are complete.
    pub(super) fn begin(&mut self, table: &Directory) {
        if let Some(dbn) = &mut self.dbn {
            dbn.encoder.want(dbn.schemas, table);
        }
    }

    /// Continues with the books of a run of the plant if they differ from those before, which are
    /// forgotten, and with its numbers of instruments.
    pub(super) fn begin_run(
        &mut self,
        run: Option<&Run>,
        table: &Directory,
    ) -> Result<(), ConfigError> {
        let (Some(dbn), Some(run)) = (&mut self.dbn, run) else {
            return Ok(());
        };
        if run.feeds.is_empty() {
            return Ok(());
        }
        if !run.feeds.iter().map(|feed| &feed.base).eq(&dbn.bases) {
            dbn.bases = run.bases();
            dbn.encoder.set_bases(dbn.bases.clone());
        }
        if !run.feeds.iter().map(|feed| &feed.book).eq(&dbn.books) {
            dbn.books = run.books();
            dbn.encoder = encoder_of(&dbn.books, &dbn.bases)?;
            dbn.encoder.want(dbn.schemas, table);
        }
        Ok(())
    }

    /// Converts an event. `is_new` is set if the topic does not have it.
    pub(super) fn event(
        &mut self,
        event: &Event,
        table: &Directory,
        is_new: bool,
        put: Put<'_>,
    ) -> Result<(), TopicError> {
        if event.kind == Kind::Definition {
            self.chosen.known.remove(&event.instrument.0);
        }
        match &mut self.dbn {
            Some(dbn) => {
                // The books include the events in the topic.
                if is_new {
                    dbn.event(event, table, &mut self.chosen, put)?;
                }
                Ok(())
            }
            None if is_new => self.json(event, table, put),
            None => Ok(()),
        }
    }

    fn json(&mut self, event: &Event, table: &Directory, put: Put<'_>) -> Result<(), TopicError> {
        if !self.kinds.is_empty() && !self.kinds.contains(&event.kind) {
            return Ok(());
        }
        let to = match event.instrument {
            InstrumentId::ALL => To::First,
            instrument => match self.chosen.key(instrument, table) {
                Some(key) => To::Key(key),
                None => return Ok(()),
            },
        };
        self.line.clear();
        json::event(
            event,
            table.instrument(event.instrument).as_ref(),
            &mut self.line,
        );
        put(&Message {
            to,
            number: event.number,
            time: time(event),
            what: What::Event,
            value: self.line.as_bytes(),
        })
    }

    /// Makes the message of missing events.
    pub(super) fn lost(&mut self, first: u64, last: u64, put: Put<'_>) -> Result<(), TopicError> {
        // Definitions may be among them.
        self.chosen.known.clear();
        self.line.clear();
        json::lost(first, last, &mut self.line);
        let text = format!("events {first} to {last} are missing");
        self.notice(&text, last, What::Lost, put)
    }

    /// Makes the message of a restart of the plant.
    pub(super) fn restart(&mut self, number: u64, put: Put<'_>) -> Result<(), TopicError> {
        self.chosen.known.clear();
        self.line.clear();
        self.line.push_str(json::RESTART);
        self.notice("the plant was started again", number, What::Restart, put)
    }

    fn notice(
        &mut self,
        text: &str,
        number: u64,
        what: What,
        put: Put<'_>,
    ) -> Result<(), TopicError> {
        let value = match &mut self.dbn {
            None => self.line.as_bytes(),
            Some(dbn) => {
                dbn.encoder.lose_all();
                dbn.batch.clear();
                let time = dbn.encoder.time();
                dbn.batch.notice(SystemCode::Unset, text, time);
                dbn.batch.bytes()
            }
        };
        put(&Message {
            to: To::All,
            number,
            time: 0,
            what,
            value,
        })
    }
}

/// Creates an encoder of feeds with books of these kinds, and these first instruments.
fn encoder_of(books: &[BookConfig], bases: &[u32]) -> Result<Encoder, ConfigError> {
    let record = DbnConfig {
        names: false,
        ..DbnConfig::new(Schemas::MIXED)
    };
    Ok(Encoder::new(books.to_vec(), record)?.with_bases(bases.to_vec()))
}

impl Dbn {
    /// Makes one message of all records of an event and an instrument.
    fn event(
        &mut self,
        event: &Event,
        table: &Directory,
        chosen: &mut Chosen,
        put: Put<'_>,
    ) -> Result<(), TopicError> {
        let Self {
            encoder,
            schemas,
            batch,
            room,
            ..
        } = self;
        batch.clear();
        encoder.event(event, table, batch);
        let mut records = batch.records().peekable();
        room.clear();
        while let Some((tag, record)) = records.next() {
            if tag.schemas.meets(*schemas) {
                room.extend_from_slice(record);
            }
            let next = records.peek().map(|(next, _)| next.instrument);
            if next == Some(tag.instrument) || room.is_empty() {
                continue;
            }
            let to = match tag.instrument {
                InstrumentId::ALL => Some(To::First),
                instrument => chosen.key(instrument, table).map(To::Key),
            };
            if let Some(to) = to {
                put(&Message {
                    to,
                    number: event.number,
                    time: time(event),
                    what: What::Event,
                    value: room,
                })?;
            }
            room.clear();
        }
        Ok(())
    }
}

/// Returns the time of arrival in nanoseconds since 1970, or 0 if it is unknown.
pub(super) const fn time(event: &Event) -> u64 {
    match event.ts_recv {
        Event::NO_TIME => 0,
        time => time,
    }
}
