//! Inspection of a journal without opening it: list, verify, export. Also works on a journal in
//! use.

use super::Durability;
use super::damage::{Damage, Defect};
use super::error::OpenError;
use super::folder::segment_files;
use super::layout::{ENTRY_LEN, EntryKind, HEADER_LEN, Header};
use super::segment::{Segment, dropped_before, hide_taken_back};
use fanfare_fix::codec::mask_secrets;
use fanfare_fix::session::OurReset;
use fanfare_wire::UtcTimestamp;
use fanfare_wire::text::Escaped;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A copy of a journal's files as they were at one moment.
pub struct Snapshot {
    segments: VecDeque<Box<Segment>>,
    /// Files that cannot be read at all, with their numbers and the reasons.
    unreadable: Vec<(u64, PathBuf, OpenError)>,
}

/// The figures of one segment file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The file.
    pub path: PathBuf,
    /// The session that it belongs to.
    pub identity: String,
    /// The time at which its numbers last started at 1.
    pub created: UtcTimestamp,
    /// The number of entries in its table.
    pub records: u32,
    /// The number of bytes of messages.
    pub bytes: u32,
    /// The number of entries that are incomplete or damaged.
    pub bad: u32,
    /// MsgSeqNum(34) of the next message after this segment.
    pub next_sender: u64,
    /// MsgSeqNum(34) expected next from the counterparty when this segment was last in use.
    pub next_target: Option<u64>,
    /// The durability with which it was last written, if the file has it.
    pub durability: Option<Durability>,
}

/// One record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The index of its file in this snapshot, from 0.
    pub segment: usize,
    /// The index of the record in that file, from 0.
    pub index: u32,
    /// MsgSeqNum(34); for copies and skips, the last number used before.
    pub seq: u64,
    /// The kind of the record.
    pub kind: EntryKind,
    /// The message; empty for a skip.
    pub bytes: &'a [u8],
    /// Whether the record counts, that is, no later lower number took it back.
    pub visible: bool,
}

/// An entry that [`Snapshot::records`] finds in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// An intact record.
    Good(Record<'a>),
    /// An entry that is not intact: torn by a kill if it is the last one, damaged otherwise.
    Bad {
        /// The index of its file in this snapshot, from 0.
        segment: usize,
        /// The index of the entry in that file, from 0.
        index: u32,
    },
}

