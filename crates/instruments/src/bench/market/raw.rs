//! The raw program: it receives a datagram and sends as many bytes as a subscriber receives, to
//! each of its connections.

use std::io;
use std::net::SocketAddrV4;
use std::sync::{Arc, OnceLock};

use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::tcp::Stream;
use fanfare_engine::udp::{Receiver, ReceiverConfig};
use fanfare_fix::session::Now;

use super::super::fanout::sessions::pairs;
use super::super::fanout::{Receivers, send_all};

/// The agent of the raw program. It shares a thread with the compared gateway: both have the same
/// processor, and neither disturbs the other.
pub(super) struct RawAgent {
    receiver: Receiver,
    near: Vec<Stream>,
    message: Arc<OnceLock<Vec<u8>>>,
}

impl RawAgent {
    /// Creates an agent that receives from `line` and has `count` connections. Also returns their
    /// peers.
    pub(super) fn new(line: SocketAddrV4, count: usize) -> io::Result<(Self, Receivers)> {
        let (near, far) = pairs(count)?;
        let agent = Self {
            receiver: Receiver::open(&ReceiverConfig::new(line))?,
            near,
            message: Arc::default(),
        };
        Ok((agent, Receivers::new(far)?))
    }

    /// Returns the cell for the message to send, once it is known.
    pub(super) fn message(&self) -> Arc<OnceLock<Vec<u8>>> {
        Arc::clone(&self.message)
    }
}

impl Agent for RawAgent {
    fn name(&self) -> &str {
        "raw"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        let Some(message) = self.message.get() else {
            return Ok(0);
        };
        let datagrams = self.receiver.receive()?;
        for _ in 0..datagrams {
            for stream in &self.near {
                send_all(stream, message)?;
            }
        }
        Ok(datagrams)
    }
}
