//! A sample: its bytes and its metadata.

use crate::cdr::{CdrError, CdrReader, CdrType};
use crate::guid::Guid;
use crate::shm::Taken;
use crate::sys::{self, RawInfo};

/// One sample.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Its time, writer and instance.
    pub info: SampleInfo,
    bytes: &'a [u8],
    /// The handle of the reader; 0 over shared memory.
    reader: i32,
}

/// The metadata of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleInfo {
    /// The writer's time of the sample, in nanoseconds since 1970.
    pub source_nanos: i64,
    /// The instance, a number local to this process.
    pub instance: u64,
    /// The writer, a number local to this process.
    pub writer: u64,
    /// Whether the instance has a living writer and is not disposed.
    pub alive: bool,
    /// Whether the instance was disposed.
    pub disposed: bool,
    /// Whether there is data; otherwise only the state of the instance has changed.
    pub has_data: bool,
}

impl<'a> Sample<'a> {
    /// Makes a sample that was received through shared memory.
    pub(crate) const fn of_shm(taken: &Taken<'a>) -> Self {
        let info = SampleInfo {
            source_nanos: taken.source_nanos,
            instance: taken.topic as u64,
            writer: taken.sender,
            alive: true,
            disposed: false,
            has_data: true,
        };
        Self {
            info,
            bytes: taken.bytes,
            reader: 0,
        }
    }

    pub(super) const fn new(info: RawInfo, bytes: &'a [u8]) -> Self {
        let reader = info.reader;
        let info = SampleInfo {
            source_nanos: info.source_nanos,
            instance: info.instance,
            writer: info.writer,
            alive: info.alive,
            disposed: info.disposed,
            has_data: info.valid,
        };
        Self {
            info,
            bytes,
            reader,
        }
    }

    /// Returns the participant of the writer, over DDS and unless the writer is gone.
    pub(crate) fn participant(&self) -> Option<Guid> {
        sys::participant_of(self.reader, self.info.writer)
    }

    /// Returns the bytes with their CDR header; empty when the sample has no data.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns a cursor at the first member.
    ///
    /// # Errors
    /// [`CdrError`] when the sample has no data or no known representation.
    pub fn cdr(&self) -> Result<CdrReader<'a>, CdrError> {
        CdrReader::new(self.bytes)
    }

    /// Returns the sample as a Rust value.
    ///
    /// # Errors
    /// [`CdrError`] for bytes that are no such value.
    pub fn value<T: CdrType>(&self) -> Result<T, CdrError> {
        T::read_cdr(&mut self.cdr()?)
    }
}
