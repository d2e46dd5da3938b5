//! Peers by number. Cyclone DDS ends the process over a peer that it cannot parse.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};

use super::Transport;
use crate::Error;
use crate::sys::interface_address;

/// A peer as Cyclone DDS takes it: an IPv4 address, and an optional port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    address: Ipv4Addr,
    port: Option<u16>,
}

impl Peer {
    /// Parses `HOST` or `HOST:PORT`, where HOST is an address, a name that the system resolves, or
    /// the name of the interface, which stands for its address.
    pub(super) fn new(text: &str, transport: Transport, interface: &str) -> Result<Self, Error> {
        let fail = |why: String| Error::Config(format!("peer {text:?} {why}"));
        let (host, port) = split(text).map_err(|why| fail(why.to_owned()))?;
        if port.is_none() && transport == Transport::Tcp {
            return Err(fail("has no port: tcp expects ADDRESS:PORT".to_owned()));
        }
        let address = if host == interface && interface.parse::<IpAddr>().is_err() {
            interface_address(interface)
                .ok_or_else(|| fail("is an interface without an IPv4 address".to_owned()))?
        } else {
            resolve(host).map_err(fail)?
        };
        // The address denotes no host, or many.
        if address.is_unspecified() || address.is_broadcast() {
            return Err(fail("is not the address of a host".to_owned()));
        }
        if address.is_multicast() {
            return Err(fail("is a multicast group, not a host".to_owned()));
        }
        Ok(Self { address, port })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.address),
            None => self.address.fmt(f),
        }
    }
}

/// Splits into host and port.
fn split(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    if text.trim().is_empty() {
        return Err("has no address");
    }
    if text.parse::<std::net::Ipv6Addr>().is_ok() || text.starts_with('[') {
        return Err("is an IPv6 address: participants are on IPv4");
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Ok((text, None));
    };
    if host.is_empty() {
        return Err("has no address");
    }
    match port.parse() {
        Ok(0) | Err(_) => Err("has an invalid port: must be between 1 and 65535"),
        Ok(port) => Ok((host, Some(port))),
    }
}

/// Resolves the first IPv4 address of a host.
fn resolve(host: &str) -> Result<Ipv4Addr, String> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let addresses = (host, 0).to_socket_addrs();
    let addresses = addresses.map_err(|e| format!("cannot be resolved: {e}"))?;
    let mut v4 = addresses.filter_map(|a| match a {
        SocketAddr::V4(a) => Some(*a.ip()),
        SocketAddr::V6(_) => None,
    });
    v4.next()
        .ok_or_else(|| "has no IPv4 address: participants are on IPv4".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> String {
        match Peer::new(text, Transport::Udp, "lo") {
            Ok(peer) => peer.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_host_becomes_a_number() {
        assert_eq!(peer("10.0.0.4"), "10.0.0.4");
        assert_eq!(peer("10.0.0.4:7410"), "10.0.0.4:7410");
        assert_eq!(peer("localhost:1"), "127.0.0.1:1");
        assert_eq!(peer("lo:13020"), "127.0.0.1:13020");
    }

    #[test]
    fn what_is_no_host_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "has no address"),
            (":7400", "has no address"),
            ("10.0.0.4:", "must be between 1 and 65535"),
            ("10.0.0.4:0", "must be between 1 and 65535"),
            ("10.0.0.4:-1", "must be between 1 and 65535"),
            ("10.0.0.4:65536", "must be between 1 and 65535"),
            ("::1", "IPv6"),
            ("[::1]:7400", "IPv6"),
            ("0.0.0.0", "not the address of a host"),
            ("255.255.255.255", "not the address of a host"),
            ("239.255.0.1", "multicast group"),
            ("10.0.0.4,10.0.0.5", "cannot be resolved"),
            ("udp/10.0.0.4", "cannot be resolved"),
            ("a\"/><x y=\"", "cannot be resolved"),
            ("no such host", "cannot be resolved"),
            ("10.0.0.4\0", "cannot be resolved"),
        ] {
            assert!(peer(text).contains(why), "{text:?}: {}", peer(text));
        }
    }
}
