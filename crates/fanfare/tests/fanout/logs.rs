//! Tests of the gateway's log: its contents, and its files.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, done, eventually, fanfare};
use crate::operation::{log_on, message};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const PORTS: &str = "[producers]\nport = 0\n[consumers]\nport = 0\n";
const PASSWORD: &str = "Open-Sesame-77";
const NAME: &str = "Ali-Baba-55";

fn start(folder: &Folder, text: &str, args: &[&str]) -> Gateway {
    let file = folder.with("gateway.toml", text);
    Gateway::start(&mut fanfare(&[&["gateway", &file], args].concat()))
}

/// Sends a first message, and waits until the gateway has closed the connection.
fn refused(port: &str, first: &[u8]) {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream.write_all(first).unwrap();
    // The connection may end with a reset.
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Returns the lines of a file of JSON, each with a time, a level, a target and a message.
fn objects(text: &str) -> Vec<Value> {
    let object = |line: &str| -> Value {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let time = object["time"].as_str().unwrap();
        assert!(time.ends_with('Z') && time.len() == 27, "{line}");
        for key in ["level", "target", "message"] {
            assert!(object[key].is_string(), "{line}");
        }
        object
    };
    text.lines().map(object).collect()
}

/// Returns the rotated files of a log, compressed or not.
fn ended(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("run.log.2")).collect();
    names.sort();
    names
}

#[test]
fn a_log_of_json_names_sessions_escapes_text_and_has_no_secret() {
    let folder = Folder::new("log-json");
    let mut hash = fanfare(&["gateway", "--hash-password"]);
    let mut hash = hash.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = hash.stdin.take().unwrap();
    stdin.write_all(format!("{PASSWORD}\n").as_bytes()).unwrap();
    drop(stdin);
    let hash = String::from_utf8(hash.wait_with_output().unwrap().stdout).unwrap();
    let log = folder.file("run.log");
    let user = format!(
        "[[user]]\nname = \"{NAME}\"\nports = [\"producers\"]\npassword = \"{}\"\n\
         sessions = [{{ sender = \"DESK\", target = \"PLANT\" }}]\n",
        hash.trim()
    );
    let text =
        format!("{PORTS}[log]\nto = \"{log}\"\nformat = \"json\"\nlevel = \"debug\"\n{user}");
    let gateway = start(&folder, &text, &[]);
    let wrong = format!("{PASSWORD}-wrong");
    for access in [
        format!("553={NAME}|554={wrong}|925={wrong}|"),
        format!("553={NAME}-other|554={PASSWORD}|5555={PASSWORD}|"),
    ] {
        let first = message("DESK", 1, "A", &format!("98=0|108=0|141=Y|{access}"));
        refused(&gateway.producers, &first);
    }
    refused(
        &gateway.producers,
        &message("\u{1b}[2J\nEVIL", 1, "A", "98=0|108=0|"),
    );
    let said = gateway.stop();
    let text = String::from_utf8(folder.read("run.log")).unwrap();
    for place in [&text, &said.out, &said.err] {
        for secret in [PASSWORD, NAME, hash.trim()] {
            assert!(!place.contains(secret), "{secret}: {place}");
        }
        assert!(!place.contains('\u{1b}'), "{place}");
    }
    let objects = objects(&text);
    let find = |what: &str| {
        let mut found = objects
            .iter()
            .filter(|o| o["message"].as_str().unwrap().contains(what));
        found
            .next()
            .unwrap_or_else(|| panic!("no {what:?} in {text}"))
    };
    assert_eq!(
        find("the gateway begins")["version"],
        env!("CARGO_PKG_VERSION")
    );
    let denied = find("wrong Username(553)");
    assert_eq!(
        (&denied["level"], &denied["target"]),
        (&"warn".into(), &"session".into())
    );
    assert!(
        denied["peer"].as_str().unwrap().starts_with("127.0.0.1:"),
        "{denied}"
    );
    assert!(
        find("EVIL")["message"]
            .as_str()
            .unwrap()
            .contains(r"\u{1b}[2J\nEVIL")
    );
    find("the gateway has ended");
    assert_eq!(said.err, "", "the log is in its file");
}

