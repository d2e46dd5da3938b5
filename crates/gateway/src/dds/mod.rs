//! FIX messages over DDS, so that a gateway on one machine feeds gateways on others.
//!
//! A message from a FIX session or a feed is published once, as a sample of its body as received,
//! its time of arrival and its first gateway: that gateway's origin (a number drawn at its start),
//! a number that counts up in each topic, and one over all topics. A subscribing gateway merges the
//! topics in the order of the latter, and forwards the body to its consumers like one from a
//! session of its own.
//!
//! A message of a feed also has an identity of the feed's own, which is the same whichever gateway
//! publishes it. If several gateways receive the same feed, the first to deliver it wins.
//!
//! No message loops: messages from DDS are not published, unless `relay` is set. Then they keep
//! their origin and number, by which every gateway drops its own messages and those it has seen
//! before. Gaps in the same numbers show which messages are missing.

pub(crate) mod ack_wait;
pub(crate) mod channels;
pub(crate) mod config;
pub(crate) mod endpoint;
pub(crate) mod entry;
pub(crate) mod merge;
pub(crate) mod omissions;
mod origins;
pub(crate) mod publish;
pub(crate) mod sample;
pub(crate) mod subscribe;
pub(crate) mod topic_reader;
pub(crate) mod warnings;

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a unique origin for this run of a gateway, never 0.
pub(crate) fn new_origin() -> u64 {
    RandomState::new().build_hasher().finish().max(1)
}
