//! Operators' commands to a host: listing its sessions and steering them.

use super::is_seq_num;
use crate::host::handler::Handler;
use crate::host::hosted::Hosted;
use crate::host::store::Store;
use crate::host::{Host, HostError};
use fanfare_fix::session::{MessageStore, Now, Role, Session, SessionId, State, SubIds, Version};
use std::net::SocketAddr;

/// A session of a host, as of one duty cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The identity of the session.
    pub id: SessionId,
    /// The role: initiator or acceptor.
    pub role: Role,
    /// The state of the session.
    pub state: State,
    /// Whether the session is kept from logging on: see [`Steer::Stop`].
    pub is_stopped: bool,
    /// Whether the session was made from a template, for a Logon or by an operator.
    pub is_made: bool,
    /// MsgSeqNum(34) of the next message to be sent.
    pub next_sender: u64,
    /// MsgSeqNum(34) expected next.
    pub next_target: u64,
    /// The counterparty's address; `None` without a connection.
    pub peer: Option<SocketAddr>,
    /// How long the counterparty has been silent, in nanoseconds; `None` without a connection.
    pub silent: Option<u64>,
    /// The response time of the last TestRequest(1) on this connection, in nanoseconds.
    pub round_trip: Option<u64>,
    /// Bytes that wait for the counterparty to read.
    pub queued: usize,
    /// The address of the acceptor's port; `None` for an initiator.
    pub port: Option<SocketAddr>,
}

/// Some sessions of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionInfo>,
    /// The index of the first session of the next page; `None` after the last.
    pub next: Option<usize>,
}

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// Log out, with this Text(58). An initiator reconnects after its back-off.
    LogOut(String),
    /// Send a TestRequest(1), whose response time is [measured](SessionInfo::round_trip).
    TestRequest,
    /// End the connection without a Logout(5). An initiator reconnects.
    Disconnect,
    /// Restart both directions at 1: at once without a connection, by a Logon(A) with
    /// ResetSeqNumFlag(141)=Y while logged on. An initiator without a connection asks for the reset
    /// in its next Logon(A), too. Refused during a resend and while messages wait for their rate,
    /// as those would be lost.
    Reset {
        /// Whether to do so even if messages of the counterparty are missing. These are lost, and
        /// so are the received ones behind them.
        force: bool,
    },
    /// Change the sequence numbers. Without a connection, a reset that the counterparty has not
    /// answered is not requested again.
    SetNumbers {
        /// MsgSeqNum(34) of the next message to be sent.
        sender: Option<u64>,
        /// MsgSeqNum(34) expected next.
        target: Option<u64>,
        /// Whether to do so even if the counterparty has seen the number of the next message.
        force: bool,
    },
    /// Log out with this Text(58), and keep the session from logging on until [`Steer::Start`] or
    /// the end of the host.
    Stop(String),
    /// Let a stopped session log on again; an initiator connects at once.
    Start,
}

/// TestReqID(112) of an operator's TestRequest(1).
const TEST_REQ_ID: &[u8] = b"OPERATOR";

/// Most sessions described in one duty cycle, so that no message waits for it.
const PAGE: usize = 256;

impl<H: Handler> Host<H> {
    pub(super) fn list(&self, from: usize, now: Now) -> SessionPage {
        let behind = from.saturating_add(PAGE);
        let places = self.hosted.iter().skip(from).take(PAGE);
        let sessions = places.filter(|hosted| !hosted.is_vacant);
        SessionPage {
            sessions: sessions.map(|hosted| self.describe(hosted, now)).collect(),
            next: (behind < self.hosted.len()).then_some(behind),
        }
    }

    fn describe(&self, hosted: &Hosted, now: Now) -> SessionInfo {
        let (session, access) = (&hosted.session, hosted.access.as_ref());
        let link = hosted.link.as_ref();
        let port = access.and_then(|access| self.ports.get(&access.port));
        SessionInfo {
            id: session.config().id.clone(),
            role: session.role(),
            state: session.state(),
            is_stopped: hosted.is_stopped,
            is_made: hosted.made().is_some(),
            next_sender: session.store().next_sender(),
            next_target: session.store().next_target(),
            peer: link.map(|link| link.connection.transport.peer()),
            silent: link.map(|_| now.mono.saturating_sub(session.last_received())),
            round_trip: session.round_trip(),
            queued: hosted.unsent(),
            port: port.map(|own| own.port.address()),
        }
    }

