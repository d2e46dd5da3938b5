//! A reader of FIX Orchestra XML: `<fixr:repository>` with code sets, fields, components, groups
//! and messages, in which all references are by id and scenario. The year of the namespace is
//! ignored.
//!
//! A dictionary has no scenarios. The base scenario takes precedence. Without one, everything is
//! valid that is valid in one of the scenarios, and required what is required in each of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;

use roxmltree::{Document, Node};

use super::kind::DataType;
use super::load::{Cause, LoadError, attribute, is_type, tag_attribute};
use super::schema::{EnumValue, FieldDef, Item, MessageDef, Schema, SchemaError};

/// The most values of all fields. Each field has those of its code set.
const MAX_VALUES: usize = 1 << 20;

/// The scenario of elements that name none.
const BASE: &str = "base";

/// Reads a document whose root is `<repository>`.
///
/// # Errors
/// Returns an error with its place if an attribute is missing, or if an id or a name is declared
/// twice or not at all.
pub(super) fn read(document: &Document) -> Result<Schema, LoadError> {
    let root = document.root_element();
    // `FIX.Latest_EP300`: the extension pack is no part of the version.
    let version = attribute(root, "version")?;
    let mut schema = Schema {
        version: version.split('_').next().unwrap_or(version).to_owned(),
        ..Schema::default()
    };
    read_fields(&mut schema, root)?;
    read_lengths(&mut schema, root)?;
    let context = read_blocks(&mut schema, root)?;
    schema.header = standard(&schema, "StandardHeader");
    schema.trailer = standard(&schema, "StandardTrailer");
    let messages = records(root, "messages", "message");
    for (msg_type, scenarios) in by_attribute(messages, "message", "msgType")? {
        let message = read_message(&schema, &scenarios, &context)?;
        let message = message.map(|message| (msg_type.to_owned(), message));
        schema.messages.extend(message);
    }
    Ok(schema)
}

/// The values of `presence`.
const PRESENCES: [&str; 5] = ["constant", "forbidden", "ignored", "optional", "required"];

/// The elements of a block.
const ITEMS: [&str; 5] = [
    "annotation",
    "componentRef",
    "fieldRef",
    "groupRef",
    "numInGroup",
];

/// Checks what is read leniently: see [`check_xml`](super::check_xml).
///
/// # Errors
/// Returns the first value or element of the wrong kind, with its place.
pub(super) fn check(document: &Document) -> Result<Vec<LoadError>, LoadError> {
    let root = document.root_element();
    let types = records(root, "datatypes", "datatype");
    let types: HashSet<&str> = types.filter_map(|node| node.attribute("name")).collect();
    let is_known = |name: &str| types.contains(name) || is_type(name);
    let sets = records(root, "codeSets", "codeSet");
    let sets: HashSet<&str> = sets.filter_map(|node| node.attribute("name")).collect();
    let mut twice = Vec::new();
    for node in root.descendants().filter(Node::is_element) {
        let presence = node.attribute("presence").unwrap_or("optional");
        if !PRESENCES.contains(&presence) {
            return Err(LoadError::bad_value(node, "presence", presence));
        }
        let kind = node.attribute("type").unwrap_or_default();
        match node.tag_name().name() {
            "structure" | "component" | "group" => check_items(node)?,
            "codeSet" if !is_known(kind) => return Err(LoadError::bad_value(node, "type", kind)),
            "codeSet" => add_repeated_codes(node, &mut twice),
            "field" if node.has_attribute("type") && !sets.contains(kind) && !is_known(kind) => {
                return Err(LoadError::bad_value(node, "type", kind));
            }
            _ => {}
        }
    }
    Ok(twice)
}

/// Checks the elements of a block. Those of other namespaces are extensions.
fn check_items(block: Node) -> Result<(), LoadError> {
    for node in block.children().filter(Node::is_element) {
        let name = node.tag_name().name();
        let is_own = node.tag_name().namespace() == block.tag_name().namespace();
        if is_own && !ITEMS.contains(&name) {
            return Err(LoadError::unknown(node, "element", name));
        }
    }
    Ok(())
}

