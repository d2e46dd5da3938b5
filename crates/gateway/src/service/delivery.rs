//! The delivery of a turn's messages to the connections by the contract of each subscription, and
//! of snapshots to sessions that are behind.

mod late;

use super::bodies::{Bodies, BodyId};
use super::class::Part;
use super::classes::Place;
use super::client::{self, Client, Of, Out, Untold};
use super::contract::Contract;
use super::request::{NONE_MATCHES, reason};
use super::share::Share;
use super::{Core, Turn};
use crate::fanout::batch::{ENVELOPE, Outgoing, Times, end_of};
use crate::notice::PeerEnd;
use fanfare_engine::host::{Peer, Peers};
use fanfare_fix::codec::SendingTime;
use fanfare_market::instruments::Directory;
use late::{Late, Next};

/// The most bytes queued for a session at which its conflated subscriptions are still sent updates,
/// because queued updates become stale.
const CONFLATED_ROOM: usize = 1 << 14;

/// The sender of messages to the sessions.
pub(super) struct Sender {
    outgoing: Outgoing,
    limit: usize,
}

/// A session that catches up.
struct CatchUp<'a, 'p> {
    core: &'a mut Core,
    peer: &'a mut Peer<'p>,
    session: u32,
    directory: &'a Directory,
    time: &'a SendingTime,
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
            let mut on = CatchUp {
                core: &mut *core,
                peer: &mut peer,
                session,
                directory,
                time: &time,
            };
            // What is sent now would overtake a resend.
            while share.messages > 0
                && !on.peer.is_resending()
                && on.peer.queued() <= self.limit / 2
            {
                let room = on.peer.make_room().map_err(end_of);
                match room.and_then(|()| self.catch_up_one(&mut on, &mut share)) {
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
        on: &mut CatchUp<'_, '_>,
        share: &mut Share,
    ) -> Result<usize, PeerEnd> {
        let session = on.session;
        match on.core.next_untold(session, on.directory, share) {
            Some((why @ (Untold::TooMany(number) | Untold::NoneFound(number)), _)) => {
                on.core.refuse(on.peer, session, number, why);
                return Ok(1);
            }
            Some((_, body)) => {
                let ids = body.as_slice();
                return self.send_all(&on.core.bodies, on.peer, ids, b"", on.time);
            }
            None if on.core.has_untold(session) => return Ok(0),
            None => {}
        }
        let client = on.core.client(session);
        let lists_first = client.is_some_and(|client| !client.has_listed);
        for is_of_list in [lists_first, !lists_first] {
            let sent = match is_of_list {
                true => self.catch_up_list(on, share)?,
                false => self.catch_up_next(on)?,
            };
            if sent > 0 {
                if let Some(client) = on.core.client_mut(session) {
                    client.has_listed = is_of_list;
                }
                return Ok(sent);
            }
            // A snapshot that waits for room would wait for the end of the list.
            if !is_of_list && on.core.list_waits(session) {
                return Ok(0);
            }
        }
        Ok(0)
    }

    /// Sends the next message of a session's first list. Returns 1, or 0 if there is no list, or if
    /// it must wait.
    fn catch_up_list(
        &mut self,
        on: &mut CatchUp<'_, '_>,
        share: &mut Share,
    ) -> Result<usize, PeerEnd> {
        while let Some(page) = on.core.page(on.session, on.directory, share) {
            if let Some(body) = page {
                return self.send_all(&on.core.bodies, on.peer, &[body], b"", on.time);
            }
        }
        Ok(0)
    }

    /// Sends the next message of a session's first part that is behind. Returns the number of
    /// messages, or 0 if there is none, or if it must wait.
    fn catch_up_next(&mut self, on: &mut CatchUp<'_, '_>) -> Result<usize, PeerEnd> {
        let session = on.session;
        loop {
            let client = on.core.client_mut(session);
            let Some(part) = client.and_then(|client| client.behind.pop_front()) else {
                return Ok(0);
            };
            let is_conflated = on.core.has_conflated(session, part);
            if is_conflated && on.peer.queued() > CONFLATED_ROOM / 2 {
                on.core.put_off(session, part);
                return Ok(0);
            }
            let Some(late) = on.core.unqueue(session, part) else {
                continue;
            };
            let sent = self.catch_up_part(on, late)?;
            if sent == 0 {
                on.core.requeue(late);
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
    fn catch_up_part(&mut self, on: &mut CatchUp<'_, '_>, late: Late) -> Result<usize, PeerEnd> {
        let Late { session, part, .. } = late;
        let nanos = on.peer.now().utc.nanos();
        let Some(next) = on.core.next_of_part(late, nanos, on.directory) else {
            on.core.refuse_part(on.peer, session, part);
            return Ok(1);
        };
        let client = on.core.client(session);
        let Some(own) = client.and_then(|client| client.get(part.subscription)) else {
            return Ok(0);
        };
        let ids: &[BodyId] = match &next {
            Next::Held(held) => &[held.body],
            Next::Snapshot(None, snapshot) => &[*snapshot],
            Next::Snapshot(Some(before), snapshot) => &[*before, *snapshot],
        };
        let sent = self.send_all(&on.core.bodies, on.peer, ids, &own.lead, on.time)?;
        match next {
            _ if sent < ids.len() => return Ok(0),
            Next::Held(held) => {
                on.core.sent_held(session, part, &held);
                on.core.requeue(late);
            }
            Next::Snapshot(..) => on.core.served(late),
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
            && own.spec.snapshots
        {
            own.hold_trades(self.bodies.trades(id));
        }
        self.fall_behind(place);
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
