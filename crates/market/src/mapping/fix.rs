//! Mappings compiled against a FIX dictionary, and applied to FIX messages.

use super::Mapping;
use super::cells::{LEVEL, Ref};
use super::check::{self, MessageReport, Report};
use super::document::{Binding, FieldRef, MessageMap};
use super::engine::Engine;
use super::fault::{MapError, Why};
use super::outcome::{Counts, Outcome};
use super::plan::{Compiler, Fields, Found, Level, Plan, Type};
use crate::event::{Event, InstrumentId};
use crate::instruments::{Instruments, Place};
use crate::text_error::TextError;
use crate::toml_text::Problem;
use fanfare_fix::codec::Message;
use fanfare_fix::dict::{DataType, Dictionary, Item, MessageDef};
use fanfare_fix::tag;
use fanfare_wire::int;

/// The limit of tags that are looked up directly.
const DIRECT: usize = 2048;

/// A mapper of FIX messages to events.
///
/// Each tag is resolved when the mapper is created. It does not allocate once it has seen the
/// largest message.
#[derive(Debug)]
pub struct FixMapper {
    messages: Vec<Mapped>,
    engine: Engine,
}

/// A MsgType that is mapped.
#[derive(Debug)]
struct Mapped {
    msg_type: Box<[u8]>,
    plan: Plan,
    /// The tag that counts the entries, or 0 if there are none.
    count: u32,
    own: Tags,
    of_entries: Tags,
}

/// The cells of tags.
#[derive(Debug)]
struct Tags {
    direct: Box<[u8]>,
    others: Vec<(u32, u8)>,
}

impl Tags {
    fn new() -> Self {
        Self {
            direct: vec![Ref::END; DIRECT].into(),
            others: Vec::new(),
        }
    }

    fn set(&mut self, tag: u32, cell: u8) {
        match self.direct.get_mut(tag as usize) {
            Some(place) => *place = cell,
            None => self.others.push((tag, cell)),
        }
    }

    #[inline(always)]
    fn get(&self, tag: u32) -> u8 {
        match self.direct.get(tag as usize) {
            Some(cell) => *cell,
            None => self.other(tag),
        }
    }

    #[cold]
    fn other(&self, tag: u32) -> u8 {
        let found = self.others.iter().find(|(other, _)| *other == tag);
        found.map_or(Ref::END, |(_, cell)| *cell)
    }
}

impl Mapping {
    /// Compiles the mapping against a dictionary. `feed` is the source in the events, from 1. Parts
    /// of the mapping about templates are ignored. Tags from 5000 on need not be in the dictionary.
    ///
    /// # Errors
    ///
    /// Returns a [`TextError`] with line and key: a MsgType or a field that does not exist, or a
    /// field whose type does not fit its use.
    pub fn for_fix(&self, dictionary: &Dictionary, feed: u16) -> Result<FixMapper, TextError> {
        let document = &self.document;
        let mut messages = Vec::new();
        for map in &document.messages {
            let mapped = self.bind_fix(dictionary, map);
            let mapped = mapped.map_err(|problem| TextError::new(&self.file, problem))?;
            messages.extend(mapped);
        }
        Ok(FixMapper {
            messages,
            engine: Engine::new(document.unknown, document.source, feed),
        })
    }

    fn bind_fix(
        &self,
        dictionary: &Dictionary,
        map: &MessageMap,
    ) -> Result<Option<Mapped>, Problem> {
        let Binding::MsgType(msg_type) = &map.of else {
            return Ok(None);
        };
        let message = dictionary.message(msg_type.as_bytes());
        // Messages of the session belong to the transport, whose dictionary may be another one.
        if message.is_none() && !map.does.is_control() {
            let why = format!("no {} in {}", map.of, dictionary.version());
            return match map.is_optional {
                true => Ok(None),
                false => Err(Problem {
                    why,
                    ..map.place.clone()
                }),
            };
        }
        let fields = MessageFields {
            dictionary,
            message,
            msg_type,
            entries: map.entries.as_ref(),
        };
        let plan = Compiler::compile(&fields, map, self.document.is_strict)?;
        let (mut own, mut of_entries) = (Tags::new(), Tags::new());
        for used in &plan.uses {
            match usize::from(used.cell) < LEVEL {
                true => of_entries.set(used.key, used.cell),
                false => own.set(used.key, used.cell),
            }
        }
        Ok(Some(Mapped {
            msg_type: msg_type.as_bytes().into(),
            count: fields.count().unwrap_or(0),
            plan,
            own,
            of_entries,
        }))
    }
}

/// The fields of a message of a dictionary.
struct MessageFields<'d> {
    dictionary: &'d Dictionary,
    /// The message, or `None` if it may have any field.
    message: Option<&'d MessageDef>,
    msg_type: &'d str,
    entries: Option<&'d FieldRef>,
}

