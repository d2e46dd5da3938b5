//! A segment of a log, read block by block while another process may be writing it.

use crate::block::Unpacker;
use crate::error::LogError;
use crate::folder;
use crate::format::{BLOCK_HEADER, BlockHeader, NoHeader, SEGMENT_HEADER, SegmentHeader};
use crate::run::Run;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are read at a time.
const AHEAD: usize = 1 << 18;

/// An open segment, with the bytes read ahead.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    file: File,
    pub(crate) header: SegmentHeader,
    /// The offset of the next block.
    pub(crate) at: u64,
    ahead: Vec<u8>,
    /// The offset of `ahead` in the file.
    start: u64,
}

/// The result of looking for a block at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A whole block.
    Block(BlockHeader),
    /// No bytes yet.
    End,
    /// Bytes that are no whole block: being written, never finished, or damaged.
    Torn,
}

impl Segment {
    /// Opens a segment, compacted or not, whichever exists.
    ///
    /// # Errors
    /// It does not exist, cannot be read, has no header, or has that of another segment.
    pub(crate) fn open(folder: &Path, ordinal: u64) -> Result<Self, LogError> {
        Self::open_name(folder, ordinal)?.checked(ordinal)
    }

    /// Opens a segment by its name, whatever segment its header names.
    fn open_name(folder: &Path, ordinal: u64) -> Result<Self, LogError> {
        let compacted = folder::segment(folder, ordinal, true);
        match Self::open_file(&compacted) {
            Err(error) if error.is_missing() => {}
            other => return other,
        }
        match Self::open_file(&folder::segment(folder, ordinal, false)) {
            // It was compacted just now.
            Err(error) if error.is_missing() => Self::open_file(&compacted),
            other => other,
        }
    }

    /// Returns the segment if its header names it. The events of another one do not belong in its
    /// place, and none of them is read.
    fn checked(self, ordinal: u64) -> Result<Self, LogError> {
        match self.header.ordinal == ordinal {
            true => Ok(self),
            false => Err(LogError::BadSegment {
                path: self.path,
                why: "the header is of another segment: the file was renamed or copied",
            }),
        }
    }

    /// Checks that a segment whose header can be read has its own name.
    ///
    /// # Errors
    /// It has the name of another segment.
    pub(crate) fn check_name(folder: &Path, ordinal: u64) -> Result<(), LogError> {
        match Self::open_name(folder, ordinal) {
            Ok(segment) => segment.checked(ordinal).map(drop),
            Err(_) => Ok(()),
        }
    }

    /// Opens a segment as [`Self::open`] does. One whose header is damaged begins with its first
    /// whole block.
    ///
    /// # Errors
    /// It does not exist, cannot be read, has neither a header nor a whole block, or has the header
    /// of another segment.
    pub(crate) fn open_rest(folder: &Path, ordinal: u64) -> Result<Self, LogError> {
        let (path, why) = match Self::open_name(folder, ordinal) {
            Err(LogError::BadSegment { path, why }) => (path, why),
            opened => return opened?.checked(ordinal),
        };
        let header = SegmentHeader {
            ordinal,
            is_compacted: path.extension().is_some_and(|end| end == "logz"),
            ..SegmentHeader::default()
        };
        let mut segment = Self::open_with(&path, header)?;
        match segment.begin_with_first_block()? {
            true => Ok(segment),
            false => Err(LogError::BadSegment { path, why }),
        }
    }

    /// Opens a segment whose header is damaged, with this one instead.
    pub(crate) fn open_with(path: &Path, header: SegmentHeader) -> Result<Self, LogError> {
        let file = File::open(path).map_err(LogError::io(path))?;
        Ok(Self::of(path, file, header))
    }

    pub(crate) fn open_file(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(LogError::io(path))?;
        let mut bytes = [0; SEGMENT_HEADER];
        let len = read_at(&file, &mut bytes, 0).map_err(LogError::io(path))?;
        let header = SegmentHeader::read(bytes.get(..len).unwrap_or(&[]));
        let header = header.map_err(|error| match error {
            NoHeader::Invalid(why) => LogError::BadSegment {
                path: path.to_owned(),
                why,
            },
            NoHeader::Version(version) => LogError::Version {
                path: path.to_owned(),
                version,
            },
        })?;
        Ok(Self::of(path, file, header))
    }

    fn of(path: &Path, file: File, header: SegmentHeader) -> Self {
        Self {
            path: path.to_owned(),
            file,
            header,
            at: SEGMENT_HEADER as u64,
            ahead: Vec::new(),
            start: 0,
        }
    }

