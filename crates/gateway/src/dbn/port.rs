//! The connections: accepting, authenticating, reading.

use super::client::{Client, End, Phase};
use super::line::{self, Auth};
use super::{DbnAgent, LISTENER, SECOND};
use crate::notice::Notice;
use crate::users::dbn_seat::{DbnLogon, DbnSeat};
use crate::users::grant::Grant;
use fanfare_engine::agent::AgentError;
use fanfare_engine::host::{AllowList, network_of};
use fanfare_engine::poll::{Interest, Token};
use fanfare_engine::tcp::{Accepted, Stream};
use fanfare_market::dbn::live::ErrorCode;
use fanfare_wire::UtcTimestamp;
use fanfare_wire::text::Escaped;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write;
use std::sync::Arc;

/// The most connections accepted in a turn.
const ACCEPTED: usize = 64;
/// The most bytes of one read.
const ROOM: usize = 1 << 16;
/// The most lines of a client that are processed at a time.
const LINES: usize = 32;
/// The random bytes of a challenge.
const CHALLENGE: usize = 16;

impl DbnAgent {
    /// Polls the sockets for new connections, and for bytes of clients.
    pub(super) fn sockets(&mut self) -> Result<usize, AgentError> {
        let ready = self.poller.poll(Some(std::time::Duration::ZERO))?;
        for index in 0..ready {
            match self.poller.event(index) {
                Some(event) if event.token == LISTENER => self.accept(),
                Some(event) if event.is_readable() => self.read(event.token),
                // Queued bytes are sent in any case.
                _ => {}
            }
        }
        Ok(ready)
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            match self.listener.accept() {
                Ok(Accepted::Stream(stream)) => self.greet(stream),
                Ok(Accepted::Refused) => {
                    self.counts.refused.increment(1);
                    // With one closed, the next one finds a descriptor.
                    self.make_room();
                }
                Ok(Accepted::Nobody) => return,
                Err(error) => {
                    let error = error.to_string();
                    return self.notices.send(Notice::CannotAccept { error });
                }
            }
        }
    }

    /// Sends a new connection its challenge.
    fn greet(&mut self, stream: Stream) {
        let peer = stream.peer();
        let allowed = AllowList(self.config.allow.clone()).allows(peer.ip());
        let is_full = self.hub.clients.len() >= self.config.max_clients;
        let may_stay = allowed && (!is_full || self.make_room());
        let challenge = challenge().filter(|_| may_stay);
        let Some(challenge) = challenge else {
            self.counts.refused.increment(1);
            let what = "refused: too many connections, or the address is not allowed".to_owned();
            return self.notices.send(Notice::Dbn {
                peer,
                what,
                is_trouble: true,
            });
        };
        let greeting = format!(
            "lsg_version=fanfare-{}\ncram={challenge}\n",
            env!("CARGO_PKG_VERSION")
        );
        let until = self.times.mono + self.config.auth_timeout_s * SECOND;
        let phase = Phase::Greeted { challenge, until };
        let mut client = Client::new(self.next_session, stream, self.config.queue_bytes, phase);
        self.next_session += 1;
        client.wire.put(greeting.as_bytes());
        let token = self.hub.clients.next_token();
        if self.poller.add(&client.wire, token, Interest::Read).is_ok() {
            self.hub.clients.insert(client);
            self.counts.clients.set(self.hub.clients.len() as u64);
        }
    }

    /// Closes the oldest connection that has not authenticated, so that these, however many, keep
    /// nobody out. Returns whether there was one.
    fn make_room(&mut self) -> bool {
        let strangers = self.hub.clients.iter();
        let strangers = strangers.filter(|(_, client)| !client.has_authenticated());
        let oldest = strangers.min_by_key(|(_, client)| client.session);
        let Some(oldest) = oldest.map(|(token, _)| token) else {
            return false;
        };
        self.counts.refused.increment(1);
        let end = End::trouble("another connection needs the place");
        self.leave(oldest, &end);
        true
    }

    /// Processes the lines of a client.
    fn read(&mut self, token: Token) {
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        self.room.resize(ROOM, 0);
        if !client.wire.receive(&mut self.room, &mut client.inbox) {
            client.wire.mark_broken();
            return;
        }
        if let Phase::Ending { .. } = client.phase {
            return client.discard();
        }
        self.lines(token);
    }

    /// Goes on with the requests of a client that have waited. Returns whether there were any.
    pub(super) fn resume(&mut self, token: Token) -> bool {
        let client = self.hub.clients.get(token);
        let goes_on = client.is_some_and(|client| client.is_paused && client.takes_requests());
        if goes_on {
            self.lines(token);
        }
        goes_on
    }

    /// Processes some lines of a client, as far as the queue has capacity for the answers.
    fn lines(&mut self, token: Token) {
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let mut inbox = std::mem::take(&mut client.inbox);
        let mut rest = inbox.as_slice();
        for _ in 0..LINES {
            if !self.next_line(token, &mut rest) {
                break;
            }
        }
        let is_whole = rest.contains(&b'\n');
        let is_long = !is_whole && rest.len() > self.config.request_bytes;
        let done = inbox.len() - rest.len();
        inbox.drain(..done);
        if let Some(client) = self.hub.clients.get_mut(token) {
            client.pause_if(is_whole);
            match is_long {
                true => self.close(token, "a line is too long"),
                false => client.inbox = inbox,
            }
        }
    }

    /// Processes the next line of a client, which is the first one of `rest` unless requests were
    /// queued until the session was started. Returns false if there is none, or it waits.
    fn next_line(&mut self, token: Token, rest: &mut &[u8]) -> bool {
        let client = self.hub.clients.get_mut(token);
        let Some(client) = client.filter(|client| client.takes_requests()) else {
            return false;
        };
        if client.is_streaming()
            && let Some(line) = client.early.pop()
        {
            self.run(token, &line);
            return true;
        }
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            return false;
        };
        let (line, after) = rest.split_at(end);
        *rest = after.get(1..).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match (
            str::from_utf8(line),
            line.len() <= self.config.request_bytes,
        ) {
            (Ok(line), true) => self.line(token, line),
            (Err(_), _) => self.close(token, "a line is not UTF-8"),
            (_, false) => self.close(token, "a line is too long"),
        }
        true
    }

    fn line(&mut self, token: Token, line: &str) {
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        match &client.phase {
            Phase::Greeted { challenge, .. } => {
                let challenge = challenge.clone();
                self.authenticate(token, &challenge, line);
            }
            Phase::Ready { .. } => self.before_start(token, line),
            Phase::Streaming => self.request(token, line),
            Phase::Denied { .. } | Phase::Ending { .. } => {}
        }
    }

    /// Closes a client because of what it sent.
    pub(super) fn close(&mut self, token: Token, why: &str) {
        let now = self.times;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        match client.phase {
            Phase::Denied { .. } | Phase::Ending { .. } => return,
            Phase::Greeted { .. } => return self.refuse(token, why, why),
            Phase::Ready { .. } => client.begin(&self.config.dataset, now),
            Phase::Streaming => {}
        }
        super::end(client, ErrorCode::InvalidSubscription, why, now);
        self.note(token, "refusal", "", why);
    }

    /// Refuses a client. `answer` is sent to it.
    fn refuse(&mut self, token: Token, answer: &str, why: &str) {
        let now = self.times;
        if let Some(client) = self.hub.clients.get_mut(token) {
            client.refuse(answer, now);
        }
        self.note_refusal(token, why);
    }

    /// Refuses a client with a wrong key. The more wrong keys its address has sent, the longer the
    /// response is delayed.
    fn deny(&mut self, token: Token) {
        let now = self.times.mono;
        let longest = self.config.auth_timeout_s * SECOND;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let (nobody, address) = (Arc::from(""), network_of(client.wire.peer()));
        self.wrong.failed(&nobody, address, now);
        let wait = self.wrong.wait(&nobody, address, now).unwrap_or(0);
        let at = now + wait.min(longest);
        client.phase = Phase::Denied { at };
        self.note_refusal(token, "wrong key, or not allowed from this address");
    }

    fn note_refusal(&mut self, token: Token, why: &str) {
        let Some(client) = self.hub.clients.get(token) else {
            return;
        };
        let peer = client.wire.peer();
        self.counts.refused.increment(1);
        self.note(token, "refusal", "", why);
        let what = format!("refused: {}", Escaped::text(why));
        self.notices.send(Notice::Dbn {
            peer,
            what,
            is_trouble: true,
        });
    }

    /// Processes the first line of a client.
    fn authenticate(&mut self, token: Token, challenge: &str, line: &str) {
        let auth = match line::auth(line) {
            Ok(auth) => auth,
            Err(why) => return self.refuse(token, &why, &why),
        };
        self.review();
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let address = client.wire.peer().ip();
        let users = self.users.get();
        let found = users.of_answer(challenge, auth.answer.as_bytes());
        let found = found.filter(|(_, user)| user.allow.allows(address));
        if found.is_none() && !self.config.takes_strangers(users.has_users()) {
            return self.deny(token);
        }
        // Refusals name the user from here on.
        client.user = found;
        if auth.dataset != self.config.dataset {
            let why = format!(
                "unknown dataset {}: expected {}",
                auth.dataset, self.config.dataset
            );
            return self.refuse(token, &why, &why);
        }
        let user = client.user.as_ref().map(|(_, user)| user);
        let most = user.map_or(usize::MAX, |user| user.sessions_at_a_time);
        let logon = DbnLogon {
            session: client.session,
            key: client.user.as_ref().map(|(key, _)| key.clone()),
            user: user.map_or_else(Arc::default, |user| Arc::clone(&user.name)),
            peer: client.wire.peer(),
            since: UtcTimestamp::from_nanos(self.times.utc.cast_signed()),
            client: auth.client.into(),
        };
        let seat = DbnSeat::new(logon, self.bell.clone());
        match self.roster.take_dbn(seat, most) {
            Ok(seat) => client.seat = Some(seat),
            Err(why) => {
                let why = why.to_string();
                return self.refuse(token, &why, &why);
            }
        }
        client.grant = match &client.user {
            Some((_, user)) => Arc::clone(&user.grant),
            None => Arc::new(Grant::everything()),
        };
        self.welcome(token, &auth);
    }

    fn welcome(&mut self, token: Token, auth: &Auth<'_>) {
        let until = self.times.mono + self.config.start_timeout_s * SECOND;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        client.ts_out = auth.ts_out;
        client.zstd = auth.zstd;
        client.warns = auth.warns;
        client.heartbeat = auth.heartbeat.unwrap_or(self.config.heartbeat_s) * SECOND;
        client.phase = Phase::Ready { until };
        let line = format!("success=1|session_id={}\n", client.session);
        client.wire.put(line.as_bytes());
        let (peer, session) = (client.wire.peer(), client.session);
        self.counts.logons.increment(1);
        self.note(token, "logon", auth.client, "");
        let what = format!("session {session} authenticated");
        self.notices.send(Notice::Dbn {
            peer,
            what,
            is_trouble: false,
        });
    }
}

/// Returns an unpredictable text, or `None` if the system has no random numbers.
fn challenge() -> Option<String> {
    let mut bytes = [0; CHALLENGE];
    SystemRandom::new().fill(&mut bytes).ok()?;
    let mut text = String::with_capacity(2 * CHALLENGE);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}
