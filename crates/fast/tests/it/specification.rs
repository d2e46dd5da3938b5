//! The examples of the specification's appendix 3, in both directions. Each message has the
//! presence map and, the first one, the template identifier in front.

use crate::common::{both_ways, encode_all, hex, program};

fn check(field: &str, bytes: &str, expected: &[&str]) {
    both_ways(&program(field), &hex(bytes), expected);
}

#[test]
fn signed_integers() {
    let optional = r#"<int32 id="1" presence="optional" name="Value"/>"#;
    let mandatory = r#"<int32 id="1" presence="mandatory" name="Value"/>"#;
    for (field, bytes, value) in [
        (optional, "39 45 a4", "942755"),
        (mandatory, "39 45 a3", "942755"),
        (optional, "46 3a dd", "-942755"),
        (mandatory, "7c 1b 1b 9d", "-7942755"),
        (mandatory, "00 40 81", "8193"),
        (mandatory, "7f 3f ff", "-8193"),
    ] {
        check(
            field,
            &format!("c0 81 {bytes}"),
            &[&format!("{{\"Value\": {value}}}")],
        );
    }
}

#[test]
fn unsigned_integers() {
    let optional = r#"<uInt32 id="1" presence="optional" name="Value"/>"#;
    let mandatory = r#"<uInt32 id="1" presence="mandatory" name="Value"/>"#;
    for (field, bytes, value) in [
        (optional, "80", "null"),
        (optional, "81", "0"),
        (optional, "82", "1"),
        (optional, "39 45 a4", "942755"),
        (optional, "10 00 00 00 80", "4294967295"),
        (mandatory, "80", "0"),
        (mandatory, "81", "1"),
        (mandatory, "39 45 a3", "942755"),
    ] {
        check(
            field,
            &format!("c0 81 {bytes}"),
            &[&format!("{{\"Value\": {value}}}")],
        );
    }
}

#[test]
fn strings_and_byte_vectors() {
    for (ty, presence, bytes, value) in [
        ("string", "optional", "80", "null"),
        ("string", "optional", "41 42 c3", "\"ABC\""),
        ("string", "optional", "00 80", "\"\""),
        ("string", "mandatory", "41 42 c3", "\"ABC\""),
        ("string", "mandatory", "80", "\"\""),
        ("byteVector", "optional", "80", "null"),
        (
            "byteVector",
            "optional",
            "84 41 42 43",
            "{\"hex\": \"414243\"}",
        ),
        ("byteVector", "optional", "81", "{\"hex\": \"\"}"),
        (
            "byteVector",
            "mandatory",
            "83 41 42 43",
            "{\"hex\": \"414243\"}",
        ),
        ("byteVector", "mandatory", "80", "{\"hex\": \"\"}"),
    ] {
        let field = format!("<{ty} id=\"1\" presence=\"{presence}\" name=\"Value\"/>");
        check(
            &field,
            &format!("c0 81 {bytes}"),
            &[&format!("{{\"Value\": {value}}}")],
        );
    }
}

#[test]
fn decimals() {
    let individual = "<exponent><copy/></exponent><mantissa><delta/></mantissa>";
    for (presence, operator, bytes, mantissa, exponent) in [
        ("mandatory", "", "c0 81 82 39 45 a3", 942_755, 2),
        ("mandatory", "", "c0 81 81 04 3f 34 de", 9_427_550, 1),
        ("optional", "", "c0 81 83 39 45 a3", 942_755, 2),
        ("mandatory", "", "c0 81 fe 39 45 a3", 942_755, -2),
        ("optional", "", "c0 81 fe 46 3a dd", -942_755, -2),
        ("optional", "<copy/>", "e0 81 fe 39 45 a3", 942_755, -2),
        ("optional", individual, "e0 81 fe 39 45 a3", 942_755, -2),
        ("optional", "", "c0 81 fd 7f 3f ff", -8193, -3),
    ] {
        let field = format!(
            "<decimal id=\"1\" presence=\"{presence}\" name=\"Value\">{operator}</decimal>"
        );
        let value = format!("{{\"mantissa\": {mantissa}, \"exponent\": {exponent}}}");
        check(&field, bytes, &[&format!("{{\"Value\": {value}}}")]);
    }
}