    /// Takes the first number, the time and, if it is there, the run of a damaged header from the
    /// first whole block; returns false if there is none.
    pub(crate) fn begin_with_first_block(&mut self) -> Result<bool, LogError> {
        if !matches!(self.look()?, Found::Block(_)) && !self.resync()? {
            return Ok(false);
        }
        let Found::Block(block) = self.look()? else {
            return Ok(false);
        };
        let mut unpacker = Unpacker::new().map_err(LogError::io(&self.path))?;
        let mut records = Vec::new();
        if unpacker.records(&block, self.block(&block), &mut records)
            && let Some(run) = Run::leading(&records)
        {
            self.header.run = Run::number_of(run);
        }
        (self.header.first, self.header.time) = (block.first, block.time);
        self.at = SEGMENT_HEADER as u64;
        Ok(true)
    }

    /// Returns the number of bytes of the file.
    pub(crate) fn len(&self) -> Result<u64, LogError> {
        let metadata = self.file.metadata().map_err(LogError::io(&self.path))?;
        Ok(metadata.len())
    }

    /// Reads the block at the current offset, and checks it.
    pub(crate) fn look(&mut self) -> Result<Found, LogError> {
        let found = self.peek()?;
        let Found::Block(header) = found else {
            return Ok(found);
        };
        if self.have(header.size() as usize)? && BlockHeader::is_whole(self.block(&header)) {
            return Ok(found);
        }
        // The bytes read ahead may have been written since.
        self.ahead.clear();
        let is_whole = self.have(header.size() as usize)?
            && BlockHeader::read(self.at_hand()) == Some(header)
            && BlockHeader::is_whole(self.block(&header));
        Ok(if is_whole { found } else { Found::Torn })
    }

    /// Reads the header of the block at the current offset, without a check.
    pub(crate) fn peek(&mut self) -> Result<Found, LogError> {
        if !self.have(BLOCK_HEADER)? {
            let len = self.at_hand().len();
            return Ok(if len == 0 { Found::End } else { Found::Torn });
        }
        Ok(match BlockHeader::read(self.at_hand()) {
            Some(header) => Found::Block(header),
            None => Found::Torn,
        })
    }

    /// Returns the bytes of the block at the current offset, which was read before.
    pub(crate) fn block(&self, header: &BlockHeader) -> &[u8] {
        let block = self.at_hand().get(..header.size() as usize);
        block.unwrap_or(&[])
    }

    /// Continues after the block at the current offset.
    pub(crate) const fn pass(&mut self, header: &BlockHeader) {
        self.at += header.size();
    }

    /// Returns the bytes read ahead from the current offset on.
    fn at_hand(&self) -> &[u8] {
        let from = self.at.checked_sub(self.start);
        let from = from.and_then(|from| usize::try_from(from).ok());
        from.and_then(|from| self.ahead.get(from..)).unwrap_or(&[])
    }

    /// Reads ahead until `len` bytes are available; returns false if the file has fewer.
    fn have(&mut self, len: usize) -> Result<bool, LogError> {
        if self.at_hand().len() >= len {
            return Ok(true);
        }
        self.start = self.at;
        self.ahead.resize(len.max(AHEAD), 0);
        let read = read_at(&self.file, &mut self.ahead, self.at);
        let read = read.map_err(LogError::io(&self.path));
        self.ahead.truncate(*read.as_ref().unwrap_or(&0));
        Ok(read? >= len)
    }

    /// Continues at the next whole block after bytes that are none; returns false if there is none.
    /// A block that was being written and is whole by now is not skipped.
    pub(crate) fn resync(&mut self) -> Result<bool, LogError> {
        let place = self.at;
        let len = self.len()?;
        // Compacted blocks have any length.
        let step = if self.header.is_compacted { 1 } else { 8 };
        self.at += step;
        while self.at + BLOCK_HEADER as u64 <= len {
            if let Found::Block(_) = self.peek()?
                && let Found::Block(_) = self.look()?
            {
                let behind = std::mem::replace(&mut self.at, place);
                self.ahead.clear();
                if !matches!(self.look()?, Found::Block(_)) {
                    self.at = behind;
                }
                return Ok(true);
            }
            self.at += step;
        }
        self.at = place;
        Ok(false)
    }
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<usize> {
    let mut read = 0;
    while !buffer.is_empty() {
        match file.read_at(buffer, at) {
            Ok(0) => break,
            Ok(count) => {
                read += count;
                at += count as u64;
                buffer = buffer.get_mut(count..).unwrap_or(&mut []);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
