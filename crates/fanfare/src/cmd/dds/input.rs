//! Where published messages come from: a file, or one or two multicast lines, which a thread of
//! their own receives.
//!
//! Between that thread and the one that publishes stands a ring of packets: a bus that is slower
//! than the feed for a while costs no datagram. When the ring is full, datagrams stay with the
//! kernel, which drops and counts what its buffer does not hold.

use crate::cmd::fast::packets::PacketFile;
use crate::print::note;
use anyhow::{Context, Result, anyhow};
use fanfare_engine::clock::Clock;
use fanfare_engine::ring::{Consumer, Producer, WriteError, spsc};
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_feed::{Gap, Header};
use fanfare_gateway::lines::{self, Lines, LinesConfig};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::Duration;

/// A missing packet is waited for this long.
const GAP_TIMEOUT: Duration = Duration::from_millis(100);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(10);
/// How often a full ring is looked at.
const FULL: Duration = Duration::from_micros(200);

/// Takes packets; the number of messages at the front that were delivered before; whether to go
/// on.
pub(crate) trait Packets {
    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool>;
}

/// All packets of a file.
pub(crate) fn file(path: &Path, header: Header, stop: &Stop, to: &mut impl Packets) -> Result<()> {
    let mut file = PacketFile::open(path, header, stop)?;
    let name = || format!("cannot read `{}`", path.display());
    while !stop.is_raised() {
        match file.next() {
            Ok(None) => break,
            Ok(Some(packet)) => {
                if !to.packet(packet.bytes, 0)? {
                    break;
                }
            }
            Err(error) => return Err(error).with_context(name),
        }
    }
    Ok(())
}

/// What to receive.
pub(crate) struct Source<'a> {
    /// One group, or two with the same feed.
    pub(crate) groups: &'a [SocketAddrV4],
    /// Address of the interface.
    pub(crate) interface: Ipv4Addr,
    /// Silence after which the feed is over.
    pub(crate) idle: Option<Duration>,
    /// Bytes of packets that may wait to be taken.
    pub(crate) backlog: usize,
}

/// What of a feed did not come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    /// Sequence numbers that were on no line.
    pub(crate) missing: u64,
    /// Datagrams that the kernel dropped because we were slow.
    pub(crate) kernel_drops: u64,
}

/// Packets from multicast until `to` has enough, the lines are silent for too long, or Ctrl-C.
pub(crate) fn multicast(
    source: &Source<'_>,
    program: &Arc<Program>,
    stop: &Stop,
    to: &mut impl Packets,
) -> Result<Losses> {
    let config = LinesConfig {
        groups: source.groups.to_vec(),
        interface: source.interface,
        gap_timeout: GAP_TIMEOUT,
    };
    let lines = Lines::open(&config, program)?;
    if let Some(small) = lines.small_buffer() {
        note!("fanfare: {small}");
    }
    for group in source.groups {
        note!("receiving {group} on {}", source.interface);
    }
    let (producer, mut consumer) = spsc(source.backlog);
    let (taker, enough) = (thread::current(), Stop::new());
    let inlet = Inlet {
        ring: producer,
        taker: taker.clone(),
        enough: enough.clone(),
    };
    thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let losses = receive(lines, inlet, source.idle);
            taker.unpark();
            losses
        });
        let taken = take(&mut consumer, stop, to);
        enough.raise();
        let losses = receiving.join();
        taken?;
        losses.map_err(|_| anyhow!("the thread that receives has panicked"))?
    })
}

/// Takes packets out of the ring until no more will come.
fn take(ring: &mut Consumer, stop: &Stop, to: &mut impl Packets) -> Result<()> {
    while !stop.is_raised() {
        let mut go_on = Ok(true);
        let taken = ring.read(1, |packet| go_on = to.packet(packet.bytes, packet.kind));
        if !go_on? || (taken == 0 && ring.is_finished()) {
            break;
        }
        if taken == 0 {
            thread::park_timeout(LOOK);
        }
    }
    Ok(())
}

/// Receives until whoever takes the packets has enough, or the lines are silent for too long.
fn receive(mut lines: Lines, mut inlet: Inlet, idle: Option<Duration>) -> Result<Losses> {
    let mut clock = Clock::new();
    let idle = idle.map_or(u128::MAX, |d| d.as_nanos());
    while !inlet.enough.is_raised() {
        let turn = lines.turn(clock.read().mono, &mut inlet)?;
        let silent = clock.read().mono.saturating_sub(lines.last());
        if !turn.go_on || u128::from(silent) >= idle {
            break;
        }
        inlet.taker.unpark();
        if turn.datagrams == 0 {
            lines.wait(LOOK)?;
        }
    }
    Ok(Losses {
        missing: lines.missing(),
        kernel_drops: lines.kernel_drops(),
    })
}

/// Puts packets into the ring, each with the number of its messages that were delivered before;
/// tells gaps on stderr.
struct Inlet {
    ring: Producer,
    taker: Thread,
    enough: Stop,
}

impl lines::Packets for Inlet {
    type Error = anyhow::Error;

    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool> {
        loop {
            match self.ring.push(skip, bytes) {
                Ok(_) => return Ok(true),
                Err(WriteError::Full) if self.enough.is_raised() => return Ok(false),
                Err(WriteError::Full) => {
                    self.taker.unpark();
                    thread::sleep(FULL);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn gap(&mut self, gap: Gap) {
        note!(
            "gap: {} to {} missing ({})",
            gap.first,
            gap.last(),
            gap.count
        );
    }
}
