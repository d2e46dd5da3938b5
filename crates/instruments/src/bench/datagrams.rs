//! The raw baseline of a multicast feed: the same datagrams to two groups, received and only
//! counted.

use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Receiver, ReceiverConfig, Sender, SenderConfig};

use crate::figures::{Figures, median};

/// Datagrams in one system call, the same as in `fanfare fast multicast`.
const BATCH: usize = 32;
/// Receive buffer to ask the kernel for, the same as in `fanfare fast decode`.
const BUFFER: usize = 32 << 20;
/// The silence after the last send after which missing datagrams are lost.
const SILENCE: Duration = Duration::from_millis(300);

/// The result of the raw baseline.
#[derive(Debug, Clone, Copy)]
struct Passed {
    /// Datagrams sent, both groups.
    sent: usize,
    /// Datagrams received, both groups.
    received: usize,
    /// From the first datagram received to the last.
    elapsed: Duration,
}

impl Passed {
    /// Returns the datagrams per second at the receiver.
    fn rate(&self) -> f64 {
        self.received as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// The result of one measured run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Datagrams of both lines per second at the receiver.
    pub rate: f64,
    /// Datagrams that were sent and not received, both lines.
    pub lost: u64,
    /// Lost datagrams that the kernel dropped.
    pub kernel_drops: u64,
    /// Datagrams that the receiver could not decode.
    pub errors: u64,
}

/// Adds the figures of the raw baseline and of the measured program, which alternate until `stop`
/// is raised; `ratio_rate` is the program's rate divided by the baseline's. `ours` runs the
/// program, with the number of the run from 1. The turn in which `stop` is raised does not count.
///
/// # Errors
/// Those of the raw baseline and of `groups`, and of `ours` unless `stop` is raised.
pub fn add_turns<E: From<io::Error>>(
    figures: &mut Figures,
    packets: &[Vec<u8>],
    runs: u32,
    stop: &Stop,
    mut groups: impl FnMut() -> Result<[SocketAddrV4; 2], E>,
    mut ours: impl FnMut(u32) -> Result<Run, E>,
) -> Result<(), E> {
    let (mut raw_rates, mut rates) = (Vec::new(), Vec::new());
    let (mut raw_lost, mut lost, mut kernel_drops, mut errors) = (0, 0, 0, 0);
    for run in 1..=runs {
        if stop.is_raised() {
            break;
        }
        let raw = raw_pair(groups()?, packets)?;
        let run = ours(run);
        // It fails, or has only a part of the datagrams.
        if stop.is_raised() {
            break;
        }
        let run = run?;
        raw_rates.push(raw.rate());
        raw_lost += (raw.sent - raw.received) as u64;
        rates.push(run.rate);
        lost += run.lost;
        kernel_drops += run.kernel_drops;
        errors += run.errors;
    }
    let (raw, ours) = (median(raw_rates), median(rates));
    figures.count("packets", packets.len() as u64);
    figures.add("raw_rate_per_s", raw);
    figures.add("rate_per_s", ours);
    figures.add("ratio_rate", ours / raw);
    figures.count("raw_lost", raw_lost);
    figures.count("lost", lost);
    figures.count("kernel_drops", kernel_drops);
    figures.count("errors", errors);
    figures.set_ok(!ours.is_nan() && lost + errors == 0);
    Ok(())
}

/// Sends `packets` to both groups on loopback, as fast as possible, from this thread; a second one
/// spins and counts the datagrams received.
///
/// # Errors
/// A socket cannot be opened, or a send fails.
fn raw_pair(groups: [SocketAddrV4; 2], packets: &[Vec<u8>]) -> io::Result<Passed> {
    let open = |group| {
        Receiver::open(&ReceiverConfig {
            buffer: BUFFER,
            ..ReceiverConfig::new(group)
        })
    };
    let receivers = [open(groups[0])?, open(groups[1])?];
    let wanted = 2 * packets.len();
    let all_sent = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&all_sent);
    let counting = thread::spawn(move || count(receivers, wanted, &seen));
    let sent = send(groups, packets);
    all_sent.store(true, Ordering::Release);
    let counted = counting.join();
    sent?;
    let (received, elapsed) =
        counted.map_err(|_| io::Error::other("the counting thread failed"))??;
    Ok(Passed {
        sent: wanted,
        received,
        elapsed,
    })
}

