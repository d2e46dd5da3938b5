//! The TCP segment in a captured packet.
//!
//! Own parsers rather than a crate: link layers, IP and TCP come to about a hundred lines, and
//! a segment that the snap length or the end of the capture cut must still tell how long it was.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::pcap::{LinkType, Packet};

const PROTOCOL_TCP: u8 = 6;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and what switches used before it.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Address and port of one end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The address.
    pub ip: IpAddr,
    /// The TCP port.
    pub port: u16,
}

/// One captured TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Sequence number of the first byte of `payload`, or of the SYN before it.
    pub sequence: u32,
    /// Opens the connection.
    pub syn: bool,
    /// Closes or resets this direction.
    pub fin_or_rst: bool,
    /// The bytes captured.
    pub payload: &'a [u8],
    /// Payload bytes that were on the wire behind `payload` and were not captured.
    pub cut: u32,
}

/// Why a packet gives no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSegment {
    /// The link type of the file is not supported.
    UnknownLink(LinkType),
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// IP, but not TCP.
    NotTcp,
    /// A fragment of an IP packet; TCP avoids them, and they are not put together.
    Fragment,
    /// Too short for its headers, or headers that contradict each other.
    Malformed,
}

/// Finds the TCP segment of a captured packet.
///
/// # Errors
/// [`NoSegment`] says what the packet is instead.
pub fn segment<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, NoSegment> {
    let data = packet.data;
    let lost = (packet.wire_len as usize).saturating_sub(data.len());
    match packet.link {
        LinkType::ETHERNET => {
            let (header, rest) = split(data, 14)?;
            by_ethertype(be16(header, 12), rest, lost)
        }
        LinkType::LINUX_SLL => {
            let (header, rest) = split(data, 16)?;
            by_ethertype(be16(header, 14), rest, lost)
        }
        LinkType::LINUX_SLL2 => {
            let (header, rest) = split(data, 20)?;
            by_ethertype(be16(header, 0), rest, lost)
        }
        // The family's number differs between systems and so does its byte order: the version in
        // the IP header tells the same.
        LinkType::NULL | LinkType::LOOP => by_version(split(data, 4)?.1, lost),
        // 12 and 14 are what BSDs write for raw IP.
        LinkType::RAW | LinkType::IPV4 | LinkType::IPV6 | LinkType(12 | 14) => {
            by_version(data, lost)
        }
        other => Err(NoSegment::UnknownLink(other)),
    }
}

fn by_ethertype(
    mut ethertype: u16,
    mut rest: &[u8],
    lost: usize,
) -> Result<Segment<'_>, NoSegment> {
    while ETHERTYPES_VLAN.contains(&ethertype) {
        let (tag, inner) = split(rest, 4)?;
        (ethertype, rest) = (be16(tag, 2), inner);
    }
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => by_version(rest, lost),
        _ => Err(NoSegment::NotIp),
    }
}

fn by_version(ip: &[u8], lost: usize) -> Result<Segment<'_>, NoSegment> {
    match ip.first().map(|b| b >> 4) {
        Some(4) => ipv4(ip, lost),
        Some(6) => ipv6(ip, lost),
        Some(_) => Err(NoSegment::NotIp),
        None => Err(NoSegment::Malformed),
    }
}

fn ipv4(ip: &[u8], lost: usize) -> Result<Segment<'_>, NoSegment> {
    let (header, _) = split(ip, 20)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    if header_len < 20 {
        return Err(NoSegment::Malformed);
    }
    // More fragments, or an offset.
    if be16(header, 6) & 0x3fff != 0 {
        return Err(NoSegment::Fragment);
    }
    if header[9] != PROTOCOL_TCP {
        return Err(NoSegment::NotTcp);
    }
    let address = |at: usize| Ipv4Addr::from_bits(be32(header, at)).into();
    let total = usize::from(be16(header, 2));
    let (body, cut) = body(ip, header_len, total, lost)?;
    tcp(body, cut, address(12), address(16))
}

fn ipv6(ip: &[u8], lost: usize) -> Result<Segment<'_>, NoSegment> {
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
    if next != PROTOCOL_TCP {
        return Err(NoSegment::NotTcp);
    }
    tcp(body, cut, address(8), address(24))
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

fn tcp(
    bytes: &[u8],
    cut: usize,
    source: IpAddr,
    destination: IpAddr,
) -> Result<Segment<'_>, NoSegment> {
    const FIN: u8 = 1;
    const SYN: u8 = 2;
    const RST: u8 = 4;
    let (header, _) = split(bytes, 20)?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < 20 {
        return Err(NoSegment::Malformed);
    }
    let (_, payload) = split(bytes, header_len)?;
    let flags = header[13];
    Ok(Segment {
        source: Endpoint {
            ip: source,
            port: be16(header, 0),
        },
        destination: Endpoint {
            ip: destination,
            port: be16(header, 2),
        },
        sequence: be32(header, 4),
        syn: flags & SYN != 0,
        fin_or_rst: flags & (FIN | RST) != 0,
        payload,
        cut: u32::try_from(cut).map_err(|_| NoSegment::Malformed)?,
    })
}

