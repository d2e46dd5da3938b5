//! Mappings compiled against FAST templates, and applied to their messages.

use super::Mapping;
use super::cells::{Raw, Ref};
use super::check::{self, Report};
use super::document::{Binding, Does, FieldRef, MessageMap};
use super::engine::Engine;
use super::fault::MapError;
use super::outcome::{Counts, Outcome};
use super::plan::{Compiler, Fields, Found, Level, Plan, Type};
use super::straight::Straight;
use super::values::{Finder, InLevels, InRow, InRows, Lane};
use crate::event::{Event, InstrumentId};
use crate::instruments::{IdSource, Instruments, Place};
use crate::text_error::TextError;
use crate::toml_text::Problem;
use fanfare_fast::program::{Field, FieldId, FieldKind, Op, Reset, TemplateProgram};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::value::TextType;
use fanfare_fast::{Decimal, Message, Program, Record, Seat, Visitor};
use std::sync::Arc;

/// A mapper of the messages of a FAST feed to events.
///
/// Each field is resolved when the mapper is created, so that it looks up no names at run time
/// except those of instruments. It does not allocate once it has seen the largest message.
#[derive(Debug)]
pub struct FastMapper {
    program: Arc<Program>,
    /// The plans by template.
    plans: Box<[Option<Mapped>]>,
    /// The cell of each field.
    cells: Box<[u8]>,
    engine: Engine,
}

/// A template that is mapped.
#[derive(Debug)]
struct Mapped {
    plan: Plan,
    entries: Option<FieldId>,
    /// The fast path for records in rows.
    in_rows: Option<Straight<Lane>>,
    /// The fast path for records that are messages, with the position of their entries.
    in_levels: Option<(Straight<Seat>, Option<Seat>)>,
}

impl Mapped {
    fn new(program: &Program, plan: Plan, entries: Option<FieldId>, source: IdSource) -> Self {
        let in_rows = Finder {
            layout: InRows(program),
            program,
            plan: &plan,
        };
        let in_levels = Finder {
            layout: InLevels(program, entries),
            program,
            plan: &plan,
        };
        let seat = entries.map(|entries| program.seat(entries));
        let in_levels = match seat {
            Some(None) => None,
            seat => in_levels
                .straight(source)
                .map(|straight| (straight, seat.flatten())),
        };
        Self {
            in_rows: in_rows.straight(source),
            in_levels,
            entries,
            plan,
        }
    }
}

impl Mapping {
    /// Compiles the mapping against templates. `feed` is the source in the events, from 1.
    ///
    /// # Errors
    ///
    /// Returns a [`TextError`] with line and key: a template or a field that does not exist, a
    /// field whose type does not fit its use, or two mappings of one template.
    pub fn for_templates(
        &self,
        program: &Arc<Program>,
        feed: u16,
    ) -> Result<FastMapper, TextError> {
        let document = &self.document;
        let mut plans: Vec<Option<Mapped>> = Vec::new();
        plans.resize_with(program.templates().len(), || None);
        let mut cells = vec![Ref::END; program.fields().len()];
        for map in &document.messages {
            let mapped = self.bind(program, map, &mut plans, &mut cells);
            mapped.map_err(|problem| TextError::new(&self.file, problem))?;
        }
        Ok(FastMapper {
            program: Arc::clone(program),
            plans: plans.into(),
            cells: cells.into(),
            engine: Engine::new(document.unknown, document.source, feed),
        })
    }

    fn bind(
        &self,
        program: &Program,
        map: &MessageMap,
        plans: &mut [Option<Mapped>],
        cells: &mut [u8],
    ) -> Result<(), Problem> {
        let wrong = |why: String| Problem {
            why,
            ..map.place.clone()
        };
        let bound = templates_of(program, &map.of);
        if bound.is_empty() && !map.is_optional {
            return Err(wrong(format!("no {}", map.of)));
        }
        for template in bound {
            let fields = TemplateFields {
                program,
                template,
                entries: map.entries.as_ref(),
            };
            let plan = Compiler::compile(&fields, map, self.document.is_strict)?;
            let index = template.index() as usize;
            let Some(place) = plans.get_mut(index) else {
                continue;
            };
            if place.is_some() {
                return Err(wrong(format!(
                    "duplicate: {} is mapped already, by another name",
                    plan.name
                )));
            }
            for used in &plan.uses {
                if let Some(cell) = cells.get_mut(used.key as usize) {
                    *cell = used.cell;
                }
            }
            let (entries, source) = (fields.entries(), self.document.source);
            *place = Some(Mapped::new(program, plan, entries, source));
        }
        Ok(())
    }
}

