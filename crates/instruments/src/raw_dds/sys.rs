//! The plain C program of `c/quote.c`.

use std::ffi::{CString, c_char, c_int};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use fanfare_dds::{DomainConfig, Error};

use super::Role;

#[repr(C)]
struct Opened {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fanfare_raw_open(
        local_domain: u32,
        xml: *const c_char,
        role: c_int,
        batching: bool,
    ) -> *mut Opened;
    fn fanfare_raw_close(raw: *mut Opened);
    fn fanfare_raw_matched(raw: *const Opened) -> bool;
    fn fanfare_raw_ping(raw: *mut Opened, round_trips: *mut u64, n: u32);
    fn fanfare_raw_done(raw: *mut Opened) -> u32;
    fn fanfare_raw_flow(raw: *mut Opened, nanos: u64) -> u64;
    fn fanfare_raw_burst(raw: *mut Opened, n: u32) -> u64;
    fn fanfare_raw_count(raw: *const Opened, nanos: *mut u64) -> u64;
}

/// Returns a name for one more domain inside this process, far from those of `fanfare_dds`.
fn next_local() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1 << 20);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The most round trips at a time.
const MOST: u32 = 1 << 16;

/// One end of the C program, in this process.
#[derive(Debug)]
pub struct CProgram {
    raw: NonNull<Opened>,
    /// The buffer in which the C program stores round trips.
    round_trips: Vec<u64>,
}

// SAFETY: the C side is used by one thread at a time (all methods with effect take `&mut self`).
// What it shares with its listeners is atomic, except for the sample, its time and the round trips
// of a ping: `ping` sets these, and reads the sample, before the sample goes into a socket. The
// listener uses them once the echo has come out of one, and sets `done` to the number that is
// wanted after the last use; before that, no other ping begins.
unsafe impl Send for CProgram {}

impl CProgram {
    /// Opens an end. `batching` is that of writers.
    ///
    /// # Errors
    /// [`Error::Config`] with the message of Cyclone DDS.
    pub fn open(config: &DomainConfig, role: Role, batching: bool) -> Result<Self, Error> {
        let xml = CString::new(config.to_xml()?)
            .map_err(|_| Error::Config("there is a NUL byte in it".to_owned()))?;
        // SAFETY: the string outlives the call, which copies it; the roles have the numbers that
        // the C side knows.
        let raw = unsafe { fanfare_raw_open(next_local(), xml.as_ptr(), role as c_int, batching) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::Config("the C program cannot open".to_owned()));
        };
        Ok(Self {
            raw,
            round_trips: vec![0; MOST as usize],
        })
    }

    /// Returns whether the other end is matched.
    pub fn is_matched(&self) -> bool {
        // SAFETY: open until `self` is dropped.
        unsafe { fanfare_raw_matched(self.raw.as_ptr()) }
    }

    /// Starts `n` round trips (at most 65,536), in sequence.
    pub fn ping(&mut self, n: u32) {
        let n = n.min(MOST);
        // SAFETY: the memory has space for `n`, never moves, and lives until `self` is dropped,
        // which closes the C side first.
        unsafe { fanfare_raw_ping(self.raw.as_ptr(), self.round_trips.as_mut_ptr(), n) };
    }

    /// Returns the completed round trips, nanoseconds.
    pub fn round_trips(&mut self) -> &[u64] {
        // SAFETY: open until `self` is dropped. The count is raised after the value is stored.
        let n = unsafe { fanfare_raw_done(self.raw.as_ptr()) };
        self.round_trips.get(..n as usize).unwrap_or_default()
    }

    /// Writes quotes for `nanos` nanoseconds. Returns their number, or `None` if a write fails.
    pub fn flow(&mut self, nanos: u64) -> Option<u64> {
        // SAFETY: open until `self` is dropped.
        let written = unsafe { fanfare_raw_flow(self.raw.as_ptr(), nanos) };
        (written > 0).then_some(written)
    }

    /// Writes `n` quotes. Returns the nanoseconds taken, or `None` if a write fails.
    pub fn burst(&mut self, n: u32) -> Option<u64> {
        // SAFETY: open until `self` is dropped.
        let nanos = unsafe { fanfare_raw_burst(self.raw.as_ptr(), n) };
        (nanos > 0).then_some(nanos)
    }

    /// Returns the quotes taken, and the nanoseconds from the first to the last.
    pub fn count(&self) -> (u64, u64) {
        let mut nanos = 0;
        // SAFETY: open until `self` is dropped; `nanos` is written before the call returns.
        let n = unsafe { fanfare_raw_count(self.raw.as_ptr(), &mut nanos) };
        (n, nanos)
    }
}

impl Drop for CProgram {
    fn drop(&mut self) {
        // SAFETY: opened once and not closed before; the listeners are over when it returns, so
        // `round_trips` may go after it.
        unsafe { fanfare_raw_close(self.raw.as_ptr()) };
    }
}
