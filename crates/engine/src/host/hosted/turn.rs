//! A session's duty cycle: reads, responds, and passes events to the application.

use super::{Hosted, Link};
use crate::host::handler::{Handler, Verdict};
use crate::host::log::{Direction, GRAIN, LogTap};
use crate::host::peer::{Peer, SessionKey};
use crate::host::refusal::Refusal;
use crate::tcp::Received;
use fanfare_fix::session::{DisconnectReason, Event, MessageStore, Now, Scratch, SessionId};
use std::any::Any;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The state shared by the sessions of a thread.
pub(in crate::host) struct Workbench<H> {
    pub(in crate::host) handler: Guarded<H>,
    pub(in crate::host) scratch: Scratch,
    pub(in crate::host) buffer: Box<[u8]>,
    /// The number of bytes at the front of the buffer that were messages of any session.
    pub(in crate::host) received: usize,
    pub(in crate::host) log: Option<LogTap>,
    /// Sessions whose next part of a resend is due. Each duty cycle writes the part of one, so that
    /// other sessions do not wait for a whole resend.
    pub(in crate::host) resending: VecDeque<SessionKey>,
    /// Sessions with received bytes that the kernel does not report.
    pub(in crate::host) pending: VecDeque<SessionKey>,
}

/// The application, with its panics caught.
pub(in crate::host) struct Guarded<H> {
    pub(in crate::host) handler: H,
    pub(in crate::host) panics: u64,
}

impl<H: Handler> Guarded<H> {
    /// Calls the application. Returns `None` if it panicked, after `on_panic`. The application is
    /// called again, as [`Handler`] documents.
    #[inline]
    pub(in crate::host) fn call<T>(
        &mut self,
        session: Option<&SessionId>,
        call: impl FnOnce(&mut H) -> T,
    ) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(|| call(&mut self.handler))) {
            Ok(value) => Some(value),
            Err(panic) => {
                self.panicked(session, &*panic);
                None
            }
        }
    }

    #[cold]
    pub(in crate::host) fn panicked(
        &mut self,
        session: Option<&SessionId>,
        panic: &(dyn Any + Send),
    ) {
        self.panics += 1;
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let text = text.unwrap_or("no message");
        let told = || self.handler.on_panic(session, text);
        // A panic of `on_panic` is not reported again.
        let _ = catch_unwind(AssertUnwindSafe(told));
    }

    pub(in crate::host) fn refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.call(None, |handler| handler.on_refused(address, why));
    }

    pub(in crate::host) fn unconnected(
        &mut self,
        session: &SessionId,
        address: SocketAddr,
        why: &Refusal,
    ) {
        self.call(Some(session), |handler| {
            handler.on_unconnected(session, address, why);
        });
    }
}

/// Whether a connection continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum Life {
    GoesOn,
    /// The session has ended. Its last bytes are still to be sent.
    Ended,
    /// The transport is gone.
    Broken,
}

