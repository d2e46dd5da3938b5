//! Writes classic pcap with nanosecond stamps.

use std::io::{self, Write};

use super::LinkType;

/// A writer of a classic pcap file, little-endian, nanosecond stamps. Each packet takes two writes:
/// wrap the output in a `BufWriter`.
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// A write fails.
    pub fn new(mut output: W, link: LinkType, snap_len: u32) -> io::Result<Self> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&[0x4d, 0x3c, 0xb2, 0xa1]);
        header[4] = 2;
        header[6] = 4;
        header[16..20].copy_from_slice(&snap_len.to_le_bytes());
        header[20..22].copy_from_slice(&link.0.to_le_bytes());
        output.write_all(&header)?;
        Ok(Self { output })
    }

    /// Appends a packet: `time` in nanoseconds since 1970, `wire_len` at least the length of
    /// `data`.
    ///
    /// # Errors
    /// A write fails, or the time is past 2106, beyond the format.
    pub fn packet(&mut self, time: u64, data: &[u8], wire_len: u32) -> io::Result<()> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let secs = u32::try_from(time / 1_000_000_000).map_err(invalid)?;
        let len = u32::try_from(data.len()).map_err(invalid)?;
        let mut header = [0; 16];
        let nanos = (time % 1_000_000_000) as u32;
        let numbers = [secs, nanos, len, wire_len.max(len)];
        for (field, number) in header.chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        self.output.write_all(&header)?;
        self.output.write_all(data)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// A write fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Returns the output.
    pub fn output(&self) -> &W {
        &self.output
    }

    /// Consumes the writer, and returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}
