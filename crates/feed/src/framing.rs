//! Framing: the length header in front of each packet of a file or stream.
//!
//! [`Header::split`] parses bytes that the caller holds (a mapped file, a datagram); [`Deframer`]
//! collects a stream that arrives in pieces.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The length header in front of each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// No header: the bytes are one continuous sequence of messages.
    None,
    /// One byte.
    U8,
    /// Two bytes, least significant first.
    U16Le,
    /// Two bytes, most significant first.
    U16Be,
    /// Four bytes, least significant first: what QuickFAST's generators write.
    #[default]
    U32Le,
    /// Four bytes, most significant first.
    U32Be,
    /// A FAST uInt32 (stop bit): the block size of FAST 1.1, section 10, which may be overlong.
    Fast,
}

impl Header {
    /// Every header, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::U8,
        Self::U16Le,
        Self::U16Be,
        Self::U32Le,
        Self::U32Be,
        Self::Fast,
    ];

    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::U8 => "u8",
            Self::U16Le => "u16le",
            Self::U16Be => "u16be",
            Self::U32Le => "u32le",
            Self::U32Be => "u32be",
            Self::Fast => "fast",
        }
    }

    /// Returns the longest body that the header can announce, in bytes.
    pub const fn max_body(self) -> usize {
        match self {
            Self::U8 => u8::MAX as usize,
            Self::U16Le | Self::U16Be => u16::MAX as usize,
            Self::None | Self::U32Le | Self::U32Be | Self::Fast => u32::MAX as usize,
        }
    }

    /// Finds the first packet in `bytes`, whose body may have `limit` bytes at most.
    ///
    /// Without a header all bytes are the packet. A packet of no bytes is error D12.
    ///
    /// # Errors
    /// The header is malformed or announces more than `limit`.
    pub fn split(self, bytes: &[u8], limit: usize) -> Result<Split, FrameErrorKind> {
        let Some((header, body)) = self.read(bytes)? else {
            return Ok(Split::Partial {
                need: self.shortest().max(bytes.len() + 1),
            });
        };
        if body == 0 && self != Self::None {
            return Err(FrameErrorKind::ZeroBlock);
        }
        if body > limit && self != Self::None {
            return Err(FrameErrorKind::TooLong { len: body, limit });
        }
        let end = header + body;
        if end > bytes.len() {
            return Ok(Split::Partial { need: end });
        }
        Ok(Split::Packet(header..end))
    }

    /// Appends the header of a body of `len` bytes.
    ///
    /// # Errors
    /// The header cannot express `len`.
    pub fn write(self, len: usize, out: &mut Vec<u8>) -> Result<(), FrameErrorKind> {
        let limit = self.max_body();
        if len > limit {
            return Err(FrameErrorKind::TooLong { len, limit });
        }
        let wide = u32::try_from(len).unwrap_or(u32::MAX);
        let [.., high, low] = wide.to_be_bytes();
        match self {
            Self::None => {}
            Self::U8 => out.push(low),
            Self::U16Le => out.extend_from_slice(&[low, high]),
            Self::U16Be => out.extend_from_slice(&[high, low]),
            Self::U32Le => out.extend_from_slice(&wide.to_le_bytes()),
            Self::U32Be => out.extend_from_slice(&wide.to_be_bytes()),
            Self::Fast => write_stop_bit(wide, out),
        }
        Ok(())
    }

    /// Returns the length of the shortest header in bytes.
    const fn shortest(self) -> usize {
        match self {
            Self::None => 0,
            Self::U8 | Self::Fast => 1,
            Self::U16Le | Self::U16Be => 2,
            Self::U32Le | Self::U32Be => 4,
        }
    }

    /// Parses the length of the header and of the body it announces; `None` if more bytes are
    /// needed.
    fn read(self, bytes: &[u8]) -> Result<Option<(usize, usize)>, FrameErrorKind> {
        let two = bytes.first_chunk::<2>();
        let four = bytes.first_chunk::<4>();
        let body = match self {
            Self::None => return Ok(Some((0, bytes.len()))),
            Self::Fast => return read_stop_bit(bytes),
            Self::U8 => bytes.first().map(|b| u32::from(*b)),
            Self::U16Le => two.map(|b| u32::from(u16::from_le_bytes(*b))),
            Self::U16Be => two.map(|b| u32::from(u16::from_be_bytes(*b))),
            Self::U32Le => four.map(|b| u32::from_le_bytes(*b)),
            Self::U32Be => four.map(|b| u32::from_be_bytes(*b)),
        };
        Ok(body.map(|body| (self.shortest(), body as usize)))
    }
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|h| h.name() == text);
        found.ok_or_else(|| {
            format!(
                "unknown header `{text}`: expected none, u8, u16le, u16be, u32le, u32be or fast"
            )
        })
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The longest FAST block size read, in bytes: overlong ones have leading zeros.
const MAX_BLOCK_SIZE: usize = 10;

