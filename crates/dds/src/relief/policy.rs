//! When a writer is relieved, and when it returns.

use std::time::{Duration, Instant};

use crate::{Error, ReturnCode};

/// The time of vain writes in a row after which a writer is relieved. It is not less than Cyclone's
/// usual lease, so that a reader that has died is gone before.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The time after which a relieved writer returns, once every reader has taken all of its samples.
/// It returns earlier if a reader is gone, and never before.
pub const STAY: Duration = Duration::from_secs(60);

/// The samples of each instance that the relieving writer keeps for readers that are behind. If
/// these are more bytes than a writer may send ahead of acknowledgements, another one takes its
/// place that keeps 16 of each, and then one that keeps the last of each.
pub const DEPTH: u32 = 256;

/// The divisor of the depth of the next one.
const STEP: u32 = 16;

/// The time in which readers find a new writer, at least: they discard what it writes before.
const SETTLE: Duration = Duration::from_secs(1);

/// The interval at which a relieved writer asks whether it may return.
const ASK: Duration = Duration::from_secs(1);

/// The longest wait for the acknowledgements of those who keep up, before a relieved writer
/// returns: its next sample does not overtake them.
const ACKS: Duration = Duration::from_millis(50);

/// A writer, as far as the policy needs one.
pub(super) trait Outlet: Sized {
    fn write(&self, cdr: &[u8]) -> Result<(), Error>;
    fn wait_for_acks(&self, timeout: Duration) -> Result<bool, Error>;
    /// Returns the number of its readers now.
    fn readers(&self) -> u32;
}

/// A writer, and what relieves it. The functions `open` make a writer beside the first one, with a
/// depth; one that cannot be opened is tried again with the next write.
#[derive(Debug)]
pub(super) struct Relief<W> {
    own: W,
    /// The time of vain writes before the relief; `None`: never.
    patience: Option<Duration>,
    /// The time of the first vain write of its own, if all since were.
    vain: Option<Instant>,
    /// The writer that relieves it, or is about to.
    spare: Option<Spare<W>>,
    /// The writer that takes the place of that one when its history is full. It is opened when that
    /// one begins to write, so that all readers know it by then.
    next: Option<Spare<W>>,
    relieved: Option<Relieved>,
}

#[derive(Debug)]
struct Spare<W> {
    writer: W,
    depth: u32,
    opened: Instant,
}

#[derive(Debug)]
struct Relieved {
    since: Instant,
    asked: Instant,
    /// The most readers since.
    readers: u32,
}

