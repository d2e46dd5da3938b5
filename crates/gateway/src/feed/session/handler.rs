//! The thread of a session: it sends the requests, and hands the messages to the thread of the
//! feeds.

use super::LONGEST_REQUEST;
use super::link::{Kind, Link};
use super::subscriptions::{Effect, Request, Subscriptions, Terms};
use crate::counts::SourceCounts;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::notice::{Limit, Notice, Notices};
use fanfare_engine::host::{Handler, Peer, Peers, Refusal};
use fanfare_fix::codec::Message;
use fanfare_fix::session::{AppMessage, DisconnectReason, Event, SendError, StoreError};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// The most requests sent in a turn.
const REQUESTS: usize = 16;

/// The most bytes of requests that wait for the counterparty to read.
const UNSENT: usize = 64 << 10;

/// The most bytes of the instruments of a request. The rest is for the other fields: at most 32
/// entry types, IDs of 64 bytes, and numbers.
const NAMES: usize = LONGEST_REQUEST - 4096;

/// The pause after a request that could not be sent, in nanoseconds.
const HOLD: u64 = 10_000_000;

/// The handler of a session that brings market data.
pub(crate) struct Source {
    link: Link,
    terms: Terms,
    subscriptions: Subscriptions,
    is_on: bool,
    counts: SourceCounts,
    channel: Arc<str>,
    notices: Notices,
    limit: Limit,
    /// The reason why the connection failed, until its end is told.
    broken: Option<String>,
    /// The time until which requests wait for the counterparty to read.
    held: Option<u64>,
}

impl Source {
    pub(super) fn new(
        link: Link,
        terms: Terms,
        subscriptions: Subscriptions,
        counts: SourceCounts,
        (channel, notices): (Arc<str>, Notices),
    ) -> Self {
        Self {
            link,
            terms,
            subscriptions,
            is_on: false,
            counts,
            channel,
            notices,
            limit: Limit::default(),
            broken: None,
            held: None,
        }
    }

    fn tell(&mut self, nanos: i64, what: String, is_trouble: bool) {
        if self.limit.lets(nanos) {
            let channel = Arc::clone(&self.channel);
            let what = MarketNotice::Session { what, is_trouble };
            let notice = FeedNotice::Market { channel, what };
            self.notices.send(Notice::Feed(notice));
        }
    }

    /// Records that messages were lost within the session: every book needs a snapshot.
    fn lose(&mut self, peer: &Peer<'_>, what: &str) {
        if !self.is_on {
            return;
        }
        let now = peer.now();
        self.counts.losses.increment(1);
        self.link.put(Kind::Lost, &[]);
        self.subscriptions.lose(now.mono);
        self.tell(now.utc.nanos(), format!("{what}: requested anew"), true);
    }

    /// Returns whether a message answers a request, and is no market data.
    fn answers(&mut self, peer: &Peer<'_>, effect: Effect) -> bool {
        match effect {
            Effect::Data => false,
            Effect::Done => true,
            Effect::Refused(what) => {
                self.counts.refused.increment(1);
                self.tell(peer.now().utc.nanos(), what, true);
                true
            }
            Effect::Lost(what) => {
                self.counts.refused.increment(1);
                self.lose(peer, &what);
                true
            }
        }
    }

    fn hear(&self, peer: &Peer<'_>) {
        let millis = peer.now().utc.nanos().unsigned_abs() / 1_000_000;
        self.counts.heard.set(millis);
    }

    /// Divides a request that cannot be sent for this reason, or leaves its instrument out.
    #[cold]
    fn divide(&mut self, nanos: i64, request: Request, why: &str) {
        if let Some(name) = self.subscriptions.divide(request) {
            self.counts.refused.increment(1);
            let what = format!("the request of {name} is left out: {why}");
            self.tell(nanos, what, true);
        }
    }

    /// Holds the requests that are due, so that this thread does not spin until the counterparty
    /// reads. Returns `sent`.
    const fn hold(&mut self, now: u64, sent: usize) -> usize {
        self.held = Some(now + HOLD);
        sent
    }

