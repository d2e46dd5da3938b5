//! The datagrams of a raw log, in order.

use anyhow::Result;
use fanfare_history::{Log, Raw, RawDelivery, Reader, Source, Start};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use std::path::Path;

/// Records that are read at once.
const AT_ONCE: usize = 256;

/// A raw log up to its end at the time of opening.
pub(super) struct RawSource {
    reader: Reader,
    read: VecDeque<Datagram>,
    /// Buffers of datagrams that were taken.
    spare: Vec<Vec<u8>>,
    /// FIX messages so far, and records missing from the log.
    pub(super) messages: u64,
    pub(super) lost: u64,
}

/// A datagram of a line.
pub(super) struct Datagram {
    /// The time of arrival, nanoseconds since 1970-01-01 UTC.
    pub(super) time: u64,
    /// The line's address.
    pub(super) to: SocketAddrV4,
    pub(super) bytes: Vec<u8>,
}

impl RawSource {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let log = Log::open(path)?;
        let mut reader = log.reader(Start::First)?;
        reader.stop_before(log.extent()?.next);
        Ok(Self {
            reader,
            read: VecDeque::new(),
            spare: Vec::new(),
            messages: 0,
            lost: 0,
        })
    }

    /// Returns whether the folder has a raw log.
    pub(super) fn is_at(path: &Path) -> bool {
        path.is_dir()
            && Log::open(path)
                .and_then(|log| log.is_raw())
                .unwrap_or(false)
    }

    /// Returns the next datagram; `None` at the end. The buffer `room` is reused.
    pub(super) fn next(&mut self, room: Vec<u8>) -> Result<Option<Datagram>> {
        self.spare.push(room);
        let Self {
            reader,
            read,
            spare,
            messages,
            lost,
        } = self;
        while read.is_empty() {
            let count = reader.read_raw(AT_ONCE, |delivery| match delivery {
                RawDelivery::Raw(raw) if raw.line.source == Source::Fix => *messages += 1,
                RawDelivery::Raw(raw) => read.push_back(datagram(raw, spare.pop())),
                RawDelivery::Lost { first, last } => *lost += last - first + 1,
                RawDelivery::Restart => {}
            })?;
            if count == 0 {
                break;
            }
        }
        Ok(read.pop_front())
    }
}

fn datagram(raw: &Raw<'_>, room: Option<Vec<u8>>) -> Datagram {
    let mut bytes = room.unwrap_or_default();
    bytes.clear();
    bytes.extend_from_slice(raw.bytes);
    Datagram {
        time: raw.received,
        to: raw.line.address,
        bytes,
    }
}
