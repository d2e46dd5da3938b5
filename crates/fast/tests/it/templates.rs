//! Template documents: what is accepted, and each static error with its place.

use fanfare_fast::program::{Op, Reset};
use fanfare_fast::template::{Dictionary, Initial, Kind, OperatorKind, TemplateSet};
use fanfare_fast::value::IntType;
use fanfare_fast::{Decimal, ErrorCode, Program, template};

use crate::common::{both_ways, hex};

/// The code, line and column of a document's error.
fn error(xml: &str) -> (ErrorCode, u32, u32) {
    let error = Program::parse(xml).expect_err(xml);
    (error.code, error.line, error.column)
}

fn field_error(field: &str) -> ErrorCode {
    error(&format!("<template name=\"T\" id=\"1\">{field}</template>")).0
}

#[test]
fn namespaces_come_with_a_prefix_without_and_not_at_all() {
    let td = "http://www.fixprotocol.org/ns/fast/td/1.1";
    for xml in [
        "<template name='T' id='1'><uInt32 name='A'/></template>".to_owned(),
        "<templates xmlns=''><template name='T' id='1' xmlns=''><uInt32 name='A'/></template>\
         </templates>"
            .to_owned(),
        format!(
            "<templates xmlns='{td}'><template name='T' id='1'><uInt32 name='A'/></template>\
                 </templates>"
        ),
        format!("<t:template xmlns:t='{td}' name='T' id='1'><t:uInt32 name='A'/></t:template>"),
        format!(
            "<?xml version='1.0'?><templates xmlns='{td}' xmlns:x='http://other'>\
                 <x:note>text</x:note><template name='T' id='01' x:mark='1'><uInt32 name='A'>\
                 <x:hint/></uInt32></template></templates>"
        ),
    ] {
        let program = Program::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        let template = program.by_id(1).unwrap();
        assert_eq!(template.name(), "T");
        assert_eq!(program.template_fields(template).len(), 1, "{xml}");
    }
}

#[test]
fn reset_has_many_spellings() {
    for (attribute, expected) in [
        ("reset='Y'", Reset::Dictionaries),
        ("reset='yes'", Reset::Dictionaries),
        ("reset='true'", Reset::Dictionaries),
        ("reset='1'", Reset::Dictionaries),
        (
            "xmlns:scp='http://www.fixprotocol.org/ns/fast/scp/1.1' scp:reset='yes'",
            Reset::Dictionaries,
        ),
        ("reset='no'", Reset::None),
        ("", Reset::None),
    ] {
        let xml = format!("<template name='T' id='1' {attribute}/>");
        let program = Program::parse(&xml).unwrap();
        assert_eq!(program.by_id(1).unwrap().reset(), expected, "{attribute}");
    }
    let program = Program::parse("<template name='T'/>").unwrap();
    assert_eq!(program.by_name("T").unwrap().id(), None);
    assert_eq!(program.by_id(120).unwrap().reset(), Reset::All);
}

