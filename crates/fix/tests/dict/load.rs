//! The loaders of QuickFIX-style and FIX Orchestra XML.

use fanfare_fix::codec::{Decoder, FrameFinder};
use fanfare_fix::codegen;
use fanfare_fix::dict::{
    Cause, DataType, Dictionary, DictionaryValidator, Switches, Version, check_xml, schema_from_xml,
};
use fanfare_wire::{DataFields, FieldIndex, Kernel};
use proptest::prelude::*;
use std::sync::Arc;

use super::message;

const QUICKFIX: &str = "<fix major='4' minor='4' servicepack='0'>
 <header>
  <field name='BeginString' required='Y'/><field name='BodyLength' required='Y'/>
  <field name='MsgType' required='Y'/>
 </header>
 <trailer><field name='CheckSum' required='Y'/></trailer>
 <messages>
  <message name='Order' msgtype='D' msgcat='app'>
   <field name='ClOrdID' required='Y'/>
   <component name='Parties' required='N'/>
   <field name='Side' required='Y'/>
  </message>
 </messages>
 <components>
  <component name='Parties'>
   <group name='NoPartyIDs' required='N'>
    <field name='PartyID' required='Y'/><field name='PartyRole' required='N'/>
   </group>
  </component>
 </components>
 <fields>
  <field number='8' name='BeginString' type='STRING'/>
  <field number='9' name='BodyLength' type='LENGTH'/>
  <field number='10' name='CheckSum' type='STRING'/>
  <field number='11' name='ClOrdID' type='STRING'/>
  <field number='35' name='MsgType' type='STRING'/>
  <field number='54' name='Side' type='CHAR'>
   <value enum='1' description='BUY'/><value enum='2' description='SELL'/>
  </field>
  <field number='448' name='PartyID' type='STRING'/>
  <field number='452' name='PartyRole' type='INT'/>
  <field number='453' name='NoPartyIDs' type='NUMINGROUP'/>
 </fields>
</fix>";

const ORCHESTRA: &str = "<fixr:repository name='x' version='FIX.4.4_EP1'
  xmlns:fixr='http://fixprotocol.io/2020/orchestra/repository'>
 <fixr:codeSets>
  <fixr:codeSet name='SideCodeSet' id='54' type='char'>
   <fixr:code name='BUY' id='1' value='1'/><fixr:code name='SELL' id='2' value='2'/>
  </fixr:codeSet>
 </fixr:codeSets>
 <fixr:fields>
  <fixr:field id='8' name='BeginString' type='String'/>
  <fixr:field id='9' name='BodyLength' type='Length'/>
  <fixr:field id='10' name='CheckSum' type='String'/>
  <fixr:field id='11' name='ClOrdID' type='String'/>
  <fixr:field id='35' name='MsgType' type='String'/>
  <fixr:field id='54' name='Side' type='SideCodeSet'/>
  <fixr:field id='448' name='PartyID' type='String'/>
  <fixr:field id='452' name='PartyRole' type='int'/>
  <fixr:field id='453' name='NoPartyIDs' type='NumInGroup'/>
 </fixr:fields>
 <fixr:components>
  <fixr:component id='1024' name='StandardHeader'>
   <fixr:fieldRef id='8' presence='required'/><fixr:fieldRef id='9' presence='required'/>
   <fixr:fieldRef id='35' presence='required'/>
  </fixr:component>
  <fixr:component id='1025' name='StandardTrailer'>
   <fixr:fieldRef id='10' presence='required'/>
  </fixr:component>
 </fixr:components>
 <fixr:groups>
  <fixr:group id='1012' name='Parties'>
   <fixr:numInGroup id='453'/>
   <fixr:fieldRef id='448' presence='required'/><fixr:fieldRef id='452'/>
  </fixr:group>
 </fixr:groups>
 <fixr:messages>
  <fixr:message id='14' name='Order' msgType='D' category='Trade'>
   <fixr:structure>
    <fixr:componentRef id='1024' presence='required'/>
    <fixr:fieldRef id='11' presence='required'/>
    <fixr:groupRef id='1012'/>
    <fixr:fieldRef id='54' presence='required'/>
    <fixr:componentRef id='1025' presence='required'/>
   </fixr:structure>
  </fixr:message>
 </fixr:messages>
