//! Runs the conformance scripts in `scripts/`, numbered as in the FIX session test cases, each in
//! all versions it is for.
//!
//! One step a line; `#` begins a comment, `[4.0-4.1]` in front limits a step to these versions.
//!
//! | step | meaning |
//! |---|---|
//! | `acceptor` `initiator` | what the session under test is; `store none`, `config KEY VALUE` |
//! | `versions FROM-TO` | versions the script is for; all without it |
//! | `connect` `drop` `close` | a connection begins, is lost, is closed by the application |
//! | `restart` | another process goes on with the same store |
//! | `logon` | connect and exchange Logons with number 1 on both sides, HeartBtInt 30 |
//! | `I FIELDS` | the counterparty sends this; the frame, 49, 52, 56 are added, not with `-56` |
//! | `raw TEXT` | the counterparty sends exactly this |
//! | `E FIELDS` | the next message of ours has these fields, in this order; `*` is any value |
//! | `none` | we have sent nothing more |
//! | `app TYPE SEQ [dup] [resend]` | the application has got this message |
//! | `event TEXT` | this happened: an event's Debug text begins so |
//! | `closed TEXT` | the session has ended, with this reason |
//! | `wait SECONDS` | time passes |
//! | `jump SECONDS` | the wall clock is set forward or back |
//! | `send TYPE FIELDS` `logout TEXT` `reset` `accept` `refuse TEXT` | what our application does |
//! | `unsent TYPE FIELDS` | what our application may not send now |
//! | `numbers IN OUT` | numbers expected next, sent next |
//! | `next_sender NUMBER` | our next message has this number |
//!
//! `{now}`, `{now-200}` are times; `{all}` is EndSeqNo for "all"; `{1137}` is DefaultApplVerID
//! where the version has it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use fanfare_fix::dict::{self, DictionaryValidator};
use fanfare_fix::session::{
    Config, Event, FixedOffset, Limits, MemoryStore, MessageStore, Now, SECOND, Schedule, Scratch,
    Session, SessionId, State, TimeOfDay, Version, Window,
};
use fanfare_wire::UtcTimestamp;

use crate::fields::{first_message, framed, shown, split};

