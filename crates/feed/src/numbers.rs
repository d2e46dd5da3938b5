//! Sequence numbers that are fields of the messages: MsgSeqNum(34) where datagrams have no
//! preamble.

use crate::line::REORDER;
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
    /// [`Arbiter::announce`](crate::Arbiter::announce): NewSeqNo(36) of a SequenceReset that does
    /// not go on with the number after its own. The first and the count are without the messages
    /// of the new run that follow it in the packet: they are treated as a packet of their own.
    pub next: Option<u32>,
}

impl PacketNumbers {
    /// Adds the numbers of a message and returns whether its own one fits. If it does not, nothing
    /// is added.
    ///
    /// A number fits if the packet has it already or if it is the next one. A number that is up to
    /// `slack` further ahead fits, too, and the numbers that it leaves out count. With a `slack`
    /// above 0, a number below the first one fits and does not count.
    #[inline]
    pub(crate) fn add(&mut self, number: Option<u32>, next: Option<u32>, slack: u32) -> bool {
        if let Some(number) = number {
            let place = number.wrapping_sub(*self.first.get_or_insert(number));
            if place <= self.count.saturating_add(slack) {
                self.count = self.count.max(place.saturating_add(1));
            } else if slack == 0 || place < 1 << 31 {
                return false;
            }
        }
        let goes_on = number.map(|number| number.wrapping_add(1));
        self.next = next.filter(|_| next != goes_on).or(self.next);
        true
    }

    /// Returns whether a number behind a SequenceReset is of the new run: it is the first one of
    /// that run, or one of the next 1,024 that is neither in the packet already nor its next one.
    pub(crate) fn begins(&self, number: u32) -> bool {
        let (Some(first), Some(next)) = (self.first, self.next) else {
            return false;
        };
        let ahead = u64::from(number.wrapping_sub(next));
        ahead == 0 || ahead <= REORDER && number.wrapping_sub(first) > self.count
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

    /// Adds the numbers of messages, each of which fits or not.
    fn added(slack: u32, messages: &[(Option<u32>, Option<u32>, bool)]) -> PacketNumbers {
        let mut numbers = PacketNumbers::default();
        for &(number, next, fits) in messages {
            let before = numbers;
            assert_eq!(numbers.add(number, next, slack), fits, "{number:?}");
            assert!(fits || numbers == before);
        }
        numbers
    }

    #[test]
    fn numbers_of_a_packet_follow_each_other() {
        let last = u32::MAX;
        let numbers = added(
            0,
            &[
                (None, None, true),
                (Some(last), None, true),
                (Some(last), None, true),
                (Some(0), None, true),
                (Some(2), Some(9), false),
                (Some(1_000_000), Some(9), false),
                (Some(last - 1), Some(9), false),
                (Some(1), Some(500), true),
                (None, None, true),
                (Some(last), None, true),
            ],
        );
        let expected = PacketNumbers {
            first: Some(last),
            count: 3,
            next: Some(500),
        };
        assert_eq!(numbers, expected);
    }

    #[test]
    fn the_first_numbers_of_a_new_run_begin_it_unless_they_are_of_the_run_before() {
        // The last message goes on with the number after its own.
        let messages = [
            (Some(600), None, true),
            (Some(601), Some(500), true),
            (Some(600), Some(601), true),
        ];
        let numbers = added(0, &messages);
        let begins = |number: u32| numbers.begins(number);
        assert!([500, 501, 599, 603, 500 + 1_024].into_iter().all(begins));
        assert!(![499, 600, 601, 602, 500 + 1_025].into_iter().any(begins));
        // The first number begins it in any case.
        let numbers = added(0, &[(Some(1), None, true), (Some(2), Some(1), true)]);
        assert!(numbers.begins(1) && !numbers.begins(2));
        assert!(!PacketNumbers::default().begins(0));
    }

    #[test]
    fn with_slack_numbers_may_be_left_out_or_go_back() {
        let numbers = added(
            1_024,
            &[
                (Some(5), None, true),
                (Some(5 + 1 + 1_025), None, false),
                (Some(8), None, true),
                (Some(3), None, true),
                (Some(1_000_000_000), None, false),
                (Some(9), None, true),
                (Some(10 + 1_024), None, true),
                (Some(u32::MAX), None, true),
            ],
        );
        let expected = PacketNumbers {
            first: Some(5),
            count: 1_030,
            next: None,
        };
        assert_eq!(numbers, expected);
    }

    #[test]
    fn a_reset_to_the_number_that_is_next_anyway_restarts_nothing() {
        let messages = [
            (Some(5), None, true),
            (Some(6), Some(7), true),
            (Some(7), None, true),
        ];
        let expected = PacketNumbers {
            first: Some(5),
            count: 3,
            next: None,
        };
        assert_eq!(added(0, &messages), expected);
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
