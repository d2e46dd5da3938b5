//! Records of raw logs: datagrams of lines, and messages of FIX sessions.
//!
//! | offset | record |
//! |---|---|
//! | 0 | number (u64) |
//! | 8 | time of arrival, nanoseconds since 1970-01-01 UTC (u64) |
//! | 16 | feed, from 1, 0 for none (u16), line, from 0 (u16) |
//! | 20 | [`Source`] (u16), port (u16), IPv4 address (4 bytes), 0 (u32) |
//! | 32 | the bytes |

use crate::format::{put, u64_at};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Bytes in front of a datagram or a message.
const HEADER: usize = 32;

/// The kind of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Source {
    /// A line of a feed.
    Line = 1,
    /// A snapshot line of a feed.
    Snapshots = 2,
    /// The session of a producer.
    Fix = 3,
}

/// The line that brought a datagram or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawLine {
    /// Its kind.
    pub source: Source,
    /// The index of the feed among those of the run, from 1; 0 for sessions of producers.
    pub feed: u16,
    /// The line: 0 for A, 1 for B; 0 for sessions.
    pub line: u16,
    /// The group of a line, the peer of a session; 0.0.0.0:0 if that is no address of IPv4.
    pub address: SocketAddrV4,
}

/// A datagram or a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    /// Its number in the log.
    pub number: u64,
    /// The time of arrival, in nanoseconds since 1970-01-01 UTC: the kernel's time for datagrams,
    /// that of the duty cycle for messages.
    pub received: u64,
    /// The line that brought it.
    pub line: RawLine,
    /// The payload of the datagram, or the message from `8=` to the last SOH.
    pub bytes: &'a [u8],
}

/// A delivery of [`Reader::read_raw`](crate::Reader::read_raw).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawDelivery<'a> {
    /// A datagram or message.
    Raw(&'a Raw<'a>),
    /// Some are missing in the log, or cannot be read.
    Lost {
        /// The number of the first one.
        first: u64,
        /// The number of the last one.
        last: u64,
    },
    /// The plant was restarted.
    Restart,
}

impl<'a> Raw<'a> {
    /// The longest datagram or message of a log, in bytes: 1 MiB.
    pub const MOST: usize = 1 << 20;

    /// The length of [`Self::header`], in bytes.
    pub const HEADER: usize = HEADER;

    /// Returns the header of the record, with this number.
    #[must_use]
    pub fn header(&self, number: u64) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let RawLine {
            source,
            feed,
            line,
            address,
        } = self.line;
        put(&mut header, 0, &number.to_le_bytes());
        put(&mut header, 8, &self.received.to_le_bytes());
        for (at, value) in [
            (16, feed),
            (18, line),
            (20, source as u16),
            (22, address.port()),
        ] {
            put(&mut header, at, &value.to_le_bytes());
        }
        put(&mut header, 24, &address.ip().octets());
        header
    }

    /// Reads [`Self::header`] and the bytes after it; `None` if they are invalid, or of a later
    /// version.
    #[must_use]
    pub fn read(record: &'a [u8]) -> Option<Self> {
        let (header, bytes) = record.split_first_chunk::<HEADER>()?;
        let half = |at: usize| u64_at(header, 16) >> (16 * at) & 0xffff;
        let source = match half(2) {
            1 => Source::Line,
            2 => Source::Snapshots,
            3 => Source::Fix,
            _ => return None,
        };
        let address = header.get(24..).and_then(|rest| rest.first_chunk::<4>())?;
        let line = RawLine {
            source,
            feed: half(0) as u16,
            line: half(1) as u16,
            address: SocketAddrV4::new(Ipv4Addr::from(*address), half(3) as u16),
        };
        Some(Self {
            number: u64_at(header, 0),
            received: u64_at(header, 8),
            line,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_comes_back() {
        for (source, feed, line) in [
            (Source::Line, 1, 0),
            (Source::Snapshots, u16::MAX, 3),
            (Source::Fix, 0, 0),
        ] {
            let raw = Raw {
                number: 1 << 40,
                received: u64::MAX,
                line: RawLine {
                    source,
                    feed,
                    line,
                    address: SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 65_535),
                },
                bytes: b"8=FIX",
            };
            let mut record = raw.header(raw.number).to_vec();
            record.extend_from_slice(raw.bytes);
            assert_eq!(Raw::read(&record), Some(raw));
            assert_eq!(Raw::read(&record[..31]), None);
            record[20] = 9;
            assert_eq!(Raw::read(&record), None);
        }
    }
}
