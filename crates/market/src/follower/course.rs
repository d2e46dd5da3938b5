//! The position in a channel, and the market built from its messages.

mod losses;

use super::config::{FollowerConfig, FollowerStats};
use super::mapped::Mapped;
use super::parts::Parts;
use crate::event::{Event, Kind};
use crate::fragments::{FragmentConfig, Fragments};
use crate::instruments::Place;
use crate::mapping::{Does, MapError, Outcome};
use crate::market::Market;
use crate::relay::{Step, Steps};
use crate::snapshot_fault::{SnapshotFault, SnapshotWhy};
use crate::state;
use fanfare_feed::channel;
use fanfare_feed::recovery::{Replay, State};
use fanfare_feed::serial::{extend, is_before};
use std::ops::Range;

/// The position in the channel, and the market built from it.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) market: Market,
    /// The incomplete snapshots of the channel, and those of each channel of snapshot lines, whose
    /// numbers are its own.
    pub(super) fragments: Fragments,
    pub(super) fragments_of_snapshots: Vec<Fragments>,
    fragment_config: FragmentConfig,
    /// The first snapshot without a number since the last call of [`Self::take_snapshot_fault`].
    snapshot_fault: Option<SnapshotFault>,
    pub(super) replay: Option<Replay>,
    silence: u64,
    /// The number after the highest message, extended, or `None` before the first.
    next: Option<u64>,
    /// The first of the last messages that are missing only because packets without a number could
    /// not be read, or `None` if there is none.
    assumed: Option<u64>,
    /// Whether the last restart was announced, so that a snapshot of the channel is of its numbers.
    is_announced: bool,
    /// The packet of the last message, whose next messages have its number.
    packet: Option<Packet>,
    pub(super) parts: Parts,
    /// The time at which the channel was last heard.
    heard: u64,
    is_silent: bool,
    /// Whether a snapshot of the channel replaces a complete book.
    replaces: bool,
    /// The steps for edges that follow the feed by this follower, if any.
    pub(super) steps: Option<Steps>,
    pub(super) stats: FollowerStats,
}

/// The place of a packet in the order of the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Next,
    /// The packet was missing.
    Late,
    Repeated,
}

/// The messages with one number: those of a packet, if its preamble numbers it.
#[derive(Debug, Clone, Copy)]
struct Packet {
    sequence: u64,
    turn: Turn,
    /// Whether each of its messages so far was passed on as a whole.
    is_whole: bool,
    /// The number of its messages so far that may change the market.
    len: usize,
}

/// The place of a message in its packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// Whether the packet begins with it. Otherwise it belongs to the packet of the message before
    /// it, if that has the same number.
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// Whether it is of a replay in another form, which may divide the packet otherwise.
    pub(super) is_converted: bool,
}

impl Part {
    /// A message that is all of its packet, of a replay in another form.
    pub(super) const WHOLE: Self = Self {
        is_first: true,
        is_last: true,
        is_converted: true,
    };

    /// A message of a session, which never comes again.
    pub(super) const OF_SESSION: Self = Self {
        is_converted: false,
        ..Self::WHOLE
    };
}

impl Course {
    /// Creates a course without messages.
    pub(crate) fn new(config: FollowerConfig) -> Self {
        let mut market = Market::new(config.market, config.first);
        if config.replay.is_some() {
            market.expect_late();
        }
        Self {
            market,
            fragments: Fragments::new(config.fragments),
            fragments_of_snapshots: Vec::new(),
            fragment_config: config.fragments,
            snapshot_fault: None,
            replay: config.replay.map(Replay::new),
            silence: config.silence,
            next: None,
            assumed: None,
            is_announced: false,
            packet: None,
            parts: Parts::new(),
            heard: 0,
            is_silent: false,
            replaces: false,
            steps: None,
            stats: FollowerStats::default(),
        }
    }

    /// Lets each snapshot of the channel replace a book that is complete. Otherwise it is ignored,
    /// as it has nothing new.
    pub(super) const fn replace_snapshots(&mut self) {
        self.replaces = true;
    }

    /// Returns the counters.
    pub(crate) const fn stats(&self) -> FollowerStats {
        self.stats
    }

