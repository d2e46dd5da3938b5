//! Many initiators on one thread.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Handler, Host, Initiator, Peer, Peers, Refusal, SessionKey, StoreKind};
use fanfare_engine::stop::Stop;
use fanfare_fix::codec::Message;
use fanfare_fix::dict;
use fanfare_fix::session::{
    AppMessage, ApplVerId, Config, Credentials, DisconnectReason, Now, SECOND, SessionId, Version,
};

use super::LoadError;

/// Sessions that connect or log on at a time: no more than fit into a gateway's backlog.
const AT_A_TIME: usize = 128;
/// The interval at which the host is polled while sessions log on.
const LOOK: Duration = Duration::from_millis(1);
/// Bytes that may be buffered for the kernel in one session.
const UNSENT: usize = 5 << 18;
/// Connections that one duty cycle of the host reads from.
const READ: usize = 256;
/// The backoff of a session that does not reconnect.
const NEVER_AGAIN: Duration = Duration::from_secs(365 * 24 * 3600);
/// TargetCompID(56).
const TARGET: &str = "FANFARE";
/// The time limit for the gateway's Logout.
const LOGOUT: u64 = 5 * SECOND;

/// The reason for a connection closed without a response, which is the only refusal that FIX
/// permits.
const CLOSED_UNANSWERED: &str = "the gateway closed the connection without an answer: a session \
    with this CompID is logged on (--prefix and --first have others), is not on its list, or there \
    are as many as it takes";

/// The options of many sessions.
#[derive(Debug, Clone)]
pub(super) struct SessionOptions {
    pub(super) address: SocketAddr,
    /// The prefix of CompIDs, followed by a number.
    pub(super) name: String,
    /// The number of the first CompID.
    pub(super) first: usize,
    /// The largest message sent, and accepted, bytes.
    pub(super) max_send: usize,
    pub(super) max_receive: usize,
    /// The version of FIX of all sessions.
    pub(super) version: dict::Version,
    /// Username(553) and Password(554).
    pub(super) credentials: Option<Credentials>,
    /// The shortest and the longest wait before a session that has ended reconnects; `None`: it
    /// does not.
    pub(super) backoff: Option<(Duration, Duration)>,
}

impl SessionOptions {
    /// Returns the options of sessions of FIX.4.4, which do not reconnect.
    pub(super) fn new(address: SocketAddr, name: &str, first: usize, max_send: usize) -> Self {
        Self {
            address,
            name: name.to_owned(),
            first,
            max_send,
            max_receive: 64 << 10,
            version: dict::Version::Fix44,
            credentials: None,
            backoff: None,
        }
    }

    fn config(&self, name: &str) -> Config {
        let (version, default) = match Version::parse(self.version.name().as_bytes()) {
            Some(version) => (version, ApplVerId::Fix50Sp2),
            None => (Version::Fixt11, appl_ver_id(self.version)),
        };
        let mut config = Config::new(SessionId::new(version, name, TARGET));
        config.default_appl_ver_id = default;
        config.credentials.clone_from(&self.credentials);
        config.reset_on_logon = true;
        config.max_send = self.max_send;
        config.max_message = self.max_receive;
        config.logout_timeout = LOGOUT;
        config
    }
}

const fn appl_ver_id(version: dict::Version) -> ApplVerId {
    match version {
        dict::Version::Fix50 => ApplVerId::Fix50,
        dict::Version::Fix50Sp1 => ApplVerId::Fix50Sp1,
        _ => ApplVerId::Fix50Sp2,
    }
}

/// The behaviour of sessions once they are logged on.
pub(super) trait Task: Send {
    /// Called when a session is logged on and can send.
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }

    /// Called when the session at `index` has ended. Returns whether the task intended that:
    /// otherwise it counts as ended.
    fn on_logout(&mut self, index: usize) -> bool {
        let _ = index;
        false
    }

    /// Called for an application message of the session at `index`.
    fn on_message(&mut self, index: usize, message: &Message<'_>) {
        let _ = (index, message);
    }

    /// Called once per duty cycle. Returns an amount of work.
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let _ = peers;
        0
    }
}

/// Sessions of one thread, hosted with their task.
pub(super) struct Sessions<T> {
    host: Host<Members<T>>,
    clock: Clock,
    refused: Refused,
}

/// Sessions that could not log on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// The number of sessions.
    pub count: usize,
    /// CompID of the first of them, and the reason.
    pub first: Option<(String, String)>,
}

