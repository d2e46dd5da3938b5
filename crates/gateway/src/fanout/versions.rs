//! The versions of FIX of the consumers' sessions, and which of them are in use.

use fanfare_fix::dict::Version;
use fanfare_fix::session::{self, ApplVerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of versions of application messages.
pub(crate) const COUNT: usize = 8;

/// The versions, oldest first. A message for some of them has one bit for each, the lowest for the
/// first.
pub(crate) const VERSIONS: [Version; COUNT] = [
    Version::Fix40,
    Version::Fix41,
    Version::Fix42,
    Version::Fix43,
    Version::Fix44,
    Version::Fix50,
    Version::Fix50Sp1,
    Version::Fix50Sp2,
];

/// The versions of a message for all sessions.
pub(crate) const ALL: u32 = 0;

/// Returns the index in [`VERSIONS`] of the version that a session sends. Over FIXT.1.1, that is
/// the consumer's DefaultApplVerID(1137), which the gateway's Logon repeats.
pub(crate) fn of_session(version: session::Version, default: Option<ApplVerId>) -> usize {
    let default = default.unwrap_or(ApplVerId::Fix50Sp2);
    let appl = match version {
        session::Version::Fix40 => ApplVerId::Fix40,
        session::Version::Fix41 => ApplVerId::Fix41,
        session::Version::Fix42 => ApplVerId::Fix42,
        session::Version::Fix43 => ApplVerId::Fix43,
        session::Version::Fix44 => ApplVerId::Fix44,
        session::Version::Fixt11 => default,
    };
    // ApplVerIDs begin at 2 for FIX.4.0.
    appl as usize - 2
}

/// The number of sessions of each version that are logged on. The workers write it, and the sources
/// that encode a body for each version read it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Versions(Arc<[AtomicU32; COUNT]>);

impl Versions {
    pub(crate) fn logged_on(&self, version: usize) {
        if let Some(count) = self.0.get(version) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn ended(&self, version: usize) {
        if let Some(count) = self.0.get(version) {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns a bit for each version in use.
    pub(crate) fn in_use(&self) -> u32 {
        let counts = self.0.iter().enumerate();
        counts.fold(0, |bits, (i, count)| {
            bits | u32::from(count.load(Ordering::Relaxed) > 0) << i
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_in_use_while_a_session_has_it() {
        let versions = Versions::default();
        let two = of_session(session::Version::Fix42, None);
        let sp1 = of_session(session::Version::Fixt11, Some(ApplVerId::Fix50Sp1));
        assert_eq!(
            (VERSIONS[two], VERSIONS[sp1]),
            (Version::Fix42, Version::Fix50Sp1)
        );
        let sp2 = of_session(session::Version::Fixt11, None);
        assert_eq!(VERSIONS[sp2], Version::Fix50Sp2);
        versions.logged_on(two);
        versions.logged_on(sp1);
        versions.logged_on(two);
        versions.ended(two);
        assert_eq!(versions.in_use(), 0b100_0100);
        versions.ended(two);
        assert_eq!(versions.in_use(), 0b100_0000);
    }
}
