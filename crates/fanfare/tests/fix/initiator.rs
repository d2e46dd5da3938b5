//! `fanfare fix initiator` against `fanfare fix acceptor --echo`.

use crate::certificate;
use crate::server::Server;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Two orders and what is none: as fields, and whole as somebody else sent it.
const ORDERS: &str = "# orders\n\
    35=D|11=one|55=IBM|54=1|38=100|40=1|60=20261121-10:00:00|21=1|\n\n\
    35=0|\n\
    out 8=FIX.4.4|9=1|35=D|49=X|56=Y|34=77|52=20200101-00:00:00|50=DESK|11=two|55=IBM|54=2|38=7|\
    40=1|60=20261121-10:00:00|10=000|\n";

fn acceptor(test: &str, lines: &str) -> Server {
    let settings = format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SenderCompID=ISLD\nTargetCompID=TW\n{lines}[SESSION]\nBeginString=FIX.4.4\n"
    );
    Server::start(&format!("initiator-{test}"), &settings)
}

fn start(test: &str, hosts: &[SocketAddr], lines: &str, args: &[&str]) -> Child {
    let settings = settings(hosts, lines) + "[SESSION]\nBeginString=FIX.4.4\n";
    start_with(test, &settings, args)
}

/// The default section, with these lines and hosts.
pub(crate) fn settings(hosts: &[SocketAddr], lines: &str) -> String {
    let mut settings = format!(
        "[DEFAULT]\nConnectionType=initiator\nSenderCompID=TW\nTargetCompID=ISLD\nHeartBtInt=30\n\
         ReconnectInterval=1\nLogoutTimeout=5\n{lines}"
    );
    for (number, host) in hosts.iter().enumerate() {
        let suffix = Some(number).filter(|number| *number > 0);
        let suffix = suffix.map_or(String::new(), |number| number.to_string());
        let (ip, port) = (host.ip(), host.port());
        settings += &format!("SocketConnectHost{suffix}={ip}\nSocketConnectPort{suffix}={port}\n");
    }
    settings
}

/// A folder of the test's own, empty.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("initiator-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn start_with(test: &str, settings: &str, args: &[&str]) -> Child {
    let path = folder(test).join("settings.cfg");
    std::fs::write(&path, settings).unwrap();
    Command::new(env!("CARGO_BIN_EXE_fanfare"))
        .args(["fix", "initiator", "--config"])
        .arg(path)
        .args(args)
        .env("FANFARE_PARENT", std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends `input` and gives the exit status, stdout and stderr.
fn run(
    test: &str,
    hosts: &[SocketAddr],
    lines: &str,
    args: &[&str],
    input: &str,
) -> (Option<i32>, String, String) {
    finish(start(test, hosts, lines, args), input)
}

/// Sends `input` to the one that was started.
pub(crate) fn finish(mut child: Child, input: &str) -> (Option<i32>, String, String) {
    let mut stdin = child.stdin.take().unwrap();
    // One that cannot start does not read.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Where nobody listens.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap()
}

fn client_files(name: &str) -> String {
    format!(
        "CERTIFICATION_AUTHORITIES_FILE={}\nCLIENT_CERTIFICATE_FILE={}\n\
         CLIENT_CERTIFICATE_KEY_FILE={}\n",
        certificate("root.pem"),
        certificate(&format!("{name}.pem")),
        certificate(&format!("{name}.key"))
    )
}

#[test]
fn messages_are_sent_and_answers_printed_after_the_first_host_refused() {
    let login = "Username=me\nPassword=secret\n";
    let server = acceptor("plain", login);
    let hosts = [nobody(), server.address];
    let (code, out, said) = run("plain", &hosts, login, &["--json"], ORDERS);
    assert_eq!(code, Some(0), "{said}");
    let answers: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let field = |answer: &Value, name: &str| answer["fields"][name].clone();
    assert_eq!(answers.len(), 2, "{out}");
    for (answer, (id, sub_id)) in answers.iter().zip([("one", None), ("two", Some("DESK"))]) {
        assert_eq!(answer["message"], "NewOrderSingle");
        assert_eq!(field(answer, "ClOrdID"), id);
        assert_eq!(field(answer, "SenderCompID"), "ISLD");
        assert_eq!(field(answer, "SenderSubID").as_str(), sub_id);
    }
    assert_eq!(field(&answers[0], "MsgSeqNum"), "2");
    for expected in [
        &format!("{}: Connection refused", hosts[0]),
        "FIX.4.4:TW->ISLD: logged on",
        "not sent, as the session makes its own: 1 of",
        "2 messages sent, 2 received",
        "FIX.4.4:TW->ISLD: logged out",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn certificates_have_to_be_right_on_both_sides() {
    let files = format!(
        "SERVER_CERTIFICATE_FILE={}\nSERVER_CERTIFICATE_KEY_FILE={}\n\
         CERTIFICATION_AUTHORITIES_FILE={}\nCERTIFICATE_VERIFY_LEVEL=2\n",
        certificate("server.pem"),
        certificate("server.key"),
        certificate("root.pem")
    );
    let server = acceptor("tls", &files);
    let host = [server.address];
    let name = "SNIHostName=exchange.test\n";
    let right = client_files("client");
    let (code, out, said) = run("tls", &host, &format!("{name}{right}"), &[], ORDERS);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        out.contains("NewOrderSingle") && out.contains("two"),
        "{out}"
    );

    let give_up = ["--give-up", "1"];
    let wrong = format!("{name}{}", client_files("outsider"));
    let (code, _, said) = run("tls-outsider", &host, &wrong, &give_up, ORDERS);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not logged on for 1 s: "), "{said}");
    let other = format!("SNIHostName=other.test\n{right}");
    let (code, _, said) = run("tls-name", &host, &other, &give_up, ORDERS);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("not valid for name"), "{said}");
    let absent = right.replace("client.key", "absent.key");
    let (code, _, said) = run("tls-absent", &host, &absent, &[], ORDERS);
    assert!(code == Some(1) && said.contains("absent.key"), "{said}");
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let server = acceptor("login", "Username=me\nPassword=secret\n");
    let lines = "Username=me\nPassword=guess\n";
    let give_up = ["--give-up", "1"];
    let (code, out, said) = run("login", &[server.address], lines, &give_up, ORDERS);
    assert_eq!(code, Some(1), "{said}");
    assert!(out.contains("Username or Password is wrong"), "{out}{said}");
    let (code, _, said) = run("refused", &[nobody()], "", &give_up, ORDERS);
    assert_eq!(code, Some(1), "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("not logged on for 1 s") && last.contains("refused"),
        "{said}"
    );
}

#[test]
fn faults_in_the_input_are_told_with_their_line() {
    let server = acceptor("input", "");
    let nonsense = format!("{ORDERS}hello\n");
    let (code, _, said) = run("input", &[server.address], "", &[], &nonsense);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("stdin: line 6: neither a message"), "{said}");
    let (code, _, said) = run("no-host", &[], "", &[], "");
    assert!(
        code == Some(1) && said.contains("SocketConnectHost"),
        "{said}"
    );
}

#[test]
fn an_interrupt_logs_out_after_all_was_sent() {
    let server = acceptor("interrupt", "");
    let mut child = start("interrupt", &[server.address], "", &["--stay"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(ORDERS.as_bytes()).unwrap();
    drop(stdin);
    let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(out.any(|line| line.unwrap().contains("two")), "echoed");
    fanfare_engine::stop::interrupt(child.id()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("logged out"), "{said}");
}
