//! Subscriptions that start in the past.

use super::{Dbn, ERROR, KEY, Keyed, MAPPING, Oracle, Record, SYSTEM, market};
use crate::feed::group;
use crate::market::{feed, generator};
use crate::service::Market;
use crate::stop;
use crate::users::PORTS;
use fanfare_gateway::Gateway;
use fanfare_history::Log;
use fanfare_market::dbn::Schema;
use fanfare_peers::Scratch;
use std::collections::BTreeSet;

/// Returns a gateway as `market` does, with a log in this folder.
fn logged(first: u8, folder: &Scratch, more: &str) -> Market {
    let log = format!("[history]\nfolder = \"{}\"\n{more}", folder.display());
    market(first, "", &log)
}

/// Returns the records of all events so far in the first schema.
fn all_of(oracle: &mut Oracle, gateway: &Gateway) -> Vec<u8> {
    oracle.until(|| gateway.count("market_events"))
}

/// Returns whether a record says that a past is complete.
fn is_completed(record: &Record) -> bool {
    record.rtype() == SYSTEM && record.code() == 3
}

#[test]
fn many_replays_of_one_client_are_all_completed() {
    let folder = Scratch::new("dbn-many");
    let mut market = logged(161, &folder, "");
    let mut oracle = Oracle::new(&mut market, &[Schema::Trades]);
    market.send(&mut [generator(false), generator(true)], 500);
    oracle.settle(&market.gateway, 500);
    let mut client = Dbn::authenticated(&market.gateway, KEY, "");
    client.start();
    for name in oracle.names().iter().cycle().take(40) {
        client.subscribe("trades", name, "start=0");
    }
    let mut completed = 0;
    while completed < 40 {
        let record = client.record().expect("a record");
        assert_ne!(record.rtype(), ERROR, "{}", record.text());
        completed += usize::from(is_completed(&record));
    }
    stop(market.gateway);
}

#[test]
fn a_start_that_the_log_no_longer_has_is_refused_and_nothing_follows() {
    let folder = Scratch::new("dbn-gone");
    let market = logged(163, &folder, "");
    market.live();
    stop(market.gateway);
    stop(logged(163, &folder, "").gateway);
    // As retention does.
    let segments = Log::open(&folder).unwrap().segments().unwrap();
    assert_eq!(segments.len(), 2);
    std::fs::remove_file(&segments[0].path).unwrap();
    let mut market = logged(163, &folder, "");
    let mut oracle = Oracle::new(&mut market, &[Schema::Trades]);
    let mut clients = ["start=1", "start=0"].map(|start| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, "");
        client.subscribe("trades", "ALL_SYMBOLS", start);
        client.start();
        client.acknowledged();
        client
    });
    let refused = clients[0].until(ERROR);
    assert_eq!(refused.code(), 8, "{}", refused.text());
    assert!(refused.text().contains("removed by retention"));
    while !is_completed(&clients[1].until(SYSTEM)) {}
    market.live();
    let expected = all_of(&mut oracle, &market.gateway);
    assert!(!expected.is_empty() && clients[1].data(expected.len()) == expected);
    clients[0].subscribe("status", "NONE", "");
    let (instruments, errors) = read_up_to(&mut clients[0], |record| record.rtype() == ERROR);
    assert!(errors[0].contains("unknown symbols"), "{errors:?}");
    assert!(instruments.is_empty());
    stop(market.gateway);
}

#[test]
fn the_past_begins_with_the_feeds_of_the_present() {
    let folder = Scratch::new("dbn-feeds");
    let start = |most: &str| {
        let (line, snapshots) = (group(165), group(166));
        let quiet = feed("quiet", group(167), group(168));
        let quiet = quiet.replace("most_instruments = 1000", most);
        let text = format!(
            "{PORTS}[dbn]\nport = 0\n{quiet}{}[history]\nfolder = \"{}\"\n",
            feed("one", line, snapshots),
            folder.display()
        );
        Market::with(&text, line, snapshots)
    };
    let market = start("most_instruments = 1000");
    market.live();
    stop(market.gateway);
    // Its instruments have other numbers now.
    let mut market = start("most_instruments = 2000");
    let mut oracle = Oracle::new(&mut market, &[Schema::Mbp10]);
    market.live();
    let expected = all_of(&mut oracle, &market.gateway);
    let mut client = Dbn::authenticated(&market.gateway, KEY, "");
    client.subscribe("mbp-10", "ALL_SYMBOLS", "start=0");
    client.start();
    assert!(!expected.is_empty() && client.data(expected.len()) == expected);
    while !is_completed(&client.until(SYSTEM)) {}
    client.subscribe("trades", "ALL_SYMBOLS", "start=1");
    let refused = client.until(ERROR);
    assert_eq!(refused.code(), 8, "{}", refused.text());
    assert!(refused.text().contains("other feeds or books"));
    stop(market.gateway);
}

