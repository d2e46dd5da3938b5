//! The UDP datagram in a captured packet.

use etherparse::{Ipv4Header, UdpHeader, UdpSlice, ip_number};
use std::io;
use std::net::SocketAddrV4;

use crate::ip::{Endpoint, NoSegment, carried};
use crate::pcap::Packet;

const HEADER: usize = 8;

/// One captured UDP datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The sender.
    pub source: Endpoint,
    /// The receiver, or its multicast group.
    pub destination: Endpoint,
    /// The bytes captured.
    pub payload: &'a [u8],
    /// Payload bytes behind `payload` on the wire that were not captured.
    pub cut: usize,
}

/// Writes the IPv4 packet of a datagram from `source` to `destination` into `packet`, which is
/// cleared first: a packet of [`LinkType::RAW`](crate::pcap::LinkType::RAW).
///
/// # Errors
/// The payload is longer than a datagram can be.
pub fn packet(
    (source, destination): (SocketAddrV4, SocketAddrV4),
    payload: &[u8],
    packet: &mut Vec<u8>,
) -> io::Result<()> {
    packet.clear();
    let len = (UdpHeader::LEN + payload.len()).try_into();
    let [from, to] = [source, destination].map(|end| end.ip().octets());
    let ip = Ipv4Header::new(len.map_err(io::Error::other)?, 1, ip_number::UDP, from, to);
    let mut ip = ip.map_err(io::Error::other)?;
    ip.header_checksum = ip.calc_header_checksum();
    let (from, to) = (source.port(), destination.port());
    let udp = UdpHeader::with_ipv4_checksum(from, to, &ip, payload);
    packet.extend_from_slice(&ip.to_bytes());
    packet.extend_from_slice(&udp.map_err(io::Error::other)?.to_bytes());
    packet.extend_from_slice(payload);
    Ok(())
}

