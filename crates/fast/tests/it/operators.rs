//! Operators in every state of the previous value, dictionaries, structure, and the dynamic and
//! reportable errors.

use fanfare_fast::{Decoder, Message, Program};

use crate::common::{both_ways, decode_all, encode_all, fields, hex, program};

/// Decodes a stream of one template; the last line may be an error.
fn decode(field: &str, bytes: &str) -> Vec<String> {
    decode_all(&program(field), &hex(bytes), true)
}

const V: [&str; 4] = ["{\"V\": 0}", "{\"V\": 1}", "{\"V\": 2}", "{\"V\": 3}"];
const NULL: &str = "{\"V\": null}";

#[test]
fn copy_of_an_undefined_or_empty_value() {
    let mandatory = "<uInt32 name='V'><copy/></uInt32>";
    assert_eq!(decode(mandatory, "c0 81"), ["D5@2 V"]);
    let initial = "<uInt32 name='V'><copy value='1'/></uInt32>";
    both_ways(
        &program(initial),
        &hex("c0 81 80 a0 82 80"),
        &[V[1], V[1], V[2], V[2]],
    );
    let optional = "<uInt32 name='V' presence='optional'><copy/></uInt32>";
    both_ways(
        &program(optional),
        &hex("c0 81 a0 82 80 a0 80 80"),
        &[NULL, V[1], V[1], NULL, NULL],
    );
    let both = "<uInt32 name='V' presence='optional'><copy value='1'/></uInt32>";
    // NULL where the initial value is implied needs the bit; an empty value never becomes it.
    both_ways(
        &program(both),
        &hex("e0 81 80 80 a0 82 80"),
        &[NULL, NULL, V[1], V[1]],
    );
}

#[test]
fn increment_wraps_and_never_returns_to_the_initial_value() {
    let field = "<uInt8 name='V' presence='optional'><increment value='2'/></uInt8>";
    both_ways(
        &program(field),
        &hex("c0 81 80 a0 80 80 a0 81"),
        &[V[2], V[3], NULL, NULL, V[0]],
    );
    let field = "<int8 name='V'><increment value='127'/></int8>";
    both_ways(
        &program(field),
        &hex("c0 81 80 80"),
        &["{\"V\": 127}", "{\"V\": -128}", "{\"V\": -127}"],
    );
}

#[test]
fn default_leaves_the_dictionary_alone() {
    let field = "<uInt32 name='V' presence='optional'><default value='1'/></uInt32>";
    both_ways(
        &program(field),
        &hex("c0 81 a0 80 a0 83 80"),
        &[V[1], NULL, V[2], V[1]],
    );
    let shared = "<uInt32 name='V' presence='optional'><copy key='k'/></uInt32>\
                  <uInt32 name='D' presence='optional'><default value='7'/></uInt32>";
    both_ways(
        &program(shared),
        &hex("f0 81 82 80 80"),
        &["{\"V\": 1, \"D\": null}", "{\"V\": 1, \"D\": 7}"],
    );
}

#[test]
fn empty_values_that_others_left_are_d6() {
    let pair = |second: &str| {
        format!("<uInt32 name='A' presence='optional'><copy key='k'/></uInt32>{second}")
    };
    let copy = pair("<uInt32 name='V'><copy key='k' value='5'/></uInt32>");
    assert_eq!(decode(&copy, "c0 81"), ["D6@2 V"]);
    let increment = pair("<uInt32 name='V'><increment key='k' value='5'/></uInt32>");
    assert_eq!(decode(&increment, "c0 81"), ["D6@2 V"]);
    let delta = pair("<uInt32 name='V'><delta key='k' value='5'/></uInt32>");
    assert_eq!(decode(&delta, "c0 81 81"), ["D6@3 V"]);
    let absent = pair("<uInt32 name='V' presence='optional'><delta key='k'/></uInt32>");
    assert_eq!(decode(&absent, "c0 81 80"), ["{\"A\": null, \"V\": null}"]);
}

