//! The log of a gateway that is killed again and again: what an outlet had is in it, once.

use crate::common::gateway::Gateway;
use crate::common::{Folder, fanfare, groups, run};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_history::{Log, Reader, Start};
use fanfare_market::{Delivery, Event};
use std::fs;

/// Seeds of `make test`; `FANFARE_KILL_SEEDS` has more.
const SEEDS: u64 = 20;

/// Starts of the gateway with one log.
const RUNS: usize = 3;

/// A reader in this process, which outlives the gateway and sometimes reopens the log at its next
/// number.
struct Follower {
    reader: Option<Reader>,
    events: Vec<Event>,
    restarts: usize,
}

impl Follower {
    fn follow(&mut self, folder: &str, starts_anew: bool) {
        let Ok(log) = Log::open(folder.as_ref()) else {
            return;
        };
        if starts_anew {
            self.reader = None;
        }
        let next = self.events.len() as u64 + 1;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => {
                let reader = log.reader(Start::Number(next)).unwrap();
                self.reader.insert(reader)
            }
        };
        let (events, restarts) = (&mut self.events, &mut self.restarts);
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Event(event, _) => events.push(*event),
            Delivery::Restart => *restarts += 1,
            Delivery::Lost { first, last } => panic!("{first} to {last} are lost"),
            Delivery::End(_) => {}
        };
        while reader.read(usize::MAX, &mut take).unwrap() > 0 {}
    }
}

/// Sends some packets of the market, and lets the follower read in between.
fn send(
    sender: &Sender,
    feed: &mut Generator,
    rng: &mut fastrand::Rng,
    mut between: impl FnMut(bool),
) {
    for _ in 0..rng.usize(3..8) {
        for _ in 0..rng.usize(..120) {
            let Some(packet) = feed.next_packet().unwrap() else {
                return;
            };
            sender.send(packet).unwrap();
        }
        between(rng.u8(..4) == 0);
    }
}

fn config(folder: &Folder, group: &str, run: usize) -> String {
    let (log, events) = (
        folder.file("log"),
        folder.file(&format!("events{run}.jsonl")),
    );
    let ring = folder.file("ring");
    let text = format!(
        "events = \"{events}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
         [[feed]]\ntemplates = \"builtin:complex\"\nlines = [\"{group}\"]\n\
         mapping = \"builtin:complex\"\n\
         [history]\nfolder = \"{log}\"\nring = \"{ring}\"\nsegment_bytes = 1048576\n\
         checkpoint_events = 1000\ncompress = 1\n"
    );
    folder.with("gateway.toml", text)
}

fn kills(seed: u64, group: &str) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = Folder::new(&format!("market-kills-{seed}"));
    let log = folder.file("log");
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let options = ComplexOptions::default();
    let mut feed = Generator::complex(Program::complex(), 10_000, None, options);
    let mut follower = Follower {
        reader: None,
        events: Vec::new(),
        restarts: 0,
    };
    for run in 0..RUNS {
        let config = config(&folder, group, run);
        let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
        send(&sender, &mut feed, &mut rng, |anew| {
            follower.follow(&log, anew);
        });
        if run + 1 < RUNS {
            gateway.kill();
        } else {
            gateway.tells("of ");
            gateway.stop();
        }
        follower.follow(&log, false);
    }
    judge(&folder, &follower, seed);
}

/// Holds the log against what was read while it was written, and against what another outlet had.
fn judge(folder: &Folder, follower: &Follower, seed: u64) {
    let log = folder.file("log");
    let verified = Log::open(log.as_ref())
        .unwrap()
        .verify(|_, _| true)
        .unwrap();
    assert!(verified.is_whole(), "seed {seed}: {verified:?}");
    assert!(verified.missing.is_empty(), "seed {seed}: {verified:?}");
    let numbers = follower.events.iter().map(|event| event.number);
    assert!(verified.events > 50, "seed {seed}: {verified:?}");
    assert!(numbers.eq(1..=verified.events), "seed {seed}: {verified:?}");
    let said = run(&["history", "cat", &log, "--json"]).succeeded();
    let logged: Vec<&str> = said
        .out
        .lines()
        .filter(|l| !l.contains("\"restart\""))
        .collect();
    assert_eq!(logged.len() as u64, verified.events, "seed {seed}");
    for run in 0..RUNS {
        let Ok(text) = fs::read_to_string(folder.file(&format!("events{run}.jsonl"))) else {
            continue;
        };
        // The last line may have been cut off by the kill.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in whole.lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            let number = event["number"].as_u64().unwrap() as usize;
            assert_eq!(
                logged.get(number - 1),
                Some(&line),
                "seed {seed}, run {run}"
            );
        }
    }
}

#[test]
fn what_an_outlet_had_is_in_the_log_once_whenever_the_gateway_is_killed() {
    let seeds = std::env::var("FANFARE_KILL_SEEDS");
    let seeds = seeds.map_or(SEEDS, |seeds| seeds.parse().unwrap());
    let [group, _] = groups();
    for seed in 0..seeds {
        kills(seed, &group);
    }
}
