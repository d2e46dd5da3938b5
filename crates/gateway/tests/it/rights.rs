//! The market data service and its users: their entitlements and limits.

use crate::client::{Client, value};
use crate::feed::group;
use crate::market::feed;
use crate::service::{Market, snapshots};
use crate::stop;
use crate::users::{PORTS, user};
use fanfare_gateway::Config;
use fanfare_peers::Scratch;

/// Everything, as a request.
const ALL: &str = "267=2|269=0|269=1|146=1|55=*|";

fn log_on(market: &Market, name: &str) -> Client {
    let to = market.gateway.consumers();
    Client::log_on_in(to, name, "FIX.4.4", "553=u|554=secret|")
}

/// Returns the next message that is neither a snapshot, a change nor about a state.
fn answer(client: &mut Client) -> String {
    loop {
        let message = client.receive().unwrap();
        if !matches!(value(&message, 35), Some("W" | "X" | "B" | "h" | "f")) {
            return message;
        }
    }
}

#[test]
fn users_see_what_is_theirs_and_no_more_once_it_is_taken_away() {
    let (line, changes) = (group(41), group(42));
    let file = Scratch::new("rights.toml");
    let rights = |more: &str| user("u", "C", "secret", more) + &user("other", "D", "x", "");
    let limits = "entries = [\"0\", \"1\"]\ndepth = 3\ncontracts = [\"skip\"]\nsubscriptions = 15";
    file.write(rights(limits));
    let audit = Scratch::new("rights.audit");
    let users = format!(
        "users = \"{}\"\naudit = \"{}\"\n",
        file.display(),
        audit.display()
    );
    let text = users + PORTS + &feed("one", line, changes);
    let market = Market::with(&text, line, changes);
    let count = market.live();
    let mut client = log_on(&market, "C");
    for (request, reason) in [
        (format!("262=a|263=1|264=0|265=1|{ALL}"), "3"),
        (format!("262=a|263=1|264=4|265=1|{ALL}"), "3"),
        (
            "262=a|263=1|264=3|265=1|267=1|269=2|146=1|55=*|".to_owned(),
            "3",
        ),
        (format!("262=a|263=1|264=3|265=1|{ALL}20010=cut|"), "3"),
    ] {
        client.send("V", &request);
        let refused = answer(&mut client);
        assert!(
            refused.contains(&format!("|262=a|281={reason}|")),
            "{refused}"
        );
    }
    client.send("V", &format!("262=good|263=1|264=3|265=1|{ALL}"));
    assert_eq!(snapshots(&mut client, count).len(), count);
    // Another one of the same size is too large, which is detected during the look-up.
    client.send("V", &format!("262=more|263=1|264=3|265=1|{ALL}"));
    let refused = answer(&mut client);
    assert!(refused.contains("|262=more|281=2|"), "{refused}");
    // Less depth than that of the subscription ends it, and the session continues.
    file.write(rights(&limits.replace("depth = 3", "depth = 2")));
    market
        .gateway
        .reload(&Config::from_toml(&text).unwrap())
        .unwrap();
    let revoked = answer(&mut client);
    assert!(revoked.contains("|262=good|281=3|"), "{revoked}");
    client.send("V", &format!("262=good|263=1|264=2|265=1|{ALL}"));
    assert_eq!(snapshots(&mut client, count).len(), count);
    client.send("BE", "923=b|924=3|553=u|554=secret|925=another|58=\u{e9}|");
    let refused = answer(&mut client);
    assert_eq!(value(&refused, 372), Some("BE"), "{refused}");
    stop(market.gateway);
    let audit = audit.text();
    let shown = "\"what\":\"923=b|924=3|553=u|554=******|925=*******|58=\u{e9}|\"";
    assert!(audit.contains(shown), "{audit}");
    let line = audit.lines().find(|line| line.contains("revocation"));
    let expected = "\"user\":\"u\",\"msg_type\":\"V\",\"id\":\"good\"}";
    assert!(line.is_some_and(|line| line.ends_with(expected)), "{audit}");
}

/// Returns the fields that name an instrument.
fn an_instrument(client: &mut Client) -> String {
    client.send("x", "320=all|559=4|");
    let list = answer(client);
    format!("55=[N/A]|48={}|22=8|", value(&list, 48).unwrap())
}

#[test]
fn each_request_counts_against_the_limit_of_instruments() {
    let (line, changes) = (group(180), group(181));
    let users = user("u", "C", "secret", "subscriptions = 15");
    let text = format!("{PORTS}{users}{}", feed("one", line, changes));
    let market = Market::with(&text, line, changes);
    market.live();
    let mut client = log_on(&market, "C");
    let named = an_instrument(&mut client);
    let rest = "264=1|265=1|267=1|269=0|146=1|55=NONE*|";
    for request in 0..16 {
        client.send("V", &format!("262={request}|263=1|{rest}"));
    }
    let refused = answer(&mut client);
    assert!(refused.contains("|262=15|281=2|"), "{refused}");
    // One ends, and another one takes its place.
    client.send("V", &format!("262=7|263=2|{rest}"));
    for request in ["s", "t"] {
        client.send("e", &format!("324={request}|263=1|{named}"));
    }
    let refused = answer(&mut client);
    assert!(refused.contains("|372=e|380=0|"), "{refused}");
    client.send("e", &format!("324=s|263=2|{named}"));
    client.send("V", &format!("262=15|263=1|{rest}"));
    client.send("V", &format!("262=16|263=1|{rest}"));
    let refused = answer(&mut client);
    assert!(refused.contains("|262=16|281=2|"), "{refused}");
    stop(market.gateway);
}