#[test]
fn values_of_another_type_are_d4() {
    for (first, second, bytes) in [
        (
            "<uInt32 name='A'><copy key='k'/></uInt32>",
            "<int32 name='V'><copy key='k'/></int32>",
            "e0 81 81",
        ),
        (
            "<uInt32 name='A'><copy key='k'/></uInt32>",
            "<uInt64 name='V'><delta key='k'/></uInt64>",
            "e0 81 81 81",
        ),
        (
            "<string name='A'><copy key='k'/></string>",
            "<string name='V' charset='unicode'><copy key='k'/></string>",
            "e0 81 c1",
        ),
        (
            "<string name='A'><copy key='k'/></string>",
            "<byteVector name='V'><tail key='k'/></byteVector>",
            "f0 81 c1 81 41",
        ),
        (
            "<string name='A'><copy key='k'/></string>",
            "<decimal name='V'><delta key='k'/></decimal>",
            "e0 81 c1 81 81",
        ),
    ] {
        let decoded = decode(&format!("{first}{second}"), bytes);
        assert!(
            decoded[0].starts_with("D4@"),
            "{first}{second}: {decoded:?}"
        );
    }
    let sent = "<uInt32 name='A'><copy key='k'/></uInt32><int32 name='V'><copy key='k'/></int32>";
    both_ways(
        &program(sent),
        &hex("f0 81 81 81 b0 81 81"),
        &["{\"A\": 1, \"V\": 1}", "{\"A\": 1, \"V\": 1}"],
    );
}

#[test]
fn integer_deltas_may_exceed_the_type_but_not_their_sum() {
    let field = "<uInt32 name='V'><delta value='4294967295'/></uInt32>";
    both_ways(
        &program(field),
        &hex("c0 81 70 00 00 00 92"),
        &["{\"V\": 17}"],
    );
    assert_eq!(decode(field, "c0 81 81"), ["R4@2 V"]);
    assert_eq!(
        decode("<uInt32 name='V'><delta/></uInt32>", "c0 81 ff"),
        ["R4@2 V"]
    );
    let wide = "<uInt64 name='V' presence='optional'><delta/></uInt64>";
    let most = "{\"V\": 18446744073709551615}";
    both_ways(
        &program(wide),
        &hex("c0 81 02 00 00 00 00 00 00 00 00 80 \
        80 7e 00 00 00 00 00 00 00 00 81 80 80"),
        &[most, "{\"V\": 0}", NULL],
    );
}

#[test]
fn tails() {
    let field = "<string name='V'><tail/></string>";
    both_ways(
        &program(field),
        &hex("e0 81 41 42 c3 80 a0 c4 a0 4c 4f 4e 47 45 d2"),
        &[
            "{\"V\": \"ABC\"}",
            "{\"V\": \"ABC\"}",
            "{\"V\": \"ABD\"}",
            "{\"V\": \"LONGER\"}",
        ],
    );
    assert_eq!(decode(field, "c0 81"), ["D6@2 V"]);
    let shorter = ["{\"V\": \"ABC\"}", "{\"V\": \"AB\"}"];
    assert_eq!(
        encode_all(&program(field), &shorter),
        ["e0 81 41 42 c3", "D3"]
    );
    let initial = "<string name='V' presence='optional'><tail value='XY'/></string>";
    let fields = ["{\"V\": \"XY\"}", NULL, NULL, "{\"V\": \"XZ\"}"];
    both_ways(&program(initial), &hex("c0 81 a0 80 80 a0 da"), &fields);
}

