//! A mapping compiled against the fields of messages.

use super::cells::{LEVEL, Ref};
use super::document::{Does, EventMap, FieldRef, MessageMap, Refs, TimeMap, kind_name};
use super::keys::{EventKey, MessageKey};
use super::time::DateTime;
use crate::event::Kind;
use crate::instruments::Column;
use crate::toml_text::Problem;
use fanfare_wire::Decimal;

/// The plan of a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Its name, for errors.
    pub(super) name: String,
    pub(super) does: Does,
    pub(super) number: Ref,
    pub(super) last: Ref,
    pub(super) last_fragment: Ref,
    pub(super) first_fragment: Ref,
    pub(super) fragment: Ref,
    pub(super) total: Ref,
    pub(super) next: Ref,
    pub(super) status: Ref,
    pub(super) rpt_seq: Ref,
    /// RptSeq(83) of the entries, if all rules name the same field.
    pub(super) entry_rpt_seq: Ref,
    pub(super) sent: Option<TimePlan>,
    pub(super) id: Ref,
    pub(super) source: Ref,
    pub(super) symbol: Ref,
    pub(super) carries: bool,
    pub(super) rules: Box<[Rule]>,
    pub(super) definition: Vec<(Column, Ref)>,
    pub(super) maturity: Option<TimePlan>,
    /// The conditions under which a definition closes its instrument, or none if it never does.
    pub(super) closed: Box<[Condition]>,
    /// The conditions under which a definition is a part, or none if each is whole.
    pub(super) partial: Box<[Condition]>,
    /// Whether each entry is mapped on its own.
    pub(super) has_entries: bool,
    /// The cells that keep their largest value.
    pub(super) largest: u128,
    /// The names of the fields of the cells.
    pub(super) names: Vec<(u8, String)>,
    /// The cell and the use of each field.
    pub(super) uses: Vec<Used>,
    /// The fields that the mapping names and the message does not have.
    pub(super) missing: Vec<String>,
}

/// A field that is used.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Used {
    /// The number of the field in its program, or its tag.
    pub(super) key: u32,
    pub(super) cell: u8,
    pub(super) what: Vec<String>,
}

/// A time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimePlan {
    pub(super) field: Ref,
    pub(super) date: Ref,
    pub(super) how: DateTime,
}

/// The mapping of an entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rule {
    pub(super) kind: Option<Kind>,
    /// The MDEntryTypes of one character that it applies to.
    pub(super) types: u128,
    pub(super) conditions: Box<[Condition]>,
    pub(super) with: Box<[Ref]>,
    pub(super) without: Box<[Ref]>,
    pub(super) entry_type: Option<u8>,
    pub(super) hashes_id: bool,
    pub(super) kind_of: Ref,
    pub(super) action: Ref,
    pub(super) price: Ref,
    pub(super) size: Ref,
    pub(super) level: Ref,
    pub(super) id: Ref,
    pub(super) rpt_seq: Ref,
    pub(super) time: Option<TimePlan>,
}

/// A condition that a field has one of some values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) field: Ref,
    pub(super) values: Box<[Expected]>,
}

/// A value that a field may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expected {
    pub(super) text: Box<[u8]>,
    pub(super) number: Option<Decimal>,
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Decimal,
    Text,
    Unicode,
    Bytes,
    /// A field with fields of its own.
    Many,
    /// A field that no dictionary knows, whose values are typed on arrival.
    Any,
}

/// The level of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Message,
    Entry,
}

/// A field of a message.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) key: u32,
    pub(super) level: Level,
    pub(super) ty: Type,
    /// Its name, with its tag.
    pub(super) name: String,
    /// Whether it is after the entries, so that these cannot use it.
    pub(super) is_behind: bool,
}

/// The fields of a message, by their names in a mapping.
pub(super) trait Fields {
    /// Returns the fields of this name or tag, those of entries first.
    fn find(&self, field: &FieldRef) -> Vec<Found>;
    /// Returns a field of the message itself that venues add to a snapshot although it is not
    /// defined there. The fields of templates are as they are defined.
    fn added(&self, _: &FieldRef) -> Option<Found> {
        None
    }
    /// Returns whether the message has this sequence of entries.
    fn has_entries(&self, field: &FieldRef) -> bool;
    /// Returns the name of the message.
    fn name(&self) -> String;
}

