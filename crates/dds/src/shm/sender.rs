//! The writing end.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::layout::{
    self, CATALOGUE_AT, CLOSED_AT, CONTROL, COUNT_AFTER_AT, COUNT_BEFORE_AT, CUT_OFF, DIED_AT,
    FILLER, FREE, HEAD, LONGEST_CATALOGUE, MAGIC, MAGIC_AT, NOTHING, PLACES, PUBLISHED_AT, READING,
    REFUSED_AT, RING_AT, RING_BYTES, SENDER_LOCK, TAIL_AT,
};
use super::{Config, TopicSpec, leave, remove_if_stale, shared};
use crate::sys::{PAGE, SharedFile, Words};
use crate::{Error, ReturnCode};

/// The parts of the ring in which the tail advances, so that its line rarely changes.
const STEPS: usize = 16;
/// The interval at which a sender that waits checks whether its receivers are alive.
const LOOK: Duration = Duration::from_millis(5);

/// Writes samples to a ring that receivers read, in one thread at a time.
#[derive(Debug)]
pub struct Sender {
    control: Words,
    ring: Words,
    file: SharedFile,
    path: PathBuf,
    patience: Duration,
    /// The longest wait of one write.
    blocking: Option<Duration>,
    topics: usize,
    mask: usize,
    /// The next position.
    at: usize,
    tail: usize,
    number: u64,
    /// The first record of each step that the tail has not passed, oldest first.
    steps: VecDeque<usize>,
    /// The step of the record before.
    step: Option<usize>,
    /// The receivers' positions during the last write, if it timed out.
    stood: Option<Stood>,
    cut_off: u64,
    died: AtomicU64,
    #[cfg(test)]
    dead: bool,
}

impl Sender {
    /// Makes the ring of a new sender on `channel` and announces its topics. Removes the files of
    /// dead senders of the domain.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] when the folder does not exist or memory is exhausted;
    /// [`Error::Name`] for an invalid name of a channel or topic.
    pub fn open(config: &Config, channel: &str, topics: &[TopicSpec]) -> Result<Self, Error> {
        check_names(channel, topics)?;
        let catalogue = layout::catalogue(topics);
        if catalogue.len() > LONGEST_CATALOGUE {
            let why = format!("{} topics are too many", topics.len());
            return Err(Error::Config(why));
        }
        let folder = config.make_folder()?;
        sweep(&folder);
        let bytes = config.ring.clamp(*RING_BYTES.start(), *RING_BYTES.end());
        let words = bytes.next_power_of_two() / 8;
        let offset = layout::ring_offset(catalogue.len());
        let (file, hidden, path) = create(config, &folder, channel, offset + words * 8)?;
        let failed = |e| {
            let _ = fs::remove_file(&hidden);
            leave(&folder);
            shared("make the ring", &hidden, &e)
        };
        let sender = Self {
            control: Words::map(&file, 0, offset / 8).map_err(failed)?,
            ring: Words::map(&file, offset, words).map_err(failed)?,
            file,
            path,
            patience: config.patience,
            blocking: config.blocking,
            topics: topics.len(),
            mask: words - 1,
            at: 0,
            tail: 0,
            number: 0,
            steps: VecDeque::with_capacity(STEPS + 2),
            step: None,
            stood: None,
            cut_off: 0,
            died: AtomicU64::new(0),
            #[cfg(test)]
            dead: false,
        };
        sender.describe(&catalogue, words);
        fs::rename(&hidden, &sender.path).map_err(failed)?;
        Ok(sender)
    }

    /// Writes the constant part of the file.
    fn describe(&self, catalogue: &str, words: usize) {
        debug_assert!(layout::ring_offset(catalogue.len()).is_multiple_of(PAGE));
        self.set(MAGIC_AT, MAGIC);
        self.set(RING_AT, words as u64);
        self.set(CATALOGUE_AT, catalogue.len() as u64);
        for (i, chunk) in catalogue.as_bytes().chunks(8).enumerate() {
            self.set(CONTROL + i, word(chunk));
        }
    }

