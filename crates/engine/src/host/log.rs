//! A readable log of all messages, written by a thread of its own.
//!
//! The host's thread copies what passes its sockets into a ring, which costs tens of
//! nanoseconds; a [`MessageLog`] on another thread finds the messages in it, masks passwords and
//! writes one line each.
//!
//! Behind bytes that are left out, the bytes of a stream up to its next whole message may be the
//! rest of a secret: only their number is written.
//!
//! A log is complete unless it is [lossy](LogOptions::lossy): while the ring is full, the host
//! reads from no socket and sends nothing. The host waits for [`LogOptions::patience`] while the
//! log makes no progress, and twice as long in all: a disk that hangs or is too slow, or a thread
//! that has ended, does not end the sessions. A disk that refuses writes, as a full one does, holds
//! up no session. Bytes that are left out are counted, have a line in the log, and are reported at
//! once by [`Handler::on_log`](super::Handler::on_log).

mod lines;
mod trouble;

use crate::agent::{Agent, AgentError};
use crate::counters::{Counter, Counters};
use crate::ring::{Consumer, Producer, spsc};
use crate::rotate::Rotation;
use crate::stop::Reload;
use fanfare_fix::session::{Now, SessionId};
use lines::Lines;
use std::collections::{BTreeMap, VecDeque};
#[cfg(test)]
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use trouble::{LogTrouble, NoRoom};

/// The options of a message log.
#[derive(Debug, Clone)]
pub struct LogOptions {
    /// When a file ends and a new one begins, and how many are kept.
    pub rotation: Rotation,
    /// The size of the ring between the host and the log, at least 1 MiB.
    pub ring_bytes: usize,
    /// Whether bytes are left out while the ring is full, instead of holding up the sessions.
    pub lossy: bool,
    /// How long a log that makes no progress holds up the sessions. One that makes some, but too
    /// little, holds them up twice as long.
    pub patience: Duration,
}

impl Default for LogOptions {
    /// Returns [`Rotation::default`], 4 MiB between the threads, a complete log, 5 s of patience.
    fn default() -> Self {
        Self {
            rotation: Rotation::default(),
            ring_bytes: 4 << 20,
            lossy: false,
            patience: Duration::from_secs(5),
        }
    }
}

/// The two directions of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// The host's end of a message log: see [`Host::log_to`](super::Host::log_to).
pub struct LogTap {
    ring: Producer,
    lossy: bool,
    /// The patience, in nanoseconds.
    patience: u64,
    /// The wait for space in the ring, while it is full.
    wait: Option<Wait>,
    /// The reason why bytes are left out while the ring is full; `None` if the host waits.
    leaves_out: Option<NoRoom>,
    /// Bytes left out since the last record.
    left_out: u64,
    /// The sessions whose names the ring had no room for, and the streams whose beginnings of
    /// connections (`None`) it had none for. They precede the next bytes.
    late: BTreeMap<usize, Option<String>>,
    /// The sessions of which bytes were left out since the log was last complete, and the number of
    /// bytes.
    losers: Vec<usize>,
    losses: u64,
    /// Losses to report: the session, and its bytes.
    untold: Vec<(usize, usize)>,
    /// The end of losses to report: the bytes, and the number of sessions.
    complete: Option<(u64, usize)>,
    lost: Counter,
    health: Arc<Health>,
    seen: u32,
}

/// A wait for space in the ring.
struct Wait {
    /// The time at which it began.
    began: u64,
    /// The time since which the log has made no progress, and the position up to which it had read
    /// then.
    idle_since: u64,
    read_to: u64,
}

/// The state that the log's thread shares with the host.
#[derive(Default)]
struct Health {
    changes: AtomicU32,
    /// The newest changes that are not reported yet, oldest first.
    untold: Mutex<VecDeque<LogTrouble>>,
}

impl Health {
    /// Most changes that wait to be reported; older ones are discarded.
    const MOST: usize = 16;

    fn report(&self, trouble: LogTrouble) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        if untold.len() >= Self::MOST {
            untold.pop_front();
        }
        untold.push_back(trouble);
        drop(untold);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Returns the oldest change that is not reported yet, and whether it is the last one.
    fn take(&self) -> (Option<LogTrouble>, bool) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        (untold.pop_front(), untold.is_empty())
    }
}

/// The other end of a message log, an [`Agent`] for a thread of its own.
pub struct MessageLog {
    ring: Consumer,
    lines: Lines,
}

