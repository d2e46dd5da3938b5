//! Instruments that subscriptions to all of them leave out.

use super::{Dbn, ERROR, KEY, MAPPING, Oracle, SYSTEM, market, split};
use crate::market::generator;
use crate::{eventually, stop};
use fanfare_gateway::Gateway;
use fanfare_market::dbn::Schema;
use fanfare_peers::Scratch;

/// Returns a client that has subscribed to all instruments.
fn of_all(gateway: &Gateway, start: &str) -> Dbn {
    let mut client = Dbn::authenticated(gateway, KEY, "");
    client.start();
    client.subscribe("mbp-10", "ALL_SYMBOLS", start);
    client
}

fn leave(client: &mut Dbn, symbol: &str) {
    client.subscribe("mbp-10", symbol, "unsubscribe=1");
}

/// Waits until a client has left an instrument out.
fn has_left(client: &mut Dbn) {
    while client.until(SYSTEM).code() != 5 {}
}

/// Checks that a client receives all records of an instrument, each once and in order.
fn returns(client: &mut Dbn, instrument: u32, all: &[u8]) {
    let mut own = split(all);
    own.retain(|record| record.instrument() == instrument);
    for record in own {
        let next = loop {
            let next = client.record().expect("a record");
            assert_ne!(next.rtype(), ERROR, "{}", next.text());
            if next.is_data() && next.instrument() == instrument {
                break next;
            }
        };
        assert_eq!(next, record);
    }
}

/// Checks that a client receives the past without an instrument once it has left that out.
fn leaves(client: &mut Dbn, gone: u32, others: &[u8]) {
    let (mut received, mut is_left, mut is_completed) = (Vec::new(), false, false);
    while !is_left || !is_completed || received.len() < others.len() {
        let record = client.record().expect("a record");
        assert_ne!(record.rtype(), ERROR, "{}", record.text());
        match record.rtype() {
            SYSTEM => {
                is_left |= record.code() == 5;
                is_completed |= record.code() == 3;
            }
            _ if record.instrument() == gone => assert!(!is_left),
            _ if record.is_data() => received.extend(record.0),
            _ => {}
        }
    }
    assert!(received == others);
}

#[test]
fn a_subscription_to_all_leaves_an_instrument_out_whether_it_starts_or_is_live() {
    let folder = Scratch::new("dbn-leave-one");
    let log = format!("[history]\nfolder = \"{}\"\n", folder.display());
    let mut market = market(214, "", &log);
    let mut oracle = Oracle::new(&mut market, &[Schema::Mbp10]);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    eventually("the packets", || {
        let count = |name| market.gateway.count(name);
        count("datagrams") == 500 && count("snapshot_packets") == 500
    });
    let past = oracle.until(|| market.gateway.count("market_events"));
    let names = oracle.names();
    let mut live = of_all(&market.gateway, "");
    let mut gone = None;
    for _ in &names {
        let named = live.until(MAPPING);
        if named.symbol() == names[2] {
            gone = Some(named.instrument());
        }
    }
    let gone = gone.unwrap();
    let mut starting = of_all(&market.gateway, "");
    let mut behind = of_all(&market.gateway, "start=0");
    let mut back = of_all(&market.gateway, "start=0");
    for client in [&mut live, &mut starting, &mut behind, &mut back] {
        leave(client, &names[2]);
    }
    back.subscribe("mbp-10", &names[2], "start=0");
    has_left(&mut live);
    has_left(&mut starting);
    market.send(&mut feed, usize::MAX);
    market.wait();
    let rest = oracle.until(|| market.gateway.count("market_events"));
    let others = |records: &[u8]| {
        let mut all = split(records);
        all.retain(|record| record.instrument() != gone);
        all.into_iter()
            .flat_map(|record| record.0)
            .collect::<Vec<u8>>()
    };
    let expected = others(&rest);
    assert!(!expected.is_empty() && expected.len() < rest.len());
    for client in [&mut live, &mut starting] {
        assert!(client.data(expected.len()) == expected);
    }
    let all = [past, rest].concat();
    has_left(&mut back);
    returns(&mut back, gone, &all);
    leaves(&mut behind, gone, &others(&all));
    live.subscribe("mbp-10", &names[2], "");
    while live.until(MAPPING).instrument() != gone {}
    stop(market.gateway);
}