/// Returns the templates that a mapping's message is about.
fn templates_of<'p>(program: &'p Program, binding: &Binding) -> Vec<&'p TemplateProgram> {
    match binding {
        Binding::Template(name) => program.by_name(name).into_iter().collect(),
        Binding::Id(id) => program.by_id(*id).into_iter().collect(),
        Binding::MsgType(msg_type) => {
            let is_of = |template: &&TemplateProgram| {
                msg_type_of(program, template) == Some(msg_type.as_bytes())
            };
            program.templates().iter().filter(is_of).collect()
        }
    }
}

/// Returns MsgType(35) of all messages of a template.
fn msg_type_of<'p>(program: &'p Program, template: &TemplateProgram) -> Option<&'p [u8]> {
    let fields = program.template_fields(template).iter();
    let mut ops = fields.filter(|id| program.field(**id).tag() == Some(35));
    match program.op(*ops.next()?) {
        Op::Text(op) if op.operator == OperatorKind::Constant => {
            op.initial.map(|text| program.text(text))
        }
        _ => None,
    }
}

/// The fields of a template.
struct TemplateFields<'p> {
    program: &'p Program,
    template: &'p TemplateProgram,
    entries: Option<&'p FieldRef>,
}

impl TemplateFields<'_> {
    fn entries(&self) -> Option<FieldId> {
        self.sequence(self.entries?)
    }

    fn sequence(&self, of: &FieldRef) -> Option<FieldId> {
        let mut ids = self.program.template_fields(self.template).iter();
        let found = ids.find(|id| {
            let field = self.program.field(**id);
            field.is_sequence() && is_called(field, field.name(), of)
        });
        found.copied()
    }

    fn walk(&self, ids: &[FieldId], place: &mut Walked, of: &FieldRef, found: &mut Vec<Found>) {
        for id in ids {
            let field = self.program.field(*id);
            let before = place.path.len();
            if before != 0 {
                place.path.push('.');
            }
            place.path.push_str(field.name());
            let is_elsewhere = place.in_other && !of.name.contains('.');
            if !is_elsewhere && is_called(field, &place.path, of) {
                found.push(Found {
                    key: id.index() as u32,
                    level: place.level,
                    ty: type_of(field.kind()),
                    name: check::name_of(field.name(), field.tag()),
                    is_behind: place.is_behind && place.level == Level::Message,
                });
            }
            let children = self.program.children(*id);
            let is_entries = place.entries == Some(*id);
            let (level, in_other) = (place.level, place.in_other);
            if is_entries {
                place.level = Level::Entry;
            } else if field.is_sequence() {
                place.in_other = true;
            }
            self.walk(children, place, of, found);
            (place.level, place.in_other) = (level, in_other);
            place.is_behind |= is_entries;
            place.path.truncate(before);
        }
    }
}

/// The position of a walk through a template.
struct Walked {
    entries: Option<FieldId>,
    level: Level,
    /// Whether the field is in another sequence than the entries'.
    in_other: bool,
    is_behind: bool,
    path: String,
}

fn is_called(field: &Field, path: &str, of: &FieldRef) -> bool {
    match of.tag {
        Some(tag) => field.tag() == Some(tag),
        None => field.name() == of.name || path == of.name,
    }
}

const fn type_of(kind: FieldKind) -> Type {
    match kind {
        FieldKind::Int(_) => Type::Int,
        FieldKind::Decimal => Type::Decimal,
        FieldKind::Text(TextType::Ascii) => Type::Text,
        FieldKind::Text(TextType::Unicode) => Type::Unicode,
        FieldKind::Text(TextType::Bytes) => Type::Bytes,
        FieldKind::Group | FieldKind::Sequence | FieldKind::TemplateRef => Type::Many,
    }
}

impl Fields for TemplateFields<'_> {
    fn find(&self, field: &FieldRef) -> Vec<Found> {
        let mut place = Walked {
            entries: self.entries(),
            level: Level::Message,
            in_other: false,
            is_behind: false,
            path: String::new(),
        };
        let mut found = Vec::new();
        let ids = self.program.template_fields(self.template);
        self.walk(ids, &mut place, field, &mut found);
        found.sort_by_key(|found| found.level == Level::Message);
        found
    }

    fn has_entries(&self, field: &FieldRef) -> bool {
        self.sequence(field).is_some()
    }

    fn name(&self) -> String {
        check::name_of(self.template.name(), self.template.id())
    }
}

impl FastMapper {
    /// Returns the templates.
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the events of the current message. They are complete, without numbers, and the last
    /// one of each instrument is marked.
    pub fn events(&self) -> &[Event] {
        &self.engine.events
    }

