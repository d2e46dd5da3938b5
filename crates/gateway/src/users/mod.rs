//! Who may see what.

pub(crate) mod grant;
