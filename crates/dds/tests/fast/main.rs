//! Types of templates and samples of messages, compared with a slow conversion.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

#[allow(unreachable_pub, reason = "as it is printed")]
mod generated;
mod oracle;
mod random;
mod typed;
mod ways;

use std::sync::Arc;

use fanfare_dds::cdr::to_json;
use fanfare_dds::fast::{Converted, Converter, Mapping, TypeOptions};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::{Decoder, Program, Record};

use ways::compare;

fn packets(mut generator: Generator) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        all.push(packet.to_vec());
    }
    all
}

#[test]
fn simple_messages_convert_as_the_slow_way_does() {
    let feed = packets(Generator::simple(Program::simple(), 1_000, 1024));
    for keyed in [false, true] {
        let options = TypeOptions {
            keyed,
            ..TypeOptions::default()
        };
        let counts = compare(Program::simple(), &options, &feed);
        assert_eq!(counts["Quote"], 250);
        assert_eq!(counts["Done"], 1);
    }
}

#[test]
fn complex_messages_split_into_as_many_samples_as_the_article_counts() {
    let feed = packets(complex(30_000));
    let counts = compare(Program::complex(), &TypeOptions::default(), &feed);
    assert_eq!(
        (counts["MarketData"], counts["QuoteRequest"]),
        (41_700, 300)
    );
}

#[test]
fn unsplit_and_exact_conversion_agree_with_the_slow_way_too() {
    let options = TypeOptions {
        split: None,
        exact_decimals: true,
        ..TypeOptions::default()
    };
    let counts = compare(Program::complex(), &options, &packets(complex(500)));
    assert_eq!((counts["MarketData"], counts["QuoteRequest"]), (495, 5));
}

fn complex(n: u64) -> Generator {
    Generator::complex(Program::complex(), n, None, ComplexOptions::default())
}

const ODD: &str = r#"<template name="Odd One" id="1">
    <int8 name="a" presence="optional"><copy/></int8>
    <uInt8 name="octet"><default value="7"/></uInt8>
    <byteVector name="b" presence="optional"/>
    <group name="c" presence="optional">
        <int64 name="x"/><string name="y" charset="unicode" presence="optional"/>
    </group>
    <sequence name="d" presence="optional"><uInt16 name="z"/></sequence>
    <decimal name="e" presence="optional"/>
    <int16 name="2nd"/>
    <string name="f" presence="optional"/>
</template>"#;

#[test]
fn names_and_absent_fields_follow_the_rules() {
    let program = Arc::new(Program::parse(ODD).unwrap());
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), &TypeOptions::default()).unwrap());
    let sample = &mapping.types().next().unwrap().sample;
    let names: Vec<_> = sample.members.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(
        names,
        ["present", "a", "octet_", "b", "c", "d", "e", "f2nd", "f"]
    );
    let mut converter = Converter::new(Arc::clone(&mapping), 1024);
    let mut json = |bytes: &[u8]| {
        let mut decoder = Decoder::new(Arc::clone(&program));
        let mut record = Record::new();
        let len = decoder.decode_record(bytes, &mut record).unwrap();
        assert_eq!(len, bytes.len());
        let mut text = String::new();
        let take = |s: Converted<'_>| {
            text = to_json(&s.template.sample, s.cdr).unwrap();
        };
        converter.samples(&record, take).unwrap();
        text
    };
    // Presence map: template id; no a, default octet, no c.
    assert_eq!(
        json(&[0xc0, 0x81, 0x80, 0x80, 0x80, 0x83, 0x80]),
        "{\"present\": 0, \"a\": 0, \"octet_\": 7, \"b\": {\"hex\": \"\"}, \"c\": {\"present\": 0, \
         \"x\": 0, \"y\": \"\"}, \"d\": [], \"e\": 0.0, \"f2nd\": 3, \"f\": \"\"}"
    );
    // All fields present.
    let whole = [
        0xf8, 0x81, 0xfe, 0x89, 0x82, 0xab, 0xfd, 0x82, b'q', 0x82, 0x85, 0xfe, 0x8f, 0x83, 0xc1,
    ];
    assert_eq!(
        json(&whole),
        "{\"present\": 63, \"a\": -2, \"octet_\": 9, \"b\": {\"hex\": \"ab\"}, \"c\": \
         {\"present\": 1, \"x\": -3, \"y\": \"q\"}, \"d\": [{\"z\": 5}], \"e\": 0.15, \
         \"f2nd\": 3, \"f\": \"A\"}"
    );
}

#[test]
fn what_cannot_become_a_type_says_why() {
    let error = |xml: &str| {
        let program = Arc::new(Program::parse(xml).unwrap());
        Mapping::new(program, &TypeOptions::default())
            .unwrap_err()
            .to_string()
    };
    let text = error(r#"<template name="T" id="1"><uInt32 name="x"/><templateRef/></template>"#);
    assert!(
        text.contains("\"T\"") && text.contains("dynamic template references"),
        "{text}"
    );
    let field = |i| format!(r#"<uInt32 name="f{i}" presence="optional"/>"#);
    let many: String = (0..65).map(field).collect();
    let text = error(&format!(r#"<template name="Big" id="1">{many}</template>"#));
    assert!(text.contains("more than 64 optional fields"), "{text}");
    let text = error(r#"<template name="G" id="1"><group name="g"/></template>"#);
    assert!(text.contains("members, found 0"), "{text}");
}

#[test]
fn a_message_longer_than_the_room_is_an_error_and_the_next_is_fine() {
    let program = Arc::new(Program::simple());
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), &TypeOptions::default()).unwrap());
    let mut converter = Converter::new(mapping, 16);
    let feed = packets(Generator::simple(Program::simple(), 4, 1024));
    let (mut decoder, mut record) = (Decoder::new(program), Record::new());
    let mut rest = &feed[0][..];
    let mut ends = Vec::new();
    while !rest.is_empty() {
        let n = decoder.decode_record(rest, &mut record).unwrap();
        rest = &rest[n..];
        ends.push(converter.samples(&record, |_| ()).is_ok());
    }
    assert_eq!(ends, [false, false, false, false, true]);
}
