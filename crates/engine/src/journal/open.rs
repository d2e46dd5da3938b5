//! Opening of a journal, and repair of what a kill left behind.

use super::damage::{Loss, Lost};
use super::error::OpenError;
use super::folder::{lock, parents_of_missing, segment_files, segment_path, sync_folder};
use super::layout::{BadHeader, Header};
use super::prepare::{Helper, Recipe};
use super::repair::{Outcome, RepairError, repair, set_aside};
use super::segment::{Blank, Inherited, Segment, dropped_before, hide_taken_back};
use super::transmit::Transmit;
use super::{Durability, Journal, Options, division, layout};
use crate::sys::cut;
use fanfare_fix::session::SideBuffer;
use fanfare_wire::UtcTimestamp;
use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};

/// Most places for full segments allocated at the opening.
const MOST_PLACES: u32 = 1024;

/// The findings of the opening of a journal. [`Display`](fmt::Display) writes what a user should
/// know, which mostly is [nothing](Self::is_unremarkable).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovery {
    /// The number of records: messages of all kinds and skips.
    pub records: u64,
    /// The number of incomplete records at the end that have been cut off: at most the one that a
    /// kill of the process left half-written; with [`Durability::Every`] also those that a crash of
    /// the machine kept from the disk, none of which was transmitted.
    pub cut: u64,
    /// The number of bytes after the last record that were missing at the end of a file, whose
    /// length is restored.
    pub stretched: u64,
    /// The records lost, if that was accepted.
    pub loss: Option<Loss>,
    /// The folder of the damaged journal now.
    pub backup: Option<PathBuf>,
    /// Whether other users had rights on the folder or a file in it, which were removed.
    pub closed: bool,
    /// MsgSeqNum(34) of the next message.
    pub next_sender: u64,
}

impl Recovery {
    /// Returns whether nothing has to be reported.
    #[must_use]
    pub const fn is_unremarkable(&self) -> bool {
        let Self {
            cut,
            stretched,
            loss,
            backup,
            closed,
            ..
        } = self;
        *cut == 0 && *stretched == 0 && loss.is_none() && backup.is_none() && !*closed
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        match self.cut {
            0 => {}
            1 => parts.push("1 record that was being written was cut off".to_owned()),
            n => parts.push(format!(
                "{n} records that were never transmitted were cut off"
            )),
        }
        if self.stretched > 0 {
            parts.push(format!(
                "{} bytes behind the last record had been cut off, nothing is lost",
                self.stretched
            ));
        }
        if let Some(loss) = &self.loss {
            parts.push(format!("{loss}; the loss was accepted"));
        }
        if let Some(backup) = &self.backup {
            parts.push(format!("the damaged journal is now {}", backup.display()));
        }
        if self.cut > 0 || self.loss.is_some() || self.backup.is_some() {
            parts.push(format!("the next MsgSeqNum is {}", self.next_sender));
        }
        if self.closed {
            parts.push(
                "its files were accessible to other users; the permissions are corrected"
                    .to_owned(),
            );
        }
        f.write_str(&parts.join("; "))
    }
}

impl Journal {
    /// Opens the journal in `folder` for the session named `identity`, or makes it. Cuts off what a
    /// kill left half-written. `now` becomes the time of creation of a new journal.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing is changed then, except that files never in use and the rights of
    /// other users are removed. [`Options::accept_loss`] rules out [`OpenError::Lost`].
    pub fn open(
        folder: &Path,
        identity: &str,
        options: Options,
        now: UtcTimestamp,
    ) -> Result<(Self, Recovery), OpenError> {
        options.check()?;
        if identity.len() > layout::MAX_IDENTITY {
            return Err(OpenError::Options(
                "the identity of the session is too long",
            ));
        }
        match Self::open_whole(folder, identity, options, now) {
            Err(OpenError::Lost(loss)) if options.accept_loss => {
                let backup = save(folder)?;
                let (journal, mut recovery) = Self::open_whole(folder, identity, options, now)?;
                recovery.loss = Some(loss);
                recovery.backup = backup;
                Ok((journal, recovery))
            }
            opened => opened,
        }
    }