#[test]
fn a_log_is_rotated_by_size_compressed_and_opened_again_at_a_hangup() {
    let folder = Folder::new("log-rotate");
    let log = folder.file("run.log");
    // At level debug each refused connection has its line.
    let text = format!(
        "{PORTS}[log]\nto = \"{log}\"\nlevel = \"session=debug\"\n\
         rotate = {{ max_bytes = 65536, keep = 1 }}\n"
    );
    let gateway = start(&folder, &text, &[]);
    let long = "n".repeat(400);
    eventually(
        "two files that have ended, of which one is kept, compressed",
        || {
            refused(&gateway.consumers, &message(&long, 1, "A", "98=0|108=0|"));
            let names = ended(folder.path());
            names.len() == 1 && names[0].ends_with(".zst") && {
                // The first one may still be present, or be replaced by the second one.
                let whole = folder.read(&names[0]);
                let text = zstd::stream::decode_all(&*whole).unwrap();
                !String::from_utf8(text)
                    .unwrap()
                    .contains("the gateway begins")
            }
        },
    );
    std::fs::rename(&log, folder.file("moved")).unwrap();
    gateway.signal("HUP");
    eventually("the new file", || Path::new(&log).exists());
    gateway.stop();
    let text = String::from_utf8(folder.read("run.log")).unwrap();
    assert!(text.contains(" INFO program: reloaded"), "{text}");
    assert!(
        text.lines()
            .last()
            .unwrap()
            .ends_with("the gateway has ended"),
        "{text}"
    );
    let moved = String::from_utf8(folder.read("moved")).unwrap();
    assert!(moved.contains(" WARN session: "), "{moved}");
}

#[test]
fn a_log_that_cannot_be_rotated_says_so_once_and_goes_on() {
    let folder = Folder::new("log-stuck");
    let [logs, away] = ["logs", "away"].map(|name| folder.path().join(name));
    std::fs::create_dir(&logs).unwrap();
    let text = format!(
        "{PORTS}[log]\nto = \"{}\"\nlevel = \"session=debug\"\nrotate = {{ max_bytes = 65536 }}\n",
        logs.join("run.log").display()
    );
    let gateway = start(&folder, &text, &[]);
    std::fs::rename(&logs, &away).unwrap();
    let long = "n".repeat(400);
    let log = away.join("run.log");
    eventually("a long file", || {
        refused(&gateway.consumers, &message(&long, 1, "A", "98=0|108=0|"));
        std::fs::metadata(&log).unwrap().len() > 100_000
    });
    let said = gateway.stop();
    assert_eq!(
        said.err.matches("cannot be ended").count(),
        1,
        "{}",
        said.err
    );
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.ends_with("the gateway has ended\n"), "{text}");
}

#[test]
fn a_log_is_opened_again_by_a_reload_at_the_socket() {
    let folder = Folder::new("log-reload");
    let (log, socket) = (folder.file("run.log"), folder.file("s"));
    let text = format!("control = \"{socket}\"\n{PORTS}[log]\nto = \"{log}\"\n");
    let file = folder.with("gateway.toml", text);
    let mut server = Running::start(&mut fanfare(&["gateway", &file]));
    server.prints("Listening for operators");
    std::fs::rename(&log, folder.file("moved")).unwrap();
    let reloaded = done(&mut fanfare(&[
        "ctl", "--socket", &socket, "config", "reload",
    ]));
    assert_eq!(reloaded.out, "reloaded: nothing has changed\n");
    eventually("the new file", || Path::new(&log).exists());
    server.interrupt();
    server.end().succeeded();
    let text = String::from_utf8(folder.read("run.log")).unwrap();
    assert!(text.contains(" INFO program: reloaded"), "{text}");
}

#[test]
fn levels_and_forms_are_those_of_the_options() {
    let folder = Folder::new("log-options");
    let args = [
        "--log-to",
        "journald",
        "--log-level",
        "session=error,dds=off",
    ];
    let mut gateway = start(&folder, PORTS, &args);
    drop(log_on(&gateway.consumers, "C"));
    gateway.signal("HUP");
    gateway.tells("<6>program: reloaded: nothing has changed");
    let changed = format!("{PORTS}[log]\nlevel = \"error\"\n");
    folder.with("gateway.toml", changed);
    gateway.signal("HUP");
    gateway.tells("<6>program: reloaded: log.level");
    let said = gateway.stop();
    assert!(!said.err.contains("session: "), "{}", said.err);
    let ended = "<6>program: the gateway has ended";
    assert!(said.err.contains(ended), "the option stays: {}", said.err);
    for (wrong, why) in [
        ("level = \"loud\"", "log.level"),
        (
            "level = \"stars=info\"",
            "unknown log target \"stars\": expected one of program, session",
        ),
        ("rotate = { keep = 3 }", "log.rotate"),
        ("to = \"x\"\nrotate = { keep = 0 }", "log.rotate.keep"),
        (
            "to = \"x\"\nrotate = { roll_at = \"25:00\" }",
            "log.rotate.roll_at",
        ),
        ("to = \"journald\"\nformat = \"json\"", "log.format"),
    ] {
        let file = folder.with("wrong.toml", format!("[log]\n{wrong}\n"));
        let told = crate::common::fails(&["gateway", "--check", &file]);
        assert!(told.contains(why), "{wrong}: {told}");
    }
}
