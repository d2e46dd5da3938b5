//! The producers of the raw log, one for each receiving thread.

use crate::counts::RawCounts;
use fanfare_engine::counters::{Counter, Counters};
use fanfare_engine::feed::Tap;
use fanfare_engine::ring::{Consumer, Producer, spsc};
use fanfare_history::{Raw, RawLine, Source};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// The bytes before a record of a ring: the number of records dropped since the previous one.
pub(super) const LACK: usize = 8;

/// The kind of the rings' records.
const RECORD: u32 = 1;

/// The factory of the producers, which keeps their consumers.
pub(crate) struct RawInlets {
    ring_bytes: usize,
    pub(super) rings: Vec<Consumer>,
    counters: Counters,
}

impl RawInlets {
    /// Creates a factory of rings of this size each.
    pub(super) const fn new(ring_bytes: usize, counters: Counters) -> Self {
        Self {
            ring_bytes,
            rings: Vec::new(),
            counters,
        }
    }

    /// Returns a producer for one thread.
    pub(crate) fn inlet(&mut self) -> RawInlet {
        let (ring, consumer) = spsc(self.ring_bytes);
        self.rings.push(consumer);
        RawInlet {
            ring,
            lack: 0,
            lost: RawCounts::new(&self.counters, "").lost,
        }
    }

    /// Returns a tap that writes the datagrams of a feed's lines. `feed` is its number among the
    /// markets, from 1, or 0 if it is not one.
    pub(crate) fn tap(&mut self, source: Source, feed: u16) -> Tap {
        let mut inlet = self.inlet();
        Box::new(move |line, datagram| {
            inlet.put(&Raw {
                number: 0,
                received: datagram.received,
                line: RawLine {
                    source,
                    feed,
                    line: datagram.line.index() as u16,
                    address: line.address,
                },
                bytes: datagram.bytes,
            });
        })
    }
}

/// The producer of one thread. It does not allocate.
pub(crate) struct RawInlet {
    ring: Producer,
    /// The records dropped since the last one that was written.
    lack: u64,
    lost: Counter,
}

impl RawInlet {
    /// Writes a datagram or a message. A record that does not fit, or is longer than [`Raw::MOST`],
    /// is dropped: the counter includes it at once, and the log records it before the next record.
    pub(crate) fn put(&mut self, raw: &Raw<'_>) {
        if raw.bytes.len() > Raw::MOST {
            return self.lose();
        }
        let (lack, header) = (self.lack.to_le_bytes(), raw.header(0));
        let len = LACK + header.len() + raw.bytes.len();
        let written = self.ring.write(RECORD, len, |room| {
            let mut rest = room;
            for piece in [&lack[..], &header, raw.bytes] {
                if let Some((own, behind)) = rest.split_at_mut_checked(piece.len()) {
                    own.copy_from_slice(piece);
                    rest = behind;
                } else {
                    return;
                }
            }
        });
        match written {
            Ok(_) => self.lack = 0,
            Err(_) => self.lose(),
        }
    }

    fn lose(&mut self) {
        self.lack += 1;
        self.lost.increment(1);
    }

    /// Writes a message of a FIX session.
    pub(crate) fn message(&mut self, bytes: &[u8], utc_nanos: i64, peer: Option<SocketAddr>) {
        let address = match peer {
            Some(SocketAddr::V4(address)) => address,
            _ => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        };
        self.put(&Raw {
            number: 0,
            received: utc_nanos.unsigned_abs(),
            line: RawLine {
                source: Source::Fix,
                feed: 0,
                line: 0,
                address,
            },
            bytes,
        });
    }
}
