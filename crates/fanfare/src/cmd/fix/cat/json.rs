//! A message as one JSON object.

use fanfare_fix::dict::{Dictionary, Line};
use fanfare_fix::tag;
use fanfare_fix::text::Found;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

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
    let (mut object, mut next) = (Map::new(), HashMap::new());
    let mut rest = lines;
    while let Some((line, behind)) = rest.split_first() {
        let members = behind.iter().take_while(|l| l.depth > line.depth).count();
        let (members, behind) = behind.split_at(members);
        let key = free_key(&object, &mut next, line);
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

/// Returns the field's name, or its tag; a repeated one gets a number appended. `next` has the next
/// number of each repeated name.
fn free_key(
    object: &Map<String, Value>,
    next: &mut HashMap<String, u64>,
    line: &Line<'_>,
) -> String {
    let tag = || String::from_utf8_lossy(line.field.tag_bytes()).into_owned();
    let name = line.name.map_or_else(tag, str::to_owned);
    if !object.contains_key(&name) {
        return name;
    }
    let number = next.entry(name.clone()).or_insert(2);
    loop {
        let key = format!("{name}#{number}");
        *number += 1;
        if !object.contains_key(&key) {
            return key;
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::dict::{Version, lines};
    use fanfare_fix::text::Scanner;

    #[test]
    fn each_repeat_of_a_tag_has_a_number_of_its_own() {
        let repeated = "55=IBM|".repeat(5_000);
        let text = format!("8=FIX.4.4|9=5|35=D|55=first|54=1|{repeated}54=2|10=000|");
        let mut scanner = Scanner::default();
        scanner.push(text.as_bytes());
        scanner.finish();
        let found = scanner.next().unwrap();
        let dictionary = Dictionary::built_in(Version::Fix44);
        let object = fields(&lines(&dictionary, &found.message));
        assert_eq!(object["Symbol"], "first");
        for number in 2..=5_001 {
            assert_eq!(object[&format!("Symbol#{number}")], "IBM", "{number}");
        }
        assert!(!object.contains_key("Symbol#5002"));
        assert_eq!(
            (&object["Side"], &object["Side#2"]),
            (&"1".into(), &"2".into())
        );
    }
}
