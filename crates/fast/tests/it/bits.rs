//! Bit groups of FAST 1.2.

use std::fmt::Write as _;

use fanfare_fast::program::Op;
use fanfare_fast::template::{BitGroup, Initial, Kind, OperatorKind};
use fanfare_fast::{Decoder, Encoder, ErrorCode, Message, Program, TemplateSet, fix, json};
use proptest::prelude::*;

use crate::common::{both_ways, decode_all, encode_all, fields, hex, program, to_hex};

/// Two bits, one, one and three.
const LEVEL: &str = "<bitGroup name='Info'>\
    <enum name='Action' id='279'><element name='New'/><element name='Change'/>\
    <element name='Delete'/></enum>\
    <enum name='Type' id='269'><element name='Bid'/><element name='Ask'/></enum>\
    <boolean name='Last' id='893'/><uInt3 name='Price' id='1023'/></bitGroup>";

fn error(field: &str) -> ErrorCode {
    let xml = format!("<template name='T' id='1'>{field}</template>");
    Program::parse(&xml).expect_err(field).code
}

#[test]
fn members_stand_side_by_side_from_the_top() {
    let line = "{\"Info\": {\"Action\": 2, \"Type\": 1, \"Last\": 1, \"Price\": 5}}";
    both_ways(&program(LEVEL), &hex("c0 81 dd"), &[line]);
    let packed =
        "<bitGroup name='G'><uInt2 name='A'/><uInt1 name='B'/><uInt1 name='C'/></bitGroup>";
    both_ways(
        &program(packed),
        &hex("c0 81 d0"),
        &["{\"G\": {\"A\": 2, \"B\": 1, \"C\": 0}}"],
    );
    let two = "<bitGroup name='G'><uInt5 name='A'/><uInt6 name='B'/><uInt3 name='C'/></bitGroup>";
    both_ways(
        &program(two),
        &hex("c0 81 7c f6"),
        &["{\"G\": {\"A\": 31, \"B\": 14, \"C\": 6}}"],
    );
    let signed = "<bitGroup name='G'><int3 name='A'/></bitGroup>";
    both_ways(
        &program(signed),
        &hex("c0 81 d0"),
        &["{\"G\": {\"A\": -3}}"],
    );
}

#[test]
fn operators_work_on_all_bits_together() {
    let fields = |operator: &str| {
        format!("<bitGroup name='G'><uInt2 name='A'/><uInt2 name='B'/>{operator}</bitGroup>")
    };
    let ab = |a: u8, b: u8| format!("{{\"G\": {{\"A\": {a}, \"B\": {b}}}}}");
    let (one, two) = (ab(1, 2), ab(3, 0));
    let copy = program(&fields("<copy/>"));
    both_ways(&copy, &hex("e0 81 b0 80 a0 e0"), &[&one, &one, &two]);
    let default = program(&fields("<default value='6'/>"));
    both_ways(&default, &hex("c0 81 a0 e0"), &[&one, &two]);
    let constant = program(&fields("<constant value='6'/>"));
    both_ways(&constant, &hex("c0 81"), &[&one]);
    // 6, then 12: the difference is a signed integer.
    let delta = program(&fields("<delta/>"));
    both_ways(&delta, &hex("c0 81 86 80 86"), &[&one, &two]);
    assert_eq!(decode_all(&delta, &hex("c0 81 90"), true), ["R4@2 G"]);
    assert_eq!(error(&fields("<increment/>")), ErrorCode::S2);
    assert_eq!(error(&fields("<tail/>")), ErrorCode::S2);
    assert_eq!(error(&fields("<copy value='16'/>")), ErrorCode::S3);
    assert_eq!(error(&fields("<constant/>")), ErrorCode::S4);
}

