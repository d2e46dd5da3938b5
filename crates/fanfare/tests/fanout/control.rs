//! Tests of `fanfare ctl` and `fanfare gateway --hash-password`, from an operator's point of view.

use crate::common::{Folder, Running, done, fanfare};
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

/// Returns the hash of a password, as the command prints it.
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

/// Checks that the changes of a reload are shown without being applied. Of a file with other users
/// and limits, only the users are applied.
fn a_part_is_reloaded(ctl: &dyn Fn(&[&str]) -> Output, file: &str, text_of: &str) {
    let two = text_of.replace("\"*\"", "\"EURUSD\"");
    let rest = two.split_once("[[user]]").unwrap();
    let other = format!(
        "workers = 2\n{}[limits]\nheartbeat_max_s = 77\n[[user]]{}",
        rest.0, rest.1
    );
    std::fs::write(file, other).unwrap();
    let json = |args: &[&str]| -> serde_json::Value {
        let said = ctl(&[args, &["--json"]].concat());
        serde_json::from_slice(&said.stdout).unwrap_or_else(|_| panic!("{args:?}: {said:?}"))
    };
    let check = json(&["config", "check"]);
    assert_eq!(check, "the configuration can be used");
    let expected = serde_json::json!({
        "users": { "added": [], "removed": ["two"], "changed": ["desk"] },
        "lists": { "added": [], "removed": [], "changed": [] },
        "mappings": [],
        "keys": ["limits"],
        "needs_start": ["workers"],
    });
    assert_eq!(json(&["config", "diff"]), expected);
    let before = json(&["limits"]);
    let done = json(&["users", "reload"]);
    assert_eq!(done, "reloaded: removed user two, changed user desk");
    assert_eq!(json(&["limits"]), before, "limits stay");
    let left = json(&["config", "diff"]);
    assert_eq!(left["users"]["changed"], serde_json::json!([]), "{left}");
    assert_eq!(left["keys"], serde_json::json!(["limits"]), "{left}");
    let two = text_of.to_owned() + &text_of.replace("desk", "two").replace("DESK", "TWO");
    let (front, users) = text_of.split_once("[[user]]").unwrap();
    let second = two.rsplit_once("[[user]]").unwrap().1;
    std::fs::write(file, format!("{front}[[user]]{users}[[user]]{second}")).unwrap();
    json(&["users", "reload"]);
}

fn levels_of_the_log_are_set(ctl: &dyn Fn(&[&str]) -> Output) {
    let set = text(&ctl(&["log", "set-level", "warn,session=debug"]).stdout);
    let row = |target: &str| {
        set.lines()
            .find(|line| line.starts_with(target))
            .map(str::to_owned)
    };
    assert!(row("session").unwrap().ends_with("debug"), "{set}");
    assert!(row("feed").unwrap().ends_with("warn"), "{set}");
    assert_eq!(text(&ctl(&["log", "level"]).stdout), set);
    let wrong = ctl(&["log", "set-level", "stars=info"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        text(&wrong.stderr).contains("unknown log target"),
        "{wrong:?}"
    );
    ctl(&["log", "set-level", "info"]);
}

/// Checks that an error in a file is reported with its line, and that the current configuration
/// stays.
fn a_wrong_file_is_refused(ctl: &dyn Fn(&[&str]) -> Output, file: &str, front: &str, user: &str) {
    let padding = "\n".repeat(39 - front.lines().count());
    std::fs::write(file, format!("{front}{padding}[user]\n")).unwrap();
    let wrong = ctl(&["config", "check"]);
    assert!(text(&wrong.stderr).contains("line 40"), "{wrong:?}");
    let refused = ctl(&["config", "reload"]);
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
    std::fs::write(file, front.to_owned() + user).unwrap();
    let users = text(&ctl(&["users", "reload"]).stdout);
    assert_eq!(users, "reloaded: removed user two\n");
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
    let difference = text(&ctl(&["config", "diff", "--json"]).stdout);
    let difference: serde_json::Value = serde_json::from_str(&difference).unwrap();
    assert_eq!(difference["users"]["added"][0], "two", "{difference}");
    let reloaded = text(&ctl(&["config", "reload"]).stdout);
    assert_eq!(reloaded, "reloaded: new user two\n");
    server.tells("reloaded: new user two");
    a_part_is_reloaded(&ctl, &file, &(front.clone() + &user));
    levels_of_the_log_are_set(&ctl);
    let rolled = ctl(&["roll"]);
    let why = text(&rolled.stderr);
    assert!(why.contains("the gateway has no log"), "{why}");
    a_wrong_file_is_refused(&ctl, &file, &front, &user);
    server.signal("TERM");
    server.end().succeeded();
    let gone = ctl(&["status"]);
    assert!(
        text(&gone.stderr).contains("cannot connect"),
        "{}",
        text(&gone.stderr)
    );
}

#[test]
fn a_port_that_a_reload_opens_to_anyone_is_reported() {
    let folder = Folder::new("opened");
    let socket = folder.file("s");
    let text = format!(
        "control = \"{socket}\"\n[producers]\nport = 0\n\
         [[user]]\nname = \"desk\"\nsessions = [{{ sender = \"DESK\", target = \"PLANT\" }}]\n\
         allow = [\"10.1.0.0/16\"]\ninstruments = [\"*\"]\n\
         [consumers]\nport = 0\nbind = \"0.0.0.0\"\n"
    );
    let file = folder.with("gateway.toml", &text);
    let mut server = Running::start(&mut fanfare(&["gateway", &file]));
    server.prints("Listening for operators");
    folder.with("gateway.toml", text + "open = true\n");
    let reloaded = done(&mut fanfare(&[
        "ctl", "--socket", &socket, "config", "reload",
    ]));
    assert_eq!(reloaded.out, "reloaded: consumers.open\n");
    server.tells("consumers: open = true: whoever reaches the port may log on");
    server.interrupt();
    server.end().succeeded();
}