impl Refused {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// One of the sessions.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: SessionKey,
    /// The session's number among all sessions of the run, from 0.
    pub(super) number: usize,
    pub(super) name: String,
    is_logged_on: bool,
    /// Whether it was refused, and does not count.
    is_refused: bool,
    /// The reason why it has ended.
    ended: Option<String>,
}

impl Member {
    /// Returns whether the session has ended.
    pub(super) const fn has_ended(&self) -> bool {
        self.ended.is_some()
    }
}

struct Members<T> {
    all: Vec<Member>,
    /// The number of logged-on sessions that have ended.
    ended: usize,
    /// The error of a connection that could not be made.
    unconnected: Option<io::Error>,
    /// The session of that connection.
    failed: Option<(String, io::Error)>,
    /// Whether all sessions have logged on or have been refused.
    have_joined: bool,
    task: T,
}

impl<T: Task> Sessions<T> {
    /// Connects the sessions of these numbers and logs them on, until `stop` is raised. Those that
    /// the gateway refuses are omitted, and counted.
    pub(super) fn connect(
        options: &SessionOptions,
        numbers: impl Iterator<Item = usize>,
        task: T,
        stop: &Stop,
    ) -> Result<Self, LoadError> {
        let members = Members {
            all: Vec::new(),
            ended: 0,
            unconnected: None,
            failed: None,
            have_joined: false,
            task,
        };
        let mut sessions = Self {
            host: Host::new(members)?,
            clock: Clock::new(),
            refused: Refused::default(),
        };
        for number in numbers {
            while sessions.unsettled() >= AT_A_TIME {
                sessions.log_on(options.address, stop)?;
            }
            sessions.add(options, number)?;
        }
        while sessions.unsettled() > 0 {
            sessions.log_on(options.address, stop)?;
        }
        sessions.refused = Refused {
            count: sessions.ended(),
            first: sessions.first_ended(),
        };
        let members = sessions.host.handler();
        for member in &mut members.all {
            member.is_refused = member.ended.is_some();
        }
        members.ended = 0;
        members.have_joined = true;
        Ok(sessions)
    }

    fn add(&mut self, options: &SessionOptions, number: usize) -> Result<(), LoadError> {
        let name = format!("{}{}", options.name, options.first + number);
        let config = options.config(&name);
        let store = StoreKind::NoResend(UNSENT.max(4 * options.max_send));
        let mut initiator = Initiator::new(config, vec![options.address]).store(store);
        initiator.backoff = options.backoff.unwrap_or((NEVER_AGAIN, NEVER_AGAIN));
        let key = self.host.initiate(initiator)?;
        self.host.handler().all.push(Member {
            key,
            number,
            name,
            is_logged_on: false,
            is_refused: false,
            ended: None,
        });
        Ok(())
    }

    fn log_on(&mut self, address: SocketAddr, stop: &Stop) -> Result<(), LoadError> {
        if stop.is_raised() {
            return Err(LoadError::Interrupted);
        }
        if self.turn()? == 0 {
            thread::sleep(LOOK);
        }
        match self.host.handler().failed.take() {
            None => Ok(()),
            Some((session, error)) => Err(LoadError::Connect {
                session,
                address,
                error,
            }),
        }
    }

    /// Returns the number of sessions that are neither logged on nor ended.
    fn unsettled(&mut self) -> usize {
        self.count(|member| !member.is_logged_on && member.ended.is_none())
    }

    fn count(&mut self, which: impl Fn(&&Member) -> bool) -> usize {
        self.host.handler().all.iter().filter(which).count()
    }

    /// Returns the sessions that were refused.
    pub(super) const fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Returns the sessions that logged on.
    pub(super) fn members(&mut self) -> impl Iterator<Item = &Member> {
        let all = self.host.handler().all.iter();
        all.filter(|member| !member.is_refused)
    }

    pub(super) fn task(&mut self) -> &mut T {
        &mut self.host.handler().task
    }

    /// Returns the current time.
    pub(super) fn now(&mut self) -> Now {
        self.clock.read()
    }

    /// Runs a duty cycle of the host: reads the input, and runs the task. Returns an amount of
    /// work.
    pub(super) fn turn(&mut self) -> Result<usize, LoadError> {
        let now = self.clock.read();
        let work = self.host.do_work(now);
        work.map_err(|error| LoadError::Io(io::Error::other(error)))
    }

