//! The notes in the header of a segment: numbers that are rewritten in place while it is in use.

use super::Segment;
use crate::journal::Durability;
use crate::journal::layout::{
    BOOT_CELL, CONTINUED_CELL, DROPPED_CELL, DURABILITY_CELL, NOTES_CELL, OLDEST_CELL, RESET_CELL,
    SYNCED_CELL, TAKEN_BACK_CELL, TARGET_CELL, durability_code, durability_of, read_cell,
    reset_code, reset_of, rewrite_cell, write_cell,
};
use fanfare_fix::session::OurReset;
use std::sync::OnceLock;

impl Segment {
    pub(in crate::journal) fn target(&self) -> Option<u64> {
        read_cell(self.map.bytes(), TARGET_CELL).map(|(_, value)| value)
    }

    pub(in crate::journal) fn set_target(&mut self, target: u64) {
        self.target_generation = self.target_generation.wrapping_add(1);
        write_cell(
            self.map.bytes_mut(),
            TARGET_CELL,
            self.target_generation,
            target,
        );
    }

    /// Returns where a reset stands that the session asks for.
    pub(in crate::journal) fn our_reset(&self) -> OurReset {
        let noted = read_cell(self.map.bytes(), RESET_CELL);
        noted.map_or(OurReset::None, |(_, code)| reset_of(code))
    }

    pub(in crate::journal) fn set_our_reset(&mut self, reset: OurReset) {
        rewrite_cell(self.map.bytes_mut(), RESET_CELL, reset_code(reset));
    }

    /// Notes the durability with which the segment is written from now on, and that the notes of
    /// [`oldest`](Self::oldest) and [`dropped`](Self::dropped) hold.
    pub(in crate::journal) fn set_durability(&mut self, durability: Durability) {
        let code = durability_code(durability);
        let page = self.map.bytes_mut();
        rewrite_cell(page, DURABILITY_CELL, code);
        if let Some((generation, _)) = read_cell(page, DURABILITY_CELL) {
            rewrite_cell(page, NOTES_CELL, generation.into());
        }
    }

    /// Returns a note about dropped segments; `None` if a version has written to the segment since
    /// that does not write these notes.
    fn note(&self, cell: usize) -> Option<u64> {
        let page = self.map.bytes();
        let (generation, _) = read_cell(page, DURABILITY_CELL)?;
        let (_, holds_for) = read_cell(page, NOTES_CELL)?;
        let (_, noted) = read_cell(page, cell)?;
        (holds_for == u64::from(generation)).then_some(noted)
    }

    /// Returns the durability with which the segment was last written, if that was noted.
    pub(in crate::journal) fn durability(&self) -> Option<Durability> {
        read_cell(self.map.bytes(), DURABILITY_CELL).and_then(|(_, code)| durability_of(code))
    }

    /// Returns how many entries were known to be on the disk: their messages may be transmitted.
    pub(in crate::journal) fn synced(&self) -> u64 {
        let noted = read_cell(self.map.bytes(), SYNCED_CELL);
        noted.map_or(0, |(_, count)| count.min(self.header.entries.into()))
    }

    /// Returns how many entries behind the valid ones were known to be on the disk. A kill of the
    /// process does not damage them.
    pub(in crate::journal) fn synced_and_lost(&self) -> u32 {
        let lost = self.synced().saturating_sub(self.count.into());
        u32::try_from(lost).unwrap_or(u32::MAX)
    }

    /// Returns whether the machine has gone down since this segment was last written to. If not,
    /// everything that was written is here, even after a kill of the process.
    pub(in crate::journal) fn machine_went_down(&self) -> bool {
        read_cell(self.map.bytes(), BOOT_CELL).is_none_or(|(_, then)| then != boot() || then == 0)
    }

    /// Returns whether the next segment has begun; `None` for a file of a version that did not note
    /// it.
    pub(in crate::journal) fn is_continued(&self) -> Option<bool> {
        read_cell(self.map.bytes(), CONTINUED_CELL).map(|(_, continued)| continued != 0)
    }

    /// Returns the number of the oldest segment that the journal kept when it last had this one as
    /// its newest; `None` if a version that does not note it has written to the file.
    pub(in crate::journal) fn oldest(&self) -> Option<u64> {
        self.note(OLDEST_CELL)
    }

    /// Notes the number of the oldest segment that the journal keeps. It is noted before the one
    /// before that is removed, so that a kill in between leaves a file too many, not one too few.
    pub(in crate::journal) fn set_oldest(&mut self, number: u64) {
        if self.oldest() != Some(number) {
            rewrite_cell(self.map.bytes_mut(), OLDEST_CELL, number);
        }
    }

    /// Returns the number of the last application message in the segments that were dropped while
    /// this one was the newest, or before; `None` if a version that does not note it has written to
    /// the file.
    pub(in crate::journal) fn dropped(&self) -> Option<u64> {
        self.note(DROPPED_CELL)
    }

    pub(in crate::journal) fn set_dropped(&mut self, seq: u64) {
        if self.dropped() != Some(seq) {
            rewrite_cell(self.map.bytes_mut(), DROPPED_CELL, seq);
        }
    }

    /// Returns the number of the oldest segment that has to exist if this is the newest one; `None`
    /// if that is not certain: in a file to which an earlier version has written, and after a crash
    /// of the machine under [`Durability::None`], which may keep the removal of a file and not its
    /// note.
    pub(in crate::journal) fn demanded(&self) -> Option<u64> {
        let waits = matches!(
            self.durability(),
            Some(Durability::Every | Durability::EveryN(_))
        );
        let is_newest = self.is_continued() != Some(true);
        let is_certain = is_newest && (waits || !self.machine_went_down());
        self.oldest().filter(|_| is_certain)
    }

    /// Hides messages from `seq` on, which a later segment takes back, and notes it in the file,
    /// for a repair without that segment.
    pub(in crate::journal) fn take_back(&mut self, seq: u64) {
        if seq < self.end() {
            self.visible_below = seq;
            rewrite_cell(self.map.bytes_mut(), TAKEN_BACK_CELL, seq);
        }
    }

    /// Returns the number from which on later segments took messages back, according to the file;
    /// `None` if none did, or one of a version that did not note it.
    pub(in crate::journal) fn taken_back_from(&self) -> Option<u64> {
        read_cell(self.map.bytes(), TAKEN_BACK_CELL).map(|(_, seq)| seq)
    }

    /// Notes the boot of the machine in which the segment is written to.
    pub(super) fn note_boot(&mut self) {
        rewrite_cell(self.map.bytes_mut(), BOOT_CELL, boot());
    }

    /// Notes that the next segment has begun, in a file whose version notes it.
    pub(super) fn note_continued(&mut self) {
        let page = self.map.bytes_mut();
        if let Some((_, 0)) = read_cell(page, CONTINUED_CELL) {
            rewrite_cell(page, CONTINUED_CELL, 1);
        }
    }

    /// Notes that all entries are on the disk.
    pub(super) fn note_synced(&mut self) {
        let count = u64::from(self.count);
        rewrite_cell(self.map.bytes_mut(), SYNCED_CELL, count);
    }
}

/// Returns a number for this boot of the machine; 0 if it is not known.
pub(super) fn boot() -> u64 {
    static BOOT: OnceLock<u64> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits = id.bytes().filter_map(|byte| char::from(byte).to_digit(16));
        digits.fold(0, |sum: u64, digit| sum.rotate_left(4) ^ u64::from(digit))
    })
}