fn add_repeated_codes(set: Node, twice: &mut Vec<LoadError>) {
    let mut seen = HashSet::new();
    for code in set.children().filter(|n| n.tag_name().name() == "code") {
        let value = code.attribute("value").unwrap_or_default();
        if !seen.insert(value) {
            twice.push(LoadError::twice(code, "value", value));
        }
    }
}

/// The sections with blocks, and their elements.
const BLOCKS: [(&str, &str); 2] = [("components", "component"), ("groups", "group")];

/// An id or a name, and a scenario.
type Key<'a> = (&'a str, &'a str);

fn records<'a, 'b>(
    root: Node<'a, 'b>,
    section: &'static str,
    element: &'static str,
) -> impl Iterator<Item = Node<'a, 'b>> {
    root.children()
        .filter(move |node| node.tag_name().name() == section)
        .flat_map(|node| node.children())
        .filter(move |node| node.tag_name().name() == element)
}

fn key<'a>(node: Node<'a, '_>) -> Result<Key<'a>, LoadError> {
    Ok((attribute(node, "id")?, scenario(node)))
}

fn scenario<'a>(node: Node<'a, '_>) -> &'a str {
    node.attribute("scenario").unwrap_or(BASE)
}

/// Returns the scenarios of each key, in the order of the document.
///
/// # Errors
/// Returns the error that `twice` makes if a key is declared twice in one scenario.
fn by_key<'a, 'b: 'a, K: Copy + Ord + Hash>(
    nodes: impl Iterator<Item = Node<'a, 'b>>,
    key: impl Fn(Node<'a, 'b>) -> Result<K, LoadError>,
    twice: impl Fn(Node<'a, 'b>, K) -> LoadError,
) -> Result<BTreeMap<K, Vec<Node<'a, 'b>>>, LoadError> {
    let mut found: BTreeMap<K, Vec<Node<'a, 'b>>> = BTreeMap::new();
    let mut known = HashSet::new();
    for node in nodes {
        let key = key(node)?;
        if !known.insert((key, scenario(node))) {
            return Err(twice(node, key));
        }
        found.entry(key).or_default().push(node);
    }
    Ok(found)
}

/// Returns the scenarios of each value of an attribute, as [`by_key`].
fn by_attribute<'a, 'b: 'a>(
    nodes: impl Iterator<Item = Node<'a, 'b>>,
    what: &'static str,
    name: &'static str,
) -> Result<BTreeMap<&'a str, Vec<Node<'a, 'b>>>, LoadError> {
    by_key(
        nodes,
        |node| attribute(node, name),
        |node, value| LoadError::twice(node, what, value),
    )
}

/// Returns the base scenario alone, or all scenarios if it is not among them.
fn in_force<'n, 'a, 'b>(scenarios: &'n [Node<'a, 'b>]) -> &'n [Node<'a, 'b>] {
    let base = scenarios.iter().find(|node| scenario(**node) == BASE);
    base.map_or(scenarios, std::slice::from_ref)
}

/// The code sets by name and scenario, as fields with their values. Each name has a base scenario.
type CodeSets<'a> = HashMap<Key<'a>, FieldDef>;

fn code_sets<'a>(root: Node<'a, '_>) -> Result<CodeSets<'a>, LoadError> {
    let mut sets = HashMap::new();
    let elements = records(root, "codeSets", "codeSet");
    for (name, scenarios) in by_attribute(elements, "code set", "name")? {
        let mut all = Vec::new();
        for node in scenarios {
            let set = read_code_set(node)?;
            all.push(set.clone());
            sets.insert((name, scenario(node)), set);
        }
        if let Some(all) = any_of(all) {
            sets.entry((name, BASE)).or_insert(all);
        }
    }
    Ok(sets)
}

fn read_code_set(set: Node) -> Result<FieldDef, LoadError> {
    let mut field = field_of(attribute(set, "type")?);
    for code in set.children().filter(|n| n.tag_name().name() == "code") {
        field.values.push(EnumValue {
            value: attribute(code, "value")?.to_owned(),
            name: attribute(code, "name")?.to_owned(),
        });
    }
    Ok(with_union(field, set))
}

