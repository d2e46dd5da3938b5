//! Tests of `fanfare fix codegen`: code of dictionaries, and errors for malformed ones.

use crate::common::{Folder, done, fails, fanfare, run};

const GENERATED: &str = include_str!("../../../fix/messages/fix44.generated");
const NEWER: &str = include_str!("../../../fix/tests/codegen/newer.xml");
const ODD: &str = include_str!("../../../fix/tests/codegen/odd.xml");

#[test]
fn code_is_that_of_the_library() {
    let messages = "NewOrderSingle,8,MarketDataRequest,W";
    let said = run(&["fix", "codegen", "builtin:FIX.4.4", "-m", messages]).succeeded();
    assert!(said.out == GENERATED && said.err.is_empty(), "{}", said.err);
}

#[test]
fn dictionaries_without_a_header_have_that_of_their_transport() {
    let folder = Folder::new("codegen");
    let (newer, file) = (folder.with("newer.xml", NEWER), folder.file("messages.rs"));
    let args = [
        "fix",
        "codegen",
        &newer,
        "builtin:FIX.4.2",
        "-m",
        "D",
        "-o",
        &file,
    ];
    done(&mut fanfare(&args));
    let code = String::from_utf8(folder.read("messages.rs")).unwrap();
    for part in [
        "Fix42(fix42::Messages<'a>),",
        "Fix50Sp2(fix50sp2::Messages<'a>),",
        "pub fn appl_ver_id(&self) -> Result<Option<ApplVerID>, FieldError> {",
        "pub fn cl_ord_id(&self) -> Result<&'a str, FieldError> {",
    ] {
        assert!(code.contains(part), "{part}");
    }
}

#[test]
fn what_is_wrong_is_named_and_nothing_is_written() {
    let folder = Folder::new("codegen-wrong");
    let file = folder.with("messages.rs", "kept");
    let wrong = NEWER.replace("numInGroup id='453'", "numInGroup id='454'");
    let wrong = folder.with("wrong.xml", wrong);
    let fault = |args: &[&str]| {
        let all = [&["fix", "codegen", "-o", &file], args].concat();
        let text = fails(&all);
        assert_eq!(folder.read("messages.rs"), b"kept");
        text
    };
    let text = fault(&[&wrong]);
    assert!(text.contains("wrong.xml: line 18, column 4: "), "{text}");
    let text = fault(&[&folder.file("none.xml")]);
    assert!(
        text.contains("cannot read ") && text.contains("none.xml"),
        "{text}"
    );
    let text = fault(&["builtin:FIX.4.9"]);
    assert!(
        text.contains("builtin:FIX.4.9 is not built in: expected one of FIX.4.0, "),
        "{text}"
    );
    let text = fault(&["builtin:FIX.4.4", "-m", "D,Order"]);
    assert!(
        text.contains("no dictionary has a message with the name or MsgType(35) Order"),
        "{text}"
    );
    let text = fault(&["builtin:FIX.4.4", "builtin:FIX.4.0", "-m", "W"]);
    assert!(
        text.contains("builtin:FIX.4.0 has no message with the name or MsgType(35) W"),
        "{text}"
    );
    let text = fault(&["builtin:FIX.4.4", "builtin:FIX.4.4"]);
    assert!(text.contains("two dictionaries describe FIX.4.4"), "{text}");
    let text = fails(&["fix", "codegen", &wrong, "-o", &wrong]);
    assert!(text.contains("line 18"), "{text}");
    let newer = folder.with("newer.xml", NEWER);
    let text = fails(&["fix", "codegen", &newer, "-o", &newer]);
    assert!(text.contains("it is also the input"), "{text}");
}

#[test]
fn what_a_session_tolerates_in_a_dictionary_is_named() {
    let folder = Folder::new("codegen-strict");
    let odd = ODD.replace("type='SEQNUM'", "type='MONTH-YEAR'");
    let right = folder.with("right.xml", &odd);
    done(&mut fanfare(&["fix", "codegen", &right]));
    for (from, to, why) in [
        (
            "name='Flag' required='N'",
            "name='Flag' required='yes'",
            "line 18, column 4: invalid value required=\"yes\"",
        ),
        (
            "major='4'",
            "major='-1'",
            "line 2, column 1: invalid value major=\"-1\"",
        ),
        (
            "type='MONTH-YEAR'",
            "type='FOOBAR'",
            "invalid value type=\"FOOBAR\"",
        ),
    ] {
        assert!(odd.contains(from), "{from}");
        let wrong = folder.with("wrong.xml", odd.replace(from, to));
        let text = fails(&["fix", "codegen", &wrong]);
        assert!(
            text.contains("wrong.xml: line ") && text.contains(why),
            "{text}"
        );
    }
    // As in QuickFIX's own file of FIX.4.3.
    let value = "<field number='8' name='BeginString' type='STRING'>\
        <value enum='1' description='A'/><value enum='1' description='B'/></field>";
    let twice = odd.replace(
        "<field number='8' name='BeginString' type='STRING'/>",
        value,
    );
    let twice = folder.with("twice.xml", twice);
    let said = run(&["fix", "codegen", &twice]).succeeded();
    let why = "value 1 is declared twice: the first counts";
    assert!(
        said.err.contains("twice.xml: line ") && said.err.contains(why),
        "{}",
        said.err
    );
    assert!(
        said.out.contains("    A,") && !said.out.contains("    B,"),
        "{}",
        said.out
    );
}