</fixr:repository>";

fn found(dictionary: &Dictionary, fields: &str) -> String {
    let bytes = message("FIX.4.4", fields);
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let outcome = dictionary.validate(&message, Switches::default());
    outcome
        .err()
        .map_or(String::new(), |violation| violation.to_string())
}

#[test]
fn both_forms_give_the_same_dictionary() {
    for text in [QUICKFIX, ORCHESTRA] {
        let dictionary = Dictionary::from_xml(text).unwrap();
        assert_eq!(dictionary.version(), "FIX.4.4");
        assert_eq!(dictionary.message_name(b"D"), Some("Order"));
        assert_eq!(dictionary.value_name(54, b"2"), Some("SELL"));
        assert_eq!(dictionary.data_type(453), Some(DataType::NumInGroup));
        let check = |fields: &str, expected: &str| {
            assert_eq!(found(&dictionary, fields), expected, "{fields}");
        };
        check("35=D|11=1|54=1|", "");
        check("35=D|11=1|453=2|448=A|452=1|448=B|54=1|", "");
        check("35=D|11=1|453=1|452=1|54=1|", "Required tag missing (448)");
        check("35=D|54=1|", "Required tag missing (11)");
        check(
            "35=D|11=1|54=3|",
            "Value is incorrect (out of range) for this tag (54)",
        );
        check("35=D|11=1|54=1|55=X|", "Invalid tag number (55)");
        check("35=E|11=1|", "Invalid MsgType");
    }
    let schemas = [QUICKFIX, ORCHESTRA].map(|text| schema_from_xml(text).unwrap());
    assert_eq!(schemas[0].fields, schemas[1].fields);
}

#[test]
fn code_sets_with_a_union_are_open() {
    let load = |set: &str, field: &str| {
        let text = ORCHESTRA.replace("id='54' type='char'", &format!("id='54' type={set}"));
        let text = text.replace("'SideCodeSet'/>", &format!("'SideCodeSet'{field}/>"));
        Dictionary::from_xml(&text).unwrap()
    };
    let reserved = " unionDataType='Reserved100Plus'";
    let on_the_set = format!("'int'{reserved}");
    for (set, field, kind) in [
        ("'int'", reserved, DataType::Int),
        (&*on_the_set, "", DataType::Int),
        ("'int'", " unionDataType='Qty'", DataType::String),
        ("'String'", " unionDataType='Tenor'", DataType::String),
        ("'char'", reserved, DataType::String),
        (
            "'MultipleCharValue'",
            reserved,
            DataType::MultipleStringValue,
        ),
    ] {
        let dictionary = load(set, field);
        assert_eq!(dictionary.data_type(54), Some(kind));
        let check = |value: &str| found(&dictionary, &format!("35=D|11=1|54={value}|"));
        assert_eq!((check("1"), check("1001")), (String::new(), String::new()));
        let text = match kind {
            DataType::Int => "Incorrect data format for value (54)",
            _ => "",
        };
        assert_eq!(check("M3"), text, "{kind:?}");
        let code = codegen::generate(&[(&dictionary, &[])]).unwrap();
        assert!(code.contains("Other(&'a str)"), "{code}");
    }
}

#[test]
fn user_fields_go_on_top_of_a_built_in_dictionary() {
    let user = "<fix major='4' minor='4'><messages>
        <message name='Order' msgtype='D'><field name='Desk' required='N'/></message></messages>
        <fields><field number='5001' name='Desk' type='INT'/></fields></fix>";
    let built_in = Dictionary::built_in(Version::Fix44);
    let merged = built_in.merged(schema_from_xml(user).unwrap()).unwrap();
    let order = "35=D|49=A|56=B|34=1|52=20261121-09:30:00|11=1|55=X|54=1|\
                 60=20261121-09:30:00|38=1|40=1|";
    assert_eq!(
        found(&built_in, &format!("{order}5001=7|")),
        "Invalid tag number (5001)"
    );
    assert_eq!(found(&merged, &format!("{order}5001=7|")), "");
    let bad = found(&merged, &format!("{order}5001=x|"));
    assert_eq!(bad, "Incorrect data format for value (5001)");
}

