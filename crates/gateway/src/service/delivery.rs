//! The delivery of a turn's messages to the connections by the contract of each subscription, and
//! of snapshots to sessions that are behind.

use super::bodies::{Bodies, BodyId};
use super::class::{Part, trades_after};
use super::classes::{NOWHERE, Place};
use super::client::{self, Client, Of, Out, Untold};
use super::contract::Contract;
use super::request::{NONE_MATCHES, reason};
use super::share::Share;
use super::{Core, Turn, messages};
use crate::fanout::batch::{ENVELOPE, Outgoing, Times, end_of};
use crate::fanout::hole::{Hole, Missing, NEWS};
use crate::notice::PeerEnd;
use fanfare_engine::host::{Peer, Peers};
use fanfare_fix::codec::{FieldWriter, SendingTime};
use fanfare_market::instruments::Directory;
use fanfare_market::{Event, InstrumentId};

/// The most bytes queued for a session at which its conflated subscriptions are still sent updates,
/// because queued updates become stale.
const CONFLATED_ROOM: usize = 1 << 14;

/// The most trades of one message to a session that was behind.
const TRADES: usize = 64;

/// A part of a session that is behind, and its place in a class.
#[derive(Clone, Copy)]
struct Late {
    session: u32,
    part: Part,
    place: Place,
}

/// The next message of a part that is behind.
enum Next {
    /// What it has to be sent before the snapshot.
    Held(Held),
    /// The trading status or the announcement of skipped messages, and the snapshot.
    Snapshot(Option<BodyId>, BodyId),
}

/// A message with trades that a subscription holds, or with the number of those that it does not.
pub(super) struct Held {
    pub(super) body: BodyId,
    /// The number of trades, or 0 for those that exceeded the capacity.
    pub(super) trades: usize,
}

/// The sender of messages to the sessions.
pub(super) struct Sender {
    outgoing: Outgoing,
    limit: usize,
}

