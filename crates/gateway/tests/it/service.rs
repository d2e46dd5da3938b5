//! The market data service as seen by its clients: requests, snapshots, increments, refusals.

use crate::client::{Client, value};
use crate::feed::group;
use crate::market::{feed, gateway, generator, send_some};
use crate::users::PORTS;
use crate::{eventually, stop};
use fanfare_fast::generate::Generator;
use fanfare_gateway::Gateway;
use fanfare_peers::Scratch;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;

/// A gateway with one feed.
pub(crate) struct Market {
    pub(crate) gateway: Gateway,
    pub(crate) line: SocketAddrV4,
    pub(crate) snapshots: SocketAddrV4,
}

impl Market {
    pub(crate) fn new(first: u8) -> Self {
        let (line, snapshots) = (group(first), group(first + 1));
        let gateway = gateway(&feed("one", line, snapshots), 1 << 22);
        Self {
            gateway,
            line,
            snapshots,
        }
    }

    /// Returns a gateway of this configuration, whose feed has these lines.
    pub(crate) fn with(text: &str, line: SocketAddrV4, snapshots: SocketAddrV4) -> Self {
        Self {
            gateway: crate::users::start(text),
            line,
            snapshots,
        }
    }

    /// Sends the whole feed, and waits until every book is live. Returns their number.
    pub(crate) fn live(&self) -> usize {
        let mut feed = [generator(false), generator(true)];
        // Snapshots of the state so far, changes of live books, and snapshots of the others.
        self.send(&mut feed, 500);
        self.send(&mut feed, usize::MAX);
        self.wait()
    }

    /// Sends the next changes, and as many snapshots.
    pub(crate) fn send(&self, [changes, snapshots]: &mut [Generator; 2], most: usize) {
        send_some(self.line, false, changes, most, &[&self.gateway]);
        send_some(self.snapshots, true, snapshots, most, &[&self.gateway]);
    }

    /// Waits until every book is live. Returns their number.
    pub(crate) fn wait(&self) -> usize {
        let count = |name| self.gateway.count(name);
        eventually("live books", || {
            count("instruments_live") > 0 && count("instruments_recovering") == 0
        });
        count("instruments_live") as usize
    }

    pub(crate) fn client(&self, version: &'static str, more: &str) -> Client {
        self.client_named("C", version, more)
    }

    pub(crate) fn client_named(&self, name: &str, version: &'static str, more: &str) -> Client {
        Client::log_on_in(self.gateway.consumers(), name, version, more)
    }
}

/// Returns a request for bids and offers of everything.
pub(crate) fn all(id: &str, kind: u8, depth: u16) -> String {
    of("*", id, kind, depth)
}

/// Returns a request for bids and offers of this symbol or prefix.
pub(crate) fn of(symbol: &str, id: &str, kind: u8, depth: u16) -> String {
    format!("262={id}|263={kind}|264={depth}|265=1|267=2|269=0|269=1|146=1|55={symbol}|")
}

/// Returns snapshots until there are as many as instruments, by SecurityID(48).
pub(crate) fn snapshots(client: &mut Client, count: usize) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    while all.len() < count {
        let message = client.receive().unwrap();
        match value(&message, 35) {
            Some("W") => {
                let id = value(&message, 48).unwrap().to_owned();
                assert_eq!(all.insert(id, message), None);
            }
            Some("B" | "h" | "f") => {}
            _ => panic!("{message}"),
        }
    }
    all
}

#[test]
fn a_request_brings_a_snapshot_of_each_instrument() {
    let market = Market::new(31);
    let count = market.live();
    let mut client = market.client("FIX.4.4", "");
    client.send("V", &all("r1", 0, 1));
    let tops = snapshots(&mut client, count);
    client.send("V", &all("r2", 0, 0));
    let whole = snapshots(&mut client, count);
    for (id, top) in &tops {
        assert!(top.contains("|262=r1|"), "{top}");
        let levels: usize = value(top, 268).unwrap().parse().unwrap();
        assert!(levels <= 2, "{top}");
        assert!(whole[id].contains("|262=r2|"));
    }
    // A request for snapshots leaves no state, so its ID is free.
    client.send("V", &all("r1", 0, 1));
    assert_eq!(snapshots(&mut client, count).len(), tops.len());
    stop(market.gateway);
}

/// A book by price of each side, as kept by a client by price.
#[derive(Default, PartialEq, Eq, Debug, Clone)]
pub(crate) struct ByPrice {
    pub(crate) levels: Levels,
    pub(crate) rpt_seq: u64,
    /// The number of messages with changes so far.
    changes: u64,
}

