//! Market events over DDS, from the gateways that receive a feed to gateways that do not.
//!
//! A gateway with `[feed.edges]` publishes two topics for the feed: `Market_Steps`, the events of
//! each message of the channel with the number of the message, and `Market_Snapshots`, the snapshot
//! of each instrument, whose last sample is kept for late joiners. A gateway with `[[edge]]`
//! follows the feed by the samples of one or several such gateways ([`fanfare_market::relay`]), and
//! serves it like one that it receives itself.
//!
//! No writer waits for an edge. An edge that is behind detects by the numbers what it has missed,
//! and recovers by snapshots.

pub(crate) mod config;
pub(crate) mod edge_feed;
pub(crate) mod publish;
pub(crate) mod relay;
pub(crate) mod sample;