    /// Writes a sample of the topic with this index: `bytes`, and its time. Allocates nothing;
    /// waits only if the configuration requires it and a receiver is behind by a whole ring.
    ///
    /// # Errors
    /// [`Error::SharedMemory`] for a sample longer than [`longest`](Self::longest) and for a
    /// topic that was not announced; [`Error::Dds`] with [`ReturnCode::Timeout`] when receivers
    /// kept the ring full for longer than [`Config::blocking`]: the sample is not written.
    #[inline]
    pub fn write(&mut self, topic: u32, source_nanos: i64, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.longest() || topic as usize >= self.topics {
            return Err(self.refusal(topic, bytes.len()));
        }
        let len = HEAD + bytes.len().div_ceil(8);
        let left = self.mask + 1 - (self.at & self.mask);
        if (len > left && !self.fill(left, len)) || !self.reserve(len) {
            return Err(self.overdue());
        }
        let place = self.at & self.mask;
        if let Some([_, number, nanos]) = self.ring.get().get(place..place + HEAD) {
            number.store(self.number, Ordering::Relaxed);
            nanos.store(source_nanos as u64, Ordering::Relaxed);
        }
        self.ring.store(place + HEAD, bytes);
        self.number += 1;
        self.publish(len, layout::first_word(topic, bytes.len()));
        Ok(())
    }

    /// Returns the longest sample in bytes: a quarter of the ring.
    #[inline]
    pub const fn longest(&self) -> usize {
        (self.mask + 1) * 2 - HEAD * 8
    }

    /// Returns the number of receivers that read now, and frees the slots of dead ones.
    pub fn receivers(&self) -> usize {
        self.bury();
        let reading = |place: &usize| self.load(layout::place_at(*place)) != FREE;
        (0..PLACES).filter(reading).count()
    }

    /// Returns how often a receiver refused this sender's types.
    pub fn refused(&self) -> u64 {
        self.load(REFUSED_AT)
    }

    /// Returns how often a receiver was cut off because it did not read, and the number of those
    /// that died while reading.
    pub fn lost_receivers(&self) -> (u64, u64) {
        let died = self.died.load(Ordering::Relaxed);
        (self.cut_off, died.saturating_add(self.load(DIED_AT)))
    }

    /// Returns the number of samples written.
    pub const fn written(&self) -> u64 {
        self.number
    }

    /// Waits until every receiver has read everything; returns `false` if `timeout` was too short.
    /// Receivers that were cut off do not count.
    pub fn wait_for_receivers(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        while self.slowest().is_some_and(|at| at < self.at) {
            if Instant::now() >= end {
                return false;
            }
            self.bury();
            thread::sleep(Duration::from_micros(200));
        }
        true
    }

    /// Writes a sample as [`write`](Self::write) does, but waits until `end` at most. A ring that
    /// is full then drops its oldest samples from that time on, also those that are not read.
    ///
    /// # Errors
    /// Those of [`write`](Self::write), except time-outs.
    pub(crate) fn write_by(
        &mut self,
        end: Instant,
        topic: u32,
        source_nanos: i64,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let left = end.saturating_duration_since(Instant::now());
        let blocking = self.blocking.replace(left);
        let mut written = self.write(topic, source_nanos, bytes);
        if let Err(Error::Dds {
            code: ReturnCode::Timeout,
            ..
        }) = written
        {
            self.patience = Duration::ZERO;
            written = self.write(topic, source_nanos, bytes);
        }
        self.blocking = blocking;
        written
    }

    /// Frees space for a record and the word after it by dropping the oldest records. Returns
    /// `false` if the wait for a receiver that reads them times out.
    #[inline(always)]
    fn reserve(&mut self, len: usize) -> bool {
        let capacity = self.mask + 1;
        let end = self.at + len + 1;
        if end > self.tail + capacity && !self.move_tail(end - capacity) {
            return false;
        }
        let step = self.at / (capacity / STEPS);
        if self.step != Some(step) {
            self.step = Some(step);
            self.steps.push_back(self.at);
        }
        true
    }

    /// Moves the tail to the first step at or after `needed`. Returns `false`, without a move, if
    /// the wait for a receiver times out; the next call begins with the same step.
    fn move_tail(&mut self, needed: usize) -> bool {
        while self.steps.front().is_some_and(|first| *first < needed) {
            self.steps.pop_front();
        }
        let tail = self.steps.front().copied().unwrap_or(self.at);
        if !self.patience.is_zero() && self.is_behind(tail) && !self.wait_for(tail) {
            return false;
        }
        // A receiver that stood still during an earlier wait may have had nothing to read since.
        self.stood = None;
        self.tail = tail;
        self.control.get()[TAIL_AT].store(tail as u64, Ordering::Relaxed);
        // A receiver that sees a word of the new record also sees that the old one is gone.
        fence(Ordering::Release);
        true
    }

