//! The configuration of a follower, and its counts.

use crate::fragments::FragmentConfig;
use crate::market::MarketConfig;
use fanfare_feed::recovery::ReplayConfig;

/// The configuration of a follower.
#[derive(Debug, Clone)]
pub struct FollowerConfig {
    /// The books, numbers and limits.
    pub market: MarketConfig,
    /// The limits of requests to the replay, if there is one.
    pub replay: Option<ReplayConfig>,
    /// The time after which lines without traffic are silent and books stale, in nanoseconds, or
    /// `u64::MAX` if a feed may be quiet for any time.
    pub silence: u64,
    /// The plant's number of the first event.
    pub first: u64,
    /// The limits of incomplete snapshots that span several messages: those of the channel, and
    /// separately those of each channel of snapshot lines.
    pub fragments: FragmentConfig,
}

impl FollowerConfig {
    /// Returns a configuration without a replay, with 30 s of silence, numbers from 1, and
    /// snapshots as large as the books may be.
    pub fn new(market: MarketConfig) -> Self {
        Self {
            replay: None,
            silence: 30_000_000_000,
            first: 1,
            fragments: FragmentConfig::of(&market.book),
            market,
        }
    }
}

/// The counts of a follower, besides those of its mapper, its market and its replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowerStats {
    /// Messages of the channel.
    pub messages: u64,
    /// Messages of the channel without a number, for which gaps are not detected.
    pub unnumbered: u64,
    /// Messages that came late: by a replay, at an edge by another gateway, or by another line
    /// behind a packet that came in part.
    pub late: u64,
    /// Messages that were repeated, and ignored.
    pub repeated: u64,
    /// Packets that could not be decoded, whose messages are missing.
    pub bad: u64,
    /// Snapshots that could not be read, or arrived on the channel without a number.
    pub bad_snapshots: u64,
    /// The number of restarts of the channel.
    pub resets: u64,
}
