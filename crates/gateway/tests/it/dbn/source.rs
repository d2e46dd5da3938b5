//! A gateway whose feed is the DBN port of another one.

use super::{KEY, Keyed, market};
use crate::market::generator;
use crate::service::Market;
use crate::session_feed::Cutter;
use crate::users::{PORTS, start};
use crate::{ended, eventually, stop};
use fanfare_fast::generate::Generator;
use fanfare_feed::recovery::State;
use fanfare_gateway::{EventReader, FeedNotice, Gateway, MarketNotice, Notice};
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use fanfare_market::event::{Action, entry};
use fanfare_market::instruments::{Definition, Lookup, Name};
use fanfare_market::state::code;
use fanfare_market::view::View;
use fanfare_market::{
    BookConfig, Delivery, Event, Flags, InstrumentId, Instruments, Kind, Price, Side,
};
use fanfare_peers::Scratch;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// The rights of a user to all instruments.
const ALL: &str = "instruments = [\"*\"]";

/// What a reader of a gateway's events knows.
struct Known {
    events: EventReader,
    view: View,
    trades: Vec<String>,
}

impl Known {
    fn new(gateway: &mut Gateway, book: BookConfig) -> Self {
        Self {
            events: gateway.take_events().unwrap(),
            view: View::new(vec![book]),
            trades: Vec::new(),
        }
    }

    fn read(&mut self) {
        let (view, trades) = (&mut self.view, &mut self.trades);
        let mut each = |delivery: Delivery<'_>| {
            if let Delivery::Event(event, directory) = delivery
                && event.instrument != InstrumentId::ALL
            {
                view.apply(event);
                if event.kind == Kind::Trade {
                    let name = name(directory, event.instrument);
                    trades.push(format!("{name} {:?} {}", event.price, event.size));
                }
            }
        };
        while self.events.read(64, &mut each) > 0 {}
    }

    /// Returns the levels of the books that are live, by the names of their instruments.
    fn books(&self) -> BTreeMap<String, String> {
        let directory = self.events.directory();
        let live = self.view.numbers().filter_map(|number| {
            let seen = self.view.get(number)?;
            let levels = |side| {
                let book = seen.book.iter();
                let levels = book.flat_map(|book| book.depth(side));
                let levels = levels.map(|level| (level.price, level.size));
                format!("{:?}", levels.collect::<Vec<_>>())
            };
            let book = levels(Side::Bid) + &levels(Side::Offer);
            (seen.state == State::Live).then(|| (name(directory, number), book))
        });
        live.collect()
    }

    /// Returns whether all books are live.
    fn is_live(&self) -> bool {
        let count = self.view.numbers().count();
        count > 0 && self.books().len() == count
    }

    fn sorted(&self) -> Vec<&String> {
        let mut all: Vec<_> = self.trades.iter().collect();
        all.sort();
        all
    }
}

/// Returns the symbol of an instrument, or the ID of one without a symbol, as DBN does.
fn name(table: &dyn Lookup, number: InstrumentId) -> String {
    let name = table.instrument(number).unwrap().definition.name;
    match name.symbol {
        b"" => name.id.to_string(),
        symbol => String::from_utf8(symbol.to_vec()).unwrap(),
    }
}

/// Both gateways, and a relay between them that cuts their connection.
struct Plants {
    upstream: Market,
    feed: [Generator; 2],
    own: Known,
    cutter: Cutter,
    down: Gateway,
    known: Known,
    _user: Keyed,
}

impl Plants {
    /// Starts a gateway with the settings `more`, and, once it has `known` packets, one that
    /// subscribes to it.
    fn new(first: u8, more: &str, subscribe: &str, known: usize) -> Self {
        let user = Keyed::new("plant", KEY, ALL);
        let mut upstream = market(first, "", &format!("{more}{}", user.table));
        let mut own = Known::new(&mut upstream.gateway, BookConfig::by_level(5).unwrap());
        let mut feed = [generator(false), generator(true)];
        upstream.send(&mut feed, known);
        eventually("the first books", || {
            own.read();
            known == 0 || own.is_live() && upstream.gateway.count("log_written") > 0
        });
        let cutter = Cutter::new(upstream.gateway.dbn().unwrap());
        let key = user.file.display().to_string();
        let mut down = start(&live(cutter.at, &key, subscribe));
        let known = Known::new(&mut down, BookConfig::by_price(10).unwrap());
        Self {
            upstream,
            feed,
            own,
            cutter,
            down,
            known,
            _user: user,
        }
    }

    /// Sends the next packets to the first gateway.
    fn send(&mut self, packets: usize) {
        self.upstream.send(&mut self.feed, packets);
    }

    /// Returns whether all books are live in both gateways, and equal.
    fn agree(&mut self) -> bool {
        self.own.read();
        self.known.read();
        self.own.is_live() && self.own.books() == self.known.books()
    }

    fn stop(self) {
        stop(self.down);
        stop(self.upstream.gateway);
    }
}

/// Returns the configuration of a gateway that subscribes to this DBN port.
fn live(at: SocketAddr, key: &str, subscribe: &str) -> String {
    format!(
        "{PORTS}[[feed]]\nchannel = \"upstream\"\n[feed.live]\nhosts = [\"{at}\"]\n\
         dataset = \"FANFARE\"\nkey_file = \"{key}\"\nretry_ms = 100\n\
         subscribe = [{subscribe}]\n"
    )
}

