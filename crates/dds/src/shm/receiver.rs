//! The reading end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use super::layout::{
    self, CATALOGUE_AT, CLOSED_AT, CONTROL, COUNT_AFTER_AT, COUNT_BEFORE_AT, DIED_AT, FILLER, FREE,
    HEAD, LONGEST_CATALOGUE, MAGIC, MAGIC_AT, NOTHING, PLACES, PUBLISHED_AT, READING, REFUSED_AT,
    RING_AT, RING_BYTES, SENDER_LOCK, TAIL_AT,
};
use super::{Config, TopicSpec, leave, remove, remove_if_stale, shared};
use crate::Error;
use crate::sys::{self, ReadOnly, SharedFile, Words};

/// The interval at which a receiver looks for new and dead senders.
const LOOK: Duration = Duration::from_millis(20);
/// Polls without a sample between two readings of the clock.
const POLLS: u32 = 256;
/// Most samples taken from one sender before the next is read.
const BATCH: usize = 64;
/// Most senders that a receiver reads at a time; others wait until one is gone.
pub(super) const SENDERS: usize = 64;

/// A sample that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken<'a> {
    /// The receiver's number of the sender.
    pub sender: u64,
    /// The index of the topic among those requested.
    pub topic: usize,
    /// The time that the sender set.
    pub source_nanos: i64,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// Reads the samples of all senders of a channel, in one thread at a time.
#[derive(Debug)]
pub struct Receiver {
    folder: PathBuf,
    /// The prefix of the names of the channel's files.
    front: String,
    topics: Vec<TopicSpec>,
    senders: Vec<Attached>,
    /// The number of senders so far.
    attached: u64,
    /// Files of this channel that do not match, and are not read again.
    refused: Vec<PathBuf>,
    /// Files whose types match, and that had no free slot when they were opened last.
    waiting: Vec<PathBuf>,
    bytes: Vec<u8>,
    polls: u32,
    looked: Instant,
    taken: u64,
    lost: u64,
    /// Senders without a free slot, here or there, or without memory, at the last look.
    crowded: usize,
    gone: Gone,
}

/// The counts of senders that are gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Gone {
    died: u64,
    refused: u64,
    broken: u64,
}

/// A sender that is read.
#[derive(Debug)]
struct Attached {
    id: u64,
    path: PathBuf,
    /// Held for its lock.
    file: SharedFile,
    control: Words,
    ring: ReadOnly,
    mask: usize,
    place: usize,
    at: usize,
    /// The number of the first sample received; earlier ones count only for topics that keep them.
    joined: u64,
    /// The number of the next sample.
    number: u64,
    /// For each topic of the sender, the receiver's index of it, and whether it keeps samples.
    topics: Vec<Option<(usize, bool)>>,
    #[cfg(test)]
    dead: bool,
}

/// The outcome of opening a sender's file.
enum Opened {
    Attached(Attached),
    /// The sender is gone.
    Dead,
    /// Its types match, but all slots are taken, here or there.
    Full,
}

/// The record at a position.
enum Record {
    Nothing,
    Sample { topic: u32, nanos: i64 },
    Filler,
    Overtaken,
    Broken,
}

/// What became of the record at the position.
enum Handled {
    /// There is none yet.
    Nothing,
    /// The caller got its sample.
    Passed,
    /// It was a filler, lost, or of a topic that nobody requested.
    Skipped,
}

impl Receiver {
    /// Opens a receiver of these topics from all senders on `channel`, those to come included.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] when the folder does not exist.
    pub fn open(config: &Config, channel: &str, topics: &[TopicSpec]) -> Result<Self, Error> {
        let folder = config.make_folder()?;
        match fs::read_dir(&folder) {
            // The last other process has just removed it. A sender makes it again.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(shared("read", &folder, &e)),
            Ok(_) => {}
        }
        let mut new = Self {
            folder,
            front: format!("{channel}."),
            topics: topics.to_vec(),
            senders: Vec::new(),
            attached: 0,
            refused: Vec::new(),
            waiting: Vec::new(),
            bytes: Vec::new(),
            polls: 0,
            looked: Instant::now(),
            taken: 0,
            lost: 0,
            crowded: 0,
            gone: Gone::default(),
        };
        new.look();
        Ok(new)
    }