    fn open_whole(
        folder: &Path,
        identity: &str,
        options: Options,
        now: UtcTimestamp,
    ) -> Result<(Self, Recovery), OpenError> {
        let recipe = Recipe {
            folder: folder.to_owned(),
            identity: identity.to_owned(),
            make: Blank::create,
        };
        let parents = parents_of_missing(folder);
        let (lock, closed) = lock(folder)?;
        let mut recovery = Recovery {
            closed,
            ..Recovery::default()
        };
        let mut segments = load(folder, identity)?;
        check_all(&mut segments, &mut recovery)?;
        forget_before_reset(&mut segments)?;
        hide_taken_back(&mut segments);
        let mut current = match segments.pop_back() {
            Some(mut current) => {
                current.resume(options.starts_full())?;
                current
            }
            None => first_segment(&recipe, &options, now, &parents)?,
        };
        note_front(&segments, &mut current);
        current.set_durability(options.durability);
        let next_target = current.target().ok_or_else(|| lost_target(&current))?;
        for full in &mut segments {
            full.seal();
            full.release();
        }
        recovery.next_sender = current.next_sender;
        // Beyond that the queue grows gradually.
        segments.reserve(options.max_segments.min(MOST_PLACES) as usize);
        let mut journal = Self {
            folder: folder.to_owned(),
            _lock: lock,
            helper: Helper::new(recipe.clone()),
            recipe,
            ask_at: (0, 0),
            stalls: 0,
            options,
            aside: Vec::new(),
            is_aside: false,
            sealed: segments,
            current,
            next_target,
            transmit: Transmit::new(),
            side: SideBuffer::new(),
            retain_from: None,
            unsynced: 0,
            dirty: true,
            disk_full: false,
            failed: None,
            faults: cut::faults(),
        };
        journal.ask_at = journal.when_to_ask();
        if options.starts_full() {
            journal.ask_for_next();
        }
        Ok((journal, recovery))
    }
}

/// Notes in the newest segment what is known of those in front of the oldest one; `full` are the
/// segments before it.
fn note_front(full: &VecDeque<Box<Segment>>, newest: &mut Segment) {
    let number = full.front().map_or(&*newest, Box::as_ref).header.number;
    let dropped = dropped_before(full.iter().map(Box::as_ref).chain([&*newest]));
    newest.set_oldest(number);
    newest.set_dropped(dropped);
}

fn lost_target(segment: &Segment) -> OpenError {
    OpenError::Lost(Loss {
        path: segment.path.clone(),
        record: 0,
        from: segment.next_sender,
        lost: Lost::Records(0),
        what: "no longer holds the number expected next".to_owned(),
    })
}

/// Saves the intact records of a damaged journal. Returns the folder of the damaged one.
fn save(folder: &Path) -> Result<Option<PathBuf>, OpenError> {
    match repair(folder, false) {
        Ok(Outcome::Rebuilt { backup, .. }) => Ok(backup),
        Ok(Outcome::Sound | Outcome::Cut { .. }) => Ok(None),
        Err(RepairError::Nothing(_)) => set_aside(folder).map(Some),
        Err(RepairError::Open(error)) => Err(error),
        Err(error) => Err(OpenError::Beyond {
            path: folder.to_owned(),
            why: error.to_string(),
        }),
    }
}

