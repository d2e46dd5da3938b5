//! Tests of `fanfare top` with a gateway: frames as text, a terminal, and sources without a
//! response.

use crate::common::gateway::port;
use crate::common::{Folder, Running, eventually, fails, fanfare, groups, run, told};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

#[test]
fn a_gateway_is_seen_in_frames_of_text_and_in_a_terminal() {
    let (folder, [a, b]) = (Folder::new("top"), groups());
    let socket = folder.file("s");
    let token = folder.with("token", "a-token-of-24-characters\n");
    let text = format!(
        "control = \"{socket}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
         [console]\nport = 0\ntoken_file = \"{token}\"\n\
         [[feed]]\nchannel = \"day\"\ntemplates = \"builtin:spectra\"\n\
         lines = [\"{a}\", \"{b}\"]\nmapping = \"builtin:spectra\"\n\
         [feed.book]\nstarts_empty = false\n"
    );
    let file = folder.with("gateway.toml", text);
    let mut gateway = Running::start(&mut fanfare(&["gateway", &file]));
    let consumers = port(&gateway.prints("Listening for consumers on 127.0.0.1:"));
    let console = port(&gateway.prints("Console at http://127.0.0.1:"));
    let args = ["fanout", "consumers", "127.0.0.1", "3", "0", "--port"];
    let mut sessions = Running::start(&mut fanfare(&[&args[..], &[&consumers]].concat()));
    sessions.tells("3 sessions logged on");
    let url = format!("http://127.0.0.1:{console}");
    let once = ["top", "--once", "--size", "100x30"];
    for from in [
        &["-s", &socket][..],
        &["--url", &url, "--token-file", &token],
    ] {
        let expected = [
            "3 sessions, by lag",
            "C1",
            "day: ",
            "A changes",
            "C3 logged on",
            "q quit",
        ];
        eventually("a frame with all sessions", || {
            let frame = run(&[&once, from].concat()).succeeded().out;
            assert_eq!(frame.lines().count(), 30, "{frame}");
            assert!(
                frame.lines().all(|line| line.chars().count() <= 100),
                "{frame}"
            );
            expected.iter().all(|what| frame.contains(what))
        });
    }
    let nobody = fails(&["top", "--once", "-s", "/nowhere/x"]);
    assert!(nobody.contains("/nowhere/x"), "{nobody}");
    let stranger = fails(&["top", "--once", "--url", &url]);
    assert!(stranger.contains("no valid token"), "{stranger}");
    let piped = fails(&["top", "-s", &socket]);
    assert!(piped.contains("--once prints one frame"), "{piped}");
    told(&["top"], 2);
    told(&["top", "-s", &socket, "--once", "--size", "5x5"], 2);
    for key in ["q", "\u{3}"] {
        in_a_terminal(&socket, key);
    }
    without_its_terminal(&folder, &socket);
    sessions.kill();
    gateway.interrupt();
    gateway.end().succeeded();
}

/// Runs it in a terminal until a key ends it, and checks that the terminal is restored.
fn in_a_terminal(socket: &str, key: &str) {
    let (mut child, mut seen) = begin_in_a_terminal(socket, "");
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    keys.write_all(key.as_bytes()).unwrap();
    screen.read_to_end(&mut seen).unwrap();
    assert!(child.wait().unwrap().success());
    let seen = String::from_utf8_lossy(&seen);
    let (begun, ended) = (seen.find("\u{1b}[?1049h"), seen.rfind("\u{1b}[?1049l"));
    assert!(begun.is_some() && begun < ended, "{seen}");
}

/// Closes the terminal, as the end of its window does; the program ends with it.
fn without_its_terminal(folder: &Folder, socket: &str) {
    let file = folder.file("pid");
    let (mut child, _) = begin_in_a_terminal(socket, &format!("echo $$ >'{file}';"));
    let id = std::fs::read_to_string(&file).unwrap();
    let stat = format!("/proc/{}/stat", id.trim());
    child.kill().unwrap();
    child.wait().unwrap();
    // A process that has ended may wait for its new parent.
    eventually("the end without a terminal", || {
        let stat = std::fs::read_to_string(&stat).ok();
        stat.is_none_or(|stat| stat.contains(") Z "))
    });
}

/// Starts it in a terminal, behind other commands of a shell, and returns the terminal's process
/// and the output up to the first frame.
fn begin_in_a_terminal(socket: &str, before: &str) -> (Child, Vec<u8>) {
    let program = env!("CARGO_BIN_EXE_fanfare");
    let mut script = Command::new("script");
    script.args([
        "-qec",
        &format!("{before} stty rows 30 cols 100; exec '{program}' top -s '{socket}'"),
        "/dev/null",
    ]);
    let script = script.env("TERM", "xterm").stdin(Stdio::piped());
    let mut child = script.stdout(Stdio::piped()).spawn().unwrap();
    let screen = child.stdout.as_mut().unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("sessions,") {
        let mut part = [0; 4096];
        let read = screen.read(&mut part).unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&part[..read]);
    }
    (child, seen)
}
