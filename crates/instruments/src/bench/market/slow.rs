//! Slow clients: one never reads, one reads a thousand bytes per second. At the end their messages
//! are read and checked.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fanfare_engine::stop::Stop;
use fanfare_engine::tcp::{Received, Stream};
use fanfare_fix::codec::{Decoder, Frame, FrameFinder};
use fanfare_gateway::{Contract, Gateway};
use fanfare_market::Side;

use super::super::BenchError;
use super::super::fanout::Receivers;
use super::super::fanout::sessions::{connect, log_on, subscribe};
use super::feed::BUSY;
use crate::subscriber::{Counts, Subscriber, Terms};

/// The bytes that the slow one reads at a time, ten times per second.
const BYTES: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);
/// The longest message, bytes.
const LONGEST: usize = 1 << 16;
/// The time limit for the newest state, once both read again.
const PATIENCE: Duration = Duration::from_secs(30);

/// Both clients.
pub(super) struct SlowOnes {
    /// The client with the contract `conflated`.
    stopped: Client,
    /// The client with the contract `skip`.
    slow: JoinHandle<io::Result<Client>>,
    stop: Stop,
}

struct Client {
    /// One connection.
    receivers: Receivers,
    /// The bytes read.
    bytes: Vec<u8>,
    contract: Contract,
}

impl SlowOnes {
    /// Logs both on, and subscribes them to the instrument that changes.
    pub(super) fn join(gateway: &Gateway) -> Result<Self, BenchError> {
        let stopped = Client::join(gateway, "STOPPED", Contract::Conflated)?;
        let mut client = Client::join(gateway, "SLOW", Contract::Skip)?;
        let stop = Stop::new();
        let told = stop.clone();
        let slow = thread::spawn(move || {
            while !told.is_raised() {
                thread::sleep(PAUSE);
                client.read(BYTES)?;
            }
            Ok(client)
        });
        Ok(Self {
            stopped,
            slow,
            stop,
        })
    }

    /// Reads the queues of both, until they have the newest size. Returns their counts.
    pub(super) fn judge(self, newest: u64) -> Result<[Counts; 2], BenchError> {
        let [stopped, slow] = self.end()?;
        Ok([stopped.judge(newest)?, slow.judge(newest)?])
    }

    /// Closes the connections of both, with their queues unread.
    pub(super) fn leave(self) -> Result<(), BenchError> {
        self.end().map(drop)
    }

    /// Ends the reading of the slow client. Returns both.
    fn end(self) -> Result<[Client; 2], BenchError> {
        self.stop.raise();
        match self.slow.join() {
            Ok(slow) => Ok([self.stopped, slow?]),
            Err(_) => Err(BenchError::Missing("the slow client panicked".to_owned())),
        }
    }
}

impl Client {
    fn join(gateway: &Gateway, name: &str, contract: Contract) -> Result<Self, BenchError> {
        let receivers = log_on(connect(gateway.consumers(), 1)?, name)?;
        for stream in receivers.streams() {
            subscribe(stream, &format!("{name}0"), BUSY, Some(contract))?;
        }
        Ok(Self {
            receivers,
            bytes: Vec::new(),
            contract,
        })
    }

    /// Reads at most `most` bytes. Returns the number read.
    fn read(&mut self, most: usize) -> io::Result<usize> {
        let before = self.bytes.len();
        self.bytes.resize(before + most, 0);
        let room = self.bytes.get_mut(before..).unwrap_or_default();
        let stream: Option<&Stream> = self.receivers.streams().next();
        let count = match stream.map(|stream| stream.receive(room)).transpose()? {
            Some(Received::Bytes(count)) => count,
            Some(Received::Nothing) => 0,
            None | Some(Received::Closed) => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        self.bytes.truncate(before + count);
        Ok(count)
    }

    fn judge(mut self, newest: u64) -> Result<Counts, BenchError> {
        let mut judge = Subscriber::new();
        let terms = Terms {
            depth: 5,
            conflated: self.contract == Contract::Conflated,
            ..Terms::default()
        };
        judge.subscribed(b"r1", &[BUSY], terms);
        let until = Instant::now() + PATIENCE;
        while !is_newest(&judge, newest) {
            let count = self.read(LONGEST)?;
            let done = take(&mut judge, &self.bytes)?;
            self.bytes.drain(..done);
            if Instant::now() > until {
                let contract = self.contract.name();
                let lack = format!("the client by contract {contract} has not the newest state");
                return Err(BenchError::Missing(lack));
            }
            if count == 0 {
                thread::yield_now();
            }
        }
        match judge.first_fault() {
            None => Ok(*judge.counts()),
            Some(fault) => Err(BenchError::Missing(format!(
                "by contract {}: {fault}",
                self.contract.name()
            ))),
        }
    }
}

fn is_newest(judge: &Subscriber, newest: u64) -> bool {
    let best = judge.book(b"r1", BUSY.as_bytes());
    let best = best.and_then(|book| book.levels(Side::Bid).first());
    best.is_some_and(|row| u64::try_from(row.size) == Ok(newest))
}

/// Takes all whole messages. Returns the number of their bytes.
fn take(judge: &mut Subscriber, bytes: &[u8]) -> Result<usize, BenchError> {
    let (mut done, finder, mut decoder) = (0, FrameFinder::new(LONGEST), Decoder::new());
    loop {
        let rest = bytes.get(done..).unwrap_or_default();
        let wrong = |why: String| BenchError::Missing(format!("what came is no FIX: {why}"));
        match finder.find(rest) {
            Frame::Partial { .. } => return Ok(done),
            Frame::Garbled { why, .. } => return Err(wrong(why.to_string())),
            Frame::Message { start, end } => {
                let message = rest.get(start..end).unwrap_or_default();
                let message = decoder.decode(message).map_err(|e| wrong(e.to_string()))?;
                judge.take(&message);
                done += end;
            }
        }
    }
}