#[test]
fn byte_vector_and_unicode_deltas_work_on_bytes() {
    let field = "<string name='V' charset='unicode'><delta/></string>";
    both_ways(
        &program(field),
        &hex("c0 81 80 83 61 c3 a9 80 81 81 a8"),
        &["{\"V\": \"aé\"}", "{\"V\": \"aè\"}"],
    );
    assert_eq!(decode(field, "c0 81 80 81 c3"), ["R2@2 V"]);
    let bytes = "<byteVector name='V' presence='optional'><delta value='0102'/></byteVector>";
    both_ways(
        &program(bytes),
        &hex("c0 81 82 81 03 80 80 80 ff 81 00"),
        &[
            "{\"V\": {\"hex\": \"0103\"}}",
            NULL,
            "{\"V\": {\"hex\": \"000103\"}}",
        ],
    );
    assert_eq!(decode(bytes, "c0 81 84 80"), ["D7@2 V"]);
    assert_eq!(decode(bytes, "c0 81 fc 80"), ["D7@2 V"]);
    assert_eq!(decode(bytes, "c0 81 08 00 00 00 81 80"), ["D7@2 V"]);
}

#[test]
fn exponents_and_mantissas_are_bounded() {
    let joint = "<decimal name='V'/>";
    assert_eq!(decode(joint, "c0 81 00 c0 81"), ["R1@2 V"]);
    assert_eq!(
        decode(joint, "c0 81 bf 81"),
        ["{\"V\": {\"mantissa\": 1, \"exponent\": 63}}"]
    );
    assert_eq!(decode(joint, "c0 81 c0 81"), ["R1@2 V"]);
    let lenient = decode_all(&program(joint), &hex("c0 81 c0 81"), false);
    assert_eq!(lenient, ["{\"V\": {\"mantissa\": 1, \"exponent\": -64}}"]);
    let delta = "<decimal name='V'><delta/></decimal>";
    assert_eq!(
        decode(delta, "c0 81 bf 81 80 81 80"),
        ["{\"V\": {\"mantissa\": 1, \"exponent\": 63}}", "R1@5 V"]
    );
    let constant = "<decimal name='V'><exponent><constant value='-2'/></exponent></decimal>";
    both_ways(
        &program(constant),
        &hex("c0 81 8a"),
        &["{\"V\": {\"mantissa\": 10, \"exponent\": -2}}"],
    );
    let messages = [
        "{\"V\": {\"mantissa\": 1, \"exponent\": 0}}",
        "{\"V\": {\"mantissa\": 1, \"exponent\": -3}}",
    ];
    assert_eq!(
        encode_all(&program(constant), &messages),
        ["c0 81 00 e4", "D3"]
    );
}

#[test]
fn reportable_encodings_are_errors_only_if_strict() {
    for (field, bytes, code, lenient) in [
        ("<uInt32 name='V'/>", "c0 81 00 81", "R6@2 V", V[1]),
        (
            "<int32 name='V' presence='optional'/>",
            "c0 81 00 82",
            "R6@2 V",
            V[1],
        ),
        ("<uInt32 name='V'/>", "c0 00 81 81", "R6@1 ", V[1]),
        ("<uInt32 name='V'/>", "40 80 81 81", "R7@0 ", V[1]),
        ("<uInt32 name='V'/>", "e0 81 81", "R8@0 ", V[1]),
        (
            "<string name='V'/>",
            "c0 81 00 c1",
            "R9@2 V",
            "{\"V\": \"A\"}",
        ),
    ] {
        assert_eq!(decode(field, bytes), [code], "{field} {bytes}");
        assert_eq!(decode_all(&program(field), &hex(bytes), false), [lenient]);
    }
}

#[test]
fn template_identifiers_are_copied() {
    let xml = "<templates><template name='A' id='1'><uInt32 name='V'/></template>\
               <template name='B' id='2'><uInt32 name='V'/></template></templates>";
    let program = Program::parse(xml).unwrap();
    both_ways(
        &program,
        &hex("c0 81 81 80 82 c0 82 83 c0 f8 c0 82 80"),
        &[V[1], V[2], V[3], "{}", V[0]],
    );
    assert_eq!(decode_all(&program, &hex("c0 83 81"), true), ["D9@1 "]);
    assert_eq!(decode_all(&program, &hex("80 81"), true), ["D9@1 "]);
    assert_eq!(
        decode_all(&program, &hex("c0 f8 80 81"), true),
        ["{}", "D9@3 "]
    );
}

