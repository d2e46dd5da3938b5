//! Sequence numbers that are fields of the messages: MsgSeqNum(34) where datagrams have no
//! preamble.

use fanfare_fast::Program;
use fanfare_fast::program::{Field, FieldId, FieldKind, TemplateProgram};
use std::fmt;
use std::str::FromStr;

/// The field with the sequence number of a message: an integer at the top level of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SequenceField {
    /// The field with tag 34, otherwise the one named MsgSeqNum or SequenceNumber, in this order.
    #[default]
    Auto,
    /// The field whose `id` attribute is this number.
    Tag(u32),
    /// The field of this name.
    Name(String),
}

impl SequenceField {
    /// Returns the fields of `program` with this name: at most one in each template.
    pub fn find(&self, program: &Program) -> Vec<FieldId> {
        match self {
            Self::Tag(tag) => matching(program, |f| f.tag() == Some(*tag)),
            Self::Name(name) => matching(program, |f| f.name() == name),
            Self::Auto => {
                let named = |name| matching(program, move |f: &Field| f.name() == name);
                let candidates = [
                    matching(program, |f| f.tag() == Some(34)),
                    named("MsgSeqNum"),
                    named("SequenceNumber"),
                ];
                let found = candidates.into_iter().find(|c| !c.is_empty());
                found.unwrap_or_default()
            }
        }
    }
}

impl FromStr for SequenceField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text.parse() {
            Ok(tag) => Self::Tag(tag),
            Err(_) if text == "auto" => Self::Auto,
            Err(_) if text.is_empty() => return Err("the name of the field is empty".to_owned()),
            Err(_) => Self::Name(text.to_owned()),
        })
    }
}

impl fmt::Display for SequenceField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Tag(tag) => write!(f, "{tag}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Returns the fields NewSeqNo(36) of SequenceReset messages, which announce the next number.
pub fn new_numbers(program: &Program) -> Vec<FieldId> {
    matching(program, |f| f.tag() == Some(36) || f.name() == "NewSeqNo")
}

fn matching(program: &Program, wanted: impl Fn(&Field) -> bool) -> Vec<FieldId> {
    let of_template = |template: &TemplateProgram| {
        let fields = program.template_fields(template).iter().copied();
        let mut integers =
            fields.filter(|id| matches!(program.field(*id).kind(), FieldKind::Int(_)));
        integers.find(|id| wanted(program.field(*id)))
    };
    program.templates().iter().filter_map(of_template).collect()
}

/// The numbers in one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketNumbers {
    /// The first sequence number; `None` if no message has one.
    pub first: Option<u32>,
    /// The count of numbers from the first to the last, both included; 0 if there is none.
    pub count: u32,
    /// The next number, if the packet announces it for
    /// [`Arbiter::announce`](crate::Arbiter::announce): NewSeqNo(36) of a SequenceReset that is the
    /// last message of its packet.
    pub next: Option<u32>,
}

impl PacketNumbers {
    #[inline]
    pub(crate) fn add(&mut self, number: Option<u32>, next: Option<u32>) {
        self.next = next.or(self.next);
        let Some(number) = number else {
            return;
        };
        let first = *self.first.get_or_insert(number);
        // A number before the first does not belong to the range.
        let span = number.wrapping_sub(first).saturating_add(1);
        if span < 1 << 31 {
            self.count = self.count.max(span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse() {
        for text in ["auto", "34", "MsgSeqNum"] {
            assert_eq!(text.parse::<SequenceField>().unwrap().to_string(), text);
        }
        assert!("".parse::<SequenceField>().is_err());
    }

    #[test]
    fn a_field_is_found_by_its_tag_before_its_name() {
        let found = |xml: &str| {
            let program = Program::parse(xml).unwrap();
            let fields = SequenceField::Auto.find(&program);
            let names = fields.iter().map(|id| program.field(*id).name().to_owned());
            names.collect::<Vec<_>>()
        };
        let named = "<uInt32 name=\"MsgSeqNum\"/><uInt32 name=\"SequenceNumber\"/>";
        let template = |fields: &str| format!("<template name=\"T\" id=\"1\">{fields}</template>");
        assert_eq!(found(&template(named)), ["MsgSeqNum"]);
        let tagged = format!("{named}<uInt32 name=\"Other\" id=\"34\"/>");
        assert_eq!(found(&template(&tagged)), ["Other"]);
        assert!(found(&template("<string name=\"MsgSeqNum\" id=\"34\"/>")).is_empty());
    }
}
