//! The gateways of origin whose samples are merged.

/// The most origins that are remembered. The one silent for longest is forgotten. While samples of
/// as many wait, those of further ones have no Order.
pub(super) const MOST: usize = 256;

/// The origins, each in a slot of its own.
pub(super) struct Senders {
    known: Vec<Sender>,
    /// The number of samples of each origin that wait, by topic.
    left: Vec<u32>,
    topics: usize,
    clock: u64,
}

/// An origin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sender {
    name: u64,
    /// The largest Order delivered, or `None` before any.
    pub(super) last: Option<u64>,
    /// Whether the sample delivered last had a lower Order than one before it.
    pub(super) is_late: bool,
    /// The walk in which its samples are held.
    pub(super) held_in: u64,
    /// The number of its samples that wait, and the first time of those looked at.
    waiting: usize,
    first: Option<u64>,
    last_seen: u64,
}

impl Senders {
    pub(super) fn new(topics: usize) -> Self {
        Self {
            known: Vec::with_capacity(MOST),
            left: vec![0; MOST * topics],
            topics,
            clock: 0,
        }
    }

    /// Returns an origin, and the number of its samples that wait by topic.
    pub(super) fn get(&self, slot: u16) -> Option<(&Sender, &[u32])> {
        let slot = usize::from(slot);
        let left = self.left.get(slot * self.topics..);
        let left = left.and_then(|left| left.get(..self.topics));
        self.known.get(slot).zip(left)
    }

    /// Adds a sample to those that wait. Returns the slot of its origin, or `None` if samples of
    /// too many origins wait.
    pub(super) fn enter(&mut self, name: u64, topic: usize) -> Option<u16> {
        let slot = self.slot(name)?;
        self.clock += 1;
        let sender = self.known.get_mut(slot)?;
        sender.waiting += 1;
        sender.last_seen = self.clock;
        *self.left.get_mut(slot * self.topics + topic)? += 1;
        u16::try_from(slot).ok()
    }

    fn slot(&mut self, name: u64) -> Option<usize> {
        let new = Sender {
            name,
            ..Sender::default()
        };
        if let Some(slot) = self.known.iter().position(|own| own.name == name) {
            return Some(slot);
        }
        if self.known.len() < MOST {
            self.known.push(new);
            return Some(self.known.len() - 1);
        }
        let idle = self.known.iter_mut().enumerate();
        let idle = idle.filter(|(_, own)| own.waiting == 0);
        let (slot, oldest) = idle.min_by_key(|(_, own)| own.last_seen)?;
        *oldest = new;
        Some(slot)
    }

    /// Begins to look at the times of the samples that wait.
    pub(super) fn forget_times(&mut self) {
        self.known.iter_mut().for_each(|own| own.first = None);
    }

    /// Returns the first of the times of an origin's samples that were looked at, with this one.
    pub(super) fn first_time(&mut self, slot: u16, time: u64) -> u64 {
        let Some(sender) = self.known.get_mut(usize::from(slot)) else {
            return time;
        };
        let first = sender.first.map_or(time, |first| first.min(time));
        sender.first = Some(first);
        first
    }

    /// Holds the samples of an origin for the rest of a walk.
    pub(super) fn hold(&mut self, slot: u16, walk: u64) {
        if let Some(sender) = self.known.get_mut(usize::from(slot)) {
            sender.held_in = walk;
        }
    }

    /// Records that a sample no longer waits, and whether it was late, if it was delivered.
    pub(super) fn note(&mut self, slot: u16, topic: usize, order: u64, is_late: Option<bool>) {
        let slot = usize::from(slot);
        if let Some(left) = self.left.get_mut(slot * self.topics + topic) {
            *left -= 1;
        }
        if let Some(sender) = self.known.get_mut(slot) {
            sender.waiting -= 1;
            sender.last = sender.last.max(Some(order));
            sender.is_late = is_late.unwrap_or(sender.is_late);
        }
    }
}
