//! Feeds that are FIX sessions: a gateway whose books come from another one.

use crate::client::{Client, value};
use crate::feed::group;
use crate::market::{Books, feed, gateway, generator, send_some};
use crate::ports::file;
use crate::{ended, eventually, stop};
use fanfare_engine::stop::Stop;
use fanfare_fast::generate::Generator;
use fanfare_gateway::{Config, EventReader, Gateway, Mode, PortTls};
use fanfare_peers::Scratch;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A gateway with a feed of lines, which serves it in FIX.
struct Upstream {
    gateway: Gateway,
    events: EventReader,
    lines: [SocketAddrV4; 2],
    feed: [Generator; 2],
}

impl Upstream {
    fn new(first: u8) -> Self {
        Self::with_books(first, "")
    }

    /// Returns one with these lines in the configuration of its books.
    fn with_books(first: u8, more: &str) -> Self {
        let lines = [group(first), group(first + 1)];
        let feed = feed("one", lines[0], lines[1]);
        let text = feed.replace("[feed.book]\n", &format!("[feed.book]\n{more}"));
        let mut gateway = gateway(&text, 1 << 22);
        Self {
            events: gateway.take_events().unwrap(),
            gateway,
            lines,
            feed: [generator(false), generator(true)],
        }
    }

    /// Sends the next changes, and as many snapshots.
    fn send(&mut self, most: usize) {
        let [changes, snapshots] = &mut self.feed;
        let [line, snapshot_line] = self.lines;
        send_some(line, false, changes, most, &[&self.gateway]);
        send_some(snapshot_line, true, snapshots, most, &[&self.gateway]);
    }
}

/// Returns a feed that requests market data at this address.
fn session(at: SocketAddr, version: &str, subscribe: &str, more: &str) -> String {
    format!(
        "[[feed]]\nchannel = \"session\"\n[feed.book]\nmost_instruments = 1000\n\
         [feed.fix]\nhosts = \"{at}\"\nsender = \"DOWN\"\ntarget = \"PLANT\"\n\
         version = \"{version}\"\nsubscribe = {subscribe}\nretry_ms = 100\n{more}"
    )
}

/// A gateway whose feeds are these.
struct Downstream {
    gateway: Gateway,
    events: EventReader,
    books: Books,
}

impl Downstream {
    fn new(text: &str) -> Self {
        let mut config = Config::from_toml(text).unwrap();
        config.producers.port = 0;
        config.consumers.port = 0;
        config.mode = Mode::Subscriptions;
        let mut gateway = Gateway::start(&config, Stop::new()).unwrap();
        Self {
            events: gateway.take_events().unwrap(),
            gateway,
            books: Books::default(),
        }
    }

    /// Waits until all books are live, and equal to those of the other gateway.
    fn follows(&mut self, upstream: &mut Upstream, own: &mut Books) {
        eventually("the books of the upstream", || {
            own.read(&mut upstream.events);
            self.books.read(&mut self.events);
            let count = own.books.len();
            count > 0 && own.are_live(count) && self.books.are_live(count) && {
                own.by_name() == self.books.by_name()
            }
        });
    }
}

#[test]
fn books_of_a_session_are_those_of_its_counterparty() {
    let mut upstream = Upstream::new(210);
    upstream.send(400);
    let at = upstream.gateway.consumers();
    let mut own = Books::default();
    let small = "ring_bytes = 65536\nlimits.message_bytes = 8192\n";
    for (version, subscribe, rings) in [
        ("FIX.4.2", "[\"*\"]", ""),
        ("FIX.4.4", "\"security-list\"", small),
        ("FIX.5.0SP2", "[\"*\"]", ""),
    ] {
        let feed = session(at, version, subscribe, "depth = 5\n");
        let mut down = Downstream::new(&format!("{rings}{feed}"));
        down.follows(&mut upstream, &mut own);
        upstream.send(200);
        down.follows(&mut upstream, &mut own);
        assert!(down.gateway.count("source_messages") > 0, "{version}");
        assert_eq!(down.gateway.count("source_losses"), 0, "{version}");
        stop(down.gateway);
    }
    stop(upstream.gateway);
}

/// A relay between a session and its counterparty, which cuts the connection after some bytes.
pub(crate) struct Cutter {
    pub(crate) at: SocketAddr,
    /// The bytes that pass to the session before the next cut.
    pub(crate) left: Arc<AtomicI64>,
}

