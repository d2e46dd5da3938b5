//! The validation pass once more, slow and obvious: it unfolds the schema for each message, sorts
//! the fields into maps as a message library would, and goes through one check after the other.

use std::collections::{BTreeMap, BTreeSet};

use fanfare_fix::codec::Message;
use fanfare_fix::dict::{FieldDef, Item, Schema, Switches};
use fanfare_fix::session::RejectReason as Reason;
use fanfare_fix::tag;

pub(crate) type Found = Option<(Reason, Option<i64>)>;

/// A line of a message with its components unfolded.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) tag: u32,
    pub(crate) required: bool,
    pub(crate) group: Option<Vec<Self>>,
}

/// The lines that stand for `items`; the first of two lines with the same tag wins, but a field
/// that one of them requires is required.
pub(crate) fn unfold(schema: &Schema, items: &[Item], required: bool) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for item in items {
        let new = match item {
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
            } => unfold(schema, &schema.components[name], *own && required),
        };
        for line in new {
            match lines.iter_mut().find(|old| old.tag == line.tag) {
                Some(old) => old.required |= line.required,
                None => lines.push(line),
            }
        }
    }
    lines
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Part {
    Header,
    Body,
    Trailer,
}

/// A field with the entries of the group that it counts.
struct Node {
    tag: i64,
    value: Vec<u8>,
    entries: Option<Vec<Vec<Self>>>,
}

struct Oracle<'a> {
    schema: &'a Schema,
    switches: Switches,
    header: Vec<Line>,
    trailer: Vec<Line>,
    body: Vec<Line>,
    /// Tags and values in the order of the message.
    fields: Vec<(i64, Vec<u8>)>,
}

pub(crate) fn check(schema: &Schema, message: &Message<'_>, switches: Switches) -> Found {
    let msg_type = String::from_utf8_lossy(message.msg_type()).into_owned();
    let known = schema.messages.get(&msg_type);
    let fields = message.fields().map(|field| {
        let text = String::from_utf8_lossy(field.tag_bytes()).into_owned();
        (text.parse().unwrap_or(0), field.value.to_vec())
    });
    let oracle = Oracle {
        schema,
        switches,
        header: unfold(schema, &schema.header, true),
        trailer: unfold(schema, &schema.trailer, true),
        body: known.map_or(Vec::new(), |m| unfold(schema, &m.items, true)),
        fields: fields.collect(),
    };
    let (parts, misplaced) = oracle.parse(known.is_some());
    let misplaced = misplaced.filter(|_| switches.fields_out_of_order);
    misplaced
        .map(|tag| (Reason::TagOutOfOrder, Some(tag)))
        .or_else(|| known.is_none().then_some((Reason::InvalidMsgType, None)))
        .or_else(|| oracle.required(&parts))
        .or_else(|| oracle.values(&parts))
}