/// A program can put together a bit group that no document has.
#[test]
fn groups_without_a_document_are_checked() {
    let xml = "<template name='T' id='1'><bitGroup name='G'><uInt2 name='A'/><uInt2 name='B'/>\
         <copy value='6'/></bitGroup></template>";
    let compiled = |change: fn(&mut BitGroup)| {
        let mut set = TemplateSet::parse(xml).unwrap();
        let Kind::Bits(group) = &mut set.templates[0].body[0].kind else {
            panic!("no bit group");
        };
        change(group);
        Program::compile(&set).map_err(|error| (error.code, error.message))
    };
    assert!(compiled(|_| ()).is_ok());
    type Change = fn(&mut BitGroup);
    let cases: [(Change, ErrorCode, &str); 9] = [
        (
            |group| group.members[0].1 = 0,
            ErrorCode::S1,
            "A is no integer of 0 bits without an operator",
        ),
        (
            |group| group.members[1].1 = 9,
            ErrorCode::S1,
            "B is no integer of 9 bits without an operator",
        ),
        (
            |group| group.members[1].0.kind = Kind::DynamicRef,
            ErrorCode::S1,
            "B is no integer of 2 bits without an operator",
        ),
        (
            |group| group.members[0].0.kind = Kind::Bits(group.clone()),
            ErrorCode::S1,
            "A is no integer of 2 bits without an operator",
        ),
        (
            |group| group.members.clear(),
            ErrorCode::S1,
            "a bit group has 1 to 64 bits, not 0",
        ),
        (
            |group| group.members = vec![group.members[0].clone(); 33],
            ErrorCode::S1,
            "a bit group has 1 to 64 bits, not 66",
        ),
        (
            |group| group.operator.kind = OperatorKind::Increment,
            ErrorCode::S2,
            "G: increment does not apply to bitGroup",
        ),
        (
            |group| group.operator.initial = Some(Initial::Int(16)),
            ErrorCode::S3,
            "G: the initial value is not a valid bitGroup",
        ),
        (
            |group| {
                group.operator.kind = OperatorKind::Constant;
                group.operator.initial = None;
            },
            ErrorCode::S4,
            "G: constant without a value",
        ),
    ];
    for (change, code, message) in cases {
        let error = compiled(change).unwrap_err();
        assert_eq!(error, (code, message.to_owned()));
    }
}

#[test]
fn a_mandatory_constant_that_is_lacking_has_its_value() {
    let program = program(
        "<bitGroup name='G'><uInt2 name='A'/><uInt2 name='B'/><constant value='6'/></bitGroup>",
    );
    assert_eq!(encode_all(&program, &["{}"]), ["c0 81"]);
    let mut message = Message::new();
    fix::read_fields(&program, &program.templates()[0], &[], &mut message).unwrap();
    let group = "{\"G\": {\"A\": 1, \"B\": 2}}";
    assert_eq!(fields(&program, &message), group);
}

#[test]
fn groups_and_members_may_be_absent() {
    let group = program(
        "<bitGroup name='G' presence='optional'><uInt3 name='A'/><uInt4 name='B'/></bitGroup>",
    );
    let low = "{\"G\": {\"A\": 0, \"B\": 0}}";
    let high = "{\"G\": {\"A\": 7, \"B\": 15}}";
    both_ways(
        &group,
        &hex("c0 81 81 80 80 80 01 80"),
        &[low, "{\"G\": null}", high],
    );
    let member = program(
        "<bitGroup name='G'><boolean name='A' presence='optional'/>\
         <int3 name='B' presence='optional'/><uInt2 name='C' presence='optional'/></bitGroup>",
    );
    // 00 000 00, then 10 001 11, then 01 111 00.
    both_ways(
        &member,
        &hex("c0 81 80 80 c7 80 bc"),
        &[
            "{\"G\": {\"A\": null, \"B\": null, \"C\": null}}",
            "{\"G\": {\"A\": 1, \"B\": 0, \"C\": 2}}",
            "{\"G\": {\"A\": 0, \"B\": -1, \"C\": null}}",
        ],
    );
}

#[test]
fn values_and_bytes_that_do_not_fit_are_errors() {
    let group = "<bitGroup name='G'><uInt3 name='A'/><int2 name='B'/></bitGroup>";
    let program = program(group);
    let codes = encode_all(
        &program,
        &[
            "{\"G\": {\"A\": 8, \"B\": 0}}",
            "{\"G\": {\"A\": 0, \"B\": 2}}",
            "{\"G\": {\"B\": 0}}",
            "{\"G\": 5}",
        ],
    );
    assert_eq!(codes, ["R4", "R4", "D6", "D1"]);
    assert_eq!(decode_all(&program, &hex("c0 81 00 80"), true), ["D2@2 G"]);
    // A byte more is for the NULL's one more alone, never for zeros.
    let nullable = "<bitGroup name='G' presence='optional'><uInt7 name='A'/></bitGroup>";
    let seven = crate::common::program(nullable);
    assert_eq!(decode_all(&seven, &hex("c0 81 00 85"), true), ["D2@2 G"]);
    both_ways(&seven, &hex("c0 81 01 80"), &["{\"G\": {\"A\": 127}}"]);
    assert_eq!(decode_all(&program, &hex("c0 81 81"), true), ["R8@2 G"]);
    let lenient = decode_all(&program, &hex("c0 81 81"), false);
    assert_eq!(lenient, ["{\"G\": {\"A\": 0, \"B\": 0}}"]);
    assert_eq!(decode_all(&program, &hex("c0 81 01"), true), ["EOF@3 G"]);
}

