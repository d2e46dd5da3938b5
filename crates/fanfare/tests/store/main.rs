//! End-to-end tests of `fanfare store`: stores that are intact, torn, damaged, in use.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;

use common::{Folder, Said};
use fanfare_engine::journal::{Durability, Journal, Options, folder_for};
use fanfare_fix::session::{Entry, Kind, MessageStore};
use fanfare_peers::fix::framed;
use fanfare_wire::UtcTimestamp;
use std::path::{Path, PathBuf};

const IDENTITY: &str = "FIX.4.4:BUY->SELL";
/// Header and one entry of a segment file.
const HEADER: usize = 4096;
const ENTRY: usize = 32;

/// A folder of stores.
struct Base(Folder);

impl Base {
    fn new(test: &str) -> Self {
        Self(Folder::new(test))
    }

    fn open(&self, identity: &str) -> Journal {
        self.open_with(identity, Durability::EveryN(100))
    }

    fn open_with(&self, identity: &str, durability: Durability) -> Journal {
        let options = Options {
            segment_bytes: 64 << 10,
            durability,
            ..Options::default()
        };
        let folder = folder_for(self.0.path(), identity);
        Journal::open(&folder, identity, options, now()).unwrap().0
    }

    /// Creates a store with a Logon and messages up to `last`, 7 expected next.
    fn with(test: &str, last: u64) -> Self {
        let (base, journal) = Self::filled(test, last, Durability::EveryN(100));
        journal.close().unwrap();
        base
    }

    /// Creates such a store as a kill leaves it: nothing of it is known to be on the disk.
    fn killed(test: &str, last: u64) -> Self {
        Self::filled(test, last, Durability::None).0
    }

    fn filled(test: &str, last: u64, durability: Durability) -> (Self, Journal) {
        let base = Self::new(test);
        let mut journal = base.open_with(IDENTITY, durability);
        put(&mut journal, "8=FIX.4.4\x0135=A\x0134=1\x01", Kind::Admin);
        for seq in 2..=last {
            put(&mut journal, &message(seq), Kind::App);
        }
        journal.set_next_target(7).unwrap();
        (base, journal)
    }

    fn folder(&self) -> PathBuf {
        folder_for(self.0.path(), IDENTITY)
    }

    fn file(&self) -> PathBuf {
        self.folder().join("0000000001.journal")
    }

    /// Flips a bit of the file.
    fn damage(&self, at: usize) {
        let mut image = std::fs::read(self.file()).unwrap();
        image[at] ^= 1;
        std::fs::write(self.file(), image).unwrap();
    }

    /// Runs a command of the group on the whole folder.
    fn run(&self, args: &[&str]) -> Said {
        run(args, self.0.path())
    }
}

fn now() -> UtcTimestamp {
    UtcTimestamp::from_nanos(1_795_168_800_000_000_000)
}

fn put(journal: &mut Journal, text: &str, kind: Kind) {
    let len = text.len();
    journal.reserve(len).unwrap()[..len].copy_from_slice(text.as_bytes());
    let transmit = true;
    journal.commit(0..len, Entry { kind, transmit }).unwrap();
    journal.drop_unsent();
}

fn message(seq: u64) -> String {
    format!("8=FIX.4.4\x0135=D\x0134={seq}\x0158=a \"quoted\" text\x01")
}

fn run(args: &[&str], folder: &Path) -> Said {
    let folder = folder.to_str().unwrap();
    common::run(&[&["store"], args, &[folder]].concat())
}