#[test]
fn unsubscribing_while_one_replay_ends_loses_nothing_of_the_next_one() {
    let folder = Scratch::new("dbn-handover");
    let mut market = logged(169, &folder, "");
    let mut oracle = Oracle::new(&mut market, &[Schema::Trades]);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 1_000);
    let mut clients = [(); 8].map(|()| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, "");
        client.subscribe("mbp-10", "ALL_SYMBOLS", "start=0");
        client.subscribe("trades", "ALL_SYMBOLS", "start=0");
        client.start();
        client.until(MAPPING);
        client.subscribe("mbp-10", "ALL_SYMBOLS", "unsubscribe=1");
        client
    });
    market.send(&mut feed, usize::MAX);
    market.wait();
    let expected = all_of(&mut oracle, &market.gateway);
    for client in &mut clients {
        let (mut trades, mut is_ended, mut is_complete) = (Vec::new(), false, false);
        while !is_ended || !is_complete || trades.len() < expected.len() {
            let record = client.record().expect("a record");
            assert_ne!(record.rtype(), ERROR, "{}", record.text());
            match record.rtype() {
                SYSTEM => {
                    is_ended |= record.code() == 5;
                    is_complete |= is_completed(&record) && record.text().contains("trades");
                }
                0 => trades.extend(record.0),
                _ => {}
            }
        }
        assert!(trades == expected);
    }
    stop(market.gateway);
}

/// Reads up to a record that `is_last` accepts. Returns the instruments of the records, and the
/// texts of the errors.
fn read_up_to(client: &mut Dbn, is_last: impl Fn(&Record) -> bool) -> (BTreeSet<u32>, Vec<String>) {
    let (mut instruments, mut errors) = (BTreeSet::new(), Vec::new());
    loop {
        let record = client.record().expect("a record");
        match record.rtype() {
            ERROR => errors.push(record.text()),
            SYSTEM => {}
            _ => _ = instruments.insert(record.instrument()),
        }
        if is_last(&record) {
            return (instruments, errors);
        }
    }
}

#[test]
fn a_user_with_a_limit_is_told_once_and_has_the_past_of_its_instruments_alone() {
    let folder = Scratch::new("dbn-limit");
    let rights = "instruments = [\"*\"]\nsessions_at_a_time = 9\nsubscriptions = 2";
    let user = Keyed::new("limited", KEY, rights);
    let mut market = logged(171, &folder, &user.table);
    let mut oracle = Oracle::new(&mut market, &[Schema::Trades]);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 1_000);
    oracle.settle(&market.gateway, 1_000);
    assert!(oracle.names().len() > 3);
    let mut clients = ["", "start=0"].map(|start| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, "");
        client.subscribe("mbp-10", "ALL_SYMBOLS", start);
        client.start();
        let (instruments, errors) = read_up_to(&mut client, |record| match start {
            "" => record.rtype() == ERROR,
            _ => is_completed(record),
        });
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].contains("no more than 2 instruments"));
        assert_eq!(instruments.len(), 2);
        (client, instruments)
    });
    assert_eq!(clients[0].1, clients[1].1);
    market.send(&mut feed, usize::MAX);
    market.wait();
    for (client, instruments) in &mut clients {
        client.subscribe("status", "NONE", "");
        let (live, errors) = read_up_to(client, |record| record.rtype() == ERROR);
        assert!(errors[0].contains("unknown symbols"), "{errors:?}");
        assert!(live.is_subset(instruments));
    }
    stop(market.gateway);
}
