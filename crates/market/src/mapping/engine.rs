//! The conversion of the values of a message to events.

mod definition;

use super::cells::{Cells, Raw, Ref};
use super::document::{Does, Unknown};
use super::fault::{Flaw, MapError, Why};
use super::known::Known;
use super::outcome::{Counts, Fragment, Outcome, Snapshot};
use super::plan::{Plan, Rule, TimePlan};
use super::time::{date, is_unknown};
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{IdSource, Instruments, Place, Refused, SecurityId};
use std::mem::{replace, take};

/// The most faults of a message that are kept. Beyond them, the whole message is withheld.
const FAULTS: usize = 32;

/// The state of a mapper, apart from the fields of an entry.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) cells: Cells,
    pub(super) events: Vec<Event>,
    pub(super) faults: Vec<MapError>,
    /// The instruments whose definitions in the last message changed nothing.
    pub(super) unchanged: Vec<InstrumentId>,
    pub(super) counts: Counts,
    unknown: Unknown,
    source: IdSource,
    pub(super) feed: u16,
    /// Whether entries of changes that become no event leave a bare number.
    pub(super) keeps_numbers: bool,
    /// The count of bare numbers among the events.
    pub(super) bare: usize,
    /// The last message with an event of each instrument.
    stamps: Vec<u32>,
    stamp: u32,
    /// The place of the message in its channel, if the owner sets it.
    pub(super) place: Place,
    message: Current,
    pub(super) known: Known,
    /// A date as digits, and its midnight.
    date: (u64, i64),
    /// The last day found by the fast path: its digits, its UTC offset, its beginning.
    pub(super) day: (u64, i64, u64),
}

/// The current message.
#[derive(Debug, Clone, Copy, Default)]
struct Current {
    plan: u16,
    ts_recv: u64,
    /// The time of the message, once it is computed.
    sent: Option<u64>,
    has_sent: bool,
    /// The instrument of the previous entry, or of the snapshot.
    instrument: Option<InstrumentId>,
    /// The number of entries so far.
    entries: u32,
    /// Whether the snapshot has begun.
    has_begun: bool,
    /// The highest RptSeq(83) of the entries of the snapshot that became no event.
    passed: u32,
    withholds_all: bool,
}

impl Engine {
    pub(super) fn new(unknown: Unknown, source: IdSource, feed: u16) -> Self {
        Self {
            cells: Cells::new(),
            events: Vec::new(),
            faults: Vec::with_capacity(FAULTS),
            unchanged: Vec::new(),
            counts: Counts::default(),
            unknown,
            source,
            feed,
            keeps_numbers: false,
            bare: 0,
            stamps: Vec::new(),
            stamp: 0,
            place: Place::default(),
            message: Current::default(),
            known: Known::new(),
            date: (19_700_101, 0),
            day: (u64::MAX, 0, 0),
        }
    }

