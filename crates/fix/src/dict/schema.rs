//! The declarations of a dictionary, whatever it was read from: fields, header, trailer, components
//! and messages. [`Dictionary`](super::Dictionary) compiles them into tables.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use fanfare_wire::DataFields;

use super::kind::DataType;

/// The declarations of one dictionary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    /// The version, written like a BeginString(8): `FIX.4.4`, `FIX.5.0SP2`, `FIXT.1.1`.
    pub version: String,
    /// The fields by tag.
    pub fields: BTreeMap<u32, FieldDef>,
    /// The standard header.
    pub header: Vec<Item>,
    /// The standard trailer.
    pub trailer: Vec<Item>,
    /// The blocks that messages and other components refer to, by name.
    pub components: BTreeMap<String, Vec<Item>>,
    /// The messages by MsgType(35).
    pub messages: BTreeMap<String, MessageDef>,
}

/// The declaration of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDef {
    /// The field's name, such as `ClOrdID`.
    pub name: String,
    /// The data type of the field.
    pub kind: DataType,
    /// The values of the field, if it has a list of them.
    pub values: Vec<EnumValue>,
    /// Whether values outside the list are valid too.
    pub open: bool,
    /// The tag of the length field that the `lengthId` of a data field names, if it names one.
    pub length: Option<u32>,
}

impl FieldDef {
    fn is_data(&self) -> bool {
        matches!(self.kind, DataType::Data | DataType::XmlData)
    }
}

/// A value of a field's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumValue {
    /// The value as it is in a message.
    pub value: String,
    /// The meaning of the value, such as `Buy`.
    pub name: String,
}

/// An item of a message, component or group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A field.
    Field {
        /// The tag of the field.
        tag: u32,
        /// Whether the field is required.
        required: bool,
    },
    /// A repeating group.
    Group {
        /// The tag of the count field.
        tag: u32,
        /// Whether the count field is required.
        required: bool,
        /// The items of an entry. The first field is the delimiter.
        items: Vec<Self>,
    },
    /// All items of a component.
    Component {
        /// The name of the component.
        name: String,
        /// Whether the component is required. If not, none of its fields is.
        required: bool,
    },
}

/// The declaration of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageDef {
    /// The message's name, such as `NewOrderSingle`.
    pub name: String,
    /// Whether it is a message of the session layer.
    pub is_session: bool,
    /// The items of the message between header and trailer.
    pub items: Vec<Item>,
}