#[test]
fn a_reset_attribute_keeps_the_identifier() {
    let program = Program::parse(
        "<template name='T' id='1' reset='Y'><uInt32 name='V'><copy value='3'/>\
                        </uInt32></template>",
    )
    .unwrap();
    both_ways(&program, &hex("e0 81 81 80"), &[V[1], V[3]]);
}

#[test]
fn groups_and_sequences_have_maps_only_if_they_need_them() {
    let plain = "<group name='G' presence='optional'><uInt32 name='V'/></group>";
    both_ways(
        &program(plain),
        &hex("e0 81 81 80"),
        &["{\"G\": {\"V\": 1}}", "{\"G\": null}"],
    );
    let mapped = "<group name='G'><uInt32 name='V'><copy/></uInt32></group>";
    both_ways(
        &program(mapped),
        &hex("c0 81 c0 81 80 80"),
        &["{\"G\": {\"V\": 1}}", "{\"G\": {\"V\": 1}}"],
    );
    let sequence = "<sequence name='S' presence='optional'><length name='N'><copy/></length>\
                    <uInt32 name='V'><increment/></uInt32></sequence>";
    both_ways(
        &program(sequence),
        &hex("e0 81 83 c0 81 80 80 80 80 a0 80 80 a0 81"),
        &[
            "{\"S\": [{\"V\": 1}, {\"V\": 2}]}",
            "{\"S\": [{\"V\": 3}, {\"V\": 4}]}",
            "{\"S\": null}",
            "{\"S\": null}",
            "{\"S\": []}",
        ],
    );
    let nested = "<sequence name='S'><sequence name='I'><uInt8 name='V'/></sequence></sequence>";
    assert_eq!(
        decode(nested, "c0 81 82 81 81 82 81 02 80"),
        ["D2@7 S[1].I[1].V"]
    );
}

#[test]
fn a_constant_length_is_honoured() {
    let field = "<sequence name='S'><length><constant value='2'/></length><uInt32 name='V'/>\
                 </sequence>";
    both_ways(
        &program(field),
        &hex("c0 81 81 82"),
        &["{\"S\": [{\"V\": 1}, {\"V\": 2}]}"],
    );
    assert_eq!(encode_all(&program(field), &["{\"S\": []}"]), ["D3"]);
}

#[test]
fn the_mantissa_depends_on_the_exponent() {
    let field = "<decimal name='V' presence='optional'><exponent><default/></exponent>\
                 <mantissa><copy/></mantissa></decimal><uInt32 name='W'><copy/></uInt32>";
    let seven = "{\"V\": {\"mantissa\": 7, \"exponent\": 0}, \"W\": 1}";
    both_ways(
        &program(field),
        &hex("d0 81 81 b0 81 87 a0 81"),
        &["{\"V\": null, \"W\": 1}", seven, seven],
    );
}

#[test]
fn references_share_the_map_or_bring_their_own() {
    let xml = "<templates><template name='H'><uInt32 name='Seq'><increment/></uInt32></template>\
               <template name='T' id='1'><templateRef name='H'/><uInt32 name='V'><copy/></uInt32>\
               <templateRef/></template>\
               <template name='U' id='2'><string name='X'><copy/></string></template></templates>";
    let program = Program::parse(xml).unwrap();
    both_ways(
        &program,
        &hex("f0 81 85 87 e0 82 c1 c0 81 c0 82"),
        &[
            "{\"Seq\": 5, \"V\": 7, \"templateRef\": {\"template\": \"U\", \"id\": 2, \
           \"fields\": {\"X\": \"A\"}}}",
            "{\"Seq\": 6, \"V\": 7, \"templateRef\": {\"template\": \"U\", \"id\": 2, \
           \"fields\": {\"X\": \"A\"}}}",
        ],
    );
    let unknown = Program::parse(
        "<templates><template name='T' id='1'><templateRef name='X'/>\
        </template><template name='U' id='2'/></templates>",
    )
    .unwrap();
    assert_eq!(
        decode_all(&unknown, &hex("c0 82 c0 81"), true),
        ["{}", "D8@4 X"]
    );
}

