//! The market of a feed that other plants receive.

mod finish;
mod snapshots;

use super::ahead::Ahead;
use super::coverage::Coverage;
use super::early::Early;
use super::election::Election;
use super::plant::Plant;
use super::restarts::{Past, Restarts};
use super::types::{EdgeConfig, EdgeStats};
use super::{Step, What, is_fault, packets};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::follower::{Course, FollowerConfig, Mapped};
use crate::instruments::{Change, Instrument, Instruments};
use crate::mapping::{Does, Outcome, Snapshot};
use crate::market::Market;
use crate::state;
use fanfare_feed::arbiter::{self, Arbiter, ArbiterStats, Unit, Verdict};
use fanfare_feed::recovery::{Lack, State};
use fanfare_feed::{Line, LineStats, channel, serial::is_before};
use std::collections::VecDeque;

/// The initial capacity for a packet, in bytes.
const UNIT: usize = 1 << 16;

/// The most plants remembered after they are gone.
const GONE: usize = 16;

/// A follower of a feed by the steps that one or several plants relay of it. See the module's text.
///
/// It is sans-I/O, takes times in nanoseconds, and is bounded by its configuration. Allocates for
/// instruments, and for queued packets beyond the most queued before.
#[derive(Debug)]
pub struct Edge {
    table: Instruments,
    course: Course,
    arbiter: Arbiter,
    plants: [Option<Plant>; Line::MAX],
    /// The origins of plants that are gone, the last one last, and what they had reported.
    gone: VecDeque<(u64, Option<Past>)>,
    coverage: Coverage,
    restarts: Restarts,
    election: Election,
    ahead: Ahead,
    early: Early,
    /// A buffer for an encoded packet.
    unit: Vec<u8>,
    /// A buffer for the events of a packet.
    events: Vec<Event>,
    stats: EdgeStats,
}

impl Edge {
    /// Creates an edge without plants. `table` has the instruments known in advance, and the limit.
    #[must_use]
    pub fn new(config: EdgeConfig, table: Instruments) -> Self {
        let mut course = Course::new(FollowerConfig {
            replay: None,
            ..config.follower
        });
        // Another plant may bring what one has lost.
        course.market.expect_late();
        Self {
            table,
            course,
            arbiter: Arbiter::new(config.arbiter),
            plants: Default::default(),
            gone: VecDeque::with_capacity(GONE),
            coverage: Coverage::default(),
            restarts: Restarts::new(),
            election: Election::default(),
            ahead: Ahead::default(),
            early: Early::default(),
            unit: Vec::with_capacity(UNIT),
            events: Vec::with_capacity(UNIT / Event::SIZE),
            stats: EdgeStats::default(),
        }
    }

    /// Returns the books and states.
    #[must_use]
    pub const fn market(&self) -> &Market {
        &self.course.market
    }

    /// Returns the instruments.
    #[must_use]
    pub const fn instruments(&self) -> &Instruments {
        &self.table
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> EdgeStats {
        self.stats
    }

    /// Returns the counters of its follower.
    #[cfg(test)]
    pub(super) const fn follower_stats(&self) -> crate::follower::FollowerStats {
        self.course.stats()
    }

    /// Returns the counters of its arbiter, whose lines are the plants.
    #[must_use]
    pub fn arbiter_stats(&self) -> ArbiterStats {
        self.arbiter.stats()
    }

    /// Returns the counters of the plant on this line.
    #[must_use]
    pub fn line(&self, line: Line) -> &LineStats {
        self.arbiter.line(line)
    }

    /// Returns the low 32 bits of MsgSeqNum(34) of the last message, or `None` before the first.
    #[must_use]
    pub fn last_number(&self) -> Option<u32> {
        self.course.last_number()
    }

    /// Returns the number of plants.
    #[must_use]
    pub fn plants(&self) -> usize {
        self.plants.iter().flatten().count()
    }

    /// Returns whether the plant with this origin is one of them.
    #[must_use]
    pub fn has_plant(&self, origin: u64) -> bool {
        self.place_of(origin).is_some()
    }

    /// Returns the number of instruments that other plants know and the leading one does not. They
    /// recover until it does.
    #[must_use]
    pub fn lacking(&self) -> u32 {
        self.coverage.lacking(self.election.leader())
    }

    fn place_of(&self, origin: u64) -> Option<usize> {
        let has = |plant: &Option<Plant>| plant.as_ref().is_some_and(|own| own.origin == origin);
        self.plants.iter().position(has)
    }

    /// Passes on the state of an instrument again: see [`Market::show`].
    pub fn show(&mut self, ts_recv: u64, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.course.market.show(ts_recv, instrument, send);
    }

    /// Returns when to call [`Self::handle_timeout`], in nanoseconds.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        let course = self.course.poll_timeout();
        let all = course.into_iter().chain(self.arbiter.poll_timeout());
        all.chain(self.ahead.poll_timeout()).min()
    }