#[test]
fn a_request_for_statuses_ends_with_the_right_to_its_instrument_alone() {
    let (line, changes) = (group(182), group(183));
    let file = Scratch::new("statuses.toml");
    let rights = |depth: u8| {
        let limits = format!("depth = {depth}\ncontracts = [\"skip\"]");
        user("u", "C", "secret", &limits)
    };
    file.write(rights(3));
    let users = format!("users = \"{}\"\n", file.display());
    let text = users + PORTS + &feed("one", line, changes);
    let market = Market::with(&text, line, changes);
    market.live();
    let mut client = log_on(&market, "C");
    let named = an_instrument(&mut client);
    client.send("e", &format!("324=same|263=1|{named}"));
    client.send("V", &format!("262=same|263=1|264=3|265=1|{ALL}"));
    let reload = |rights: &str| {
        file.write(rights);
        let config = Config::from_toml(&text).unwrap();
        market.gateway.reload(&config).unwrap();
    };
    reload(&rights(2));
    let revoked = answer(&mut client);
    assert!(revoked.contains("|262=same|281=3|"), "{revoked}");
    reload(&rights(2).replace("instruments = [\"*\"]", "instruments = [\"NONE\"]"));
    let revoked = answer(&mut client);
    assert!(
        revoked.contains("|35=j|") && revoked.contains("|372=e|379=same|380=6|"),
        "{revoked}"
    );
    client.send("e", &format!("324=same|263=2|{named}"));
    let unknown = answer(&mut client);
    assert!(unknown.contains("|372=e|380=1|"), "{unknown}");
    stop(market.gateway);
}

#[test]
fn instruments_that_a_reload_permits_join_what_goes_on() {
    let (line, changes) = (group(187), group(189));
    let file = Scratch::new("permitted.toml");
    let rights = user("u", "C", "secret", "");
    file.write(rights.replace("instruments = [\"*\"]", "instruments = [\"NONE\"]"));
    let users = format!("users = \"{}\"\n", file.display());
    let text = users + PORTS + &feed("one", line, changes);
    let market = Market::with(&text, line, changes);
    let count = market.live();
    let mut client = log_on(&market, "C");
    client.send("V", &format!("262=all|263=1|264=1|265=1|{ALL}"));
    // The request has been granted, and has brought nothing.
    client.send("1", "112=done|");
    let done = answer(&mut client);
    assert!(
        done.contains("|35=0|") && done.contains("|112=done|"),
        "{done}"
    );
    file.write(rights);
    let config = Config::from_toml(&text).unwrap();
    market.gateway.reload(&config).unwrap();
    assert_eq!(snapshots(&mut client, count).len(), count);
    stop(market.gateway);
}

#[test]
fn a_client_that_asks_without_end_is_refused_and_costs_the_others_nothing() {
    let (line, changes) = (group(43), group(44));
    let users =
        user("flood", "FLOOD", "secret", "requests_per_second = 5") + &user("u", "C", "secret", "");
    let limits = "[limits]\nmessage_bytes = 524288\n";
    let text = format!("{PORTS}{limits}{users}{}", feed("one", line, changes));
    let market = Market::with(&text, line, changes);
    let count = market.live();
    let mut good = log_on(&market, "C");
    let to = market.gateway.consumers();
    let mut flood = Client::log_on_in(to, "FLOOD", "FIX.4.4", "553=flood|554=secret|");
    for request in 0..3_000 {
        flood.send(
            "V",
            &format!("262=f{request}|263=1|264=1|265=1|267=1|269=0|146=1|55=NONE|"),
        );
    }
    let mut reasons = [0, 0];
    for _ in 0..3_000 {
        match value(&answer(&mut flood), 281).unwrap() {
            "0" => reasons[0] += 1,
            "2" => reasons[1] += 1,
            other => panic!("{other}"),
        }
    }
    assert!(reasons[0] >= 5 && reasons[1] > 0, "{reasons:?}");
    // A list as long as a message may be, of instruments that do not exist.
    let list = "55=NONE|".repeat(60_000);
    flood.send(
        "V",
        &format!("262=list|263=1|264=1|265=1|267=1|269=0|146=60000|{list}"),
    );
    let refused = answer(&mut flood);
    assert!(
        refused.contains("|262=list|281=0|") || refused.contains("|281=2|"),
        "{refused}"
    );
    // A longer one ends its own session.
    let list = "55=NONE|".repeat(100_000);
    flood.send_raw(&crate::client::message(
        "FLOOD",
        3_004,
        "V",
        &format!("146=100000|{list}"),
    ));
    let last = flood.receive();
    assert!(
        last.as_ref().is_none_or(|last| last.contains("|35=5|")),
        "{last:?}"
    );
    good.send("V", &format!("262=r|263=0|264=1|265=1|{ALL}"));
    assert_eq!(snapshots(&mut good, count).len(), count);
    stop(market.gateway);
}
