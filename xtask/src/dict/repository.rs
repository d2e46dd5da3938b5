//! Reads one version of the FIX Repository (2010 edition): six relational XML files, joined by
//! tag and ComponentID.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use roxmltree::{Document, Node};

use super::read;

/// One version, as in the files.
pub(super) struct Repository {
    pub(super) version: String,
    /// False if Fields.xml is that of another version (the edition has such a file for 4.3).
    pub(super) own_fields: bool,
    pub(super) fields: BTreeMap<u32, Field>,
    pub(super) enums: BTreeMap<u32, Vec<Enum>>,
    pub(super) components: Vec<Component>,
    pub(super) messages: Vec<Message>,
    /// Rows by ComponentID, in the order of their positions.
    pub(super) contents: HashMap<String, Vec<Row>>,
}

#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    /// The version that introduced it, such as `FIX.4.2`.
    pub(super) added: String,
    /// Whether an extension pack to that version introduced it: then it is in the next version.
    pub(super) by_extension: bool,
    /// The field whose list of values it shares.
    pub(super) values_of: Option<u32>,
}

/// One value of a field and its symbolic name.
#[derive(Clone)]
pub(super) struct Enum {
    pub(super) value: String,
    pub(super) name: String,
}

impl Enum {
    /// Parses `VALUE=Name`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (value, name) = text.rsplit_once('=')?;
        (!value.is_empty() && !name.is_empty()).then(|| Self {
            value: value.to_owned(),
            name: name.to_owned(),
        })
    }

    /// Returns whether this is a description of free values ("ISO Country Code"), which contains
    /// blanks.
    pub(super) fn is_description(&self) -> bool {
        self.value.contains(char::is_whitespace)
    }
}

pub(super) struct Component {
    pub(super) id: String,
    pub(super) name: String,
}

pub(super) struct Message {
    pub(super) id: String,
    pub(super) msg_type: String,
    pub(super) name: String,
    pub(super) session: bool,
}

/// One line of a message or component: a tag or a component's name.
pub(super) struct Row {
    position: f64,
    pub(super) indent: u32,
    pub(super) text: String,
    pub(super) required: bool,
}

impl Repository {
    pub(super) fn read(folder: &Path, version: &str) -> Result<Self, String> {
        let mut own_fields = true;
        let mut fields = BTreeMap::new();
        each(folder, "Fields.xml", |node| {
            own_fields &= node
                .parent()
                .and_then(|p| p.attribute("version"))
                .is_none_or(|v| v == version);
            let field = Field {
                name: text(node, "Name")?,
                kind: text(node, "Type")?,
                added: node.attribute("added").unwrap_or(version).to_owned(),
                by_extension: node.has_attribute("addedEP"),
                values_of: number(node, "EnumDatatype").ok(),
            };
            fields.insert(number(node, "Tag")?, field);
            Ok(())
        })?;
        let mut enums: BTreeMap<u32, Vec<Enum>> = BTreeMap::new();
        each(folder, "Enums.xml", |node| {
            enums.entry(number(node, "Tag")?).or_default().push(Enum {
                value: text(node, "Value")?,
                name: text(node, "SymbolicName")?,
            });
            Ok(())
        })?;
        let mut components = Vec::new();
        each(folder, "Components.xml", |node| {
            components.push(Component {
                id: text(node, "ComponentID")?,
                name: text(node, "Name")?,
            });
            Ok(())
        })?;
        Ok(Self {
            version: version.to_owned(),
            own_fields,
            fields,
            enums,
            components,
            messages: messages(folder)?,
            contents: contents(folder)?,
        })
    }
}

fn messages(folder: &Path) -> Result<Vec<Message>, String> {
    let mut messages = Vec::new();
    each(folder, "Messages.xml", |node| {
        messages.push(Message {
            id: text(node, "ComponentID")?,
            msg_type: text(node, "MsgType")?,
            name: text(node, "Name")?,
            session: text(node, "CategoryID")? == "Session",
        });
        Ok(())
    })?;
    Ok(messages)
}

fn contents(folder: &Path) -> Result<HashMap<String, Vec<Row>>, String> {
    let mut contents: HashMap<String, Vec<Row>> = HashMap::new();
    each(folder, "MsgContents.xml", |node| {
        let id = text(node, "ComponentID")?;
        let row = Row {
            position: text(node, "Position")?
                .parse()
                .map_err(|_| "Position is not a number".to_owned())?,
            indent: number(node, "Indent")?,
            text: text(node, "TagText")?,
            required: text(node, "Reqd")? == "1",
        };
        contents.entry(id).or_default().push(row);
        Ok(())
    })?;
    for rows in contents.values_mut() {
        rows.sort_by(|a, b| a.position.total_cmp(&b.position));
    }
    Ok(contents)
}

/// Calls `take` for each record of a file; an error includes the file and line.
fn each(
    folder: &Path,
    file: &str,
    mut take: impl FnMut(Node) -> Result<(), String>,
) -> Result<(), String> {
    let path = folder.join(file);
    let xml = read(&path)?;
    let document = Document::parse(&xml).map_err(|e| format!("{}: {e}", path.display()))?;
    for node in document.root_element().children().filter(Node::is_element) {
        take(node).map_err(|why| {
            let at = document.text_pos_at(node.range().start);
            format!("{}:{at}: {why}", path.display())
        })?;
    }
    Ok(())
}

fn text(node: Node, name: &str) -> Result<String, String> {
    node.children()
        .find(|child| child.has_tag_name(name))
        .and_then(|child| child.text())
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
        .ok_or(format!("{name} is missing"))
}

fn number(node: Node, name: &str) -> Result<u32, String> {
    text(node, name)?
        .parse()
        .map_err(|_| format!("{name} is not a number"))
}
