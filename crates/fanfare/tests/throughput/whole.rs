//! Tests of both processes, complete and interrupted.

use crate::common::relay::Relay;
use crate::common::{Folder, Running, eventually, fanfare, figure, run};
use crate::start_acceptor;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Returns the arguments of `throughput run` with this many sessions and messages.
fn of_run<'a>(sessions: &'a str, messages: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let args = [
        "throughput",
        "run",
        "--sessions",
        sessions,
        "--messages",
        messages,
    ];
    [&args[..], more].concat()
}

#[test]
fn a_run_prints_the_table_the_figures_and_the_chart() {
    let (folder, store) = (Folder::new("run"), Folder::new("run-store"));
    let (svg, orders) = (folder.file("chart.svg"), folder.file("orders.txt"));
    run(&["throughput", "orders", "300", "-o", &orders]).succeeded();
    let args = of_run(
        "1,6",
        "1000",
        &[
            "--runs",
            "2",
            "--at-least",
            "0",
            "--segment",
            "128K",
            "--threads",
            "2",
            "--orders",
            &orders,
            "--store",
            store.path().to_str().unwrap(),
            "--svg",
            &svg,
        ],
    );
    let output = run(&[&args[..], &["--json"]].concat());
    let figures = output.succeeded().json();
    assert_eq!(figures["command"], "throughput run");
    for name in [
        "sessions_1_per_s",
        "sessions_6_per_s",
        "ratio_last_to_first",
    ] {
        assert!(figure(&figures, name) > 0.0, "{name}");
    }
    assert_eq!(figure(&figures, "lost") + figure(&figures, "wrong"), 0.0);
    assert_eq!(figure(&figures, "persisted"), 14_000.0);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg"));
    let left: Vec<_> = std::fs::read_dir(store.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn runs_are_repeated_until_so_much_was_measured() {
    let more = [
        "--runs",
        "1",
        "--at-least",
        "0.05",
        "--store",
        "none",
        "--json",
    ];
    let figures = run(&of_run("1,2", "2000", &more)).succeeded().json();
    for sessions in [1, 2] {
        let name = |what| format!("sessions_{sessions}_{what}");
        let runs = figure(&figures, &name("runs"));
        let measured = figure(&figures, &name("measured_s"));
        assert!(measured >= 0.05 || runs == 1000.0, "{measured} s in {runs}");
        let list = |what| figures["figures"][name(what)].as_array().unwrap().clone();
        let (t1, t2) = (list("t1_ns"), list("t2_ns"));
        assert_eq!((t1.len(), t2.len()), (runs as usize, runs as usize));
        assert!(t1.iter().zip(&t2).all(|(t1, t2)| t1.as_u64() < t2.as_u64()));
    }
}

#[test]
fn without_persistence_nothing_is_kept() {
    let args = of_run(
        "3",
        "500",
        &["--runs", "1", "--at-least", "0", "--store", "none"],
    );
    let text = run(&args).succeeded().out;
    assert!(
        text.contains("Mean Messages / second") && text.contains("nothing was kept"),
        "{text}"
    );
    assert!(text.contains("1500 orders sent, 0 lost, 0 wrong"), "{text}");
}

#[test]
fn the_journals_of_an_initiator_stay_and_hold_every_order() {
    let (acceptor, port) = start_acceptor(&["--sessions", "2", "--messages", "700"]);
    let store = Folder::new("initiator-store");
    let args = [
        "throughput",
        "initiator",
        "127.0.0.1",
        &port,
        "--sessions",
        "2",
        "--messages",
        "700",
        "--durability",
        "100",
        "--store",
        store.path().to_str().unwrap(),
        "--json",
    ];
    let sent = run(&args).json();
    assert_eq!(figure(&sent, "sent"), 1400.0);
    let received = acceptor.end().succeeded().out;
    assert!(received.contains("1400"));
    let orders = fanfare_instruments::throughput::Orders::built_in();
    let persisted = fanfare_instruments::throughput::persisted(store.path(), &orders).unwrap();
    assert_eq!(persisted, 1400);
}

#[test]
fn an_acceptor_with_other_orders_says_how_many_are_wrong() {
    let folder = Folder::new("other-orders");
    let own = folder.with(
        "other.txt",
        "11=1|55=X|54=1|60=20261120-10:00:00|38=1|40=1\n",
    );
    let (acceptor, port) = start_acceptor(&["--messages", "40", "--orders", &own, "--json"]);
    let sent = run(&[
        "throughput",
        "initiator",
        "127.0.0.1",
        &port,
        "--messages",
        "40",
    ]);
    sent.succeeded();
    let output = acceptor.end();
    assert_eq!(output.code, 1);
    let figures = output.json();
    assert_eq!(
        (figure(&figures, "wrong"), figure(&figures, "lost")),
        (40.0, 0.0)
    );
}

/// Starts a run that would take minutes.
fn long_run(port: &str) -> Running {
    let args = [
        "throughput",
        "initiator",
        "127.0.0.1",
        port,
        "--sessions",
        "2",
        "--messages",
        "90000000",
        "--store",
        "none",
        "--json",
    ];
    Running::start(&mut fanfare(&args))
}

/// Returns an acceptor and an initiator in the middle of a run.
fn in_the_middle() -> (Running, Running) {
    let args = ["--sessions", "2", "--messages", "90000000", "--json"];
    let (acceptor, port) = start_acceptor(&args);
    let relay = Relay::to(SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap())));
    let initiator = long_run(&relay.port);
    relay.wait_sent(100_000);
    (acceptor, initiator)
}