#[test]
fn s1_documents_are_refused_with_their_place() {
    let s1 = ErrorCode::S1;
    assert_eq!(
        error("<templates>\n  <template>\n </templates>"),
        (s1, 3, 2)
    );
    assert_eq!(
        error(
            "<templates>\n <template name='T'>\n  <int31 name='A'/></template>\
                      </templates>"
        ),
        (s1, 3, 3)
    );
    assert_eq!(error(""), (s1, 1, 1));
    assert_eq!(error("<orders/>").0, s1);
    for fields in [
        "<uInt32/>",
        "<uInt32 name=''/>",
        "<uInt32 name='A' presence='maybe'/>",
        "<uInt32 name='A'><copie/></uInt32>",
        "<uInt32 name='A'><copy/><delta/></uInt32>",
        "<string name='A' charset='latin'/>",
        "<decimal name='A'><exponent/><exponent/></decimal>",
        "<decimal name='A'><exponent/><copy/></decimal>",
        "<group name='G'><length/></group>",
        "<sequence name='S'><uInt32 name='A'/><length/></sequence>",
        "<sequence name='S'><length/><length/></sequence>",
        "<byteVector name='A'><length name='L'><copy/></length></byteVector>",
        "<templateRef name='T'/>",
        "<templateRef><uInt32 name='A'/></templateRef>",
        "<uInt32 name='A'><copy dictionary=''/></uInt32>",
    ] {
        assert_eq!(field_error(fields), s1, "{fields}");
    }
    let two = |a: &str, b: &str| {
        error(&format!(
            "<templates><template {a}/><template {b}/>\
                                                  </templates>"
        ))
        .0
    };
    assert_eq!(two("name='A' id='1'", "name='B' id='01'"), s1);
    assert_eq!(two("name='A' id='1'", "name='A' id='2'"), s1);
    let definitions = "<define name='P'><int64/></define>\n <define name=' P '><decimal/></define>";
    let definitions = format!("<templates>{definitions}<template name='T'/></templates>");
    assert_eq!(error(&definitions), (s1, 2, 2));
    assert_eq!(error("<template name='A' id='x'/>").0, s1);
}

#[test]
fn a_document_cannot_explode() {
    let bomb = "<!DOCTYPE t [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;'>]>\
                <template name='&b;' id='1'/>";
    assert_eq!(error(bomb).0, ErrorCode::S1);
    let mut references = String::from("<template name='t0'><uInt32 name='A'/></template>");
    for level in 1..40 {
        let inner = format!("<templateRef name='t{}'/>", level - 1).repeat(10);
        references.push_str(&format!("<template name='t{level}'>{inner}</template>"));
    }
    assert_eq!(
        error(&format!("<templates>{references}</templates>")).0,
        ErrorCode::S1
    );
    let deep = "<group name='G'>".repeat(200) + &"</group>".repeat(200);
    assert_eq!(field_error(&deep), ErrorCode::S1);
    let cycle = "<templates><template name='A'><templateRef name='B'/></template>\
                 <template name='B'><group name='G'><templateRef name='A'/></group></template>\
                 </templates>";
    assert_eq!(error(cycle).0, ErrorCode::S1);
}

/// Templates alone: a program of so many fields is refused in any case.
#[test]
fn definitions_cannot_explode() {
    let read = |definitions: String| {
        let xml = format!(
            "<templates>{definitions}<template name='T'><field name='F'><type name='D0'/></field>\
             </template></templates>"
        );
        let read = TemplateSet::parse(&xml);
        read.map(|_| ()).map_err(|error| error.code)
    };
    let group = |level: usize, count: usize| {
        let field = format!("<field name='F'><type name='D{}'/></field>", level + 1);
        let fields = field.repeat(count);
        format!("<define name='D{level}'><group name='G'>{fields}</group></define>")
    };
    let bits = "<boolean name='B'/>".repeat(64);
    let value = "v".repeat(1 << 20);
    for (innermost, levels, count) in [
        ("<uInt32/>".to_owned(), 6, 10),
        (format!("<bitGroup>{bits}</bitGroup>"), 4, 10),
        (
            format!("<string><constant value='{value}'/></string>"),
            1,
            65,
        ),
    ] {
        let define = |count| {
            let outer: String = (0..levels).map(|level| group(level, count)).collect();
            format!("{outer}<define name='D{levels}'>{innermost}</define>")
        };
        assert_eq!(read(define(count)), Err(ErrorCode::S1));
        assert_eq!(read(define(2)), Ok(()));
    }
}

