//! Hosts by name or address, and free ports.

use anyhow::{Context, Result, anyhow};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

/// Returns the first address of a host; IPv4 before IPv6, since servers listen there by default.
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

/// Returns a UDP port of the loopback interface that is free now.
pub(crate) fn free_udp_port() -> Result<u16> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("cannot open a UDP socket")?;
    Ok(socket.local_addr()?.port())
}
