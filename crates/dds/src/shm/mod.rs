//! Samples between processes of one host through shared memory: no socket, no copy in the kernel.
//!
//! A [`Sender`] owns a ring in a file in memory, which up to 64 [`Receiver`]s read; a receiver
//! reads up to 64 senders, and counts those beyond ([`Receiver::crowded`]). Sender and receivers of
//! one domain and channel discover each other by the names of the files, in either order, and again
//! after either was restarted.
//!
//! - Receivers map the samples read-only and copy them out. A receiver that is slow, stopped or
//!   dead does not affect the others.
//! - **Limits.** The ring has a fixed size ([`Config::ring`]); a sample takes up to a quarter of
//!   it. With [`Config::patience`] zero the oldest samples are overwritten, and a receiver that was
//!   overtaken counts exactly how many it lost. Otherwise a full ring makes the sender wait as long
//!   as the slowest receiver continues to read, in one write or, with [`Config::blocking`], in
//!   several that time out. A receiver that makes no progress for the patience is cut off: the
//!   sender does not wait for it until it reads again.
//! - **Death.** Every end holds a file lock that the kernel releases when the process dies, by
//!   whatever signal. A sender that waits checks the locks and stops waiting for the dead at once.
//!   The file of a dead sender is read to its end, then removed by any process that finds it.
//! - **Late joiners** receive the samples still in the ring of topics that [keep](TopicSpec::keep)
//!   them, in order, and of other topics only new samples.
//! - The folder of a domain is removed by the last process that leaves it in an orderly way.
//! - The files have mode 0600 below a folder with mode 0700: one user's processes trust
//!   each other, others have no access.

mod layout;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use receiver::{Receiver, Taken};
pub use sender::Sender;

use crate::sys::{self, SharedFile};
use crate::types::StructType;
use crate::{DomainConfig, Error};

/// The place of the rings of a domain, and the options of a sender's ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    domain: u32,
    base: PathBuf,
    ring: usize,
    patience: Duration,
    blocking: Option<Duration>,
    spins: bool,
}

/// Default size of a ring in bytes.
pub const DEFAULT_RING: usize = 8 << 20;

/// Most times in a row that another process may remove the folder of a domain while it is made.
const TRIES: u32 = 1_000;

impl Config {
    /// Makes the configuration of a domain, 0 to 232 as for DDS, where a full ring drops its oldest
    /// samples.
    ///
    /// # Errors
    /// [`Error::DomainId`] above 232.
    pub fn new(domain: u32) -> Result<Self, Error> {
        DomainConfig::new(domain).check()?;
        Ok(Self {
            domain,
            base: PathBuf::from("/dev/shm"),
            ring: DEFAULT_RING,
            patience: Duration::ZERO,
            blocking: None,
            spins: false,
        })
    }

    /// Sets the size of a sender's ring in bytes, rounded up to a power of two, 64 KiB to 1 GiB.
    #[must_use]
    pub const fn ring(mut self, bytes: usize) -> Self {
        self.ring = bytes;
        self
    }

    /// Sets how long a full ring waits for a receiver that does not read; zero does not wait.
    #[must_use]
    pub const fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Sets the longest wait of one write while the ring is full, after which the write fails and
    /// may be repeated: see [`Sender::write`]. By default a write waits until there is space.
    #[must_use]
    pub const fn blocking(mut self, time: Duration) -> Self {
        self.blocking = Some(time);
        self
    }

    /// Sets the longest wait of one write, and the patience to the same time unless it is set.
    pub(crate) const fn waiting(mut self, time: Duration) -> Self {
        if self.patience.is_zero() {
            self.patience = time;
        }
        self.blocking(time)
    }

    /// Sets whether receive threads of a [distribution](crate::distribute) always spin, each on a
    /// processor of its own, instead of sleeping after a millisecond without samples.
    #[must_use]
    pub const fn spin(mut self, on: bool) -> Self {
        self.spins = on;
        self
    }

    /// Sets another file system in memory than `/dev/shm`.
    #[must_use]
    pub fn base(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.base);
        self
    }

    /// Returns the domain.
    pub const fn domain(&self) -> u32 {
        self.domain
    }

    /// Returns whether receive threads spin.
    pub(crate) const fn spins(&self) -> bool {
        self.spins
    }

    /// Returns the folder of the domain's files.
    fn folder(&self) -> PathBuf {
        let user = self.base.join(format!("fanfare-{}", sys::user()));
        user.join(format!("domain-{}", self.domain))
    }

    /// Makes the folder, for this user alone.
    fn make_folder(&self) -> Result<PathBuf, Error> {
        let folder = self.folder();
        let user = folder.parent().unwrap_or(&folder);
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let made = builder.create(user);
        made.map_err(|e| shared("make the folder", user, &e))?;
        // Another user may have made the folder first, to listen, or as a link, to have the
        // domain's folder made elsewhere.
        let owner = fs::symlink_metadata(user).map_err(|e| shared("look at", user, &e))?;
        if owner.uid() != sys::user() || !owner.is_dir() || owner.mode() & 0o077 != 0 {
            let why = io::Error::other("other users can access it");
            return Err(shared("use", user, &why));
        }
        let mut made = builder.create(&folder);
        for _ in 0..TRIES {
            // The folder existed, and was then removed by the last other process.
            match &made {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
            made = builder.create(&folder);
        }
        made.map_err(|e| shared("make the folder", &folder, &e))?;
        Ok(folder)
    }
}

/// Removes the folder of a domain if no process has a file there any more. A process that is about
/// to make a file makes the folder again. The user's folder above it stays, empty: another user who
/// made it in our place, while receivers look for it by name, could feed them.
fn leave(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

/// A topic as a sender announces it and a receiver requests it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// The name: no control characters, at most 256 bytes.
    pub name: String,
    /// A hash of the type, equal on both sides.
    pub type_hash: u64,
    /// Whether late receivers receive its samples still in the ring.
    pub keep: bool,
}

impl TopicSpec {
    /// Makes a topic whose samples have this type.
    pub fn new(name: &str, t: &StructType, keep: bool) -> Self {
        Self {
            name: name.to_owned(),
            type_hash: fnv(crate::types::idl(&[t]).as_bytes()),
            keep,
        }
    }
}

/// Hashes by FNV-1a: the same on both sides, whatever their versions.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn shared(action: &str, path: &Path, error: &io::Error) -> Error {
    Error::SharedMemory {
        action: format!("{action} {}", path.display()),
        why: error.to_string(),
    }
}

/// Removes a file whose sender is gone. Two processes may do so at the same time.
fn remove_if_stale(path: &Path) {
    let Ok(file) = SharedFile::open(path) else {
        return;
    };
    if matches!(file.is_locked(layout::SENDER_LOCK), Ok(false)) {
        remove(path, &file);
    }
}

/// Removes a file, unless its name is another file's by now.
fn remove(path: &Path, file: &SharedFile) {
    if file.is_at(path) {
        let _ = fs::remove_file(path);
    }
}
