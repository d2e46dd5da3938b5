//! The selection of traffic in a capture.

/// The gateway's traffic in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The port that producers connect to: traffic to it is incoming.
    pub in_port: u16,
    /// The port that consumers connect to: traffic from it is outgoing.
    pub out_port: u16,
    /// The number of deliveries at the start that are omitted from the latency figures as warm-up.
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
