//! Turns of an agent with one client.

use super::client::tests::pair;
use super::*;
use crate::market::ring::EventRing;
use crate::notice;
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_market::dbn::live::LiveSchema;
use std::net::TcpStream;

/// A request that is answered with an error.
const REQUEST: &str = "schema=none|symbols=A\n";

/// Returns an agent with a client, some lines of which have been received.
fn agent(phase: Phase, lines: &str) -> (DbnAgent, Token, TcpStream) {
    let waker = || Waker::detached().unwrap();
    let events = EventRing::new(1 << 16, 1, waker(), 1).reader(waker());
    let (notices, _) = notice::channel();
    let mut agent = DbnAgent::open(Parts {
        config: DbnConfig {
            port: 0,
            ..DbnConfig::default()
        },
        events: events.unwrap(),
        books: Vec::new(),
        users: UserBook::new(UserSet::default()),
        roster: Roster::default(),
        audit: Audit::default(),
        notices,
        counts: DbnCounts::new(&Counters::new(), ""),
        log: None,
    })
    .unwrap();
    let (mut client, other) = pair(false);
    (client.phase, client.is_paused) = (phase, true);
    client.inbox = lines.into();
    let token = agent.hub.clients.insert(client);
    (agent, token, other)
}

#[test]
fn some_lines_of_a_client_are_processed_at_a_time() {
    let (mut agent, token, _other) = agent(Phase::Streaming, &REQUEST.repeat(100));
    for count in [32, 64, 96, 100] {
        assert!(agent.resume(token));
        let client = agent.hub.clients.get(token).unwrap();
        assert_eq!(client.requests, (0, count));
        assert_eq!(client.is_paused, count < 100);
    }
    assert!(!agent.resume(token));
}

#[test]
fn requests_before_the_start_are_processed_some_at_a_time_and_before_the_others() {
    let lines = REQUEST.repeat(40);
    let lines = format!("{lines}start_session\n{lines}");
    let (mut agent, token, _other) = agent(Phase::Ready { until: 0 }, &lines);
    // 32 are queued; then 8, the start, and 23 of the queue; 17 of it and 15 others; the rest.
    for later in [0, 0, 15, 40] {
        assert!(agent.resume(token));
        let client = agent.hub.clients.get(token).unwrap();
        assert_eq!(client.requests, (0, later));
        assert_eq!(client.early.is_empty(), later > 0);
    }
    assert!(!agent.resume(token));
}

#[test]
fn a_schema_is_added_once_in_a_turn_and_kept_for_a_while() {
    let (mut agent, token, _other) = agent(Phase::Streaming, "");
    let orders = LiveSchema::Mbo.alone();
    agent.run(token, "schema=mbo|symbols=ALL_SYMBOLS");
    assert!(agent.encoder.wanted().is_empty());
    agent.sum_up();
    assert_eq!(agent.encoder.wanted(), orders);
    agent.run(token, "unsubscribe=1|schema=mbo|symbols=ALL_SYMBOLS");
    agent.sum_up();
    assert_eq!(agent.encoder.wanted(), orders);
    agent.next_timer = u64::MAX;
    agent.times.mono = agent.next_timer().unwrap();
    agent.sum_up();
    assert!(agent.encoder.wanted().is_empty());
}
