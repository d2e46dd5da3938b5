//! Finds the IP packet in a captured frame, and its payload.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use etherparse::err::ip::{HeaderError, LaxHeaderSliceError};
use etherparse::ether_type::{
    IPV4, IPV6, PROVIDER_BRIDGING, VLAN_DOUBLE_TAGGED_FRAME, VLAN_TAGGED_FRAME,
};
use etherparse::{EtherType, IpNumber, LaxIpSlice, SingleVlanSlice};

use crate::pcap::{LinkType, Packet};

/// Address and port of one end of a connection.
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

/// The destination of a packet, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Destination {
    /// The address; `None` if the IP header is incomplete.
    pub ip: Option<IpAddr>,
    /// The port; `None` in a fragment, or if the header with it is incomplete.
    pub port: Option<u16>,
}

impl Destination {
    /// Returns whether the packet may have been sent to `end`: an unknown part fits any.
    #[must_use]
    pub fn may_be(&self, end: Endpoint) -> bool {
        self.ip.is_none_or(|ip| ip == end.ip) && self.port.is_none_or(|port| port == end.port)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ip, self.port) {
            (Some(ip), Some(port)) => Endpoint { ip, port }.fmt(f),
            (Some(ip), None) => ip.fmt(f),
            (None, _) => f.write_str("an unknown address"),
        }
    }
}

/// The payload of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carried<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Header and payload of the protocol, as far as they were captured.
    pub(crate) bytes: &'a [u8],
    /// Bytes behind them on the wire that were not captured.
    pub(crate) cut: usize,
}

impl Carried<'_> {
    /// Returns the destination; the ports of TCP and of UDP are in the same place.
    pub(crate) fn to(&self) -> Destination {
        let port = self.bytes.first_chunk::<4>();
        Destination {
            ip: Some(self.destination),
            port: port.map(|&[_, _, high, low]| u16::from_be_bytes([high, low])),
        }
    }

    /// Returns the fault of bytes that are too short for the header of the protocol.
    pub(crate) fn short(&self) -> NoSegment {
        short(self.to(), self.cut)
    }
}

/// The reason why a packet has no TCP segment, or no UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// The link type of the packet is not supported.
    UnknownLink(LinkType),
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// Another protocol over IP than the expected one.
    OtherProtocol,
    /// An IP packet whose protocol is behind an extension header that is incomplete or wrong.
    UnknownProtocol,
    /// A fragment of an IP packet of the expected protocol; fragments are not reassembled.
    Fragment(Destination),
    /// A packet whose headers were captured in part. It may be of another protocol if its address
    /// is unknown.
    Cut(Destination),
    /// Too short for its headers, or headers that contradict each other. It is of the expected
    /// protocol if its address is known.
    Malformed(Destination),
}

impl NoSegment {
    /// Returns the destination of a packet that is, or may be, of the expected protocol, but cannot
    /// be read; `None` for other traffic.
    #[must_use]
    pub const fn spoilt(&self) -> Option<Destination> {
        match *self {
            Self::Fragment(to) | Self::Cut(to) => Some(to),
            Self::Malformed(to) if to.ip.is_some() => Some(to),
            _ => None,
        }
    }
}

impl fmt::Display for NoSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownLink(LinkType(link)) => write!(f, "link type {link} is not supported"),
            Self::NotIp => f.write_str("the packet is not IP"),
            Self::OtherProtocol => f.write_str("the packet is of another protocol"),
            Self::UnknownProtocol => f.write_str("the protocol of the packet is not known"),
            Self::Fragment(to) => {
                write!(
                    f,
                    "a fragment of a packet to {to}: fragments are not put together"
                )
            }
            Self::Cut(to) => write!(
                f,
                "the capture has only a part of the headers of a packet to {to}"
            ),
            Self::Malformed(to) => write!(
                f,
                "the headers of a packet to {to} are incomplete or contradict each other"
            ),
        }
    }
}

/// The packets of a capture whose link types are not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnknownLinks {
    count: u64,
    last: Option<LinkType>,
}

impl UnknownLinks {
    /// Adds a packet.
    pub const fn add(&mut self, link: LinkType) {
        self.count += 1;
        self.last = Some(link);
    }

    /// Returns the number of packets.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the link type of the last one.
    #[must_use]
    pub const fn last(&self) -> Option<LinkType> {
        self.last
    }
}

impl fmt::Display for UnknownLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, last } = self;
        write!(
            f,
            "packets left out as their link type is not supported: {count}"
        )?;
        match last {
            Some(LinkType(link)) => write!(f, " (link type {link})"),
            None => Ok(()),
        }
    }
}

