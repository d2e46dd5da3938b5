//! `fanfare ctl` and `fanfare gateway --hash-password`, as whoever runs a gateway has them.

use crate::common::{Folder, Running, fanfare};
use std::io::Write;
use std::process::{Output, Stdio};

fn run(args: &[&str], input: &str) -> Output {
    let mut command = fanfare(args);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The hash of a password, as the command prints it.
fn hash() -> String {
    let hash = run(&["gateway", "--hash-password"], "open sesame\n");
    assert!(hash.status.success(), "{}", text(&hash.stderr));
    let hash = text(&hash.stdout);
    let hash = hash.trim().to_owned();
    assert!(
        hash.starts_with("$argon2id$") && !hash.contains("sesame"),
        "{hash}"
    );
    for wrong in ["", "\n", "two\nlines\n"] {
        let refused = run(&["gateway", "--hash-password"], wrong);
        assert_eq!(refused.status.code(), Some(1), "{wrong:?}");
    }
    hash
}

#[test]
fn a_gateway_is_asked_and_reloaded_at_its_socket() {
    let hash = hash();
    let folder = Folder::new("ctl");
    let socket = folder.file("s");
    let front = format!("control = \"{socket}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n");
    let user = format!(
        "[[user]]\nname = \"desk\"\nsessions = [{{ sender = \"DESK\", target = \"PLANT\" }}]\n\
         password = \"{hash}\"\ninstruments = [\"*\"]\n"
    );
    let file = folder.with("gateway.toml", &(front.clone() + &user));
    let mut server = Running::start(&mut fanfare(&["gateway", &file]));
    server.prints("Listening for operators");
    let ctl = |args: &[&str]| run(&[&["ctl", "--socket", &socket], args].concat(), "");
    let status = text(&ctl(&["status"]).stdout);
    assert!(
        status.contains("uptime s: ") && status.contains("consumers address: "),
        "{status}"
    );
    let users = text(&ctl(&["users"]).stdout);
    assert!(
        users.starts_with("name") && users.contains("desk"),
        "{users}"
    );
    let json = text(&ctl(&["users", "--json"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["comp_ids"][0], "DESK");
    assert!(ctl(&["sessions"]).stdout.is_empty());
    let nobody = ctl(&["sessions", "logout", "NOBODY"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(text(&nobody.stderr).contains("no such session"));

    std::fs::write(
        &file,
        front.clone() + &user + &user.replace("desk", "two").replace("DESK", "TWO"),
    )
    .unwrap();
    assert_eq!(text(&ctl(&["reload"]).stdout), "reloaded: new user two\n");
    server.tells("reloaded: new user two");
    let padding = "\n".repeat(39 - front.lines().count());
    std::fs::write(&file, format!("{front}{padding}[user]\n")).unwrap();
    let refused = ctl(&["reload"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("line 40"),
        "{}",
        text(&refused.stderr)
    );
    assert!(
        text(&ctl(&["users"]).stdout).contains("two"),
        "the users stay"
    );
    server.signal("TERM");
    server.end().succeeded();
    let gone = ctl(&["status"]);
    assert!(
        text(&gone.stderr).contains("cannot connect"),
        "{}",
        text(&gone.stderr)
    );
}
