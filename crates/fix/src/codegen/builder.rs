//! Writers of builders of messages and entries.
//!
//! A builder is a chain of types, its stages. A stage has a method for each field that may follow,
//! which returns the same stage. It also has a method for the required field or group that ends it,
//! which returns the next stage. The last stage, `…Builder`, has only fields that may follow.
//!
//! A required group ends a stage of a message, whose last stage has all optional fields, in any
//! order. The delimiter and each other required field end a stage of an entry. The optional fields
//! before that field belong to the stage, in their order.
//!
//! The other required fields of a message come first, as members of a struct.

use super::enums;
use super::lines::Lines;
use super::model::{Block, Kind, Member, Model};
use super::tables;

/// Writes the builder of a message.
pub(super) fn message(model: &Model, message: &Block, out: &mut Lines) {
    let is_group = |member: &&Member| matches!(member.kind, Kind::Group(_));
    let (required, optional): (Vec<_>, Vec<_>) =
        writable(message).partition(|member| member.required);
    let (groups, required): (Vec<_>, Vec<_>) = required.into_iter().partition(is_group);
    structure(model, message, &required, out);
    reader(model, message, &required, out);
    let words = optional.len().div_ceil(64).max(1);
    let chain = Chain {
        model,
        block: message,
        state: format!("typed::Body<'w, 'b, {words}>"),
        stages: groups.len() + 1,
    };
    begin(&chain, &required, groups.first().copied(), out);
    for (stage, group) in groups.iter().enumerate() {
        let next = groups.get(stage + 1);
        let demand = next.map(|next| format!("self.out.demand({});", next.tag));
        let writer = format!("self.out.supply({})", group.tag);
        let end = End {
            member: group,
            writer,
            demand,
        };
        chain.write(stage, &[], Some(&end), out);
    }
    let setters: Vec<(String, &Member)> = optional
        .iter()
        .enumerate()
        .map(|(place, member)| (format!("self.out.once({place}, {})", member.tag), *member))
        .collect();
    chain.write(groups.len(), &setters, None, out);
}

/// Writes the builder of an entry.
pub(super) fn entry(model: &Model, entry: &Block, out: &mut Lines) {
    let members: Vec<&Member> = writable(entry).collect();
    let is_end = |place: usize| place == 0 || members[place].required;
    let chain = Chain {
        model,
        block: entry,
        state: "typed::Ordered<'w, 'b>".to_owned(),
        stages: (0..members.len()).filter(|place| is_end(*place)).count() + 1,
    };
    let mut setters = Vec::new();
    let mut stage = 0;
    for (place, member) in members.iter().enumerate() {
        let writer = format!("self.out.reach({place}, {})", member.tag);
        if !is_end(place) {
            setters.push((writer, *member));
            continue;
        }
        let end = End {
            member,
            writer,
            demand: None,
        };
        chain.write(stage, &setters, Some(&end), out);
        setters.clear();
        stage += 1;
    }
    chain.write(stage, &setters, None, out);
}

/// Returns the fields that a builder writes, in order. A data field is in the place of its length
/// field.
fn writable(block: &Block) -> impl Iterator<Item = &Member> {
    let members = &block.members;
    members.iter().filter_map(move |member| match member.kind {
        Kind::Length(data) => members.iter().find(|other| other.tag == data),
        Kind::Data(Some(_)) => None,
        _ => Some(member),
    })
}

/// Writes the struct of a message's required fields, if there are any.
fn structure(model: &Model, message: &Block, required: &[&Member], out: &mut Lines) {
    if required.is_empty() {
        return;
    }
    out.gap();
    out.line(&format!(
        "/// The required fields of {}, without groups.",
        message.title
    ));
    out.line("#[derive(Debug, Clone, Copy)]");
    let lifetime = lifetime(model, required);
    out.open(&format!("pub struct {}Fields{lifetime} {{", message.name));
    for member in required {
        out.line(&format!("/// {}.", member.title));
        let value = value_type(model, member.kind);
        out.line(&format!("pub {}: {value},", member.name));
    }
    out.close("}");
}

/// Writes the method that reads this struct, unless a field of it holds several values. Those are
/// written from a slice, which a reader cannot make without allocation.
fn reader(model: &Model, message: &Block, required: &[&Member], out: &mut Lines) {
    let is_several = |member: &&Member| matches!(member.kind, Kind::Several(_));
    if required.is_empty() || required.iter().any(is_several) {
        return;
    }
    let name = &message.name;
    let lifetime = match lifetime(model, required) {
        "" => "",
        _ => "<'a>",
    };
    out.gap();
    out.open(&format!("impl<'a> {name}<'a> {{"));
    out.line("/// Returns the required fields, without groups, as a builder takes them.");
    out.line("#[inline]");
    let result = format!("Result<{name}Fields{lifetime}, FieldError>");
    out.function("pub fn required", &["&self"], &result);
    out.open(&format!("Ok({name}Fields {{"));
    for Member { name, .. } in required {
        out.line(&format!("{name}: self.{name}()?,"));
    }
    out.close("})");
    out.close("}");
    out.close("}");
}

