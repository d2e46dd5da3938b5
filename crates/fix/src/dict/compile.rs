//! The compilation of a schema into flat tables: a rule for each tag, a bit set of members for each
//! message, and shared groups.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::kind::DataType;
use super::schema::{FieldDef, Item, Schema, SchemaError};
use super::values::ValueSet;
use crate::tag;

/// The most fields of a dictionary.
pub(super) const MAX_FIELDS: usize = 65_535;
/// The most messages of a dictionary.
const MAX_MESSAGES: usize = 65_535;
/// The most memberships, one for each field in each message.
const MAX_MEMBERSHIPS: usize = 64 << 20;
/// The most direct members of a group.
pub(super) const MAX_MEMBERS: usize = 1_024;
/// The deepest nesting of groups and components.
const MAX_DEPTH: usize = 64;
/// The most fields of a message or group, those of nested groups included.
const MAX_SLOTS: usize = 20_000;
/// The most items to which components may unfold, over all messages.
const MAX_ITEMS: usize = 500_000;
/// The first tag that is not looked up by index.
const DENSE_TAGS: u32 = 20_000;

/// The part of a message to which a field belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Header,
    Body,
    Trailer,
}

/// The rule of a tag in all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// The number of the field in the order of tags, from 1; 0 if the dictionary does not know the
    /// tag.
    pub(super) id: u16,
    /// The number of the field's list of values, from 1; 0 if any value is valid.
    pub(super) values: u16,
    pub(super) kind: DataType,
    pub(super) section: Section,
    /// The membership of a field of the header or the trailer. One that belongs to entries of their
    /// groups alone, such as HopCompID(628), is no member.
    pub(super) framing: Membership,
    /// Whether the field counts a group in some message.
    pub(super) is_count: bool,
}

/// The rules by tag.
#[derive(Debug, Clone, Default)]
pub(super) struct Rules {
    dense: Box<[Rule]>,
    sparse: Box<[(u32, Rule)]>,
}

/// The rules of a repeating group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct GroupRules {
    /// The tag of the count field.
    pub(super) tag: u32,
    /// The tags of the direct members in order. The first is the delimiter.
    pub(super) tags: Box<[u32]>,
    /// The rules of the direct members.
    pub(super) members: Box<[Member]>,
    /// The number of required members.
    pub(super) required: usize,
    /// The tags of all fields that may belong to an entry, those of nested groups included,
    /// ascending.
    pub(super) all: Box<[u32]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) required: bool,
    /// The number of the group that the member counts.
    pub(super) group: Option<u32>,
}

/// The membership of a field in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Membership {
    None,
    Optional,
    Required,
}

/// A message, the header, or the trailer.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// The membership of each field by id. Fields of groups are no members.
    pub(super) members: Box<[Membership]>,
    /// The tags of the required fields, ascending.
    pub(super) required_tags: Box<[u32]>,
    /// The count fields and the numbers of their groups, ascending.
    pub(super) groups: Box<[(u32, u32)]>,
}

/// The tables of a dictionary.
#[derive(Debug, Clone, Default)]
pub(super) struct Tables {
    pub(super) rules: Rules,
    pub(super) values: Box<[ValueSet]>,
    pub(super) groups: Box<[GroupRules]>,
    pub(super) header: Block,
    pub(super) trailer: Block,
    pub(super) messages: Messages,
    /// The number of fields.
    pub(super) fields: usize,
}

/// The messages by MsgType(35).
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    /// The messages, ascending.
    all: Box<[(Box<[u8]>, Block)]>,
    /// The position in `all` of each type of one byte, from 1; 0 if there is none.
    single: Box<[u16]>,
}

impl Messages {
    fn new(all: Vec<(Box<[u8]>, Block)>) -> Self {
        let mut single = vec![0; 256];
        for ((msg_type, _), at) in all.iter().zip(1..) {
            if let [byte] = msg_type.as_ref() {
                single[usize::from(*byte)] = at;
            }
        }
        Self {
            all: all.into(),
            single: single.into(),
        }
    }

    #[inline]
    pub(super) fn get(&self, msg_type: &[u8]) -> Option<&Block> {
        self.at(self.position(msg_type)?)
    }