/// The type that a use of a field requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    /// An integer, or digits.
    Whole,
    Price,
    Size,
    /// A text, or an integer.
    Text,
    Time(DateTime),
    /// A date as digits.
    Date,
    /// Anything with a value.
    Value,
}

impl Want {
    const fn of_message(key: MessageKey) -> Self {
        match key {
            MessageKey::LastFragment | MessageKey::FirstFragment => Self::Text,
            MessageKey::Number
            | MessageKey::Last
            | MessageKey::Total
            | MessageKey::Next
            | MessageKey::RptSeq
            | MessageKey::Status
            | MessageKey::Fragment => Self::Whole,
        }
    }

    const fn of_event(key: EventKey) -> Self {
        match key {
            EventKey::Type | EventKey::Id => Self::Text,
            EventKey::Price => Self::Price,
            EventKey::Size => Self::Size,
            EventKey::Action | EventKey::Level | EventKey::RptSeq => Self::Whole,
        }
    }

    const fn of_column(column: Column) -> Self {
        match column {
            Column::Description
            | Column::Type
            | Column::Cfi
            | Column::Currency
            | Column::Market
            | Column::Segment
            | Column::Underlying
            | Column::MaturityMonth => Self::Text,
            Column::Tick
            | Column::Multiplier
            | Column::Strike
            | Column::LowLimit
            | Column::HighLimit => Self::Price,
            Column::Depth | Column::BookType | Column::Status => Self::Whole,
        }
    }

    const fn takes(self, ty: Type) -> bool {
        match (self, ty) {
            (_, Type::Any) => true,
            (_, Type::Many | Type::Bytes) => false,
            (Self::Value, _) => true,
            (Self::Price | Self::Size, ty) => !matches!(ty, Type::Unicode),
            (Self::Text, ty) => !matches!(ty, Type::Decimal),
            (Self::Whole | Self::Date, ty) => matches!(ty, Type::Int | Type::Text),
            (Self::Time(how), Type::Int) => how.format.takes_integers(),
            (Self::Time(_), ty) => matches!(ty, Type::Text),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Whole => "a whole number",
            Self::Price => "a price",
            Self::Size => "a size",
            Self::Text => "a text",
            Self::Time(_) => "a time of this format",
            Self::Date => "a date",
            Self::Value => "a value",
        }
    }
}

/// Compiles one message.
pub(super) struct Compiler<'c, F> {
    fields: &'c F,
    is_strict: bool,
    plan: Plan,
    /// The cells in use, of entries and of messages.
    taken: [u8; 2],
}

impl<'c, F: Fields> Compiler<'c, F> {
    pub(super) fn compile(
        fields: &'c F,
        map: &MessageMap,
        is_strict: bool,
    ) -> Result<Plan, Problem> {
        let mut compiler = Self {
            fields,
            is_strict,
            plan: Plan::empty(fields.name(), map.does),
            taken: [0; 2],
        };
        compiler.message(map)?;
        for event in &map.events {
            let rule = compiler.rule(event)?;
            let mut rules = std::mem::take(&mut compiler.plan.rules).into_vec();
            rules.push(rule);
            compiler.plan.rules = rules.into();
        }
        compiler.plan.entry_rpt_seq = compiler.plan.number_of_entries();
        for (key, refs) in &map.definition {
            let what = format!("definition: {}", key.name());
            let found = compiler.all(refs, Want::of_column(*key), &what)?;
            if *key == Column::Depth {
                compiler.plan.largest |= bits(found);
            }
            compiler.plan.definition.push((*key, found));
        }
        compiler.plan.maturity = compiler.time(map.maturity.as_ref(), "definition: maturity")?;
        compiler.plan.closed = compiler.conditions(&map.closed, "definition: closed")?;
        compiler.plan.partial = compiler.conditions(&map.partial, "definition: partial")?;
        Ok(compiler.plan)
    }

    fn conditions(
        &mut self,
        all: &[(FieldRef, Vec<String>)],
        what: &str,
    ) -> Result<Box<[Condition]>, Problem> {
        let conditions = all.iter().map(|(field, values)| {
            let found = self.one(field, Want::Value, what)?;
            Ok(Condition::new(found, values))
        });
        conditions.collect()
    }

