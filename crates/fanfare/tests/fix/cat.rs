//! Tests of `fanfare fix cat`: logs, streams and captures, well-formed and malformed.

use fanfare_instruments::pcap::{LinkType, Writer};
use fanfare_peers::fix::framed;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Folder, Running, Said, fanfare};

fn command(args: &[&str]) -> Command {
    let mut command = fanfare(&[&["fix", "cat"], args].concat());
    command.stdin(Stdio::piped());
    command
}

/// Runs the command with this on stdin.
fn cat(args: &[&str], text: &[u8]) -> Said {
    let mut running = Running::start(&mut command(args));
    running.reads(text);
    running.end()
}

/// Returns an order with `|`.
fn order(begin_string: &str, seq: u32, fields: &str) -> String {
    let header = format!("35=D|49=A|56=B|34={seq}|52=20261121-10:00:00|");
    framed(begin_string, &format!("{header}{fields}"))
}

#[test]
fn a_log_is_printed_with_names_groups_and_what_is_wrong() {
    let fields = "453=3|448=X|447=D|448=Y|452=3|54=1|";
    let good = order("FIX.4.4", 2, fields);
    let bad = order("FIX.4.2", 3, "54=2|").replace("|54=2|", "|54=5|");
    let log = format!(
        "up\n12:00 [in] {good}\n\n12:01 {}\ndown\n",
        bad.replace('|', "^A")
    );
    let said = cat(&[], log.as_bytes());
    assert_eq!(said.code, 0);
    let groups = "\n  NoPartyIDs(453) = 3\n  \
                  [1] PartyID(448) = X\n      PartyIDSource(447) = D Proprietary\n  \
                  [2] PartyID(448) = Y\n      PartyRole(452) = 3 ClientID\n  \
                  Side(54) = 1 Buy\n";
    assert!(
        said.out.starts_with("12:00 [in]\nNewOrderSingle(D)\n"),
        "{}",
        said.out
    );
    assert!(said.out.contains(groups), "{}", said.out);
    assert!(
        said.out
            .contains("  ! NoPartyIDs(453) is 3, 2 entries follow\n")
    );
    // Side 5 of FIX.4.2 differs from that of the message as sent.
    assert!(
        said.out.contains("\n\n12:01\nOrderSingle(D)\n"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("Side(54) = 5 SellShort\n"),
        "{}",
        said.out
    );
    assert!(said.out.contains("  ! CheckSum(10) is "), "{}", said.out);
    let counts = "2 messages, 2 shown, 2 with faults; 6 other bytes on 2 lines skipped\n";
    assert_eq!(said.err, counts);
    let folder = Folder::new("cat-log");
    let from_file = cat(&[&folder.with("log", &log)], b"");
    assert_eq!((from_file.code, from_file.out), (0, said.out));
}

#[test]
fn json_is_one_object_a_message_and_grep_chooses() {
    let log: String = [
        order("FIX.4.2", 2, "55=IBM|54=1|"),
        order("FIX.4.4", 3, "55=IBM|54=2|55=twice|453=1|448=P|"),
        order("FIX.4.4", 4, "55=AAPL|54=1|"),
    ]
    .concat();
    let log = log.replace('|', "\x01");
    let all = cat(&["--json"], log.as_bytes()).json_lines();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["version"], "FIX.4.2");
    assert_eq!(all[1]["message"], "NewOrderSingle");
    let fields = &all[1]["fields"];
    assert_eq!(
        (&fields["Symbol"], &fields["Symbol#2"]),
        (&"IBM".into(), &"twice".into())
    );
    assert_eq!(
        (&fields["Side"], &fields["Side.name"]),
        (&"2".into(), &"Sell".into())
    );
    assert_eq!(fields["NoPartyIDs"][0]["PartyID"], "P");
    assert!(all[1].get("faults").is_none(), "{}", all[1]);
    for (grep, seqs) in [
        (&["55=IBM"][..], &["2", "3"][..]),
        (&["Symbol=IBM", "Side=Sell"], &["3"]),
        (&["side=Buy"], &["2", "4"]),
        (&["MsgType=NewOrderSingle"], &["2", "3", "4"]),
        (&["35=D", "34=4"], &["4"]),
        (&["448=P"], &["3"]),
        (&["55=none"], &[]),
    ] {
        let greps = grep.iter().flat_map(|test| ["--grep", test]);
        let args: Vec<&str> = ["--json"].into_iter().chain(greps).collect();
        let said = cat(&args, log.as_bytes());
        let json = said.json_lines();
        let found: Vec<_> = json
            .iter()
            .map(|m| m["fields"]["MsgSeqNum"].as_str().unwrap())
            .collect();
        assert_eq!((said.code, found.as_slice()), (0, seqs), "{grep:?}");
    }
    for wrong in ["55", "Symbl=IBM", "0=1"] {
        let said = cat(&["--grep", wrong], log.as_bytes());
        assert_eq!((said.code, said.out.as_str()), (2, ""));
        assert!(
            said.err.contains(&format!("--grep {wrong}: ")),
            "{}",
            said.err
        );
    }
}

