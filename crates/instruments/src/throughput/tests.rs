use super::*;
use crate::testing::Folder;
use fanfare_engine::host::StoreKind;
use fanfare_engine::journal;
use fanfare_engine::stop::Stop;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

fn acceptor(sessions: usize, messages: u64, orders: &Arc<Orders>, threads: usize) -> Acceptors {
    Acceptors::listen(&AcceptorOptions {
        sessions,
        messages,
        orders: orders.clone(),
        address: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        threads,
    })
    .unwrap()
}

fn exchange(
    sessions: usize,
    messages: (u64, u64),
    orders: (&Arc<Orders>, &Arc<Orders>),
    store: StoreKind,
    threads: usize,
) -> (Sent, Tally, Option<String>) {
    let acceptors = acceptor(sessions, messages.1, orders.1, threads);
    let options = InitiatorOptions {
        sessions,
        messages: messages.0,
        orders: orders.0.clone(),
        addresses: acceptors.addresses().to_vec(),
        store,
        threads,
    };
    thread::scope(|scope| {
        let receiving = scope.spawn(|| acceptors.run(&Stop::new()).unwrap());
        let initiators = Initiators::open(&options).unwrap();
        let sent = initiators.run(&Stop::new()).unwrap();
        let (tally, trouble) = receiving.join().unwrap();
        (sent, tally, trouble)
    })
}

#[test]
fn every_order_arrives_and_is_kept() {
    let folder = Folder::new("throughput");
    let orders = Arc::new(Orders::built_in());
    for (sessions, threads) in [(1, 1), (5, 2)] {
        let options = journal::Options {
            segment_bytes: 128 << 10,
            ..journal::Options::default()
        };
        let base = folder.path().join(sessions.to_string());
        let store = StoreKind::Journal(base.clone(), options);
        let (sent, tally, trouble) =
            exchange(sessions, (2_000, 2_000), (&orders, &orders), store, threads);
        assert_eq!((trouble, &sent.trouble), (None, &None));
        assert!(sent.complete && tally.is_clean(), "{tally:?}");
        let all = 2_000 * sessions as u64;
        assert_eq!((sent.orders, tally.received), (all, all));
        assert!(tally.rate() > 0.0);
        assert_eq!(persisted(&base, &orders).unwrap(), all);
    }
}

#[test]
fn other_orders_and_too_few_of_them_are_noticed() {
    let built_in = Arc::new(Orders::built_in());
    let folder = Folder::new("throughput-other");
    let path = folder.path().join("orders");
    let (mut one, other) = (Orders::line(1), Orders::line(20_001));
    one.push('\n');
    one.push_str(&other);
    std::fs::write(&path, one).unwrap();
    let two = Arc::new(Orders::read(&path).unwrap());
    let store = || StoreKind::NoResend(1 << 20);
    let (sent, tally, trouble) = exchange(1, (10, 12), (&built_in, &two), store(), 1);
    assert!(sent.complete);
    assert_eq!((tally.received, tally.wrong, tally.lost), (10, 9, 2));
    assert!(trouble.unwrap().contains("10 of 12"));
}

/// Returns an address without a listener: no other test listens on this IP address, so that none
/// takes the freed port.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.78:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn an_acceptor_that_is_not_there_is_told() {
    let nobody = nobody();
    let options = InitiatorOptions {
        sessions: 2,
        messages: 1,
        orders: Arc::new(Orders::built_in()),
        addresses: vec![nobody],
        store: StoreKind::NoResend(1 << 20),
        threads: 1,
    };
    let initiators = Initiators::open(&options).unwrap();
    let sent = initiators.run(&Stop::new()).unwrap();
    let trouble = sent.trouble.unwrap();
    assert!(trouble.contains(&nobody.to_string()), "{trouble}");
    assert!(!sent.complete && sent.orders == 0);
}

fn refused(text: &[u8]) -> String {
    let folder = Folder::new("throughput-orders");
    let path = folder.path().join("orders.txt");
    std::fs::write(&path, text).unwrap();
    Orders::read(&path).unwrap_err().to_string()
}

