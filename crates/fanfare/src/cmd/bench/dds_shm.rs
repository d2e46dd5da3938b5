//! The shared-memory part of `fanfare bench dds`: one way from process to process, both spinning.

use super::dds_ends::{Child, End, put_quote, quote, sequence_of};
use anyhow::{Result, bail};
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::shm::{Config, Receiver, Sender, TopicSpec};
use fanfare_instruments::figures::median;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const PING: &str = "bench-ping";
const PONG: &str = "bench-pong";

/// One end: a ring of its own, and a look at the other's.
struct Side {
    sender: Sender,
    receiver: Receiver,
    buffer: CdrBuffer,
}

impl Side {
    fn open(domain: u32, written: &str, read: &str) -> Result<Self> {
        let config = Config::new(domain)?;
        let topics = [TopicSpec::new("Quote", &quote(), false)];
        Ok(Self {
            sender: Sender::open(&config, written, &topics)?,
            receiver: Receiver::open(&config, read, &topics)?,
            buffer: CdrBuffer::with_capacity(128),
        })
    }

    /// Makes a Quote and writes it.
    fn write(&mut self, sequence: u32) -> Result<()> {
        let cdr = put_quote(&mut self.buffer, sequence)?;
        Ok(self.sender.write(0, 0, cdr)?)
    }

    /// The sequence number of the Quote that came last, if one came.
    fn read(&mut self) -> Option<u32> {
        let mut sequence = None;
        self.receiver.poll(|t| sequence = sequence_of(t.bytes));
        sequence
    }
}

/// Half the round trip: the median of the rounds' medians, in nanoseconds.
pub(super) fn one_way(
    domain: u32,
    there: Option<usize>,
    rounds: usize,
    round_trips: u32,
) -> Result<f64> {
    let _pong = Child::start(End::ShmPong, domain, there)?;
    let mut side = Side::open(domain, PING, PONG)?;
    super::dds::wait("the other process", || {
        side.receiver.refresh();
        side.sender.receivers() > 0 && side.receiver.senders() > 0
    })?;
    let mut medians = Vec::new();
    let mut nanos = Vec::with_capacity(round_trips as usize);
    let mut sequence = 0;
    for _ in 0..=rounds {
        nanos.clear();
        for _ in 0..round_trips {
            sequence += 1;
            let begin = Instant::now();
            side.write(sequence)?;
            while side.read() != Some(sequence) {
                std::hint::spin_loop();
                if begin.elapsed() > Duration::from_secs(5) {
                    bail!("no answer through shared memory within 5 s");
                }
            }
            nanos.push(begin.elapsed().as_nanos() as u64);
        }
        nanos.sort_unstable();
        medians.push(nanos.get(nanos.len() / 2).map_or(f64::NAN, |n| *n as f64));
    }
    // The first round warms up.
    medians.remove(0);
    Ok(median(medians) / 2.0)
}

/// Answers each Quote with one of the same number, made anew, until it is dropped.
pub(super) struct Pong {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Pong {
    pub(super) fn start(domain: u32) -> Result<Self> {
        let mut side = Side::open(domain, PONG, PING)?;
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match side.read() {
                    Some(sequence) if side.write(sequence).is_err() => break,
                    Some(_) => {}
                    None => std::hint::spin_loop(),
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
