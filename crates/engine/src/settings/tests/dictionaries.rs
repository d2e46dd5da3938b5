//! The dictionaries that received messages are checked by.

use super::*;
use fanfare_fix::codec::{Decoder, Encoder};
use fanfare_fix::session::{Context, Validator};
use std::path::PathBuf;
use std::sync::Arc;

const CONTEXT: Context = Context {
    default_appl_ver_id: None,
};
const HEAD: &str = "34=1|49=TW|52=20261121-09:30:00|56=ISLD|";

/// Returns a message with these fields after its MsgType(35).
fn message(begin_string: &str, msg_type: &str, fields: &str) -> Vec<u8> {
    let mut room = [0; 512];
    let mut encoder = Encoder::new(&mut room, begin_string.as_bytes(), msg_type.as_bytes());
    encoder.raw(fields.replace('|', "\x01").as_bytes());
    let range = encoder.finish().unwrap();
    room[range].to_vec()
}

/// Returns the validator of received messages of a session with these lines.
fn validator(begin_string: &str, lines: &str) -> Arc<dyn Validator> {
    let default = match begin_string {
        "FIXT.1.1" if !lines.contains("DefaultApplVerID") => "DefaultApplVerID=FIX.5.0SP2\n",
        _ => "",
    };
    let text = format!("{ACCEPTOR}[SESSION]\nBeginString={begin_string}\n{default}{lines}");
    let mut endpoints = Settings::parse(&text).unwrap().endpoints().unwrap();
    let session = endpoints.acceptors.remove(0).sessions.remove(0);
    session.session.validator.unwrap()
}

/// Returns the fault of a message, or nothing.
fn found(validator: &dyn Validator, message: &[u8]) -> String {
    let mut decoder = Decoder::new();
    let message = decoder.decode(message).unwrap();
    let fault = validator.check(&message, &CONTEXT).err();
    fault.map_or(String::new(), |fault| fault.to_string())
}

/// A dictionary in a folder of its own, which is removed with it.
struct Own(PathBuf);

impl Own {
    fn new(name: &str, text: &str) -> Self {
        let folder = format!("fanfare-dictionary-{name}-{}", std::process::id());
        let own = Self(std::env::temp_dir().join(folder));
        std::fs::create_dir_all(&own.0).unwrap();
        std::fs::write(own.0.join("own.xml"), text).unwrap();
        own
    }

