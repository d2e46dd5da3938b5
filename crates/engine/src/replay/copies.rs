//! The packets of a response that its service sends twice.

/// Recognises the copies of packets. A service that sends each packet twice also sends its Logon(A)
/// twice, which is the first packet of a connection. From then on packets come in pairs: two equal
/// messages in packets of their own are four packets, and two packets of any other service.
#[derive(Debug, Default)]
pub(super) struct Copies {
    next: Next,
    /// The packet whose copy is next.
    packet: Vec<u8>,
}

#[derive(Debug, Default)]
enum Next {
    /// A packet, whose copy may follow.
    #[default]
    Packet,
    Copy,
    /// A packet of a service that sends each once.
    Single,
}

impl Copies {
    /// Returns whether a packet is the copy of the one before it. Behind a packet without its copy,
    /// there are no more of them.
    pub(super) fn is_copy(&mut self, packet: &[u8]) -> bool {
        match self.next {
            Next::Packet => {
                self.packet.clear();
                self.packet.extend_from_slice(packet);
                self.next = Next::Copy;
                false
            }
            Next::Copy if self.packet == packet => {
                self.next = Next::Packet;
                true
            }
            Next::Copy => {
                (self.next, self.packet) = (Next::Single, Vec::new());
                false
            }
            Next::Single => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the packets, of a byte each, that are no copies.
    fn left(packets: &str) -> String {
        let mut copies = Copies::default();
        let left = packets.chars().filter(|packet| {
            let mut room = [0; 4];
            !copies.is_copy(packet.encode_utf8(&mut room).as_bytes())
        });
        left.collect()
    }

    #[test]
    fn only_pairs_from_the_first_packet_on_are_copies() {
        assert_eq!(left("LLaabbbbcc"), "Labbc");
        assert_eq!(left("Laabbbb"), "Laabbbb", "each is sent once");
        assert_eq!(left("LLaabccdd"), "Labccdd", "one has no copy");
    }
}
