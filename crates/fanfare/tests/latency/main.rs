//! Tests of the latency commands, end to end: the real binary, loopback, ports that the kernel
//! chooses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

#[path = "../common/mod.rs"]
mod common;

use common::gateway::port;
use common::relay::Relay;
use common::{Folder, Running, Said, eventually, nobody, receive};
use fanfare_peers::fix::{framed, wire};
use fanfare_wire::{Precision, UtcTimestamp};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn fanfare(args: &[&str]) -> Command {
    common::fanfare(&[&["latency"], args].concat())
}

/// A server on a port that the kernel chose.
struct Server {
    running: Running,
    port: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let all = [&["server", "--port", "0"], args].concat();
        let mut running = Running::start(&mut fanfare(&all));
        let port = port(&running.prints("listening on 127.0.0.1:"));
        Self { running, port }
    }

    /// Interrupts it. Returns its last output.
    fn stop(self) -> Said {
        self.running.interrupt();
        self.running.end().succeeded()
    }
}

fn client(port: &str, args: &[&str]) -> Said {
    run(&[&["client", "127.0.0.1", port], args].concat())
}

/// Runs a client that succeeds, also on a busy machine.
fn measured(port: &str, args: &[&str]) -> Said {
    client(port, &[args, &["--timeout", "60"]].concat()).succeeded()
}

fn run(args: &[&str]) -> Said {
    common::said(&mut fanfare(args))
}

#[test]
fn ping_pong_gives_every_figure_a_chart_and_a_clean_end() {
    let folder = Folder::new("whole");
    let chart = folder.file("chart.svg");
    let server = Server::start(&["--store", &folder.file("server")]);
    let client_store = folder.file("client");
    let store = ["--store", &client_store];
    let options = ["500", "--warm-up", "50", "--svg", &chart];
    let text = measured(&server.port, &[&options[..], &store].concat()).out;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert!(lines[0].ends_with(" messages/second"), "{text}");
    assert!(
        lines[1].starts_with("min/avg/max = ") && lines[1].ends_with(" µs"),
        "{text}"
    );
    for (line, percent) in lines[3..]
        .iter()
        .zip(["1", "5", "10", "50", "90", "95", "99", "99.9"])
    {
        let percent: f64 = percent.parse().unwrap();
        assert!(line.starts_with(&format!("{percent:.2}%: ")), "{line}");
    }
    assert_eq!(lines.len(), 11, "{text}");
    assert!(
        std::fs::read_to_string(&chart)
            .unwrap()
            .starts_with("<svg xmlns")
    );
    // Another run, in another version, on the same server.
    for version in ["FIX.4.4", "FIX.4.2", "FIXT.1.1"] {
        let args = ["100", "--begin-string", version, "--json"];
        let figures = measured(&server.port, &args).json();
        assert_eq!(figures["command"], "latency client");
        assert_eq!(
            (&figures["ok"], &figures["figures"]["messages"]),
            (&true.into(), &100.into())
        );
        for name in [
            "rate_per_s",
            "min_us",
            "mean_us",
            "max_us",
            "p1_us",
            "p50_us",
            "p99_9_us",
        ] {
            assert!(figures["figures"][name].as_f64().unwrap() > 0.0, "{name}");
        }
    }
    let Said {
        out: said,
        err: told,
        ..
    } = server.stop();
    assert_eq!(said, "850 orders received\n");
    assert!(told.contains("FIX.4.4:SERVER->CLIENT logged on"), "{told}");
    assert!(told.contains("the counterparty logged out"), "{told}");
}

#[test]
fn on_schedule_every_order_has_its_report() {
    let server = Server::start(&["--mode", "session"]);
    let args = ["400", "--rate", "4000", "--warm-up", "20", "--json"];
    let figures = measured(&server.port, &args).json();
    assert_eq!(figures["figures"]["messages"], 400);
    assert_eq!(figures["figures"]["asked_rate_per_s"], 4000.0);
    assert_eq!(server.stop().out, "420 orders received\n");
}

