//! Hosts as people write them, and free ports.

use anyhow::{Context, Result, anyhow};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

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

/// A UDP port of the loopback interface that nobody has now.
pub(crate) fn free_udp_port() -> Result<u16> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("cannot open a UDP socket")?;
    Ok(socket.local_addr()?.port())
}
