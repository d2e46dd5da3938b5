//! A feed from multicast: lines of changes, and lines of snapshots.

use super::{Args, From, Watch, config};
use crate::cmd::fast::decode;
use crate::cmd::fast::options::socket_address;
use crate::print::note;
use crate::usage::misuse;
use anyhow::Result;
use fanfare_engine::clock::Clock;
use fanfare_engine::feed::{LineConfig, Receiver, ReceiverConfig};
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_feed::Header;
use fanfare_feed::channel::ChannelConfig;
use std::io;
use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;
/// The interval at which the book is redrawn, ns.
const DRAW: u64 = 100_000_000;
/// The time to wait for changes before snapshots are polled again.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn run(
    args: &Args,
    decoding: &decode::Args,
    program: &Arc<Program>,
    watch: &mut Watch,
) -> Result<()> {
    let stop = Stop::on_interrupt()?;
    let groups = groups(args)?;
    let mut changes = open(decoding, program, &decoding.multicast)?;
    let mut snapshots = match groups.is_empty() {
        true => None,
        false => Some(open(decoding, program, &groups)?),
    };
    let idle = decoding.network.idle;
    let idle = idle.map_or(u64::MAX, |seconds| (seconds * SECOND as f64) as u64);
    let mut clock = Clock::new();
    let mut next_draw = 0;
    while !stop.is_raised() {
        let now = clock.read().mono;
        let mut datagrams = turn(&mut changes, now, From::Changes, watch)?;
        if let Some(snapshots) = &mut snapshots {
            datagrams += turn(snapshots, now, From::Snapshots, watch)?;
        }
        watch.handle_timeout(now);
        if now >= next_draw {
            next_draw = now + DRAW;
            if watch.draw()? {
                break;
            }
        }
        if now.saturating_sub(changes.last()) >= idle {
            break;
        }
        if datagrams == 0 && !decoding.network.spin {
            changes.wait(LOOK)?;
        }
    }
    Ok(())
}

/// Returns the groups of the lines of snapshots.
pub(super) fn groups(args: &Args) -> Result<Vec<SocketAddrV4>> {
    let groups = args.snapshot.iter().map(|text| socket_address(text));
    match groups.collect() {
        Ok(groups) => Ok(groups),
        Err(why) => misuse!("--snapshot with --multicast: {why}"),
    }
}

/// Returns how a channel of datagrams is framed, numbered and arbitrated.
pub(super) fn datagram_config(decoding: &decode::Args, lines: usize) -> ChannelConfig {
    let mut channel = config(decoding, lines);
    channel.header = decoding.framing.header.unwrap_or(Header::None);
    channel
}

fn open(
    decoding: &decode::Args,
    program: &Arc<Program>,
    groups: &[SocketAddrV4],
) -> Result<Receiver> {
    let interface = decoding.network.interface;
    let lines = groups.iter().map(|group| LineConfig {
        interface,
        ..LineConfig::new(*group)
    });
    let config = ReceiverConfig {
        lines: lines.collect(),
        buffer: decoding.network.buffer,
        channel: datagram_config(decoding, groups.len()),
    };
    let receiver = Receiver::open(config, decode::decoder(decoding, program))?;
    if let Some(small) = receiver.small_buffer() {
        note!("fanfare: {small}");
    }
    for group in groups {
        note!("receiving {group} on {interface}");
    }
    Ok(receiver)
}

/// Runs one duty cycle of the lines. Returns the number of datagrams received.
fn turn(receiver: &mut Receiver, now: u64, from: From, watch: &mut Watch) -> Result<usize> {
    let turn = receiver.turn(now, |event| {
        watch.take(from, now, &event)?;
        Ok::<_, io::Error>(ControlFlow::Continue(()))
    })?;
    Ok(turn.datagrams)
}
