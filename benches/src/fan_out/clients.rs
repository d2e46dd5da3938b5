//! A producer and its consumers on one thread.

use super::dialect::{Dialect, PRODUCER, consumer};
use anyhow::{Context, Result, ensure};
use fanfare_engine::poll::{Interest, Poller, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Rounds that warm up, and that are measured.
const WARM_UP: usize = 300;
pub(super) const ROUNDS: usize = 1_500;

/// Messages under way when the rate is measured, and for how long it is.
pub(super) const WINDOW: u64 = 64;
pub(super) const SECONDS: f64 = 1.5;

/// The longest wait for a server: to listen, to deliver a message.
const PATIENCE: Duration = Duration::from_secs(20);

struct Consumer {
    stream: TcpStream,
    /// The front of a message that has not come whole.
    rest: Vec<u8>,
    received: u64,
}

pub(crate) struct Clients {
    dialect: Dialect,
    producer: TcpStream,
    consumers: Vec<Consumer>,
    poller: Poller,
    sent: u64,
    out: Vec<u8>,
    buffer: Vec<u8>,
}

impl Clients {
    /// Connects and logs on, or whatever the server wants.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) fn connect(
        dialect: Dialect,
        producers: SocketAddr,
        consumers: SocketAddr,
        count: usize,
    ) -> Result<Self> {
        let producer = connect(dialect, producers, PRODUCER)?;
        let poller = Poller::new(count)?;
        let mut all = Vec::with_capacity(count);
        for number in 0..count {
            let stream = connect(dialect, consumers, &consumer(number))?;
            stream.set_nonblocking(true)?;
            poller.add(&stream, Token(number as u64), Interest::Read)?;
            all.push(Consumer {
                stream,
                rest: Vec::new(),
                received: 0,
            });
        }
        Ok(Self {
            dialect,
            producer,
            consumers: all,
            poller,
            sent: 0,
            out: Vec::new(),
            buffer: vec![0; 1 << 16],
        })
    }

    /// Returns the nanoseconds from before each send until the last consumer has the message.
    ///
    /// # Errors
    /// A delivery is missing.
    pub(crate) fn rounds(&mut self) -> Result<Vec<u64>> {
        let mut times = Vec::with_capacity(ROUNDS);
        for round in 0..WARM_UP + ROUNDS {
            self.prepare()?;
            let began = Instant::now();
            self.send()?;
            self.drain(began, |clients| clients.slowest() == clients.sent)?;
            if round >= WARM_UP {
                times.push(began.elapsed().as_nanos() as u64);
            }
        }
        Ok(times)
    }

    /// Returns the deliveries a second with many messages under way.
    ///
    /// # Errors
    /// A delivery is missing.
    pub(crate) fn saturate(&mut self) -> Result<f64> {
        let (began, before) = (Instant::now(), self.sent);
        while began.elapsed().as_secs_f64() < SECONDS {
            let since = Instant::now();
            self.drain(since, |clients| clients.sent - clients.slowest() < WINDOW)?;
            while self.sent - self.slowest() < WINDOW {
                self.prepare()?;
                self.send()?;
            }
        }
        self.drain(Instant::now(), |clients| clients.slowest() == clients.sent)?;
        let deliveries = (self.sent - before) as f64 * self.consumers.len() as f64;
        Ok(deliveries / began.elapsed().as_secs_f64())
    }

    /// Makes the next message; MsgSeqNum(34) 1 was the Logon's.
    fn prepare(&mut self) -> Result<()> {
        self.dialect.message(self.sent + 2, &mut self.out)
    }

    fn send(&mut self) -> Result<()> {
        self.producer.write_all(&self.out)?;
        self.sent += 1;
        Ok(())
    }

    /// The number of messages that all consumers have.
    fn slowest(&self) -> u64 {
        let received = self.consumers.iter().map(|consumer| consumer.received);
        received.min().unwrap_or(0)
    }

    /// Reads until `is_done`.
    fn drain(&mut self, since: Instant, is_done: impl Fn(&Self) -> bool) -> Result<()> {
        while !is_done(self) {
            let ready = self.poller.poll(Some(Duration::ZERO))?;
            for event in 0..ready {
                let event = self.poller.event(event).context("an event that is ready")?;
                let consumer = self.consumers.get_mut(event.token.0 as usize);
                let consumer = consumer.context("a token of a consumer")?;
                consumer.read(self.dialect, &mut self.buffer)?;
            }
            ensure!(since.elapsed() < PATIENCE, "a delivery is missing");
        }
        Ok(())
    }
}

impl Consumer {
    /// Reads what there is, at most a buffer of it.
    fn read(&mut self, dialect: Dialect, buffer: &mut [u8]) -> Result<()> {
        let kept = self.rest.len();
        let room = buffer.get_mut(kept..).context("a message too long")?;
        let came = match self.stream.read(room) {
            Ok(0) => anyhow::bail!("the server closed a consumer's connection"),
            Ok(came) => came,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (front, _) = buffer.split_at_mut(kept);
        front.copy_from_slice(&self.rest);
        let bytes = buffer.get(..kept + came).unwrap_or_default();
        let (count, done) = dialect.count(bytes)?;
        self.received += count;
        self.rest.clear();
        self.rest
            .extend_from_slice(bytes.get(done..).unwrap_or_default());
        Ok(())
    }
}

/// Connects as soon as the server listens.
fn connect(dialect: Dialect, address: SocketAddr, name: &str) -> Result<TcpStream> {
    let began = Instant::now();
    let mut stream = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(error) => ensure!(began.elapsed() < PATIENCE, "{address}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    dialect
        .begin(&mut stream, name)
        .with_context(|| name.to_owned())?;
    Ok(stream)
}