#[test]
fn names_follow_the_session_and_the_users_dictionary() {
    let logon = "35=A|49=A|56=B|34=1|52=20261121-10:00:00|98=0|108=30|1137=7|";
    let log = framed("FIXT.1.1", logon) + &order("FIXT.1.1", 2, "5001=1|54=1|");
    let all = cat(&["--json"], log.as_bytes()).json_lines();
    assert_eq!(all[1]["version"], "FIX.5.0");
    assert_eq!(all[1]["fields"]["5001"], "1");
    let xml = "<fix type='FIX' major='5' minor='0'><header/><messages/><trailer/><components/>\
               <fields><field number='5001' name='Desk' type='INT'>\
               <value enum='1' description='EQUITIES'/></field></fields></fix>";
    let folder = Folder::new("cat-dictionary");
    let path = folder.with("user.xml", xml);
    let args = ["--json", "--dictionary", &path, "--grep", "Desk=EQUITIES"];
    let all = cat(&args, log.as_bytes()).json_lines();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["fields"]["Desk"], "1");
    assert_eq!(all[0]["fields"]["Side.name"], "Buy");
    let broken = folder.with(
        "broken.xml",
        b"<fix major='4' minor='4'>\n<fields><field number='x' name='A'/></fields></fix>",
    );
    let said = cat(&["--dictionary", &broken], log.as_bytes());
    assert_eq!(said.code, 1);
    assert!(said.err.contains("broken.xml: line 2"), "{}", said.err);
}