#[test]
fn sessions_are_listed_with_their_numbers() {
    let base = Base::with("list", 5);
    let _in_use = base.open("FIX.4.2:X->Y");
    let said = base.run(&["list"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let words: Vec<Vec<&str>> = said
        .out
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(words.len(), 3, "{}", said.out);
    assert_eq!(words[0][..3], ["session", "next", "out"]);
    assert_eq!(words[1][..4], ["FIX.4.2:X->Y", "1", "1", "0"]);
    let expected = ["FIX.4.4:BUY->SELL", "6", "7", "5"];
    assert_eq!(words[2][..4], expected);
    assert_eq!(words[2][6..], ["every", "100", "-", "in", "order"]);

    let lines = base.run(&["list", "--json"]).json_lines();
    assert_eq!(lines[1]["next_sender"], 6);
    assert_eq!(lines[1]["bytes"], 20 + 4 * message(2).len());
    assert_eq!(lines[1]["durability"], "every 100");
    let holder = &lines[0]["in_use_by"];
    assert!(holder.is_null() || *holder == std::process::id());
}

#[test]
fn a_folder_without_a_store_is_told() {
    let base = Base::new("none");
    for args in [["list"], ["verify"], ["export"], ["repair"]] {
        let said = base.run(&args);
        assert_eq!(said.code, 1);
        assert!(said.err.contains(" has no store"), "{}", said.err);
    }
    let said = run(&["list"], &base.0.path().join("nothing"));
    assert!(said.code == 1 && said.err.contains("cannot read "));
    assert_eq!(std::fs::read_dir(base.0.path()).unwrap().count(), 0);
}

#[test]
fn a_flipped_bit_is_found_with_its_place() {
    let base = Base::with("verify", 9);
    let said = base.run(&["verify"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(
        said.out,
        "FIX.4.4:BUY->SELL: 9 records in 1 file, all in order\n"
    );
    let fifth = HEADER + 4 * ENTRY;
    base.damage(fifth + 28);
    let said = base.run(&["verify"]);
    assert_eq!(said.code, 1);
    let place = format!("record 4 at byte {fifth}, MsgSeqNum 5: its CRC does not match");
    assert!(said.out.contains(&place), "{}", said.out);
    let said = base.run(&["verify", "--json"]);
    let fault = &said.json_lines()[0]["faults"][0];
    assert_eq!((&fault["record"], &fault["seq"]), (&4.into(), &5.into()));
    assert_eq!((said.code, &fault["offset"]), (1, &fifth.into()));
}

#[test]
fn messages_come_out_as_text_and_as_json() {
    let base = Base::with("export", 4);
    let said = base.run(&["export"]);
    let text = "8=FIX.4.4|35=A|34=1|\n\
                8=FIX.4.4|35=D|34=2|58=a \"quoted\" text|\n\
                8=FIX.4.4|35=D|34=3|58=a \"quoted\" text|\n\
                8=FIX.4.4|35=D|34=4|58=a \"quoted\" text|\n";
    assert_eq!((said.code, said.out.as_str()), (0, text), "{}", said.err);
    let said = base.run(&["export", "--json", "--from", "2", "--to", "3"]);
    let lines = said.json_lines();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["seq"], 3);
    assert_eq!(lines[1]["message"], message(3));
    let same = base.run(&["export", "--format", "json", "--from", "2", "--to", "3"]);
    assert_eq!(same.out, said.out);
    assert_eq!(base.run(&["export", "--format", "xml"]).code, 2);
    let said = base.run(&["export", "--from", "3", "--to", "2"]);
    assert_eq!(said.code, 2, "{}", said.err);
}

#[test]
fn both_directions_are_shown_where_both_are_kept() {
    let base = Base::with("both", 2);
    let received = base.folder().join("received");
    let (mut journal, _) = Journal::open(&received, IDENTITY, Options::default(), now()).unwrap();
    journal.set_next_sender(5).unwrap();
    put(&mut journal, "8=FIX.4.4\x0135=8\x0134=5\x01", Kind::App);
    journal.close().unwrap();
    let text = base.run(&["export"]).out;
    assert_eq!(
        text,
        "out 8=FIX.4.4|35=A|34=1|\n\
         out 8=FIX.4.4|35=D|34=2|58=a \"quoted\" text|\n\
         in  8=FIX.4.4|35=8|34=5|\n"
    );
    let lines = base.run(&["export", "--json"]).json_lines();
    let of = |line: &serde_json::Value| (line["direction"].clone(), line["seq"].clone());
    assert_eq!(
        lines.iter().map(of).collect::<Vec<_>>(),
        [
            ("out".into(), 1.into()),
            ("out".into(), 2.into()),
            ("in".into(), 5.into()),
        ]
    );
    let list = base.run(&["list", "--json"]).json_lines();
    assert_eq!(list[1]["session"], format!("{IDENTITY} received"));
    assert_eq!(list[1]["messages"], 1);
    assert_eq!(base.run(&["verify"]).code, 0);
}

#[test]
fn what_could_steer_a_terminal_is_only_exported_raw() {
    let base = Base::new("steer");
    let text = "8=FIX.4.4\x0135=B\x0134=1\x0158=a\x1b[2J\nforged \u{9b}\u{202e}\\\x01";
    let mut journal = base.open(IDENTITY);
    put(&mut journal, text, Kind::App);
    journal.close().unwrap();
    let shown = r"8=FIX.4.4|35=B|34=1|58=a\u{1b}[2J\nforged \u{9b}\u{202e}\\|";
    assert_eq!(base.run(&["export"]).out, format!("{shown}\n"));
    let json = base.run(&["export", "--json"]);
    assert!(
        json.out
            .trim_end()
            .chars()
            .all(|char| (' '..='~').contains(&char))
    );
    let raw = base.run(&["export", "--format", "raw"]);
    assert_eq!(raw.out, format!("{text}\n"));
}

#[test]
fn what_was_taken_back_is_only_exported_when_asked_for() {
    let base = Base::with("all", 3);
    let mut journal = base.open(IDENTITY);
    journal.set_next_sender(3).unwrap();
    drop(journal);
    assert_eq!(base.run(&["export"]).out.lines().count(), 2);
    let all = base.run(&["export", "--all"]).out;
    assert_eq!(all.lines().count(), 3, "{all}");
}

#[test]
fn a_torn_end_is_cut_off_and_told() {
    let base = Base::killed("torn", 9);
    // The state after a kill in the middle of the last message.
    let before: usize = 20 + (2..=8).map(|seq| message(seq).len()).sum::<usize>();
    let image = std::fs::read(base.file()).unwrap();
    let data = image.windows(9).position(|w| w == b"8=FIX.4.4").unwrap();
    base.damage(data + before + 10);
    let said = base.run(&["verify"]);
    assert!(said.code == 1 && said.out.contains("record 8 at byte"));
    let damaged = std::fs::read(base.file()).unwrap();
    let said = base.run(&["repair", "--dry-run"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("1 record at the end would be cut off"));
    let planned = base
        .run(&["repair", "--dry-run", "--json"])
        .json_lines()
        .remove(0);
    assert_eq!(planned["outcome"], "cut");
    assert_eq!(
        (&planned["records_cut"], &planned["dry_run"]),
        (&1.into(), &true.into())
    );
    assert_eq!(planned["first"]["seq"], 9);
    assert_eq!(std::fs::read(base.file()).unwrap(), damaged);
    let said = base.run(&["repair"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let told = format!(
        "MsgSeqNum 9: its CRC does not match; it is the last one, \
                        torn or damaged ({} bytes)",
        message(9).len()
    );
    assert!(said.out.contains(&told), "{}", said.out);
    assert_eq!(base.run(&["verify"]).code, 0);
    assert!(base.run(&["repair"]).out.contains("nothing to do"));
    let sound = base.run(&["repair", "--json"]).json_lines().remove(0);
    assert_eq!(sound["outcome"], "in_order");
    assert_eq!(base.open(IDENTITY).next_sender(), 9);
}

#[test]
fn the_number_of_a_damaged_record_that_was_on_the_disk_stays_used() {
    let base = Base::with("on-disk", 9);
    base.damage(HEADER + 8 * ENTRY + 28);
    assert_eq!(base.run(&["verify"]).code, 1);
    let done = base.run(&["repair", "--json"]).json_lines().remove(0);
    assert_eq!(done["outcome"], "rebuilt");
    assert_eq!(
        (&done["records_kept"], &done["records_lost"]),
        (&8.into(), &1.into())
    );
    assert_eq!(base.open(IDENTITY).next_sender(), 10);
}

#[test]
fn of_a_damaged_store_all_is_saved_that_is_whole() {
    let base = Base::with("damaged", 9);
    base.damage(HEADER + 4 * ENTRY + 28);
    let said = base.run(&["repair", "--dry-run"]);
    assert!(
        said.out
            .contains("would be written anew: 8 records kept, 1 lost")
    );
    let said = base.run(&["repair", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let done = said.json_lines().remove(0);
    assert_eq!(done["outcome"], "rebuilt");
    assert_eq!(
        (&done["records_kept"], &done["records_lost"]),
        (&8.into(), &1.into())
    );
    assert!(
        done["backup"].as_str().unwrap().ends_with(".damaged-1"),
        "{}",
        said.out
    );
    assert_eq!(
        base.run(&["verify"]).code,
        0,
        "what was put aside is passed over"
    );
    let journal = base.open(IDENTITY);
    assert_eq!((journal.next_sender(), journal.next_target()), (10, 7));
    assert!(journal.first_from(5).is_some_and(|stored| stored.seq == 6));
}

#[test]
fn a_store_in_use_is_not_repaired_but_can_be_looked_at() {
    let base = Base::with("in-use", 9);
    let journal = base.open(IDENTITY);
    base.damage(HEADER + 4 * ENTRY + 28);
    for args in [&["repair"][..], &["repair", "--dry-run"]] {
        let said = base.run(args);
        assert_eq!(said.code, 1);
        assert!(said.err.contains(" in use by "), "{}", said.err);
    }
    assert_eq!(base.run(&["export"]).out.lines().count(), 8);
    drop(journal);
    assert_eq!(base.run(&["repair"]).code, 0);
}

#[test]
fn rubbish_is_told_and_not_repaired() {
    let base = Base::with("rubbish", 3);
    std::fs::write(base.file(), vec![b'x'; 70_000]).unwrap();
    let said = base.run(&["verify"]);
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("its header is unreadable"),
        "{}",
        said.out
    );
    let line = base.run(&["list", "--json"]).json_lines().remove(0);
    assert!(line["next_sender"].is_null() && line["next_target"].is_null());
    let said = base.run(&["repair"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no file of journal "), "{}", said.err);
    let said = base.run(&["repair", "--json"]);
    let failed = said.json_lines().remove(0);
    assert_eq!((said.code, &failed["outcome"]), (1, &"failed".into()));
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("no file of journal ")
    );
}

#[test]
fn numbers_are_set_both_ways_and_the_rest_stays() {
    let base = Base::with("numbers", 9);
    let said = base.run(&["set-seq", "--sender", "20", "--json"]);
    let set = said.json_lines().remove(0);
    assert_eq!(
        set["before"],
        serde_json::json!({ "sender": 10, "target": 7 })
    );
    assert_eq!(
        set["after"],
        serde_json::json!({ "sender": 20, "target": 7 })
    );
    assert_eq!(base.run(&["export"]).out.lines().count(), 9, "all messages");
    let said = base.run(&["set-seq", "--sender", "5", "--target", "1"]);
    assert!(
        said.out.contains("next out 5 (was 20)") && said.out.contains("next in 1 (was 7)"),
        "{}",
        said.out
    );
    let listed = base.run(&["list", "--json"]).json_lines().remove(0);
    assert_eq!(
        (
            &listed["next_sender"],
            &listed["next_target"],
            &listed["durability"]
        ),
        (&5.into(), &1.into(), &"every 100".into())
    );
    assert_eq!(base.run(&["export"]).out.lines().count(), 4, "1 to 4");
    assert_eq!(base.run(&["verify"]).code, 0);
    let journal = base.open(IDENTITY);
    assert_eq!((journal.next_sender(), journal.next_target()), (5, 1));
}

#[test]
fn numbers_are_only_set_where_it_is_clear_of_what() {
    let base = Base::with("numbers-bad", 3);
    for args in [
        &["set-seq"][..],
        &["set-seq", "--sender", "0"],
        &["set-seq", "--target", "-1"],
        &["set-seq", "--sender", "1000000000000000000"],
    ] {
        assert_eq!(base.run(args).code, 2, "{args:?}");
    }
    let said = base.run(&["set-seq"]);
    assert!(
        said.err.contains("--sender <N>|--target <N>"),
        "{}",
        said.err
    );
    let journal = base.open(IDENTITY);
    let said = base.run(&["set-seq", "--sender", "7"]);
    assert!(
        said.code == 1 && said.err.contains(" in use by "),
        "{}",
        said.err
    );
    drop(journal);
    drop(base.open("FIX.4.4:OTHER->SELL"));
    let said = base.run(&["set-seq", "--sender", "7"]);
    assert!(
        said.code == 1 && said.err.contains("has 2 stores"),
        "{}",
        said.err
    );
    assert_eq!(base.open(IDENTITY).next_sender(), 4);
    base.damage(HEADER + ENTRY + 28);
    let said = run(&["set-seq", "--sender", "7"], &base.folder());
    assert!(
        said.code == 1 && said.err.contains("repair"),
        "{}",
        said.err
    );
}

/// Returns the three messages that a store of another engine has, the second one of which is set
/// twice, and the fourth, which was reset.
fn foreign() -> [(u32, String); 5] {
    let logon =
        "8=FIX.4.4\x019=60\x0135=A\x0149=BUY\x0156=SELL\x0134=1\x01554=secret\x0110=000\x01";
    let order = |seq: u32, id: &str| {
        format!(
            "8=FIX.4.4\x019=40\x0135=D\x0149=BUY\x0156=SELL\x0134={seq}\x0111={id}\x0110=000\x01"
        )
    };
    [
        (1, logon.to_owned()),
        (2, order(2, "old")),
        (2, order(2, "new")),
        (3, order(3, "three")),
        (5, order(5, "taken back")),
    ]
}

/// Encodes text in Java's format.
fn utf(text: &str) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

/// Writes the files of a store of QuickFIX, with 5 and 9 as the next numbers.
fn quickfix(folder: &Path, name: &str, is_java: bool) {
    let file = |end: &str| folder.join(format!("{name}.{end}"));
    let (mut body, mut header) = (String::new(), Vec::new());
    for (seq, message) in foreign() {
        match is_java {
            true => header.extend(
                [
                    &seq.to_be_bytes()[..],
                    &(body.len() as u64).to_be_bytes(),
                    &(message.len() as u32).to_be_bytes(),
                ]
                .concat(),
            ),
            false => header.extend(format!("{seq},{},{} ", body.len(), message.len()).bytes()),
        }
        body += &message;
    }
    std::fs::write(file("body"), body).unwrap();
    std::fs::write(file("header"), header).unwrap();
    if is_java {
        std::fs::write(file("senderseqnums"), utf("5")).unwrap();
        std::fs::write(file("targetseqnums"), utf("9")).unwrap();
        std::fs::write(file("session"), utf("20261124-10:00:00.123")).unwrap();
    } else {
        std::fs::write(file("seqnums"), "0000000005 : 0000000009").unwrap();
        std::fs::write(file("session"), "20261124-10:00:00").unwrap();
    }
}

#[test]
fn file_stores_of_other_engines_are_taken_over() {
    for is_java in [false, true] {
        let base = Base::new("import");
        let old = Folder::new("import-old");
        quickfix(old.path(), "FIX.4.4-BUY-SELL", is_java);
        let into = base.0.path().to_str().unwrap();
        let files = old.path().join("FIX.4.4-BUY-SELL");
        let said = run(&["import", "--into", into, "--json"], &files);
        assert_eq!(said.code, 0, "{}", said.err);
        let done = said.json_lines().remove(0);
        assert_eq!(
            (&done["messages"], &done["lost"], &done["set_back"]),
            (&3.into(), &0.into(), &1.into())
        );
        let journal = base.open(IDENTITY);
        assert_eq!((journal.next_sender(), journal.next_target()), (5, 9));
        assert_eq!(journal.created().nanos() / 1_000_000_000, 1_795_514_400);
        drop(journal);
        let text = base.run(&["export"]).out;
        assert!(
            text.contains("11=new|") && text.contains("11=three|"),
            "{text}"
        );
        assert!(!text.contains("old") && !text.contains("secret"), "{text}");
        assert!(!text.contains("taken back"), "{text}");
        let again = run(
            &["import", "--into", into],
            &old.path().join("FIX.4.4-BUY-SELL.body"),
        );
        assert!(
            again.code == 1 && again.err.contains("exists already"),
            "{}",
            again.err
        );
    }
}

/// Writes the files of a store of QuickFIX/J, whose index has lengths in characters.
fn quickfix_j(folder: &Folder, name: &str, messages: &[String]) {
    let file = |end: &str| folder.path().join(format!("{name}.{end}"));
    let (mut body, mut header) = (String::new(), Vec::new());
    for (seq, message) in (1_u32..).zip(messages) {
        header.extend(seq.to_be_bytes());
        header.extend((body.len() as u64).to_be_bytes());
        header.extend((message.chars().count() as u32).to_be_bytes());
        body += message;
    }
    std::fs::write(file("body"), body).unwrap();
    std::fs::write(file("header"), header).unwrap();
    let next = messages.len() + 1;
    std::fs::write(file("senderseqnums"), utf(&next.to_string())).unwrap();
    std::fs::write(file("targetseqnums"), utf("9")).unwrap();
}

/// Returns a message of BUY/DESK to SELL with a right frame.
fn of_desk(seq: u32, msg_type: &str, fields: &str) -> String {
    let head = format!("35={msg_type}|34={seq}|49=BUY|50=DESK|52=20261124-10:00:00|56=SELL|");
    framed("FIX.4.4", &(head + fields)).replace('|', "\x01")
}

#[test]
fn a_store_whose_messages_are_of_another_session_than_its_name_is_not_imported() {
    let old = Folder::new("import-other");
    let name = "FIX.4.4-BUY_DESK-SELL";
    quickfix_j(&old, name, &[of_desk(1, "A", "98=0|108=30|")]);
    let base = Base::new("import-other-new");
    let into = base.0.path().to_str().unwrap();
    let files = old.path().join(name);
    let found = "are of session FIX.4.4:BUY/DESK->SELL, not of ";
    let given = |name: &'static str| vec!["import", "--into", into, "--session", name];
    for (args, named) in [
        (vec!["import", "--into", into], "FIX.4.4:BUY_DESK->SELL"),
        (given("FIX.4.4:X->SELL"), "FIX.4.4:X->SELL"),
        (given("FIX.4.2:BUY->SELL"), "FIX.4.2:BUY->SELL"),
        (given("FIX.4.4:BUY/X->SELL"), "FIX.4.4:BUY/X->SELL"),
    ] {
        let said = run(&args, &files);
        assert_eq!(said.code, 1, "{named}: {}", said.err);
        let why = format!("{found}{named}: import them with --session 'FIX.4.4:BUY/DESK->SELL'");
        assert!(said.err.contains(&why), "{}", said.err);
        assert!(base.0.path().read_dir().unwrap().next().is_none());
    }
    // Without its SubID the name is that of a session whose application sets it.
    for name in ["FIX.4.4:BUY/DESK->SELL:Q", "FIX.4.4:BUY->SELL"] {
        let said = run(&given(name), &files);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
    }
}

#[test]
fn messages_whose_length_is_in_characters_are_imported_whole() {
    let old = Folder::new("import-characters");
    let name = "FIX.4.4-BUY-SELL";
    let order = |seq, text: &str| of_desk(seq, "D", &format!("11={seq}|58={text}|"));
    let broken = order(3, "Zürich").replace("11=3", "11=4");
    let messages = [order(1, "Zürich €"), order(2, "x"), broken, order(4, "€")];
    quickfix_j(&old, name, &messages);
    let base = Base::new("import-characters-new");
    let into = base.0.path().to_str().unwrap();
    let said = run(
        &["import", "--into", into, "--json"],
        &old.path().join(name),
    );
    assert_eq!(said.code, 0, "{}", said.err);
    let done = said.json_lines().remove(0);
    // CheckSum(10) of the third one is wrong, so that its end is not known.
    assert_eq!((&done["messages"], &done["lost"]), (&3.into(), &1.into()));
    let journal = base.open(IDENTITY);
    for (seq, text) in [(1, &messages[0]), (2, &messages[1]), (4, &messages[3])] {
        let kept = journal.first_from(seq).unwrap();
        assert_eq!((kept.seq, kept.bytes), (seq, text.as_bytes()));
    }
}

#[test]
fn file_stores_that_are_cut_or_none_are_told() {
    for is_java in [false, true] {
        let base = Base::new("import-bad");
        let old = Folder::new("import-bad-old");
        let into = base.0.path().to_str().unwrap();
        quickfix(old.path(), "FIX.4.4-BUY-SELL", is_java);
        let file = |end: &str| old.path().join(format!("FIX.4.4-BUY-SELL.{end}"));
        let import = || run(&["import", "--into", into], &file("body"));
        // The state after a kill: the index ends within an entry, the body within a message.
        let header = std::fs::read(file("header")).unwrap();
        std::fs::write(file("header"), &header[..header.len() - 2]).unwrap();
        let body = std::fs::read(file("body")).unwrap();
        let end = body.len() - foreign()[4].1.len() - 3;
        std::fs::write(file("body"), &body[..end]).unwrap();
        let said = import();
        assert!(
            said.code == 0 && said.out.contains("2 messages in"),
            "{}{}",
            said.out,
            said.err
        );
        assert!(said.out.contains("2 messages incomplete"), "{}", said.out);
        std::fs::remove_dir_all(base.folder()).unwrap();

        let nonsense = match is_java {
            true => &[0xff; 16][..],
            false => b"nonsense, 1,2 ",
        };
        std::fs::write(file("header"), nonsense).unwrap();
        let said = import();
        let why = if is_java {
            "at least 0"
        } else {
            "expected an entry"
        };
        assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
        let numbers = if is_java { "senderseqnums" } else { "seqnums" };
        std::fs::write(file(numbers), "many").unwrap();
        let said = import();
        assert!(said.code == 1 && said.err.contains(numbers), "{}", said.err);
        std::fs::remove_file(file(numbers)).unwrap();
        let said = import();
        assert!(
            said.code == 1 && said.err.contains("is not a file store"),
            "{}",
            said.err
        );
        assert!(!base.folder().exists());
    }
}

#[test]
fn a_name_that_can_be_read_two_ways_is_asked_for() {
    let old = Folder::new("import-name");
    quickfix(old.path(), "FIX.4.4-BUY-SELL-Q1", false);
    let base = Base::new("import-named");
    let into = base.0.path().to_str().unwrap();
    let files = old.path().join("FIX.4.4-BUY-SELL-Q1");
    let said = run(&["import", "--into", into], &files);
    assert!(
        said.code == 1 && said.err.contains("--session"),
        "{}",
        said.err
    );
    // A name is printed as it is given; the store has it without escapes.
    for (name, identity) in [
        ("FIX.4.4:BUY->SELL:Q1", "FIX.4.4:BUY->SELL:Q1"),
        (r"FIX.4.4:BUY\\2/A->SELL//B", r"FIX.4.4:BUY\2/A->SELL//B"),
    ] {
        let said = run(&["import", "--into", into, "--session", name], &files);
        assert_eq!(said.code, 0, "{}", said.err);
        let begin = format!("{name}: 3 messages in ");
        assert!(said.out.starts_with(&begin), "{}", said.out);
        assert!(folder_for(base.0.path(), identity).is_dir(), "{identity}");
    }
}

#[test]
fn what_no_session_can_continue_with_is_not_imported() {
    for is_java in [false, true] {
        let base = Base::new("import-numbers");
        let old = Folder::new("import-numbers-old");
        quickfix(old.path(), "FIX.4.4-BUY-SELL", is_java);
        let file = |end: &str| old.path().join(format!("FIX.4.4-BUY-SELL.{end}"));
        let into = base.0.path().to_str().unwrap();
        for (name, why) in [
            ("BUY->SELL", "unknown version at byte 0"),
            ("FIX.4.9:BUY->SELL", "unknown version at byte 0"),
            ("FIX.4.4:BUY", "`->` is missing at byte 11"),
            ("FIX.4.4:->SELL", "empty CompID at byte 8"),
            ("FIX.4.4:BUY->SELL->BUY", "`>` within an ID at byte 18"),
        ] {
            let args = ["import", "--into", into, "--session", name];
            let said = run(&args, &file("body"));
            assert_eq!(said.code, 2, "{name}: {}", said.err);
            assert!(said.err.contains(why), "{}", said.err);
        }
        let no_folder = file("session");
        let args = ["import", "--into", no_folder.to_str().unwrap()];
        let said = run(&args, &file("body"));
        assert!(
            said.code == 1 && said.err.contains("Not a directory"),
            "{}",
            said.err
        );
        let (numbers, text) = match is_java {
            true => ("senderseqnums", utf("1152921504606846977")),
            false => ("seqnums", b"1152921504606846977 : 9".to_vec()),
        };
        std::fs::write(file(numbers), text).unwrap();
        let said = run(&["import", "--into", into], &file("body"));
        assert!(said.code == 1 && said.err.contains(numbers), "{}", said.err);
        assert!(!base.folder().exists());
    }
}