impl Sender {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            outgoing: Outgoing::new(),
            limit,
        }
    }

    /// Returns the most bytes that may be queued for one session.
    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    /// Sends the messages of this turn. Returns their number.
    pub(super) fn deliver(
        &mut self,
        core: &mut Core,
        peers: &mut Peers<'_>,
        turn: &mut Turn,
    ) -> usize {
        let mut times = Times::at(peers.now());
        let mut touched = std::mem::take(&mut core.touched);
        let mut sent = 0;
        for session in touched.drain(..) {
            let Some(client) = core.client_mut(session) else {
                continue;
            };
            let key = client.key;
            let mut outbox = std::mem::take(&mut client.outbox);
            if let Some(mut peer) = peers.get(key).filter(Peer::is_logged_on) {
                let time = times.with(peer.config().precision);
                match self.deliver_to(core, &mut peer, session, &outbox, &time, turn) {
                    Ok(count) => sent += count,
                    Err(end) => turn.ends.push((key, end)),
                }
            }
            outbox.clear();
            if let Some(client) = core.client_mut(session) {
                client.outbox = outbox;
            }
        }
        core.touched = touched;
        turn.sent += sent;
        sent
    }

    fn deliver_to(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        session: u32,
        outbox: &[Out],
        time: &SendingTime,
        turn: &mut Turn,
    ) -> Result<usize, PeerEnd> {
        let is_behind = peer.queued() > CONFLATED_ROOM;
        if is_behind {
            core.conflate(session, outbox);
        }
        let Some(client) = core.client(session) else {
            return Ok(0);
        };
        let (mut rest, mut sent) = (outbox, 0);
        while !rest.is_empty() {
            let (count, end) =
                self.write_some(&core.bodies, client, peer, rest, is_behind, time)?;
            if count == 0 {
                break;
            }
            sent += count;
            rest = rest.get(end..).unwrap_or_default();
        }
        if !rest.is_empty() {
            core.leave_out(session, rest, is_behind, peer, &mut turn.skipped)?;
        }
        Ok(sent)
    }

    /// Sends as many messages as are certain to fit into the queue, in one send, without
    /// those of conflated subscriptions if the session is behind. Returns their number, and the
    /// index after the last.
    fn write_some(
        &mut self,
        bodies: &Bodies,
        client: &Client,
        peer: &mut Peer<'_>,
        outbox: &[Out],
        is_behind: bool,
        time: &SendingTime,
    ) -> Result<(usize, usize), PeerEnd> {
        let wanted = outbox.iter().enumerate();
        let wanted = wanted.filter(|(_, out)| !(is_behind && client.conflates(out)));
        // Messages of a subscription that has ended in the meantime are not sent.
        let bodies = wanted.filter_map(|(at, out)| {
            let lead: &[u8] = match out.of {
                Of::Part(part) => &client.get(part.subscription)?.lead,
                Of::Told(_) => b"",
            };
            let (_, body) = bodies.get(out.body)?;
            Some((at, body.led_by(lead).ok()?))
        });
        let (count, last) = self.outgoing.send(peer, self.limit, time, bodies)?;
        Ok((count, last.map_or(0, |last| last + 1)))
    }

    /// Sends snapshots and other pending messages to sessions that are behind and whose queues have
    /// capacity. Returns the amount of work done.
    pub(super) fn catch_up(
        &mut self,
        core: &mut Core,
        peers: &mut Peers<'_>,
        directory: &Directory,
        turn: &mut Turn,
    ) -> usize {
        let mut times = Times::at(peers.now());
        let mut waiting = std::mem::take(&mut core.waiting);
        let whole = core.share;
        let mut share = whole;
        // The session that comes first now comes last in the next turn.
        let first = waiting.len().min(1);
        waiting.rotate_left(first);
        waiting.retain(|&session| {
            let Some(client) = core.client_mut(session) else {
                return false;
            };
            let key = client.key;
            let Some(mut peer) = peers.get(key).filter(Peer::is_logged_on) else {
                return true;
            };
            let time = times.with(peer.config().precision);
            // What is sent now would overtake a resend.
            while share.messages > 0 && !peer.is_resending() && peer.queued() <= self.limit / 2 {
                let sent = peer.make_room().map_err(end_of).and_then(|()| {
                    self.catch_up_one(core, &mut peer, session, directory, &time, &mut share)
                });
                match sent {
                    Ok(0) => break,
                    Ok(count) => {
                        share.messages -= 1;
                        turn.sent += count;
                    }
                    Err(end) => {
                        turn.ends.push((key, end));
                        break;
                    }
                }
            }
            let Some(client) = core.client_mut(session) else {
                return false;
            };
            client.is_waiting = client.has_to_catch_up();
            client.is_waiting
        });
        waiting.append(&mut core.waiting);
        core.waiting = waiting;
        whole.messages - share.messages + (whole.looks - share.looks)
    }

    /// Sends the next pending message of a session, half of whose queue is free, so that any one
    /// message fits. Lists and snapshots alternate. Snapshots go on where a list must wait. Where a
    /// snapshot must wait, one message of a list goes before it. Returns the number of messages, or
    /// 0 if none is pending, or if all must wait: for room, or for a turn whose share has more
    /// left.
    fn catch_up_one(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        session: u32,
        directory: &Directory,
        time: &SendingTime,
        share: &mut Share,
    ) -> Result<usize, PeerEnd> {
        match core.next_untold(session, directory, share) {
            Some((why @ (Untold::TooMany(number) | Untold::NoneFound(number)), _)) => {
                core.refuse(peer, session, number, why);
                return Ok(1);
            }
            Some((_, body)) => {
                let ids = body.as_slice();
                return self.send_all(&core.bodies, peer, ids, b"", time);
            }
            None if core.has_untold(session) => return Ok(0),
            None => {}
        }
        let lists_first = core.client(session).is_some_and(|own| !own.has_listed);
        for is_of_list in [lists_first, !lists_first] {
            let sent = match is_of_list {
                true => self.catch_up_list(core, peer, session, directory, time, share)?,
                false => self.catch_up_next(core, peer, session, directory, time)?,
            };
            if sent > 0 {
                if let Some(client) = core.client_mut(session) {
                    client.has_listed = is_of_list;
                }
                return Ok(sent);
            }
            // A snapshot that waits for room would wait for the end of the list.
            if !is_of_list && core.list_waits(session) {
                return Ok(0);
            }
        }
        Ok(0)
    }

    /// Sends the next message of a session's first list. Returns 1, or 0 if there is no list, or if
    /// it must wait.
    fn catch_up_list(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        session: u32,
        directory: &Directory,
        time: &SendingTime,
        share: &mut Share,
    ) -> Result<usize, PeerEnd> {
        while let Some(page) = core.page(session, directory, share) {
            if let Some(body) = page {
                return self.send_all(&core.bodies, peer, &[body], b"", time);
            }
        }
        Ok(0)
    }

    /// Sends the next message of a session's first part that is behind. Returns the number of
    /// messages, or 0 if there is none, or if it must wait.
    fn catch_up_next(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        session: u32,
        directory: &Directory,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        loop {
            let client = core.client_mut(session);
            let Some(part) = client.and_then(|client| client.behind.pop_front()) else {
                return Ok(0);
            };
            let is_conflated = core.has_conflated(session, part);
            if is_conflated && peer.queued() > CONFLATED_ROOM / 2 {
                core.put_off(session, part);
                return Ok(0);
            }
            let Some(late) = core.unqueue(session, part) else {
                continue;
            };
            let sent = self.catch_up_part(core, peer, late, directory, time)?;
            if sent == 0 {
                core.requeue(late);
            }
            return Ok(sent);
        }
    }

    /// Sends bodies, those of market data with a lead, if all of them fit into the queue. Returns
    /// their number, or 0.
    fn send_all(
        &mut self,
        bodies: &Bodies,
        peer: &mut Peer<'_>,
        ids: &[BodyId],
        lead: &[u8],
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let found = ids.iter().filter_map(|id| {
            let (body, shared) = bodies.get(*id)?;
            let lead = if body.has_request() { lead } else { b"" };
            shared.led_by(lead).ok()
        });
        let needed = found.clone().map(|body| body.fields().len() + ENVELOPE);
        if needed.sum::<usize>() > self.limit.saturating_sub(peer.queued()) {
            return Ok(0);
        }
        let mut sent = 0;
        for body in found {
            let one = std::iter::once((0, body));
            sent += self.outgoing.send(peer, self.limit, time, one)?.0;
        }
        Ok(sent)
    }

    /// Sends the next message of a part that is behind: its queued trades, or the snapshot after
    /// the trading status or the announcement of skipped messages. Returns the number of messages,
    /// or 0 if they must wait.
    fn catch_up_part(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        late: Late,
        directory: &Directory,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let Late { session, part, .. } = late;
        let nanos = peer.now().utc.nanos();
        let Some(next) = core.next_of_part(late, nanos, directory) else {
            core.refuse_part(peer, session, part);
            return Ok(1);
        };
        let client = core.client(session);
        let Some(own) = client.and_then(|client| client.get(part.subscription)) else {
            return Ok(0);
        };
        let ids: &[BodyId] = match &next {
            Next::Held(held) => &[held.body],
            Next::Snapshot(None, picture) => &[*picture],
            Next::Snapshot(Some(before), picture) => &[*before, *picture],
        };
        let sent = self.send_all(&core.bodies, peer, ids, &own.lead, time)?;
        match next {
            _ if sent < ids.len() => return Ok(0),
            Next::Held(held) => {
                core.sent_held(session, part, &held);
                core.requeue(late);
            }
            Next::Snapshot(..) => core.served(late),
        }
        Ok(sent)
    }
}