/// Sizes by MDEntryType(269) and price.
pub(crate) type Levels = BTreeMap<(char, String), String>;

impl ByPrice {
    /// Applies the entries of W and X by price alone.
    pub(crate) fn take(&mut self, message: &str) {
        let is_snapshot = value(message, 35) == Some("W");
        if is_snapshot {
            self.levels.clear();
            self.rpt_seq = value(message, 83).unwrap().parse().unwrap();
        }
        self.changes += u64::from(!is_snapshot);
        let (_, entries) = message.split_once("|268=").unwrap();
        let delimiter = if is_snapshot { "|269=" } else { "|279=" };
        for entry in entries.split(delimiter).skip(1) {
            let entry = format!("{delimiter}{entry}");
            let kind = value(&entry, 269).unwrap().chars().next().unwrap();
            if kind == 'J' {
                continue;
            }
            let key = (kind, value(&entry, 270).unwrap().to_owned());
            if !is_snapshot {
                self.rpt_seq += 1;
                assert_eq!(value(&entry, 83).unwrap(), self.rpt_seq.to_string());
            }
            match value(&entry, 279) {
                Some("2") => assert!(self.levels.remove(&key).is_some(), "{message}"),
                Some("1") => {
                    let size = value(&entry, 271).unwrap().to_owned();
                    assert!(self.levels.insert(key, size).is_some(), "{message}");
                }
                _ => {
                    let size = value(&entry, 271).unwrap().to_owned();
                    assert!(self.levels.insert(key, size).is_none(), "{message}");
                }
            }
        }
    }
}

#[test]
fn increments_make_of_a_snapshot_what_a_later_snapshot_says() {
    let market = Market::new(33);
    let sp2 = "1137=9|";
    let mut early = market.client("FIXT.1.1", sp2);
    // Instruments appear while it is subscribed.
    early.send("V", &all("all", 1, 3));
    let count = market.live();
    let mut late = Client::log_on_in(market.gateway.consumers(), "D", "FIXT.1.1", sp2);
    late.send("V", &all("late", 0, 3));
    let expected = books_of(snapshots(&mut late, count));
    let mut books = BTreeMap::new();
    eventually("the books of the later snapshot", || {
        follow(&mut early, &mut books);
        let levels = books
            .iter()
            .map(|(id, book)| (id.clone(), book.levels.clone()));
        levels.collect::<BTreeMap<_, _>>() == expected
    });
    let changes: u64 = books.values().map(|book| book.changes).sum();
    assert!(changes > 1_000, "{changes} changes");
    early.send("V", "262=all|263=2|264=3|267=1|269=0|146=1|55=*|");
    early.send("1", "112=done|");
    let last = early.receive().unwrap();
    assert!(
        last.contains("|35=0|") && last.contains("|112=done|"),
        "{last}"
    );
    stop(market.gateway);
}

/// Returns the next message that no subscription brings.
fn answer_of(client: &mut Client) -> String {
    loop {
        let message = client.receive().unwrap();
        let kind = value(&message, 35).unwrap();
        if !matches!(kind, "W" | "X" | "B" | "h" | "f") {
            return message;
        }
    }
}

