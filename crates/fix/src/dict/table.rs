//! The text format of the built-in tables (crates/fix/dict-data), which `cargo xtask dict` writes.
//!
//! A line is one declaration. Words are separated by single spaces:
//!
//! ```text
//! V FIX.4.4                        version
//! F 54 Side CHAR 1=Buy 2=Sell      field: tag, name, type, values (`CHAR~`: others are valid too)
//! H 8! 9! 35! …                    items of the header; `!` is required
//! T 93 89 10!                      items of the trailer
//! C Parties 453(448 447 452)       component: name, items; a group has its items in parentheses
//! M D NewOrderSingle app 11! @Parties    message: MsgType, name, app or session, items
//! ```

use super::kind::DataType;
use super::load::{Cause, LoadError};
use super::schema::{EnumValue, FieldDef, Item, MessageDef, Schema};

/// Reads a table.
///
/// # Errors
/// Returns an error with the number of the line that is not in the format. The column is that of
/// the line's first byte.
pub(super) fn parse(text: &str) -> Result<Schema, LoadError> {
    let mut schema = Schema::default();
    for (i, line) in text.lines().enumerate() {
        if !line.starts_with('#') && parse_line(&mut schema, line).is_none() {
            let cause = Cause::Syntax(format!("not a table line: {line}"));
            return Err(LoadError::new(i + 1, 1, cause));
        }
    }
    Ok(schema)
}

fn parse_line(schema: &mut Schema, line: &str) -> Option<()> {
    let (mark, rest) = line.split_once(' ')?;
    match mark {
        "V" => schema.version = rest.to_owned(),
        "F" => {
            let (tag, field) = parse_field(rest)?;
            schema.fields.insert(tag, field);
        }
        "H" => schema.header = parse_items(rest)?,
        "T" => schema.trailer = parse_items(rest)?,
        "C" => {
            let (name, items) = rest.split_once(' ')?;
            let items = parse_items(items)?;
            schema.components.insert(name.to_owned(), items);
        }
        "M" => {
            let mut words = rest.splitn(4, ' ');
            let msg_type = words.next()?.to_owned();
            let message = MessageDef {
                name: words.next()?.to_owned(),
                is_session: words.next()? == "session",
                items: parse_items(words.next().unwrap_or(""))?,
            };
            schema.messages.insert(msg_type, message);
        }
        _ => return None,
    }
    Some(())
}

fn parse_field(rest: &str) -> Option<(u32, FieldDef)> {
    let mut words = rest.split(' ');
    let tag = words.next()?.parse().ok()?;
    let name = words.next()?.to_owned();
    let kind = words.next()?;
    let (kind, open) = match kind.strip_suffix('~') {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    let field = FieldDef {
        name,
        kind: DataType::from_name(kind),
        values: words.map(parse_value).collect::<Option<_>>()?,
        open,
        length: None,
    };
    Some((tag, field))
}

fn parse_value(word: &str) -> Option<EnumValue> {
    let (value, name) = word.rsplit_once('=')?;
    Some(EnumValue {
        value: value.to_owned(),
        name: name.to_owned(),
    })
}

fn parse_items(text: &str) -> Option<Vec<Item>> {
    // The groups that are open, with the items in front of them.
    let mut outer: Vec<(Vec<Item>, u32, bool)> = Vec::new();
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find([' ', '(', ')']) {
        let (word, behind) = rest.split_at(end);
        if behind.starts_with('(') {
            let (tag, required) = parse_tag(word)?;
            outer.push((std::mem::take(&mut items), tag, required));
        } else {
            push_word(&mut items, word)?;
        }
        if behind.starts_with(')') {
            let (mut above, tag, required) = outer.pop()?;
            above.push(Item::Group {
                tag,
                required,
                items: std::mem::take(&mut items),
            });
            items = above;
        }
        rest = behind.get(1..)?;
    }
    push_word(&mut items, rest)?;
    outer.is_empty().then_some(items)
}

fn push_word(items: &mut Vec<Item>, word: &str) -> Option<()> {
    if word.is_empty() {
        return Some(());
    }
    items.push(match word.strip_prefix('@') {
        Some(name) => {
            let bare = name.strip_suffix('!');
            Item::Component {
                name: bare.unwrap_or(name).to_owned(),
                required: bare.is_some(),
            }
        }
        None => {
            let (tag, required) = parse_tag(word)?;
            Item::Field { tag, required }
        }
    });
    Some(())
}

fn parse_tag(word: &str) -> Option<(u32, bool)> {
    let bare = word.strip_suffix('!');
    Some((bare.unwrap_or(word).parse().ok()?, bare.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(tag: u32, required: bool) -> Item {
        Item::Field { tag, required }
    }

    #[test]
    fn items_nest() {
        let parsed = parse_items("11! @Parties @Instrument! 78!(79! 539(524) 80) 1").unwrap();
        let inner = Item::Group {
            tag: 539,
            required: false,
            items: vec![field(524, false)],
        };
        let expected = vec![
            field(11, true),
            Item::Component {
                name: "Parties".to_owned(),
                required: false,
            },
            Item::Component {
                name: "Instrument".to_owned(),
                required: true,
            },
            Item::Group {
                tag: 78,
                required: true,
                items: vec![field(79, true), inner, field(80, false)],
            },
            field(1, false),
        ];
        assert_eq!(parsed, expected);
    }

    #[test]
    fn broken_lines_are_named() {
        for line in ["X 1", "F x Name INT", "M", "H 8(9", "H 8)", "C Parties"] {
            let text = format!("V FIX.4.4\n{line}\n");
            assert_eq!(parse(&text).unwrap_err().line, 2, "{line}");
        }
    }
}
