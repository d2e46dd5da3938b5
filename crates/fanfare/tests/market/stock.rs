//! The client on the crate `databento` (peers/databento), for tests.

use crate::common::{Folder, Running, eventually, with_program};
use fanfare_peers::{cargo, or_skip};
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

pub(crate) const KEY: &str = "db-0123456789abcdefghijklmnopqrs";

/// `rtype` of records other than market data.
pub(crate) const ERROR: u64 = 0x15;
pub(crate) const MAPPING: u64 = 0x16;
pub(crate) const SYSTEM: u64 = 0x17;

/// Returns the program, built; `None` if it is unavailable.
pub(crate) fn program() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-databento");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/databento");
    let found = cargo(&home, &package, "fanfare-databento");
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// A client that follows commands, and prints to a file.
pub(crate) struct Stock {
    running: Running,
    stdin: Option<ChildStdin>,
    out: PathBuf,
}

impl Stock {
    /// Starts a client that connects and authenticates; `key=…` among the options sets another key.
    pub(crate) fn start(
        (program, folder): (&Path, &Folder),
        name: &str,
        port: &str,
        options: &[&str],
    ) -> Self {
        let out = folder.path().join(format!("{name}.client"));
        let address = format!("127.0.0.1:{port}");
        let key = options
            .iter()
            .find_map(|option| option.strip_prefix("key="));
        let mut command = with_program(Command::new(program), &[&address, key.unwrap_or(KEY)]);
        let command = command.args(options).stdin(Stdio::piped());
        let mut running = Running::start(command.stdout(File::create(&out).unwrap()));
        Self {
            stdin: Some(running.stdin()),
            running,
            out,
        }
    }

    /// Starts a client with these subscriptions, each in the format of the client's own line.
    pub(crate) fn subscribed(
        place: (&Path, &Folder),
        name: &str,
        port: &str,
        options: &[&str],
        subscriptions: &[&str],
    ) -> Self {
        let mut client = Self::start(place, name, port, options);
        for subscription in subscriptions {
            client.tell(&format!("subscribe {subscription}"));
        }
        client.tell("start");
        eventually("answers to the subscriptions", || {
            let text = client.text();
            let answers = text.matches(" data succeeded").count();
            answers + text.matches("\"rtype\":21").count() >= subscriptions.len()
        });
        client
    }

    pub(crate) fn tell(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    /// Waits until it has printed `what`.
    pub(crate) fn says(&self, what: &str) {
        eventually(what, || self.text().contains(what));
    }

    /// Returns the number of records of each type.
    pub(crate) fn counts(&mut self) -> Value {
        let known = self.text().matches("{\"count\":").count();
        self.tell("count");
        let mut counts = Value::Null;
        eventually("its counts", || {
            let text = self.text();
            let last = text.lines().rfind(|line| line.starts_with("{\"count\":"));
            let line = last.filter(|_| text.matches("{\"count\":").count() > known);
            let parsed = line.and_then(|line| serde_json::from_str::<Value>(line).ok());
            counts = parsed.unwrap_or_default()["count"].take();
            counts.is_object()
        });
        counts
    }

    /// Waits until it has `count` records of a type.
    pub(crate) fn has(&mut self, rtype: u64, count: usize) {
        eventually(&format!("{count} records of type {rtype}"), || {
            let own = self.counts()[rtype.to_string()].as_u64().unwrap_or(0);
            assert!(own <= count as u64, "{own} of type {rtype}, not {count}");
            own == count as u64
        });
    }

    /// Returns its complete lines so far.
    pub(crate) fn so_far(&self) -> Vec<Value> {
        let text = self.text();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        crate::lines(&text[..whole])
    }

    /// Ends it. Returns its lines.
    pub(crate) fn end(mut self) -> Vec<Value> {
        self.tell("end");
        drop(self.stdin.take());
        self.running.end().succeeded();
        crate::lines(&fs::read_to_string(self.out).unwrap())
    }
}

/// Returns the type of a record; 0xff for other lines.
pub(crate) fn rtype(line: &Value) -> u64 {
    line["hd"]["rtype"].as_u64().unwrap_or(0xff)
}

/// Returns the records of one type.
pub(crate) fn of(lines: &[Value], kind: u64) -> Vec<&Value> {
    lines.iter().filter(|line| rtype(line) == kind).collect()
}

/// Returns the records of market data.
pub(crate) fn data(lines: &[Value]) -> Vec<&Value> {
    let is_data = |line: &&Value| !matches!(rtype(line), ERROR | MAPPING | SYSTEM | 0xff);
    lines.iter().filter(is_data).collect()
}

/// Returns a number, which JSON has as a text if it may be large.
pub(crate) fn number(value: &Value) -> u64 {
    let text = value.as_str().map(|text| text.parse().unwrap());
    text.unwrap_or_else(|| value.as_u64().unwrap_or_else(|| panic!("{value}")))
}
