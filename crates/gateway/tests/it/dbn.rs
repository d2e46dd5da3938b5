//! The DBN port as its clients see it.

mod ended;
mod leave;
mod limits;
mod past;
mod source;

use crate::feed::group;
use crate::market::{feed, generator};
use crate::service::Market;
use crate::users::PORTS;
use crate::{eventually, stop};
use fanfare_gateway::{Config, EventReader, Gateway};
use fanfare_market::Delivery;
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use fanfare_market::instruments::Lookup;
use fanfare_peers::Scratch;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const KEY: &str = "db-0123456789abcdefghijklmnopqrs";

/// `rtype` of errors, symbols and notices.
const ERROR: u8 = 0x15;
const MAPPING: u8 = 0x16;
const SYSTEM: u8 = 0x17;

/// A client of the live protocol.
struct Dbn {
    stream: BufReader<TcpStream>,
    challenge: String,
}

impl Dbn {
    fn connect(gateway: &Gateway) -> Self {
        let stream = TcpStream::connect(gateway.dbn().unwrap()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut client = Self {
            stream: BufReader::new(stream),
            challenge: String::new(),
        };
        assert!(client.line().starts_with("lsg_version="));
        let challenge = client.line();
        client.challenge = challenge.strip_prefix("cram=").unwrap().to_owned();
        client
    }

    /// Returns a client that has authenticated with this key.
    fn authenticated(gateway: &Gateway, key: &str, more: &str) -> Self {
        let mut client = Self::connect(gateway);
        client.authenticate(key, more);
        let answer = client.line();
        assert!(answer.starts_with("success=1|session_id="), "{answer}");
        client
    }

    fn authenticate(&mut self, key: &str, more: &str) {
        let answer = answer(&self.challenge, key);
        self.write(&format!(
            "auth={answer}|dataset=FANFARE|encoding=dbn|{more}"
        ));
    }

    /// Returns the next line, which is empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn write(&mut self, line: &str) {
        let stream = self.stream.get_mut();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn subscribe(&mut self, schema: &str, symbols: &str, more: &str) {
        self.write(&format!(
            "schema={schema}|stype_in=raw_symbol|symbols={symbols}|{more}"
        ));
    }

    /// Starts the session. Returns the metadata.
    fn start(&mut self) -> Vec<u8> {
        self.write("start_session");
        self.metadata()
    }

    fn metadata(&mut self) -> Vec<u8> {
        let mut front = [0; 8];
        self.stream.read_exact(&mut front).unwrap();
        assert_eq!(&front[..4], b"DBN\x03");
        let length = u32::from_le_bytes(front[4..].try_into().unwrap());
        let mut metadata = vec![0; length as usize];
        self.stream.read_exact(&mut metadata).unwrap();
        metadata
    }

    /// Returns the next record, or `None` at the end.
    fn record(&mut self) -> Option<Record> {
        let mut record = vec![0];
        if self.stream.read_exact(&mut record).is_err() {
            return None;
        }
        record.resize(usize::from(record[0]) * 4, 0);
        self.stream.read_exact(&mut record[1..]).unwrap();
        Some(Record(record))
    }

    /// Returns the next record of this kind, and discards the others before it.
    fn until(&mut self, rtype: u8) -> Record {
        loop {
            let record = self.record().expect("a record");
            if record.rtype() == rtype {
                return record;
            }
        }
    }

    /// Waits for the notice that a subscription was accepted.
    fn acknowledged(&mut self) {
        let notice = self.until(SYSTEM);
        assert_eq!(notice.code(), 1, "{}", notice.text());
    }

    /// Returns records of market data up to this many bytes.
    fn data(&mut self, bytes: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes {
            let record = self.record().expect("a record");
            assert_ne!(record.rtype(), ERROR, "{}", record.text());
            if record.is_data() {
                all.extend(record.0);
            }
        }
        all
    }
}

fn answer(challenge: &str, key: &str) -> String {
    let text = format!("{challenge}|{key}");
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let digits: String = hash.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    format!("{digits}-{}", &key[key.len() - 5..])
}

/// A record's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Record(Vec<u8>);

impl Record {
    fn rtype(&self) -> u8 {
        self.0[1]
    }