    #[cold]
    pub(crate) fn unusual(
        &mut self,
        now: u64,
        event: &channel::Event<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        match event {
            channel::Event::Gap(gap) => {
                let next = self.next.unwrap_or_else(|| u64::from(gap.first));
                let end = extend(next, gap.last()) + 1;
                self.lose_up_to(now, end, send);
            }
            channel::Event::Bad(bad) => self.bad(now, bad, send),
            channel::Event::Reset {
                next, announced, ..
            } => {
                self.stats.resets += 1;
                self.is_announced = *announced;
                let run = self.next.map_or(0, |before| (before >> 32) + 1);
                let next = (run << 32) + u64::from(*next);
                (self.next, self.assumed) = (Some(next), None);
                self.parts.clear();
                if let Some(steps) = &mut self.steps {
                    steps.reset(next as u32);
                }
                self.market.reset(now, next, send);
                if let Some(replay) = &mut self.replay {
                    replay.reset();
                }
            }
            channel::Event::Message(_) | channel::Event::Recover(_) => {}
        }
    }

    /// Notes how many messages of the last packet, which is not whole, were applied.
    #[cold]
    fn note_part(&mut self) {
        if let Some(Packet { sequence, len, .. }) = self.packet {
            let missing = self.market.missing();
            self.parts
                .note(sequence, len, |other| missing.contains(other));
        }
    }

    /// Returns whether it is known which messages of a missing packet were applied, or which
    /// changes, by RptSeq(83).
    fn may_come(&self, sequence: u64) -> bool {
        self.market.is_numbered() || self.parts.knows(sequence)
    }

    /// Records that messages are mapped differently from here on.
    pub(crate) fn distrust(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        if let Some(steps) = &mut self.steps {
            steps.remapped();
        }
        for fragments in self.all_fragments() {
            fragments.lose(SnapshotWhy::Remapped);
        }
        self.market.distrust(now, send);
    }

    /// Takes the first fault of a snapshot since the last call.
    pub(super) fn take_snapshot_fault(&mut self) -> Option<SnapshotFault> {
        let own = self.snapshot_fault.take();
        let of_fragments = self.all_fragments().filter_map(Fragments::take_fault);
        of_fragments.fold(own, |first, other| first.or(Some(other)))
    }

    fn all_fragments(&mut self) -> impl Iterator<Item = &mut Fragments> {
        std::iter::once(&mut self.fragments).chain(&mut self.fragments_of_snapshots)
    }

    /// Records that all messages before this number that did not arrive are missing.
    fn lose_up_to(&mut self, now: u64, end: u64, send: &mut impl FnMut(&Event)) {
        let from = self.next.unwrap_or(end);
        if from < end {
            self.market.gap(now, from..end, send);
        }
        self.next = Some(from.max(end));
    }

    /// Records that the lines are heard.
    #[inline]
    pub(crate) fn hear(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.heard = now;
        if self.is_silent {
            self.is_silent = false;
            self.fall_silent(false, send);
        }
    }

    /// Adds the position in the channel, and whether its lines are silent, to the steps.
    pub(crate) fn keep_alive(&mut self) {
        let (position, is_silent) = (self.last_number(), self.is_silent);
        if let Some(steps) = &mut self.steps {
            steps.silence(is_silent);
            if let Some(number) = position {
                steps.push(Step::position(number), &[]);
            }
        }
    }

    pub(crate) fn keep_steps(&mut self) {
        self.steps = Some(Steps::with_room());
    }

    pub(crate) const fn steps(&mut self) -> Option<&mut Steps> {
        self.steps.as_mut()
    }

    /// Returns how often the channel has restarted since steps are kept.
    pub(crate) fn restarts(&self) -> u16 {
        self.steps.as_ref().map_or(0, Steps::restarts)
    }

    /// Returns the low 32 bits of the number of the last message so far. Of messages that may not
    /// have been sent, it is the first: an edge cannot take back more.
    pub(crate) fn last_number(&self) -> Option<u32> {
        let last = self.next?.wrapping_sub(1);
        Some(self.assumed.map_or(last, |first| last.min(first)) as u32)
    }

    /// Returns whether the message of this number is missing.
    pub(crate) fn lacks(&self, number: u32) -> bool {
        let sequence = extend(self.next, number);
        self.market.missing().contains(sequence)
    }

    /// Returns the place in the channel of the message with this number, before it is processed.
    /// One without a number is in front of messages that may not have been sent.
    #[inline]
    pub(crate) fn place(&self, number: Option<u32>) -> Place {
        let sequence = number.map(|number| extend(self.next, number));
        let next = self.assumed.or(self.next);
        Place {
            sequence: sequence.or(next).unwrap_or_default(),
            is_numbered: number.is_some(),
        }
    }

