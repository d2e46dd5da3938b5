//! A reader's bytes through one growing buffer, with the file offset of its front.

use std::io::{self, ErrorKind, Read};

const BLOCK: usize = 1 << 18;

pub(super) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes at the front that have been consumed, released by the next `advance`.
    taken: usize,
    offset: u64,
    at_end: bool,
}

impl<R: Read> Input<R> {
    pub(super) fn new(reader: R) -> Self {
        let buffer = vec![0; BLOCK];
        Self {
            reader,
            buffer,
            start: 0,
            end: 0,
            taken: 0,
            offset: 0,
            at_end: false,
        }
    }

    /// Reads until the buffer has `want` bytes or the file ends. Returns the number of bytes. The
    /// buffer grows to that size, so the caller checks `want` against a limit.
    pub(super) fn fill(&mut self, want: usize) -> io::Result<usize> {
        if self.buffer.len() - self.start < want {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() < want {
                self.buffer.resize(want + BLOCK, 0);
            }
        }
        while self.end - self.start < want && !self.at_end {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.end += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(self.end - self.start)
    }

    /// Returns all bytes read and not released.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Marks `n` bytes, which `fill` has confirmed, as consumed, to be released by `advance`: until
    /// then a packet within them may still be borrowed.
    pub(super) fn take(&mut self, n: usize) {
        self.taken = n.min(self.end - self.start);
    }

    /// Releases the consumed bytes.
    pub(super) fn advance(&mut self) {
        self.start += self.taken;
        self.offset += self.taken as u64;
        self.taken = 0;
    }

    /// Returns the offset in the file of the first byte of `bytes`.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }
}