/// Groups of a file of another version are not those of the messages.
#[test]
fn groups_of_the_users_dictionary_hold_in_its_own_version() {
    let user = |attributes: &str| {
        let text = format!(
            "<fix {attributes}><messages><message name='Order' msgtype='D'>
            <group name='NoPartyIDs'><field name='PartyID'/><field name='Desk'/></group></message>
            </messages><fields><field number='453' name='NoPartyIDs' type='NUMINGROUP'/>
            <field number='448' name='PartyID' type='STRING'/>
            <field number='5001' name='Desk' type='STRING'/></fields></fix>"
        );
        schema_from_xml(&text).unwrap()
    };
    let built_in = Dictionary::built_in(Version::Fix44);
    for (attributes, is_own) in [
        ("major='4' minor='4'", true),
        ("major='4' minor='9'", true),
        ("major='4' minor='3'", false),
    ] {
        let merged = built_in.merged(user(attributes)).unwrap();
        let group = merged.group(b"D", 453).unwrap();
        assert_eq!(group.has_member(5001), is_own, "{attributes}");
        assert_eq!(group.has_member(452), !is_own, "{attributes}");
    }
}

#[test]
fn data_fields_are_found_with_their_lengths() {
    let own = QUICKFIX
        .replace(
            "<field name='Side' required='Y'/>",
            "<field name='Side' required='Y'/>
             <field name='BlobSize' required='N'/><field name='Blob' required='N'/>
             <field name='RawDataLength' required='N'/><field name='RawData' required='N'/>
             <field name='Loose' required='N'/>",
        )
        .replace(
            "<field name='PartyRole' required='N'/>",
            "<field name='SealLen' required='N'/><field name='PartyRole' required='N'/>
             <field name='Seal' required='N'/>",
        )
        .replace(
            "</fields>",
            "<field number='95' name='RawDataLength' type='LENGTH'/>
             <field number='96' name='RawData' type='DATA'/>
             <field number='5010' name='BlobSize' type='LENGTH'/>
             <field number='5011' name='Blob' type='DATA'/>
             <field number='5012' name='Loose' type='DATA'/>
             <field number='5013' name='SealLen' type='INT'/>
             <field number='5009' name='Seal' type='XMLDATA'/></fields>",
        );
    let own = Arc::new(Dictionary::from_xml(&own).unwrap());
    assert_eq!(own.data_fields(), [(5010, 5011), (5013, 5009)]);
    let validator = DictionaryValidator::new(own, Switches::default());
    assert_eq!(validator.data_fields(), [(5010, 5011), (5013, 5009)]);
}

/// Fields, or references to them, name the lengths, wherever these are.
#[test]
fn data_fields_of_orchestra_are_found_with_the_lengths_that_they_name() {
    let text = ORCHESTRA
        .replace(
            "</fixr:fields>",
            "<fixr:field id='5010' name='Before' type='Length'/>
             <fixr:field id='5011' name='Blob' type='data' lengthId='5014'/>
             <fixr:field id='5012' name='Seal' type='data'/>
             <fixr:field id='5013' name='SealBytes' type='Length'/>
             <fixr:field id='5014' name='BlobBytes' type='Length'/></fixr:fields>",
        )
        .replace(
            "<fixr:groupRef id='1012'/>",
            "<fixr:fieldRef id='5013'/><fixr:fieldRef id='5014'/><fixr:groupRef id='1012'/>
             <fixr:fieldRef id='5010'/><fixr:fieldRef id='5011'/>
             <fixr:fieldRef id='5012' lengthId='5013'/>",
        );
    let pairs = Dictionary::from_xml(&text).unwrap().data_fields();
    assert_eq!(pairs, [(5013, 5012), (5014, 5011)]);
    let mut data = DataFields::standard();
    for (length, tag) in pairs {
        data = data.with(length, tag);
    }
    let index = FieldIndex::with(data, Kernel::best());
    let bytes = message("FIX.4.4", "35=D|11=1|54=1|5014=8|5011=a|5012=b|");
    let mut decoder = Decoder::with(FrameFinder::default(), index);
    let decoded = decoder.decode(&bytes).unwrap();
    assert_eq!(decoded.get(5011), Some(&b"a\x015012=b"[..]));
}