    /// Returns whether it maps all messages as the other one does, with equal plans.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        (self.unknown, self.source, self.feed) == (other.unknown, other.source, other.feed)
    }

    /// Returns when the current message arrived.
    pub(super) const fn ts_recv(&self) -> u64 {
        self.message.ts_recv
    }

    /// Begins a message.
    #[inline]
    pub(super) fn begin(&mut self, number: u16, largest: u128, ts_recv: u64) {
        self.cells.clear(largest);
        self.events.clear();
        self.bare = 0;
        self.faults.clear();
        self.unchanged.clear();
        self.message = Current {
            plan: number,
            ts_recv,
            ..Current::default()
        };
    }

    /// Calls `map` with the texts of the cells, taken out of them so that it can change the rest.
    #[inline(always)]
    fn with_texts<R>(&mut self, map: impl FnOnce(&mut Self, &[u8]) -> R) -> R {
        let texts = take(&mut self.cells.texts);
        let mapped = map(self, &texts);
        self.cells.texts = texts;
        mapped
    }

    /// Begins the entries, after the message's own fields were set.
    #[inline]
    pub(super) fn begin_entries(&mut self, plan: &Plan, table: &mut Instruments) {
        self.with_texts(|engine, texts| engine.begin_entries_with(plan, table, texts));
        self.cells.keep_texts();
    }

    /// Maps an entry, after its values were set.
    #[inline]
    pub(super) fn entry(&mut self, plan: &Plan, table: &mut Instruments) {
        self.with_texts(|engine, texts| engine.entry_with(plan, table, texts));
    }

    /// Completes the message.
    #[inline]
    pub(super) fn finish(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
    ) -> Result<Outcome, MapError> {
        self.with_texts(|engine, texts| engine.finish_with(plan, table, texts))
    }

    #[inline]
    fn begin_entries_with(&mut self, plan: &Plan, table: &mut Instruments, texts: &[u8]) {
        if plan.does == Does::Snapshot {
            self.begin_snapshot(plan, table, texts);
        }
    }

    fn begin_snapshot(&mut self, plan: &Plan, table: &mut Instruments, texts: &[u8]) {
        self.message.has_begun = true;
        let begun = self.try_begin_snapshot(plan, table, texts);
        if let Err(flaw) = begun {
            self.fault(plan, flaw, None);
        }
    }

    fn try_begin_snapshot(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<(), Flaw> {
        let Some(instrument) = self.instrument(plan, table, texts)? else {
            return Ok(());
        };
        self.message.instrument = Some(instrument);
        let rpt_seq = self.at_most(plan.rpt_seq, u32::MAX.into(), texts)?;
        let ts_event = self.sent(plan, texts)?;
        self.push(Event {
            instrument,
            ts_event: ts_event.unwrap_or(Event::NO_TIME),
            rpt_seq: rpt_seq.unwrap_or(0) as u32,
            kind: Kind::Clear,
            flags: Flags::SNAPSHOT,
            ..Event::EMPTY
        });
        Ok(())
    }

    #[inline]
    fn entry_with(&mut self, plan: &Plan, table: &mut Instruments, texts: &[u8]) {
        if let Err(flaw) = self.try_entry(plan, table, texts) {
            self.fault(plan, flaw, Some(self.message.entries));
        }
        self.message.entries += 1;
    }

    #[inline]
    fn try_entry(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<(), Flaw> {
        if plan.does == Does::Definition {
            return self.define(plan, table, texts);
        }
        let is_snapshot = plan.does == Does::Snapshot;
        let instrument = match is_snapshot {
            true => self.message.instrument,
            false => {
                let found = self.instrument(plan, table, texts);
                self.message.instrument = found.unwrap_or(None);
                found?
            }
        };
        let Some(instrument) = instrument else {
            self.counts.without_instrument += u64::from(is_snapshot);
            return Ok(());
        };
        let Some(rule) = self.rule(plan, texts)? else {
            self.counts.no_rule += 1;
            return self.pass_over(instrument, plan, texts);
        };
        let Some(kind) = rule.kind else {
            self.counts.ignored += 1;
            return self.pass_over(instrument, plan, texts);
        };
        if is_snapshot && kind == Kind::Clear {
            // It began the snapshot.
            return self.pass_over(instrument, plan, texts);
        }
        let mut event = self.event(kind, rule, plan, texts)?;
        event.instrument = instrument;
        if is_snapshot {
            event.flags = Flags::SNAPSHOT;
        }
        self.push(event);
        Ok(())
    }

    /// Keeps the number of an entry that becomes no event.
    fn pass_over(
        &mut self,
        instrument: InstrumentId,
        plan: &Plan,
        texts: &[u8],
    ) -> Result<(), Flaw> {
        let is_snapshot = plan.does == Does::Snapshot;
        if !is_snapshot && !self.keeps_numbers {
            return Ok(());
        }
        let rpt_seq = self.at_most(plan.entry_rpt_seq, u32::MAX.into(), texts)?;
        let rpt_seq = rpt_seq.unwrap_or(0) as u32;
        if is_snapshot {
            self.message.passed = self.message.passed.max(rpt_seq);
        } else if rpt_seq != 0 {
            self.push(Event::bare_number(instrument, rpt_seq));
            self.bare += 1;
        }
        Ok(())
    }

    #[inline]
    fn event(&mut self, kind: Kind, rule: &Rule, plan: &Plan, texts: &[u8]) -> Result<Event, Flaw> {
        let mut event = Event {
            kind,
            ..Event::EMPTY
        };
        event.entry = match (rule.entry_type, self.cells.find(rule.kind_of)) {
            (Some(entry), _) => entry,
            (None, Some((cell, raw))) => raw.char(texts).map_err(|why| (cell, why))?,
            (None, None) => 0,
        };
        if let Some((cell, raw)) = self.cells.find(rule.action) {
            event.action = action(raw, texts).map_err(|why| (cell, why))?;
        }
        if let Some((cell, raw)) = self.cells.find(rule.price) {
            event.price = raw.price(texts).map_err(|why| (cell, why))?;
        }
        if let Some((cell, raw)) = self.cells.find(rule.size) {
            event.size = raw.size(texts).map_err(|why| (cell, why))?;
        }
        if let Some((cell, raw)) = self.cells.find(rule.level) {
            event.level = level(raw, texts).map_err(|why| (cell, why))?;
        }
        if let Some((cell, raw)) = self.cells.find(rule.id) {
            let id = raw.number_of(rule.hashes_id, texts);
            event.id = id.map_err(|why| (cell, why))?;
        }
        if let Some(rpt_seq) = self.at_most(rule.rpt_seq, u32::MAX.into(), texts)? {
            event.rpt_seq = rpt_seq as u32;
        }
        let own = match &rule.time {
            Some(time) => self.time(time, plan, texts)?,
            None => None,
        };
        let time = match own {
            Some(time) => Some(time),
            None => self.sent(plan, texts)?,
        };
        event.ts_event = time.unwrap_or(Event::NO_TIME);
        Ok(event)
    }

    /// Returns the first rule that matches an entry.
    #[inline]
    fn rule<'p>(&self, plan: &'p Plan, texts: &[u8]) -> Result<Option<&'p Rule>, Flaw> {
        for rule in &plan.rules {
            if rule.types != u128::MAX {
                let Some((_, raw)) = self.cells.find(rule.kind_of) else {
                    continue;
                };
                match raw.char(texts) {
                    Ok(kind) if rule.types >> (kind & 127) & 1 != 0 => {}
                    _ => continue,
                }
            }
            let fits = rule.conditions.iter().all(|is| self.is_so(is, texts));
            let has = rule.with.iter().all(|field| self.cells.has(*field));
            let lacks = !rule.without.iter().any(|field| self.cells.has(*field));
            if fits && has && lacks {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// Returns the instrument that an entry or a message names. Returns `None`, and counts it, if
    /// there is none.
    #[inline]
    fn instrument(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<Option<InstrumentId>, Flaw> {
        let id = self.cells.find(plan.id);
        if let Some((_, Raw::Unsigned(number))) = id {
            let source = self.id_source(plan, texts)?;
            if let Some(instrument) = self.known.find(*number, source) {
                return Ok(Some(instrument));
            }
        }
        let symbol = self.cells.find(plan.symbol);
        if id.is_none() && symbol.is_none() {
            let carried = self.message.instrument.filter(|_| plan.carries);
            self.counts.without_instrument += u64::from(carried.is_none());
            return Ok(carried);
        }
        self.look_up(plan, table, texts)
    }

    fn look_up(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<Option<InstrumentId>, Flaw> {
        let source = self.id_source(plan, texts)?;
        let mut room = [0; 24];
        let name = super::define::name(&self.cells, plan, source, texts, &mut room)?;
        let found = match self.unknown {
            Unknown::Add => table.see(&name),
            Unknown::Count => table.find(&name).ok_or(Refused::NoName),
        };
        match found {
            Ok(instrument) => {
                if let SecurityId::Number(number) = name.id {
                    self.known.keep(table, (number, name.source), instrument);
                }
                Ok(Some(instrument))
            }
            Err(Refused::Full) => {
                self.counts.table_full += 1;
                Ok(None)
            }
            Err(_) => {
                self.counts.unknown_instrument += 1;
                Ok(None)
            }
        }
    }

    #[inline]
    fn id_source(&self, plan: &Plan, texts: &[u8]) -> Result<IdSource, Flaw> {
        match self.cells.find(plan.source) {
            Some((cell, raw)) => raw.id_source(texts).map_err(|why| (cell, why)),
            None => Ok(self.source),
        }
    }

    #[inline]
    fn at_most(&self, field: Ref, most: u64, texts: &[u8]) -> Result<Option<u64>, Flaw> {
        match self.cells.find(field) {
            None => Ok(None),
            Some((cell, raw)) => match raw.at_most(most, texts) {
                Ok(value) => Ok(Some(value)),
                Err(why) => Err((cell, why)),
            },
        }
    }

    /// Returns when the message was sent.
    #[inline]
    fn sent(&mut self, plan: &Plan, texts: &[u8]) -> Result<Option<u64>, Flaw> {
        if !self.message.has_sent {
            let sent = match &plan.sent {
                Some(sent) => self.stamped(sent, self.message.ts_recv, texts)?,
                None => None,
            };
            self.message.sent = sent;
            self.message.has_sent = true;
        }
        Ok(self.message.sent)
    }

    #[inline]
    fn time(&mut self, time: &TimePlan, plan: &Plan, texts: &[u8]) -> Result<Option<u64>, Flaw> {
        let needs_date = time.how.format.is_of_day() && time.date.is_none();
        let near = match needs_date || !self.cells.has(time.date) {
            true => self.sent(plan, texts)?.unwrap_or(self.message.ts_recv),
            false => 0,
        };
        self.stamped(time, near, texts)
    }

    /// Returns a time. One without a date is that nearest to `near`, and unknown if `near` is
    /// unknown.
    #[inline]
    fn stamped(&mut self, time: &TimePlan, near: u64, texts: &[u8]) -> Result<Option<u64>, Flaw> {
        let date = match self.cells.find(time.date) {
            None => None,
            Some((cell, raw)) => {
                let digits = raw.whole(texts).map_err(|why| (cell, why))?;
                Some(self.midnight(digits).ok_or((cell, Why::Time))?)
            }
        };
        let Some((cell, raw)) = self.cells.find(time.field) else {
            return Ok(match (date, time.how.format.is_of_day()) {
                (Some(date), true) => time.how.on(date, 0),
                _ => None,
            });
        };
        let value = match raw {
            Raw::Unsigned(value) => time.how.read_number(*value),
            Raw::Signed(value) => match u64::try_from(*value) {
                Ok(value) => time.how.read_number(value),
                Err(_) => None,
            },
            raw => time.how.read_text(raw.text(texts, &mut [0; 24])),
        };
        let found = match (value, time.how.format.is_of_day(), date) {
            (Some(value), false, _) => Some(value),
            (Some(value), true, Some(date)) => time.how.on(date, value),
            (Some(_), true, None) if is_unknown(near) => return Ok(None),
            (Some(value), true, None) => time.how.near(near, value),
            (None, ..) => None,
        };
        found.map(Some).ok_or((cell, Why::Time))
    }

    #[inline]
    pub(super) fn midnight(&mut self, digits: u64) -> Option<i64> {
        if self.date.0 != digits {
            self.date = (digits, date(digits)?);
        }
        Some(self.date.1)
    }

    #[inline(always)]
    pub(super) fn push(&mut self, mut event: Event) {
        event.ts_recv = self.message.ts_recv;
        event.source = self.feed;
        self.events.push(event);
    }

    #[cold]
    fn fault(&mut self, plan: &Plan, (cell, why): Flaw, entry: Option<u32>) {
        self.counts.faults += 1;
        if self.faults.len() == FAULTS {
            self.message.withholds_all = true;
            return;
        }
        self.faults.push(MapError {
            plan: self.message.plan,
            does: plan.does,
            number: None,
            cell,
            entry,
            instrument: self.message.instrument,
            why,
        });
    }

    /// Refuses the message as a whole.
    #[cold]
    pub(super) fn refuse(&mut self, plan: &Plan, flaw: Flaw) {
        self.fault(plan, flaw, None);
        self.message.withholds_all = true;
    }

    fn finish_with(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<Outcome, MapError> {
        let ended = self.end(plan, table, texts);
        let outcome = match ended {
            Ok(outcome) => outcome,
            Err(flaw) => {
                self.fault(plan, flaw, None);
                let number = self.at_most(plan.number, u64::MAX, texts);
                Outcome::numbered(plan.does, number.unwrap_or_default())
            }
        };
        if !self.faults.is_empty() {
            let faults = self.faults.iter_mut();
            faults.for_each(|fault| fault.number = outcome.number);
            self.withhold(plan.does);
        }
        self.complete(table.len());
        match self.faults.first() {
            None => Ok(outcome),
            Some(error) => Err(*error),
        }
    }

    #[inline]
    fn end(&mut self, plan: &Plan, table: &mut Instruments, texts: &[u8]) -> Result<Outcome, Flaw> {
        match plan.does {
            Does::Changes if !plan.has_entries => self.entry_with(plan, table, texts),
            Does::Definition if !plan.has_entries => self.define(plan, table, texts)?,
            Does::Snapshot if !self.message.has_begun => self.begin_snapshot(plan, table, texts),
            Does::Status => self.status(plan, table, texts)?,
            Does::SessionStatus => self.set_status(plan, table, texts, InstrumentId::ALL)?,
            _ => {}
        }
        let mut outcome = Outcome::of(plan.does);
        outcome.number = self.at_most(plan.number, u64::MAX, texts)?;
        outcome.next = self.at_most(plan.next, u64::MAX, texts)?;
        if let (Does::Snapshot, Some(instrument)) = (plan.does, self.message.instrument) {
            outcome.snapshot = Some(Snapshot {
                instrument,
                fragment: self.fragment(plan, texts)?,
                rpt_seq: self.as_of(self.message.passed),
                last_processed: self.at_most(plan.last, u64::MAX, texts)?,
                total: self
                    .at_most(plan.total, u32::MAX.into(), texts)?
                    .map(|n| n as u32),
            });
        }
        outcome.sent = match plan.sent {
            Some(_) => self.sent(plan, texts)?,
            None => None,
        };
        Ok(outcome)
    }

    /// Returns the fragment of the snapshot in the message. Must be called while its Clear has
    /// RptSeq(83) of the message.
    fn fragment(&self, plan: &Plan, texts: &[u8]) -> Result<Option<Fragment>, Flaw> {
        let flag = |field: Ref| match self.cells.find(field) {
            None => Ok(None),
            Some((cell, raw)) => match raw.char(texts) {
                Ok(b'Y' | b'1') => Ok(Some(true)),
                Ok(b'N' | b'0') => Ok(Some(false)),
                _ => Err((cell, Why::NoFlag)),
            },
        };
        let Some(is_last) = flag(plan.last_fragment)? else {
            return Ok(None);
        };
        let number = self.at_most(plan.fragment, u32::MAX.into(), texts)?;
        Ok(Some(Fragment {
            is_last,
            is_first: flag(plan.first_fragment)?,
            number: number.map(|number| number as u32),
            has_rpt_seq: self.events.first().is_some_and(|clear| clear.rpt_seq != 0),
        }))
    }

    /// Returns RptSeq(83) of a snapshot: that of the message, or the highest one of its entries,
    /// which is then set in its [`Kind::Clear`]. `passed` is that of entries without an event.
    pub(super) fn as_of(&mut self, passed: u32) -> u32 {
        let rpt_seq = self.events.iter().map(|event| event.rpt_seq);
        let rpt_seq = rpt_seq.fold(passed, u32::max);
        if let Some(first) = self.events.first_mut() {
            first.rpt_seq = rpt_seq;
        }
        rpt_seq
    }

    fn status(&mut self, plan: &Plan, table: &mut Instruments, texts: &[u8]) -> Result<(), Flaw> {
        let Some(instrument) = self.instrument(plan, table, texts)? else {
            return Ok(());
        };
        self.message.instrument = Some(instrument);
        self.set_status(plan, table, texts, instrument)
    }

    /// Takes the status in a message, unless that of a later one is known.
    fn set_status(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
        instrument: InstrumentId,
    ) -> Result<(), Flaw> {
        let status = self.at_most(plan.status, u16::MAX.into(), texts)?;
        let is_due = |status: &u64| {
            let set = table.set_status_at(instrument, *status as u16, self.place);
            set.is_some()
        };
        match status.filter(is_due) {
            Some(status) => self.push_status(plan, texts, instrument, status),
            None => Ok(()),
        }
    }

    fn push_status(
        &mut self,
        plan: &Plan,
        texts: &[u8],
        instrument: InstrumentId,
        status: u64,
    ) -> Result<(), Flaw> {
        let ts_event = self.sent(plan, texts)?.unwrap_or(Event::NO_TIME);
        self.push(Event {
            instrument,
            ts_event,
            id: status,
            kind: Kind::Status,
            ..Event::EMPTY
        });
        Ok(())
    }

    /// Removes the events of instruments with a fault, except definitions: the table has them, so
    /// that no repetition would be passed on.
    #[cold]
    fn withhold(&mut self, does: Does) {
        if does == Does::Definition {
            return;
        }
        let before = self.events.len() - self.bare;
        if self.message.withholds_all {
            self.events.clear();
            // The other faults do not name every instrument that lacks a change.
            if let Some(last) = self.faults.last_mut().filter(|_| does == Does::Changes) {
                last.instrument = None;
            }
        }
        let faults = &self.faults;
        let is_faulty = |event: &Event| {
            let mut of = faults.iter().filter_map(|fault| fault.instrument);
            of.any(|instrument| instrument == event.instrument)
        };
        self.events.retain(|event| !is_faulty(event));
        let bare = self.events.iter().filter(|event| event.is_bare_number());
        self.bare = bare.count();
        self.counts.withheld += (before + self.bare - self.events.len()) as u64;
    }

    /// Counts the events, and marks the last one of each instrument.
    #[inline(always)]
    pub(super) fn complete(&mut self, instruments: usize) {
        self.counts.events += (self.events.len() - self.bare) as u64;
        let Some((last, before)) = self.events.split_last_mut() else {
            return;
        };
        let instrument = last.instrument;
        if self.bare == 0 && before.iter().all(|event| event.instrument == instrument) {
            last.flags = last.flags.with(Flags::LAST);
        } else {
            self.mark_last_of_each(instruments);
        }
    }

    #[inline(never)]
    fn mark_last_of_each(&mut self, instruments: usize) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.stamps.fill(0);
            self.stamp = 1;
        }
        if self.stamps.len() < instruments {
            self.stamps.resize(instruments, 0);
        }
        let mut newer = None;
        let events = self.events.iter_mut().rev();
        for event in events.filter(|event| !event.is_bare_number()) {
            if newer == Some(event.instrument) {
                continue;
            }
            newer = Some(event.instrument);
            let stamp = self.stamps.get_mut(event.instrument.0 as usize);
            if stamp.is_some_and(|stamp| replace(stamp, self.stamp) != self.stamp) {
                event.flags = event.flags.with(Flags::LAST);
            }
        }
    }
}

/// Returns MDUpdateAction(279).
#[inline]
fn action(raw: &Raw, texts: &[u8]) -> Result<Action, Why> {
    let code = raw.char(texts).map_err(|_| Why::Action)?;
    Action::from_number(i64::from(code) - i64::from(b'0')).ok_or(Why::Action)
}

/// Returns MDPriceLevel(1023), counted from 1.
#[inline]
fn level(raw: &Raw, texts: &[u8]) -> Result<u16, Why> {
    match raw.at_most(u16::MAX.into(), texts)? {
        0 => Err(Why::LevelZero),
        level => Ok(level as u16),
    }
}
