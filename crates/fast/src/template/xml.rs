//! The reader of the XML of sections 6 and 9. It reads the elements of the template namespace,
//! skips foreign ones, and reports the static errors S1 to S5.

mod extension;
mod operator;
pub(super) mod schema;

use schema::Deviations;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use roxmltree::{Document, Node};

use super::initial::OperandType;
use super::limits::{self, MAX_FIELDS, MAX_NAME, MAX_NESTING};
use super::{
    Block, Dictionary, Instruction, Kind, Length, Name, Operator, OperatorKind, Position, Template,
    TemplateSet,
};
use crate::error::{ErrorCode, TemplateError};
use crate::value::{IntType, TextType};

/// The namespaces that documents of exchanges declare for elements of the specification. An element
/// without a namespace, or in the namespace of the root element, is one of the specification, too.
const NAMESPACES: [&str; 4] = [
    "http://www.fixprotocol.org/ns/fast/td/1.0",
    "http://www.fixprotocol.org/ns/fast/td/1.1",
    "http://www.fixprotocol.org/ns/fast/td/1.2",
    "http://www.fixprotocol.org/ns/template-definition",
];

impl TemplateSet {
    /// Reads a document with `<templates>` or a single `<template>` as its root. Elements and
    /// attributes of other namespaces are left out.
    ///
    /// # Errors
    /// S1 to S5 with the place in the document. S1 is also the error of a document type
    /// declaration, of a document beyond [`limits`], and of an attribute, an element or text that
    /// the schema does not have.
    pub fn parse(xml: &str) -> Result<Self, TemplateError> {
        let (set, deviations) = Self::parse_lenient(xml)?;
        deviations.into_error()?;
        Ok(set)
    }

    /// Reads a document as [`Self::parse`] does, but leaves out what the schema does not have, and
    /// returns a list of that: attributes, text, and elements where no instruction and no operator
    /// can be.
    ///
    /// # Errors
    /// Those of [`Self::parse`]. An unknown instruction or operator is also an error, because
    /// messages would be decoded wrongly without it.
    pub fn parse_lenient(xml: &str) -> Result<(Self, Deviations), TemplateError> {
        let xml = xml.strip_prefix('\u{feff}').unwrap_or(xml);
        limits::check(xml)?;
        let read = |document: &Document<'_>| {
            let reader = Reader::new(document)?;
            let set = reader.document()?;
            Ok((set, reader.deviations()))
        };
        match Document::parse(xml) {
            Ok(document) => read(&document),
            // Documents of exchanges do not always declare this prefix. The attribute means the
            // same without it, and the blanks keep all positions in the document.
            Err(roxmltree::Error::UnknownNamespace(prefix, _)) if prefix == "scp" => {
                let xml = xml.replace("scp:reset", "    reset");
                let document = Document::parse(&xml).map_err(|error| malformed(&error))?;
                read(&document)
            }
            Err(roxmltree::Error::DtdDetected) => Err(definition(xml)),
            Err(error) => Err(malformed(&error)),
        }
    }
}

fn malformed(error: &roxmltree::Error) -> TemplateError {
    let at = error.pos();
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at {at}")).unwrap_or(&text);
    TemplateError {
        code: ErrorCode::S1,
        line: at.row,
        column: at.col,
        message: message.to_owned(),
    }
}

/// Returns the error of a document type definition. Its entities can make a short document
/// arbitrarily large, and templates do not need it.
fn definition(xml: &str) -> TemplateError {
    let position = limits::position(xml, xml.find("<!DOCTYPE").unwrap_or_default());
    let message = "a document type definition (DTD) is not allowed";
    error_at(ErrorCode::S1, position, message.to_owned())
}

/// The attributes that elements inherit from those around them.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) ns: String,
    /// The namespace of the definition around them, in which types are looked up before `ns`.
    types: Option<String>,
    template_ns: String,
    dictionary: Dictionary,
    depth: usize,
}

pub(super) struct Reader<'d, 'x> {
    pub(super) document: &'d Document<'x>,
    namespace: Option<String>,
    /// The namespace of names at the root.
    ns: String,
    /// The types that `<define>` elements name.
    definitions: HashMap<Name, Option<Node<'d, 'x>>>,
    /// The offset of each line's first byte, and the number of characters before each block of
    /// bytes. With them a position is found without counting from the start.
    lines: Vec<usize>,
    blocks: Vec<usize>,
    /// The number of fields and references read so far, and of bytes of initial values. A
    /// definition is read again wherever it is named, and its fields may name others.
    fields: Cell<usize>,
    text_bytes: Cell<usize>,
}