impl Oracle<'_> {
    fn part(&self, tag: i64) -> Part {
        let in_block = |lines: &[Line]| lines.iter().any(|line| i64::from(line.tag) == tag);
        let number = u32::try_from(tag).unwrap_or(0);
        if in_block(&self.header) {
            Part::Header
        } else if in_block(&self.trailer) {
            Part::Trailer
        } else if tag::is_header(number) {
            Part::Header
        } else if tag::is_trailer(number) {
            Part::Trailer
        } else {
            Part::Body
        }
    }

    /// The fields of each part, groups taken together, and the first tag out of place.
    fn parse(&self, with_groups: bool) -> (BTreeMap<Part, Vec<Node>>, Option<i64>) {
        let mut parts: BTreeMap<Part, Vec<Node>> = BTreeMap::new();
        let mut misplaced = None;
        let mut last = Part::Header;
        let mut at = 0;
        while let Some((tag, value)) = self.fields.get(at) {
            let part = self.part(*tag);
            if part < last {
                misplaced = misplaced.or(Some(*tag));
            } else {
                last = part;
            }
            at += 1;
            let lines = if part == Part::Body {
                &self.body
            } else {
                &self.header
            };
            let group = lines.iter().find(|line| i64::from(line.tag) == *tag);
            let group = group.and_then(|line| line.group.as_ref());
            let entries = group
                .filter(|_| with_groups)
                .map(|lines| self.entries(lines, &mut at));
            parts.entry(part).or_default().push(Node {
                tag: *tag,
                value: value.clone(),
                entries,
            });
        }
        (parts, misplaced)
    }

    fn entries(&self, lines: &[Line], at: &mut usize) -> Vec<Vec<Node>> {
        let mut entries: Vec<Vec<Node>> = Vec::new();
        while let Some((tag, value)) = self.fields.get(*at) {
            let Some(line) = lines.iter().find(|line| i64::from(line.tag) == *tag) else {
                break;
            };
            *at += 1;
            let is_delimiter = i64::from(lines[0].tag) == *tag;
            let seen = |entry: &Vec<Node>| entry.iter().any(|node| node.tag == *tag);
            if is_delimiter || entries.last().is_none_or(seen) {
                entries.push(Vec::new());
            }
            let nested = line.group.as_ref().map(|lines| self.entries(lines, at));
            entries.last_mut().unwrap().push(Node {
                tag: *tag,
                value: value.clone(),
                entries: nested,
            });
        }
        entries
    }

    fn required(&self, parts: &BTreeMap<Part, Vec<Node>>) -> Found {
        for (part, lines) in self.parts() {
            let seen = parts.get(&part).map_or(&[][..], Vec::as_slice);
            if let Some(tag) = missing(lines, seen) {
                return Some((Reason::RequiredTagMissing, Some(tag)));
            }
        }
        for (part, lines) in self.parts() {
            let mut nodes: Vec<&Node> = parts.get(&part).into_iter().flatten().collect();
            nodes.sort_by_key(|node| node.tag);
            for node in nodes {
                if let Some(tag) = missing_in_groups(lines, node) {
                    return Some((Reason::RequiredTagMissing, Some(tag)));
                }
            }
        }
        None
    }

    /// Header, trailer and body, in the order of the checks.
    fn parts(&self) -> [(Part, &[Line]); 3] {
        [
            (Part::Header, &self.header),
            (Part::Trailer, &self.trailer),
            (Part::Body, &self.body),
        ]
    }

    fn values(&self, parts: &BTreeMap<Part, Vec<Node>>) -> Found {
        for (part, lines) in self.parts() {
            let mut nodes: Vec<&Node> = parts.get(&part).into_iter().flatten().collect();
            nodes.sort_by_key(|node| match (part, node.tag) {
                (Part::Header, 8) => -3,
                (Part::Header, 9) => -2,
                (Part::Header, 35) => -1,
                (Part::Trailer, 10) => i64::MAX,
                (_, tag) => tag,
            });
            let mut seen = BTreeSet::new();
            for node in nodes {
                let fault = self.field(part, lines, node, !seen.insert(node.tag));
                if let Some(reason) = fault {
                    return Some((reason, Some(node.tag)));
                }
                let line = lines.iter().find(|line| i64::from(line.tag) == node.tag);
                let group = line.and_then(|line| line.group.as_ref());
                if let Some(found) = group.and_then(|lines| self.group(lines, node)) {
                    return Some(found);
                }
            }
        }
        None
    }

    fn field(&self, part: Part, lines: &[Line], node: &Node, again: bool) -> Option<Reason> {
        let tag = u32::try_from(node.tag).unwrap_or(0);
        let strict = match tag {
            0 => true,
            5000.. => self.switches.user_defined_fields,
            _ => !self.switches.allow_unknown_fields,
        };
        let known = self.schema.fields.get(&tag);
        if again {
            let counts = |line: &Line| line.tag == tag && line.group.is_some();
            return Some(match part == Part::Body && lines.iter().any(counts) {
                true => Reason::NumInGroup,
                false => Reason::TagAppearsTwice,
            });
        }
        if let Some(reason) = self.value(node) {
            return Some(reason);
        }
        if known.is_none() {
            return strict.then_some(Reason::InvalidTagNumber);
        }
        let belongs = match part {
            Part::Body => lines.iter().any(|line| line.tag == tag),
            _ => {
                let framing = || self.header.iter().chain(&self.trailer);
                framing().any(|line| line.tag == tag) || !framing().any(|line| nests(line, tag))
            }
        };
        (!belongs && strict).then_some(Reason::TagNotDefinedForMessage)
    }

    fn value(&self, node: &Node) -> Option<Reason> {
        let field = u32::try_from(node.tag)
            .ok()
            .and_then(|tag| self.schema.fields.get(&tag));
        if node.value.is_empty() {
            return self
                .switches
                .fields_have_values
                .then_some(Reason::TagWithoutValue);
        }
        let field = field?;
        if !field.kind.accepts(&node.value) {
            let is_listed = !(field.open || field.values.is_empty());
            return Some(match field.kind.is_multiple() && is_listed {
                true => Reason::ValueIncorrect,
                false => Reason::DataFormat,
            });
        }
        (node.tag != 35 && !is_listed(field, &node.value)).then_some(Reason::ValueIncorrect)
    }

    fn group(&self, lines: &[Line], node: &Node) -> Found {
        let entries = node.entries.as_ref()?;
        let claimed: Option<u64> = std::str::from_utf8(&node.value).ok()?.parse().ok();
        if claimed.is_some_and(|claimed| claimed != entries.len() as u64) {
            return Some((Reason::NumInGroup, Some(node.tag)));
        }
        for entry in entries {
            let mut order = 0;
            for (i, member) in entry.iter().enumerate() {
                let place = lines
                    .iter()
                    .position(|line| i64::from(line.tag) == member.tag);
                let place = place.unwrap();
                let unordered = if i == 0 { place != 0 } else { place < order };
                order = place + 1;
                if unordered && self.switches.unordered_group_fields {
                    return Some((Reason::GroupOutOfOrder, Some(member.tag)));
                }
                if let Some(reason) = self.value(member) {
                    return Some((reason, Some(member.tag)));
                }
                let nested = lines[place].group.as_ref();
                if let Some(found) = nested.and_then(|lines| self.group(lines, member)) {
                    return Some(found);
                }
            }
        }
        None
    }
}