/// The reason why a schema cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// An item has a tag that no field declares.
    #[error("{place} has tag {tag}, which no field declares")]
    UnknownTag {
        /// The tag.
        tag: u32,
        /// The message, component or block that has the tag.
        place: String,
    },
    /// An item names a component that is not declared.
    #[error("{place} names component {name}, which is not declared")]
    UnknownComponent {
        /// The name of the component.
        name: String,
        /// The message, component or block that names it.
        place: String,
    },
    /// A component contains itself.
    #[error("component {name} contains itself")]
    CyclicComponent {
        /// The name of the component.
        name: String,
    },
    /// A group has no fields.
    #[error("group {tag} of {place} has no fields")]
    EmptyGroup {
        /// The tag of the count field.
        tag: u32,
        /// The message, component or block that has the group.
        place: String,
    },
    /// A limit of dictionaries is exceeded.
    #[error("more than {limit} {what}")]
    TooLarge {
        /// The declarations of which there are too many, in the plural.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

impl SchemaError {
    /// Returns the name of the message or component at fault. The names of blocks of Orchestra also
    /// have their element and scenario (`group Parties#base`), which are left out.
    pub(super) fn place(&self) -> Option<&str> {
        let place = match self {
            Self::UnknownTag { place, .. }
            | Self::UnknownComponent { place, .. }
            | Self::EmptyGroup { place, .. } => place,
            Self::CyclicComponent { name } => name,
            Self::TooLarge { .. } => return None,
        };
        let bare = place.split('#').next().unwrap_or(place);
        let without_element = bare.split_once(' ').map(|(_, name)| name);
        Some(without_element.unwrap_or(bare))
    }
}

impl Schema {
    /// Merges `other` into this schema. Its fields replace those with the same tag, and keep the
    /// values of those in their lists, and their length fields if they name none. Its components
    /// replace those with the same name. The items of its header, trailer and messages come first,
    /// so that its groups hold; those of this schema follow if their tag is not there yet. The
    /// version stays.
    pub fn merge(&mut self, other: Self) {
        self.merge_by(other, |items, more| {
            let behind = std::mem::replace(items, more);
            add(items, behind);
        });
    }

    /// Merges `other` as [`merge`](Self::merge) does, but the items of this schema come first.
    pub(super) fn merge_behind(&mut self, other: Self) {
        self.merge_by(other, add);
    }

    fn merge_by(&mut self, other: Self, merge: fn(&mut Vec<Item>, Vec<Item>)) {
        for (tag, mut field) in other.fields {
            if let Some(old) = self.fields.remove(&tag) {
                field.open |= old.open;
                field.length = field.length.or(old.length);
                let own = field.values.iter().map(|own| own.value.clone());
                let mut known: HashSet<String> = own.collect();
                let is_new = |old: &EnumValue| known.insert(old.value.clone());
                field.values.extend(old.values.into_iter().filter(is_new));
            }
            self.fields.insert(tag, field);
        }
        self.components.extend(other.components);
        merge(&mut self.header, other.header);
        merge(&mut self.trailer, other.trailer);
        for (msg_type, message) in other.messages {
            match self.messages.get_mut(&msg_type) {
                Some(old) => merge(&mut old.items, message.items),
                None => {
                    self.messages.insert(msg_type, message);
                }
            }
        }
    }
}

impl Schema {
    /// Returns the pairs of a length and a data field whose length the standard does not have, in
    /// the order of the length fields' tags. A length field has one data field. Decoders have to
    /// know these pairs: see [`Decoder::knowing`](crate::codec::Decoder::knowing).
    pub fn own_data_fields(&self) -> Vec<(u32, u32)> {
        let standard = DataFields::standard();
        let mut pairs: Vec<_> = self.data_fields().into_iter().collect();
        pairs.retain(|&(length, _)| standard.data_tag(length).is_none());
        pairs
    }

    /// Returns the length fields of the data fields of a block, by data field. The length field is
    /// the one that the declaration names. If it names none, it is the one that is named after the
    /// data field (`RawDataLength`, `EncodedTextLen`), or else the one before it. Tags that no
    /// field declares, and length fields outside the block, are skipped.
    pub(crate) fn lengths(&self, block: &[u32]) -> BTreeMap<u32, u32> {
        let field = |tag: &u32| self.fields.get(tag);
        let data = |tag: &u32| field(tag).filter(|field| field.is_data());
        let mut lengths = BTreeMap::new();
        if !block.iter().any(|tag| data(tag).is_some()) {
            return lengths;
        }
        let tags: HashSet<u32> = block.iter().copied().collect();
        // The first field of each name, with its place.
        let mut named = HashMap::new();
        for (place, tag) in block.iter().enumerate() {
            if let Some(own) = field(tag) {
                named.entry(&*own.name).or_insert((place, *tag));
            }
        }
        for (tag, own) in block.iter().filter_map(|tag| Some((tag, data(tag)?))) {
            if let Some(length) = own.length {
                if tags.contains(&length) {
                    lengths.insert(*tag, length);
                }
                continue;
            }
            let name = &own.name;
            let names = [format!("{name}Len"), format!("{name}Length")];
            let both = names.iter().filter_map(|name| named.get(&**name));
            if let Some((_, length)) = both.min() {
                lengths.insert(*tag, *length);
            }
        }
        let mut taken: HashSet<u32> = lengths.values().copied().collect();
        for pair in block.windows(2) {
            let [before, tag] = pair else { continue };
            if data(tag).is_none_or(|own| own.length.is_some()) {
                continue;
            }
            let is_length = field(before).is_some_and(|own| own.kind == DataType::Length);
            if is_length
                && !taken.contains(before)
                && let Entry::Vacant(place) = lengths.entry(*tag)
            {
                place.insert(*before);
                taken.insert(*before);
            }
        }
        lengths
    }

    /// Returns the pairs of a length and a data field, by length field: those that declarations
    /// name, and those of all blocks.
    fn data_fields(&self) -> BTreeMap<u32, u32> {
        let mut pairs = BTreeMap::new();
        for (tag, field) in self.fields.iter().filter(|(_, field)| field.is_data()) {
            if let Some(length) = field.length {
                pairs.entry(length).or_insert(*tag);
            }
        }
        let messages = self.messages.values().map(|message| &message.items);
        let blocks = [&self.header, &self.trailer].into_iter();
        for items in blocks.chain(self.components.values()).chain(messages) {
            self.add_data_fields(items, &mut pairs);
        }
        pairs
    }

    fn add_data_fields(&self, items: &[Item], pairs: &mut BTreeMap<u32, u32>) {
        let tags = items.iter().map(|item| match item {
            Item::Field { tag, .. } | Item::Group { tag, .. } => *tag,
            Item::Component { .. } => 0,
        });
        for (data, length) in self.lengths(&tags.collect::<Vec<_>>()) {
            pairs.entry(length).or_insert(data);
        }
        for item in items {
            if let Item::Group { items, .. } = item {
                self.add_data_fields(items, pairs);
            }
        }
    }
}

/// Appends the items whose tag or component is not there yet. A block of a file may have any number
/// of items.
fn add(items: &mut Vec<Item>, more: Vec<Item>) {
    let (mut tags, mut components) = (HashSet::new(), HashSet::new());
    let mut is_new = |item: &Item| match item {
        Item::Field { tag, .. } | Item::Group { tag, .. } => tags.insert(*tag),
        Item::Component { name, .. } => components.insert(name.clone()),
    };
    for item in &*items {
        is_new(item);
    }
    items.extend(more.into_iter().filter(is_new));
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// Returns a field whose name and type may make it a data field, a length field, or both.
    fn field() -> impl Strategy<Value = FieldDef> {
        let names = ["A", "ALen", "ALength", "B", "BLen", "BLength", "C"];
        let kinds = [DataType::Data, DataType::Length, DataType::String];
        let length = proptest::option::of(0..12_u32);
        let parts = (select(names.to_vec()), select(kinds.to_vec()), length);
        parts.prop_map(|(name, kind, length)| FieldDef {
            name: name.to_owned(),
            kind,
            values: Vec::new(),
            open: false,
            length,
        })
    }

    /// Returns the length fields of a block by a comparison of each data field with every field.
    fn slow_lengths(schema: &Schema, block: &[u32]) -> BTreeMap<u32, u32> {
        let field = |tag: &u32| schema.fields.get(tag);
        let data = |tag: &u32| field(tag).filter(|field| field.is_data());
        let mut lengths: BTreeMap<u32, u32> = BTreeMap::new();
        for (tag, own) in block.iter().filter_map(|tag| Some((tag, data(tag)?))) {
            let names = ["Len", "Length"].map(|end| format!("{}{end}", own.name));
            let mut others = block.iter();
            let found = match own.length {
                Some(length) => others.find(|other| **other == length),
                None => others.find(|tag| field(tag).is_some_and(|f| names.contains(&f.name))),
            };
            lengths.extend(found.map(|length| (*tag, *length)));
        }
        for pair in block.windows(2) {
            let is_own = data(&pair[1]).is_some_and(|own| own.length.is_none());
            let is_length = field(&pair[0]).is_some_and(|own| own.kind == DataType::Length);
            if is_own && is_length && lengths.values().all(|length| *length != pair[0]) {
                lengths.entry(pair[1]).or_insert(pair[0]);
            }
        }
        lengths
    }

    proptest! {
        #[test]
        fn lengths_are_those_that_a_look_at_every_pair_finds(
            fields in vec(field(), 10),
            block in vec(0..12_u32, 0..12),
        ) {
            let schema = Schema {
                fields: (0..).zip(fields).collect(),
                ..Schema::default()
            };
            prop_assert_eq!(schema.lengths(&block), slow_lengths(&schema, &block));
        }
    }

    #[test]
    fn user_fields_are_merged_on_top() {
        let mut base =
            table::parse("V FIX.4.4\nF 54 Side CHAR 1=Buy\nM D Order app 54!\n").unwrap();
        let user = "V x\nF 54 Side CHAR 9=Swap\nF 5001 Desk STRING\nM D Order app 54 5001\n\
                    M U1 Own app 5001!\n";
        base.merge(table::parse(user).unwrap());
        let text = "V FIX.4.4\nF 54 Side CHAR 9=Swap 1=Buy\nF 5001 Desk STRING\n\
                    M D Order app 54 5001\nM U1 Own app 5001!\n";
        assert_eq!(base, table::parse(text).unwrap());
    }

    #[test]
    fn items_are_added_once_by_their_tags_and_components() {
        let field = |tag| Item::Field {
            tag,
            required: false,
        };
        let group = |tag| Item::Group {
            tag,
            required: false,
            items: vec![field(1)],
        };
        let component = |name: &str| Item::Component {
            name: name.to_owned(),
            required: false,
        };
        let mut items = vec![field(1), field(1), component("a")];
        let more = [group(1), component("b"), component("a"), group(2), field(2)];
        add(&mut items, more.to_vec());
        let expected = [field(1), field(1), component("a"), component("b"), group(2)];
        assert_eq!(items, expected);
    }
}
