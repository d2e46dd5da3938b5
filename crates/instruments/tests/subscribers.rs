//! Hundreds of clients of the market data service join, change their subscriptions and leave at
//! random while a market moves: each book is the plant's at each number that has a checksum.
//!
//! A run takes a few seconds; `FANFARE_CHURN_SECONDS` sets another time, `FANFARE_CHURN_SEED`
//! another seed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_fast::{Decoder, Encoder, Message, Program, json};
use fanfare_feed::{Channel, ChannelConfig, Line};
use fanfare_fix::dict::Version;
use fanfare_gateway::{Config, Gateway};
use fanfare_instruments::load::{Asked, SubscribeOptions, SubscribeReport, Subscribers};
use fanfare_instruments::subscriber::Rights;

/// The clients of each version; each is a user with rights of its own.
const CLIENTS: [(Version, usize); 3] = [
    (Version::Fix42, 150),
    (Version::Fix44, 200),
    (Version::Fix50Sp2, 150),
];
/// Datagrams that are sent before the first client joins, so that there are books.
const BEFORE: usize = 500;
/// The time from one reload to the next; a reload ends no session.
const BETWEEN_RELOADS: Duration = Duration::from_millis(30);
/// Snapshots that are sent at a time, between changes.
const SOME: usize = 10;

/// The input of a feed's lines.
struct Feed {
    templates: String,
    mapping: String,
    /// Lines of `[feed.book]`.
    book: &'static str,
    /// Whether clients request orders.
    by_order: bool,
    changes: Vec<Vec<u8>>,
    snapshots: Vec<Vec<u8>>,
    /// Names of instruments that clients request.
    symbols: &'static [&'static str],
    /// The number of books that are live before the clients join.
    least: u64,
    /// Instruments of each user.
    rights: [&'static [&'static str]; 3],
}

/// Returns the rights of the user of this number.
fn rights(feed: &Feed, number: usize) -> Rights {
    let instruments = feed.rights.get(number).copied().unwrap_or_default();
    let (entries, depth) = match number {
        0 => (b"01".to_vec(), 0),
        // A book of orders has full depth.
        1 => (b"012".to_vec(), if feed.by_order { 0 } else { 3 }),
        _ => (b"0".to_vec(), 0),
    };
    Rights {
        instruments: instruments.iter().map(|name| (*name).to_owned()).collect(),
        entries,
        depth,
    }
}

/// Returns the users: by address, as each password would take the gateway 25 ms.
fn users(feed: &Feed) -> String {
    let mut text = String::new();
    for (number, (version, count)) in CLIENTS.iter().enumerate() {
        let name = version.name();
        let session = |client| format!("{{ sender = \"{name}-{client}\", target = \"FANFARE\" }}");
        let sessions: Vec<_> = (1..=*count).map(session).collect();
        let rights = rights(feed, number);
        let entries = rights
            .entries
            .iter()
            .map(|entry| char::from(*entry).to_string());
        text += &format!(
            "[[user]]\nname = \"{name}\"\nallow = [\"127.0.0.0/8\"]\nsessions = [{}]\n\
             instruments = {:?}\nentries = {:?}\ndepth = {}\n",
            sessions.join(", "),
            rights.instruments,
            entries.collect::<Vec<_>>(),
            rights.depth
        );
    }
    text
}

fn packets(mut generator: Generator, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::with_capacity(count);
    while let Some(packet) = generator.next_packet().unwrap()
        && all.len() < count
    {
        all.push(packet.to_vec());
    }
    all
}

fn spectra(seconds: u64) -> Feed {
    let count = 1_000 * seconds as usize + BEFORE;
    let generated = |snapshots| {
        let options = SpectraOptions {
            snapshots,
            trades: 20,
            ..SpectraOptions::default()
        };
        packets(
            Generator::spectra(Program::spectra(), 2 * count as u64, None, options),
            count,
        )
    };
    Feed {
        templates: "builtin:spectra".to_owned(),
        mapping: "builtin:spectra".to_owned(),
        book: "starts_empty = false\n",
        by_order: false,
        changes: generated(false),
        snapshots: generated(true),
        symbols: &["*"],
        least: 1,
        rights: [&["*"], &["*"], &["*"]],
    }
}