impl MessageFields<'_> {
    /// Returns the tag of a field in a mapping: by its number, by its name, or by a path that ends
    /// in it.
    fn tag(&self, field: &FieldRef) -> Option<u32> {
        let name = field.name.rsplit('.').next().unwrap_or_default();
        field.tag.or_else(|| self.dictionary.tag(name))
    }

    fn count(&self) -> Option<u32> {
        self.tag(self.entries?)
    }

    fn walk(&self, items: &[Item], level: Level, depth: usize, to: &mut Vec<(u32, Level, bool)>) {
        for item in items {
            match item {
                Item::Field { tag, .. } => to.push((*tag, level, false)),
                Item::Group { tag, items, .. } => {
                    to.push((*tag, level, true));
                    let level = match self.count() == Some(*tag) {
                        true => Level::Entry,
                        false => level,
                    };
                    self.walk(items, level, depth, to);
                }
                Item::Component { name, .. } => {
                    // Components that contain themselves would not end.
                    let items = self.dictionary.schema().components.get(name);
                    if let Some(items) = items.filter(|_| depth < 32) {
                        self.walk(items, level, depth + 1, to);
                    }
                }
            }
        }
    }

    /// Returns all fields, with their levels, and whether they are groups.
    fn all(&self) -> Vec<(u32, Level, bool)> {
        let mut all = Vec::new();
        let items = self.message.map_or(&[][..], |message| &message.items);
        self.walk(items, Level::Message, 0, &mut all);
        self.walk(
            &self.dictionary.schema().header,
            Level::Message,
            0,
            &mut all,
        );
        all
    }
}

impl Fields for MessageFields<'_> {
    fn find(&self, field: &FieldRef) -> Vec<Found> {
        let Some(tag) = self.tag(field) else {
            return Vec::new();
        };
        let known = self.dictionary.field(tag);
        let found = |level, is_group| Found {
            key: tag,
            level,
            ty: match known {
                Some(_) if is_group => Type::Many,
                Some(known) => type_of(known.kind),
                None => Type::Any,
            },
            name: check::name_of(known.map_or("", |known| &known.name), Some(tag)),
            is_behind: false,
        };
        let mut all: Vec<Found> = Vec::new();
        for (other, level, is_group) in self.all() {
            if other == tag && !all.iter().any(|found| found.level == level) {
                all.push(found(level, is_group));
            }
        }
        let is_of_users = known.is_none() && tag >= tag::USER_TAGS;
        // The dictionary of an application version has no header of its own.
        let is_open = self.message.is_none() || tag::is_header(tag);
        if all.is_empty() && (is_of_users || is_open) {
            all.push(found(Level::Message, false));
            if is_of_users && self.entries.is_some() {
                all.push(found(Level::Entry, false));
            }
        }
        all.sort_by_key(|found| found.level == Level::Message);
        all
    }

    fn added(&self, field: &FieldRef) -> Option<Found> {
        let tag = self.tag(field)?;
        let known = self.dictionary.field(tag)?;
        Some(Found {
            key: tag,
            level: Level::Message,
            ty: type_of(known.kind),
            name: check::name_of(&known.name, Some(tag)),
            is_behind: false,
        })
    }

    fn has_entries(&self, field: &FieldRef) -> bool {
        let tag = self.tag(field);
        let mut all = self.all().into_iter();
        all.any(|(other, _, is_group)| is_group && Some(other) == tag)
    }

    fn name(&self) -> String {
        let name = self.message.map_or("message", |message| &message.name);
        format!("{name}({})", self.msg_type)
    }
}

const fn type_of(kind: DataType) -> Type {
    match kind {
        DataType::Int
        | DataType::Length
        | DataType::SeqNum
        | DataType::NumInGroup
        | DataType::DayOfMonth => Type::Int,
        DataType::Float
        | DataType::Qty
        | DataType::Price
        | DataType::PriceOffset
        | DataType::Amt
        | DataType::Percentage => Type::Decimal,
        DataType::Data | DataType::XmlData => Type::Bytes,
        _ => Type::Text,
    }
}

impl FixMapper {
    /// Returns the events of the current message. They are complete, without numbers, and the last
    /// one of each instrument is marked.
    pub fn events(&self) -> &[Event] {
        &self.engine.events
    }

    /// Returns a mutable reference to [`FixMapper::events`], for callers that number them.
    pub fn events_mut(&mut self) -> &mut [Event] {
        &mut self.engine.events
    }

    /// Returns the MsgTypes that are mapped.
    pub fn msg_types(&self) -> impl Iterator<Item = &str> {
        let all = self.messages.iter();
        all.map(|mapped| std::str::from_utf8(&mapped.msg_type).unwrap_or_default())
    }

    /// Returns the values of the current message that cannot be represented, as
    /// [`FastMapper::faults`](super::FastMapper::faults) does.
    pub fn faults(&self) -> &[MapError] {
        &self.engine.faults
    }

    /// Returns the instruments whose definitions in the current message change nothing.
    pub(crate) fn unchanged(&self) -> &[InstrumentId] {
        &self.engine.unchanged
    }

    /// Returns the counters.
    pub const fn counts(&self) -> Counts {
        self.engine.counts
    }

    /// Sets whether entries of changes that become no event leave their RptSeq(83) among the
    /// events, for a market that orders changes by it.
    pub(crate) const fn keep_numbers(&mut self, keeps: bool) {
        self.engine.keeps_numbers = keeps;
    }

