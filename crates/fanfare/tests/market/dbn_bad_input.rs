//! Tests of connections to the DBN port that are not proper clients.

use crate::common::gateway::port;
use crate::common::{Folder, Running, eventually, fanfare, groups};
use crate::lines;
use crate::stock::{KEY, Stock, program};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Wrong keys at a time.
const WRONG: usize = 500;

fn gateway(folder: &Folder, dbn: &str) -> (Running, String) {
    let key = folder.with("user.key", format!("{KEY}\n"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let ([line, _], audit) = (groups(), folder.file("audit.jsonl"));
    let config = format!(
        "audit = \"{audit}\"\n[producers]\nport = 0\nopen = true\n[consumers]\nport = 0\n[dbn]\n\
         port = 0\n{dbn}\n[[user]]\nname = \"u\"\ndbn_key_file = \"{key}\"\n\
         instruments = [\"*\"]\n[[feed]]\ntemplates = \"builtin:spectra\"\n\
         lines = [\"{line}\"]\nmapping = \"builtin:spectra\"\n"
    );
    let config = folder.with("gateway.toml", config);
    let mut gateway = Running::start(&mut fanfare(&["gateway", &config]));
    let port = port(&gateway.prints("Listening for DBN (FANFARE) on 127.0.0.1:"));
    (gateway, port)
}

/// Returns a connection that has received its challenge.
fn connect(port: &str) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut client = BufReader::new(stream);
    for front in ["lsg_version=", "cram="] {
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        assert!(line.starts_with(front), "{line}");
    }
    client
}

fn answer(client: &mut BufReader<TcpStream>) -> String {
    let mut all = String::new();
    // The rest may be cut off while the client still writes.
    let _ = client.read_line(&mut all);
    all
}

fn peak_kb(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn lines_without_an_end_and_garbage_are_answered_and_closed() {
    let folder = Folder::new("dbn-garbage");
    let (gateway, port) = gateway(&folder, "");
    let before = peak_kb(gateway.id());
    // Up to a gigabyte is sent, until the port closes.
    let mut endless = connect(&port);
    let block = vec![b'x'; 1 << 20];
    let taken = (0..1024).take_while(|_| endless.get_mut().write_all(&block).is_ok());
    let taken = taken.count();
    assert!(taken < 1024, "all was taken");
    // The response may be lost: the client did not read while it wrote.
    let told = answer(&mut endless);
    assert!(
        ["", "success=0|error=a line is too long\n"].contains(&&*told),
        "{told}"
    );
    let after = peak_kb(gateway.id());
    assert!(after < before + 32 * 1024, "{before} kB, then {after} kB");
    let mut rng = fastrand::Rng::with_seed(1);
    let random: Vec<u8> = (0..200_000).map(|_| rng.u8(..)).collect();
    for (garbage, why) in [
        (&b"\xff\xfe\xfd\n"[..], "a line is not UTF-8"),
        (b"\n", "`auth` is missing"),
        (b"hello\n", "`auth` is missing"),
        (b"auth=|dataset=FANFARE\n", "`auth` is missing"),
        (
            b"auth=x|dataset=FANFARE|encoding=json\n",
            "`encoding` must be dbn",
        ),
        (
            b"auth=x|dataset=FANFARE|ts_out=maybe\n",
            "`ts_out` must be 0 or 1",
        ),
        (
            b"8=FIX.4.4\x019=5\x0135=0\x0110=161\x01\n",
            "`auth` is missing",
        ),
        (&random, ""),
    ] {
        let mut client = connect(&port);
        let _ = client.get_mut().write_all(garbage);
        let said = answer(&mut client);
        assert!(
            said.starts_with("success=0|error=") && said.contains(why),
            "{why}: {said}"
        );
    }
    gateway.interrupt();
    gateway.end().succeeded();
}

#[test]
fn wrong_keys_are_slowed_and_told_of_and_hinder_nobody() {
    let folder = Folder::new("dbn-wrong-keys");
    let (gateway, port) = gateway(&folder, "auth_timeout_s = 60");
    let mut wrong: Vec<_> = (0..WRONG).map(|_| connect(&port)).collect();
    for client in &mut wrong {
        let line = format!("auth={}-pqrst|dataset=FANFARE\n", "0".repeat(64));
        client.get_mut().write_all(line.as_bytes()).unwrap();
    }
    // In order: after each failure the next response is delayed longer, up to 32 s.
    assert_eq!(
        answer(&mut wrong[0]),
        "success=0|error=authentication failed\n"
    );
    let refusals = || {
        let text = String::from_utf8(folder.read("audit.jsonl")).unwrap();
        let all = lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)]).into_iter();
        let all = all.filter(|line| line["event"] == "refusal" && line["port"] == "dbn");
        all.filter(|line| line["why"] == "wrong key, or not allowed from this address")
            .count()
    };
    eventually("a line of each", || refusals() == WRONG);
    let last = wrong.last_mut().unwrap();
    last.get_ref().set_nonblocking(true).unwrap();
    let nothing = last.read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    // A client with the right key is accepted during these delays.
    if let Some(program) = program() {
        let right = Stock::start((&program, &folder), "right", &port, &[]);
        right.says("session");
    }
    gateway.interrupt();
    gateway.end().succeeded();
}