/// Returns the beginning of the recording of the Moscow Exchange, if that is present.
fn moex(seconds: u64) -> Option<Feed> {
    let count = 1_000 * seconds as usize + BEFORE;
    let folder: PathBuf =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let templates = folder.join("templates.xml");
    let Ok(xml) = fs::read_to_string(&templates) else {
        println!("skipped: there is no recording at {}", folder.display());
        return None;
    };
    let program = Arc::new(Program::parse(&xml).unwrap());
    let cut = |file: &str, most: usize| {
        let decoder = Decoder::new(Arc::clone(&program));
        let mut channel = Channel::new(decoder, ChannelConfig::new(1)).unwrap();
        let bytes = fs::read(folder.join(file)).unwrap();
        let (mut rest, mut all, mut packet) = (&bytes[..], Vec::new(), Vec::new());
        while !rest.is_empty() && all.len() < most {
            let (len, numbers) = channel.cut(Line::A, rest);
            packet.extend_from_slice(&rest[..len]);
            // A Reset belongs to the message after it.
            if numbers.next.is_none() {
                all.push(std::mem::take(&mut packet));
            }
            rest = &rest[len..];
        }
        all
    };
    Some(Feed {
        templates: templates.to_str().unwrap().to_owned(),
        mapping: "builtin:spectra".to_owned(),
        book: "starts_empty = false\n",
        by_order: false,
        changes: cut("increment_a.dat", count),
        snapshots: cut("snapshot.dat", usize::MAX),
        // Its instruments have no symbols: a prefix matches none, and a request for snapshots of
        // one is refused.
        symbols: &["*"],
        least: 1,
        rights: [&["*"], &["*"], &["*"]],
    })
}

/// Returns a mapping in which the bids and offers of changes are orders, by MDEntryID(278).
fn mapping_of_orders() -> String {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../market/mappings/spectra.toml");
    let text = fs::read_to_string(built_in).unwrap();
    let level = "kind = \"level\"\nwhen = { 269 = [\"0\", \"1\"] }\nlevel = 1023\nid = 346\n";
    let order = "kind = \"order\"\nwhen = { 269 = [\"0\", \"1\"] }\nid = 278\n";
    assert!(text.contains(level));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("orders.toml");
    fs::write(&file, text.replacen(level, order, 1)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns orders of a few instruments: new ones, changed ones, and ended ones.
fn orders(seconds: u64) -> Feed {
    const INSTRUMENTS: usize = 8;
    let program = Arc::new(Program::spectra());
    let (mut encoder, mut message) = (Encoder::new(Arc::clone(&program)), Message::new());
    let mut rng = fastrand::Rng::with_seed(17);
    let mut books = vec![Vec::<(u64, char, i64)>::new(); INSTRUMENTS];
    let (mut next, mut numbers, mut changes) = (1, [0; INSTRUMENTS], Vec::new());
    for number in 1..=1_000 * seconds + BEFORE as u64 {
        let mut entries = Vec::new();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..INSTRUMENTS);
            let (book, action) = (&mut books[at], rng.u8(..10));
            let place = rng.usize(..book.len().max(1));
            let (action, (id, side, price)) = match action {
                0..4 if book.len() > 20 => (2, book.swap_remove(place)),
                4..7 if book.len() > 20 => (1, book[place]),
                _ if book.len() > 200 => (2, book.swap_remove(place)),
                _ => {
                    let (is_bid, away) = (rng.bool(), rng.i64(1..40));
                    let price = if is_bid { 1_000 - away } else { 1_000 + away };
                    book.push((next, if is_bid { '0' } else { '1' }, price));
                    next += 1;
                    (0, *book.last().unwrap())
                }
            };
            numbers[at] += 1;
            entries.push(format!(
                "{{\"MDUpdateAction\":{action},\"MDEntryType\":\"{side}\",\"SecurityID\":{},\
                 \"Symbol\":\"O{at}\",\"RptSeq\":{},\"MDEntryID\":{id},\
                 \"MDEntryPx\":{{\"mantissa\":{price},\"exponent\":0}},\
                 \"MDEntrySize\":{},\"MDEntryTime\":101500000}}",
                at + 1,
                numbers[at],
                rng.u32(1..1_000)
            ));
        }
        let line = format!(
            "{{\"template\":\"DefaultIncrementalRefreshMessage\",\"fields\":{{\
             \"MsgSeqNum\":{number},\"SendingTime\":20130801101500000,\
             \"MDEntries\":[{}]}}}}",
            entries.join(",")
        );
        json::read_line(&program, &line, &mut message).unwrap();
        encoder.reset();
        let mut packet = Vec::new();
        encoder.encode(&message, &mut packet).unwrap();
        changes.push(packet);
    }
    Feed {
        templates: "builtin:spectra".to_owned(),
        mapping: mapping_of_orders(),
        book: "kind = \"orders\"\ndepth = 100\n",
        by_order: true,
        changes,
        snapshots: Vec::new(),
        symbols: &["*", "O1", "O2", "O3*", "O4"],
        least: 8,
        rights: [&["*"], &["O1", "O3*"], &["O4", "O5", "O3"]],
    }
}

