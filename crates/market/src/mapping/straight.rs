//! The fast path from the values of a record to events, for mappings of the usual form. It reads
//! only the values that are used, at their positions.
//!
//! Unusual messages are left to the engine, the slow path: with an instrument that is not in the
//! table yet, an entry that names none, or a value that no event can represent. So there is one
//! place that decides on them.

use super::cells::{self, LEVEL, Ref};
use super::document::Does;
use super::engine::Engine;
use super::outcome::{Fragment, Outcome, Snapshot};
use super::plan::{Rule, TimePlan};
use super::time::{DAY, DateTime, is_unknown};
use super::values::{Class, Finder, Layout, NO_CHAR, Values};
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{IdSource, Instruments, Name, SecurityId};
use crate::price::Price;
use core::fmt::Debug;

/// The conversion of a template's messages to events, where `A` is the position of a value.
#[derive(Debug)]
pub(super) struct Straight<A> {
    does: Does,
    has_entries: bool,
    number: A,
    next: A,
    last: A,
    total: A,
    /// RptSeq(83) of a snapshot, and that of entries that become no event.
    rpt_seq: A,
    entry_rpt_seq: A,
    /// The fragment of a snapshot: whether it is the last, whether it is the first, and its number.
    last_fragment: Flag<A>,
    first_fragment: Flag<A>,
    fragment: A,
    sent: Option<Stamp<A>>,
    /// The time of an entry.
    time: Option<Stamp<A>>,
    /// The values for entries that have none of their own.
    defaults: Defaults<A>,
    id: A,
    /// A text, or no position.
    symbol: A,
    source: IdSource,
    kind_of: A,
    /// The index of a rule by MDEntryType(269), or [`NO_RULE`] or [`LEAVE`].
    rule_of: Box<[u8; NO_CHAR as usize + 1]>,
    rules: Box<[StraightRule<A>]>,
}

/// The value for an MDEntryType(269) without a rule.
const NO_RULE: u8 = u8::MAX;

/// The value for an MDEntryType(269) that is left to the slow path.
const LEAVE: u8 = u8::MAX - 1;

/// The values of the message.
#[derive(Debug)]
struct Defaults<A> {
    rpt_seq: A,
    date: A,
}

#[derive(Debug)]
struct StraightRule<A> {
    /// The kind of event, or `None` if such entries are ignored.
    kind: Option<Kind>,
    entry_type: Option<u8>,
    action: A,
    price: A,
    size: Size<A>,
    level: A,
    id: A,
    rpt_seq: A,
    /// The time, which is the same for all rules.
    time: Option<Stamp<A>>,
}

#[derive(Debug)]
enum Size<A> {
    Signed(A),
    Unsigned(A),
    Decimal(A),
}

/// A Boolean value.
#[derive(Debug)]
enum Flag<A> {
    Text(A),
    Int(A),
}

/// A time that is an integer.
#[derive(Clone, Copy, Debug)]
struct Stamp<A> {
    at: A,
    date: A,
    how: DateTime,
    is_of_day: bool,
    /// The nanoseconds of its unit, if it counts since midnight, and the units of a day, or 0.
    unit: u64,
    most: u64,
}

/// The outcome of a message that is left to the slow path.
#[derive(Debug)]
pub(super) struct Leave;

/// The state of the current message.
struct Turn {
    ts_recv: u64,
    source: u16,
    rpt_seq: u32,
    /// The time of sending, or [`Event::NO_TIME`] if unknown.
    sent: u64,
    /// The beginning of the message's date, UTC, if times of entries need it.
    start: Option<u64>,
    /// The time of day that was read last, and its digits.
    clock: (u64, u64),
    /// The instrument of a snapshot.
    instrument: InstrumentId,
    /// The highest RptSeq(83) of its entries that became no event.
    passed: u32,
    no_rule: u64,
    ignored: u64,
}

/// A compiler of the rules of a [`Straight`].
struct Compiler<'f, 'p, L> {
    finder: &'f Finder<'p, L>,
    /// Whether the fields belong to entries. If a message has none, it is the entry itself.
    is_entry: bool,
    /// The field that supplies RptSeq(83) for entries without one. It is the same for all rules, as
    /// the time is.
    rpt_seq: Option<Ref>,
    time: Option<Option<TimePlan>>,
}

