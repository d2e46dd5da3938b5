//! Tests of a gateway in operation: signals, logs, captures.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, eventually, fanfare};
use fanfare_peers::fix::{framed, wire};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

const PORTS: [&str; 4] = ["--producer-port", "0", "--consumer-port", "0"];

/// Opens a session on a plain socket, logged on without heartbeats.
pub(crate) fn log_on(port: &str, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    send(&mut stream, name, 1, "A", "98=0|108=0|141=Y|");
    assert!(receive(&mut stream, "|10=").contains("|35=A|"));
    stream
}

fn send(stream: &mut TcpStream, name: &str, seq: u64, msg_type: &str, body: &str) {
    stream
        .write_all(&message(name, seq, msg_type, body))
        .unwrap();
}

pub(crate) fn message(name: &str, seq: u64, msg_type: &str, body: &str) -> Vec<u8> {
    let time = fanfare_engine::clock::Clock::new().read().utc;
    let time = time.text(fanfare_wire::Precision::Millis);
    let fields = format!("35={msg_type}|49={name}|56=PLANT|34={seq}|52={time}|{body}");
    wire(&framed("FIX.4.4", &fields))
}

/// Reads until `what` has come, with `|` for SOH.
pub(crate) fn receive(stream: &mut TcpStream, what: &str) -> String {
    let mut text = String::new();
    let mut chunk = [0; 4096];
    while !text.contains(what) {
        match stream.read(&mut chunk) {
            Ok(0) => panic!("closed before {what:?}: {text}"),
            Ok(n) => text += &String::from_utf8_lossy(&chunk[..n]).replace('\x01', "|"),
            // A read with a time-out is not restarted after the process was stopped and continued.
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => panic!("{what:?} did not come: {e}"),
        }
    }
    text
}

/// A process that is killed at the end of its test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// With stderr a full pipe without a reader, sessions are served, and Ctrl-C ends the gateway with
/// its report.
#[test]
fn stderr_that_nobody_reads_stops_neither_sessions_nor_the_end() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // One thread fills the pipe, whatever its size, and stays in the write.
    let mut filler = writer.try_clone().unwrap();
    std::thread::spawn(move || while filler.write_all(&[b'x'; 4096]).is_ok() {});
    std::thread::sleep(Duration::from_millis(500));
    let mut command = fanfare(&[&["fanout", "server"][..], &PORTS].concat());
    let mut server = Killed(command.stderr(writer.try_clone().unwrap()).spawn().unwrap());
    let mut out = BufReader::new(server.0.stdout.take().unwrap()).lines();
    let mut port_after = |what: &str| {
        let line = out.find_map(|line| line.ok().filter(|line| line.contains(what)));
        line.unwrap().rsplit(':').next().unwrap().to_owned()
    };
    let producers = port_after("Listening for producers");
    let consumers = port_after("Listening for consumers");
    let mut consumer = log_on(&consumers, "C");
    let mut producer = log_on(&producers, "P");
    for i in 0..5 {
        let mark = format!("20001=P-{i}|");
        send(&mut producer, "P", i + 2, "W", &format!("55=A|{mark}"));
        receive(&mut consumer, &mark);
    }
    let kill = format!("kill -INT {}", server.0.id());
    let sent = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(sent.unwrap().success());
    assert!(receive(&mut consumer, "58=shutting down").contains("|35=5|"));
    drop((consumer, producer));
    let told: Vec<String> = out.map_while(Result::ok).collect();
    let sum = "5 messages received, 5 marked: 5 deliveries";
    assert!(told.iter().any(|line| line == sum), "{told:?}");
    let mut status = None;
    eventually("the end", || {
        status = server.0.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success());
    let _ = writer.flush();
    drop(reader);
}

#[test]
fn a_flood_of_strangers_is_a_few_short_lines() {
    let mut server = fanfare(&[&["fanout", "server"][..], &PORTS].concat());
    let server = Gateway::start(&mut server);
    for i in 0..300 {
        let to = format!("127.0.0.1:{}", server.consumers);
        let mut stranger = TcpStream::connect(to).unwrap();
        let name = format!("{i}\u{1b}[2J\u{9b}{}", "y".repeat(60_000));
        // The connection may be closed before all is written.
        let _ = stranger.write_all(&message(&name, 1, "A", "98=0|108=0|"));
        let _ = stranger.read(&mut [0; 16]);
    }
    // This CompID is short enough, but would clear the screen.
    drop(log_on(&server.consumers, "EVIL\u{1b}[2J\nFORGED"));
    let said = server.stop();
    assert!(said.err.len() < 10_000, "{} bytes", said.err.len());
    assert!(
        said.err.contains("more refusals in the last"),
        "{}",
        said.err
    );
    assert!(!said.err.contains(['\u{1b}', '\u{9b}']), "{}", said.err);
    assert!(!said.err.lines().any(|line| line.starts_with("FORGED")));
    assert!(said.err.contains(r"EVIL\u{1b}[2J\nFORGED"), "{}", said.err);
}