#[test]
fn each_malformed_request_has_its_answer() {
    let market = Market::new(35);
    market.live();
    let mut client = market.client("FIX.4.4", "");
    client.send("V", &all("live", 1, 1));
    let rest = "265=1|267=1|269=0|146=1|55=*|";
    for (request, answer) in [
        (format!("263=1|264=1|{rest}"), "|371=262|372=V|373=1|"),
        (format!("262=a|264=1|{rest}"), "|371=263|372=V|373=1|"),
        (format!("262=a|263=1|{rest}"), "|371=264|372=V|373=1|"),
        (format!("262=a|263=1|264=x|{rest}"), "|371=264|372=V|373=6|"),
        (
            "262=a|263=1|264=1|265=1|267=3|269=0|146=1|55=*|".to_owned(),
            "|371=267|372=V|373=16|",
        ),
        (format!("262=live|263=1|264=1|{rest}"), "|262=live|281=1|"),
        (format!("262=a|263=9|264=1|{rest}"), "|262=a|281=4|"),
        (format!("262=a|263=1|264=99999|{rest}"), "|262=a|281=5|"),
        (
            "262=a|263=1|264=1|265=7|267=1|269=0|146=1|55=*|".to_owned(),
            "|262=a|281=6|",
        ),
        (
            "262=a|263=1|264=0|265=1|266=N|267=1|269=0|146=1|55=*|".to_owned(),
            "|262=a|281=7|",
        ),
        (
            "262=a|263=1|264=1|265=1|267=1|269=?|146=1|55=*|".to_owned(),
            "|262=a|281=8|",
        ),
        (of("NONE", "a", 1, 1), "|262=a|281=0|"),
        (of("@none", "a", 1, 1), "|262=a|281=0|"),
        (
            "262=b|263=2|264=1|267=1|269=0|146=1|55=*|".to_owned(),
            "|262=b|58=no subscription",
        ),
    ] {
        client.send("V", &request);
        let message = answer_of(&mut client);
        assert!(message.contains(answer), "{request}: {message}");
    }
    for (msg_type, body, answer) in [
        ("D", "11=1|55=A|54=1|60=20261123-10:00:00|40=1|", "|35=j|"),
        ("ZZ", "58=what|", "|372=ZZ|373=11|"),
        ("BW", "1346=a|1347=0|", "|372=BW|373=11|"),
        ("x", "320=l|", "|371=559|372=x|373=1|"),
        ("x", "320=l|559=0|", "|371=55|372=x|373=1|"),
        ("x", "320=l|559=1|541=x|", "|371=541|372=x|373=6|"),
        ("x", "320=l|559=1|460=4|", "|560=1|"),
        ("x", "320=l|559=2|", "|560=1|"),
        ("x", "320=l|559=3|336=1|", "|560=1|"),
        ("x", "320=l|559=1|15=ZZZ|", "|560=2|"),
        ("x", "320=l|559=0|55=NONE|48=1|22=8|", "|560=2|"),
        ("c", "320=d|321=3|460=4|", "|323=5|"),
        ("c", "320=d|321=3|15=ZZZ|", "|58=no instrument matches"),
        ("c", "320=d|321=0|55=NONE|", "|372=c|380=2|"),
        ("e", "324=s|55=NONE|263=0|", "|372=e|380=2|"),
        ("e", "324=s|55=NONE|263=2|", "|372=e|380=1|"),
        ("g", "335=t|263=0|336=9|", "|372=g|380=1|"),
        ("g", "335=t|263=2|", "|372=g|380=1|"),
        ("g", "335=t|263=9|", "|371=263|372=g|373=5|"),
    ] {
        client.send(msg_type, body);
        let message = answer_of(&mut client);
        assert!(message.contains(answer), "{msg_type}: {message}");
    }
    stop(market.gateway);
}

#[test]
fn what_has_gone_by_is_refused_with_where_it_is() {
    let market = Market::new(90);
    let mut client = market.client("FIXT.1.1", "1137=9|");
    client.send("BW", "1346=a|1347=0|1351=1|1355=x|1182=1|1183=9|");
    let refused = client.receive().unwrap();
    assert!(
        refused.contains("|58=past events are not sent in FIX") && refused.contains("|380=3|"),
        "{refused}"
    );
    let past = "262=a|263=0|264=1|265=1|267=1|269=0|146=1|55=*|1182=1|1183=9|";
    client.send("V", past);
    let refused = client.receive().unwrap();
    let answer = "|262=a|281=4|58=past events are not sent in FIX";
    assert!(refused.contains(answer), "{refused}");
    stop(market.gateway);
}

#[test]
fn a_request_for_snapshots_of_nothing_is_refused_and_leaves_its_id_free() {
    let (line, snapshots) = (group(184), group(185));
    let lists = "[lists]\nL = [\"NOTHING\"]\n";
    let feed = feed("one", line, snapshots);
    let text = format!("mode = \"subscriptions\"\n{PORTS}{lists}{feed}");
    let market = Market::with(&text, line, snapshots);
    market.live();
    let mut client = market.client("FIX.4.4", "");
    for symbol in ["@L", "NOTHING*", "@L", "NOTHING*"] {
        client.send("V", &of(symbol, "a", 0, 1));
        let refused = client.receive().unwrap();
        assert!(refused.contains("|262=a|281=0|"), "{symbol}: {refused}");
    }
    stop(market.gateway);
}