impl<L: Layout> Finder<'_, L> {
    /// Returns how the fast path reads a plan's messages. Returns `None` for definitions and
    /// statuses, which are rare, for instruments named only by their symbols, and for values
    /// without a fixed position. `default` is the source of instruments that name none.
    pub(super) fn straight(&self, default: IdSource) -> Option<Straight<L::At>> {
        let plan = self.plan;
        let is_rare = matches!(
            plan.does,
            Does::Definition | Does::Status | Does::SessionStatus
        );
        let has_events = matches!(plan.does, Does::Changes | Does::Snapshot);
        if is_rare || has_events && plan.id.is_none() {
            return None;
        }
        let kind_of = plan.rules.first().map_or(Ref::NONE, |rule| rule.kind_of);
        let mut compiler = Compiler {
            finder: self,
            is_entry: plan.has_entries,
            rpt_seq: None,
            time: None,
        };
        let (mut rules, rule_of) = compiler.rules(kind_of);
        if has_events && rules.is_empty() {
            return None;
        }
        let time = compiler.time.flatten();
        let dates = time.map_or([Ref::NONE; 2], |time| compiler.split(time.date));
        let of_message = |cells| self.int(cells, false);
        // A snapshot is of one instrument, which the message names.
        let names_each = plan.has_entries && plan.does == Does::Changes;
        let sent = match &plan.sent {
            None => None,
            Some(sent) => Some(self.stamp(sent, sent.date, false)?),
        };
        let time = match &time {
            None => None,
            Some(time) => Some(self.stamp(time, dates[0], plan.has_entries)?),
        };
        for rule in &mut rules {
            rule.time = time;
        }
        Some(Straight {
            does: plan.does,
            has_entries: plan.has_entries,
            number: of_message(plan.number)?,
            next: of_message(plan.next)?,
            last: of_message(plan.last)?,
            total: of_message(plan.total)?,
            rpt_seq: of_message(plan.rpt_seq)?,
            entry_rpt_seq: self.int(plan.entry_rpt_seq, plan.has_entries)?,
            last_fragment: self.flag(plan.last_fragment)?,
            first_fragment: self.flag(plan.first_fragment)?,
            fragment: of_message(plan.fragment)?,
            sent,
            time,
            defaults: Defaults {
                rpt_seq: of_message(compiler.rpt_seq.unwrap_or(Ref::NONE))?,
                date: of_message(dates[1])?,
            },
            id: self.int(plan.id, names_each)?,
            symbol: self.text(plan.symbol, names_each)?,
            source: match plan.source.is_none() {
                true => default,
                false => IdSource::parse(&self.constant(plan.source)?)?,
            },
            kind_of: self.text(kind_of, plan.has_entries)?,
            rule_of: Box::new(rule_of),
            rules: rules.into(),
        })
    }

    fn flag(&self, cells: Ref) -> Option<Flag<L::At>> {
        match self.one(cells, false)? {
            (Class::Text, at) => Some(Flag::Text(at)),
            (Class::Decimal, _) => None,
            (_, at) => Some(Flag::Int(at)),
        }
    }

    fn stamp(&self, time: &TimePlan, date: Ref, is_entry: bool) -> Option<Stamp<L::At>> {
        let unit = time.how.unit_of_day().unwrap_or(0);
        Some(Stamp {
            at: self.int(time.field, is_entry)?,
            date: self.int(date, is_entry)?,
            how: time.how,
            is_of_day: time.how.format.is_of_day(),
            unit,
            most: DAY.checked_div(unit).unwrap_or(0),
        })
    }
}

impl<L: Layout> Compiler<'_, '_, L> {
    /// Returns the rules that the fast path can read, and the one for each MDEntryType(269).
    fn rules(&mut self, kind_of: Ref) -> (Vec<StraightRule<L::At>>, [u8; NO_CHAR as usize + 1]) {
        let mut rules = Vec::new();
        let mut rule_of = [NO_RULE; NO_CHAR as usize + 1];
        for rule in &self.finder.plan.rules {
            let is_plain = rule.kind_of == kind_of
                && rule.conditions.is_empty()
                && rule.with.is_empty()
                && rule.without.is_empty();
            let compiled = self.rule(rule).filter(|_| is_plain);
            let place = match (&compiled, u8::try_from(rules.len())) {
                (Some(_), Ok(place @ 0..LEAVE)) => place,
                _ => LEAVE,
            };
            for (entry_type, first) in (0..).zip(&mut rule_of) {
                let is_for = match entry_type {
                    NO_CHAR => rule.types == u128::MAX,
                    entry_type => rule.types >> entry_type & 1 != 0,
                };
                if is_for && *first == NO_RULE {
                    *first = place;
                }
            }
            rules.extend(compiled);
        }
        if !kind_of.is_none() {
            rule_of[usize::from(NO_CHAR)] = LEAVE;
        }
        (rules, rule_of)
    }

