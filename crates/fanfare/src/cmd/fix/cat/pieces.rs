//! The bytes of a file or stdin, in pieces.

use crate::input::{Input, is_standard};
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_instruments::pcap::{PcapError, Reader};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The format of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd) enum Kind {
    /// FIX in a stream or a log.
    Text,
    /// pcap or pcapng.
    Capture,
}

/// The bytes, in pieces.
pub(in crate::cmd) struct Pieces {
    name: String,
    input: Input,
    /// Bytes read and not yet returned, from `at` on.
    piece: Vec<u8>,
    at: usize,
    stop: Stop,
}

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// The length of the header of a classic capture; enough to detect any format.
const HEAD: usize = 24;

impl Pieces {
    pub(in crate::cmd) fn open(path: &Path, stop: Stop) -> Result<Self> {
        let name = match is_standard(path) {
            true => "stdin".to_owned(),
            false => path.display().to_string(),
        };
        if path.is_dir() {
            bail!("cannot read {name}: expected a file, found a folder");
        }
        Ok(Self {
            input: Input::open(path, &stop).with_context(|| format!("cannot read {name}"))?,
            name,
            piece: Vec::new(),
            at: 0,
            stop,
        })
    }

    /// Returns the file's name.
    pub(in crate::cmd) fn name(&self) -> &str {
        &self.name
    }

    /// Detects the format by the first bytes.
    pub(in crate::cmd) fn kind(&mut self) -> Result<Kind> {
        while self.piece.len() < HEAD {
            match self.receive()? {
                Some(more) => self.piece.extend(more),
                None => break,
            }
        }
        match Reader::new(self.piece.as_slice()) {
            Ok(_) => Ok(Kind::Capture),
            Err(PcapError::CutOffHeader(4..)) => Ok(Kind::Capture),
            Err(error @ (PcapError::Compressed(_) | PcapError::Version(..))) => Err(error.into()),
            Err(_) => Ok(Kind::Text),
        }
    }

    /// Returns the next bytes; `None` at the end, or after Ctrl-C.
    pub(in crate::cmd) fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.at < self.piece.len() {
            let rest = self.piece.split_off(self.at);
            (self.piece, self.at) = (Vec::new(), 0);
            return Ok(Some(rest));
        }
        self.receive()
    }

    /// Returns whether the next piece has not arrived yet.
    pub(in crate::cmd) fn is_drained(&mut self) -> bool {
        self.input.would_wait()
    }

    fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut piece = vec![0; PIECE];
        while !self.stop.is_raised() {
            match self.input.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => {
                    piece.truncate(count);
                    return Ok(Some(piece));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Read for Pieces {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.piece.len() {
            self.piece = self.receive()?.unwrap_or_default();
            self.at = 0;
        }
        let waiting = self.piece.get(self.at..).unwrap_or_default();
        let count = waiting.len().min(room.len());
        if let (Some(to), Some(from)) = (room.get_mut(..count), waiting.get(..count)) {
            to.copy_from_slice(from);
        }
        self.at += count;
        Ok(count)
    }
}