/// Maps all segments; removes the one that was prepared and never used.
#[allow(clippy::vec_box, reason = "see Journal")]
fn load(folder: &Path, identity: &str) -> Result<VecDeque<Box<Segment>>, OpenError> {
    let files = segment_files(folder)?;
    let mut segments: VecDeque<Box<Segment>> = VecDeque::with_capacity(files.len() + 1);
    let mut unreadable: Vec<(&Path, BadHeader)> = Vec::new();
    for (number, path) in &files {
        let segment = match Segment::open(path, true)? {
            Ok(segment) => segment,
            Err(bad) => {
                unreadable.push((path, bad));
                continue;
            }
        };
        if let Some((path, bad)) = unreadable.first() {
            return Err(lost_file(path, *bad, segments.back_mut()));
        }
        let header = &segment.header;
        if header.identity != identity {
            let (found, wanted) = (header.identity.clone(), identity.to_owned());
            return Err(OpenError::OtherSession {
                path: path.clone(),
                found,
                wanted,
            });
        }
        let follows = segments
            .back()
            .is_none_or(|last| last.header.number + 1 == *number);
        if header.number != *number || !follows {
            let missing = segment_path(folder, number.saturating_sub(1));
            return Err(lost(&missing, "is missing", segments.back_mut()));
        }
        segments.push_back(Box::new(segment));
    }
    check_end(folder, segments.back_mut(), &unreadable)?;
    check_front(folder, &segments)?;
    Ok(segments)
}

/// Checks that the oldest file is the one that the newest demands. A kill can leave older ones.
fn check_front(folder: &Path, segments: &VecDeque<Box<Segment>>) -> Result<(), OpenError> {
    let demanded = segments.back().and_then(|last| last.demanded());
    let (Some(demanded), Some(first)) = (demanded, segments.front()) else {
        return Ok(());
    };
    if first.header.number <= demanded {
        return Ok(());
    }
    Err(OpenError::Lost(Loss {
        path: segment_path(folder, demanded),
        record: 0,
        from: first.header.first_sender,
        lost: Lost::AllBefore,
        what: "is missing".to_owned(),
    }))
}

/// Checks what follows the last readable segment. A file that was made in advance and never used is
/// removed. The remains of a used one are a loss.
fn check_end(
    folder: &Path,
    last: Option<&mut Box<Segment>>,
    unreadable: &[(&Path, BadHeader)],
) -> Result<(), OpenError> {
    let number = last.as_ref().map_or(1, |last| last.header.number + 1);
    let was_used = match &last {
        // A first file has its name only when it is in use.
        None => !unreadable.is_empty(),
        Some(last) => last.is_continued() == Some(true),
    };
    if was_used {
        return Err(match unreadable.first() {
            Some((path, bad)) => lost_file(path, *bad, last),
            None => lost(&segment_path(folder, number), "is missing", last),
        });
    }
    for (path, bad) in unreadable {
        let io_error = |source| OpenError::io(path, source);
        if *bad != BadHeader::Invalid || !Segment::is_blank(path).map_err(io_error)? {
            return Err(lost_file(path, *bad, last));
        }
        std::fs::remove_file(path).map_err(io_error)?;
    }
    Ok(())
}

/// Returns the error for an unreadable file that was in use, after the segment `before`.
fn lost_file(path: &Path, bad: BadHeader, before: Option<&mut Box<Segment>>) -> OpenError {
    match bad {
        BadHeader::Version(_) => OpenError::of_header(path, bad),
        BadHeader::Invalid => lost(path, "is damaged: its header is unreadable", before),
    }
}

/// Returns the error for a file all of whose records are lost; `before` is the segment in front of
/// it.
fn lost(path: &Path, what: &str, before: Option<&mut Box<Segment>>) -> OpenError {
    let from = before.map_or(1, |before| {
        before.scan();
        before.claimed_next()
    });
    OpenError::Lost(Loss {
        path: path.to_owned(),
        record: 0,
        from,
        lost: Lost::AllBehind(0),
        what: what.to_owned(),
    })
}

/// Checks the entries of all segments. Repairs what a kill can leave, at most one incomplete entry
/// at the very end. Also restores a file that was cut short after its last record, and cuts off
/// incomplete entries that were never transmitted. Anything else is a loss.
fn check_all(
    segments: &mut VecDeque<Box<Segment>>,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let claimed: Vec<u32> = segments
        .iter()
        .skip(1)
        .map(|s| s.header.previous_count)
        .collect();
    // All are checked first, so that nothing is changed if one of them has a loss.
    let mut gone_at_end = 0;
    for (i, segment) in segments.iter_mut().enumerate() {
        let gone = check(segment, claimed.get(i).copied())?;
        recovery.records += u64::from(segment.count);
        gone_at_end = gone;
    }
    for segment in segments.iter_mut() {
        let cut_to = segment.cut_to();
        recovery.stretched += cut_to.map_or(0, |len| segment.header.file_len() - len);
        segment
            .stretch()
            .map_err(|source| OpenError::io(&segment.path, source))?;
    }
    if let Some(last) = segments.back_mut().filter(|_| gone_at_end > 0) {
        recovery.cut = u64::from(gone_at_end);
        last.cut_tail();
    }
    Ok(())
}

