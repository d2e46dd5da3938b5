//! Bytes from a file or stdin, read by a thread of its own so that Ctrl-C is heard.

use crate::progress;
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_instruments::pcap::{PcapError, Reader};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// What the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// FIX in a stream or a log.
    Text,
    /// pcap or pcapng.
    Capture,
}

/// The bytes, in pieces.
pub(in crate::cmd::fix) struct Input {
    name: String,
    pieces: Receiver<io::Result<Vec<u8>>>,
    /// Received and not handed on; from `at`.
    piece: Vec<u8>,
    at: usize,
    /// Received ahead, to know whether there is more.
    ahead: Option<io::Result<Vec<u8>>>,
    stop: Stop,
}

/// Bytes read at once, and how many such pieces may wait.
const PIECE: usize = 64 << 10;
const PIECES: usize = 8;
/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);
/// The header of a classic capture; enough to know any kind.
const HEAD: usize = 24;

impl Input {
    pub(in crate::cmd::fix) fn open(path: &Path, stop: Stop) -> Result<Self> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "stdin".to_owned()
        } else {
            path.display().to_string()
        };
        let from: Box<dyn Read + Send> = if is_stdin {
            Box::new(io::stdin())
        } else {
            let cannot = || format!("cannot read {name}");
            let file = File::open(path).with_context(cannot)?;
            if file.metadata().with_context(cannot)?.is_dir() {
                bail!("cannot read {name}: it is a folder");
            }
            Box::new(progress::watch(file))
        };
        let (sender, pieces) = sync_channel(PIECES);
        std::thread::spawn(move || forward(from, &sender));
        let (piece, at, ahead) = (Vec::new(), 0, None);
        Ok(Self {
            name,
            pieces,
            piece,
            at,
            ahead,
            stop,
        })
    }

    /// The file's name.
    pub(in crate::cmd::fix) fn name(&self) -> &str {
        &self.name
    }

    /// Looks at the first bytes.
    pub(super) fn kind(&mut self) -> Result<Kind> {
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

    /// The next bytes; `None` at the end, or when Ctrl-C was pressed.
    pub(in crate::cmd::fix) fn next_piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.at < self.piece.len() {
            let rest = self.piece.split_off(self.at);
            (self.piece, self.at) = (Vec::new(), 0);
            return Ok(Some(rest));
        }
        self.receive()
    }

    /// Whether the next piece is still to be waited for.
    pub(super) fn is_drained(&mut self) -> bool {
        if self.ahead.is_none() {
            match self.pieces.try_recv() {
                Ok(piece) => self.ahead = Some(piece),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
            }
        }
        self.ahead.is_none()
    }

    fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(piece) = self.ahead.take() {
            return piece.map(Some);
        }
        while !self.stop.is_raised() {
            match self.pieces.recv_timeout(LOOK) {
                Ok(piece) => return piece.map(Some),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(None)
    }
}

impl Read for Input {
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

/// Sends everything on, until its end or until nobody listens any more.
fn forward(mut from: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE];
        match from.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                piece.truncate(count);
                if to.send(Ok(piece)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                // Without a listener nobody misses it.
                let _ = to.send(Err(error));
                return;
            }
        }
    }
}
