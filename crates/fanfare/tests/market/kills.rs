//! Tests of the log of a gateway that is killed repeatedly, as are its readers: each event of an
//! outlet is in it once, and the readers have written down the log, each event once.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, eventually, fanfare, groups, run};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_history::{Log, Reader, Start};
use fanfare_market::{Delivery, Event};
use std::fs::{self, File};
use std::ops::{AddAssign, Range};
use std::path::Path;

/// Seeds of `make test`. `FANFARE_KILL_SEEDS` sets another number of them, or `FROM..TO`.
const SEEDS: Range<u64> = 0..20;

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
            Delivery::End(_) | Delivery::Watermark(_) => {}
        };
        while reader.read(usize::MAX, &mut take).unwrap() > 0 {}
    }
}

/// The number of readers that are processes: `history cat --follow` into a file.
const READERS: usize = 2;

/// A process that writes the events it reads from the log into a file. After a kill it is restarted
/// at the number after the last complete line.
struct Cat {
    file: String,
    running: Option<Running>,
    kills: usize,
}

impl Cat {
    fn new(folder: &Folder, place: usize) -> Self {
        Self {
            file: folder.file(&format!("cat{place}.jsonl")),
            running: None,
            kills: 0,
        }
    }

    /// Returns the lines of the file, without one that a kill has cut.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        whole.lines().map(str::to_owned).collect()
    }

    fn start(&mut self, log: &str) {
        if self.running.is_some()
            || !Path::new(log).join("0000000001.log").exists() && self.kills == 0
        {
            return;
        }
        let lines = self.lines();
        let last = lines.iter().rev().find_map(|line| number(line));
        let from = (last.unwrap_or(0) + 1).to_string();
        let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
        let mut options = File::options();
        let file = options.create(true).append(true).open(&self.file).unwrap();
        file.set_len(whole as u64).unwrap();
        let args = ["history", "cat", log, "--follow", "--json", "--from", &from];
        self.running = Some(Running::start(fanfare(&args).stdout(file)));
    }

    fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            running.kill();
            self.kills += 1;
        }
    }

    /// Reads to the end, and ends without an error.
    fn finish(&mut self, log: &str, last: u64) {
        self.start(log);
        eventually("a reader", || {
            let lines = self.lines();
            lines.iter().rev().find_map(|line| number(line)) >= Some(last)
        });
        let running = self.running.take().unwrap();
        running.interrupt();
        running.end().succeeded();
    }
}

/// Returns the number of the event in a line.
fn number(line: &str) -> Option<u64> {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["number"].as_u64()
}

/// All readers of the log.
struct Readers {
    log: String,
    follower: Follower,
    cats: Vec<Cat>,
    /// A gateway that replays the log up to its end, into a file of events.
    replay: Option<Running>,
    replays: usize,
}

/// Counts over all seeds.
#[derive(Debug, Default)]
struct Had {
    seeds: usize,
    events: usize,
    segments: usize,
    compacted: usize,
    plants_killed: usize,
    readers_killed: usize,
    replays_killed: usize,
}

impl AddAssign for Had {
    fn add_assign(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.events += other.events;
        self.segments += other.segments;
        self.compacted += other.compacted;
        self.plants_killed += other.plants_killed;
        self.readers_killed += other.readers_killed;
        self.replays_killed += other.replays_killed;
    }
}

impl Readers {
    /// Lets the library's reader continue, and starts and kills the processes.
    fn turn(&mut self, folder: &Folder, rng: &mut fastrand::Rng) {
        self.follower.follow(&self.log, rng.u8(..4) == 0);
        for cat in &mut self.cats {
            cat.start(&self.log);
            if rng.u8(..3) == 0 {
                cat.kill();
            }
        }
        if let Some(mut replay) = self.replay.take() {
            replay.kill();
        } else if !self.follower.events.is_empty() && self.replays == 0 && rng.u8(..4) == 0 {
            self.replays += 1;
            self.replay = Some(Running::start(&mut replay(folder, "replay0")));
        }
    }
}

/// Returns a gateway that replays the log into a file of events.
fn replay(folder: &Folder, name: &str) -> std::process::Command {
    let (log, events) = (folder.file("log"), folder.file(&format!("{name}.jsonl")));
    let text = format!(
        "events = \"{events}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
         [replay]\nlog = \"{log}\"\nspeed = \"max\"\n"
    );
    let config = folder.with(&format!("{name}.toml"), text);
    fanfare(&["gateway", &config])
}

