//! `fanfare dds ls`, `echo`, `ping` and `pong`.

use crate::common::{Running, done, eventually, fanfare, said};
use serde_json::Value;
use std::process::Command;

fn on(domain: u32, args: &[&str]) -> Command {
    let mut command = fanfare(&[&["dds"], args].concat());
    command.args(["--domain", &crate::domain(domain)]);
    command
}

fn pong(domain: u32) -> Running {
    let mut pong = Running::start(&mut on(domain, &["pong"]));
    pong.tells("answering");
    pong
}

#[test]
fn ping_gets_its_samples_back_and_ls_sees_pong() {
    let pong = pong(20);
    for size in ["0", "64", "100000"] {
        let mut ping = on(
            20,
            &["ping", "--count", "200", "--warm-up", "20", "--size", size],
        );
        let figures = done(ping.args(["--timeout", "60", "--json"])).json();
        assert_eq!(figures["figures"]["received"], 200, "{figures}");
        assert_eq!(figures["figures"]["wrong"], 0, "{figures}");
        assert!(figures["figures"]["roundtrip_p50_us"].as_f64().unwrap() > 0.0);
    }
    let mut seen = Value::Null;
    let mut reader = None;
    eventually("pong, and its reader", || {
        seen = done(&mut on(20, &["ls", "--json"])).json();
        let endpoints = seen["endpoints"].as_array().unwrap();
        reader = endpoints.iter().find(|e| e["side"] == "reader").cloned();
        reader.is_some()
    });
    assert_eq!(seen["figures"]["participants"], 1, "{seen}");
    let reader = reader.unwrap();
    assert_eq!(
        (&reader["topic"], &reader["type"], &reader["reliable"]),
        (&"FanfarePing".into(), &"Fanfare::Ping".into(), &true.into())
    );
    pong.interrupt();
    let told = pong.end().succeeded().err;
    assert!(told.contains("660 samples came, 0 could not"), "{told}");
}

#[test]
fn policies_that_do_not_fit_are_told_and_no_pong_is_an_error() {
    let _pong = pong(21);
    let mut ping = on(21, &["ping", "--best-effort", "--wait", "60"]);
    let mut ping = Running::start(&mut ping);
    ping.tells("reliability does not fit");
    ping.interrupt();
    let interrupted = ping.end();
    assert_eq!(interrupted.code, 1, "{}", interrupted.err);
    assert!(
        interrupted
            .err
            .contains("interrupted before the first pong")
    );
    let said = said(&mut on(28, &["ping", "--wait", "0.5"]));
    let told = said.err;
    assert_eq!(said.code, 1, "{told}");
    assert!(told.contains("no pong in domain"), "{told}");
}

/// `echo` prints samples of a topic that is known only from its writer's announcement.
#[test]
fn echo_prints_the_samples_of_a_topic_it_has_never_heard_of() {
    let _pong = pong(22);
    let endless = ["ping", "--count", "100000000", "--size", "3"];
    let _ping = Running::start(&mut on(22, &endless));
    let echo = ["echo", "FanfarePing", "--count", "50", "--wait", "60"];
    let lines = done(&mut on(22, &echo)).json_lines();
    assert_eq!(lines.len(), 50);
    for pair in lines.windows(2) {
        let [first, second] = [0, 1].map(|i| &pair[i]["sample"]);
        assert_eq!(pair[0]["topic"], "FanfarePing");
        assert_eq!(first["payload"]["hex"], "000102");
        assert_eq!(first["sender"], second["sender"]);
        let number = |v: &Value| v["number"].as_u64().unwrap();
        assert_eq!(number(first) + 1, number(second));
    }
}

#[test]
fn a_topic_that_nobody_writes_is_an_error_that_names_those_there_are() {
    let _pong = pong(23);
    eventually("the topics of pong", || {
        let said = said(&mut on(23, &["echo", "Nothing", "--wait", "2"]));
        let told = said.err;
        assert_eq!(said.code, 1, "{told}");
        assert!(told.contains("nobody writes topic \"Nothing\""), "{told}");
        told.contains("FanfarePing, FanfarePong")
    });
}