/// Returns a nameless field of a data type.
fn field_of(kind: &str) -> FieldDef {
    FieldDef {
        name: String::new(),
        kind: DataType::from_name(kind),
        values: Vec::new(),
        open: kind.to_ascii_uppercase().starts_with("RESERVED"),
        length: None,
    }
}

/// Returns a field that also has the values of the data type in `unionDataType`, if there is one.
fn with_union(field: FieldDef, node: Node) -> FieldDef {
    match node.attribute("unionDataType") {
        Some(union) => FieldDef {
            kind: either(field.kind, DataType::from_name(union)),
            open: true,
            ..field
        },
        None => field,
    }
}

/// Returns the type of a field with values of either type, which is text unless the two are the
/// same.
fn either(kind: DataType, union: DataType) -> DataType {
    match kind {
        _ if kind == union => kind,
        _ if kind.is_multiple() => DataType::MultipleStringValue,
        _ => DataType::String,
    }
}

/// Returns a field with the values of all scenarios of a field.
fn any_of(scenarios: Vec<FieldDef>) -> Option<FieldDef> {
    let mut field = scenarios.into_iter().reduce(|mut all, other| {
        // In a scenario without a list any value is valid.
        all.open |= other.open || all.values.is_empty() != other.values.is_empty();
        all.kind = either(all.kind, other.kind);
        all.length = all.length.or(other.length);
        all.values.extend(other.values);
        all
    })?;
    let mut known = HashSet::new();
    field.values.retain(|own| known.insert(own.value.clone()));
    Some(field)
}

fn read_fields(schema: &mut Schema, root: Node) -> Result<(), LoadError> {
    let sets = code_sets(root)?;
    let elements = || records(root, "fields", "field");
    let fields = by_key(
        elements(),
        |field| tag_attribute(field, "id"),
        |field, tag| LoadError::at(field, Cause::DuplicateTag(tag)),
    )?;
    // Two tags with one name are refused.
    by_attribute(elements(), "field", "name")?;
    let mut values = 0;
    for (tag, scenarios) in fields {
        let mut all = Vec::new();
        for node in in_force(&scenarios) {
            let field = read_field(*node, &sets)?;
            values += field.values.len();
            if values > MAX_VALUES {
                let (what, limit) = ("values of all fields", MAX_VALUES);
                let cause = Cause::Schema(SchemaError::TooLarge { what, limit });
                return Err(LoadError::at(*node, cause));
            }
            all.push(field);
        }
        schema.fields.extend(any_of(all).map(|field| (tag, field)));
    }
    Ok(())
}

fn read_field(field: Node, sets: &CodeSets) -> Result<FieldDef, LoadError> {
    // Since Orchestra 1.1 a field has a `codeSet` or a `type`; before, its `type` is either.
    let code_set = field.attribute("codeSet");
    let kind = match code_set {
        Some(name) => name,
        None => attribute(field, "type")?,
    };
    let own = sets.get(&(kind, scenario(field)));
    let values = match own.or_else(|| sets.get(&(kind, BASE))) {
        Some(set) => set.clone(),
        None if code_set.is_some() || kind.ends_with("CodeSet") => {
            return Err(LoadError::unknown(field, "code set", kind));
        }
        None => field_of(kind),
    };
    Ok(FieldDef {
        name: attribute(field, "name")?.to_owned(),
        length: length_id(field)?,
        ..with_union(values, field)
    })
}

/// Reads the length fields that references to fields name, unless the fields name others. A tag of
/// anything else names none: published files have the placeholder 1.
fn read_lengths(schema: &mut Schema, root: Node) -> Result<(), LoadError> {
    // In FIX 4.2 one length field is an `int`: EncodedListStatusTextLen(445).
    let is_length = |kind| matches!(kind, DataType::Length | DataType::Int);
    let fields = schema.fields.iter();
    let lengths = fields.filter(|(_, field)| is_length(field.kind));
    let lengths: HashSet<u32> = lengths.map(|(tag, _)| *tag).collect();
    for field in schema.fields.values_mut() {
        field.length = field.length.filter(|tag| lengths.contains(tag));
    }
    for node in root.descendants() {
        if node.tag_name().name() != "fieldRef" {
            continue;
        }
        let Some(length) = length_id(node)?.filter(|tag| lengths.contains(tag)) else {
            continue;
        };
        if let Some(field) = schema.fields.get_mut(&tag_attribute(node, "id")?) {
            field.length = field.length.or(Some(length));
        }
    }
    Ok(())
}

