//! The reading end of a log.

mod seek;

use crate::block::Unpacker;
use crate::error::LogError;
use crate::folder;
use crate::format::{BlockHeader, Kind, Records, SegmentHeader, u64_at};
use crate::formers::Formers;
use crate::known::Known;
use crate::marks::Marks;
use crate::place::{Border, Start, begin, is_within, readable, segment_of};
use crate::raw::{Raw, RawDelivery};
use crate::run::Run;
use crate::segment::{Found, Segment};
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::{Delivery, Event};
use std::cell::RefCell;
use std::fs;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use seek::hop;
pub(crate) use seek::number_of;

/// Reads a log from a number or a time on, and continues live: each event once, in the order of
/// their numbers.
///
/// Events that cannot be read are [`Delivery::Lost`], never skipped silently; instruments that
/// damage hides are read from the next checkpoint. Nothing waits for a reader; one that is so late
/// that retention has removed its next event receives [`LogError::Gone`]. It allocates until its
/// buffers have grown to the largest block, for instruments, for each segment, behind damage, and
/// at the end of the log when its folder has changed.
pub struct Reader {
    folder: PathBuf,
    segment: Segment,
    /// The records of the current block, and how many of their bytes were read.
    records: Vec<u8>,
    at: usize,
    /// The next number.
    next: u64,
    /// The number from which nothing is read.
    end: u64,
    border: Border,
    /// The latest time of arrival in a raw log, 0 in any other.
    time: u64,
    marks: Marks,
    /// The first number of the last record of events that does not end its message.
    part: Option<u64>,
    directory: Directory,
    formers: Formers,
    run: Option<Run>,
    /// Whether the segment is a new one, and of another run.
    is_new_segment: bool,
    is_restarted: bool,
    /// Whether the record of the segment's run is yet to be read.
    awaits_run: bool,
    /// Whether the segment does not name its run.
    is_unnamed: bool,
    /// Whether the border to the run is not where it seems to be, because a segment beside it does
    /// not name its run.
    is_unsure: bool,
    /// Whether instruments were removed that the caller may have copies of.
    is_pruned: bool,
    /// Whether bytes or segments were passed over, here or in a repair, which may have had
    /// instruments.
    is_damaged: bool,
    /// The first number of the current block, if it is the first one behind what was passed over.
    recalls: Option<u64>,
    /// The number from which on missing ones may have hidden instruments of this run.
    whole: u64,
    /// The time of the folder's last change when no later segment was found in it.
    listed: Option<SystemTime>,
    unpacker: Unpacker,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("folder", &self.folder)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

impl Reader {
    pub(crate) fn open(folder: &Path, start: Start) -> Result<Self, LogError> {
        let number = number_of(folder, start)?;
        let known = Known::before(folder, number)?;
        Self::behind(folder, known, number, Border::Cross)
    }

    /// Makes a reader from `number` on that has the contents of a checkpoint.
    pub(crate) fn behind(
        folder: &Path,
        mut known: Known,
        number: u64,
        border: Border,
    ) -> Result<Self, LogError> {
        let first = begin(folder)?.number;
        // Instruments that are in no checkpoint are found from the first segment on.
        let from = match known.number {
            0 => first.min(number),
            checkpoint => checkpoint + 1,
        };
        let mut segment = segment_of(folder, from.max(first))?;
        if number < segment.header.first {
            let (first, time) = (segment.header.first, segment.header.time);
            return Err(LogError::Gone {
                wanted: number,
                first,
                time,
            });
        }
        let is_unnamed = name_first(folder, &mut segment, &known)?;
        hop(&mut segment, from)?;
        let awaits_run = match &known.run {
            // The books of the checkpoint are not those of a segment that names no run.
            Some(run) => segment.header.run == 0 || run.number < segment.header.run,
            None => segment.header.run > 0,
        };
        let mut reader = Self {
            folder: folder.to_owned(),
            awaits_run,
            segment,
            // Those of another run do not begin with instruments of this one.
            records: match border {
                Border::Keep if !awaits_run => known.formers.restore(&mut known.directory),
                _ => Vec::new(),
            },
            at: 0,
            next: from,
            end: u64::MAX,
            border,
            time: 0,
            marks: Marks::default(),
            part: None,
            directory: known.directory,
            formers: known.formers,
            run: known.run,
            is_new_segment: false,
            is_restarted: false,
            is_unnamed,
            is_unsure: false,
            is_pruned: false,
            is_damaged: false,
            recalls: None,
            whole: 0,
            listed: None,
            unpacker: Unpacker::new().map_err(LogError::io(folder))?,
        };
        reader.skip_to(number)?;
        Ok(reader)
    }

