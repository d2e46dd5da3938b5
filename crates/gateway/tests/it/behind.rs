//! Messages to sessions that are behind: what can never be sent, what others ask, and trades.

use crate::client::{Client, message, value};
use crate::feed::group;
use crate::market::{feed, gateway, generator};
use crate::service::{Market, all, snapshots};
use crate::{eventually, stop};
use fanfare_peers::Scratch;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn ids_of_the_longest_length_are_in_the_header_of_every_message() {
    let market = Market::new(150);
    let count = market.live();
    let long = |letter: &str| letter.repeat(64);
    let mut client = Client::connect(market.gateway.consumers(), &long("C"));
    client.header = format!(
        "50={}|142={}|57={}|143={}|",
        long("S"),
        long("L"),
        long("T"),
        long("M")
    );
    client.send("A", "98=0|108=0|141=Y|");
    assert!(client.receive().unwrap().contains("|35=A|"));
    client.send("V", &all("long", 1, 1));
    for snapshot in snapshots(&mut client, count).values() {
        let is_there = |tag, letter| value(snapshot, tag) == Some(&*long(letter));
        assert!(is_there(57, "S") && is_there(143, "L"), "{snapshot}");
        assert!(is_there(50, "T") && is_there(142, "M"), "{snapshot}");
    }
    let mut other = market.client("FIX.4.4", "");
    other.send("V", &all("other", 0, 1));
    assert_eq!(snapshots(&mut other, count).len(), count);
    stop(market.gateway);
}

#[test]
fn a_request_for_nothing_takes_no_instrument_from_another() {
    let market = Market::new(152);
    let count = market.live();
    let mut client = market.client("FIX.4.4", "");
    // Both arrive together, so that the second one's prefix is looked up first.
    let wanted = "264=1|265=1|267=1|269=0|146=1";
    let mut both = message("C", 2, "V", &format!("262=a|263=1|{wanted}|55=*|"));
    both.extend(message(
        "C",
        3,
        "V",
        &format!("262=b|263=0|{wanted}|55=NONE*|"),
    ));
    client.send_raw(&both);
    let (mut snapshots, mut refusals) = (0, 0);
    while snapshots < count || refusals == 0 {
        let message = client.receive().unwrap();
        match value(&message, 35) {
            Some("W") => snapshots += 1,
            Some("Y") => {
                assert!(message.contains("|262=b|281=0|"), "{message}");
                refusals += 1;
            }
            Some("B" | "h" | "f") => {}
            _ => panic!("{message}"),
        }
    }
    assert_eq!((snapshots, refusals), (count, 1));
    stop(market.gateway);
}

#[test]
fn a_snapshot_does_not_wait_for_a_long_list() {
    const COUNT: usize = 5_000;
    let file = Scratch::new("long-list.csv");
    let rows = (0..COUNT).map(|number| format!("S{number},{},8\n", 900_000_000 + number));
    file.write(format!("symbol,id,source\n{}", rows.collect::<String>()));
    let (line, changes) = (group(192), group(193));
    let known = format!(
        "most_instruments = {}\ninstruments = \"{}\"",
        COUNT + 1_000,
        file.display()
    );
    let text = feed("one", line, changes).replace("most_instruments = 1000", &known);
    let market = Market {
        gateway: gateway(&text, 1 << 22),
        line,
        snapshots: changes,
    };
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    market.send(&mut feed, usize::MAX);
    eventually("a live book", || {
        market.gateway.count("instruments_live") > 0
    });
    // Instruments of the file have symbols, those of the feed have none, and come first.
    let mut other = market.client_named("D", "FIX.4.4", "");
    other.send("x", "320=first|559=4|");
    let first = other.receive().unwrap();
    let named = format!("55=[N/A]|48={}|22=8|", value(&first, 48).unwrap());
    let rest = format!("264=1|265=1|267=1|269=0|146=1|{named}");
    other.send("V", &format!("262=live|263=1|{rest}"));
    while value(&other.receive().unwrap(), 35) != Some("W") {}
    let mut client = market.client("FIX.4.4", "");
    // Both arrive together.
    let mut both = message("C", 2, "x", "320=all|559=4|");
    both.extend(message("C", 3, "V", &format!("262=one|263=0|{rest}")));
    client.send_raw(&both);
    let (mut pages, mut snapshots) = (0, 0);
    while snapshots == 0 {
        let message = client.receive().unwrap();
        match value(&message, 35) {
            Some("W") => snapshots += 1,
            Some("y") => {
                pages += 1;
                assert!(!message.contains("|893=Y|"), "the snapshot has waited");
            }
            Some("B" | "h" | "f") => {}
            _ => panic!("{message}"),
        }
    }
    assert!(pages < COUNT / 50, "{pages}");
    stop(market.gateway);
}

/// The trades of a client by MDReqID(262) and SecurityID(48), without their numbers.
#[derive(Default)]
struct Trades {
    all: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// The number of trades that were announced as missing, by MDReqID(262).
    missing: BTreeMap<String, usize>,
    /// The number of trades that had to wait for the client.
    held: usize,
    /// The instruments of which there was a snapshot, by MDReqID(262).
    served: BTreeMap<String, BTreeSet<String>>,
    /// The trades of snapshots by SecurityID(48).
    of_snapshots: BTreeMap<String, Vec<Fields>>,
}

/// The values of a trade that snapshots and changes have: price, size, date, time and number.
type Fields = [Option<String>; 5];