#[test]
fn documents_come_in_several_encodings() {
    let named = |text: &str| {
        let program = Program::parse(text).unwrap();
        program.templates()[0].name().to_owned()
    };
    let text = |encoding: &str| {
        format!("<?xml version='1.0' encoding=\"{encoding}\"?>\n<template name='Té𝄞' id='1'/>")
    };
    let units: Vec<u16> = text("UTF-16").encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    let utf8 = text("UTF-8").into_bytes();
    for bytes in [
        [&[0xff, 0xfe], &little[..]].concat(),
        [&[0xfe, 0xff], &big[..]].concat(),
        little.clone(),
        big,
        [&[0xef, 0xbb, 0xbf], &utf8[..]].concat(),
        utf8,
    ] {
        assert_eq!(named(&template::decode(&bytes).unwrap()), "Té𝄞");
    }
    for name in ["iso-8859-1", "latin1", "ISO_8859-1"] {
        let front = format!("<?xml version = '1.0' encoding = '{name}' ?>");
        let latin = [front.as_bytes(), b"<template name='T\xe9' id='1'/>"].concat();
        assert_eq!(named(&template::decode(&latin).unwrap()), "Té");
    }
    // A document that was converted may declare its former encoding.
    for name in ["UTF-16", "UTF-16LE", "utf-16be"] {
        let converted = template::decode(text(name).as_bytes()).unwrap();
        assert_eq!(named(&converted), "Té𝄞");
    }
    // Most encodings contain ASCII.
    for name in ["windows-1251", "cp1252", "ISO-8859-15", "UTF_8", "UCS-2"] {
        let ascii = text(name).replace("é𝄞", "");
        assert_eq!(named(&template::decode(ascii.as_bytes()).unwrap()), "T");
    }
    let other = text("windows-1251");
    let error = template::decode(other.as_bytes()).unwrap_err();
    assert_eq!(
        (error.code, error.line, error.column),
        (ErrorCode::S1, 1, 31)
    );
    let told = "the encoding \"windows-1251\" is not supported";
    assert!(error.message.starts_with(told), "{}", error.message);
    for (bytes, place) in [
        (&b"<templates>\n <\xe9"[..], (2, 3)),
        (&little[..little.len() - 1], (2, 29)),
        (&[0xff, 0xfe, b'<', 0, 0, 0xd8], (1, 2)),
    ] {
        let error = template::decode(bytes).unwrap_err();
        assert_eq!(
            (error.code, (error.line, error.column)),
            (ErrorCode::S1, place)
        );
    }
}

#[test]
fn s2_operators_must_apply() {
    for field in [
        "<string name='A'><increment/></string>",
        "<byteVector name='A'><increment/></byteVector>",
        "<decimal name='A'><increment/></decimal>",
        "<decimal name='A'><tail/></decimal>",
        "<uInt32 name='A'><tail/></uInt32>",
        "<decimal name='A'><exponent><tail/></exponent></decimal>",
        "<sequence name='A'><length><tail/></length></sequence>",
    ] {
        assert_eq!(field_error(field), ErrorCode::S2, "{field}");
    }
}

#[test]
fn s3_initial_values_must_fit() {
    for field in [
        "<uInt8 name='A'><copy value='256'/></uInt8>",
        "<uInt32 name='A'><copy value='-1'/></uInt32>",
        "<int32 name='A'><copy value='1.5'/></int32>",
        "<int32 name='A'><copy value=''/></int32>",
        "<decimal name='A'><copy value='1e3'/></decimal>",
        "<decimal name='A'><mantissa><copy value='1.5'/></mantissa></decimal>",
        "<byteVector name='A'><copy value='abc'/></byteVector>",
        "<string name='A'><copy value='\u{e9}'/></string>",
    ] {
        assert_eq!(field_error(field), ErrorCode::S3, "{field}");
    }
}

const BYTE: &str = "<uInt8 name='A'><copy value='7'/></uInt8>";
const TEXT: &str = "<string name='A'><copy/></string>";
const UNICODE: &str = "<string name='A' charset='unicode'><copy/></string>";
const DECIMAL: &str = "<decimal name='A'><copy/></decimal>";
const PARTS: &str = "<decimal name='A'><exponent><copy/></exponent></decimal>";
const SEQUENCE: &str = "<sequence name='A'><length><copy/></length></sequence>";