    fn instrument(&self) -> u32 {
        u32::from_le_bytes(self.0[4..8].try_into().unwrap())
    }

    /// Returns the symbol of an instrument.
    fn symbol(&self) -> String {
        let text = &self.0[16 + 1 + 71 + 1..];
        String::from_utf8(text.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap()
    }

    fn is_data(&self) -> bool {
        !matches!(self.rtype(), ERROR | MAPPING | SYSTEM)
    }

    /// Returns the text of an error or a notice.
    fn text(&self) -> String {
        let text = self.0[16..].split(|byte| *byte == 0).next().unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    /// Returns `code` of a notice or an error.
    fn code(&self) -> u8 {
        match self.rtype() {
            SYSTEM => self.0[319],
            _ => self.0[318],
        }
    }
}

/// Returns a gateway with a DBN port and one feed, whose users and limits are in `more`.
fn market(first: u8, dbn: &str, more: &str) -> Market {
    let (line, snapshots) = (group(first), group(first + 1));
    let text = format!(
        "{PORTS}[dbn]\nport = 0\n{dbn}\n{}{more}",
        feed("one", line, snapshots)
    );
    Market::with(&text, line, snapshots)
}

/// The expected records of each schema, made of all events that a reader receives.
struct Oracle {
    events: EventReader,
    /// The number of events so far.
    count: u64,
    schemas: Vec<(ToDbn, Vec<u8>)>,
}

impl Oracle {
    fn new(market: &mut Market, schemas: &[Schema]) -> Self {
        let converter = |schema: &Schema| {
            let config = DbnConfig {
                names: false,
                ..DbnConfig::new(Schemas::new(&[*schema]).unwrap())
            };
            (ToDbn::new(config).unwrap(), Vec::new())
        };
        Self {
            events: market.gateway.take_events().unwrap(),
            count: 0,
            schemas: schemas.iter().map(converter).collect(),
        }
    }

    fn read(&mut self) {
        let (schemas, count) = (&mut self.schemas, &mut self.count);
        let each = |delivery: Delivery<'_>| {
            if let Delivery::Event(event, directory) = delivery {
                *count += 1;
                for (converter, out) in &mut *schemas {
                    converter.write(event, 0, directory, out);
                }
            }
        };
        let mut each = each;
        while self.events.read(64, &mut each) > 0 {}
    }

    /// Waits until the packets of both lines have become events, and discards their records.
    fn settle(&mut self, gateway: &Gateway, packets: u64) {
        let count = |name| gateway.count(name);
        eventually("the packets", || {
            count("datagrams") == packets && count("snapshot_packets") == packets
        });
        self.until(|| count("market_events"));
    }

    /// Reads this many events, and returns their records in the first schema.
    fn until(&mut self, events: impl Fn() -> u64) -> Vec<u8> {
        eventually("the events", || {
            self.read();
            self.count == events()
        });
        self.take().swap_remove(0)
    }

    /// Returns the names of the instruments.
    fn names(&self) -> Vec<String> {
        let directory = self.events.directory();
        let (_, numbers) = directory.next_symbol(None, b"").unwrap();
        let name = |number| directory.instrument(number).unwrap().definition.name.id;
        numbers.map(|number| name(number).to_string()).collect()
    }

    /// Takes the records of the events since the last call.
    fn take(&mut self) -> Vec<Vec<u8>> {
        self.read();
        let schemas = self.schemas.iter_mut();
        schemas.map(|(_, out)| std::mem::take(out)).collect()
    }
}

#[test]
fn records_of_all_instruments_are_those_of_the_plants_events() {
    let mut market = market(61, "", "");
    let all = [
        ("trades", Schema::Trades),
        ("mbp-1", Schema::Mbp1),
        ("mbp-10", Schema::Mbp10),
        ("statistics", Schema::Statistics),
        ("status", Schema::Status),
        ("definition", Schema::Definition),
    ];
    let mut oracle = Oracle::new(&mut market, &all.map(|(_, schema)| schema));
    let mut clients = all.map(|(schema, _)| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, "ts_out=0");
        client.subscribe(schema, "ALL_SYMBOLS", "snapshot=0|id=7|is_last=1");
        client.start();
        client.acknowledged();
        client
    });
    market.live();
    eventually("all records", || market.gateway.count("dbn_records") > 0);
    let expected = oracle.take();
    for ((client, expected), (schema, _)) in clients.iter_mut().zip(expected).zip(all) {
        let records = client.data(expected.len());
        assert!(records == expected, "{schema}");
        assert!(matches!(schema, "definition" | "status" | "statistics") || !records.is_empty());
    }
    stop(market.gateway);
}

