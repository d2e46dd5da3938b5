//! The users and their entitlements.

mod checks;
mod current;
mod dbn_key;
pub(crate) mod dbn_seat;
mod denied;
pub(crate) mod door;
mod error;
pub(crate) mod grant;
mod names;
mod origin;
mod password;
mod requests;
pub(crate) mod roster;
mod set;
mod tables;

#[cfg(test)]
mod tests;

pub use denied::Denied;
pub use error::UsersError;
pub use password::{LONGEST_PASSWORD, hash_password};
pub use tables::{Lists, PortName, UserTables};

pub(crate) use current::CurrentUsers;
pub(crate) use dbn_key::DbnKey;
pub(crate) use error::{LONGEST_ERROR, cut, without_text};
pub(crate) use names::Names;
pub(crate) use requests::Requests;
pub(crate) use set::{Source, User, UserSet};
pub(crate) use tables::{parsed_from, read_from};

use fanfare_fix::session::SessionId;
use grant::Grant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The users in force, for any thread. Clones are cheap and refer to the same book.
#[derive(Clone)]
pub(crate) struct UserBook(Arc<Book>);

struct Book {
    version: AtomicU64,
    users: Mutex<Arc<UserSet>>,
}

impl UserBook {
    pub(crate) fn new(users: UserSet) -> Self {
        Self(Arc::new(Book {
            version: AtomicU64::new(0),
            users: Mutex::new(Arc::new(users)),
        }))
    }

    /// Returns the version, which changes with the users or the lists. Values read before are then
    /// outdated. Costs one load.
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// Returns the current users. Takes a lock, so it is meant for one call in each version.
    pub(crate) fn read(&self) -> Arc<UserSet> {
        let users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&users)
    }

    /// Replaces the users.
    pub(crate) fn replace(&self, users: Arc<UserSet>) {
        *self.0.users.lock().unwrap_or_else(PoisonError::into_inner) = users;
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the entitlements of a consumer's session, or `None` if it is no longer permitted and
    /// is being logged out.
    pub(crate) fn grant(&self, id: &SessionId) -> Option<Arc<Grant>> {
        self.read().grant(id, PortName::Consumers)
    }
}