/// A `lengthId` that names no length field is as good as none: 1 is not declared, 11 is text.
#[test]
fn placeholders_for_lengths_in_orchestra_name_none() {
    let text = ORCHESTRA
        .replace(
            "</fixr:fields>",
            "<fixr:field id='5010' name='BlobLen' type='Length'/>
             <fixr:field id='5011' name='Blob' type='data' lengthId='1'/>
             <fixr:field id='5012' name='Before' type='Length'/>
             <fixr:field id='5013' name='Seal' type='data' lengthId='11'/>
             <fixr:field id='5014' name='Note' type='data' lengthId='1'/>
             <fixr:field id='5015' name='NoteSize' type='int'/></fixr:fields>",
        )
        .replace(
            "<fixr:groupRef id='1012'/>",
            "<fixr:fieldRef id='5015'/><fixr:fieldRef id='5010'/><fixr:groupRef id='1012'/>
             <fixr:fieldRef id='5011' lengthId='1'/><fixr:fieldRef id='5012'/>
             <fixr:fieldRef id='5013'/><fixr:fieldRef id='5014' lengthId='5015'/>",
        );
    let dictionary = Dictionary::from_xml(&text).unwrap();
    let pairs = [(5010, 5011), (5012, 5013), (5015, 5014)];
    assert_eq!(dictionary.data_fields(), pairs);
    let code = codegen::generate(&[(&dictionary, &[])]).unwrap();
    for (length, tag) in pairs {
        let write = format!("write_data(out, {length}, {tag}, ");
        assert!(code.contains(&write), "{write}");
    }
}

#[test]
fn before_four_two_char_is_any_text() {
    let text = QUICKFIX.replace("minor='4'", "minor='1'");
    let dictionary = Dictionary::from_xml(&text).unwrap();
    assert_eq!(dictionary.data_type(54), Some(DataType::String));
}

#[test]
fn required_may_be_a_small_letter() {
    let small = QUICKFIX.replace("required='Y'", "required='y'");
    assert_eq!(schema_from_xml(&small), schema_from_xml(QUICKFIX));
}

#[test]
fn a_code_set_has_an_attribute_of_its_own_since_orchestra_1_1() {
    let newer = ORCHESTRA.replace("type='SideCodeSet'", "codeSet='SideCodeSet'");
    assert_ne!(newer, ORCHESTRA);
    assert_eq!(schema_from_xml(&newer), schema_from_xml(ORCHESTRA));
}

#[test]
fn only_header_and_trailer_of_the_standard_are_no_part_of_messages() {
    let text = ORCHESTRA
        .replace(
            "<fixr:fieldRef id='11' presence='required'/>",
            "<fixr:componentRef id='1026' presence='required'/>",
        )
        .replace(
            "</fixr:components>",
            "<fixr:component id='1026' name='StandardParties'>
              <fixr:fieldRef id='11' presence='required'/></fixr:component></fixr:components>",
        );
    let dictionary = Dictionary::from_xml(&text).unwrap();
    assert_eq!(found(&dictionary, "35=D|11=1|54=1|"), "");
    assert_eq!(
        found(&dictionary, "35=D|54=1|"),
        "Required tag missing (11)"
    );
}