/// A user with a key in a file of its own.
struct Keyed {
    file: Scratch,
    table: String,
}

impl Keyed {
    fn new(name: &str, key: &str, more: &str) -> Self {
        let file = Scratch::new(&format!("{name}.key"));
        file.write(format!("{key}\n"));
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&file, mode).unwrap();
        let table = format!(
            "[[user]]\nname = \"{name}\"\ndbn_key_file = \"{}\"\n{more}\n",
            file.display()
        );
        Self { file, table }
    }
}

/// Asserts that the connection ends with this response.
fn refused(client: &mut Dbn, why: &str) {
    let answer = client.line();
    assert!(
        answer.starts_with("success=0|error=") && answer.contains(why),
        "{answer}"
    );
    assert_eq!(client.line(), "");
}

#[test]
fn who_has_no_key_gets_nothing() {
    let user = Keyed::new("desk", KEY, "instruments = [\"*\"]\nsessions_at_a_time = 1");
    let hasty = market(77, "auth_timeout_s = 1", &user.table);
    let market = market(63, "auth_timeout_s = 60\nrequest_bytes = 512", &user.table);
    let gateway = &market.gateway;
    let mut wrong = Dbn::connect(gateway);
    wrong.authenticate("db-0123456789abcdefghijklmnopqrt", "");
    refused(&mut wrong, "authentication failed");
    // A response to another challenge.
    let (mut first, mut second) = (Dbn::connect(gateway), Dbn::connect(gateway));
    assert_ne!(first.challenge, second.challenge);
    second.challenge.clone_from(&first.challenge);
    second.authenticate(KEY, "");
    refused(&mut second, "authentication failed");
    let answer = answer(&first.challenge, KEY);
    first.write(&format!("auth={answer}|dataset=OTHER"));
    refused(&mut first, "unknown dataset OTHER");
    // As many sessions as allowed.
    let session = Dbn::authenticated(gateway, KEY, "");
    let mut more = Dbn::connect(gateway);
    more.authenticate(KEY, "");
    refused(&mut more, "1 sessions already");
    drop(session);
    eventually("the end of the session", || {
        gateway.count("dbn_clients") == 0
    });
    // Lines without an end, invalid lines, and none at all.
    let mut endless = Dbn::connect(gateway);
    endless.write(&"x".repeat(1000));
    refused(&mut endless, "too long");
    let mut odd = Dbn::connect(gateway);
    odd.stream.get_mut().write_all(b"auth=\xff\n").unwrap();
    refused(&mut odd, "not UTF-8");
    let mut silent = Dbn::connect(&hasty.gateway);
    assert_eq!(silent.line(), "");
    stop(hasty.gateway);
    // A file that others may read.
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&user.file, mode).unwrap();
    let text = format!("{PORTS}{}", user.table);
    let told = gateway
        .reload(&Config::from_toml(&text).unwrap())
        .unwrap_err();
    let told = std::error::Error::source(&told).unwrap().to_string();
    assert!(told.contains("mode 644"), "{told}");
    stop(market.gateway);
}

