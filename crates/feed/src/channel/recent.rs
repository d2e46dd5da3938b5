//! Packets read lately: the other lines of a feed carry the same bytes.

use super::packet::PacketNumbers;

/// The numbers of packets read lately, each in a place that depends on its bytes.
#[derive(Debug)]
pub(super) struct Recent {
    packets: Vec<Place>,
}

/// A packet, its numbers, and whether it could be decoded to its end.
#[derive(Debug)]
struct Place {
    bytes: Vec<u8>,
    numbers: PacketNumbers,
    is_whole: bool,
}

/// How many packets are remembered; a power of two.
const PLACES: usize = 256;
/// The longest packet that is remembered, bytes. A line brings few longer ones before the other
/// line does.
const LONGEST: usize = 2048;

impl Recent {
    pub(super) fn new() -> Self {
        let place = || Place {
            bytes: Vec::with_capacity(LONGEST),
            numbers: PacketNumbers::default(),
            is_whole: true,
        };
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

    /// The numbers of the same bytes, and whether they could be decoded to their end.
    pub(super) fn find(&self, packet: &[u8]) -> Option<(PacketNumbers, bool)> {
        let place = self.packets.get(Self::place(packet))?;
        let is_known = !packet.is_empty() && place.bytes == packet;
        is_known.then_some((place.numbers, place.is_whole))
    }

    /// Remembers a packet in the place of another one.
    pub(super) fn keep(&mut self, packet: &[u8], numbers: PacketNumbers, is_whole: bool) {
        let place = self.packets.get_mut(Self::place(packet));
        if let Some(place) = place.filter(|_| packet.len() <= LONGEST) {
            place.bytes.clear();
            place.bytes.extend_from_slice(packet);
            place.numbers = numbers;
            place.is_whole = is_whole;
        }
    }
}