    pub(super) fn steer(&mut self, id: SessionId, steer: Steer, now: Now) -> Result<(), HostError> {
        let key = self.remote.key(&id);
        let found = key.and_then(|key| Some((key, self.hosted.get_mut(key.0)?)));
        let Some((key, hosted)) = found else {
            return Err(HostError::Unknown(id));
        };
        let session = &mut hosted.session;
        let mut done = Ok(());
        match steer {
            Steer::LogOut(_) | Steer::TestRequest | Steer::Disconnect if hosted.link.is_none() => {
                return Err(HostError::NotConnected(id));
            }
            Steer::TestRequest => {
                let sent = session.test_request(now, TEST_REQ_ID);
                done = sent.map(drop).map_err(HostError::Send);
            }
            Steer::LogOut(text) => session.logout(now, &text),
            Steer::Disconnect => session.close(now),
            Steer::Reset { force } => done = reset(session, now, force),
            Steer::SetNumbers {
                sender,
                target,
                force,
            } => done = set_numbers(session, now, [sender, target], force),
            Steer::Stop(_) if hosted.is_stopped => return Err(HostError::Stopped(id)),
            Steer::Stop(text) => {
                hosted.is_stopped = true;
                session.logout(now, &text);
                let unconnected = hosted.connector.as_mut().filter(|_| hosted.link.is_none());
                // Abandons a connection under way.
                unconnected.map(|connector| connector.lost(now.mono));
            }
            Steer::Start if !hosted.is_stopped => return Err(HostError::NotStopped(id)),
            Steer::Start => {
                hosted.is_stopped = false;
                if let Some(connector) = &mut hosted.connector {
                    connector.hurry();
                }
            }
        }
        // Also after an error: a store that fails has ended the session.
        self.write(key, now);
        done
    }

    pub(super) fn make_at(
        &mut self,
        port: Option<SocketAddr>,
        id: SessionId,
        now: Now,
    ) -> Result<SessionId, HostError> {
        if self.remote.key(&id).is_some() {
            return Err(HostError::Duplicate(id));
        }
        if let Some(address) = port
            && self.port_at(address).is_none()
        {
            return Err(HostError::NoPort(address));
        }
        let sub = id.sub.as_deref().cloned().unwrap_or_default();
        let plain = SessionId::new(id.version, &id.sender, &id.target);
        let Some((number, wildcard, config)) = self.template_for(port, &plain, &sub) else {
            return Err(HostError::NoTemplate(id));
        };
        let made = self.make(number, wildcard, config, true, now);
        let key = made.map_err(|why| HostError::Refused(Box::new(why)))?;
        let hosted = self.hosted.get(key.0).ok_or(HostError::Unknown(id))?;
        Ok(hosted.session.config().id.clone())
    }

    /// Returns the first template that matches, with the number of its port.
    fn template_for(
        &self,
        port: Option<SocketAddr>,
        id: &SessionId,
        sub: &SubIds,
    ) -> Option<(usize, usize, fanfare_fix::session::Config)> {
        let is_wanted = |number: &usize| {
            let own = self.ports.get(number);
            own.is_some_and(|own| port.is_none_or(|port| port == own.port.address()))
        };
        (0..self.next_port).filter(is_wanted).find_map(|number| {
            let (wildcard, config) = self.fitting(number, (id, sub), None)?;
            Some((number, wildcard, config))
        })
    }
}

fn reset(session: &mut Session<Store>, now: Now, force: bool) -> Result<(), HostError> {
    let id = &session.config().id;
    match session.state() {
        State::Idle | State::Ended => {
            session.reset_idle(now).map_err(HostError::Numbers)?;
            if session.role() == Role::Initiator {
                // The counterparty would take number 1 as too low.
                session.ask_reset();
            }
            Ok(())
        }
        State::LoggedOn if id.version > Version::Fix40 => {
            if session.is_missing_messages() && !force {
                return Err(HostError::Missing(id.clone()));
            }
            session.reset_despite_gap(now).map_err(HostError::Send)
        }
        state => Err(HostError::NoReset(id.clone(), state)),
    }
}

/// Changes both numbers or neither.
fn set_numbers(
    session: &mut Session<Store>,
    now: Now,
    numbers: [Option<u64>; 2],
    force: bool,
) -> Result<(), HostError> {
    let mut given = numbers.into_iter().flatten();
    if let Some(seq) = given.find(|seq| !is_seq_num(*seq)) {
        return Err(HostError::Number(seq));
    }
    let [sender, target] = numbers;
    if let Some(wanted) = sender {
        let next = session.store().next_sender();
        if session.is_connected() && wanted < next && !force {
            let id = session.config().id.clone();
            return Err(HostError::Lower { id, wanted, next });
        }
        session
            .change_next_sender(now, wanted)
            .map_err(HostError::Send)?;
    }
    if let Some(wanted) = target {
        session
            .change_next_target(now, wanted)
            .map_err(HostError::Send)?;
    }
    Ok(())
}
