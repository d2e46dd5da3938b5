//! Many receiving connections on one thread.

use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::tcp::{Inbox, Received, Stream};
use fanfare_fix::codec::{Frame, FrameFinder};
use std::io;
use std::thread;
use std::time::Duration;

/// The longest wait for a message at all receivers. A busy machine may take seconds.
pub(super) const ROUND: Duration = Duration::from_secs(20);

/// The longest message accepted, in bytes.
const MAX_MESSAGE: usize = 1 << 16;

/// Connections that receive FIX messages and parse only their ends.
pub(in crate::bench) struct Receivers {
    poller: Poller,
    connections: Vec<(Stream, Inbox)>,
    finder: FrameFinder,
    buffer: Box<[u8]>,
    clock: Clock,
}

impl Receivers {
    /// Creates a receiver on each of these connections; its number is its index in `streams`.
    ///
    /// # Errors
    /// The connections cannot be polled.
    pub(in crate::bench) fn new(streams: Vec<Stream>) -> io::Result<Self> {
        let poller = Poller::new(streams.len())?;
        for (i, stream) in streams.iter().enumerate() {
            poller.add(stream, Token(i as u64), Interest::Read)?;
        }
        let connections = streams.into_iter().map(|stream| (stream, Inbox::new()));
        Ok(Self {
            poller,
            connections: connections.collect(),
            finder: FrameFinder::new(MAX_MESSAGE),
            buffer: vec![0; 2 * MAX_MESSAGE].into_boxed_slice(),
            clock: Clock::new(),
        })
    }

    /// Returns the number of receivers.
    pub(in crate::bench) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns the connections, by their numbers.
    pub(in crate::bench) fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.connections.iter().map(|(stream, _)| stream)
    }

    /// Returns the connections, by their numbers, no longer polled. Nothing may be partly received.
    pub(super) fn into_streams(self) -> impl Iterator<Item = Stream> {
        self.connections.into_iter().map(|(stream, _)| stream)
    }

    /// Returns the monotonic time, in nanoseconds.
    pub(in crate::bench) fn now(&mut self) -> u64 {
        self.clock.read().mono
    }

    /// Reads once from each readable connection. `each` is called with the receiver's number, a
    /// whole message, and the time of the read. Does not block.
    ///
    /// # Errors
    /// A connection broke or was closed, or its bytes are not FIX.
    pub(in crate::bench) fn turn(
        &mut self,
        mut each: impl FnMut(usize, &[u8], u64),
    ) -> io::Result<()> {
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        for i in 0..ready {
            let Some(event) = self.poller.event(i) else {
                break;
            };
            let number = event.token.0 as usize;
            let Some((stream, inbox)) = self.connections.get_mut(number) else {
                continue;
            };
            let (received, bytes) = inbox.fill(&mut self.buffer, |room| stream.receive(room))?;
            if received == Received::Closed {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let at = self.clock.read().mono;
            let done = messages(self.finder, bytes, |message| each(number, message, at))?;
            inbox.keep(bytes.get(done..).unwrap_or(&[]));
        }
        Ok(())
    }

    /// Waits until each receiver has one more message. `each` is called with the receiver's number
    /// and the message.
    ///
    /// # Errors
    /// As [`turn`](Self::turn), or not all have come after 20 s.
    pub(in crate::bench) fn each_has_one(
        &mut self,
        mut each: impl FnMut(usize, &[u8]),
    ) -> io::Result<()> {
        let (mut count, until) = (0, self.now() + ROUND.as_nanos() as u64);
        while count < self.len() {
            if self.now() > until {
                return Err(too_few(count, self.len()));
            }
            self.turn(|receiver, message, _| {
                count += 1;
                each(receiver, message);
            })?;
            thread::yield_now();
        }
        Ok(())
    }
}

/// Returns the error of messages that have not come to all receivers.
fn too_few(count: usize, all: usize) -> io::Error {
    let lack = format!(
        "a message came to {count} of {all} sessions in {} s",
        ROUND.as_secs()
    );
    io::Error::new(io::ErrorKind::TimedOut, lack)
}

/// Calls `each` for each whole message. Returns the number of bytes consumed.
fn messages(finder: FrameFinder, bytes: &[u8], mut each: impl FnMut(&[u8])) -> io::Result<usize> {
    let mut done = 0;
    loop {
        let rest = bytes.get(done..).unwrap_or(&[]);
        match finder.find(rest) {
            Frame::Message { start, end } => {
                each(rest.get(start..end).unwrap_or(&[]));
                done += end;
            }
            Frame::Partial { .. } => return Ok(done),
            Frame::Garbled { why, .. } => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, why.to_string()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sessions::{pairs, sample_message, send_all};
    use super::*;

    #[test]
    fn each_receiver_has_one_message() {
        let (near, far) = pairs(3).unwrap();
        let sent = sample_message().unwrap();
        for stream in &near {
            send_all(stream, &sent).unwrap();
        }
        let (mut receivers, mut came) = (Receivers::new(far).unwrap(), Vec::new());
        let each = |receiver, message: &[u8]| {
            assert_eq!(message, sent);
            came.push(receiver);
        };
        receivers.each_has_one(each).unwrap();
        came.sort_unstable();
        assert_eq!(came, [0, 1, 2]);
    }
}
