//! The memory that structs take as they are filled. Each value adds what it has outgrown, which is
//! seldom, so that it costs decoding next to nothing.

use std::cell::Cell;

thread_local! {
    // Without a destructor: it needs no memory itself.
    static GROWN: Cell<usize> = const { Cell::new(0) };
}

/// Adds the bytes by which a value of this thread has grown.
#[cold]
pub(super) fn add(from: usize, to: usize) {
    GROWN.set(GROWN.get().saturating_add(to.saturating_sub(from)));
}

/// Returns the bytes that were added on this thread since the last call.
#[inline]
pub(super) fn take() -> usize {
    GROWN.replace(0)
}
