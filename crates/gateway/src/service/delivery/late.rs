//! What a part that is behind has to be sent: the trades that its subscription holds, and the
//! snapshot.

use crate::fanout::hole::{Hole, Missing, NEWS};
use crate::service::bodies::BodyId;
use crate::service::class::{Part, trades_after};
use crate::service::classes::{NOWHERE, Place};
use crate::service::client::{self, Untold};
use crate::service::{Core, messages};
use fanfare_fix::codec::FieldWriter;
use fanfare_market::instruments::Directory;
use fanfare_market::{Event, InstrumentId};

/// The most trades of one message to a session that was behind.
const TRADES: usize = 64;

/// A part of a session that is behind, and its place in a class.
#[derive(Clone, Copy)]
pub(super) struct Late {
    pub(super) session: u32,
    pub(super) part: Part,
    place: Place,
}

/// The next message of a part that is behind.
pub(super) enum Next {
    /// What it has to be sent before the snapshot.
    Held(Held),
    /// The trading status or the announcement of skipped messages, and the snapshot.
    Snapshot(Option<BodyId>, BodyId),
}

/// A message with trades that a subscription holds, or with the number of those that it does not.
pub(in crate::service) struct Held {
    pub(in crate::service) body: BodyId,
    /// The number of trades, or 0 for those that exceeded the capacity.
    pub(in crate::service) trades: usize,
}

impl Core {
    /// Returns a part whose snapshot is queued with its place, if it is to be sent now.
    pub(super) fn unqueue(&mut self, session: u32, part: Part) -> Option<Late> {
        let client = self.client(session)?;
        let place = client.place(part)?;
        let is_of_status = client.get(part.subscription)?.is_of_status();
        let link = self.classes.link_mut(place)?;
        link.is_queued = false;
        let is_wanted = link.is_behind && !is_of_status;
        let class = self.classes.get(place.class)?;
        let seen = self.view.get(class.instrument)?;
        // The update that is due queues it again.
        let waits = class.is_due && (class.spec.by_order || class.is_cleared);
        let is_ready = is_wanted && seen.has_snapshot() && !waits;
        is_ready.then_some(Late {
            session,
            part,
            place,
        })
    }

    /// Queues a part whose snapshot was to be sent again, in front of the others.
    pub(super) fn requeue(&mut self, late: Late) {
        if let Some(link) = self.classes.link_mut(late.place) {
            link.is_queued = true;
        }
        self.put_off(late.session, late.part);
    }

    /// Encodes the next message of a part that is behind. Returns `None` if its snapshot is too
    /// long.
    pub(super) fn next_of_part(
        &mut self,
        late: Late,
        nanos: i64,
        directory: &Directory,
    ) -> Option<Next> {
        let Late {
            session,
            part,
            place,
        } = late;
        let version = self.client(session)?.version;
        let class = self.classes.get(place.class)?;
        let (instrument, last) = (class.instrument, class.rpt_seq);
        let link = self.classes.link(place)?;
        let (first, owes_status) = (link.missed, link.owes_status);
        // Trades that do not fit into it are announced first.
        let snapshot = self.snapshot_of_held(session, part, place.class, directory);
        if let Some(held) = self.held(session, part, instrument, nanos, directory) {
            return Some(Next::Held(held));
        }
        let snapshot = match snapshot {
            Some(snapshot) => snapshot,
            None => self.snapshot(place.class, version, directory)?,
        };
        let missed = (first != 0).then(|| Hole {
            first: first.into(),
            last: last.into(),
            ..Hole::new(
                Missing::SlowConsumer,
                u64::from(last.wrapping_sub(first)) + 1,
                nanos,
            )
        });
        let before = match missed {
            Some(hole) => self.missing(session, part, instrument, &hole, directory),
            // The first snapshot, before which nothing is skipped.
            None if owes_status => self.news(Untold::Status(instrument), version, directory),
            None => None,
        };
        Some(Next::Snapshot(before, snapshot))
    }

    /// Encodes the snapshot of a part whose updates are snapshots, with the trades that the
    /// subscription holds of the instrument, if there are any. If they do not fit, the older ones
    /// are counted with those that exceeded the capacity.
    pub(in crate::service) fn snapshot_of_held(
        &mut self,
        session: u32,
        part: Part,
        number: u32,
        directory: &Directory,
    ) -> Option<BodyId> {
        let class = self.classes.get(number)?;
        let instrument = class.instrument;
        if !class.spec.snapshots {
            return None;
        }
        loop {
            let client = client::at(&self.clients, session)?;
            let version = client.version;
            let all = client.get(part.subscription)?.trades.iter();
            let of_part = all.filter(|event| event.instrument == instrument);
            trades_after(of_part, &mut self.scratch.trades);
            if self.scratch.trades.is_empty() {
                return None;
            }
            if let Some(body) = self.put_snapshot(number, version, directory) {
                return Some(body);
            }
            let own = self.client_mut(session)?.get_mut(part.subscription)?;
            own.leave_out_half(|event| event.instrument == instrument);
        }
    }