#[test]
fn when_the_initiator_is_killed_the_acceptor_tells_what_came() {
    let (acceptor, mut initiator) = in_the_middle();
    initiator.kill();
    let output = acceptor.end();
    assert_eq!(output.code, 1);
    let figures = output.json();
    assert_eq!(
        figure(&figures, "received") + figure(&figures, "lost"),
        180_000_000.0
    );
    assert_eq!(figure(&figures, "wrong"), 0.0);
}

#[test]
fn when_the_acceptor_is_killed_the_initiator_tells_how_far_it_was() {
    let (mut acceptor, initiator) = in_the_middle();
    acceptor.kill();
    let output = initiator.end();
    let told = &output.err;
    assert_eq!(output.code, 1, "{told}");
    assert!(told.contains("FIX.4.4:BUY-"), "{told}");
    assert_eq!(output.json()["ok"], false);
}

#[test]
fn an_interrupted_run_reports_what_it_has_and_leaves_no_process() {
    let args = of_run("1,2", "50000000", &["--store", "none", "--json"]);
    let run = Running::start(&mut fanfare(&args));
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    run.interrupt();
    let output = run.end();
    // The limit for two unresponsive processes is far beyond that.
    assert!(began.elapsed() < Duration::from_secs(45));
    let told = &output.err;
    assert_eq!(output.code, 1, "{told}");
    let figures = output.json();
    assert_eq!(figures["ok"], false);
    assert_eq!(figure(&figures, "lost"), 0.0);
    assert!(told.contains("not all runs"), "{told}");
}

/// Returns the child processes of a process.
fn children(of: u32) -> Vec<u32> {
    let list = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let list = list.unwrap_or_default();
    list.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

#[test]
fn a_run_that_loses_one_of_its_processes_says_so_and_ends() {
    for victim in 0..2 {
        let args = [
            "throughput",
            "run",
            "--sessions",
            "2",
            "--messages",
            "90000000",
            "--store",
            "none",
        ];
        let folder = Folder::new("throughput-lost");
        let run = Running::start(fanfare(&args).env("TMPDIR", folder.path()));
        let mut both = Vec::new();
        eventually("two processes", || {
            both = children(run.id());
            both.len() == 2
        });
        std::thread::sleep(Duration::from_millis(200));
        let kill = ["-9", &both[victim].to_string()].map(str::to_owned);
        assert!(
            std::process::Command::new("kill")
                .args(kill)
                .status()
                .unwrap()
                .success()
        );
        let output = run.end();
        let told = &output.err;
        assert_eq!(output.code, 1, "{told}");
        assert!(told.contains("run 1 with 2 sessions"), "{told}");
        let other = std::path::PathBuf::from(format!("/proc/{}", both[1 - victim]));
        assert!(!other.exists(), "the other one goes on");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "left: {left:?}");
    }
}
