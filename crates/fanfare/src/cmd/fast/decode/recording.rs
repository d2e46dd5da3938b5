//! The recording of a line: its packets, one at a time.

use super::place::Place;
use crate::cmd::fast::packets::{ByteFile, PacketError, PacketFile};
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_feed::channel::{Channel, Datagram};
use fanfare_feed::{FrameError, Header, Line};
use std::path::Path;

/// A line's packets, with the current one.
pub(crate) struct Recording {
    source: Source,
    pub(crate) name: String,
    line: Line,
    /// The current packet; empty at the end.
    packet: Vec<u8>,
    offset: u64,
    place: Place,
    number: Option<u32>,
}

/// The source of packets.
pub(crate) enum Source {
    Packets(PacketFile),
    /// A stream in which each packet begins with a Reset message.
    Stream(ByteFile),
}

impl Source {
    /// Opens a file whose packets have this header.
    pub(crate) fn open(file: &Path, header: Header, stop: &Stop) -> Result<Self> {
        Ok(match header {
            Header::None => Self::Stream(ByteFile::open(file, stop)?),
            _ => Self::Packets(PacketFile::open(file, header, stop)?),
        })
    }
}

impl Recording {
    /// Creates a recording without a current packet; errors refer to it by `name`.
    pub(crate) fn new(source: Source, name: String, line: Line) -> Self {
        Self {
            source,
            name,
            line,
            packet: Vec::new(),
            offset: 0,
            place: Place::default(),
            number: None,
        }
    }

    /// Returns the place of the current packet in the sequence, if there is a packet.
    pub(crate) fn in_hand(&self) -> Option<&Place> {
        (!self.packet.is_empty()).then_some(&self.place)
    }

    /// Returns the bytes of the current packet.
    pub(crate) fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Returns the number of the current packet, if [`Self::advance`] has looked for it.
    pub(crate) const fn number(&self) -> Option<u32> {
        self.number
    }

    /// Returns the current packet, as of `now`. A recording has no time of arrival.
    pub(crate) const fn datagram(&self, now: u64) -> Datagram<'_> {
        Datagram {
            line: self.line,
            now,
            received: 0,
            offset: self.offset,
            bytes: self.packet.as_slice(),
        }
    }

    /// Returns true if the next packet must be read first, which may block on a pipe.
    pub(crate) fn must_read(&self) -> bool {
        match &self.source {
            Source::Packets(file) => file.must_read(),
            Source::Stream(file) => file.must_wait(),
        }
    }

    /// Advances to the next packet, and looks for its number if `is_asked`. Returns the error in
    /// the header of the packet, if there is one; there is no current packet then.
    pub(crate) fn advance(
        &mut self,
        channel: &mut Channel,
        is_asked: bool,
    ) -> Result<Option<FrameError>> {
        self.packet.clear();
        let cannot = || format!("cannot read `{}`", self.name);
        match &mut self.source {
            Source::Stream(file) => {
                let (offset, window) = file.window().with_context(cannot)?;
                self.offset = offset;
                let (len, _) = channel.cut(self.line, window);
                self.packet
                    .extend_from_slice(window.get(..len).unwrap_or_default());
                file.consume(len);
            }
            Source::Packets(file) => match file.next() {
                Ok(Some(packet)) => {
                    self.offset = packet.offset;
                    self.packet.extend_from_slice(packet.bytes);
                }
                Ok(None) => {}
                Err(PacketError::Io(error)) => return Err(error).with_context(cannot),
                Err(PacketError::Frame(error)) => return Ok(Some(error)),
            },
        }
        if is_asked {
            let numbers = channel.numbers(self.datagram(0));
            self.number = numbers.first;
            self.place.go_on(numbers);
        }
        Ok(None)
    }
}
