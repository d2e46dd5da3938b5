//! A reader of QuickFIX-style XML: `<fix major= minor=>` with header, trailer, messages, components
//! and fields, in which all references are by the names of fields and components.

use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node};

use super::kind::DataType;
use super::load::{Cause, LoadError, MAX_DEPTH, attribute, is_type, tag_attribute};
use super::schema::{EnumValue, FieldDef, Item, MessageDef, Schema, SchemaError};

/// Reads a document whose root is `<fix>`.
///
/// # Errors
/// Returns an error with its place if an element or attribute is missing, or if a section or a name
/// is declared twice, or a name not at all.
pub(super) fn read(document: &Document) -> Result<Schema, LoadError> {
    let root = document.root_element();
    sections_once(root)?;
    let mut schema = Schema {
        version: version(root)?,
        ..Schema::default()
    };
    let names = read_fields(section(root, "fields")?, &mut schema)?;
    let components = root.children().find(|n| n.has_tag_name("components"));
    let mut context = Context {
        names,
        components: HashSet::new(),
    };
    for component in elements(components) {
        let name = attribute(component, "name")?;
        if !context.components.insert(name.to_owned()) {
            return Err(LoadError::twice(component, "component", name));
        }
    }
    for component in elements(components) {
        let name = attribute(component, "name")?.to_owned();
        schema.components.insert(name, context.items(component, 0)?);
    }
    for message in elements(Some(section(root, "messages")?)) {
        let msg_type = attribute(message, "msgtype")?;
        let definition = MessageDef {
            name: attribute(message, "name")?.to_owned(),
            is_session: message.attribute("msgcat") == Some("admin"),
            items: context.items(message, 0)?,
        };
        if schema
            .messages
            .insert(msg_type.to_owned(), definition)
            .is_some()
        {
            return Err(LoadError::twice(message, "message", msg_type));
        }
    }
    for (name, items) in [
        ("header", &mut schema.header),
        ("trailer", &mut schema.trailer),
    ] {
        if let Some(block) = root.children().find(|n| n.has_tag_name(name)) {
            *items = context.items(block, 0)?;
        }
    }
    Ok(schema)
}

/// Checks what is read leniently: see [`check_xml`](super::check_xml).
///
/// # Errors
/// Returns the first value of the wrong kind, with its place.
pub(super) fn check(document: &Document) -> Result<Vec<LoadError>, LoadError> {
    let root = document.root_element();
    for name in ["major", "minor", "servicepack"] {
        let number = root.attribute(name).unwrap_or_default();
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(LoadError::bad_value(root, name, number));
        }
    }
    for node in root.descendants().filter(Node::is_element) {
        let required = node.attribute("required").unwrap_or("N");
        if !["Y", "N"]
            .iter()
            .any(|flag| flag.eq_ignore_ascii_case(required))
        {
            return Err(LoadError::bad_value(node, "required", required));
        }
    }
    let mut twice = Vec::new();
    for field in elements(Some(section(root, "fields")?)) {
        let kind = attribute(field, "type")?;
        if !is_type(kind) {
            return Err(LoadError::bad_value(field, "type", kind));
        }
        let mut seen = HashSet::new();
        for value in field.descendants().filter(|n| n.has_tag_name("value")) {
            let text = attribute(value, "enum")?.trim();
            if !seen.insert(text) {
                twice.push(LoadError::twice(value, "value", text));
            }
        }
    }
    Ok(twice)
}

/// Returns the version: `FIX.4.4`, `FIX.5.0SP2`, `FIXT.1.1`.
fn version(root: Node) -> Result<String, LoadError> {
    let major = attribute(root, "major")?;
    let minor = attribute(root, "minor")?;
    let family = root.attribute("type").unwrap_or("FIX");
    Ok(match root.attribute("servicepack") {
        None | Some("" | "0") => format!("{family}.{major}.{minor}"),
        Some(pack) => format!("{family}.{major}.{minor}SP{pack}"),
    })
}

/// The elements that are read.
const SECTIONS: [&str; 5] = ["components", "fields", "header", "messages", "trailer"];