    /// Passes on the samples that have arrived, at most 64 of each sender, and returns their
    /// number. Never waits. At most every 20 ms it looks for senders: it lists their folder, which
    /// takes a few system calls, and allocates only then.
    #[inline]
    pub fn poll(&mut self, mut take: impl FnMut(Taken<'_>)) -> usize {
        let mut count = 0;
        let mut broken = None;
        for (place, sender) in self.senders.iter_mut().enumerate() {
            match sender.read(&mut self.bytes, &mut self.lost, &mut take) {
                Some(n) => count += n,
                None => broken = Some(place),
            }
        }
        self.taken += count as u64;
        self.polls += 1;
        if let Some(place) = broken {
            self.refuse(place);
        }
        if self.polls >= POLLS {
            self.look_if_due();
        }
        count
    }

    /// Looks for senders at once, unless it has just done so. For a caller that sleeps between
    /// polls.
    pub fn refresh(&mut self) {
        self.look_if_due();
    }

    /// Returns the number of senders being read.
    pub fn senders(&self) -> usize {
        self.senders.len()
    }

    /// Returns the number of samples passed on.
    pub const fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of samples overwritten before they were read. Those of topics that were
    /// not requested count, too, as the topic of an overwritten sample is unknown.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of senders that are not read because they have 64 receivers, or because
    /// this receiver reads 64 senders, the most of both, or because the system lacks descriptors or
    /// memory. They are read once that has changed. Senders of other types are
    /// [refused](Self::refused) instead.
    pub const fn crowded(&self) -> usize {
        self.crowded
    }

    /// Returns the number of senders whose topics have other types than this receiver's, or whose
    /// file or records are invalid.
    pub const fn refused(&self) -> u64 {
        self.gone.refused + self.gone.broken
    }

    /// Returns the number of senders that died without closing their ring.
    pub const fn died(&self) -> u64 {
        self.gone.died
    }

    /// Drops a sender whose records are invalid; its file is not read again.
    #[cold]
    fn refuse(&mut self, place: usize) {
        let sender = self.senders.remove(place);
        self.gone.broken += 1;
        self.refused.push(sender.path.clone());
    }

    #[cold]
    fn look_if_due(&mut self) {
        self.polls = 0;
        if self.looked.elapsed() >= LOOK {
            self.look();
            self.looked = Instant::now();
        }
    }

    /// Drops senders that are gone, and finds new ones.
    fn look(&mut self) {
        let gone = &mut self.gone;
        self.senders.retain(|sender| sender.is_there(gone));
        let there = match self.files() {
            Ok(there) => there,
            // The last other process has removed the folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            // Refused files may still be there.
            Err(_) => return,
        };
        self.refused.retain(|path| there.contains(path));
        self.waiting.retain(|path| there.contains(path));
        self.crowded = 0;
        for path in there {
            let known = self.senders.iter().any(|s| s.path == path) || self.refused.contains(&path);
            if !known {
                self.attach(path);
            }
        }
    }

    /// Returns the files of the channel.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut there = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|n| n.starts_with(&self.front)) {
                there.push(entry.path());
            }
        }
        Ok(there)
    }

    fn attach(&mut self, path: PathBuf) {
        let has_room = self.senders.len() < SENDERS;
        let matches = self.waiting.contains(&path);
        let opened = Attached::open(&path, &self.topics, has_room, matches);
        self.settle(path, opened);
    }

    /// Takes the outcome of opening a sender's file.
    fn settle(&mut self, path: PathBuf, opened: io::Result<Opened>) {
        match opened {
            Ok(Opened::Attached(mut sender)) => {
                self.attached += 1;
                sender.id = self.attached;
                let longest = (sender.mask + 1) * 2;
                self.bytes.resize(self.bytes.len().max(longest), 0);
                self.senders.push(sender);
                self.waiting.retain(|waiting| *waiting != path);
            }
            Ok(Opened::Dead) => remove_if_stale(&path),
            Ok(Opened::Full) => {
                self.crowded += 1;
                if !self.waiting.contains(&path) {
                    self.waiting.push(path);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if sys::is_shortage(&error) => self.crowded += 1,
            Err(_) => {
                self.gone.refused += 1;
                self.refused.push(path);
            }
        }
    }
}

impl Attached {
    /// Attaches to a sender, unless it is dead, or it or the receiver has no free slot: `has_room`
    /// is whether the receiver has one, and `matches` whether the types are known to match.
    ///
    /// # Errors
    /// The file is invalid, or a topic's types differ.
    fn open(
        path: &Path,
        wanted: &[TopicSpec],
        has_room: bool,
        matches: bool,
    ) -> io::Result<Opened> {
        let file = SharedFile::open(path)?;
        if !file.is_locked(SENDER_LOCK)? {
            return Ok(Opened::Dead);
        }
        let bad = || io::Error::from(io::ErrorKind::InvalidData);
        let head = Words::map(&file, 0, CONTROL)?;
        let word = |at: usize| head.get()[at].load(Ordering::Acquire) as usize;
        let (words, catalogue) = (word(RING_AT), word(CATALOGUE_AT));
        let ring = words.checked_mul(8).filter(|b| RING_BYTES.contains(b));
        if word(MAGIC_AT) as u64 != MAGIC
            || ring.is_none()
            || !words.is_power_of_two()
            || catalogue > LONGEST_CATALOGUE
        {
            return Err(bad());
        }
        // The slot's state stays free until the end; an error releases its lock with the file.
        let place = match has_room {
            true => take_place(&file, &head)?,
            false => None,
        };
        // An attempt without a slot is repeated at every look, so the catalogue, which may be
        // large, is mapped once.
        if place.is_none() && matches {
            return Ok(Opened::Full);
        }
        let offset = layout::ring_offset(catalogue);
        let control = Words::map(&file, 0, offset / 8)?;
        let offered = offered(&control, catalogue).ok_or_else(bad)?;
        let Some(topics) = matching(&offered, wanted) else {
            control.get()[REFUSED_AT].fetch_add(1, Ordering::AcqRel);
            return Err(bad());
        };
        let Some(place) = place else {
            return Ok(Opened::Full);
        };
        let ring = ReadOnly::map(&file, offset, words)?;
        let mut new = Self {
            id: 0,
            path: path.to_owned(),
            file,
            control,
            ring,
            mask: words - 1,
            place,
            at: 0,
            joined: 0,
            number: 0,
            topics,
            #[cfg(test)]
            dead: false,
        };
        new.join();
        Ok(Opened::Attached(new))
    }

    /// Begins at the oldest record if some topics keep samples, otherwise at the next one.
    fn join(&mut self) {
        let keeps = self.topics.iter().flatten().any(|(_, keep)| *keep);
        let begin = if keeps { TAIL_AT } else { PUBLISHED_AT };
        self.at = self.load(begin);
        self.word(self.place_at() + 1)
            .store(self.at as u64, Ordering::Release);
        self.word(self.place_at()).store(READING, Ordering::SeqCst);
        // From here on the sender sees the slot. It may have advanced before that.
        let published = self.load_published();
        self.joined = self.number;
        if !keeps {
            self.at = published;
            self.word(self.place_at() + 1)
                .store(self.at as u64, Ordering::Release);
        }
    }

    /// Returns the position and stores the number of the next sample in `number`.
    fn load_published(&mut self) -> usize {
        let mut published = 0;
        // A busy sender advances between the loads, but not that often.
        for _ in 0..10_000 {
            self.number = self.load(COUNT_AFTER_AT) as u64;
            published = self.load(PUBLISHED_AT);
            if self.load(COUNT_BEFORE_AT) as u64 == self.number {
                break;
            }
        }
        published
    }

    /// Passes on up to a batch; `None` when the record at the position is invalid.
    #[inline]
    fn read(
        &mut self,
        bytes: &mut [u8],
        lost: &mut u64,
        take: &mut impl FnMut(Taken<'_>),
    ) -> Option<usize> {
        let begin = self.at;
        let mut count = 0;
        for _ in 0..BATCH {
            match self.record(bytes, lost, take) {
                Some(Handled::Passed) => count += 1,
                Some(Handled::Skipped) => {}
                Some(Handled::Nothing) => break,
                None if self.at == begin => return None,
                None => break,
            }
            // After each record: a sender that waits sees that this receiver makes progress.
            self.word(self.place_at() + 1)
                .store(self.at as u64, Ordering::Release);
        }
        if self.at != begin && self.word(self.place_at()).load(Ordering::Relaxed) != READING {
            self.word(self.place_at()).store(READING, Ordering::Release);
        }
        Some(count)
    }

    /// Handles the record at the position; `None` when it is invalid.
    #[inline(always)]
    fn record(
        &mut self,
        bytes: &mut [u8],
        lost: &mut u64,
        take: &mut impl FnMut(Taken<'_>),
    ) -> Option<Handled> {
        let (mut len, mut number) = (0, 0);
        let record = self.copy(bytes, &mut len, &mut number);
        let (topic, nanos) = match record {
            Record::Sample { topic, nanos } => (topic, nanos),
            Record::Nothing => return Some(Handled::Nothing),
            Record::Filler => {
                let left = self.mask + 1 - (self.at & self.mask);
                self.at = self.at.wrapping_add(left);
                return Some(Handled::Skipped);
            }
            Record::Overtaken => {
                self.at = self.load(TAIL_AT);
                return Some(Handled::Skipped);
            }
            Record::Broken => return None,
        };
        let wanted = *self.topics.get(topic as usize)?;
        let late = number < self.joined;
        if !late {
            *lost = lost.saturating_add(number.wrapping_sub(self.number));
            self.number = number.wrapping_add(1);
        }
        self.at = self.at.wrapping_add(HEAD + len.div_ceil(8));
        let Some((topic, keep)) = wanted else {
            return Some(Handled::Skipped);
        };
        if late && !keep {
            return Some(Handled::Skipped);
        }
        take(Taken {
            sender: self.id,
            topic,
            source_nanos: nanos,
            bytes: bytes.get(..len)?,
        });
        Some(Handled::Passed)
    }

    /// Copies the record at the position; the sender may overwrite it meanwhile, which is detected
    /// at the end.
    #[inline(always)]
    fn copy(&self, bytes: &mut [u8], len: &mut usize, number: &mut u64) -> Record {
        let place = self.at & self.mask;
        let first = self.ring.acquire(place);
        let mut head = self.ring.load(place + 1..(place + HEAD).min(self.mask + 1));
        *number = head.next().unwrap_or_default();
        let nanos = head.next().unwrap_or_default() as i64;
        let (topic, stated) = layout::topic_and_len(first);
        *len = stated;
        let is_sample = first != NOTHING && first != FILLER;
        let fits = is_sample
            && bytes
                .get_mut(..stated)
                .is_some_and(|to| self.ring.copy(place + HEAD, to));
        // If anything above was read from a newer record, the tail has passed this one.
        fence(Ordering::Acquire);
        if self.word(TAIL_AT).load(Ordering::Relaxed) as usize > self.at {
            return Record::Overtaken;
        }
        match first {
            NOTHING => Record::Nothing,
            FILLER => Record::Filler,
            _ if fits => Record::Sample { topic, nanos },
            _ => Record::Broken,
        }
    }

    /// Returns whether the sender is alive or has unread records.
    fn is_there(&self, gone: &mut Gone) -> bool {
        let closed = self.load(CLOSED_AT) != 0;
        let dead = || matches!(self.file.is_locked(SENDER_LOCK), Ok(false));
        if !closed && !dead() {
            return true;
        }
        // The order matters: a record that is overtaken may begin with any word.
        let is_read = self.ring.acquire(self.at & self.mask) == NOTHING;
        if !is_read || self.load(TAIL_AT) > self.at {
            return true;
        }
        if !closed {
            gone.died += 1;
            remove(&self.path, &self.file);
        }
        false
    }

    const fn place_at(&self) -> usize {
        layout::place_at(self.place)
    }

    #[inline(always)]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.control.get()[at]
    }

    #[inline(always)]
    fn load(&self, at: usize) -> usize {
        self.word(at).load(Ordering::Acquire) as usize
    }
}

#[cfg(test)]
impl Receiver {
    /// Takes this error of the system as the outcome of opening a sender's file.
    pub(super) fn fail(&mut self, path: PathBuf, code: i32) {
        self.settle(path, Err(io::Error::from_raw_os_error(code)));
    }

    /// Ends as a killed process does: the ring is not closed, the locks are released.
    pub(super) fn die(mut self) {
        for sender in &mut self.senders {
            let _ = sender.file.unlock(layout::place_lock(sender.place));
            sender.dead = true;
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        leave(&self.folder);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.dead {
            return;
        }
        self.word(self.place_at()).store(FREE, Ordering::Release);
        let _ = self.file.unlock(layout::place_lock(self.place));
    }
}

/// Reads the catalogue, of this many bytes; `None` if it is invalid.
fn offered(control: &Words, catalogue: usize) -> Option<Vec<TopicSpec>> {
    let words = control.get().get(layout::catalogue_words(catalogue))?;
    let bytes = words
        .iter()
        .flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    let text = String::from_utf8(bytes.take(catalogue).collect()).ok()?;
    layout::read_catalogue(&text)
}

/// Returns for each topic offered the requested one; `None` if one has another type.
fn matching(offered: &[TopicSpec], wanted: &[TopicSpec]) -> Option<Vec<Option<(usize, bool)>>> {
    let of = |offer: &TopicSpec| match wanted.iter().position(|w| w.name == offer.name) {
        Some(at)
            if wanted
                .get(at)
                .is_some_and(|w| w.type_hash != offer.type_hash) =>
        {
            Err(())
        }
        Some(at) => Ok(Some((
            at,
            offer.keep && wanted.get(at).is_some_and(|w| w.keep),
        ))),
        None => Ok(None),
    };
    offered.iter().map(of).collect::<Result<_, _>>().ok()
}

/// Locks a slot that no living receiver has.
fn take_place(file: &SharedFile, control: &Words) -> io::Result<Option<usize>> {
    for place in 0..PLACES {
        if file.try_lock(layout::place_lock(place))? {
            let state = control.get()[layout::place_at(place)].swap(FREE, Ordering::AcqRel);
            // Whoever leaves in an orderly way frees the slot.
            if state != FREE {
                control.get()[DIED_AT].fetch_add(1, Ordering::AcqRel);
            }
            return Ok(Some(place));
        }
    }
    Ok(None)
}