    /// Sets the place of the next message in its channel. A definition or a status of an earlier
    /// place than the last one is ignored.
    #[inline]
    pub(crate) const fn set_place(&mut self, place: Place) {
        self.engine.place = place;
    }

    /// Continues from the counts of another mapper.
    pub(crate) const fn count_from(&mut self, other: &Self) {
        self.engine.counts = other.engine.counts;
    }

    /// Returns true if it maps every message as the other one does, which must be compiled against
    /// the same dictionary.
    pub fn maps_as(&self, other: &Self) -> bool {
        fn all(of: &FixMapper) -> impl Iterator<Item = (&[u8], &Plan)> {
            of.messages.iter().map(|m| (&*m.msg_type, &m.plan))
        }
        self.engine.is_as(&other.engine) && all(self).eq(all(other))
    }

    /// Formats an error, with the names of message, field and instrument.
    pub fn describe(&self, error: &MapError, table: &Instruments) -> String {
        let mapped = self.messages.get(usize::from(error.plan));
        check::describe(error, mapped.map(|mapped| &mapped.plan), table)
    }

    /// Returns the effect of the mapping on each of its messages and their fields. Ignored fields
    /// are not included.
    pub fn report(&self) -> Report {
        let messages = self.messages.iter().map(|mapped| MessageReport {
            name: mapped.plan.name.clone(),
            does: Some(mapped.plan.does),
            fields: check::of_plan(&mapped.plan),
            missing: mapped.plan.missing.clone(),
        });
        Report {
            messages: messages.collect(),
        }
    }

    /// Maps a message that arrived at `ts_recv`, in nanoseconds since 1970-01-01 UTC. Its events
    /// are in [`FixMapper::events`] until the next message. The table must be the same for all
    /// calls.
    ///
    /// Of a field that is repeated in a message, or in an entry, the first one is used. An entry
    /// begins with the tag that follows the count.
    ///
    /// # Errors
    ///
    /// Returns a [`MapError`], the first of [`FixMapper::faults`]. The events of the instruments
    /// that these name are withheld, and those of the others are available. A message whose number
    /// of entries differs from its count has no events except definitions.
    pub fn message(
        &mut self,
        table: &mut Instruments,
        ts_recv: u64,
        message: &Message<'_>,
    ) -> Result<Outcome, MapError> {
        self.engine.counts.messages += 1;
        let msg_type = message.msg_type();
        let found = self.messages.iter().position(|m| *m.msg_type == *msg_type);
        let Some((number, mapped)) = found.and_then(|n| Some((n, self.messages.get(n)?))) else {
            self.engine.events.clear();
            self.engine.faults.clear();
            self.engine.counts.unmapped += 1;
            return Ok(Outcome::UNMAPPED);
        };
        let (engine, plan) = (&mut self.engine, &mapped.plan);
        engine.begin(number as u16, plan.largest, ts_recv);
        let count = own_fields(engine, mapped, message);
        if let Some(count) = count.filter(|_| plan.has_entries) {
            engine.begin_entries(plan, table);
            entries(engine, mapped, table, message, count);
        }
        engine.finish(plan, table)
    }
}

/// Takes the fields outside of entries, at any position. Returns the position of the count.
#[inline]
fn own_fields(engine: &mut Engine, mapped: &Mapped, message: &Message<'_>) -> Option<usize> {
    let mut count = None;
    for (position, tag) in message.tags().iter().enumerate() {
        let cell = mapped.own.get(*tag);
        if cell != Ref::END && (count.is_none() || mapped.of_entries.get(*tag) == Ref::END) {
            if let Some(field) = message.field(position) {
                engine.cells.set_text(cell, field.value);
            }
        } else if *tag == mapped.count && mapped.count != 0 {
            count.get_or_insert(position);
        }
    }
    count
}

/// Takes the entries, the first of which begins after the count.
#[inline]
fn entries(
    engine: &mut Engine,
    mapped: &Mapped,
    table: &mut Instruments,
    message: &Message<'_>,
    count: usize,
) {
    let tags = message.tags().get(count + 1..).unwrap_or_default();
    let says = message
        .field(count)
        .map(|field| int::parse_u64(field.value));
    let Some(Some(says)) = says else {
        return engine.refuse(&mapped.plan, (Ref::END, Why::NoNumber));
    };
    let delimiter = tags.first().copied().filter(|_| says > 0);
    let mut has = 0;
    for (position, tag) in (count + 1..).zip(tags) {
        if Some(*tag) == delimiter {
            if has > 0 {
                engine.entry(&mapped.plan, table);
            }
            has += 1;
            engine.cells.clear_entry();
        }
        let cell = mapped.of_entries.get(*tag);
        if cell != Ref::END
            && has > 0
            && let Some(field) = message.field(position)
        {
            engine.cells.set_text(cell, field.value);
        }
    }
    if has > 0 {
        engine.entry(&mapped.plan, table);
    }
    if has != says {
        engine.refuse(&mapped.plan, (Ref::END, Why::Count { says, has }));
    }
}
