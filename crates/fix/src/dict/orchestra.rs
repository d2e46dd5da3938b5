//! Reads FIX Orchestra XML: `<fixr:repository>` with code sets, fields, components, groups and
//! messages, in which everything refers to the others by id and scenario. The namespace's year is
//! not looked at.

use std::collections::HashMap;

use roxmltree::{Document, Node};

use super::kind::DataType;
use super::load::{Cause, LoadError, attribute, tag_attribute};
use super::schema::{EnumValue, FieldDef, Item, MessageDef, Schema};

/// Reads a document whose root is `<repository>`.
///
/// # Errors
/// Missing attributes, ids that are declared twice or not at all, with their place.
pub(super) fn read(document: &Document) -> Result<Schema, LoadError> {
    let root = document.root_element();
    // `FIX.Latest_EP300`: the extension pack is no part of the version.
    let version = attribute(root, "version")?;
    let mut schema = Schema {
        version: version.split('_').next().unwrap_or(version).to_owned(),
        ..Schema::default()
    };
    let code_sets = code_sets(root)?;
    for field in records(root, "fields", "field") {
        read_field(&mut schema, field, &code_sets)?;
    }
    let mut declared = Vec::new();
    let mut context = Context {
        blocks: HashMap::new(),
    };
    for (section, element) in BLOCKS {
        for node in records(root, section, element) {
            let name = format!("{element} {}#{}", attribute(node, "name")?, scenario(node));
            let known = context.blocks.insert((element, key(node)?), name.clone());
            if known.is_some() {
                return Err(LoadError::twice(node, element, &name));
            }
            declared.push((node, element, name));
        }
    }
    for (node, element, name) in declared {
        let items = context.block(&schema, node, element)?;
        schema.components.insert(name, items);
    }
    schema.header = standard(&schema, "StandardHeader");
    schema.trailer = standard(&schema, "StandardTrailer");
    for message in records(root, "messages", "message") {
        read_message(&mut schema, message, &context)?;
    }
    Ok(schema)
}

/// The sections with blocks, and their elements.
const BLOCKS: [(&str, &str); 2] = [("components", "component"), ("groups", "group")];

/// Id and scenario.
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
    node.attribute("scenario").unwrap_or("base")
}

/// Code sets by name; the base scenario has the last word.
type CodeSets<'a> = HashMap<&'a str, CodeSet<'a>>;

struct CodeSet<'a> {
    kind: &'a str,
    /// The type of values that it does not list, if they are valid too.
    union: Option<&'a str>,
    values: Vec<EnumValue>,
}

fn code_sets<'a>(root: Node<'a, '_>) -> Result<CodeSets<'a>, LoadError> {
    let mut sets = HashMap::new();
    for set in records(root, "codeSets", "codeSet") {
        let mut values = Vec::new();
        for code in set.children().filter(|n| n.tag_name().name() == "code") {
            values.push(EnumValue {
                value: attribute(code, "value")?.to_owned(),
                name: attribute(code, "name")?.to_owned(),
            });
        }
        let name = attribute(set, "name")?;
        if scenario(set) == "base" || !sets.contains_key(name) {
            let set = CodeSet {
                kind: attribute(set, "type")?,
                union: set.attribute("unionDataType"),
                values,
            };
            sets.insert(name, set);
        }
    }
    Ok(sets)
}

fn read_field(schema: &mut Schema, field: Node, code_sets: &CodeSets) -> Result<(), LoadError> {
    let tag = tag_attribute(field, "id")?;
    if schema.fields.contains_key(&tag) {
        // The same field in another scenario adds nothing that a message can show.
        return match scenario(field) {
            "base" => Err(LoadError::at(field, Cause::DuplicateTag(tag))),
            _ => Ok(()),
        };
    }
    let kind = attribute(field, "type")?;
    let (kind, union, values) = match code_sets.get(kind) {
        Some(set) => (set.kind, set.union, set.values.clone()),
        None if kind.ends_with("CodeSet") => {
            return Err(LoadError::unknown(field, "code set", kind));
        }
        None => (kind, None, Vec::new()),
    };
    let union = field.attribute("unionDataType").or(union);
    let is_reserved = kind.to_ascii_uppercase().starts_with("RESERVED");
    let kind = DataType::from_name(kind);
    let definition = FieldDef {
        name: attribute(field, "name")?.to_owned(),
        kind: union.map_or(kind, |union| either(kind, DataType::from_name(union))),
        values,
        open: union.is_some() || is_reserved,
    };
    schema.fields.insert(tag, definition);
    Ok(())
}

/// Returns the type of a field that has values of either type: text, unless the two are the same.
fn either(kind: DataType, union: DataType) -> DataType {
    match kind {
        _ if kind == union => kind,
        _ if kind.is_multiple() => DataType::MultipleStringValue,
        _ => DataType::String,
    }
}

fn read_message(schema: &mut Schema, message: Node, context: &Context) -> Result<(), LoadError> {
    let msg_type = attribute(message, "msgType")?;
    let structure = message
        .children()
        .find(|n| n.tag_name().name() == "structure")
        .ok_or_else(|| LoadError::at(message, Cause::MissingElement("structure")))?;
    let definition = MessageDef {
        name: attribute(message, "name")?.to_owned(),
        is_session: message.attribute("category") == Some("Session"),
        items: context.items(schema, structure)?,
    };
    if schema.messages.contains_key(msg_type) {
        if scenario(message) == "base" {
            return Err(LoadError::twice(message, "message", msg_type));
        }
        return Ok(());
    }
    schema.messages.insert(msg_type.to_owned(), definition);
    Ok(())
}

fn standard(schema: &Schema, name: &str) -> Vec<Item> {
    let block = schema.components.get(&format!("component {name}#base"));
    block.cloned().unwrap_or_default()
}

/// Names of components and groups by element, id and scenario.
struct Context<'a> {
    blocks: HashMap<(&'static str, Key<'a>), String>,
}

impl Context<'_> {
    /// Returns the items of a component, or the group that a group element declares.
    fn block(&self, schema: &Schema, node: Node, element: &str) -> Result<Vec<Item>, LoadError> {
        let items = self.items(schema, node)?;
        if element == "component" {
            return Ok(items);
        }
        let count = node
            .children()
            .find(|n| n.tag_name().name() == "numInGroup")
            .ok_or_else(|| LoadError::at(node, Cause::MissingElement("numInGroup")))?;
        Ok(vec![Item::Group {
            tag: known_tag(schema, count)?,
            required: true,
            items,
        }])
    }

    fn items(&self, schema: &Schema, parent: Node) -> Result<Vec<Item>, LoadError> {
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

    /// Header and trailer stand around every message: no part of its items.
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
            .or_else(|| self.blocks.get(&(element, (id, "base"))));
        let name = found.ok_or_else(|| LoadError::unknown(node, element, id))?;
        if name.starts_with("component Standard") {
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