    /// Returns the position of a message in the order of messages.
    #[inline]
    pub(super) fn position(&self, msg_type: &[u8]) -> Option<usize> {
        match msg_type {
            [byte] => usize::from(*self.single.get(usize::from(*byte))?).checked_sub(1),
            _ => self
                .all
                .binary_search_by(|(known, _)| known.as_ref().cmp(msg_type))
                .ok(),
        }
    }

    #[inline]
    pub(super) fn at(&self, position: usize) -> Option<&Block> {
        self.all.get(position).map(|(_, block)| block)
    }
}

impl Rules {
    /// Returns the rule of a tag. Its id is 0 if the tag is not known.
    #[inline(always)]
    pub(super) fn get(&self, tag: u32) -> &Rule {
        match self.dense.get(tag as usize) {
            Some(rule) => rule,
            None => self.sparse(tag),
        }
    }

    fn sparse(&self, tag: u32) -> &Rule {
        let at = self.sparse.binary_search_by_key(&tag, |(tag, _)| *tag);
        let found = at.ok().and_then(|at| self.sparse.get(at));
        found.map_or(unknown(tag), |(_, rule)| rule)
    }
}

/// Returns the rule of a tag that no field declares. Some tags belong to the header in every
/// version.
fn unknown(tag: u32) -> &'static Rule {
    const fn rule(section: Section) -> Rule {
        Rule {
            id: 0,
            values: 0,
            kind: DataType::Other,
            section,
            framing: Membership::Optional,
            is_count: false,
        }
    }
    match standard_section(tag) {
        Section::Header => const { &rule(Section::Header) },
        Section::Body => const { &rule(Section::Body) },
        Section::Trailer => const { &rule(Section::Trailer) },
    }
}

fn standard_section(tag: u32) -> Section {
    if tag::is_header(tag) {
        Section::Header
    } else if tag::is_trailer(tag) {
        Section::Trailer
    } else {
        Section::Body
    }
}

impl Block {
    /// Returns the membership of a field in the block.
    #[inline(always)]
    pub(super) fn membership(&self, id: u16) -> Membership {
        let known = self.members.get(usize::from(id));
        known.copied().unwrap_or(Membership::None)
    }

    /// Returns the number of the group that a field of the block counts.
    #[inline]
    pub(super) fn group(&self, tag: u32) -> Option<u32> {
        if self.groups.is_empty() {
            return None;
        }
        let at = self.groups.binary_search_by_key(&tag, |(tag, _)| *tag);
        at.ok()
            .and_then(|at| self.groups.get(at))
            .map(|(_, group)| *group)
    }
}

/// Compiles `schema`.
///
/// # Errors
/// Returns an error if something is used that is not declared, if components are cyclic, or if a
/// limit is exceeded.
pub(super) fn compile(schema: &Schema) -> Result<Tables, SchemaError> {
    limit(schema.fields.len(), MAX_FIELDS, "fields")?;
    limit(schema.messages.len(), MAX_MESSAGES, "messages")?;
    let memberships = schema.messages.len() * (schema.fields.len() + 1);
    limit(
        memberships,
        MAX_MEMBERSHIPS,
        "pairs of a message and a field",
    )?;
    let ids = schema.fields.keys().zip(1..).map(|(tag, id)| (*tag, id));
    let mut compiler = Compiler {
        schema,
        ids: ids.collect(),
        groups: Vec::new(),
        known: HashMap::new(),
        open: HashSet::new(),
        budget: MAX_ITEMS,
    };
    let header = compiler.block(&schema.header, "header")?;
    let trailer = compiler.block(&schema.trailer, "trailer")?;
    let mut messages = Vec::with_capacity(schema.messages.len());
    for (msg_type, message) in &schema.messages {
        let block = compiler.block(&message.items, &message.name)?;
        messages.push((msg_type.as_bytes().into(), block));
    }
    let (rules, values) = rules(schema, &header, &trailer, &compiler.groups);
    Ok(Tables {
        rules,
        values,
        groups: compiler.groups.into(),
        header,
        trailer,
        messages: Messages::new(messages),
        fields: schema.fields.len(),
    })
}

fn limit(count: usize, limit: usize, what: &'static str) -> Result<(), SchemaError> {
    if count > limit {
        return Err(SchemaError::TooLarge { what, limit });
    }
    Ok(())
}

