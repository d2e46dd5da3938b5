//! The files that are replayed, as datagrams with their times.

use super::raw::RawSource;
use crate::cmd::fast::options::open;
use crate::cmd::fast::packets::PacketFile;
use crate::input::Input;
use crate::print::note;
use anyhow::{Context, Result, bail, ensure};
use fanfare_engine::stop::Stop;
use fanfare_feed::Header;
use fanfare_instruments::ip::{NoSegment, UnknownLinks};
use fanfare_instruments::pcap::{End, LinkType, Reader, is_capture};
use fanfare_instruments::udp::datagram;
use std::io::{self, Cursor, ErrorKind, Read};
use std::net::{IpAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use crate::line::DATAGRAM;

/// The contents of captures that are not replayed.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Packets that are not UDP.
    pub(super) other: u64,
    /// Fragments of datagrams.
    pub(super) fragments: u64,
    /// Datagrams that were captured truncated, also within their headers.
    pub(super) cut: u64,
    /// Datagrams whose headers contradict each other.
    pub(super) malformed: u64,
    /// Packets of link types that are not supported.
    pub(super) unknown_links: UnknownLinks,
    /// Datagrams to no multicast group, or to none that was given.
    pub(super) elsewhere: u64,
    /// FIX messages in a raw log.
    pub(super) messages: u64,
    /// Datagrams and messages missing from a raw log.
    pub(super) lost: u64,
}

/// The interpretation of files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// The length header of files of packets, if the command line has one.
    pub(super) header: Option<Header>,
    /// Nanoseconds between two packets of a file without times.
    pub(super) every: Option<u64>,
}

/// One file, and its next datagram.
pub(super) struct Source {
    path: PathBuf,
    kind: Kind,
    /// The capture time of the datagram, ns; `None` in a capture without stamps.
    time: Option<u64>,
    /// The destination address, if it is known and IPv4.
    to: Option<SocketAddrV4>,
    bytes: Vec<u8>,
    stop: Stop,
}

enum Kind {
    Capture {
        reader: Reader<Box<dyn Read + Send>>,
        unknown_link: Option<LinkType>,
        datagrams: u64,
    },
    Packets {
        file: PacketFile,
        every: u64,
        count: u64,
    },
    Log(Box<RawSource>),
}

