//! Connections of sessions that have ended.

use super::{Host, Slot};
use crate::host::handler::Handler;
use crate::host::hosted::Link;
use crate::host::hosted::turn::{Workbench, send_queue};
use crate::host::log::{LogTap, OVERLAP};
use crate::host::peer::SessionKey;
use crate::poll::{Interest, Poller, Token};
use crate::tcp::Received;
use fanfare_fix::session::Now;
use std::io;

/// A connection whose session has ended. It sends the last bytes, and is closed when the
/// counterparty has closed it, too, or at its deadline.
pub(in crate::host) struct Ending {
    link: Link,
    deadline: u64,
    /// Whether everything is sent, and our direction shut down.
    has_sent_all: bool,
    /// Whether the counterparty sends no more.
    has_read_all: bool,
}

impl Ending {
    /// Returns when the connection is to be closed.
    pub(super) const fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Sends what waits, and reads once. Returns an amount of work.
    fn turn<H>(&mut self, now: Now, bench: &mut Workbench<H>) -> io::Result<usize> {
        let queued = self.link.connection.queued();
        self.send(now, &mut bench.log)?;
        let connection = &mut self.link.connection;
        let sent = queued - connection.queued();
        if self.has_read_all {
            return Ok(sent);
        }
        match connection.transport.receive(&mut bench.buffer)? {
            Received::Bytes(count) => Ok(sent + count),
            Received::Nothing => Ok(sent),
            Received::Closed => {
                self.has_read_all = true;
                Ok(sent + 1)
            }
        }
    }

    /// Sends the outbound queue, and shuts down our direction behind it.
    fn send(&mut self, now: Now, log: &mut Option<LogTap>) -> io::Result<()> {
        if !self.has_sent_all && send_queue(&mut self.link, now, log)? {
            self.has_sent_all = self.link.connection.transport.finish()?;
        }
        Ok(())
    }

    /// Returns whether both directions are over.
    const fn is_over(&self) -> bool {
        self.has_sent_all && self.has_read_all
    }

    /// Watches the directions that are not over; watches nothing while the host waits for the
    /// message log (`held`).
    fn watch(&mut self, poller: &Poller, held: bool) -> io::Result<()> {
        let wanted = match (self.has_sent_all, self.has_read_all) {
            (false, false) => Some(Interest::ReadWrite),
            (false, true) => Some(Interest::Write),
            (true, false) => Some(Interest::Read),
            (true, true) => None,
        };
        self.link.watch(poller, wanted.filter(|_| !held))
    }
}

impl<H: Handler> Host<H> {
    /// Ends the connection of a session that has ended.
    pub(super) fn end(&mut self, key: SessionKey, link: Link, deadline: u64, now: Now) {
        let (token, is_second) = (link.token, link.stream & OVERLAP != 0);
        let ending = Ending {
            link,
            deadline,
            has_sent_all: false,
            has_read_all: false,
        };
        if let Some(slot) = self.slots.get_mut(token) {
            *slot = Slot::Ending(Box::new(ending));
        }
        if let Some(hosted) = self.hosted.get_mut(key.0) {
            let [first, second] = &mut hosted.endings;
            *(if is_second { second } else { first }) = Some(token);
        }
        self.serve_ending(token, now);
    }

    /// Serves a connection whose session has ended, and closes it if it is over or broken.
    pub(super) fn serve_ending(&mut self, token: Token, now: Now) -> usize {
        let Some(Slot::Ending(ending)) = self.slots.get_mut(token) else {
            return 0;
        };
        let served = ending.turn(now, &mut self.bench);
        if let Ok(work) = served
            && !ending.is_over()
            && ending.watch(&self.poller, self.held).is_ok()
        {
            return work;
        }
        self.slots.remove(token);
        1
    }

    /// Watches connections whose sessions have ended, or none while the host waits for the message
    /// log.
    pub(super) fn watch_endings(&mut self) {
        let is_ending = |slot: &Slot| matches!(slot, Slot::Ending(_));
        let endings = self.slots.iter().filter(|(_, slot)| is_ending(slot));
        let endings: Vec<Token> = endings.map(|(token, _)| token).collect();
        for token in endings {
            if let Some(Slot::Ending(ending)) = self.slots.get_mut(token)
                && ending.watch(&self.poller, self.held).is_err()
            {
                self.slots.remove(token);
            }
        }
    }

    /// Returns the connections of the session that have ended and of which the message log still
    /// gets bytes, by stream.
    pub(super) fn logged_endings(&self, key: SessionKey) -> [Option<Token>; 2] {
        let hosted = self.hosted.get(key.0).filter(|_| self.bench.log.is_some());
        let sends = |token: &Token| {
            let slot = self.slots.get(*token);
            matches!(slot, Some(Slot::Ending(ending)) if !ending.has_sent_all)
        };
        hosted.map_or([None; 2], |hosted| {
            hosted.endings.map(|token| token.filter(sends))
        })
    }

    /// Returns the stream of the message log for the next connection of a session, in which no
    /// earlier one still sends: a connection that is refused cuts off no other one. Of two that
    /// send, the one that ended first is cut off, as its deadline is the nearer one.
    pub(super) fn next_stream(&mut self, key: SessionKey, now: Now) -> usize {
        let is_second = match self.logged_endings(key) {
            [None, _] => false,
            [_, None] => true,
            [Some(first), Some(second)] => {
                let ends = |token| self.slots.get(token).and_then(Slot::deadline);
                let is_second = ends(second) < ends(first);
                self.cut(if is_second { second } else { first }, now);
                is_second
            }
        };
        match is_second {
            false => key.0,
            true => key.0 | OVERLAP,
        }
    }

    /// Drops what a connection that has ended has not sent.
    fn cut(&mut self, token: Token, now: Now) {
        if let Some(Slot::Ending(ending)) = self.slots.get_mut(token) {
            ending.link.connection.drop_queue();
            self.serve_ending(token, now);
        }
    }
}