    /// Waits until every receiver has read up to `tail`, is dead, or has made no progress for the
    /// patience. Returns `false` after the longest wait of one write; the next write goes on with
    /// this wait.
    #[cold]
    fn wait_for(&mut self, tail: usize) -> bool {
        let begin = Instant::now();
        let mut stood = self.stood.take().unwrap_or_else(|| Stood::since(begin));
        let (mut looked, mut round) = (begin, 0_u32);
        while self.is_behind(tail) {
            if round < 100 {
                round += 1;
                thread::yield_now();
                continue;
            }
            thread::sleep(Duration::from_micros(20));
            let now = Instant::now();
            let is_overdue = self.blocking.is_some_and(|most| now - begin >= most);
            if is_overdue || now - looked >= LOOK {
                looked = now;
                self.bury();
            }
            self.cut_off_before(tail, &mut stood, now);
            if is_overdue && self.is_behind(tail) {
                self.stood = Some(stood);
                return false;
            }
        }
        true
    }

    /// Returns whether a receiver that is waited for has not read up to `tail`.
    fn is_behind(&self, tail: usize) -> bool {
        self.slowest().is_some_and(|at| at < tail)
    }

    /// Returns the position of the slowest receiver that is waited for.
    fn slowest(&self) -> Option<usize> {
        (0..PLACES).filter_map(|place| self.position(place)).min()
    }

    /// Returns the position of the receiver in a slot, if it is waited for.
    fn position(&self, place: usize) -> Option<usize> {
        let state = layout::place_at(place);
        (self.load(state) == READING).then(|| self.load(state + 1) as usize)
    }

    /// Frees the slots of receivers whose process is gone.
    fn bury(&self) {
        for place in 0..PLACES {
            let (state, lock) = (layout::place_at(place), layout::place_lock(place));
            // While the lock is held the slot cannot be taken by a new receiver.
            if self.load(state) != FREE && matches!(self.file.try_lock(lock), Ok(true)) {
                // One that leaves in an orderly way frees the slot before it releases the lock.
                if self.load(state) != FREE {
                    self.set(state, FREE);
                    self.died.fetch_add(1, Ordering::Relaxed);
                }
                let _ = self.file.unlock(lock);
            }
        }
    }

    /// Stops waiting for receivers before `tail` that have stood at one position for too long.
    fn cut_off_before(&mut self, tail: usize, stood: &mut Stood, now: Instant) {
        for (place, stood) in stood.0.iter_mut().enumerate() {
            let at = self.position(place);
            if at != stood.0 {
                *stood = (at, now);
            } else if at.is_some_and(|at| at < tail) && now - stood.1 >= self.patience {
                let state = &self.control.get()[layout::place_at(place)];
                // The receiver may have left just now.
                let cut =
                    state.compare_exchange(READING, CUT_OFF, Ordering::AcqRel, Ordering::Relaxed);
                self.cut_off += u64::from(cut.is_ok());
            }
        }
    }

    /// Fills the rest of the ring, so that the next record, of `len` words, begins at its front.
    /// Frees the space for that, too, so that a write waits once. Returns `false`, with the ring
    /// unchanged, if the wait for a receiver times out.
    #[cold]
    fn fill(&mut self, words: usize, len: usize) -> bool {
        let is_free = self.reserve(words + len);
        if is_free {
            self.publish(words, FILLER);
        }
        is_free
    }

    /// Makes the record at the position visible by its first word, and fetches the cache lines of
    /// the next one, which receivers have held since they read the record there.
    #[inline(always)]
    fn publish(&mut self, len: usize, first: u64) {
        let ring = self.ring.get();
        let place = self.at & self.mask;
        self.at += len;
        ring[self.at & self.mask].store(NOTHING, Ordering::Relaxed);
        ring[place].store(first, Ordering::Release);
        let control = self.control.get();
        control[COUNT_BEFORE_AT].store(self.number, Ordering::Relaxed);
        control[PUBLISHED_AT].store(self.at as u64, Ordering::Release);
        control[COUNT_AFTER_AT].store(self.number, Ordering::Release);
        self.ring.prefetch(self.at & self.mask, len);
    }

    fn load(&self, at: usize) -> u64 {
        self.control.get()[at].load(Ordering::Acquire)
    }

    fn set(&self, at: usize, value: u64) {
        let place: &AtomicU64 = &self.control.get()[at];
        place.store(value, Ordering::Release);
    }

    #[cold]
    fn overdue(&self) -> Error {
        Error::Dds {
            action: format!("write to {}", self.path.display()),
            code: ReturnCode::Timeout,
            detail: ": a receiver is behind by a whole ring".to_owned(),
        }
    }

