//! The types of FAST 1.2: integers on the wire, bit groups, and fields whose type is defined
//! elsewhere.
//!
//! A boolean is 0 or 1. An enum is the position of its element, or the element's `value`. A set has
//! one bit for each element, the first one lowest. A timestamp is the number of its units since its
//! epoch. Initial values are numbers or names.

use roxmltree::Node;

use super::{Parsed, Reader, Scope};
use crate::template::initial::OperandType;
use crate::template::limits::{MAX_BITS, MAX_FIELDS, MAX_VALUES};
use crate::template::{BitGroup, Instruction, Kind, Name, Operator, OperatorKind};
use crate::value::IntType;

/// The longest chain of definitions.
const MAX_CHAIN: usize = 16;

/// Returns the integer type of an element of the extension.
pub(super) fn int_type(element: &str) -> Option<IntType> {
    Some(match element {
        "boolean" => IntType::UInt8,
        "enum" => IntType::UInt32,
        "set" => IntType::UInt64,
        "timestamp" | "timeStamp" => IntType::Int64,
        _ => return None,
    })
}

/// Returns the number of an initial value that is written as a name, or `None` if it is a number or
/// the type has no such name.
pub(super) fn number(ty: Node<'_, '_>, text: &str) -> Option<String> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let element = |name: &str| {
        let mut all = elements(ty).enumerate();
        all.find(|(_, element)| element.attribute("name") == Some(name))
    };
    let value = |element: Node<'_, '_>| element.attribute("value")?.trim().parse().ok();
    let number = match (ty.tag_name().name(), text) {
        ("boolean", "false") => 0,
        ("boolean", "true") => 1,
        ("enum", name) => {
            let (position, element) = element(name)?;
            value(element).unwrap_or(position as u64)
        }
        ("set", names) => names
            .split_ascii_whitespace()
            .try_fold(0, |bits: u64, name| {
                let (position, element) = element(name)?;
                let bit = 1_u64.checked_shl(position as u32);
                Some(bits | value(element).or(bit)?)
            })?,
        _ => return None,
    };
    Some(number.to_string())
}

fn elements<'n>(ty: Node<'n, 'n>) -> impl Iterator<Item = Node<'n, 'n>> {
    ty.children()
        .filter(|child| child.tag_name().name() == "element")
}

