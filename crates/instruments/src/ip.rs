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

/// The reason why a packet has no TCP segment, or no UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// The link type of the file is not supported.
    UnknownLink(LinkType),
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// Another protocol over IP than the expected one.
    OtherProtocol,
    /// A fragment of an IP packet; fragments are not reassembled.
    Fragment,
    /// Too short for its headers, or headers that contradict each other.
    Malformed,
}

/// Returns the payload of the IP packet in a captured frame, if its protocol is `protocol`.
pub(crate) fn carried<'a>(
    packet: &Packet<'a>,
    protocol: IpNumber,
) -> Result<Carried<'a>, NoSegment> {
    let lost = (packet.wire_len as usize).saturating_sub(packet.data.len());
    let carried = ip_in(packet.link, packet.data).and_then(|ip| in_ip(ip, lost))?;
    if carried.0 == protocol {
        Ok(carried.1)
    } else {
        Err(NoSegment::OtherProtocol)
    }
}

/// Returns the IP packet behind the header of the link.
fn ip_in(link: LinkType, data: &[u8]) -> Result<&[u8], NoSegment> {
    let (header_len, ethertype_at) = match link {
        LinkType::ETHERNET => (14, 12),
        LinkType::LINUX_SLL => (16, 14),
        LinkType::LINUX_SLL2 => (20, 0),
        // The family's number differs between systems and so does its byte order: the version in
        // the IP header is equivalent.
        LinkType::NULL | LinkType::LOOP => return data.get(4..).ok_or(NoSegment::Malformed),
        // BSDs write 12 and 14 for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => return Ok(data),
        other => return Err(NoSegment::UnknownLink(other)),
    };
    let (header, mut rest) = data
        .split_at_checked(header_len)
        .ok_or(NoSegment::Malformed)?;
    let mut ethertype = EtherType(u16::from_be_bytes([
        header[ethertype_at],
        header[ethertype_at + 1],
    ]));
    while let VLAN_TAGGED_FRAME | PROVIDER_BRIDGING | VLAN_DOUBLE_TAGGED_FRAME = ethertype {
        let tag = SingleVlanSlice::from_slice(rest).map_err(|_| NoSegment::Malformed)?;
        (ethertype, rest) = (tag.ether_type(), tag.payload_slice());
    }
    match ethertype {
        IPV4 | IPV6 => Ok(rest),
        _ => Err(NoSegment::NotIp),
    }
}

/// Returns the payload of an IP packet. `lost` bytes behind it were not captured.
fn in_ip(ip: &[u8], lost: usize) -> Result<(IpNumber, Carried<'_>), NoSegment> {
    let (found, trouble) = LaxIpSlice::from_slice(ip).map_err(|error| match error {
        LaxHeaderSliceError::Content(HeaderError::UnsupportedIpVersion { .. }) => NoSegment::NotIp,
        _ => NoSegment::Malformed,
    })?;
    let payload = found.payload();
    if payload.fragmented {
        return Err(NoSegment::Fragment);
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
    if trouble.is_some() || (total > 0 && total < header_len) {
        return Err(NoSegment::Malformed);
    }
    let cut = if total == 0 {
        lost
    } else {
        total.saturating_sub(ip.len())
    };
    Ok((
        payload.ip_number,
        Carried {
            source: found.source_addr(),
            destination: found.destination_addr(),
            bytes: payload.payload,
            cut,
        },
    ))
}
