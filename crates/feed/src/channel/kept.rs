//! Decoded packets that wait, as dictionaries outlive packets.

use super::packet::Packet;
use crate::hold::Ticket;

/// Decoded packets, at the places where the arbiter has their bytes.
#[derive(Debug, Default)]
pub(super) struct Kept {
    places: Vec<Option<(Ticket, Packet)>>,
    spare: Vec<Packet>,
}

impl Kept {
    /// Stores the packet in hand, which becomes another one.
    pub(super) fn put(&mut self, ticket: Ticket, hand: &mut Packet) {
        self.free(ticket.slot());
        let packet = std::mem::replace(hand, self.spare.pop().unwrap_or_default());
        if self.places.len() <= ticket.slot() {
            self.places.resize_with(ticket.slot() + 1, || None);
        }
        if let Some(place) = self.places.get_mut(ticket.slot()) {
            *place = Some((ticket, packet));
        }
    }

    /// Takes the packet with this ticket in hand; returns whether it exists.
    pub(super) fn take(&mut self, ticket: Ticket, hand: &mut Packet) -> bool {
        let place = self.places.get_mut(ticket.slot());
        let Some((found, packet)) = place.and_then(Option::take) else {
            return false;
        };
        if found != ticket {
            self.spare.push(packet);
            return false;
        }
        self.spare.push(std::mem::replace(hand, packet));
        true
    }

    /// Frees the place of an earlier unit, which was never taken.
    fn free(&mut self, slot: usize) {
        if let Some((_, packet)) = self.places.get_mut(slot).and_then(Option::take) {
            self.spare.push(packet);
        }
    }
}
