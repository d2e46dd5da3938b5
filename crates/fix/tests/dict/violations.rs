//! Violations by hand, in the order in which counterparties expect them.

use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Dictionary, DictionaryValidator, Switches, Version};
use fanfare_fix::session::{Context, Validator};

use super::message;

const HEAD: &str = "49=TW|56=ISLD|34=2|52=20261121-09:30:00|";
const ORDER: &str = "11=ID|21=1|40=1|54=1|38=100|55=INTC|60=20261121-09:30:00|";

/// 4.0 and 4.1 have no TransactTime(60) in an order.
fn body(version: Version) -> String {
    let time = "60=20261121-09:30:00|";
    match version {
        Version::Fix40 | Version::Fix41 => ORDER.replace(time, ""),
        _ => ORDER.to_owned(),
    }
}

/// The text of the violation with its tag, or nothing.
fn found(version: Version, switches: Switches, fields: &str) -> String {
    let begin_string = match version.name() {
        name if name.starts_with("FIX.5") => "FIXT.1.1",
        name => name,
    };
    let bytes = message(begin_string, fields);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let validator = DictionaryValidator::built_in(version, switches).unwrap();
    match validator.validate(&message, Some(version)) {
        Ok(()) => String::new(),
        Err(violation) => format!("{} {violation}", violation.reason.code()),
    }
}

fn order(version: Version, more: &str) -> String {
    let fields = format!("35=D|{HEAD}{}{more}", body(version));
    found(version, Switches::default(), &fields)
}

const VERSIONS: [Version; 8] = [
    Version::Fix40,
    Version::Fix41,
    Version::Fix42,
    Version::Fix43,
    Version::Fix44,
    Version::Fix50,
    Version::Fix50Sp1,
    Version::Fix50Sp2,
];

#[test]
fn an_order_is_valid_in_every_version() {
    for version in VERSIONS {
        assert_eq!(order(version, ""), "", "{version:?}");
        let plain = Switches::default();
        for fields in [
            "35=0|",
            "35=1|112=X|",
            "35=5|58=bye|",
            "35=2|7=1|16=0|",
            "35=4|36=5|",
        ] {
            let (msg_type, body) = fields.split_at(5);
            let fields = format!("{msg_type}{HEAD}{body}");
            assert_eq!(found(version, plain, &fields), "", "{version:?}");
        }
    }
}

#[test]
fn a_business_reject_over_the_transport_may_name_the_version() {
    for version in [Version::Fix50, Version::Fix50Sp1, Version::Fix50Sp2] {
        let reject = format!("35=j|{HEAD}45=2|58=no|372=V|380=3|1137=9|");
        let found = found(version, Switches::default(), &reject);
        assert_eq!(found, "", "{version:?}");
        let order = order(version, "1137=9|");
        assert!(order.starts_with("2 "), "{version:?}: {order}");
    }
}

#[test]
fn faults_of_fields_in_every_version() {
    for version in VERSIONS {
        let check = |fields: &str, expected: &str| {
            let found = found(version, Switches::default(), fields);
            assert_eq!(found, expected, "{version:?} {fields}");
        };
        check(&format!("35=0|{HEAD}999=HI|"), "0 Invalid tag number (999)");
        check(&format!("35=0|{HEAD}0=HI|"), "0 Invalid tag number (0)");
        check(&format!("35=0|{HEAD}-1=HI|"), "0 Invalid tag number (-1)");
        check(
            &format!("35=0|{HEAD}5000=HI|"),
            "0 Invalid tag number (5000)",
        );
        check(
            "35=0|49=TW|34=2|52=20261121-09:30:00|",
            "1 Required tag missing (56)",
        );
        let order = body(version);
        let no_side = order.replace("54=1|", "");
        check(
            &format!("35=D|{HEAD}{no_side}"),
            "1 Required tag missing (54)",
        );
        check(
            &format!("35=0|{HEAD}55=X|"),
            match version {
                Version::Fix50 | Version::Fix50Sp1 | Version::Fix50Sp2 => {
                    "0 Invalid tag number (55)"
                }
                _ => "2 Tag not defined for this message type (55)",
            },
        );
        check(
            &format!("35=1|{HEAD}112=|"),
            "4 Tag specified without a value (112)",
        );
        check(&format!("35=*|{HEAD}"), "11 Invalid MsgType");
        check(
            &format!("35=D|{HEAD}{}", order.replace("21=1", "21=4")),
            "5 Value is incorrect (out of range) for this tag (21)",
        );
        check(
            &format!("35=D|{HEAD}{}", order.replace("38=100", "38=+100")),
            "6 Incorrect data format for value (38)",
        );
        check(
            &format!("35=D|{HEAD}{}", order.replace("40=1", "40=1|40=2")),
            "13 Tag appears more than once (40)",
        );
        check(
            &format!("35=D|{order}{HEAD}"),
            "14 Tag specified out of required order (49)",
        );
    }
}

