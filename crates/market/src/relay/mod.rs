//! The relay of a feed's messages as events, from the plant that receives it to edges that do not.
//!
//! A plant that follows a feed keeps [`Steps`]: the mapped events of each message of the channel
//! with its number, before any book. An [`Edge`] arbitrates the steps of one or several plants like
//! lines, and applies those in sequence to a [`Market`](crate::Market) of its own. A change is
//! identified by the feed's number, whichever plant delivers it. An edge loses nothing when a plant
//! dies while another one lives that knows the same instruments.
//!
//! Snapshots of the instruments ([`Snapshots`]) restore an edge that joins late, or that has lost
//! something.

mod ahead;
mod coverage;
mod early;
mod edge;
mod election;
mod plant;
mod restarts;
mod snapshots;
#[cfg(test)]
mod tests;
mod types;

pub use edge::Edge;
pub use snapshots::Snapshots;
pub use types::{EdgeConfig, EdgeStats, Relayed};

use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::state;
use fanfare_feed::recovery::{Lack, State};

/// The kind of a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// The events of a message of the channel.
    Changes = 1,
    /// A snapshot in the channel itself, as of the message `last`.
    Snapshot = 2,
    /// Events of a message without a number, or of a snapshot line.
    Unnumbered = 3,
    /// The channel restarts with this number.
    Reset = 4,
    /// The lines of the plant fell silent (1) or are heard (0).
    Silence = 5,
    /// The last message of the channel so far has this number.
    Position = 6,
    /// The plant maps messages differently from here on.
    Remapped = 7,
}

impl What {
    const ALL: [Self; 7] = [
        Self::Changes,
        Self::Snapshot,
        Self::Unnumbered,
        Self::Reset,
        Self::Silence,
        Self::Position,
        Self::Remapped,
    ];

    /// Returns the kind of this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Returns whether the step is a part of a message with a number.
    const fn is_numbered(self) -> bool {
        matches!(self, Self::Changes | Self::Snapshot)
    }
}

/// The number of restarts of the channel at a plant, and of changes of its mapping. Both numbers
/// wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Turns {
    restarts: u16,
    mappings: u16,
}

/// One step of a feed. Its events are stored separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time at which the message arrived, in nanoseconds since 1970-01-01 UTC.
    pub received: u64,
    /// MsgSeqNum(34) of the message, the number of its packet, or another number by [`What`].
    pub number: u32,
    /// LastMsgSeqNumProcessed(369) of a snapshot. In another step, the counts of restarts and of
    /// changes of the mapping at the plant, which show an edge that such a step was lost.
    pub last: u32,
    /// The number of its events.
    pub events: u32,
    /// The kind of the step.
    pub what: What,
    /// Whether the plant received the message after later ones.
    pub is_late: bool,
}

impl Step {
    /// The bytes of a step.
    pub const SIZE: usize = 24;

    /// Returns a step without events.
    const fn new(what: What, number: u32, received: u64) -> Self {
        Self {
            received,
            number,
            last: 0,
            events: 0,
            what,
            is_late: false,
        }
    }

    /// Returns what a step that is no snapshot has in `last`.
    const fn turns(&self) -> Turns {
        Turns {
            restarts: (self.last >> 16) as u16,
            mappings: self.last as u16,
        }
    }

    /// Returns the step for lines of the plant that are silent, or are heard.
    #[must_use]
    pub fn silence(is_silent: bool) -> Self {
        Self::new(What::Silence, is_silent.into(), 0)
    }

    /// Returns the step for the position of the channel after the message of this number.
    #[must_use]
    pub const fn position(number: u32) -> Self {
        Self::new(What::Position, number, 0)
    }

    /// Returns the step as bytes, integers least significant byte first. Allocates nothing.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let words = [
            self.received,
            u64::from(self.number) | u64::from(self.last) << 32,
            u64::from(self.events) | (self.what as u64) << 32 | u64::from(self.is_late) << 40,
        ];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// Returns the step that [`Self::to_bytes`] wrote, or `None` if the bytes are invalid.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let (numbers, rest) = (word(1)?, word(2)?);
        Some(Self {
            received: word(0)?,
            number: numbers as u32,
            last: (numbers >> 32) as u32,
            events: rest as u32,
            what: What::from_number((rest >> 32) as u8)?,
            is_late: rest >> 40 & 1 == 1,
        })
    }
}

/// Steps of a feed with their events, in the order of the feed.
///
/// Consecutive steps of one number are parts of one packet. Allocates for steps and events beyond
/// the most stored before.
#[derive(Debug)]
pub struct Steps {
    steps: Vec<Step>,
    events: Vec<Event>,
    /// The number of a packet that is incomplete.
    cut: Option<u32>,
    /// Whether the packet came after later ones.
    is_late: bool,
    /// The restarts and other mappings so far.
    turns: Turns,
}

