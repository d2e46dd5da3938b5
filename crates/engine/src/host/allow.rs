//! The networks that may connect to a port.

use std::net::IpAddr;
use std::str::FromStr;
use thiserror::Error;

/// The networks that may connect. An empty list admits every address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(pub Vec<Network>);

impl AllowList {
    /// Returns whether this address may connect.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.iter().any(|network| network.contains(address))
    }
}

/// An address with a prefix length: `10.1.0.0/16`, `192.0.2.7`, `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: u128,
    mask: u128,
}

/// The error for a text that is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}`: expected an address or a network, such as 192.0.2.7 or 10.1.0.0/16")]
pub struct NetworkError(String);

impl Network {
    /// Returns whether the network contains an address. IPv4 addresses also match in their IPv6
    /// form.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        bits(address) & self.mask == self.address
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let parse = || {
            let (address, prefix) = text
                .split_once('/')
                .map_or((text, None), |(a, p)| (a, Some(p)));
            let address: IpAddr = address.parse().ok()?;
            let width = if address.is_ipv4() { 32 } else { 128 };
            let prefix: u32 = prefix.map_or(Some(width), |prefix| prefix.parse().ok())?;
            let host_bits = width.checked_sub(prefix)?;
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            Some(Self {
                address: bits(address) & mask,
                mask,
            })
        };
        parse().ok_or_else(|| NetworkError(text.to_owned()))
    }
}

/// Returns the bits of the address in its IPv6 form.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
