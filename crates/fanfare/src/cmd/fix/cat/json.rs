//! A message as one JSON object.

use fanfare_fix::dict::{Dictionary, Line};
use fanfare_fix::tag;
use fanfare_fix::text::Found;
use serde_json::{Map, Value, json};

/// Returns the object; `lines` are the message's fields, `faults` its errors.
pub(super) fn object(
    found: &Found<'_>,
    prefix: &str,
    dictionary: &Dictionary,
    lines: &[Line<'_>],
    faults: &[String],
) -> Value {
    let msg_type = found.message.get(tag::MSG_TYPE).unwrap_or_default();
    let mut object = Map::new();
    let name = dictionary.message_name(msg_type);
    object.insert("message".to_owned(), name.into());
    object.insert("version".to_owned(), dictionary.version().into());
    object.insert("fields".to_owned(), Value::Object(fields(lines)));
    if !faults.is_empty() {
        object.insert("faults".to_owned(), faults.into());
    }
    if !prefix.is_empty() {
        object.insert("prefix".to_owned(), prefix.into());
    }
    Value::Object(object)
}

/// Returns the lines of one depth; deeper ones are the entries of the group before them.
fn fields(lines: &[Line<'_>]) -> Map<String, Value> {
    let mut object = Map::new();
    let mut rest = lines;
    while let Some((line, behind)) = rest.split_first() {
        let members = behind.iter().take_while(|l| l.depth > line.depth).count();
        let (members, behind) = behind.split_at(members);
        let key = free_key(&object, line);
        if members.is_empty() {
            object.insert(key.clone(), value(line.field.value));
            if let Some(meaning) = line.meaning {
                object.insert(format!("{key}.name"), meaning.into());
            }
        } else {
            object.insert(key, entries(members, line.depth + 1));
        }
        rest = behind;
    }
    object
}

fn entries(members: &[Line<'_>], depth: usize) -> Value {
    let begins = |line: &Line<'_>| line.depth == depth && line.entry.is_some();
    let mut entries = Vec::new();
    let mut rest = members;
    while !rest.is_empty() {
        let behind = rest.iter().skip(1).position(begins);
        let (entry, behind) = rest.split_at(behind.map_or(rest.len(), |at| at + 1));
        entries.push(Value::Object(fields(entry)));
        rest = behind;
    }
    Value::Array(entries)
}

/// Returns the field's name, or its tag; a repeated one gets a number appended.
fn free_key(object: &Map<String, Value>, line: &Line<'_>) -> String {
    let tag = || String::from_utf8_lossy(line.field.tag_bytes()).into_owned();
    let name = line.name.map_or_else(tag, str::to_owned);
    if !object.contains_key(&name) {
        return name;
    }
    let mut numbered = (2_u32..).map(|n| format!("{name}#{n}"));
    let free = numbered.find(|key| !object.contains_key(key));
    free.unwrap_or(name)
}

fn value(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
            json!({ "hex": hex.collect::<String>() })
        }
    }
}
