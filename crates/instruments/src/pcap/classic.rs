//! Classic pcap: a header of 24 bytes, then packets after 16 bytes each.

use std::io::{self, Read};

use super::input::Input;
use super::{End, LinkType, MAX_PACKET, Order, PcapError, Step};

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The format that the magic number identifies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flavour {
    order: Order,
    /// Nanoseconds in one unit of the stamp's fraction: 1,000 or 1.
    unit: u64,
}

impl Flavour {
    pub(super) fn of(magic: [u8; 4]) -> Option<Self> {
        let (order, unit) = match magic {
            [0xd4, 0xc3, 0xb2, 0xa1] => (Order::Little, 1_000),
            [0xa1, 0xb2, 0xc3, 0xd4] => (Order::Big, 1_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Order::Little, 1),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Order::Big, 1),
            _ => return None,
        };
        Some(Self { order, unit })
    }
}

pub(super) struct Header {
    flavour: Flavour,
    link: LinkType,
}

impl Header {
    pub(super) fn read<R: Read>(input: &mut Input<R>, flavour: Flavour) -> Result<Self, PcapError> {
        let have = input.fill(FILE_HEADER)?;
        if have < FILE_HEADER {
            return Err(PcapError::CutOffHeader(have));
        }
        let (order, bytes) = (flavour.order, input.bytes());
        let (major, minor) = (order.u16(bytes, 4), order.u16(bytes, 6));
        if major != 2 {
            return Err(PcapError::Version(major, minor));
        }
        // The upper half of the link type holds flags about a frame check sequence.
        let link = LinkType((order.u32(bytes, 20) & 0xffff) as u16);
        input.take(FILE_HEADER);
        Ok(Self { flavour, link })
    }

    pub(super) fn step<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Step> {
        let offset = input.offset();
        let have = input.fill(PACKET_HEADER)?;
        if have < PACKET_HEADER {
            let end = if have == 0 {
                End::Complete
            } else {
                End::CutOff { offset }
            };
            return Ok(Step::End(end));
        }
        let (order, bytes) = (self.flavour.order, input.bytes());
        let (secs, fraction) = (order.u32(bytes, 0), order.u32(bytes, 4));
        let (len, wire_len) = (order.u32(bytes, 8) as usize, order.u32(bytes, 12));
        if len > MAX_PACKET {
            let why = "a packet longer than 1 MiB";
            return Ok(Step::End(End::Damaged { offset, why }));
        }
        let nanos = u64::from(fraction) * self.flavour.unit;
        if nanos >= 1_000_000_000 {
            let why = "a time stamp whose fraction is more than a second";
            return Ok(Step::End(End::Damaged { offset, why }));
        }
        if input.fill(PACKET_HEADER + len)? < PACKET_HEADER + len {
            return Ok(Step::End(End::CutOff { offset }));
        }
        input.take(PACKET_HEADER + len);
        let time = Some(u64::from(secs) * 1_000_000_000 + nanos);
        Ok(Step::Packet {
            time,
            link: self.link,
            start: PACKET_HEADER,
            len,
            wire_len,
        })
    }
}
