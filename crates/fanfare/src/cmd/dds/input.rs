//! Where published messages come from: a file, or one or two multicast lines.

use crate::cmd::fast::packets::PacketFile;
use crate::print::note;
use anyhow::{Context, Result};
use fanfare_engine::clock::Clock;
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_feed::{Gap, Header};
use fanfare_gateway::lines::{self, Lines, LinesConfig};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A missing packet is waited for this long.
const GAP_TIMEOUT: Duration = Duration::from_millis(100);
/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(10);

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
pub(crate) struct Source<'a> {
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
    let mut lines = Lines::open(&config, program)?;
    for group in source.groups {
        note!("receiving {group} on {}", source.interface);
    }
    let mut clock = Clock::new();
    let idle = source.idle.map_or(u128::MAX, |d| d.as_nanos());
    while !stop.is_raised() {
        let turn = lines.turn(clock.read().mono, &mut Told(to))?;
        let silent = clock.read().mono.saturating_sub(lines.last());
        if !turn.go_on || u128::from(silent) >= idle {
            break;
        }
        if turn.datagrams == 0 {
            lines.wait(LOOK)?;
        }
    }
    Ok(Losses {
        missing: lines.missing(),
        kernel_drops: lines.kernel_drops(),
    })
}

/// Whoever takes the packets, with gaps told on stderr.
struct Told<'a, P>(&'a mut P);

impl<P: Packets> lines::Packets for Told<'_, P> {
    type Error = anyhow::Error;

    fn packet(&mut self, bytes: &[u8], skip: u32) -> Result<bool> {
        self.0.packet(bytes, skip)
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