#[test]
fn a_file_of_orders_says_which_line_is_wrong() {
    let good = Orders::line(7);
    let cases: [(String, &str); 7] = [
        (format!("# orders\n\n{good}\nhello\n"), "line 4"),
        (format!("{good}\n{good}|34=5\n"), "line 2"),
        (format!("{good}\n11=1|55=X\n"), "line 2"),
        (format!("{good}|9999=\n"), "line 1"),
        (good.replace("54=", "54=x"), "line 1"),
        (format!("50=me|{good}"), "line 1"),
        (
            format!("{good}|58={}", "x".repeat(5000)),
            "line 1: longer than 4096",
        ),
    ];
    for (text, place) in cases {
        let told = refused(text.as_bytes());
        assert!(
            told.contains(place) && told.contains("orders.txt"),
            "{told}"
        );
    }
    assert!(refused(b"# nothing\n").contains("no order"));
}

#[test]
fn a_file_of_generated_lines_is_what_is_built_in() {
    let folder = Folder::new("throughput-generated");
    let path = folder.path().join("orders");
    let lines: Vec<String> = (1..=20_000).map(Orders::line).collect();
    std::fs::write(&path, lines.join("|\r\n")).unwrap();
    let read = Orders::read(&path).unwrap();
    assert!(read == Orders::built_in());
    assert_eq!(read.body(20_003), read.body(3));
}

#[test]
fn the_summary_has_the_sources_rows_and_the_agreed_figures() {
    let row = |sessions, rates: &[f64]| Row {
        sessions,
        rates: rates.to_vec(),
        spans: vec![(5, 500_000_005); rates.len()],
    };
    let summary = Summary {
        rows: vec![row(1, &[1e6, 3e6]), row(200, &[1.5e6]), row(500, &[])],
        persisted: Some(7),
        ..Summary::default()
    };
    let table = summary.table();
    assert!(
        table.contains("Mean Messages / second") && table.contains("2,000,000"),
        "{table}"
    );
    let mut figures = crate::figures::Figures::new("throughput run");
    summary.add_to(&mut figures);
    assert_eq!(figures.value("sessions_1_per_s"), Some(2e6));
    assert_eq!(figures.value("lost"), Some(0.0));
    assert_eq!(figures.value("sessions_1_measured_s"), Some(1.0));
    assert_eq!(figures.value("sessions_1_runs"), Some(2.0));
    assert!(
        figures
            .to_json()
            .to_string()
            .contains("\"sessions_200_t2_ns\":[500000005]")
    );
    assert!(summary.chart().contains("sessions"));
}

#[test]
fn rows_take_turns_until_each_was_measured_for_long_enough() {
    let plan = Plan {
        runs: 1,
        at_least: 1.0,
    };
    let outcome = |t2| Outcome {
        rate: 1.0,
        t1: 0,
        t2,
        lost: 0,
        wrong: 0,
        persisted: Some(10),
    };
    let mut summary = Summary::new(&[1, 2], true);
    let mut made = Vec::new();
    let measured = summary.measure(plan, &Stop::new(), |run, row, sessions| {
        made.push((run, row, sessions));
        // The second row is faster.
        Ok::<_, ()>(Some(outcome([600_000_000, 400_000_000][row])))
    });
    assert_eq!(measured, Ok(true));
    assert_eq!(
        made,
        [(1, 0, 1), (1, 1, 2), (2, 0, 1), (2, 1, 2), (3, 1, 2)]
    );
    assert_eq!((summary.runs, summary.sessions), (5, 8));
    assert!(summary.is_whole(6, false) && !summary.is_whole(6, true));
    assert!(Summary::new(&[1], true).is_whole(6, true));
    assert_eq!(
        summary.measure(plan, &Stop::new(), |_, _, _| Err(1)),
        Err(1)
    );
    let interrupted =
        Summary::new(&[1], false).measure(plan, &Stop::new(), |_, _, _| Ok::<_, ()>(None));
    assert_eq!(interrupted, Ok(false));
}

#[test]
fn long_orders_need_more_room_in_a_journal() {
    let folder = Folder::new("throughput-long");
    let path = folder.path().join("orders.txt");
    let text = "x".repeat(4_000);
    let long = format!("{}|58={text}", Orders::line(1));
    std::fs::write(&path, format!("{}\n{long}\n", Orders::line(2))).unwrap();
    let (short, long) = (Orders::built_in(), Orders::read(&path).unwrap());
    assert_eq!(long.longest(), long.body(1).len());
    let (segment, most) = (64 << 10, 3);
    assert!(holds(&short, 100, segment, most));
    assert!(!holds(&long, 100, segment, most));
    assert!(holds(&long, 10, segment, most));
}