/// Returns a group on loopback with a free port.
fn group(last: u8) -> SocketAddrV4 {
    static KEPT: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = own.local_addr().unwrap().port();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(own);
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 93, last), port)
}

/// The senders of the lines of a gateway's feed.
struct Lines {
    changes: (Sender, Vec<Vec<u8>>),
    snapshots: (Sender, Vec<Vec<u8>>),
}

/// Starts a gateway with this feed, its lines, and alternating configurations to reload: one has an
/// additional user.
fn plant(feed: Feed, last: u8) -> (Gateway, Lines, [Config; 2]) {
    let [line, snapshots] = [group(last), group(last + 1)];
    let text = format!(
        "[producers]\nport = 0\n[consumers]\nport = 0\n{}\
         [[feed]]\ntemplates = \"{}\"\nlines = [\"{line}\"]\nmapping = \"{}\"\n\
         [feed.book]\n{}\
         [feed.snapshot]\nlines = [\"{snapshots}\"]\n",
        users(&feed),
        feed.templates,
        feed.mapping,
        feed.book
    );
    let guest = "[[user]]\nname = \"guest\"\nallow = [\"127.0.0.0/8\"]\ninstruments = [\"*\"]\n\
                 sessions = [{ sender = \"GUEST\", target = \"FANFARE\" }]\n";
    let configs = [text.clone() + guest, text].map(|text| Config::from_toml(&text).unwrap());
    let sender = |to| Sender::open(&SenderConfig::new(to)).unwrap();
    let lines = Lines {
        changes: (sender(line), feed.changes),
        snapshots: (sender(snapshots), feed.snapshots),
    };
    let gateway = Gateway::start(&configs[1], Stop::new()).unwrap();
    (gateway, lines, configs)
}

impl Lines {
    /// Sends a change, and with each tenth one as many snapshots.
    fn put(&self, at: usize, packet: &[u8]) {
        let ((line, _), (other, snapshots)) = (&self.changes, &self.snapshots);
        line.send(packet).unwrap();
        if at.is_multiple_of(SOME) {
            let some = snapshots.iter().cycle().skip(at).take(SOME);
            some.for_each(|snapshot| other.send(snapshot).unwrap());
        }
    }