    fn message(&mut self, map: &MessageMap) -> Result<(), Problem> {
        if let Some(entries) = &map.entries {
            if !self.fields.has_entries(entries) {
                let why = format!("no sequence {} in {}", entries.name, self.plan.name);
                return Err(at(entries, why));
            }
            self.plan.has_entries = true;
        }
        for (key, refs) in &map.fields {
            let what = match *key {
                MessageKey::Status => key.name().to_owned(),
                key => format!("drives the channel: {}", key.name()),
            };
            let want = Want::of_message(*key);
            let found = match map.does == Does::Snapshot && *key != MessageKey::Number {
                true => self.of_snapshot(refs, want, &what)?,
                false => self.all(refs, want, &what)?,
            };
            *self.plan.field_mut(*key) = found;
        }
        self.plan.sent = self.time(map.sent.as_ref(), "time of the message")?;
        self.plan.id = self.all(&map.id, Want::Text, "instrument: id")?;
        self.plan.source = self.all(&map.source, Want::Text, "instrument: source")?;
        self.plan.symbol = self.all(&map.symbol, Want::Text, "instrument: symbol")?;
        self.plan.carries = map.carries;
        if map.does == Does::Snapshot {
            self.check_snapshot(map)?;
        }
        let has_name = !(self.plan.id.is_none() && self.plan.symbol.is_none());
        match has_name || map.id.is_empty() && map.symbol.is_empty() {
            true => Ok(()),
            false => {
                let why = format!("{} has none of the instrument's fields", self.plan.name);
                Err(Problem {
                    why,
                    ..map.place.clone()
                })
            }
        }
    }

    /// Checks that a snapshot is of one instrument, which the message names.
    fn check_snapshot(&self, map: &MessageMap) -> Result<(), Problem> {
        for (refs, cells) in [(&map.id, self.plan.id), (&map.symbol, self.plan.symbol)] {
            let in_entry = cells.0.iter().any(|cell| usize::from(*cell) < LEVEL);
            if in_entry && let Some(field) = refs.first() {
                let why = "a snapshot has one instrument: this field is in its entries";
                return Err(at(field, why.to_owned()));
            }
        }
        Ok(())
    }

    fn rule(&mut self, event: &EventMap) -> Result<Rule, Problem> {
        let kind = kind_name(event.kind);
        let mut rule = Rule::new(event);
        for (key, refs) in &event.fields {
            if event.kind.is_none() && *key != EventKey::Type {
                continue;
            }
            let what = format!("{kind}: {}", key.name());
            *rule.field_mut(*key) = self.all(refs, Want::of_event(*key), &what)?;
        }
        if event.kind.is_some() {
            rule.time = self.time(event.time.as_ref(), &format!("{kind}: time"))?;
        }
        let mut conditions = Vec::new();
        for (field, values) in &event.when {
            let found = self.one(field, Want::Value, "condition")?;
            if found.is_none() {
                // An absent field has no value.
                rule.types = 0;
            }
            match types(values).filter(|_| found == rule.kind_of && !found.is_none()) {
                Some(types) => rule.types &= types,
                None => conditions.push(Condition::new(found, values)),
            }
        }
        rule.conditions = conditions.into();
        for (refs, to) in [
            (&event.with, &mut rule.with),
            (&event.without, &mut rule.without),
        ] {
            let found = refs
                .iter()
                .map(|refs| self.all(refs, Want::Value, "condition"));
            *to = found.collect::<Result<_, _>>()?;
        }
        if rule.with.iter().any(|field| field.is_none()) {
            rule.types = 0;
        }
        Ok(rule)
    }

    fn time(&mut self, map: Option<&TimeMap>, what: &str) -> Result<Option<TimePlan>, Problem> {
        let Some(map) = map else {
            return Ok(None);
        };
        let field = self.all(&map.fields, Want::Time(map.how), what)?;
        let date = self.all(&map.dates, Want::Date, what)?;
        let is_there = !(field.is_none() && date.is_none());
        Ok(is_there.then_some(TimePlan {
            field,
            date,
            how: map.how,
        }))
    }

    /// Returns the cells of alternative fields, of which the first one that is present is used.
    fn all(&mut self, refs: &Refs, want: Want, what: &str) -> Result<Ref, Problem> {
        let mut cells = Vec::new();
        let mut missing = None;
        for field in refs {
            let found = self.cells(field, want, what)?;
            if found.is_empty() {
                missing = Some(field);
            }
            cells.extend(found);
        }
        self.check(cells, refs.first(), missing, what)
    }