/// Returns the values of an entry that is a trade.
fn trade(entry: &str) -> Fields {
    let own = |tag| value(entry, tag).map(str::to_owned);
    let id = own(1003).or(own(278));
    [own(270), own(271), own(272), own(273), id]
}

impl Trades {
    /// Reads up to the response to a request that is sent now.
    fn read(&mut self, client: &mut Client) {
        client.send("V", "262=end|263=1|264=1|265=1|267=1|269=0|146=1|55=NONE|");
        loop {
            let message = client.receive().unwrap();
            match value(&message, 35) {
                Some("X") => self.take(&message),
                Some("W") => self.take_snapshot(&message),
                Some("B") => self.miss(&message),
                Some("Y") => return,
                _ => {}
            }
        }
    }

    fn take(&mut self, message: &str) {
        let request = value(message, 262).unwrap();
        let of_request = self.all.entry(request.to_owned()).or_default();
        let (entries, _) = message.split_once("|10=").unwrap();
        for entry in entries.split("|279=").skip(1) {
            if value(entry, 269) == Some("2") {
                let is_plain = |field: &&str| !field.starts_with("83=");
                let plain: Vec<&str> = entry.split('|').filter(is_plain).collect();
                let id = value(entry, 48).unwrap().to_owned();
                of_request.entry(id).or_default().push(plain.join("|"));
                self.held += usize::from(value(entry, 83).is_none());
            }
        }
    }

    fn take_snapshot(&mut self, message: &str) {
        let id = value(message, 48).unwrap().to_owned();
        let request = value(message, 262).unwrap();
        let served = self.served.entry(request.to_owned()).or_default();
        served.insert(id.clone());
        if request != "full" {
            return;
        }
        let entries = message.split("|269=").skip(1);
        let trades = entries.filter(|entry| entry.starts_with("2|")).map(trade);
        self.of_snapshots.entry(id).or_default().extend(trades);
    }

    /// Returns the number of trades that no snapshot has, and that are not announced. `all` are the
    /// trades of one that received each.
    fn lacks_in_snapshots(&self, all: &BTreeMap<String, Vec<String>>) -> usize {
        let lacks = self.of_snapshots.iter().map(|(id, own)| {
            let all = all.get(id).into_iter().flatten();
            let all: Vec<_> = all.map(|entry| trade(entry)).collect();
            // Those before the first snapshot are not for this client.
            let first = all.iter().position(|trade| Some(trade) == own.first());
            let later = all.iter().skip(first.unwrap_or(0));
            later.filter(|trade| !own.contains(trade)).count()
        });
        let missing = self.missing.get("full").copied().unwrap_or_default();
        lacks.sum::<usize>().saturating_sub(missing)
    }

    fn miss(&mut self, message: &str) {
        let text = value(message, 58).unwrap();
        if let Some(rest) = text.strip_prefix("missing=trades request=") {
            let (request, count) = rest.split_once(" count=").unwrap();
            *self.missing.entry(request.to_owned()).or_default() += count.parse::<usize>().unwrap();
        }
    }

    /// Returns the number of trades of a request that are neither here nor announced. `all` are
    /// the trades of one that received each.
    fn lacks(&self, request: &str, all: &BTreeMap<String, Vec<String>>) -> usize {
        let lacks = self.all[request].iter().map(|(id, own)| {
            let all = &all[id];
            // Those before the first snapshot are not for this client.
            let first = all.iter().position(|trade| *trade == own[0]).unwrap();
            let mut later = all[first..].iter();
            assert!(
                own.iter().all(|trade| later.any(|other| other == trade)),
                "order"
            );
            all.len() - first - own.len()
        });
        lacks.sum::<usize>() - self.missing.get(request).copied().unwrap_or_default()
    }
}

#[test]
fn trades_of_a_conflated_client_that_does_not_read_are_all_sent_or_counted() {
    let market = Market::new(154);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    let mut good = market.client_named("GOOD", "FIXT.1.1", "1137=9|");
    let mut slow = market.client_named("SLOW", "FIXT.1.1", "1137=9|");
    let wanted = "264=0|265=1|267=3|269=0|269=1|269=2|146=1|55=*|20010=";
    good.send("V", &format!("262=good|263=1|{wanted}skip|"));
    for request in 0..25 {
        slow.send("V", &format!("262=r{request}|263=1|{wanted}conflated|"));
    }
    // One of snapshots alone.
    let full = wanted.replace("|265=1|", "|265=0|");
    slow.send("V", &format!("262=full|263=1|{full}conflated|"));
    // Trades are owed from the first snapshot on, for which a request waits if the client does not
    // read.
    let mut trades = Trades::default();
    eventually("snapshots for each request", || {
        market.send(&mut feed, 50);
        trades.read(&mut slow);
        let served = &trades.served;
        served.len() == 26 && served.values().all(|of_request| of_request.len() > 2)
    });
    let held = trades.held;
    market.send(&mut feed, usize::MAX);
    market.wait();
    let mut all = Trades::default();
    all.read(&mut good);
    let all = &all.all["good"];
    eventually("all trades", || {
        trades.read(&mut slow);
        let mut requests = trades.all.keys();
        requests.len() == 25
            && requests.all(|request| trades.lacks(request, all) == 0)
            && trades.lacks_in_snapshots(all) == 0
    });
    assert!(trades.held > held, "it was behind");
    assert!(!trades.all.contains_key("full"), "no X");
    let with_trades = trades.of_snapshots.values().filter(|own| !own.is_empty());
    assert!(with_trades.count() > 0);
    stop(market.gateway);
}