#[test]
fn widths_come_from_types_or_attributes() {
    let widths = |members: &str| {
        let program = program(&format!("<bitGroup name='G'>{members}</bitGroup>"));
        let id = program.find("T", "G").unwrap();
        let Op::Bits(op) = *program.op(id) else {
            panic!("{members}")
        };
        let inside = program.children(id).iter();
        let widths = inside.map(|id| program.field(*id).bits().unwrap());
        (widths.collect::<Vec<_>>(), op.width)
    };
    let members = "<uInt32 name='A'/><int8 name='B' bits='5'/><uInt8 name='C' size='3'/>\
                   <set name='D'><element name='X'/><element name='Y'/></set>\
                   <enum name='E' length='4'><element name='X'/></enum>";
    assert_eq!(widths(members), (vec![32, 5, 3, 2, 4], 46));
    let optional = "<boolean name='A' presence='optional'/><enum name='B' presence='optional'>\
                    <element name='X'/><element name='Y'/></enum><set name='C' \
                    presence='optional'><element name='X'/></set>";
    assert_eq!(widths(optional).0, [2, 2, 2]);
    for bad in [
        "",
        "<uInt name='A'/>",
        "<uInt2 name='A' bits='0'/>",
        "<uInt2 name='A' bits='65'/>",
        "<uInt2 name='A' bits='x'/>",
        "<uInt40 name='A'/><uInt25 name='B'/>",
        "<string name='A'/>",
        "<decimal name='A' bits='3'/>",
        "<set name='A'/>",
        "<uInt2/>",
        "<uInt2 name='A'><copy/></uInt2>",
        "<bitGroup name='H'><uInt2 name='A'/></bitGroup>",
        "<copy/>",
    ] {
        let field = format!("<bitGroup name='G'>{bad}</bitGroup>");
        assert_eq!(error(&field), ErrorCode::S1, "{bad}");
    }
}

#[test]
fn the_presence_and_width_of_a_member_may_be_those_of_its_type() {
    let member = |field: &str| {
        let xml = format!(
            "<templates><define name='Two'><uInt8 bits='2'/></define><template name='T' id='1'>\
             <bitGroup name='G'><field name='A'>{field}</field><uInt5 name='B'/></bitGroup>\
             </template></templates>"
        );
        Program::parse(&xml).unwrap()
    };
    let expected = [
        "{\"G\": {\"A\": null, \"B\": 3}}",
        "{\"G\": {\"A\": 1, \"B\": 3}}",
    ];
    for field in [
        "<type name='Two' presence='optional'/>",
        "<uInt8 bits='2' presence='optional'/>",
    ] {
        both_ways(&member(field), &hex("c0 81 83 80 c3"), &expected);
    }
}

