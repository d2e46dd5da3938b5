//! The clients' side of their sessions: requests out, messages into the checker.

use fanfare_engine::host::{Peer, Peers};
use fanfare_fix::codec::Message;

use super::super::sessions::Task;
use super::churn::{Churn, Step};
use super::{Asked, SubscribeOptions};
use crate::subscriber::{Rights, Subscriber, Updates};

/// All clients of a run, by the index of their session.
pub(super) struct Clients {
    base: Asked,
    /// Instruments of a client; `None`: all of them.
    part: Option<usize>,
    seed: Option<u64>,
    /// The rights of the clients.
    rights: Option<Rights>,
    pub(super) all: Vec<Client>,
    /// W and X received.
    pub(super) received: u64,
    /// Bytes of this read.
    pub(super) bytes: usize,
    /// Logons, and sessions that ended intentionally.
    pub(super) logons: u64,
    pub(super) left: u64,
    /// V that subscribe.
    pub(super) requests: u64,
    /// V that could not be sent.
    pub(super) unsent: u64,
    /// Whether all clients have stopped changing their subscriptions.
    pub(super) is_settling: bool,
}

/// One client.
#[derive(Default)]
pub(super) struct Client {
    pub(super) judge: Subscriber,
    requests: Vec<(String, Asked)>,
    /// The requests that have to be refused.
    denied: Vec<String>,
    /// Requests so far: no MDReqID(262) is repeated.
    made: u64,
    churn: Option<Churn>,
    /// Whether it is leaving, or has left.
    is_away: bool,
}

impl Clients {
    pub(super) fn new(options: &SubscribeOptions) -> Self {
        let (count, seed, rights) = (options.clients, options.churn, &options.rights);
        let judge = || rights.clone().map(Subscriber::with_rights);
        let client = |number| Client {
            churn: seed.map(|seed| Churn::new(seed, number)),
            judge: judge().unwrap_or_default(),
            ..Client::default()
        };
        Self {
            base: options.asked.clone(),
            part: options.part,
            seed,
            rights: rights.clone(),
            all: (0..count).map(client).collect(),
            received: 0,
            bytes: 0,
            logons: 0,
            left: 0,
            requests: 0,
            unsent: 0,
            is_settling: false,
        }
    }

    /// Returns the number of subscriptions to instruments by name without a response, of all
    /// clients.
    pub(super) fn unanswered(&self) -> usize {
        let all = self.all.iter();
        all.map(Client::unanswered).sum()
    }

    /// Returns whether a session has left and is to reconnect.
    pub(super) fn are_away(&self) -> bool {
        self.all.iter().any(|client| client.is_away)
    }

    fn subscribe(&mut self, peer: &mut Peer<'_>, asked: Asked) {
        let Some(client) = self.all.get_mut(peer.key().index()) else {
            return;
        };
        let rights = self.rights.as_ref();
        let is_denied = rights
            .is_some_and(|rights| rights.denies(&asked.symbols, &asked.entries, asked.terms.depth));
        client.made += 1;
        let id = format!("r{}", client.made);
        match peer.send(b"V", |body| asked.subscribe(&id, body)) {
            Ok(_) => {
                self.requests += 1;
                let judge = &mut client.judge;
                judge.subscribed(id.as_bytes(), &asked.symbols, asked.terms);
                if is_denied {
                    judge.denied(id.as_bytes());
                    client.denied.push(id);
                } else {
                    client.requests.push((id, asked));
                }
            }
            Err(_) => self.unsent += 1,
        }
    }

    fn stop(&mut self, peer: &mut Peer<'_>, at: usize) {
        let Some(client) = self.all.get_mut(peer.key().index()) else {
            return;
        };
        if at >= client.requests.len() {
            return;
        }
        let (id, asked) = client.requests.swap_remove(at);
        if asked.terms.updates == Updates::None {
            // The session ends by itself.
            return;
        }
        match peer.send(b"V", |body| asked.stop(&id, body)) {
            Ok(_) => client.judge.stopped(id.as_bytes()),
            Err(_) => self.unsent += 1,
        }
    }

    fn step(&mut self, peer: &mut Peer<'_>, step: Step) {
        match step {
            Step::Subscribe(asked) => self.subscribe(peer, asked),
            Step::Stop(at) => self.stop(peer, at),
            Step::Change(at, asked) => {
                self.stop(peer, at);
                self.subscribe(peer, asked);
            }
            Step::Leave | Step::Break => {
                if let Some(client) = self.all.get_mut(peer.key().index()) {
                    client.is_away = true;
                }
                match step {
                    Step::Leave => peer.logout("back soon"),
                    _ => peer.close(),
                }
            }
        }
    }
}

impl Client {
    fn unanswered(&self) -> usize {
        let lacks = |(id, asked): &&(String, Asked)| {
            asked.names_one() && !self.judge.is_answered(id.as_bytes())
        };
        let denied = self.denied.iter();
        let denied = denied.filter(|id| !self.judge.is_answered(id.as_bytes()));
        self.requests.iter().filter(lacks).count() + denied.count()
    }
}

impl Task for Clients {
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        self.logons += 1;
        let now = peer.now().mono;
        let Some(client) = self.all.get_mut(peer.key().index()) else {
            return;
        };
        client.is_away = false;
        let asked = match &mut client.churn {
            Some(churn) => {
                churn.next = now;
                churn.asked(&self.base, self.rights.as_ref())
            }
            None => match self.part {
                Some(size) => self.base.part(peer.key().index(), size),
                None => self.base.clone(),
            },
        };
        self.subscribe(peer, asked);
    }

    fn on_logout(&mut self, index: usize) -> bool {
        let Some(client) = self.all.get_mut(index) else {
            return false;
        };
        client.judge.logged_out();
        client.requests.clear();
        client.denied.clear();
        self.left += u64::from(client.is_away);
        client.is_away
    }

    fn on_message(&mut self, index: usize, message: &Message<'_>) {
        self.bytes += message.bytes().len();
        self.received += u64::from(matches!(message.msg_type(), b"W" | b"X"));
        if let Some(client) = self.all.get_mut(index) {
            client.judge.take(message);
        }
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if self.seed.is_none() || self.is_settling {
            return 0;
        }
        let now = peers.now().mono;
        let mut steps = 0;
        for mut peer in peers.logged_on() {
            let Some(client) = self.all.get_mut(peer.key().index()) else {
                continue;
            };
            let subscriptions = client.requests.len();
            let due = |churn: &&mut Churn| churn.next <= now && !client.is_away;
            let Some(churn) = client.churn.as_mut().filter(due) else {
                continue;
            };
            let step = churn.step(now, subscriptions, (&self.base, self.rights.as_ref()));
            self.step(&mut peer, step);
            steps += 1;
        }
        steps
    }
}
