//! Sequence numbers that are fields of the messages: MsgSeqNum(34) where the exchange puts no
//! preamble in front of its datagrams.

use crate::recent::Recent;
use fanfare_fast::program::{Field, FieldId, FieldKind, RESET_ID, TemplateProgram};
use fanfare_fast::{Cell, CodecError, Decoder, Program, Record, Visitor};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Which field of a message is its sequence number; an integer at the top level of a template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SequenceField {
    /// The field with tag 34, else the one named MsgSeqNum, else the one named SequenceNumber.
    #[default]
    Auto,
    /// The field whose `id` attribute is this number.
    Tag(u32),
    /// The field of this name.
    Name(String),
}

impl SequenceField {
    /// The fields of `program` that are meant: at most one a template.
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
            Err(_) if text.is_empty() => return Err("a sequence field needs a name".to_owned()),
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

/// NewSeqNo(36) of SequenceReset messages: what comes next, for
/// [`Arbiter::announce`](crate::Arbiter::announce).
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

/// Reads the sequence numbers of a packet's messages, by decoding the packet with dictionaries
/// of its own: each packet must stand alone (its dictionaries start empty).
///
/// What a packet had is remembered for a while, since the other lines of a feed carry the same
/// bytes. Allocates when it is made, and then only as [`Decoder`] does.
#[derive(Debug)]
pub struct MessageNumbers {
    decoder: Decoder,
    watch: Watch,
    /// By template: what is read of it.
    templates: Vec<Watched>,
    /// For templates of which all are held in rows: from there a number is taken fastest.
    record: Option<Record>,
    recent: Recent<PacketNumbers>,
}

/// What is read of a template.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    /// The field that is the sequence number.
    number: Option<FieldId>,
    /// NewSeqNo of a SequenceReset.
    next: Option<FieldId>,
    is_reset: bool,
}

/// The numbers in one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketNumbers {
    /// The first sequence number; `None` if no message has one.
    pub first: Option<u32>,
    /// The count of numbers from the first to the last, both included; 0 if there is none.
    pub count: u32,
    /// The number that comes next, if the packet says so: NewSeqNo(36) of a SequenceReset, which
    /// is the last message of its packet: for [`Arbiter::announce`](crate::Arbiter::announce).
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

impl MessageNumbers {
    /// A reader for the templates of `decoder`; `None` if none of them has such a field.
    pub fn new(decoder: Decoder, field: &SequenceField) -> Option<Self> {
        let wanted = field.find(decoder.program());
        (!wanted.is_empty()).then(|| Self::of(decoder, &wanted))
    }

    /// A reader of nothing but [`PacketNumbers::next`], where packets are numbered by a preamble;
    /// `None` if no template has a NewSeqNo.
    pub fn announcements(decoder: Decoder) -> Option<Self> {
        let announces = !new_numbers(decoder.program()).is_empty();
        announces.then(|| Self::of(decoder, &[]))
    }

    /// Whether packets may say what comes next.
    pub fn may_announce(&self) -> bool {
        self.templates.iter().any(|watched| watched.next.is_some())
    }

    fn of(mut decoder: Decoder, wanted: &[FieldId]) -> Self {
        decoder.reset();
        let program: &Arc<Program> = decoder.program();
        let next = new_numbers(program);
        let mut roles = vec![Role::None; program.fields().len()];
        for (ids, role) in [(wanted, Role::Number), (&next, Role::Next)] {
            for id in ids {
                if let Some(marked) = roles.get_mut(id.index()) {
                    *marked = role;
                }
            }
        }
        let of_template = |template: &TemplateProgram| {
            let own = |ids: &[FieldId]| {
                let mut ids = ids.iter().copied();
                ids.find(|id| program.field(*id).template() == template.index())
            };
            Watched {
                number: own(wanted),
                next: own(&next),
                is_reset: template.id() == Some(RESET_ID),
            }
        };
        let templates = program.templates().iter().map(of_template).collect();
        // A number may also be that of a message in a dynamic reference.
        let mut kinds = program.fields().iter().map(Field::kind);
        let in_rows = wanted
            .iter()
            .chain(&next)
            .all(|id| program.place(*id).is_some())
            && kinds.all(|kind| kind != FieldKind::TemplateRef);
        Self {
            decoder,
            watch: Watch {
                roles,
                number: None,
                next: None,
                is_reset: false,
            },
            templates,
            record: in_rows.then(Record::new),
            recent: Recent::new(),
        }
    }