#[test]
fn the_base_scenario_takes_precedence_in_any_order() {
    let parts = |section: &str| match section {
        "codeSets" => "<fixr:codeSet name='SideCodeSet' id='54' scenario='short' type='int'/>",
        "fields" => "<fixr:field id='54' name='Side' scenario='short' type='SideCodeSet'/>",
        "groups" => {
            "<fixr:group id='1012' name='Parties' scenario='short'>
              <fixr:numInGroup id='453'/><fixr:fieldRef id='448'/></fixr:group>"
        }
        _ => {
            "<fixr:message id='14' name='Order' scenario='short' msgType='D'>
              <fixr:structure><fixr:fieldRef id='54'/></fixr:structure></fixr:message>
             <fixr:message id='14' name='Order' scenario='bare' msgType='D'/>"
        }
    };
    let base = schema_from_xml(ORCHESTRA).unwrap();
    for in_front in [true, false] {
        let mut text = ORCHESTRA.to_owned();
        for section in ["codeSets", "fields", "groups", "messages"] {
            let (part, slash) = (parts(section), if in_front { "" } else { "/" });
            let tag = format!("<{slash}fixr:{section}>");
            let with_part = match in_front {
                true => format!("{tag}{part}"),
                false => format!("{part}{tag}"),
            };
            text = text.replace(&tag, &with_part);
        }
        let schema = schema_from_xml(&text).unwrap();
        assert_eq!(schema.fields, base.fields);
        assert_eq!(schema.messages, base.messages);
        let group = "group Parties#base";
        assert_eq!(schema.components[group], base.components[group]);
        assert!(Dictionary::new(schema).is_ok());
    }
}

/// Two scenarios of a message, of its group, and of a field and its code set; none is the base.
fn without_a_base() -> Dictionary {
    let text = ORCHESTRA
        .replace("id='54' type='char'", "id='54' scenario='a' type='char'")
        .replace("name='Side'", "name='Side' scenario='a'")
        .replace("name='Parties'", "name='Parties' scenario='a'")
        .replace("groupRef id='1012'", "groupRef id='1012' scenario='a'")
        .replace("msgType='D'", "scenario='a' msgType='D'")
        .replace(
            "</fixr:codeSets>",
            "<fixr:codeSet name='SideCodeSet' id='54' scenario='b' type='char'>
              <fixr:code name='SELL' id='2' value='2'/><fixr:code name='SHORT' id='5' value='5'/>
             </fixr:codeSet></fixr:codeSets>",
        )
        .replace(
            "</fixr:fields>",
            "<fixr:field id='54' name='Side' scenario='b' type='SideCodeSet'/>
             <fixr:field id='5001' name='Note' type='String'/>
             <fixr:field id='5002' name='Memo' type='String'/></fixr:fields>",
        )
        .replace(
            "</fixr:groups>",
            "<fixr:group id='1012' name='Parties' scenario='b'><fixr:numInGroup id='453'/>
              <fixr:fieldRef id='448' presence='required'/><fixr:fieldRef id='5001'/>
             </fixr:group></fixr:groups>",
        )
        .replace(
            "</fixr:messages>",
            "<fixr:message id='14' name='Order' scenario='bare' msgType='D'/>
             <fixr:message id='14' name='Order' scenario='b' msgType='D'><fixr:structure>
              <fixr:fieldRef id='11' presence='required'/>
              <fixr:groupRef id='1012' scenario='b'/>
              <fixr:fieldRef id='5002' presence='required'/>
             </fixr:structure></fixr:message></fixr:messages>",
        );
    Dictionary::from_xml(&text).unwrap()
}

#[test]
fn without_a_base_scenario_all_scenarios_are_valid() {
    let dictionary = without_a_base();
    for valid in [
        "35=D|11=1|54=1|",
        "35=D|11=1|54=5|",
        "35=D|11=1|5002=x|",
        "35=D|11=1|453=2|448=A|452=1|448=B|5001=x|5002=x|",
    ] {
        assert_eq!(found(&dictionary, valid), "", "{valid}");
    }
    let check = |fields: &str, expected: &str| {
        assert_eq!(found(&dictionary, fields), expected, "{fields}");
    };
    check("35=D|54=1|", "Required tag missing (11)");
    check("35=D|11=1|453=1|452=1|54=1|", "Required tag missing (448)");
    check(
        "35=D|11=1|54=9|",
        "Value is incorrect (out of range) for this tag (54)",
    );
    check("35=D|11=1|55=X|", "Invalid tag number (55)");
    assert_eq!(dictionary.value_name(54, b"2"), Some("SELL"));
}