#[test]
fn the_first_fault_in_the_order_of_the_checks_is_reported() {
    let check = |fields: &str, expected: &str| {
        assert_eq!(
            found(Version::Fix44, Switches::default(), fields),
            expected,
            "{fields}"
        );
    };
    // Header behind the body, whatever else is wrong.
    check(
        "35=*|55=|49=TW|999=1|",
        "14 Tag specified out of required order (49)",
    );
    // Then MsgType, required tags, and fields by tag.
    check("35=*|55=|999=1|", "11 Invalid MsgType");
    check("35=D|999=1|54=|", "1 Required tag missing (34)");
    let both = format!(
        "35=D|{HEAD}{}",
        ORDER.replace("54=1", "54=x").replace("40=1", "40=")
    );
    check(&both, "4 Tag specified without a value (40)");
    let head = HEAD.replace("49=TW", "49=");
    check(
        &format!("35=D|{head}{}", ORDER.replace("11=ID", "11=")),
        "4 Tag specified without a value (49)",
    );
}

#[test]
fn routing_tags_are_header_in_every_version() {
    // FIX.4.0 does not know OnBehalfOfLocationID(144), but looks at it with the header.
    let fields = format!("35=D|{HEAD}115=JCD|144=X|{}", ORDER.replace("40=1", "40=w"));
    let found = |version| found(version, Switches::default(), &fields);
    assert_eq!(found(Version::Fix40), "0 Invalid tag number (144)");
    assert_eq!(
        found(Version::Fix41),
        "5 Value is incorrect (out of range) for this tag (40)"
    );
}

#[test]
fn groups() {
    let check = |more: &str, expected: &str| {
        assert_eq!(order(Version::Fix44, more), expected, "{more}");
    };
    check("453=2|448=A|447=D|452=1|448=B|447=D|452=3|", "");
    check("453=1|448=A|447=D|452=1|802=2|523=X|803=1|523=Y|803=2|", "");
    check("453=0|", "");
    check(
        "386=3|336=1|336=2|",
        "16 Incorrect NumInGroup count for repeating group (386)",
    );
    check(
        "453=1|448=A|448=B|",
        "16 Incorrect NumInGroup count for repeating group (453)",
    );
    check(
        "453=0|448=A|",
        "16 Incorrect NumInGroup count for repeating group (453)",
    );
    check("453=x|448=A|", "6 Incorrect data format for value (453)");
    check(
        "453=1|447=D|448=A|",
        "16 Incorrect NumInGroup count for repeating group (453)",
    );
    check(
        "453=1|448=A|452=1|447=D|",
        "15 Repeating group fields out of order (447)",
    );
    check(
        "453=1|448=A|452=x|",
        "6 Incorrect data format for value (452)",
    );
    check(
        "453=1|448=A|802=2|523=X|",
        "16 Incorrect NumInGroup count for repeating group (802)",
    );
    check("448=A|", "2 Tag not defined for this message type (448)");
    // Entries of NoSides(552) have to have Side(54).
    let cross = "548=X|549=1|550=0|552=1|11=1|40=1|55=X|60=20261121-09:30:00|";
    let fields = format!("35=s|{HEAD}{cross}");
    let found = found(Version::Fix44, Switches::default(), &fields);
    assert_eq!(found, "1 Required tag missing (54)");
}

#[test]
fn switches_turn_checks_off() {
    let check = |name: &str, on: bool, fields: &str| {
        let plain = found(Version::Fix44, Switches::default(), fields);
        assert_ne!(plain, "", "{fields}");
        let mut switches = Switches::default();
        assert!(switches.set(name, on));
        assert_eq!(
            found(Version::Fix44, switches, fields),
            "",
            "{name} {fields}"
        );
    };
    check(
        "ValidateFieldsOutOfOrder",
        false,
        &format!("35=D|{ORDER}{HEAD}"),
    );
    check(
        "ValidateFieldsHaveValues",
        false,
        &format!("35=1|{HEAD}112=|"),
    );
    check(
        "ValidateUserDefinedFields",
        false,
        &format!("35=0|{HEAD}5000=HI|"),
    );
    check(
        "AllowUnknownMsgFields",
        true,
        &format!("35=0|{HEAD}4999=HI|55=X|"),
    );
    let unordered = format!("35=D|{HEAD}{ORDER}453=1|448=A|452=1|447=D|");
    check("ValidateUnorderedGroupFields", false, &unordered);
    assert!(!Switches::default().set("ValidateNothing", true));
}

