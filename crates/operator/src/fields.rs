//! The fields of a request in JSON.

use fanfare_wire::text::Escaped;
use serde::de::{Deserializer as _, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// Parses an object with the fields of a request. Each key occurs once: of two, one would be
/// ignored, and the command could act on more than is meant. Allocates the fields.
///
/// # Errors
/// Returns the fault as a text for the requester: the text is no JSON, or no object, or has a key
/// twice.
///
/// ```
/// use fanfare_operator::fields;
/// assert_eq!(fields(br#"{"user":"desk"}"#).unwrap()["user"], "desk");
/// let why = fields(br#"{"user":"desk","user":"ops"}"#).unwrap_err();
/// assert!(why.starts_with("the key `user` occurs twice"));
/// ```
pub fn fields(json: &[u8]) -> Result<Map<String, Value>, String> {
    let mut from = serde_json::Deserializer::from_slice(json);
    let read = from.deserialize_map(Fields);
    let read = read.and_then(|fields| from.end().map(|()| fields));
    // The text may quote what a client sent.
    read.map_err(|error| Escaped::text(&error.to_string()).to_string())
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, value)) = from.next_entry::<String, Value>()? {
            if fields.contains_key(&name) {
                return Err(A::Error::custom(format_args!(
                    "the key `{name}` occurs twice"
                )));
            }
            fields.insert(name, value);
        }
        Ok(fields)
    }
}