#[test]
fn a_server_that_sleeps_answers_and_is_blocked_in_between() {
    let server = Server::start(&["--sleep"]);
    measured(&server.port, &["100"]);
    // The state of a thread that polls is `R`, also while it yields.
    let id = server.running.id();
    let state = format!("/proc/{id}/task/{id}/stat");
    eventually("the server to sleep", || {
        std::fs::read_to_string(&state).unwrap().contains(") S ")
    });
    assert_eq!(server.stop().out, "100 orders received\n");
}

#[test]
fn wrong_usage_is_2_and_what_cannot_be_is_1() {
    for args in [
        &["0"][..],
        &["x"],
        &["5", "--warm-up", "-1"],
        &["5", "--timeout", "0"],
        &["5", "--rate", "0"],
        &["5", "--rate", "NaN"],
        &["5", "--sender", ""],
        &["5", "--target", "A\x01B"],
    ] {
        assert_eq!(client("7070", args).code, 2, "{args:?}");
    }
    for args in [
        &["-m", "script"][..],
        &["--sleep", "--pin", "0"],
        &["--sleep", "--lenient"],
    ] {
        assert_eq!(run(&[&["server"], args].concat()).code, 2, "{args:?}");
    }
    let port = nobody().port().to_string();
    for (output, why) in [
        (client(&port, &["5"]), "Connection refused"),
        (client(&port, &["5", "--pin", "4095"]), "CPU 4095"),
        (
            run(&["client", "no.such.host.invalid", "1", "1"]),
            "unknown host",
        ),
        (
            client(&port, &["5", "--store", "/proc/nothing"]),
            "/proc/nothing",
        ),
        (run(&["server", "--address", "192.0.2.1"]), "192.0.2.1:7070"),
    ] {
        let told = output.err;
        assert_eq!(output.code, 1, "{why}: {told}");
        assert!(told.contains("fanfare: ") && told.contains(why), "{told}");
        assert!(!told.contains("panicked"), "{told}");
    }
}

#[test]
fn a_server_that_never_answers_the_logon_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let output = client(&port, &["5", "--timeout", "1"]);
    assert_eq!(output.code, 1);
    assert_eq!(output.out, "nothing measured\n");
    assert!(
        output.err.starts_with("fanfare: session: "),
        "{}",
        output.err
    );
}

