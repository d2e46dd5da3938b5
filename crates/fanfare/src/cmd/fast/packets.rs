//! Packets of files, with a length header or without one.

use super::options::{named, open};
use crate::input::Input;
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_feed::{Deframer, FrameError, FrameErrorKind, Header, Packet};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// The longest packet read, bytes.
const PACKET_LIMIT: usize = 1 << 20;

/// The largest file that is held in memory, bytes.
const FILE_LIMIT: usize = 1 << 30;

/// The packets of a file of any size, in order.
pub(crate) struct PacketFile {
    input: Input,
    deframer: Deframer,
    at_end: bool,
    interrupted: bool,
}

/// The reason why there is no further packet.
#[derive(Debug)]
pub(crate) enum PacketError {
    /// The file cannot be read.
    Io(io::Error),
    /// The bytes are not a packet.
    Frame(FrameError),
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Frame(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PacketError {}

impl PacketFile {
    /// Opens a file. A wait for a pipe ends when `stop` is raised.
    pub(crate) fn open(path: &Path, header: Header, stop: &Stop) -> Result<Self> {
        Ok(Self::new(open(path, stop)?, &[], header))
    }

    /// Creates one from an input of which the first bytes have been read.
    pub(crate) fn new(input: Input, read: &[u8], header: Header) -> Self {
        let mut deframer = Deframer::new(header, PACKET_LIMIT);
        if let Some(room) = deframer.space().get_mut(..read.len()) {
            room.copy_from_slice(read);
            deframer.filled(read.len());
        }
        Self {
            input,
            deframer,
            at_end: false,
            interrupted: false,
        }
    }

    /// Returns whether the next packet must be read first, which may block on a pipe.
    pub(crate) fn must_read(&self) -> bool {
        !self.deframer.has_packet().unwrap_or(true)
    }

    /// Returns the next packet; `None` at the end of the file, or if Ctrl-C came during a wait.
    /// Other packets may follow a packet of no bytes, which is an error.
    pub(crate) fn next(&mut self) -> Result<Option<Packet<'_>>, PacketError> {
        loop {
            // Checked twice because a borrow that is returned on one path holds on all of them.
            if self.deframer.has_packet().unwrap_or(true) {
                return self.deframer.next_packet().map_err(PacketError::Frame);
            }
            if self.interrupted {
                return Ok(None);
            }
            if self.at_end {
                self.deframer.finish().map_err(PacketError::Frame)?;
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Returns the present part of the last packet, if it is cut.
    pub(crate) fn cut(&self) -> Option<Packet<'_>> {
        self.deframer.cut_packet()
    }

    fn fill(&mut self) -> Result<(), PacketError> {
        match self.input.read(self.deframer.space()) {
            Ok(n) => {
                self.at_end = n == 0;
                self.deframer.filled(n);
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {
                self.interrupted = true;
                Ok(())
            }
            Err(e) => Err(PacketError::Io(e)),
        }
    }
}

/// Whether more is wanted.
pub(crate) type Flow = ControlFlow<()>;

/// Calls `take` with each packet of a file, while it wants more.
pub(crate) fn each_packet(
    path: &Path,
    header: Header,
    stop: &Stop,
    take: impl FnMut(Packet<'_>) -> Result<Flow>,
) -> Result<()> {
    each_packet_of(PacketFile::open(path, header, stop)?, path, stop, take)
}

/// Calls `take` with each packet of a file that is open, as [`each_packet`] does.
pub(crate) fn each_packet_of(
    mut file: PacketFile,
    path: &Path,
    stop: &Stop,
    mut take: impl FnMut(Packet<'_>) -> Result<Flow>,
) -> Result<()> {
    let name = || format!("cannot read `{}`", path.display());
    while !stop.is_raised() {
        match file.next() {
            Ok(None) => break,
            Ok(Some(packet)) => {
                if take(packet)?.is_break() {
                    break;
                }
            }
            Err(error) => return Err(error).with_context(name),
        }
    }
    Ok(())
}

/// The bytes of a file without packets, through a sliding window.
pub(crate) struct ByteFile {
    input: Input,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    interrupted: bool,
    /// Whether reading may block on a pipe.
    waits: bool,
    /// Offset of the window in the file.
    offset: u64,
}

impl ByteFile {
    /// Opens a file. A wait for a pipe ends when `stop` is raised.
    pub(crate) fn open(path: &Path, stop: &Stop) -> Result<Self> {
        Ok(Self {
            input: open(path, stop)?,
            buffer: vec![0; 4 * PACKET_LIMIT],
            start: 0,
            end: 0,
            at_end: false,
            interrupted: false,
            waits: !is_regular(path),
            offset: 0,
        })
    }

    /// Returns the offset in the file, and the bytes from there on: at least [`PACKET_LIMIT`] if
    /// the file has as many, none at its end, and fewer if Ctrl-C came during a wait.
    pub(crate) fn window(&mut self) -> io::Result<(u64, &[u8])> {
        while !self.is_whole() && self.read_more()? {}
        Ok(self.bytes())
    }

    /// Returns the same as [`window`](Self::window), without waiting for a pipe, and whether the
    /// message at its front is complete or never will be.
    pub(crate) fn ready(&mut self) -> io::Result<(u64, &[u8], bool)> {
        if !self.waits {
            self.window()?;
        }
        let is_whole = self.is_whole();
        let (offset, bytes) = self.bytes();
        Ok((offset, bytes, is_whole))
    }

    /// Returns whether [`window`](Self::window) may block on a pipe.
    pub(crate) fn must_wait(&self) -> bool {
        self.waits && !self.is_whole()
    }

    /// Returns the bytes read so far as [`window`](Self::window) does, without reading more.
    pub(crate) fn bytes(&self) -> (u64, &[u8]) {
        let window = self.buffer.get(self.start..self.end);
        (self.offset, window.unwrap_or_default())
    }

    fn is_whole(&self) -> bool {
        self.at_end || self.end - self.start >= PACKET_LIMIT
    }

    /// Reads the bytes that are available into the window, and waits if there are none. Returns
    /// false if Ctrl-C came during the wait.
    pub(crate) fn read_more(&mut self) -> io::Result<bool> {
        if self.at_end || self.interrupted {
            return Ok(!self.interrupted);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let space = self.buffer.get_mut(self.end..).unwrap_or_default();
        match self.input.read(space) {
            Ok(n) => {
                self.end += n;
                self.at_end = n == 0;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => self.interrupted = true,
            Err(e) => return Err(e),
        }
        Ok(!self.interrupted)
    }

    /// Advances the window by `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }
}

fn is_regular(path: &Path) -> bool {
    fs::metadata(named(path)).is_ok_and(|data| data.is_file())
}

/// Returns the code of a frame's error as a FAST error.
pub(crate) fn frame_code(kind: FrameErrorKind) -> &'static str {
    kind.code().unwrap_or(match kind {
        FrameErrorKind::Truncated { .. } => "EOF",
        _ => "LIMIT",
    })
}

/// Refuses files that are too large to be held in memory.
pub(crate) fn check_size(total: usize) -> Result<()> {
    if total > FILE_LIMIT {
        bail!("the file is larger than the {FILE_LIMIT} bytes that are held in memory");
    }
    Ok(())
}