    /// Returns whether anything of the channel was received.
    pub(crate) const fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Returns whether the lines are silent.
    pub(crate) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Records that the last message of the channel so far has this number, so that those before it
    /// that did not arrive are missing.
    pub(crate) fn position(&mut self, now: u64, number: u32, send: &mut impl FnMut(&Event)) {
        let sequence = extend(self.next, number);
        if self.next.is_some() {
            self.lose_up_to(now, sequence + 1, send);
        } else {
            self.next = Some(sequence + 1);
            self.market.see(sequence, send);
        }
    }

    /// Records that the lines are silent, or are heard again.
    pub(crate) fn set_silent(&mut self, now: u64, is_silent: bool, send: &mut impl FnMut(&Event)) {
        if !is_silent {
            self.heard = now;
        }
        if self.is_silent != is_silent {
            self.is_silent = is_silent;
            self.fall_silent(is_silent, send);
        }
    }

    #[cold]
    fn fall_silent(&mut self, is_silent: bool, send: &mut impl FnMut(&Event)) {
        if let Some(steps) = &mut self.steps {
            steps.silence(is_silent);
        }
        self.market.silence(is_silent, send);
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let silence = self.heard.checked_add(self.silence);
        let silence = silence.filter(|_| !self.is_silent && self.next.is_some());
        let replay = self.replay.as_ref().and_then(Replay::poll_timeout);
        silence.into_iter().chain(replay).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        let is_silent = now.saturating_sub(self.heard) >= self.silence && self.next.is_some();
        if is_silent && !self.is_silent {
            self.is_silent = true;
            self.fall_silent(true, send);
        }
        if let Some(replay) = &mut self.replay {
            replay.handle_timeout(now);
        }
    }

    /// Returns the packet of a message. Records the number of a new one, and reports missing
    /// messages before it.
    #[inline]
    fn packet(
        &mut self,
        now: u64,
        number: u32,
        is_first: bool,
        send: &mut impl FnMut(&Event),
    ) -> Packet {
        let sequence = extend(self.next, number);
        let same = self.packet.filter(|packet| packet.sequence == sequence);
        if let Some(packet) = same.filter(|_| !is_first) {
            return packet;
        }
        let next = self.next.unwrap_or(sequence);
        let turn = if sequence >= next {
            if sequence > next {
                self.lose_up_to(now, sequence, send);
            }
            self.next = Some(sequence + 1);
            Turn::Next
        } else if self.market.missing().contains(sequence) && self.may_come(sequence) {
            Turn::Late
        } else {
            Turn::Repeated
        };
        if let Some(steps) = &mut self.steps {
            steps.begin_packet(turn == Turn::Late);
        }
        self.parts.begin();
        *self.packet.insert(Packet {
            sequence,
            turn,
            is_whole: true,
            len: 0,
        })
    }

    /// Processes a message. Consecutive ones with the same number are of one packet.
    pub(crate) fn message(
        &mut self,
        now: u64,
        number: Option<u32>,
        mapped: &Mapped<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        let part = Part {
            is_first: false,
            is_last: true,
            is_converted: false,
        };
        self.part(now, number, mapped, part, send);
    }

    #[inline]
    pub(super) fn part(
        &mut self,
        now: u64,
        number: Option<u32>,
        mapped: &Mapped<'_>,
        part: Part,
        send: &mut impl FnMut(&Event),
    ) {
        self.stats.messages += 1;
        let Some(number) = number else {
            self.stats.unnumbered += 1;
            return self.without_number(mapped, send);
        };
        let packet = self.packet(now, number, part.is_first, send);
        if packet.turn == Turn::Repeated {
            self.stats.repeated += 1;
            return;
        }
        let (sequence, is_late) = (packet.sequence, packet.turn == Turn::Late);
        // A replay may not have the others, such as a Reset.
        let counts = match &mapped.outcome {
            Ok(outcome) => outcome.does.is_some_and(|does| !does.is_control()),
            Err(_) => true,
        };
        if let Some(packet) = self.packet.as_mut().filter(|_| counts) {
            packet.len += 1;
        }
        self.stats.late += u64::from(is_late);
        let rest = match is_late && part.is_converted {
            true => self.parts.rest_of(sequence, mapped.events),
            false => None,
        };
        if let Some(rest) = &rest
            && !self.market.is_numbered()
        {
            return self.pass_on_rest(sequence, mapped, rest, send);
        }
        self.parts.take(mapped.events);
        let is_applied = is_late && self.parts.is_applied(sequence, packet.len);
        let own: &[Event] = match &rest {
            Some(rest) => rest,
            None if is_applied => &[],
            None => mapped.events,
        };
        self.take(now, sequence, mapped, own, send);
        if !packet.is_whole {
            self.note_part();
        }
        if mapped.outcome.is_err() && !self.faults(sequence, mapped.faults, send) {
            return self.lose_part(now, sequence, send);
        }
        if is_late && packet.is_whole && part.is_last {
            self.market.replayed(sequence..sequence + 1, send);
        }
    }