impl<W: Outlet> Spare<W> {
    fn open(
        own: &W,
        depth: u32,
        now: Instant,
        open: &mut impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> Option<Self> {
        let writer = open(own, depth).ok()?;
        Some(Self {
            writer,
            depth,
            opened: now,
        })
    }

    /// Opens the one that takes the place of this one.
    fn next(
        &self,
        own: &W,
        now: Instant,
        open: &mut impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> Option<Self> {
        Self::open(own, (self.depth / STEP).max(1), now, open)
    }

    /// Returns whether its readers know it, of whom there are this many.
    fn is_ready(&self, now: Instant, readers: u32) -> bool {
        let age = now.saturating_duration_since(self.opened);
        // A reader that never knows it does not count.
        age >= SETTLE && self.writer.readers() >= readers || age >= PATIENCE
    }
}

impl<W: Outlet> Relief<W> {
    pub(super) const fn new(own: W, patience: Option<Duration>) -> Self {
        Self {
            own,
            patience,
            vain: None,
            spare: None,
            next: None,
            relieved: None,
        }
    }

    pub(super) const fn is_relieved(&self) -> bool {
        self.relieved.is_some()
    }

    /// Returns whether no write is in vain.
    pub(super) const fn is_whole(&self) -> bool {
        self.vain.is_none()
    }

    /// Returns the writer in use.
    pub(super) fn current(&self) -> &W {
        match &self.spare {
            Some(spare) if self.is_relieved() => &spare.writer,
            _ => &self.own,
        }
    }

    #[inline]
    pub(super) fn write(
        &mut self,
        cdr: &[u8],
        now: impl Fn() -> Instant,
        mut open: impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> Result<(), Error> {
        if self.is_relieved() {
            return self.write_beside(cdr, now, &mut open);
        }
        match self.own.write(cdr) {
            Ok(()) => {
                if self.vain.is_some() {
                    self.heal();
                }
                Ok(())
            }
            Err(error) if is_vain(&error) && self.patience.is_some() => {
                let time = now();
                self.vain.get_or_insert(time);
                self.prepare(time, &mut open);
                if !self.relieve(time, &mut open) {
                    return Err(error);
                }
                self.write_beside(cdr, now, &mut open)
            }
            Err(error) => Err(error),
        }
    }

    /// Prepares the relief, or ends it, if it is time.
    pub(super) fn look(
        &mut self,
        now: Instant,
        mut open: impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> Result<(), Error> {
        if self.is_relieved() {
            return self.ask(now);
        }
        // A reader that has taken all of it meanwhile is not waited for any more.
        if self.vain.is_some() && self.own.wait_for_acks(Duration::ZERO)? {
            self.heal();
        }
        self.prepare(now, &mut open);
        Ok(())
    }

    fn heal(&mut self) {
        (self.vain, self.spare, self.next, self.relieved) = (None, None, None, None);
    }

    /// Opens the writer that relieves, long before it does, so that all readers know it by then.
    fn prepare(&mut self, now: Instant, open: &mut impl FnMut(&W, u32) -> Result<W, Error>) {
        if let (Some(since), Some(patience), None) = (self.vain, self.patience, &self.spare)
            && now.saturating_duration_since(since) >= patience / 2
        {
            self.spare = Spare::open(&self.own, DEPTH, now, open);
        }
    }

    /// Begins the relief after a vain write, if it is time. Those who keep up have acknowledged
    /// everything by now.
    fn relieve(
        &mut self,
        now: Instant,
        open: &mut impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> bool {
        let readers = self.own.readers();
        let waited = self.vain.map(|since| now.saturating_duration_since(since));
        let Some(spare) = &self.spare else {
            return false;
        };
        if waited < self.patience || !spare.is_ready(now, readers) {
            return false;
        }
        self.next = spare.next(&self.own, now, open);
        self.relieved = Some(Relieved {
            since: now,
            asked: now,
            readers,
        });
        true
    }

    /// Ends the relief, if it is time and every reader has taken everything.
    fn ask(&mut self, now: Instant) -> Result<(), Error> {
        let readers = self.own.readers();
        let (Some(relieved), Some(spare)) = (&mut self.relieved, &self.spare) else {
            return Ok(());
        };
        if now.saturating_duration_since(relieved.asked) < ASK {
            return Ok(());
        }
        relieved.asked = now;
        relieved.readers = relieved.readers.max(readers);
        let is_time = now.saturating_duration_since(relieved.since) >= STAY;
        if (is_time || readers < relieved.readers)
            && self.own.wait_for_acks(Duration::ZERO)?
            && spare.writer.wait_for_acks(ACKS)?
        {
            self.heal();
        }
        Ok(())
    }

    /// Writes while relieved. The last samples of very many instances may be more bytes than a
    /// writer sends ahead: then a new writer with an empty history takes the place of this one.
    #[cold]
    fn write_beside(
        &mut self,
        cdr: &[u8],
        now: impl Fn() -> Instant,
        open: &mut impl FnMut(&W, u32) -> Result<W, Error>,
    ) -> Result<(), Error> {
        let Some(spare) = &self.spare else {
            return self.own.write(cdr);
        };
        let written = spare.writer.write(cdr);
        if !written.as_ref().is_err_and(is_vain) {
            return written;
        }
        let (now, readers) = (now(), spare.writer.readers());
        if self.next.is_none() {
            self.next = spare.next(&self.own, now, open);
        }
        let Some(next) = self.next.take_if(|next| next.is_ready(now, readers)) else {
            return written;
        };
        let written = next.writer.write(cdr);
        self.next = next.next(&self.own, now, open);
        self.spare = Some(next);
        written
    }
}

fn is_vain(error: &Error) -> bool {
    matches!(
        error,
        Error::Dds {
            code: ReturnCode::Timeout | ReturnCode::OutOfResources,
            ..
        }
    )
}

#[cfg(test)]
mod tests;
