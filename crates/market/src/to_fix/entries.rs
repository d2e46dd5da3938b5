//! The entries of W and X.

use super::{ToFix, WriteError, names, one_name};
use crate::event::{Action, Event, Flags, InstrumentId, Kind, entry};
use crate::instruments::{Instrument, Lookup};
use fanfare_fix::codec::FieldWriter;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_wire::Precision;
use fanfare_wire::UtcTimestamp;

/// The fields that an entry can have, in no order.
const TAGS: [u32; 16] = [
    279, 269, 278, 37, 1003, 55, 48, 22, 270, 271, 272, 273, 346, 1023, 290, 83,
];

/// The entries of a message of a version.
#[derive(Debug)]
pub(super) struct Entries {
    /// The fields of [`TAGS`] that it has, in its order.
    tags: Vec<u32>,
    /// The fields that it requires.
    required: Vec<u32>,
    /// The MDEntryTypes(269) that it has.
    types: u128,
    /// The MDUpdateActions(279) that it has.
    actions: u8,
    time: Precision,
    has_level: bool,
    has_trade_id: bool,
    has_entry_id: bool,
}

impl Entries {
    pub(super) fn of(dictionary: &Dictionary, msg_type: &[u8]) -> Option<Self> {
        let group = dictionary.body(msg_type)?.group(268)?;
        let mut tags: Vec<u32> = TAGS.into_iter().filter(|tag| group.has(*tag)).collect();
        tags.sort_by_key(|tag| group.position(*tag));
        let fits = |tag, byte: u8| dictionary.fits(tag, &[byte]);
        let types = (0..128_u8).filter(|byte| fits(269, *byte));
        let actions = (0..6).filter(|action| fits(279, b'0' + action));
        // UTCTimeOnly has milliseconds up to FIX.5.0SP1.
        let nanos = dictionary.version() == Version::Fix50Sp2.name();
        Some(Self {
            required: group.required().filter(|tag| tags.contains(tag)).collect(),
            types: types.fold(0, |all, byte| all | 1 << byte),
            actions: actions.fold(0, |all, action| all | 1 << action),
            time: if nanos {
                Precision::Nanos
            } else {
                Precision::Millis
            },
            has_level: tags.contains(&1023),
            has_trade_id: tags.contains(&1003),
            has_entry_id: tags.contains(&278),
            tags,
        })
    }

    const fn has_type(&self, kind: u8) -> bool {
        kind < 128 && self.types >> kind & 1 == 1
    }

    fn write(
        &self,
        event: &Event,
        known: Option<&Instrument<'_>>,
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let kind = match event.kind {
            Kind::Level | Kind::Order | Kind::Trade | Kind::Statistic => event.entry,
            Kind::Clear => entry::EMPTY_BOOK,
            _ => return Err(WriteError::Kind),
        };
        if !self.has_type(kind) {
            return Err(WriteError::Value { tag: 269 });
        }
        let mut required = self.required.len();
        for tag in &self.tags {
            let is_written = match tag {
                279 => self.action(event.action, out)?,
                269 => is(out.char(269, kind)),
                55 | 48 | 22 => {
                    let known = known.ok_or(WriteError::Instrument)?;
                    one_name(&known.definition.name, *tag, out);
                    *tag == 55
                }
                tag => self.value(*tag, event, out),
            };
            let is_required = self.required.contains(tag);
            if is_required && !is_written {
                return Err(WriteError::Missing { tag: *tag });
            }
            required -= usize::from(is_required);
        }
        debug_assert_eq!(required, 0);
        Ok(())
    }

    fn action(&self, action: Action, out: &mut FieldWriter<'_>) -> Result<bool, WriteError> {
        let code = action as u8;
        match code < 8 && self.actions >> code & 1 != 0 {
            true => Ok(is(out.char(279, b'0' + code))),
            false => Err(WriteError::Value { tag: 279 }),
        }
    }