impl Hosted {
    /// Reads once, handles all messages read, and writes the responses. Returns the number of
    /// bytes.
    pub(in crate::host) fn receive<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
    ) -> (usize, Life) {
        let Some(link) = &mut self.link else {
            return (0, Life::GoesOn);
        };
        let Workbench {
            handler,
            scratch,
            buffer,
            received,
            log,
            ..
        } = bench;
        // The bytes kept of an incomplete message count when the rest arrives.
        let room = handler.handler.room().saturating_sub(link.inbox.len());
        link.lacks_room = room == 0;
        let most = most(log).min(room);
        if most == 0 {
            link.leave_unread(now);
            return (0, Life::GoesOn);
        }
        let stream = link.stream;
        let transport = &mut link.connection.transport;
        let read = |room: &mut [u8]| {
            let most = most.min(room.len());
            transport.receive(room.get_mut(..most).unwrap_or_default())
        };
        match link.inbox.fill(buffer, read) {
            Ok((Received::Bytes(count), bytes)) => {
                let fresh = bytes.get(bytes.len() - count..).unwrap_or(&[]);
                note(log, now, stream, Direction::In, fresh);
                let is_logged = log.is_some();
                if count == most {
                    link.leave_unread(now);
                }
                let unread_since = link.unread_since;
                if let Some(since) = unread_since {
                    // Bytes that arrive later were not left unread.
                    if !link.connection.transport.has_unread() {
                        link.unread_since = None;
                    }
                    let nanos = now.mono.saturating_sub(since);
                    self.session.set_unread_for(nanos);
                }
                *received = self.pump(key, now, handler, scratch, is_logged, bytes);
                if unread_since.is_some() {
                    self.session.set_unread_for(0);
                }
                (count, self.drain(key, now, bench))
            }
            Ok((Received::Nothing, _)) => {
                link.unread_since = None;
                if std::mem::take(&mut self.unprepared) {
                    let last = buffer.get(..*received).unwrap_or(&[]);
                    self.session.rehearse(now, scratch, last);
                }
                (0, Life::GoesOn)
            }
            Ok((Received::Closed, _)) => (1, Life::Broken),
            Err(error) => (1, self.broke(key, now, bench, &error)),
        }
    }

    /// Reports that the transport has failed.
    #[cold]
    fn broke<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
        error: &io::Error,
    ) -> Life {
        let (handler, is_logged) = (&mut bench.handler, bench.log.is_some());
        let told = catch_unwind(AssertUnwindSafe(|| {
            let peer = &mut self.peer(key, now, is_logged, None);
            handler.handler.on_broken(peer, error);
        }));
        if let Err(panic) = told {
            handler.panicked(Some(&self.session.config().id), &*panic);
        }
        Life::Broken
    }

    /// Passes bytes to the session that were read before their session was known.
    pub(in crate::host) fn feed<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
        bytes: &[u8],
    ) -> Life {
        let Workbench {
            handler,
            scratch,
            log,
            ..
        } = bench;
        let stream = self.link.as_ref().map_or(key.0, |link| link.stream);
        note(log, now, stream, Direction::In, bytes);
        let is_logged = log.is_some();
        self.pump(key, now, handler, scratch, is_logged, bytes);
        self.drain(key, now, bench)
    }

    /// Feeds bytes to the session and its events to the handler, and keeps those of an incomplete
    /// message. Returns the number of bytes consumed.
    fn pump<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        handler: &mut Guarded<H>,
        scratch: &mut Scratch,
        is_logged: bool,
        bytes: &[u8],
    ) -> usize {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or(&[]);
            let step = self.session.handle_bytes(now, scratch, rest);
            let idle = step.is_idle();
            if let Some(event) = step.event {
                self.deliver(key, now, handler, is_logged, &event);
            }
            done += step.consumed;
            if self.session.begins_resend() {
                self.resend_part(key, now, handler, scratch);
            }
            // Events may be left when the bytes are used up: messages that waited behind a gap.
            if idle {
                break;
            }
        }
        if let Some(link) = &mut self.link {
            link.inbox.keep(bytes.get(done..).unwrap_or(&[]));
        }
        done
    }

    fn deliver<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        handler: &mut Guarded<H>,
        is_logged: bool,
        event: &Event<'_>,
    ) {
        let session = &mut self.session;
        if let (Event::App(message), Some(received)) = (event, &mut self.received)
            && let Err(error) = received.keep(session.store().created(), message)
        {
            let reason = DisconnectReason::Store(error);
            return session.abandon(now, &reason.to_string(), reason);
        }
        if let Event::LoggedOn { .. } = event
            && let Some(made) = self.made_mut()
        {
            // Before the handler or the next message ends the session.
            made.has_logged_on = true;
        }
        let told = catch_unwind(AssertUnwindSafe(|| {
            let peer = &mut self.peer(key, now, is_logged, None);
            dispatch(peer, &mut handler.handler, event);
        }));
        if let Err(panic) = told {
            handler.panicked(Some(&self.session.config().id), &*panic);
            let reason = DisconnectReason::ApplicationPanicked;
            self.session.abandon(now, INTERNAL_ERROR, reason);
        }
    }

    /// Advances the session's time.
    pub(in crate::host) fn on_time<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
    ) -> Life {
        if self.session.poll_timeout().is_some_and(|at| at <= now.mono) {
            if self.link.as_ref().is_some_and(Link::is_left_unread) {
                self.session.excuse(now);
            }
            self.session.handle_timeout(now);
            self.resend_part(key, now, &mut bench.handler, &mut bench.scratch);
            return self.drain(key, now, bench);
        }
        Life::GoesOn
    }

    /// Writes the next part of a resend, if one is due. The handler decides on each message.
    fn resend_part<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        guarded: &mut Guarded<H>,
        scratch: &mut Scratch,
    ) {
        if !self.session.is_due_at_once() {
            return;
        }
        let session = &mut self.session;
        let written = catch_unwind(AssertUnwindSafe(|| {
            session.resend_part(now, scratch, |kept| guarded.handler.on_resend(key, kept));
        }));
        if let Err(panic) = written {
            guarded.panicked(Some(&self.session.config().id), &*panic);
            let reason = DisconnectReason::ApplicationPanicked;
            self.session.abandon(now, INTERNAL_ERROR, reason);
        }
    }

    /// Passes events to the handler, and writes the bytes to be transmitted. A resend continues in
    /// a later duty cycle.
    pub(in crate::host) fn drain<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
    ) -> Life {
        self.touched = false;
        self.deliver_all(key, now, bench);
        if let Err(error) = self.flush(now, &mut bench.log) {
            return self.broke(key, now, bench, &error);
        }
        if !self.session.is_connected() && self.link.is_some() {
            // The flush may have ended the session, if its store failed.
            self.deliver_all(key, now, bench);
            return Life::Ended;
        }
        if self.session.is_due_at_once() && !self.resending {
            self.resending = true;
            bench.resending.push_back(key);
        }
        Life::GoesOn
    }

    fn deliver_all<H: Handler>(&mut self, key: SessionKey, now: Now, bench: &mut Workbench<H>) {
        while let Some(event) = self.session.poll_event() {
            let is_logged = bench.log.is_some();
            self.deliver(key, now, &mut bench.handler, is_logged, &event);
        }
    }

    /// Offers all bytes to the kernel, those in the outbound queue first.
    fn flush(&mut self, now: Now, log: &mut Option<LogTap>) -> io::Result<()> {
        self.session.sync(now);
        let Some(link) = &mut self.link else {
            return Ok(());
        };
        if !send_queue(link, now, log)? {
            return Ok(());
        }
        loop {
            let waiting = self.session.poll_transmit();
            if waiting.is_empty() {
                break;
            }
            let most = most(log);
            if most == 0 {
                return Ok(());
            }
            let waiting = waiting.get(..most).unwrap_or(waiting);
            let transport = &mut link.connection.transport;
            let taken = transport.send(&[IoSlice::new(waiting)])?;
            if taken == 0 {
                return Ok(());
            }
            note(
                log,
                now,
                link.stream,
                Direction::Out,
                waiting.get(..taken).unwrap_or(&[]),
            );
            self.session.transmitted(taken);
            self.unprepared = true;
        }
        link.connection.transport.flush()
    }

    /// Takes the connection from the session, reports that to the session, and returns the
    /// connection to be closed. The session is free for the next connection before this one is
    /// closed.
    pub(in crate::host) fn part<H: Handler>(
        &mut self,
        key: SessionKey,
        now: Now,
        bench: &mut Workbench<H>,
    ) -> Option<Link> {
        self.session.disconnected(now);
        self.deliver_all(key, now, bench);
        self.link.take()
    }
}