    /// Checks whether the plants are silent, and whether missing messages have timed out.
    pub fn handle_timeout(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.arbiter.handle_timeout(now);
        self.drain(now, send);
        self.course.handle_timeout(now, send);
        self.adopt_due(now, send);
    }

    /// Returns the line of a plant, which is added if it is new, or `None` if there are too many.
    fn line_of(&mut self, now: u64, origin: u64) -> Option<Line> {
        if let Some(place) = self.place_of(origin) {
            return Line::new(place);
        }
        let Some(place) = self.plants.iter().position(Option::is_none) else {
            self.stats.refused += 1;
            return None;
        };
        let past = self.return_of(origin);
        let past = past.unwrap_or_else(|| Past::new(self.restarts.count()));
        self.plants[place] = Some(Plant::new(origin, past));
        self.elect(now);
        Line::new(place)
    }

    /// Removes a plant from those that are gone. Returns what it had reported, if it was one.
    fn return_of(&mut self, origin: u64) -> Option<Past> {
        let place = self.gone.iter().position(|(own, _)| *own == origin)?;
        self.gone.remove(place)?.1
    }

    /// Returns whether the plant has restarted as often as the channel.
    fn is_of_this_time(&self, line: Line) -> bool {
        let plant = self.plants.get(line.index()).and_then(Option::as_ref);
        plant.is_some_and(|plant| self.restarts.are_made(plant.past.restarts))
    }

    fn leads(&self, line: Line) -> bool {
        self.election.leader() == Some(line)
    }

    /// Returns whether the plant knows the instruments that the leading one knows, and no others.
    /// Otherwise messages of one of them may lack changes.
    fn covers(&self, line: Line) -> bool {
        let leader = self.election.leader();
        leader.is_some_and(|leader| self.coverage.are_alike(line, leader))
    }

    /// Returns the plants whose messages of the channel count.
    fn counted(&self) -> impl Iterator<Item = Line> {
        let lines = (0..Line::MAX).filter_map(Line::new);
        lines.filter(move |line| self.is_of_this_time(*line) && self.covers(*line))
    }

    /// Chooses the leading plant of those that have restarted with the channel.
    fn elect(&mut self, now: u64) {
        let may_lead = |line| self.is_of_this_time(line);
        let may_lead = std::array::from_fn(|place| Line::new(place).is_some_and(may_lead));
        let leaves = self.election.elect(now, &self.coverage, may_lead);
        self.coverage.is_left |= leaves;
    }

    /// Ends the wait for plants that have not restarted with the channel in time.
    fn settle(&mut self, now: u64) {
        if self.restarts.settle(now) {
            self.count_settled();
            self.elect(now);
        }
    }

    /// Counts settled restarts as made by every plant that is present. A plant that is gone may
    /// still report them.
    fn count_settled(&mut self) {
        let settled = self.restarts.settled();
        let plants = self.plants.iter_mut().flatten();
        plants.for_each(|plant| plant.past.settle(settled));
    }

    /// Processes an instrument that a plant names or redefines. `ts_recv` is the time at which its
    /// definition arrived, in nanoseconds since 1970-01-01 UTC. Returns its number at the edge, or
    /// `None` if the bytes are invalid, or the table is full.
    pub fn instrument(
        &mut self,
        (now, ts_recv): (u64, u64),
        origin: u64,
        bytes: &[u8],
        send: &mut impl FnMut(&Event),
    ) -> Option<InstrumentId> {
        self.settle(now);
        let (_, id) = self.name((now, ts_recv), origin, bytes, None, send)?;
        Some(id)
    }

    /// Processes an instrument, which is named by a snapshot as of message `last` if there is one.
    fn name(
        &mut self,
        (now, ts_recv): (u64, u64),
        origin: u64,
        bytes: &[u8],
        last: Option<u32>,
        send: &mut impl FnMut(&Event),
    ) -> Option<(Line, InstrumentId)> {
        let line = self.line_of(now, origin)?;
        let new = Instrument::read(bytes)?;
        let place = new.instrument.0 as usize;
        if place >= self.table.limit() {
            return None;
        }
        let known = self.table.find(&new.definition.name);
        let known = known.and_then(|id| self.table.get(id));
        let is_news = known.is_none_or(|known| known.revision == 0);
        let id = if is_news || self.leads(line) {
            self.define(ts_recv, &new, send)?
        } else {
            known?.instrument
        };
        let plant = self.plants.get_mut(line.index())?.as_mut()?;
        plant.name(place, id);
        if self.coverage.add(line, id.0, last) {
            self.elect(now);
        }
        Some((line, id))
    }