#[test]
fn instruments_of_a_file_are_known_before_the_feed_brings_anything() {
    let file = Scratch::new("known.csv");
    file.write("symbol,id,source\nRIU3,49634118,8\n");
    let book = format!("[feed.book]\ninstruments = \"{}\"\n", file.display());
    let text = feed("one", group(195), group(196)).replace("[feed.book]\n", &book);
    let gateway = gateway(&text, 1 << 22);
    eventually("the instrument", || gateway.count("instruments") == 1);
    let mut client = Client::log_on(gateway.consumers(), "C");
    client.send("V", &of("RIU3", "a", 1, 1));
    let state = client.receive().unwrap();
    assert!(
        state.contains("|55=RIU3|") && state.contains("|58=state=recovering"),
        "{state}"
    );
    stop(gateway);
}

#[test]
fn a_request_for_the_status_of_the_session_goes_on_until_it_ends() {
    let market = Market::new(186);
    let mut client = market.client("FIX.4.4", "");
    let mut answer = |body: &str| {
        client.send("g", body);
        client.receive().unwrap()
    };
    let status = answer("335=t|263=1|");
    assert!(
        status.contains("|35=h|") && status.contains("|335=t|"),
        "{status}"
    );
    let refused = answer("335=t|263=1|");
    assert!(refused.contains("|372=g|380=0|"), "{refused}");
    client.send("g", "335=t|263=2|");
    client.send("g", "335=t|263=0|");
    let status = client.receive().unwrap();
    assert!(status.contains("|35=h|"), "{status}");
    stop(market.gateway);
}

#[test]
fn a_version_without_an_unknown_status_is_told_the_next_one() {
    let market = Market::new(233);
    let mut client = market.client("FIX.4.2", "");
    // Nothing is known of the session, which FIX.4.2 cannot say.
    client.send("g", "335=t|263=1|");
    client.send("g", "335=t|263=1|");
    let refused = client.receive().unwrap();
    assert!(
        refused.contains("|372=g|380=0|") && refused.contains("|58=a request has this"),
        "{refused}"
    );
    client.send("g", "335=other|263=0|");
    let refused = client.receive().unwrap();
    assert!(refused.contains("|372=g|380=4|"), "{refused}");
    stop(market.gateway);
}

#[test]
fn lists_come_in_pages_and_whole() {
    let market = Market::new(37);
    let count = market.live();
    let mut client = market.client("FIX.4.4", "");
    client.send("x", "320=all|559=4|");
    let mut listed = Vec::new();
    loop {
        let message = client.receive().unwrap();
        assert!(
            message.contains("|35=y|") && message.contains("|320=all|"),
            "{message}"
        );
        let total: usize = value(&message, 393).unwrap().parse().unwrap();
        assert!(total >= count);
        let ids = message
            .split('|')
            .filter_map(|field| field.strip_prefix("48="));
        listed.extend(ids.map(str::to_owned));
        if message.contains("|893=Y|") {
            assert_eq!(listed.len(), total);
            break;
        }
    }
    client.send(
        "c",
        &format!("320=one|321=0|55=[N/A]|48={}|22=8|", listed[0]),
    );
    let definition = client.receive().unwrap();
    assert!(
        definition.contains("|35=d|") || definition.contains("|380=2|"),
        "{definition}"
    );
    client.send("x", "320=none|559=0|55=NOTHING|");
    let empty = client.receive().unwrap();
    assert!(
        empty.contains("|35=y|") && empty.contains("|560=2|"),
        "{empty}"
    );
    client.send("x", "320=odd|559=9|");
    let empty = client.receive().unwrap();
    assert!(empty.contains("|560=1|"), "{empty}");
    stop(market.gateway);
}

#[test]
fn instruments_of_a_file_are_listed_whole_right_behind_the_start() {
    const COUNT: usize = 20_000;
    let file = Scratch::new("listed.csv");
    let rows = (0..COUNT).map(|number| format!("S{number},{number},8\n"));
    file.write(format!("symbol,id,source\n{}", rows.collect::<String>()));
    let known = format!(
        "most_instruments = {COUNT}\ninstruments = \"{}\"",
        file.display()
    );
    let feed = feed("one", group(242), group(243));
    let text = feed.replace("most_instruments = 1000", &known);
    assert!(text.contains(&known), "{text}");
    let gateway = gateway(&text, 1 << 22);
    let mut client = Client::log_on_in(gateway.consumers(), "C", "FIX.4.4", "");
    let last = COUNT - 1;
    client.send("c", &format!("320=one|321=1|55=S{last}|"));
    let definition = client.receive().unwrap();
    assert!(definition.contains("|35=d|"), "{definition}");
    client.send("x", "320=all|559=4|");
    let mut listed = 0;
    loop {
        let page = client.receive().unwrap();
        assert_eq!(value(&page, 393), Some("20000"), "{page}");
        listed += page.matches("|48=").count();
        if page.contains("|893=Y|") {
            break;
        }
    }
    assert_eq!(listed, COUNT);
    stop(gateway);
}