/// Returns the error of a program whose field has this operator and this initial value, which its
/// document does not have.
fn without_document(field: &str, kind: OperatorKind, initial: Option<Initial>) -> String {
    let document = format!("<template name='T' id='1'>{field}</template>");
    let mut set = TemplateSet::parse(&document).unwrap();
    assert!(Program::compile(&set).is_ok());
    let operator = match &mut set.templates[0].body[0].kind {
        Kind::Int(_, operator) | Kind::Text(_, operator) | Kind::Decimal(operator) => operator,
        Kind::SplitDecimal { exponent, .. } => exponent,
        Kind::Sequence { length, .. } => &mut length.operator,
        other => panic!("{other:?}"),
    };
    (operator.kind, operator.initial) = (kind, initial);
    Program::compile(&set).unwrap_err().to_string()
}

#[test]
fn templates_without_a_document_are_checked_by_the_same_rules() {
    for (field, name) in [
        (BYTE, "uInt8"),
        (DECIMAL, "decimal"),
        (PARTS, "int32"),
        (SEQUENCE, "uInt32"),
    ] {
        let error = without_document(field, OperatorKind::Tail, None);
        let expected = format!("S2 at 1:27: A: tail does not apply to {name}");
        assert_eq!(error, expected);
    }
    let text = |bytes: &[u8]| Initial::Text(bytes.to_vec());
    let unlike = Decimal {
        mantissa: 10,
        exponent: 0,
    };
    for (field, initial, name) in [
        (BYTE, text(b"7"), "uInt8"),
        (BYTE, Initial::Int(256), "uInt8"),
        (TEXT, Initial::Int(7), "ASCII string"),
        (TEXT, text(b"\xe9"), "ASCII string"),
        (UNICODE, text(b"\xe9"), "Unicode string"),
        (DECIMAL, Initial::Decimal(unlike), "decimal"),
    ] {
        let error = without_document(field, OperatorKind::Copy, Some(initial));
        let expected = format!("S3 at 1:27: A: the initial value is not a valid {name}");
        assert_eq!(error, expected);
    }
    let error = without_document(BYTE, OperatorKind::Constant, None);
    assert_eq!(error, "S4 at 1:27: A: constant without a value");
    let error = without_document(BYTE, OperatorKind::Default, None);
    assert_eq!(error, "S5 at 1:27: A: mandatory default without a value");
}

#[test]
fn s4_and_s5_want_initial_values() {
    assert_eq!(
        field_error("<uInt32 name='A'><constant/></uInt32>"),
        ErrorCode::S4
    );
    let optional = "<uInt32 name='A' presence='optional'><constant/></uInt32>";
    assert_eq!(field_error(optional), ErrorCode::S4);
    assert_eq!(
        field_error("<uInt32 name='A'><default/></uInt32>"),
        ErrorCode::S5
    );
    let mantissa =
        "<decimal name='A' presence='optional'><mantissa><default/></mantissa></decimal>";
    assert_eq!(field_error(mantissa), ErrorCode::S5);
    let legal = "<template name='T'><decimal name='A' presence='optional'><exponent><default/>\
                 </exponent></decimal></template>";
    assert!(Program::parse(legal).is_ok());
    let place = error("<template name='T'>\n<uInt32 name='A'>\n  <constant/></uInt32></template>");
    assert_eq!(place, (ErrorCode::S4, 3, 3));
}

#[test]
fn types_of_fast_1_2_are_integers_with_names() {
    let program = Program::parse(
        "<templates><define name='Side'><enum><element name='Buy'/><element name='Sell'/></enum>\
         </define><define name='Code'><string charset='unicode'/></define>\
         <template name='T' id='1'>\
         <boolean name='Open'><default value='true'/></boolean>\
         <timestamp name='At' unit='microsecond'><delta/></timestamp>\
         <set name='Flags' presence='optional'><element name='A'/><element name='B'/>\
         <element name='C'/><copy value='A C'/></set>\
         <field name='Side' id='54' presence='optional'><type name='Side'/>\
         <default value='Sell'/></field>\
         <field name='Code'><type name='Code'/></field></template></templates>",
    )
    .unwrap();
    let fields = "{\"Open\": 1, \"At\": -5, \"Flags\": 5, \"Side\": 1, \"Code\": \"é\"}";
    both_ways(&program, &hex("c0 81 fb 82 c3 a9"), &[fields]);
    assert_eq!(
        field_error("<field name='A'><type name='Other'/></field>"),
        ErrorCode::S1
    );
    assert_eq!(field_error("<field name='A'/>"), ErrorCode::S1);
    assert_eq!(
        field_error("<boolean name='A'><copy value='maybe'/></boolean>"),
        ErrorCode::S3
    );
}