fn rules(
    schema: &Schema,
    header: &Block,
    trailer: &Block,
    groups: &[GroupRules],
) -> (Rules, Box<[ValueSet]>) {
    let counts: HashSet<u32> = groups.iter().map(|group| group.tag).collect();
    let framing = header.groups.iter().chain(&trailer.groups);
    let framing = framing.filter_map(|(_, number)| groups.get(*number as usize));
    let of_entries: HashSet<u32> = framing
        .flat_map(|group| group.all.iter().copied())
        .collect();
    let mut values = Vec::new();
    let mut numbers = HashMap::new();
    let mut dense = Vec::new();
    let mut sparse = Vec::new();
    for ((&tag, field), id) in schema.fields.iter().zip(1..) {
        let rule = Rule {
            id,
            values: value_set(tag, field, &mut values, &mut numbers),
            kind: field.kind,
            section: match (header.membership(id), trailer.membership(id)) {
                (Membership::None, Membership::None) => standard_section(tag),
                (Membership::None, _) => Section::Trailer,
                _ => Section::Header,
            },
            framing: match [header, trailer].map(|block| block.membership(id)) {
                [Membership::None, Membership::None] if of_entries.contains(&tag) => {
                    Membership::None
                }
                own if own.contains(&Membership::Required) => Membership::Required,
                _ => Membership::Optional,
            },
            is_count: counts.contains(&tag),
        };
        if tag < DENSE_TAGS {
            dense.extend((dense.len() as u32..tag).map(|tag| *unknown(tag)));
            dense.push(rule);
        } else {
            sparse.push((tag, rule));
        }
    }
    let rules = Rules {
        dense: dense.into(),
        sparse: sparse.into(),
    };
    (rules, values.into())
}

/// Returns the number of the field's list of values. Equal lists share one number.
fn value_set(
    tag: u32,
    field: &FieldDef,
    sets: &mut Vec<ValueSet>,
    numbers: &mut HashMap<ValueSet, u16>,
) -> u16 {
    // MsgType(35) is judged by the messages that are declared, BOOLEAN by its format.
    let is_free = field.open || field.kind == DataType::Boolean || tag == tag::MSG_TYPE;
    if is_free || field.values.is_empty() {
        return 0;
    }
    let set = ValueSet::new(field.values.iter().map(|value| value.value.as_bytes()));
    *numbers.entry(set).or_insert_with_key(|set| {
        sets.push(set.clone());
        sets.len() as u16
    })
}

struct Compiler<'a> {
    schema: &'a Schema,
    ids: HashMap<u32, u16>,
    groups: Vec<GroupRules>,
    known: HashMap<GroupRules, u32>,
    /// The components that are being unfolded.
    open: HashSet<&'a str>,
    /// The number of items that may still be unfolded.
    budget: usize,
}

/// Returns the tags of required fields. A tag that occurs twice is required if one of its places
/// requires it.
fn required_tags(slots: &[Slot]) -> HashSet<u32> {
    let required = slots.iter().filter(|slot| slot.required);
    required.map(|slot| slot.tag).collect()
}

/// One field of an unfolded block.
struct Slot {
    tag: u32,
    required: bool,
    group: Option<u32>,
}