/// The bytes of a block.
const BLOCK: usize = 1024;

pub(super) type Parsed<T> = Result<T, TemplateError>;

impl<'d, 'x> Reader<'d, 'x> {
    fn new(document: &'d Document<'x>) -> Parsed<Self> {
        let namespace = document
            .root_element()
            .tag_name()
            .namespace()
            .map(str::to_owned);
        let text = document.input_text();
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(breaks.map(|(at, _)| at + 1))
            .collect();
        let blocks = text.as_bytes().chunks(BLOCK).scan(0, |sum, block| {
            let before = *sum;
            *sum += characters(block);
            Some(before)
        });
        let mut reader = Self {
            document,
            namespace,
            ns: String::new(),
            definitions: HashMap::new(),
            lines,
            blocks: blocks.collect(),
            fields: Cell::new(0),
            text_bytes: Cell::new(0),
        };
        let root = document.root_element();
        let scope = reader.scope(root, &Scope::default())?;
        reader.definitions = reader.defined(root, &scope)?;
        reader.ns = scope.ns;
        Ok(reader)
    }

    fn defined(
        &self,
        root: Node<'d, 'x>,
        scope: &Scope,
    ) -> Parsed<HashMap<Name, Option<Node<'d, 'x>>>> {
        let mut all = HashMap::new();
        let defines = self.children(root);
        for define in defines.filter(|child| child.tag_name().name() == "define") {
            let name = Name {
                ns: self.scope(define, scope)?.ns,
                local: self.name(define)?,
            };
            let message = format!("a second type is defined as {}", name.local);
            if all.insert(name, self.children(define).next()).is_some() {
                return Err(self.s1(define, message));
            }
        }
        Ok(all)
    }

    fn document(&self) -> Parsed<TemplateSet> {
        let root = self.document.root_element();
        let scope = self.scope(root, &Scope::default())?;
        let templates = match root.tag_name().name() {
            "templates" => self
                .children(root)
                .filter(|node| node.tag_name().name() != "define")
                .map(|node| match node.tag_name().name() {
                    "template" => self.template(node, &scope),
                    other => Err(self.s1(node, format!("<{other}> is not allowed here"))),
                })
                .collect::<Parsed<Vec<_>>>()?,
            "template" => vec![self.template(root, &Scope::default())?],
            other => {
                return Err(self.s1(
                    root,
                    format!("<{other}> is not the root of a template document"),
                ));
            }
        };
        self.check_unique(&templates)?;
        Ok(TemplateSet { templates })
    }

    fn check_unique(&self, templates: &[Template]) -> Parsed<()> {
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for template in templates {
            let duplicate = if !names.insert(&template.name) {
                format!("a second template is named {}", template.name.local)
            } else if template.id.is_some_and(|id| !ids.insert(id)) {
                format!("template {} has the id of another", template.name.local)
            } else {
                continue;
            };
            return Err(error_at(ErrorCode::S1, template.position, duplicate));
        }
        Ok(())
    }

    fn template(&self, node: Node<'_, '_>, outer: &Scope) -> Parsed<Template> {
        let scope = self.scope(node, outer)?;
        let id = match self.attribute(node, "id") {
            None => None,
            Some(text) => Some(text.trim().parse().map_err(|_| {
                self.s1(
                    node,
                    format!("template id {text:?} is not an unsigned 32-bit integer"),
                )
            })?),
        };
        let block = self.block(node, &scope)?;
        Ok(Template {
            name: Name {
                ns: scope.template_ns.clone(),
                local: self.name(node)?,
            },
            id,
            reset: self.reset(node)?,
            type_ref: block.type_ref,
            body: block.body,
            position: self.position(node),
        })
    }