    fn rule(&mut self, rule: &Rule) -> Option<StraightRule<L::At>> {
        let (finder, is_entry) = (self.finder, self.is_entry);
        let int = |cells| finder.int(cells, is_entry);
        let (class, size) = finder.one(rule.size, is_entry)?;
        let (price_class, price) = finder.one(rule.price, is_entry)?;
        let has_decimal_price = price_class == Class::Decimal || rule.price.is_none();
        let [rpt_seq, of_message] = self.split(rule.rpt_seq);
        if rule.kind.is_some() {
            let same_time = *self.time.get_or_insert(rule.time) == rule.time;
            let same = *self.rpt_seq.get_or_insert(of_message) == of_message;
            if !same_time || !same {
                return None;
            }
        }
        has_decimal_price.then_some(StraightRule {
            kind: rule.kind,
            entry_type: rule.entry_type,
            action: int(rule.action)?,
            price,
            size: match class {
                Class::Signed => Size::Signed(size),
                Class::Unsigned => Size::Unsigned(size),
                Class::Decimal => Size::Decimal(size),
                Class::Text => return None,
            },
            level: int(rule.level)?,
            id: int(rule.id)?,
            rpt_seq: int(rpt_seq)?,
            time: None,
        })
    }

    /// Returns the fields of an entry, and those of the message that replace absent ones.
    fn split(&self, cells: Ref) -> [Ref; 2] {
        if !self.is_entry {
            return [cells, Ref::NONE];
        }
        let is_own = |cell: &u8| usize::from(*cell) < LEVEL;
        let count = cells.0.iter().take_while(|cell| is_own(cell)).count();
        let mut parts = [cells, Ref::NONE];
        let [own, behind] = &mut parts;
        for (number, cell) in cells.0.into_iter().enumerate().skip(count) {
            own.0[number] = Ref::END;
            behind.0[number - count] = cell;
        }
        parts
    }
}

impl<A: Copy + Debug> Straight<A> {
    /// Maps a message to events in the engine, which is unchanged if the message is left to the
    /// slow path. Entries are `None` if the sequence is absent.
    #[inline(never)]
    pub(super) fn map<V: Values<At = A>>(
        &self,
        (engine, table): (&mut Engine, &Instruments),
        head: V,
        entries: Option<impl Iterator<Item = V>>,
        (ts_recv, outcome): (u64, &mut Outcome),
    ) -> Result<(), Leave> {
        engine.events.clear();
        engine.bare = 0;
        engine.faults.clear();
        outcome.does = Some(self.does);
        outcome.number = whole(head, self.number)?;
        outcome.next = whole(head, self.next)?;
        outcome.sent = match &self.sent {
            None => None,
            Some(sent) => sent.read(head, engine, ts_recv)?,
        };
        let is_snapshot = self.does == Does::Snapshot;
        if !is_snapshot && self.does != Does::Changes {
            return Ok(());
        }
        let mut turn = self.turn(engine, head, ts_recv, outcome.sent)?;
        if is_snapshot {
            self.begin_snapshot(engine, table, head, &mut turn)?;
        }
        match entries {
            Some(entries) if self.has_entries && is_snapshot => {
                for entry in entries {
                    self.entry::<_, true>(engine, table, entry, &mut turn)?;
                }
            }
            Some(entries) if self.has_entries => {
                for entry in entries {
                    match V::IS_CALLED {
                        true => self.called(engine, table, entry, &mut turn)?,
                        false => self.entry::<_, false>(engine, table, entry, &mut turn)?,
                    }
                }
            }
            _ if self.has_entries || is_snapshot => {}
            _ => self.entry::<_, false>(engine, table, head, &mut turn)?,
        }
        if is_snapshot {
            outcome.snapshot = Some(self.snapshot(engine, head, &turn)?);
        }
        engine.complete(table.len());
        engine.counts.no_rule += turn.no_rule;
        engine.counts.ignored += turn.ignored;
        Ok(())
    }

