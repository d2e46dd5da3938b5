//! The application behind `fanfare fix initiator`: sends what it reads, prints what it receives.

use super::super::cat::Printer;
use super::super::sessions::level_of;
use super::outgoing::Outgoing;
use crate::logs;
use crate::plural::counted;
use crate::print::note;
use anyhow::{Result, anyhow};
use fanfare_engine::host::{Handler, LogTrouble, Peer, Peers, Refusal, SessionKey};
use fanfare_engine::journal::Recovery;
use fanfare_engine::levels::LogLevel;
use fanfare_engine::stop::Stop;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{
    AppMessage, DisconnectReason, Event, Now, SECOND, SendError, SessionId, StoreError,
};
use fanfare_wire::UtcTimestamp;
use fanfare_wire::text::Escaped;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::mem::take;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError};

/// The time limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Nanoseconds without a message after all was sent; `None`: no limit.
    pub(super) wait: Option<u64>,
    /// Nanoseconds without a logon; `None`: no limit.
    pub(super) give_up: Option<u64>,
}

pub(super) struct Application {
    sessions: Vec<Hosted>,
    input: Receiver<Result<Outgoing>>,
    /// The message that was read and is not sent yet.
    next: Option<Outgoing>,
    /// Whether the input has ended.
    ended: bool,
    printer: Printer,
    patience: Patience,
    quiet: bool,
    stop: Stop,
    /// The time of the last logon, and that of the last message sent or received.
    up_at: Option<u64>,
    busy_at: Option<u64>,
    counts: Counts,
    /// Why the last connection ended, or was not made.
    trouble: String,
    /// The first messages that the counterparty requested again and the store no longer has.
    not_kept: Option<String>,
    failure: Option<anyhow::Error>,
}

/// A session of this host.
struct Hosted {
    id: SessionId,
    key: SessionKey,
    is_up: bool,
    /// Why TLS failed on its connection, until the end of that.
    broken: Option<String>,
}

/// Counts for the report.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    sent: u64,
    received: u64,
    /// Messages of the session layer in the input.
    left_out: u64,
}

/// The end of a connection without an answer to the Logon, as acceptors end those of strangers.
const UNANSWERED: &str = "the connection was closed before the answer to our Logon: the \
    counterparty may not know the BeginString or the CompIDs, or may require TLS";

/// Messages sent in one duty cycle.
const BATCH: usize = 256;

impl Application {
    pub(super) fn new(
        input: Receiver<Result<Outgoing>>,
        printer: Printer,
        patience: Patience,
        quiet: bool,
        stop: Stop,
    ) -> Self {
        Self {
            sessions: Vec::new(),
            input,
            next: None,
            ended: false,
            printer,
            patience,
            quiet,
            stop,
            up_at: None,
            busy_at: None,
            counts: Counts::default(),
            trouble: String::new(),
            not_kept: None,
            failure: None,
        }
    }

    /// Adds a hosted session; `opens` is the beginning of its hours, if it is outside them.
    pub(super) fn add(&mut self, id: SessionId, key: SessionKey, opens: Option<UtcTimestamp>) {
        if let Some(opens) = opens {
            // To the second.
            let why = format!("outside the session's hours, which begin at {opens:.17} UTC");
            self.note_trouble(LogLevel::Warn, &id, why);
        }
        self.sessions.push(Hosted {
            id,
            key,
            is_up: false,
            broken: None,
        });
    }

    fn hosted(&mut self, key: SessionKey) -> Option<&mut Hosted> {
        self.sessions.iter_mut().find(|session| session.key == key)
    }

    /// Notes and logs why a session is not logged on.
    fn note_trouble(&mut self, level: LogLevel, id: &SessionId, why: impl Display) {
        self.trouble = format!("{id}: {why}");
        logs::session(level, id, &self.trouble);
    }

