//! FAST to FIX tag=value and back.

use fanfare_fast::fix::{self, FixError};
use fanfare_fast::{ErrorCode, Message, Program, json};

use crate::common;

/// Reads fields written with `|` into a message of template T: its fields as JSON.
fn from_fix(program: &Program, text: &str) -> Result<String, FixError> {
    let bytes = text.replace('|', "\u{1}").into_bytes();
    let fields = fix::split_fields(&bytes)?;
    let mut message = Message::new();
    fix::read_fields(
        program,
        program.by_name("T").unwrap(),
        &fields,
        &mut message,
    )?;
    Ok(common::fields(program, &message))
}

/// Writes a message of template T, given as JSON, as FIX with `|`.
fn to_fix(program: &Program, fields: &str) -> String {
    let mut message = Message::new();
    let line = format!("{{\"template\": \"T\", \"fields\": {fields}}}");
    json::read_line(program, &line, &mut message).unwrap();
    let mut out = Vec::new();
    fix::write_body(message.view(program).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap().replace('\u{1}', "|")
}

const TEMPLATE: &str = "<uInt32 name='Seq' id='34'/>\
    <string name='Type' id='35'><constant value='X'/></string>\
    <string name='NoTag'><constant value='n'/></string>\
    <group name='G' presence='optional'><int32 name='Y' id='60' presence='optional'/></group>\
    <sequence name='Entries' presence='optional'><length name='N' id='268'/>\
    <uInt32 name='Action' id='279' presence='optional'/>\
    <decimal name='Px' id='270' presence='optional'/>\
    <sequence name='Parties' presence='optional'><length name='M' id='453'/>\
    <string name='Party' id='448'/></sequence></sequence>\
    <string name='Text' id='58' presence='optional'/>";

#[test]
fn messages_become_fields_and_come_back() {
    let program = common::program(TEMPLATE);
    let entries = "[{\"Action\": 1, \"Px\": {\"mantissa\": 1050, \"exponent\": -2}, \
        \"Parties\": [{\"Party\": \"A\"}, {\"Party\": \"B\"}]}, \
        {\"Action\": null, \"Px\": {\"mantissa\": -5, \"exponent\": 0}, \"Parties\": null}, \
        {\"Action\": 2, \"Px\": null, \"Parties\": []}]";
    let fields = format!(
        "{{\"Seq\": 7, \"Type\": \"X\", \"NoTag\": \"n\", \"G\": {{\"Y\": -3}}, \
         \"Entries\": {entries}, \"Text\": \"end\"}}"
    );
    let text = "35=X|34=7|60=-3|268=3|279=1|270=10.50|453=2|448=A|448=B|270=-5|279=2|453=0|\
                58=end|";
    assert_eq!(to_fix(&program, &fields), text);
    assert_eq!(from_fix(&program, text).unwrap(), fields);
}

#[test]
fn entries_may_have_any_order_behind_their_delimiter() {
    let program = common::program(TEMPLATE);
    let fields = from_fix(&program, "268=2|270=1|279=0|270=2|279=1|34=1|").unwrap();
    assert!(
        fields.contains("\"Action\": 0, \"Px\": {\"mantissa\": 1,"),
        "{fields}"
    );
    assert!(
        fields.contains("\"Action\": 1, \"Px\": {\"mantissa\": 2,"),
        "{fields}"
    );
    assert!(
        fields.contains("\"Text\": null") && fields.contains("\"G\": null"),
        "{fields}"
    );
}

/// Action(279) may belong to the first entry, behind its delimiter, or begin the second one. This
/// is what a message is written as whose first entry has no Action.
#[test]
fn entries_that_can_be_cut_in_two_ways_are_refused() {
    let program = common::program(TEMPLATE);
    let text = "268=2|270=1|279=2|270=3|";
    let entries = "[{\"Action\": null, \"Px\": {\"mantissa\": 1, \"exponent\": 0}}, \
        {\"Action\": 2, \"Px\": {\"mantissa\": 3, \"exponent\": 0}}]";
    let fields = format!("{{\"Seq\": 1, \"Entries\": {entries}}}");
    assert_eq!(to_fix(&program, &fields), format!("35=X|34=1|{text}"));
    for text in [text, "34=1|268=2|279=1|453=0|270=1|453=0|"] {
        let refused = from_fix(&program, text);
        assert_eq!(refused, Err(FixError::Ambiguous(268)), "{text}");
    }
    let text = FixError::Ambiguous(268).to_string();
    assert_eq!(text, "two ways to cut the entries after field 268");
    // One of the two ways has another number of entries.
    for text in [
        "34=1|268=3|270=1|279=2|270=3|279=4|",
        "34=1|268=1|270=1|279=2|",
    ] {
        assert!(from_fix(&program, text).is_ok(), "{text}");
    }
}

#[test]
fn fields_that_no_template_has_neither_end_nor_begin_an_entry() {
    let program = common::program(TEMPLATE);
    let known = "34=1|268=2|279=1|270=5|279=2|453=2|448=A|448=B|58=end|";
    let expected = from_fix(&program, known).unwrap();
    for text in [
        "34=1|268=2|279=1|9999=x|270=5|279=2|453=2|448=A|448=B|58=end|",
        "34=1|268=2|9999=x|279=1|270=5|9999=y|279=2|453=2|9999=z|448=A|448=B|58=end|",
        "34=1|268=2|279=1|270=5|279=2|453=2|448=A|9999=x|448=B|9999=y|58=end|9999=z|",
    ] {
        assert_eq!(from_fix(&program, text).unwrap(), expected, "{text}");
    }
}

#[test]
fn fields_of_entries_are_not_found_outside_of_them() {
    let symbol = "<string name='Symbol' id='55' presence='optional'/>";
    let entries =
        "<sequence name='E'><length name='N' id='268'/><string name='Sym' id='55'/></sequence>";
    let group = "<group name='G' presence='optional'><string name='S' id='55'/></group>";
    let parties = "<sequence name='P' presence='optional'><length name='M' id='453'/>\
        <string name='Party' id='448'/></sequence>";
    let inner = |inner| entries.replace("</sequence>", &format!("{inner}</sequence>"));
    let legs = "<group name='L'><sequence name='Legs'><length name='K' id='555'/>\
        <string name='Leg' id='600'/></sequence></group>";
    for (template, text, expected) in [
        (
            format!("{symbol}{entries}"),
            "268=1|55=EUR|",
            r#"{"Symbol": null, "E": [{"Sym": "EUR"}]}"#,
        ),
        (
            format!("{symbol}{entries}"),
            "55=ALL|268=1|55=EUR|",
            r#"{"Symbol": "ALL", "E": [{"Sym": "EUR"}]}"#,
        ),
        (
            format!("{group}{entries}"),
            "268=1|55=EUR|",
            r#"{"G": null, "E": [{"Sym": "EUR"}]}"#,
        ),
        (
            format!("{entries}{group}"),
            "268=1|55=EUR|",
            r#"{"E": [{"Sym": "EUR"}], "G": null}"#,
        ),
        (
            format!("{symbol}<group name='H' presence='optional'>{entries}</group>"),
            "268=1|55=EUR|",
            r#"{"Symbol": null, "H": {"E": [{"Sym": "EUR"}]}}"#,
        ),
        // A count of the same tag, in an entry and outside of it.
        (
            format!("{parties}{}", inner(parties)),
            "268=1|55=EUR|453=1|448=A|",
            r#"{"P": null, "E": [{"Sym": "EUR", "P": [{"Party": "A"}]}]}"#,
        ),
        (
            inner(legs),
            "268=2|55=EUR|555=2|600=a|600=b|55=USD|555=0|",
            "{\"E\": [{\"Sym\": \"EUR\", \"L\": {\"Legs\": [{\"Leg\": \"a\"}, {\"Leg\": \"b\"}]}}, \
             {\"Sym\": \"USD\", \"L\": {\"Legs\": []}}]}",
        ),
    ] {
        let program = common::program(&template);
        let fields = from_fix(&program, text).unwrap();
        assert_eq!(fields, expected, "{text} for {template}");
    }
}

#[test]
fn msg_type_comes_first_wherever_it_stands() {
    let constant = "<string name='MsgType' id='35'><constant value='X'/></string>";
    for msg_type in [constant, "<string name='MsgType' id='35'/>"] {
        let seq = "<uInt32 name='Seq' id='34'/>";
        let program = common::program(&format!("{seq}<group name='Hdr'>{msg_type}</group>"));
        let fields = "{\"Seq\": 7, \"Hdr\": {\"MsgType\": \"X\"}}";
        assert_eq!(to_fix(&program, fields), "35=X|34=7|");
        let found = template_of(&program, "35=X|34=7|").unwrap();
        assert_eq!(found, format!("T{fields}"));
        let of_type = fix::templates_of(&program, b"X").count();
        assert_eq!(of_type, usize::from(msg_type == constant));
    }
    let document = format!(
        "<templates><template name='T' id='1'><uInt32 name='Seq' id='34'/><templateRef/>\
         </template><template name='H' id='2'>{constant}</template></templates>"
    );
    let program = Program::parse(&document).unwrap();
    let fields = r#"{"Seq": 7, "templateRef": {"template": "H", "fields": {}}}"#;
    assert_eq!(to_fix(&program, fields), "35=X|34=7|");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let program = common::program(TEMPLATE);
    let value = |text| match from_fix(&program, text) {
        Err(FixError::Value(error)) => (error.code, error.path(&program).unwrap()),
        other => panic!("{other:?}"),
    };
    assert_eq!(value("34=x|"), (ErrorCode::D11, "Seq".to_owned()));
    assert_eq!(value("34=4294967296|"), (ErrorCode::R4, "Seq".to_owned()));
    assert_eq!(
        value("34=1|268=1|270=1e5|"),
        (ErrorCode::D11, "Entries[0].Px".to_owned())
    );
    for count in ["268=3|279=1|", "268=x|", "268=4000000000|279=1|", "268=-1|"] {
        let text = format!("34=1|{count}");
        assert_eq!(
            from_fix(&program, &text),
            Err(FixError::Count(268)),
            "{text}"
        );
    }
    assert_eq!(from_fix(&program, "34=1|x=2|"), Err(FixError::Syntax(5)));
    assert_eq!(from_fix(&program, "34=1|0=2|"), Err(FixError::Syntax(5)));
    let mut message = Message::new();
    let line = "{\"id\": 1, \"fields\": {\"Seq\": 1, \"Text\": \"a\\u0001b\"}}";
    json::read_line(&program, line, &mut message).unwrap();
    let error = fix::write_body(message.view(&program).unwrap(), &mut Vec::new()).unwrap_err();
    assert_eq!(error.tag, 58);
}

#[test]
fn a_whole_message_has_length_and_sum() {
    let program = common::program(TEMPLATE);
    let mut message = Message::new();
    json::read_line(
        &program,
        "{\"id\": 1, \"fields\": {\"Seq\": 1}}",
        &mut message,
    )
    .unwrap();
    let mut out = Vec::new();
    fix::write_message(message.view(&program).unwrap(), b"FIX.4.4", &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let (front, sum) = text.split_at(text.len() - 7);
    assert_eq!(front, "8=FIX.4.4\u{1}9=10\u{1}35=X\u{1}34=1\u{1}");
    let expected = front.bytes().map(u32::from).sum::<u32>() % 256;
    assert_eq!(sum, format!("10={expected:03}\u{1}"));
    let names: Vec<_> = fix::templates_of(&program, b"X")
        .map(|t| t.name())
        .collect();
    assert_eq!(names, ["T"]);
    assert_eq!(fix::templates_of(&program, b"W").count(), 0);
}

/// The template that a message is of, and its fields as JSON.
fn template_of(program: &Program, text: &str) -> Result<String, FixError> {
    let bytes = text.replace('|', "\u{1}").into_bytes();
    let mut message = Message::new();
    fix::read_message(program, &fix::split_fields(&bytes)?, &mut message)?;
    let name = message.view(program).unwrap().template().name().to_owned();
    Ok(name + &common::fields(program, &message))
}

#[test]
fn the_template_is_found_by_type_or_by_fields() {
    let document = "<templates>\
        <template name='D1' id='1'><string name='T' id='35'><constant value='D'/></string>\
        <uInt32 name='P' id='44'/></template>\
        <template name='D2' id='2'><string name='T' id='35'><constant value='D'/></string>\
        <uInt32 name='P' id='44'/><uInt32 name='Q' id='53' presence='optional'/></template>\
        <template name='Reset' id='120' reset='yes'/>\
        <template name='Eleven' id='11'><uInt16 name='T' id='100'><constant value='11'/></uInt16>\
        <uInt32 name='P' id='44'/></template>\
        <template name='Twelve' id='12'><uInt16 name='T' id='100'><constant value='12'/></uInt16>\
        <uInt32 name='P' id='44'/></template>\
        <template name='Free' id='13'><string name='T' id='35'/><uInt32 name='R' id='45'/>\
        </template>\
        <template name='S1' id='14'><uInt32 name='S' id='46'/></template>\
        <template name='S2' id='15'><uInt32 name='S' id='46'/></template></templates>";
    let program = Program::parse(document).unwrap();
    for (text, expected) in [
        ("35=D|44=1|", "D1{\"T\": \"D\", \"P\": 1}"),
        ("35=D|44=1|53=2|", "D2{\"T\": \"D\", \"P\": 1, \"Q\": 2}"),
        // Fields of the session are not the template's: the first that takes the others.
        ("35=D|49=A|44=1|", "D1{\"T\": \"D\", \"P\": 1}"),
        ("100=12|44=1|", "Twelve{\"T\": 12, \"P\": 1}"),
        ("8=FIX.4.4|9=0|10=200|", "Reset{}"),
        ("45=5|35=Z|", "Free{\"T\": \"Z\", \"R\": 5}"),
    ] {
        assert_eq!(template_of(&program, text).unwrap(), expected, "{text}");
    }
    for (text, error) in [
        ("35=Z|44=1|", FixError::NoTemplate),
        ("100=13|44=1|", FixError::NoTemplate),
        ("100=12|", FixError::NoTemplate),
        ("46=1|", FixError::Templates(2)),
    ] {
        assert_eq!(template_of(&program, text), Err(error), "{text}");
    }
    let Err(FixError::Value(error)) = template_of(&program, "35=D|44=x|") else {
        panic!("a price of letters");
    };
    assert_eq!(error.code, ErrorCode::D11);
}