    /// Reads up to the event before `number`, and keeps only instruments.
    fn skip_to(&mut self, number: u64) -> Result<(), LogError> {
        self.end = number;
        while self.read(usize::MAX, |_| {})? > 0 {}
        self.end = u64::MAX;
        // Later events exist, so those before are lost.
        if self.next < number && !self.is_at_end()? {
            self.next = number;
        }
        match self.next < number {
            true => Err(LogError::NotYet {
                wanted: number,
                next: self.next,
            }),
            false => Ok(()),
        }
    }

    /// Returns whether nothing more was written so far.
    fn is_at_end(&mut self) -> Result<bool, LogError> {
        let is_read = self.at >= self.records.len();
        Ok(is_read && !matches!(self.segment.look()?, Found::Block(_)))
    }

    /// Returns the number of the next event.
    #[must_use]
    pub const fn next_number(&self) -> u64 {
        self.next
    }

    /// Returns the latest time of arrival in a raw log, 0 in any other.
    pub(crate) const fn raw_time(&self) -> u64 {
        self.time
    }

    /// Returns the instruments known so far. Where a run has other feeds than the one before, or
    /// other numbers of their first instruments, those of the feeds concerned are known again once
    /// the run has named them.
    #[must_use]
    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Keeps instruments as they were at the last event, from now on.
    pub(crate) const fn keep_formers(&mut self) {
        self.formers.keep();
    }

    /// Returns the instruments as they were at the last event, if they are kept.
    pub(crate) const fn formers(&self) -> &Formers {
        &self.formers
    }

    /// Returns the instruments, if some were removed since the last call.
    pub(crate) fn pruned(&mut self) -> Option<&Directory> {
        mem::take(&mut self.is_pruned).then_some(&self.directory)
    }

    /// Returns once whether the border to the run is uncertain.
    pub(crate) const fn take_unsure(&mut self) -> bool {
        mem::replace(&mut self.is_unsure, false)
    }

    /// Returns the run of the plant that wrote the last record read; `None` before the first one.
    #[must_use]
    pub const fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Returns the ordinal of the segment being read.
    #[must_use]
    pub const fn segment(&self) -> u64 {
        self.segment.header.ordinal
    }

    /// Continues at the first number of the segment being read, if it is behind the next one: what
    /// is between them is lost. Returns whether it is.
    pub(crate) fn skip_lost(&mut self) -> bool {
        let is_lost = self.next < self.segment.header.first;
        self.next = self.next.max(self.segment.header.first);
        is_lost
    }

    /// Sets the number from which nothing is read: [`Self::read`] returns 0 there.
    pub const fn stop_before(&mut self, number: u64) {
        self.end = number;
    }