/// Offers the outbound queue to the kernel. Returns whether it is empty then.
#[inline]
pub(in crate::host) fn send_queue(
    link: &mut Link,
    now: Now,
    log: &mut Option<LogTap>,
) -> io::Result<bool> {
    let (connection, stream) = (&mut link.connection, link.stream);
    while connection.queued() > 0 {
        let most = most(log);
        let sent = |bytes: &[u8]| note(log, now, stream, Direction::Out, bytes);
        if most == 0 || connection.send_queued(most, sent)? == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns how many bytes may be read or sent at once, so that the message log has space for them.
#[inline]
fn most(log: &mut Option<LogTap>) -> usize {
    match log {
        None => usize::MAX,
        Some(log) => match log.takes() {
            true => GRAIN,
            false => 0,
        },
    }
}

#[inline]
fn note(log: &mut Option<LogTap>, now: Now, stream: usize, direction: Direction, bytes: &[u8]) {
    if let Some(log) = log {
        log.bytes(now, stream, direction, bytes);
    }
}

/// Text(58) of the Logout after the application failed to handle a message.
pub(in crate::host) const INTERNAL_ERROR: &str = "internal error";

#[inline]
fn dispatch<H: Handler>(peer: &mut Peer<'_>, handler: &mut H, event: &Event<'_>) {
    match event {
        Event::App(message) => handler.on_message(peer, message),
        Event::LoggedOn { .. } => handler.on_logon(peer),
        Event::Disconnect(reason) => handler.on_disconnect(peer, *reason),
        Event::LogonRequested(logon) => match handler.on_logon_request(peer, logon) {
            Verdict::Accept => peer.session.accept_logon(peer.now),
            Verdict::Refuse(text) => peer.session.refuse_logon(peer.now, &text),
        },
        other => handler.on_event(peer, other),
    }
}
