//! Looking into a journal without opening it: list, verify, export. Works on a journal in use.

use super::Durability;
use super::damage::{Damage, Defect};
use super::error::OpenError;
use super::folder::segment_files;
use super::layout::{ENTRY_LEN, EntryKind, HEADER_LEN};
use super::segment::{Segment, hide_taken_back};
use fanfare_fix::codec::mask_secrets;
use fanfare_wire::UtcTimestamp;
use fanfare_wire::text::Escaped;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A copy of a journal's files as they were at one moment.
pub struct Snapshot {
    segments: VecDeque<Box<Segment>>,
    /// Files that cannot be read at all.
    unreadable: Vec<(PathBuf, OpenError)>,
}

/// One segment file in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// The file.
    pub path: PathBuf,
    /// The session that it belongs to.
    pub identity: String,
    /// When its numbers last started at 1.
    pub created: UtcTimestamp,
    /// Entries in its table.
    pub records: u32,
    /// Bytes of messages.
    pub bytes: u32,
    /// Entries that were not whole, or are damaged.
    pub bad: u32,
    /// Number of the next message behind this segment.
    pub next_sender: u64,
    /// Number expected next from the counterparty when this segment was last in use.
    pub next_target: Option<u64>,
    /// The durability with which it was last written, if the file tells.
    pub durability: Option<Durability>,
}

/// One record of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The file it stands in, counted from 0 in this snapshot.
    pub segment: usize,
    /// Its place in that file, from 0.
    pub index: u32,
    /// MsgSeqNum(34); of copies and skips the last number used before.
    pub seq: u64,
    /// What it is.
    pub kind: EntryKind,
    /// The message; empty for a skip.
    pub bytes: &'a [u8],
    /// Whether it counts: not taken back by a later lower number.
    pub visible: bool,
}

/// What [`Snapshot::records`] finds in one place of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// A record in order.
    Good(Record<'a>),
    /// Something that is not in order: torn by a kill if it is the last one, damaged otherwise.
    Bad {
        /// The file it stands in, counted from 0 in this snapshot.
        segment: usize,
        /// Its place in that file, from 0.
        index: u32,
    },
}

impl Snapshot {
    /// Copies the journal in `folder` into memory. It may be in use meanwhile.
    ///
    /// # Errors
    /// The folder cannot be read. A file that cannot be understood is no error here, see
    /// [`unreadable`](Self::unreadable).
    pub fn take(folder: &Path) -> Result<Self, OpenError> {
        Self::take_watched(folder, || {})
    }

    /// The same; `watch` is called for each file that has been read.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn take_watched(folder: &Path, mut watch: impl FnMut()) -> Result<Self, OpenError> {
        let (mut segments, mut unreadable) = (VecDeque::new(), Vec::new());
        let files = segment_files(folder)?;
        let is_alone = files.len() == 1;
        for (_, path) in files {
            match Segment::open(&path, false) {
                Ok(Ok(mut segment)) => {
                    segment.scan();
                    segments.push_back(Box::new(segment));
                }
                // One without a header was made in advance, if there is one in front of it.
                Ok(Err(bad)) if is_alone || !matches!(Segment::is_blank(&path), Ok(true)) => {
                    unreadable.push((path.clone(), OpenError::of_header(&path, bad)));
                }
                Ok(Err(_)) => {}
                Err(error) => unreadable.push((path, error)),
            }
            watch();
        }
        hide_taken_back(&mut segments);
        Ok(Self {
            segments,
            unreadable,
        })
    }

    /// Files that cannot be understood at all, and why.
    pub fn unreadable(&self) -> impl ExactSizeIterator<Item = &OpenError> {
        self.unreadable.iter().map(|(_, why)| why)
    }

    /// The figures of each segment, oldest first.
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

    /// Everything in the tables, oldest first, the good and the bad.
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

    /// The number behind all records that the newest file has, or had according to its table.
    pub(super) fn claimed_next(&self) -> u64 {
        self.segments.back().map_or(1, |last| last.claimed_next())
    }

    /// The number of files that lost a part of their table.
    pub(super) fn cut_tables(&self) -> usize {
        let cut = self
            .segments
            .iter()
            .filter(|segment| segment.has_cut_table());
        cut.count()
    }

    /// The size with which the largest file was made.
    pub(super) fn largest(&self) -> u64 {
        let sizes = self
            .segments
            .iter()
            .map(|segment| segment.header.file_len());
        sizes.max().unwrap_or(0)
    }

    /// Everything that is not in order, oldest file first: records by their CRC, files by their
    /// place in the order. The last record of a journal in use may be caught half-written: look
    /// again.
    #[must_use]
    pub fn damages(&self) -> Vec<Damage> {
        let mut damages: Vec<Damage> = Vec::new();
        for (path, why) in &self.unreadable {
            damages.push(Damage::of_file(path, Defect::Unreadable(why.to_string())));
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

/// Whether a file follows the one before it.
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

/// What is not in order inside of one file; `next` is the file behind it.
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
    let is_tail = next.is_none() && bad.len() as u32 == used - segment.count;
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
    if let Some(records) = counted.checked_sub(used).filter(|&missing| missing > 0) {
        damages.push(at(used, Defect::Missing { records }));
    }
}

impl EntryKind {
    /// A short name: `app`, `admin`, `copy`, `skip`.
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
    /// The message with its secrets masked. A Logon is stored without them, but not by earlier
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
