//! Which consumers what is for all is for.
//!
//! What is fanned out goes out as it came, and nobody looks into it for instruments: it is for
//! those alone from whom nothing is hidden.

use crate::users::UserBook;
use fanfare_fix::session::SessionId;

/// For the thread of one worker.
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

    /// Whether the users are others since the last look. Costs one load.
    #[inline]
    pub(crate) fn has_changed(&mut self) -> bool {
        let version = self.users.version();
        std::mem::replace(&mut self.version, version) != version
    }

    /// Whether a session gets what is for all.
    pub(crate) fn has(&self, session: &SessionId) -> bool {
        let grant = self.users.grant(session);
        grant.is_some_and(|grant| grant.sees_everything())
    }
}
