//! The journal as the session's message store.

use super::layout::EntryKind;
use super::segment::Segment;
use super::transmit::{SECRET, SIDE, Stretch};
use super::{Durability, Journal};
use fanfare_fix::codec::mask_secrets;
use fanfare_fix::session::{Again, Entry, Kind, MessageStore, OurReset, Search, StoreError};
use fanfare_wire::UtcTimestamp;
use std::collections::VecDeque;
use std::ops::Range;

impl MessageStore for Journal {
    fn next_sender(&self) -> u64 {
        self.current.next_sender
    }

    fn next_target(&self) -> u64 {
        self.next_target
    }

    /// Sets the next number. A higher one is one entry; a lower one begins a segment, and messages
    /// from `seq` on are dropped.
    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError> {
        self.usable()?;
        if seq > self.current.next_sender {
            self.make_room(0)?;
            self.append(0..0, EntryKind::Skip, seq - 1)?;
        } else if seq < self.current.next_sender {
            self.rotate(seq, self.current.header.created, None)?;
            for segment in &mut self.sealed {
                segment.take_back(seq);
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
        if let Err(error) = self.rotate(1, created, None) {
            self.next_target = target;
            return Err(error);
        }
        self.retain_from = None;
        if self.options.durability != Durability::None {
            // A crash of the machine may not keep the removal of the files alone.
            self.sync_now()?;
        }
        self.drop_sealed()
    }

    fn our_reset(&self) -> OurReset {
        self.current.our_reset()
    }

    fn set_our_reset(&mut self, reset: OurReset) -> Result<(), StoreError> {
        self.usable()?;
        self.current.set_our_reset(reset);
        self.dirty = true;
        Ok(())
    }

    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.takes(len)?;
        if !self.fits(len) {
            if self.wastes(len) {
                return Ok(self.room_aside(len));
            }
            self.make_room(len)?;
        }
        self.is_aside = false;
        Ok(self.current.room_mut())
    }

    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError> {
        self.usable()?;
        let range = if self.is_aside {
            self.bring_in(range)?
        } else {
            range
        };
        if range.end > self.current.room() {
            return Err(StoreError::TooLong);
        }
        let next = self.current.next_sender;
        let kind = match (entry.kind, entry.transmit) {
            (Kind::App, _) => EntryKind::App,
            (Kind::Admin, true) => EntryKind::Admin,
            (Kind::Admin, false) => EntryKind::AdminHeld,
        };
        let place = self.append(range, kind, next)?;
        if entry.transmit {
            let held = self.options.durability == Durability::Every;
            self.transmit.push(self.current.header.number, place, held);
        }
        Ok(())
    }

    /// Reserves a buffer outside the segment, whose pages are those of the file.
    fn reserve_secret(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.takes(len)?;
        Ok(self.room_aside(len))
    }

    /// Writes only the masked message to the segment.
    fn commit_secret(&mut self, range: Range<usize>) -> Result<(), StoreError> {
        self.usable()?;
        let mut aside = std::mem::take(&mut self.aside);
        let kept = aside
            .get(range.clone())
            .ok_or(StoreError::TooLong)
            .and_then(|message| self.keep_masked(message));
        aside.fill(0);
        self.aside = aside;
        kept
    }

    fn record(&mut self, message: &[u8]) -> Result<(), StoreError> {
        self.append_bytes(message, EntryKind::App, self.current.next_sender)
    }

    fn dropped(&self) -> u64 {
        self.last_dropped()
    }

    fn search_from(&self, seq: u64) -> Search<'_> {
        let at = self.sealed.partition_point(|segment| segment.end() <= seq);
        let (segment, is_last) = match self.sealed.get(at) {
            Some(sealed) => (sealed, false),
            None => (&self.current, true),
        };
        match segment.search(seq) {
            Search::Nothing if !is_last => Search::NoneBelow(segment.end()),
            found => found,
        }
    }

    /// Transmits a message again without writing to a file. It waits for earlier messages that have
    /// to be on the disk first.
    fn transmit_again(&mut self, again: &Again<'_>) -> Result<(), StoreError> {
        self.usable()?;
        if self.transmit.is_empty() {
            self.side.clear();
        }
        let is_full = self.transmit.len() + again.len() > self.options.max_unsent;
        if is_full || !self.side.has_room(again.side_len()) {
            return Err(StoreError::Full);
        }
        let Some((seq, range)) = again.kept.clone() else {
            self.push_side(again.head);
            self.push_side(again.tail);
            return Ok(());
        };
        let (segment, kept) = self.locate(seq, range).ok_or(StoreError::NotKept)?;
        let number = segment.header.number;
        self.push_side(again.head);
        if again.is_copied() {
            let bytes = data_of(&self.sealed, &self.current, number, kept);
            let copy = self.side.push(bytes.unwrap_or_default());
            self.push_again(SIDE, copy);
        } else {
            self.push_again(number, kept);
        }
        self.push_side(again.tail);
        Ok(())
    }