impl Compiler<'_> {
    fn block(&mut self, items: &[Item], place: &str) -> Result<Block, SchemaError> {
        let mut slots = Vec::new();
        self.unfold(items, true, place, 0, &mut slots)?;
        let mut members = vec![Membership::None; self.schema.fields.len() + 1];
        let mut required_tags = Vec::new();
        let mut groups = Vec::new();
        for slot in &slots {
            let id = usize::from(self.id(slot.tag, place)?);
            groups.extend(slot.group.map(|group| (slot.tag, group)));
            let Some(member) = members.get_mut(id) else {
                continue;
            };
            if slot.required && *member != Membership::Required {
                *member = Membership::Required;
                required_tags.push(slot.tag);
            } else if *member == Membership::None {
                *member = Membership::Optional;
            }
        }
        required_tags.sort_unstable();
        groups.sort_by_key(|(tag, _)| *tag);
        groups.dedup_by_key(|(tag, _)| *tag);
        Ok(Block {
            members: members.into(),
            required_tags: required_tags.into(),
            groups: groups.into(),
        })
    }

    fn unfold(
        &mut self,
        items: &[Item],
        is_required: bool,
        place: &str,
        depth: usize,
        slots: &mut Vec<Slot>,
    ) -> Result<(), SchemaError> {
        limit(depth, MAX_DEPTH, "nested groups and components")?;
        for item in items {
            self.budget = self.budget.checked_sub(1).ok_or(SchemaError::TooLarge {
                what: "items in all messages",
                limit: MAX_ITEMS,
            })?;
            match item {
                Item::Field { tag, required } => slots.push(Slot {
                    tag: *tag,
                    required: *required && is_required,
                    group: None,
                }),
                Item::Group {
                    tag,
                    required,
                    items,
                } => {
                    let group = self.group(*tag, items, place, depth)?;
                    slots.push(Slot {
                        tag: *tag,
                        required: *required && is_required,
                        group: Some(group),
                    });
                }
                Item::Component { name, required } => {
                    let is_required = *required && is_required;
                    self.component(name, is_required, place, depth, slots)?;
                }
            }
            limit(slots.len(), MAX_SLOTS, "fields of a message or group")?;
        }
        Ok(())
    }

    fn component(
        &mut self,
        name: &str,
        is_required: bool,
        place: &str,
        depth: usize,
        slots: &mut Vec<Slot>,
    ) -> Result<(), SchemaError> {
        let schema = self.schema;
        let Some((name, items)) = schema.components.get_key_value(name) else {
            return Err(SchemaError::UnknownComponent {
                name: name.to_owned(),
                place: place.to_owned(),
            });
        };
        if !self.open.insert(name) {
            let name = name.clone();
            return Err(SchemaError::CyclicComponent { name });
        }
        self.unfold(items, is_required, place, depth + 1, slots)?;
        self.open.remove(name.as_str());
        Ok(())
    }

    fn group(
        &mut self,
        tag: u32,
        items: &[Item],
        place: &str,
        depth: usize,
    ) -> Result<u32, SchemaError> {
        let mut slots = Vec::new();
        self.unfold(items, true, place, depth + 1, &mut slots)?;
        let required = required_tags(&slots);
        let mut seen = HashSet::new();
        slots.retain(|slot| seen.insert(slot.tag));
        for slot in &mut slots {
            slot.required = required.contains(&slot.tag);
        }
        limit(slots.len(), MAX_MEMBERS, "members of a group")?;
        if slots.is_empty() {
            let place = place.to_owned();
            return Err(SchemaError::EmptyGroup { tag, place });
        }
        let mut all = BTreeSet::new();
        for slot in &slots {
            self.id(slot.tag, place)?;
            all.insert(slot.tag);
            let nested = slot.group.and_then(|group| self.groups.get(group as usize));
            all.extend(nested.iter().flat_map(|nested| nested.all.iter()));
            limit(all.len(), MAX_SLOTS, "fields of a message or group")?;
        }
        let rules = GroupRules {
            tag,
            tags: slots.iter().map(|slot| slot.tag).collect(),
            required: slots.iter().filter(|slot| slot.required).count(),
            members: slots
                .iter()
                .map(|slot| Member {
                    required: slot.required,
                    group: slot.group,
                })
                .collect(),
            all: all.into_iter().collect(),
        };
        let number = self.groups.len() as u32;
        if let Some(known) = self.known.get(&rules) {
            return Ok(*known);
        }
        self.groups.push(rules.clone());
        self.known.insert(rules, number);
        Ok(number)
    }

    fn id(&self, tag: u32, place: &str) -> Result<u16, SchemaError> {
        self.ids.get(&tag).copied().ok_or(SchemaError::UnknownTag {
            tag,
            place: place.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dictionary, Version};
    use super::*;

    /// The largest version of the standard needs far fewer items than the limit.
    #[test]
    fn the_limit_of_items_leaves_room() {
        fn count(schema: &Schema, items: &[Item]) -> usize {
            let of = |item: &Item| match item {
                Item::Field { .. } => 1,
                Item::Group { items, .. } => 1 + count(schema, items),
                Item::Component { name, .. } => 1 + count(schema, &schema.components[name]),
            };
            items.iter().map(of).sum()
        }
        for version in Version::ALL {
            let dictionary = Dictionary::built_in(version);
            let schema = dictionary.schema();
            let messages = schema.messages.values();
            let items: usize = messages.map(|message| count(schema, &message.items)).sum();
            assert!(items * 10 < MAX_ITEMS, "{version:?}: {items} items");
        }
    }
}
