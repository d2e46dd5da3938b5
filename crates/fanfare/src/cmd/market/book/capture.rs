//! A feed from a packet capture: lines of changes and of snapshots, in the time of the capture.

use super::live::{datagram_config, groups};
use super::{Args, From, Watch};
use crate::cmd::fast::decode;
use crate::print::note;
use crate::progress;
use crate::usage::misuse;
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_feed::Line;
use fanfare_feed::channel::{Channel, Datagram as Packet};
use fanfare_instruments::ip::{Destination, Endpoint, NoSegment, UnknownLinks};
use fanfare_instruments::pcap::{End, Reader};
use fanfare_instruments::udp::{Datagram, datagram};
use std::fs::File;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(
    args: &Args,
    decoding: &decode::Args,
    path: &Path,
    program: &Arc<Program>,
    watch: &mut Watch,
) -> Result<()> {
    if decoding.multicast.is_empty() {
        misuse!("--multicast is missing: it names the lines of changes in the capture");
    }
    let cannot = || format!("cannot read `{}`", path.display());
    let file = File::open(path).with_context(cannot)?;
    // From here on Ctrl-C ends the loop. Before, it ends the process: a FIFO may have no writer.
    let stop = Stop::on_interrupt()?;
    let mut reader = Reader::new(progress::watch(file)).with_context(cannot)?;
    let mut feeds = vec![Feed::new(
        decoding,
        program,
        &decoding.multicast,
        From::Changes,
    )?];
    let snapshots = groups(args)?;
    if !snapshots.is_empty() {
        feeds.push(Feed::new(decoding, program, &snapshots, From::Snapshots)?);
    }
    let (mut now, mut count) = (0, 0_u64);
    let mut unknown_links = UnknownLinks::default();
    while !stop.is_raised() {
        let Some(packet) = reader.next_packet().with_context(cannot)? else {
            break;
        };
        now = packet.time.unwrap_or(now).max(now);
        for feed in &mut feeds {
            feed.tick(now, watch)?;
        }
        watch.handle_timeout(now);
        match datagram(&packet) {
            Ok(datagram) => count += u64::from(take(&mut feeds, now, &datagram, watch)?),
            Err(NoSegment::UnknownLink(link)) => unknown_links.add(link),
            Err(reason) => {
                let to = reason.spoilt();
                if to.is_some_and(|to| feeds.iter().any(|feed| feed.may_have(to))) {
                    count += 1;
                    watch.spoilt(&reason.to_string());
                }
            }
        }
    }
    for feed in &mut feeds {
        feed.finish(now, watch)?;
    }
    if let Some(end) = reader.end().filter(|end| *end != End::Complete) {
        note!("fanfare: `{}`: {end}", path.display());
    }
    if unknown_links.count() > 0 {
        note!("fanfare: `{}`: {unknown_links}", path.display());
    }
    if count == 0 {
        note!("fanfare: `{}` has no datagram of the feed", path.display());
    }
    Ok(())
}

/// Takes a datagram if it is of one of the feeds.
fn take(
    feeds: &mut [Feed],
    now: u64,
    datagram: &Datagram<'_>,
    watch: &mut Watch,
) -> io::Result<bool> {
    for feed in feeds {
        if feed.take(now, datagram, watch)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The lines of one channel.
struct Feed {
    channel: Channel,
    groups: Vec<Endpoint>,
    from: From,
}

impl Feed {
    fn new(
        decoding: &decode::Args,
        program: &Arc<Program>,
        groups: &[SocketAddrV4],
        from: From,
    ) -> Result<Self> {
        let decoder = decode::decoder(decoding, program);
        let end = |group: &SocketAddrV4| Endpoint {
            ip: SocketAddr::V4(*group).ip(),
            port: group.port(),
        };
        Ok(Self {
            channel: Channel::new(decoder, datagram_config(decoding, groups.len()))?,
            groups: groups.iter().map(end).collect(),
            from,
        })
    }

    /// Declares packets that are overdue as missing.
    fn tick(&mut self, now: u64, watch: &mut Watch) -> io::Result<()> {
        let mut events = self.channel.handle_timeout(now);
        while let Some(event) = events.next() {
            watch.take(self.from, now, &event)?;
        }
        Ok(())
    }

    /// Returns whether a packet to this destination may be of one of the lines.
    fn may_have(&self, to: Destination) -> bool {
        self.groups.iter().any(|group| to.may_be(*group))
    }

    /// Takes a datagram if it is of one of the lines.
    fn take(&mut self, now: u64, datagram: &Datagram<'_>, watch: &mut Watch) -> io::Result<bool> {
        let to = datagram.destination;
        let line = self.groups.iter().position(|group| *group == to);
        let Some(line) = line.and_then(Line::new) else {
            return Ok(false);
        };
        if datagram.cut > 0 {
            watch.spoilt(&format!(
                "the capture has only a part of a datagram to {to}"
            ));
            return Ok(true);
        }
        let mut events = self.channel.receive(Packet {
            line,
            now,
            received: now,
            offset: 0,
            bytes: datagram.payload,
        });
        while let Some(event) = events.next() {
            watch.take(self.from, now, &event)?;
        }
        Ok(true)
    }

    /// Delivers everything that is held back.
    fn finish(&mut self, now: u64, watch: &mut Watch) -> io::Result<()> {
        let mut events = self.channel.finish();
        while let Some(event) = events.next() {
            watch.take(self.from, now, &event)?;
        }
        Ok(())
    }
}