    fn retain_from(&mut self, seq: Option<u64>) {
        self.retain_from = seq;
    }

    /// Syncs, which has an effect only under [`Durability::Every`]. An error leaves the journal
    /// unusable: its contents are not certain.
    fn sync(&mut self) -> Result<(), StoreError> {
        self.usable()?;
        match self.options.durability {
            Durability::Every if self.dirty => self.sync_now(),
            _ => Ok(()),
        }
    }

    fn prepare(&mut self) {
        self.current.prefault_ahead();
        self.current.rehearse();
    }

    fn unsent(&self) -> &[u8] {
        let Some(stretch) = self.transmit.front() else {
            return &[];
        };
        let range = stretch.range.start as usize..stretch.range.end as usize;
        // Mostly it is the current segment, whose header is in the cache.
        if stretch.segment == self.current.header.number {
            return self.current.data(range).unwrap_or(&[]);
        }
        self.unsent_elsewhere(stretch, range)
    }

    fn unsent_len(&self) -> usize {
        self.transmit.len()
    }

    fn sent(&mut self, n: usize) {
        self.transmit.consume(n);
    }

    fn drop_unsent(&mut self) {
        self.transmit.clear();
    }
}

impl Journal {
    /// Returns bytes to be transmitted that are in a full segment or in the side buffer.
    #[cold]
    fn unsent_elsewhere(&self, stretch: &Stretch, range: Range<usize>) -> &[u8] {
        match stretch.segment {
            SECRET => self.transmit.secret(stretch),
            SIDE => self.side.get(range),
            number => data_of(&self.sealed, &self.current, number, range).unwrap_or(&[]),
        }
    }

    /// Returns the segment of these bytes of the kept message `seq`, and their range in it.
    fn locate(&self, seq: u64, range: Range<usize>) -> Option<(&Segment, Range<usize>)> {
        let at = self.sealed.partition_point(|segment| segment.end() <= seq);
        let segment = self.sealed.get(at).unwrap_or(&self.current);
        let entry = segment.entry(segment.find(seq))?;
        let is_it = entry.seq == seq && entry.kind.is_kept() && range.end <= entry.len as usize;
        let start = entry.offset as usize;
        is_it.then_some((segment, start + range.start..start + range.end))
    }

    fn push_side(&mut self, bytes: &[u8]) {
        let place = self.side.push(bytes);
        self.push_again(SIDE, place);
    }

    /// Queues bytes of a message that is sent again, after those that have to be on the disk first.
    fn push_again(&mut self, segment: u64, place: Range<usize>) {
        let held = self.options.durability == Durability::Every && self.dirty;
        let place = place.start as u32..place.end as u32;
        self.transmit.push(segment, place, held);
    }

    /// Stores an administrative message without its secrets, and transmits it with them.
    fn keep_masked(&mut self, message: &[u8]) -> Result<(), StoreError> {
        let mut masked = message.to_vec();
        mask_secrets(&mut masked);
        self.append_bytes(&masked, EntryKind::Admin, self.current.next_sender)?;
        let held = self.options.durability == Durability::Every;
        self.transmit.push_secret(message, held);
        Ok(())
    }

    /// Appends a message that was not written into the segment by its encoder.
    pub(super) fn append_bytes(
        &mut self,
        message: &[u8],
        kind: EntryKind,
        seq: u64,
    ) -> Result<(), StoreError> {
        let len = message.len();
        self.is_aside = false;
        self.make_room(len)?;
        let room = self.current.room_mut().get_mut(..len);
        room.ok_or(StoreError::TooLong)?.copy_from_slice(message);
        self.append(0..len, kind, seq).map(drop)
    }

    /// Appends an entry for the message at `range` of the free bytes. Returns the place of the
    /// message.
    pub(super) fn append(
        &mut self,
        range: Range<usize>,
        kind: EntryKind,
        seq: u64,
    ) -> Result<Range<u32>, StoreError> {
        debug_assert!(
            range.is_empty() || !self.is_aside && range.end <= self.current.room(),
            "the message is not in the segment"
        );
        let place = self.current.append(range, kind, seq);
        if self.current.count >= self.ask_at.0 || place.end >= self.ask_at.1 {
            self.ask_for_next();
        }
        self.dirty = true;
        self.unsynced += 1;
        // The contents of a lost page are not to be transmitted.
        self.usable()?;
        if let Durability::EveryN(n) = self.options.durability
            && self.unsynced >= n
        {
            // The message is kept and its number used by now. The next call returns the error.
            let _ = self.sync_now();
        }
        Ok(place)
    }
}

/// Returns bytes of the segment with this number.
fn data_of<'a>(
    sealed: &'a VecDeque<Box<Segment>>,
    current: &'a Segment,
    number: u64,
    range: Range<usize>,
) -> Option<&'a [u8]> {
    if number == current.header.number {
        return current.data(range);
    }
    let at = sealed.binary_search_by_key(&number, |segment| segment.header.number);
    sealed.get(at.ok()?)?.data(range)
}
