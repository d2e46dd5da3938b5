//! Warnings and errors that the DDS library logs: an announcement or a sample of another
//! participant that is not readable, a malformed packet, a socket that cannot send.

use crate::sys::{self, OnWarning};
use std::fmt;
use std::sync::Arc;

/// A function that is called with each warning of the library, of all domains of the process, for
/// as long as this value lives.
///
/// Any host that reaches the ports of a domain can cause warnings, as many as it likes, and parts
/// of their texts are its own.
pub struct Warnings(Arc<OnWarning>);

impl Warnings {
    /// Calls `listener` from now on. It runs in a thread of the library, which receives samples or
    /// announcements: it must not wait, must not use this crate, and ends the process if it
    /// panics.
    #[must_use]
    pub fn new(listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let listener: Arc<OnWarning> = Arc::new(listener);
        sys::listen(&listener);
        Self(listener)
    }
}

impl fmt::Debug for Warnings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = Arc::strong_count(&self.0);
        f.debug_struct("Warnings")
            .field("listeners", &listeners)
            .finish()
    }
}