/// Returns the payload of the IP packet in a captured frame, if its protocol is `protocol`.
pub(crate) fn carried<'a>(
    packet: &Packet<'a>,
    protocol: IpNumber,
) -> Result<Carried<'a>, NoSegment> {
    let lost = (packet.wire_len as usize).saturating_sub(packet.data.len());
    let ip = ip_in(packet.link, packet.data, lost)?;
    in_ip(ip, lost, protocol)
}

/// Returns the fault of a packet that is too short for its headers; `lost` bytes of it were not
/// captured.
const fn short(to: Destination, lost: usize) -> NoSegment {
    match lost {
        0 => NoSegment::Malformed(to),
        _ => NoSegment::Cut(to),
    }
}

/// Returns the IP packet behind the header of the link. `lost` bytes behind it were not captured.
fn ip_in(link: LinkType, data: &[u8], lost: usize) -> Result<&[u8], NoSegment> {
    let short = || short(Destination::default(), lost);
    let (header_len, ethertype_at) = match link {
        LinkType::ETHERNET => (14, 12),
        LinkType::LINUX_SLL => (16, 14),
        LinkType::LINUX_SLL2 => (20, 0),
        // The family's number differs between systems and so does its byte order: the version in
        // the IP header is equivalent.
        LinkType::NULL | LinkType::LOOP => return data.get(4..).ok_or_else(short),
        // BSDs write 12 and 14 for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => return Ok(data),
        other => return Err(NoSegment::UnknownLink(other)),
    };
    let split = data.split_at_checked(header_len);
    let (header, mut rest) = split.ok_or_else(short)?;
    let mut ethertype = EtherType(u16::from_be_bytes([
        header[ethertype_at],
        header[ethertype_at + 1],
    ]));
    while let VLAN_TAGGED_FRAME | PROVIDER_BRIDGING | VLAN_DOUBLE_TAGGED_FRAME = ethertype {
        let tag = SingleVlanSlice::from_slice(rest).map_err(|_| short())?;
        (ethertype, rest) = (tag.ether_type(), tag.payload_slice());
    }
    match ethertype {
        IPV4 | IPV6 => Ok(rest),
        _ => Err(NoSegment::NotIp),
    }
}

/// Returns the payload of an IP packet, if its protocol is `protocol`. `lost` bytes behind it were
/// not captured.
fn in_ip(ip: &[u8], lost: usize, protocol: IpNumber) -> Result<Carried<'_>, NoSegment> {
    let unknown = Destination::default();
    let (found, trouble) = LaxIpSlice::from_slice(ip).map_err(|error| match error {
        LaxHeaderSliceError::Content(HeaderError::UnsupportedIpVersion { .. }) => NoSegment::NotIp,
        LaxHeaderSliceError::Content(_) => NoSegment::Malformed(unknown),
        LaxHeaderSliceError::Len(_) if is_other(ip, protocol) => NoSegment::OtherProtocol,
        LaxHeaderSliceError::Len(_) => short(unknown, lost),
    })?;
    let payload = found.payload();
    let to = Destination {
        ip: Some(found.destination_addr()),
        port: None,
    };
    // The protocol is behind the extension header that cannot be read: other traffic may be meant.
    if trouble.is_some() {
        return Err(NoSegment::UnknownProtocol);
    }
    if payload.ip_number != protocol {
        return Err(NoSegment::OtherProtocol);
    }
    if payload.fragmented {
        return Err(NoSegment::Fragment(to));
    }
    // A total of zero is written by cards that split long segments themselves, and in jumbograms:
    // the length of the packet applies then.
    let (header_len, total) = match &found {
        LaxIpSlice::Ipv4(v4) => (v4.header().slice().len(), v4.header().total_len().into()),
        LaxIpSlice::Ipv6(v6) => match v6.header().payload_length() {
            0 => (40, 0),
            len => (40, 40 + usize::from(len)),
        },
    };
    if total > 0 && total < header_len {
        return Err(NoSegment::Malformed(to));
    }
    let cut = if total == 0 {
        lost
    } else {
        total.saturating_sub(ip.len())
    };
    Ok(Carried {
        source: found.source_addr(),
        destination: found.destination_addr(),
        bytes: payload.payload,
        cut,
    })
}

/// Returns whether an incomplete header of IPv4 has another protocol than `protocol`.
fn is_other(ip: &[u8], protocol: IpNumber) -> bool {
    let is_v4 = ip.first().is_some_and(|byte| byte >> 4 == 4);
    is_v4 && ip.get(9).is_some_and(|number| *number != protocol.0)
}