    /// Writes a field if the event has it. Returns whether it was written.
    fn value(&self, tag: u32, event: &Event, out: &mut FieldWriter<'_>) -> bool {
        let has_id = event.id != 0;
        match tag {
            278 if event.kind == Kind::Order && has_id => is(out.u64(278, event.id)),
            278 if event.kind == Kind::Trade && has_id && !self.has_trade_id => {
                is(out.u64(278, event.id))
            }
            37 if event.kind == Kind::Order && has_id && !self.has_entry_id => {
                is(out.u64(37, event.id))
            }
            1003 if event.kind == Kind::Trade && has_id => is(out.u64(1003, event.id)),
            346 if event.kind == Kind::Level && has_id => is(out.u64(346, event.id)),
            270 => match event.price.to_decimal() {
                Some(price) => is(out.decimal(270, price)),
                None => false,
            },
            271 if event.size != Event::NO_SIZE => is(out.i64(271, event.size)),
            1023 if event.level != 0 => is(out.u64(1023, event.level.into())),
            290 if event.level != 0 && !self.has_level => is(out.u64(290, event.level.into())),
            83 if event.rpt_seq != 0 => is(out.u64(83, event.rpt_seq.into())),
            272 | 273 => self.time(tag, event.ts_event, out),
            _ => false,
        }
    }

    fn time(&self, tag: u32, nanos: u64, out: &mut FieldWriter<'_>) -> bool {
        let Some(nanos) = i64::try_from(nanos).ok() else {
            return false;
        };
        let mut text = [0; UtcTimestamp::MAX_LEN];
        let has_micros = nanos % 1_000_000 != 0;
        let precision = if has_micros {
            self.time
        } else {
            Precision::Millis
        };
        let len = UtcTimestamp::from_nanos(nanos).write(precision, &mut text);
        let part = match tag {
            272 => text.get(..8),
            _ => text.get(9..len),
        };
        is(out.field(tag, part.unwrap_or_default()))
    }
}

/// Returns true for a field that was written.
fn is(_: &mut FieldWriter<'_>) -> bool {
    true
}

impl ToFix {
    /// Writes the body of X, MarketDataIncrementalRefresh: one entry for each event, of any
    /// instruments. `request` is MDReqID(262), left out if empty.
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] for an event that cannot be an entry of this version.
    pub fn changes(
        &self,
        table: &impl Lookup,
        request: &[u8],
        events: &[Event],
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let entries = self.changes.as_ref().ok_or(WriteError::NoMessage)?;
        if !request.is_empty() {
            out.field(262, request);
        }
        out.u64(268, events.len() as u64);
        let mut known: Option<Instrument<'_>> = None;
        events.iter().try_for_each(|event| {
            if known.is_none_or(|known| known.instrument != event.instrument) {
                known = table.instrument(event.instrument);
            }
            entries.write(event, known.as_ref(), out)
        })
    }

    /// Writes the body of W, MarketDataSnapshotFullRefresh: the events of a snapshot of one
    /// instrument. A [`Kind::Clear`] is an entry only if there is no other and the version has an
    /// entry for an empty book (FIX.4.4 on). In earlier versions an empty snapshot has no entries.
    /// `request` is MDReqID(262), left out if empty.
    ///
    /// # Errors
    ///
    /// Returns a [`WriteError`] for an event that cannot be an entry of this version.
    pub fn snapshot(
        &self,
        table: &impl Lookup,
        request: &[u8],
        instrument: InstrumentId,
        events: &[Event],
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let entries = self.snapshot.as_ref().ok_or(WriteError::NoMessage)?;
        let body = self.body(b"W")?;
        let known = table.instrument(instrument).ok_or(WriteError::Instrument)?;
        if events.iter().any(|event| event.instrument != instrument) {
            return Err(WriteError::Mixed);
        }
        if !request.is_empty() {
            out.field(262, request);
        }
        names(&known.definition.name, |tag| body.has(tag), out);
        let first = events.first().filter(|first| first.kind == Kind::Clear);
        if let Some(first) = first
            && first.rpt_seq != 0
            && body.has(83)
        {
            out.u64(83, first.rpt_seq.into());
        }
        let listed = events.iter().filter(|event| event.kind != Kind::Clear);
        match listed.clone().count() {
            0 if !entries.has_type(entry::EMPTY_BOOK) => {
                out.u64(268, 0);
                Ok(())
            }
            0 => {
                out.u64(268, 1);
                let empty = Event {
                    instrument,
                    kind: Kind::Clear,
                    flags: Flags::SNAPSHOT,
                    ..Event::EMPTY
                };
                entries.write(first.unwrap_or(&empty), Some(&known), out)
            }
            count => {
                out.u64(268, count as u64);
                let mut listed = listed;
                listed.try_for_each(|event| entries.write(event, Some(&known), out))
            }
        }
    }
}
