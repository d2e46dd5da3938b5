//! The TCP segment in a captured packet.

use etherparse::{TcpSlice, ip_number};

use crate::ip::{Endpoint, NoSegment, carried};
use crate::pcap::Packet;

/// One captured TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The sender.
    pub source: Endpoint,
    /// The receiver.
    pub destination: Endpoint,
    /// Sequence number of the first byte of `payload`, or of the SYN before it.
    pub sequence: u32,
    /// Whether it opens the connection.
    pub syn: bool,
    /// The bytes captured.
    pub payload: &'a [u8],
    /// Payload bytes behind `payload` on the wire that were not captured.
    pub cut: u32,
}

/// Finds the TCP segment of a captured packet.
///
/// # Errors
/// [`NoSegment`] with the kind of the packet.
pub fn segment<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, NoSegment> {
    let found = carried(packet, ip_number::TCP)?;
    let tcp = TcpSlice::from_slice(found.bytes).map_err(|_| found.short())?;
    let end = |ip, port| Endpoint { ip, port };
    Ok(Segment {
        source: end(found.source, tcp.source_port()),
        destination: end(found.destination, tcp.destination_port()),
        sequence: tcp.sequence_number(),
        syn: tcp.syn(),
        payload: tcp.payload(),
        cut: u32::try_from(found.cut).map_err(|_| NoSegment::Malformed(found.to()))?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ip::Destination;
    use crate::pcap::LinkType;
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
        let to = Destination {
            ip: Some(v6(2, 3_000).ip),
            port: None,
        };
        assert_eq!(
            segment(&packet(LinkType::RAW, &fragment.ip())),
            Err(NoSegment::Fragment(to))
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
            Err(NoSegment::OtherProtocol)
        );
        let arp = [&[9; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(
            segment(&packet(LinkType::ETHERNET, &arp)),
            Err(NoSegment::NotIp)
        );
        let mut fragment = sample().ip();
        fragment[6] = 0x20;
        let end = v4(2, 3_000);
        let to = |port| Destination {
            ip: Some(end.ip),
            port,
        };
        assert_eq!(
            segment(&packet(LinkType::RAW, &fragment)),
            Err(NoSegment::Fragment(to(None)))
        );
        for len in 0..40 {
            let short = &sample().ip()[..len];
            let expected = match len {
                0..20 => NoSegment::Malformed(Destination::default()),
                20..24 => NoSegment::Cut(to(None)),
                _ => NoSegment::Cut(to(Some(end.port))),
            };
            assert_eq!(segment(&packet(LinkType::RAW, short)), Err(expected));
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
