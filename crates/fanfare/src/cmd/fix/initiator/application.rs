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
    AppMessage, DisconnectReason, Event, Now, SECOND, SendError, SessionId, State, StoreError,
};
use fanfare_wire::UtcTimestamp;
use fanfare_wire::text::Escaped;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::mem::{replace, take};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError};

/// The time limits of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Nanoseconds without a message after all was sent; `None`: no limit.
    pub(super) wait: Option<u64>,
    /// Nanoseconds without a logon, or in which nothing of what waits is transmitted; `None`: no
    /// limit.
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
    /// When the sessions were last logged on and made progress, and the time of the last message
    /// sent or received.
    up_at: Option<u64>,
    busy_at: Option<u64>,
    /// Whether a connection with messages was lost.
    has_lost: bool,
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
    /// The count of messages that it has sent since both sides last logged out with all of them
    /// transmitted, and MsgSeqNum(34) of the last one.
    sent: u64,
    last: u64,
    /// Whether all that it has sent was transmitted when that was last checked, while it was up.
    is_drained: bool,
    /// The count of bytes transmitted up to the last check.
    transmitted: u64,
    /// Whether bytes waited at the last check, and none was transmitted since the one before.
    is_stuck: bool,
    /// Why its last logged-on connection ended; `None` while it is up.
    end: Option<DisconnectReason>,
    /// Why TLS failed on its connection, until the end of that.
    broken: Option<String>,
}

impl Hosted {
    /// Returns whether messages that it has sent may not have reached the counterparty, unless it
    /// logs on again.
    fn is_cut_off(&self) -> bool {
        self.sent > 0 && !self.is_up
    }

    /// Returns whether messages that it has sent are not transmitted yet.
    fn is_pending(&self) -> bool {
        self.is_cut_off() || (self.sent > 0 && self.is_up && !self.is_drained)
    }
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

/// The least time for which a session stays logged on after a connection with messages was lost, in
/// nanoseconds: the counterparty requests what it misses.
const RESUMED: u64 = SECOND;

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
            has_lost: false,
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
            sent: 0,
            last: 0,
            is_drained: false,
            transmitted: 0,
            is_stuck: false,
            end: None,
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
    /// The first failure, or messages that were not sent, not sent again, or may not have arrived,
    /// as the session did not end with an answered Logout.
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
        if let Some(what) = self.not_kept.take() {
            return Err(anyhow!("not sent again: {what}"));
        }
        let is_cut = |session: &&Hosted| session.sent > 0;
        match self.sessions.iter().find(is_cut) {
            Some(Hosted { id, end, .. }) => {
                let why = end.unwrap_or(DisconnectReason::LogoutTimeout);
                Err(anyhow!("{id}: {why}: messages may not have arrived"))
            }
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
            Ok(seq) => {
                self.counts.sent += 1;
                self.busy_at = Some(peers.now().mono);
                if let Some(session) = session.and_then(|key| self.hosted(key)) {
                    session.sent += 1;
                    session.last = seq;
                    session.is_drained = false;
                }
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

    /// Checks whether the sessions have transmitted what they have sent.
    fn look_at_sessions(&mut self, peers: &mut Peers<'_>) {
        for session in self.sessions.iter_mut().filter(|session| session.is_up) {
            let Some(peer) = peers.get(session.key) else {
                continue;
            };
            let waits = peer.queued() > 0;
            session.is_drained = !waits && !peer.is_resending();
            let before = replace(&mut session.transmitted, peer.bytes_transmitted());
            session.is_stuck = waits && session.transmitted == before;
        }
    }

    /// Ends the run if a time limit has passed.
    fn look_at_clock(&mut self, now: Now) {
        let is_sent = self.ended && self.next.is_none();
        if self.sessions.iter().any(Hosted::is_pending) {
            self.busy_at = Some(now.mono);
        }
        let since = |at: Option<u64>| now.mono.saturating_sub(at.unwrap_or(now.mono));
        let stuck = self.sessions.iter().find(|session| session.is_stuck);
        let is_down = stuck.is_some()
            || !self.sessions.iter().any(|session| session.is_up)
            || (is_sent && self.sessions.iter().any(Hosted::is_cut_off));
        if !is_down || self.up_at.is_none() {
            self.up_at = Some(now.mono);
        }
        if let Some(give_up) = self.patience.give_up
            && is_down
            && since(self.up_at) >= give_up
        {
            let seconds = give_up / SECOND;
            let why = match (stuck, &*self.trouble) {
                (Some(session), _) => {
                    format!("{}: nothing was transmitted for {seconds} s", session.id)
                }
                (None, "") => format!("not logged on for {seconds} s"),
                (None, trouble) => format!("not logged on for {seconds} s: {trouble}"),
            };
            self.fail(anyhow!(why));
        }
        let least = if self.has_lost { RESUMED } else { 0 };
        if let Some(wait) = self.patience.wait
            && is_sent
            && self.busy_at.is_some()
            && since(self.busy_at) >= wait.max(least)
            && !self.sessions.iter().any(Hosted::is_pending)
        {
            self.stop.raise();
        }
    }

    /// Notes that a session is up. Returns the last number of those messages of a lost connection
    /// that are not sent again, as the numbers begin again, if there are any; `next` is the next
    /// number.
    fn note_up(&mut self, key: SessionKey, next: u64) -> Option<u64> {
        let session = self.hosted(key)?;
        session.is_up = true;
        let is_lost = session.end.take().is_some();
        (is_lost && session.sent > 0 && next <= session.last).then_some(session.last)
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
    if peer.session().state() == State::LoggingOut {
        // It would be kept for a resend. Its turn comes after the next logon.
        return Err(SendError::NotLoggedOn);
    }
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
        self.look_at_sessions(peers);
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
        let (next, _) = peer.next_numbers();
        if let Some(last) = self.note_up(peer.key(), next) {
            let why = "the numbers began again after the connection was lost";
            let what = format!("{}: messages up to {last}, as {why}", peer.id());
            logs::session(LogLevel::Warn, peer.id(), &what);
            self.not_kept.get_or_insert(what);
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
        let (was_up, broken, has_sent) = session.map_or((false, None, false), |session| {
            let was_up = take(&mut session.is_up);
            if was_up {
                session.end = Some(reason);
                session.is_stuck = false;
            }
            (was_up, session.broken.take(), session.sent > 0)
        });
        self.has_lost |= was_up && has_sent;
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
        if let Event::LogoutReceived(_) = event
            && let Some(session) = self.hosted(peer.key())
            && session.is_up
            && !peer.is_cut_short()
        {
            session.sent = 0;
        }
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
            Event::QueueFull { seq } => logs::queue_full(peer.id(), *seq),
            Event::WaitingDiscarded { messages } => logs::discarded(peer.id(), *messages),
            Event::HeldDiscarded { messages } => logs::held_discarded(peer.id(), *messages),
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