/// Checks that no section occurs twice: the second one would be left out.
fn sections_once(root: Node) -> Result<(), LoadError> {
    let mut seen = HashSet::new();
    for node in elements(Some(root)) {
        let name = node.tag_name().name();
        if SECTIONS.contains(&name) && !seen.insert(name) {
            return Err(LoadError::twice(node, "section", name));
        }
    }
    Ok(())
}

fn section<'a, 'b>(root: Node<'a, 'b>, name: &'static str) -> Result<Node<'a, 'b>, LoadError> {
    root.children()
        .find(|node| node.has_tag_name(name))
        .ok_or_else(|| LoadError::at(root, Cause::MissingElement(name)))
}

fn elements<'a, 'b>(parent: Option<Node<'a, 'b>>) -> impl Iterator<Item = Node<'a, 'b>> {
    parent
        .into_iter()
        .flat_map(|node| node.children())
        .filter(Node::is_element)
}

/// Reads the fields into the schema, and returns their tags by name.
fn read_fields<'a>(
    fields: Node<'a, '_>,
    schema: &mut Schema,
) -> Result<HashMap<&'a str, u32>, LoadError> {
    // Before 4.2, CHAR was any text.
    let early = matches!(schema.version.as_str(), "FIX.4.0" | "FIX.4.1");
    let mut names = HashMap::new();
    for field in elements(Some(fields)) {
        let tag = tag_attribute(field, "number")?;
        let name = attribute(field, "name")?;
        let kind = match DataType::from_name(attribute(field, "type")?) {
            DataType::Char if early => DataType::String,
            kind => kind,
        };
        let definition = FieldDef {
            name: name.to_owned(),
            kind,
            values: read_values(field)?,
            open: matches!(field.attribute("allowOtherValues"), Some("Y" | "true")),
            length: None,
        };
        if schema.fields.insert(tag, definition).is_some() {
            return Err(LoadError::at(field, Cause::DuplicateTag(tag)));
        }
        if names.insert(name, tag).is_some() {
            return Err(LoadError::twice(field, "field", name));
        }
    }
    Ok(names)
}

fn read_values(field: Node) -> Result<Vec<EnumValue>, LoadError> {
    field
        .descendants()
        .filter(|node| node.has_tag_name("value"))
        .map(|value| {
            let text = attribute(value, "enum")?.trim();
            Ok(EnumValue {
                value: text.to_owned(),
                name: value.attribute("description").unwrap_or(text).to_owned(),
            })
        })
        .collect()
}

/// The names that items may refer to.
struct Context<'a> {
    names: HashMap<&'a str, u32>,
    components: HashSet<String>,
}

impl Context<'_> {
    fn items(&mut self, parent: Node, depth: usize) -> Result<Vec<Item>, LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::at(parent, Cause::TooDeep));
        }
        let mut items = Vec::new();
        for node in elements(Some(parent)) {
            items.push(self.item(node, depth)?);
        }
        Ok(items)
    }

    fn item(&mut self, node: Node, depth: usize) -> Result<Item, LoadError> {
        let name = attribute(node, "name")?;
        let required = node.attribute("required");
        let required = required.is_some_and(|text| text.eq_ignore_ascii_case("Y"));
        match node.tag_name().name() {
            "field" => Ok(Item::Field {
                tag: self.tag(node, name)?,
                required,
            }),
            "group" => {
                let tag = self.tag(node, name)?;
                let items = self.items(node, depth + 1)?;
                if items.is_empty() {
                    let place = name.to_owned();
                    let cause = Cause::Schema(SchemaError::EmptyGroup { tag, place });
                    return Err(LoadError::at(node, cause));
                }
                Ok(Item::Group {
                    tag,
                    required,
                    items,
                })
            }
            "component" if self.components.contains(name) => Ok(Item::Component {
                name: name.to_owned(),
                required,
            }),
            "component" => Err(LoadError::unknown(node, "component", name)),
            other => Err(LoadError::unknown(node, "element", other)),
        }
    }

    fn tag(&self, node: Node, name: &str) -> Result<u32, LoadError> {
        let tag = self.names.get(name).copied();
        tag.ok_or_else(|| LoadError::unknown(node, "field", name))
    }
}