#[test]
fn unknown_fields_that_are_allowed_may_not_stand_twice() {
    let switches = Switches {
        user_defined_fields: false,
        ..Switches::default()
    };
    let fields = format!("35=0|{HEAD}5000=1|5001=1|5000=2|");
    let found = found(Version::Fix44, switches, &fields);
    assert_eq!(found, "13 Tag appears more than once (5000)");
}

#[test]
fn application_messages_go_by_their_version() {
    let validator = DictionaryValidator::built_in(Version::Fix50Sp2, Switches::default()).unwrap();
    let mut decoder = Decoder::new();
    // UserNotification(CB) came with 5.0SP1.
    let mut judge = |appl_ver_id: &str, default| {
        let fields = format!("35=CB|{appl_ver_id}{HEAD}926=1|");
        let bytes = message("FIXT.1.1", &fields);
        let message = decoder.decode(&bytes).unwrap();
        validator
            .validate(&message, default)
            .err()
            .map(|v| v.to_string())
    };
    let unknown = Some("Invalid MsgType".to_owned());
    assert_eq!(judge("", None), None);
    assert_eq!(judge("1128=9|", Some(Version::Fix50)), None);
    assert_eq!(judge("", Some(Version::Fix50)), unknown);
    assert_eq!(judge("1128=7|", None), unknown);
}

#[test]
fn application_messages_of_all_versions_are_checked_over_the_transport() {
    let validator = DictionaryValidator::built_in(Version::Fix50Sp2, Switches::default()).unwrap();
    let mut decoder = Decoder::new();
    for (version, id) in VERSIONS.into_iter().zip(2..) {
        let mut judge = |fields: &str| {
            let fields = format!("35=D|1128={id}|{HEAD}{fields}");
            let bytes = message("FIXT.1.1", &fields);
            let message = decoder.decode(&bytes).unwrap();
            let fault = validator.validate(&message, None).err();
            fault.map_or(String::new(), |fault| fault.to_string())
        };
        let order = body(version);
        assert_eq!(judge(&order), "", "{version:?}");
        let format = "Incorrect data format for value (44)";
        assert_eq!(judge(&format!("{order}44=abc|")), format, "{version:?}");
        let side = "Required tag missing (54)";
        assert_eq!(judge(&order.replace("54=1|", "")), side, "{version:?}");
    }
}

#[test]
fn groups_over_the_transport_are_those_of_the_messages_version() {
    let validator = DictionaryValidator::built_in(Version::Fix50Sp2, Switches::default()).unwrap();
    let parties = "453=2|448=A|447=D|452=1|448=B|447=D|452=3|";
    let context = Context {
        default_appl_ver_id: None,
    };
    let mut decoder = Decoder::new();
    for validator in [validator.clone(), validator.without_checks()] {
        let fields = format!("35=D|1128=6|{HEAD}{ORDER}{parties}");
        let bytes = message("FIXT.1.1", &fields);
        let order = decoder.decode(&bytes).unwrap();
        assert_eq!(validator.check(&order, &context), Ok(()));
        let order = order.with_groups(validator.groups(&order, &context).unwrap());
        assert_eq!((order.get(448), order.get(55)), (None, Some(&b"INTC"[..])));
        assert_eq!(order.group(453).unwrap().count(), 2);
    }
}

#[test]
fn a_validator_without_checks_accepts_every_message() {
    let validator = DictionaryValidator::built_in(Version::Fix44, Switches::default()).unwrap();
    let bytes = message("FIX.4.4", &format!("35=D|{HEAD}44=abc|"));
    let mut decoder = Decoder::new();
    let order = decoder.decode(&bytes).unwrap();
    let context = Context {
        default_appl_ver_id: None,
    };
    assert!(validator.check(&order, &context).is_err());
    assert_eq!(validator.without_checks().check(&order, &context), Ok(()));
}