impl Reader<'_, '_> {
    /// Returns the elements in which the presence and the operator of a field may be: the field
    /// itself, and for a `<field>` also its `<type>` and the definitions that this leads to, or the
    /// type that it has instead. The last element is the one with the type. The operator of a
    /// definition applies if the field has none. The second result is the namespace in which the
    /// types inside the last element are looked up.
    pub(super) fn holders<'n: 's, 's>(
        &'n self,
        node: Node<'n, 'n>,
        scope: &'s Scope,
    ) -> Parsed<(Vec<Node<'n, 'n>>, &'s str)> {
        let mut ns = scope.types.as_deref().unwrap_or(&scope.ns);
        if node.tag_name().name() != "field" {
            return Ok((vec![node], ns));
        }
        let mut types = self
            .children(node)
            .filter(|child| OperatorKind::of_element(child.tag_name().name()).is_none());
        let inner = types
            .next()
            .ok_or_else(|| self.s1(node, "<field> has a type, or a <type> with its name"))?;
        if let Some(second) = types.next() {
            return Err(self.s1(second, "a <field> must not have a second type"));
        }
        if matches!(inner.tag_name().name(), "field" | "templateRef") {
            return Err(self.s1(inner, "<field> or <templateRef> is not a type"));
        }
        let mut holders = vec![node, inner];
        let mut last = inner;
        while last.tag_name().name() == "type" {
            if holders.len() > 2 + MAX_CHAIN {
                let message = format!("a chain of more than {MAX_CHAIN} definitions");
                return Err(self.s1(inner, message));
            }
            let (name, ty) = self.definition(last, ns)?;
            holders.push(ty);
            (last, ns) = (ty, &*name.ns);
        }
        Ok((holders, ns))
    }

    /// Returns the type that a `<type>` names, with the name of its definition. A name without a
    /// namespace of its own is looked up in that of the elements around it, and then in that of the
    /// document.
    fn definition<'n>(
        &'n self,
        reference: Node<'n, 'n>,
        around: &str,
    ) -> Parsed<(&'n Name, Node<'n, 'n>)> {
        let local = self.name(reference)?;
        let own = self.attribute(reference, "ns");
        for ns in [own.unwrap_or(around), own.unwrap_or(&self.ns)] {
            let name = Name {
                ns: ns.to_owned(),
                local: local.clone(),
            };
            if let Some((name, Some(ty))) = self.definitions.get_key_value(&name)
                && !matches!(ty.tag_name().name(), "field" | "templateRef")
            {
                return Ok((name, *ty));
            }
        }
        Err(self.s1(reference, format!("no type is defined as {local}")))
    }

    /// Returns S1 if an enum or a set has too many elements, which are searched one by one.
    pub(super) fn check_values(&self, node: Node<'_, '_>, ty: Node<'_, '_>) -> Parsed<()> {
        let (element, most) = match ty.tag_name().name() {
            "set" => ("set", MAX_BITS as usize),
            _ => ("enum", MAX_VALUES),
        };
        match elements(ty).nth(most) {
            None => Ok(()),
            Some(_) => Err(self.s1(node, format!("more than {most} elements in this {element}"))),
        }
    }

    /// Returns a bit group of this type, with the scopes around and inside it.
    pub(super) fn bit_group(
        &self,
        node: Node<'_, '_>,
        ty: Node<'_, '_>,
        (scope, inside): (&Scope, &Scope),
        optional: bool,
    ) -> Parsed<Kind> {
        let mut group = BitGroup {
            members: Vec::new(),
            operator: Operator::none(),
        };
        for child in self.children(ty) {
            if OperatorKind::of_element(child.tag_name().name()).is_none() {
                group.members.push(self.member(child, inside)?);
            }
        }
        if group.members.is_empty() {
            return Err(self.s1(ty, "a bitGroup must have fields"));
        }
        let width = group.width();
        if width > MAX_BITS {
            let message =
                format!("the bitGroup has {width} bits, at most {MAX_BITS} are supported");
            return Err(self.s1(ty, message));
        }
        group.operator = self.operator(node, OperandType::Bits(width), optional, scope)?;
        Ok(Kind::Bits(group))
    }

    /// Returns a field of a bit group, and its number of bits.
    fn member(&self, node: Node<'_, '_>, outer: &Scope) -> Parsed<(Instruction, u32)> {
        self.count(node, (&self.fields, 1), (MAX_FIELDS, "fields"))?;
        let scope = self.scope(node, outer)?;
        let (holders, _) = self.holders(node, &scope)?;
        self.check_values(node, holders.last().copied().unwrap_or(node))?;
        let operators = holders.iter().flat_map(|holder| self.children(*holder));
        let mut operators =
            operators.filter(|c| OperatorKind::of_element(c.tag_name().name()).is_some());
        if let Some(operator) = operators.next() {
            let message = "operators are the bitGroup's, not its fields'";
            return Err(self.s1(operator, message));
        }
        let ty = holders.last().copied().unwrap_or(node);
        let optional = self.presence(&holders)?;
        let (signed, width) = self.width(node, ty, optional)?;
        let int = match (signed, width) {
            (true, ..=8) => IntType::Int8,
            (false, ..=8) => IntType::UInt8,
            (true, ..=16) => IntType::Int16,
            (false, ..=16) => IntType::UInt16,
            (true, ..=32) => IntType::Int32,
            (false, ..=32) => IntType::UInt32,
            (true, _) => IntType::Int64,
            (false, _) => IntType::UInt64,
        };
        let name = Name {
            ns: scope.ns,
            local: self.name(node)?,
        };
        let member = Instruction {
            name,
            id: self.id(node)?,
            optional,
            kind: Kind::Int(int, Operator::none()),
            position: self.position(node),
        };
        Ok((member, width))
    }

    /// Returns whether a field of a bit group is signed, and its number of bits, given by an
    /// attribute or by its type. NULL takes one of the values.
    fn width(&self, node: Node<'_, '_>, ty: Node<'_, '_>, optional: bool) -> Parsed<(bool, u32)> {
        let element = ty.tag_name().name();
        let named = |prefix: &str| element.strip_prefix(prefix).map(|n| n.parse::<u32>().ok());
        let (signed, of_type) = match element {
            "boolean" => (false, Some(1 + u32::from(optional))),
            "enum" => {
                let value = |e: Node<'_, '_>| e.attribute("value")?.trim().parse::<u64>().ok();
                let mut values = elements(ty).zip(0_u64..);
                let most = values.try_fold(0, |most, (e, i)| {
                    Some(most.max(value(e).unwrap_or(i).checked_add(u64::from(optional))?))
                });
                (false, most.map(|most| (64 - most.leading_zeros()).max(1)))
            }
            "set" => {
                let count = elements(ty).count() as u32;
                (false, (count > 0).then_some(count + u32::from(optional)))
            }
            _ => match (named("uInt"), named("int")) {
                (Some(bits), _) => (false, bits),
                (_, Some(bits)) => (true, bits),
                _ => {
                    let message = format!("<{element}> cannot be in a bitGroup");
                    return Err(self.s1(node, message));
                }
            },
        };
        let given = ["bits", "size", "length"].into_iter().find_map(|name| {
            let text = self.attribute(node, name);
            text.or_else(|| self.attribute(ty, name))
        });
        let width = match given {
            Some(text) => text.trim().parse().ok(),
            None => of_type,
        };
        match width {
            Some(width @ 1..=MAX_BITS) => Ok((signed, width)),
            _ => {
                let message = format!("a field of a bitGroup must have 1 to {MAX_BITS} bits");
                Err(self.s1(node, message))
            }
        }
    }
}