#[test]
fn dynamic_references_end() {
    let program = Program::parse("<template name='T' id='1'><templateRef/></template>").unwrap();
    let endless = [0x80; 5000];
    let bytes = [&[0xc0, 0x81][..], &endless].concat();
    assert!(decode_all(&program, &bytes, true)[0].starts_with("LIMIT@"));
}

#[test]
fn dictionaries_have_scopes() {
    let copy = |dictionary: &str| {
        let op = format!("<copy dictionary='{dictionary}'/>");
        let xml = format!(
            "<templates><template name='A' id='1'><typeRef name='Y'/><uInt32 name='V'>{op}\
             </uInt32></template><template name='B' id='2'><typeRef name='Y'/><uInt32 name='V'>\
             {op}</uInt32></template><template name='C' id='3'><typeRef name='Z'/>\
             <uInt32 name='V'>{op}</uInt32></template></templates>"
        );
        let program = Program::parse(&xml).unwrap();
        let errors = |bytes| {
            decode_all(&program, &hex(bytes), true).len() > 1
                && !decode_all(&program, &hex(bytes), true)[1].starts_with("D5")
        };
        (errors("e0 81 81 c0 82"), errors("e0 81 81 c0 83"))
    };
    assert_eq!(copy("global"), (true, true));
    assert_eq!(copy("template"), (false, false));
    assert_eq!(copy("type"), (true, false));
    assert_eq!(copy("mine"), (true, true));
}

#[test]
fn a_template_dictionary_belongs_to_where_the_field_is_written() {
    let xml = "<templates><template name='H' dictionary='template'><uInt32 name='V'><copy/>\
               </uInt32></template><template name='A' id='1'><templateRef name='H'/></template>\
               <template name='B' id='2'><templateRef name='H'/></template></templates>";
    both_ways(
        &Program::parse(xml).unwrap(),
        &hex("e0 81 81 c0 82"),
        &[V[1], V[1]],
    );
}

#[test]
fn keys_have_namespaces() {
    let field = |ns: &str| {
        format!(
            "<uInt32 name='V'><copy key='k' ns='a'/></uInt32>\
         <uInt32 name='W'><copy key='k' ns='{ns}'/></uInt32>"
        )
    };
    both_ways(
        &program(&field("a")),
        &hex("e0 81 81"),
        &["{\"V\": 1, \"W\": 1}"],
    );
    assert_eq!(decode(&field("b"), "e0 81 81"), ["D5@3 W"]);
}

#[test]
fn every_cut_of_a_stream_is_reported_and_can_go_on() {
    let field = "<uInt32 name='A'><increment/></uInt32><string name='B'><delta/></string>\
                 <decimal name='C'><delta/></decimal><sequence name='S'><string name='D'>\
                 <tail/></string><byteVector name='E'><copy/></byteVector></sequence>";
    let program = program(field);
    let bytes = hex("e0 81 85 80 41 c2 fe 39 45 a3 82 e0 c1 82 00 01 c0 c2 \
                     80 81 c3 80 81 81 80");
    let whole = decode_all(&program, &bytes, true);
    assert_eq!(whole.len(), 2, "{whole:?}");
    for cut in 1..bytes.len() {
        let mut decoder = Decoder::new(program.clone());
        let mut message = Message::new();
        let (mut at, mut lines) = (0, Vec::new());
        for end in [cut, bytes.len()] {
            while let Some(len) = decoder
                .decode_partial(&bytes[at..end], &mut message)
                .unwrap()
            {
                at += len;
                lines.push(fields(&program, &message));
                if at == end {
                    break;
                }
            }
        }
        assert_eq!(lines, whole, "cut at {cut}");
        let cut_off = decode_all(&program, &bytes[..cut], true);
        let complete = cut == 18;
        assert_eq!(
            cut_off.last().unwrap().starts_with("EOF@"),
            !complete,
            "cut at {cut}"
        );
    }
}
