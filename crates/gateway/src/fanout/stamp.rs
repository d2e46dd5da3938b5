//! The origin of a message.

use crate::dds::channels::Identity;
use crate::fanout::hole::Hole;

/// The origin of a message: its time, its number and its key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stamp<'a> {
    /// The time at which it entered the first gateway, in nanoseconds since 1970.
    pub(crate) ingress_nanos: i64,
    /// The gateway that it entered first, or 0 for this one, and its number on its topic there.
    pub(crate) origin: u64,
    pub(crate) number: u64,
    /// Its number among the messages on all topics of the first gateway, or 0 if unknown.
    pub(crate) order: u64,
    /// `Symbol(55)`, the key on DDS.
    pub(crate) symbol: &'a [u8],
    /// Its identity in its feed, if it comes from one.
    pub(crate) identity: Identity<'a>,
    /// The hash of the time at which its feed sent it, until its epoch is computed, or 0 without
    /// one.
    pub(crate) sent: u64,
    /// The messages of its feed that are missing before it, for gateways that receive it over DDS.
    pub(crate) hole: Option<Hole>,
}
