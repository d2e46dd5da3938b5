//! Mappings that are refused.

use super::{MAPPING, QUOTES, program, refused};
use crate::mapping::{FIX, Mapping, SPECTRA};
use fanfare_fix::dict::{Dictionary, Version};
use proptest::prelude::*;

/// Returns the error of loading [`MAPPING`] with one change.
fn with(from: &str, to: &str) -> String {
    assert!(MAPPING.contains(from), "{from}");
    refused(&MAPPING.replace(from, to))
}

#[test]
fn errors_of_mappings_say_where_and_why() {
    let told = with("template = 1", "template = 3");
    assert_eq!(told, "m.toml:2: message: no template 3");
    let told = with("template = 1", "template = \"Quote\"");
    assert_eq!(told, "m.toml:2: message: no template Quote");
    let told = with("price = 270", "price = 999");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: no field 999 in Quotes(1)"
    );
    let told = with("price = 270", "price = \"MDEntryType.X\"");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: no field MDEntryType.X in Quotes(1)"
    );
    let told = with("price = 270", "price = 9000");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: Blob(9000) of Quotes(1) is a byte vector, which cannot be \
         a price"
    );
    let told = with("price = 270", "price = 9001");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: Tail(9001) follows the entries of Quotes(1), which are \
         decoded before it"
    );
    let told = with("level = 1023", "level = 270");
    assert_eq!(
        told,
        "m.toml:9: message.entry.level: MDEntryPx(270) of Quotes(1) is a decimal, which cannot be \
         a whole number"
    );
}

#[test]
fn errors_of_formats_and_words_say_where_and_why() {
    let told = with("entries = 268", "entries = 34");
    assert_eq!(
        told,
        "m.toml:7: message.entries: no sequence 34 in Quotes(1)"
    );
    let told = with("format = \"epoch-ms\"", "format = \"epoch\"");
    assert!(
        told.starts_with(
            "m.toml:6: message.sent.format: unknown format `epoch`: expected one of UTC"
        ),
        "{told}"
    );
    let told = with("epoch-ms", "UTCTimestamp");
    assert!(
        told.ends_with("is an integer, which cannot be a time of this format"),
        "{told}"
    );
    let told = with("epoch-ms", "YYYYMMDDHHMMSSuuuuuu");
    assert!(
        told.ends_with("is an integer, which cannot be a time of this format"),
        "{told}"
    );
    let told = with("kind = \"ignore\"", "kind = \"quote\"");
    assert_eq!(
        told,
        "m.toml:16: message.event.kind: unknown value `quote`: expected one of level, order, \
         trade, statistic, status, clear, ignore"
    );
    let told = with("kind = \"ignore\"", "knd = \"ignore\"");
    assert_eq!(
        told,
        "m.toml:15: message.event.kind: missing: what becomes of the entry"
    );
    let told = with("number = 34", "numbr = 34");
    assert_eq!(told, "m.toml:5: message.numbr: no such key");
    let told = with("number = 34", "number = 34\nnumber = 35");
    assert!(
        told.starts_with("m.toml:6: ") && told.contains("duplicate"),
        "{told}"
    );
    let told = with("number = 34", "number = -3");
    assert_eq!(
        told,
        "m.toml:5: message.number: `-3` is neither a tag nor a name"
    );
}

#[test]
fn what_a_mapping_lacks_or_has_twice_is_an_error() {
    let told = with("instrument = { symbol = 55, carry = true }", "");
    assert_eq!(
        told,
        "m.toml:2: message.instrument: missing: where the instrument is"
    );
    let told = with("does = \"changes\"", "");
    assert_eq!(
        told,
        "m.toml:2: message.does: missing: what the message does"
    );
    let twice = format!("{MAPPING}\n[[message]]\ntemplate = 1\ndoes = \"ignore\"\n");
    assert_eq!(
        refused(&twice),
        "m.toml:23: message: duplicate: template 1 is mapped on line 2 too"
    );
    let other_name = twice.replace(
        "template = 1\ndoes = \"ignore\"",
        "template = \"Quotes\"\ndoes = \"ignore\"",
    );
    let told = refused(&other_name);
    assert!(told.contains("Quotes(1) is mapped already"), "{told}");
    assert_eq!(
        refused(""),
        "m.toml:1: message: missing: a mapping needs [[message]]"
    );
    assert!(refused("[[message]").starts_with("m.toml:1: "));
    assert_eq!(
        refused("utc-offset = \"+3\"\n"),
        "m.toml:1: utc-offset: `+3` is not an offset such as +03:00 or Z"
    );
}

#[test]
fn marks_of_fragments_need_an_end_and_numbers() {
    let snapshot = |keys: &str| {
        let keys = keys.replace("; ", "\n");
        refused(&format!(
            "[[message]]\ntemplate = 1\ndoes = \"snapshot\"\n{keys}\n\
             instrument = {{ symbol = 55 }}\n[[message.event]]\nkind = \"level\"\n"
        ))
    };
    for (keys, why) in [
        (
            "number = 34; first-fragment = 9001",
            "last-fragment: missing: the field that marks the last fragment of a snapshot",
        ),
        (
            "rpt-seq = 83; last-fragment = 9001",
            "number: missing: a lost fragment cannot be detected without numbers",
        ),
    ] {
        assert_eq!(snapshot(keys), format!("m.toml:1: message.{why}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that damaged mappings are refused or harmless.
    #[test]
    fn damaged_mappings_are_harmless(
        at in 0..2000_usize, len in 0..40_usize, to in "[ -~\n]{0,12}",
    ) {
        for text in [MAPPING, SPECTRA, FIX] {
            let mut text = text.to_owned();
            let from = at.min(text.len());
            let end = (from + len).min(text.len());
            text.replace_range(from..end, &to);
            if let Ok(mapping) = Mapping::parse("m", &text) {
                let _ = mapping.for_templates(&program(QUOTES), 0);
                let _ = mapping.for_fix(&Dictionary::built_in(Version::Fix44), 0);
            }
        }
    }
}
