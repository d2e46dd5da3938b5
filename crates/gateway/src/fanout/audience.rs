//! The consumers that receive messages addressed to all.
//!
//! Messages that are fanned out are forwarded unchanged and are not searched for instruments: only
//! users that may see every instrument receive them.

use crate::users::{CurrentUsers, UserBook};
use fanfare_fix::session::SessionId;

/// The users that receive messages addressed to all, for the thread of one worker.
pub(crate) struct Audience {
    users: CurrentUsers,
}

impl Audience {
    pub(crate) fn new(users: UserBook) -> Self {
        Self {
            users: CurrentUsers::new(users),
        }
    }

    /// Returns whether the users have changed since the last call. Costs one load if they have not.
    #[inline]
    pub(crate) fn has_changed(&mut self) -> bool {
        self.users.look()
    }

    /// Returns whether a session receives messages addressed to all. A session that has just logged
    /// on may be of newer users than those of the last look.
    pub(crate) fn has(&self, session: &SessionId) -> bool {
        let grant = self.users.book().grant(session);
        grant.is_some_and(|grant| grant.sees_everything())
    }
}