    /// Returns the cells as [`Self::all`] does, including fields that venues add to snapshots.
    fn of_snapshot(&mut self, refs: &Refs, want: Want, what: &str) -> Result<Ref, Problem> {
        let mut cells = Vec::new();
        let mut missing = None;
        for field in refs {
            let mut found = self.fields.find(field);
            if !found.iter().any(|found| found.level == Level::Message) {
                found.extend(self.fields.added(field));
            }
            if found.is_empty() {
                missing = Some(field);
            }
            cells.extend(self.cells_of(field, found, want, what)?);
        }
        self.check(cells, refs.first(), missing, what)
    }

    fn one(&mut self, field: &FieldRef, want: Want, what: &str) -> Result<Ref, Problem> {
        let cells = self.cells(field, want, what)?;
        let missing = cells.is_empty().then_some(field);
        self.check(cells, Some(field), missing, what)
    }

    fn check(
        &mut self,
        cells: Vec<u8>,
        first: Option<&FieldRef>,
        missing: Option<&FieldRef>,
        what: &str,
    ) -> Result<Ref, Problem> {
        if let Some(field) = missing {
            let (name, message) = (&field.name, &self.plan.name);
            if self.is_strict && cells.is_empty() {
                return Err(at(field, format!("no field {name} in {message}")));
            }
            let text = format!("{name} ({what})");
            if !self.plan.missing.contains(&text) {
                self.plan.missing.push(text);
            }
        }
        let mut all = Ref::NONE;
        if let (true, Some(field)) = (cells.len() > Ref::MOST, first) {
            let why = format!("more than {} fields of {}", Ref::MOST, self.plan.name);
            return Err(at(field, why));
        }
        for (to, cell) in all.0.iter_mut().zip(cells) {
            *to = cell;
        }
        Ok(all)
    }

    fn cells(&mut self, field: &FieldRef, want: Want, what: &str) -> Result<Vec<u8>, Problem> {
        let found = self.fields.find(field);
        self.cells_of(field, found, want, what)
    }

    fn cells_of(
        &mut self,
        field: &FieldRef,
        found: Vec<Found>,
        want: Want,
        what: &str,
    ) -> Result<Vec<u8>, Problem> {
        let mut cells = Vec::new();
        for found in found {
            if !want.takes(found.ty) {
                let why = format!(
                    "{} of {} is {}, which cannot be {}",
                    found.name,
                    self.plan.name,
                    found.ty.name(),
                    want.name()
                );
                return Err(at(field, why));
            }
            if found.is_behind && self.plan.has_entries {
                let why = format!(
                    "{} follows the entries of {}, which are decoded before it",
                    found.name, self.plan.name
                );
                return Err(at(field, why));
            }
            cells.push(self.cell(field, &found, what)?);
        }
        Ok(cells)
    }

    fn cell(&mut self, field: &FieldRef, found: &Found, what: &str) -> Result<u8, Problem> {
        let begin = match found.level {
            Level::Entry => 0,
            Level::Message => LEVEL as u8,
        };
        let same =
            |used: &&mut Used| used.key == found.key && (used.cell >= LEVEL as u8) == (begin != 0);
        if let Some(used) = self.plan.uses.iter_mut().find(same) {
            if !used.what.iter().any(|other| other == what) {
                used.what.push(what.to_owned());
            }
            return Ok(used.cell);
        }
        let taken = &mut self.taken[usize::from(begin != 0)];
        if usize::from(*taken) >= LEVEL - 1 {
            return Err(at(
                field,
                format!("more than {} fields are used", LEVEL - 1),
            ));
        }
        let cell = begin + *taken;
        *taken += 1;
        self.plan.names.push((cell, found.name.clone()));
        self.plan.uses.push(Used {
            key: found.key,
            cell,
            what: vec![what.to_owned()],
        });
        Ok(cell)
    }
}

fn at(field: &FieldRef, why: String) -> Problem {
    Problem {
        why,
        ..field.place.clone()
    }
}

fn bits(field: Ref) -> u128 {
    let cells = field.0.iter().take_while(|cell| **cell != Ref::END);
    cells.fold(0, |bits, cell| bits | 1 << (cell & 127))
}

