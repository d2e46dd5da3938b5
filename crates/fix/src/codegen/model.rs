//! The model of the code for one dictionary: messages, entries of groups and enums, with their
//! names.

use std::collections::{BTreeMap, HashMap, HashSet};

use fanfare_wire::names::{Taken, snake};

use super::CodegenError;
use super::names::{self, Types};
use crate::dict::{DataType, Dictionary, FieldDef, Item, Schema};
use crate::tag;

pub(super) struct Model {
    pub(super) version: String,
    pub(super) header: Vec<Member>,
    /// The messages by MsgType(35), ascending.
    pub(super) messages: Vec<Block>,
    /// The entries of groups. Each comes before those of its own groups.
    pub(super) entries: Vec<Block>,
    pub(super) enums: Vec<Enum>,
}

/// A message or an entry.
pub(super) struct Block {
    pub(super) name: String,
    /// The name in comments: `NewOrderSingle(D)`, `an entry of NoPartyIDs(453)`.
    pub(super) title: String,
    /// The MsgType(35), empty for an entry.
    pub(super) msg_type: String,
    pub(super) members: Vec<Member>,
}

/// A field, with components unfolded.
pub(super) struct Member {
    pub(super) tag: u32,
    /// The name in comments: `Side(54)`.
    pub(super) title: String,
    /// The name of its methods.
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Char,
    Bool,
    Int,
    Unsigned,
    Decimal,
    Timestamp,
    /// The tag of the length field, if there is one.
    Data(Option<u32>),
    /// The tag of the data field whose length it is.
    Length(u32),
    /// The number of the enum of the values.
    Listed(usize),
    /// The number of the enum of the values, of which the field holds several.
    Several(usize),
    /// The number of the entry.
    Group(usize),
}

pub(super) struct Enum {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) variants: Vec<Variant>,
    /// Whether other values are valid too.
    pub(super) open: bool,
}

pub(super) struct Variant {
    pub(super) name: String,
    pub(super) value: String,
}

impl Model {
    /// Returns the model of the messages with these MsgTypes or names, or of all messages if there
    /// are none.
    pub(super) fn new(dictionary: &Dictionary, wanted: &[&str]) -> Result<Self, CodegenError> {
        let schema = dictionary.schema();
        let chosen = choose(schema, wanted)?;
        let header = unfold(schema, &schema.header, true);
        let unfolded: Vec<Vec<Line>> = chosen
            .iter()
            .map(|msg_type| unfold(schema, &schema.messages[*msg_type].items, true))
            .collect();
        let mut maker = Maker {
            schema,
            names: Types::new(),
            enums: Vec::new(),
            enum_numbers: HashMap::new(),
            entries: Vec::new(),
            entry_numbers: HashMap::new(),
            shapes: HashMap::new(),
            message: String::new(),
        };
        // Messages come first, so that they have the names of the dictionary.
        let mut messages: Vec<Block> = chosen.iter().map(|known| maker.message(known)).collect();
        for line in header.iter().chain(unfolded.iter().flatten()) {
            maker.note(line);
        }
        for (message, lines) in messages.iter_mut().zip(&unfolded) {
            maker.message.clone_from(&message.name);
            message.members = maker.members(lines);
        }
        "Header".clone_into(&mut maker.message);
        Ok(Self {
            version: names::words(&schema.version),
            header: maker.members(&header),
            messages,
            entries: maker.entries,
            enums: maker.enums,
        })
    }
}