    /// Ends the run and prints its totals.
    ///
    /// # Errors
    /// The first failure, or messages that were not sent, or not sent again.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.printer.flush()?;
        let Counts {
            sent,
            received,
            left_out,
        } = self.counts;
        if left_out > 0 {
            note!("not sent, as the session makes its own: {left_out} of the session's messages");
        }
        if !self.quiet {
            note!("{} sent, {received} received", counted(sent, "message"));
        }
        self.take_next();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some(next) = &self.next {
            return Err(anyhow!("stopped before line {} was sent", next.line));
        }
        match self.not_kept.take() {
            Some(what) => Err(anyhow!("not sent again: {what}")),
            None => Ok(()),
        }
    }

    fn fail(&mut self, failure: anyhow::Error) {
        self.failure.get_or_insert(failure);
        self.stop.raise();
    }

    fn take_next(&mut self) {
        while self.next.is_none() && !self.ended {
            match self.input.try_recv() {
                Ok(Ok(message)) if message.is_the_sessions() => self.counts.left_out += 1,
                Ok(Ok(message)) => self.next = Some(message),
                Ok(Err(error)) => {
                    self.ended = true;
                    self.fail(error);
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.ended = true,
            }
        }
    }

    /// Returns the session of a message: the first one with its CompIDs and most of its SubIDs. A
    /// message without CompIDs matches any session, and a single session matches any message.
    fn session_of(&self, message: &Outgoing) -> Option<SessionKey> {
        let several = self.sessions.len() > 1;
        let is_it = |session: &&Hosted| match &message.comp_ids {
            Some((sender, target)) if several => {
                session.id.sender.as_bytes() == sender && session.id.target.as_bytes() == target
            }
            _ => true,
        };
        let sub_ids = message.sub_ids();
        let named = |session: &Hosted| {
            let own = session.id.sub.as_ref();
            own.and_then(|own| own.found_in(&sub_ids)).unwrap_or(0)
        };
        let fitting = self.sessions.iter().filter(is_it);
        let best = fitting.reduce(|best, next| {
            if named(next) > named(best) {
                next
            } else {
                best
            }
        });
        best.map(|session| session.key)
    }

    /// Sends the next message. Returns false if there is none, or none can be sent now.
    fn send_next(&mut self, peers: &mut Peers<'_>) -> bool {
        self.take_next();
        let Some(message) = self.next.take() else {
            return false;
        };
        let session = self.session_of(&message);
        let sent = match session.and_then(|key| peers.get(key)) {
            Some(mut peer) => send(&mut peer, &message),
            None => {
                let line = message.line;
                let why = "no session has its SenderCompID and TargetCompID";
                self.fail(anyhow!("line {line} cannot be sent: {why}"));
                return false;
            }
        };
        match sent {
            Ok(_) => {
                self.counts.sent += 1;
                self.busy_at = Some(peers.now().mono);
                true
            }
            Err(
                SendError::NotLoggedOn
                | SendError::Throttled { .. }
                | SendError::ResendInProgress
                | SendError::Store(StoreError::Full),
            ) => {
                self.next = Some(message);
                false
            }
            Err(error) => {
                self.fail(anyhow!("line {} cannot be sent: {error}", message.line));
                false
            }
        }
    }

    /// Ends the run if a time limit has passed.
    fn look_at_clock(&mut self, now: Now) {
        let since = |at: Option<u64>| now.mono.saturating_sub(at.unwrap_or(now.mono));
        let is_down = !self.sessions.iter().any(|session| session.is_up);
        if !is_down || self.up_at.is_none() {
            self.up_at = Some(now.mono);
        }
        if let Some(give_up) = self.patience.give_up
            && is_down
            && since(self.up_at) >= give_up
        {
            let seconds = give_up / SECOND;
            let last = match &*self.trouble {
                "" => String::new(),
                trouble => format!(": {trouble}"),
            };
            self.fail(anyhow!("not logged on for {seconds} s{last}"));
        }
        let is_sent = self.ended && self.next.is_none();
        if let Some(wait) = self.patience.wait
            && is_sent
            && self.busy_at.is_some()
            && since(self.busy_at) >= wait
        {
            self.stop.raise();
        }
    }

    fn print(&mut self, message: &Message<'_>) {
        if let Err(error) = self.printer.received(message) {
            self.fail(error);
        }
    }
}

fn send(peer: &mut Peer<'_>, message: &Outgoing) -> Result<u64, SendError> {
    let fields = message.header.iter();
    let header: Vec<(u32, &[u8])> = fields
        .map(|(tag, value)| (*tag, value.as_slice()))
        .collect();
    let now = peer.now();
    peer.session()
        .send_with(now, &message.msg_type, &header, |body| {
            body.raw(&message.body);
        })
}

impl Handler for Application {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let mut sent = 0;
        while sent < BATCH && !self.stop.is_raised() && self.send_next(peers) {
            sent += 1;
        }
        self.look_at_clock(peers.now());
        sent
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.counts.received += 1;
        self.busy_at = Some(peer.now().mono);
        self.print(&message.message);
    }

    fn on_recovery(&mut self, id: &SessionId, recovery: &Recovery) {
        logs::recovery(id, recovery);
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        if let Some(session) = self.hosted(peer.key()) {
            session.is_up = true;
        }
        self.busy_at = Some(peer.now().mono);
        logs::session(
            LogLevel::Info,
            peer.id(),
            &format!("{}: logged on", peer.id()),
        );
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let session = self.hosted(peer.key());
        let (was_up, broken) = session.map_or((false, None), |session| {
            (take(&mut session.is_up), session.broken.take())
        });
        let why = match (reason, broken) {
            (_, Some(broken)) => format!("{broken}; {reason}"),
            (DisconnectReason::ConnectionLost, None) if !was_up => UNANSWERED.to_owned(),
            _ => reason.to_string(),
        };
        self.note_trouble(level_of(&reason), peer.id(), why);
    }

    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        // The reason of the end says that a connection is lost, but not what TLS refused.
        if error.kind() == ErrorKind::InvalidData
            && let Some(address) = peer.address()
            && let Some(session) = self.hosted(peer.key())
        {
            // It may quote the peer's certificate.
            let error = error.to_string();
            session.broken = Some(format!("{address}: {}", Escaped::text(&error)));
        }
    }

    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        match event {
            Event::RejectReceived(message) => {
                self.busy_at = Some(peer.now().mono);
                self.print(message);
            }
            Event::LogoutReceived(message) if message.position(58).is_some() => self.print(message),
            Event::Garbled(why) => logs::garbled(peer.id(), why),
            Event::Unreadable { seq, why } => logs::unreadable(peer.id(), *seq, why),
            Event::NoLongerKept { begin, end } => {
                logs::no_longer_kept(peer.id(), *begin, *end);
                let what = format!("{}: {}", peer.id(), logs::not_kept(*begin, *end));
                self.not_kept.get_or_insert(what);
            }
            Event::WaitingDiscarded { messages } => logs::discarded(peer.id(), *messages),
            _ => {}
        }
    }

    fn on_removed(&mut self, id: &SessionId) {
        self.sessions.retain(|session| session.id != *id);
    }

    fn on_log(&mut self, trouble: &LogTrouble) {
        tracing::warn!(target: "files", "{trouble}");
    }

    fn on_unconnected(&mut self, session: &SessionId, address: SocketAddr, why: &Refusal) {
        self.note_trouble(LogLevel::Warn, session, format_args!("{address}: {why}"));
    }
}