impl Source {
    pub(super) fn open(path: &Path, reading: Reading, stop: &Stop) -> Result<Self> {
        let cannot = || format!("cannot read `{}`", path.display());
        let source = |kind| Self {
            path: path.to_owned(),
            kind,
            time: None,
            to: None,
            bytes: Vec::new(),
            stop: stop.clone(),
        };
        if path.is_dir() {
            let log = RawSource::open(path).with_context(cannot)?;
            return Ok(source(Kind::Log(Box::new(log))));
        }
        let mut input = open(path, stop)?;
        let (start, count) = first_bytes(&mut input).with_context(cannot)?;
        let read = start.get(..count).unwrap_or_default();
        let kind = if reading.header.is_none() && (is_capture(start) || count == 0) {
            let whole = Cursor::new(read.to_vec()).chain(Ending(input, stop.clone()));
            Kind::Capture {
                reader: Reader::new(Box::new(whole) as Box<_>).with_context(cannot)?,
                unknown_link: None,
                datagrams: 0,
            }
        } else {
            let Some(every) = reading.every else {
                bail!(
                    "`{}` is not a capture, and its packets have no times: give their distance \
                     with --every MICROSECONDS",
                    path.display()
                );
            };
            let header = reading.header.unwrap_or_default();
            Kind::Packets {
                file: PacketFile::new(input, read, header),
                every,
                count: 0,
            }
        };
        Ok(source(kind))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the times of the file are those of a clock.
    pub(super) fn has_clock(&self) -> bool {
        !matches!(self.kind, Kind::Packets { .. })
    }

    pub(super) fn time(&self) -> Option<u64> {
        self.time
    }

    pub(super) fn to(&self) -> Option<SocketAddrV4> {
        self.to
    }

    /// Swaps the datagram's bytes with a buffer for those of the next one.
    pub(super) fn swap_bytes(&mut self, room: &mut Vec<u8>) {
        std::mem::swap(&mut self.bytes, room);
    }

    /// Advances to the next datagram. Returns false at the end.
    pub(super) fn advance(&mut self, left_out: &mut LeftOut) -> Result<bool> {
        let found = match &mut self.kind {
            Kind::Capture { .. } => self.next_captured(left_out),
            Kind::Packets { .. } => self.next_packet(),
            Kind::Log(_) => self.next_logged(left_out),
        };
        found.with_context(|| format!("cannot read `{}`", self.path.display()))
    }

    fn next_captured(&mut self, left_out: &mut LeftOut) -> Result<bool> {
        let Kind::Capture {
            reader,
            unknown_link,
            datagrams,
        } = &mut self.kind
        else {
            return Ok(false);
        };
        while let Some(packet) = reader.next_packet()? {
            // Stamps of several queues may be slightly out of order: datagrams stay in file order.
            self.time = packet.time.max(self.time);
            match datagram(&packet) {
                Ok(datagram) if datagram.cut > 0 => left_out.cut += 1,
                Ok(datagram) => {
                    *datagrams += 1;
                    self.to = match datagram.destination.ip {
                        IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, datagram.destination.port)),
                        IpAddr::V6(_) => None,
                    };
                    self.bytes.clear();
                    self.bytes.extend_from_slice(datagram.payload);
                    return Ok(true);
                }
                Err(NoSegment::Fragment(_)) => left_out.fragments += 1,
                Err(NoSegment::Cut(_)) => left_out.cut += 1,
                Err(NoSegment::UnknownLink(link)) => {
                    *unknown_link = Some(link);
                    left_out.unknown_links.add(link);
                }
                Err(reason) if reason.spoilt().is_some() => left_out.malformed += 1,
                Err(_) => left_out.other += 1,
            }
        }
        if let (0, Some(LinkType(link))) = (*datagrams, *unknown_link) {
            bail!("link type {link} is not supported");
        }
        let trouble = reader.end().filter(|end| *end != End::Complete);
        if let Some(end) = trouble.filter(|_| !self.stop.is_raised()) {
            note!("fanfare: `{}`: {end}", self.path.display());
        }
        Ok(false)
    }

    fn next_logged(&mut self, left_out: &mut LeftOut) -> Result<bool> {
        let Kind::Log(log) = &mut self.kind else {
            return Ok(false);
        };
        let next = log.next(std::mem::take(&mut self.bytes))?;
        left_out.messages += std::mem::take(&mut log.messages);
        left_out.lost += std::mem::take(&mut log.lost);
        let Some(datagram) = next else {
            return Ok(false);
        };
        // Receiving threads write one after the other: datagrams stay in the log's order.
        self.time = Some(datagram.time).max(self.time);
        self.to = Some(datagram.to);
        self.bytes = datagram.bytes;
        Ok(true)
    }

    fn next_packet(&mut self) -> Result<bool> {
        let Kind::Packets { file, every, count } = &mut self.kind else {
            return Ok(false);
        };
        let Some(packet) = file.next()? else {
            return Ok(false);
        };
        *count += 1;
        let len = packet.bytes.len();
        ensure!(
            len <= DATAGRAM,
            "packet {count} has {len} bytes, too many for UDP"
        );
        self.bytes.clear();
        self.bytes.extend_from_slice(packet.bytes);
        self.time = Some((*count - 1).saturating_mul(*every));
        Ok(true)
    }
}

/// Returns up to four bytes at the front of a file, and their number.
fn first_bytes(input: &mut Input) -> io::Result<([u8; 4], usize)> {
    let (mut start, mut count) = ([0; 4], 0);
    while let Some(room) = start.get_mut(count..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(read) => count += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => break,
            Err(error) => return Err(error),
        }
    }
    Ok((start, count))
}

/// A pipe that ends at the stop signal too: a reader of captures continues after an interruption.
struct Ending(Input, Stop);

impl Read for Ending {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted && self.1.is_raised() => Ok(0),
            read => read,
        }
    }
}
