//! Tests of several hosts at one gateway, of more sessions than it accepts, and of its number of
//! threads.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, eventually, fanfare, figure, run};
use std::net::TcpListener;

fn server(args: &[&str]) -> Gateway {
    let ports = ["--producer-port", "0", "--consumer-port", "0"];
    Gateway::start(&mut fanfare(
        &[&["fanout", "server"], args, &ports].concat(),
    ))
}

fn consumers(port: &str, args: &[&str]) -> Running {
    let command = ["fanout", "consumers", "127.0.0.1"];
    Running::start(&mut fanfare(&[&command, args, &["--port", port]].concat()))
}

/// Returns the line with the number of threads; the system must list as many workers by name.
fn threads(args: &[&str], workers: usize) -> String {
    let ports = ["--producer-port", "0", "--consumer-port", "0"];
    let mut server = Running::start(&mut fanfare(
        &[&["fanout", "server"], args, &ports].concat(),
    ));
    let said = server.prints("Running on ");
    server.prints("Listening for consumers on ");
    // A new thread sets its own name, possibly after the line above.
    eventually("the threads of the workers", || {
        named(server.id()) >= workers
    });
    server.interrupt();
    server.end().succeeded();
    said
}

/// Returns the number of a process's threads with the name of a worker.
fn named(process: u32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let names = tasks.flatten().map(|task| task.path().join("comm"));
    let names = names.filter_map(|name| std::fs::read_to_string(name).ok());
    names.filter(|name| name.contains("worker")).count()
}

#[test]
fn several_workers_have_threads_of_their_own_unless_told_to_share() {
    assert_eq!(threads(&["--workers", "3"], 3), "Running on 4 threads");
    let shared = threads(&["--workers", "3", "--shared"], 0);
    assert_eq!(shared, "Running on 1 thread");
    assert_eq!(threads(&[], 0), "Running on 1 thread");
    assert_eq!(threads(&["--dedicated"], 0), "Running on 2 threads");
    let folder = Folder::new("threads");
    let path = folder.with("shared.toml", "workers = 2\nthreads = \"shared\"\n");
    assert_eq!(threads(&["--config", &path], 0), "Running on 1 thread");
    assert_eq!(
        run(&["fanout", "server", "--shared", "--dedicated"]).code,
        2
    );
}

#[test]
fn two_hosts_load_one_gateway_under_other_names() {
    let mut server = server(&[]);
    let messages = ["--messages", "20", "--from-start", "--json"];
    let mut first = consumers(&server.consumers, &[&["2", "0"], &messages[..]].concat());
    first.tells("2 sessions logged on");
    // The same names are in use, which is reported; no session is left.
    let taken = consumers(&server.consumers, &["2"]).end();
    assert_eq!(taken.code, 1);
    assert!(
        taken.err.contains(
            "C1: the gateway closed the connection without an answer: a \
        session with this CompID is logged on (--prefix and --first have others)"
        ),
        "{}",
        taken.err
    );
    server.tells("has a connection");
    let other = ["2", "0", "--prefix", "HOST2-"];
    let mut second = consumers(&server.consumers, &[&other, &messages[..]].concat());
    second.tells("2 sessions logged on");
    // One of these names is in use, the others log on.
    let third = ["2", "0", "--first", "2", "--messages", "10", "--json"];
    let mut third = consumers(&server.consumers, &third);
    third.tells("1 session logged on");
    let why = third.tells("1 session not let in, the others go on; first C2: ");
    assert!(why.contains("is logged on"), "{why}");
    let sending = ["fanout", "producers", "127.0.0.1", "1", "10", "200", "1"];
    let of = |prefix| ["--port", &server.producers, "--prefix", prefix];
    run(&[&sending[..], &of("EAST")].concat()).succeeded();
    for consumers in [first, second] {
        let received = consumers.end().succeeded().json();
        assert_eq!(figure(&received, "received"), 20.0);
        assert_eq!(figure(&received, "sessions_refused"), 0.0);
    }
    let received = third.end();
    assert_eq!(received.code, 1, "not all that was asked for");
    assert_eq!(figure(&received.json(), "received"), 10.0);
    assert_eq!(figure(&received.json(), "sessions_refused"), 1.0);
    server.stop();
}

#[test]
fn a_load_beyond_the_bound_goes_on_with_the_rest() {
    let server = server(&["--max-sessions", "3"]);
    let args = ["5", "0", "--messages", "12", "--json"];
    let mut consumers = consumers(&server.consumers, &args);
    consumers.tells("3 sessions logged on");
    consumers.tells("2 sessions not let in, the others go on; first C");
    let sending = ["fanout", "producers", "127.0.0.1", "4", "10", "200", "4"];
    let options = ["--threads", "2", "--port", &server.producers, "--json"];
    let sent = run(&[&sending[..], &options].concat());
    assert_eq!(sent.code, 1);
    assert!(sent.err.contains("3 sessions logged on"), "{}", sent.err);
    assert_eq!(figure(&sent.json(), "sent"), 30.0);
    let marked = figure(&sent.json(), "marked");
    assert!((7.0..=8.0).contains(&marked), "one in four of 30: {marked}");
    let received = consumers.end();
    assert_eq!(received.code, 1);
    let received = received.json();
    assert!(figure(&received, "received") >= 12.0);
    for name in ["missing", "duplicates", "reordered", "short"] {
        assert_eq!(figure(&received, name), 0.0, "{name}");
    }
    assert_eq!(figure(&received, "sessions_refused"), 2.0);
    server.stop();
}

#[test]
fn ctrl_c_ends_the_wait_for_a_gateway_that_does_not_answer() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    for args in [
        &["consumers", "127.0.0.1", "300"][..],
        &["consumers", "127.0.0.1", "300", "--subscribe", "*"],
        &["producers", "127.0.0.1", "300", "1", "1"],
    ] {
        let all = [&["fanout"], args, &["--port", &port]].concat();
        let running = Running::start(&mut fanfare(&all));
        running.interrupt();
        let said = running.end();
        let why = "interrupted while sessions log on";
        assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
    }
}

#[test]
fn enter_ends_consumers_also_from_a_pipe_where_that_is_asked_for() {
    let server = server(&[]);
    let start = |args: &[&str]| {
        let command = ["fanout", "consumers", "127.0.0.1", "1", "0"];
        let all = [&command, args, &["--port", &server.consumers]].concat();
        let mut consumers = Running::start(fanfare(&all).stdin(std::process::Stdio::piped()));
        consumers.tells("1 session logged on");
        consumers
    };
    let mut until = start(&["--until-enter", "--prefix", "U"]);
    until.tells("Press Enter to shutdown");
    until.reads("\n");
    let told = until.end().succeeded().out;
    assert!(told.contains("\n0 to 0 a session\n"), "{told}");
    // Without the option, a line on stdin is ignored, and the end of stdin always is.
    let mut plain = start(&["--prefix", "P"]);
    plain.reads("\n");
    let mut ended = start(&["--until-enter", "--prefix", "E"]);
    ended.reads("");
    ended.tells("Press Enter to shutdown");
    for running in [plain, ended] {
        running.interrupt();
        running.end().succeeded();
    }
    server.stop();
}

#[test]
fn a_table_with_one_key_has_defaults_for_the_rest() {
    let folder = Folder::new("one-key");
    let path = folder.with("one.toml", "[consumers]\nmax_sessions = 2\n");
    let server = server(&["--config", &path]);
    let mut consumers = consumers(&server.consumers, &["3", "0", "--messages", "1"]);
    consumers.tells("2 sessions logged on");
    server.stop();
    consumers.end();
}