#[test]
fn messages_of_versions_that_are_not_loaded_are_taken_as_they_are() {
    let transport = Dictionary::built_in(Version::Fixt11);
    let mut validator = DictionaryValidator::new(transport, Switches::default());
    validator.add_built_in(Version::Fix50Sp2).unwrap();
    let mut decoder = Decoder::new();
    let mut judge = |fields: &str| {
        let bytes = message("FIXT.1.1", fields);
        let message = decoder.decode(&bytes).unwrap();
        let fault = validator.validate(&message, Some(Version::Fix50Sp2)).err();
        fault.map_or(String::new(), |fault| fault.to_string())
    };
    // FIX.4.4 and FIX Latest. The transport knows Text(58), and not PartyID(448).
    let unknown = "Value is incorrect (out of range) for this tag (1128)";
    for (version, expected) in [("1128=6|", ""), ("1128=10|", ""), ("1128=11|", unknown)] {
        let parties = "453=2|448=A|447=D|452=1|448=B|447=D|452=3|";
        let report = judge(&format!("35=8|{version}{HEAD}37=1|{parties}"));
        assert_eq!(report, expected);
        let news = format!("35=B|{version}{HEAD}148=X|33=2|58=a|58=b|");
        assert_eq!(judge(&news), expected);
        if expected.is_empty() {
            let header = judge(&format!("35=8|{version}{HEAD}56=ISLD|37=1|"));
            assert_eq!(header, "Tag appears more than once (56)");
        }
    }
}

#[test]
fn a_tag_that_comes_twice_is_found_among_any_number_of_unknown_ones() {
    let switches = Switches {
        user_defined_fields: false,
        ..Switches::default()
    };
    for count in [2, 200, 2_000] {
        let unknown = (0..count).map(|n| format!("{}=x|", 20_000 + n));
        let fields = format!("35=0|{HEAD}{}", unknown.collect::<String>());
        assert_eq!(found(Version::Fix44, switches, &fields), "");
        let again = 20_000 + count / 2;
        let first = found(Version::Fix44, switches, &format!("{fields}{again}=y|"));
        assert_eq!(first, format!("13 Tag appears more than once ({again})"));
    }
}

#[test]
fn the_text_ends_in_the_tag() {
    let bytes = message("FIX.4.2", &format!("35=0|{HEAD}999=HI|"));
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let validator = DictionaryValidator::built_in(Version::Fix42, Switches::default()).unwrap();
    let violation = validator.validate(&message, None).unwrap_err();
    assert_eq!(violation.reason.text(), "Invalid tag number");
    assert_eq!(violation.to_string(), "Invalid tag number (999)");
}

#[test]
fn hops_belong_to_their_group_alone() {
    for version in [
        Version::Fix43,
        Version::Fix44,
        Version::Fix50,
        Version::Fix50Sp1,
        Version::Fix50Sp2,
    ] {
        let with = |hops: &str| {
            let fields = format!("35=D|{HEAD}{hops}{}", body(version));
            found(version, Switches::default(), &fields)
        };
        let all = "628=A|629=20261121-09:30:00|630=7|";
        assert_eq!(with(&format!("627=2|{all}628=B|")), "", "{version:?}");
        assert_eq!(with(&format!("627=1|{all}50=DESK|")), "", "{version:?}");
        for (hops, tag) in [
            ("628=A|", 628),
            ("629=20261121-09:30:00|", 629),
            ("630=7|", 630),
            ("627=1|628=A|50=DESK|630=7|", 630),
            ("630=7|627=1|628=A|", 630),
        ] {
            let said = with(hops);
            let is_it = said.starts_with("2 ") && said.contains(&tag.to_string());
            assert!(is_it, "{version:?} {hops}: {said}");
            let lenient = Switches {
                allow_unknown_fields: true,
                ..Switches::default()
            };
            let fields = format!("35=D|{HEAD}{hops}{}", body(version));
            assert_eq!(found(version, lenient, &fields), "", "{version:?} {hops}");
        }
    }
}

/// As QuickFIX has it: venues ask for RawData(96) without RawDataLength(95).
#[test]
fn data_without_its_length_ends_at_the_separator() {
    for version in [Version::Fix42, Version::Fix44, Version::Fix50Sp2] {
        assert_eq!(order(version, "355=abc|"), "", "{version:?}");
        assert_eq!(order(version, "354=3|355=a|b|"), "", "{version:?}");
        let order = order(version, "355=a|9999=b|");
        assert!(order.starts_with("0 "), "{version:?}: {order}");
    }
    let logon = format!("35=A|{HEAD}98=0|108=30|96=secret|");
    let found = found(Version::Fix44, Switches::default(), &logon);
    assert_eq!(found, "");
}
