//! Tests that errors are reported with their place.

use crate::common::{Folder, nobody, run, told};

#[test]
fn numbers_out_of_range_are_wrong_usage() {
    for args in [
        &["throughput", "run", "--sessions", "0"][..],
        &["throughput", "run", "--sessions", "1,many"],
        &["throughput", "run", "--runs", "0"],
        &["throughput", "run", "--at-least", "NaN"],
        &["throughput", "run", "--max-segments", "1"],
        &["throughput", "acceptor", "--sessions", "0"],
        &["throughput", "acceptor", "--threads", "19"],
        &["throughput", "initiator", "127.0.0.1", "--messages", "0"],
        &["throughput", "initiator", "127.0.0.1", "--segment", "1K"],
        &[
            "throughput",
            "initiator",
            "127.0.0.1",
            "--durability",
            "some",
        ],
        &["throughput", "initiator"],
    ] {
        told(args, 2);
    }
}

#[test]
fn orders_that_are_wrong_are_refused_with_their_line() {
    let folder = Folder::new("orders");
    let bad = folder.with(
        "bad-orders.txt",
        "# mine\n11=1|55=X|54=1|60=20261120-10:00:00|38=1|40=1\n11=2\n",
    );
    for args in [
        &["throughput", "run", "--orders", &bad][..],
        &["throughput", "acceptor", "--port", "0", "--orders", &bad],
        &[
            "throughput",
            "initiator",
            "127.0.0.1",
            "1",
            "--orders",
            &bad,
        ],
    ] {
        let told = told(args, 1);
        assert!(told.contains("bad-orders.txt, line 3"), "{told}");
    }
    let told = told(&["throughput", "run", "--orders", "/nowhere/at.txt"], 1);
    assert_eq!(told.matches("No such file").count(), 1, "{told}");
    assert!(told.contains("/nowhere/at.txt"), "{told}");
}

#[test]
fn a_chart_that_cannot_be_written_costs_no_figure() {
    let once = ["--sessions", "1", "--messages", "100", "--runs", "1"];
    let more = ["--at-least", "0", "--store", "none"];
    let svg = ["--svg", "/nowhere/at.svg"];
    let said = run(&[&["throughput", "run"], &once[..], &more, &svg].concat());
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.out.contains("100 orders sent"), "{}", said.out);
    let why = "cannot write /nowhere/at.svg";
    assert!(said.err.contains(why), "{}", said.err);
}

#[test]
fn an_acceptor_that_is_not_there_is_named() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    let acceptor = ["throughput", "acceptor", "--port", &port];
    assert!(told(&acceptor, 1).contains("in use"));
    let port = nobody().port().to_string();
    let initiator = [
        "throughput",
        "initiator",
        "127.0.0.1",
        &port,
        "--store",
        "none",
    ];
    let told = told(&initiator, 1);
    assert!(told.contains(&port) && told.contains("refused"), "{told}");
}

#[test]
fn a_store_that_is_no_folder_or_too_small_is_named() {
    let folder = Folder::new("no-folder");
    let path = folder.with("a-file", "");
    let run = [
        "throughput",
        "run",
        "--sessions",
        "1",
        "--runs",
        "1",
        "--store",
    ];
    let message = told(&[&run[..], &[path.as_str()]].concat(), 1);
    assert!(message.contains("a-file"), "{message}");
    let orders = told(&["throughput", "orders", "0"], 2);
    assert!(orders.contains("COUNT"), "{orders}");
}