#[test]
fn conformance_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session/scripts");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of scripts")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    names.sort();
    assert!(names.len() >= 20, "scripts are missing");
    let mut failures = Vec::new();
    for path in names {
        let text = std::fs::read_to_string(&path).expect("a script");
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for version in Version::ALL {
            if let Err(failure) = run(&text, version) {
                failures.push(format!("{name}, {version}, {failure}"));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

fn run(text: &str, version: Version) -> Result<(), String> {
    let mut runner = Runner::new(version);
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(line) = for_version(line, version) else {
            continue;
        };
        if line.is_empty() {
            continue;
        }
        let in_line = |error| format!("line {}: {line}: {error}", at + 1);
        match runner.step(line).map_err(in_line)? {
            Flow::GoOn => {}
            Flow::NotForThis => return Ok(()),
        }
    }
    runner
        .finish()
        .map_err(|error| format!("at the end: {error}"))
}

/// The step without its `[FROM-TO]`, if it is for this version.
fn for_version(line: &str, version: Version) -> Option<&str> {
    let Some(rest) = line.strip_prefix('[') else {
        return Some(line);
    };
    let (range, step) = rest.split_once(']').expect("a closing bracket");
    in_range(range, version).then(|| step.trim())
}

fn in_range(range: &str, version: Version) -> bool {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let named = |name: &str, default| match name {
        "" => default,
        "T" => Version::Fixt11,
        number => Version::parse(format!("FIX.{number}").as_bytes()).expect("a version"),
    };
    (named(from, Version::Fix40)..=named(to, Version::Fixt11)).contains(&version)
}

enum Flow {
    GoOn,
    NotForThis,
}

/// What the application has seen.
#[derive(Debug)]
enum Seen {
    App(String),
    Closed(String),
    Other(String),
}

struct Runner {
    version: Version,
    config: Config,
    acceptor: bool,
    keep: bool,
    session: Option<Session<MemoryStore>>,
    scratch: Scratch,
    now: Now,
    out: Vec<u8>,
    seen: VecDeque<Seen>,
}

impl Runner {
    fn new(version: Version) -> Self {
        // 2026-11-20T10:00:00Z, and a monotonic clock that began some time before.
        let utc = UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64);
        Self {
            version,
            config: Config::new(SessionId::new(version, "US", "PEER")),
            acceptor: true,
            keep: true,
            session: None,
            scratch: Scratch::default(),
            now: Now {
                mono: 5_000 * SECOND,
                utc,
            },
            out: Vec::new(),
            seen: VecDeque::new(),
        }
    }

    fn session(&mut self) -> &mut Session<MemoryStore> {
        let store: fn(bool) -> MemoryStore = |keep| match keep {
            true => MemoryStore::default(),
            false => MemoryStore::without_resends(256 << 10),
        };
        let (acceptor, config, keep) = (self.acceptor, &self.config, self.keep);
        let made = || new_session(acceptor, config, store(keep));
        self.session.get_or_insert_with(made)
    }

    fn restart(&mut self) {
        let stopped = self.session.take();
        let store = stopped.map(Session::into_store);
        self.session = store.map(|store| new_session(self.acceptor, &self.config, store));
    }

    fn step(&mut self, line: &str) -> Result<Flow, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let now = self.now;
        match word {
            "versions" if !in_range(rest, self.version) => return Ok(Flow::NotForThis),
            "versions" => {}
            "acceptor" => self.acceptor = true,
            "initiator" => self.acceptor = false,
            "store" => self.keep = rest != "none",
            "config" => self.configure(rest)?,
            "connect" => self.session().connected(now),
            "drop" => {
                self.out.clear();
                self.session().disconnected(now);
            }
            "close" => self.session().close(now),
            "restart" => self.restart(),
            "logon" => self.logon()?,
            "I" => self.receive(&self.inbound(rest)),
            "raw" => self.receive(rest.replace('|', "\x01").as_bytes()),
            "E" => self.expect_message(rest)?,
            "none" => self.expect_none()?,
            "app" => self.expect_app(rest)?,
            "event" => self.expect_event(rest)?,
            "closed" => self.expect_closed(rest)?,
            "wait" => self.wait(rest)?,
            "jump" => self.jump(rest)?,
            "send" => self.send(rest)?,
            "unsent" => {
                if self.send(rest).is_ok() {
                    return Err("it was sent".to_owned());
                }
            }
            "logout" => self.session().logout(now, rest),
            "reset" => {
                let reset = self.session().reset_sequence(now);
                reset.map_err(|error| error.to_string())?;
            }
            "accept" => self.session().accept_logon(now),
            "refuse" => self.session().refuse_logon(now, rest),
            "numbers" => self.expect_numbers(rest)?,
            "next_sender" => self.set_next_sender(rest)?,
            _ => return Err("unknown step".to_owned()),
        }
        self.collect();
        Ok(Flow::GoOn)
    }

    fn configure(&mut self, rest: &str) -> Result<(), String> {
        let (key, value) = rest.split_once(' ').unwrap_or((rest, "Y"));
        let flag = value == "Y";
        let number = value.parse::<u64>();
        let config = &mut self.config;
        match (key, number) {
            ("dictionary", _) => config.validator = Some(dictionary(self.version)),
            ("hours", _) => config.schedule = Some(hours(value)),
            ("logon_hours", _) => config.logon_schedule = Some(hours(value)),
            ("ask_logon", _) => config.ask_logon = flag,
            ("bare_logon", _) => config.bare_logon = flag,
            ("check_comp_id", _) => config.check_comp_id = flag,
            ("check_latency", _) => config.check_latency = flag,
            ("mirror_appl_ver_id", _) => config.mirror_appl_ver_id = flag,
            ("logout_on_silence", _) => config.logout_on_silence = flag,
            ("requires_orig_sending_time", _) => config.requires_orig_sending_time = flag,
            ("closed_resend_interval", _) => config.closed_resend_interval = flag,
            ("next_expected", _) => config.next_expected = flag,
            ("last_processed", _) => config.last_processed = flag,
            ("queue_offline", _) => config.queue_offline = flag,
            ("reset_on_logon", _) => config.reset_on_logon = flag,
            ("reset_on_logout", _) => config.reset_on_logout = flag,
            ("reset_on_disconnect", _) => config.reset_on_disconnect = flag,
            ("max_test_req_id", Ok(n)) => config.max_test_req_id = n as usize,
            ("max_header_field", Ok(n)) => config.max_header_field = n as usize,
            ("max_latency", Ok(n)) => config.max_latency = n * SECOND,
            ("repeated_resend_limit", Ok(n)) => config.repeated_resend_limit = n as u32,
            ("resend_request_chunk", Ok(n)) => config.resend_request_chunk = n,
            ("resend_request_timeout", Ok(n)) => config.resend_request_timeout = n * SECOND,
            ("resend_chunk", Ok(n)) => {
                config.resend_chunk = Limits {
                    messages: n as usize,
                    bytes: 1 << 20,
                };
            }
            ("gap_queue", Ok(n)) => {
                config.gap_queue = Limits {
                    messages: n as usize,
                    bytes: 1 << 20,
                };
            }
            ("heart_bt_int_most", Ok(n)) => config.heart_bt_int_range = (1, n as u32),
            ("header", _) => config.header_fields = extra(value),
            ("logon", _) => config.logon_fields = extra(value),
            _ => return Err("unknown key".to_owned()),
        }
        Ok(())
    }

    fn logon(&mut self) -> Result<(), String> {
        let logon = "35=A|34=1|98=0|108=30|{1137}";
        let now = self.now;
        self.session().connected(now);
        self.collect();
        if self.acceptor {
            self.receive(&self.inbound(logon));
            self.collect();
            self.expect_message(logon)?;
        } else {
            self.expect_message(logon)?;
            self.receive(&self.inbound(logon));
        }
        self.expect_event("LoggedOn")
    }

    /// A message of the counterparty.
    fn inbound(&self, fields: &str) -> Vec<u8> {
        let fields = self.filled(fields);
        let mut given: Vec<&str> = fields
            .split('|')
            .filter(|field| !field.is_empty())
            .collect();
        let now = self.time(0);
        let defaults = [
            "49=PEER".to_owned(),
            format!("52={now}"),
            "56=US".to_owned(),
        ];
        let absent: Vec<&str> = defaults
            .iter()
            .map(String::as_str)
            .filter(|field| {
                let tag = &field[..2];
                !given
                    .iter()
                    .any(|g| g.starts_with(&format!("{tag}=")) || *g == format!("-{tag}"))
            })
            .collect();
        given.retain(|field| !field.starts_with('-') || field.contains('='));
        let at = given
            .iter()
            .position(|field| field.starts_with("34="))
            .map_or(1, |at| at + 1);
        given.splice(at..at, absent);
        let begin_string = match given[0].strip_prefix("8=") {
            Some(other) => {
                given.remove(0);
                other
            }
            None => self.version.begin_string(),
        };
        framed(begin_string, &given.join("|"))
    }

    fn filled(&self, fields: &str) -> String {
        let (all, appl_ver) = match self.version {
            Version::Fix40 | Version::Fix41 => ("999999", ""),
            Version::Fixt11 => ("0", "1137=9"),
            _ => ("0", ""),
        };
        let mut text = fields.replace("{all}", all).replace("{1137}", appl_ver);
        while let Some((before, rest)) = text.split_once("{now") {
            let (offset, after) = rest.split_once('}').expect("a closing brace");
            let time = self.time(offset.parse().unwrap_or(0));
            text = format!("{before}{time}{after}");
        }
        text
    }

    /// A time some seconds from now.
    fn time(&self, offset: i64) -> String {
        let utc = self.now.utc.nanos() + offset * SECOND as i64;
        let time = UtcTimestamp::from_nanos(utc);
        time.text(self.version.precision()).to_string()
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session();
        let Some(session) = &mut self.session else {
            return;
        };
        let mut at = 0;
        loop {
            let step = session.handle_bytes(self.now, &mut self.scratch, &bytes[at..]);
            at += step.consumed;
            match step.event {
                Some(event) => self.seen.push_back(seen(&event)),
                None if step.consumed == 0 => break,
                None => {}
            }
        }
    }

    /// Takes what the session has to say, and looks at the rules that every output keeps.
    fn collect(&mut self) {
        let now = self.now;
        if self.session.is_none() {
            return;
        }
        self.receive(b"");
        let session = self.session();
        let mut out = Vec::new();
        loop {
            while !session.poll_transmit().is_empty() {
                out.extend_from_slice(session.poll_transmit());
                let len = session.poll_transmit().len();
                session.transmitted(len);
            }
            // A part of a resend is due when the one before is out; nothing else waits for that.
            if session.poll_timeout() != Some(0) {
                break;
            }
            session.handle_timeout(now);
        }
        let mut events = Vec::new();
        while let Some(event) = session.poll_event() {
            events.push(seen(&event));
        }
        self.seen.extend(events);
        self.out.extend(out);
    }

    fn wait(&mut self, seconds: &str) -> Result<(), String> {
        let seconds: f64 = seconds.parse().map_err(|_| "not a number")?;
        let end = self.now.mono + (seconds * SECOND as f64) as u64;
        while self.now.mono < end {
            let due = self
                .session()
                .poll_timeout()
                .unwrap_or(u64::MAX)
                .clamp(self.now.mono, end);
            self.pass(due - self.now.mono);
            let now = self.now;
            let before = self.session().poll_timeout();
            self.session().handle_timeout(now);
            self.collect();
            if due < end && self.session().poll_timeout() == before {
                return Err(format!("due at {due}, but nothing was done"));
            }
        }
        Ok(())
    }

    fn jump(&mut self, seconds: &str) -> Result<(), String> {
        let seconds: i64 = seconds.parse().map_err(|_| "not a number")?;
        let utc = self.now.utc.nanos() + seconds * SECOND as i64;
        self.now.utc = UtcTimestamp::from_nanos(utc);
        let now = self.now;
        self.session().handle_timeout(now);
        Ok(())
    }

    fn pass(&mut self, nanos: u64) {
        let utc = self.now.utc.nanos() + nanos as i64;
        self.now = Now {
            mono: self.now.mono + nanos,
            utc: UtcTimestamp::from_nanos(utc),
        };
    }

    fn expect_message(&mut self, expected: &str) -> Result<(), String> {
        let Some((message, rest)) = first_message(&self.out) else {
            return Err(format!("nothing was sent; seen: {:?}", self.seen));
        };
        let (message, rest) = (message.to_vec(), rest.to_vec());
        self.out = rest;
        let text = shown(&message);
        let fields = split(&message);
        let begin_string = fields[0].1.clone();
        let plain: Vec<_> = fields[2..]
            .iter()
            .map(|(t, v)| format!("{t}={v}"))
            .collect();
        if framed(&begin_string, &plain[..plain.len() - 1].join("|")) != message {
            return Err(format!("wrong frame: {text}"));
        }
        if begin_string != self.version.begin_string() {
            return Err(format!("wrong BeginString: {text}"));
        }
        let expected = self.filled(expected);
        let expected: Vec<_> = expected
            .split('|')
            .filter(|field| !field.is_empty())
            .collect();
        let mentions = |tag: u32| expected.iter().any(|f| f.starts_with(&format!("{tag}=")));
        let actual: Vec<_> = plain[..plain.len() - 1]
            .iter()
            .filter(|field| {
                let usual = match split(field.as_bytes())[0].0 {
                    49 => *field == "49=US" && !mentions(49),
                    56 => *field == "56=PEER" && !mentions(56),
                    52 => field.len() == 3 + self.time(0).len() && !mentions(52),
                    _ => false,
                };
                !usual
            })
            .collect();
        let same = actual.len() == expected.len()
            && actual.iter().zip(&expected).all(|(actual, expected)| {
                expected
                    .strip_suffix('*')
                    .is_some_and(|start| actual.starts_with(start))
                    || actual.as_str() == *expected
            });
        if same {
            Ok(())
        } else {
            Err(format!("sent was {text}"))
        }
    }

    fn expect_none(&self) -> Result<(), String> {
        match self.out.is_empty() {
            true => Ok(()),
            false => Err(format!("sent was {}", shown(&self.out))),
        }
    }

    fn expect_app(&mut self, expected: &str) -> Result<(), String> {
        self.skip_others();
        match self.seen.pop_front() {
            Some(Seen::App(text)) if text == expected => Ok(()),
            other => Err(format!("seen was {other:?}")),
        }
    }

    fn expect_event(&mut self, expected: &str) -> Result<(), String> {
        while let Some(Seen::Other(text)) = self.seen.pop_front() {
            if text.starts_with(expected) {
                return Ok(());
            }
        }
        Err("did not happen".to_owned())
    }

    fn expect_closed(&mut self, expected: &str) -> Result<(), String> {
        self.skip_others();
        match self.seen.pop_front() {
            Some(Seen::Closed(text)) if text.starts_with(expected) => {}
            other => return Err(format!("seen was {other:?}")),
        }
        self.expect_none()?;
        match self.session().state() {
            State::Ended | State::Idle => Ok(()),
            other => Err(format!("state is {other:?}")),
        }
    }

    fn skip_others(&mut self) {
        while let Some(Seen::Other(_)) = self.seen.front() {
            self.seen.pop_front();
        }
    }

    fn send(&mut self, rest: &str) -> Result<(), String> {
        let (msg_type, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        let fields = self.filled(fields);
        let now = self.now;
        let fields = split(fields.trim_end_matches('|').replace('|', "\x01").as_bytes());
        let sent = self.session().send(now, msg_type.as_bytes(), |body| {
            for (tag, value) in &fields {
                body.str(*tag, value);
            }
        });
        sent.map(|_| ()).map_err(|error| error.to_string())
    }

    fn expect_numbers(&mut self, expected: &str) -> Result<(), String> {
        let store = self.session().store();
        let actual = format!("{} {}", store.next_target(), store.next_sender());
        if actual == expected {
            Ok(())
        } else {
            Err(format!("they are {actual}"))
        }
    }

    fn set_next_sender(&mut self, rest: &str) -> Result<(), String> {
        let seq = rest.parse().map_err(|_| "not a number")?;
        let now = self.now;
        let changed = self.session().change_next_sender(now, seq);
        changed.map_err(|error| error.to_string())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.expect_none()?;
        self.skip_others();
        match self.seen.front() {
            None => Ok(()),
            Some(seen) => Err(format!("also seen: {seen:?}")),
        }
    }
}

/// The built-in dictionary that goes with a version.
fn dictionary(version: Version) -> Arc<DictionaryValidator> {
    let dictionary = match version {
        Version::Fix40 => dict::Version::Fix40,
        Version::Fix41 => dict::Version::Fix41,
        Version::Fix42 => dict::Version::Fix42,
        Version::Fix43 => dict::Version::Fix43,
        Version::Fix44 => dict::Version::Fix44,
        Version::Fixt11 => dict::Version::Fix50Sp2,
    };
    let switches = dict::Switches::default();
    Arc::new(DictionaryValidator::built_in(dictionary, switches).expect("the built-in tables"))
}

fn new_session(acceptor: bool, config: &Config, store: MemoryStore) -> Session<MemoryStore> {
    match acceptor {
        true => Session::acceptor(config.clone(), store),
        false => Session::initiator(config.clone(), store),
    }
}

/// A daily schedule, `HH:MM:SS-HH:MM:SS` UTC.
fn hours(text: &str) -> Arc<Schedule> {
    let (start, end) = text.split_once('-').expect("two times");
    let time = |text| TimeOfDay::parse(text).expect("a time");
    let window = Window::daily(time(start), time(end));
    Arc::new(Schedule::new(vec![window], Arc::new(FixedOffset(0))).expect("a window"))
}

fn extra(value: &str) -> Vec<(u32, Box<[u8]>)> {
    let fields = split(value.trim_end_matches('|').replace('|', "\x01").as_bytes());
    fields
        .into_iter()
        .map(|(tag, value)| (tag, value.into_bytes().into()))
        .collect()
}

fn seen(event: &Event<'_>) -> Seen {
    match event {
        Event::App(app) => {
            let msg_type = String::from_utf8_lossy(app.message.msg_type()).into_owned();
            let mut text = format!("{msg_type} {}", app.seq);
            for (flag, name) in [(app.poss_dup, " dup"), (app.poss_resend, " resend")] {
                if flag {
                    text.push_str(name);
                }
            }
            Seen::App(text)
        }
        Event::Disconnect(reason) => Seen::Closed(format!("{reason:?}")),
        other => Seen::Other(format!("{other:?}")),
    }
}
