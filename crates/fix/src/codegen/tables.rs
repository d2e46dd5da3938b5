//! A writer of the static table of repeating groups.

use std::collections::BTreeSet;

use super::lines::{Lines, literal};
use super::model::{Block, Kind, Member, Model};

/// The most words of a set of tags. Higher tags are searched for.
const MAX_WORDS: u32 = 1024;

pub(super) fn write(model: &Model, out: &mut Lines) {
    out.gap();
    out.line("/// The repeating groups of these messages.");
    out.open("pub static GROUPS: typed::Groups = typed::Groups {");
    out.open("messages: &[");
    for (level, message) in model.messages.iter().enumerate() {
        out.line(&format!("({}, {level}),", literal(&message.msg_type)));
    }
    out.close("],");
    out.open("levels: &[");
    for message in &model.messages {
        let counts = counts(model, model.header.iter().chain(&message.members));
        out.line(&format!("typed::Level::new(0, &[{counts}], &[], &[]),"));
    }
    for entry in &model.entries {
        level(model, entry, out);
    }
    out.close("],");
    out.close("};");
}

/// Returns the number of the level of an entry. The levels of messages come first.
pub(super) fn entry_level(model: &Model, entry: usize) -> usize {
    model.messages.len() + entry
}

fn level(model: &Model, entry: &Block, out: &mut Lines) {
    let delimiter = entry.members.first().map_or(0, |member| member.tag);
    let mut tags = BTreeSet::new();
    collect(model, entry, &mut tags);
    let words = tags.last().map_or(0, |last| (last / 64 + 1).min(MAX_WORDS));
    let tags: Vec<String> = tags.iter().map(u32::to_string).collect();
    let tags = format!("&[{}]", tags.join(", "));
    out.open("typed::Level::new(");
    out.line(&format!("{delimiter}, // {}", entry.name));
    out.line(&format!("&[{}],", counts(model, &entry.members)));
    out.line(&format!("{tags},"));
    out.line(&format!("&typed::tag_set::<{words}>({tags}),"));
    out.close("),");
}

/// Returns the count fields with the levels of their entries, ascending, as code.
fn counts<'a>(model: &Model, members: impl IntoIterator<Item = &'a Member>) -> String {
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for member in members {
        if let Kind::Group(entry) = member.kind {
            counts.push((member.tag, entry_level(model, entry)));
        }
    }
    counts.sort_unstable();
    counts.dedup_by_key(|count| count.0);
    let counts = counts
        .iter()
        .map(|(tag, level)| format!("({tag}, {level})"));
    counts.collect::<Vec<_>>().join(", ")
}

/// Adds the tags of an entry, and of the groups in it, to `tags`.
fn collect(model: &Model, entry: &Block, tags: &mut BTreeSet<u32>) {
    for member in &entry.members {
        tags.insert(member.tag);
        if let Kind::Group(entry) = member.kind {
            collect(model, &model.entries[entry], tags);
        }
    }
}
