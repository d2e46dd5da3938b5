//! The journal as the session sees it.

use super::layout::EntryKind;
use super::segment::Segment;
use super::{Durability, Journal};
use fanfare_fix::session::{Entry, Kind, MessageStore, StoreError, Stored};
use fanfare_wire::UtcTimestamp;
use std::ops::Range;

impl MessageStore for Journal {
    fn next_sender(&self) -> u64 {
        self.current.next_sender
    }

    fn next_target(&self) -> u64 {
        self.next_target
    }

    /// Upwards it is one entry; downwards begins a segment, and messages from `seq` on are
    /// forgotten.
    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError> {
        self.usable()?;
        if seq > self.current.next_sender {
            self.make_room(0)?;
            self.append(0..0, EntryKind::Skip, seq - 1)?;
        } else if seq < self.current.next_sender {
            self.rotate(seq, self.current.header.created)?;
            for segment in &mut self.sealed {
                segment.visible_below = segment.visible_below.min(seq);
            }
        }
        Ok(())
    }

    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError> {
        self.usable()?;
        self.next_target = seq;
        self.current.set_target(seq);
        self.dirty = true;
        Ok(())
    }

    fn created(&self) -> UtcTimestamp {
        self.current.header.created
    }

    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError> {
        self.usable()?;
        let target = std::mem::replace(&mut self.next_target, 1);
        if let Err(error) = self.rotate(1, created) {
            self.next_target = target;
            return Err(error);
        }
        self.retain_from = None;
        self.drop_sealed()
    }

    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.make_room(len)?;
        Ok(self.current.room_mut())
    }

    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError> {
        self.usable()?;
        if range.end > self.current.room() {
            return Err(StoreError::TooLong);
        }
        let next = self.current.next_sender;
        let (kind, seq, transmit) = match entry {
            Entry::New {
                kind: Kind::App,
                transmit,
            } => (EntryKind::App, next, transmit),
            Entry::New {
                kind: Kind::Admin,
                transmit: true,
            } => (EntryKind::Admin, next, true),
            Entry::New {
                kind: Kind::Admin,
                transmit: false,
            } => (EntryKind::AdminHeld, next, false),
            Entry::Copy => (EntryKind::Copy, next.saturating_sub(1), true),
        };
        let place = self.append(range, kind, seq)?;
        if transmit {
            let held = self.options.durability == Durability::Every;
            self.transmit.push(self.current.header.number, place, held);
        }
        Ok(())
    }

    fn record(&mut self, parts: &[&[u8]]) -> Result<(), StoreError> {
        let len = parts.iter().map(|part| part.len()).sum();
        self.make_room(len)?;
        let mut room = self.current.room_mut();
        for part in parts {
            let Some((place, rest)) = room.split_at_mut_checked(part.len()) else {
                return Err(StoreError::TooLong);
            };
            place.copy_from_slice(part);
            room = rest;
        }
        self.append(0..len, EntryKind::App, self.current.next_sender)?;
        Ok(())
    }

    fn first_from(&self, seq: u64) -> Option<Stored<'_>> {
        let segments = self.sealed.iter().chain([&self.current]);
        segments
            .filter(|segment| segment.next_sender > seq)
            .find_map(|segment| {
                let entries = (segment.find(seq)..segment.count).map_while(|i| segment.entry(i));
                let mut visible = entries.take_while(|entry| entry.seq < segment.visible_below);
                let entry = visible.find(|entry| entry.kind.is_kept())?;
                let kind = if entry.kind == EntryKind::App {
                    Kind::App
                } else {
                    Kind::Admin
                };
                Some(Stored {
                    seq: entry.seq,
                    kind,
                    bytes: segment.data(entry.range())?,
                })
            })
    }

    fn retain_from(&mut self, seq: Option<u64>) {
        self.retain_from = seq;
    }

    /// Only under [`Durability::Every`] there is something to do. An error leaves the journal
    /// unusable: what it holds is not certain.
    fn sync(&mut self) -> Result<(), StoreError> {
        match self.options.durability {
            Durability::Every if self.dirty => self.sync_now(),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self) {
        self.current.rehearse();
    }

    fn unsent(&self) -> &[u8] {
        let Some(stretch) = self.transmit.front() else {
            return &[];
        };
        let range = stretch.range.start as usize..stretch.range.end as usize;
        let is_it = |segment: &&Segment| segment.header.number == stretch.segment;
        // Mostly it is the current one; those before would have to be fetched to be asked.
        let current = Some(&*self.current).filter(is_it);
        let mut sealed = self.sealed.iter().map(|segment| &**segment);
        current
            .or_else(|| sealed.find(is_it))
            .and_then(|segment| segment.data(range))
            .unwrap_or(&[])
    }

    fn sent(&mut self, n: usize) {
        self.transmit.consume(n);
    }

    fn drop_unsent(&mut self) {
        self.transmit.clear();
    }
}

impl Journal {
    /// The one way into the table of entries. Gives where the message stands.
    pub(super) fn append(
        &mut self,
        range: Range<usize>,
        kind: EntryKind,
        seq: u64,
    ) -> Result<Range<u32>, StoreError> {
        let place = self.current.append(range, kind, seq);
        if self.current.count >= self.ask_at.0 || place.end >= self.ask_at.1 {
            self.ask_for_next();
        }
        self.dirty = true;
        self.unsynced += 1;
        if let Durability::EveryN(n) = self.options.durability
            && self.unsynced >= n
        {
            self.sync_now()?;
        }
        Ok(place)
    }
}