/// Returns the MsgTypes of the messages, ascending.
fn choose<'a>(schema: &'a Schema, wanted: &[&str]) -> Result<Vec<&'a str>, CodegenError> {
    let version = || schema.version.clone();
    if schema.messages.is_empty() {
        return Err(CodegenError::NoMessages { version: version() });
    }
    let mut chosen = HashSet::new();
    for wanted in wanted {
        let mut known = schema.messages.iter();
        let by_type = schema.messages.get_key_value(*wanted);
        let found = by_type.or_else(|| known.find(|(_, message)| message.name == *wanted));
        let Some((msg_type, _)) = found else {
            return Err(CodegenError::UnknownMessage {
                name: (*wanted).to_owned(),
                version: version(),
            });
        };
        chosen.insert(msg_type);
    }
    let all = schema.messages.keys();
    let chosen = all.filter(|msg_type| wanted.is_empty() || chosen.contains(msg_type));
    Ok(chosen.map(String::as_str).collect())
}

/// A field of a block with components unfolded.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Line {
    tag: u32,
    required: bool,
    /// The fields of an entry, if the field counts a group.
    group: Option<Vec<Self>>,
}

/// Returns the fields of a block, with components unfolded. Of two fields with one tag the first
/// counts, and is required if one of them is. The compilation of the dictionary has shown that no
/// component contains itself.
fn unfold(schema: &Schema, items: &[Item], required: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut places = HashMap::new();
    for item in items {
        let more = match item {
            Item::Field { tag, required: own } => vec![Line {
                tag: *tag,
                required: *own && required,
                group: None,
            }],
            Item::Group {
                tag,
                required: own,
                items,
            } => vec![Line {
                tag: *tag,
                required: *own && required,
                group: Some(unfold(schema, items, true)),
            }],
            Item::Component {
                name,
                required: own,
            } => {
                let items = schema.components.get(name).map_or(&[][..], Vec::as_slice);
                unfold(schema, items, *own && required)
            }
        };
        for line in more {
            let place = *places.entry(line.tag).or_insert(lines.len());
            match lines.get_mut(place) {
                Some(known) => known.required |= line.required,
                None => lines.push(line),
            }
        }
    }
    lines
}

struct Maker<'a> {
    schema: &'a Schema,
    names: Types,
    enums: Vec<Enum>,
    /// The numbers of the enums by tag.
    enum_numbers: HashMap<u32, usize>,
    entries: Vec<Block>,
    /// The numbers of the entries by count field and fields of the entry.
    entry_numbers: HashMap<(u32, Vec<Line>), usize>,
    /// The different entries of each count field, in all messages.
    shapes: HashMap<u32, HashSet<Vec<Line>>>,
    /// The name of the message at hand.
    message: String,
}