/// Starts an endless run, and waits for its first reports.
fn endless(server: &Server) -> Running {
    let relay = Relay::to(SocketAddr::from((
        [127, 0, 0, 1],
        server.port.parse().unwrap(),
    )));
    let endless = ["client", "127.0.0.1", &relay.port, "1000000000", "--json"];
    let client = Running::start(&mut fanfare(&endless));
    relay.wait_answered(20_000);
    client
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_the_report_so_far() {
    let mut server = Server::start(&[]);
    let client = endless(&server);
    server.running.kill();
    let output = client.end();
    assert_eq!(output.code, 1);
    assert!(
        output.err.starts_with("fanfare: session: "),
        "{}",
        output.err
    );
    let figures = output.json();
    assert_eq!(figures["ok"], false);
    assert!(figures["figures"]["messages"].as_u64().unwrap() > 0);
}

#[test]
fn an_interrupted_client_logs_out_and_reports() {
    let server = Server::start(&[]);
    let client = endless(&server);
    client.interrupt();
    let output = client.end();
    assert_eq!(output.code, 1, "{}", output.err);
    assert!(
        output.err.starts_with("interrupted after "),
        "{}",
        output.err
    );
    assert_eq!(output.json()["ok"], false);
    assert!(output.json()["figures"]["p50_us"].as_f64().unwrap() > 0.0);
    let Said {
        out: said,
        err: told,
        ..
    } = server.stop();
    assert!(said.ends_with(" orders received\n"), "{said}");
    assert!(told.contains("the counterparty logged out"), "{told}");
}

/// Responds like libtrading's fix_server: a Logon without EncryptMethod(98) and HeartBtInt(108),
/// reports without ClOrdID(11), its own CompIDs whatever the client sends, and a clock that stands
/// still from the Logon on; here the clock is an hour behind, as after an hour.
fn bare_server(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let (mut received, mut seq) = (Vec::new(), 0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let time = |seconds| {
        let time = UtcTimestamp::from_nanos(seconds * 1_000_000_000);
        time.text(Precision::Millis).to_string()
    };
    let (began, stale) = (
        time(now.as_secs() as i64),
        time(now.as_secs() as i64 - 3600),
    );
    loop {
        let mut room = [0; 4096];
        let count = receive(&mut stream, &mut room).unwrap_or(0);
        if count == 0 {
            return;
        }
        received.extend_from_slice(&room[..count]);
        while let Some(end) = received.windows(4).position(|part| part == b"\x0110=") {
            if received.len() < end + 8 {
                break;
            }
            let message: Vec<u8> = received.drain(..end + 8).collect();
            let message = String::from_utf8_lossy(&message).replace('\x01', "|");
            seq += 1;
            let answer = |kind: &str, time: &str, body: &str| {
                let header = format!("35={kind}|49=SELLSIDE|56=BUYSIDE|34={seq}|52={time}|");
                wire(&framed("FIX.4.4", &format!("{header}{body}")))
            };
            let report = "37=OrderID|55=Symbol|17=ExecID|39=2|150=0|151=0.000000|14=100.000000|\
                          6=100.000000|54=1|";
            let answer = match message
                .split("|35=")
                .nth(1)
                .unwrap()
                .split('|')
                .next()
                .unwrap()
            {
                "A" => answer("A", &began, ""),
                "D" => answer("8", &stale, report),
                "5" => answer("5", &stale, ""),
                _ => continue,
            };
            if stream.write_all(&answer).is_err() {
                return;
            }
        }
    }
}

#[test]
fn the_lenient_client_measures_the_server_of_the_article() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let names = ["--sender", "BUYSIDE", "--target", "SELLSIDE"];
    let server = std::thread::spawn(move || (0..3).for_each(|_| bare_server(&listener)));
    let strangers = client(&port, &["5"]);
    assert_eq!(strangers.code, 1);
    let hint = "--sender BUYSIDE --target SELLSIDE --lenient";
    assert!(strangers.err.contains(hint), "{}", strangers.err);
    let strict = client(&port, &[&["5"], &names[..]].concat());
    assert_eq!(strict.code, 1);
    let hint = "--lenient measures a server whose Logon has no EncryptMethod(98)";
    assert!(strict.err.contains(hint), "{}", strict.err);
    let args = [&["200", "--lenient", "--json"], &names[..]].concat();
    let figures = measured(&port, &args).json();
    assert_eq!(figures["figures"]["messages"], 200);
    server.join().unwrap();
}

#[test]
fn the_lenient_server_takes_testers_that_a_session_refuses() {
    let server = Server::start(&["-m", "1", "--lenient"]);
    let mut tester = TcpStream::connect(format!("127.0.0.1:{}", server.port)).unwrap();
    tester
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let header = "49=HERMES|56=INET|52=20131121-10:00:00";
    let mut received = String::new();
    let mut expect = |tester: &mut TcpStream, start: &str| {
        let mut room = [0; 512];
        while !received.contains("|10=") || !received.ends_with('|') {
            let count = receive(tester, &mut room).unwrap();
            assert!(count > 0, "closed after {received}");
            received += &String::from_utf8_lossy(&room[..count]).replace('\x01', "|");
        }
        assert!(received.contains(start), "{received}");
        received.clear();
    };
    let framed = |fields: &str| wire(&framed("FIX.4.2", fields));
    let logon = framed(&format!("35=A|34=0|{header}|98=0|108=30|"));
    tester.write_all(&logon).unwrap();
    expect(&mut tester, "|35=A|49=INET|56=HERMES|34=0|");
    for number in 1..=100 {
        let order = framed(&format!("35=D|34={number}|{header}|98=0|108=30|"));
        let (head, body) = order.split_at(70);
        tester.write_all(head).unwrap();
        tester.write_all(body).unwrap();
        expect(
            &mut tester,
            &format!("|35=8|49=INET|56=HERMES|34={number}|"),
        );
    }
    drop(tester);
    // A complete client logs on too.
    measured(&server.port, &["50", "--begin-string", "FIX.4.2"]);
    let Said {
        out: said,
        err: told,
        ..
    } = server.stop();
    assert_eq!(said, "150 orders received\n");
    assert!(told.contains("gone: it closed the connection"), "{told}");
}