/// Returns the tag that a field or a reference to it names as that of its length field.
fn length_id(node: Node) -> Result<Option<u32>, LoadError> {
    let Some(value) = node.attribute("lengthId") else {
        return Ok(None);
    };
    let length = tag_attribute(node, "lengthId")?;
    if length == tag_attribute(node, "id")? {
        let (attribute, value) = ("lengthId", value.to_owned());
        return Err(LoadError::at(node, Cause::BadValue { attribute, value }));
    }
    Ok(Some(length))
}

/// Returns the declaration of a message, which may lack a structure in some of its scenarios.
fn read_message(
    schema: &Schema,
    scenarios: &[Node],
    context: &Context,
) -> Result<Option<MessageDef>, LoadError> {
    let mut whole = scenarios.to_vec();
    whole.retain(|message| find(*message, "structure").is_some());
    let messages = match whole.is_empty() {
        true => in_force(scenarios),
        false => in_force(&whole),
    };
    let structures = messages.iter().map(|message| child(*message, "structure"));
    let structures = structures.collect::<Result<Vec<Node>, LoadError>>()?;
    let Some(message) = messages.first() else {
        return Ok(None);
    };
    Ok(Some(MessageDef {
        name: attribute(*message, "name")?.to_owned(),
        is_session: message.attribute("category") == Some("Session"),
        items: context.items(schema, &structures)?,
    }))
}

fn find<'a, 'b>(parent: Node<'a, 'b>, name: &str) -> Option<Node<'a, 'b>> {
    parent.children().find(|n| n.tag_name().name() == name)
}

/// Returns a required child of an element.
fn child<'a, 'b>(parent: Node<'a, 'b>, name: &'static str) -> Result<Node<'a, 'b>, LoadError> {
    find(parent, name).ok_or_else(|| LoadError::at(parent, Cause::MissingElement(name)))
}

fn standard(schema: &Schema, name: &str) -> Vec<Item> {
    let block = schema.components.get(&format!("component {name}#{BASE}"));
    block.cloned().unwrap_or_default()
}

/// Reads components and groups into the schema, and returns their names.
fn read_blocks<'a>(schema: &mut Schema, root: Node<'a, '_>) -> Result<Context<'a>, LoadError> {
    let mut blocks = HashMap::new();
    let mut declared = Vec::new();
    for (section, element) in BLOCKS {
        // Two names with one id are refused.
        by_attribute(records(root, section, element), element, "id")?;
        let by_name = by_attribute(records(root, section, element), element, "name")?;
        for (name, scenarios) in &by_name {
            for node in scenarios {
                let block = format!("{element} {name}#{}", scenario(*node));
                blocks.insert((element, key(*node)?), block.clone());
                declared.push((block, vec![*node]));
            }
        }
        for (name, scenarios) in by_name {
            let base = format!("{element} {name}#{BASE}");
            for node in &scenarios {
                let key = (attribute(*node, "id")?, BASE);
                blocks.entry((element, key)).or_insert_with(|| base.clone());
            }
            if !scenarios.iter().any(|node| scenario(*node) == BASE) {
                declared.push((base, scenarios));
            }
        }
    }
    let context = Context { blocks };
    for (block, scenarios) in declared {
        let items = context.block(schema, &scenarios)?;
        schema.components.insert(block, items);
    }
    Ok(context)
}

/// The names of components and groups by element, id and scenario. Each id has a base scenario.
struct Context<'a> {
    blocks: HashMap<(&'static str, Key<'a>), String>,
}