    /// Sends the requests that are due. Returns their number.
    fn send(&mut self, peer: &mut Peer<'_>) -> usize {
        let now = peer.now();
        self.held = None;
        for sent in 0..REQUESTS {
            if peer.queued() > UNSENT {
                return self.hold(now.mono, sent);
            }
            let Some(request) = self.subscriptions.poll(now.mono) else {
                return sent;
            };
            if request.size() > NAMES {
                self.divide(now.utc.nanos(), request, "it is too long for a message");
                continue;
            }
            let terms = &self.terms;
            match peer.send(request.msg_type(), |out| request.write(terms, out)) {
                Ok(seq) => {
                    self.subscriptions.sent(&request, seq);
                    self.counts.requests.increment(1);
                }
                Err(
                    why @ (SendError::Encode(_)
                    | SendError::Invalid(_)
                    | SendError::Store(StoreError::TooLong)),
                ) => {
                    self.divide(now.utc.nanos(), request, &why.to_string());
                }
                Err(_) => {
                    self.subscriptions.unsent(request);
                    return self.hold(now.mono, sent);
                }
            }
        }
        REQUESTS
    }
}

impl Handler for Source {
    fn room(&mut self) -> usize {
        match self.link.has_room() {
            true => usize::MAX,
            false => 0,
        }
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let now = peer.now();
        self.hear(peer);
        let effect = self.subscriptions.take(now.mono, &message.message);
        let is_list = message.message.msg_type() == fanfare_fix::msg_type::SECURITY_LIST;
        if self.answers(peer, effect) && !is_list {
            return;
        }
        self.counts.messages.increment(1);
        let bytes = message.message.bytes();
        if !self.link.put(Kind::Message, bytes) {
            self.lose(peer, "a message is too long for the ring");
        }
    }

    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        match event {
            Event::RejectReceived(message) => self.reject(peer, message),
            Event::SequenceReset { from, to } => {
                let last = to.saturating_sub(1);
                self.lose(peer, &format!("messages {from} to {last} do not come"));
            }
            Event::HeldDiscarded { messages } => {
                self.lose(
                    peer,
                    &format!("{messages} messages are discarded by a reset"),
                );
            }
            Event::RejectSent { ref_seq, .. } => {
                self.lose(peer, &format!("message {ref_seq} is invalid, and rejected"));
            }
            _ => {}
        }
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        if self.is_on {
            return self.lose(peer, "a second Logon");
        }
        let now = peer.now();
        self.hear(peer);
        self.is_on = true;
        self.counts.logons.increment(1);
        self.counts.logged_on.set(1);
        self.link.put(Kind::LoggedOn, &[]);
        self.subscriptions.log_on(now.mono);
        self.tell(
            now.utc.nanos(),
            "the session is logged on".to_owned(),
            false,
        );
    }

    fn on_broken(&mut self, _: &mut Peer<'_>, error: &io::Error) {
        self.broken = Some(error.to_string());
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let now = peer.now();
        let why = self.broken.take().unwrap_or_else(|| reason.to_string());
        self.counts.logged_on.set(0);
        if std::mem::take(&mut self.is_on) {
            self.counts.ended.increment(1);
            self.link.put(Kind::Ended, &[]);
            self.subscriptions.end();
            self.held = None;
        }
        self.tell(
            now.utc.nanos(),
            format!("the session has ended: {why}"),
            true,
        );
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        let nanos = fanfare_engine::clock::utc() as i64;
        let what = match address.ip().is_unspecified() {
            true => format!("cannot connect: {why}"),
            false => format!("cannot connect to {address}: {why}"),
        };
        self.tell(nanos, what, true);
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let now = peers.now().mono;
        if self.link.wants_renewal() {
            self.subscriptions.renew(now);
        }
        let sent = match peers.logged_on().next() {
            Some(mut peer) if self.is_on => {
                let heard = peer.last_received();
                let since = peer.now().mono.saturating_sub(heard);
                let utc = peer.now().utc.nanos().unsigned_abs();
                self.counts.heard.set(utc.saturating_sub(since) / 1_000_000);
                self.send(&mut peer)
            }
            _ => {
                // A session that is being logged out takes no requests.
                self.held = self.is_on.then_some(now + HOLD);
                0
            }
        };
        self.link.pass_on();
        sent
    }

    fn next_turn(&self) -> Option<u64> {
        self.held.or_else(|| self.subscriptions.due())
    }
}

impl Source {
    fn reject(&mut self, peer: &Peer<'_>, message: &Message<'_>) {
        let effect = self.subscriptions.rejected(peer.now().mono, message);
        self.answers(peer, effect);
    }
}
