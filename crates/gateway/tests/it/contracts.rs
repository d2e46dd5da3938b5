//! Clients that do not read, by the contracts of their subscriptions, and clients that are gone.

use crate::client::{Client, value};
use crate::market::generator;
use crate::service::{ByPrice, Market, all, snapshots};
use crate::{ended, eventually, stop};
use fanfare_gateway::{Notice, PeerEnd};
use std::collections::BTreeMap;

/// The subscriptions of each client. Together they exceed any socket buffers.
const REQUESTS: usize = 25;

/// Returns a client that subscribes to everything, many times, and does not read.
fn slow(market: &Market, name: &str, contract: &str) -> Client {
    let to = market.gateway.consumers();
    let mut client = Client::log_on_in(to, name, "FIXT.1.1", "1137=9|");
    for request in 0..REQUESTS {
        let wanted = "263=1|264=0|265=1|267=2|269=0|269=1|146=1|55=*";
        client.send("V", &format!("262=r{request}|{wanted}|20010={contract}|"));
    }
    client
}

/// The books that a client builds after it reads again.
#[derive(Default)]
struct Reader {
    /// The books by MDReqID(262) and SecurityID(48).
    books: BTreeMap<(String, String), ByPrice>,
    /// The last number of each announced gap that no snapshot has followed yet.
    announced: BTreeMap<(String, String), u64>,
    skipped: u64,
    snapshots: u64,
}

impl Reader {
    fn key(message: &str) -> (String, String) {
        let field = |tag| value(message, tag).unwrap().to_owned();
        (field(262), field(48))
    }

    fn take(&mut self, message: &str) {
        match value(message, 35).unwrap() {
            "W" => {
                let key = Self::key(message);
                let book = self.books.entry(key.clone()).or_default();
                book.take(message);
                self.snapshots += 1;
                if let Some(last) = self.announced.remove(&key) {
                    assert_eq!(book.rpt_seq, last, "the snapshot is as of the range's end");
                }
            }
            "X" => {
                let key = Self::key(message);
                assert!(!self.announced.contains_key(&key), "{message}");
                self.books.get_mut(&key).unwrap().take(message);
            }
            "B" if message.contains("|58=missing=") => self.missing(message),
            "B" | "f" | "h" => {}
            _ => panic!("{message}"),
        }
    }

    fn missing(&mut self, message: &str) {
        let text = value(message, 58).unwrap();
        let word = |name: &str| {
            let found = text.split(' ').find_map(|word| word.strip_prefix(name));
            found.unwrap_or_else(|| panic!("{name} {text}"))
        };
        assert_eq!(word("missing="), "slow-consumer");
        let number = |name: &str| word(name).parse::<u64>().unwrap();
        let (count, first, last) = (number("count="), number("first="), number("last="));
        assert_eq!(count, last - first + 1, "{text}");
        let key = (
            word("request=").to_owned(),
            value(message, 48).unwrap().to_owned(),
        );
        let book = self.books.get(&key).unwrap();
        assert_eq!(first, book.rpt_seq + 1, "{text}");
        self.announced.insert(key, last);
        self.skipped += count;
    }

    /// Reads up to the response to a request that is sent now.
    fn read(&mut self, client: &mut Client) {
        client.send("V", "262=end|263=1|264=1|265=1|267=1|269=0|146=1|55=NONE|");
        loop {
            let message = client.receive().unwrap();
            if message.contains("|35=Y|") {
                assert!(message.contains("|262=end|"), "{message}");
                return;
            }
            self.take(&message);
        }
    }
}

#[test]
fn messages_that_a_client_is_not_sent_are_not_counted_as_deliveries() {
    let market = Market::new(188);
    let mut client = slow(&market, "SLOW", "conflated");
    let wanted = "263=1|264=0|265=1|267=2|269=0|269=1|146=1|55=*";
    client.send("V", &format!("262=last|{wanted}|20010=skip|"));
    market.live();
    let mut received = 0;
    eventually("as many deliveries as messages", || {
        client.send("V", "262=end|263=1|264=1|265=1|267=1|269=0|146=1|55=NONE|");
        while !client.receive().unwrap().contains("|35=Y|") {
            received += 1;
        }
        market.gateway.count("deliveries") == received
    });
    assert!(received > 0);
    stop(market.gateway);
}

