//! Packets that were decoded and wait for their turn.

use super::packet::Packet;
use crate::hold::Ticket;

/// Messages that are kept decoded at most; of further packets that wait only the bytes are kept.
const MOST: usize = 16_384;

/// Decoded packets, in the places in which the arbiter has their bytes.
#[derive(Debug, Default)]
pub(super) struct Kept {
    places: Vec<Option<(Ticket, Packet)>>,
    spare: Vec<Packet>,
    messages: usize,
}

impl Kept {
    /// Keeps the packet in hand, which becomes another one; without `limit` however many there are.
    pub(super) fn put(&mut self, ticket: Ticket, hand: &mut Packet, limit: bool) {
        self.free(ticket.slot());
        if limit && self.messages + hand.len() > MOST {
            return;
        }
        let packet = std::mem::replace(hand, self.spare.pop().unwrap_or_default());
        self.messages += packet.len();
        if self.places.len() <= ticket.slot() {
            self.places.resize_with(ticket.slot() + 1, || None);
        }
        if let Some(place) = self.places.get_mut(ticket.slot()) {
            *place = Some((ticket, packet));
        }
    }

    /// Takes the packet with this ticket in hand; whether it is there.
    pub(super) fn take(&mut self, ticket: Ticket, hand: &mut Packet) -> bool {
        let place = self.places.get_mut(ticket.slot());
        let Some((found, packet)) = place.and_then(Option::take) else {
            return false;
        };
        self.messages -= packet.len();
        if found != ticket {
            self.spare.push(packet);
            return false;
        }
        self.spare.push(std::mem::replace(hand, packet));
        true
    }

    /// A unit that had this place before is gone, and was never asked for.
    fn free(&mut self, slot: usize) {
        if let Some((_, packet)) = self.places.get_mut(slot).and_then(Option::take) {
            self.messages -= packet.len();
            self.spare.push(packet);
        }
    }
}
