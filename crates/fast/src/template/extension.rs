//! Types of the FAST 1.2 extension. On the wire each is an integer, and so it is here: a
//! boolean 0 or 1, an enum the position of its element, a set one bit for each element, the
//! first lowest, a timestamp the number of its units since its epoch. Initial values may be
//! given by name.

use roxmltree::Node;

use crate::value::IntType;

/// The integer that an element of the extension stands for.
pub(super) fn int_type(element: &str) -> Option<IntType> {
    Some(match element {
        "boolean" => IntType::UInt8,
        "enum" => IntType::UInt32,
        "set" => IntType::UInt64,
        "timestamp" | "timeStamp" => IntType::Int64,
        _ => return None,
    })
}

/// The number of an initial value that is given by name. `None` if the type has no names, or
/// not this one: then the text has to be a number.
pub(super) fn number(ty: Node<'_, '_>, text: &str) -> Option<String> {
    let position = |name: &str| {
        let mut elements = ty
            .children()
            .filter(|child| child.tag_name().name() == "element");
        elements.position(|element| element.attribute("name") == Some(name))
    };
    let text = text.trim();
    let number = match (ty.tag_name().name(), text) {
        ("boolean", "false") => 0,
        ("boolean", "true") => 1,
        ("enum", name) => position(name)? as u64,
        ("set", names) => names
            .split_ascii_whitespace()
            .try_fold(0, |bits: u64, name| {
                Some(bits | 1_u64.checked_shl(position(name)? as u32)?)
            })?,
        _ => return None,
    };
    Some(number.to_string())
}