    fn define(
        &mut self,
        ts_recv: u64,
        new: &Instrument<'_>,
        send: &mut impl FnMut(&Event),
    ) -> Option<InstrumentId> {
        if new.revision == 0 {
            return self.table.see(&new.definition.name).ok();
        }
        let defined = self.table.define(&new.definition).ok()?;
        if defined.change != Change::Same {
            let event = Event {
                instrument: defined.instrument,
                kind: Kind::Definition,
                id: defined.revision.into(),
                flags: Flags::LAST,
                ts_recv,
                ..Event::EMPTY
            };
            self.course.market.pass_on(ts_recv, &event, send);
        }
        Some(defined.instrument)
    }

    /// Processes steps of a plant with the name `origin` in this run, with their events, in the
    /// plant's order.
    pub fn steps(
        &mut self,
        now: u64,
        origin: u64,
        steps: &[Step],
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        self.settle(now);
        let Some(line) = self.line_of(now, origin) else {
            return;
        };
        let mut rest = events;
        for packet in packets(steps) {
            if let [step, ..] = packet {
                self.learn(now, line, step, send);
            }
            let count: usize = packet.iter().map(|step| step.events as usize).sum();
            let Some((own, behind)) = rest.split_at_checked(count) else {
                return;
            };
            rest = behind;
            match packet {
                [step] if !step.what.is_numbered() => self.single(now, line, step, own, send),
                packet => self.packet(now, line, packet, own, send),
            }
        }
        self.show_early(now, origin, send);
        self.adopt_due(now, send);
        if !steps.is_empty() {
            self.listen(now, send);
        }
    }

    /// Processes what a step shows of the plant's channel.
    fn learn(&mut self, now: u64, line: Line, step: &Step, send: &mut impl FnMut(&Event)) {
        let Some(plant) = self.plants.get_mut(line.index()).and_then(Option::as_mut) else {
            return;
        };
        let news = plant.past.learn(step, self.restarts.settled());
        if news.is_remapped {
            self.course.distrust(now, send);
        }
        if let Some(restarts) = news.restarts {
            self.reset(now, line, restarts, send);
        }
    }

    /// Processes a step that belongs to no packet.
    fn single(
        &mut self,
        now: u64,
        line: Line,
        step: &Step,
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        match step.what {
            // `learn` has processed restarts and mappings, and `packet` processes the others.
            What::Reset | What::Remapped | What::Changes | What::Snapshot => {}
            What::Silence => {
                self.election.set_silent(now, line, step.number != 0);
                self.elect(now);
            }
            What::Position => self.position(now, line, step.number, send),
            What::Unnumbered => self.unnumbered(now, line, step, events, send),
        }
    }

    /// Processes a message without a number, which counts if its plant leads.
    fn unnumbered(
        &mut self,
        now: u64,
        line: Line,
        step: &Step,
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        self.election.speak(line);
        if !self.leads(line) {
            // The leading plant may bring nothing.
            self.elect(now);
        }
        if self.leads(line) && self.translate(line, events) {
            let mut own = std::mem::take(&mut self.events);
            self.apply(now, None, step, &mut own, send);
            self.events = own;
        }
    }

    /// Copies events to `self.events` with the edge's numbers of their instruments. Returns false
    /// if the plant did not name all of them.
    fn translate(&mut self, line: Line, events: &[Event]) -> bool {
        let Some(plant) = self.plants.get(line.index()).and_then(Option::as_ref) else {
            return false;
        };
        self.events.clear();
        for event in events {
            let Some(own) = plant.translate(event) else {
                self.stats.unknown += 1;
                return false;
            };
            self.events.push(own);
        }
        true
    }

    /// Processes a packet of the channel.
    fn packet(
        &mut self,
        now: u64,
        line: Line,
        packet: &[Step],
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        let Some(number) = packet.first().map(|step| step.number) else {
            return;
        };
        if !self.is_of_this_time(line) {
            self.stats.of_another_time += 1;
            return;
        }
        if self.election.is_silent(line) {
            self.election.set_silent(now, line, false);
        }
        self.election.bring(now, line, number);
        if !self.covers(line) {
            // The leading plant may bring nothing any more.
            self.elect(now);
            if !self.covers(line) {
                self.stats.not_covered += 1;
                return;
            }
        }
        if !self.translate(line, events) {
            return;
        }
        if std::mem::take(&mut self.coverage.is_left) {
            self.lose_unknown(line, send);
        }
        self.unit.clear();
        let mut rest = &*self.events;
        for step in packet {
            let (own, behind) = rest.split_at(step.events as usize);
            self.unit.extend(step.to_bytes());
            self.unit.extend(own.iter().flat_map(Event::to_bytes));
            rest = behind;
        }
        self.coverage.bring(line, number);
        if self.is_due(now, line, number, packet.iter().any(|step| step.is_late)) {
            let unit = std::mem::take(&mut self.unit);
            self.take(now, &unit, send);
            self.unit = unit;
        }
        self.drain(now, send);
    }

