//! The format pcapng: sections of typed blocks; a packet names the interface that defines its link
//! type and time unit.

use std::io::{self, Read};

use super::input::Input;
use super::{End, LinkType, MAX_PACKET, Order, Step};

/// The type of a section header block, the same in both byte orders.
pub(super) const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// The length of type and length before a block's body.
const FRONT: usize = 8;
/// The largest block besides its packet data: fixed fields and options.
const MAX_BLOCK: usize = MAX_PACKET + (1 << 16);
/// The most interfaces; a file that names more is damaged.
const MAX_INTERFACES: usize = 4_096;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// The section being read: its byte order and the interfaces seen so far.
#[derive(Default)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: LinkType,
    snap_len: u32,
    resolution: Resolution,
    /// Seconds to add to each stamp.
    offset_secs: i64,
}

/// The length of one unit of a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// 10 to the power of minus this many seconds.
    Decimal(u32),
    /// 2 to the power of minus this many seconds.
    Binary(u32),
}

type Found = Result<Step, &'static str>;

impl Section {
    pub(super) fn step<R: Read>(&mut self, input: &mut Input<R>) -> io::Result<Step> {
        let offset = input.offset();
        let have = input.fill(FRONT + 4)?;
        if have < FRONT + 4 {
            let end = if have == 0 {
                End::Complete
            } else {
                End::CutOff { offset }
            };
            return Ok(Step::End(end));
        }
        let damaged = |why| Ok(Step::End(End::Damaged { offset, why }));
        if input.bytes().starts_with(&SECTION_HEADER) {
            match byte_order(input.bytes()) {
                Some(order) => {
                    *self = Self {
                        order,
                        interfaces: Vec::new(),
                    }
                }
                None => return damaged("a section header without the byte-order magic"),
            }
        }
        let kind = self.order.u32(input.bytes(), 0);
        let len = self.order.u32(input.bytes(), 4) as usize;
        if len < FRONT + 4 || !len.is_multiple_of(4) {
            return damaged("a block whose length is no multiple of four or too small");
        }
        if len > MAX_BLOCK {
            return damaged("a block longer than 1 MiB");
        }
        if input.fill(len)? < len {
            return Ok(Step::End(End::CutOff { offset }));
        }
        let block = input.bytes().get(..len).unwrap_or_default();
        if self.order.u32(block, len - 4) as usize != len {
            return damaged("a block whose two lengths differ");
        }
        match self.block(kind, block.get(FRONT..len - 4).unwrap_or_default()) {
            Ok(step) => {
                input.take(len);
                Ok(step)
            }
            Err(why) => damaged(why),
        }
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> Found {
        match kind {
            INTERFACE => self.interface(body),
            ENHANCED_PACKET => self.packet(body, self.order.u32(body, 0)),
            PACKET => self.packet(body, self.order.u16(body, 0).into()),
            SIMPLE_PACKET => self.simple_packet(body),
            _ => Ok(Step::Other),
        }
    }

    fn interface(&mut self, body: &[u8]) -> Found {
        if body.len() < 8 {
            return Err("an interface description that is too short");
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err("more than 4096 interfaces");
        }
        let order = self.order;
        let mut interface = Interface {
            link: LinkType(order.u16(body, 0)),
            snap_len: order.u32(body, 4),
            resolution: Resolution::Decimal(6),
            offset_secs: 0,
        };
        for (code, value) in options(order, body.get(8..).unwrap_or_default()) {
            match (code, value) {
                (OPTION_TSRESOL, [code]) => interface.resolution = Resolution::of(*code),
                (OPTION_TSOFFSET, _) if value.len() == 8 => {
                    let halves = [order.u32(value, 0), order.u32(value, 4)].map(i64::from);
                    let [low, high] = if order == Order::Little {
                        halves
                    } else {
                        [halves[1], halves[0]]
                    };
                    interface.offset_secs = (high << 32) | low;
                }
                _ => {}
            }
        }
        self.interfaces.push(interface);
        Ok(Step::Other)
    }

    /// Parses an enhanced packet block, or the packet block it replaced: they differ in the width
    /// of the interface number only.
    fn packet(&self, body: &[u8], interface: u32) -> Found {
        const FIXED: usize = 20;
        if body.len() < FIXED {
            return Err("a packet block that is too short");
        }
        let order = self.order;
        let interface = self
            .interfaces
            .get(interface as usize)
            .ok_or("a packet of an unknown interface")?;
        let stamp = (u64::from(order.u32(body, 4)) << 32) | u64::from(order.u32(body, 8));
        let len = order.u32(body, 12) as usize;
        if len > body.len() - FIXED {
            return Err("a packet longer than its block");
        }
        let time = interface.nanos(stamp).ok_or("a time stamp out of range")?;
        let (start, wire_len) = (FRONT + FIXED, order.u32(body, 16));
        Ok(Step::Packet {
            time: Some(time),
            link: interface.link,
            start,
            len,
            wire_len,
        })
    }

    fn simple_packet(&self, body: &[u8]) -> Found {
        let interface = self
            .interfaces
            .first()
            .ok_or("a packet of an unknown interface")?;
        let room = body
            .len()
            .checked_sub(4)
            .ok_or("a packet block that is too short")?;
        let wire_len = self.order.u32(body, 0);
        let snap_len = if interface.snap_len == 0 {
            u32::MAX
        } else {
            interface.snap_len
        };
        let len = wire_len.min(snap_len) as usize;
        if len > room {
            return Err("a packet longer than its block");
        }
        Ok(Step::Packet {
            time: None,
            link: interface.link,
            start: FRONT + 4,
            len,
            wire_len,
        })
    }
}

impl Resolution {
    fn of(code: u8) -> Self {
        let exponent = u32::from(code & 0x7f);
        if code & 0x80 == 0 {
            Self::Decimal(exponent)
        } else {
            Self::Binary(exponent)
        }
    }
}

impl Interface {
    /// Returns the stamp as nanoseconds since 1970, `None` if that exceeds `u64`.
    fn nanos(&self, stamp: u64) -> Option<u64> {
        let stamp = u128::from(stamp);
        let nanos = match self.resolution {
            Resolution::Decimal(e) if e <= 9 => stamp * 10_u128.pow(9 - e),
            Resolution::Decimal(e) => 10_u128.checked_pow(e - 9).map_or(0, |unit| stamp / unit),
            Resolution::Binary(e) => (stamp * 1_000_000_000) >> e.min(127),
        };
        let offset = i128::from(self.offset_secs) * 1_000_000_000;
        u64::try_from(i128::try_from(nanos).ok()? + offset).ok()
    }
}

fn byte_order(block: &[u8]) -> Option<Order> {
    const MAGIC: u32 = 0x1a2b_3c4d;
    [Order::Little, Order::Big]
        .into_iter()
        .find(|order| order.u32(block, 8) == MAGIC)
}

/// Returns the options at the end of a block, as (code, value), up to the first that does not fit.
fn options(order: Order, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (front, rest) = bytes.split_at_checked(4)?;
        let (code, len) = (order.u16(front, 0), usize::from(order.u16(front, 2)));
        let value = rest.get(..len)?;
        bytes = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        (code != 0).then_some((code, value))
    })
}