    /// Sends what comes before the first client joins.
    fn begin(&self) {
        for (at, packet) in self.changes.1.iter().enumerate().take(BEFORE) {
            self.put(at, packet);
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Sends the rest within this time, evenly, or until `stop` is raised.
    fn send(self, time: Duration, stop: &Stop) {
        let changes = &self.changes.1;
        let began = Instant::now();
        let rest = changes.len().saturating_sub(BEFORE).max(1);
        for (at, packet) in changes.iter().enumerate().skip(BEFORE) {
            if stop.is_raised() {
                return;
            }
            let due = began + time.mul_f64((at - BEFORE) as f64 / rest as f64);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.put(at, packet);
        }
    }
}

fn number(name: &str, default: u64) -> u64 {
    let text = env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

/// Runs the clients of one version, from the time at which all have joined until the time is up.
fn clients(
    gateway: SocketAddr,
    (version, count): (Version, usize),
    (symbols, by_order, rights): (&[&str], bool, Rights),
    (seed, time, joined): (u64, Duration, &Barrier),
) -> SubscribeReport {
    let mut asked = Asked {
        symbols: symbols.iter().map(|name| (*name).to_owned()).collect(),
        entries: b"012".to_vec(),
        ..Asked::everything()
    };
    asked.terms.checksum_every = 3;
    asked.terms.by_order = by_order;
    let options = SubscribeOptions {
        name: format!("{}-", version.name()),
        version,
        rights: Some(rights),
        churn: Some(seed),
        duration: Some(time),
        progress: 0,
        ..SubscribeOptions::new(gateway, count, asked)
    };
    let stop = Stop::new();
    let subscribers = Subscribers::connect(&options, &stop);
    joined.wait();
    let subscribers = subscribers.unwrap();
    assert_eq!(subscribers.refused().first, None);
    subscribers.run(&stop, &mut |_| {}).unwrap()
}

fn churn(feed: Feed, last: u8, seconds: u64) {
    let (seed, time) = (
        number("FANFARE_CHURN_SEED", 17),
        Duration::from_secs(seconds),
    );
    let (symbols, by_order) = (feed.symbols, feed.by_order);
    let mut seen = [0, 1, 2].map(|number| Some(rights(&feed, number)));
    let least = feed.least;
    let (gateway, lines, configs) = plant(feed, last);
    let consumers = gateway.consumers();
    lines.begin();
    // Before that, named instruments are unknown.
    let until = Instant::now() + Duration::from_secs(60);
    while gateway.count("instruments_live") < least {
        assert!(Instant::now() < until, "fewer than {least} live books");
        thread::yield_now();
    }
    let (stop, joined) = (Stop::new(), Barrier::new(CLIENTS.len() + 1));
    let reports: Vec<SubscribeReport> = thread::scope(|scope| {
        let mut seen = seen.iter_mut().map(|rights| rights.take().unwrap());
        let (stop, joined) = (&stop, &joined);
        let all = CLIENTS.map(|who| {
            let wanted = (symbols, by_order, seen.next().unwrap());
            scope.spawn(move || clients(consumers, who, wanted, (seed, time, joined)))
        });
        scope.spawn(move || {
            joined.wait();
            // Slightly longer than the clients run.
            lines.send(time + Duration::from_secs(2), stop);
        });
        let mut reloads = 0;
        while !all.iter().all(thread::ScopedJoinHandle::is_finished) {
            gateway.reload(&configs[reloads % 2]).unwrap();
            reloads += 1;
            thread::sleep(BETWEEN_RELOADS);
        }
        println!("{reloads} reloads");
        let reports = all.map(|clients| clients.join().unwrap());
        stop.raise();
        reports.into()
    });
    for ((version, _), report) in CLIENTS.iter().zip(&reports) {
        println!(
            "{}: {}",
            version.name(),
            report.figures().to_json()["figures"]
        );
        let seeded = format!("{} with FANFARE_CHURN_SEED={seed}", version.name());
        assert_eq!(report.first_fault, None, "{seeded}");
        assert_eq!(report.first_refusal, None, "{seeded}");
        assert_eq!(report.first_ended, None, "{seeded}");
        assert!(report.is_clean(), "{seeded}: {report:?}");
        assert!(
            report.left > 0 && report.counts.checked > 0,
            "{seeded}: {report:?}"
        );
        assert!(report.counts.changes > 0, "{seeded}: {report:?}");
        assert!(report.counts.denied > 0, "{seeded}: {report:?}");
    }
    gateway.stop().raise();
    gateway.join().unwrap();
}

#[test]
fn books_are_right_while_clients_come_and_go() {
    let seconds = number("FANFARE_CHURN_SECONDS", 3);
    churn(spectra(seconds), 1, seconds);
    let file = {
        let feed = orders(seconds);
        let file = feed.mapping.clone();
        churn(feed, 5, seconds);
        file
    };
    fs::remove_file(file).unwrap();
    if let Some(feed) = moex(seconds) {
        churn(feed, 3, seconds);
    }
}
