//! Runs `scripts.txt`, numbered as in the FIX session test cases, against `fix acceptor --echo`.
//!
//! `## NAME` begins a script; `[FROM-TO]` before a name or step limits it to these versions.
//!
//! | step | meaning |
//! |---|---|
//! | `connect`, `second` | opens a connection; a second one, which the next steps use |
//! | `first` | back to the first connection |
//! | `logon` | connects and exchanges Logons with number 1, HeartBtInt 30 |
//! | `I TYPE SEQ FIELDS` | sends this; 49, 52, 56 are added; `49=X` replaces, `-49` omits |
//! | `raw FIELDS` | sends exactly this |
//! | `other TYPE SEQ FIELDS` | as `I`, with another version's BeginString |
//! | `E TYPE SEQ FIELDS` | the next message has these fields in this order, `*` for any value |
//! | `closed` | the server closes without another byte |
//! | `drop` | closes from the client's side |
//!
//! `{order}` is the body of an order, `{60}` TransactTime(60) if orders have it, `{now}` the
//! current time, `{old}` one outside of the tolerance.

use crate::server::{Peer, Server};
use fanfare_peers::fix::{check_sum, framed};
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

const VERSIONS: [&str; 6] = [
    "FIX.4.0", "FIX.4.1", "FIX.4.2", "FIX.4.3", "FIX.4.4", "FIXT.1.1",
];

#[test]
fn session_test_cases_in_every_version() {
    let mut settings = String::from(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\nSocketAcceptPort=0\n\
         SenderCompID=ISLD\nTargetCompID=TW\nStartTime=00:00:00\nEndTime=00:00:00\n\
         ResetOnDisconnect=Y\nDefaultApplVerID=FIX.5.0SP2\n",
    );
    for version in VERSIONS {
        write!(settings, "[SESSION]\nBeginString={version}\n").unwrap();
    }
    let server = Server::start("conformance", &settings);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let address = server.address;
        let start = |version| scope.spawn(move || all_scripts(version, address));
        let runs: Vec<_> = (0..VERSIONS.len()).map(start).collect();
        let ended = runs.into_iter().map(|run| run.join().unwrap());
        ended.flatten().collect()
    });
    let count = failures.len();
    assert!(count == 0, "{count} failed:\n{}", failures.join("\n"));
}

/// Runs all scripts. Returns the failures.
fn all_scripts(version: usize, server: SocketAddr) -> Vec<String> {
    let scripts: Vec<_> = include_str!("scripts.txt").split("\n## ").skip(1).collect();
    assert!(scripts.len() >= 30, "scripts are missing");
    let mut failures = Vec::new();
    for script in scripts {
        let (name, steps) = script.split_once('\n').unwrap();
        if for_version(name, version).is_none() {
            continue;
        }
        let mut run = Script::new(version, server);
        for step in steps.lines().map(str::trim) {
            let step = for_version(step, version).filter(|step| !step.is_empty());
            let done = step.map_or(Ok(()), |step| run.step(step));
            if let Err(why) = done {
                failures.push(format!("{}, {name}, {step:?}: {why}", VERSIONS[version]));
                break;
            }
        }
    }
    failures
}

