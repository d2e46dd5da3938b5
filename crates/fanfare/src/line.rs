//! The destinations of datagrams: by default only this machine.

use anyhow::{Context, Result};
use fanfare_engine::udp::{Sender, SenderConfig};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Datagrams handed to the kernel in one call.
pub(crate) const BATCH: usize = 32;
/// The longest payload of a UDP datagram over IPv4, bytes.
pub(crate) const DATAGRAM: usize = 65_507;

/// The range of datagrams: the interface and the hops.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Reach {
    /// Address of the interface to send from [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<Ipv4Addr>,
    /// Hops a packet may take; 0 stays on this host [default: 0]
    #[arg(long)]
    ttl: Option<u8>,
}

impl Reach {
    /// Returns whether an option of it is given.
    pub(crate) const fn is_set(self) -> bool {
        self.interface.is_some() || self.ttl.is_some()
    }

    fn interface(self) -> Ipv4Addr {
        self.interface.unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// Refuses an address that the interface does not reach. The caller makes the error, as an
    /// option or a file may name the address.
    pub(crate) fn check(self, to: SocketAddrV4) -> Result<(), String> {
        let address = to.ip();
        if self.interface().is_loopback() && !address.is_multicast() && !address.is_loopback() {
            return Err(format!(
                "{address} is neither a multicast group nor on the interface to send from"
            ));
        }
        Ok(())
    }
}

/// A socket that sends to one address, with its count of datagrams.
pub(crate) struct Line {
    to: SocketAddrV4,
    sender: Sender,
    sent: u64,
}

impl Line {
    pub(crate) fn open(reach: Reach, to: SocketAddrV4) -> Result<Self> {
        let config = SenderConfig {
            interface: reach.interface(),
            ttl: reach.ttl.unwrap_or(0),
            batch: BATCH,
            ..SenderConfig::new(to)
        };
        let sender = Sender::open(&config)
            .with_context(|| format!("cannot send to {to} from {}", reach.interface()))?;
        Ok(Self {
            to,
            sender,
            sent: 0,
        })
    }

    pub(crate) fn to(&self) -> SocketAddrV4 {
        self.to
    }

    /// Returns the number of datagrams sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn send_all(&mut self, datagrams: &[&[u8]]) -> Result<()> {
        let mut at = 0;
        while let Some(rest) = datagrams.get(at..).filter(|rest| !rest.is_empty()) {
            let to = self.to;
            at += self
                .sender
                .send_batch(rest)
                .with_context(|| format!("cannot send to {to}"))?;
        }
        self.sent += datagrams.len() as u64;
        Ok(())
    }
}
