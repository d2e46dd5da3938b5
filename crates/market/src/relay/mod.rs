//! A feed's messages as events, from the plant that receives it to edges that do not.
//!
//! A plant that follows a feed keeps [`Steps`]: what each message of the channel was mapped to,
//! with the number of the message, in front of any book. An [`Edge`] takes the steps of one or
//! several plants as an arbiter takes lines, and applies what comes in turn to a
//! [`Market`](crate::Market) of its own: the identity of a change is the feed's number, whichever
//! plant brings it. A plant that dies costs an edge nothing while another one lives.
//!
//! Pictures of the instruments ([`Pictures`]) bring back an edge that comes late, or that has lost
//! something.

mod edge;
mod pictures;
#[cfg(test)]
mod tests;

pub use edge::{Edge, EdgeConfig, EdgeStats, Relayed};
pub use pictures::Pictures;

use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::state;
use fanfare_feed::recovery::{Lack, State};

/// What a [`Step`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// The events of a message of the channel.
    Changes = 1,
    /// A picture in the channel itself, as of the message `last`.
    Picture = 2,
    /// Events of a message without a number, or of a snapshot line.
    Unnumbered = 3,
    /// The channel begins anew with this number.
    Reset = 4,
    /// The lines of the plant fell silent (1) or are heard (0).
    Silence = 5,
    /// The last message of the channel so far has this number.
    Position = 6,
    /// The plant makes something else of messages from here on.
    Remapped = 7,
}

impl What {
    const ALL: [Self; 7] = [
        Self::Changes,
        Self::Picture,
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
        matches!(self, Self::Changes | Self::Picture)
    }
}

/// One step of a feed. Its events stand beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When the message arrived, in nanoseconds since 1970-01-01 UTC.
    pub received: u64,
    /// MsgSeqNum(34) of the message, the number of its packet, or another number by [`What`].
    pub number: u32,
    /// LastMsgSeqNumProcessed(369) of a picture.
    pub last: u32,
    /// How many events it has.
    pub events: u32,
    /// What it is.
    pub what: What,
}

impl Step {
    /// Bytes of a step.
    pub const SIZE: usize = 24;

    /// Returns a step without events.
    const fn new(what: What, number: u32, received: u64) -> Self {
        Self {
            received,
            number,
            last: 0,
            events: 0,
            what,
        }
    }

    /// Returns the step that the lines of the plant are silent, or are heard.
    #[must_use]
    pub fn silence(is_silent: bool) -> Self {
        Self::new(What::Silence, is_silent.into(), 0)
    }

    /// Returns the step that the last message of the channel has this number.
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
            u64::from(self.events) | (self.what as u64) << 32,
        ];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// The step that [`Self::to_bytes`] wrote; `None` if the bytes are none.
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
        })
    }
}

/// Steps of a feed with their events, in the order of the feed.
///
/// Steps of one number that follow each other are parts of one packet. Allocates for steps and
/// events beyond all that were there at a time before.
#[derive(Debug)]
pub struct Steps {
    steps: Vec<Step>,
    events: Vec<Event>,
    /// The packet with this number is not whole.
    cut: Option<u32>,
}

/// Room for the steps and events of a usual turn.
const STEPS: usize = 256;
const EVENTS: usize = 2_048;

impl Steps {
    /// Returns an empty list, with room for the steps of a usual turn.
    pub(crate) fn with_room() -> Self {
        Self {
            steps: Vec::with_capacity(STEPS),
            events: Vec::with_capacity(EVENTS),
            cut: None,
        }
    }

    /// True if there is nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.events.clear();
    }

    /// Returns all events, in the order of their steps.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Adds a step, with its events behind those that are there.
    pub fn push(&mut self, step: Step, events: &[Event]) {
        self.steps.push(Step {
            events: u32::try_from(events.len()).unwrap_or(u32::MAX),
            ..step
        });
        self.events.extend_from_slice(events);
    }

    /// Calls `each` with the steps and their events in parts of about `most` events; a packet is
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

    /// Returns a mark with which [`Self::cut`] removes what follows.
    pub(crate) const fn mark(&self) -> (usize, usize) {
        (self.steps.len(), self.events.len())
    }

    /// Removes the steps behind this mark, with the whole packet that they are of.
    pub(crate) fn cut(&mut self, (steps, events): (usize, usize)) {
        self.cut = self.steps.get(steps).map(|step| step.number);
        self.steps.truncate(steps);
        self.events.truncate(events);
        while let Some(last) = self.steps.last()
            && last.what.is_numbered()
            && Some(last.number) == self.cut
        {
            let left = self.events.len() - last.events as usize;
            self.events.truncate(left);
            self.steps.pop();
        }
    }

    fn add(&mut self, step: Step, events: &[Event]) {
        if self.cut != Some(step.number) {
            self.cut = None;
            self.push(step, events);
        }
    }

    pub(crate) fn changes(&mut self, number: u32, received: u64, events: &[Event]) {
        self.add(Step::new(What::Changes, number, received), events);
    }

    pub(crate) fn picture(&mut self, number: u32, received: u64, last: u32, events: &[Event]) {
        let step = Step::new(What::Picture, number, received);
        self.add(Step { last, ..step }, events);
    }

    pub(crate) fn unnumbered(&mut self, received: u64, events: &[Event]) {
        self.push(Step::new(What::Unnumbered, 0, received), events);
    }

    /// The message before lacks a change of this instrument.
    pub(crate) fn fault(&mut self, instrument: InstrumentId) {
        let fault = Event {
            instrument,
            flags: Flags::LAST,
            ..state::to_event(State::Recovering(Lack::PictureAfterFault))
        };
        if let Some(last) = self.steps.last_mut() {
            last.events += 1;
            self.events.push(fault);
        }
    }

    pub(crate) fn reset(&mut self, next: u32) {
        self.push(Step::new(What::Reset, next, 0), &[]);
    }

    pub(crate) fn remapped(&mut self) {
        self.push(Step::new(What::Remapped, 0, 0), &[]);
    }

    pub(crate) fn silence(&mut self, is_silent: bool) {
        self.push(Step::silence(is_silent), &[]);
    }
}

/// Returns the steps of one packet after the other.
fn packets(steps: &[Step]) -> impl Iterator<Item = &[Step]> {
    steps.chunk_by(|a, b| a.what.is_numbered() && b.what.is_numbered() && a.number == b.number)
}

/// Returns whether an event says that its message lacks a change of the instrument.
fn is_fault(event: &Event) -> bool {
    event.kind == Kind::State
}