fn is_listed(field: &FieldDef, value: &[u8]) -> bool {
    use fanfare_fix::dict::DataType;
    let is_in = |value: &[u8]| field.values.iter().any(|v| v.value.as_bytes() == value);
    if field.open || field.values.is_empty() || field.kind == DataType::Boolean {
        return true;
    }
    match field.kind {
        DataType::MultipleCharValue | DataType::MultipleStringValue => {
            value.split(|b| *b == b' ').all(is_in)
        }
        _ => is_in(value),
    }
}

/// The smallest required tag of `lines` that no node has.
fn missing(lines: &[Line], nodes: &[Node]) -> Option<i64> {
    let required = lines.iter().filter(|line| line.required);
    let mut tags: Vec<i64> = required.map(|line| i64::from(line.tag)).collect();
    tags.sort_unstable();
    tags.into_iter()
        .find(|tag| !nodes.iter().any(|node| node.tag == *tag))
}

fn missing_in_groups(lines: &[Line], node: &Node) -> Option<i64> {
    let line = lines.iter().find(|line| i64::from(line.tag) == node.tag)?;
    let lines = line.group.as_ref()?;
    for entry in node.entries.iter().flatten() {
        let found = missing(lines, entry);
        let found = found.or_else(|| entry.iter().find_map(|n| missing_in_groups(lines, n)));
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Returns whether the entries of the group that a line counts may have this field.
fn nests(line: &Line, tag: u32) -> bool {
    let mut members = line.group.iter().flatten();
    members.any(|member| member.tag == tag || nests(member, tag))
}
