//! The filter of the messages shown.

use super::names::Names;
use fanfare_fix::codec::Message;

/// Tests that must all match.
#[derive(Default)]
pub(super) struct Filter(Vec<Test>);

/// A field with one of these values.
struct Test {
    tags: Vec<u32>,
    /// The given value, and those that have it as their name in any version: a message has other
    /// names in FIX.4.2 than in FIX.4.4.
    values: Vec<Box<[u8]>>,
}

impl Filter {
    /// Parses `TAG=VALUE` or `NAME=VALUE`; the error is a sentence.
    pub(super) fn parse(texts: &[String], names: &Names) -> Result<Self, String> {
        let tests = texts.iter().map(|text| Test::parse(text, names));
        tests.collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn takes(&self, message: &Message<'_>) -> bool {
        self.0.iter().all(|test| test.holds(message))
    }
}

impl Test {
    fn parse(text: &str, names: &Names) -> Result<Self, String> {
        let Some((field, value)) = text.split_once('=') else {
            return Err(format!(
                "--grep {text}: expected TAG=VALUE, such as 55=IBM or Symbol=IBM"
            ));
        };
        let tags = match field.parse() {
            Ok(tag @ 1..) => vec![tag],
            _ => names.tags(field),
        };
        if tags.is_empty() {
            return Err(format!("--grep {text}: no field has the name `{field}`"));
        }
        let mut values = names.values(&tags, value);
        values.push(value.as_bytes().into());
        Ok(Self { tags, values })
    }

    fn holds(&self, message: &Message<'_>) -> bool {
        message.fields().any(|field| {
            self.tags.contains(&field.tag)
                && self.values.iter().any(|value| **value == *field.value)
        })
    }
}
