//! The market data service as its clients see it: requests, pictures, increments, refusals.

use crate::client::{Client, value};
use crate::feed::group;
use crate::market::{feed, gateway, send};
use crate::{eventually, stop};
use fanfare_gateway::Gateway;
use std::collections::BTreeMap;

/// The market of a test: its feed has been sent once, so that every book is live.
fn market(first: u8) -> Gateway {
    let (line, pictures) = (group(first), group(first + 1));
    let gateway = gateway(&feed("one", line, pictures), 1 << 22);
    send(line, false, &[&gateway]);
    send(pictures, true, &[&gateway]);
    eventually("live books", || {
        gateway.count("instruments_live") > 0 && gateway.count("instruments_recovering") == 0
    });
    gateway
}

/// A request for bids and offers of everything.
fn all(id: &str, kind: u8, depth: u16) -> String {
    format!("262={id}|263={kind}|264={depth}|265=1|267=2|269=0|269=1|146=1|55=*|")
}

/// Pictures until there are as many as instruments, by SecurityID(48).
fn pictures(client: &mut Client, count: usize) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let message = client.receive().unwrap();
        match value(&message, 35) {
            Some("W") => {
                let id = value(&message, 48).unwrap().to_owned();
                assert_eq!(all.insert(id, message), None);
            }
            Some("B") => {}
            _ => panic!("{message}"),
        }
    }
    all
}

#[test]
fn a_request_brings_a_picture_of_each_instrument() {
    let gateway = market(31);
    let count = gateway.count("instruments_live") as usize;
    let mut client = Client::log_on(gateway.consumers(), "C");
    client.send("V", &all("r1", 0, 1));
    let tops = pictures(&mut client, count);
    client.send("V", &all("r2", 0, 0));
    let whole = pictures(&mut client, count);
    for (id, top) in &tops {
        assert!(top.contains("|262=r1|"), "{top}");
        let levels: usize = value(top, 268).unwrap().parse().unwrap();
        assert!(levels <= 2, "{top}");
        assert!(whole[id].contains("|262=r2|"));
    }
    stop(gateway);
}
