//! The baseline: the same bytes over a plain socket.

use std::hint::spin_loop;
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use fanfare_engine::clock::Clock;
use fanfare_engine::tcp::{Received, Stream};

use crate::bench::fanout::send_all;
use crate::histogram::Histogram;

/// One end of a connection with messages of fixed lengths in both directions.
pub(super) struct Plain {
    stream: Stream,
    message: Vec<u8>,
    wanted: usize,
    buffer: Box<[u8]>,
    received: usize,
}

/// Returns two connected ends: the first sends `order`, the second responds with `report`.
pub(super) fn connected(order: &[u8], report: &[u8]) -> io::Result<(Plain, Plain)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    Ok((
        Plain::new(here, order, report.len())?,
        Plain::new(there, report, order.len())?,
    ))
}

impl Plain {
    fn new(stream: TcpStream, message: &[u8], wanted: usize) -> io::Result<Self> {
        Ok(Self {
            stream: Stream::new(stream)?,
            message: message.to_vec(),
            wanted,
            buffer: vec![0; 64 << 10].into_boxed_slice(),
            received: 0,
        })
    }

    /// Reads once. Returns true when a whole message has come.
    fn receive(&mut self) -> io::Result<bool> {
        match self.stream.receive(&mut self.buffer)? {
            Received::Bytes(count) => self.received += count,
            Received::Nothing => return Ok(false),
            Received::Closed => return Err(io::ErrorKind::ConnectionAborted.into()),
        }
        let whole = self.received >= self.wanted;
        if whole {
            self.received -= self.wanted;
        }
        Ok(whole)
    }

    /// Reads once, and responds if a whole message has come.
    pub(super) fn answer(&mut self) -> io::Result<usize> {
        if !self.receive()? {
            return Ok(0);
        }
        send_all(&self.stream, &self.message)?;
        Ok(1)
    }

    /// Makes round trips in sequence; the first `skip` are not recorded.
    pub(super) fn round_trips(
        &mut self,
        count: u64,
        skip: u64,
        clock: &mut Clock,
        into: &mut Histogram,
        idle: fn(),
    ) -> io::Result<()> {
        for trip in 0..count {
            let began = clock.read().mono;
            send_all(&self.stream, &self.message)?;
            while !self.receive()? {
                idle();
            }
            let took = clock.read().mono - began;
            if trip >= skip {
                into.record(took);
            }
        }
        Ok(())
    }
}

/// Spins once, for an idle thread with a processor of its own.
pub(super) fn spin() {
    spin_loop();
}