impl Core {
    /// Marks the conflated subscriptions of a session that is behind, so that they receive
    /// snapshots.
    fn conflate(&mut self, session: u32, outbox: &[Out]) {
        for out in outbox {
            let Some(client) = client::at_mut(&mut self.clients, session) else {
                return;
            };
            if let Of::Part(part) = out.of
                && client.conflates(out)
                && let Some(place) = client.place(part)
                && let Some(own) = client.get_mut(part.subscription)
            {
                own.hold_trades(self.bodies.trades(out.body));
                client.count_conflated(part.subscription);
                self.fall_behind(place);
            }
        }
    }

    /// Returns whether the next message of a session's lists must wait for a snapshot.
    fn list_waits(&self, session: u32) -> bool {
        let client = self.client(session);
        client.is_some_and(|client| client.has_listed && !client.behind.is_empty())
    }

    fn has_conflated(&self, session: u32, part: Part) -> bool {
        let client = self.client(session);
        let own = client.and_then(|client| client.get(part.subscription));
        own.is_some_and(|own| own.contract == Contract::Conflated)
    }

    /// Queues a part again, in front of the others.
    fn put_off(&mut self, session: u32, part: Part) {
        if let Some(client) = self.client_mut(session) {
            client.behind.push_front(part);
        }
    }

    /// Handles messages that did not fit into the queue: by contract, the session ends or its
    /// subscriptions fall behind. Adds the updates that are skipped to `skipped`.
    fn leave_out(
        &mut self,
        session: u32,
        rest: &[Out],
        is_behind: bool,
        peer: &Peer<'_>,
        skipped: &mut u64,
    ) -> Result<(), PeerEnd> {
        for out in rest {
            let Some(client) = self.client_mut(session) else {
                return Ok(());
            };
            let part = match out.of {
                Of::Part(part) => part,
                Of::Told(untold) => {
                    client.untold.insert(untold);
                    self.wait(session);
                    continue;
                }
            };
            let Some(own) = client.get(part.subscription) else {
                continue;
            };
            match own.contract {
                // A client that asked for a resend is not slow.
                Contract::Cut if peer.is_resending() => {}
                Contract::Cut => {
                    let queued = peer.queued();
                    return Err(PeerEnd::SlowConsumer { queued });
                }
                // A part that is behind was recorded before.
                Contract::Conflated if is_behind => continue,
                Contract::Conflated => {
                    self.conflate(session, std::slice::from_ref(out));
                    continue;
                }
                Contract::Skip => {}
            }
            if let Some(place) = client.place(part) {
                client.count_skipped(part.subscription);
                *skipped += 1;
                self.skip(place, out.body);
            }
        }
        Ok(())
    }