impl Maker<'_> {
    fn message(&mut self, msg_type: &str) -> Block {
        let name = &self.schema.messages[msg_type].name;
        Block {
            name: self.names.unique(name),
            title: format!("{}({})", names::words(name), names::words(msg_type)),
            msg_type: msg_type.to_owned(),
            members: Vec::new(),
        }
    }

    /// Notes the entries of the group that a field counts, and of nested groups.
    fn note(&mut self, line: &Line) {
        let Some(lines) = &line.group else { return };
        let shapes = self.shapes.entry(line.tag).or_default();
        shapes.insert(lines.clone());
        lines.iter().for_each(|line| self.note(line));
    }

    fn members(&mut self, lines: &[Line]) -> Vec<Member> {
        let mut taken = names::methods();
        let tags: Vec<u32> = lines.iter().map(|line| line.tag).collect();
        let lengths = self.schema.lengths(&tags);
        let is_required = |tag: u32| lines.iter().any(|line| line.tag == tag && line.required);
        let mut members = Vec::new();
        for line in lines {
            let name = self.field_name(line.tag);
            let base = match &line.group {
                Some(_) => names::without_no(&name),
                None => &name,
            };
            let method = taken.unique(snake(base));
            let kind = self.kind(line, &lengths);
            let required = match kind {
                // A length that has to be there has to have its data.
                Kind::Data(Some(length)) => line.required || is_required(length),
                _ => line.required,
            };
            members.push(Member {
                tag: line.tag,
                title: self.title(line.tag),
                name: method,
                required,
                kind,
            });
        }
        members
    }

    fn field_name(&self, tag: u32) -> String {
        let field = self.schema.fields.get(&tag);
        field.map_or_else(|| format!("Field{tag}"), |field| field.name.clone())
    }

    fn title(&self, tag: u32) -> String {
        format!("{}({tag})", names::words(&self.field_name(tag)))
    }

    fn kind(&mut self, line: &Line, lengths: &BTreeMap<u32, u32>) -> Kind {
        if let Some(lines) = &line.group {
            return Kind::Group(self.entry(line.tag, lines));
        }
        let schema = self.schema;
        let Some(field) = schema.fields.get(&line.tag) else {
            return Kind::Text;
        };
        if let Some((data, _)) = lengths.iter().find(|(_, length)| **length == line.tag) {
            return Kind::Length(*data);
        }
        match field.kind {
            DataType::Boolean => Kind::Bool,
            DataType::Data | DataType::XmlData => Kind::Data(lengths.get(&line.tag).copied()),
            kind => match self.listed(line.tag, field) {
                Some(number) if kind.is_multiple() => Kind::Several(number),
                Some(number) => Kind::Listed(number),
                None => plain(kind),
            },
        }
    }

    /// Returns the number of a field's enum, or `None` if the field has no list of values.
    fn listed(&mut self, tag: u32, field: &FieldDef) -> Option<usize> {
        if let Some(number) = self.enum_numbers.get(&tag) {
            return Some(*number);
        }
        let mut taken = Taken::default();
        if field.open {
            taken.unique("Other".to_owned());
        }
        let mut seen = HashSet::from([""]);
        let values = field.values.iter();
        let values = values.filter(|value| seen.insert(&value.value));
        let variants = values.map(|value| Variant {
            name: taken.unique(names::variant(&value.name)),
            value: value.value.clone(),
        });
        let variants: Vec<Variant> = variants.collect();
        // The value of MsgType(35) is known from the message.
        if variants.is_empty() || tag == tag::MSG_TYPE {
            return None;
        }
        self.enums.push(Enum {
            name: self.names.unique(&field.name),
            title: self.title(tag),
            variants,
            open: field.open,
        });
        let number = self.enums.len() - 1;
        self.enum_numbers.insert(tag, number);
        Some(number)
    }

    /// Returns the number of a group's entry. If the entries of one count field differ from message
    /// to message, their names begin with the name of the first message that has them.
    fn entry(&mut self, count_tag: u32, lines: &[Line]) -> usize {
        let key = (count_tag, lines.to_vec());
        if let Some(number) = self.entry_numbers.get(&key) {
            return *number;
        }
        let name = self.field_name(count_tag);
        let base = names::without_no(&name);
        let shapes = self.shapes.get(&count_tag);
        let name = match shapes.is_none_or(|shapes| shapes.len() < 2) {
            true => format!("{base}Entry"),
            false => format!("{}{base}Entry", self.message),
        };
        let number = self.entries.len();
        self.entries.push(Block {
            name: self.names.unique(&name),
            title: format!("an entry of {}", self.title(count_tag)),
            msg_type: String::new(),
            members: Vec::new(),
        });
        self.entry_numbers.insert(key, number);
        let members = self.members(lines);
        self.entries[number].members = members;
        number
    }
}

/// Returns the kind of a field without a list of values.
fn plain(kind: DataType) -> Kind {
    match kind {
        DataType::Char => Kind::Char,
        DataType::Int => Kind::Int,
        DataType::Length | DataType::SeqNum | DataType::NumInGroup | DataType::DayOfMonth => {
            Kind::Unsigned
        }
        DataType::Float
        | DataType::Qty
        | DataType::Price
        | DataType::PriceOffset
        | DataType::Amt
        | DataType::Percentage => Kind::Decimal,
        DataType::UtcTimestamp => Kind::Timestamp,
        // Dates and times of day stay text.
        _ => Kind::Text,
    }
}