impl Snapshot {
    /// Copies the journal in `folder` into memory. The journal may be in use.
    ///
    /// # Errors
    /// The folder cannot be read. An unreadable file is no error here, see
    /// [`damages`](Self::damages).
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        Self::take_watched(folder, || {})
    }

    /// Copies the journal as [`take`](Self::take) does, and calls `watch` after each file.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub fn take_watched(folder: &Path, mut watch: impl FnMut()) -> Result<Self, OpenError> {
        let (mut segments, mut unreadable) = (VecDeque::new(), Vec::new());
        let files = segment_files(folder)?;
        let is_alone = files.len() == 1;
        for (number, path) in files {
            match Segment::open(&path, false) {
                Ok(Ok(mut segment)) => {
                    segment.scan();
                    segments.push_back(Box::new(segment));
                }
                // A file without a header was made in advance, if another file precedes it.
                Ok(Err(bad)) if is_alone || !matches!(Segment::is_blank(&path), Ok(true)) => {
                    let why = OpenError::of_header(&path, bad);
                    unreadable.push((number, path, why));
                }
                Ok(Err(_)) => {}
                Err(error) => unreadable.push((number, path, error)),
            }
            watch();
        }
        hide_taken_back(&mut segments);
        Ok(Self {
            segments,
            unreadable,
        })
    }

    /// Returns the figures of each segment, oldest first.
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo> + '_ {
        self.segments.iter().map(|segment| {
            let used = segment.used();
            let bad = (0..used).filter(|&index| !segment.judge(index).1).count();
            let good = (0..used).rev().map(|index| segment.judge(index));
            let last = good
                .filter_map(|(entry, good)| entry.filter(|_| good))
                .next();
            SegmentInfo {
                path: segment.path.clone(),
                identity: segment.header.identity.clone(),
                created: segment.header.created,
                records: used,
                bytes: last.map_or(0, |entry| entry.offset + entry.len),
                bad: bad as u32,
                next_sender: last.map_or(segment.header.first_sender, |entry| entry.seq + 1),
                next_target: segment.target(),
                durability: segment.durability(),
            }
        })
    }

    /// Returns all entries of the tables, oldest first, intact or not.
    pub fn records(&self) -> impl Iterator<Item = Found<'_>> + '_ {
        self.segments
            .iter()
            .enumerate()
            .flat_map(|(number, segment)| {
                (0..segment.used()).map(move |index| match segment.judge(index) {
                    (Some(entry), true) => Found::Good(Record {
                        segment: number,
                        index,
                        seq: entry.seq,
                        kind: entry.kind,
                        bytes: segment.data(entry.range()).unwrap_or(&[]),
                        visible: entry.seq < segment.visible_below,
                    }),
                    _ => Found::Bad {
                        segment: number,
                        index,
                    },
                })
            })
    }

    /// Returns the number after all records that the newest file has, or had according to its
    /// table.
    pub(super) fn claimed_next(&self) -> u64 {
        self.segments.back().map_or(1, |last| last.claimed_next())
    }

    /// Returns where a reset stands that the session asks for.
    pub(super) fn our_reset(&self) -> OurReset {
        let newest = self.segments.back();
        newest.map_or(OurReset::None, |newest| newest.our_reset())
    }

    /// Returns, for each file, the number from which on its records may have been taken back by a
    /// file that is missing behind it.
    pub(super) fn uncertain_from(&self) -> Vec<u64> {
        let mut lowest = u64::MAX;
        let mut after: Option<&Header> = None;
        let newest = self.segments.back();
        let mut is_missing = newest.is_some_and(|last| last.is_continued() == Some(true));
        let newest_first = self.segments.iter().rev().map(|segment| {
            let header = &segment.header;
            if let Some(after) = after.replace(header) {
                lowest = lowest.min(least_begun(header, after));
                is_missing |= after.number > header.number + 1;
            }
            let noted = segment.taken_back_from().filter(|_| is_missing);
            noted.map_or(lowest, |noted| lowest.min(noted))
        });
        let mut from: Vec<u64> = newest_first.collect();
        from.reverse();
        from
    }

    /// Returns the number of the last application message that may have been in dropped files, or
    /// in oldest ones that are missing; 0 for none.
    pub(super) fn dropped(&self) -> u64 {
        dropped_before(self.segments.iter().map(Box::as_ref))
    }

    /// Returns the numbers of the oldest files that are missing.
    fn missing_in_front(&self) -> Range<u64> {
        let first = self.segments.front().map_or(0, |first| first.header.number);
        let newest = self.segments.back();
        let demanded = newest.and_then(|newest| newest.demanded());
        demanded.map_or(first, |demanded| demanded.min(first))..first
    }

    /// Returns the number of files that are missing or unreadable, or have lost a part of their
    /// table.
    pub(super) fn lost_files(&self) -> usize {
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        let pairs = pairs.filter(|(one, next)| one.header.identity == next.header.identity);
        let between = pairs.map(|(one, next)| one.header.number + 1..next.header.number);
        let newest = self.segments.back();
        let newest = newest.filter(|newest| newest.is_continued() == Some(true));
        let behind = newest.map(|newest| newest.header.number + 1..newest.header.number + 2);
        let in_front = std::iter::once(self.missing_in_front());
        let missing = in_front.chain(between).chain(behind).map(|numbers| {
            let unreadable = self.unreadable.iter();
            let unreadable = unreadable.filter(|(number, ..)| numbers.contains(number));
            let unreadable = unreadable.count() as u64;
            let all = numbers.end.saturating_sub(numbers.start);
            all.saturating_sub(unreadable)
        });
        let missing = usize::try_from(missing.fold(0, u64::saturating_add)).unwrap_or(usize::MAX);
        let cut = self
            .segments
            .iter()
            .filter(|segment| segment.has_cut_table());
        missing.saturating_add(self.unreadable.len() + cut.count())
    }

    /// Returns the size with which the largest file was made.
    pub(super) fn largest(&self) -> u64 {
        let sizes = self
            .segments
            .iter()
            .map(|segment| segment.header.file_len());
        sizes.max().unwrap_or(0)
    }

    /// Returns all damage, oldest file first: records are checked by their CRC, files by their
    /// order. The last record of a journal in use may be incomplete at the moment of the snapshot,
    /// and intact in the next one.
    #[must_use]
    pub fn damages(&self) -> Vec<Damage> {
        let mut damages: Vec<Damage> = Vec::new();
        for (_, path, why) in &self.unreadable {
            damages.push(Damage::of_file(path, Defect::Unreadable(why.to_string())));
        }
        let in_front = self.missing_in_front();
        let is_unreadable = self.unreadable.iter().any(|(n, ..)| in_front.contains(n));
        if let Some(first) = self.segments.front()
            && !in_front.is_empty()
            && !is_unreadable
        {
            let defect = Defect::FileMissing(in_front.start);
            damages.push(Damage::of_file(&first.path, defect));
        }
        let mut before: Option<&Segment> = None;
        for (place, segment) in self.segments.iter().enumerate() {
            if let Some(before) = before {
                damages.extend(out_of_order(before, segment));
            }
            before = Some(segment);
            let next = self.segments.get(place + 1).map(Box::as_ref);
            damage_of(segment, next, &mut damages);
        }
        if let Some(last) = before.filter(|last| last.is_continued() == Some(true)) {
            let defect = Defect::NextMissing(last.header.number + 1);
            damages.push(Damage::of_file(&last.path, defect));
        }
        damages
    }
}

