//! Tests of the console's page in a browser: a gateway under load, viewed and controlled by
//! Debian's Chromium and Playwright from PyPI.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;

use common::gateway::port;
use common::{Folder, Running, fanfare, groups, run, sending};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TOKEN: &str = "a-token-of-24-characters";
/// Consumers and producers, and the session that is disconnected.
const SESSIONS: usize = 200 + 5 + 1;
/// Idle sessions, for the list of a thousand.
const IDLE: usize = 1000 - SESSIONS;
const SYMBOL: &str = "37088000";
/// Playwright drives the browser, and axe checks accessibility.
const PACKAGES: &str = "playwright==1.65.1 axe-playwright-python==0.1.8";
const MODULES: &str = "playwright, axe_playwright_python";

/// A gateway with a feed on two lines, a log and a console, under load.
struct Plant {
    folder: Folder,
    console: String,
    /// The gateway, sessions and senders, which end with the test.
    load: Vec<Running>,
}

impl Plant {
    fn start() -> Self {
        let folder = Folder::new("page");
        let [a, b] = groups();
        let [snapshots, _] = groups();
        let token = folder.with("token", format!("{TOKEN}\n"));
        // The page shows the path of the log, relative to the folder that the gateway is started
        // in.
        let text = format!(
            "audit = \"audit\"\nmode = \"subscriptions\"\n\
             [producers]\nport = 0\n[consumers]\nport = 0\n\
             [console]\nport = 0\ntoken_file = \"{token}\"\n[history]\nfolder = \"log\"\n\
             [[feed]]\nchannel = \"spectra\"\ntemplates = \"builtin:spectra\"\n\
             lines = [\"{a}\", \"{b}\"]\nmapping = \"builtin:spectra\"\n\
             [feed.book]\nstarts_empty = false\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n"
        );
        let file = folder.with("gateway.toml", text);
        let mut gateway = fanfare(&["gateway", "--quiet", &file]);
        let mut gateway = Running::start(gateway.current_dir(folder.file("")));
        let producers = port(&gateway.prints("Listening for producers on 127.0.0.1:"));
        let consumers = port(&gateway.prints("Listening for consumers on 127.0.0.1:"));
        let console = port(&gateway.prints("Console at http://127.0.0.1:"));
        let mut plant = Self {
            folder,
            console,
            load: vec![gateway],
        };
        plant.feed([&a, &b, &snapshots]);
        plant.sessions(&consumers, "C", 200, &["--subscribe", "*"]);
        plant.sessions(&consumers, "IDLE", IDLE, &[]);
        let args = [
            "fanout",
            "producers",
            "127.0.0.1",
            "5",
            "1000000",
            "10",
            "50",
        ];
        let args = [&args[..], &["--port", &producers]].concat();
        plant.load.push(Running::start(&mut fanfare(&args)));
        plant.comes_back(&producers);
        plant
    }

    fn sessions(&mut self, port: &str, prefix: &str, count: usize, more: &[&str]) {
        let count = count.to_string();
        let args = ["fanout", "consumers", "127.0.0.1", &count, "0"];
        let args = [&args[..], &["--port", port, "--prefix", prefix], more].concat();
        let mut sessions = Running::start(&mut fanfare(&args));
        sessions.tells(&format!("{count} sessions logged on"));
        self.load.push(sessions);
    }

    /// Starts a session that reconnects whenever its connection ends.
    fn comes_back(&mut self, port: &str) {
        let settings = format!(
            "[DEFAULT]\nConnectionType=initiator\nSenderCompID=BACK\nTargetCompID=FANFARE\n\
             HeartBtInt=30\nReconnectInterval=1\nResetOnLogon=Y\n\
             SocketConnectHost=127.0.0.1\nSocketConnectPort={port}\n\
             [SESSION]\nBeginString=FIX.4.4\n"
        );
        let file = self.folder.with("back.cfg", settings);
        let mut command = fanfare(&["fix", "initiator", "--config", &file]);
        let mut back = Running::start(command.stdin(Stdio::piped()));
        back.tells("logged on");
        self.load.push(back);
    }

    /// Sends a feed slowly: changes on the lines `a` and `b` with losses, their snapshots on `c`.
    fn feed(&mut self, [a, b, c]: [&str; 3]) {
        let generate = [
            "fast", "generate", "spectra", "-n", "20000", "--trades", "10",
        ];
        let (changes, snapshots) = (self.folder.file("changes"), self.folder.file("snapshots"));
        run(&[&generate[..], &["-o", &changes]].concat()).succeeded();
        run(&[&generate[..], &["-o", &snapshots, "--snapshots"]].concat()).succeeded();
        let losses = ["--second", b, "--loss-a", "0.01", "--loss-b", "0.002"];
        for (file, group, more) in [(&changes, a, &losses[..]), (&snapshots, c, &[])] {
            let mut send = sending(file, group);
            let sender = Running::start(send.args(["-s", "10000"]).args(more));
            self.load.push(sender);
        }
    }
}

/// Returns the folder for the documentation's screenshots, if they are to be made.
fn pictures() -> Option<String> {
    let wanted = std::env::var_os("FANFARE_PICTURES").is_some();
    wanted.then(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs").to_owned())
}

fn python() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-page");
    let found = fanfare_peers::python(&home, PACKAGES, MODULES);
    fanfare_peers::or_skip(found).unwrap()
}

#[test]
fn a_gateway_under_load_is_seen_and_steered_in_a_browser() {
    let Some(python) = python() else {
        return;
    };
    let plant = Plant::start();
    let given = json!({
        "base": format!("http://127.0.0.1:{}", plant.console),
        "token": TOKEN,
        "session": "BACK",
        "sessions": SESSIONS + IDLE,
        "symbol": SYMBOL,
        "pictures": pictures(),
    });
    let mut browser = Command::new(python);
    browser.args([
        "-B",
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page/browser.py"),
    ]);
    let out = browser.arg(given.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let faults = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}{faults}");
    let seen: Value = serde_json::from_str(&said).unwrap();
    println!(
        "steps of scrolling through a thousand sessions, in ms of a processor: {}",
        seen["steps_ms"]
    );
    assert_eq!(
        seen["as_of"]["levels"],
        levels(&plant, &seen["as_of"]["at"])
    );
    let audit = std::fs::read_to_string(plant.folder.file("audit")).unwrap();
    assert!(
        audit.contains("sessions disconnect") && audit.contains("BACK"),
        "{audit}"
    );
}

/// Returns the book of the log at an event: of each level the size and the price of both sides, as
/// the page shows them.
fn levels(plant: &Plant, at: &Value) -> Value {
    let log = plant.folder.file("log");
    let args = [
        "history", "book", &log, "--symbol", SYMBOL, "--depth", "10", "--json",
    ];
    let book = run(&[&args[..], &["--at", at.as_str().unwrap()]].concat())
        .succeeded()
        .json();
    let side = |name: &str, level: usize| {
        let level = &book[name][level];
        let price = level["price"].as_str().unwrap_or_default().to_owned();
        let size = level["size"].as_u64();
        (price, size.map_or(String::new(), thousands))
    };
    let count = |name: &str| book[name].as_array().map_or(0, Vec::len);
    let rows = (0..count("bids").max(count("offers"))).map(|level| {
        let (bid, bid_size) = side("bids", level);
        let (offer, offer_size) = side("offers", level);
        json!([bid_size, bid, offer, offer_size])
    });
    rows.collect()
}

/// Formats a number with separators between thousands, as the page does.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}
