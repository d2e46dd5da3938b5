//! Market events over DDS: from the gateways that receive a feed to gateways that do not.
//!
//! A gateway with `[feed.edges]` publishes two topics for the feed: `Market_Steps`, what each
//! message of the channel was mapped to, with the number of the message; and `Market_Pictures`,
//! what is known of each instrument, whose last sample waits for those that come late. A gateway
//! with `[[edge]]` follows the feed by what one or several such gateways publish
//! ([`fanfare_market::relay`]), and serves it as one that it receives itself.
//!
//! No writer waits for an edge: what an edge that is behind has missed it knows by the numbers, and
//! pictures bring it back.

pub(crate) mod config;
pub(crate) mod edge_feed;
pub(crate) mod publish;
pub(crate) mod relay;
mod sample;