#[test]
fn no_signal_but_term_and_int_ends_it_and_both_log_everybody_out() {
    for last in ["TERM", "INT"] {
        let mut command = fanfare(&[&["fanout", "server"][..], &PORTS].concat());
        let mut server = Running::start(&mut command);
        let port = |line: String| line.rsplit(':').next().unwrap().to_owned();
        let consumers = port(server.prints("Listening for consumers"));
        let mut consumer = log_on(&consumers, "C");
        for signal in ["HUP", "USR1", "USR2", "ALRM", "PIPE", "QUIT"] {
            server.signal(signal);
        }
        server.tells("reloaded: nothing has changed");
        drop(log_on(&consumers, "D"));
        server.signal(last);
        assert!(receive(&mut consumer, "58=shutting down").contains("|35=5|"));
        drop(consumer);
        let said = server.end().succeeded();
        assert!(said.out.contains("0 messages received"), "{}", said.out);
    }
}

#[test]
fn sighup_reads_the_file_again_and_says_what_it_took() {
    let folder = Folder::new("reload");
    let text = "workers = 1\n[producers]\nport = 0\n[consumers]\nport = 0\n";
    let file = folder.with("gateway.toml", text);
    let mut server = Running::start(&mut fanfare(&["gateway", &file]));
    let consumers = server.prints("Listening for consumers");
    let consumers = consumers.rsplit(':').next().unwrap().to_owned();
    let mut first = log_on(&consumers, "FIRST");
    let listed = "sessions = [{ sender = \"SECOND\", target = \"PLANT\" }]\n";
    std::fs::write(
        &file,
        format!("{text}{listed}").replace("workers = 1", "workers = 2"),
    )
    .unwrap();
    server.signal("HUP");
    server.tells("reloaded: consumers.sessions; only a new start changes workers");
    let mut stranger = TcpStream::connect(format!("127.0.0.1:{consumers}")).unwrap();
    send(&mut stranger, "THIRD", 1, "A", "98=0|108=0|");
    assert_eq!(stranger.read(&mut [0; 16]).unwrap_or(0), 0, "refused");
    drop(log_on(&consumers, "SECOND"));
    std::fs::write(&file, "workers = \"many\"\n").unwrap();
    server.signal("HUP");
    let told = server.tells("not reloaded, everything stays as it was");
    assert!(
        told.contains("gateway.toml") && told.contains("line 1"),
        "{told}"
    );
    drop(log_on(&consumers, "SECOND"));
    server.interrupt();
    receive(&mut first, "58=shutting down");
    drop(first);
    server.end().succeeded();
}

/// Returns the length of a file that begins like a pcap file; 0 for any other.
fn pcap(path: &Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_default();
    let is_pcap = bytes.starts_with(&[0x4d, 0x3c, 0xb2, 0xa1]);
    if is_pcap { bytes.len() as u64 } else { 0 }
}

#[test]
fn a_capture_is_on_disk_while_it_runs_and_goes_on_in_a_new_file() {
    let folder = Folder::new("rotate");
    let file = folder.path().join("a.pcap");
    let path = file.to_string_lossy().into_owned();
    let options = ["fanout", "server", "--capture", &path];
    let mut server = Running::start(&mut fanfare(&[&options[..], &PORTS].concat()));
    let consumers = server.prints("Listening for consumers");
    let consumers = consumers.rsplit(':').next().unwrap().to_owned();
    let mut consumer = log_on(&consumers, "C");
    let has_no_right = Cell::new(false);
    let is_clear = |line: &str| {
        has_no_right.set(line.contains("running without a capture"));
        has_no_right.get() || line.starts_with("Capturing ports")
    };
    server.says(is_clear, "whether it captures");
    if has_no_right.get() {
        return fanfare_peers::skipped(&"no right to capture");
    }
    send(&mut consumer, "C", 2, "1", "112=first|");
    receive(&mut consumer, "112=first");
    eventually("packets on disk", || pcap(&file) > 200);
    let moved = folder.path().join("b.pcap");
    std::fs::rename(&file, &moved).unwrap();
    server.signal("HUP");
    server.tells("the capture goes on in a new file");
    assert!(pcap(&file) >= 24, "a header");
    send(&mut consumer, "C", 3, "1", "112=hello|");
    receive(&mut consumer, "112=hello");
    eventually("the new packets", || pcap(&file) > 200);
    server.kill();
    let report = std::fs::read(&file).unwrap();
    assert!(
        report.windows(9).any(|w| w == b"112=hello"),
        "readable after a kill"
    );
}
