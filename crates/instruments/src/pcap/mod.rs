//! Capture files: classic pcap and pcapng, read as a stream with bounded memory.
//!
//! The parsers replace crates, which lose packets, report wrong times, and do not return the byte
//! offset at which a damaged file ends (ADR 0034).

mod classic;
mod input;
mod ng;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::io::{self, Read};

use input::Input;
pub use write::Writer;

/// The longest packet; one that claims to be longer is damage. The longest that Linux delivers to a
/// capture with offloads is below 512 KiB.
pub const MAX_PACKET: usize = 1 << 20;

/// The link type of packets: the numbers of the tcpdump.org registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: 4 bytes of address family in the byte order of the capturing host.
    pub const NULL: Self = Self(0);
    /// Ethernet, with or without VLAN tags.
    pub const ETHERNET: Self = Self(1);
    /// OpenBSD loopback: 4 bytes of address family in network order.
    pub const LOOP: Self = Self(108);
    /// IPv4 or IPv6 without a link header.
    pub const RAW: Self = Self(101);
    /// Linux cooked, 16 bytes: captures of the `any` device.
    pub const LINUX_SLL: Self = Self(113);
    /// Linux cooked version 2, 20 bytes.
    pub const LINUX_SLL2: Self = Self(276);
    /// IPv4 without a link header.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link header.
    pub const IPV6: Self = Self(229);
}

/// One packet of a capture file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The capture time, nanoseconds since 1970; `None` in a simple packet block of pcapng, which
    /// has no stamp.
    pub time: Option<u64>,
    /// The link type of `data`.
    pub link: LinkType,
    /// The bytes captured.
    pub data: &'a [u8],
    /// The length of the packet on the wire: more than `data` if the snap length cut it.
    pub wire_len: u32,
}

/// The reason for the end of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The file ends after a whole packet.
    Complete,
    /// The file ends inside the packet or block that starts at byte `offset`.
    CutOff {
        /// The offset of the incomplete packet.
        offset: u64,
    },
    /// The packet or block at byte `offset` is invalid; the next one cannot be found.
    Damaged {
        /// The offset of the invalid packet.
        offset: u64,
        /// The fault.
        why: &'static str,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => write!(f, "the capture is complete"),
            Self::CutOff { offset } => write!(
                f,
                "the capture is cut off in the middle of the packet at byte {offset}; \
                 everything before it is used"
            ),
            Self::Damaged { offset, why } => write!(
                f,
                "the capture is damaged at byte {offset} ({why}); everything before it is used"
            ),
        }
    }
}

/// The error of opening a capture.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// A read failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the capture is empty: a pcap file has at least a header of 24 bytes")]
    Empty,
    /// The file ends within its header.
    #[error("the capture ends after {0} bytes, inside its header")]
    CutOffHeader(usize),
    /// The first bytes belong to no capture format.
    #[error("not a pcap or pcapng capture: it starts with the bytes {0:02x?}")]
    NotACapture([u8; 4]),
    /// The first bytes belong to a compressed file.
    #[error("the capture is compressed with {0}: unpack it first")]
    Compressed(&'static str),
    /// A version of classic pcap other than 2.
    #[error("unsupported version {0}.{1} of classic pcap, expected 2")]
    Version(u16, u16),
}

/// A reader of the packets of a capture, in order.
///
/// It holds one packet at a time and at most [`MAX_PACKET`] plus one read-ahead block of memory,
/// for files of any length. It reads in large blocks and needs no `BufReader`.
pub struct Reader<R> {
    input: Input<R>,
    format: Format,
    end: Option<End>,
}

enum Format {
    Classic(classic::Header),
    Ng(ng::Section),
}

/// The parse result at the front of the input.
enum Step {
    /// A packet: its stamp, link type, the range of its bytes within the block, its wire length.
    Packet {
        time: Option<u64>,
        link: LinkType,
        start: usize,
        len: usize,
        wire_len: u32,
    },
    /// A block without a packet.
    Other,
    /// The end of the packets.
    End(End),
}

impl<R: Read> Reader<R> {
    /// Reads the header of the file.
    ///
    /// # Errors
    /// [`PcapError`] if the file is not a capture or a read fails.
    pub fn new(reader: R) -> Result<Self, PcapError> {
        let mut input = Input::new(reader);
        let have = input.fill(4)?;
        let Some(&magic) = input.bytes().first_chunk::<4>() else {
            return Err(if have == 0 {
                PcapError::Empty
            } else {
                PcapError::CutOffHeader(have)
            });
        };
        let format = if magic == ng::SECTION_HEADER {
            Format::Ng(ng::Section::default())
        } else if let Some(flavour) = classic::Flavour::of(magic) {
            Format::Classic(classic::Header::read(&mut input, flavour)?)
        } else {
            return Err(unknown(magic));
        };
        Ok(Self {
            input,
            format,
            end: None,
        })
    }

    /// Returns the next packet, or `None` at the end, whose kind [`end`](Self::end) returns.
    ///
    /// # Errors
    /// A read fails. A truncated or damaged file is not an error here.
    pub fn next_packet(&mut self) -> io::Result<Option<Packet<'_>>> {
        while self.end.is_none() {
            self.input.advance();
            let step = match &mut self.format {
                Format::Classic(header) => header.step(&mut self.input)?,
                Format::Ng(section) => section.step(&mut self.input)?,
            };
            match step {
                Step::Packet {
                    time,
                    link,
                    start,
                    len,
                    wire_len,
                } => {
                    let data = self
                        .input
                        .bytes()
                        .get(start..start + len)
                        .unwrap_or_default();
                    return Ok(Some(Packet {
                        time,
                        link,
                        data,
                        wire_len,
                    }));
                }
                Step::Other => {}
                Step::End(end) => self.end = Some(end),
            }
        }
        Ok(None)
    }

    /// Returns why there are no more packets; `None` while there may be.
    pub fn end(&self) -> Option<End> {
        self.end
    }
}

/// Returns true if a file that starts with these bytes is a capture, compressed or not.
#[must_use]
pub fn is_capture(start: [u8; 4]) -> bool {
    start == ng::SECTION_HEADER
        || classic::Flavour::of(start).is_some()
        || matches!(unknown(start), PcapError::Compressed(_))
}

fn unknown(magic: [u8; 4]) -> PcapError {
    match magic {
        [0x1f, 0x8b, ..] => PcapError::Compressed("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] => PcapError::Compressed("zstd"),
        [0xfd, b'7', b'z', b'X'] => PcapError::Compressed("xz"),
        [b'B', b'Z', b'h', _] => PcapError::Compressed("bzip2"),
        _ => PcapError::NotACapture(magic),
    }
}

/// The byte order of a file, detected from its magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    /// Returns the 2-byte number at `at`; 0 outside of `bytes`, whose length the callers have
    /// checked.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(self.little(bytes, at))
    }

    /// Returns the 4-byte number at `at`; 0 outside of `bytes`, whose length the callers have
    /// checked.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(self.little(bytes, at))
    }

    /// Returns the bytes at `at`, the lowest first.
    fn little<const N: usize>(self, bytes: &[u8], at: usize) -> [u8; N] {
        let raw = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        let mut raw = raw.copied().unwrap_or([0; N]);
        if self == Self::Big {
            raw.reverse();
        }
        raw
    }
}