impl Context<'_> {
    /// Returns the items of a component, or, for group elements, the group that they declare.
    fn block(&self, schema: &Schema, scenarios: &[Node]) -> Result<Vec<Item>, LoadError> {
        let items = self.items(schema, scenarios)?;
        let group = scenarios.iter().find(|n| n.tag_name().name() == "group");
        let Some(group) = group else {
            return Ok(items);
        };
        Ok(vec![Item::Group {
            tag: known_tag(schema, child(*group, "numInGroup")?)?,
            required: true,
            items,
        }])
    }

    /// Returns the items of elements that are scenarios of one.
    fn items(&self, schema: &Schema, scenarios: &[Node]) -> Result<Vec<Item>, LoadError> {
        let lists = scenarios.iter().map(|node| self.own_items(schema, *node));
        Ok(union(lists.collect::<Result<Vec<_>, LoadError>>()?))
    }

    fn own_items(&self, schema: &Schema, parent: Node) -> Result<Vec<Item>, LoadError> {
        let mut items = Vec::new();
        for node in parent.children().filter(Node::is_element) {
            let presence = node.attribute("presence").unwrap_or("optional");
            if presence == "forbidden" {
                continue;
            }
            let required = presence == "required";
            match node.tag_name().name() {
                "fieldRef" => items.push(Item::Field {
                    tag: known_tag(schema, node)?,
                    required,
                }),
                "componentRef" => items.extend(self.reference(node, "component", required)?),
                "groupRef" => items.extend(self.reference(node, "group", required)?),
                _ => {}
            }
        }
        Ok(items)
    }

    /// Returns the component or group that an element refers to, or `None` for the header and the
    /// trailer, which are around every message and not among its items.
    fn reference(
        &self,
        node: Node,
        element: &'static str,
        required: bool,
    ) -> Result<Option<Item>, LoadError> {
        let (id, scenario) = key(node)?;
        let found = self
            .blocks
            .get(&(element, (id, scenario)))
            .or_else(|| self.blocks.get(&(element, (id, BASE))));
        let name = found.ok_or_else(|| LoadError::unknown(node, element, id))?;
        if matches!(
            bare(name),
            "component StandardHeader" | "component StandardTrailer"
        ) {
            return Ok(None);
        }
        Ok(Some(Item::Component {
            name: name.clone(),
            required,
        }))
    }
}

fn known_tag(schema: &Schema, node: Node) -> Result<u32, LoadError> {
    let tag = tag_attribute(node, "id")?;
    if schema.fields.contains_key(&tag) {
        Ok(tag)
    } else {
        Err(LoadError::unknown(node, "field", &tag.to_string()))
    }
}

/// Returns the items of all lists, one list for each scenario. An item is required if each list
/// requires it. The base scenario replaces a block that lists have in different scenarios.
fn union(mut lists: Vec<Vec<Item>>) -> Vec<Item> {
    if lists.len() < 2 {
        return lists.pop().unwrap_or_default();
    }
    let required = lists.iter().map(|items| {
        let required = items.iter().filter(|item| is_required(item));
        required.map(place).collect::<HashSet<_>>()
    });
    let required = required.reduce(|all, own| &all & &own).unwrap_or_default();
    let mut positions = HashMap::new();
    let mut union: Vec<Item> = Vec::new();
    for item in lists.iter().flatten() {
        let place = place(item);
        let next = union.len();
        let position = *positions.entry(place).or_insert(next);
        if position == next {
            union.push(with_required(item, required.contains(&place)));
        } else if let Some(Item::Component { name, .. }) = union.get_mut(position)
            && let Item::Component { name: other, .. } = item
            && *name != *other
        {
            *name = format!("{}#{BASE}", bare(other));
        }
    }
    union
}

/// Returns the name of a block without its scenario.
fn bare(block: &str) -> &str {
    block.split('#').next().unwrap_or(block)
}

/// Returns what an item has in common with the same item of another scenario: the tag, or the name
/// of the block.
fn place(item: &Item) -> (u32, &str) {
    match item {
        Item::Field { tag, .. } | Item::Group { tag, .. } => (*tag, ""),
        Item::Component { name, .. } => (0, bare(name)),
    }
}

fn is_required(item: &Item) -> bool {
    let (Item::Field { required, .. }
    | Item::Group { required, .. }
    | Item::Component { required, .. }) = item;
    *required
}

fn with_required(item: &Item, is_required: bool) -> Item {
    let mut item = item.clone();
    let (Item::Field { required, .. }
    | Item::Group { required, .. }
    | Item::Component { required, .. }) = &mut item;
    *required = is_required;
    item
}
