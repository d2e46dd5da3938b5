//! Hosts as people write them.

use anyhow::{Context, Result, anyhow};
use std::net::{SocketAddr, ToSocketAddrs};

/// The first address of a host; IPv4 before IPv6, since that is where our servers listen unless
/// told otherwise.
pub(crate) fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    let found = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("unknown host `{host}`"))?;
    let mut addresses: Vec<SocketAddr> = found.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    addresses
        .first()
        .copied()
        .ok_or_else(|| anyhow!("host `{host}` has no address"))
}
