//! The operators of fields: their elements, the types to which they apply, and their initial
//! values.

use roxmltree::Node;

use super::extension;
use super::{Parsed, Reader, Scope, error_at, token};
use crate::error::{ErrorCode, TemplateError};
use crate::template::initial::{OperandType, convert};
use crate::template::limits::MAX_TEXTS;
use crate::template::rules::{Broken, check_type, check_value};
use crate::template::{Initial, Name, Operator, OperatorKind};
use crate::value::TextType;

impl Reader<'_, '_> {
    /// Returns the operator of a field, exponent, mantissa or length.
    pub(in crate::template) fn operator(
        &self,
        field: Node<'_, '_>,
        ty: OperandType,
        optional: bool,
        scope: &Scope,
    ) -> Parsed<Operator> {
        let (holders, _) = self.holders(field, scope)?;
        let names = holders.last().copied().unwrap_or(field);
        let mut operator = None;
        for (level, holder) in holders.into_iter().enumerate() {
            // A definition's operator is that of fields that have none.
            if level > 1 && operator.is_some() {
                break;
            }
            for node in self.children(holder) {
                if self.is_no_operator(holder, node, ty, operator.is_some())? {
                    continue;
                }
                let name = node.tag_name().name();
                let kind = OperatorKind::of_element(name)
                    .ok_or_else(|| self.s1(node, format!("<{name}> is not a field operator")))?;
                if operator.is_some() {
                    return Err(self.s1(node, "a field must not have a second operator"));
                }
                check_type(kind, ty).map_err(|broken| self.broken(node, broken))?;
                let context = (node, kind, names);
                let scope = self.scope(holder, scope)?;
                operator = Some(self.operator_context(context, ty, optional, &scope)?);
            }
        }
        Ok(operator.unwrap_or_else(Operator::none))
    }

    /// Returns whether an element that is no operator is allowed in a field.
    fn is_no_operator(
        &self,
        holder: Node<'_, '_>,
        node: Node<'_, '_>,
        ty: OperandType,
        is_behind: bool,
    ) -> Parsed<bool> {
        let name = node.tag_name().name();
        let text = matches!(ty, OperandType::Text(TextType::Unicode | TextType::Bytes));
        Ok(match holder.tag_name().name() {
            // Its type, which was looked at before.
            "field" | "bitGroup" => OperatorKind::of_element(name).is_none(),
            "enum" | "set" if name == "element" => true,
            _ if name == "length" && text && !is_behind => {
                self.name(node)?;
                // It is only a name (6.2.4): bytes are never compressed by their number.
                if let Some(inside) = self.children(node).next() {
                    return Err(self.s1(inside, "this <length> is a name alone"));
                }
                true
            }
            _ => false,
        })
    }

    fn operator_context(
        &self,
        (node, kind, names): (Node<'_, '_>, OperatorKind, Node<'_, '_>),
        ty: OperandType,
        optional: bool,
        scope: &Scope,
    ) -> Parsed<Operator> {
        let scope = self.scope(node, scope)?;
        // The types of FAST 1.2 may give initial values by name.
        let initial = match self.attribute(node, "value") {
            None => None,
            Some(text) => Some(initial(names, text, ty).map_err(|code| {
                let message = format!(
                    "{text:?} is not a valid {} ({code}: {})",
                    ty.name(),
                    code.text()
                );
                error_at(ErrorCode::S3, self.position(node), message)
            })?),
        };
        if let Some(Initial::Text(text)) = &initial {
            let what = "bytes of initial values";
            self.count(node, (&self.text_bytes, text.len()), (MAX_TEXTS, what))?;
        }
        check_value(kind, initial.is_some(), optional)
            .map_err(|broken| self.broken(node, broken))?;
        let key = match self.attribute(node, "key") {
            None => None,
            Some(key) => Some(Name {
                ns: scope.ns.clone(),
                local: self.short(node, token(key))?,
            }),
        };
        Ok(Operator {
            kind,
            dictionary: scope.dictionary,
            key,
            initial,
        })
    }

    fn broken(&self, node: Node<'_, '_>, (code, message): Broken) -> TemplateError {
        error_at(code, self.position(node), message)
    }
}

fn initial(ty: Node<'_, '_>, text: &str, operand: OperandType) -> Result<Initial, ErrorCode> {
    let named = extension::number(ty, text);
    convert(named.as_deref().unwrap_or(text), operand)
}