/// More bytes than a test sends.
const ENDLESS: i64 = 1 << 40;

impl Cutter {
    pub(crate) fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let left = Arc::new(AtomicI64::new(ENDLESS));
        let own = Arc::clone(&left);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for down in listener.incoming() {
                let (down, up) = (down.unwrap(), TcpStream::connect(to).unwrap());
                let ends = (down.try_clone().unwrap(), up.try_clone().unwrap());
                std::thread::spawn(move || copy(ends.0, ends.1, &AtomicI64::new(ENDLESS)));
                copy(up, down, &own);
                own.store(ENDLESS, Ordering::SeqCst);
            }
        });
        Self { at, left }
    }
}

/// Copies bytes until none are left, or one of the ends is closed, and closes both.
fn copy(mut from: TcpStream, mut to: TcpStream, left: &AtomicI64) {
    let mut room = [0; 1_000];
    loop {
        let read = match from.read(&mut room) {
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        let before = left.fetch_sub(read as i64, Ordering::SeqCst);
        let pass = read.min(usize::try_from(before).unwrap_or(0));
        if to.write_all(&room[..pass]).is_err() || pass < read || read == 0 {
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
    }
}

#[test]
fn a_connection_that_is_cut_within_a_message_costs_no_book() {
    let mut upstream = Upstream::new(212);
    upstream.send(300);
    let cutter = Cutter::new(upstream.gateway.consumers());
    let text = session(cutter.at, "FIX.4.4", "\"security-list\"", "");
    let mut down = Downstream::new(&text);
    let mut own = Books::default();
    down.follows(&mut upstream, &mut own);
    for bytes in [1, 777, 30_001] {
        let ended = down.gateway.count("source_ended");
        cutter.left.store(bytes, Ordering::SeqCst);
        while down.gateway.count("source_ended") == ended {
            upstream.send(20);
        }
        down.follows(&mut upstream, &mut own);
    }
    assert_eq!(down.gateway.count("source_losses"), 0);
    stop(down.gateway);
    stop(upstream.gateway);
}

#[test]
fn an_upstream_that_is_stopped_and_started_again_is_followed_again() {
    let (line, snapshots) = (group(214), group(215));
    let text = feed("one", line, snapshots);
    let mut config = Config::from_toml(&text).unwrap();
    (config.producers.port, config.consumers.port) = (0, 0);
    config.mode = Mode::Subscriptions;
    let start = |config: &Config| {
        let mut gateway = Gateway::start(config, Stop::new()).unwrap();
        Upstream {
            events: gateway.take_events().unwrap(),
            gateway,
            lines: [line, snapshots],
            feed: [generator(false), generator(true)],
        }
    };
    let mut upstream = start(&config);
    upstream.send(200);
    let at = upstream.gateway.consumers();
    // A multicast feed and a session are markets of one gateway, each with its own instruments.
    let lines = feed("lines", line, snapshots);
    let both = lines + &session(at, "FIX.5.0SP2", "[\"*\"]", "");
    let mut down = Downstream::new(&both);
    let mut own = Books::default();
    let of_session = |down: &mut Downstream, upstream: &mut Upstream, own: &mut Books| {
        eventually("the books of the session", || {
            own.read(&mut upstream.events);
            down.books.read(&mut down.events);
            let mut second = Books::default();
            second.books = down.books.books.clone().split_off(&1_000);
            let count = own.books.len();
            count > 0
                && own.are_live(count)
                && second.are_live(count)
                && own.by_name() == second.by_name()
        });
    };
    of_session(&mut down, &mut upstream, &mut own);
    stop(upstream.gateway);
    let stale = || down.gateway.count("instruments_stale");
    eventually("stale books", || stale() == own.books.len() as u64);
    config.consumers.port = at.port();
    let mut upstream = start(&config);
    let mut own = Books::default();
    upstream.send(400);
    of_session(&mut down, &mut upstream, &mut own);
    assert_eq!(down.gateway.count("source_logons"), 2);
    stop(down.gateway);
    stop(upstream.gateway);
}

/// A gateway with a session to a counterparty that the test plays.
struct Played {
    venue: Client,
    listener: TcpListener,
    down: Downstream,
}

impl Played {
    fn new(subscribe: &str) -> Self {
        Self::with_limits(subscribe, "")
    }

    /// Returns a gateway with these lines in front of its feed.
    fn with_limits(subscribe: &str, limits: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let text = session(at, "FIX.4.4", subscribe, "entry_types = [\"0\", \"1\"]\n");
        let text = text
            .replace("\"DOWN\"", "\"PLANT\"")
            .replace("target = \"PLANT\"", "target = \"VENUE\"")
            .replace("[feed.book]\n", "[feed.book]\nkind = \"prices\"\n");
        let password = Scratch::new("venue.password");
        password.write("secret\n");
        let user = format!(
            "[feed.fix]\nusername = \"us\"\npassword_file = \"{}\"\n",
            password.display()
        );
        let text = text.replace("[feed.fix]\n", &user);
        let down = Downstream::new(&format!("{limits}{text}"));
        let (venue, logon) = Client::accept(&listener, "VENUE");
        assert!(logon.contains("|553=us|554=secret|"), "{logon}");
        assert!(logon.contains("|141=Y|"), "{logon}");
        Self {
            venue,
            listener,
            down,
        }
    }

    /// Returns the ID and the kind, 263, of the next request, which is of these instruments.
    fn requested(&mut self, kind: &str, symbols: &[&str]) -> String {
        let message = self.venue.receive().unwrap();
        assert_eq!(value(&message, 35), Some("V"), "{message}");
        assert_eq!(value(&message, 263), Some(kind), "{message}");
        let fields = message.split('|');
        let named: Vec<_> = fields.filter_map(|own| own.strip_prefix("55=")).collect();
        assert_eq!(named, symbols, "{message}");
        value(&message, 262).unwrap().to_owned()
    }

    /// Waits until as many instruments are in this state.
    fn count(&self, name: &str, count: u64) {
        let gateway = &self.down.gateway;
        eventually(&format!("{count} {name}"), || gateway.count(name) == count);
    }

    /// Sends snapshots of A and B with a bid at this price, and waits for both books.
    fn snapshots(&mut self, id: &str, price: u32) {
        for symbol in ["A", "B"] {
            let book = format!("262={id}|55={symbol}|268=1|{}", bid(price));
            self.venue.send("W", &book);
        }
        self.count("instruments_live", 2);
        eventually("the books of the snapshots", || {
            ["A", "B"].map(|symbol| self.best(symbol)) == [price.to_string(), price.to_string()]
        });
    }

    /// Returns the best bid of an instrument as a client of the gateway sees it.
    fn best(&self, symbol: &str) -> String {
        let mut client = Client::log_on(self.down.gateway.consumers(), "C");
        client.send(
            "V",
            &format!("262=r|263=0|264=1|267=1|269=0|146=1|55={symbol}|"),
        );
        let mut message = client.receive().unwrap();
        while value(&message, 35) != Some("W") {
            message = client.receive().unwrap();
        }
        value(&message, 270).unwrap_or_default().to_owned()
    }
}

fn bid(price: u32) -> String {
    format!("269=0|270={price}|271=1|")
}

#[test]
fn refusals_strangers_and_further_snapshots_are_survived() {
    let mut played = Played::new("[\"A\", \"B\"]");
    // One of two is unknown: each is requested alone, and the unknown one again.
    let id = played.requested("1", &["A", "B"]);
    played.venue.send("Y", &format!("262={id}|281=0|58=no B|"));
    let of_a = played.requested("1", &["A"]);
    let id = played.requested("1", &["B"]);
    played
        .venue
        .send("W", &format!("262={of_a}|55=A|268=1|{}", bid(10)));
    played.venue.send("Y", &format!("262={id}|281=0|58=no B|"));
    played.count("instruments_live", 1);
    played.count("source_refused", 1);
    let of_b = played.requested("1", &["B"]);
    // A snapshot in two parts, with a message of the session between them.
    let part = |last: &str, entry: &str| format!("262={of_b}|55=B|893={last}|268=1|{entry}");
    played.venue.send("W", &part("N", &bid(20)));
    played.venue.send("0", "");
    played.venue.send("W", &part("Y", &bid(19)));
    played.count("instruments_live", 2);
    assert_eq!([played.best("A"), played.best("B")], ["10", "20"]);
    // Changes of an instrument that was not requested have no book.
    let change = "268=1|279=0|269=0|55=C|270=5|271=1|";
    played.venue.send("X", &format!("262={of_a}|{change}"));
    played.count("instruments_recovering", 1);
    // Another gateway says which of its books are not current.
    let news = "148=Instrument state|146=1|55=B|33=1|58=state=stale|";
    played.venue.send("B", news);
    played.count("instruments_live", 1);
    played
        .venue
        .send("W", &format!("262={of_b}|55=B|268=1|{}", bid(20)));
    played.count("instruments_live", 2);
    // A snapshot of a live book replaces it, and no book recovers.
    let before = played.down.gateway.count("recoveries");
    played
        .venue
        .send("W", &format!("262={of_a}|55=A|268=1|{}", bid(8)));
    eventually("the other book", || played.best("A") == "8");
    assert_eq!(played.down.gateway.count("recoveries"), before);
    stop(played.down.gateway);
}

#[test]
fn losses_faults_and_the_end_of_the_venue_are_survived() {
    let mut played = Played::new("[\"A\", \"B\"]");
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 10);
    // A gap fill in place of market data: all is requested anew.
    let next = played.venue.next_number();
    played.venue.send("4", &format!("123=Y|36={}|", next + 3));
    played.venue.skip_to(next + 3);
    played.count("instruments_live", 0);
    assert_eq!(played.requested("2", &["A", "B"]), id);
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 11);
    assert_eq!(played.down.gateway.count("source_losses"), 1);
    // A change that the book refuses: it is requested anew, and the other stays live.
    let unknown = "268=1|279=2|269=0|55=A|270=77|271=1|";
    played.venue.send("X", &format!("262={id}|{unknown}"));
    played.count("instruments_live", 1);
    assert_eq!(played.requested("2", &["A", "B"]), id);
    let id = played.requested("1", &["A", "B"]);
    let recoveries = played.down.gateway.count("recoveries");
    played.snapshots(&id, 12);
    assert_eq!(played.down.gateway.count("recoveries"), recoveries);
    // The venue is gone within a message, and comes back with numbers from 1.
    played.venue.send_raw(b"8=FIX.4.4\x019=1");
    played.venue.stream.shutdown(Shutdown::Both).unwrap();
    played.count("instruments_stale", 2);
    (played.venue, _) = Client::accept(&played.listener, "VENUE");
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 13);
    assert_eq!(played.down.gateway.count("source_losses"), 1);
    stop(played.down.gateway);
}

