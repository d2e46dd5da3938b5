//! FIX messages over DDS, so that a gateway on one machine feeds gateways on others.
//!
//! A message that came in from a FIX session or a feed is published once, as a sample that holds
//! its body as received, when it came in, and who it came in to: the gateway's origin (a number
//! drawn at its start) and a number that counts up in each topic. A gateway that subscribes gives
//! the body to its consumers as if it had come from a session of its own.
//!
//! A message of a feed also has an identity of the feed's own, which is the same whichever gateway
//! publishes it: of several that receive the same feed, the first that brings it wins.
//!
//! No message goes round: what came from DDS is not published, unless `relay` says so, and
//! then it keeps its origin and number, by which every gateway drops what is its own and what it
//! has seen before. The same numbers tell what is missing.

pub(crate) mod channels;
pub(crate) mod config;
pub(crate) mod endpoint;
pub(crate) mod entry;
mod origins;
pub(crate) mod patience;
pub(crate) mod publish;
pub(crate) mod sample;
pub(crate) mod subscribe;

use crate::notice::Notices;
use crate::stages::StagePlan;
use fanfare_engine::counters::Counters;
use fanfare_engine::stop::Stop;
use std::hash::{BuildHasher, Hasher, RandomState};

/// What both sides need besides their topics.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// This gateway's name on DDS.
    pub(crate) origin: u64,
    /// The feeds that this gateway receives itself.
    pub(crate) channels: &'a [String],
    /// The longest message.
    pub(crate) message_bytes: usize,
    pub(crate) counters: &'a Counters,
    pub(crate) notices: &'a Notices,
    pub(crate) stages: StagePlan<'a>,
    /// Ends the gateway; every wait ends soon after it is raised.
    pub(crate) stop: &'a Stop,
}

/// A name for this run of a gateway that no other has; never 0.
pub(crate) fn new_origin() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}