/// As for every other type, the operator of a field is not that of the type it names.
#[test]
fn a_field_may_have_another_operator_than_its_decimal() {
    let document = |field: &str| {
        format!(
            "<templates><define name='P'><decimal><exponent><default value='-2'/></exponent>\
             <mantissa><delta/></mantissa></decimal></define>\
             <template name='T' id='1'><field name='Px'>{field}</field></template></templates>"
        )
    };
    let op = |program: &Program| {
        let field = program.find("T", "Px").unwrap();
        *program.op(field)
    };
    let price = "{\"Px\": {\"mantissa\": 1250, \"exponent\": -2}}";
    for own in [
        "<type name='P'/><copy/>",
        "<type name='P'><copy/></type>",
        "<copy/><type name='P'/>",
    ] {
        let program = Program::parse(&document(own)).unwrap();
        let op = op(&program);
        let is_copy = matches!(op, Op::Decimal(op) if op.operator == OperatorKind::Copy);
        assert!(is_copy, "{own}: {op:?}");
        both_ways(&program, &hex("e0 81 fe 09 e2 80"), &[price, price]);
    }
    let program = Program::parse(&document("<type name='P'/>")).unwrap();
    assert!(matches!(op(&program), Op::SplitDecimal { .. }));
    both_ways(&program, &hex("c0 81 09 e2 80 80"), &[price, price]);
    for two in [
        "<type name='P'><copy/></type><copy/>",
        "<decimal><exponent><copy/></exponent></decimal><copy/>",
        "<type name='P'><mantissa><copy/></mantissa></type><copy/>",
    ] {
        assert_eq!(error(&document(two)).0, ErrorCode::S1, "{two}");
    }
}

#[test]
fn the_type_of_a_field_has_a_dictionary_and_a_namespace_for_what_is_in_it() {
    let field = "<uInt32 name='A'><copy/></uInt32>";
    let group = format!("<group dictionary='d' ns='n'>{field}</group>");
    let sequence = format!(
        "<sequence dictionary='d' ns='n'><length name='N'><copy/></length>{field}</sequence>"
    );
    let set = TemplateSet::parse(&format!(
        "<templates dictionary='e'><define name='G'>{group}</define>\
         <define name='S'>{sequence}</define><template name='T' id='1' ns='m'>\
         <field name='F'><type name='G'/></field><field name='G'>{group}</field>\
         <field name='S'><type name='S'/></field></template></templates>"
    ));
    for field in &set.unwrap().templates[0].body {
        let (length, block) = match &field.kind {
            Kind::Group(block) => (None, block),
            Kind::Sequence { length, entry } => (Some(&length.operator), entry),
            other => panic!("{other:?}"),
        };
        let inside = &block.body[0];
        let Kind::Int(_, operator) = &inside.kind else {
            panic!("{inside:?}");
        };
        assert_eq!([&*field.name.ns, &*inside.name.ns], ["m", "n"]);
        for operator in length.into_iter().chain([operator]) {
            let dictionary = Dictionary::User("d".to_owned());
            assert_eq!(operator.dictionary, dictionary, "{}", field.name.local);
        }
    }
}

