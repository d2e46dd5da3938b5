//! The sessions of one agent: logged on, kept alive, ended with a reason.

use crate::Config;
use crate::counts::PeerCounts;
use crate::lobby::Newcomer;
use crate::notice::{Limit, Notice, Notices, PeerEnd, Refusal, Rejection};
use crate::peer::{Live, Peer};
use crate::registry::Claim;
use crate::rules::SideRules;
use crate::versions::Versions;
use fanfare_engine::poll::{self, Poller, Token};
use fanfare_engine::slots::Slots;
use fanfare_engine::tcp::{Connection, Received};
use fanfare_fix::codec::{Message, msg_types};
use fanfare_fix::session::{
    self, AppMessage, Event, MessageStore, NoResendStore, Now, SECOND, Scratch, Session, SessionId,
    Step,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Events taken from the kernel in one turn.
const EVENTS: usize = 256;

/// How often timers are looked at, in nanoseconds. They are seconds long.
const TICK: u64 = SECOND / 10;

/// How long a shutdown waits for the answers to its Logouts.
const FAREWELL: Duration = Duration::from_millis(500);

/// Where application messages go.
pub(crate) trait Sink {
    /// Whether the messages of a read of so many bytes can be taken now. If not, the connection
    /// is left alone for this turn, and the kernel holds its bytes.
    fn has_room(&mut self, bytes: usize) -> bool;

    /// Takes one message.
    fn take(&mut self, message: &AppMessage<'_>);
}

/// Forgets what it gets: consumers have nothing to say to a fan-out.
pub(crate) struct Discard;

impl Sink for Discard {
    fn has_room(&mut self, _bytes: usize) -> bool {
        true
    }

    fn take(&mut self, _message: &AppMessage<'_>) {}
}

/// The connections of one agent.
pub(crate) struct Peers {
    queue_bytes: usize,
    poller: Poller,
    slots: Slots<Peer>,
    desk: Desk,
    /// Shared by all connections: each keeps only the bytes of a message that is not complete.
    buffer: Box<[u8]>,
    next_tick: u64,
    /// Connections to end after the walk over all of them.
    ending: Vec<(Token, PeerEnd)>,
}

impl Peers {
    /// `versions` counts those of the sessions.
    pub(crate) fn new(
        config: &Config,
        counts: PeerCounts,
        notices: Notices,
        versions: Versions,
    ) -> io::Result<Self> {
        let message_bytes = config.limits.message_bytes;
        Ok(Self {
            queue_bytes: config.slow_consumer.queue_bytes,
            poller: Poller::new(EVENTS)?,
            slots: Slots::new(),
            desk: Desk {
                scratch: Scratch::new(message_bytes),
                counts,
                notices,
                rejects: Limit::default(),
                versions,
            },
            // One whole message may be kept, and a read must still have room.
            buffer: vec![0; 2 * message_bytes].into_boxed_slice(),
            next_tick: 0,
            ending: Vec::new(),
        })
    }

    /// Takes a connection whose Logon has come.
    pub(crate) fn seat(&mut self, now: Now, newcomer: Newcomer, sink: &mut impl Sink) {
        let Newcomer {
            stream,
            bytes,
            claim,
            rules,
            seat,
        } = newcomer;
        let mut connection = Connection::new(stream, self.queue_bytes);
        let registered = connection.register(&self.poller, self.slots.next_token());
        let token = self.slots.insert(Peer {
            connection,
            live: Box::new(open(now, &rules, claim)),
            _seat: seat,
        });
        self.desk.counts.connections.set(self.slots.len() as u64);
        let begun = registered.map_err(broken);
        if let Err(end) = begun.and_then(|()| self.begin(now, token, &bytes, sink)) {
            self.end(now, token, end);
        }
    }

    /// Hands a new session the bytes that came with its Logon.
    fn begin(
        &mut self,
        now: Now,
        token: Token,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Result<(), PeerEnd> {
        let Some(Peer {
            connection, live, ..
        }) = self.slots.get_mut(token)
        else {
            return Ok(());
        };
        let mut outcome = Ok(());
        connection.resume(bytes, |connection, bytes| {
            let (done, result) = self.desk.understand(now, connection, live, bytes, sink);
            outcome = result;
            done
        });
        outcome?;
        live.transmit(now, connection)?;
        update_interest(&self.poller, token, connection)
    }

    /// One turn: reads each connection that is ready once, writes what can be written, and handles
    /// timers that are due. Returns the number of connections that were ready.
    pub(crate) fn turn(&mut self, now: Now, sink: &mut impl Sink) -> io::Result<usize> {
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        for i in 0..ready {
            let Some(event) = self.poller.event(i) else {
                break;
            };
            if let Err(end) = self.serve(now, event, sink) {
                self.end(now, event.token, end);
            }
        }
        if now.mono >= self.next_tick {
            self.next_tick = now.mono + TICK;
            self.tick(now);
        }
        Ok(ready)
    }

    /// Calls `each` for every logged-on session. An `Err` ends the session.
    pub(crate) fn for_each_live(
        &mut self,
        now: Now,
        mut each: impl FnMut(&mut Live, &mut Connection) -> Result<(), PeerEnd>,
    ) {
        for (token, peer) in self.slots.iter_mut() {
            let Peer {
                connection, live, ..
            } = peer;
            if !live.session.is_logged_on() {
                continue;
            }
            let done = each(live, connection)
                .and_then(|()| update_interest(&self.poller, token, connection));
            if let Err(end) = done {
                self.ending.push((token, end));
            }
        }
        self.end_marked(now);
    }

    /// Connections now.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Logs every session out and waits a moment for the answers.
    pub(crate) fn say_goodbye(&mut self, now: Now) {
        self.for_each_live(now, |live, connection| {
            live.tell_holes(now, connection, usize::MAX)?;
            live.session.logout(now, "shutting down");
            live.transmit(now, connection)
        });
        let steps = FAREWELL.as_millis() / 10;
        for _ in 0..steps {
            if self.slots.is_empty() || self.poller.poll(Some(Duration::from_millis(10))).is_err() {
                break;
            }
            if self.turn(now, &mut Discard).is_err() {
                break;
            }
        }
        let left: Vec<Token> = self.slots.iter().map(|(token, _)| token).collect();
        for token in left {
            self.end(
                now,
                token,
                PeerEnd::Session(session::DisconnectReason::Closed),
            );
        }
    }

    /// Reads and writes one connection.
    fn serve(&mut self, now: Now, event: poll::Event, sink: &mut impl Sink) -> Result<(), PeerEnd> {
        // A token without a slot: its connection ended earlier in this turn.
        let Some(peer) = self.slots.get_mut(event.token) else {
            return Ok(());
        };
        let Peer {
            connection, live, ..
        } = peer;
        if event.is_writable() {
            connection.flush().map_err(broken)?;
        }
        if event.is_readable() && sink.has_room(self.buffer.len()) {
            let desk = &mut self.desk;
            let mut outcome = Ok(());
            let received = connection.receive(&mut self.buffer, |connection, bytes| {
                let (done, result) = desk.understand(now, connection, live, bytes, sink);
                outcome = result;
                done
            });
            outcome?;
            match received {
                Ok(Received::Closed) => return Err(closed(now, live)),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(GARBLED),
                Err(e) => return Err(broken(e)),
            }
        }
        live.transmit(now, connection)?;
        live.tell_holes(now, connection, self.queue_bytes)?;
        update_interest(&self.poller, event.token, connection)
    }

    /// Timers of all connections.
    fn tick(&mut self, now: Now) {
        for (token, peer) in self.slots.iter_mut() {
            let Peer {
                connection, live, ..
            } = peer;
            let notice = live.report(now, connection.stream().peer());
            notice.into_iter().for_each(|n| self.desk.notices.tell(n));
            let done = look_after(now, live, connection)
                .and_then(|()| update_interest(&self.poller, token, connection));
            if let Err(end) = done {
                self.ending.push((token, end));
            }
        }
        self.end_marked(now);
    }

    fn end_marked(&mut self, now: Now) {
        while let Some((token, end)) = self.ending.pop() {
            self.end(now, token, end);
        }
    }

    /// Frees the session before the socket closes: whoever sees the close may log on again.
    #[cold]
    fn end(&mut self, now: Now, token: Token, end: PeerEnd) {
        let Some(Peer {
            connection,
            mut live,
            ..
        }) = self.slots.remove(token)
        else {
            return;
        };
        live.session.disconnected(now);
        live.keep_numbers();
        if let Some(version) = live.version {
            self.desk.versions.ended(version);
        }
        self.desk.counts.ended.increment(1);
        self.desk.counts.connections.set(self.slots.len() as u64);
        self.desk.notices.tell(Notice::Ended {
            session: Some(live.claim.id().clone()),
            peer: connection.stream().peer(),
            end,
            left_out: live.left_out,
        });
        drop(live);
        let _ = connection.stream().finish();
    }
}

/// What it takes to understand the bytes of the connections.
struct Desk {
    scratch: Scratch,
    counts: PeerCounts,
    notices: Notices,
    rejects: Limit,
    /// Of the sessions that are logged on.
    versions: Versions,
}

impl Desk {
    /// Returns how many bytes are done with, and whether the connection goes on.
    fn understand(
        &mut self,
        now: Now,
        connection: &mut Connection,
        live: &mut Live,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> (usize, Result<(), PeerEnd>) {
        let Self {
            scratch,
            counts,
            notices,
            rejects,
            versions,
        } = self;
        let mut rejects = Rejects {
            now,
            limit: rejects,
            counts,
            notices,
        };
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let step = live.session.handle_bytes(now, scratch, rest);
            if step.is_idle() {
                return (at, Ok(()));
            }
            let Step { consumed, event } = step;
            at += consumed;
            match event {
                Some(Event::App(message)) => {
                    if message.message.msg_type() == msg_types::BUSINESS_MESSAGE_REJECT {
                        rejects.tell(live.claim.id(), &message.message);
                    }
                    sink.take(&message);
                }
                Some(Event::RejectReceived(message)) => {
                    rejects.tell(live.claim.id(), &message);
                }
                Some(Event::LoggedOn { .. }) => {
                    counts.logons.increment(1);
                    live.begins(versions);
                    let session = live.claim.id().clone();
                    let peer = connection.stream().peer();
                    notices.tell(Notice::LoggedOn { session, peer });
                }
                Some(Event::Disconnect(reason)) => {
                    // What the session still has to say goes out first, if it can.
                    let _ = live.transmit(now, connection);
                    return (at, Err(PeerEnd::Session(reason)));
                }
                _ => {}
            }
        }
    }
}

/// Notices of messages of ours that peers reject.
struct Rejects<'a> {
    now: Now,
    limit: &'a mut Limit,
    counts: &'a PeerCounts,
    notices: &'a Notices,
}

impl Rejects<'_> {
    /// Counts a rejection, and sends a notice within the limit.
    #[cold]
    fn tell(&mut self, session: &SessionId, message: &Message<'_>) {
        self.counts.rejects.increment(1);
        if self.limit.lets(self.now.utc.nanos()) {
            self.notices.tell(Notice::Rejected {
                session: session.clone(),
                reject: Rejection::of(message),
                untold: self.limit.untold(),
            });
        }
    }
}

/// The session of a claim, with the numbers that it goes on with.
fn open(now: Now, rules: &SideRules, claim: Claim) -> Live {
    let id = claim.id().clone();
    let config = session::Config {
        precision: id.version.precision(),
        id,
        ..rules.template.clone()
    };
    let mut store = NoResendStore::default();
    // This store keeps numbers in memory; setting them cannot fail.
    let _ = store.set_next_sender(claim.numbers.sender);
    let _ = store.set_next_target(claim.numbers.target);
    let mut session = Session::acceptor(config, store);
    session.connected(now);
    Live::new(session, claim)
}

/// A message that can never be complete.
const GARBLED: PeerEnd = PeerEnd::Refused(Refusal::Garbled);

/// Timers of one session, and what they made it say.
fn look_after(now: Now, live: &mut Live, connection: &mut Connection) -> Result<(), PeerEnd> {
    if live.session.poll_timeout().is_none_or(|at| at > now.mono) {
        return Ok(());
    }
    live.session.handle_timeout(now);
    let mut end = Ok(());
    while let Some(event) = live.session.poll_event() {
        if let Event::Disconnect(reason) = event {
            end = Err(PeerEnd::Session(reason));
        }
    }
    live.transmit(now, connection).and(end)
}

fn update_interest(
    poller: &Poller,
    token: Token,
    connection: &mut Connection,
) -> Result<(), PeerEnd> {
    connection.update_interest(poller, token).map_err(broken)
}

/// The peer closed: the session knows why.
fn closed(now: Now, live: &mut Live) -> PeerEnd {
    live.session.disconnected(now);
    while let Some(event) = live.session.poll_event() {
        if let Event::Disconnect(reason) = event {
            return PeerEnd::Session(reason);
        }
    }
    PeerEnd::Session(session::DisconnectReason::ConnectionLost)
}

fn broken(error: io::Error) -> PeerEnd {
    PeerEnd::Broken(error.to_string())
}