#[test]
fn a_request_that_is_too_long_for_a_message_is_divided() {
    let limits = "ring_bytes = 1048576\nlimits.message_bytes = 131072\n";
    let mut played = Played::with_limits("\"security-list\"", limits);
    let list = played.venue.receive().unwrap();
    assert_eq!(value(&list, 35), Some("x"), "{list}");
    let id = value(&list, 320).unwrap();
    let of = |symbol: &str, bytes: usize| {
        let long = symbol.repeat(bytes);
        format!("55={symbol}|48={long}|22=8|")
    };
    // A request has at most 64 KiB, so that C cannot be requested.
    let all = [
        of("A", 25_000),
        of("B", 25_000),
        of("C", 70_000),
        of("D", 9),
    ];
    let page = format!("320={id}|322=1|560=0|146=4|{}", all.concat());
    played.venue.send("y", &page);
    played.requested("1", &["A", "B"]);
    played.requested("1", &["D"]);
    played.count("source_refused", 1);
    let gateway = &played.down.gateway;
    ended(gateway, |notice| {
        let text = notice.to_string();
        text.contains("the request of C is left out")
    });
    stop(played.down.gateway);
}

#[test]
fn a_book_of_another_gateway_that_was_stale_is_requested_again() {
    let mut played = Played::new("[\"A\", \"B\"]");
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 10);
    let tell = |played: &mut Played, symbol: &str, state: &str| {
        let news = format!("148=Instrument state|146=1|55={symbol}|33=1|58=state={state}|");
        played.venue.send("B", &news);
    };
    // A snapshot follows the end of a recovery, and nothing is requested.
    tell(&mut played, "A", "recovering lacks=snapshot");
    played.count("instruments_live", 1);
    tell(&mut played, "A", "live");
    played.snapshots(&id, 11);
    assert_eq!(played.down.gateway.count("source_requests"), 1);
    // None follows the end of a silence.
    for symbol in ["A", "B"] {
        tell(&mut played, symbol, "stale");
    }
    played.count("instruments_live", 0);
    assert_eq!(played.down.gateway.count("source_requests"), 1);
    for symbol in ["A", "B"] {
        tell(&mut played, symbol, "live");
    }
    assert_eq!(played.requested("2", &["A", "B"]), id);
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 12);
    stop(played.down.gateway);
}