#[test]
fn books_and_trades_of_another_gateway_outlast_the_loss_of_the_connection() {
    let folder = Scratch::new("dbn-source");
    let log = format!("[history]\nfolder = \"{}\"\n", folder.display());
    let schemas = ["mbp-10", "trades", "definition"];
    let subscribe = schemas.map(|own| format!("{{ schema = \"{own}\", past_s = 3600 }}"));
    let mut both = Plants::new(248, &log, &subscribe.join(", "), 300);
    eventually("the books", || both.agree());
    for bytes in [1, 777, 5_001] {
        let before = both.down.count("source_ended");
        both.cutter.left.store(bytes, Ordering::SeqCst);
        while both.down.count("source_ended") == before {
            both.send(5);
        }
        both.send(5);
        eventually("the books again", || both.agree());
    }
    eventually("all trades", || {
        both.agree() && both.own.sorted() == both.known.sorted()
    });
    assert!(!both.own.trades.is_empty());
    assert_eq!(both.down.count("source_losses"), 0);
    assert_eq!(both.down.count("source_logged_on"), 1);
    both.stop();
}

#[test]
fn a_loss_that_the_other_gateway_cannot_make_up_for_is_told() {
    let mut both = Plants::new(250, "", "{ schema = \"mbp-10\" }", 0);
    eventually("a session", || both.down.count("source_logged_on") == 1);
    both.send(300);
    eventually("the books", || both.agree());
    both.cutter.left.store(1, Ordering::SeqCst);
    while both.down.count("source_ended") == 0 {
        both.send(1);
    }
    eventually("the loss", || both.down.count("source_losses") == 1);
    let is_told = |what: &str, notice: &Notice| {
        matches!(
            notice,
            Notice::Feed(FeedNotice::Market {
                what: MarketNotice::Session { what: told, is_trouble: true },
                ..
            }) if told.contains(what)
        )
    };
    let lacks = "the gateway does not have the past";
    ended(&both.down, |notice| is_told(lacks, notice));
    ended(&both.down, |notice| {
        is_told("records since the loss are missing", notice)
    });
    both.send(usize::MAX);
    eventually("the books again", || both.agree());
    both.stop();
}

/// Returns a file of orders of two instruments.
fn orders() -> Vec<u8> {
    let schemas = Schemas::new(&[Schema::Mbo]).unwrap();
    let mut to_dbn = ToDbn::new(DbnConfig::new(schemas)).unwrap();
    let (mut table, mut bytes) = (Instruments::new(2), Vec::new());
    to_dbn.metadata("TEST", 0, &mut bytes);
    for (number, symbol) in (0..).zip(["A", "B"]) {
        let name = Name::of_symbol(symbol.as_bytes());
        table.define(&Definition::named(name)).unwrap();
        let clear = Event {
            instrument: InstrumentId(number),
            flags: Flags::LAST,
            ts_event: 1,
            ts_recv: 2,
            source: 1,
            ..Event::EMPTY
        };
        let live = Event {
            kind: Kind::State,
            id: code::LIVE,
            ..clear
        };
        let order = |id: u64, entry, price| Event {
            kind: Kind::Order,
            action: Action::New,
            entry,
            id,
            price: Price::from_units(price),
            size: 10 + i64::from(number),
            ..clear
        };
        let bids = (1..4).map(|id| order(id, entry::BID, 1_000_000_000));
        let offers = (4..6).map(|id| order(id, entry::OFFER, 2_000_000_000));
        for event in [clear, live].into_iter().chain(bids).chain(offers) {
            to_dbn.write(&event, 0, &table, &mut bytes);
        }
    }
    bytes
}

#[test]
fn books_of_orders_begin_anew_with_snapshots() {
    let (file, user) = (Scratch::new("orders.dbn"), Keyed::new("mbo", KEY, ALL));
    file.write(orders());
    let upstream = |port: u16| {
        let mut gateway = start(&format!(
            "{PORTS}[dbn]\nport = {port}\n[[feed]]\ndbn = {{ file = \"{}\", speed = \"max\" }}\n{}",
            file.display(),
            user.table
        ));
        let known = Known::new(&mut gateway, BookConfig::by_order(100, 1_000).unwrap());
        (gateway, known)
    };
    let (first, mut own) = upstream(0);
    let at = first.dbn().unwrap();
    let key = user.file.display().to_string();
    let mut down = start(&live(at, &key, "{ schema = \"mbo\" }"));
    let mut known = Known::new(&mut down, BookConfig::by_order(100, 1_000).unwrap());
    let mut agree = |own: &mut Known| {
        own.read();
        known.read();
        own.books().len() == 2 && own.books() == known.books()
    };
    eventually("the books", || agree(&mut own));
    stop(first);
    eventually("stale books", || down.count("instruments_stale") == 2);
    let (second, mut own) = upstream(at.port());
    eventually("the books again", || {
        down.count("source_losses") > 0 && agree(&mut own)
    });
    stop(down);
    stop(second);
}

#[test]
fn a_wrong_key_is_refused_and_told_without_the_key() {
    let user = Keyed::new("other", KEY, ALL);
    let upstream = market(252, "", &user.table);
    let wrong = Keyed::new("wrong", &KEY.replace("db-0", "db-1"), "");
    let at = upstream.gateway.dbn().unwrap();
    let key = wrong.file.display().to_string();
    let down = start(&live(at, &key, "{ schema = \"trades\" }"));
    ended(&down, |notice| {
        let told = format!("{notice:?}");
        assert!(!told.contains("abcdefgh"), "{told}");
        told.contains("the gateway refuses the session")
    });
    assert_eq!(down.count("source_logons"), 0);
    stop(down);
    stop(upstream.gateway);
}