/// Returns the generics of the struct of required fields.
fn lifetime(model: &Model, required: &[&Member]) -> &'static str {
    let mut values = required.iter().map(|member| value_type(model, member.kind));
    match values.any(|value| value.contains("'v")) {
        true => "<'v>",
        false => "",
    }
}

/// Writes the function that begins a message.
fn begin(chain: &Chain<'_>, required: &[&Member], group: Option<&Member>, out: &mut Lines) {
    let name = &chain.block.name;
    out.gap();
    out.open(&format!("impl {name}<'_> {{"));
    out.line(
        "/// Writes the required fields, behind the standard header of a message of this type,",
    );
    out.line("/// and returns the builder of the others.");
    out.line("#[inline]");
    let fields = match lifetime(chain.model, required) {
        "" => format!("fields: {name}Fields"),
        _ => format!("fields: {name}Fields<'_>"),
    };
    let mut parameters = vec!["out: &'w mut FieldWriter<'b>"];
    if !required.is_empty() {
        parameters.push(&fields);
    }
    let first = chain.name(0);
    let result = format!("{first}<'w, 'b>");
    out.function("pub fn build<'w, 'b>", &parameters, &result);
    for member in required {
        let value = format!("fields.{}", member.name);
        out.line(&put(member, "out", &value));
    }
    match group {
        None => out.line(&format!("{first} {{ out: typed::Body::new(out) }}")),
        Some(group) => {
            out.line("let mut out = typed::Body::new(out);");
            out.line(&format!("out.demand({});", group.tag));
            out.line(&format!("{first} {{ out }}"));
        }
    }
    out.close("}");
    out.close("}");
}

/// The stages of a message or an entry.
struct Chain<'a> {
    model: &'a Model,
    block: &'a Block,
    /// The type of the state of each stage.
    state: String,
    stages: usize,
}

/// The field or group that ends a stage.
struct End<'a> {
    member: &'a Member,
    /// The expression of the writer for the member.
    writer: String,
    /// The statement that demands the group that ends the next stage.
    demand: Option<String>,
}

impl Chain<'_> {
    fn name(&self, stage: usize) -> String {
        let name = &self.block.name;
        match stage {
            _ if stage + 1 == self.stages => format!("{name}Builder"),
            0 => format!("{name}Start"),
            _ => format!("{name}Step{stage}"),
        }
    }

    /// Writes a stage: the methods for its fields, with the expressions of their writers, and the
    /// method for its end.
    fn write(
        &self,
        stage: usize,
        setters: &[(String, &Member)],
        end: Option<&End<'_>>,
        out: &mut Lines,
    ) {
        let name = self.name(stage);
        self.structure(&name, end, out);
        let has_group = setters
            .iter()
            .any(|(_, member)| matches!(member.kind, Kind::Group(_)));
        let (generics, of) = match end {
            None if setters.is_empty() => return,
            None if has_group => ("<'b>", "<'_, 'b>"),
            None => ("", "<'_, '_>"),
            Some(_) => ("<'w, 'b>", "<'w, 'b>"),
        };
        out.gap();
        out.open(&format!("impl{generics} {name}{of} {{"));
        for (writer, member) in setters {
            setter(self.model, member, writer, out);
        }
        if let Some(end) = end {
            advance(self.model, end, &self.name(stage + 1), out);
        }
        out.close("}");
    }

    fn structure(&self, name: &str, end: Option<&End<'_>>, out: &mut Lines) {
        let title = &self.block.title;
        out.gap();
        match end {
            Some(End { member, .. }) => {
                let what = &member.title;
                out.line(&format!(
                    "/// Writes {title} up to {what}, which has to follow."
                ));
                out.line(&format!("#[must_use = \"{what} has to follow\"]"));
            }
            None => {
                out.line(&format!("/// Writes what may follow in {title}."));
            }
        }
        out.line("#[derive(Debug)]");
        out.open(&format!("pub struct {name}<'w, 'b> {{"));
        out.line(&format!("out: {},", self.state));
        out.close("}");
    }
}

/// Writes the method for a field that may follow.
fn setter(model: &Model, member: &Member, writer: &str, out: &mut Lines) {
    if let Kind::Group(number) = member.kind {
        group(model, member, number, "Self", out);
        // A group that is left out is not noted: the one in front of it stays the last.
        out.open("if items.len() > 0 {");
        write_group(model, member, number, writer, out);
        out.close("}");
        out.line("self");
        return out.close("}");
    }
    out.gap();
    out.line(&format!("/// {}.", member.title));
    out.line("#[inline]");
    let value = value_type(model, member.kind);
    let head = format!("pub fn {}", member.name);
    if let Kind::Several(_) | Kind::Data(_) = member.kind {
        let parameter = format!("value: {}", elided(&value));
        out.function(&head, &["mut self", &parameter], "Self");
        out.line(&format!("let out = {writer};"));
        out.line(&put(member, "out", "value"));
    } else {
        let lifetime = if value.contains("'v") { "<'v>" } else { "" };
        let parameter = format!("value: impl Into<Option<{value}>>");
        out.function(
            &format!("{head}{lifetime}"),
            &["mut self", &parameter],
            "Self",
        );
        out.open("if let Some(value) = value.into() {");
        out.line(&format!("let out = {writer};"));
        out.line(&put(member, "out", "value"));
        out.close("}");
    }
    out.line("self");
    out.close("}");
}

