//! The shared-memory part: one way from process to process, both spinning.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fanfare_dds::Error;
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::shm::{Config, Receiver, Sender, TopicSpec};

use super::other::End;
use super::quote::{Quote, quote};
use super::{DdsBench, wait};
use crate::bench::{BenchError, on};
use crate::figures::{Figures, median, percentile};

/// Round trips in each round.
const ROUND_TRIPS: usize = 100_000;
/// Looks for an echo between two readings of the clock.
const TURNS: u32 = 1 << 14;
const PING: &str = "bench-ping";
const PONG: &str = "bench-pong";

/// One end: a ring of its own, and a view of the other's.
struct Side {
    sender: Sender,
    receiver: Receiver,
    buffer: CdrBuffer,
}

impl Side {
    fn open(domain: u32, written: &str, read: &str) -> Result<Self, Error> {
        let config = Config::new(domain)?;
        let topics = [TopicSpec::new("Quote", &quote(), false)];
        Ok(Self {
            sender: Sender::open(&config, written, &topics)?,
            receiver: Receiver::open(&config, read, &topics)?,
            buffer: CdrBuffer::with_capacity(128),
        })
    }

    /// Makes a sample of the Quote, and writes it.
    fn write(&mut self, quote: Quote) -> Result<(), Error> {
        let cdr = quote.put(&mut self.buffer)?;
        self.sender.write(0, 0, cdr)
    }

    /// Writes a Quote and spins until its echo has come. Returns the nanoseconds.
    fn round_trip(&mut self, sequence: u32) -> Result<u64, BenchError> {
        let begin = Instant::now();
        self.write(Quote::new(sequence))?;
        let mut turns = 0_u32;
        while self.read().is_none_or(|echo| echo.sequence != sequence) {
            hint::spin_loop();
            turns = turns.wrapping_add(1);
            // A reading of the clock takes as long as a look for the echo.
            let looks_at_clock = turns.is_multiple_of(TURNS);
            if looks_at_clock && begin.elapsed() > Duration::from_secs(5) {
                let what = "no answer through shared memory within 5 s";
                return Err(BenchError::Missing(what.to_owned()));
            }
        }
        Ok(begin.elapsed().as_nanos() as u64)
    }

    /// Returns the last Quote, if one came. All members of each are read.
    fn read(&mut self) -> Option<Quote> {
        let mut quote = None;
        self.receiver
            .poll(|sample| quote = hint::black_box(Quote::read(sample.bytes)));
        quote
    }
}

impl DdsBench<'_> {
    /// Adds half the round trip through shared memory: the median of the rounds' medians.
    ///
    /// # Errors
    /// The other process cannot be started, or does not respond.
    pub fn add_shared_memory(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let round_trip = on(self.processors.here, || self.shared_memory())?;
        figures.add("shm_oneway_p50_us", round_trip / 2e3);
        Ok(())
    }

    fn shared_memory(&self) -> Result<f64, BenchError> {
        let _pong = self.child(End::ShmPong, self.domain)?;
        let mut side = Side::open(self.domain, PING, PONG)?;
        wait("the other process", || {
            side.receiver.refresh();
            side.sender.receivers() > 0 && side.receiver.senders() > 0
        })?;
        let mut medians = Vec::new();
        let mut nanos = Vec::with_capacity(ROUND_TRIPS);
        let mut sequence = 0;
        // The first round is a warm-up.
        for round in self.turns(self.rounds + 1) {
            nanos.clear();
            for _ in self.turns(ROUND_TRIPS) {
                sequence += 1;
                nanos.push(side.round_trip(sequence)?);
            }
            if round > 0 && nanos.len() == ROUND_TRIPS {
                medians.push(percentile(&nanos, 50.0));
            }
        }
        Ok(median(medians))
    }
}

/// An end that sends each Quote back with the same number, made anew, until it is dropped.
pub(super) struct Pong {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pong {
    pub(super) fn start(domain: u32) -> Result<Self, Error> {
        let mut side = Side::open(domain, PONG, PING)?;
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match side.read() {
                    Some(quote) if side.write(quote).is_err() => break,
                    Some(_) => {}
                    None => hint::spin_loop(),
                }
            }
        });
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Pong {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
