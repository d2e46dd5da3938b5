//! Writers of readers: the header, messages and entries, and the enum of the messages.

use super::enums;
use super::lines::{Lines, literal};
use super::model::{Block, Kind, Member, Model};

/// Writes `Messages` and `crack`.
pub(super) fn messages(model: &Model, out: &mut Lines) {
    out.gap();
    out.line("/// A received message of one of these types.");
    out.line("#[derive(Debug, Clone, Copy)]");
    out.open("pub enum Messages<'a> {");
    for message in &model.messages {
        out.line(&format!("/// {}.", message.title));
        out.line(&format!("{0}({0}<'a>),", message.name));
    }
    out.close("}");
    out.gap();
    out.line("/// Returns a message by its MsgType(35), or `None` if it is of another type.");
    out.line("///");
    out.line(&format!(
        "/// The version is not looked at: the message is taken as one of {}.",
        model.version
    ));
    out.function(
        "pub fn crack<'a>",
        &["message: &Message<'a>"],
        "Option<Messages<'a>>",
    );
    out.open("Some(match message.msg_type() {");
    for message in &model.messages {
        let name = &message.name;
        let value = format!("Messages::{name}({name}::of(message))");
        out.arm(&literal(&message.msg_type), &value);
    }
    out.line("_ => return None,");
    out.close("})");
    out.close("}");
}

/// Writes the reader of a message. The number of its level in the table of groups is `level`.
pub(super) fn message(model: &Model, message: &Block, level: usize, out: &mut Lines) {
    let Block { name, title, .. } = message;
    out.gap();
    structure(name, &format!("A received {title}."), out);
    out.gap();
    out.open(&format!("impl<'a> {name}<'a> {{"));
    out.line("/// MsgType(35).");
    let msg_type = literal(&message.msg_type);
    out.line(&format!("pub const MSG_TYPE: &'static [u8] = {msg_type};"));
    out.gap();
    out.line("/// Returns the message, or `None` if its MsgType(35) is another.");
    out.line("#[inline]");
    out.function("pub fn read", &["message: &Message<'a>"], "Option<Self>");
    out.line("(message.msg_type() == Self::MSG_TYPE).then(|| Self::of(message))");
    out.close("}");
    out.gap();
    out.line("#[inline]");
    out.function("fn of", &["message: &Message<'a>"], "Self");
    out.open("Self {");
    out.line(&format!(
        "fields: typed::fields(message, &GROUPS, {level}),"
    ));
    out.close("}");
    out.close("}");
    fields(out);
    if !model.header.is_empty() {
        out.gap();
        out.line("/// Returns the standard header.");
        out.line("#[inline]");
        out.function("pub fn header", &["&self"], "Header<'a>");
        out.open("Header {");
        out.line("fields: self.fields,");
        out.close("}");
        out.close("}");
    }
    members(model, &message.members, out);
    out.close("}");
}

/// Writes the reader of an entry.
pub(super) fn entry(model: &Model, entry: &Block, out: &mut Lines) {
    let Block { name, title, .. } = entry;
    out.gap();
    structure(name, &format!("What was received as {title}."), out);
    out.gap();
    out.open(&format!("impl<'a> typed::Entry<'a> for {name}<'a> {{"));
    out.line("#[inline]");
    out.function("fn of", &["fields: FieldSet<'a>"], "Self");
    out.line("Self { fields }");
    out.close("}");
    out.close("}");
    out.gap();
    out.open(&format!("impl<'a> {name}<'a> {{"));
    fields(out);
    members(model, &entry.members, out);
    out.close("}");
}

/// Writes the reader of the header, if the dictionary has one.
pub(super) fn header(model: &Model, out: &mut Lines) {
    if model.header.is_empty() {
        return;
    }
    out.gap();
    structure("Header", "The standard header of a received message.", out);
    out.gap();
    out.open("impl<'a> Header<'a> {");
    members(model, &model.header, out);
    out.close("}");
}

fn structure(name: &str, doc: &str, out: &mut Lines) {
    out.line(&format!("/// {doc}"));
    out.line("#[derive(Debug, Clone, Copy)]");
    out.open(&format!("pub struct {name}<'a> {{"));
    out.line("fields: FieldSet<'a>,");
    out.close("}");
}

fn fields(out: &mut Lines) {
    out.gap();
    out.line("/// Returns all fields, also those that the dictionary does not have.");
    out.line("#[inline]");
    out.function("pub fn fields", &["&self"], "&FieldSet<'a>");
    out.line("&self.fields");
    out.close("}");
}

fn members(model: &Model, members: &[Member], out: &mut Lines) {
    for member in members {
        let is_always_there = member.required || matches!(member.kind, Kind::Group(_));
        let value = value_type(model, member.kind);
        let value = match is_always_there {
            true => value,
            false => format!("Option<{value}>"),
        };
        out.gap();
        let mark = if member.required { ", required" } else { "" };
        out.line(&format!("/// {}{mark}.", member.title));
        out.line("#[inline]");
        let head = format!("pub fn {}", member.name);
        out.function(&head, &["&self"], &format!("Result<{value}, FieldError>"));
        out.line(&access(member));
        out.close("}");
    }
}

/// Returns the type of a value that is read.
fn value_type(model: &Model, kind: Kind) -> String {
    let listed = |number: usize| {
        let item = &model.enums[number];
        format!("{}{}", item.name, enums::lifetime(item))
    };
    match kind {
        Kind::Text => "&'a str".to_owned(),
        Kind::Char => "u8".to_owned(),
        Kind::Bool => "bool".to_owned(),
        Kind::Int => "i64".to_owned(),
        Kind::Unsigned | Kind::Length(_) => "u64".to_owned(),
        Kind::Decimal => "Decimal".to_owned(),
        Kind::Timestamp => "UtcTimestamp".to_owned(),
        Kind::Data(_) => "&'a [u8]".to_owned(),
        Kind::Listed(number) => listed(number),
        Kind::Several(number) => format!("typed::Values<'a, {}>", listed(number)),
        Kind::Group(number) => {
            let name = &model.entries[number].name;
            format!("typed::Entries<'a, {name}<'a>>")
        }
    }
}

/// Returns the expression that reads a value.
fn access(member: &Member) -> String {
    let Member { tag, required, .. } = member;
    let opt = if *required { "" } else { "opt_" };
    let plain = |method: &str| format!("self.fields.{opt}{method}({tag})");
    let helped = |function: &str| format!("typed::{opt}{function}(&self.fields, {tag})");
    match member.kind {
        Kind::Text => plain("str"),
        Kind::Char => plain("char"),
        Kind::Bool => plain("bool"),
        Kind::Int => plain("i64"),
        Kind::Unsigned | Kind::Length(_) => plain("u64"),
        Kind::Decimal => plain("decimal"),
        Kind::Timestamp => plain("timestamp"),
        Kind::Data(_) => helped("bytes"),
        Kind::Listed(_) => helped("value"),
        Kind::Several(_) => helped("values"),
        Kind::Group(_) => format!("typed::entries(&self.fields, {tag})"),
    }
}
