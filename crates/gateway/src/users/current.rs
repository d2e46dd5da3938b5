//! The users as one thread knows them.

use super::{UserBook, UserSet};
use std::sync::Arc;

/// The users of a version of the book, for one thread.
pub(crate) struct CurrentUsers {
    book: UserBook,
    version: u64,
    users: Arc<UserSet>,
}

impl CurrentUsers {
    /// Reads the users of a book.
    pub(crate) fn new(book: UserBook) -> Self {
        Self {
            version: book.version(),
            users: book.read(),
            book,
        }
    }

    /// Reads the users again if they have changed. Returns whether they have. Costs one load
    /// otherwise.
    #[inline]
    pub(crate) fn look(&mut self) -> bool {
        let version = self.book.version();
        let has_changed = version != self.version;
        if has_changed {
            self.version = version;
            self.users = self.book.read();
        }
        has_changed
    }

    /// Returns the users as of the last look.
    pub(crate) const fn get(&self) -> &Arc<UserSet> {
        &self.users
    }

    /// Returns the book, whose users may be newer.
    pub(crate) const fn book(&self) -> &UserBook {
        &self.book
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_users_are_read_at_the_next_look() {
        let book = UserBook::new(UserSet::default());
        let mut users = CurrentUsers::new(book.clone());
        let before = Arc::clone(users.get());
        assert!(!users.look());
        book.replace(Arc::default());
        assert!(Arc::ptr_eq(users.get(), &before));
        assert!(users.look() && !users.look());
        assert!(Arc::ptr_eq(users.get(), &book.read()));
        assert!(!Arc::ptr_eq(users.get(), &before));
    }
}
