//! A third-party engine as a subscriber: the test tells it what to send, and rebuilds the books
//! from the messages that it delivers to its application.

use crate::engines::{Engine, Engines, Party, Start, Version};
use fanfare_fix::codec::Decoder;
use fanfare_instruments::subscriber::{self, Terms, Updates};
use fanfare_market::Side;
use fanfare_peers::PATIENCE;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Instant;

pub(super) struct Subscriber {
    version: Version,
    party: Party,
    judge: subscriber::Subscriber,
    decoder: Decoder,
    /// The number of requests sent.
    asked: u32,
}

impl Subscriber {
    pub(super) fn log_on(
        engines: &Engines,
        engine: Engine,
        version: Version,
        gateway: SocketAddr,
    ) -> Self {
        let mut party = engines.initiator(engine, version, gateway, Start::Resets);
        party.wait("a Logon", |line| line == "logon").unwrap();
        Self {
            version,
            party,
            judge: subscriber::Subscriber::new(),
            decoder: Decoder::new(),
            asked: 0,
        }
    }

    /// Waits for a matching message; every message goes to the checker, and may not be rejected.
    fn wait(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let Self {
            version,
            party,
            judge,
            decoder,
            ..
        } = self;
        let judge = RefCell::new((judge, decoder));
        let until = Instant::now() + PATIENCE;
        let seen = |line: &str| {
            let Some(message) = line.strip_prefix("in ") else {
                let rejects = line.contains("|35=3|") || line.contains("|35=j|");
                assert!(!rejects, "{version:?}: rejected: {line}");
                assert!(!line.starts_with("error"), "{line}");
                assert!(!line.starts_with("logout"), "{version:?}: {line}");
                return false;
            };
            // Heartbeats do not end.
            assert!(Instant::now() < until, "{version:?}: no {what}");
            let (judge, decoder) = &mut *judge.borrow_mut();
            let bytes = message.replace('|', "\x01");
            judge.take(&decoder.decode(bytes.as_bytes()).unwrap());
            assert_eq!(judge.first_fault(), None, "{version:?}: {message}");
            let is_it = fits(message);
            let refusals = ["|35=Y|", "|35=j|", "|35=3|"];
            let refuses = refusals.iter().any(|kind| message.contains(kind));
            assert!(is_it || !refuses, "{version:?}: no {what}: {message}");
            is_it
        };
        let waited = party.wait(what, seen);
        waited.unwrap_or_else(|seen| panic!("{version:?}: {seen}"))
    }

    fn send(&mut self, body: &str) {
        self.party.tell(&format!("send {body}"));
    }

    /// Sends a V of this kind for instruments, five levels deep, with these fields after its depth.
    fn request(&mut self, id: &str, kind: u8, symbols: &str, more: &str) {
        let count = symbols.split(',').count();
        let symbols: String = symbols
            .split(',')
            .map(|name| format!("55={name}|"))
            .collect();
        self.send(&format!(
            "35=V|262={id}|263={kind}|264=5|{more}267=2|269=0|269=1|146={count}|{symbols}"
        ));
    }

    pub(super) fn subscribe(&mut self, id: &str, symbols: &str) {
        let terms = Terms {
            depth: 5,
            ..Terms::default()
        };
        let names: Vec<&str> = symbols.split(',').collect();
        self.judge.subscribed(id.as_bytes(), &names, terms);
        self.request(id, 1, symbols, "265=1|");
    }

    pub(super) fn stop(&mut self, id: &str) {
        self.judge.stopped(id.as_bytes());
        self.request(id, 2, "*", "");
    }

    pub(super) fn news(&mut self, text: &str) {
        self.wait(text, |line| line.contains("|35=B|") && line.contains(text));
    }

    pub(super) fn first_snapshot(&mut self, id: &str) {
        let id = format!("|262={id}|");
        self.wait("W", |line| line.contains("|35=W|") && line.contains(&id));
    }

    /// Requests an unknown instrument: the response follows all that was sent before.
    fn settle(&mut self) {
        self.asked += 1;
        let id = format!("no{}", self.asked);
        self.request(&id, 0, "NOWHERE", "");
        self.refused(&id, Some(0));
    }

    fn refused(&mut self, id: &str, reason: Option<u8>) {
        let id = format!("|262={id}|");
        let line = self.wait(&id, |line| line.contains("|35=Y|") && line.contains(&id));
        match reason {
            Some(reason) => {
                let field = format!("|281={reason}|");
                assert!(line.contains(&field), "{reason}: {line}");
            }
            None => assert!(!line.contains("|281="), "{line}"),
        }
    }

