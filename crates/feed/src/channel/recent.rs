//! Packets read lately: the other lines of a feed carry the same bytes.

use super::packet::PacketNumbers;

/// The numbers of packets read lately, each in a place that depends on its bytes.
#[derive(Debug)]
pub(super) struct Recent {
    packets: Vec<(Vec<u8>, PacketNumbers)>,
}

/// How many packets are remembered; a power of two.
const PLACES: usize = 256;
/// The longest packet that is remembered, bytes. A line brings few longer ones before the other
/// line does.
const LONGEST: usize = 2048;

impl Recent {
    pub(super) fn new() -> Self {
        let place = || (Vec::with_capacity(LONGEST), PacketNumbers::default());
        Self {
            packets: std::iter::repeat_with(place).take(PLACES).collect(),
        }
    }

    fn place(packet: &[u8]) -> usize {
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |b| u64::from_le_bytes(*b));
        let ends = word(packet.first_chunk()) ^ word(packet.last_chunk()).rotate_left(29);
        let mixed = (ends ^ packet.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % PLACES
    }

    /// The numbers of the same bytes.
    pub(super) fn find(&self, packet: &[u8]) -> Option<PacketNumbers> {
        let (bytes, numbers) = self.packets.get(Self::place(packet))?;
        (!packet.is_empty() && bytes == packet).then_some(*numbers)
    }

    /// Remembers a packet in the place of another one.
    pub(super) fn keep(&mut self, packet: &[u8], numbers: PacketNumbers) {
        let place = self.packets.get_mut(Self::place(packet));
        if let Some((bytes, kept)) = place.filter(|_| packet.len() <= LONGEST) {
            bytes.clear();
            bytes.extend_from_slice(packet);
            *kept = numbers;
        }
    }
}