/// Returns the set of these characters, or `None` if one of the values is not a character.
fn types(values: &[String]) -> Option<u128> {
    values
        .iter()
        .try_fold(0, |types, value| match value.as_bytes() {
            [byte] if *byte < 128 => Some(types | 1 << byte),
            _ => None,
        })
}

impl Type {
    const fn name(self) -> &'static str {
        match self {
            Self::Int => "an integer",
            Self::Decimal => "a decimal",
            Self::Text => "an ASCII string",
            Self::Unicode => "a Unicode string",
            Self::Bytes => "a byte vector",
            Self::Many => "a group or a sequence",
            Self::Any => "a text",
        }
    }
}

impl Plan {
    fn empty(name: String, does: Does) -> Self {
        Self {
            name,
            does,
            number: Ref::NONE,
            last: Ref::NONE,
            last_fragment: Ref::NONE,
            first_fragment: Ref::NONE,
            fragment: Ref::NONE,
            total: Ref::NONE,
            next: Ref::NONE,
            status: Ref::NONE,
            rpt_seq: Ref::NONE,
            entry_rpt_seq: Ref::NONE,
            sent: None,
            id: Ref::NONE,
            source: Ref::NONE,
            symbol: Ref::NONE,
            carries: false,
            rules: Box::new([]),
            definition: Vec::new(),
            maturity: None,
            closed: Box::new([]),
            partial: Box::new([]),
            has_entries: false,
            largest: 0,
            names: Vec::new(),
            uses: Vec::new(),
            missing: Vec::new(),
        }
    }

    const fn field_mut(&mut self, key: MessageKey) -> &mut Ref {
        match key {
            MessageKey::Number => &mut self.number,
            MessageKey::Last => &mut self.last,
            MessageKey::Total => &mut self.total,
            MessageKey::Next => &mut self.next,
            MessageKey::RptSeq => &mut self.rpt_seq,
            MessageKey::Status => &mut self.status,
            MessageKey::LastFragment => &mut self.last_fragment,
            MessageKey::FirstFragment => &mut self.first_fragment,
            MessageKey::Fragment => &mut self.fragment,
        }
    }

    /// Returns the field of [`Self::entry_rpt_seq`]. A field of the message does not number its
    /// entries.
    fn number_of_entries(&self) -> Ref {
        let rules = self.rules.iter().filter(|rule| rule.kind.is_some());
        let mut fields = rules.map(|rule| rule.rpt_seq);
        let first = fields.next().unwrap_or(Ref::NONE);
        let mut own = Ref::NONE;
        if fields.all(|field| field == first) {
            let is_own = |cell: &u8| !self.has_entries || usize::from(*cell) < LEVEL;
            let cells = first.0.into_iter().filter(is_own);
            own.0
                .iter_mut()
                .zip(cells)
                .for_each(|(to, cell)| *to = cell);
        }
        own
    }

    /// Returns the name of the field of a cell in errors.
    pub(super) fn field_name(&self, cell: u8) -> Option<&str> {
        let found = self.names.iter().find(|(other, _)| *other == cell);
        found.map(|(_, name)| name.as_str())
    }
}

impl Rule {
    fn new(event: &EventMap) -> Self {
        Self {
            kind: event.kind,
            types: u128::MAX,
            conditions: Box::new([]),
            with: Box::new([]),
            without: Box::new([]),
            entry_type: event.entry_type,
            hashes_id: event.hashes_id,
            kind_of: Ref::NONE,
            action: Ref::NONE,
            price: Ref::NONE,
            size: Ref::NONE,
            level: Ref::NONE,
            id: Ref::NONE,
            rpt_seq: Ref::NONE,
            time: None,
        }
    }

    const fn field_mut(&mut self, key: EventKey) -> &mut Ref {
        match key {
            EventKey::Type => &mut self.kind_of,
            EventKey::Action => &mut self.action,
            EventKey::Price => &mut self.price,
            EventKey::Size => &mut self.size,
            EventKey::Level => &mut self.level,
            EventKey::Id => &mut self.id,
            EventKey::RptSeq => &mut self.rpt_seq,
        }
    }
}

impl Condition {
    fn new(field: Ref, values: &[String]) -> Self {
        let values = values.iter().map(|value| Expected {
            text: value.as_bytes().into(),
            number: Decimal::parse(value.as_bytes()),
        });
        Self {
            field,
            values: values.collect(),
        }
    }
}