    /// Starts the recovery of the instruments that this plant does not know and that may have
    /// changed.
    #[cold]
    fn lose_unknown(&mut self, line: Line, send: &mut impl FnMut(&Event)) {
        let market = &mut self.course.market;
        for instrument in self.coverage.unknown_to(line) {
            match market.state(instrument) {
                // One that only the log knows has no state. The others wait for a snapshot.
                None | Some(State::Closed | State::Recovering(Lack::SnapshotAfterFault)) => {}
                Some(_) => market.fault(instrument, send),
            }
        }
    }

    /// Returns whether the packet in `self.unit` is to be applied now.
    fn is_due(&mut self, now: u64, line: Line, number: u32, is_late: bool) -> bool {
        if is_late && !self.is_ahead(number) {
            // The arbiter would take numbers from far behind for a restart.
            return self.course.lacks(number);
        }
        let unit = Unit {
            sequence: number,
            count: 1,
            bytes: &self.unit,
        };
        match self.arbiter.receive(now, line, unit) {
            Verdict::Deliver { .. } => true,
            // The position of a plant may have passed over it, and a late one may have been
            // applied without the arbiter.
            Verdict::Late { .. } | Verdict::Duplicate => self.course.lacks(number),
            _ => false,
        }
    }

    /// Returns whether this number is that of the next message, or a later one.
    fn is_ahead(&self, number: u32) -> bool {
        let expected = self.arbiter.expected();
        expected.is_none_or(|expected| !is_before(number, expected))
    }

    /// Processes the events of the arbiter after a unit.
    fn drain(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        let mut unit = std::mem::take(&mut self.unit);
        loop {
            let other = match self.arbiter.poll_event() {
                Some(arbiter::Event::Unit(delivery)) => {
                    unit.clear();
                    unit.extend_from_slice(delivery.bytes);
                    None
                }
                Some(arbiter::Event::Gap(gap)) => Some(channel::Event::Gap(gap)),
                Some(arbiter::Event::Reset { expected, next }) => {
                    self.coverage.restart();
                    self.election.restart();
                    self.restarts.begin();
                    Some(channel::Event::Reset {
                        expected,
                        next,
                        announced: false,
                    })
                }
                Some(arbiter::Event::Recover(_)) => continue,
                None => break,
            };
            match other {
                Some(event) => self.course.unusual(now, &event, send),
                None => self.take(now, &unit, send),
            }
        }
        self.unit = unit;
    }

    /// Applies a packet that is in sequence.
    fn take(&mut self, now: u64, unit: &[u8], send: &mut impl FnMut(&Event)) {
        self.course.hear(now, send);
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let mut changes: Option<Step> = None;
        let mut rest = unit;
        while let Some((head, behind)) = rest.split_first_chunk::<{ Step::SIZE }>() {
            let Some(step) = Step::from_bytes(head) else {
                break;
            };
            let Some((own, behind)) = behind.split_at_checked(step.events as usize * Event::SIZE)
            else {
                break;
            };
            rest = behind;
            if step.what == What::Snapshot
                && let Some(before) = changes.take()
            {
                self.apply(now, Some(before.number), &before, &mut events, send);
                events.clear();
            }
            let (own, _) = own.as_chunks::<{ Event::SIZE }>();
            events.extend(own.iter().filter_map(Event::from_bytes));
            if step.what == What::Snapshot {
                self.apply(now, Some(step.number), &step, &mut events, send);
                events.clear();
            } else {
                changes.get_or_insert(step);
            }
        }
        if let Some(step) = changes {
            self.apply(now, Some(step.number), &step, &mut events, send);
        }
        self.events = events;
    }

