//! The feed of the benchmark: datagrams that each change one level of one book.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fanfare_engine::clock::Clock;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::{Encoder, Message, Program, json};

use super::super::BenchError;
use super::super::fanout::rounds::Target;

/// Symbol(55) of the instrument whose book changes, and of the one whose book does not change.
pub(super) const BUSY: &str = "BUSY";
pub(super) const QUIET: &str = "QUIET";

/// Returns a group on loopback with a free port.
pub(super) fn group() -> io::Result<SocketAddrV4> {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let last = NEXT.fetch_add(1, Ordering::Relaxed);
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port();
    Ok(SocketAddrV4::new(Ipv4Addr::new(239, 255, 91, last), port))
}

/// One sender's datagrams: the first one has both instruments, each further one a new size of a
/// bid.
pub(super) struct Feed {
    sender: Sender,
    program: Arc<Program>,
    encoder: Encoder,
    message: Message,
    packet: Vec<u8>,
    /// Whether a packet is encoded and not sent yet.
    is_ready: bool,
    number: u64,
    clock: Clock,
    began: u64,
}

impl Feed {
    pub(super) fn new(to: SocketAddrV4) -> Result<Self, BenchError> {
        let program = Arc::new(Program::spectra());
        let mut feed = Self {
            sender: Sender::open(&SenderConfig::new(to))?,
            encoder: Encoder::new(Arc::clone(&program)),
            program,
            message: Message::new(),
            packet: Vec::new(),
            is_ready: false,
            number: 0,
            clock: Clock::new(),
            began: 0,
        };
        feed.prepare()?;
        Ok(feed)
    }

    /// Returns the size in the last datagram sent.
    pub(super) const fn newest(&self) -> u64 {
        size(self.number - self.is_ready as u64)
    }

    /// Encodes the next datagram.
    fn prepare(&mut self) -> Result<(), BenchError> {
        self.number += 1;
        let number = self.number;
        let entries = if number == 1 {
            format!("{},{}", entry(0, 1, BUSY, 5, 1), entry(0, 2, QUIET, 5, 1))
        } else {
            entry(1, 1, BUSY, size(number), number)
        };
        let line = format!(
            "{{\"template\":\"DefaultIncrementalRefreshMessage\",\"fields\":{{\
             \"MsgSeqNum\":{number},\"SendingTime\":20130801101500000,\"MDEntries\":[{entries}]}}}}"
        );
        let wrong = |error: String| BenchError::Feed(error);
        json::read_line(&self.program, &line, &mut self.message)
            .map_err(|e| wrong(e.to_string()))?;
        self.encoder.reset();
        self.packet.clear();
        let encoded = self.encoder.encode(&self.message, &mut self.packet);
        encoded.map_err(|error| wrong(error.to_string()))?;
        self.is_ready = true;
        Ok(())
    }
}

/// Returns the size in the datagram of this number, of six digits.
const fn size(number: u64) -> u64 {
    100_000 + number % 900_000
}

fn entry(action: u8, id: u8, symbol: &str, size: u64, rpt_seq: u64) -> String {
    format!(
        "{{\"MDUpdateAction\":{action},\"MDEntryType\":\"0\",\"SecurityID\":{id},\
         \"Symbol\":\"{symbol}\",\"RptSeq\":{rpt_seq},\"MarketDepth\":5,\"MDPriceLevel\":1,\
         \"MDEntryPx\":{{\"mantissa\":100,\"exponent\":0}},\"MDEntrySize\":{size},\
         \"MDEntryTime\":101500000}}"
    )
}

impl Target for Feed {
    fn trigger(&mut self) -> io::Result<()> {
        if !self.is_ready {
            self.prepare().map_err(io::Error::other)?;
        }
        self.is_ready = false;
        self.began = self.clock.read().mono;
        self.sender.send(&self.packet)
    }

    /// Returns the time of the last send. Also prepares the next datagram: all receivers have this
    /// one.
    fn began(&mut self) -> u64 {
        // An error is returned again by the next send.
        let _ = self.prepare();
        self.began
    }
}