    #[inline(always)]
    fn turn<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        head: V,
        ts_recv: u64,
        sent: Option<u64>,
    ) -> Result<Turn, Leave> {
        Ok(Turn {
            ts_recv,
            source: engine.feed,
            rpt_seq: small(whole(head, self.defaults.rpt_seq)?.unwrap_or(0))?,
            sent: sent.unwrap_or(Event::NO_TIME),
            start: match &self.time {
                None => None,
                Some(time) => time.start(head, self.defaults.date, engine)?,
            },
            clock: (u64::MAX, 0),
            instrument: InstrumentId::ALL,
            passed: 0,
            no_rule: 0,
            ignored: 0,
        })
    }

    #[inline(never)]
    fn begin_snapshot<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        table: &Instruments,
        head: V,
        turn: &mut Turn,
    ) -> Result<(), Leave> {
        let instrument = self.instrument(engine, table, head)?;
        turn.instrument = instrument;
        engine.events.push(Event {
            ts_event: turn.sent,
            ts_recv: turn.ts_recv,
            instrument,
            rpt_seq: small(whole(head, self.rpt_seq)?.unwrap_or(0))?,
            flags: Flags::SNAPSHOT,
            source: turn.source,
            ..Event::EMPTY
        });
        Ok(())
    }

    #[inline(never)]
    fn snapshot<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        head: V,
        turn: &Turn,
    ) -> Result<Snapshot, Leave> {
        let total = whole(head, self.total)?.map(small).transpose()?;
        let fragment = match self.last_fragment.read(head)? {
            None => None,
            Some(is_last) => Some(Fragment {
                is_last,
                is_first: self.first_fragment.read(head)?,
                number: whole(head, self.fragment)?.map(small).transpose()?,
                has_rpt_seq: engine
                    .events
                    .first()
                    .is_some_and(|clear| clear.rpt_seq != 0),
            }),
        };
        Ok(Snapshot {
            fragment,
            instrument: turn.instrument,
            rpt_seq: engine.as_of(turn.passed),
            last_processed: whole(head, self.last)?,
            total,
        })
    }

    #[inline(never)]
    fn called<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        table: &Instruments,
        entry: V,
        turn: &mut Turn,
    ) -> Result<(), Leave> {
        self.entry::<_, false>(engine, table, entry, turn)
    }

    /// Maps one entry. The values of a mapping that it reads are in its rule, so that the loop
    /// around it does not keep all of them in registers.
    #[inline(always)]
    fn entry<V: Values<At = A>, const IN_SNAPSHOT: bool>(
        &self,
        engine: &mut Engine,
        table: &Instruments,
        entry: V,
        turn: &mut Turn,
    ) -> Result<(), Leave> {
        let instrument = match IN_SNAPSHOT {
            true => turn.instrument,
            false => self.instrument(engine, table, entry)?,
        };
        let entry_type = entry.char(self.kind_of);
        let place = self.rule_of.get(usize::from(entry_type));
        let place = place.copied().unwrap_or(LEAVE);
        let Some(rule) = self.rules.get(usize::from(place)) else {
            turn.no_rule += 1;
            return match place {
                NO_RULE => self.pass_over::<_, IN_SNAPSHOT>(engine, entry, instrument, turn),
                _ => Err(Leave),
            };
        };
        let Some(kind) = rule.kind else {
            turn.ignored += 1;
            return self.pass_over::<_, IN_SNAPSHOT>(engine, entry, instrument, turn);
        };
        if IN_SNAPSHOT && kind == Kind::Clear {
            // It began with one.
            return self.pass_over::<_, IN_SNAPSHOT>(engine, entry, instrument, turn);
        }
        let flags = match IN_SNAPSHOT {
            true => Flags::SNAPSHOT,
            false => Flags::NONE,
        };
        let ts_event = match &rule.time {
            None => turn.sent,
            Some(time) => time.of_entry(entry, engine, turn)?,
        };
        engine.events.push(Event {
            number: 0,
            ts_event,
            ts_recv: turn.ts_recv,
            id: entry.int(rule.id).unwrap_or(0).cast_unsigned(),
            price: rule.price(entry)?,
            size: rule.size.read(entry)?,
            instrument,
            rpt_seq: match entry.int(rule.rpt_seq) {
                None => turn.rpt_seq,
                Some(rpt_seq) => small(rpt_seq.cast_unsigned())?,
            },
            kind,
            action: rule.action(entry)?,
            entry: rule.entry_type.unwrap_or(entry_type & 0x7f),
            flags,
            level: rule.level(entry)?,
            source: turn.source,
        });
        Ok(())
    }

    /// Keeps the number of an entry that becomes no event.
    #[inline(never)]
    fn pass_over<V: Values<At = A>, const IN_SNAPSHOT: bool>(
        &self,
        engine: &mut Engine,
        entry: V,
        instrument: InstrumentId,
        turn: &mut Turn,
    ) -> Result<(), Leave> {
        if !IN_SNAPSHOT && !engine.keeps_numbers {
            return Ok(());
        }
        let rpt_seq = small(whole(entry, self.entry_rpt_seq)?.unwrap_or(0))?;
        if IN_SNAPSHOT {
            turn.passed = turn.passed.max(rpt_seq);
        } else if rpt_seq != 0 {
            engine.bare += 1;
            engine.events.push(Event {
                ts_recv: turn.ts_recv,
                source: turn.source,
                ..Event::bare_number(instrument, rpt_seq)
            });
        }
        Ok(())
    }

    /// Returns the instrument that an entry or a message names by a number.
    #[inline(always)]
    fn instrument<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        table: &Instruments,
        values: V,
    ) -> Result<InstrumentId, Leave> {
        let number = values.int(self.id).ok_or(Leave)?.cast_unsigned();
        match engine.known.find(number, self.source) {
            Some(instrument) => Ok(instrument),
            None => self.look_up(engine, table, values),
        }
    }

    #[inline(never)]
    fn look_up<V: Values<At = A>>(
        &self,
        engine: &mut Engine,
        table: &Instruments,
        values: V,
    ) -> Result<InstrumentId, Leave> {
        let number = whole(values, self.id)?.ok_or(Leave)?;
        let (id, source) = (SecurityId::Number(number), self.source);
        let found = values.with_text(self.symbol, |symbol| {
            table.find(&Name { symbol, id, source })
        });
        let instrument = found.ok_or(Leave)?;
        engine.known.keep(table, (number, source), instrument);
        Ok(instrument)
    }
}

