//! Recently read packets: the other lines of a feed carry the same bytes.

/// The packets that were received last, in the order of arrival, each with the result of reading
/// it.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    packets: Vec<(Vec<u8>, T)>,
    /// The place of the packet with each digest, or of another packet.
    index: Vec<u16>,
    /// The place of the next packet.
    next: usize,
}

/// The number of packets remembered: more than lines are apart.
const PLACES: usize = 256;
/// The size of the index, in which two packets rarely have the same place.
const DIGESTS: usize = 16 * PLACES;
/// The longest packet remembered, in bytes: a line brings few longer ones before another line does.
const LONGEST: usize = 2048;

impl<T: Copy + Default> Recent<T> {
    pub(crate) fn new() -> Self {
        let place = || (Vec::with_capacity(LONGEST), T::default());
        Self {
            packets: std::iter::repeat_with(place).take(PLACES).collect(),
            index: vec![0; DIGESTS],
            next: 0,
        }
    }

    fn digest(packet: &[u8]) -> usize {
        let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |b| u64::from_le_bytes(*b));
        let ends = word(packet.first_chunk()) ^ word(packet.last_chunk()).rotate_left(29);
        let mixed = (ends ^ packet.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % DIGESTS
    }

    /// Returns the result of a packet with the same bytes.
    pub(crate) fn find(&self, packet: &[u8]) -> Option<T> {
        let place = *self.index.get(Self::digest(packet))?;
        let (bytes, learned) = self.packets.get(usize::from(place))?;
        (!packet.is_empty() && bytes == packet).then_some(*learned)
    }

    /// Remembers a packet in the place of the oldest one.
    pub(crate) fn keep(&mut self, packet: &[u8], learned: T) {
        if packet.len() > LONGEST {
            return;
        }
        let next = self.next;
        self.next = (next + 1) % PLACES;
        let index = self.index.get_mut(Self::digest(packet));
        let (Some(place), Some(index)) = (self.packets.get_mut(next), index) else {
            return;
        };
        *index = next as u16;
        place.0.clear();
        place.0.extend_from_slice(packet);
        place.1 = learned;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packets_are_known_and_no_others() {
        let packet = |n: u32| [[9; 8], (u64::from(n) << 3).to_le_bytes()].concat();
        let mut recent = Recent::new();
        for n in 0..5000 {
            assert_eq!(recent.find(&packet(n)), None);
            recent.keep(&packet(n), n);
            assert_eq!(recent.find(&packet(n)), Some(n));
        }
        // A later packet may have taken the place in the index.
        let known = |range: std::ops::Range<u32>| {
            let found = range.filter(|n| recent.find(&packet(*n)).is_some());
            found
                .inspect(|n| assert_eq!(recent.find(&packet(*n)), Some(*n)))
                .count()
        };
        assert_eq!(known(0..5000 - PLACES as u32), 0);
        assert!(known(5000 - PLACES as u32..5000) > PLACES * 9 / 10);
        recent.keep(&[7; LONGEST + 1], 1);
        assert_eq!(
            (recent.find(&[7; LONGEST + 1]), recent.find(&[])),
            (None, None)
        );
    }
}