/// The error after a change, as `line:column cause`.
fn error(text: &str, from: &str, to: &str) -> String {
    let changed = text.replacen(from, to, 1);
    assert_ne!(changed, text, "{from}");
    Dictionary::from_xml(&changed).unwrap_err().to_string()
}

#[test]
fn errors_in_quickfix_xml_name_line_and_cause() {
    let check = |from: &str, to: &str, expected: &str| {
        assert_eq!(error(QUICKFIX, from, to), expected);
    };
    check(
        "<field name='Side' required='Y'/>",
        "<field name='Sid' required='Y'/>",
        "line 11, column 4: field Sid is not declared",
    );
    check(
        "<component name='Parties' required",
        "<component name='Party' required",
        "line 10, column 4: component Party is not declared",
    );
    check(
        "number='9'",
        "number='8'",
        "line 23, column 3: tag 8 is declared twice",
    );
    check(
        "number='9'",
        "number='nine'",
        "line 23, column 3: invalid value number=\"nine\"",
    );
    check(
        "number='9' ",
        "",
        "line 23, column 3: <field> has no number",
    );
    check(
        "name='BodyLength' type",
        "name='BeginString' type",
        "line 23, column 3: field BeginString is declared twice",
    );
    check(
        "<field name='PartyID' required='Y'/><field name='PartyRole' required='N'/>",
        "",
        "line 16, column 4: group 453 of NoPartyIDs has no fields",
    );
    check(
        "<field name='PartyRole' required='N'/>",
        "<component name='Parties'/>",
        "line 15, column 3: component Parties contains itself",
    );
    check(
        "<fields>",
        "<fieldz>",
        "line 33, column 2: expected 'fieldz' tag, not 'fields'",
    );
}

#[test]
fn errors_in_orchestra_xml_name_line_and_cause() {
    let check = |from: &str, to: &str, expected: &str| {
        assert_eq!(error(ORCHESTRA, from, to), expected);
    };
    check(
        "<fixr:fieldRef id='54'",
        "<fixr:fieldRef id='55'",
        "line 40, column 5: field 55 is not declared",
    );
    check(
        "<fixr:groupRef id='1012'",
        "<fixr:groupRef id='1'",
        "line 39, column 5: group 1 is not declared",
    );
    check(
        "id='9' name='BodyLength'",
        "id='8' name='BodyLength'",
        "line 10, column 3: tag 8 is declared twice",
    );
    check(
        "type='SideCodeSet'",
        "type='SidesCodeSet'",
        "line 14, column 3: code set SidesCodeSet is not declared",
    );
    check(
        "<fixr:fieldRef id='452'/>",
        "<fixr:groupRef id='1012'/>",
        "line 29, column 3: component group Parties#base contains itself",
    );
    check(
        "<fixr:numInGroup id='453'/>",
        "",
        "line 29, column 3: <numInGroup> is missing",
    );
    check(
        "</fixr:messages>",
        "<fixr:message id='15' name='Other' msgType='E'/></fixr:messages>",
        "line 44, column 2: <structure> is missing",
    );
    check(
        "type='SideCodeSet'",
        "codeSet='Sides'",
        "line 14, column 3: code set Sides is not declared",
    );
    check(
        "id='11' name",
        "id='11' lengthId='11' name",
        "line 12, column 3: invalid value lengthId=\"11\"",
    );
}

