//! The plain C program of `c/quote.c`.

use std::ffi::{CString, c_char, c_int};
use std::ptr::NonNull;

use super::log;
use crate::{DomainConfig, Error};

#[repr(C)]
struct Raw {
    _opaque: [u8; 0],
}

unsafe extern "C" {
    fn fanfare_raw_open(
        local_domain: u32,
        xml: *const c_char,
        role: c_int,
        batching: bool,
    ) -> *mut Raw;
    fn fanfare_raw_close(raw: *mut Raw);
    fn fanfare_raw_matched(raw: *const Raw) -> bool;
    fn fanfare_raw_ping(raw: *mut Raw, round_trips: *mut u64, n: u32);
    fn fanfare_raw_done(raw: *mut Raw) -> u32;
    fn fanfare_raw_flow(raw: *mut Raw, nanos: u64) -> u64;
    fn fanfare_raw_burst(raw: *mut Raw, n: u32) -> u64;
    fn fanfare_raw_count(raw: *const Raw, nanos: *mut u64) -> u64;
}

/// The most round trips at a time.
pub(crate) const MOST: u32 = 1 << 16;

/// An open end of the C program.
#[derive(Debug)]
pub(crate) struct Baseline {
    raw: NonNull<Raw>,
    /// Where the C program stores round trips.
    round_trips: Vec<u64>,
}

// SAFETY: the C side is used by one thread at a time (all methods with effect take `&mut self`),
// and what its listeners touch it shares by atomics.
unsafe impl Send for Baseline {}

impl Baseline {
    pub(crate) fn open(config: &DomainConfig, role: u8, batching: bool) -> Result<Self, Error> {
        log::capture();
        let xml = CString::new(config.to_xml()?)
            .map_err(|_| Error::Config("there is a NUL byte in it".to_owned()))?;
        // SAFETY: the string outlives the call, which copies it; `role` is one of the four.
        let raw = unsafe {
            fanfare_raw_open(
                super::next_local(),
                xml.as_ptr(),
                c_int::from(role.min(3)),
                batching,
            )
        };
        let Some(raw) = NonNull::new(raw) else {
            let why = log::last().unwrap_or_else(|| "unknown reason".to_owned());
            return Err(Error::Config(format!("the C program cannot open: {why}")));
        };
        Ok(Self {
            raw,
            round_trips: vec![0; MOST as usize],
        })
    }

    pub(crate) fn is_matched(&self) -> bool {
        // SAFETY: open until `self` is dropped.
        unsafe { fanfare_raw_matched(self.raw.as_ptr()) }
    }

    /// Begins `n` round trips, at most [`MOST`].
    pub(crate) fn ping(&mut self, n: u32) {
        let n = n.min(MOST);
        // SAFETY: the memory has room for `n`, never moves, and lives until `self` is dropped,
        // which closes the C side first.
        unsafe { fanfare_raw_ping(self.raw.as_ptr(), self.round_trips.as_mut_ptr(), n) };
    }

    /// The round trips that are over, nanoseconds.
    pub(crate) fn done(&mut self) -> &[u64] {
        // SAFETY: open until `self` is dropped. The count is raised after the value is stored.
        let n = unsafe { fanfare_raw_done(self.raw.as_ptr()) };
        self.round_trips.get(..n as usize).unwrap_or_default()
    }

    pub(crate) fn flow(&mut self, nanos: u64) -> u64 {
        // SAFETY: open until `self` is dropped.
        unsafe { fanfare_raw_flow(self.raw.as_ptr(), nanos) }
    }

    pub(crate) fn burst(&mut self, n: u32) -> u64 {
        // SAFETY: open until `self` is dropped.
        unsafe { fanfare_raw_burst(self.raw.as_ptr(), n) }
    }

    pub(crate) fn count(&self) -> (u64, u64) {
        let mut nanos = 0;
        // SAFETY: open until `self` is dropped; `nanos` is written before the call returns.
        let n = unsafe { fanfare_raw_count(self.raw.as_ptr(), &mut nanos) };
        (n, nanos)
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        // SAFETY: opened once and not closed before; the listeners are over when it returns, so
        // `round_trips` may go after it.
        unsafe { fanfare_raw_close(self.raw.as_ptr()) };
    }
}
