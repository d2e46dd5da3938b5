//! Captures the gateway's own traffic through libpcap.
//!
//! Without the feature `capture` (on by default) libpcap is needed neither to build nor to run, and
//! [`Capture::start`] returns [`CaptureError::NotBuilt`].

use std::io;
use std::path::PathBuf;

#[cfg(feature = "capture")]
mod live;

#[cfg(feature = "capture")]
pub use live::Capture;

/// The options of a capture.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The device; `any` for all of them.
    pub device: String,
    /// The ports whose TCP traffic is captured, in both directions.
    pub ports: Vec<u16>,
    /// The file to write, a classic pcap with nanosecond stamps. An existing one is replaced.
    pub file: PathBuf,
    /// Bytes that the kernel buffers for packets not yet written; packets beyond are dropped.
    pub ring: usize,
}

impl CaptureOptions {
    /// Captures the TCP traffic of `ports` on all devices to `file`, with a buffer of 64 MiB for
    /// packets not yet written: seconds of a fan-out of 25,000 packets/s.
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

/// The counts of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureStats {
    /// Packets written to the file.
    pub captured: u64,
    /// Packets that have passed the kernel's filter; on loopback each counts on its way out and in,
    /// and is written once.
    pub received: u64,
    /// Packets the kernel dropped because the ring or the device was full.
    pub dropped: u64,
}

/// The effect of [`Capture::reopen`] on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reopened {
    /// The file still had its name: the capture continues in it.
    Same,
    /// The file had been renamed or deleted: a new one of the name was created.
    New,
}

/// The error of a capture.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The process may not open raw sockets. The text names the remedy.
    #[error(
        "no privilege to capture packets on {device}: run as root, or once \
         `sudo setcap cap_net_raw,cap_net_admin+ep {program}`"
    )]
    Privilege {
        /// The requested device.
        device: String,
        /// The path of this program.
        program: String,
    },
    /// The file cannot be created or written.
    #[error("cannot write the capture to {}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// libpcap refused for another reason: no such device, for example.
    #[error("cannot capture packets on {device}: {text}")]
    Library {
        /// The requested device.
        device: String,
        /// The error message of libpcap.
        text: String,
    },
    /// This program was built without the feature `capture`.
    #[error("this program is built without packet capture (feature `capture`)")]
    NotBuilt,
}

/// A capture that never runs: this program was built without the feature.
#[cfg(not(feature = "capture"))]
#[derive(Debug)]
pub struct Capture(std::convert::Infallible);

#[cfg(not(feature = "capture"))]
impl Capture {
    /// Returns an error: capturing is not built in.
    ///
    /// # Errors
    /// Always [`CaptureError::NotBuilt`].
    pub fn start(_options: CaptureOptions) -> Result<Self, CaptureError> {
        Err(CaptureError::NotBuilt)
    }

    /// Returns nothing, since no such capture exists.
    ///
    /// # Errors
    /// None.
    pub fn reopen(&self) -> Result<Reopened, CaptureError> {
        match self.0 {}
    }

    /// Returns nothing, since no such capture exists.
    pub fn failure(&mut self) -> Option<CaptureError> {
        match self.0 {}
    }

    /// Returns nothing, since no such capture exists.
    ///
    /// # Errors
    /// None.
    pub fn stop(self) -> Result<CaptureStats, CaptureError> {
        match self.0 {}
    }
}