    /// Calls `each` with at most `limit` messages, and returns how many records were read. Does not
    /// wait: 0 is the end of what is written so far. A call ends where another segment begins.
    ///
    /// # Errors
    /// [`LogError::Gone`] if retention was faster; a file cannot be read.
    pub fn read(
        &mut self,
        limit: usize,
        each: impl FnMut(Delivery<'_>),
    ) -> Result<usize, LogError> {
        self.read_all(limit, |_| {}, each, |_| {})
    }

    /// Reads as [`Self::read`] does, and calls `instrument` with new or changed instruments, in the
    /// form of `Instrument::write`, before the events that follow them.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_with(
        &mut self,
        limit: usize,
        instrument: impl FnMut(&[u8]),
        each: impl FnMut(Delivery<'_>),
    ) -> Result<usize, LogError> {
        self.read_all(limit, instrument, each, |_| {})
    }

    /// Reads a raw log ([`Writer::raw`](crate::Writer::raw)) as [`Self::read`] does: calls `each`
    /// with each datagram and message.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_raw(
        &mut self,
        limit: usize,
        each: impl FnMut(RawDelivery<'_>),
    ) -> Result<usize, LogError> {
        // Both closures call it, one after the other.
        let each = RefCell::new(each);
        let call = |delivery: RawDelivery<'_>| (each.borrow_mut())(delivery);
        let market = |delivery: Delivery<'_>| match delivery {
            Delivery::Lost { first, last } => call(RawDelivery::Lost { first, last }),
            Delivery::Restart => call(RawDelivery::Restart),
            Delivery::Event(..) | Delivery::End(_) | Delivery::Watermark(_) => {}
        };
        self.read_all(limit, |_| {}, market, |raw| call(RawDelivery::Raw(raw)))
    }

