//! Packets that could not be read, and the messages that are missing because of them.

use super::{Course, Turn};
use crate::event::Event;
use fanfare_feed::Refusal;
use fanfare_feed::channel::{BadPacket, Fault};
use fanfare_feed::serial::extend;

impl Course {
    /// Records that a packet, or the rest of it, could not be decoded.
    pub(super) fn bad(&mut self, now: u64, bad: &BadPacket, send: &mut impl FnMut(&Event)) {
        if bad.fault == Fault::Refused(Refusal::Stale) {
            // A straggler of the run before is not of the numbers that are awaited.
            return;
        }
        self.stats.bad += 1;
        let Some(next) = self.next else {
            return;
        };
        let sequence = bad.number.map(|number| extend(self.next, number));
        let begun = self.packet.filter(|_| bad.delivered > 0);
        match begun.filter(|packet| Some(packet.sequence) == sequence) {
            Some(packet) if packet.turn == Turn::Repeated => {}
            Some(packet) => self.lose_part(now, packet.sequence, send),
            // Without a number it is most likely the next one. If a message with that number
            // arrives, it counts as late.
            None => {
                if sequence.is_none() {
                    self.assumed.get_or_insert(next);
                }
                self.lose_up_to(now, sequence.unwrap_or(next) + 1, send);
            }
        }
    }

    /// Takes back the messages behind this one of the lines that are missing only because packets
    /// without a number could not be read. The lines bring messages in order, so those packets were
    /// not of the channel. The messages in front of this one are requested again, as the replay may
    /// not have had them yet.
    #[cold]
    pub(in crate::follower) fn take_back(&mut self, number: u32, send: &mut impl FnMut(&Event)) {
        let (Some(from), Some(next)) = (self.assumed, self.next) else {
            return;
        };
        let sequence = extend(self.next, number);
        if sequence < from {
            // It comes again.
            return;
        }
        self.assumed = None;
        if let Some(replay) = &mut self.replay {
            replay.ask_again(from);
        }
        // A replay may have brought some of them.
        let last = self.market.missing().ranges().last();
        let sent = last.filter(|last| last.end == next);
        let end = sent.map_or(next, |last| last.start.max(sequence + 1));
        if end < next {
            self.next = Some(end);
            self.market.take_back(end, send);
        }
    }

    /// Returns whether messages are missing only because packets could not be read.
    #[inline]
    pub(in crate::follower) const fn has_assumed(&self) -> bool {
        self.assumed.is_some()
    }

    /// Records that a part of the last packet is missing. It stays missing for the edges too.
    pub(super) fn lose_part(&mut self, now: u64, sequence: u64, send: &mut impl FnMut(&Event)) {
        if let Some(steps) = &mut self.steps {
            steps.cut(sequence as u32);
        }
        if let Some(packet) = &mut self.packet {
            packet.is_whole = false;
        }
        self.note_part();
        self.market.gap(now, sequence..sequence + 1, send);
    }
}
