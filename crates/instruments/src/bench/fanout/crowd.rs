//! Many receiving connections on one thread.

use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::tcp::{Received, Stream};
use fanfare_fix::codec::{Frame, FrameFinder};
use std::io;
use std::time::Duration;

/// The longest message that a crowd takes, in bytes.
const MAX_MESSAGE: usize = 1 << 16;

/// Connections that receive FIX messages and look at no more of them than where they end.
pub struct Crowd {
    poller: Poller,
    members: Vec<Member>,
    finder: FrameFinder,
    buffer: Box<[u8]>,
    clock: Clock,
}

struct Member {
    stream: Stream,
    /// The front of a message that is not complete.
    leftover: Vec<u8>,
}

impl Crowd {
    /// A crowd of these connections; a member's number is its place in `streams`.
    ///
    /// # Errors
    /// The connections cannot be watched.
    pub fn new(streams: Vec<Stream>) -> io::Result<Self> {
        let poller = Poller::new(streams.len())?;
        for (i, stream) in streams.iter().enumerate() {
            poller.add(stream, Token(i as u64), Interest::Read)?;
        }
        let member = |stream| Member {
            stream,
            leftover: Vec::new(),
        };
        Ok(Self {
            poller,
            members: streams.into_iter().map(member).collect(),
            finder: FrameFinder::new(MAX_MESSAGE),
            buffer: vec![0; 2 * MAX_MESSAGE].into_boxed_slice(),
            clock: Clock::new(),
        })
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The monotonic time, in nanoseconds.
    pub fn now(&mut self) -> u64 {
        self.clock.read().mono
    }

    /// Reads once from each member that has something; `each` gets the member's number, a whole
    /// message, and when it was read. Does not wait.
    ///
    /// # Errors
    /// A connection broke or was closed, or carries something else than FIX.
    pub fn turn(&mut self, mut each: impl FnMut(usize, &[u8], u64)) -> io::Result<()> {
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        for i in 0..ready {
            let Some(event) = self.poller.event(i) else {
                break;
            };
            let number = event.token.0 as usize;
            let Some(member) = self.members.get_mut(number) else {
                continue;
            };
            let bytes = member.read(&mut self.buffer)?;
            let at = self.clock.read().mono;
            let done = messages(self.finder, bytes, |message| each(number, message, at))?;
            member
                .leftover
                .extend_from_slice(bytes.get(done..).unwrap_or(&[]));
        }
        Ok(())
    }
}

impl Member {
    /// Everything not yet understood, and what has come since.
    fn read<'b>(&mut self, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
        let kept = self.leftover.len();
        let Some((front, room)) = buffer.split_at_mut_checked(kept) else {
            return Err(io::Error::other("message too long"));
        };
        front.copy_from_slice(&self.leftover);
        self.leftover.clear();
        match self.stream.receive(room)? {
            Received::Bytes(count) => Ok(buffer.get(..kept + count).unwrap_or(&[])),
            Received::Nothing => Ok(buffer.get(..kept).unwrap_or(&[])),
            Received::Closed => Err(io::ErrorKind::ConnectionAborted.into()),
        }
    }
}

/// Calls `each` for each whole message and gives how many bytes are done with.
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
