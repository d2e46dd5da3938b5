//! What an edge takes and counts.

use crate::event::{Event, InstrumentId};
use crate::follower::FollowerConfig;
use crate::instruments::Instrument;
use fanfare_feed::arbiter::ArbiterConfig;

/// The configuration of an edge.
#[derive(Debug, Clone)]
pub struct EdgeConfig {
    /// The books, numbers and limits, without a replay.
    pub follower: FollowerConfig,
    /// The arbitration of messages of several plants.
    pub arbiter: ArbiterConfig,
}

/// The counts of an edge, besides those of its arbiter and its market.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeStats {
    /// Plants beyond the limit.
    pub refused: u64,
    /// Packets of plants that do not know the same instruments as the leading one.
    pub not_covered: u64,
    /// Packets with an instrument that their plant had not named.
    pub unknown: u64,
    /// Packets of a plant that has not restarted while another one has.
    pub of_another_time: u64,
    /// Messages up to the position of a plant that none had delivered of those that count, once all
    /// of them had passed it.
    pub undelivered: u64,
}

/// A plant's snapshot of one instrument.
#[derive(Debug, Clone, Copy)]
pub struct Relayed<'a> {
    /// The instrument in the form of [`Instrument::write`], with the plant's number, and marked by
    /// [`Self::mark`].
    pub instrument: &'a [u8],
    /// Whether it is no longer traded.
    pub is_closed: bool,
    /// LastMsgSeqNumProcessed(369): the last message of the channel that the book contains, or
    /// `None` if there was none.
    pub last: Option<u32>,
    /// The time at which the snapshot was made, in nanoseconds since 1970-01-01 UTC. It becomes the
    /// time of arrival of its definition, status and events that have none.
    pub received: u64,
    /// A Clear, the book, and the last values, or empty if the book is not complete.
    pub events: &'a [Event],
}

impl Relayed<'_> {
    /// Writes into the instrument of a snapshot how often the channel had restarted at the plant
    /// when the snapshot was made ([`Follower::restarts`](crate::Follower::restarts)). Versions up
    /// to 0.3.0 leave it out, and ignore it.
    pub fn mark(instrument: &mut [u8], restarts: u16) {
        Instrument::set_mark(instrument, u32::from(restarts) + 1);
    }

    /// Returns how often the channel had restarted at the plant, or `None` if that is not known.
    pub(super) fn restarts(&self) -> Option<u16> {
        let mark = Instrument::mark(self.instrument);
        u16::try_from(mark.checked_sub(1)?).ok()
    }

    /// Returns the events with the edge's number of their instrument. Those without a time of
    /// arrival have the snapshot's.
    pub(super) fn events_of(&self, instrument: InstrumentId) -> impl Iterator<Item = Event> {
        self.events.iter().map(move |event| Event {
            instrument,
            ts_recv: match event.ts_recv {
                0 | Event::NO_TIME => self.received,
                own => own,
            },
            ..*event
        })
    }
}
