//! The examples, against each other over loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "../examples/acceptor.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod acceptor;
#[path = "../examples/market_data.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod market_data;
#[path = "../examples/other_threads.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod other_threads;
#[path = "../examples/own_event_loop.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod own_event_loop;
#[path = "../examples/send_orders.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod send_orders;

use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Acceptor, Handler, Host, Initiator, Peer};
use fanfare_engine::stop::Stop;
use fanfare_fix::msg_type;
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, SessionId, Version};
use fanfare_fix::typed::Decimal;
use market_data::fix44::{
    MDEntryType, MarketDataRequest, MarketDataSnapshotFullRefresh,
    MarketDataSnapshotFullRefreshFields,
};
use std::io::Cursor;
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Runs an acceptor and an initiator alternately until `is_done`.
fn run<A: Handler, B: Handler>(
    sell: A,
    buy: B,
    mut is_done: impl FnMut(&mut Host<A>, &mut Host<B>) -> bool,
) {
    let config = |us, them| Config::new(SessionId::new(Version::Fix44, us, them));
    let port = Acceptor::new((Ipv4Addr::LOCALHOST, 0).into());
    let mut sell = Host::new(sell).unwrap();
    let address = sell.listen(port.session(config("SELL", "BUY"))).unwrap();
    let mut buy = Host::new(buy).unwrap();
    buy.initiate(Initiator::new(config("BUY", "SELL"), vec![address]))
        .unwrap();
    let (begun, mut clock) = (Instant::now(), Clock::new());
    while !is_done(&mut sell, &mut buy) {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        let now = clock.read();
        buy.do_work(now).unwrap();
        sell.do_work(now).unwrap();
    }
}

#[test]
fn orders_are_reported_until_the_last() {
    let stop = Stop::new();
    let trader = send_orders::Trader(9_900, stop.clone());
    run(acceptor::Exchange(0), trader, |sell, buy| {
        let is_over = stop.is_raised();
        if is_over {
            assert_eq!((sell.handler().0, buy.handler().0), (100, 10_000));
        }
        is_over
    });
}

/// A handler that responds to a request with a snapshot, and notes the request.
#[derive(Default)]
struct Exchange {
    symbols: Vec<String>,
    kinds: Vec<MDEntryType>,
    logged_out: bool,
}

impl Handler for Exchange {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let request = MarketDataRequest::read(&message.message).unwrap();
        let kinds = request.md_entry_types().unwrap();
        self.kinds
            .extend(kinds.map(|entry| entry.md_entry_type().unwrap()));
        let symbols = request.related_sym().unwrap();
        self.symbols
            .extend(symbols.map(|entry| entry.symbol().unwrap().to_owned()));
        let fields = MarketDataSnapshotFullRefreshFields {
            symbol: &self.symbols[0],
        };
        let sent = peer.send(MarketDataSnapshotFullRefresh::MSG_TYPE, |snapshot| {
            MarketDataSnapshotFullRefresh::build(snapshot, fields)
                .md_entries(&self.kinds, |entry, kind| {
                    entry.md_entry_type(*kind).md_entry_px(Decimal::from(1))
                })
                .md_req_id(request.md_req_id().unwrap());
        });
        sent.unwrap();
        peer.logout("");
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, _: DisconnectReason) {
        self.logged_out = true;
    }
}

#[test]
fn market_data_is_asked_for_and_printed() {
    let watcher = market_data::Watcher("EUR/USD".to_owned());
    run(Exchange::default(), watcher, |sell, _| {
        let exchange = sell.handler();
        if exchange.logged_out {
            assert_eq!(exchange.symbols, ["EUR/USD"]);
            assert_eq!(exchange.kinds, [MDEntryType::Bid, MDEntryType::Offer]);
        }
        exchange.logged_out
    });
}

/// The MsgTypes received, and whether the counterparty has logged on.
#[derive(Default)]
struct Reader(Vec<Vec<u8>>, bool);

impl Handler for Reader {
    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.0.push(message.message.msg_type().to_vec());
    }

    fn on_logon(&mut self, _: &mut Peer<'_>) {
        self.1 = true;
    }
}

#[test]
fn a_loop_of_ones_own_sends_its_news() {
    let id = SessionId::new(Version::Fix44, "EXCHANGE", "LOOP");
    let port = Acceptor::new((Ipv4Addr::LOCALHOST, 0).into());
    let mut host = Host::new(Reader::default()).unwrap();
    let address = host.listen(port.session(Config::new(id))).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    let own = thread::spawn(move || own_event_loop::run(stream));
    let (begun, mut clock) = (Instant::now(), Clock::new());
    while !own.is_finished() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        host.do_work(clock.read()).unwrap();
    }
    let reason = own.join().unwrap().unwrap();
    assert_eq!(reason, DisconnectReason::LogoutComplete);
    assert_eq!(host.handler().0, [msg_type::NEWS]);
}

#[test]
fn lines_of_another_thread_are_sent() {
    let id = |us, them| SessionId::new(Version::Fix44, us, them);
    let port = Acceptor::new((Ipv4Addr::LOCALHOST, 0).into());
    let mut sell = Host::new(Reader::default()).unwrap();
    let theirs = port.session(Config::new(id("EXCHANGE", "DESK")));
    let address = sell.listen(theirs).unwrap();
    let mut buy = Host::new(other_threads::Desk).unwrap();
    let ours = Config::new(id("DESK", "EXCHANGE"));
    buy.initiate(Initiator::new(ours, vec![address])).unwrap();
    let session = buy.handle().session(&id("DESK", "EXCHANGE")).unwrap();
    let lines = Cursor::new("one\n\ntwo\n");
    let (begun, mut clock) = (Instant::now(), Clock::new());
    let mut sending = Some((session, lines));
    while sell.handler().0.len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
        let now = clock.read();
        buy.do_work(now).unwrap();
        sell.do_work(now).unwrap();
        if sell.handler().1
            && let Some((session, lines)) = sending.take()
        {
            let sent = thread::spawn(move || other_threads::send_lines(session, lines));
            sent.join().unwrap().unwrap();
        }
    }
    assert_eq!(sell.handler().0, [msg_type::NEWS, msg_type::NEWS]);
}
