//! Where published messages come from: a file, or one or two multicast lines.

use crate::cmd::fast::packets::PacketFile;
use crate::print::note;
use anyhow::{Context, Result};
use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Receiver, ReceiverConfig};
use fanfare_fast::{Decoder, Program};
use fanfare_feed::{
    Arbiter, ArbiterConfig, Event, Header, Line, MessageNumbers, SequenceField, Start, Unit,
    Verdict,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A missing packet is waited for this long.
const GAP_TIMEOUT: u64 = 100_000_000;
/// How often Ctrl-C is looked for.
const LOOK: u64 = 100_000_000;

/// Takes packets; the number of messages at the front that were delivered before; whether to go
/// on.
pub(crate) trait Packets {
    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool>;
}

/// All packets of a file.
pub(crate) fn file(path: &Path, header: Header, stop: &Stop, to: &mut impl Packets) -> Result<()> {
    let mut file = PacketFile::open(path, header)?;
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
pub(crate) struct Lines<'a> {
    /// One group, or two with the same feed.
    pub(crate) groups: &'a [SocketAddrV4],
    /// Address of the interface.
    pub(crate) interface: Ipv4Addr,
    /// Silence after which the feed is over.
    pub(crate) idle: Option<Duration>,
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
/// Two lines are arbitrated by the
/// sequence numbers of their messages; packets without any pass as they come.
pub(crate) fn multicast(
    source: &Lines<'_>,
    program: &Arc<Program>,
    stop: &Stop,
    to: &mut impl Packets,
) -> Result<Losses> {
    let mut poller = Poller::new(source.groups.len())?;
    let mut lines = open(source, &mut poller)?;
    let decoder = Decoder::new(Arc::clone(program));
    let mut live = Live {
        numbers: MessageNumbers::new(decoder, &SequenceField::Auto).filter(|_| lines.len() > 1),
        arbiter: Arbiter::new(ArbiterConfig {
            gap_timeout: GAP_TIMEOUT,
            start: Start::First { wait: GAP_TIMEOUT },
            ..ArbiterConfig::default()
        }),
        held: Vec::new(),
        last: 0,
    };
    let mut clock = Clock::new();
    let idle = source.idle.map_or(u128::MAX, |d| d.as_nanos());
    live.last = clock.read().mono;
    while !stop.is_raised() {
        let (mut took, mut go_on) = (0, true);
        for (index, receiver) in lines.iter_mut().enumerate() {
            let count = receiver.receive()?;
            took += count;
            for i in 0..count {
                let now = clock.read().mono;
                go_on &= live.receive(index, now, receiver.datagram(i).bytes, to)?;
            }
        }
        let now = clock.read().mono;
        live.arbiter.handle_timeout(now);
        go_on &= live.drain(to)? && live.release(now, to)?;
        if !go_on || u128::from(now.saturating_sub(live.last)) >= idle {
            break;
        }
        if took == 0 {
            poller.poll(Some(Duration::from_nanos(LOOK.min(10_000_000))))?;
        }
    }
    let drops = lines.iter().filter_map(|line| line.kernel_drops().ok());
    Ok(Losses {
        missing: live.arbiter.stats().missing,
        kernel_drops: drops.sum(),
    })
}

fn open(source: &Lines<'_>, poller: &mut Poller) -> Result<Vec<Receiver>> {
    let interface = source.interface;
    let mut lines = Vec::new();
    for (i, group) in source.groups.iter().enumerate() {
        let config = ReceiverConfig {
            interface,
            ..ReceiverConfig::new(*group)
        };
        let receiver = Receiver::open(&config)
            .with_context(|| format!("cannot receive {group} on {interface}"))?;
        poller.add(&receiver, Token(i as u64), Interest::Read)?;
        note!("receiving {group} on {interface}");
        lines.push(receiver);
    }
    Ok(lines)
}

struct Live {
    numbers: Option<MessageNumbers>,
    arbiter: Arbiter,
    /// Packets without numbers wait until the lines are silent: the end of a feed is one.
    held: Vec<Vec<u8>>,
    /// When the last packet came.
    last: u64,
}

impl Live {
    fn receive(
        &mut self,
        line: usize,
        now: u64,
        bytes: &[u8],
        to: &mut impl Packets,
    ) -> Result<bool> {
        self.last = now;
        let (Some(numbers), Some(line)) = (&mut self.numbers, Line::new(line)) else {
            return to.packet(bytes, 0);
        };
        let read = numbers.read(bytes);
        let Some(sequence) = read.first else {
            if self.held.len() < 16 && !self.held.iter().any(|h| h == bytes) {
                self.held.push(bytes.to_vec());
            }
            return Ok(true);
        };
        let unit = Unit {
            sequence,
            count: read.count,
            bytes,
        };
        match self.arbiter.receive(now, line, unit) {
            Verdict::Deliver { skip } => Ok(to.packet(bytes, skip)? && self.drain(to)?),
            _ => self.drain(to),
        }
    }

    fn drain(&mut self, to: &mut impl Packets) -> Result<bool> {
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) if !to.packet(unit.bytes, unit.skip)? => return Ok(false),
                Event::Gap(gap) => {
                    note!(
                        "gap: {} to {} missing ({})",
                        gap.first,
                        gap.last(),
                        gap.count
                    );
                }
                _ => {}
            }
        }
        Ok(true)
    }

    /// Once the other line has had its time: what waits.
    fn release(&mut self, now: u64, to: &mut impl Packets) -> Result<bool> {
        if self.held.is_empty() || now.saturating_sub(self.last) < GAP_TIMEOUT {
            return Ok(true);
        }
        self.arbiter.flush();
        if !self.drain(to)? {
            return Ok(false);
        }
        for packet in std::mem::take(&mut self.held) {
            if !to.packet(&packet, 0)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