/// Sends all packets to each group, as fast as possible.
fn send(groups: [SocketAddrV4; 2], packets: &[Vec<u8>]) -> io::Result<()> {
    let open = |group| {
        Sender::open(&SenderConfig {
            batch: BATCH,
            ..SenderConfig::new(group)
        })
    };
    let mut senders = [open(groups[0])?, open(groups[1])?];
    let slices: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    for batch in slices.chunks(BATCH) {
        for sender in &mut senders {
            let mut sent = 0;
            while let Some(rest) = batch.get(sent..).filter(|rest| !rest.is_empty()) {
                sent += sender.send_batch(rest)?;
            }
        }
    }
    Ok(())
}

/// Counts datagrams until all have come or the line is silent.
fn count(
    mut receivers: [Receiver; 2],
    wanted: usize,
    all_sent: &AtomicBool,
) -> io::Result<(usize, Duration)> {
    let (mut first, mut last) = (None, Instant::now());
    // The time since when nothing has come and nothing more is due.
    let mut silent = None;
    let mut received = 0;
    while received < wanted {
        let is_over = all_sent.load(Ordering::Acquire);
        let mut came = 0;
        for receiver in &mut receivers {
            came += receiver.receive()?;
        }
        if came > 0 {
            received += came;
            last = Instant::now();
            first.get_or_insert(last);
            silent = None;
        } else if is_over && silent.get_or_insert_with(Instant::now).elapsed() >= SILENCE {
            break;
        }
    }
    Ok((received, first.map_or(Duration::ZERO, |first| last - first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    fn group(last: u8) -> SocketAddrV4 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        SocketAddrV4::new(Ipv4Addr::new(239, 255, 80, last), port)
    }

    const RUN: Run = Run {
        rate: 1e15,
        lost: 0,
        kernel_drops: 0,
        errors: 0,
    };

    #[test]
    fn the_ratio_is_that_of_the_program_to_the_baseline() {
        let mut figures = Figures::new("bench feed");
        let packets = vec![vec![7; 66]; 10];
        let groups = || Ok::<_, io::Error>([group(3), group(4)]);
        add_turns(&mut figures, &packets, 1, &Stop::new(), groups, |_| Ok(RUN)).unwrap();
        assert!(figures.value("ratio_rate").unwrap() > 1.0);
    }

    #[test]
    fn a_turn_that_is_cut_short_does_not_count() {
        let packets = vec![vec![7; 66]; 10];
        let groups = || Ok::<_, io::Error>([group(5), group(6)]);
        for fails in [true, false] {
            let stop = Stop::new();
            let mut figures = Figures::new("bench feed");
            let ours = |turn: u32| {
                if turn == 1 {
                    return Ok(Run { lost: 3, ..RUN });
                }
                stop.raise();
                match fails {
                    true => Err(io::Error::other("interrupted")),
                    false => Ok(Run {
                        rate: 1.0,
                        lost: 5,
                        ..RUN
                    }),
                }
            };
            add_turns(&mut figures, &packets, 3, &stop, groups, ours).unwrap();
            assert_eq!(figures.value("rate_per_s"), Some(RUN.rate));
            assert!(figures.value("raw_rate_per_s").is_some());
            assert_eq!(figures.value("lost"), Some(3.0));
        }
    }

    #[test]
    fn without_a_turn_there_are_no_rates() {
        let (stop, mut figures) = (Stop::new(), Figures::new("bench feed"));
        stop.raise();
        let groups = || Ok::<_, io::Error>([group(7), group(8)]);
        add_turns(&mut figures, &[], 3, &stop, groups, |_| Ok(RUN)).unwrap();
        for name in ["raw_rate_per_s", "rate_per_s", "ratio_rate"] {
            assert_eq!(figures.value(name), None, "{name}");
        }
        assert!(!figures.is_ok());
    }

    #[test]
    fn every_datagram_of_both_groups_is_counted() {
        let packets = vec![vec![7; 66]; 100];
        let passed = raw_pair([group(1), group(2)], &packets).unwrap();
        assert_eq!((passed.sent, passed.received), (200, 200));
        assert!(passed.rate() > 0.0);
    }
}
