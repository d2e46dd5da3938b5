//! Samples between processes of one host through shared memory: no socket, no copy in the kernel.
//!
//! A [`Sender`] owns a ring in a file in memory; any number of [`Receiver`]s (up to 64 for a
//! sender) read it. Sender and receivers of one domain and channel find each other by the names
//! of the files: whichever comes first, and again after either was restarted.
//!
//! - Receivers map the samples read-only and copy them out. A receiver that is slow, stopped or
//!   dead takes nothing from the others.
//! - **Limits.** The ring has a fixed size ([`Config::ring`]); a sample takes up to a quarter of
//!   it. With [`Config::patience`] zero the oldest samples make way, and a receiver that was
//!   overtaken counts exactly how many it lost. Otherwise a full ring makes the sender wait as
//!   long as the slowest receiver goes on reading; a receiver that makes no progress for
//!   that long is cut off: it is never waited for again until it reads.
//! - **Death.** Every end holds a file lock that the kernel gives back when the process dies,
//!   by whatever signal. A sender that waits looks at the locks and forgets the dead at once; the
//!   file of a dead sender is read to its end, then removed by whoever finds it.
//! - **Late joiners** get what the ring still holds of the topics that
//!   [keep](TopicSpec::keep) it, in its order, and of the others only what comes from now on.
//! - The folder of a domain goes with the last who leaves it in order.
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

/// Where the rings of a domain are, and how a sender's ring behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    domain: u32,
    base: PathBuf,
    ring: usize,
    patience: Duration,
    spins: bool,
}

/// Bytes of a ring unless [`Config::ring`] says otherwise.
pub const DEFAULT_RING: usize = 8 << 20;

/// How often in a row somebody else may remove the folder of a domain while it is being made.
const TRIES: u32 = 1_000;

impl Config {
    /// The rings of a domain, 0 to 232 as for DDS; a full ring drops its oldest samples.
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
            spins: false,
        })
    }

    /// Bytes of a sender's ring: rounded up to a power of two, 64 KiB to 1 GiB.
    #[must_use]
    pub const fn ring(mut self, bytes: usize) -> Self {
        self.ring = bytes;
        self
    }

    /// How long a full ring waits for a receiver that does not read; zero: not at all.
    #[must_use]
    pub const fn patience(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Whether receive threads of a [distribution](crate::distribute) spin all the time, each on a
    /// processor of its own, instead of sleeping where nothing comes for a millisecond.
    #[must_use]
    pub const fn spin(mut self, on: bool) -> Self {
        self.spins = on;
        self
    }

    /// Another file system in memory than `/dev/shm`.
    #[must_use]
    pub fn base(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.base);
        self
    }

    /// The domain.
    pub const fn domain(&self) -> u32 {
        self.domain
    }

    /// Whether receive threads spin.
    pub(crate) const fn spins(&self) -> bool {
        self.spins
    }

    /// The folder with the files of the domain.
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
        let mut made = builder.create(&folder);
        for _ in 0..TRIES {
            // It was there, and then the last of the others took it along.
            match &made {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
            made = builder.create(&folder);
        }
        made.map_err(|e| shared("make the folder", &folder, &e))?;
        // Somebody else may have made it first, to listen.
        let owner = fs::symlink_metadata(user).map_err(|e| shared("look at", user, &e))?;
        if owner.uid() != sys::user() || !owner.is_dir() || owner.mode() & 0o077 != 0 {
            let why = io::Error::other("it is open to other users");
            return Err(shared("use", user, &why));
        }
        Ok(folder)
    }
}

/// Removes the folder of a domain if nobody has a file there any more. Somebody may be about to
/// make one: who finds the folder gone makes it again. The user's folder above it stays, empty:
/// another user who made it in our place, while receivers look for it by name, could feed them.
fn leave(folder: &Path) {
    let _ = fs::remove_dir(folder);
}

/// A topic as a sender announces it and a receiver asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSpec {
    /// The name: no control characters, at most 256 bytes.
    pub name: String,
    /// A number for the type, equal on both sides.
    pub type_hash: u64,
    /// Whether receivers that come late get what the ring holds of it.
    pub keep: bool,
}

impl TopicSpec {
    /// A topic whose samples have this type.
    pub fn new(name: &str, t: &StructType, keep: bool) -> Self {
        Self {
            name: name.to_owned(),
            type_hash: fnv(crate::types::idl(&[t]).as_bytes()),
            keep,
        }
    }
}

/// FNV-1a: the same on both sides, whatever version they are of.
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

/// Removes a file whose sender is gone. Two may do so at the same time.
fn remove_if_stale(path: &Path) {
    let stale = SharedFile::open(path).and_then(|file| file.is_locked(layout::SENDER_LOCK));
    if matches!(stale, Ok(false)) {
        let _ = fs::remove_file(path);
    }
}