#[test]
fn members_are_fields_of_fix() {
    let program = program(LEVEL);
    let mut message = Message::new();
    let mut decoder = Decoder::new(program.clone());
    decoder.decode(&hex("c0 81 dd"), &mut message).unwrap();
    let mut text = Vec::new();
    fix::write_body(message.view(&program).unwrap(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap().replace('\u{1}', "|");
    assert_eq!(text, "279=2|269=1|893=1|1023=5|");
}

#[test]
fn types_and_operators_may_stand_in_a_definition() {
    let program = Program::parse(
        "<templates><define name='Side'><enum><element name='1' id='Buy'/>\
         <element name='2' id='Sell'/></enum></define>\
         <define name='Price'><decimal><exponent><default value='-2'/></exponent>\
         <mantissa><delta/></mantissa></decimal></define>\
         <define name='Alias'><type name='Side'/></define>\
         <define name='Flags'><bitGroup><uInt2 name='A'/><field name='B'><type name='Side'/>\
         </field></bitGroup></define>\
         <template name='T' id='1'>\
         <field name='Side' id='54'><type name='Side'><default value='1'/></type></field>\
         <field name='Other' presence='optional'><type name='Alias'><copy/></type></field>\
         <field name='Px'><type name='Price'/></field>\
         <field name='Flags'><type name='Flags'><copy/></type></field>\
         <field name='Text'><string><copy/></string></field></template></templates>",
    )
    .unwrap();
    // Side by its default (a number is a position, not a name), Other copied, and so on.
    let first = "{\"Side\": 1, \"Other\": 1, \"Px\": {\"mantissa\": 5, \"exponent\": -2}, \
                 \"Flags\": {\"A\": 2, \"B\": 1}, \"Text\": \"X\"}";
    let second = "{\"Side\": 0, \"Other\": 1, \"Px\": {\"mantissa\": 6, \"exponent\": -2}, \
                  \"Flags\": {\"A\": 2, \"B\": 1}, \"Text\": \"X\"}";
    both_ways(
        &program,
        &hex("d6 81 82 85 d0 d8 a0 80 81"),
        &[first, second],
    );
    let field = "<field name='A'><type name='B'><copy/></type><delta/></field>";
    let xml = format!(
        "<templates><define name='B'><uInt32/></define><define name='C'><type name='C'/></define>\
         <template name='T' id='1'>{field}</template></templates>"
    );
    assert_eq!(
        Program::parse(&xml).unwrap_err().code,
        ErrorCode::S1,
        "two operators"
    );
    let xml = xml.replace(field, "<field name='A'><type name='C'/></field>");
    assert_eq!(
        Program::parse(&xml).unwrap_err().code,
        ErrorCode::S1,
        "it names itself"
    );
}

/// A member of a random group: bits, signed, optional, and a number.
type Member = (u32, bool, bool, u64);

/// The entity of these members, as a text of bits.
fn by_hand(members: &[Member]) -> Vec<u8> {
    let mut bits = String::new();
    for (width, _, _, number) in members {
        let all = format!("{number:064b}");
        bits.push_str(&all[64 - *width as usize..]);
    }
    while !bits.len().is_multiple_of(7) {
        bits.push('0');
    }
    let sevens = bits.as_bytes().chunks(7);
    let byte = |seven: &[u8]| {
        let text = std::str::from_utf8(seven).unwrap();
        u8::from_str_radix(text, 2).unwrap()
    };
    let mut bytes: Vec<u8> = sevens.map(byte).collect();
    *bytes.last_mut().unwrap() |= 0x80;
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn groups_are_what_they_are_by_hand(
        members in prop::collection::vec(
            (1u32..17, any::<bool>(), any::<bool>(), any::<u64>()), 1..5
        ),
        operator in prop::sample::select(&["", "<copy/>", "<default value='0'/>"][..]),
    ) {
        let members: Vec<Member> = members
            .into_iter()
            .map(|(width, signed, optional, n)| (width, signed, optional, n & ((1 << width) - 1)))
            .collect();
        let mut xml = "<template name='T' id='1'><bitGroup name='G'>".to_owned();
        for (i, (width, signed, optional, _)) in members.iter().enumerate() {
            let ty = if *signed { "int" } else { "uInt" };
            let presence = if *optional { " presence='optional'" } else { "" };
            _ = write!(xml, "<{ty}{width} name='F{i}'{presence}/>");
        }
        xml.push_str(operator);
        xml.push_str("</bitGroup></template>");
        let program = Program::parse(&xml).unwrap();
        let entity = by_hand(&members);
        let is_default = operator.contains("default") && members.iter().all(|m| m.3 == 0);
        let mut bytes = vec![if operator.is_empty() || is_default { 0xc0 } else { 0xe0 }, 0x81];
        if !is_default {
            bytes.extend(&entity);
        }
        let mut message = Message::new();
        let mut decoder = Decoder::new(program.clone());
        prop_assert_eq!(decoder.decode(&bytes, &mut message), Ok(bytes.len()));
        for (i, (width, signed, optional, number)) in members.iter().enumerate() {
            let value = match signed {
                true => i128::from(((number << (64 - width)) as i64) >> (64 - width)),
                false => i128::from(*number),
            };
            let expected = match (*optional, value) {
                (true, 0) => "null".to_owned(),
                (true, 1..) => (value - 1).to_string(),
                _ => value.to_string(),
            };
            let mut line = String::new();
            json::write_line(message.view(&program).unwrap(), &mut line);
            prop_assert!(line.contains(&format!("\"F{i}\": {expected}")), "{line} {expected}");
        }
        let mut out = Vec::new();
        Encoder::new(program).encode(&message, &mut out).unwrap();
        prop_assert_eq!(to_hex(&out), to_hex(&bytes));
    }

    #[test]
    fn noise_in_a_group_is_an_error_or_comes_back(
        bytes in prop::collection::vec(any::<u8>(), 0..12),
        width in 1u32..65,
        optional: bool,
    ) {
        let presence = if optional { " presence='optional'" } else { "" };
        let fields = format!("<bitGroup name='G'{presence}><uInt{width} name='A'/></bitGroup>");
        let program = program(&fields);
        let bytes = [&[0xc0, 0x81][..], &bytes].concat();
        let mut message = Message::new();
        if let Ok(len) = Decoder::new(program.clone()).decode(&bytes, &mut message) {
            let mut out = Vec::new();
            Encoder::new(program).encode(&message, &mut out).unwrap();
            prop_assert_eq!(to_hex(&out), to_hex(&bytes[..len]));
        }
    }
}