/// Returns the lowest number with which a file that is missing between these two may have begun. A
/// single one began as many numbers before its end as it had entries, and each further one as many
/// before that as a file of its size has. It began earlier if a number was raised in it, which only
/// [`Segment::taken_back_from`] of earlier files shows.
fn least_begun(before: &Header, after: &Header) -> u64 {
    match after.number.saturating_sub(before.number) {
        0 | 1 => u64::MAX,
        apart => {
            let others = (apart - 2).saturating_mul(before.entries.max(after.entries).into());
            let entries = others.saturating_add(after.previous_count.into());
            after.first_sender.saturating_sub(entries)
        }
    }
}

/// Returns the damage if a file does not follow the one before it.
fn out_of_order(before: &Segment, segment: &Segment) -> Option<Damage> {
    let (last, header) = (&before.header, &segment.header);
    let defect = if header.identity != last.identity {
        Defect::OtherSession(header.identity.clone())
    } else if header.number != last.number + 1 {
        Defect::FileMissing(last.number + 1)
    } else {
        return None;
    };
    Some(Damage::of_file(&segment.path, defect))
}

/// Adds the damage inside one file; `next` is the file after it.
fn damage_of(segment: &Segment, next: Option<&Segment>, damages: &mut Vec<Damage>) {
    let used = segment.used();
    let at = |index: u32, defect| Damage {
        path: segment.path.clone(),
        offset: (HEADER_LEN + index as usize * ENTRY_LEN) as u64,
        record: Some(index),
        seq: segment.judge(index).0.map(|entry| entry.seq),
        bytes: segment.judge(index).0.map_or(0, |entry| entry.len),
        defect,
    };
    if segment.target().is_none() {
        damages.push(Damage::of_file(&segment.path, Defect::NextTarget));
    }
    if let Some(len) = segment.cut_to() {
        let bytes = segment.header.file_len() - len;
        damages.push(Damage::of_file(&segment.path, Defect::CutShort { bytes }));
    }
    let bad: Vec<u32> = (segment.count..used)
        .filter(|&index| !segment.judge(index).1)
        .collect();
    // What was on the disk may be transmitted: its number is not used again.
    let synced = segment.synced_and_lost();
    let is_tail = next.is_none() && synced == 0 && bad.len() as u32 == used - segment.count;
    match bad.first() {
        Some(&first) if is_tail => {
            let records = used - segment.count;
            damages.push(at(first, Defect::Tail { records }));
        }
        _ => damages.extend(bad.iter().map(|&index| at(index, Defect::Crc))),
    }
    let counted = next
        .filter(|next| next.header.number == segment.header.number + 1)
        .map_or(0, |next| next.header.previous_count);
    let counted = counted.max(segment.count + synced);
    if let Some(records) = counted.checked_sub(used).filter(|&missing| missing > 0) {
        damages.push(at(used, Defect::Missing { records }));
    }
}

impl EntryKind {
    /// Returns a short name: `app`, `admin`, `copy`, `skip`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Admin | Self::AdminHeld => "admin",
            Self::Copy => "copy",
            Self::Skip => "skip",
        }
    }
}

impl Record<'_> {
    /// Returns the message with its secrets masked. A Logon is stored masked, but not by earlier
    /// versions; an application message is stored as it was sent.
    #[must_use]
    pub fn shown(&self) -> Vec<u8> {
        let mut message = self.bytes.to_vec();
        mask_secrets(&mut message);
        message
    }

    /// Writes the message on one line, with `|` for SOH, unsafe characters [`Escaped`], and its
    /// secrets masked.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", Escaped::fields(&self.shown()))
    }

    /// Writes one JSON object on one line: `seq`, `kind`, `message`. A byte is the character of
    /// that number (Latin-1), so that nothing is lost.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let (seq, kind) = (self.seq, self.kind.name());
        write!(out, "{{\"seq\":{seq},\"kind\":\"{kind}\",\"message\":\"")?;
        for &byte in &self.shown() {
            match byte {
                b'"' | b'\\' => out.write_all(&[b'\\', byte])?,
                0x20..0x7f => out.write_all(&[byte])?,
                _ => write!(out, "\\u{byte:04x}")?,
            }
        }
        out.write_all(b"\"}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_began_as_many_numbers_before_its_end_as_it_has_entries() {
        let header = |number, first_sender, entries| Header {
            number,
            first_sender,
            entries,
            previous_count: 11,
            ..Header::default()
        };
        let before = header(3, 1, 100);
        for (number, begun) in [(4, u64::MAX), (5, 989), (6, 889), (7, 789), (20, 0)] {
            let after = header(number, 1_000, 50);
            assert_eq!(least_begun(&before, &after), begun, "{number}");
        }
    }
}
