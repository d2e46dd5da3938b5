//! Sends `differential.txt` to QuickFIX C++ and to `fix acceptor --echo`, in every version. Their
//! responses have to be the same, field by field, except for times. An intended difference is
//! stated in the script with its reason, and then has to occur.
//!
//! `## NAME` begins a script; `[FROM-TO]` before a name or step limits it to these versions.
//!
//! | step | meaning |
//! |---|---|
//! | `each A ~ B ~ C` | runs the script once with each of them for `{x}` |
//! | `differs WHY` | the responses differ at least once, for this reason |
//! | `connect`, `second` | opens a connection; a second one, which the next steps use |
//! | `first` | back to the first connection |
//! | `logon FIELDS` | connects and logs on with number 1, HeartBtInt 30 and these fields |
//! | `I TYPE SEQ FIELDS` | sends this; 49, 52, 56 are added; `49=X` replaces, `-49` omits |
//! | `as BEGINSTRING TYPE SEQ FIELDS` | the same with another BeginString |
//! | `msg FIELDS` | sends exactly these fields in a correct frame |
//! | `raw TEXT` | sends exactly this |
//! | `closed` | reads until the server has closed |
//!
//! `{order}` is the body of an order, `{60}` TransactTime(60) if orders have it, `{appl}`
//! DefaultApplVerID(1137) if Logons have it, `{id}` the client's CompID, `{now}` the current time,
//! `{old}` one outside of the tolerance. At the end each connection is logged out, so that the
//! messages of both servers are complete.

use crate::common::receive;
use crate::engines::{Engine, Engines, VERSIONS, Version, acceptor_settings};
use fanfare_peers::fix::framed;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[test]
fn quickfix_and_we_answer_the_same() {
    let Some(engines) = Engines::find() else {
        return;
    };
    let scripts = scripts();
    let runs = std::thread::scope(|scope| {
        let start = |version| {
            let (engines, scripts) = (&engines, &scripts);
            scope.spawn(move || run(engines, version, scripts))
        };
        let started: Vec<_> = (0..VERSIONS.len()).map(start).collect();
        let ended = started.into_iter().map(|run| run.join().unwrap());
        ended.flatten().collect::<Vec<_>>()
    });
    let mut differed = BTreeMap::new();
    let mut failures = String::new();
    for (script, difference) in runs {
        match (script.reason, difference) {
            (None, Some(difference)) => failures += &difference,
            (None, None) => {}
            (Some(_), difference) => {
                *differed.entry(script.family).or_insert(false) |= difference.is_some();
            }
        }
    }
    for (name, _) in differed.iter().filter(|(_, differs)| !**differs) {
        writeln!(failures, "{name}: no longer differs").unwrap();
    }
    assert!(failures.is_empty(), "{failures}");
}

struct Script {
    /// The name in the file.
    family: &'static str,
    name: String,
    steps: Vec<String>,
    reason: Option<&'static str>,
}

fn scripts() -> Vec<Script> {
    let mut scripts = Vec::new();
    for text in include_str!("differential.txt").split("\n## ").skip(1) {
        let (family, steps) = text.split_once('\n').unwrap();
        let mut each = vec![""];
        let mut reason = None;
        let mut own = Vec::new();
        for step in steps.lines().map(str::trim_start).filter(|s| !s.is_empty()) {
            match step.split_once(' ') {
                Some(("each", all)) => each = all.split(" ~ ").collect(),
                Some(("differs", why)) => reason = Some(why),
                _ => own.push(step),
            }
        }
        scripts.extend(each.iter().map(|x| Script {
            family,
            name: format!("{family} {x}"),
            steps: own.iter().map(|step| step.replace("{x}", x)).collect(),
            reason,
        }));
    }
    assert!(scripts.len() > 500, "scripts are missing");
    scripts
}

/// Runs all scripts in one version. Returns each with the difference found.
fn run<'a>(
    engines: &Engines,
    version: usize,
    scripts: &'a [Script],
) -> Vec<(&'a Script, Option<String>)> {
    let start = |engine| {
        let name = format!("differential-{engine:?}-{}", VERSIONS[version].short());
        let settings = acceptor_settings()
            + "ResetOnDisconnect=Y\n"
            + &VERSIONS[version].settings(&engines.dictionaries, "ISLD", "TW");
        let mut program = engines.start(engine, "acceptor", &name, &settings);
        let address = program.listens().unwrap();
        (program, address)
    };
    let (_theirs, theirs) = start(Engine::QuickFix);
    let (_ours, ours) = start(Engine::Ours);
    let mut compared = Vec::new();
    for script in scripts {
        if for_version(script.family, version).is_none() {
            continue;
        }
        let mut difference = None;
        // QuickFIX frees a session some time after it has closed the connection.
        for _ in 0..ATTEMPTS {
            let expected = Talk::transcript(theirs, version, &script.steps);
            let got = Talk::transcript(ours, version, &script.steps);
            difference = (expected != got).then(|| report(script, version, &expected, &got));
            if difference.is_none() || script.reason.is_some() {
                break;
            }
        }
        compared.push((script, difference));
    }
    compared
}