/// Returns the line without its `[FROM-TO]`, if it is for this version.
fn for_version(line: &str, version: usize) -> Option<&str> {
    let Some((range, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) else {
        return Some(line);
    };
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |name: &str| {
        let known = VERSIONS.iter().position(|known| known.ends_with(name));
        known.unwrap_or_else(|| panic!("{name} is no version"))
    };
    (number(from)..=number(to))
        .contains(&version)
        .then(|| rest.trim())
}

struct Script {
    version: usize,
    server: SocketAddr,
    peers: Vec<Peer>,
    active: usize,
    now: String,
    old: String,
}

impl Script {
    fn new(version: usize, server: SocketAddr) -> Self {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Self {
            version,
            server,
            peers: Vec::new(),
            active: 0,
            now: time(seconds.as_secs()),
            old: time(seconds.as_secs() - 3600),
        }
    }

    fn step(&mut self, step: &str) -> Result<(), String> {
        let step = self.filled(step);
        let (word, rest) = step.split_once(' ').unwrap_or((&step, ""));
        match word {
            "connect" | "second" => {
                self.peers.push(Peer::connect(self.server));
                self.active = self.peers.len() - 1;
                Ok(())
            }
            "first" => {
                self.active = 0;
                Ok(())
            }
            "logon" => {
                let appl = if self.version == 5 { "1137=9|" } else { "" };
                self.step("connect")?;
                self.step(&format!("I A 1 98=0|108=30|{appl}"))?;
                self.step(&format!("E A 1 98=0|108=30|{appl}"))
            }
            "I" => {
                let message = framed(VERSIONS[self.version], &self.fields(rest));
                self.peer().send(&message)
            }
            "other" => {
                let version = (self.version + 1) % VERSIONS.len();
                let message = framed(VERSIONS[version], &self.fields(rest));
                self.peer().send(&message)
            }
            "raw" => self.peer().send(rest),
            "E" => {
                let message = self.peer().receive()?.ok_or("closed")?;
                self.compare(&message, rest)
            }
            "closed" => match self.peer().receive()? {
                Some(message) => Err(format!("{message} came")),
                None => Ok(()),
            },
            "drop" => {
                self.peers.remove(self.active);
                Ok(())
            }
            _ => panic!("{step} is no step"),
        }
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.peers[self.active]
    }

    fn filled(&self, step: &str) -> String {
        let time = match self.version {
            0 | 1 => String::new(),
            _ => format!("60={}|", self.now),
        };
        // OrderQty(38) is an integer up to FIX.4.1.
        let quantity = if self.version < 2 {
            "002000"
        } else {
            "002000.00"
        };
        let order = format!("11=ID|21=3|38={quantity}|40=1|54=1|55=INTC|{{60}}");
        step.replace("{order}", &order)
            .replace("{60}", &time)
            .replace("{now}", &self.now)
            .replace("{old}", &self.old)
    }

    /// Returns `TYPE SEQ FIELDS` with the rest of the header.
    fn fields(&self, text: &str) -> String {
        let mut parts = text.splitn(3, ' ');
        let (msg_type, seq) = (parts.next().unwrap(), parts.next().unwrap());
        let rest = parts.next().unwrap_or_default();
        let mut header = vec![
            format!("35={msg_type}"),
            format!("34={seq}"),
            "49=TW".to_owned(),
            format!("52={}", self.now),
            "56=ISLD".to_owned(),
        ];
        let mut body = String::new();
        for field in rest.split_terminator('|') {
            let tag = field.trim_start_matches('-').split('=').next().unwrap();
            let same = |known: &String| known.split('=').next() == Some(tag);
            match header.iter().position(same) {
                Some(at) if field.starts_with('-') => drop(header.remove(at)),
                Some(at) => header[at] = field.to_owned(),
                None => write!(body, "{field}|").unwrap(),
            }
        }
        header.join("|") + "|" + &body
    }

    fn compare(&self, message: &str, expected: &str) -> Result<(), String> {
        let mut parts = expected.splitn(3, ' ');
        let (msg_type, seq) = (parts.next().unwrap(), parts.next().unwrap());
        let rest = parts.next().unwrap_or_default();
        let version = VERSIONS[self.version];
        let (front, sum) = message.split_at(message.len() - 7);
        if sum != format!("10={:03}|", check_sum(front)) {
            return Err(format!("wrong CheckSum: {message}"));
        }
        let behind = front.splitn(3, '|').nth(2).unwrap_or_default();
        let start = format!("8={version}|9={}|35={msg_type}|34={seq}|", behind.len());
        let fields = message
            .strip_prefix(&start)
            .ok_or_else(|| format!("{message} came, not {start}"))?;
        let fields = fields.strip_suffix(sum).unwrap_or_default();
        let digits = if self.version < 2 { 17 } else { 21 };
        let mut header_tag = 34;
        let mut others = Vec::new();
        for field in fields.split_terminator('|') {
            let (tag, value) = field.split_once('=').unwrap_or_default();
            match tag {
                "49" if value == "ISLD" => {}
                "56" if value == "TW" => {}
                "52" if value.len() == digits => {}
                _ => others.push(field),
            }
            if matches!(tag, "43" | "49" | "52" | "56" | "97" | "122") {
                let number: u32 = tag.parse().unwrap();
                if number <= header_tag {
                    return Err(format!("header not in order: {message}"));
                }
                header_tag = number;
            }
        }
        let wanted: Vec<_> = rest.split_terminator('|').collect();
        let same = |(wanted, got): (&&str, &&str)| match wanted.strip_suffix('*') {
            Some(front) => got.starts_with(front),
            None => wanted == got,
        };
        if wanted.len() == others.len() && wanted.iter().zip(&others).all(same) {
            return Ok(());
        }
        Err(format!("{message} came"))
    }
}

/// Formats `YYYYMMDD-HH:MM:SS`, by the calendar of the days since 1970.
fn time(seconds: u64) -> String {
    let time = fanfare_wire::UtcTimestamp::from_nanos(seconds as i64 * 1_000_000_000);
    time.text(fanfare_wire::Precision::Seconds).to_string()
}