#[test]
fn data_fields_of_the_users_dictionary_may_hold_separators() {
    let xml = "<fix type='FIX' major='4' minor='4'><header/><trailer/><components/><messages>\
               <message name='Odd' msgtype='D' msgcat='app'><field name='BlobLen' required='N'/>\
               <field name='Blob' required='N'/></message></messages><fields>\
               <field number='6032' name='BlobLen' type='LENGTH'/>\
               <field number='6033' name='Blob' type='DATA'/></fields></fix>";
    let folder = Folder::new("cat-data");
    let path = folder.with("user.xml", xml);
    let wire = order("FIX.4.4", 2, "6032=11|6033=a|58=forged|54=1|").replace('|', "\x01");
    let all = cat(&["--json", "--dictionary", &path], wire.as_bytes()).json_lines();
    let fields = &all[0]["fields"];
    assert_eq!(fields["Blob"], "a\u{1}58=forged");
    assert_eq!(
        (&fields["Text"], &all[0]["faults"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn groups_of_the_users_dictionary_have_its_own_fields() {
    let xml = "<fix major='4' minor='4'><messages><message name='Order' msgtype='D'>\
               <group name='NoPartyIDs'><field name='PartyID'/><field name='Desk'/></group>\
               </message></messages><fields>\
               <field number='453' name='NoPartyIDs' type='NUMINGROUP'/>\
               <field number='448' name='PartyID' type='STRING'/>\
               <field number='5001' name='Desk' type='STRING'/></fields></fix>";
    let folder = Folder::new("cat-groups");
    let path = folder.with("user.xml", xml);
    let log = order("FIX.4.4", 2, "453=2|448=P|5001=a|448=Q|5001=b|54=1|");
    let all = cat(&["--json", "--dictionary", &path], log.as_bytes()).json_lines();
    let parties = &all[0]["fields"]["NoPartyIDs"];
    assert_eq!(parties[0]["Desk"], "a");
    assert_eq!(parties[1]["PartyID"], "Q");
    assert_eq!(all[0]["faults"], Value::Null);
}

#[test]
fn colours_are_for_terminals_or_when_asked_for() {
    let log = order("FIX.4.4", 2, "54=1|");
    let plain = cat(&[], log.as_bytes()).out;
    assert!(!plain.contains('\x1b'));
    let colour = cat(&["--color", "always"], log.as_bytes()).out;
    assert!(colour.contains("\x1b[32mBuy\x1b[0m"), "{colour}");
    assert_eq!(cat(&["--color", "never"], log.as_bytes()).out, plain);
    assert_eq!(cat(&["--color", "sometimes"], b"").code, 2);
    // Neither a value nor a prefix can control the terminal.
    let hostile = format!("\x1b[2J {}", order("FIX.4.4", 2, "58=\x1b[2J\u{7}|"));
    let shown = cat(&[], hostile.as_bytes()).out;
    assert!(
        !shown.contains('\x1b') && !shown.contains('\u{7}'),
        "{shown}"
    );
}

#[test]
fn what_is_no_fix_is_told() {
    for (text, why) in [
        (&b""[..], "no FIX message in stdin: the input is empty"),
        (b"hello\n", "no FIX message in stdin: 5 other bytes"),
        (b"x\n", "no FIX message in stdin: 1 other byte\n"),
        (&[0x1f, 0x8b, 8, 0, 0, 0], "compressed with gzip"),
    ] {
        let said = cat(&[], text);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        assert!(said.err.contains(why), "{}", said.err);
    }
    let said = cat(&["/nothing/here"], b"");
    assert!(said.code == 1 && said.err.contains("cannot read /nothing/here"));
}

#[test]
fn an_endless_line_ends() {
    let mut text = b"8=FIX.4.4|9=99999999|58=".to_vec();
    text.resize(5 << 20, b'x');
    text.extend_from_slice(order("FIX.4.4", 9, "").as_bytes());
    let said = cat(&["--json"], &text);
    assert_eq!((said.code, said.json_lines().len()), (0, 1), "{}", said.err);
    assert_eq!(said.json_lines()[0]["fields"]["MsgSeqNum"], "9");
}

#[test]
fn a_growing_log_is_followed_and_an_interrupt_ends_it() {
    let mut running = Running::start(&mut command(&["--json"]));
    let mut stdin = running.stdin();
    for seq in 1..=2 {
        writeln!(stdin, "{}", order("FIX.4.4", seq, "")).unwrap();
        let object: Value = serde_json::from_str(&running.prints("{")).unwrap();
        assert_eq!(object["fields"]["MsgSeqNum"], seq.to_string());
    }
    running.interrupt();
    let err = running.end().succeeded().err;
    assert!(err.starts_with("2 messages, 2 shown"), "{err}");
}

/// Returns a TCP segment over IPv4 between two ends of loopback.
fn packet(from: u16, to: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x45, 0];
    ip.extend((40 + payload.len() as u16).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    ip.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
    ip.extend(sequence.to_be_bytes());
    ip.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    ip.extend(payload);
    ip
}

#[test]
fn a_capture_is_put_back_in_order() {
    let wire = |text: String| text.replace('|', "\x01").into_bytes();
    let all = [1, 2, 3]
        .map(|seq| wire(order("FIX.4.4", seq, "54=1|")))
        .concat();
    let answer = wire(order("FIX.4.4", 7, "54=2|"));
    let (one, rest) = all.split_at(40);
    let (two, three) = rest.split_at(100);
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    let time = 1_795_168_800_000_000_000;
    for (at, ip) in [
        packet(4000, 3000, 1, one),
        packet(4000, 3000, 141, three),
        packet(3000, 4000, 1, &answer),
        packet(4000, 3000, 41, two),
        packet(4000, 3000, 41, two),
    ]
    .iter()
    .enumerate()
    {
        writer.packet(time + at as u64, ip, 0).unwrap();
    }
    let capture = writer.into_inner();
    let folder = Folder::new("cat-capture");
    let path = folder.with("run.pcap", &capture);
    let said = cat(&["--json", &path], b"");
    assert_eq!(said.code, 0, "{}", said.err);
    let told: Vec<String> = said
        .json_lines()
        .iter()
        .map(|m| format!("{} {}", m["fields"]["MsgSeqNum"], m["prefix"]))
        .collect();
    let there = "127.0.0.1:4000 -> 127.0.0.1:3000";
    let expected = [
        "\"7\" \"20261120-10:00:00.000000002 127.0.0.1:3000 -> 127.0.0.1:4000\"".to_owned(),
        format!("\"1\" \"20261120-10:00:00.000000003 {there}\""),
        format!("\"2\" \"20261120-10:00:00.000000003 {there}\""),
        format!("\"3\" \"20261120-10:00:00.000000003 {there}\""),
    ];
    assert_eq!(told, expected);
    // From stdin too, a capture that ends within a packet is reported.
    let said = cat(&[], &capture[..capture.len() - 10]);
    assert_eq!(said.code, 0);
    assert!(
        said.err.contains("cut off in the middle of the packet"),
        "{}",
        said.err
    );
}

#[test]
fn no_value_and_no_name_steers_the_terminal() {
    let text = "a\x1b[2J\u{7f}\u{9b}31m\u{202e}\u{2028}\\b";
    let message = order("FIX.4.4", 2, &format!("55=IBM|20001=1|58={text}|"));
    let log = format!("\u{9b}2Jat \u{202e} {message}\n");
    let names = "<fix type='FIX' major='4' minor='4' servicepack='0'><header/><trailer/>\
                 <messages/><components/><fields><field number='20001' name='x\u{9b}y' \
                 type='STRING'/></fields></fix>";
    let folder = Folder::new("cat-steer");
    let names = folder.with("names.xml", names);
    let with_names = ["--dictionary", &names];
    let plain = cat(&with_names, log.as_bytes());
    let json = cat(&[&["--json"], &with_names[..]].concat(), log.as_bytes());
    for said in [&plain, &json] {
        assert_eq!(said.code, 0, "{}", said.err);
        let odd = said.out.chars().find(|char| {
            char.is_control() && *char != '\n' || matches!(char, '\u{202e}' | '\u{2028}')
        });
        assert_eq!(odd, None, "{}", said.out);
    }
    let shown = r"Text(58) = a\u{1b}[2J\u{7f}\u{9b}31m\u{202e}\u{2028}\\b";
    assert!(plain.out.contains(shown), "{}", plain.out);
    assert!(plain.out.contains(r"x\u{9b}y(20001) = 1"), "{}", plain.out);
    assert_eq!(json.json_lines()[0]["fields"]["Text"], text);
}

#[test]
fn secrets_are_masked_unless_they_are_asked_for() {
    let header = "35=A|49=A|56=B|34=1|52=20261121-10:00:00|98=0|108=30|";
    let secrets = "95=8|96=raw|data|553=me|554=open|925=sesame|1402=crypt|1404=again|5555=token|";
    let logon = framed("FIX.4.4", &format!("{header}{secrets}"));
    // The message has a wrong sum and no end.
    let cut = "8=FIX.4.4|9=99|35=BE|49=A|56=B|34=2|923=r|924=1|553=me|554=un|925=told";
    let log = format!("10:00 {logon}\n10:01 {cut}\n");
    let hidden = [
        "raw", "data", "open", "sesame", "crypt", "again", "token", "un", "told",
    ];
    for args in [&[][..], &["--json"]] {
        let masked = cat(args, log.as_bytes()).succeeded().out;
        for secret in hidden {
            let found = masked.split(|c: char| !c.is_ascii_alphanumeric());
            assert!(
                !found.into_iter().any(|word| word == secret),
                "{secret}: {masked}"
            );
        }
        assert!(
            masked.contains("me") && masked.contains("******"),
            "{masked}"
        );
        assert!(!masked.contains(", expected "), "{masked}");
        let shown = cat(&[args, &["--show-secrets"]].concat(), log.as_bytes());
        let shown = shown.succeeded().out;
        for secret in hidden {
            assert!(shown.contains(secret), "{secret}: {shown}");
        }
    }
    let masked = cat(&["--json", "--grep", "Password=open"], log.as_bytes());
    let fields = &masked.json_lines()[0]["fields"];
    assert_eq!(
        (&fields["Password"], &fields["RawData"]),
        (&"****".into(), &"********".into())
    );
    // The received value, not that of the masked message.
    let sum = &logon[logon.len() - "000|".len()..logon.len() - 1];
    assert_eq!(fields["CheckSum"], sum);
}