    /// Requests snapshots of everything, until they equal the books of the subscription's changes:
    /// updates that the gateway has not yet read from its lines arrive meanwhile.
    pub(super) fn has_the_books_of(&mut self, id: &str, snapshots: &str) {
        for attempt in 0..50 {
            let name = format!("{snapshots}-{attempt}");
            let terms = Terms {
                depth: 5,
                updates: Updates::None,
                ..Terms::default()
            };
            self.judge.subscribed(name.as_bytes(), &["*"], terms);
            self.request(&name, 0, "*", "");
            let books = self.symbols(id);
            while self.symbols(&name).len() < books.len() {
                self.first_snapshot(&name);
            }
            self.settle();
            let same = |symbol: &Vec<u8>| {
                let of = |id: &str| self.judge.book(id.as_bytes(), symbol).unwrap();
                let sides = |id: &str| Side::BOTH.map(|side| of(id).levels(side).to_vec());
                sides(id) == sides(&name)
            };
            assert!(!books.is_empty());
            if books.iter().all(same) {
                assert!(self.judge.counts().changes > 0);
                return;
            }
        }
        panic!(
            "{:?}: the books are not those of the snapshots",
            self.version
        );
    }

    fn symbols(&self, id: &str) -> Vec<Vec<u8>> {
        self.judge
            .symbols(id.as_bytes())
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// Checks each refusal with its reason, and fields that are missing or wrong.
    pub(super) fn is_refused(&mut self) {
        self.request("unknown", 0, "NOWHERE", "");
        self.refused("unknown", Some(0));
        self.request("r1", 1, "*", "265=1|");
        self.refused("r1", Some(1));
        self.request("kind", 7, "*", "");
        self.refused("kind", Some(4));
        self.send("35=V|262=deep|263=0|264=100000|267=1|269=0|146=1|55=*|");
        self.refused("deep", Some(5));
        self.request("update", 1, "*", "265=7|");
        self.refused("update", Some(6));
        self.send("35=V|262=orders|263=0|264=0|266=N|267=1|269=0|146=1|55=*|");
        self.refused("orders", Some(7));
        self.send("35=V|262=entry|263=0|264=5|267=1|269=~|146=1|55=*|");
        self.refused("entry", Some(8));
        self.request("nothing", 2, "*", "");
        self.refused("nothing", None);
        self.send("35=V|262=hole|263=0|267=1|269=0|146=1|55=*|");
        self.rejected("3", &["|371=264|", "|373=1|"]);
        self.send("35=D|11=1|21=1|55=RIU3|54=1|60=20261123-10:00:00|38=1|40=1|");
        self.rejected("j", &["|372=D|", "|380=3|"]);
    }

    /// Checks that an instrument beyond the rights of the session's user is denied.
    pub(super) fn is_denied(&mut self) {
        let denied = "55=[N/A]|48=37088000|22=8|";
        self.send(&format!(
            "35=V|262=denied|263=0|264=5|267=1|269=0|146=1|{denied}"
        ));
        self.refused("denied", Some(3));
        assert_eq!(self.judge.counts().snapshots, 0);
    }

    fn rejected(&mut self, kind: &str, fields: &[&str]) {
        let kind = format!("|35={kind}|");
        let line = self.wait(&kind, |line| line.contains(&kind));
        for field in fields {
            assert!(line.contains(field), "{field}: {line}");
        }
    }

    fn answered(&mut self, kind: &str, fields: &[&str]) -> String {
        let kind = format!("|35={kind}|");
        let fits = |line: &str| fields.iter().all(|field| line.contains(field));
        self.wait(&kind, |line| line.contains(&kind) && fits(line))
    }

    /// Returns the fields that name an instrument without a symbol in the feed.
    fn an_instrument(&self) -> (String, String) {
        let name = self.symbols("r1").into_iter().min().unwrap();
        let name = String::from_utf8(name).unwrap();
        (format!("55=[N/A]|48={name}|22=8|"), format!("|48={name}|"))
    }

    /// Requests the list of instruments, and the definition of one.
    pub(super) fn asks_for_definitions(&mut self) {
        let (named, id) = self.an_instrument();
        if self.version.short() == "42" {
            self.send("35=x|320=l1|559=4|");
            self.rejected("3", &["|373=11|"]);
        } else {
            self.send("35=x|320=l1|559=4|");
            self.answered("y", &["|320=l1|", "|560=0|", &id]);
            self.send("35=x|320=l2|559=0|55=NOWHERE|");
            self.answered("y", &["|320=l2|", "|560=2|"]);
        }
        self.send(&format!("35=c|320=d1|321=0|{named}"));
        self.answered("d", &["|320=d1|", &id]);
    }

    /// Requests trading statuses, of an instrument and of a session.
    pub(super) fn asks_for_statuses(&mut self) {
        let (named, id) = self.an_instrument();
        self.send(&format!("35=e|324=s1|{named}263=0|"));
        self.answered("f", &["|324=s1|", &id]);
        self.send("35=g|335=t1|263=0|");
        self.answered("h", &["|335=t1|"]);
    }

    /// Checks that no message of an ended subscription follows a response.
    pub(super) fn hears_nothing(mut self) {
        let before = *self.judge.counts();
        self.settle();
        let after = *self.judge.counts();
        let market = |counts: &subscriber::Counts| (counts.snapshots, counts.changes);
        assert_eq!(market(&before), market(&after), "{:?}", self.version);
        self.party.tell("logout");
        self.party
            .wait("logout", |line| line.starts_with("logout"))
            .unwrap();
        self.party.end();
    }
}