    /// Returns a mutable reference to [`FastMapper::events`], for callers that number them.
    pub fn events_mut(&mut self) -> &mut [Event] {
        &mut self.engine.events
    }

    /// Returns the values of the current message that cannot be represented, the first of which is
    /// its error. With more than 32, all events of the message except definitions are withheld, and
    /// the last one kept names no instrument.
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

    /// Returns true if it maps every message as the other one does, which must have the same
    /// templates. Mappings that differ in comments, or in parts that no template uses, are equal.
    pub fn maps_as(&self, other: &Self) -> bool {
        let mut plans = self.plans.iter().zip(&other.plans);
        let are_same = |(own, other): (&Option<Mapped>, &Option<Mapped>)| match (own, other) {
            (Some(own), Some(other)) => own.entries == other.entries && own.plan == other.plan,
            (own, other) => own.is_none() && other.is_none(),
        };
        self.engine.is_as(&other.engine) && self.cells == other.cells && plans.all(are_same)
    }

    /// Formats an error, with the names of message, field and instrument.
    pub fn describe(&self, error: &MapError, table: &Instruments) -> String {
        let plans = self.plans.get(usize::from(error.plan));
        let plan = plans.and_then(|mapped| mapped.as_ref());
        check::describe(error, plan.map(|mapped| &mapped.plan), table)
    }

    /// Returns the effect of the mapping on each template and each of its fields.
    pub fn report(&self) -> Report {
        let mapped = |index: usize| self.plans.get(index).and_then(|mapped| mapped.as_ref());
        check::of_templates(&self.program, |index| {
            mapped(index).map(|mapped| (&mapped.plan, mapped.entries))
        })
    }

    /// Returns whether the fast path reads records of a template in this form (in rows or not).
    #[cfg(test)]
    pub(super) fn reads_straight(&self, template: &str, is_in_rows: bool) -> bool {
        let template = self.program.by_name(template);
        let mapped = template.and_then(|t| self.plans.get(t.index() as usize)?.as_ref());
        mapped.is_some_and(|mapped| match is_in_rows {
            true => mapped.in_rows.is_some(),
            false => mapped.in_levels.is_some(),
        })
    }

    /// Returns whether the last message took the slow path.
    #[cfg(test)]
    pub(super) const fn has_walked(&self, ts_recv: u64) -> bool {
        self.engine.ts_recv() == ts_recv
    }

    /// Maps a message decoded by a decoder of these templates, or by a channel. It arrived at
    /// `ts_recv`, in nanoseconds since 1970-01-01 UTC. Its events are in [`FastMapper::events`]
    /// until the next message. The table must be the same for all calls.
    ///
    /// # Errors
    ///
    /// Returns a [`MapError`], the first of [`FastMapper::faults`]. The events of the instruments
    /// that these name are withheld, and those of the others are available.
    #[inline]
    pub fn record(
        &mut self,
        table: &mut Instruments,
        ts_recv: u64,
        record: &Record,
    ) -> Result<Outcome, MapError> {
        self.engine.counts.messages += 1;
        let index = record.template_index().unwrap_or(u32::MAX) as usize;
        let Some(Some(mapped)) = self.plans.get(index) else {
            return Ok(unmapped(&mut self.engine, &self.program, index));
        };
        let engine = &mut self.engine;
        let mut outcome = Outcome::UNMAPPED;
        let out = (ts_recv, &mut outcome);
        let straight = match record.rows() {
            Some(rows) => mapped.in_rows.as_ref().map(|straight| {
                let entries = rows.entries().map(|entries| entries.map(InRow::new));
                straight.map((engine, table), InRow::new(rows.head()), entries, out)
            }),
            None => mapped.in_levels.as_ref().and_then(|(straight, seat)| {
                let level = record.level()?;
                let entries = seat.and_then(|seat| level.entries(seat));
                Some(straight.map((engine, table), level, entries, out))
            }),
        };
        if let Some(Ok(())) = straight {
            return Ok(outcome);
        }
        self.walk(table, ts_recv, record, index)
    }

    /// Maps the message by the slow path.
    #[inline(never)]
    fn walk(
        &mut self,
        table: &mut Instruments,
        ts_recv: u64,
        record: &Record,
        index: usize,
    ) -> Result<Outcome, MapError> {
        let Some(Some(mapped)) = self.plans.get(index) else {
            return Ok(Outcome::UNMAPPED);
        };
        let engine = &mut self.engine;
        engine.begin(index as u16, mapped.plan.largest, ts_recv);
        walked(engine, (mapped, &self.cells), table, |walk| {
            record.visit(&self.program, walk);
        })
    }

