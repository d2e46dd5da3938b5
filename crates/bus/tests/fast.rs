//! Templates to types and messages to samples, held against a slow way of doing the same.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfare_bus::cdr::{CdrBuffer, check, to_json};
use fanfare_bus::fast::{Converter, Mapping, TypeOptions};
use fanfare_bus::types::{Kind, StructType};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::{Decoder, Fields, Message, MessageView, Program, Value};

/// The obvious way: walk the type, look each member up in the message by name, write it.
fn oracle(view: &MessageView<'_>, t: &StructType, split: bool) -> Vec<Vec<u8>> {
    let all: Vec<(String, Value<'_>)> = named(view.fields());
    if !split {
        let mut out = CdrBuffer::with_capacity(1 << 16);
        write_struct(&mut out, t, &all);
        return vec![out.finish().unwrap().to_vec()];
    }
    let key_name = t.members[0].name.clone();
    let Some((_, Value::Sequence(entries))) = all.last() else {
        panic!("no sequence at the end")
    };
    let mut by_key: BTreeMap<u64, Vec<Vec<(String, Value<'_>)>>> = BTreeMap::new();
    for entry in *entries {
        let key = entry.get(&key_name).unwrap().as_u64().unwrap();
        by_key.entry(key).or_default().push(named(entry));
    }
    let rest = StructType {
        members: t.members[1..t.members.len() - 1].to_vec(),
        ..t.clone()
    };
    let Kind::Sequence(element, _) = &t.members.last().unwrap().kind else {
        panic!("no sequence in the type")
    };
    let Kind::Struct(element) = &**element else {
        panic!()
    };
    let write = |(key, entries): (u64, Vec<Vec<(String, Value<'_>)>>)| {
        let mut out = CdrBuffer::with_capacity(1 << 16);
        out.u32(u32::try_from(key).unwrap());
        write_struct(&mut out, &rest, &all[..all.len() - 1]);
        out.u32(u32::try_from(entries.len()).unwrap());
        for entry in &entries {
            write_struct(&mut out, element, entry);
        }
        out.finish().unwrap().to_vec()
    };
    by_key.into_iter().map(write).collect()
}

fn named(fields: Fields<'_>) -> Vec<(String, Value<'_>)> {
    fields.map(|(f, v)| (f.name().to_owned(), v)).collect()
}

fn write_struct(out: &mut CdrBuffer, t: &StructType, values: &[(String, Value<'_>)]) {
    let mut members = &t.members[..];
    if members[0].name == "present" {
        out.u64(mask(t, values));
        members = &members[1..];
    }
    assert_eq!(members.len(), values.len());
    for (member, (name, value)) in members.iter().zip(values) {
        assert_eq!(&member.name, name);
        write_value(out, &member.kind, value);
    }
}

/// Which members are optional the type does not say: the test's templates do, by name.
fn mask(t: &StructType, values: &[(String, Value<'_>)]) -> u64 {
    let optional: &[&str] = match t.name.as_str() {
        "Fanfare::MarketData_MDEntries" => &[
            "MDPriceLevel",
            "OpenCloseSettleFlag",
            "MDEntrySize",
            "NumberOfOrders",
            "TradingSessionID",
            "NetChgPrevDay",
            "TradeVolume",
            "TradeCondition",
            "TickDirection",
            "QuoteCondition",
            "AggressorSide",
            "MatchEventIndicator",
        ],
        "Fanfare::QuoteRequest" => &["QuoteReqID"],
        "Fanfare::QuoteRequest_RelatedSym" => &["OrderQty", "Side"],
        _ => &["a", "b", "c", "d", "e", "f"],
    };
    let present = |(name, value): &(String, Value<'_>)| {
        optional
            .contains(&name.as_str())
            .then(|| !value.is_absent())
    };
    let bits = values.iter().filter_map(present).enumerate();
    bits.map(|(i, there)| u64::from(there) << i).sum()
}

fn write_value(out: &mut CdrBuffer, kind: &Kind, value: &Value<'_>) {
    let number = || match *value {
        Value::Unsigned(n, _) => n,
        Value::Signed(n, _) => n as u64,
        Value::Absent => 0,
        _ => panic!("{value:?} is no {kind:?}"),
    };
    match kind {
        Kind::Byte | Kind::Int8 => out.u8(number() as u8),
        Kind::UInt16 | Kind::Int16 => out.u16(number() as u16),
        Kind::UInt32 | Kind::Int32 => out.u32(number() as u32),
        Kind::UInt64 | Kind::Int64 => out.u64(number()),
        Kind::Float64 => {
            // The text of a decimal, read as a double, is the nearest one.
            let text = value
                .as_decimal()
                .map_or("0".to_owned(), |d| format!("{}e{}", d.mantissa, d.exponent));
            out.f64(text.parse().unwrap());
        }
        Kind::String(_) => out.string(value.as_bytes().unwrap_or_default()),
        Kind::Sequence(element, _) if **element == Kind::Byte => {
            out.octets(value.as_bytes().unwrap_or_default());
        }
        Kind::Sequence(element, _) => {
            let Kind::Struct(element) = &**element else {
                panic!()
            };
            let entries: Vec<_> = value.as_sequence().into_iter().flatten().collect();
            out.u32(u32::try_from(entries.len()).unwrap());
            for entry in entries {
                write_struct(out, element, &named(entry));
            }
        }
        Kind::Struct(t) if t.name.ends_with("::Decimal") => {
            let d = value.as_decimal().unwrap_or_default();
            out.i64(d.mantissa);
            out.i32(d.exponent.into());
        }
        Kind::Struct(t) => match value {
            Value::Group(fields) => write_struct(out, t, &named(*fields)),
            _ => write_absent_struct(out, t),
        },
        other => panic!("{other:?}"),
    }
}

fn write_absent_struct(out: &mut CdrBuffer, t: &StructType) {
    for member in &t.members {
        write_value(out, &member.kind, &Value::Absent);
    }
}

/// Converts every message of `packets` both ways; the number of samples by template.
fn compare(program: Program, options: &TypeOptions, packets: &[Vec<u8>]) -> BTreeMap<String, u32> {
    let program = Arc::new(program);
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), options).unwrap());
    let mut converter = Converter::new(Arc::clone(&mapping), 1 << 16);
    let mut decoder = Decoder::new(Arc::clone(&program));
    let mut slow = Decoder::new(Arc::clone(&program));
    let mut message = Message::new();
    let mut counts = BTreeMap::new();
    for packet in packets {
        decoder.reset();
        slow.reset();
        let mut rest = &packet[..];
        while !rest.is_empty() {
            let n = decoder.decode(rest, &mut converter).unwrap();
            assert_eq!(slow.decode(rest, &mut message).unwrap(), n);
            rest = &rest[n..];
            let view = message.view(&program).unwrap();
            let t = mapping.by_index(view.template().index()).unwrap();
            let expected = oracle(&view, &t.sample, t.is_split);
            let mut got = Vec::new();
            converter
                .samples(|s| {
                    check(&s.template.sample, s.cdr).unwrap();
                    assert_eq!(s.key.is_some(), t.is_split);
                    *counts.entry(s.template.name.clone()).or_default() += 1;
                    got.push(s.cdr.to_vec());
                })
                .unwrap();
            assert_eq!(got, expected, "{}", t.name);
        }
    }
    counts
}

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
        assert_eq!(decoder.decode(bytes, &mut converter).unwrap(), bytes.len());
        let mut text = String::new();
        let take = |s: fanfare_bus::fast::Converted<'_>| {
            text = to_json(&s.template.sample, s.cdr).unwrap();
        };
        converter.samples(take).unwrap();
        text
    };
    // Presence map: template id; no a, default octet, no c.
    assert_eq!(
        json(&[0xc0, 0x81, 0x80, 0x80, 0x80, 0x83, 0x80]),
        "{\"present\": 0, \"a\": 0, \"octet_\": 7, \"b\": {\"hex\": \"\"}, \"c\": {\"present\": 0, \
         \"x\": 0, \"y\": \"\"}, \"d\": [], \"e\": 0.0, \"f2nd\": 3, \"f\": \"\"}"
    );
    // Everything there.
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
    assert!(text.contains("0 members"), "{text}");
}

#[test]
fn a_message_longer_than_the_room_is_an_error_and_the_next_is_fine() {
    let program = Arc::new(Program::simple());
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), &TypeOptions::default()).unwrap());
    let mut converter = Converter::new(mapping, 16);
    let feed = packets(Generator::simple(Program::simple(), 4, 1024));
    let mut decoder = Decoder::new(program);
    let mut rest = &feed[0][..];
    let mut ends = Vec::new();
    while !rest.is_empty() {
        let n = decoder.decode(rest, &mut converter).unwrap();
        rest = &rest[n..];
        ends.push(converter.samples(|_| ()).is_ok());
    }
    assert_eq!(ends, [false, false, false, false, true]);
}