    /// Returns the `reset` attribute, in any namespace: yes is `Y`, `yes`, `t`, `true` or `1`.
    fn reset(&self, node: Node<'_, '_>) -> Parsed<bool> {
        let Some(attribute) = node
            .attributes()
            .find(|attribute| attribute.name() == "reset")
        else {
            return Ok(false);
        };
        match attribute.value().trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "t" | "true" | "1" => Ok(true),
            "n" | "no" | "f" | "false" | "0" | "" => Ok(false),
            other => Err(self.s1(node, format!("reset=\"{other}\" is neither yes nor no"))),
        }
    }

    /// Returns the contents of a template, group or sequence.
    fn block(&self, node: Node<'_, '_>, scope: &Scope) -> Parsed<Block> {
        if scope.depth > MAX_NESTING {
            return Err(self.s1(node, format!("nested deeper than {MAX_NESTING} levels")));
        }
        let mut block = Block::default();
        for child in self.children(node) {
            match child.tag_name().name() {
                "typeRef" if block.type_ref.is_none() && block.body.is_empty() => {
                    let ns = self.scope(child, scope)?.ns;
                    block.type_ref = Some(Name {
                        ns,
                        local: self.name(child)?,
                    });
                }
                "typeRef" => return Err(self.s1(child, "<typeRef> must come first and only once")),
                "length" if node.tag_name().name() == "sequence" => {
                    if !block.body.is_empty() {
                        return Err(
                            self.s1(child, "<length> must come before the fields of the entry")
                        );
                    }
                }
                _ => block.body.push(self.instruction(child, scope)?),
            }
        }
        Ok(block)
    }

    fn instruction(&self, node: Node<'_, '_>, outer: &Scope) -> Parsed<Instruction> {
        self.count(node, (&self.fields, 1), (MAX_FIELDS, "fields"))?;
        let scope = self.scope(node, outer)?;
        let (holders, ns) = self.holders(node, &scope)?;
        let mut optional = self.presence(&holders)?;
        let ty = holders.last().copied().unwrap_or(node);
        let element = ty.tag_name().name();
        let inside = || self.inside(ty, ns, &scope);
        let kind = match element {
            "string" => self.string(node, ty, &scope, optional)?,
            "byteVector" => {
                let ty = TextType::Bytes;
                Kind::Text(
                    ty,
                    self.operator(node, OperandType::Text(ty), optional, &scope)?,
                )
            }
            "decimal" => self.decimal(node, &scope, optional)?,
            "bitGroup" => self.bit_group(node, ty, (&scope, &inside()?), optional)?,
            "group" => Kind::Group(self.block(ty, &inside()?)?),
            "sequence" => {
                let inside = inside()?;
                let entry = self.block(ty, &inside)?;
                let length = self.length(ty, &inside, &mut optional)?;
                Kind::Sequence { length, entry }
            }
            "templateRef" => return self.template_ref(node, &scope),
            _ => {
                let int = IntType::from_name(element).or_else(|| extension::int_type(element));
                let Some(int) = int else {
                    return Err(self.s1(node, format!("<{element}> is not an instruction")));
                };
                self.check_values(node, ty)?;
                let ty = int;
                Kind::Int(
                    ty,
                    self.operator(node, OperandType::Int(ty), optional, &scope)?,
                )
            }
        };
        Ok(Instruction {
            name: Name {
                ns: scope.ns.clone(),
                local: self.name(node)?,
            },
            id: self.id(node)?,
            optional,
            kind,
            position: self.position(node),
        })
    }

    /// Returns the scope inside a group or sequence, whose element is that of the instruction or
    /// the type of its `<field>`, and comes from this namespace.
    fn inside(&self, ty: Node<'_, '_>, ns: &str, scope: &Scope) -> Parsed<Scope> {
        let mut around = scope.clone();
        around.types = Some(ns.to_owned());
        Ok(Scope {
            depth: scope.depth,
            ..self.scope(ty, &around)?
        })
    }

    /// Adds to a count. Returns S1 if the count exceeds its limit.
    pub(super) fn count(
        &self,
        node: Node<'_, '_>,
        (count, more): (&Cell<usize>, usize),
        (most, what): (usize, &str),
    ) -> Parsed<()> {
        count.set(count.get() + more);
        if count.get() > most {
            let message = format!("more than {most} {what}, definitions expanded");
            return Err(self.s1(node, message));
        }
        Ok(())
    }

    fn template_ref(&self, node: Node<'_, '_>, scope: &Scope) -> Parsed<Instruction> {
        if let Some(child) = self.children(node).next() {
            return Err(self.s1(child, "<templateRef> must be empty"));
        }
        let (kind, name) = match self.attribute(node, "name") {
            Some(_) => {
                let ns = scope.template_ns.clone();
                (
                    Kind::StaticRef,
                    Name {
                        ns,
                        local: self.name(node)?,
                    },
                )
            }
            None => (Kind::DynamicRef, Name::default()),
        };
        let position = self.position(node);
        Ok(Instruction {
            name,
            id: None,
            optional: false,
            kind,
            position,
        })
    }

    fn string(
        &self,
        node: Node<'_, '_>,
        of_type: Node<'_, '_>,
        scope: &Scope,
        optional: bool,
    ) -> Parsed<Kind> {
        let ty = match self.attribute(of_type, "charset").map(str::trim) {
            None | Some("ascii") => TextType::Ascii,
            Some("unicode") => TextType::Unicode,
            Some(other) => return Err(self.s1(node, format!("unknown charset {other:?}"))),
        };
        if ty == TextType::Ascii
            && let Some(length) = self.child(node, "length")
        {
            return Err(self.s1(length, "an ASCII string cannot have <length>"));
        }
        Ok(Kind::Text(
            ty,
            self.operator(node, OperandType::Text(ty), optional, scope)?,
        ))
    }

    fn decimal(&self, node: Node<'_, '_>, scope: &Scope, optional: bool) -> Parsed<Kind> {
        let is_part =
            |child: &Node<'_, '_>| matches!(child.tag_name().name(), "exponent" | "mantissa");
        let is_operator =
            |child: &Node<'_, '_>| OperatorKind::of_element(child.tag_name().name()).is_some();
        let has_own = |holder: &Node<'_, '_>| {
            let mut children = self.children(*holder);
            children.any(|child| is_part(&child) || is_operator(&child))
        };
        // A definition's operators, of the whole or of its parts, are those of fields without any.
        let (holders, _) = self.holders(node, scope)?;
        let own = holders.into_iter().find(has_own);
        let split = own.filter(|own| self.children(*own).any(|child| is_part(&child)));
        let Some(node) = split else {
            let operator = self.operator(node, OperandType::Decimal, optional, scope)?;
            return Ok(Kind::Decimal(operator));
        };
        let scope = &self.scope(node, scope)?;
        let exponent = self.child(node, "exponent");
        let mantissa = self.child(node, "mantissa");
        let mut seen = HashSet::new();
        for child in self.children(node) {
            let name = child.tag_name().name();
            if !is_part(&child) || !seen.insert(name) {
                return Err(self.s1(child, format!("<{name}> beside exponent and mantissa")));
            }
        }
        let part = |part: Option<Node<'_, '_>>, ty, optional| match part {
            Some(part) => self.operator(part, OperandType::Int(ty), optional, scope),
            None => Ok(Operator::none()),
        };
        Ok(Kind::SplitDecimal {
            exponent: part(exponent, IntType::Int32, optional)?,
            // Where the exponent is present, so is the mantissa.
            mantissa: part(mantissa, IntType::Int64, false)?,
        })
    }

    /// Returns the `<length>` of a sequence. Its own `presence`, which some exchanges write, makes
    /// the sequence optional.
    fn length(&self, sequence: Node<'_, '_>, scope: &Scope, optional: &mut bool) -> Parsed<Length> {
        let mut lengths = self
            .children(sequence)
            .filter(|child| child.tag_name().name() == "length");
        let Some(node) = lengths.next() else {
            return Ok(Length {
                name: None,
                id: None,
                operator: Operator::none(),
            });
        };
        if let Some(second) = lengths.next() {
            return Err(self.s1(second, "a sequence must not have a second <length>"));
        }
        *optional |= self.optional(node)?;
        let scope = self.scope(node, scope)?;
        let operand = OperandType::Int(IntType::UInt32);
        let operator = self.operator(node, operand, *optional, &scope)?;
        let name = match self.attribute(node, "name") {
            Some(_) => Some(Name {
                ns: scope.ns,
                local: self.name(node)?,
            }),
            None => None,
        };
        let id = self.id(node)?;
        Ok(Length { name, id, operator })
    }

    /// Returns the scope inside `node`. An attribute that the schema does not have is left out, as
    /// the list of deviations says.
    pub(super) fn scope(&self, node: Node<'_, '_>, outer: &Scope) -> Parsed<Scope> {
        let known = |name| {
            let value = self.attribute(node, name);
            value.filter(|_| schema::has(node, name))
        };
        let inherit = |attribute, outer: &String| match known(attribute) {
            Some(uri) => self.short(node, uri.to_owned()),
            None => Ok(outer.clone()),
        };
        let dictionary = match known("dictionary") {
            None => outer.dictionary.clone(),
            Some(name) => match token(name).as_str() {
                "" => return Err(self.s1(node, "the name of a dictionary must not be empty")),
                "global" => Dictionary::Global,
                "template" => Dictionary::Template,
                "type" => Dictionary::Type,
                user => Dictionary::User(self.short(node, user.to_owned())?),
            },
        };
        Ok(Scope {
            ns: inherit("ns", &outer.ns)?,
            types: match known("ns") {
                Some(_) => None,
                None => outer.types.clone(),
            },
            template_ns: inherit("templateNs", &outer.template_ns)?,
            dictionary,
            depth: outer.depth + 1,
        })
    }

    /// Returns whether a field is optional, which any of these elements can make it.
    pub(super) fn presence(&self, holders: &[Node<'_, '_>]) -> Parsed<bool> {
        let mut optional = false;
        for holder in holders {
            optional |= self.optional(*holder)?;
        }
        Ok(optional)
    }

    fn optional(&self, node: Node<'_, '_>) -> Parsed<bool> {
        match self.attribute(node, "presence").map(str::trim) {
            None | Some("mandatory") => Ok(false),
            Some("optional") => Ok(true),
            Some(other) => Err(self.s1(node, format!("unknown presence {other:?}"))),
        }
    }

    pub(super) fn name(&self, node: Node<'_, '_>) -> Parsed<String> {
        match self.attribute(node, "name").map(token) {
            Some(name) if !name.is_empty() => self.short(node, name),
            _ => Err(self.s1(node, format!("<{}> has no name", node.tag_name().name()))),
        }
    }

    /// Returns the `id` attribute.
    pub(super) fn id(&self, node: Node<'_, '_>) -> Parsed<Option<String>> {
        let id = self.attribute(node, "id").map(token);
        id.map(|id| self.short(node, id)).transpose()
    }

    /// Returns the name, or S1 if it is longer than names may be.
    pub(super) fn short(&self, node: Node<'_, '_>, name: String) -> Parsed<String> {
        match name.len() {
            ..=MAX_NAME => Ok(name),
            len => Err(self.s1(
                node,
                format!("the name has {len} bytes, at most {MAX_NAME} are supported"),
            )),
        }
    }

    /// Returns an attribute without a namespace, or in the namespace of the templates.
    pub(super) fn attribute<'n>(&self, node: Node<'n, '_>, name: &str) -> Option<&'n str> {
        let found = node.attributes().find(|attribute| {
            attribute.name() == name
                && attribute
                    .namespace()
                    .is_none_or(|ns| self.is_ours(Some(ns)))
        })?;
        Some(found.value())
    }

    fn child<'n>(&self, node: Node<'n, 'n>, name: &str) -> Option<Node<'n, 'n>> {
        node.children().find(|child| {
            child.is_element()
                && child.tag_name().name() == name
                && self.is_ours(child.tag_name().namespace())
        })
    }

    pub(super) fn children<'n, 'y>(
        &self,
        node: Node<'n, 'y>,
    ) -> impl Iterator<Item = Node<'n, 'y>> {
        node.children()
            .filter(|child| child.is_element() && self.is_ours(child.tag_name().namespace()))
    }

    pub(super) fn is_ours(&self, namespace: Option<&str>) -> bool {
        match namespace {
            None | Some("") => true,
            Some(ns) => NAMESPACES.contains(&ns) || self.namespace.as_deref() == Some(ns),
        }
    }

    pub(super) fn position(&self, node: Node<'_, '_>) -> Position {
        self.position_of(node.range().start)
    }

    fn position_of(&self, at: usize) -> Position {
        let line = self.lines.partition_point(|&start| start <= at);
        let start = self.lines.get(line - 1).copied().unwrap_or_default();
        Position {
            line: line as u32,
            column: (self.characters_before(at) - self.characters_before(start) + 1) as u32,
        }
    }

    fn characters_before(&self, at: usize) -> usize {
        let (block, rest) = (at / BLOCK, at % BLOCK);
        let bytes = self.document.input_text().as_bytes();
        let rest = bytes.get(at - rest..at).unwrap_or_default();
        self.blocks
            .get(block)
            .map_or(0, |before| before + characters(rest))
    }

    pub(super) fn s1(&self, node: Node<'_, '_>, message: impl Into<String>) -> TemplateError {
        error_at(ErrorCode::S1, self.position(node), message.into())
    }

    pub(super) fn s1_at(&self, at: usize, message: String) -> TemplateError {
        error_at(ErrorCode::S1, self.position_of(at), message)
    }
}

/// Returns the number of characters that begin in bytes of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Returns an attribute of type token: white space trimmed, and runs of it made one space.
pub(super) fn token(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn error_at(code: ErrorCode, position: Position, message: String) -> TemplateError {
    TemplateError {
        code,
        line: position.line,
        column: position.column,
        message,
    }
}