/// Finds the UDP datagram of a captured packet.
///
/// # Errors
/// [`NoSegment`] with the kind of the packet; a part of a datagram that was sent in fragments is
/// [`NoSegment::Fragment`].
pub fn datagram<'a>(packet: &Packet<'a>) -> Result<Datagram<'a>, NoSegment> {
    let found = carried(packet, ip_number::UDP)?;
    let udp = UdpSlice::from_slice_lax(found.bytes).map_err(|_| found.short())?;
    let on_wire = found.bytes.len() + found.cut;
    // Zero is written for datagrams that the card splits: the length of the packet applies.
    let len = match usize::from(udp.length()) {
        0 => on_wire,
        len if (HEADER..=on_wire).contains(&len) => len,
        _ => return Err(NoSegment::Malformed(found.to())),
    };
    let payload = udp.payload();
    let end = |ip, port| Endpoint { ip, port };
    Ok(Datagram {
        source: end(found.source, udp.source_port()),
        destination: end(found.destination, udp.destination_port()),
        payload,
        cut: len - HEADER - payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Destination;
    use crate::pcap::LinkType;
    use proptest::prelude::*;

    /// Returns an IPv4 packet with a datagram from 127.0.0.1:40000 to 224.1.2.133:13014.
    fn ip(payload: &[u8]) -> Vec<u8> {
        let len = (payload.len() + HEADER) as u16;
        let mut ip = vec![0x45, 0];
        ip.extend((len + 20).to_be_bytes());
        ip.extend([0, 1, 0x40, 0, 1, 17, 0, 0, 127, 0, 0, 1, 224, 1, 2, 133]);
        ip.extend(40_000_u16.to_be_bytes());
        ip.extend(13_014_u16.to_be_bytes());
        ip.extend(len.to_be_bytes());
        ip.extend([0, 0]);
        ip.extend(payload);
        ip
    }

    fn packet(data: &[u8], wire_len: usize) -> Packet<'_> {
        Packet {
            time: Some(0),
            link: LinkType::RAW,
            data,
            wire_len: wire_len as u32,
        }
    }

    #[test]
    fn payload_and_ends() {
        let mut ip = ip(b"FAST");
        let len = ip.len();
        // Padding of the link is not payload.
        ip.extend([0; 6]);
        let found = datagram(&packet(&ip, len + 6)).unwrap();
        assert_eq!((found.payload, found.cut), (&b"FAST"[..], 0));
        assert_eq!(found.destination.to_string(), "224.1.2.133:13014");
        assert_eq!(found.source.to_string(), "127.0.0.1:40000");
    }

    #[test]
    fn a_packet_that_is_written_is_read_again_and_has_the_checksum_of_its_header() {
        let ends = ["127.0.0.1:0", "224.1.2.133:13014"].map(|end| end.parse().unwrap());
        let mut written = Vec::new();
        super::packet((ends[0], ends[1]), b"FAST", &mut written).unwrap();
        // The words of a whole header add up to all ones.
        let (words, _) = written[..20].as_chunks();
        let sum = words
            .iter()
            .map(|word| u32::from(u16::from_be_bytes(*word)));
        let sum: u32 = sum.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        let found = datagram(&packet(&written, written.len())).unwrap();
        assert_eq!(found.payload, b"FAST");
        assert_eq!(found.destination.to_string(), "224.1.2.133:13014");
    }

    #[test]
    fn a_cut_datagram_tells_what_is_missing() {
        let ip = ip(b"FAST");
        let found = datagram(&packet(&ip[..ip.len() - 3], ip.len())).unwrap();
        assert_eq!((found.payload, found.cut), (&b"F"[..], 3));
    }

    #[test]
    fn what_is_no_datagram() {
        let mut tcp = ip(b"FAST");
        tcp[9] = 6;
        let error = |data: &[u8]| datagram(&packet(data, data.len())).unwrap_err();
        assert_eq!(error(&tcp), NoSegment::OtherProtocol);
        let whole = ip(b"FAST");
        for len in 0..20 {
            let unknown = Destination::default();
            assert_eq!(error(&whole[..len]), NoSegment::Malformed(unknown));
            assert_eq!(error(&whole[..len]).spoilt(), None);
        }
        for length in [7, 13] {
            let mut wrong = ip(b"FAST");
            wrong[25] = length;
            let error = error(&wrong);
            assert_eq!(error, NoSegment::Malformed(to(true)), "length {length}");
            assert_eq!(error.spoilt(), Some(to(true)));
        }
    }

    /// Returns the destination of `ip`.
    fn to(has_port: bool) -> Destination {
        Destination {
            ip: Some([224, 1, 2, 133].into()),
            port: has_port.then_some(13_014),
        }
    }

    #[test]
    fn a_datagram_that_is_cut_within_its_headers_is_told_from_other_traffic() {
        let whole = ip(b"FAST");
        let mut tcp = whole.clone();
        tcp[9] = 6;
        let error = |data: &[u8]| datagram(&packet(data, whole.len())).unwrap_err();
        for len in 0..28 {
            let expected = match len {
                0..20 => Destination::default(),
                _ => to(len >= 24),
            };
            assert_eq!(error(&whole[..len]), NoSegment::Cut(expected), "{len}");
            // The protocol of shorter ones is unknown.
            if len >= 10 {
                assert_eq!(error(&tcp[..len]), NoSegment::OtherProtocol, "{len}");
            }
        }
    }

    #[test]
    fn a_fragment_has_its_destination_and_is_of_the_protocol() {
        let mut fragment = ip(b"FAST");
        fragment[6] = 0x20;
        let error = |data: &[u8]| datagram(&packet(data, data.len())).unwrap_err();
        let found = error(&fragment);
        assert_eq!(found, NoSegment::Fragment(to(false)));
        assert!(found.to_string().contains("to 224.1.2.133:"), "{found}");
        let end = |host: u8, port| Endpoint {
            ip: [224, 1, 2, host].into(),
            port,
        };
        assert!(to(false).may_be(end(133, 1)) && !to(false).may_be(end(134, 13_014)));
        assert!(to(true).may_be(end(133, 13_014)) && !to(true).may_be(end(133, 1)));
        fragment[9] = 6;
        assert_eq!(error(&fragment), NoSegment::OtherProtocol);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            mut data in prop::collection::vec(any::<u8>(), 0..80),
            wire_len in 0_usize..200,
        ) {
            if let Some(byte) = data.first_mut() {
                *byte = 0x45;
            }
            if let Some(byte) = data.get_mut(9) {
                *byte = 17;
            }
            let _ = datagram(&packet(&data, wire_len));
        }
    }
}