fn split(bytes: &[u8], at: usize) -> Result<(&[u8], &[u8]), NoSegment> {
    bytes.split_at_checked(at).ok_or(NoSegment::Malformed)
}

/// The number at `at`, which the callers know to be within `bytes`.
fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u16::from_be_bytes(*b))
}

/// The number at `at`, which the callers know to be within `bytes`.
fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|b| b.first_chunk())
        .map_or(0, |b| u32::from_be_bytes(*b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Tcp, v4, v6};

    fn packet(link: LinkType, data: &[u8]) -> Packet<'_> {
        Packet {
            time: Some(0),
            link,
            data,
            wire_len: data.len() as u32,
        }
    }

    fn sample() -> Tcp {
        Tcp::new(v4(1, 40_000), v4(2, 3_000))
            .sequence(77)
            .payload(b"8=FIX")
    }

    fn check(link: LinkType, data: &[u8]) {
        let found = segment(&packet(link, data)).unwrap();
        assert_eq!(found.payload, b"8=FIX", "{link:?}");
        assert_eq!((found.source.port, found.destination.port), (40_000, 3_000));
        assert_eq!((found.sequence, found.cut), (77, 0));
    }

    #[test]
    fn every_link_type() {
        let ip = sample().ip();
        check(LinkType::RAW, &ip);
        check(LinkType(12), &ip);
        check(LinkType::IPV4, &ip);
        check(LinkType::NULL, &[&[2, 0, 0, 0], &ip[..]].concat());
        check(LinkType::LOOP, &[&[0, 0, 0, 2], &ip[..]].concat());
        check(LinkType::ETHERNET, &[&[9; 12][..], &[8, 0], &ip].concat());
        let vlans = [0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0];
        check(LinkType::ETHERNET, &[&[9; 12], &vlans[..], &ip].concat());
        check(LinkType::LINUX_SLL, &[&[9; 14][..], &[8, 0], &ip].concat());
        check(LinkType::LINUX_SLL2, &[&[8, 0][..], &[9; 18], &ip].concat());
        let other = segment(&packet(LinkType(147), &ip));
        assert_eq!(other, Err(NoSegment::UnknownLink(LinkType(147))));
    }

    #[test]
    fn ipv6_with_extension_headers() {
        let tcp = Tcp::new(v6(1, 40_000), v6(2, 3_000))
            .sequence(77)
            .payload(b"8=FIX");
        check(LinkType::IPV6, &tcp.ip());
        let mut extension = [0; 16];
        extension[1] = 1;
        let hop_by_hop = tcp.clone().extensions(&[(0, &extension), (60, &[0; 8])]);
        check(LinkType::RAW, &hop_by_hop.ip());
        let whole = tcp.clone().extensions(&[(44, &[0; 8])]);
        check(LinkType::RAW, &whole.ip());
        let fragment = tcp.extensions(&[(44, &[0, 0, 0, 1, 0, 0, 0, 0])]);
        assert_eq!(
            segment(&packet(LinkType::RAW, &fragment.ip())),
            Err(NoSegment::Fragment)
        );
    }

    #[test]
    fn ethernet_padding_is_not_payload() {
        let padded = [&[9; 12][..], &[8, 0], &sample().ip(), &[0; 20]].concat();
        check(LinkType::ETHERNET, &padded);
    }

    #[test]
    fn a_total_length_of_zero_means_all_of_it() {
        let mut ip = sample().ip();
        ip[2..4].fill(0);
        check(LinkType::RAW, &ip);
    }

    #[test]
    fn what_the_snap_length_cut_is_counted() {
        let ip = sample().ip();
        let cut = &ip[..ip.len() - 3];
        let whole = ip.len() as u32;
        let found = segment(&Packet {
            wire_len: whole,
            ..packet(LinkType::RAW, cut)
        })
        .unwrap();
        assert_eq!((found.payload, found.cut), (&b"8="[..], 3));
    }

    #[test]
    fn other_traffic_is_told_apart() {
        let mut udp = sample().ip();
        udp[9] = 17;
        assert_eq!(
            segment(&packet(LinkType::RAW, &udp)),
            Err(NoSegment::NotTcp)
        );
        let arp = [&[9; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(
            segment(&packet(LinkType::ETHERNET, &arp)),
            Err(NoSegment::NotIp)
        );
        let mut fragment = sample().ip();
        fragment[6] = 0x20;
        assert_eq!(
            segment(&packet(LinkType::RAW, &fragment)),
            Err(NoSegment::Fragment)
        );
        for len in 0..40 {
            let short = &sample().ip()[..len];
            assert_eq!(
                segment(&packet(LinkType::RAW, short)),
                Err(NoSegment::Malformed)
            );
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            link in prop::sample::select(vec![0_u16, 1, 12, 101, 108, 113, 228, 229, 276]),
            mut data in prop::collection::vec(any::<u8>(), 0..120),
            version in prop::sample::select(vec![0x45_u8, 0x46, 0x60]),
            at in 0_usize..21,
        ) {
            if let Some(byte) = data.get_mut(at) {
                *byte = version;
            }
            let _ = segment(&packet(LinkType(link), &data));
        }
    }
}