/// Writes the method for the field or group that ends a stage.
fn advance(model: &Model, end: &End<'_>, next: &str, out: &mut Lines) {
    let End { member, writer, .. } = end;
    let result = format!("{next}<'w, 'b>");
    if let Kind::Group(number) = member.kind {
        group(model, member, number, &result, out);
        write_group(model, member, number, writer, out);
    } else {
        out.gap();
        out.line(&format!("/// {}.", member.title));
        out.line("#[inline]");
        let parameter = format!("value: {}", elided(&value_type(model, member.kind)));
        let head = format!("pub fn {}", member.name);
        out.function(&head, &["mut self", &parameter], &result);
        out.line(&format!("let out = {writer};"));
        out.line(&put(member, "out", "value"));
    }
    if let Some(demand) = &end.demand {
        out.line(demand);
    }
    out.line(&format!("{next} {{ out: self.out }}"));
    out.close("}");
}

/// Writes the head of a method that writes a group.
fn group(model: &Model, member: &Member, number: usize, result: &str, out: &mut Lines) {
    let entry = &model.entries[number].name;
    out.gap();
    out.line(&format!(
        "/// {}: `entry` writes an entry for each of `items`.",
        member.title
    ));
    out.line("#[inline]");
    out.open(&format!("pub fn {}<I, F>(", member.name));
    out.line("mut self,");
    out.line("items: I,");
    out.line("mut entry: F,");
    out.close(&format!(") -> {result}"));
    out.line("where");
    out.line("    I: IntoIterator<IntoIter: ExactSizeIterator>,");
    out.line(&format!(
        "    F: for<'e> FnMut({entry}Start<'e, 'b>, I::Item) -> {entry}Builder<'e, 'b>,"
    ));
    out.open("{");
    out.line("let items = items.into_iter();");
}

/// Writes the statements that write a group, also one without entries: its count field may be the
/// delimiter of an entry.
fn write_group(model: &Model, member: &Member, number: usize, writer: &str, out: &mut Lines) {
    let entry = &model.entries[number].name;
    let level = tables::entry_level(model, number);
    let tag = member.tag;
    out.line(&format!("let out = {writer};"));
    out.open(&format!(
        "typed::write_group(out, {tag}, items, |out, item| {{"
    ));
    out.line(&format!("entry({entry}Start {{ out }}, item);"));
    out.close("});");
    out.line(&format!("self.out.behind(&GROUPS, {level});"));
}

/// Returns the type of a value that is written, with the lifetime `'v` if it borrows.
fn value_type(model: &Model, kind: Kind) -> String {
    let listed = |number: usize| {
        let item = &model.enums[number];
        format!("{}{}", item.name, enums::lifetime(item)).replace("'a", "'v")
    };
    match kind {
        Kind::Text => "&'v str".to_owned(),
        Kind::Char => "u8".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::Int => "i64".to_owned(),
        Kind::Unsigned => "u64".to_owned(),
        Kind::Decimal => "Decimal".to_owned(),
        Kind::Timestamp => "UtcTimestamp".to_owned(),
        Kind::Data(_) => "&'v [u8]".to_owned(),
        Kind::Listed(number) => listed(number),
        Kind::Several(number) => format!("&'v [{}]", listed(number)),
        Kind::Length(_) | Kind::Group(_) => "()".to_owned(),
    }
}

/// Returns a type without the names of lifetimes.
fn elided(value: &str) -> String {
    value.replace("&'v ", "&").replace("'v", "'_")
}

/// Returns the statement that writes a value.
fn put(member: &Member, writer: &str, value: &str) -> String {
    let tag = member.tag;
    let plain = |method: &str| format!("{writer}.{method}({tag}, {value});");
    match member.kind {
        Kind::Text => plain("str"),
        Kind::Char => plain("char"),
        Kind::Bool => plain("bool"),
        Kind::Int => plain("i64"),
        Kind::Unsigned => plain("u64"),
        Kind::Decimal => plain("decimal"),
        Kind::Timestamp => format!("typed::write_timestamp({writer}, {tag}, {value});"),
        Kind::Data(Some(length)) => {
            format!("typed::write_data({writer}, {length}, {tag}, {value});")
        }
        Kind::Data(None) => plain("field"),
        Kind::Listed(_) => format!("{writer}.field({tag}, {value}.wire());"),
        Kind::Several(_) => format!("typed::write_values({writer}, {tag}, {value});"),
        Kind::Length(_) | Kind::Group(_) => String::new(),
    }
}
