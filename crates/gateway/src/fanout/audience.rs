//! The consumers that receive messages addressed to all.
//!
//! Messages that are fanned out are forwarded unchanged and are not searched for instruments: only
//! users that may see every instrument receive them.

use crate::users::UserBook;
use fanfare_fix::session::SessionId;

/// The users that receive messages addressed to all, for the thread of one worker.
pub(crate) struct Audience {
    users: UserBook,
    version: u64,
}

impl Audience {
    pub(crate) fn new(users: UserBook) -> Self {
        Self {
            version: users.version(),
            users,
        }
    }

    /// Returns whether the users have changed since the last call. Costs one load.
    #[inline]
    pub(crate) fn has_changed(&mut self) -> bool {
        let version = self.users.version();
        std::mem::replace(&mut self.version, version) != version
    }

    /// Returns whether a session receives messages addressed to all.
    pub(crate) fn has(&self, session: &SessionId) -> bool {
        let grant = self.users.grant(session);
        grant.is_some_and(|grant| grant.sees_everything())
    }
}
