//! The check of a document against the schema of the specification (FAST 1.1, appendix 1), with
//! what the codec takes beyond it: the types of FAST 1.2, integers of 8 and 16 bits, `reset`, and
//! `presence` of a length. Attributes and elements of other namespaces may be anywhere.

use roxmltree::Node;

use super::{Reader, extension};
use crate::error::TemplateError;
use crate::template::OperatorKind;
use crate::value::IntType;

/// The number of deviations that are kept. The others are counted.
const KEPT: usize = 1000;

/// The attributes, elements and text of a document that the schema does not have. A lenient reader
/// leaves them out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Deviations {
    first: Vec<TemplateError>,
    count: usize,
}

impl Deviations {
    /// Returns the first thousand deviations, in the order of the document.
    #[must_use]
    pub fn first(&self) -> &[TemplateError] {
        &self.first
    }

    /// Returns the number of deviations.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the first deviation as an error, if there is one.
    pub(super) fn into_error(self) -> Result<(), TemplateError> {
        self.first.into_iter().next().map_or(Ok(()), Err)
    }
}

impl Reader<'_, '_> {
    /// Returns the deviations of a document that has been read without an error.
    pub(super) fn deviations(&self) -> Deviations {
        let mut deviations = Deviations::default();
        // Where the last element of another namespace ends: what is inside it is not looked at.
        let mut foreign = 0;
        for node in self.document.descendants() {
            let at = node.range();
            if at.start < foreign || node.is_root() {
                continue;
            }
            if node.is_element() && !self.is_ours(node.tag_name().namespace()) {
                foreign = at.end;
            } else if node.is_element() {
                self.element(node, &mut deviations);
            } else if node.is_text() {
                self.text(node, &mut deviations);
            }
        }
        deviations
    }

    fn element(&self, node: Node<'_, '_>, deviations: &mut Deviations) {
        let name = node.tag_name().name();
        let parent = node.parent_element();
        if let Some(parent) = parent.filter(|parent| !takes(*parent, node)) {
            let parent = parent.tag_name().name();
            let message = format!("unknown element <{name}> in <{parent}>");
            self.deviates(node.range().start, message, deviations);
        }
        for attribute in node.attributes() {
            let (prefix, local) = (attribute.namespace(), attribute.name());
            if self.is_ours(prefix) && !has(node, local) {
                let message = format!("unknown attribute `{local}` of <{name}>");
                self.deviates(attribute.range().start, message, deviations);
            }
        }
    }

    fn text(&self, node: Node<'_, '_>, deviations: &mut Deviations) {
        let text = node.text().unwrap_or_default();
        let begin = text.trim();
        if begin.is_empty() {
            return;
        }
        let parent = node.parent_element();
        let parent = parent.map_or("", |parent| parent.tag_name().name());
        let shown: String = begin.chars().take(20).collect();
        let message = format!("text {shown:?} in <{parent}>");
        // The source may be longer than the text, which has character references resolved.
        let range = node.range();
        let source = self
            .document
            .input_text()
            .get(range.clone())
            .unwrap_or_default();
        let blank = source.len() - source.trim_start().len();
        self.deviates(range.start + blank, message, deviations);
    }

    fn deviates(&self, at: usize, message: String, deviations: &mut Deviations) {
        deviations.count += 1;
        if deviations.first.len() < KEPT {
            deviations.first.push(self.s1_at(at, message));
        }
    }
}

/// Returns whether an element may be in another. The reader has already checked instructions and
/// operators where these have to be.
fn takes(parent: Node<'_, '_>, node: Node<'_, '_>) -> bool {
    let is_operator =
        |node: Node<'_, '_>| OperatorKind::of_element(node.tag_name().name()).is_some();
    match parent.tag_name().name() {
        "typeRef" | "templateRef" | "element" => false,
        "define" => !node
            .prev_siblings()
            .skip(1)
            .any(|before| before.is_element()),
        _ => !is_operator(parent),
    }
}

const NAMED: &[&str] = &["name", "ns", "id", "presence"];
const SCOPES: &[&str] = &["ns", "templateNs", "dictionary"];

/// Returns whether an element may have an attribute of this name, without namespace.
pub(super) fn has(node: Node<'_, '_>, name: &str) -> bool {
    let mut known = attributes(node).into_iter();
    known.any(|known| known.contains(&name))
}

/// Returns the attributes that an element may have, without namespace.
fn attributes<'a>(node: Node<'_, '_>) -> [&'a [&'a str]; 2] {
    let parent = node.parent_element();
    let parent = parent.map_or("", |parent| parent.tag_name().name());
    match node.tag_name().name() {
        "templates" => [SCOPES, &[]],
        "template" => [SCOPES, &["name", "id", "reset"]],
        "typeRef" | "define" => [&["name", "ns"], &[]],
        "type" => [&["name", "ns", "presence"], &[]],
        "templateRef" => [&["name", "templateNs"], &[]],
        "group" | "sequence" => [NAMED, &["dictionary"]],
        "length" if parent == "sequence" => [NAMED, &[]],
        "length" => [&["name", "ns", "id"], &[]],
        "exponent" | "mantissa" => [&[], &[]],
        "constant" | "default" => [&["value"], &[]],
        "string" => [NAMED, &["charset"]],
        "element" => [&["name", "ns", "id", "value"], &[]],
        "timestamp" | "timeStamp" => [NAMED, &["unit", "epoch"]],
        name if OperatorKind::of_element(name).is_some() => {
            [&["dictionary", "key", "ns", "value"], &[]]
        }
        name if (is_integer(name) || name == "field") && is_of_bits(node) => {
            [NAMED, &["bits", "size", "length"]]
        }
        _ => [NAMED, &[]],
    }
}

/// Returns whether an element is a field of a bit group or its type, or can become one by a
/// definition.
fn is_of_bits(node: Node<'_, '_>) -> bool {
    let mut around = node.ancestors().skip(1).map(|node| node.tag_name().name());
    match around.next() {
        Some("bitGroup" | "define") => true,
        Some("field") => around.next() == Some("bitGroup"),
        _ => false,
    }
}

/// Returns whether an element is an integer that can be in a bit group.
fn is_integer(name: &str) -> bool {
    let of_bits = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|n| n.parse::<u32>().is_ok())
    };
    let named = IntType::from_name(name).is_some() || extension::int_type(name).is_some();
    named || of_bits("uInt") || of_bits("int")
}