#[test]
fn books_are_followed_again_after_a_silence_of_the_upstream() {
    let mut upstream = Upstream::with_books(218, "silence_ms = 1000\n");
    upstream.send(100);
    let at = upstream.gateway.consumers();
    let mut down = Downstream::new(&session(at, "FIX.5.0SP2", "[\"*\"]", ""));
    let mut own = Books::default();
    let follows = |upstream: &mut Upstream, own: &mut Books, down: &mut Downstream| {
        own.read(&mut upstream.events);
        down.books.read(&mut down.events);
        let count = own.books.len();
        let are_live = own.are_live(count) && down.books.are_live(count);
        if !own.are_live(count) {
            upstream.send(1);
        }
        count > 0 && are_live && own.by_name() == down.books.by_name()
    };
    eventually("the books before the silence", || {
        follows(&mut upstream, &mut own, &mut down)
    });
    eventually("the silence", || {
        down.books.read(&mut down.events);
        let mut books = down.books.books.values();
        books.all(|(_, _, is_live)| !is_live)
    });
    eventually("the books after the silence", || {
        follows(&mut upstream, &mut own, &mut down)
    });
    assert_eq!(down.gateway.count("source_logons"), 1);
    stop(down.gateway);
    stop(upstream.gateway);
}

#[test]
fn a_host_that_is_not_found_is_looked_up_again() {
    // No resolver takes a label of 64 characters.
    let name = format!("{}.invalid", "x".repeat(64));
    let at = SocketAddr::from(([127, 0, 0, 1], 9));
    let text = session(at, "FIX.4.4", "[\"*\"]", "");
    let text = text.replace(&at.ip().to_string(), &name);
    let down = Downstream::new(&text);
    let again = format!("cannot connect: no host has an address; {name}: ");
    for what in [&format!("{name} is not found yet: "), &again, &again] {
        ended(&down.gateway, |notice| notice.to_string().contains(what));
    }
    stop(down.gateway);
}

