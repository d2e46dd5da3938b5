//! What of a capture is looked at.

/// What of a capture is the gateway's traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Producers connect to this port: what is sent to it is incoming.
    pub in_port: u16,
    /// Consumers connect to this port: what is sent from it is outgoing.
    pub out_port: u16,
    /// The first so many deliveries are the warm-up and left out of the latency figures.
    pub skip: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            in_port: 3000,
            out_port: 3001,
            skip: 1000,
        }
    }
}