#[test]
fn a_client_goes_on_at_another_gateway_on_the_same_lines() {
    let (line, changes) = (group(45), group(46));
    let [a, b] = [(); 2].map(|()| gateway(&feed("one", line, changes), 1 << 22));
    let market = Market {
        gateway: a,
        line,
        snapshots: changes,
    };
    let mut client = market.client("FIXT.1.1", "1137=9|");
    client.send("V", &all("r", 1, 0));
    let count = market.live();
    eventually("live books at the other one", || {
        b.count("instruments_live") == count as u64 && b.count("instruments_recovering") == 0
    });
    let expected = {
        let mut other = Client::log_on_in(b.consumers(), "D", "FIXT.1.1", "1137=9|");
        other.send("V", &all("r", 0, 0));
        books_of(snapshots(&mut other, count))
    };
    let mut books = BTreeMap::new();
    eventually("the books at the first one", || {
        follow(&mut client, &mut books);
        let levels = books
            .iter()
            .map(|(id, book)| (id.clone(), book.levels.clone()));
        levels.collect::<BTreeMap<_, _>>() == expected
    });
    stop(market.gateway);
    while client.receive().is_some() {}
    let mut again = Client::log_on_in(b.consumers(), "C", "FIXT.1.1", "1137=9|");
    again.send("V", &all("r", 1, 0));
    assert_eq!(books_of(snapshots(&mut again, count)), expected);
    stop(b);
}

/// Returns the levels of snapshots, by SecurityID(48).
pub(crate) fn books_of(snapshots: BTreeMap<String, String>) -> BTreeMap<String, Levels> {
    let levels = |(id, snapshot): (String, String)| {
        let mut book = ByPrice::default();
        book.take(&snapshot);
        (id, book.levels)
    };
    snapshots.into_iter().map(levels).collect()
}

/// Applies the messages up to the response to a request that is sent now. Returns the number of
/// messages about states.
pub(crate) fn follow(client: &mut Client, books: &mut BTreeMap<String, ByPrice>) -> usize {
    client.send("V", &of("none", "end", 1, 1));
    let mut states = 0;
    loop {
        let message = client.receive().unwrap();
        match value(&message, 35).unwrap() {
            "W" | "X" => {
                let id = value(&message, 48).unwrap();
                books.entry(id.to_owned()).or_default().take(&message);
            }
            "Y" => return states,
            "B" => states += 1,
            "f" | "h" => {}
            _ => panic!("{message}"),
        }
    }
}

#[test]
fn what_a_session_had_asked_for_ends_with_it() {
    let market = Market::new(47);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    let count = market.wait();
    let to = market.gateway.consumers();
    let log_on = |name| Client::log_on_in(to, name, "FIXT.1.1", "1137=9|");
    let requests = ["a", "b", "c"];
    let mut stays = log_on("STAYS");
    stays.send("V", &all("r", 1, 3));
    snapshots(&mut stays, count);
    let mut gone = log_on("GONE");
    for request in requests {
        gone.send("V", &all(request, 1, 3));
        snapshots(&mut gone, count);
    }
    drop(gone);
    eventually("the end", || market.gateway.count("ended") == 1);
    // The next session takes its index, with equal requests, and receives each change once.
    let mut next = log_on("NEXT");
    let mut books: BTreeMap<(String, String), ByPrice> = BTreeMap::new();
    for request in requests {
        next.send("V", &all(request, 1, 3));
        for (id, snapshot) in snapshots(&mut next, count) {
            let book = books.entry((request.to_owned(), id)).or_default();
            book.take(&snapshot);
        }
    }
    market.send(&mut feed, usize::MAX);
    market.wait();
    next.send("V", &of("none", "end", 1, 1));
    loop {
        let message = next.receive().unwrap();
        match value(&message, 35).unwrap() {
            "W" | "X" => {
                let field = |tag| value(&message, tag).unwrap().to_owned();
                books
                    .entry((field(262), field(48)))
                    .or_default()
                    .take(&message);
            }
            "Y" => break,
            _ => {}
        }
    }
    let changes: u64 = books.values().map(|book| book.changes).sum();
    assert!(changes > 1_000, "{changes} changes");
    stop(market.gateway);
}