/// Sends some packets of the market, with turns of the readers in between.
fn send(
    sender: &Sender,
    feed: &mut Generator,
    rng: &mut fastrand::Rng,
    mut between: impl FnMut(&mut fastrand::Rng),
) {
    for _ in 0..rng.usize(3..8) {
        for _ in 0..rng.usize(..200) {
            let Some(packet) = feed.next_packet().unwrap() else {
                return;
            };
            sender.send(packet).unwrap();
        }
        between(rng);
    }
}

/// Writes a configuration with the smallest segments, so that they roll and are compacted under
/// load.
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
         [history]\nfolder = \"{log}\"\nring = \"{ring}\"\nsegment_bytes = 65536\n\
         checkpoint_events = 1000\ncompress = 1\n"
    );
    folder.with("gateway.toml", text)
}

fn kills(seed: u64, group: &str) -> Had {
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = Folder::new(&format!("market-kills-{seed}"));
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let options = ComplexOptions::default();
    let mut feed = Generator::complex(Program::complex(), 100_000, None, options);
    let mut readers = Readers {
        log: folder.file("log"),
        follower: Follower {
            reader: None,
            events: Vec::new(),
            restarts: 0,
        },
        cats: (0..READERS).map(|place| Cat::new(&folder, place)).collect(),
        replay: None,
        replays: 0,
    };
    for run in 0..RUNS {
        let config = config(&folder, group, run);
        let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
        send(&sender, &mut feed, &mut rng, |rng| {
            readers.turn(&folder, rng);
        });
        if run + 1 < RUNS {
            gateway.kill();
        } else {
            gateway.tells("of ");
            gateway.stop();
        }
        readers.follower.follow(&readers.log, false);
    }
    let logged = judge(&folder, &readers.follower, seed);
    let segments = Log::open(readers.log.as_ref()).unwrap().segments().unwrap();
    for cat in &mut readers.cats {
        cat.finish(&readers.log, logged.len() as u64);
        let mut lines = cat.lines();
        lines.retain(|line| !line.contains("\"restart\""));
        assert!(
            lines == logged,
            "seed {seed}: {}, {} kills",
            cat.file,
            cat.kills
        );
    }
    replays(&folder, &logged, seed);
    Had {
        seeds: 1,
        events: logged.len(),
        segments: segments.len(),
        compacted: segments.iter().filter(|one| one.is_compacted).count(),
        plants_killed: RUNS - 1,
        readers_killed: readers.cats.iter().map(|cat| cat.kills).sum(),
        replays_killed: readers.replays,
    }
}

/// Checks that a killed replay has part of the log, and a finished one all of it.
fn replays(folder: &Folder, logged: &[String], seed: u64) {
    let of = |name: &str| {
        let text = fs::read_to_string(folder.file(name)).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().filter(|line| !line.contains("\"restart\""));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let killed = of("replay0.jsonl");
    assert!(logged.starts_with(&killed), "seed {seed}: {}", killed.len());
    if seed.is_multiple_of(4) {
        let mut gateway = Gateway::start(&mut replay(folder, "replay1"));
        gateway.tells("has ended");
        gateway.stop();
        assert!(of("replay1.jsonl") == logged, "seed {seed}");
    }
}

/// Compares the log with the events read while it was written, and with those of another outlet.
/// Returns its events as lines.
fn judge(folder: &Folder, follower: &Follower, seed: u64) -> Vec<String> {
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
    logged.into_iter().map(str::to_owned).collect()
}

/// Returns the seeds that the environment sets.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var("FANFARE_KILL_SEEDS") else {
        return SEEDS;
    };
    let (from, to) = text.split_once("..").unwrap_or(("0", &text));
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn each_event_is_read_once_whenever_the_gateway_and_its_readers_are_killed() {
    let [group, _] = groups();
    let mut had = Had::default();
    for seed in seeds() {
        had += kills(seed, &group);
    }
    println!("{had:?}");
    // More than those that the starts create.
    assert!(had.segments > had.seeds * RUNS * 3 / 2, "{had:?}");
    assert!(had.compacted > had.seeds, "{had:?}");
    assert!(
        had.readers_killed > had.seeds && had.replays_killed > had.seeds / 4,
        "{had:?}"
    );
}