/// The initial capacity for the steps and events of a turn.
const STEPS: usize = 256;
const EVENTS: usize = 2_048;

impl Steps {
    /// Creates an empty list, with capacity for the steps of a usual turn.
    pub(crate) fn with_room() -> Self {
        Self {
            steps: Vec::with_capacity(STEPS),
            events: Vec::with_capacity(EVENTS),
            cut: None,
            is_late: false,
            turns: Turns::default(),
        }
    }

    /// Returns true if there are no steps.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns how often the channel has restarted. The count wraps.
    pub(crate) const fn restarts(&self) -> u16 {
        self.turns.restarts
    }

    /// Removes all steps.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.events.clear();
    }

    /// Returns all events, in the order of their steps.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Adds a step, with its events after the existing ones.
    pub fn push(&mut self, step: Step, events: &[Event]) {
        let Turns { restarts, mappings } = self.turns;
        let last = match step.what {
            What::Snapshot => step.last,
            _ => u32::from(restarts) << 16 | u32::from(mappings),
        };
        self.steps.push(Step {
            events: u32::try_from(events.len()).unwrap_or(u32::MAX),
            last,
            ..step
        });
        self.events.extend_from_slice(events);
    }

    /// Calls `each` with the steps and their events in parts of about `most` events. A packet is
    /// never divided.
    pub fn parts(&self, most: usize, mut each: impl FnMut(&[Step], &[Event])) {
        let (mut steps, mut events) = (&*self.steps, &*self.events);
        while !steps.is_empty() {
            let (mut count, mut len) = (0, 0);
            for packet in packets(steps) {
                let more: usize = packet.iter().map(|step| step.events as usize).sum();
                if count > 0 && len + more > most {
                    break;
                }
                (count, len) = (count + packet.len(), len + more);
            }
            let (part, rest) = steps.split_at(count);
            let (own, behind) = events.split_at(len.min(events.len()));
            each(part, own);
            (steps, events) = (rest, behind);
        }
    }

    /// Removes the last packet, which has this number and is incomplete. Steps that are added to it
    /// are ignored.
    pub(crate) fn cut(&mut self, number: u32) {
        self.cut = Some(number);
        while let Some(last) = self.steps.last()
            && last.what.is_numbered()
            && Some(last.number) == self.cut
        {
            let left = self.events.len() - last.events as usize;
            self.events.truncate(left);
            self.steps.pop();
        }
    }

    /// Notes that the next step may be the first of a packet, or of one that comes again. `is_late`
    /// is whether the packet comes after later ones.
    pub(crate) const fn begin_packet(&mut self, is_late: bool) {
        (self.cut, self.is_late) = (None, is_late);
    }

    fn add(&mut self, step: Step, events: &[Event]) {
        if self.cut != Some(step.number) {
            self.cut = None;
            let is_late = self.is_late;
            self.push(Step { is_late, ..step }, events);
        }
    }

    pub(crate) fn changes(&mut self, number: u32, received: u64, events: &[Event]) {
        self.add(Step::new(What::Changes, number, received), events);
    }

    pub(crate) fn snapshot(&mut self, number: u32, received: u64, last: u32, events: &[Event]) {
        let step = Step::new(What::Snapshot, number, received);
        self.add(Step { last, ..step }, events);
    }

    pub(crate) fn unnumbered(&mut self, received: u64, events: &[Event]) {
        self.push(Step::new(What::Unnumbered, 0, received), events);
    }

    /// Records that the previous message lacks a change of this instrument.
    pub(crate) fn fault(&mut self, instrument: InstrumentId) {
        let fault = Event {
            instrument,
            flags: Flags::LAST,
            ..state::to_event(State::Recovering(Lack::SnapshotAfterFault))
        };
        if self.cut.is_none()
            && let Some(last) = self.steps.last_mut()
        {
            last.events += 1;
            self.events.push(fault);
        }
    }

    pub(crate) fn reset(&mut self, next: u32) {
        self.turns.restarts = self.turns.restarts.wrapping_add(1);
        self.push(Step::new(What::Reset, next, 0), &[]);
    }

    pub(crate) fn remapped(&mut self) {
        self.turns.mappings = self.turns.mappings.wrapping_add(1);
        self.push(Step::new(What::Remapped, 0, 0), &[]);
    }

    pub(crate) fn silence(&mut self, is_silent: bool) {
        self.push(Step::silence(is_silent), &[]);
    }
}

/// Returns the steps of each packet in order.
fn packets(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.chunk_by(|a, b| a.what.is_numbered() && b.what.is_numbered() && a.number == b.number)
}

/// Returns whether an event marks a lost change of the instrument in its message.
fn is_fault(event: &Event) -> bool {
    event.kind == Kind::State && !state::closes(event)
}