#[test]
fn what_orchestra_xml_declares_twice_is_refused() {
    let check = |from: &str, to: &str, expected: &str| {
        assert_eq!(error(ORCHESTRA, from, to), expected);
    };
    check(
        "</fixr:codeSets>",
        "<fixr:codeSet name='SideCodeSet' id='55' type='char'/></fixr:codeSets>",
        "line 7, column 2: code set SideCodeSet is declared twice",
    );
    check(
        "name='BodyLength'",
        "name='BeginString'",
        "line 10, column 3: field BeginString is declared twice",
    );
    check(
        "name='StandardTrailer'",
        "name='StandardHeader'",
        "line 24, column 3: component StandardHeader is declared twice",
    );
    check(
        "id='1025' name",
        "id='1024' name",
        "line 24, column 3: component 1024 is declared twice",
    );
    check(
        "</fixr:messages>",
        "<fixr:message id='15' name='Other' msgType='D'/></fixr:messages>",
        "line 44, column 2: message D is declared twice",
    );
}

#[test]
fn what_is_no_dictionary_is_refused() {
    for text in ["", "FIX", "<html/>", "<fix", "<fix major='4'/>"] {
        assert!(Dictionary::from_xml(text).is_err(), "{text}");
    }
    let entities = "<!DOCTYPE fix [<!ENTITY a 'aaaa'>]><fix major='4' minor='4'>&a;</fix>";
    let error = Dictionary::from_xml(entities).unwrap_err();
    assert!(matches!(error.cause, Cause::Syntax(_)), "{error}");
}

#[test]
fn elements_with_too_many_attributes_or_namespaces_are_refused() {
    let header = |count: usize, attribute: &dyn Fn(usize) -> String| {
        let attributes: String = (0..count).map(attribute).collect();
        QUICKFIX.replace("<header>", &format!("<header{attributes}>"))
    };
    let attributes = |count| header(count, &|i| format!(" x{i}='>'"));
    let namespaces = |count| header(count, &|i| format!(" xmlns:x{i}='u'"));
    for fits in [attributes(256), namespaces(64)] {
        assert_eq!(schema_from_xml(&fits), schema_from_xml(QUICKFIX));
    }
    for (exceeds, expected) in [
        (
            attributes(257),
            "line 2, column 2: an element with more than 256 attributes",
        ),
        (namespaces(65), "line 2, column 2: more than 64 namespaces"),
    ] {
        let error = Dictionary::from_xml(&exceeds).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(schema_from_xml(&exceeds), Err(error));
    }
}

/// Forty components that each name the next one twice would unfold to 2^40 fields, or, with
/// nothing in the last one, to none in 2^40 steps.
#[test]
fn components_that_unfold_without_end_are_refused() {
    let mut components = String::new();
    for i in 0..40 {
        let next = format!("<component name='c{}'/>", i + 1);
        components += &format!("<component name='c{i}'>{next}{next}</component>");
    }
    for (last, why) in [
        ("<field name='f'/>", "fields of a message or group"),
        ("", "items in all messages"),
    ] {
        let text = format!(
            "<fix major='4' minor='4'><messages><message name='m' msgtype='m'>\
             <component name='c0'/></message></messages>\
             <components>{components}<component name='c40'>{last}</component></components>\
             <fields><field number='1' name='f' type='INT'/></fields></fix>"
        );
        let error = Dictionary::from_xml(&text).unwrap_err().to_string();
        assert!(
            error.contains("more than") && error.contains(why),
            "{error}"
        );
    }
}

/// A byte for each field in each message would be 64 MiB.
#[test]
fn many_messages_with_many_fields_are_refused() {
    let messages = (0..8192).map(|i| format!("<message name='m' msgtype='{i}'/>"));
    let fields = (1..=8192).map(|i| format!("<field number='{i}' name='f{i}' type='INT'/>"));
    let text = format!(
        "<fix major='4' minor='4'><messages>{}</messages><fields>{}</fields></fix>",
        messages.collect::<String>(),
        fields.collect::<String>()
    );
    let error = Dictionary::from_xml(&text).unwrap_err().to_string();
    assert_eq!(error, "more than 67108864 pairs of a message and a field");
}