    /// The numbers in `packet`. An error ends the reading; what was found before it holds.
    pub fn read(&mut self, packet: &[u8]) -> PacketNumbers {
        if let Some(numbers) = self.recent.find(packet) {
            return numbers;
        }
        let numbers = self.read_until(packet, false).1;
        self.recent.keep(packet, numbers);
        numbers
    }

    /// Cuts the first packet off a stream without framing in which each packet begins with a
    /// Reset message (template 120), as recorded from MOEX: the bytes up to the next Reset, and
    /// the numbers in them. Empty where the stream is.
    pub fn cut<'b>(&mut self, stream: &'b [u8]) -> (&'b [u8], PacketNumbers) {
        let (len, numbers) = self.read_until(stream, true);
        (stream.get(..len).unwrap_or_default(), numbers)
    }

    /// Reads messages, up to a Reset behind another message if `stop`; how many bytes.
    fn read_until(&mut self, bytes: &[u8], stop: bool) -> (usize, PacketNumbers) {
        self.decoder.reset();
        let mut numbers = PacketNumbers::default();
        let mut at = 0;
        let mut has_contents = false;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            match self.message(rest) {
                Ok(_) if stop && has_contents && self.watch.is_reset => return (at, numbers),
                Ok(len) => at += len,
                Err(_) => return (bytes.len(), numbers),
            }
            has_contents |= !self.watch.is_reset;
            numbers.add(self.watch.number, self.watch.next);
        }
        (bytes.len(), numbers)
    }
}

impl MessageNumbers {
    /// Reads one message into `watch`; its length.
    #[inline]
    fn message(&mut self, bytes: &[u8]) -> Result<usize, CodecError> {
        (self.watch.number, self.watch.next) = (None, None);
        let Some(record) = &mut self.record else {
            return self.decoder.decode(bytes, &mut self.watch);
        };
        let len = self.decoder.decode_record(bytes, record)?;
        let template = record.template_index().unwrap_or_default() as usize;
        let watched = self.templates.get(template).copied().unwrap_or_default();
        self.watch.is_reset = watched.is_reset;
        let program = self.decoder.program();
        // Wider numbers wrap like 32-bit ones: only distances matter.
        let number = |id: FieldId| match record.get(program, id, 0) {
            Cell::Unsigned(number) => Some(number as u32),
            Cell::Signed(number) => Some(number as u32),
            _ => None,
        };
        self.watch.number = watched.number.and_then(number);
        self.watch.next = watched.next.and_then(number);
        Ok(len)
    }
}

/// What a field is to a [`Watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    None,
    Number,
    Next,
}

/// Remembers the values of the watched fields.
#[derive(Debug)]
struct Watch {
    roles: Vec<Role>,
    number: Option<u32>,
    next: Option<u32>,
    is_reset: bool,
}

impl Watch {
    /// Wider numbers wrap like 32-bit ones: only distances matter.
    #[inline]
    fn take(&mut self, field: &Field, value: u32) {
        match self.roles.get(field.id().index()) {
            Some(Role::Number) => self.number = Some(value),
            Some(Role::Next) => self.next = Some(value),
            _ => {}
        }
    }
}

impl Visitor for Watch {
    fn begin_message(&mut self, template: &TemplateProgram) {
        self.is_reset = template.id() == Some(RESET_ID);
    }

    #[inline]
    fn unsigned(&mut self, field: &Field, value: u64) {
        self.take(field, value as u32);
    }

