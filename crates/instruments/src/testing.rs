//! Builders of synthetic traffic for the tests of this crate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::pcap::{LinkType, Writer};
use crate::tcp::{Endpoint, Segment};

pub(crate) fn v4(host: u8, port: u16) -> Endpoint {
    Endpoint {
        ip: Ipv4Addr::new(127, 0, 0, host).into(),
        port,
    }
}

pub(crate) fn v6(host: u16, port: u16) -> Endpoint {
    Endpoint {
        ip: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host).into(),
        port,
    }
}

/// A TCP segment to be written as an IP packet.
#[derive(Debug, Clone)]
pub(crate) struct Tcp {
    source: Endpoint,
    destination: Endpoint,
    sequence: u32,
    flags: u8,
    payload: Vec<u8>,
    extensions: Vec<(u8, Vec<u8>)>,
}

impl Tcp {
    pub(crate) fn new(source: Endpoint, destination: Endpoint) -> Self {
        let (payload, extensions) = (Vec::new(), Vec::new());
        Self {
            source,
            destination,
            sequence: 0,
            flags: 0x10,
            payload,
            extensions,
        }
    }

    pub(crate) fn sequence(mut self, sequence: u32) -> Self {
        self.sequence = sequence;
        self
    }

    pub(crate) fn syn(mut self) -> Self {
        self.flags |= 2;
        self
    }

    pub(crate) fn payload(mut self, payload: &[u8]) -> Self {
        self.payload = payload.to_vec();
        self
    }

    /// Adds IPv6 extension headers, each with its protocol number; their first byte is overwritten.
    pub(crate) fn extensions(mut self, extensions: &[(u8, &[u8])]) -> Self {
        self.extensions = extensions
            .iter()
            .map(|(kind, body)| (*kind, body.to_vec()))
            .collect();
        self
    }

    pub(crate) fn ip(&self) -> Vec<u8> {
        let mut tcp = [
            self.source.port.to_be_bytes(),
            self.destination.port.to_be_bytes(),
        ]
        .concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend([0, 0, 0, 0, 0x80, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        // Timestamps option and padding: a header of 32 bytes.
        tcp.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        tcp.extend(&self.payload);
        match (self.source.ip, self.destination.ip) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = (20 + tcp.len()) as u16;
                let mut ip = vec![0x45, 0];
                ip.extend(total.to_be_bytes());
                ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0]);
                ip.extend(source.octets().into_iter().chain(destination.octets()));
                [ip, tcp].concat()
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut chain = Vec::new();
                for (at, (_, body)) in self.extensions.iter().enumerate() {
                    let next = self.extensions.get(at + 1).map_or(6, |(kind, _)| *kind);
                    chain.push(next);
                    chain.extend(&body[1..]);
                }
                let first = self.extensions.first().map_or(6, |(kind, _)| *kind);
                let mut ip = vec![0x60, 0, 0, 0];
                ip.extend(((chain.len() + tcp.len()) as u16).to_be_bytes());
                ip.extend([first, 64]);
                ip.extend(source.octets().into_iter().chain(destination.octets()));
                [ip, chain, tcp].concat()
            }
            _ => panic!("both ends of one family"),
        }
    }
}

/// Returns a capture of raw IP packets, each with its time in nanoseconds.
pub(crate) fn capture(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    for (time, ip) in packets {
        writer.packet(*time, ip, 0).unwrap();
    }
    writer.into_inner()
}

/// Returns a segment with this sequence number and payload, between arbitrary ends.
pub(crate) fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
    let (source, destination) = (v4(1, 1), v4(2, 2));
    let (syn, cut) = (false, 0);
    Segment {
        source,
        destination,
        sequence,
        syn,
        payload,
        cut,
    }
}

/// Returns a FIX.4.4 message of that type with these fields, `|` for the separator.
pub(crate) fn fix(msg_type: &str, fields: &str) -> Vec<u8> {
    let body = format!("35={msg_type}|49=A|56=B|34=1|52=20261121-03:00:00|{fields}");
    let text = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\x01").into_bytes()
}

/// A folder for the files of one test, removed on drop.
pub(crate) struct Folder(std::path::PathBuf);

impl Folder {
    /// Creates a folder; `name` is unique to the test.
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("fanfare-instruments-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