/// Each of 1,000 fields would have the 2,000 values of the code set.
#[test]
fn many_fields_with_many_values_are_refused() {
    let codes = (0..2000).map(|i| format!("<fixr:code name='c{i}' id='{i}' value='{i}'/>"));
    let fields = (0..1000).map(|i| {
        let id = 6000 + i;
        format!("<fixr:field id='{id}' name='f{i}' type='SideCodeSet'/>")
    });
    let codes = codes.collect::<String>() + "</fixr:codeSet>";
    let fields = fields.collect::<String>() + "</fixr:fields>";
    let text = ORCHESTRA
        .replace("</fixr:codeSet>", &codes)
        .replace("</fixr:fields>", &fields);
    let error = Dictionary::from_xml(&text).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 values"), "{error}");
}

/// The second section would be left out.
#[test]
fn sections_that_occur_twice_are_refused() {
    let text = QUICKFIX.replace("</messages>", "</messages>\n<messages/>");
    let error = Dictionary::from_xml(&text).unwrap_err().to_string();
    assert!(
        error.ends_with("section messages is declared twice"),
        "{error}"
    );
    // Those that are not read do not matter.
    let text = QUICKFIX.replace("</messages>", "</messages>\n<own/><own/>");
    Dictionary::from_xml(&text).unwrap();
}

#[test]
fn what_a_generator_of_code_does_not_tolerate_in_orchestra_is_named() {
    assert_eq!(check_xml(ORCHESTRA), Ok(Vec::new()));
    let own = ORCHESTRA.replace("type='int'/>", "type='Own'/>");
    let with_type = "<fixr:datatypes><fixr:datatype name='Own'/></fixr:datatypes>\n <fixr:fields>";
    assert_eq!(
        check_xml(&own.replace("<fixr:fields>", with_type)),
        Ok(Vec::new())
    );
    for (from, to, why) in [
        ("type='int'/>", "type='Own'/>", "invalid value type=\"Own\""),
        (
            "id='54' type='char'",
            "id='54' type='car'",
            "invalid value type=\"car\"",
        ),
        (
            "<fixr:fieldRef id='54' presence='required'/>",
            "<fixr:fieldRef id='54' presence='requird'/>",
            "line 40, column 5: invalid value presence=\"requird\"",
        ),
        (
            "<fixr:fieldRef id='54' presence='required'/>",
            "<fixr:feldRef id='54' presence='required'/>",
            "line 40, column 5: element feldRef is not declared",
        ),
    ] {
        let error = check_xml(&ORCHESTRA.replace(from, to))
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(why), "{error}");
    }
    let twice = check_xml(&ORCHESTRA.replace("value='2'", "value='1'")).unwrap();
    assert_eq!(twice.len(), 1);
    assert!(twice[0].to_string().ends_with("value 1 is declared twice"));
}

#[test]
fn groups_in_each_other_without_end_are_refused() {
    let deep = 5_000;
    let open = "<group name='f'>".repeat(deep);
    let close = "</group>".repeat(deep);
    let text = format!(
        "<fix major='4' minor='4'><messages><message name='m' msgtype='m'>{open}{close}\
         </message></messages><fields><field number='1' name='f' type='INT'/></fields></fix>"
    );
    let error = Dictionary::from_xml(&text).unwrap_err();
    assert_eq!(error.cause, Cause::TooDeep);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever stands in the text, the loaders end with a dictionary or an error.
    #[test]
    fn spoiled_texts_are_refused_or_loaded(
        orchestra in any::<bool>(),
        cuts in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..12_usize, "[ -~]{0,8}"),
            1..4,
        ),
    ) {
        let mut text = if orchestra { ORCHESTRA } else { QUICKFIX }.to_owned();
        for (at, len, put) in cuts {
            let at = at.index(text.len());
            let end = (at + len).min(text.len());
            text.replace_range(at..end, &put);
        }
        if let Ok(dictionary) = Dictionary::from_xml(&text) {
            found(&dictionary, "35=D|11=1|453=1|448=A|54=1|");
        }
    }

    #[test]
    fn any_text_is_refused_or_loaded(text in "\\PC{0,200}") {
        prop_assert!(Dictionary::from_xml(&text).is_err());
    }
}
