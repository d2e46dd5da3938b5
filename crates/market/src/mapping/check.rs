//! The effect of a mapping on each field, in words.

use super::cells::LEVEL;
use super::document::Does;
use super::fault::MapError;
use super::plan::Plan;
use crate::event::InstrumentId;
use crate::instruments::Instruments;
use core::fmt::Write as _;
use fanfare_fast::Program;
use fanfare_fast::program::{FieldId, Reset, TemplateProgram};

/// The effect of a mapping on messages and their fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One for each template or MsgType.
    pub messages: Vec<MessageReport>,
}

/// The effect of a mapping on a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageReport {
    /// Its name, with its identifier or MsgType.
    pub name: String,
    /// The purpose of the message, or `None` if the mapping does not name it.
    pub does: Option<Does>,
    /// Its fields in order.
    pub fields: Vec<FieldReport>,
    /// The fields that the mapping names and the message does not have.
    pub missing: Vec<String>,
}

/// The effect of a mapping on a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldReport {
    /// Its name, with its tag.
    pub name: String,
    /// The number of groups and sequences around it.
    pub depth: usize,
    /// The uses of the field, or empty if it is ignored.
    pub uses: Vec<String>,
}

/// Formats a name like `MDEntryPx(270)`.
pub(super) fn name_of(name: &str, number: Option<u32>) -> String {
    match number {
        Some(number) => format!("{name}({number})"),
        None => name.to_owned(),
    }
}

/// Returns the templates with their plans, and the sequences of their entries.
pub(super) fn of_templates<'p>(
    program: &Program,
    plan_of: impl Fn(usize) -> Option<(&'p Plan, Option<FieldId>)>,
) -> Report {
    let messages = program.templates().iter().map(|template| {
        let plan = plan_of(template.index() as usize);
        let mut fields = Vec::new();
        let ids = program.template_fields(template);
        of_fields(program, ids, 0, plan, &mut fields);
        MessageReport {
            name: name_of(template.name(), template.id()),
            does: does(template, plan.map(|(plan, _)| plan)),
            fields,
            missing: plan.map_or(Vec::new(), |(plan, _)| plan.missing.clone()),
        }
    });
    Report {
        messages: messages.collect(),
    }
}

fn does(template: &TemplateProgram, plan: Option<&Plan>) -> Option<Does> {
    match plan {
        Some(plan) => Some(plan.does),
        None => (template.reset() == Reset::All).then_some(Does::Reset),
    }
}

fn of_fields(
    program: &Program,
    ids: &[FieldId],
    depth: usize,
    plan: Option<(&Plan, Option<FieldId>)>,
    to: &mut Vec<FieldReport>,
) {
    for id in ids {
        let field = program.field(*id);
        let mut uses = Vec::new();
        if let Some((plan, entries)) = plan {
            let key = id.index() as u32;
            let used = plan.uses.iter().filter(|used| used.key == key);
            uses.extend(used.flat_map(|used| used.what.iter().cloned()));
            if entries == Some(*id) {
                uses.push("entries".to_owned());
            }
        }
        to.push(FieldReport {
            name: name_of(field.name(), field.tag()),
            depth,
            uses,
        });
        of_fields(program, program.children(*id), depth + 1, plan, to);
    }
}

/// Returns the fields that a plan uses.
pub(super) fn of_plan(plan: &Plan) -> Vec<FieldReport> {
    let fields = plan.uses.iter().map(|used| FieldReport {
        name: plan.field_name(used.cell).unwrap_or_default().to_owned(),
        depth: usize::from(usize::from(used.cell) < LEVEL && plan.has_entries),
        uses: used.what.clone(),
    });
    fields.collect()
}

/// Formats an error with all names.
pub(super) fn describe(error: &MapError, plan: Option<&Plan>, table: &Instruments) -> String {
    let mut text = String::new();
    if let Some(plan) = plan {
        let _ = write!(text, "{}: ", plan.name);
    }
    if let Some(entry) = error.entry {
        let _ = write!(text, "entry {entry}: ");
    }
    if let Some(field) = plan.and_then(|plan| plan.field_name(error.cell)) {
        let _ = write!(text, "{field}: ");
    }
    match error.instrument {
        Some(InstrumentId::ALL) | None => {}
        Some(instrument) => {
            let known = table.get(instrument);
            let name = known.map_or(String::new(), |known| known.definition.name.to_string());
            let _ = write!(text, "instrument {name}: ");
        }
    }
    let _ = write!(text, "{}", error.why);
    text
}