#[test]
fn a_wrong_request_gets_an_error_and_a_wrong_line_the_end() {
    let market = market(65, "", "");
    let mut client = Dbn::authenticated(&market.gateway, KEY, "heartbeat_interval_s=1");
    client.subscribe("cmbp-1", "A", "");
    client.subscribe("trades", "NONE,ALSO_NONE", "");
    client.start();
    for (code, why) in [
        (5, "unknown schema `cmbp-1`"),
        (4, "unknown symbols: NONE, ALSO_NONE"),
    ] {
        let error = client.until(ERROR);
        assert_eq!(error.code(), code, "{}", error.text());
        assert!(error.text().contains(why), "{}", error.text());
    }
    client.write("schema=mbo|stype_in=parent|symbols=ES.FUT");
    assert!(client.until(ERROR).text().contains("not `parent`"));
    client.subscribe("trades", &["A"; 2_001].join(","), "");
    assert!(client.until(ERROR).text().contains("at most 2000"));
    client.subscribe("trades", "ALL_SYMBOLS", "start=0");
    assert!(client.until(ERROR).text().contains("`start`"));
    client.write("start_session");
    assert!(client.until(ERROR).text().contains("started already"));
    let heartbeat = client.until(SYSTEM);
    assert_eq!(
        (heartbeat.code(), heartbeat.text().as_str()),
        (0, "Heartbeat")
    );
    client.write("hello");
    assert!(
        client
            .until(ERROR)
            .text()
            .contains("expected a subscription")
    );
    while client.record().is_some() {}
    stop(market.gateway);
}

#[test]
fn a_client_that_floods_and_does_not_read_is_not_read_either() {
    let rights = "instruments = [\"*\"]\nsessions_at_a_time = 9\n";
    let fast = Keyed::new(
        "fast",
        KEY,
        &format!("{rights}requests_per_second = 1000000"),
    );
    let other = KEY.replace('0', "z");
    let slow = Keyed::new("slow", &other, &format!("{rights}requests_per_second = 2"));
    let users = format!("{}{}", fast.table, slow.table);
    let hasty = market(73, "queue_bytes = 65536\nstall_timeout_s = 3", &users);
    // The answers are more than the buffers of both sockets take.
    let line = format!("schema=none|symbols={}\n", "A".repeat(200));
    let flood = line.repeat(100_000);
    let mut client = Dbn::authenticated(&hasty.gateway, KEY, "");
    client.start();
    let sent = client.stream.get_mut().write_all(flood.as_bytes());
    assert!(sent.is_err(), "it is closed before it has sent everything");
    eventually("the end of the connection", || {
        hasty.gateway.count("dbn_clients") == 0
    });
    stop(hasty.gateway);
    let market = market(79, "queue_bytes = 65536", &users);
    // Requests before the start wait as well, and are answered as the client reads.
    let mut client = Dbn::authenticated(&market.gateway, KEY, "");
    let early = line.repeat(10_000);
    client.stream.get_mut().write_all(early.as_bytes()).unwrap();
    client.start();
    for _ in 0..10_000 {
        assert_eq!(client.until(ERROR).code(), 5);
    }
    drop(client);
    // Of requests over the rate, one in a second is answered.
    let mut client = Dbn::authenticated(&market.gateway, &other, "heartbeat_interval_s=1");
    client.start();
    let many = line.repeat(2_000);
    client.stream.get_mut().write_all(many.as_bytes()).unwrap();
    let (mut errors, mut beats) = (0, 0);
    // A heartbeat ends the answers; on a busy machine, some precede them.
    while beats == 0 || errors < 3 && beats < 60 {
        match client.record().unwrap().rtype() {
            ERROR => errors += 1,
            _ => beats += 1,
        }
    }
    assert!((3..1_000).contains(&errors), "{errors} answers");
    stop(market.gateway);
}

/// Splits consecutive records.
fn split(mut bytes: &[u8]) -> Vec<Record> {
    let mut all = Vec::new();
    while let Some((record, rest)) =
        bytes.split_at_checked(usize::from(*bytes.first().unwrap_or(&0)) * 4)
        && !record.is_empty()
    {
        all.push(Record(record.to_vec()));
        bytes = rest;
    }
    all
}