#[test]
fn a_stop_logs_the_session_out() {
    let mut played = Played::new("[\"A\", \"B\"]");
    let id = played.requested("1", &["A", "B"]);
    played.snapshots(&id, 10);
    played.down.gateway.stop().raise();
    let last = played.venue.receive().expect("a Logout");
    assert_eq!(value(&last, 35), Some("5"), "{last}");
    played.venue.send("5", "");
    assert_eq!(played.venue.receive(), None);
    played.down.gateway.join().unwrap();
}

#[test]
fn a_session_over_tls_shows_its_certificate() {
    let (line, snapshots) = (group(216), group(217));
    let mut config = Config::from_toml(&feed("one", line, snapshots)).unwrap();
    (config.producers.port, config.consumers.port) = (0, 0);
    config.mode = Mode::Subscriptions;
    config.consumers.tls = Some(PortTls {
        certificate: file("server.pem"),
        key: file("server.key"),
        client_ca: Some(file("root.pem")),
        check_client_name: true,
    });
    let mut gateway = Gateway::start(&config, Stop::new()).unwrap();
    let mut upstream = Upstream {
        events: gateway.take_events().unwrap(),
        gateway,
        lines: [line, snapshots],
        feed: [generator(false), generator(true)],
    };
    upstream.send(100);
    let at = upstream.gateway.consumers();
    let [ca, certificate, key] =
        ["root.pem", "client.pem", "client.key"].map(|name| file(name).display().to_string());
    let tls = format!(
        "[feed.fix.tls]\nca = \"{ca}\"\nname = \"exchange.test\"\n\
         certificate = \"{certificate}\"\nkey = \"{key}\"\n"
    );
    let text = session(at, "FIX.4.4", "[\"*\"]", &tls);
    let text = text.replace("\"DOWN\"", "\"trader.test\"");
    Config::from_toml(&text).unwrap().check_files().unwrap();
    let none = text.replace(&ca, "/no/such/root.pem");
    let why = Config::from_toml(&none).unwrap().check_files().unwrap_err();
    assert!(format!("{why:?}").contains("root.pem"), "{why:?}");
    let mut down = Downstream::new(&text);
    down.follows(&mut upstream, &mut Books::default());
    stop(down.gateway);
    stop(upstream.gateway);
}
