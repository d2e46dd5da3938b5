//! Consecutive records, each with the tag that decides which clients receive it.

use super::control::{SystemCode, system};
use super::schema::LiveSchemas;
use crate::event::InstrumentId;

/// The tag of a record of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The end of the record, in bytes from the beginning of the batch.
    pub end: u32,
    /// Its instrument. A record of [`InstrumentId::ALL`] belongs to no instrument, and is sent to
    /// every client with one of the schemas.
    pub instrument: InstrumentId,
    /// The schemas of the record.
    pub schemas: LiveSchemas,
    /// MDEntryType(269) of a value of the session, or 0.
    pub entry: u8,
}

/// The records of some events.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    tags: Vec<Tag>,
    schemas: LiveSchemas,
}

impl Batch {
    /// Removes all records, and keeps the capacity.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.tags.clear();
        self.schemas = LiveSchemas::NONE;
    }

    /// Returns the records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the tags of the records, in their order.
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// Returns the schemas of all records.
    pub const fn schemas(&self) -> LiveSchemas {
        self.schemas
    }

    /// Returns true if there is no record.
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// Returns each record with its tag.
    pub fn records(&self) -> impl Iterator<Item = (&Tag, &[u8])> {
        let mut start = 0;
        self.tags.iter().map(move |tag| {
            let record = self.bytes.get(start..tag.end as usize);
            start = tag.end as usize;
            (tag, record.unwrap_or_default())
        })
    }

    /// Appends a notice for every client.
    pub fn notice(&mut self, code: SystemCode, text: &str, ts_event: u64) {
        system(code, text, ts_event, &mut self.bytes);
        self.tag(InstrumentId::ALL, LiveSchemas::ALL, 0);
    }

    /// Moves the records of `other` to the end.
    pub(super) fn append(&mut self, other: &mut Self) {
        let start = self.bytes.len() as u32;
        self.bytes.append(&mut other.bytes);
        self.tags.extend(other.tags.drain(..).map(|tag| Tag {
            end: start + tag.end,
            ..tag
        }));
        self.schemas = self.schemas.with(other.schemas);
        other.schemas = LiveSchemas::NONE;
    }

    /// Tags the bytes appended last as a record.
    pub(super) fn tag(&mut self, instrument: InstrumentId, schemas: LiveSchemas, entry: u8) {
        self.schemas = self.schemas.with(schemas);
        self.tags.push(Tag {
            end: self.bytes.len() as u32,
            instrument,
            schemas,
            entry,
        });
    }

    /// Tags the records from byte `start` on, which are of this kind, and removes those for which
    /// `wanted` returns no schema.
    pub(super) fn tag_all(
        &mut self,
        start: usize,
        entry: u8,
        wanted: impl Fn(&[u8]) -> LiveSchemas,
    ) {
        let mut at = start;
        while let Some(record) = self.bytes.get(at..)
            && let Some(length) = super::control::length(record)
        {
            let record = record.get(..length).unwrap_or_default();
            let schemas = wanted(record);
            let instrument = instrument_of(record);
            if schemas.is_empty() {
                self.bytes.drain(at..at + length);
                continue;
            }
            at += length;
            self.schemas = self.schemas.with(schemas);
            self.tags.push(Tag {
                end: at as u32,
                instrument,
                schemas,
                entry,
            });
        }
    }
}

/// Returns the instrument in a record's header.
fn instrument_of(record: &[u8]) -> InstrumentId {
    let number = record.get(4..8).and_then(|bytes| bytes.try_into().ok());
    InstrumentId(number.map_or(u32::MAX, u32::from_le_bytes))
}