/// Kinds of records: the stream and direction, or one of these.
const NAME: u32 = 1 << 31;
const LEFT_OUT: u32 = 1 << 30;
/// A connection of a session begins.
const BEGINS: u32 = LEFT_OUT | 1 << 29;
/// The bit of the second stream of a session, for a connection that begins while the session's last
/// one still has bytes to send. A stream is the session's number, with this bit or without it.
pub(super) const OVERLAP: usize = 1 << 28;
/// Length of the time in front of a record's bytes.
const TIME: usize = 8;
/// Most bytes of a stretch in one record.
const STRETCH: usize = 16 << 10;
/// Most records taken from the ring in one duty cycle. Their space is free after it: a slow disk
/// has to write them within the patience of the host.
const TURN: usize = 16;
/// Most bytes that a host reads or sends at once while it logs.
pub(super) const GRAIN: usize = 64 << 10;
/// Space for a grain with the headers of its records, wherever the ring wraps.
const GRAIN_ROOM: usize = GRAIN + (GRAIN / STRETCH + 1) * 64;
/// The space with which a host begins a duty cycle. Bytes that are read before their session is
/// known are logged, too.
const TURN_ROOM: usize = 4 * GRAIN_ROOM;

impl MessageLog {
    /// Opens a log at `path`, to which it appends.
    ///
    /// `counters` count lines, bytes left out and errors of the disk.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(
        path: &Path,
        options: LogOptions,
        counters: &Counters,
    ) -> io::Result<(LogTap, Self)> {
        let (producer, ring) = spsc(options.ring_bytes.max(1 << 20));
        let lost = counters.add("log_lost_bytes", "bytes left out of the message log");
        let health = Arc::new(Health::default());
        let lines = Lines::open(path, options.rotation, counters, Arc::clone(&health))?;
        let tap = LogTap {
            ring: producer,
            lossy: options.lossy,
            patience: u64::try_from(options.patience.as_nanos()).unwrap_or(u64::MAX),
            wait: None,
            leaves_out: options.lossy.then_some(NoRoom::Burst),
            left_out: 0,
            late: BTreeMap::new(),
            losers: Vec::new(),
            losses: 0,
            untold: Vec::new(),
            complete: None,
            lost,
            health,
            seen: 0,
        };
        Ok((tap, Self { ring, lines }))
    }

    /// Reopens the file at its path whenever `reload` is due, so that `logrotate` can rename it. If
    /// that fails, the log continues in the open file, and tries again every minute.
    #[must_use]
    pub fn reopen_on(mut self, reload: Reload) -> Self {
        self.lines.reopen_on(reload);
        self
    }
}

impl LogTap {
    /// Records the identity of a session, also of one in the place of a removed one. Its incomplete
    /// messages end there.
    pub(super) fn name(&mut self, session: usize, id: &SessionId) {
        let name = id.to_string();
        if !self.put_late() || !put_beginning(&mut self.ring, session, Some(&name)) {
            self.late.insert(session, Some(name));
        }
    }

    /// Records the start of a connection of a session, at which the incomplete messages of the
    /// previous one in that stream end.
    pub(super) fn begins(&mut self, stream: usize) {
        if !self.put_late() || !put_beginning(&mut self.ring, stream, None) {
            // A name that waits ends those messages, too.
            self.late.entry(stream).or_default();
        }
    }

    /// Returns whether the host has to wait before it begins a duty cycle.
    #[inline]
    pub(super) fn holds(&mut self, now: Now) -> bool {
        if self.ring.has_room_for(TURN_ROOM) {
            self.wait = None;
            // A host that gave up its wait may have left out nothing since then.
            let gave_up = !self.lossy && self.leaves_out.is_some();
            if gave_up || self.left_out > 0 || self.losses > 0 {
                self.catch_up();
            }
            return false;
        }
        self.is_waited_for(now)
    }

    /// Returns whether a [`GRAIN`] may be read or sent now.
    #[inline]
    pub(super) fn takes(&mut self) -> bool {
        self.leaves_out.is_some() || self.ring.has_room_for(GRAIN_ROOM)
    }

    #[cold]
    fn is_waited_for(&mut self, now: Now) -> bool {
        if self.leaves_out.is_some() {
            return false;
        }
        let read_to = self.ring.read_to();
        let wait = self.wait.get_or_insert(Wait {
            began: now.mono,
            idle_since: now.mono,
            read_to,
        });
        if wait.read_to != read_to {
            (wait.idle_since, wait.read_to) = (now.mono, read_to);
        }
        let longest = self.patience.saturating_mul(2);
        if now.mono.saturating_sub(wait.idle_since) >= self.patience {
            self.leaves_out = Some(NoRoom::Stuck);
        } else if now.mono.saturating_sub(wait.began) >= longest {
            self.leaves_out = Some(NoRoom::Burst);
        }
        self.leaves_out.is_none()
    }

    /// Notes that the ring has space again.
    #[cold]
    fn catch_up(&mut self) {
        if !self.put_late() || self.leaves_out == Some(NoRoom::Ended) {
            return;
        }
        if self.losses > 0 {
            self.complete = Some((self.losses, self.losers.len()));
        }
        self.losses = 0;
        self.losers.clear();
        if !self.lossy {
            self.leaves_out = None;
        }
    }

