//! Tests of `fanfare fix initiator` against `fanfare fix acceptor --echo`.

use crate::common::{Folder, Running, Said, fanfare, nobody};
use crate::server::Server;
use crate::{certificate, server_files};
use serde_json::Value;
use std::net::SocketAddr;
use std::process::Stdio;

/// Two orders and a comment: bare fields, and a whole message of another sender.
const ORDERS: &str = "# orders\n\
    35=D|11=one|55=IBM|54=1|38=100|40=1|60=20261121-10:00:00|21=1|\n\n\
    35=0|\n\
    out 8=FIX.4.4|9=1|35=D|49=X|56=Y|34=77|52=20200101-00:00:00|50=DESK|11=two|55=IBM|54=2|38=7|\
    40=1|60=20261121-10:00:00|10=000|\n";

/// Long enough for an attempt to complete on a busy machine.
const GIVE_UP: [&str; 2] = ["--give-up", "15"];

fn acceptor(test: &str, lines: &str) -> Server {
    let settings = format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SenderCompID=ISLD\nTargetCompID=TW\n{lines}[SESSION]\nBeginString=FIX.4.4\n"
    );
    Server::start(&format!("initiator-{test}"), &settings)
}

fn start(test: &str, hosts: &[SocketAddr], lines: &str, args: &[&str]) -> Started {
    let settings = settings(hosts, lines) + "[SESSION]\nBeginString=FIX.4.4\n";
    start_with(test, &settings, args)
}

/// Returns the default section, with these lines and hosts.
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

/// An initiator that reads messages from its stdin.
pub(crate) struct Started {
    running: Running,
    _folder: Folder,
}

pub(crate) fn start_with(test: &str, settings: &str, args: &[&str]) -> Started {
    let folder = Folder::new(&format!("initiator-{test}"));
    let path = folder.with("settings.cfg", settings);
    let mut command = fanfare(&["fix", "initiator", "--config", &path]);
    let running = Running::start(command.args(args).stdin(Stdio::piped()));
    Started {
        running,
        _folder: folder,
    }
}

/// Starts an initiator and sends `input`.
fn run(test: &str, hosts: &[SocketAddr], lines: &str, args: &[&str], input: &str) -> Said {
    finish(start(test, hosts, lines, args), input)
}

/// Sends `input` to a started initiator.
pub(crate) fn finish(mut started: Started, input: &str) -> Said {
    started.running.reads(input);
    started.running.end()
}

/// Sends `input` to an initiator started with `--json --stay`, and ends it after `count` responses.
/// Returns the responses, and its output.
pub(crate) fn answered(mut started: Started, input: &str, count: usize) -> (Vec<Value>, String) {
    started.running.reads(input);
    let answers = (0..count).map(|_| started.running.prints("{"));
    let answers: Vec<_> = answers
        .map(|line| serde_json::from_str(&line).unwrap())
        .collect();
    started.running.interrupt();
    (answers, started.running.end().succeeded().err)
}

pub(crate) const ANSWERED: [&str; 2] = ["--json", "--stay"];

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
    let (answers, said) = answered(start("plain", &hosts, login, &ANSWERED), ORDERS, 2);
    let field = |answer: &Value, name: &str| answer["fields"][name].clone();
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
    let server = acceptor("tls", &server_files());
    let host = [server.address];
    let name = "SNIHostName=exchange.test\n";
    let right = client_files("client");
    let trusted = start("tls", &host, &format!("{name}{right}"), &ANSWERED);
    let (answers, _) = answered(trusted, ORDERS, 2);
    assert_eq!(answers[1]["message"], "NewOrderSingle");
    assert_eq!(answers[1]["fields"]["ClOrdID"], "two");

    let wrong = format!("{name}{}", client_files("outsider"));
    let outsider = start("tls-outsider", &host, &wrong, &GIVE_UP);
    let other = format!("SNIHostName=other.test\n{right}");
    let other = start("tls-name", &host, &other, &GIVE_UP);
    let Said {
        code, err: said, ..
    } = finish(outsider, ORDERS);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("not logged on for 15 s: "), "{said}");
    let Said {
        code, err: said, ..
    } = finish(other, ORDERS);
    assert_eq!(code, 1, "{said}");
    let last = said.lines().last().unwrap();
    let begin = format!("not logged on for 15 s: FIX.4.4:TW->ISLD: {}: ", host[0]);
    let (_, why) = last.split_once(&begin).unwrap_or_else(|| panic!("{said}"));
    let ends = why.contains("not valid for name") && why.ends_with("; connection lost");
    assert!(ends, "{said}");
    let absent = right.replace("client.key", "absent.key");
    let Said {
        code, err: said, ..
    } = run("tls-absent", &host, &absent, &[], ORDERS);
    assert!(code == 1 && said.contains("absent.key"), "{said}");
}

#[test]
fn who_is_not_let_in_is_told_why() {
    let server = acceptor("login", "Username=me\nPassword=secret\n");
    let lines = "Username=me\nPassword=guess\n";
    let guessing = start("login", &[server.address], lines, &GIVE_UP);
    let refused = start("refused", &[nobody()], "", &GIVE_UP);
    let Said {
        code,
        out,
        err: said,
    } = finish(guessing, ORDERS);
    assert_eq!(code, 1, "{said}");
    assert!(out.contains("Username or Password is wrong"), "{out}{said}");
    let Said {
        code, err: said, ..
    } = finish(refused, ORDERS);
    assert_eq!(code, 1, "{said}");
    let last = said.lines().last().unwrap();
    assert!(
        last.contains("not logged on for 15 s") && last.contains("refused"),
        "{said}"
    );
}

#[test]
fn a_logon_without_an_answer_is_told_with_what_may_be_wrong() {
    let server = acceptor("stranger", "");
    // Also behind a host that refuses connections.
    let hosts = [nobody(), server.address];
    let settings = settings(&hosts, "") + "[SESSION]\nBeginString=FIX.4.2\n";
    let mut started = start_with("stranger", &settings, &["--stay"]);
    let expected = "FIX.4.2:TW->ISLD: the connection was closed before the answer to our Logon";
    started.running.tells(expected);
}

#[test]
fn each_session_names_the_host_that_it_does_not_reach() {
    let host = nobody();
    let sessions = "[SESSION]\nBeginString=FIX.4.2\n[SESSION]\nBeginString=FIX.4.4\n";
    let settings = settings(&[host], "") + sessions;
    let mut started = start_with("unconnected", &settings, &["--stay"]);
    for version in ["FIX.4.2", "FIX.4.4"] {
        let expected = format!("{version}:TW->ISLD: {host}: Connection refused");
        started.running.tells(&expected);
    }
}

#[test]
fn faults_in_the_input_are_told_with_their_line() {
    let server = acceptor("input", "");
    let nonsense = format!("{ORDERS}hello\n");
    let Said {
        code, err: said, ..
    } = run("input", &[server.address], "", &[], &nonsense);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("stdin: line 6: expected a message"), "{said}");
    let Said {
        code, err: said, ..
    } = run("no-host", &[], "", &[], "");
    assert!(code == 1 && said.contains("SocketConnectHost"), "{said}");
}

#[test]
fn an_interrupt_logs_out_after_all_was_sent() {
    let server = acceptor("interrupt", "");
    let mut started = start("interrupt", &[server.address], "", &["--stay"]);
    started.running.reads(ORDERS);
    started.running.prints("two");
    started.running.interrupt();
    let said = started.running.end().succeeded().err;
    assert!(said.contains("logged out"), "{said}");
}