#[test]
fn a_late_client_has_the_books_of_the_plant() {
    let mut market = market(67, "", "");
    let mut oracle = Oracle::new(&mut market, &[Schema::Mbp10]);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    oracle.settle(&market.gateway, 500);
    let names = oracle.names();
    let some = names[..3].join(",");
    // One client of all, one of some by their names, one with times, one that is compressed.
    let kinds = [
        ("ALL_SYMBOLS", ""),
        (&*some, ""),
        ("ALL_SYMBOLS", "ts_out=1"),
    ];
    let mut clients = kinds.map(|(symbols, more)| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, more);
        client.subscribe("mbp-10", symbols, "");
        client.start();
        client.acknowledged();
        client
    });
    let of_some = [0, 1, 2].map(|_| clients[1].until(MAPPING).instrument());
    for at in [0, 2] {
        let named: Vec<_> = names.iter().map(|_| clients[at].until(MAPPING)).collect();
        let symbols: BTreeSet<String> = named.iter().map(Record::symbol).collect();
        assert_eq!(symbols, names.iter().cloned().collect());
    }
    // A request that is answered after the start of the subscriptions.
    for client in &mut clients {
        client.subscribe("trades", "NONE", "");
        client.until(ERROR);
    }
    market.send(&mut feed, usize::MAX);
    market.wait();
    let expected = oracle.until(|| market.gateway.count("market_events"));
    let all = split(&expected);
    assert!(all.len() > 1000);
    assert!(clients[0].data(expected.len()) == expected);
    let is_of_some = |record: &&Record| of_some.contains(&record.instrument());
    let some: Vec<u8> = all
        .iter()
        .filter(is_of_some)
        .flat_map(|record| record.0.clone())
        .collect();
    assert!(clients[1].data(some.len()) == some);
    let timed = split(&clients[2].data(expected.len() + 8 * all.len()));
    assert_eq!(timed.len(), all.len());
    for (timed, plain) in timed.iter().zip(&all) {
        assert!(timed.0[1..plain.0.len()] == plain.0[1..]);
    }
    stop(market.gateway);
}

#[test]
fn the_past_goes_over_into_the_present_without_a_hole() {
    let folder = Scratch::new("dbn-it");
    let log = format!("[history]\nfolder = \"{}\"\n", folder.display());
    let mut market = market(69, "", &log);
    let schemas = [("trades", Schema::Trades), ("mbp-10", Schema::Mbp10)];
    let mut oracle = Oracle::new(&mut market, &schemas.map(|(_, schema)| schema));
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 1_000);
    eventually("events", || {
        oracle.read();
        oracle.count > 1_000
    });
    // One for everything, and one with times and also some instruments.
    let names = oracle.names();
    let mut clients: Vec<Dbn> = schemas
        .iter()
        .map(|(schema, _)| {
            let mut client = Dbn::authenticated(&market.gateway, KEY, "");
            client.subscribe(schema, "ALL_SYMBOLS", "start=0");
            client.start();
            client
        })
        .collect();
    let mut some = Dbn::authenticated(&market.gateway, KEY, "ts_out=1|slow_reader_behavior=warn");
    some.subscribe("mbp-10", &names[1], "start=1");
    some.start();
    market.send(&mut feed, usize::MAX);
    market.wait();
    eventually("the events", || {
        oracle.read();
        oracle.count == market.gateway.count("market_events")
    });
    let expected = oracle.take();
    for (client, expected) in clients.iter_mut().zip(&expected) {
        let (mut all, mut completed) = (Vec::new(), 0);
        while all.len() < expected.len() || completed == 0 {
            let record = client.record().expect("a record");
            assert_ne!(record.rtype(), ERROR, "{}", record.text());
            completed += usize::from(record.rtype() == SYSTEM && record.code() == 3);
            if record.is_data() {
                all.extend(record.0);
            }
        }
        assert!(all == *expected && completed == 1);
    }
    let number = some.until(MAPPING).instrument();
    let of_one = split(&expected[1]);
    for plain in of_one.iter().filter(|record| record.instrument() == number) {
        let timed = some.until(10);
        assert!(timed.0[1..plain.0.len()] == plain.0[1..]);
    }
    stop(market.gateway);
}