#[test]
fn the_namespace_of_a_type_is_that_of_its_members_and_its_key() {
    let set = TemplateSet::parse(
        "<template name='T' id='1' ns='m'><field name='F'><bitGroup ns='n'><uInt2 name='A'/>\
         <copy key='K'/></bitGroup></field></template>",
    )
    .unwrap();
    let field = &set.templates[0].body[0];
    let Kind::Bits(group) = &field.kind else {
        panic!("{field:?}");
    };
    let key = group.operator.key.as_ref().unwrap();
    let member = &group.members[0].0.name;
    assert_eq!([&*field.name.ns, &*member.ns, &*key.ns], ["m", "n", "n"]);
}

#[test]
fn the_presence_and_operator_of_a_field_may_be_those_of_its_type() {
    let program = |ty: &str| {
        let definitions = "<define name='P'><uInt32/></define>\
             <define name='Q'><uInt32 presence='optional'/></define>\
             <define name='R'><type name='P' presence='optional'/></define>\
             <define name='O'><type name='R'/></define>\
             <define name='C'><type name='P'><copy/></type></define>";
        let template = format!("<template name='T' id='1'><field name='A'>{ty}</field></template>");
        Program::parse(&format!("<templates>{definitions}{template}</templates>")).unwrap()
    };
    for optional in [
        "<uInt32 presence='optional'/>",
        "<type name='P' presence='optional'/>",
        "<type name='Q'/>",
        "<type name='R'/>",
        "<type name='O'/>",
    ] {
        let expected = ["{\"A\": null}", "{\"A\": 5}"];
        both_ways(&program(optional), &hex("c0 81 80 80 86"), &expected);
    }
    let copied = ["{\"A\": 5}"; 2];
    both_ways(&program("<type name='C'/>"), &hex("e0 81 85 80"), &copied);
}

/// A type without a namespace of its own is one of the namespace around it, or of the document's.
#[test]
fn definitions_have_namespaces() {
    let parse = |fields: &str| {
        TemplateSet::parse(&format!(
            "<templates ns='d'><define name='P'><int8/></define>\
             <define name='P' ns='a'><uInt32/></define><define name='P' ns='b'><uInt64/></define>\
             <define name='Q' ns='b'><type name='P'/></define>\
             <template name='T'>{fields}</template></templates>"
        ))
    };
    for (field, expected) in [
        ("<field name='F'><type name='P'/></field>", IntType::Int8),
        (
            "<field name='F'><type name='P' ns='a'/></field>",
            IntType::UInt32,
        ),
        (
            "<field name='F'><type name='P' ns='b'/></field>",
            IntType::UInt64,
        ),
        (
            "<field name='F' ns='b'><type name='P'/></field>",
            IntType::UInt64,
        ),
        (
            "<field name='F' ns='c'><type name='P'/></field>",
            IntType::Int8,
        ),
        (
            "<field name='F'><type name='Q' ns='b'/></field>",
            IntType::UInt64,
        ),
    ] {
        let kind = &parse(field).unwrap().templates[0].body[0].kind;
        assert!(
            matches!(kind, Kind::Int(ty, _) if *ty == expected),
            "{field}: {kind:?}"
        );
    }
    // The fields of a group have the types of its definition's namespace, or of their own.
    for (field, expected) in [
        ("<field name='X'>", IntType::UInt64),
        ("<field name='X' ns='a'>", IntType::UInt32),
    ] {
        let set = TemplateSet::parse(&format!(
            "<templates ns='d'><define name='P'><int8/></define>\
             <define name='P' ns='a'><uInt32/></define><define name='P' ns='b'><uInt64/></define>\
             <define name='G' ns='b'><group>{field}<type name='P'/></field></group></define>\
             <template name='T'><field name='F'><type name='G' ns='b'/></field></template>\
             </templates>"
        ));
        let kind = &set.unwrap().templates[0].body[0].kind;
        let Kind::Group(group) = kind else {
            panic!("{kind:?}");
        };
        let inner = &group.body[0];
        assert!(
            matches!(&inner.kind, Kind::Int(ty, _) if *ty == expected),
            "{field}: {inner:?}"
        );
    }
    let unknown = parse("<field name='F'><type name='P' ns='c'/></field>");
    assert_eq!(unknown.unwrap_err().code, ErrorCode::S1);
}