    /// Writes what the ring had no room for. Returns whether nothing of it is left.
    #[inline]
    fn put_late(&mut self) -> bool {
        (self.left_out == 0 && self.late.is_empty()) || self.put_all_late()
    }

    /// Writes names and beginnings of connections, followed by the number of bytes left out, which
    /// may be those of a connection that has begun.
    #[cold]
    fn put_all_late(&mut self) -> bool {
        while let Some(first) = self.late.first_entry() {
            if !put_beginning(&mut self.ring, *first.key(), first.get().as_deref()) {
                return false;
            }
            first.remove();
        }
        if self.left_out > 0 {
            let count = self.left_out.to_le_bytes();
            if self.ring.push(LEFT_OUT, &count).is_err() {
                return false;
            }
            self.left_out = 0;
        }
        true
    }

    pub(super) fn bytes(&mut self, now: Now, stream: usize, direction: Direction, bytes: &[u8]) {
        let kind = (stream as u32) << 1 & (LEFT_OUT - 1) | direction as u32;
        for part in bytes.chunks(STRETCH) {
            let time = now.utc.nanos().to_le_bytes();
            let fits = self.leaves_out != Some(NoRoom::Ended)
                && self.put_late()
                && self
                    .ring
                    .write(kind, TIME + part.len(), |room| {
                        if let Some((front, rest)) = room.split_at_mut_checked(TIME) {
                            front.copy_from_slice(&time);
                            rest.copy_from_slice(part);
                        }
                    })
                    .is_ok();
            if !fits {
                self.leave_out(stream & !OVERLAP, part.len());
            }
        }
    }

    #[cold]
    fn leave_out(&mut self, session: usize, bytes: usize) {
        self.left_out += bytes as u64;
        self.losses += bytes as u64;
        self.lost.increment(bytes as u64);
        if !self.losers.contains(&session) {
            self.losers.push(session);
            self.untold.push((session, bytes));
        }
    }

    /// Checks whether the log's thread still runs. Called occasionally.
    pub(super) fn look(&mut self) {
        if self.ring.is_abandoned() {
            self.leaves_out = Some(NoRoom::Ended);
        }
    }

    /// Returns the next change to report; `name` returns the identity of a session.
    #[inline]
    pub(super) fn trouble<'a>(
        &mut self,
        name: impl Fn(usize) -> Option<&'a SessionId>,
    ) -> Option<LogTrouble> {
        if self.untold.is_empty()
            && self.complete.is_none()
            && self.health.changes.load(Ordering::Acquire) == self.seen
        {
            return None;
        }
        self.next_trouble(name)
    }

    #[cold]
    fn next_trouble<'a>(
        &mut self,
        name: impl Fn(usize) -> Option<&'a SessionId>,
    ) -> Option<LogTrouble> {
        while let Some((session, bytes)) = self.untold.pop() {
            if let Some(session) = name(session).cloned() {
                let why = self.leaves_out.unwrap_or(NoRoom::Burst);
                return Some(LogTrouble::LeftOut {
                    session,
                    bytes,
                    why,
                });
            }
        }
        if let Some((bytes, sessions)) = self.complete.take() {
            return Some(LogTrouble::Complete { bytes, sessions });
        }
        let changes = self.health.changes.load(Ordering::Acquire);
        if self.seen == changes {
            return None;
        }
        let (trouble, is_last) = self.health.take();
        if is_last {
            self.seen = changes;
        }
        trouble
    }
}

/// Writes the name of a session, or without one the start of a connection in a stream. Returns
/// whether the ring has room for it.
fn put_beginning(ring: &mut Producer, stream: usize, name: Option<&str>) -> bool {
    let (kind, name) = match name {
        Some(name) => (NAME | stream as u32, name),
        None => (BEGINS | stream as u32 & !BEGINS & !NAME, ""),
    };
    ring.push(kind, name.as_bytes()).is_ok()
}

impl Agent for MessageLog {
    fn name(&self) -> &str {
        "message-log"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let Self { ring, lines } = self;
        lines.look(now);
        let work = ring.read(TURN, |record| lines.take(record));
        if work == 0 || lines.is_failing() {
            lines.flush();
        }
        Ok(work)
    }

    /// Writes the rest of the ring.
    fn on_close(&mut self, now: Now) {
        while matches!(self.do_work(now), Ok(1..)) {}
        self.lines.close();
    }
}

#[cfg(test)]
impl LogTap {
    /// Fills the ring up to less than a short message above the space for a [`GRAIN`].
    pub(super) fn fill(&mut self, now: Now) {
        while self.ring.has_room_for(GRAIN_ROOM + 32) {
            self.bytes(now, 1, Direction::In, b"x");
        }
    }
}

#[cfg(test)]
impl MessageLog {
    /// Writes to this file instead of its own; `None` restores its own.
    pub(super) fn fill_disk(&mut self, full: Option<File>) {
        self.lines.write_to(full);
    }
}

#[cfg(test)]
mod tests;
