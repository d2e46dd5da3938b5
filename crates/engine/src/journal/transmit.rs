//! The parts of a journal that wait for transmission.

use std::collections::VecDeque;
use std::ops::Range;

/// The segment number of a stretch of [`Transmit::secrets`].
pub(super) const SECRET: u64 = u64::MAX - 1;

/// Stretches of messages to be transmitted, in order. Adjacent ones are merged, so there is usually
/// one.
pub(super) struct Transmit {
    /// Messages with secrets, which are not in a segment, until all of them are transmitted.
    secrets: Vec<u8>,
    /// Stretches that may be transmitted.
    ready: VecDeque<Stretch>,
    /// Stretches that may be transmitted once they are on the disk.
    held: VecDeque<Stretch>,
    len: usize,
}

/// The segment number of a stretch of the journal's side buffer.
pub(super) const SIDE: u64 = u64::MAX;

/// Bytes of one segment, or of the side buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) segment: u64,
    pub(super) range: Range<u32>,
}

impl Transmit {
    pub(super) fn new() -> Self {
        Self {
            secrets: Vec::new(),
            ready: VecDeque::with_capacity(16),
            held: VecDeque::with_capacity(16),
            len: 0,
        }
    }

    /// Returns the number of bytes that wait, held ones included.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Adds a message at the end; `held` until the next [`release`](Self::release). An empty
    /// message is ignored.
    pub(super) fn push(&mut self, segment: u64, range: Range<u32>, held: bool) {
        // An empty stretch at the front would hide those after it.
        if range.is_empty() {
            return;
        }
        self.len += range.len();
        let queue = if held {
            &mut self.held
        } else {
            &mut self.ready
        };
        join(queue, Stretch { segment, range });
    }

    /// Adds a message that is in no segment, as it has secrets. Each logon has one.
    pub(super) fn push_secret(&mut self, message: &[u8], held: bool) {
        let start = self.secrets.len() as u32;
        self.secrets.extend_from_slice(message);
        self.push(SECRET, start..self.secrets.len() as u32, held);
    }

    /// Returns the bytes of a stretch that is [`SECRET`].
    pub(super) fn secret(&self, stretch: &Stretch) -> &[u8] {
        let range = stretch.range.start as usize..stretch.range.end as usize;
        self.secrets.get(range).unwrap_or(&[])
    }

    /// Overwrites and discards secrets when none of them waits.
    fn forget_secrets(&mut self) {
        let mut all = self.ready.iter().chain(&self.held);
        if !self.secrets.is_empty() && !all.any(|stretch| stretch.segment == SECRET) {
            self.secrets.fill(0);
            self.secrets.clear();
        }
    }

    /// Permits the transmission of held stretches.
    pub(super) fn release(&mut self) {
        for stretch in self.held.drain(..) {
            join(&mut self.ready, stretch);
        }
    }

    /// Returns whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }

    pub(super) fn front(&self) -> Option<&Stretch> {
        self.ready.front()
    }

    /// Removes the first `count` bytes.
    pub(super) fn consume(&mut self, mut count: usize) {
        while let Some(front) = self.ready.front_mut() {
            let taken = count.min(front.range.len());
            front.range.start += taken as u32;
            self.len -= taken;
            count -= taken;
            if !front.range.is_empty() {
                break;
            }
            self.ready.pop_front();
        }
        self.forget_secrets();
    }

    pub(super) fn clear(&mut self) {
        self.ready.clear();
        self.held.clear();
        self.len = 0;
        self.forget_secrets();
    }

    /// Returns whether bytes of this segment, or of an earlier one, still wait.
    pub(super) fn reaches_into(&self, segment: u64) -> bool {
        self.ready
            .iter()
            .chain(&self.held)
            .any(|stretch| stretch.segment <= segment)
    }
}

fn join(queue: &mut VecDeque<Stretch>, next: Stretch) {
    match queue.back_mut() {
        Some(last) if last.segment == next.segment && last.range.end == next.range.start => {
            last.range.end = next.range.end;
        }
        _ => queue.push_back(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_message_hides_nothing() {
        let mut transmit = Transmit::new();
        transmit.push(1, 0..0, false);
        transmit.push(1, 1..2, false);
        let waits = Stretch {
            segment: 1,
            range: 1..2,
        };
        assert_eq!(transmit.front(), Some(&waits));
    }

    #[test]
    fn neighbours_join_and_go_in_order() {
        let mut transmit = Transmit::new();
        transmit.push(1, 0..10, false);
        transmit.push(1, 10..15, false);
        transmit.push(1, 20..25, false);
        transmit.push(2, 0..5, true);
        assert_eq!(
            transmit.front(),
            Some(&Stretch {
                segment: 1,
                range: 0..15
            })
        );
        assert_eq!(transmit.len(), 25);
        transmit.consume(12);
        assert_eq!(
            transmit.front(),
            Some(&Stretch {
                segment: 1,
                range: 12..15
            })
        );
        transmit.consume(8);
        assert_eq!(transmit.front(), None, "the last part is held");
        assert!(transmit.reaches_into(2) && !transmit.reaches_into(1));
        transmit.release();
        assert_eq!(
            transmit.front(),
            Some(&Stretch {
                segment: 2,
                range: 0..5
            })
        );
        transmit.clear();
        assert_eq!(transmit.len(), 0);
    }
}