    /// Reads once from every readable connection of this many sessions.
    pub(super) fn read(&mut self, sessions: usize) -> Result<(), LoadError> {
        for _ in 0..sessions.div_ceil(READ) {
            if self.turn()? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Returns the first session that has ended, and the reason.
    pub(super) fn first_ended(&mut self) -> Option<(String, String)> {
        if self.ended() == 0 {
            return None;
        }
        let mut ended = self.members().filter_map(|m| Some((m, m.ended.as_ref()?)));
        let (member, why) = ended.next()?;
        Some((member.name.clone(), why.clone()))
    }

    /// Returns the number of sessions that have ended.
    pub(super) fn ended(&mut self) -> usize {
        self.host.handler().ended
    }

    /// Logs all sessions out and waits for the responses. Returns the task.
    pub(super) fn close(&mut self) -> &mut T {
        let now = self.clock.read();
        self.host.on_close(now);
        self.task()
    }
}

impl<T> Members<T> {
    /// Ends a session; the first reason counts.
    fn end(&mut self, key: SessionKey, why: String) {
        if let Some(member) = self.all.get_mut(key.index()) {
            self.ended += usize::from(member.ended.is_none());
            member.ended.get_or_insert(why);
        }
    }

    /// Takes the error of a connection that could not be made. While sessions join, the first one
    /// without a connection fails by it. Afterwards sessions try again, unless none is connected:
    /// the gateway is gone then, and all end.
    fn not_connected(&mut self, peers: &mut Peers<'_>, error: io::Error) {
        let mut is_connected = |member: &Member| {
            let peer = peers.get(member.key);
            peer.is_some_and(|mut peer| peer.session().is_connected())
        };
        let mut open = self.all.iter().filter(|member| !member.has_ended());
        if !self.have_joined {
            let first = open.find(|&member| !is_connected(member));
            self.failed = first.map(|member| (member.name.clone(), error));
        } else if !open.any(is_connected) {
            let keys: Vec<SessionKey> = self.all.iter().map(|member| member.key).collect();
            for key in keys {
                self.end(key, format!("the gateway is gone: {error}"));
            }
        }
    }
}

impl<T: Task> Handler for Members<T> {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.task.on_message(peer.key().index(), &message.message);
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        if let Some(member) = self.all.get_mut(peer.key().index()) {
            member.is_logged_on = true;
        }
        self.task.on_logon(peer);
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        if self.task.on_logout(peer.key().index()) {
            return;
        }
        let member = self.all.get(peer.key().index());
        let why = match reason {
            DisconnectReason::ConnectionLost if member.is_some_and(|m| m.is_logged_on) => {
                "the gateway closed the connection".to_owned()
            }
            DisconnectReason::ConnectionLost => CLOSED_UNANSWERED.to_owned(),
            other => other.to_string(),
        };
        self.end(peer.key(), why);
    }

    /// Ends the session, unless the connection was reset: a gateway that closes before it has read
    /// the Logon does that, and it is not a failure.
    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        if !matches!(error.kind(), BrokenPipe | ConnectionReset) {
            self.end(peer.key(), error.to_string());
        }
    }

    fn on_refused(&mut self, _: SocketAddr, why: &Refusal) {
        if let Refusal::Transport { kind, error } = why {
            let error = || io::Error::new(*kind, error.clone());
            self.unconnected.get_or_insert_with(error);
        }
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if let Some(error) = self.unconnected.take() {
            self.not_connected(peers, error);
        }
        self.task.on_turn(peers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_gateway::{Config as Settings, Gateway};
    use std::time::Instant;

    /// A task whose sessions log out themselves, and come back.
    struct Returning;

    impl Task for Returning {
        fn on_logout(&mut self, _: usize) -> bool {
            true
        }
    }

    #[test]
    fn sessions_that_have_no_gateway_to_come_back_to_end() {
        let mut settings = Settings::default();
        (settings.producers.port, settings.consumers.port) = (0, 0);
        let gateway = Gateway::start(&settings, Stop::new()).unwrap();
        let soon = Duration::from_millis(1);
        let options = SessionOptions {
            backoff: Some((soon, soon)),
            ..SessionOptions::new(gateway.consumers(), "C", 1, 4 << 10)
        };
        let mut sessions = Sessions::connect(&options, 0..3, Returning, &Stop::new()).unwrap();
        gateway.stop().raise();
        gateway.join().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while sessions.ended() < 3 {
            assert!(Instant::now() < until, "sessions have not ended");
            sessions.turn().unwrap();
        }
        let (session, why) = sessions.first_ended().unwrap();
        assert_eq!(session, "C1");
        assert!(why.starts_with("the gateway is gone: "), "{why}");
    }
}