#[test]
fn a_change_of_rights_leaves_out_no_record_that_stays_permitted() {
    let user = |more: &str| {
        let more = format!("instruments = [\"*\"]\nsessions_at_a_time = 9\n{more}");
        Keyed::new("rights", KEY, &more)
    };
    let first = user("");
    let mut market = market(71, "", &first.table);
    let schemas = [("trades", Schema::Trades), ("mbp-10", Schema::Mbp10)];
    let mut oracle = Oracle::new(&mut market, &schemas.map(|(_, schema)| schema));
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 500);
    oracle.settle(&market.gateway, 500);
    let mut clients = schemas.map(|(schema, _)| {
        let mut client = Dbn::authenticated(&market.gateway, KEY, "");
        client.subscribe(schema, "ALL_SYMBOLS", "");
        client.start();
        client.acknowledged();
        // Answered after the start of the subscription.
        oracle
            .names()
            .iter()
            .for_each(|_| _ = client.until(MAPPING));
        client.subscribe("status", "NONE", "");
        client.until(ERROR);
        client
    });
    let reload = |market: &Market, user: &Keyed| {
        let text = format!("{PORTS}{}", user.table);
        let config = Config::from_toml(&text).unwrap();
        market.gateway.reload(&config).unwrap();
    };
    // Other rights, of which none is to records: without limits, with a limit, without one again.
    for round in 0..30 {
        let more = match round {
            10..20 => format!("subscriptions = {}", 1_000 + round),
            _ => format!("requests_per_second = {}", 10 + round),
        };
        reload(&market, &user(&more));
        market.send(&mut feed, 20);
    }
    market.send(&mut feed, usize::MAX);
    market.wait();
    eventually("the events", || {
        oracle.read();
        oracle.count == market.gateway.count("market_events")
    });
    for (client, expected) in clients.iter_mut().zip(oracle.take()) {
        assert!(expected.len() > 1_000);
        assert!(client.data(expected.len()) == expected);
    }
    stop(market.gateway);
}

#[test]
fn unsubscribing_from_an_instrument_ends_no_start_of_another_one() {
    let folder = Scratch::new("dbn-leave");
    let log = format!("[history]\nfolder = \"{}\"\n", folder.display());
    let mut market = market(75, "", &log);
    let mut oracle = Oracle::new(&mut market, &[Schema::Mbp10]);
    let mut feed = [generator(false), generator(true)];
    market.send(&mut feed, 1_000);
    eventually("events", || {
        oracle.read();
        oracle.count > 1_000
    });
    let names = oracle.names();
    let mut client = Dbn::authenticated(&market.gateway, KEY, "");
    client.start();
    client.subscribe("mbp-10", &format!("{},{}", names[1], names[2]), "start=0");
    client.subscribe("mbp-10", &names[2], "unsubscribe=1");
    client.subscribe("mbp-10", &names[3], "unsubscribe=1");
    market.send(&mut feed, usize::MAX);
    market.wait();
    eventually("the events", || {
        oracle.read();
        oracle.count == market.gateway.count("market_events")
    });
    let all = split(&oracle.take().swap_remove(0));
    let (mut completed, mut number, mut received) = (false, None, Vec::new());
    let mut expected: Vec<Record> = Vec::new();
    while !completed || received.len() < expected.len() {
        let record = client.record().expect("a record");
        assert_ne!(record.rtype(), ERROR, "{}", record.text());
        match record.rtype() {
            MAPPING if record.symbol() == names[1] => {
                number = Some(record.instrument());
                let own = all.iter().filter(|own| Some(own.instrument()) == number);
                expected = own.cloned().collect();
            }
            SYSTEM => completed |= record.code() == 3,
            _ if record.is_data() && Some(record.instrument()) == number => received.push(record),
            _ => {}
        }
    }
    assert!(!expected.is_empty() && received == expected);
    stop(market.gateway);
}
