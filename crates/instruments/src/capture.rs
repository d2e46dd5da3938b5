//! Capturing the gateway's own traffic through libpcap.
//!
//! Without the feature `capture` (on by default) libpcap is neither needed to build nor to run,
//! and [`Capture::start`] says that capturing is not built in.

use std::io;
use std::path::PathBuf;

#[cfg(feature = "capture")]
mod live;

#[cfg(feature = "capture")]
pub use live::Capture;

/// What to capture, and where to.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The device; `any` for all of them.
    pub device: String,
    /// TCP traffic of these ports, both directions.
    pub ports: Vec<u16>,
    /// The file to write, a classic pcap with nanosecond stamps. An existing one is replaced.
    pub file: PathBuf,
    /// Bytes that the kernel keeps for packets not yet written; what does not fit is dropped.
    pub ring: usize,
}

impl CaptureOptions {
    /// Captures the TCP traffic of `ports` on all devices to `file`, with 64 MiB for packets not
    /// yet written: seconds of a fan-out of 25,000 packets/s.
    pub fn new(file: impl Into<PathBuf>, ports: &[u16]) -> Self {
        let (device, ring) = ("any".to_owned(), 64 << 20);
        Self {
            device,
            ports: ports.to_vec(),
            file: file.into(),
            ring,
        }
    }
}

/// What became of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureStats {
    /// Packets written to the file.
    pub captured: u64,
    /// Packets the kernel has seen pass the filter; on loopback each counts on its way out and
    /// in, and is written once.
    pub received: u64,
    /// Packets the kernel dropped because the ring or the device was full.
    pub dropped: u64,
}

/// What [`Capture::reopen`] did with the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopened {
    /// The file still had its name: the capture goes on in it.
    Same,
    /// It had been renamed or deleted: a new one of the name was begun.
    New,
}

/// Why nothing is captured, or no more.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The process may not open raw sockets. The sentence says what to do.
    #[error(
        "no privilege to capture packets on {device}: run as root, or once \
         `sudo setcap cap_net_raw,cap_net_admin+ep {program}`"
    )]
    Privilege {
        /// The device asked for.
        device: String,
        /// This program's file.
        program: String,
    },
    /// The file cannot be created or written.
    #[error("cannot write the capture to {}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// libpcap refused for another reason: no such device, for example.
    #[error("cannot capture packets on {device}: {text}")]
    Library {
        /// The device asked for.
        device: String,
        /// What libpcap says.
        text: String,
    },
    /// This program was built without the feature `capture`.
    #[error("this program was built without packet capture (feature `capture`)")]
    NotBuilt,
}

/// A capture that never runs: this program was built without it.
#[cfg(not(feature = "capture"))]
#[derive(Debug)]
pub struct Capture(std::convert::Infallible);

#[cfg(not(feature = "capture"))]
impl Capture {
    /// Says that capturing is not built in.
    ///
    /// # Errors
    /// Always [`CaptureError::NotBuilt`].
    pub fn start(_options: CaptureOptions) -> Result<Self, CaptureError> {
        Err(CaptureError::NotBuilt)
    }

    /// Never called, since there is no such capture.
    ///
    /// # Errors
    /// None.
    pub fn reopen(&self) -> Result<Reopened, CaptureError> {
        match self.0 {}
    }

    /// Never called, since there is no such capture.
    ///
    /// # Errors
    /// None.
    pub fn stop(self) -> Result<CaptureStats, CaptureError> {
        match self.0 {}
    }
}