    /// Skips a message of a part: the range from its first entry on is announced, and a snapshot
    /// follows, which has the trades if the message is one, too.
    pub(super) fn skip(&mut self, place: Place, id: BodyId) {
        let body = self.bodies.get(id);
        let first = body.map_or(0, |(body, _)| body.numbers.0);
        let Some(link) = self.classes.link_mut(place) else {
            return;
        };
        if link.missed == 0 {
            link.missed = first;
        }
        let client = client::at_mut(&mut self.clients, link.session);
        if let Some(own) = client.and_then(|client| client.get_mut(link.subscription))
            && own.spec.pictures
        {
            own.hold_trades(self.bodies.trades(id));
        }
        self.fall_behind(place);
    }

    /// Returns a part whose snapshot is queued with its place, if it is to be sent now.
    fn unqueue(&mut self, session: u32, part: Part) -> Option<Late> {
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
        let is_ready = is_wanted && seen.has_picture() && !waits;
        is_ready.then_some(Late {
            session,
            part,
            place,
        })
    }

    /// Queues a part whose snapshot was to be sent again, in front of the others.
    fn requeue(&mut self, late: Late) {
        if let Some(link) = self.classes.link_mut(late.place) {
            link.is_queued = true;
        }
        self.put_off(late.session, late.part);
    }

    /// Encodes the next message of a part that is behind. Returns `None` if its snapshot is too
    /// long.
    fn next_of_part(&mut self, late: Late, nanos: i64, directory: &Directory) -> Option<Next> {
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
        let picture = self.picture_of_held(session, part, place.class, directory);
        if let Some(held) = self.held(session, part, instrument, nanos, directory) {
            return Some(Next::Held(held));
        }
        let picture = match picture {
            Some(picture) => picture,
            None => self.picture(place.class, version, directory)?,
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
        Some(Next::Snapshot(before, picture))
    }

    /// Encodes the snapshot of a part whose updates are snapshots, with the trades that the
    /// subscription holds of the instrument, if there are any. If they do not fit, the older ones
    /// are counted with those that exceeded the capacity.
    pub(super) fn picture_of_held(
        &mut self,
        session: u32,
        part: Part,
        number: u32,
        directory: &Directory,
    ) -> Option<BodyId> {
        let class = self.classes.get(number)?;
        let instrument = class.instrument;
        if !class.spec.pictures {
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
            if let Some(body) = self.put_picture(number, version, directory) {
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
    pub(super) fn held(
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
        if own.spec.pictures {
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
    pub(super) fn sent_held(&mut self, session: u32, part: Part, held: &Held) {
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
    fn served(&mut self, late: Late) {
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
            if own.spec.pictures {
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

    /// Refuses a subscription after its patterns were looked up: it has more instruments than the
    /// session may have, or none.
    fn refuse(&mut self, peer: &mut Peer<'_>, session: u32, number: u32, why: Untold) {
        let Some(client) = self.client(session) else {
            return;
        };
        let most = client.grant.subscriptions;
        let Some(own) = client.get(number) else {
            return;
        };
        let (reason, text) = match why {
            Untold::NoneFound(_) => (reason::UNKNOWN_SYMBOL, NONE_MATCHES.to_owned()),
            _ => {
                let text = "instruments at a time: the subscription has ended";
                (reason::BANDWIDTH, format!("at most {most} {text}"))
            }
        };
        super::replies::refuse(peer, own.request(), Some(reason), &text);
        self.stop(session, number);
    }

    /// Refuses a subscription whose snapshot does not fit into a message.
    fn refuse_part(&mut self, peer: &mut Peer<'_>, session: u32, part: Part) {
        let client = self.client(session);
        let Some(own) = client.and_then(|client| client.get(part.subscription)) else {
            return;
        };
        let text = "the snapshot is too long for a message: request a lower MarketDepth(264)";
        super::replies::refuse(peer, own.request(), Some(reason::DEPTH), text);
        self.stop(session, part.subscription);
    }
}

#[cfg(test)]
mod tests;