    /// Applies the events of a message.
    fn apply(
        &mut self,
        now: u64,
        number: Option<u32>,
        step: &Step,
        events: &mut Vec<Event>,
        send: &mut impl FnMut(&Event),
    ) {
        let (mut faults, mut ended) = (Vec::new(), Vec::new());
        let place = self.course.place(number);
        events.retain_mut(|event| {
            let id = event.instrument;
            match event.kind {
                Kind::Status => {
                    let set = self.table.set_status_at(id, event.id as u16, place);
                    return set.is_some();
                }
                Kind::Definition => {
                    // Others preceded it, with the instrument.
                    let state = self.course.market.state(id);
                    let is_closed = state == Some(State::Closed) || ended.contains(&id);
                    let Some(known) = self.table.get(id).filter(|_| is_closed) else {
                        return false;
                    };
                    event.id = known.revision.into();
                }
                Kind::State if state::closes(event) => ended.push(id),
                Kind::State => faults.push(id),
                _ => {}
            }
            !is_fault(event)
        });
        let snapshot = events.first().filter(|_| step.what == What::Snapshot);
        let snapshot = snapshot.map(|first| Snapshot {
            instrument: first.instrument,
            rpt_seq: first.rpt_seq,
            last_processed: Some(step.last.into()),
            total: None,
            fragment: None,
        });
        let mapped = Mapped {
            outcome: Ok(Outcome {
                does: Some(match snapshot {
                    Some(_) => Does::Snapshot,
                    None => Does::Changes,
                }),
                number: number.map(u64::from),
                snapshot,
                ..Outcome::UNMAPPED
            }),
            events,
            faults: &[],
            unchanged: &[],
            received: step.received,
        };
        self.course.message(now, number, &mapped, send);
        for instrument in faults {
            self.course.market.fault(instrument, send);
        }
    }

    /// Processes restarts of the channel at a plant, and the number of its next message. The first
    /// plant that reports a restart makes it. Messages of another plant are passed over until that
    /// plant reports the restart, for a minute at most.
    fn reset(
        &mut self,
        now: u64,
        line: Line,
        (times, next): (u32, u32),
        send: &mut impl FnMut(&Event),
    ) {
        let Some(plant) = self.plants.get_mut(line.index()).and_then(Option::as_mut) else {
            return;
        };
        let past = &mut plant.past;
        let (made, is_new) = self.restarts.report(now, past.restarts, times);
        past.report(made);
        self.count_settled();
        self.elect(now);
        if is_new {
            self.ahead.clear();
            self.arbiter.reset(next);
            self.drain(now, send);
        }
    }

    /// Processes the position of the channel at a plant.
    fn position(&mut self, now: u64, line: Line, number: u32, send: &mut impl FnMut(&Event)) {
        if self.is_of_this_time(line) {
            self.election.bring(now, line, number);
        }
        let counts = self.counted().any(|own| own == line);
        // Another plant that is heard may be about to deliver the messages missing up to there.
        let has_passed = |own: Line| {
            let shown = self.election.shown(own);
            let is_idle = own == line || self.election.is_idle(now, own);
            is_idle || shown.is_some_and(|shown| !is_before(shown, number))
        };
        let is_alone = self.counted().all(has_passed) || !self.course.has_begun();
        if counts && is_alone && self.is_ahead(number) {
            // Messages that wait have arrived, and would be duplicates after the position.
            self.arbiter.flush();
            self.drain(now, send);
            if self.is_ahead(number) {
                let expected = self.arbiter.expected();
                if let Some(expected) = expected.filter(|_| self.course.has_begun()) {
                    self.stats.undelivered += u64::from(number.wrapping_sub(expected)) + 1;
                }
                self.arbiter.resume(number.wrapping_add(1));
                self.drain(now, send);
            }
            self.course.position(now, number, send);
        }
    }

    /// Updates whether any plant whose messages count hears its lines. Stale books wait until one
    /// has shown the edge's last number, and none a later one. Before, they may lack messages.
    fn listen(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        let last = self.last_number().filter(|_| self.course.is_silent());
        let is_heard = self.election.hears(self.counted(), last);
        self.course.set_silent(now, !is_heard, send);
    }

    /// Removes a plant that is gone. Instruments that only it knew recover.
    pub fn gone(&mut self, now: u64, origin: u64, send: &mut impl FnMut(&Event)) {
        self.early.take(origin, |_| true);
        let place = self.place_of(origin);
        let plant = place.and_then(|place| self.plants[place].take());
        let before = self.return_of(origin);
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        let past = plant.map(|plant| plant.past).or(before);
        self.gone.push_back((origin, past));
        let Some(line) = place.and_then(Line::new) else {
            return;
        };
        self.election.leave(line);
        let is_last = self.plants() == 0;
        let market = &mut self.course.market;
        self.coverage.remove(line, |instrument| {
            if !is_last {
                market.fault(instrument, send);
            }
        });
        self.elect(now);
        self.listen(now, send);
    }
}
