//! What comes with a message from its source.

use crate::bridge::channels::Identity;

/// What comes with a message from its source.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp<'a> {
    /// When it came into the first gateway, nanoseconds since 1970.
    pub(crate) ingress_nanos: i64,
    /// The gateway it first came into, 0 for this one, and its number there.
    pub(crate) origin: u64,
    pub(crate) number: u64,
    /// `Symbol(55)`, the key on DDS.
    pub(crate) symbol: &'a [u8],
    /// What it is in its feed, if it is of one.
    pub(crate) identity: Identity<'a>,
}
