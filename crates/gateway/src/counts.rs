//! The gateway's counters, by agent. Each has one writer; anybody may read them.

use fanfare_engine::counters::{Counter, Counters};

/// What every agent with connections counts.
pub(crate) struct PeerCounts {
    /// Sessions that reached logged on.
    pub(crate) logons: Counter,
    /// Connections turned away before they had a session.
    pub(crate) refused: Counter,
    /// Sessions that ended.
    pub(crate) ended: Counter,
    /// Connections at this moment, logged on or not.
    pub(crate) connections: Counter,
}

impl PeerCounts {
    pub(crate) fn new(counters: &Counters, agent: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{agent}_{name}"), what);
        Self {
            logons: add("logons", "sessions that logged on"),
            refused: add(
                "refused",
                "connections turned away before they had a session",
            ),
            ended: add("ended", "sessions that ended"),
            connections: add("connections", "connections now, logged on or not"),
        }
    }
}

/// What ingress counts.
pub(crate) struct IngressCounts {
    /// Application messages from producers.
    pub(crate) received: Counter,
    /// Those with the mark: written to the ring.
    pub(crate) marked: Counter,
    /// Marked ones that no worker can take (too long for the ring): counted, not sent on.
    pub(crate) unroutable: Counter,
}

impl IngressCounts {
    pub(crate) fn new(counters: &Counters) -> Self {
        Self {
            received: counters.add("received", "application messages from producers"),
            marked: counters.add(
                "marked",
                "messages with FanoutID(20001), written to the ring",
            ),
            unroutable: counters.add("unroutable", "marked messages that the ring cannot take"),
        }
    }
}

/// What each worker counts.
pub(crate) struct WorkerCounts {
    /// Messages given to consumers' connections.
    pub(crate) deliveries: Counter,
    /// Messages left out because a consumer's queue was full.
    pub(crate) dropped: Counter,
    /// Consumers disconnected because their queue was full.
    pub(crate) slow: Counter,
}

impl WorkerCounts {
    pub(crate) fn new(counters: &Counters, agent: &str) -> Self {
        let add = |name: &str, what: &str| counters.add(format!("{agent}_{name}"), what);
        Self {
            deliveries: add("deliveries", "messages given to consumers' connections"),
            dropped: add(
                "dropped",
                "messages left out because a consumer's queue was full",
            ),
            slow: add(
                "slow_consumers",
                "consumers disconnected because their queue was full",
            ),
        }
    }
}
