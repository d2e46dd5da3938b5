//! Clients that operators and reloads end.

use super::{Dbn, ERROR, KEY, Keyed, market, refused};
use crate::feed::group;
use crate::market::feed;
use crate::service::Market;
use crate::stop;
use crate::users::PORTS;
use fanfare_gateway::{Config, GatewayOperator};
use fanfare_operator::Operator;
use fanfare_peers::Scratch;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// The right that every user needs.
const ALL: &str = "instruments = [\"*\"]";

/// Returns the result of a command that succeeds.
fn done(operator: &GatewayOperator, name: &str, fields: Value) -> Value {
    let fields: Map<String, Value> = serde_json::from_value(fields).unwrap();
    operator.ask("test", name, fields).unwrap()
}

/// Asserts that the client receives this error, and then the end of the connection.
fn ends(mut client: Dbn, why: &str) {
    assert_eq!(client.until(ERROR).text(), why);
    while client.record().is_some() {}
}

/// Checks what operators see of the port: that it has two sessions, and needs keys.
fn is_seen(operator: &GatewayOperator, address: Option<SocketAddr>) {
    let port = &done(operator, "status", json!({}))["ports"][2];
    let expected = json!({
        "name": "dbn", "address": address.unwrap().to_string(), "tls": false,
        "sessions": 2, "most": 9, "open": false,
    });
    assert_eq!(*port, expected);
}

#[test]
fn a_stopped_user_has_no_session_until_it_is_started() {
    let audit = Scratch::new("dbn-stopped.audit");
    let other_key = KEY.replace('0', "y");
    let desk = Keyed::new("stop-desk", KEY, ALL);
    let other = Keyed::new("stop-other", &other_key, ALL);
    let (line, snapshots) = (group(230), group(231));
    let text = format!(
        "audit = \"{}\"\n{PORTS}[dbn]\nport = 0\nmax_clients = 9\n{}{}{}",
        audit.display(),
        feed("one", line, snapshots),
        desk.table,
        other.table
    );
    let gateway = Market::with(&text, line, snapshots).gateway;
    let (operator, _asks) = GatewayOperator::new(gateway.handle());
    let [of_desk, mut of_other] = [KEY, &other_key].map(|key| {
        let mut client = Dbn::authenticated(&gateway, key, "");
        client.start();
        client
    });
    is_seen(&operator, gateway.dbn());
    // The client closes its end while the command waits for that.
    let stopped = |client: Dbn, fields: Value, why: &str| {
        std::thread::scope(|scope| {
            let stopped = scope.spawn(|| done(&operator, "sessions stop", fields));
            ends(client, why);
            assert_eq!(stopped.join().unwrap()["sessions"], 1);
        });
    };
    stopped(
        of_desk,
        json!({ "user": "stop-desk", "text": "enough" }),
        "enough",
    );
    let mut again = Dbn::connect(&gateway);
    again.authenticate(KEY, "");
    refused(&mut again, "stopped by an operator");
    of_other.subscribe("trades", "NONE", "");
    assert!(of_other.until(ERROR).text().contains("unknown symbols"));
    let at_port = json!({ "user": "stop-other", "port": "dbn" });
    stopped(of_other, at_port.clone(), "stopped by the operator");
    let all = json!([
        { "stopped": "user=stop-desk" },
        { "stopped": "user=stop-other port=dbn" },
    ]);
    assert_eq!(done(&operator, "sessions stopped", json!({})), all);
    done(&operator, "sessions start", json!({ "user": "stop-desk" }));
    done(&operator, "sessions start", at_port);
    for key in [KEY, &other_key] {
        Dbn::authenticated(&gateway, key, "");
    }
    stop(gateway);
    let text = audit.text();
    let mut lines = text.lines();
    let refusal = lines.find(|line| line.contains("\"event\":\"refusal\""));
    assert!(
        refusal.unwrap().contains("\"user\":\"stop-desk\""),
        "{text}"
    );
}

#[test]
fn a_reload_tells_of_another_key_and_counts_the_clients_that_it_ends() {
    let (gone_key, new_key) = (KEY.replace('0', "y"), KEY.replace('0', "x"));
    let desk = Keyed::new("reload-desk", KEY, ALL);
    let gone = Keyed::new("reload-gone", &gone_key, ALL);
    let users = format!("{}{}", desk.table, gone.table);
    let gateway = market(232, "", &users).gateway;
    let clients = [KEY, &gone_key].map(|key| {
        let mut client = Dbn::authenticated(&gateway, key, "");
        client.start();
        client
    });
    let mut ready = Dbn::authenticated(&gateway, KEY, "");
    desk.file.write(format!("{new_key}\n"));
    let config = Config::from_toml(&format!("{PORTS}{}", desk.table)).unwrap();
    let handle = gateway.handle();
    let found = handle.differences(&config).unwrap();
    assert_eq!(found.users.changed, ["reload-desk"]);
    assert_eq!(found.users.removed, ["reload-gone"]);
    let reloaded = std::thread::scope(|scope| {
        let reloaded = scope.spawn(|| handle.reload(&config).unwrap());
        for client in clients {
            ends(client, "no longer permitted");
        }
        ready.metadata();
        ends(ready, "no longer permitted");
        reloaded.join().unwrap()
    });
    assert_eq!((&reloaded.users, reloaded.logged_out), (&found.users, 3));
    let mut old = Dbn::connect(&gateway);
    old.authenticate(KEY, "");
    refused(&mut old, "authentication failed");
    Dbn::authenticated(&gateway, &new_key, "");
    stop(gateway);
}
