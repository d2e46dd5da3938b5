//! The delivery of a turn's messages to the connections by the contract of each subscription, and
//! of snapshots to sessions that are behind.

use super::bodies::{Bodies, BodyId};
use super::classes::{NOWHERE, Place};
use super::client::{Client, Of, Out, Part, Untold};
use super::contract::Contract;
use super::request::reason;
use super::{Core, Turn, messages};
use crate::batch::{Outgoing, Times, end_of};
use crate::hole::{Hole, Missing};
use crate::notice::PeerEnd;
use fanfare_engine::host::{Peer, Peers};
use fanfare_fix::codec::SendingTime;
use fanfare_market::instruments::Directory;

/// The most snapshots of a turn, of all sessions together, so that updates are not delayed by more.
const PICTURES: usize = 256;

/// The most bytes queued for a session at which its conflated subscriptions are still sent updates,
/// because queued updates become stale.
const CONFLATED_ROOM: usize = 1 << 14;

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
                match self.deliver_to(core, &mut peer, session, &outbox, &time) {
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
    ) -> Result<usize, PeerEnd> {
        let is_behind = peer.queued() > CONFLATED_ROOM;
        if is_behind {
            core.conflate(session, outbox);
        }
        let Core {
            bodies, clients, ..
        } = core;
        let Some(Some(client)) = clients.get(session as usize) else {
            return Ok(0);
        };
        let mut rest = outbox;
        while !rest.is_empty() {
            let count = self.write_some(bodies, client, peer, (rest, is_behind), time)?;
            if count == 0 {
                break;
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        if !rest.is_empty() {
            core.leave_out(session, (rest, is_behind), peer.queued())?;
        }
        Ok(outbox.len() - rest.len())
    }

    /// Sends as many messages as are certain to fit into the queue, in one send, without
    /// those of conflated subscriptions if the session is behind. Returns the number of messages
    /// processed.
    fn write_some(
        &mut self,
        bodies: &Bodies,
        client: &Client,
        peer: &mut Peer<'_>,
        (outbox, is_behind): (&[Out], bool),
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
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
        let (_, last) = self.outgoing.send(peer, self.limit, time, bodies)?;
        Ok(last.map_or(0, |last| last + 1))
    }

    /// Sends snapshots and other pending messages to sessions that are behind and whose queues have
    /// capacity. Returns the number of messages.
    pub(super) fn catch_up(
        &mut self,
        core: &mut Core,
        peers: &mut Peers<'_>,
        directory: &Directory,
        turn: &mut Turn,
    ) -> usize {
        let mut times = Times::at(peers.now());
        let mut waiting = std::mem::take(&mut core.waiting);
        let mut budget = PICTURES;
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
            while budget > 0 && peer.queued() <= self.limit / 2 {
                let room = peer.make_room().map_err(end_of);
                let sent = room
                    .and_then(|()| self.catch_up_one(core, &mut peer, session, directory, &time));
                match sent {
                    Ok(0) => break,
                    Ok(count) => {
                        budget -= 1;
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
        PICTURES - budget
    }

    /// Sends the next pending message of a session. Returns the number of messages, or 0 if none is
    /// pending.
    fn catch_up_one(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        session: u32,
        directory: &Directory,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        loop {
            let Some(client) = core.client_mut(session) else {
                return Ok(0);
            };
            let version = client.version;
            if let Some(untold) = client.untold.pop_first() {
                if let Untold::TooMany(number) = untold {
                    core.too_many(peer, session, number);
                    return Ok(1);
                }
                if let Some(body) = core.news(untold, version, directory) {
                    return self.send_one(core, peer, session, (body, Of::Told(untold)), time);
                }
                continue;
            }
            if !client.lists.is_empty() {
                return Ok(core.send_page(peer, session, directory));
            }
            let Some(part) = client.behind.pop_front() else {
                return Ok(0);
            };
            let is_conflated = core.has_conflated(session, part);
            if is_conflated && peer.queued() > CONFLATED_ROOM / 2 {
                core.put_off(session, part);
                return Ok(0);
            }
            let sent = self.catch_up_part(core, peer, (session, part), directory, time)?;
            if sent > 0 {
                return Ok(sent);
            }
        }
    }

    fn send_one(
        &mut self,
        core: &Core,
        peer: &mut Peer<'_>,
        session: u32,
        (body, of): (BodyId, Of),
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let Some(Some(client)) = core.clients.get(session as usize) else {
            return Ok(0);
        };
        self.write_some(
            &core.bodies,
            client,
            peer,
            (&[Out { body, of }], false),
            time,
        )
    }

    /// Sends an instrument's snapshot, after the announcement of missed messages.
    fn catch_up_part(
        &mut self,
        core: &mut Core,
        peer: &mut Peer<'_>,
        (session, part): (u32, Part),
        directory: &Directory,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let Some((number, at, version)) = core.unqueue(session, part) else {
            return Ok(0);
        };
        let Some(body) = core.picture(number, version, directory) else {
            core.refuse_part(peer, session, part);
            return Ok(1);
        };
        let said = Self::say_missed(core, peer, (session, part), (number, at), directory)?;
        let sent = self.send_one(core, peer, session, (body, Of::Part(part)), time)?;
        if sent == 0 {
            // A resend is under way: the snapshot follows it.
            core.requeue(session, number, at);
            return Ok(said);
        }
        let link = core.classes.get_mut(number);
        if let Some(link) = link.and_then(|class| class.links.get_mut(at)) {
            (link.is_behind, link.missed) = (false, 0);
        }
        core.served(session, part);
        Ok(said + sent)
    }

    /// Announces the range that a subscription has skipped, and sends its queued trades.
    fn say_missed(
        core: &mut Core,
        peer: &mut Peer<'_>,
        (session, part): (u32, Part),
        (number, at): (u32, usize),
        directory: &Directory,
    ) -> Result<usize, PeerEnd> {
        let Core {
            classes,
            clients,
            writers,
            ..
        } = core;
        let Some(Some(client)) = clients.get_mut(session as usize) else {
            return Ok(0);
        };
        let (Some(writer), Some(class)) = (writers.get(client.version), classes.get_mut(number))
        else {
            return Ok(0);
        };
        let (last, instrument) = (class.rpt_seq, class.instrument);
        let (Some(link), Some(own)) = (class.links.get_mut(at), client.get_mut(part.subscription))
        else {
            return Ok(0);
        };
        let nanos = peer.now().utc.nanos();
        let first = std::mem::take(&mut link.missed);
        let mut said = 0;
        let mut say = |hole: &Hole, peer: &mut Peer<'_>, request: &[u8]| {
            let sent = peer.send(messages::NEWS, |out| {
                messages::missing(writer, directory, instrument, request, hole, out);
            });
            said += usize::from(sent.is_ok());
        };
        if first != 0 && !link.conflates {
            let hole = Hole {
                first: first.into(),
                last: last.into(),
                ..Hole::new(
                    Missing::SlowConsumer,
                    u64::from(last.wrapping_sub(first)) + 1,
                    nanos,
                )
            };
            say(&hole, peer, own.request());
        }
        let left_out = std::mem::take(&mut own.trades_left_out);
        if left_out > 0 {
            let hole = Hole::new(Missing::Trades, left_out, nanos);
            say(&hole, peer, own.request());
        }
        let trades = std::mem::take(&mut own.trades);
        if !trades.is_empty() {
            let lead = &own.lead;
            let sent = peer.send(b"X", |out| {
                out.raw(lead);
                // Trades that the version cannot express were not requested.
                let _ = writer.to_fix.changes(directory, b"", &trades, out);
            });
            said += usize::from(sent.is_ok());
        }
        Ok(said)
    }
}

impl Core {
    /// Marks the conflated subscriptions of a session that is behind, so that they receive
    /// snapshots.
    fn conflate(&mut self, session: u32, outbox: &[Out]) {
        for out in outbox {
            let Some(Some(client)) = self.clients.get_mut(session as usize) else {
                return;
            };
            if let Of::Part(part) = out.of
                && client.conflates(out)
                && let Some(place) = client.place(part)
                && let Some(own) = client.get_mut(part.subscription)
            {
                own.hold_trades(self.bodies.trades(out.body));
                client.count_conflated(part.subscription);
                self.fall_behind(place.class, place.link as usize);
            }
        }
    }

    fn has_conflated(&self, session: u32, part: Part) -> bool {
        let client = self.clients.get(session as usize).and_then(Option::as_ref);
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
    /// subscriptions fall behind.
    fn leave_out(
        &mut self,
        session: u32,
        (rest, is_behind): (&[Out], bool),
        queued: usize,
    ) -> Result<(), PeerEnd> {
        for out in rest {
            let Some(Some(client)) = self.clients.get_mut(session as usize) else {
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
                Contract::Cut => return Err(PeerEnd::SlowConsumer { queued }),
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
                self.skip(place, out.body);
            }
        }
        Ok(())
    }

    /// Skips a message of a part: the range from its first entry on is announced, and a snapshot
    /// follows.
    fn skip(&mut self, place: Place, body: BodyId) {
        let body = self.bodies.get(body);
        let first = body.map_or(0, |(body, _)| body.numbers.0);
        let class = self.classes.get_mut(place.class);
        let Some(link) = class.and_then(|own| own.links.get_mut(place.link as usize)) else {
            return;
        };
        if link.missed == 0 {
            link.missed = first;
        }
        self.fall_behind(place.class, place.link as usize);
    }

    /// Returns the class and the place of a part whose snapshot is queued, if it is to be sent now.
    fn unqueue(&mut self, session: u32, part: Part) -> Option<(u32, usize, usize)> {
        let client = self.clients.get(session as usize)?.as_ref()?;
        let (version, place) = (client.version, client.place(part)?);
        let class = self.classes.get_mut(place.class)?;
        let instrument = class.instrument;
        let link = class.links.get_mut(place.link as usize)?;
        link.is_queued = false;
        let own = client.get(part.subscription)?;
        let is_wanted = link.is_behind && !own.is_of_status();
        let seen = self.view.get(instrument)?;
        // The update that is due queues it again.
        let waits = class.is_due && class.spec.by_order;
        let is_ready = is_wanted && seen.has_picture() && !waits;
        is_ready.then_some((place.class, place.link as usize, version))
    }

    fn requeue(&mut self, session: u32, number: u32, at: usize) {
        self.fall_behind(number, at);
        self.wait(session);
    }

    /// Records that a part has received its snapshot. Without updates, it is complete.
    fn served(&mut self, session: u32, part: Part) {
        let Some(own) = self
            .client_mut(session)
            .and_then(|client| client.get_mut(part.subscription))
        else {
            return;
        };
        if own.goes_on {
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

    /// Refuses a subscription with more instruments than the session may have.
    fn too_many(&mut self, peer: &mut Peer<'_>, session: u32, number: u32) {
        let Some(client) = self.client_mut(session) else {
            return;
        };
        let most = client.grant.subscriptions;
        let Some(own) = client.get(number) else {
            return;
        };
        let text = format!("at most {most} instruments at a time: the subscription has ended");
        super::replies::refuse(peer, own.request(), Some(reason::BANDWIDTH), &text);
        self.stop(session, number);
    }

    /// Refuses a subscription whose snapshot does not fit into a message.
    fn refuse_part(&mut self, peer: &mut Peer<'_>, session: u32, part: Part) {
        let Some(own) = self
            .client_mut(session)
            .and_then(|client| client.get(part.subscription))
        else {
            return;
        };
        let text = "the snapshot is too long for a message: request a lower MarketDepth(264)";
        super::replies::refuse(peer, own.request(), Some(reason::DEPTH), text);
        self.stop(session, part.subscription);
    }
}