#[test]
fn little_of_a_conflated_client_that_does_not_read_waits_in_the_kernel() {
    let market = Market::new(190);
    let mut client = slow(&market, "SLOW", "conflated");
    market.live();
    client.send("V", "262=end|263=1|264=1|265=1|267=1|269=0|146=1|55=NONE|");
    let mut old = 0;
    loop {
        let message = client.receive().unwrap();
        if message.contains("|35=Y|") {
            break;
        }
        if message.contains("|35=X|") {
            old += message.len();
        }
    }
    // The kernel of a client that does not read receives some 100 KiB; ours would take megabytes.
    assert!(
        old < 1 << 20,
        "{old} bytes of changes precede the newest state"
    );
    stop(market.gateway);
}

#[test]
fn each_contract_does_with_a_client_that_does_not_read_what_it_says() {
    let market = Market::new(39);
    let cut = slow(&market, "CUT", "cut");
    let mut skip = slow(&market, "SKIP", "skip");
    let mut conflated = slow(&market, "CONFLATED", "conflated");
    let mut good = market.client("FIXT.1.1", "1137=9|");
    good.send(
        "V",
        "262=good|263=1|264=0|265=1|267=2|269=0|269=1|146=1|55=*|",
    );
    let count = market.live();
    ended(&market.gateway, |notice| {
        matches!(notice, Notice::Ended { end: PeerEnd::SlowConsumer { .. }, session: Some(s), .. }
            if &*s.target == "CUT")
    });
    drop(cut);
    assert_eq!(market.gateway.count("slow_consumers"), 1);
    let mut fresh = Client::log_on_in(market.gateway.consumers(), "NEW", "FIXT.1.1", "1137=9|");
    fresh.send(
        "V",
        "262=new|263=0|264=0|265=1|267=2|269=0|269=1|146=1|55=*|",
    );
    let newest: BTreeMap<String, ByPrice> = snapshots(&mut fresh, count)
        .into_iter()
        .map(|(id, message)| {
            let mut book = ByPrice::default();
            book.take(&message);
            (id, book)
        })
        .collect();
    let mut of_good = Reader::default();
    of_good.read(&mut good);
    assert_eq!(of_good.skipped, 0);
    for (client, skips) in [(&mut skip, true), (&mut conflated, false)] {
        let mut reader = Reader::default();
        // Twice, because messages after the first response were later in the queue.
        reader.read(client);
        eventually("the newest of everything", || {
            reader.read(client);
            let is_newest =
                |((_, id), book): (&(String, String), &ByPrice)| book.levels == newest[id].levels;
            reader.announced.is_empty() && reader.books.iter().all(is_newest)
        });
        assert_eq!(reader.books.len(), REQUESTS * count);
        assert_eq!(reader.skipped > 0, skips, "{} skipped", reader.skipped);
        let least = (REQUESTS * count) as u64;
        assert!(reader.snapshots > least, "some came a second time");
    }
    assert!(market.gateway.count("skipped") > 0);
    assert_eq!(market.gateway.count("slow_consumers"), 1);
    stop(market.gateway);
}

#[test]
fn a_connection_that_is_reset_is_not_a_slow_consumer() {
    const CLIENTS: u64 = 16;
    let market = Market::new(173);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    market.wait();
    for number in 1..=CLIENTS {
        let mut client = market.client_named(&format!("R{number}"), "FIXT.1.1", "1137=9|");
        // Few enough that its queue is never full.
        for request in ["a", "b", "c", "d"] {
            client.send("V", &all(request, 1, 0));
        }
        client.receive().unwrap();
        // What it has not read resets its connection, while more is sent to it.
        market.send(&mut feed, 50);
        drop(client);
        market.send(&mut feed, 50);
        eventually("its end", || market.gateway.count("ended") == number);
    }
    assert_eq!(market.gateway.count("slow_consumers"), 0);
    stop(market.gateway);
}
