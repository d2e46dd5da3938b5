//! Turns of an agent with one client.

use super::client::tests::{pair, texts};
use super::replay::tests::{ended, event, replay};
use super::replay::{Replay, Step};
use super::*;
use crate::market::ring::EventRing;
use crate::notice;
use crate::test_log::{instrument, named};
use crate::users::UserSet;
use crate::users::grant::Grant;
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_market::dbn::live::LiveSchema;
use fanfare_market::{InstrumentId, Kind};
use std::net::TcpStream;

/// A request that is answered with an error.
const REQUEST: &str = "schema=none|symbols=A\n";

/// Returns a ring for one reader.
fn ring() -> EventRing {
    EventRing::new(1 << 16, 1, Waker::detached().unwrap(), 1)
}

/// Returns an agent with a client, some lines of which have been received.
fn agent(phase: Phase, lines: &str) -> (DbnAgent, Token, TcpStream) {
    agent_of(&mut ring(), phase, lines)
}

/// Returns an agent as `agent` does, which reads this ring.
fn agent_of(ring: &mut EventRing, phase: Phase, lines: &str) -> (DbnAgent, Token, TcpStream) {
    let events = ring.reader(Waker::detached().unwrap());
    let (notices, _) = notice::channel();
    let mut agent = DbnAgent::open(Parts {
        config: DbnConfig {
            port: 0,
            ..DbnConfig::default()
        },
        events: events.unwrap(),
        books: Vec::new(),
        bases: Vec::new(),
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
        assert_eq!(client.requests.count, count);
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
        assert_eq!(client.requests.count, later);
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

#[test]
fn a_renamed_instrument_is_sent_only_to_those_who_may_see_its_new_name() {
    let mut ring = ring();
    let (mut agent, token, _other) = agent_of(&mut ring, Phase::Streaming, "");
    let (number, trades) = (InstrumentId(0), LiveSchema::Trades.alone());
    let client = agent.hub.clients.get_mut(token).unwrap();
    client.interest.some.insert(number.0, trades);
    agent.hub.wants.set(number.0, token, trades);
    for (symbol, grant) in [
        ("RIU3", Grant::everything()),
        ("RIZ3", Grant::everything()),
        ("RIH4", Grant::nothing()),
    ] {
        let may_see = grant.may_see(symbol.as_bytes());
        agent.hub.clients.get_mut(token).unwrap().grant = Arc::new(grant);
        ring.put_bytes(&instrument(number.0, named(symbol)));
        agent.take_events();
        agent.deliver();
        let client = agent.hub.clients.get(token).unwrap();
        assert_eq!(client.interest.of(number).is_empty(), !may_see, "{symbol}");
        assert_eq!(agent.hub.wants.of(number).is_empty(), !may_see, "{symbol}");
        assert_eq!(client.wire.len() > 0, !may_see, "the client is told");
    }
}

/// Returns the bytes for a user that may see `P*` of an instrument that has these symbols one after
/// the other, with so many trades under each, all of which are in the ring.
fn queued_under(symbols: &[(&str, usize)]) -> usize {
    let mut ring = ring();
    let (mut agent, token, _other) = agent_of(&mut ring, Phase::Streaming, "");
    let client = agent.hub.clients.get_mut(token).unwrap();
    client.grant = Arc::new(Grant::seeing(b"P*"));
    client.interest.permitted = LiveSchema::Trades.alone();
    client.interest.sum_up();
    agent.hub.has_changed = true;
    agent.sum_up();
    for (symbol, trades) in symbols {
        ring.put_bytes(&instrument(0, named(symbol)));
        ring.put(&mut [event(Kind::Definition, 0)]);
        (0..*trades).for_each(|_| ring.put(&mut [event(Kind::Trade, 0)]));
    }
    while agent.take_events() > 0 {
        agent.deliver();
    }
    agent.hub.clients.get(token).unwrap().wire.len()
}

#[test]
fn no_record_from_the_time_of_a_hidden_symbol_is_sent_however_short_it_was() {
    let becomes_visible = |trades| queued_under(&[("S", trades), ("P", 1)]);
    assert_eq!(becomes_visible(3), becomes_visible(0));
    let is_hidden_for_a_while = |trades| queued_under(&[("P", 1), ("S", trades), ("P", 1)]);
    assert_eq!(is_hidden_for_a_while(3), is_hidden_for_a_while(0));
    // The client is told that its right has ended, and of the symbol again.
    let stays_visible = queued_under(&[("P", 1), ("P", 1)]);
    assert!(is_hidden_for_a_while(0) > stays_visible);
    assert!(becomes_visible(0) > 0);
}

/// Returns what a stop sends to a client whose replay is under way, and whose live record is held
/// back.
fn told_at_a_stop(replay: Replay) -> Vec<String> {
    let (mut agent, token, mut other) = agent(Phase::Streaming, "");
    let client = agent.hub.clients.get_mut(token).unwrap();
    client.tasks.push_back(Task::Replay(Box::new(replay)));
    client.hold();
    client.tell(SystemCode::Unset, "live", Times::default());
    let now = agent.clock.read();
    agent.on_close(now);
    let client = agent.hub.clients.get_mut(token).unwrap();
    texts(client, &mut other)
}

#[test]
fn a_client_whose_past_a_stop_ends_is_told_so_before_its_live_records() {
    let ends = "the gateway stops: the replay ends here";
    assert_eq!(told_at_a_stop(replay(true)), [ends, "live"]);
}

#[test]
fn a_past_that_has_come_to_its_end_is_complete_though_a_stop_follows() {
    let told = told_at_a_stop(ended(Step::Done));
    assert_eq!(told, ["Replay of mbo data completed", "live"]);
}

#[test]
fn what_is_sent_and_dropped_at_the_end_is_counted() {
    let (mut agent, token, _other) = agent(Phase::Streaming, "");
    let client = agent.hub.clients.get_mut(token).unwrap();
    client.fail(ErrorCode::Unset, "why", Times::default());
    client.uncounted = 3;
    let now = agent.clock.read();
    agent.on_close(now);
    let counts = &agent.counts;
    assert_eq!((counts.bytes.value(), counts.skipped.value()), (320, 3));
}

#[test]
fn the_end_of_a_session_by_its_client_or_an_operator_is_no_trouble() {
    let greeted = || Phase::Greeted {
        challenge: String::new(),
        until: u64::MAX,
    };
    let until = u64::MAX;
    for (phase, dismissed, why, is_trouble) in [
        (Phase::Streaming, None, "closed by the client", false),
        (Phase::Ready { until }, None, "closed by the client", false),
        (greeted(), None, "closed by the client", true),
        (Phase::Ending { until }, None, "closed", true),
        (
            Phase::Ending { until },
            Some("by an operator"),
            "by an operator",
            false,
        ),
    ] {
        let (mut agent, token, _other) = agent(phase, "");
        let (notices, told) = notice::channel();
        agent.notices = notices;
        let client = agent.hub.clients.get_mut(token).unwrap();
        client.dismissed = dismissed;
        client.wire.mark_broken();
        agent.look_after();
        let told: Vec<_> = told.iter().collect();
        let [notice] = &told[..] else {
            panic!("{told:?}");
        };
        assert!(notice.to_string().ends_with(&format!(" ended: {why}")));
        assert_eq!(notice.is_trouble(), is_trouble, "{notice}");
    }
}

#[test]
fn a_start_in_the_far_future_is_refused() {
    let (mut agent, token, mut other) = agent(Phase::Streaming, "");
    agent.times.utc = 1_000;
    // A day ahead, and 1 ns more: the former lacks a log alone.
    for start in ["86400000001000", "86400000001001"] {
        agent.run(
            token,
            &format!("schema=mbo|symbols=ALL_SYMBOLS|start={start}"),
        );
    }
    let client = agent.hub.clients.get_mut(token).unwrap();
    let told = texts(client, &mut other);
    assert_eq!(
        told,
        [
            "mbo: `start` needs a log, which this gateway does not have",
            "mbo: `start` is more than a day ahead of the gateway's clock: 86400000001001",
        ]
    );
}
