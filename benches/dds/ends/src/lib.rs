//! What all ends of a contest of samples share: arguments, what is measured, and what is printed.
//!
//!     PROGRAM WAY pong SIZE WARM_UP COUNT DOMAIN    sends samples back
//!     PROGRAM WAY ping SIZE WARM_UP COUNT DOMAIN    prints "p50 NANOSECONDS", "p99 NANOSECONDS"
//!     PROGRAM WAY sink SIZE WARM_UP COUNT DOMAIN    takes samples, prints "rate SAMPLES_A_SECOND"
//!     PROGRAM WAY source SIZE WARM_UP COUNT DOMAIN  writes them
//!
//! COUNT round trips or samples are measured, after WARM_UP that are not. A program ends with its
//! stdin. A sample has its number in front, in eight bytes. A ping and a sink add up the words of
//! its bytes: a wrong sum ends the process, as a wrong number does.
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What an end may fail with.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The bytes of a sample's number.
pub const NUMBER: usize = size_of::<u64>();

/// What an end does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Pong,
    Ping,
    Sink,
    Source,
}

/// The arguments of the program.
#[derive(Debug, Clone)]
pub struct Args {
    /// The way in which samples go from one process to the other.
    pub way: String,
    pub role: Role,
    /// Bytes of a sample, its number included.
    pub size: usize,
    /// Round trips or samples that warm up.
    pub warm_up: u64,
    /// Round trips or samples that are measured, after those.
    pub count: u64,
    /// A number that both ends have, and no other program.
    pub domain: u32,
}

impl Args {
    /// Reads the arguments of this process.
    ///
    /// # Errors
    /// One is missing, or is no number.
    pub fn read() -> Result<Self> {
        let mut words = std::env::args().skip(1);
        let mut word = || words.next().ok_or("WAY ROLE SIZE WARM_UP COUNT DOMAIN");
        Ok(Self {
            way: word()?,
            role: word()?.parse()?,
            size: word()?.parse()?,
            warm_up: word()?.parse()?,
            count: word()?.parse()?,
            domain: word()?.parse()?,
        })
    }

    /// Returns the number of round trips or samples in all.
    pub fn total(&self) -> u64 {
        self.warm_up + self.count
    }

    /// Returns a sample: its number, which is 0, and bytes of many values.
    pub fn sample(&self) -> Vec<u8> {
        let payload = (NUMBER..self.size).map(|at| (at % 251) as u8);
        [0; NUMBER].into_iter().chain(payload).collect()
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "pong" => Ok(Self::Pong),
            "ping" => Ok(Self::Ping),
            "sink" => Ok(Self::Sink),
            "source" => Ok(Self::Source),
            _ => Err(format!("{name} is no role")),
        }
    }
}

/// Reads samples whole, so that all bytes of a loan, too, come to this processor.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Bytes of a payload, which is behind the number.
    len: usize,
    /// The sum of a payload's words.
    sum: u64,
}

impl Check {
    /// Adds up the payload, which is the same in all samples.
    pub fn new(args: &Args) -> Self {
        let payload = args.sample().split_off(NUMBER);
        Self {
            len: payload.len(),
            sum: sum_of(&payload),
        }
    }

    /// Reads a sample, and returns its number. Ends the process if it has other bytes than were
    /// sent.
    #[inline]
    pub fn number_of(self, sample: &[u8]) -> u64 {
        match sample.split_first_chunk::<NUMBER>() {
            Some((number, payload)) => self.parts(u64::from_le_bytes(*number), payload),
            None => fail(&"a sample has no number"),
        }
    }

    /// Reads a sample whose number is at hand, as [`Self::number_of`] does.
    #[inline]
    pub fn parts(self, number: u64, payload: &[u8]) -> u64 {
        if payload.len() != self.len || sum_of(payload) != self.sum {
            fail(&format!("sample {number} has other bytes than were sent"));
        }
        number
    }
}

/// Adds up the words of a payload.
#[inline]
fn sum_of(payload: &[u8]) -> u64 {
    let (words, _) = payload.as_chunks::<NUMBER>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words.fold(0, u64::wrapping_add)
}

