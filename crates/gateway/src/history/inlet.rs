//! Ways into the log of what arrives, for the threads that receive.

use crate::counts::RawCounts;
use fanfare_engine::counters::{Counter, Counters};
use fanfare_engine::feed::Tap;
use fanfare_engine::ring::{Consumer, Producer, spsc};
use fanfare_history::{Raw, RawLine, Source};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

/// Bytes in front of a record of a ring: how many before it found no room.
pub(super) const LACK: usize = 8;

/// What the rings' records are.
const RECORD: u32 = 1;

/// Makes the ways into the log, and has their other ends.
pub(crate) struct RawInlets {
    ring_bytes: usize,
    pub(super) rings: Vec<Consumer>,
    counters: Counters,
}

impl RawInlets {
    /// Rings of this size each.
    pub(super) const fn new(ring_bytes: usize, counters: Counters) -> Self {
        Self {
            ring_bytes,
            rings: Vec::new(),
            counters,
        }
    }

    /// A way into the log for one thread.
    pub(crate) fn inlet(&mut self) -> RawInlet {
        let (ring, consumer) = spsc(self.ring_bytes);
        self.rings.push(consumer);
        RawInlet {
            ring,
            lack: 0,
            lost: RawCounts::new(&self.counters, "").lost,
        }
    }

    /// A way into the log for the lines of a feed, whose place is 0 if it is no market.
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

/// A way into the log for one thread. It allocates nothing.
pub(crate) struct RawInlet {
    ring: Producer,
    /// Found no room since the last one that did.
    lack: u64,
    lost: Counter,
}

impl RawInlet {
    /// Copies what has arrived; where there is no room it is left out, and counted with the next.
    pub(crate) fn put(&mut self, raw: &Raw<'_>) {
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
            Err(_) => {
                self.lack += 1;
                self.lost.increment(1);
            }
        }
    }

    /// Copies a message of a producer.
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