#[test]
fn constants() {
    let mandatory = r#"<uInt32 id="1" name="Flag"><constant value="0"/></uInt32>"#;
    check(mandatory, "c0 81", &["{\"Flag\": 0}"]);
    let wrong = ["{\"Flag\": 99}", "{\"Flag\": null}"];
    assert_eq!(encode_all(&program(mandatory), &wrong), ["D3", "D6"]);
    let optional =
        r#"<uInt32 id="1" presence="optional" name="Flag"><constant value="0"/></uInt32>"#;
    check(optional, "e0 81 80", &["{\"Flag\": 0}", "{\"Flag\": null}"]);
}

#[test]
fn defaults() {
    let mandatory = r#"<uInt32 id="1" name="Flag"><default value="0"/></uInt32>"#;
    check(
        mandatory,
        "c0 81 a0 81",
        &["{\"Flag\": 0}", "{\"Flag\": 1}"],
    );
    let optional = r#"<uInt32 id="1" presence="optional" name="Flag"><default/></uInt32>"#;
    check(optional, "c0 81", &["{\"Flag\": null}"]);
}

#[test]
fn copies() {
    let mandatory = r#"<string id="1" name="Flag"><copy/></string>"#;
    let fields = [
        "{\"Flag\": \"CME\"}",
        "{\"Flag\": \"CME\"}",
        "{\"Flag\": \"ISE\"}",
    ];
    check(mandatory, "e0 81 43 4d c5 80 a0 49 53 c5", &fields);
    // The appendix sends the first NULL, though it is implied: a decoder takes either, and an
    // encoder leaves out what may be left out.
    let optional = r#"<string id="1" presence="optional" name="Flag"><copy/></string>"#;
    let fields = [
        "{\"Flag\": null}",
        "{\"Flag\": null}",
        "{\"Flag\": \"CME\"}",
    ];
    check(optional, "c0 81 80 a0 43 4d c5", &fields);
    let sent = crate::common::decode_all(&program(optional), &hex("e0 81 80 80"), true);
    assert_eq!(sent, fields[..2]);
}

#[test]
fn increments() {
    let field = r#"<uInt32 id="1" name="Flag"><increment value="1"/></uInt32>"#;
    let fields = [
        "{\"Flag\": 1}",
        "{\"Flag\": 2}",
        "{\"Flag\": 4}",
        "{\"Flag\": 5}",
    ];
    check(field, "c0 81 80 a0 84 80", &fields);
}

#[test]
fn integer_and_decimal_deltas() {
    let field = r#"<int32 id="1" name="Price"><delta/></int32>"#;
    let fields =
        [942_755, 942_750, 942_745, 942_745].map(|price| format!("{{\"Price\": {price}}}"));
    check(
        field,
        "c0 81 39 45 a3 80 fb 80 fb 80 80",
        &fields.each_ref().map(String::as_str),
    );

    let field = r#"<decimal id="1" name="Price"><delta/></decimal>"#;
    let price = |mantissa: i64, exponent: i64| {
        format!("{{\"Price\": {{\"mantissa\": {mantissa}, \"exponent\": {exponent}}}}}")
    };
    let fields = [price(942_755, -2), price(942_751, -2), price(942_746, -2)];
    check(
        field,
        "c0 81 fe 39 45 a3 80 80 fc 80 80 fb",
        &fields.each_ref().map(String::as_str),
    );

    // 12000 is kept as 12 × 10³.
    let field = r#"<decimal id="1" name="Price"><delta value="12000"/></decimal>"#;
    let fields = [price(1210, 1), price(1215, 1), price(1220, 1)];
    check(
        field,
        "c0 81 fe 09 ae 80 80 85 80 80 85",
        &fields.each_ref().map(String::as_str),
    );
}

#[test]
fn string_deltas() {
    let field = r#"<string id="1" name="Security"><delta/></string>"#;
    let fields =
        ["GEH6", "GEM6", "ESM6", "RSESM6"].map(|name| format!("{{\"Security\": \"{name}\"}}"));
    check(
        field,
        "c0 81 80 47 45 48 b6 80 82 4d b6 80 fd 45 d3 80 ff 52 d3",
        &fields.each_ref().map(String::as_str),
    );
}

#[test]
fn individual_operators_with_presence_bits() {
    let field = r#"<decimal id="1" presence="optional" name="Value">
        <exponent><copy/></exponent><mantissa><copy/></mantissa></decimal>"#;
    check(
        field,
        "f0 81 fe 39 45 a3 90 39 45 a8 a0 80",
        &[
            "{\"Value\": {\"mantissa\": 942755, \"exponent\": -2}}",
            "{\"Value\": {\"mantissa\": 942760, \"exponent\": -2}}",
            "{\"Value\": null}",
        ],
    );
}