const WITH_EVERYTHING: &str = "<templates xmlns='http://www.fixprotocol.org/ns/fast/td/1.1'
 xmlns:x='http://other' xmlns:scp='http://www.fixprotocol.org/ns/fast/scp/1.1' ns='n' templateNs='t'
 dictionary='d' x:mark='1'><x:note any='1'>text <string/></x:note>
 <template name='T' id='1' scp:reset='yes' dictionary='template' ns='m' templateNs='u'>
 <typeRef name='M' ns='o'/><uInt32 name='A' ns='p' id='34' presence='optional' x:more='2'>
 <copy dictionary='type' key='K' ns='q' value='1'/></uInt32>
 <string name='B' charset='unicode'><length name='L' id='9'/><default value='b'/></string>
 <decimal name='C'><exponent><constant value='0'/></exponent><mantissa><delta/></mantissa></decimal>
 <sequence name='S' presence='optional' dictionary='global'><length name='N' id='10'/>
 <x:hint/><int8 name='D'/></sequence><group name='G' dictionary='e'><templateRef/></group>
 <timestamp name='E' unit='microsecond' epoch='unix'/><boolean name='F'/></template></templates>";

#[test]
fn documents_are_held_against_the_schema() {
    Program::parse(WITH_EVERYTHING).unwrap();
    let field = |field: &str| {
        format!("<templates>\n<template name='T' id='1'>{field}</template></templates>")
    };
    for (xml, place, message) in [
        (
            field("<uInt32 name='A' presense='optional'/>"),
            (2, 44),
            "unknown attribute `presense` of <uInt32>",
        ),
        (
            field("<uInt32 name='A' charset='unicode'/>"),
            (2, 44),
            "unknown attribute `charset` of <uInt32>",
        ),
        (
            field("<uInt8 name='A' bits='5'/>"),
            (2, 43),
            "unknown attribute `bits` of <uInt8>",
        ),
        (
            field("<string name='A'><default value='' key='k'/></string>"),
            (2, 62),
            "unknown attribute `key` of <default>",
        ),
        (
            field("<string name='A'>\n  mark</string>"),
            (3, 3),
            "text \"mark\" in <string>",
        ),
        (
            field("<uInt32 name='A'><copy> 1</copy></uInt32>"),
            (2, 51),
            "text \"1\" in <copy>",
        ),
        (
            field("<uInt32 name='A'><copy><note/></copy></uInt32>"),
            (2, 50),
            "unknown element <note> in <copy>",
        ),
        (
            field("<typeRef name='A'><uInt32 name='B'/></typeRef>"),
            (2, 45),
            "unknown element <uInt32> in <typeRef>",
        ),
        (
            "<templates>é <template name='T' versión='1'/></templates>".to_owned(),
            (1, 12),
            "text \"é\" in <templates>",
        ),
        (
            "<templates version='1'><template name='T'/></templates>".to_owned(),
            (1, 12),
            "unknown attribute `version` of <templates>",
        ),
    ] {
        let error = Program::parse(&xml).expect_err(&xml);
        assert_eq!(
            (error.code, error.line, error.column),
            (ErrorCode::S1, place.0, place.1),
            "{xml}"
        );
        assert_eq!(error.message, message);
        let (program, deviations) = Program::parse_lenient(&xml).unwrap();
        assert_eq!(deviations.first()[0], error);
        assert_eq!(program.templates()[0].name(), "T");
    }
}