    pub(crate) fn read_all(
        &mut self,
        limit: usize,
        mut instrument: impl FnMut(&[u8]),
        mut each: impl FnMut(Delivery<'_>),
        mut each_raw: impl FnMut(&Raw<'_>),
    ) -> Result<usize, LogError> {
        let mut count = 0;
        while count < limit {
            let rest = self.records.get(self.at..).unwrap_or(&[]);
            let mut records = Records(rest);
            let Some((kind, bytes)) = records.next() else {
                if !self.next_block()? {
                    count += usize::from(self.take_hole(&mut each)?);
                    break;
                }
                if mem::take(&mut self.is_new_segment) {
                    if mem::take(&mut self.is_restarted) {
                        each(Delivery::Restart);
                    }
                    return Ok(count + 1);
                }
                self.recall(&mut instrument)?;
                continue;
            };
            self.is_damaged |= kind == Some(Kind::Torn);
            if self.awaits_run && !matches!(kind, Some(Kind::Run | Kind::Torn)) {
                self.assume_run();
                return Ok(count + 1);
            }
            let len = rest.len() - records.0.len();
            let taken = match kind {
                Some(Kind::Events) => {
                    let place = (&mut self.next, self.end, &mut self.marks);
                    let is_part = self.part == Some(u64_at(bytes, 0));
                    take_events(bytes, is_part, place, &self.directory, &mut each)
                }
                Some(Kind::Part) => take_number(bytes, &mut self.part),
                Some(Kind::Watermark) => self.marks.read(bytes),
                Some(Kind::Lost) => self.take_lost(u64_at(bytes, 8), &mut each),
                Some(Kind::Instrument) if self.is_ahead() => false,
                Some(Kind::Instrument) => {
                    self.formers.replace(self.next, bytes, &mut self.directory);
                    instrument(bytes);
                    true
                }
                Some(Kind::Run) => {
                    let run = Run::read(bytes).map_err(LogError::run(&self.segment.path))?;
                    self.at += len;
                    count += 1;
                    if self.take_run(run) {
                        return Ok(count);
                    }
                    continue;
                }
                Some(Kind::Raw) => take_raw(
                    bytes,
                    (&mut self.next, self.end, &mut self.time),
                    (&mut each, &mut each_raw),
                ),
                Some(Kind::End | Kind::OthersLost | Kind::Former | Kind::Torn) | None => true,
            };
            if !taken {
                break;
            }
            self.at += len;
            count += 1;
        }
        Ok(count)
    }

    /// Returns whether the end of a moment is reached: what follows is not known at that moment. An
    /// instrument there belongs to the next event, and may have another name from it on.
    fn is_ahead(&self) -> bool {
        self.border == Border::Keep && self.next >= self.end
    }

    /// Takes lost events up to the last one, and those that are missing before them; returns false
    /// if some of them are at the end of what is read, or after it.
    fn take_lost(&mut self, last: u64, each: &mut impl FnMut(Delivery<'_>)) -> bool {
        let own = last.min(self.end.saturating_sub(1));
        lose_up_to(own.saturating_add(1), &mut self.next, each);
        own == last
    }

    /// Takes the missing events before the segment, and those before the end of what is read if
    /// later events exist.
    fn take_hole(&mut self, each: &mut impl FnMut(Delivery<'_>)) -> Result<bool, LogError> {
        if self.next >= self.end {
            return Ok(false);
        }
        // Opened before the look at this one, to which nothing is added from then on.
        let beyond = match self.border {
            Border::Keep => self.open_next()?.filter(|next| self.is_beyond(next)),
            Border::Cross => None,
        };
        let is_later = match self.segment.look()? {
            Found::Block(header) => header.first >= self.end && header.events > 0,
            Found::End | Found::Torn => beyond.is_some(),
        };
        let known = match is_later {
            true => self.end,
            false => self.segment.header.first.min(self.end),
        };
        let is_hole = self.next < known;
        lose_up_to(known, &mut self.next, each);
        Ok(is_hole)
    }

    /// Takes over the run of the following records. Returns whether it is another one, or was
    /// awaited.
    fn take_run(&mut self, run: Run) -> bool {
        let is_new = mem::take(&mut self.awaits_run) || self.run.as_ref() != Some(&run);
        if let Some(before) = self.run.as_ref().filter(|_| is_new) {
            self.formers.clear();
            self.is_pruned |= run.prune(before, &mut self.directory);
        }
        self.run = Some(run);
        is_new
    }

    /// Continues with the feeds of the run before, because the record of the segment's run cannot
    /// be read. As a run of its own, it has none of the books before it.
    fn assume_run(&mut self) {
        let before = self.run.take().unwrap_or_default();
        let SegmentHeader { run, time, .. } = self.segment.header;
        self.run = Some(Run {
            number: before.number.max(run),
            start: time,
            ..before
        });
        self.awaits_run = false;
    }

    /// Takes over the run of the segment from its first block, of which no event is read.
    fn take_run_ahead(&mut self, header: &BlockHeader) -> Result<(), LogError> {
        if !self.awaits_run {
            return Ok(());
        }
        let block = self.segment.block(header);
        let is_read = self.unpacker.records(header, block, &mut self.records);
        let run = Run::leading(&self.records).filter(|_| is_read);
        let run = run.map(Run::read).transpose();
        self.records.clear();
        match run.map_err(LogError::run(&self.segment.path))? {
            Some(run) => {
                self.take_run(run);
            }
            None => self.assume_run(),
        }
        Ok(())
    }

    /// Takes the next whole block; returns false at the end of what is written so far.
    fn next_block(&mut self) -> Result<bool, LogError> {
        loop {
            if self.is_beyond(&self.segment) {
                return Ok(false);
            }
            match self.segment.look()? {
                Found::Block(header) if header.first >= self.end && header.events > 0 => {
                    // It is taken when reading continues from there.
                    self.take_run_ahead(&header)?;
                    return Ok(false);
                }
                Found::Block(header) => {
                    let is_damaged = mem::take(&mut self.is_damaged);
                    self.take_block(&header);
                    let is_behind = self.is_behind_hole(header.first) || is_damaged;
                    self.recalls = is_behind.then_some(header.first);
                    return Ok(true);
                }
                Found::Torn if self.segment.resync()? => self.is_damaged = true,
                found @ (Found::End | Found::Torn) => {
                    if !self.next_segment()? {
                        return Ok(false);
                    }
                    if self.is_new_segment {
                        // A run writes each instrument in front of its first event.
                        let is_damaged = self.is_damaged || found == Found::Torn;
                        self.is_damaged = is_damaged && !self.is_restarted;
                        self.records.clear();
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn take_block(&mut self, header: &BlockHeader) {
        let Self {
            segment,
            records,
            unpacker,
            is_damaged,
            ..
        } = self;
        self.at = 0;
        if !unpacker.records(header, segment.block(header), records) {
            // The next number shows what is missing.
            records.clear();
            *is_damaged = true;
        }
        segment.pass(header);
    }

    /// Returns whether numbers are missing in front of the current block that the log has not lost
    /// itself. Repairs of versions up to 0.2.0 leave no other trace of damage.
    fn is_behind_hole(&mut self, first: u64) -> bool {
        let next = self.next.max(self.whole);
        let is_lost = |bytes: &[u8]| u64_at(bytes, 0) <= next;
        let begin = Records(&self.records).next();
        let is_told = matches!(begin, Some((Some(Kind::Lost), bytes)) if is_lost(bytes));
        self.whole = first.max(self.whole);
        first > next && !is_told
    }

    /// Adds the instruments that were passed over in front of the current block from the next
    /// checkpoint of the run, and calls `each` with them. A checkpoint right in front of the block
    /// has the names of all of them.
    fn recall(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), LogError> {
        let Some(first) = self.recalls.take() else {
            return Ok(());
        };
        let views = folder::list(&self.folder)?.views.into_iter();
        let mut behind = views.filter(|view| view.saturating_add(1) >= first);
        let known = behind.find_map(|view| Known::read(&self.folder, view).ok().flatten());
        let run = known.as_ref().and_then(|known| known.run.as_ref());
        if run.is_none_or(|run| run.number != self.segment.header.run) {
            return Ok(());
        }
        let is_here = known
            .as_ref()
            .is_some_and(|known| known.number.saturating_add(1) == first);
        for (number, bytes) in known.iter().flat_map(|known| known.directory.iter()) {
            if is_here || self.directory.instrument(number).is_none() {
                self.directory.take(bytes);
                each(bytes);
            }
        }
        Ok(())
    }

    /// Continues with the next segment, if there is one, and nothing was added to this one before
    /// it.
    fn next_segment(&mut self) -> Result<bool, LogError> {
        let Some(mut next) = self.open_next()?.filter(|next| !self.is_beyond(next)) else {
            return Ok(false);
        };
        if !matches!(self.segment.look()?, Found::Block(_)) {
            let own = self.segment.header.run;
            // A run that neither its segment nor those around it name counts as another one.
            let is_other = match next.header.run {
                0 => own == 0 || !is_within(&self.folder, next.header.ordinal, own)?,
                run => run != own,
            };
            let is_unnamed = is_other && next.header.run == 0;
            if !is_other {
                next.header.run = own;
            }
            self.is_unsure |= is_other && (self.is_unnamed || is_unnamed);
            self.is_unnamed = is_unnamed;
            self.is_damaged |= next.header.ordinal > self.segment() + 1;
            self.is_new_segment = true;
            self.is_restarted |= is_other;
            self.awaits_run |= is_other;
            if is_other {
                self.whole = next.header.first;
            }
            self.segment = next;
            self.listed = None;
        }
        Ok(true)
    }

    /// Opens the next segment; `None` if this is the last one so far.
    fn open_next(&mut self) -> Result<Option<Segment>, LogError> {
        match Segment::open(&self.folder, self.segment() + 1) {
            // A damaged one may be searched to its end: only when the folder has changed.
            Err(error) if error.is_lost() => self.open_later(),
            next => next.map(Some),
        }
    }

    /// Opens the first segment behind this one of which something can be read, if there is any.
    fn open_later(&mut self) -> Result<Option<Segment>, LogError> {
        let changed = fs::metadata(&self.folder).and_then(|metadata| metadata.modified());
        let changed = changed.map_err(LogError::io(&self.folder))?;
        // Changes that follow each other at once have the same time: retention is noticed anyway.
        if self.listed == Some(changed) && self.segment.path.exists() {
            return Ok(None);
        }
        let (own, segments) = (self.segment(), folder::list(&self.folder)?.segments);
        let behind = segments.range(own + 1..).map(|(ordinal, _)| *ordinal);
        let later = readable(&self.folder, behind).next().transpose()?;
        let Some(later) = later else {
            self.listed = Some(changed);
            return Ok(None);
        };
        // If this one is missing too, retention was faster.
        match later.header.ordinal == own + 1 || segments.contains_key(&own) {
            true => Ok(Some(later)),
            false => Err(LogError::Gone {
                wanted: self.next,
                first: later.header.first,
                time: later.header.time,
            }),
        }
    }

    /// Returns whether a segment is not to be entered.
    fn is_beyond(&self, segment: &Segment) -> bool {
        self.border == Border::Keep && segment.header.first >= self.end
    }
}

/// Reports all numbers from the next one on, below this one, as missing.
#[inline]
fn lose_up_to(number: u64, next: &mut u64, each: &mut impl FnMut(Delivery<'_>)) {
    if number > *next {
        each(Delivery::Lost {
            first: *next,
            last: number - 1,
        });
        *next = number;
    }
}

/// Takes the number of a record about the next events. Returns true, as it is at no end.
fn take_number(bytes: &[u8], number: &mut Option<u64>) -> bool {
    *number = Some(u64_at(bytes, 0));
    true
}

/// Takes the events of a record; returns false if the first of them is at `end` or after it. Those
/// of a part do not end their message.
#[inline]
fn take_events(
    bytes: &[u8],
    is_part: bool,
    (next, end, marks): (&mut u64, u64, &mut Marks),
    directory: &Directory,
    each: &mut impl FnMut(Delivery<'_>),
) -> bool {
    let events = bytes.as_chunks::<{ Event::SIZE }>().0;
    let mut any = false;
    for event in events {
        let number = u64_at(event, 0);
        if number < *next {
            // What precedes it does not precede the next one.
            *marks = Marks::default();
            continue;
        }
        lose_up_to(number.min(end), next, each);
        if number >= end {
            return false;
        }
        *next = number.saturating_add(1);
        if !marks.is_empty() {
            for mark in marks.take() {
                each(Delivery::Watermark(mark));
            }
        }
        // An event of a later version, or damaged before it was written.
        match Event::from_bytes(event) {
            Some(event) => each(Delivery::Event(&event, directory)),
            None => each(Delivery::Lost {
                first: number,
                last: number,
            }),
        }
        any = true;
    }
    if any && !is_part {
        each(Delivery::End(directory));
    }
    true
}

/// Takes a datagram or a message; returns false if it is at `end` or after it.
fn take_raw(
    bytes: &[u8],
    (next, end, time): (&mut u64, u64, &mut u64),
    (each, each_raw): (&mut impl FnMut(Delivery<'_>), &mut impl FnMut(&Raw<'_>)),
) -> bool {
    let Some(raw) = Raw::read(bytes).filter(|raw| raw.number >= *next) else {
        return true;
    };
    lose_up_to(raw.number.min(end), next, each);
    if raw.number >= end {
        return false;
    }
    *next = raw.number.saturating_add(1);
    *time = raw.received.max(*time);
    each_raw(&raw);
    true
}

/// Names the run of the first segment of a reader, if its header does not; returns whether that run
/// is only assumed.
fn name_first(folder: &Path, segment: &mut Segment, known: &Known) -> Result<bool, LogError> {
    if segment.header.run > 0 {
        return Ok(false);
    }
    // The first run of a log is 1.
    let run = known.run.as_ref().map_or(1, |run| run.number);
    let is_begun = known.run.is_some() && segment.header.first <= known.number;
    let is_within = is_within(folder, segment.header.ordinal, run)?;
    if is_begun || is_within {
        segment.header.run = run;
    }
    Ok(!is_within)
}
