//! The entry of a source's messages into the gateway: the writing ends of its ring to the workers
//! and of its ring to DDS.

use crate::dds::entry::{self, Entry};
use crate::fanout::hole::{self, Hole};
use crate::fanout::record;
use crate::fanout::stamp::Stamp;
use crate::fanout::versions;
use crate::stages::{Mark, Pending, SourceStages};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, WriteError};
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;

/// The writing ends of one source. Every source has rings of its own, because a ring has one
/// writer.
pub(crate) struct SourceRings {
    ring: Broadcast,
    /// The ring to DDS. Unread messages are overwritten, so that DDS never holds up a source.
    dds: Option<Broadcast>,
    /// The wakers of the reading threads, if they are other threads.
    wakers: Vec<Waker>,
    wrote: bool,
    /// The mark of the next message in each ring, if it is measured.
    mark: Pending,
    dds_mark: Pending,
}

/// The outcome of writing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Done,
    /// The workers are behind: the caller tries again.
    Full,
    /// The message is too long for the ring.
    TooLong,
}

impl SourceRings {
    pub(crate) fn new(ring: Broadcast, dds: Option<Broadcast>, wakers: Vec<Waker>) -> Self {
        Self {
            ring,
            dds,
            wakers,
            wrote: false,
            mark: Pending::default(),
            dds_mark: Pending::default(),
        }
    }

    /// Returns whether messages read from this many bytes can be put now.
    pub(crate) fn has_room(&mut self, bytes: usize) -> bool {
        self.ring.has_room(bytes + Mark::SIZE)
    }

    /// Marks the next message for measurement, with its time of arrival.
    pub(crate) const fn mark(&mut self, arrived: u64) {
        self.mark.set(arrived);
        self.dds_mark.set(arrived);
    }

    /// Returns when the measured message was written, if it was. The next message is not measured.
    pub(crate) fn end_mark(&mut self) -> Option<u64> {
        let to_dds = self.dds_mark.end();
        self.mark.end().or(to_dds)
    }

    /// Returns whether the key is needed, which only DDS uses.
    pub(crate) fn wants_symbol(&self) -> bool {
        self.dds.is_some()
    }

    /// Writes a message for sessions of all versions to the ring of the workers, and to the ring of
    /// DDS if there is one. Does not allocate.
    pub(crate) fn put(&mut self, body: &SharedBody<'_>, stamp: Stamp<'_>) -> Put {
        let put = self.put_for(versions::ALL, body);
        if put == Put::Done {
            self.put_to_dds(body, stamp);
        }
        put
    }

    /// Writes a message as `put` does, in the turn that began at `now`. The first message of a turn
    /// is measured.
    pub(crate) fn put_measured(
        &mut self,
        stages: &mut Option<SourceStages>,
        now: Now,
        body: &SharedBody<'_>,
        stamp: Stamp<'_>,
    ) -> Put {
        let Some(stages) = stages else {
            return self.put(body, stamp);
        };
        if let Some(arrived) = stages.unstamped_message(now) {
            self.mark(arrived);
        }
        let put = self.put(body, stamp);
        stages.end_decode(self.end_mark());
        put
    }

    /// Writes a message for sessions of these versions to the ring of the workers. Does not
    /// allocate.
    pub(crate) fn put_for(&mut self, versions: u32, body: &SharedBody<'_>) -> Put {
        let mark = self.mark.make();
        let (marked, more) = Mark::of_record(mark);
        let len = record::len(body) + more;
        let written = self.ring.write(versions | marked, len, |room| {
            record::write(body, Mark::write(mark, room));
        });
        match written {
            Ok(_) => self.wrote = true,
            Err(WriteError::Full) => return Put::Full,
            Err(_) => return Put::TooLong,
        }
        Put::Done
    }

    /// Writes a message to the ring of DDS, if there is one. Does not allocate.
    pub(crate) fn put_to_dds(&mut self, body: &SharedBody<'_>, stamp: Stamp<'_>) {
        if let Some(dds) = &mut self.dds {
            let entry = Entry { stamp, body: *body };
            // The ring is as long as the ring to the workers, so every message fits, except for the
            // few bytes more of a message half as long as the ring, which the configuration
            // excludes.
            let mark = self.dds_mark.make();
            let (kind, more) = Mark::of_record(mark);
            let _ = dds.write(kind, entry::len(&entry) + more, |room| {
                entry::write(&entry, Mark::write(mark, room));
            });
            self.wrote = true;
        }
    }

    /// Writes a hole after the last message to the ring of the workers. Does not allocate.
    pub(crate) fn put_hole(&mut self, hole: &Hole) -> Put {
        self.put_hole_for(versions::ALL, hole)
    }

    /// Writes a hole as `put_hole` does, for sessions of these versions.
    pub(crate) fn put_hole_for(&mut self, versions: u32, hole: &Hole) -> Put {
        let kind = hole::HOLE | versions;
        let written = self.ring.write(kind, hole::RECORD, |room| hole.write(room));
        match written {
            Ok(_) => self.wrote = true,
            Err(WriteError::Full) => return Put::Full,
            Err(_) => return Put::TooLong,
        }
        Put::Done
    }

    /// Wakes the reading threads, once for all messages of a turn.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.wrote) {
            self.wakers.iter().for_each(Waker::wake);
        }
    }
}
