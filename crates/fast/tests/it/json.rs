//! Lines that other programs write.

use crate::common;
use fanfare_fast::{Decimal, Encoder, ErrorCode, Message, Options, Program, Value, json};

const FIELDS: &str = r#"
    <decimal name="D" presence="optional"/><uInt64 name="U" presence="optional"/>
    <int64 name="I" presence="optional"/><string name="S" presence="optional"/>"#;

/// Reads one field; what became of it, or the code and the byte of the line.
fn read(program: &Program, name: &str, value: &str) -> Result<String, (ErrorCode, usize)> {
    let line = format!(r#"{{"template": "T", "fields": {{"{name}": {value}}}}}"#);
    let mut message = Message::new();
    let read = json::read_line(program, &line, &mut message);
    read.map_err(|error| (error.error.code, error.error.offset))?;
    let view = message.view(program).unwrap();
    let (_, value) = view
        .fields()
        .find(|(field, _)| field.name() == name)
        .unwrap();
    Ok(match value {
        Value::Decimal(Decimal { mantissa, exponent }) => format!("{mantissa} {exponent}"),
        Value::Unsigned(value, _) => value.to_string(),
        Value::Signed(value, _) => value.to_string(),
        Value::Ascii(text) => String::from_utf8(text.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn numbers_become_decimals_digit_by_digit() {
    let program = common::program(FIELDS);
    for (number, decimal) in [
        ("12.50", "1250 -2"),
        ("1e5", "1 5"),
        ("-1.5E-3", "-15 -4"),
        // More digits than a double has.
        ("123456789012345.678", "123456789012345678 -3"),
        ("9007199254740993.5", "90071992547409935 -1"),
        ("-0.1234567890123456789", "-1234567890123456789 -19"),
        ("92233720368547758070", "9223372036854775807 1"),
        ("1e64", "10 63"),
        ("1000e-65", "10 -63"),
        ("0e99", "0 0"),
        (r#"{"mantissa": 12.0, "exponent": 1e0}"#, "12 1"),
        (r#"{"exponent": 100, "mantissa": -1}"#, "-1 100"),
    ] {
        assert_eq!(read(&program, "D", number).unwrap(), decimal, "{number}");
    }
    for (number, code) in [
        ("9223372036854775808", ErrorCode::R1),
        ("1e82", ErrorCode::R1),
        ("12e-70", ErrorCode::R1),
        ("1e99999999999999999999", ErrorCode::R1),
        (r#"{"mantissa": 1, "exponent": 128}"#, ErrorCode::R1),
        (r#"{"mantissa": 1.5, "exponent": 0}"#, ErrorCode::R5),
        (r#"{"mantissa": 1}"#, ErrorCode::D1),
        ("true", ErrorCode::D1),
    ] {
        assert_eq!(read(&program, "D", number), Err((code, 34)), "{number}");
    }
}

#[test]
fn numbers_become_integers_however_they_are_written() {
    let program = common::program(FIELDS);
    for (number, integer) in [
        ("18446744073709551615", "18446744073709551615"),
        ("1.8446744073709551615e19", "18446744073709551615"),
        ("9007199254740993.0", "9007199254740993"),
        ("150e-1", "15"),
        ("0e-5", "0"),
        ("-0", "0"),
        ("\"12\"", "12"),
    ] {
        assert_eq!(read(&program, "U", number).unwrap(), integer, "{number}");
    }
    let least = "-9223372036854775808";
    assert_eq!(read(&program, "I", least).unwrap(), least);
    for (number, code) in [
        ("18446744073709551616", ErrorCode::R4),
        ("1e400", ErrorCode::R4),
        ("-1", ErrorCode::R4),
        ("15e-1", ErrorCode::R5),
        ("1e-99999999999999999999", ErrorCode::R5),
    ] {
        assert_eq!(read(&program, "U", number), Err((code, 34)), "{number}");
    }
    for (number, text) in [("12.50", "12.50"), ("-12", "-12"), ("1e3", "1000")] {
        assert_eq!(read(&program, "S", number).unwrap(), text, "{number}");
    }
}

#[test]
fn a_decimal_of_two_constants_needs_no_value() {
    let tick = |presence: &str| {
        format!(
            "<decimal name='Tick'{presence}><exponent><constant value='-2'/></exponent>\
             <mantissa><constant value='5'/></mantissa></decimal>"
        )
    };
    let mandatory = common::program(&tick(""));
    assert_eq!(common::encode_all(&mandatory, &["{}"]), ["c0 81"]);
    let fields = "{\"Tick\": {\"mantissa\": 5, \"exponent\": -2}}";
    common::both_ways(&mandatory, &common::hex("c0 81"), &[fields]);
    let optional = common::program(&tick(" presence='optional'"));
    assert_eq!(
        common::encode_all(&optional, &["{}", fields]),
        ["c0 81", "a0"]
    );
}

/// What a lenient decoder lets pass comes back, byte by byte.
#[test]
fn strings_that_are_not_utf8_keep_their_bytes() {
    let field = "<string name='S' charset='unicode'/>";
    let program = common::program(field);
    let bytes = common::hex("c0 81 83 41 ff 42");
    let expected = r#"{"S": {"raw": "41ff42"}}"#;
    assert_eq!(common::decode_all(&program, &bytes, false), [expected]);
    let options = Options {
        strict: false,
        ..Options::default()
    };
    let (mut message, mut out) = (Message::new(), Vec::new());
    let line = format!(r#"{{"id": 1, "fields": {expected}}}"#);
    json::read_line(&program, &line, &mut message).unwrap();
    let mut encoder = Encoder::with_options(program, options);
    encoder.encode(&message, &mut out).unwrap();
    assert_eq!(out, bytes);
    let program = common::program("<byteVector name='B'/><uInt32 name='U'/><decimal name='D'/>");
    for name in ["B", "U", "D"] {
        let wrong = read(&program, name, r#"{"raw": "41"}"#);
        assert_eq!(wrong, Err((ErrorCode::D1, 34)), "{name}");
    }
}

/// No object of a line has a name twice, so that readers that keep one of them lose nothing.
#[test]
fn fields_of_one_name_have_members_of_their_own() {
    let names = "<templates><template name='Leg'><uInt32 name='Px'/><uInt32 name='Px#3'/>\
         </template><template name='T' id='1'><templateRef name='Leg'/><templateRef name='Leg'/>\
         <group name='G'><templateRef name='Leg'/></group><templateRef/><templateRef/>\
         <uInt32 name='Px' presence='optional'/></template></templates>";
    let program = Program::parse(names).unwrap();
    let ids = program.template_fields(&program.templates()[1]);
    let members: Vec<_> = ids.iter().map(|id| program.field(*id).member()).collect();
    let expected = [
        "Px",
        "Px#3",
        // Px#3 is a name of the templates.
        "Px#2",
        "Px#3#2",
        "G",
        "templateRef",
        "templateRef#2",
        "Px#4",
    ];
    assert_eq!(members, expected);
    let group = program.find("T", "G").unwrap();
    let members = program.children(group).iter();
    let members: Vec<_> = members.map(|id| program.field(*id).member()).collect();
    assert_eq!(members, ["Px", "Px#3"]);
}

/// Lines of 0.3.0 have the name of the first for all fields of one name.
#[test]
fn members_of_one_name_are_read_in_the_order_of_the_fields() {
    let field = "<uInt32 name='A' presence='optional'/>";
    let program = common::program(&field.repeat(3));
    let bytes = "c0 81 82 83 84";
    common::both_ways(
        &program,
        &common::hex(bytes),
        &[r#"{"A": 1, "A#2": 2, "A#3": 3}"#],
    );
    for (fields, expected) in [
        (r#"{"A": 1, "A": 2, "A": 3}"#, bytes),
        (r#"{"A": 1, "A": 2}"#, "c0 81 82 83 80"),
        (r#"{"A": 1, "A#3": 3, "A": 2}"#, bytes),
        (r#"{"A#2": 2}"#, "c0 81 80 83 80"),
    ] {
        assert_eq!(
            common::encode_all(&program, &[fields]),
            [expected],
            "{fields}"
        );
    }
    for (fields, at, text) in [
        (
            r#"{"A": 1, "A": 2, "A": 3, "A": 4}"#,
            50,
            "duplicate member \"A\"",
        ),
        (r#"{"A#2": 2, "A#2": 3}"#, 38, "duplicate member \"A#2\""),
        (r#"{"A#4": 4}"#, 28, "no field is named \"A#4\""),
    ] {
        let line = format!(r#"{{"id": 1, "fields": {fields}}}"#);
        let error = json::read_line(&program, &line, &mut Message::new()).unwrap_err();
        assert_eq!(
            (error.error.offset, &*error.message),
            (at, text),
            "{fields}"
        );
    }
}

/// Lines with what is wrong with them, and at which byte.
#[rustfmt::skip]
const WRONG: &[(&str, ErrorCode, usize, &str)] = &[
    ("", ErrorCode::Input, 0, "the line ends inside the message"),
    ("[]", ErrorCode::Input, 0, "a message must be an object"),
    (
        r#"{"fields": {}}"#,
        ErrorCode::Input,
        0,
        "a message must have a template or an id",
    ),
    (
        r#"{"template": 1}"#,
        ErrorCode::Input,
        13,
        "the name of the template must be a string",
    ),
    (
        r#"{"id": "1"}"#,
        ErrorCode::Input,
        7,
        "the id of the template must be a number",
    ),
    (
        r#"{"id": 7, "fields": {}}"#,
        ErrorCode::D9,
        0,
        "no such template: id 7",
    ),
    (
        r#"{"template": "t"}"#,
        ErrorCode::D9,
        0,
        "no such template: \"t\"",
    ),
    (r#"{"id": 2, "template": "T"}"#, ErrorCode::D9, 0, "no such template: \"T\" with id 2"),
    (
        r#"{"id": 1}"#,
        ErrorCode::Input,
        0,
        "a message must have an object of fields",
    ),
    (
        r#"{"id": 1, "fields": []}"#,
        ErrorCode::Input,
        20,
        "the fields must be an object",
    ),
    (r#"{"id": 1, "fields": {"x": 1}}"#, ErrorCode::Input, 26, "no field is named \"x\""),
    (r#"{"id": 1, "fields": {"U": 1, "U": 2}}"#, ErrorCode::Input, 34,
        "duplicate member \"U\""),
    (r#"{"id": 1, "fields": {"U": 1}, "fields": {"U": 2}}"#, ErrorCode::Input, 40,
        "duplicate member \"fields\""),
    (r#"{"template": "T", "template": "U", "fields": {}}"#, ErrorCode::Input, 30,
        "duplicate member \"template\""),
    (r#"{"id": 1, "feilds": {"U": 1}, "fields": {}}"#, ErrorCode::Input, 20,
        "a message has a template, an id and fields, but no \"feilds\""),
];

#[test]
fn what_is_no_message_is_told_with_its_place() {
    let program = common::program(FIELDS);
    for &(line, code, at, text) in WRONG {
        let error = json::read_line(&program, line, &mut Message::new()).unwrap_err();
        assert_eq!((error.error.code, error.error.offset), (code, at), "{line}");
        assert_eq!(error.message, text, "{line}");
    }
}