/// Parses a FAST uInt32 at the start of `bytes`: its length and value.
fn read_stop_bit(bytes: &[u8]) -> Result<Option<(usize, usize)>, FrameErrorKind> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(MAX_BLOCK_SIZE) {
        value = value << 7 | u64::from(byte & 0x7f);
        let body = u32::try_from(value).map_err(|_| FrameErrorKind::Overflow)?;
        if byte & 0x80 != 0 {
            return Ok(Some((i + 1, body as usize)));
        }
    }
    if bytes.len() >= MAX_BLOCK_SIZE {
        return Err(FrameErrorKind::Overflow);
    }
    Ok(None)
}

fn write_stop_bit(value: u32, out: &mut Vec<u8>) {
    let groups = (32 - value.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let stop = if group == 0 { 0x80 } else { 0 };
        out.push((value >> (7 * group)) as u8 & 0x7f | stop);
    }
}

/// The result of [`Header::split`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Split {
    /// A whole packet: its body is this range, and the next packet starts at its end.
    Packet(Range<usize>),
    /// The packet is not complete before `need` bytes (from the header's first) have arrived; more
    /// may be needed then, if the header itself is cut.
    Partial {
        /// The bytes needed before parsing again.
        need: usize,
    },
}

/// A packet from a [`Deframer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Offset of the body's first byte in the stream.
    pub offset: u64,
    /// The body, without its header.
    pub bytes: &'a [u8],
}

/// Cuts packets out of a stream that arrives in pieces, in a buffer that is allocated once.
///
/// The caller fills [`space`](Self::space), announces the length by [`filled`](Self::filled), and
/// takes packets with [`next_packet`](Self::next_packet) until there is none; at the end of the
/// stream [`finish`](Self::finish) returns whether the last packet was cut.
///
/// ```
/// use fanfare_feed::{Deframer, Header};
///
/// let mut deframer = Deframer::new(Header::U16Be, 1_500);
/// deframer.space()[..5].copy_from_slice(b"\0\x02ab\0");
/// deframer.filled(5);
/// let packet = deframer.next_packet()?.map(|p| (p.offset, p.bytes.to_vec()));
/// assert_eq!(packet, Some((2, b"ab".to_vec())));
/// assert_eq!(deframer.next_packet()?, None);
/// assert!(deframer.finish().is_err(), "half a header is left");
/// # Ok::<(), fanfare_feed::FrameError>(())
/// ```
#[derive(Debug)]
pub struct Deframer {
    header: Header,
    limit: usize,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Stream offset of `buffer[0]`.
    base: u64,
}

impl Deframer {
    /// Returns a deframer for packets of `limit` bytes at most.
    pub fn new(header: Header, limit: usize) -> Self {
        let limit = limit.clamp(1, header.max_body());
        Self {
            header,
            limit,
            // One packet and its header always fit; more means fewer moves of a cut packet.
            buffer: vec![0; (limit + MAX_BLOCK_SIZE).max(64 * 1024)],
            start: 0,
            end: 0,
            base: 0,
        }
    }