    fn path(&self) -> String {
        self.0.join("own.xml").display().to_string()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A dictionary of FIX.5.0SP2 with one message.
const NEWS: &str = "<fix type='FIX' major='5' minor='0' servicepack='2'><messages>\
    <message name='News' msgtype='B' msgcat='app'><field name='Headline' required='Y'/></message>\
    </messages><fields><field number='148' name='Headline' type='STRING'/></fields></fix>";

#[test]
fn messages_of_the_default_version_are_checked_where_another_one_has_a_file() {
    let file = Own::new("default", NEWS);
    let lines = format!(
        "DefaultApplVerID=FIX.4.4\nAppDataDictionary.FIX.5.0SP2={}\n",
        file.path()
    );
    let validator = validator("FIXT.1.1", &lines);
    let order = format!("{HEAD}11=a|55=IBM|54=1|38=1|40=1|60=20261121-09:30:00|");
    let valid = message("FIXT.1.1", "D", &order);
    assert_eq!(found(&*validator, &valid), "");
    let sideless = message("FIXT.1.1", "D", &order.replace("54=1|", ""));
    assert_eq!(found(&*validator, &sideless), "Required tag missing (54)");
}

#[test]
fn dictionaries_may_be_in_other_encodings_than_utf_8() {
    let file = Own::new("encoding", "");
    let text = "<?xml version='1.0' encoding='ISO-8859-1'?><!-- caf\u{e9} -->";
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    std::fs::write(file.path(), latin).unwrap();
    assert_eq!(read_dictionary(Path::new(&file.path())).unwrap(), text);
    std::fs::write(file.path(), b"<fix>\n\xe9</fix>").unwrap();
    let error = read_dictionary(Path::new(&file.path())).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 1: not valid UTF-8");
}

/// As in QuickFIX.
#[test]
fn the_key_with_the_default_version_takes_precedence() {
    let lines = "DefaultApplVerID=FIX.5.0SP2\nAppDataDictionary=a.xml\n\
        AppDataDictionary.FIX.5.0SP2=b.xml\n";
    let files = session("FIXT.1.1", lines).dictionaries.unwrap();
    let files = files.applications.into_iter();
    let files: Vec<_> = files.map(|(version, file)| (version, file.path)).collect();
    assert_eq!(files, [(dict::Version::Fix50Sp2, "b.xml".into())]);
}

#[test]
fn dictionaries_of_other_versions_have_no_effect_and_are_named() {
    let remarks = |version: &str, lines: &str| -> Vec<String> {
        let text = format!("{ACCEPTOR}[SESSION]\nBeginString={version}\n{lines}");
        let remarks = Settings::parse(&text).unwrap().remarks;
        remarks.iter().map(ToString::to_string).collect()
    };
    let of_both = "DefaultApplVerID=9\nDataDictionary=a\nAppDataDictionary=b\n";
    let named = "AppDataDictionary.FIX.5.0SP2=c\nAppDataDictionary.FIX.4.4=d\n";
    let fixt = remarks("FIXT.1.1", &format!("{of_both}{named}"));
    let expected = [
        "line 9: DataDictionary=a is not supported, only without FIXT.1.1",
        "line 10: AppDataDictionary=b is not supported, only without a file for the default \
         version",
    ];
    assert_eq!(fixt, expected);
    let older = remarks("FIX.4.4", &format!("{of_both}TransportDataDictionary=c\n"));
    let expected = [
        "line 8: DefaultApplVerID=9 is not supported, only with FIXT.1.1",
        "line 10: AppDataDictionary=b is not supported, only with FIXT.1.1",
        "line 11: TransportDataDictionary=c is not supported, only with FIXT.1.1",
    ];
    assert_eq!(older, expected);
    // In [DEFAULT] they are for the other session.
    let text = format!("{ACCEPTOR}{of_both}[SESSION]\nBeginString=FIX.4.4\n");
    assert_eq!(Settings::parse(&text).unwrap().remarks, []);
}

#[test]
fn sessions_with_the_same_files_share_their_dictionaries() {
    let file = Own::new("shared", NEWS);
    let session = |target: &str| {
        format!(
            "[SESSION]\nBeginString=FIXT.1.1\nTargetCompID={target}\n\
             DefaultApplVerID=FIX.5.0SP2\nAppDataDictionary={}\n",
            file.path()
        )
    };
    let text = format!("{ACCEPTOR}{}{}", session("A"), session("B"));
    let mut endpoints = Settings::parse(&text).unwrap().endpoints().unwrap();
    let sessions = endpoints.acceptors.remove(0).sessions;
    let bytes = message("FIXT.1.1", "B", &format!("{HEAD}148=x|"));
    let mut decoder = Decoder::new();
    let news = decoder.decode(&bytes).unwrap();
    let of = |index: usize| {
        let validator = sessions[index].session.validator.as_ref().unwrap();
        validator.groups(&news, &CONTEXT).unwrap()
    };
    assert!(std::ptr::addr_eq(of(0), of(1)));
}

#[test]
fn fields_that_the_settings_use_are_valid_in_every_version() {
    let lines = "Username=u\nPassword=p\nEnableNextExpectedMsgSeqNum=Y\n\
        EnableLastMsgSeqNumProcessed=Y\n";
    for (version, without) in [
        ("FIX.4.0", "Invalid tag number (369)"),
        ("FIX.4.1", "Invalid tag number (369)"),
        ("FIX.4.2", "Invalid tag number (553)"),
        ("FIX.4.3", "Invalid tag number (789)"),
        ("FIX.4.4", ""),
        ("FIXT.1.1", ""),
    ] {
        let version_id = if version == "FIXT.1.1" { "1137=9|" } else { "" };
        let fields = format!("{HEAD}369=1|98=0|108=30|553=u|554=p|789=1|{version_id}");
        let logon = message(version, "A", &fields);
        assert_eq!(found(&*validator(version, lines), &logon), "", "{version}");
        let plain = found(&*validator(version, ""), &logon);
        assert_eq!(plain, without, "{version}");
    }
}

#[test]
fn application_versions_without_a_file_have_the_built_in_tables() {
    let validator = validator("FIXT.1.1", "");
    let order = "11=a|21=1|55=IBM|54=1|38=1|40=1|";
    for (version, time) in [(2, ""), (4, "60=20261121-09:30:00|")] {
        let order = format!("{HEAD}1128={version}|{order}{time}");
        let valid = message("FIXT.1.1", "D", &order);
        assert_eq!(found(&*validator, &valid), "", "{version}");
        let order = order.replace("21=1|", "");
        let fault = found(&*validator, &message("FIXT.1.1", "D", &order));
        assert_eq!(fault, "Required tag missing (21)", "{version}");
    }
}

#[test]
fn sessions_without_checks_have_the_groups_of_their_dictionary() {
    let own = "<fix major='4' minor='4'><messages><message name='Own' msgtype='D' msgcat='app'>\
        <field name='ID' required='Y'/><group name='NoOwn' required='N'>\
        <field name='OwnID' required='Y'/></group></message></messages><fields>\
        <field number='11' name='ID' type='STRING'/>\
        <field number='6000' name='NoOwn' type='NUMINGROUP'/>\
        <field number='6001' name='OwnID' type='STRING'/></fields></fix>";
    let file = Own::new("groups", own);
    let lines = format!(
        "ValidateIncomingMessage=N\nDataDictionary={}\n",
        file.path()
    );
    let validator = validator("FIX.4.4", &lines);
    let bytes = message("FIX.4.4", "D", &format!("{HEAD}6000=2|6001=x|6001=y|99=z|"));
    assert_eq!(found(&*validator, &bytes), "");
    let mut decoder = Decoder::new();
    let order = decoder.decode(&bytes).unwrap();
    let order = order.with_groups(validator.groups(&order, &CONTEXT).unwrap());
    assert_eq!((order.get(6001), order.get(99)), (None, Some(&b"z"[..])));
    assert_eq!(order.group(6000).unwrap().count(), 2);
}