    /// Passes on the trades, definitions and states among the rest of a packet that came in part.
    /// It stays missing, because nothing shows which of its changes were applied. The edges have
    /// none of it, and take it as a whole.
    #[cold]
    fn pass_on_rest(
        &mut self,
        sequence: u64,
        mapped: &Mapped<'_>,
        rest: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        if matches!(&mapped.outcome, Ok(outcome) if outcome.snapshot.is_none()) {
            self.relay(sequence, mapped);
        }
        let (market, received) = (&mut self.market, mapped.received);
        for event in rest {
            match event.kind {
                Kind::Trade => market.pass_on(received, event, send),
                Kind::Definition | Kind::Status | Kind::State => {
                    market.changes(received, sequence, std::slice::from_ref(event), send);
                }
                _ => {}
            }
        }
    }

    /// Passes the events of a message to the steps, and `own` to the market, which has the others
    /// already: the edges have none of a packet that came in part.
    #[inline]
    fn take(
        &mut self,
        now: u64,
        sequence: u64,
        mapped: &Mapped<'_>,
        own: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        match &mapped.outcome {
            Ok(
                outcome @ Outcome {
                    snapshot: Some(snapshot),
                    ..
                },
            ) => {
                // Within the channel itself: as of its first message, unless specified otherwise.
                self.market.see(sequence, send);
                let lost = self.fragments.stats().lost();
                let Some(whole) = self.fragments.take(outcome, mapped.events) else {
                    if let Some(steps) = &mut self.steps
                        && self.fragments.stats().lost() == lost
                    {
                        steps.changes(sequence as u32, mapped.received, &[]);
                    }
                    return;
                };
                let is_live = || self.market.state(snapshot.instrument) == Some(State::Live);
                if self.replaces && is_live() {
                    let market = &mut self.market;
                    return market.changes(mapped.received, sequence, whole.events, send);
                }
                let last = snapshot.last_processed.or(whole.number);
                let last = last.unwrap_or(sequence) as u32;
                let times = (now, mapped.received);
                if let Some(steps) = &mut self.steps {
                    steps.snapshot(sequence as u32, mapped.received, last, whole.events);
                }
                // One of the numbers before would be as of a message that is yet to come. A restart
                // that was not announced may be none.
                let is_since_reset = self.is_announced && !is_before(sequence as u32, last);
                let of = (Some(last), is_since_reset);
                self.market.take_snapshot(times, of, whole.events, send);
            }
            other => {
                match other {
                    Ok(outcome) => self.fragments.pass(outcome),
                    Err(error) => self.fragments.pass(&error.outcome()),
                }
                self.relay(sequence, mapped);
                self.market.changes(mapped.received, sequence, own, send);
                if matches!(other, Ok(outcome) if outcome.does == Some(Does::Definition)) {
                    for instrument in mapped.unchanged {
                        self.market.open_at(sequence, *instrument, send);
                    }
                }
            }
        }
    }

    /// Adds the changes of a message to the steps. Late ends that the market ignores are left out,
    /// as an edge may lack the later messages that make them invalid.
    #[inline]
    fn relay(&mut self, sequence: u64, mapped: &Mapped<'_>) {
        let Some(steps) = &mut self.steps else {
            return;
        };
        let market = &self.market;
        let counts =
            |event: &&Event| !state::closes(event) || market.may_close(event.instrument, sequence);
        let is_late = self.packet.is_some_and(|packet| packet.turn == Turn::Late);
        let number = sequence as u32;
        if !is_late || mapped.events.iter().all(|event| counts(&event)) {
            steps.changes(number, mapped.received, mapped.events);
        } else {
            let events: Vec<Event> = mapped.events.iter().filter(counts).copied().collect();
            steps.changes(number, mapped.received, &events);
        }
    }