    /// Returns the space for the stream's next bytes; empty only if packets wait to be taken.
    pub fn space(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Takes the first `n` bytes of [`space`](Self::space) as data.
    pub fn filled(&mut self, n: usize) {
        self.end = (self.end + n).min(self.buffer.len());
    }

    /// Returns the next whole packet, or `None` if more bytes are needed. Without a header the
    /// packet is all bytes that have been filled, wherever they end.
    ///
    /// # Errors
    /// A header is malformed or announces more than the limit; the stream is useless from there on,
    /// and each further call returns the same error. A packet of no bytes is an error too, but the
    /// next call continues with the packet after it.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, FrameError> {
        let split = self.split();
        if let Err(FrameError {
            kind: FrameErrorKind::ZeroBlock,
            ..
        }) = &split
            && let Ok(Some((header, _))) = self.header.read(self.rest())
        {
            self.start += header;
        }
        let Some(Split::Packet(body)) = split? else {
            return Ok(None);
        };
        let (start, end) = (self.start + body.start, self.start + body.end);
        self.start = end;
        Ok(Some(Packet {
            offset: self.base + start as u64,
            bytes: self.buffer.get(start..end).unwrap_or_default(),
        }))
    }

    /// Returns whether [`next_packet`](Self::next_packet) would return a packet.
    ///
    /// # Errors
    /// Those of [`next_packet`](Self::next_packet).
    pub fn has_packet(&self) -> Result<bool, FrameError> {
        Ok(matches!(self.split()?, Some(Split::Packet(_))))
    }

    /// Returns the available bytes of the next packet's body, if its header is complete; for the
    /// end of the stream, where the last packet is cut.
    pub fn cut_packet(&self) -> Option<Packet<'_>> {
        let bytes = self.rest();
        let (header, _) = self.header.read(bytes).ok().flatten()?;
        Some(Packet {
            offset: self.offset() + header as u64,
            bytes: bytes.get(header..)?,
        })
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// The last packet is cut.
    pub fn finish(&self) -> Result<(), FrameError> {
        let (offset, have) = (self.offset(), self.rest().len());
        match self.split()? {
            None | Some(Split::Packet(_)) => Ok(()),
            Some(Split::Partial { need }) => Err(FrameError {
                offset,
                kind: FrameErrorKind::Truncated { need, have },
            }),
        }
    }

    /// Returns the bytes that have not been taken.
    fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the offset of these bytes in the stream.
    const fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Parses the next packet; `None` if no byte is available.
    fn split(&self) -> Result<Option<Split>, FrameError> {
        let (offset, rest) = (self.offset(), self.rest());
        if rest.is_empty() {
            return Ok(None);
        }
        let split = self.header.split(rest, self.limit);
        split.map(Some).map_err(|kind| FrameError { offset, kind })
    }
}

/// The error of bytes that are no framed packet, with the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameError {
    /// Offset of the packet's header in the stream.
    pub offset: u64,
    /// The fault.
    pub kind: FrameErrorKind,
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (packet at byte {})", self.kind, self.offset)
    }
}

impl std::error::Error for FrameError {}

/// A fault of a packet's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameErrorKind {
    /// The stream ends inside the packet.
    Truncated {
        /// The least number of bytes of the packet, from the header's first.
        need: usize,
        /// The number of bytes available.
        have: usize,
    },
    /// The packet has no bytes: dynamic error D12.
    ZeroBlock,
    /// The FAST block size does not fit into 32 bits: dynamic error D2.
    Overflow,
    /// The length exceeds the limit, or what the header can express.
    TooLong {
        /// The number of bytes announced.
        len: usize,
        /// The number of bytes permitted.
        limit: usize,
    },
}

impl FrameErrorKind {
    /// Returns the code of the specification, where it has one.
    pub const fn code(self) -> Option<&'static str> {
        match self {
            Self::ZeroBlock => Some("D12"),
            Self::Overflow => Some("D2"),
            Self::Truncated { .. } | Self::TooLong { .. } => None,
        }
    }
}

impl fmt::Display for FrameErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { need, have } => {
                write!(
                    f,
                    "the packet is truncated: {have} of at least {need} bytes"
                )
            }
            Self::ZeroBlock => f.write_str("block size is zero"),
            Self::Overflow => f.write_str("block size does not fit 32 bits"),
            Self::TooLong { len, limit } => {
                write!(f, "packet of {len} bytes, the limit is {limit}")
            }
        }
    }
}

impl std::error::Error for FrameErrorKind {}

#[cfg(test)]
mod tests;