    #[inline]
    fn signed(&mut self, field: &Field, value: i64) {
        self.take(field, value as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATES: &str = r#"<templates>
        <template name="Quote" id="1">
            <uInt32 name="SequenceNumber" id="200"><increment/></uInt32>
            <uInt32 name="Price" id="44"><copy/></uInt32>
        </template>
        <template name="Done" id="99"><uInt32 name="Type" id="35"><constant value="99"/></uInt32>
        </template>
    </templates>"#;

    fn numbers(field: &SequenceField) -> Option<MessageNumbers> {
        let program = Program::parse(TEMPLATES).unwrap();
        MessageNumbers::new(Decoder::new(program), field)
    }

    /// Presence map with template id, number and price; then by increment and copy.
    const PACKET: [u8; 8] = [0xf0, 0x81, 0x8a, 0x85, 0x80, 0x80, 0xc0, 0xe3];

    #[test]
    fn a_packet_tells_its_first_number_and_how_many() {
        for field in [SequenceField::Auto, SequenceField::Tag(200)] {
            let read = numbers(&field).unwrap().read(&PACKET);
            let expected = PacketNumbers {
                first: Some(10),
                count: 3,
                next: None,
            };
            assert_eq!(read, expected);
        }
    }

    #[test]
    fn packets_stand_alone() {
        let mut numbers = numbers(&SequenceField::Auto).unwrap();
        assert_eq!(numbers.read(&PACKET), numbers.read(&PACKET));
        assert_eq!(numbers.read(&[0xc0, 0xe3]).first, None);
    }

    #[test]
    fn what_is_remembered_is_what_was_read() {
        let mut numbers = numbers(&SequenceField::Auto).unwrap();
        for round in 0..2 {
            for n in 0..16_384 {
                // Presence map, template, a number of two groups, a price of one.
                let (high, low) = ((n >> 7) as u8 | u8::from(n < 128), n as u8 | 0x80);
                let packet = [0xf0, 0x81, high, low, 0x85];
                let expected = u32::from(high) << 7 | n & 0x7f;
                let read = numbers.read(&packet);
                assert_eq!(read.first, Some(expected), "{n} in round {round}");
            }
        }
    }

    #[test]
    fn a_stream_of_resets_is_cut_at_each() {
        let reset = [0xc0, 0xf8];
        let stream = [&reset[..], &PACKET, &reset, &reset, &PACKET[..4], &reset].concat();
        let mut numbers = numbers(&SequenceField::Auto).unwrap();
        let mut rest = &stream[..];
        let mut lengths = Vec::new();
        while !rest.is_empty() {
            let (packet, read) = numbers.cut(rest);
            lengths.push((packet.len(), read.first));
            rest = &rest[packet.len()..];
        }
        let expected = [(10, Some(10)), (8, Some(10)), (2, None)];
        assert_eq!(lengths, expected);
    }

    #[test]
    fn a_cut_packet_tells_what_came_before_the_cut() {
        let read = numbers(&SequenceField::Auto).unwrap().read(&PACKET[..7]);
        assert_eq!((read.first, read.count), (Some(10), 3));
    }

    #[test]
    fn a_field_that_no_template_has_is_none() {
        assert!(numbers(&SequenceField::Tag(34)).is_none());
        assert!(numbers(&SequenceField::Name("Nonsense".to_owned())).is_none());
    }

    #[test]
    fn a_sequence_reset_tells_what_comes_next() {
        let reset = r#"<template name="SequenceReset" id="4">
            <uInt32 name="MsgSeqNum" id="34"/><uInt32 name="NewSeqNo" id="36"/></template>"#;
        // A field that no row holds makes the visitor read them.
        let group = r#"<template name="T" id="5"><templateRef/></template>"#;
        for more in ["", group] {
            let xml = format!("<templates>{reset}{more}</templates>");
            let decoder = || Decoder::new(Program::parse(&xml).unwrap());
            let mut numbers = MessageNumbers::new(decoder(), &SequenceField::Auto).unwrap();
            let packet = [0xc0, 0x84, 0x8d, 0x81];
            let read = numbers.read(&packet);
            assert_eq!((read.first, read.next), (Some(13), Some(1)));
            let mut announced = MessageNumbers::announcements(decoder()).unwrap();
            let read = announced.read(&packet);
            assert_eq!((read.first, read.next), (None, Some(1)));
        }
        let program = Program::parse(TEMPLATES).unwrap();
        assert!(MessageNumbers::announcements(Decoder::new(program)).is_none());
    }

    #[test]
    fn names_parse() {
        for text in ["auto", "34", "MsgSeqNum"] {
            assert_eq!(text.parse::<SequenceField>().unwrap().to_string(), text);
        }
        assert!("".parse::<SequenceField>().is_err());
    }
}