    /// Maps a message of these templates, as [`FastMapper::record`] does.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`FastMapper::record`].
    pub fn message(
        &mut self,
        table: &mut Instruments,
        ts_recv: u64,
        message: &Message,
    ) -> Result<Outcome, MapError> {
        self.engine.counts.messages += 1;
        let index = message.template_index().unwrap_or(u32::MAX) as usize;
        let (Some(Some(mapped)), Some(view)) = (self.plans.get(index), message.view(&self.program))
        else {
            return Ok(unmapped(&mut self.engine, &self.program, index));
        };
        self.engine
            .begin(index as u16, mapped.plan.largest, ts_recv);
        let engine = &mut self.engine;
        walked(engine, (mapped, &self.cells), table, |walk| {
            view.visit(walk);
        })
    }
}

/// Returns the outcome of a template that is not mapped. The Reset message is the same in all
/// templates.
fn unmapped(engine: &mut Engine, program: &Program, index: usize) -> Outcome {
    engine.events.clear();
    engine.faults.clear();
    match program.templates().get(index) {
        Some(template) if template.reset() == Reset::All => Outcome::of(Does::Reset),
        _ => {
            engine.counts.unmapped += 1;
            Outcome::UNMAPPED
        }
    }
}

/// Maps a message whose fields `visit` passes to the walk.
#[inline]
fn walked(
    engine: &mut Engine,
    (mapped, cells): (&Mapped, &[u8]),
    table: &mut Instruments,
    visit: impl FnOnce(&mut Walk<'_>),
) -> Result<Outcome, MapError> {
    visit(&mut Walk {
        engine: &mut *engine,
        mapped,
        cells,
        table: &mut *table,
        foreign: 0,
    });
    engine.finish(&mapped.plan, table)
}

/// A visitor that takes the values from a decoder or a message.
struct Walk<'a> {
    engine: &'a mut Engine,
    mapped: &'a Mapped,
    cells: &'a [u8],
    table: &'a mut Instruments,
    /// The number of open dynamic references, whose fields belong to other templates.
    foreign: u32,
}

impl Walk<'_> {
    #[inline(always)]
    fn cell(&self, field: &Field) -> u8 {
        let cell = self.cells.get(field.id().index()).copied();
        cell.unwrap_or(Ref::END)
    }

    #[inline(always)]
    fn set(&mut self, field: &Field, value: Raw) {
        let cell = self.cell(field);
        if cell != Ref::END && self.foreign == 0 {
            self.engine.cells.set(cell, value);
        }
    }

    #[inline(always)]
    fn set_text(&mut self, field: &Field, value: &[u8]) {
        let cell = self.cell(field);
        if cell != Ref::END && self.foreign == 0 {
            self.engine.cells.set_text(cell, value);
        }
    }

    #[inline(always)]
    fn is_entries(&self, field: &Field) -> bool {
        self.mapped.entries == Some(field.id()) && self.foreign == 0
    }
}

impl Visitor for Walk<'_> {
    #[inline(always)]
    fn unsigned(&mut self, field: &Field, value: u64) {
        self.set(field, Raw::Unsigned(value));
    }

    #[inline(always)]
    fn signed(&mut self, field: &Field, value: i64) {
        self.set(field, Raw::Signed(value));
    }

    #[inline(always)]
    fn decimal(&mut self, field: &Field, value: Decimal) {
        self.set(field, Raw::Decimal(value));
    }

    #[inline(always)]
    fn ascii(&mut self, field: &Field, value: &[u8]) {
        self.set_text(field, value);
    }

    #[inline(always)]
    fn unicode(&mut self, field: &Field, value: &[u8]) {
        self.set_text(field, value);
    }

    #[inline(always)]
    fn bytes(&mut self, field: &Field, value: &[u8]) {
        self.set_text(field, value);
    }

    fn begin_sequence(&mut self, field: &Field, _: u32) {
        if self.is_entries(field) {
            self.engine.begin_entries(&self.mapped.plan, self.table);
        }
    }

    #[inline(always)]
    fn begin_entry(&mut self, field: &Field, _: u32) {
        if self.is_entries(field) {
            self.engine.cells.clear_entry();
        }
    }

    #[inline(always)]
    fn end_entry(&mut self, field: &Field) {
        if self.is_entries(field) {
            self.engine.entry(&self.mapped.plan, self.table);
        }
    }

    fn begin_template(&mut self, _: &Field, _: &TemplateProgram) {
        self.foreign += 1;
    }

    fn end_template(&mut self, _: &Field) {
        self.foreign = self.foreign.saturating_sub(1);
    }
}
