//! The IP packet in a captured frame, and what it carries.
//!
//! Own parsers rather than a crate: link layers, IP, TCP and UDP come to about a hundred lines,
//! and a payload that the snap length or the end of the capture cut must still tell how long it
//! was.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::pcap::{LinkType, Packet};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and what switches used before it.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Address and port of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub ip: IpAddr,
    /// The TCP or UDP port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

/// What an IP packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Header and payload of the protocol, as far as they were captured.
    pub(crate) bytes: &'a [u8],
    /// Bytes that were on the wire behind them.
    pub(crate) cut: usize,
}

/// Why a packet gives no TCP segment, or no UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// The link type of the file is not supported.
    UnknownLink(LinkType),
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// IP, but another protocol than the one looked for.
    OtherProtocol,
    /// A fragment of an IP packet; they are not put together.
    Fragment,
    /// Too short for its headers, or headers that contradict each other.
    Malformed,
}

/// Finds what the IP packet in a captured frame carries, if that is `protocol`.
pub(crate) fn carried<'a>(packet: &Packet<'a>, protocol: u8) -> Result<Carried<'a>, NoSegment> {
    let data = packet.data;
    let lost = (packet.wire_len as usize).saturating_sub(data.len());
    match packet.link {
        LinkType::ETHERNET => {
            let (header, rest) = split(data, 14)?;
            by_ethertype(be16(header, 12), rest, lost, protocol)
        }
        LinkType::LINUX_SLL => {
            let (header, rest) = split(data, 16)?;
            by_ethertype(be16(header, 14), rest, lost, protocol)
        }
        LinkType::LINUX_SLL2 => {
            let (header, rest) = split(data, 20)?;
            by_ethertype(be16(header, 0), rest, lost, protocol)
        }
        // The family's number differs between systems and so does its byte order: the version in
        // the IP header tells the same.
        LinkType::NULL | LinkType::LOOP => by_version(split(data, 4)?.1, lost, protocol),
        // 12 and 14 are what BSDs write for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => {
            by_version(data, lost, protocol)
        }
        other => Err(NoSegment::UnknownLink(other)),
    }
}

fn by_ethertype(
    mut ethertype: u16,
    mut rest: &[u8],
    lost: usize,
    protocol: u8,
) -> Result<Carried<'_>, NoSegment> {
    while ETHERTYPES_VLAN.contains(&ethertype) {
        let (tag, inner) = split(rest, 4)?;
        (ethertype, rest) = (be16(tag, 2), inner);
    }
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => by_version(rest, lost, protocol),
        _ => Err(NoSegment::NotIp),
    }
}

fn by_version(ip: &[u8], lost: usize, protocol: u8) -> Result<Carried<'_>, NoSegment> {
    match ip.first().map(|b| b >> 4) {
        Some(4) => ipv4(ip, lost, protocol),
        Some(6) => ipv6(ip, lost, protocol),
        Some(_) => Err(NoSegment::NotIp),
        None => Err(NoSegment::Malformed),
    }
}

fn ipv4(ip: &[u8], lost: usize, protocol: u8) -> Result<Carried<'_>, NoSegment> {
    let (header, _) = split(ip, 20)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header_len < 20 {
        return Err(NoSegment::Malformed);
    }
    // More fragments, or an offset.
    if be16(header, 6) & 0x3fff != 0 {
        return Err(NoSegment::Fragment);
    }
    if header[9] != protocol {
        return Err(NoSegment::OtherProtocol);
    }
    let address = |at: usize| Ipv4Addr::from_bits(be32(header, at)).into();
    let total = usize::from(be16(header, 2));
    let (bytes, cut) = body(ip, header_len, total, lost)?;
    Ok(Carried {
        source: address(12),
        destination: address(16),
        bytes,
        cut,
    })
}

fn ipv6(ip: &[u8], lost: usize, protocol: u8) -> Result<Carried<'_>, NoSegment> {
    const FIXED: usize = 40;
    let (header, _) = split(ip, FIXED)?;
    let address = |at: usize| {
        let bytes = header.get(at..).and_then(|b| b.first_chunk::<16>());
        Ipv6Addr::from(*bytes.unwrap_or(&[0; 16])).into()
    };
    // Zero is a jumbogram or a segment that the card cuts up later: as long as it is.
    let payload = usize::from(be16(header, 4));
    let total = if payload == 0 { 0 } else { FIXED + payload };
    let (mut body, cut) = body(ip, FIXED, total, lost)?;
    let mut next = header[6];
    // Extension headers: hop by hop, routing, fragment, authentication, destination, mobility.
    while let 0 | 43 | 44 | 51 | 60 | 135 = next {
        let (front, _) = split(body, 8)?;
        let words = usize::from(front[1]);
        let len = match next {
            44 if be16(front, 2) & 0xfff9 != 0 => return Err(NoSegment::Fragment),
            44 => 8,
            51 => (words + 2) * 4,
            _ => (words + 1) * 8,
        };
        next = front[0];
        body = split(body, len)?.1;
    }
    if next != protocol {
        return Err(NoSegment::OtherProtocol);
    }
    Ok(Carried {
        source: address(8),
        destination: address(24),
        bytes: body,
        cut,
    })
}

/// What is behind the header of an IP packet of `total` bytes, without link-layer padding, and
/// how many of its bytes were not captured. A `total` of zero is written by cards that cut up
/// long segments themselves: the packet is then as long as it is.
fn body(
    ip: &[u8],
    header_len: usize,
    total: usize,
    lost: usize,
) -> Result<(&[u8], usize), NoSegment> {
    let on_wire = if total == 0 { ip.len() + lost } else { total };
    if on_wire < header_len {
        return Err(NoSegment::Malformed);
    }
    let captured = ip.get(..on_wire).unwrap_or(ip);
    let (_, body) = split(captured, header_len)?;
    Ok((body, on_wire - captured.len()))
}

pub(crate) fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), NoSegment> {
    bytes.split_at_checked(at).ok_or(NoSegment::Malformed)
}

/// The number at `at`, which the callers know to be within `bytes`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u16::from_be_bytes(*b))
}

/// The number at `at`, which the callers know to be within `bytes`.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_be_bytes(*b))
}