    #[cold]
    fn refusal(&self, topic: u32, bytes: usize) -> Error {
        Error::SharedMemory {
            action: format!(
                "write {bytes} bytes to topic {topic} of {}",
                self.path.display()
            ),
            why: format!(
                "there are {} topics, and a sample has at most {} bytes",
                self.topics,
                self.longest()
            ),
        }
    }
}

/// The positions of the receivers, each with the time since which it is the same.
#[derive(Debug)]
pub(super) struct Stood([(Option<usize>, Instant); PLACES]);

impl Stood {
    pub(super) const fn since(now: Instant) -> Self {
        Self([(None, now); PLACES])
    }
}

#[cfg(test)]
impl Sender {
    /// Returns the position of the next record.
    pub(super) const fn position_of_next(&self) -> usize {
        self.at
    }

    /// Waits as it does when everything must be read before the next sample, at this time.
    pub(super) fn wait_at(&mut self, stood: &mut Stood, now: Instant) {
        self.cut_off_before(self.at, stood, now);
    }

    /// Returns whether the next write goes on with the wait of the last one.
    pub(super) const fn goes_on_waiting(&self) -> bool {
        self.stood.is_some()
    }

    /// Writes a record whose length is beyond the ring.
    pub(super) fn break_off(&self) {
        let beyond = layout::first_word(0, (self.mask + 1) * 8);
        self.ring.get()[self.at & self.mask].store(beyond, Ordering::Release);
    }

    /// Ends as a killed process does: the ring is neither closed nor removed, the lock is released.
    pub(super) fn die(mut self) {
        let _ = self.file.unlock(SENDER_LOCK);
        self.dead = true;
    }

    /// Writes random words everywhere except in the slots of receivers.
    pub(super) fn scribble(&self, mut random: impl FnMut() -> u64) {
        for word in self.ring.get().iter().take(4_096) {
            word.store(random() >> (random() % 64), Ordering::Relaxed);
        }
        for at in [CLOSED_AT, TAIL_AT, PUBLISHED_AT] {
            self.set(at, random() >> (random() % 64));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        #[cfg(test)]
        if self.dead {
            return;
        }
        // Receivers that still read keep the memory; no other process finds it any more.
        self.set(CLOSED_AT, 1);
        let _ = fs::remove_file(&self.path);
        self.path.parent().into_iter().for_each(leave);
    }
}

/// Returns up to eight bytes as a word, the first one lowest.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |w, b| w << 8 | u64::from(*b)),
    }
}

/// Makes a locked file for a sender; returns its temporary name and its final one. The first starts
/// with a dot, so that no receiver opens it.
fn create(
    config: &Config,
    folder: &Path,
    channel: &str,
    bytes: usize,
) -> Result<(SharedFile, PathBuf, PathBuf), Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A process of the same number, dead or in another name space, may have made a file, too.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = now.unwrap_or_default().as_nanos();
        let name = format!("{channel}.{}.{number}.{nanos}", std::process::id());
        let (hidden, path) = (folder.join(format!(".{name}")), folder.join(&name));
        let locked = SharedFile::create(&hidden, bytes).and_then(|file| {
            file.try_lock(SENDER_LOCK)?;
            Ok(file)
        });
        match locked {
            Ok(file) => return Ok((file, hidden, path)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            // The last other process has just left, and removed the folder.
            Err(e) if e.kind() == io::ErrorKind::NotFound => _ = config.make_folder()?,
            Err(e) => {
                let _ = fs::remove_file(&hidden);
                leave(folder);
                return Err(shared("make the ring", &hidden, &e));
            }
        }
    }
}

/// Removes the files of dead senders from a folder. A file whose name starts with a dot may just
/// have been made and not be locked yet.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let age = entry.metadata().and_then(|m| m.modified()).ok();
        let age = age.and_then(|m| m.elapsed().ok()).unwrap_or_default();
        if !hidden || age > Duration::from_secs(10) {
            remove_if_stale(&entry.path());
        }
    }
}

fn check_names(channel: &str, topics: &[TopicSpec]) -> Result<(), Error> {
    let bad = |what, name: &str| {
        Err(Error::Name {
            what,
            name: name.to_owned(),
        })
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if channel.is_empty() || channel.len() > 64 || !channel.chars().all(plain) {
        return bad("channel", channel);
    }
    let usable = |n: &str| !n.is_empty() && n.len() <= 256 && !n.chars().any(char::is_control);
    match topics.iter().find(|t| !usable(&t.name)) {
        Some(topic) => bad("topic", &topic.name),
        None => Ok(()),
    }
}
