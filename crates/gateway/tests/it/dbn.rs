//! The port for DBN as its clients see it.

use crate::feed::group;
use crate::market::feed;
use crate::service::Market;
use crate::users::PORTS;
use crate::{eventually, stop};
use fanfare_gateway::{EventReader, Gateway};
use fanfare_market::Delivery;
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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

    /// A client that has authenticated with this key.
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

    /// The next line; empty at the end.
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

    /// Starts the session; returns the metadata.
    fn start(&mut self) -> Vec<u8> {
        self.write("start_session");
        let mut front = [0; 8];
        self.stream.read_exact(&mut front).unwrap();
        assert_eq!(&front[..4], b"DBN\x03");
        let length = u32::from_le_bytes(front[4..].try_into().unwrap());
        let mut metadata = vec![0; length as usize];
        self.stream.read_exact(&mut metadata).unwrap();
        metadata
    }

    /// The next record; `None` at the end.
    fn record(&mut self) -> Option<Record> {
        let mut record = vec![0];
        if self.stream.read_exact(&mut record).is_err() {
            return None;
        }
        record.resize(usize::from(record[0]) * 4, 0);
        self.stream.read_exact(&mut record[1..]).unwrap();
        Some(Record(record))
    }

    /// The next record of this kind, behind which all others are forgotten.
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

    /// Records of market data until there are as many bytes.
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

    fn is_data(&self) -> bool {
        !matches!(self.rtype(), ERROR | MAPPING | SYSTEM)
    }

    /// The text of an error or a notice.
    fn text(&self) -> String {
        let text = self.0[16..].split(|byte| *byte == 0).next().unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }

    /// `code` of a notice, or of an error.
    fn code(&self) -> u8 {
        match self.rtype() {
            SYSTEM => self.0[319],
            _ => self.0[318],
        }
    }
}

/// A gateway with a port for DBN and one feed, whose users and limits are in `more`.
fn market(first: u8, dbn: &str, more: &str) -> Market {
    let (line, pictures) = (group(first), group(first + 1));
    let text = format!(
        "{PORTS}[dbn]\nport = 0\n{dbn}\n{}{more}",
        feed("one", line, pictures)
    );
    Market::with(&text, line, pictures)
}

/// What a schema's records are of all events that a reader finds.
struct Oracle {
    events: EventReader,
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
            schemas: schemas.iter().map(converter).collect(),
        }
    }

    fn read(&mut self) {
        let schemas = &mut self.schemas;
        let each = |delivery: Delivery<'_>| {
            if let Delivery::Event(event, directory) = delivery {
                for (converter, out) in &mut *schemas {
                    converter.write(event, 0, directory, out);
                }
            }
        };
        let mut each = each;
        while self.events.read(64, &mut each) > 0 {}
    }

    /// What was made of the events since the last call, and nothing of those before.
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