    /// Handles values of this message that no event can hold, whose instruments lack a change.
    /// Returns false if the instrument is unknown, so that any instrument may lack one.
    #[cold]
    fn faults(
        &mut self,
        sequence: u64,
        faults: &[MapError],
        send: &mut impl FnMut(&Event),
    ) -> bool {
        let mut is_whole = true;
        for fault in faults.iter().filter(|fault| fault.is_of_book()) {
            match fault.instrument {
                Some(instrument) if self.market.leaves_out(instrument, sequence) => {}
                Some(instrument) => {
                    if let Some(steps) = &mut self.steps {
                        steps.fault(instrument);
                    }
                    self.market.fault(instrument, send);
                }
                None => is_whole = false,
            }
        }
        is_whole
    }

    /// Processes a message without a number. Its definitions and states are applied, but its
    /// changes of books have no place in the order of the channel.
    #[cold]
    fn without_number(&mut self, mapped: &Mapped<'_>, send: &mut impl FnMut(&Event)) {
        if let Ok(Outcome {
            does: Some(Does::Snapshot),
            snapshot,
            ..
        }) = mapped.outcome
        {
            self.stats.bad_snapshots += 1;
            self.snapshot_fault.get_or_insert(SnapshotFault {
                instrument: snapshot.map(|snapshot| snapshot.instrument),
                number: None,
                why: SnapshotWhy::NoNumber,
            });
            return;
        }
        if let Some(steps) = &mut self.steps {
            steps.unnumbered(mapped.received, mapped.events);
        }
        for event in mapped.events {
            match event.kind {
                _ if event.is_bare_number() => {}
                Kind::Definition | Kind::Status | Kind::State | Kind::Trade | Kind::Statistic => {
                    self.market.pass_on(mapped.received, event, send);
                }
                _ => self.market.fault_without_number(event.instrument, send),
            }
        }
        let faults = mapped.faults.iter().filter(|fault| fault.is_of_book());
        for instrument in faults.filter_map(|fault| fault.instrument) {
            self.market.fault_without_number(instrument, send);
        }
    }

    pub(super) fn snapshot(
        &mut self,
        lines: usize,
        now: u64,
        mapped: &Mapped<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        let all = &mut self.fragments_of_snapshots;
        if lines >= all.len() {
            all.resize_with(lines + 1, || Fragments::new(self.fragment_config));
        }
        let fragments = &mut all[lines];
        match &mapped.outcome {
            Ok(
                outcome @ Outcome {
                    snapshot: Some(snapshot),
                    ..
                },
            ) => {
                let Some(whole) = fragments.take(outcome, mapped.events) else {
                    return;
                };
                let last = snapshot.last_processed.map(|last| last as u32);
                let times = (now, mapped.received);
                self.market.snapshot(times, last, whole.events, send);
            }
            other => {
                match other {
                    Ok(outcome) => fragments.pass(outcome),
                    Err(error) => {
                        fragments.pass(&error.outcome());
                        self.stats.bad_snapshots += 1;
                    }
                }
                self.pass_on(mapped, send);
            }
        }
    }

    /// Passes on the definitions and states of a message of a snapshot line.
    fn pass_on(&mut self, mapped: &Mapped<'_>, send: &mut impl FnMut(&Event)) {
        let kinds = [Kind::Definition, Kind::Status, Kind::State];
        let is_passed_on = |event: &&Event| kinds.contains(&event.kind);
        for event in mapped.events.iter().filter(is_passed_on) {
            if let Some(steps) = &mut self.steps {
                steps.unnumbered(mapped.received, std::slice::from_ref(event));
            }
            self.market.pass_on(mapped.received, event, send);
        }
    }

    pub(super) fn poll_request(&mut self, now: u64) -> Option<Range<u32>> {
        let replay = self.replay.as_mut()?;
        let range = replay.poll_request(now, self.market.missing())?;
        let (start, len) = (range.start as u32, range.end - range.start);
        Some(start..u32::try_from(u64::from(start) + len).unwrap_or(u32::MAX))
    }

    /// Returns whether a message of this number was requested from the replay.
    pub(super) fn expects(&mut self, now: u64, number: u32) -> bool {
        let sequence = extend(self.next, number);
        let missing = self.market.missing();
        let replay = self.replay.as_mut();
        replay.is_some_and(|replay| replay.expects(now, sequence, missing))
    }

    pub(super) fn replay_done(&mut self) {
        if let Some(replay) = &mut self.replay {
            replay.answered(self.market.missing());
        }
    }
}