impl<A: Copy + Debug> StraightRule<A> {
    #[inline(always)]
    fn price<V: Values<At = A>>(&self, entry: V) -> Result<Price, Leave> {
        match entry.decimal(self.price) {
            None => Ok(Price::UNDEFINED),
            Some(price) => Price::from_decimal(price).map_err(|_| Leave),
        }
    }

    #[inline(always)]
    fn action<V: Values<At = A>>(&self, entry: V) -> Result<Action, Leave> {
        match entry.int(self.action) {
            None => Ok(Action::New),
            Some(number) => Action::from_number(number).ok_or(Leave),
        }
    }

    #[inline(always)]
    fn level<V: Values<At = A>>(&self, entry: V) -> Result<u16, Leave> {
        match entry.int(self.level) {
            None => Ok(0),
            Some(level @ 1..=0xffff) => Ok(level as u16),
            Some(_) => Err(Leave),
        }
    }
}

impl<A: Copy + Debug> Flag<A> {
    fn read<V: Values<At = A>>(&self, head: V) -> Result<Option<bool>, Leave> {
        match self {
            // Absent or unusual.
            Self::Text(at) => match head.char(*at) {
                b'Y' | b'1' => Ok(Some(true)),
                b'N' | b'0' => Ok(Some(false)),
                _ => Err(Leave),
            },
            Self::Int(at) => match head.int(*at) {
                None => Ok(None),
                Some(flag @ 0..=1) => Ok(Some(flag == 1)),
                Some(_) => Err(Leave),
            },
        }
    }
}

impl<A: Copy + Debug> Size<A> {
    #[inline(always)]
    fn read<V: Values<At = A>>(&self, entry: V) -> Result<i64, Leave> {
        let size = match self {
            Self::Signed(at) => entry.int(*at),
            Self::Unsigned(at) => match entry.int(*at) {
                Some(..0) => return Err(Leave),
                size => size,
            },
            Self::Decimal(at) => match entry.decimal(*at).map(cells::whole_size) {
                Some(Err(_)) => return Err(Leave),
                size => size.and_then(Result::ok),
            },
        };
        match size {
            None => Ok(Event::NO_SIZE),
            Some(Event::NO_SIZE) => Err(Leave),
            Some(size) => Ok(size),
        }
    }
}

