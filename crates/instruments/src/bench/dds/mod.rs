//! Writing and reading against a plain C program on the same Cyclone DDS.
//!
//! The programs alternate in slices, and ratios are medians of the ratios of slices. Each process
//! is pinned to a processor of its own.

mod convert;
mod ends;
mod flow;
mod other;
mod quote;
mod serve;
mod shm;
mod stalled;
mod trips;
mod write;

use std::thread;
use std::time::{Duration, Instant};

use fanfare_dds::{DomainConfig, Transport};
use fanfare_engine::stop::Stop;

use super::{BenchError, Processors};
pub use convert::add_conversion;
pub use other::{End, Other, Start};
pub use serve::serve;

/// The parameters of the benchmark. A measurement ends before its next round once `stop` is raised;
/// without a whole round it has no figures.
pub struct DdsBench<'a> {
    /// Domain ids: this one and the next.
    pub domain: u32,
    /// Round trips of each program in each round.
    pub round_trips: u32,
    /// Rounds of each kind, each with new processes.
    pub rounds: usize,
    /// The processors of the ends.
    pub processors: Processors,
    /// The function that starts the other process.
    pub start: &'a Start,
    /// The flag that ends the benchmark early.
    pub stop: &'a Stop,
}

impl DdsBench<'_> {
    /// Returns the numbers of `count` turns, from 0, as long as the benchmark is not stopped.
    fn turns(&self, count: usize) -> impl Iterator<Item = usize> {
        (0..count).take_while(move |_| !self.stop.is_raised())
    }
}

fn config(domain: u32) -> DomainConfig {
    DomainConfig {
        transport: Transport::Udp,
        ..DomainConfig::new(domain)
    }
}

/// Waits until the match is mutual: one side discovers the other first.
fn settle() {
    thread::sleep(Duration::from_millis(300));
}

/// Returns the error of a failed write of the C program.
fn cannot_write() -> BenchError {
    BenchError::Missing("the C program cannot write".to_owned())
}

/// Polls the condition, with sleeps: the processors belong to the measured programs.
fn wait(what: &str, mut over: impl FnMut() -> bool) -> Result<(), BenchError> {
    let begin = Instant::now();
    while !over() {
        if begin.elapsed() > Duration::from_secs(30) {
            return Err(BenchError::Missing(format!("waited 30 s for {what}")));
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Asks the other process, every `pause`, until `done` accepts its response, for at most ten
/// seconds; `missing` describes what is missing, from the last response.
fn ask_until<T>(
    child: &mut other::Child,
    pause: Duration,
    mut done: impl FnMut(u64, u64) -> Option<T>,
    missing: impl FnOnce(u64, u64) -> String,
) -> Result<T, BenchError> {
    let begin = Instant::now();
    loop {
        let (first, second) = child.ask()?;
        if let Some(value) = done(first, second) {
            return Ok(value);
        }
        if begin.elapsed() > Duration::from_secs(10) {
            return Err(BenchError::Missing(missing(first, second)));
        }
        thread::sleep(pause);
    }
}
