//! The UDP datagram in a captured packet.

use etherparse::{Ipv4Header, UdpHeader, UdpSlice, ip_number};
use std::io;
use std::net::SocketAddrV4;

use crate::ip::{Carried, Endpoint, NoSegment, carried};
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
/// [`NoSegment`] with the kind of the packet; a datagram that was sent in fragments is
/// [`NoSegment::Fragment`].
pub fn datagram<'a>(packet: &Packet<'a>) -> Result<Datagram<'a>, NoSegment> {
    let Carried {
        source,
        destination,
        bytes,
        cut,
    } = carried(packet, ip_number::UDP)?;
    let udp = UdpSlice::from_slice_lax(bytes).map_err(|_| NoSegment::Malformed)?;
    let on_wire = bytes.len() + cut;
    // Zero is written for datagrams that the card splits: the length of the packet applies.
    let len = match usize::from(udp.length()) {
        0 => on_wire,
        len if (HEADER..=on_wire).contains(&len) => len,
        _ => return Err(NoSegment::Malformed),
    };
    let payload = udp.payload();
    let end = |ip, port| Endpoint { ip, port };
    Ok(Datagram {
        source: end(source, udp.source_port()),
        destination: end(destination, udp.destination_port()),
        payload,
        cut: len - HEADER - payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
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
        for len in 0..28 {
            assert_eq!(error(&whole[..len]), NoSegment::Malformed);
        }
        for length in [7, 13] {
            let mut wrong = ip(b"FAST");
            wrong[25] = length;
            assert_eq!(error(&wrong), NoSegment::Malformed, "length {length}");
        }
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