    /// Encodes the announcement of missed messages of a part.
    fn missing(
        &mut self,
        session: u32,
        part: Part,
        instrument: InstrumentId,
        hole: &Hole,
        directory: &Directory,
    ) -> Option<BodyId> {
        let client = client::at(&self.clients, session)?;
        let own = client.get(part.subscription)?;
        let writer = self.writers.get(client.version)?;
        let feed = self.feeds.told(self.view.get(instrument));
        let body = self.bodies.put(NEWS, (0, 0), |out| {
            messages::put_feed(feed, out);
            messages::missing(writer, directory, instrument, own.request(), hole, out);
            Ok(())
        });
        body.ok()
    }

    /// Encodes what a subscription that is behind has to be sent before the snapshot: the trades
    /// that are queued, if its updates are changes, and the number of those that exceeded the
    /// capacity.
    pub(in crate::service) fn held(
        &mut self,
        session: u32,
        part: Part,
        instrument: InstrumentId,
        nanos: i64,
        directory: &Directory,
    ) -> Option<Held> {
        if let Some(held) = self.held_trades(session, part, directory) {
            return Some(held);
        }
        let own = self.client(session)?.get(part.subscription)?;
        let left_out = own.trades_left_out;
        if left_out == 0 {
            return None;
        }
        let hole = Hole::new(Missing::Trades, left_out, nanos);
        let body = self.missing(session, part, instrument, &hole, directory)?;
        Some(Held { body, trades: 0 })
    }

    /// Encodes the next trades that a subscription holds, as many as fit into a message. One that
    /// does not fit is counted with those that exceeded the capacity.
    fn held_trades(&mut self, session: u32, part: Part, directory: &Directory) -> Option<Held> {
        let Self {
            clients,
            writers,
            bodies,
            feeds,
            view,
            scratch,
            ..
        } = self;
        let client = client::at_mut(clients, session)?;
        let writer = writers.get(client.version)?;
        let own = client.get_mut(part.subscription)?;
        if own.spec.snapshots {
            return None;
        }
        let mut most = TRADES;
        while !own.trades.is_empty() {
            let trades = own.trades.get(..most).unwrap_or(&own.trades);
            let (trades, feed) = feeds.alike(view, trades);
            let count = trades.len();
            let write = |events: &[Event], out: &mut FieldWriter<'_>| {
                messages::put_feed(feed, out);
                writer.to_fix.changes(directory, b"", events, out)
            };
            let sayable = &mut scratch.sayable;
            messages::sayable(trades, sayable, write);
            // Trades that the version cannot express were not requested.
            if !sayable.is_empty()
                && let Ok(body) = bodies.put(b"X", (0, 0), |out| write(sayable, out))
            {
                let trades = count;
                return Some(Held { body, trades });
            }
            if sayable.len() > 1 {
                most = count / 2;
                continue;
            }
            own.trades_left_out += sayable.len() as u64;
            own.trades.drain(..count);
        }
        None
    }

    /// Records that what a subscription held was sent.
    pub(in crate::service) fn sent_held(&mut self, session: u32, part: Part, held: &Held) {
        let client = self.client_mut(session);
        let Some(own) = client.and_then(|client| client.get_mut(part.subscription)) else {
            return;
        };
        match held.trades {
            0 => own.trades_left_out = 0,
            count => drop(own.trades.drain(..count.min(own.trades.len()))),
        }
    }

    /// Records that a part has received its snapshot. Without updates, it is complete.
    pub(super) fn served(&mut self, late: Late) {
        let Late {
            session,
            part,
            place,
        } = late;
        if let Some(link) = self.classes.link_mut(place) {
            (link.is_behind, link.missed, link.is_served) = (false, 0, true);
            link.owes_status = false;
        }
        let class = self.classes.get(place.class);
        let instrument = class.map(|class| class.instrument);
        let Some(own) = self
            .client_mut(session)
            .and_then(|client| client.get_mut(part.subscription))
        else {
            return;
        };
        if own.goes_on {
            if own.spec.snapshots {
                // The snapshot has them.
                own.trades
                    .retain(|event| Some(event.instrument) != instrument);
            }
            return;
        }
        own.unserved = own.unserved.saturating_sub(1);
        let is_done = own.unserved == 0 && own.growing.is_none();
        let place = own.places.get_mut(part.entry as usize);
        if let Some(place) = place.map(|place| std::mem::replace(place, NOWHERE)) {
            self.leave(place);
        }
        if is_done {
            self.stop(session, part.subscription);
        }
    }
}