/// Checks one segment; `claimed` is the number of its entries, if a later segment has it. Returns
/// how many entries at its end are to be cut off.
fn check(segment: &mut Segment, claimed: Option<u32>) -> Result<u32, OpenError> {
    let scan = segment.scan();
    let synced = segment.synced_and_lost();
    let expected = claimed.unwrap_or(0).max(scan.used);
    let gone = expected.saturating_sub(scan.valid).max(synced);
    let cut_table = segment.has_cut_table() && claimed.is_none();
    let never_sent = segment.machine_went_down()
        && segment.durability() == Some(Durability::Every)
        && synced == 0;
    let by_kill = gone <= 1 && !scan.more_behind && synced == 0 && segment.cut_to().is_none();
    if !cut_table && (gone == 0 || (claimed.is_none() && (by_kill || never_sent))) {
        return Ok(gone);
    }
    let what = match segment.cut_to() {
        Some(len) => format!(
            "was cut short to {len} of {} bytes",
            segment.header.file_len()
        ),
        None if scan.used <= scan.valid => format!("lacks record {}", scan.valid),
        None => format!(
            "is damaged at record {}: its CRC does not match",
            scan.valid
        ),
    };
    Err(OpenError::Lost(Loss {
        path: segment.path.clone(),
        record: scan.valid,
        from: segment.next_sender,
        lost: match gone.into() {
            gone if cut_table => Lost::AllBehind(gone),
            gone => Lost::Records(gone),
        },
        what,
    }))
}

/// Removes the segments before the last reset, which a kill has left.
fn forget_before_reset(segments: &mut VecDeque<Box<Segment>>) -> Result<(), OpenError> {
    let Some(created) = segments.back().map(|last| last.header.created) else {
        return Ok(());
    };
    while let Some(old) = segments.front().filter(|old| old.header.created != created) {
        std::fs::remove_file(&old.path).map_err(|source| OpenError::io(&old.path, source))?;
        segments.pop_front();
    }
    Ok(())
}

/// Makes the first segment. It has its name only when it is complete, so that an unreadable file of
/// that name is a loss. Under [`Durability::None`], a crash of the machine may leave such a file,
/// too. `parents` are the folders in which folders were made for the journal.
fn first_segment(
    recipe: &Recipe,
    options: &Options,
    now: UtcTimestamp,
    parents: &[PathBuf],
) -> Result<Box<Segment>, OpenError> {
    let path = segment_path(&recipe.folder, 1);
    let io_error = |source| OpenError::io(&path, source);
    let making = path.with_extension("making");
    let len = options.first_segment_bytes;
    let blank = (recipe.make)(&making, u64::from(len), &recipe.identity).map_err(io_error)?;
    let (entries, data_len) = division(len);
    let header = Header {
        number: 1,
        created: now,
        first_sender: 1,
        entries,
        data_len,
        ..Header::default()
    };
    let mut segment = blank.activate(header, &Inherited::FIRST);
    let is_durable = options.durability != Durability::None;
    if is_durable {
        // The next opening judges by it which records were never transmitted.
        segment.set_durability(options.durability);
        segment.sync().map_err(io_error)?;
    }
    std::fs::rename(&making, &path).map_err(io_error)?;
    if is_durable {
        for folder in parents.iter().chain([&recipe.folder]) {
            sync_folder(folder).map_err(|source| OpenError::io(folder, source))?;
        }
    }
    segment.path = path;
    Ok(segment)
}