#[test]
fn what_is_left_out_has_no_effect() {
    let template = |id, field: &str| format!("<template name='T{id}' id='{id}'>{field}</template>");
    let both = |field: &str| {
        let templates = template(1, field) + &template(2, field);
        format!("<templates>{templates}</templates>")
    };
    for (field, fields) in [
        (
            "<uInt32 name='A' dictionary='template'><copy/></uInt32>",
            "{\"A\": 5}",
        ),
        (
            "<sequence name='S'><length dictionary='template'><copy/></length></sequence>",
            "{\"S\": [{}, {}, {}, {}, {}]}",
        ),
    ] {
        let (program, deviations) = Program::parse_lenient(&both(field)).unwrap();
        let error = &deviations.first()[0];
        assert!(
            error.message.starts_with("unknown attribute `dictionary`"),
            "{error}"
        );
        assert_eq!(
            (deviations.count(), program.previous_values()),
            (2, 1),
            "{field}"
        );
        both_ways(&program, &hex("e0 81 85 c0 82"), &[fields, fields]);
    }
}

#[test]
fn what_says_what_is_encoded_is_never_left_out() {
    for field in [
        "<int31 name='A'/>",
        "<uInt32 name='A'><copie/></uInt32>",
        "<uInt32 nam='A'/>",
    ] {
        let xml = format!("<template name='T'>{field}</template>");
        assert!(Program::parse_lenient(&xml).is_err(), "{field}");
    }
}

#[test]
fn deviations_are_counted_beyond_those_that_are_kept() {
    let fields = "<uInt32 name='A' x='1' y='2'/>".repeat(2000);
    let xml = format!("<template name='T'>{fields}</template>");
    let (_, deviations) = Program::parse_lenient(&xml).unwrap();
    assert_eq!((deviations.count(), deviations.first().len()), (4000, 1000));
}

#[test]
fn names_references_and_initial_values_have_limits() {
    let name = |len| format!("<template name='{}'/>", "n".repeat(len));
    assert!(Program::parse(&name(255)).is_ok());
    assert_eq!(error(&name(256)), (ErrorCode::S1, 1, 1));
    let mut doubling = "<templates><template name='t0'/>".to_owned();
    for level in 1..60 {
        let inner = format!("<templateRef name='t{}'/>", level - 1).repeat(2);
        doubling += &format!("<template name='t{level}'>{inner}</template>");
    }
    assert_eq!(error(&(doubling + "</templates>")).0, ErrorCode::S1);
    let value = "v".repeat(1 << 20);
    let copies = "<templateRef name='A'/>".repeat(64);
    let xml = format!(
        "<templates><template name='A'><string name='S'><constant value='{value}'/></string>\
         </template><template name='B'>{copies}</template></templates>"
    );
    assert_eq!(error(&xml).0, ErrorCode::S1);
}

/// Held against a smaller document in the same process, so that a slow machine makes no difference.
#[test]
fn loading_does_not_grow_with_the_square() {
    let templates = |count| {
        let one = |i| {
            format!(
                "<template name='T{i}' id='{}'><uInt32 name='A'><copy/></uInt32>\
                 <uInt32 name='B'><copy/></uInt32><uInt32 name='C'><copy/></uInt32></template>",
                i + 200
            )
        };
        format!(
            "<templates>{}</templates>",
            (0..count).map(one).collect::<String>()
        )
    };
    let fields = |count| {
        let one = |i| format!("<uInt32 name='A{i}'><constant value='1'/></uInt32>");
        let lanes = "<uInt32 name='L'><copy/></uInt32>".repeat(4);
        format!(
            "<template name='T' id='1'>{lanes}{}</template>",
            (0..count).map(one).collect::<String>()
        )
    };
    let documents: [&dyn Fn(usize) -> String; 2] = [&templates, &fields];
    for document in documents {
        let time = |count: usize| {
            let xml = document(count);
            let load = || {
                let start = std::time::Instant::now();
                let program = Program::parse(&xml).unwrap();
                assert!(!fanfare_fast::codegen::generate_from(&program, &xml).is_empty());
                start.elapsed()
            };
            // The best of a few, as the machine does other things, too.
            (0..3).map(|_| load()).min().unwrap()
        };
        let (few, many) = (time(500), time(8_000));
        // Sixteen times as many: 16 by the line, 256 by the square.
        assert!(many < few * 100, "{many:?} for {few:?}");
    }
}