/// Puts the number in front of a sample.
pub fn set_number(sample: &mut [u8], number: u64) {
    if let Some(front) = sample.first_chunk_mut::<NUMBER>() {
        *front = number.to_le_bytes();
    }
}

/// The round trips of a ping.
#[derive(Debug)]
pub struct Trips {
    nanos: Vec<u64>,
    warm_up: u64,
    total: u64,
    number: u64,
    sent: Instant,
}

impl Trips {
    /// Starts with the sample 0, which is about to be sent.
    pub fn new(args: &Args) -> Self {
        Self {
            nanos: Vec::with_capacity(args.count as usize),
            warm_up: args.warm_up,
            total: args.total(),
            number: 0,
            sent: Instant::now(),
        }
    }

    /// Takes an echo. Returns the number of the sample that is to be sent now; at the end `None`,
    /// after printing the figures.
    pub fn came(&mut self, number: u64) -> Option<u64> {
        let came = Instant::now();
        expect(number, self.number);
        if number >= self.warm_up {
            let nanos = (came - self.sent).as_nanos();
            self.nanos.push(nanos as u64);
        }
        self.number += 1;
        if self.number == self.total {
            self.report();
            return None;
        }
        self.sent = Instant::now();
        Some(self.number)
    }

    fn report(&mut self) {
        self.nanos.sort_unstable();
        let at = |percent| {
            let place = self.nanos.len() * percent / 100;
            self.nanos.get(place).copied().unwrap_or_default()
        };
        say(&format!("p50 {}\np99 {}", at(50), at(99)));
    }
}

/// The samples that a sink takes.
#[derive(Debug)]
pub struct Flow {
    number: u64,
    warm_up: u64,
    total: u64,
    began: Instant,
}

impl Flow {
    /// Starts with the sample 0, which is awaited.
    pub fn new(args: &Args) -> Self {
        Self {
            number: 0,
            warm_up: args.warm_up,
            total: args.total(),
            began: Instant::now(),
        }
    }

    /// Takes a sample. Returns whether it was the last, after printing the rate of those that
    /// are measured.
    #[inline]
    pub fn came(&mut self, number: u64) -> bool {
        expect(number, self.number);
        if number == self.warm_up {
            self.began = Instant::now();
        }
        self.number += 1;
        if self.number < self.total {
            return false;
        }
        let seconds = self.began.elapsed().as_secs_f64();
        // The clock began with the first of them.
        let samples = self.total - self.warm_up - 1;
        say(&format!("rate {}", samples as f64 / seconds));
        true
    }
}

/// Ends the process if a sample is missing, or came twice.
#[inline]
fn expect(number: u64, expected: u64) {
    if number != expected {
        fail(&format!("sample {number} in place of {expected}"));
    }
}

/// Ends the process, from any thread.
#[cold]
pub fn fail(why: &dyn std::fmt::Display) -> ! {
    eprintln!("{why}");
    std::process::exit(1);
}

/// Prints a line for the runner.
pub fn say(line: &str) {
    let mut out = stdout().lock();
    // The runner may have gone.
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Says that the other end may be started.
pub fn ready() {
    say("ready");
}

/// Polls a condition without taking the processor from the other end; then waits until the other
/// end has noticed too.
pub fn wait_for_match(mut is_matched: impl FnMut() -> bool) {
    while !is_matched() {
        thread::sleep(Duration::from_millis(2));
    }
    settle();
}

/// Waits until both ends have discovered each other: one of them is the first.
pub fn settle() {
    thread::sleep(Duration::from_millis(300));
}

/// Returns a flag that is set when the runner closes stdin, for ends that never sleep.
pub fn stop_with_stdin() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    thread::spawn(move || {
        until_stdin_ends();
        raised.store(true, Ordering::Relaxed);
    });
    stop
}

/// Waits until the runner closes stdin.
pub fn until_stdin_ends() {
    let mut line = String::new();
    while matches!(stdin().read_line(&mut line), Ok(1..)) {
        line.clear();
    }
}