const ATTEMPTS: usize = 3;

fn report(script: &Script, version: usize, expected: &[String], got: &[String]) -> String {
    format!(
        "{} in {}\n  QuickFIX: {}\n  ours:     {}\n",
        script.name,
        VERSIONS[version].short(),
        expected.join("\n            "),
        got.join("\n            ")
    )
}

/// Returns the line without its `[FROM-TO]`, if it is for this version.
fn for_version(line: &str, version: usize) -> Option<&str> {
    let Some((range, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) else {
        return Some(line);
    };
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let number = |name: &str| {
        let known = VERSIONS.iter().position(|known| known.short() == name);
        known.unwrap_or_else(|| panic!("{name} is no version"))
    };
    let is_for = (number(from)..=number(to)).contains(&version);
    is_for.then(|| rest.trim_start())
}

/// The counterparty, on plain sockets.
struct Talk {
    version: Version,
    is_old: bool,
    peers: Vec<Peer>,
    active: usize,
    now: String,
    old: String,
}

impl Talk {
    /// Returns the server's messages on each connection.
    fn transcript(address: SocketAddr, version: usize, steps: &[String]) -> Vec<String> {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut talk = Self {
            version: VERSIONS[version],
            is_old: version < 2,
            peers: Vec::new(),
            active: 0,
            now: time(seconds.as_secs()),
            old: time(seconds.as_secs() - 3600),
        };
        for step in steps {
            if let Some(step) = for_version(step, version) {
                talk.step(address, &talk.filled(step));
            }
        }
        talk.log_out();
        let said = talk.peers.into_iter().enumerate();
        said.flat_map(|(i, peer)| peer.said.into_iter().map(move |line| format!("{i} {line}")))
            .collect()
    }

    fn step(&mut self, address: SocketAddr, step: &str) {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        match word {
            "connect" | "second" | "logon" => {
                self.peers.push(Peer::connect(address));
                self.active = self.peers.len() - 1;
                if word == "logon" {
                    self.step(
                        address,
                        &self.filled(&format!("I A 1 98=0|108=30|{{appl}}{rest}")),
                    );
                }
            }
            "first" => self.active = 0,
            "I" => {
                let message = framed(self.version.begin_string, &self.fields(rest));
                self.peer().send(&message);
            }
            "as" => {
                let (begin_string, rest) = rest.split_once(' ').unwrap();
                let message = framed(begin_string, &self.fields(rest));
                self.peer().send(&message);
            }
            "msg" => {
                let message = framed(self.version.begin_string, rest);
                self.peer().send(&message);
            }
            "raw" => self.peer().send(rest),
            "closed" => self.peer().read_to_end(),
            _ => panic!("{step} is no step"),
        }
    }

    fn peer(&mut self) -> &mut Peer {
        &mut self.peers[self.active]
    }

    /// Sends a Logout, which ends a session with any number, and a second one in case the first is
    /// ignored.
    fn log_out(&mut self) {
        for at in (0..self.peers.len()).rev() {
            self.active = at;
            if self.peers[at].is_open {
                for seq in [90, 91] {
                    let message =
                        framed(self.version.begin_string, &self.fields(&format!("5 {seq}")));
                    self.peer().send(&message);
                }
                self.peer().read_to_end();
            }
        }
    }

    fn filled(&self, step: &str) -> String {
        let time = match self.is_old {
            true => String::new(),
            false => format!("60={}|", self.now),
        };
        // OrderQty(38) is an integer up to FIX.4.1.
        let quantity = if self.is_old { "002000" } else { "002000.00" };
        let appl = self.version.application;
        let appl = appl.map_or(String::new(), |(id, ..)| format!("1137={id}|"));
        step.replace(
            "{order}",
            &format!("11=ID|21=3|38={quantity}|40=1|54=1|55=INTC|{{60}}"),
        )
        .replace("{60}", &time)
        .replace("{appl}", &appl)
        .replace("{id}", "TW")
        .replace("{now}", &self.now)
        .replace("{old}", &self.old)
    }

    /// Returns `TYPE SEQ FIELDS` with the rest of the header. `-TAG` omits a field; the first field
    /// with a tag of the header replaces it.
    fn fields(&self, text: &str) -> String {
        let mut parts = text.splitn(3, ' ');
        let (msg_type, seq) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        let rest = parts.next().unwrap_or_default();
        let mut header = vec![
            format!("35={msg_type}"),
            format!("34={seq}"),
            "49=TW".to_owned(),
            format!("52={}", self.now),
            "56=ISLD".to_owned(),
        ];
        let mut replaced = Vec::new();
        let mut body = String::new();
        for field in rest.split_terminator('|') {
            let leaves_out = field.starts_with('-') && !field.contains('=');
            let tag = field.split('=').next().unwrap_or_default();
            let tag = if leaves_out { &tag[1..] } else { tag };
            let same = |known: &String| known.split('=').next() == Some(tag);
            match header
                .iter()
                .position(same)
                .filter(|_| !replaced.contains(&tag))
            {
                Some(at) if leaves_out => drop(header.remove(at)),
                Some(at) => {
                    header[at] = field.to_owned();
                    replaced.push(tag);
                }
                None => write!(body, "{field}|").unwrap(),
            }
        }
        header.join("|") + "|" + &body
    }
}

/// One connection, and the server's messages on it: without BeginString, BodyLength and CheckSum,
/// which are checked, and with the fractions' lengths for times.
struct Peer {
    stream: TcpStream,
    received: Vec<u8>,
    said: Vec<String>,
    is_open: bool,
}

impl Peer {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            received: Vec::new(),
            said: Vec::new(),
            is_open: true,
        }
    }

    /// Sends a text unchanged, except `|` for SOH. QuickFIX processes input that came with the
    /// first message only when more arrives, so the test waits for the response to the first one,
    /// if there is any.
    fn send(&mut self, text: &str) {
        // The server may have closed: its messages are complete then.
        let _ = self.stream.write_all(text.replace('|', "\x01").as_bytes());
        if self.said.is_empty() {
            self.read(Duration::from_millis(150), |said| !said.is_empty());
        }
    }

    fn read_to_end(&mut self) {
        if self.is_open {
            self.read(Duration::from_secs(20), |_| false);
        }
        if self.is_open {
            self.said.push("it does not close".to_owned());
            self.is_open = false;
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn read(&mut self, patience: Duration, enough: impl Fn(&[String]) -> bool) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let mut room = [0; 4096];
        while !enough(&self.said) {
            match receive(&mut self.stream, &mut room) {
                Ok(count @ 1..) => {
                    self.received.extend_from_slice(&room[..count]);
                    self.take_messages();
                }
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    return;
                }
                Ok(_) | Err(_) => {
                    self.said.push("closed".to_owned());
                    self.is_open = false;
                    return;
                }
            }
        }
    }

    fn take_messages(&mut self) {
        loop {
            let text = String::from_utf8_lossy(&self.received).replace('\x01', "|");
            let Some(end) = text
                .find("|10=")
                .map(|at| at + 8)
                .filter(|end| text.len() >= *end)
            else {
                return;
            };
            self.received.drain(..end);
            let (front, sum) = text[..end].split_at(end - 7);
            let fields = front.splitn(3, '|').nth(2).unwrap_or_default();
            let mut shown: Vec<String> = fields.split_terminator('|').map(timeless).collect();
            let begin_string = front.split('|').next().unwrap_or_default();
            if framed(&begin_string[2..], fields) != format!("{front}{sum}") {
                shown.push("wrong length or sum".to_owned());
            }
            self.said.push(shown.join("|"));
        }
    }
}

/// Returns the field with the length of the fraction for a time, if it is one of today's.
fn timeless(field: &str) -> String {
    match field.split_once('=') {
        Some((tag @ ("52" | "60" | "122" | "629"), value)) if value.get(8..9) == Some("-") => {
            format!("{tag}=time.{}", value.len().saturating_sub(17))
        }
        _ => field.to_owned(),
    }
}

/// Formats `YYYYMMDD-HH:MM:SS`.
fn time(seconds: u64) -> String {
    let time = fanfare_wire::UtcTimestamp::from_nanos(seconds as i64 * 1_000_000_000);
    time.text(fanfare_wire::Precision::Seconds).to_string()
}