/// Returns a number that is not negative.
#[inline(always)]
fn whole<V: Values>(values: V, at: V::At) -> Result<Option<u64>, Leave> {
    match values.int(at) {
        None => Ok(None),
        Some(..0) => Err(Leave),
        Some(number) => Ok(Some(number.cast_unsigned())),
    }
}

/// Returns a number of 32 bits.
#[inline(always)]
fn small(number: u64) -> Result<u32, Leave> {
    u32::try_from(number).map_err(|_| Leave)
}

impl<A: Copy + Debug> Stamp<A> {
    /// Returns the beginning of a date, UTC.
    #[inline(always)]
    fn start<V: Values<At = A>>(
        &self,
        values: V,
        date: A,
        engine: &mut Engine,
    ) -> Result<Option<u64>, Leave> {
        let Some(digits) = whole(values, date)? else {
            return Ok(None);
        };
        if (engine.day.0, engine.day.1) != (digits, self.how.offset()) {
            engine.day = self.begin(digits, engine).ok_or(Leave)?;
        }
        Ok(Some(engine.day.2))
    }

    #[inline(never)]
    fn begin(&self, digits: u64, engine: &mut Engine) -> Option<(u64, i64, u64)> {
        let start = self.how.on(engine.midnight(digits)?, 0)?;
        // The range in which sums are equal on both paths.
        let is_usual = (DAY..u64::MAX / 4).contains(&start);
        is_usual.then_some((digits, self.how.offset(), start))
    }

    /// Returns the nanoseconds since midnight, or UTC if they include a date.
    #[inline(always)]
    fn value(&self, digits: u64, engine: &mut Engine) -> Result<u64, Leave> {
        let value = match self.unit {
            0 => match self.how.split(digits) {
                Some((date, time)) => {
                    let day = engine.midnight(date);
                    time.and_then(|time| self.how.on(day?, time))
                }
                None => self.how.read_number(digits),
            },
            unit => (digits <= self.most).then(|| digits * unit),
        };
        value.ok_or(Leave)
    }

    /// Returns the time of a message: of the day of its date, or near its arrival.
    #[inline(always)]
    fn read<V: Values<At = A>>(
        &self,
        head: V,
        engine: &mut Engine,
        ts_recv: u64,
    ) -> Result<Option<u64>, Leave> {
        let start = self.start(head, self.date, engine)?;
        let Some(digits) = whole(head, self.at)? else {
            return Ok(start.filter(|_| self.is_of_day));
        };
        let value = self.value(digits, engine)?;
        match (self.is_of_day, start) {
            (false, _) => Ok(Some(value)),
            (true, Some(start)) => Ok(Some(start + value)),
            (true, None) if is_unknown(ts_recv) => Ok(None),
            (true, None) => self.how.near(ts_recv, value).map(Some).ok_or(Leave),
        }
    }

    /// Returns the time of an entry: of the day of its own or the message's date, or near the time
    /// of the message. Without a time, it is that of the message.
    #[inline(always)]
    fn of_entry<V: Values<At = A>>(
        &self,
        entry: V,
        engine: &mut Engine,
        turn: &mut Turn,
    ) -> Result<u64, Leave> {
        if let (Some(start), Some(digits)) = (turn.start, entry.int(self.at))
            && digits.cast_unsigned() <= self.most
            && entry.int(self.date).is_none()
        {
            return Ok(start + digits.cast_unsigned() * self.unit);
        }
        self.unusual(entry, engine, turn)
    }

    #[inline(never)]
    fn unusual<V: Values<At = A>>(
        &self,
        entry: V,
        engine: &mut Engine,
        turn: &mut Turn,
    ) -> Result<u64, Leave> {
        let start = self.start(entry, self.date, engine)?.or(turn.start);
        let Some(digits) = whole(entry, self.at)? else {
            return Ok(start.filter(|_| self.is_of_day).unwrap_or(turn.sent));
        };
        if turn.clock.0 != digits {
            turn.clock = (digits, self.value(digits, engine)?);
        }
        let value = turn.clock.1;
        match (self.is_of_day, start) {
            (false, _) => Ok(value),
            (true, Some(start)) => Ok(start + value),
            (true, None) => {
                let near = match turn.sent {
                    Event::NO_TIME => turn.ts_recv,
                    sent => sent,
                };
                match is_unknown(near) {
                    true => Ok(turn.sent),
                    false => self.how.near(near, value).ok_or(Leave),
                }
            }
        }
    }
}
