//! Tests of a log whose disk is full for a while, and of one whose machine has crashed.

use crate::common::gateway::Gateway;
use crate::common::{Folder, eventually, fails, fanfare, groups, run, with_program};
use fanfare_engine::poll;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_history::{Log, Verified};
use fanfare_market::Event;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The smallest ring, of 260 KiB with its first page.
const SMALL: &str = "ring_bytes = 65536\nlimits.message_bytes = 8192";

/// A feed, and its group.
struct Feed {
    sender: Sender,
    packets: Generator,
}

impl Feed {
    fn new(group: &str) -> Self {
        Self {
            sender: Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap(),
            packets: Generator::complex(
                Program::complex(),
                1_000_000,
                None,
                ComplexOptions::default(),
            ),
        }
    }

    fn send(&mut self, packets: usize) {
        for _ in 0..packets {
            let packet = self.packets.next_packet().unwrap().unwrap();
            self.sender.send(packet).unwrap();
        }
    }
}

fn config(folder: &Folder, group: &str, more: &str) -> String {
    let (log, ring) = (folder.file("log"), folder.file("ring"));
    let text = format!(
        "{more}\n[producers]\nport = 0\n[consumers]\nport = 0\n\
         [[feed]]\ntemplates = \"builtin:complex\"\nlines = [\"{group}\"]\n\
         mapping = \"builtin:complex\"\n\
         [history]\nfolder = \"{log}\"\nring = \"{ring}\"\n"
    );
    folder.with("gateway.toml", text)
}

/// Returns the gateway with a limit of its file sizes, which is equivalent to a full disk.
fn limited(config: &str, kib: u32) -> Command {
    let binary = fanfare(&[]).get_program().to_owned();
    let mut limited = with_program(Command::new("bash"), &[]);
    let script = format!("ulimit -S -f {kib}; exec \"$@\"");
    limited.args(["-c", &script, "bash"]);
    limited.arg(binary).args(["gateway", config]);
    limited
}

/// Frees space again.
fn lift(gateway: &Gateway) {
    let id = gateway.id().to_string();
    let mut prlimit = Command::new("prlimit");
    let status = prlimit.args(["--pid", &id, "--fsize=unlimited"]).status();
    assert!(status.unwrap().success());
}

/// Starts a gateway whose log fills its disk of 400 KiB with the events of `packets` at a time.
fn on_a_full_disk(folder: &Folder, config: &str, feed: &mut Feed, packets: usize) -> Gateway {
    let mut gateway = Gateway::start(&mut limited(config, 400));
    let log = folder.path().join("log/0000000001.log");
    eventually("a full disk", || {
        feed.send(packets);
        fs::metadata(&log).is_ok_and(|log| log.len() == 400 << 10)
    });
    gateway.tells("cannot be written, the next attempt follows: ");
    gateway
}

fn verified(folder: &Folder) -> Verified {
    let log = Log::open(folder.file("log").as_ref()).unwrap();
    let verified = log.verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{verified:?}");
    assert_eq!(
        log.extent().unwrap().next - 1,
        verified.events + missing(&verified)
    );
    verified
}

fn missing(verified: &Verified) -> u64 {
    let ranges = verified.missing.iter();
    ranges.map(|(first, last)| last - first + 1).sum()
}

#[test]
fn a_full_disk_costs_the_log_events_that_it_names_and_nobody_else() {
    let folder = Folder::new("market-disk-lose");
    let [group, _] = groups();
    let (mut feed, pipe) = (Feed::new(&group), folder.file("events"));
    // Another outlet writes to a pipe, which is never full for lack of disk space.
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    // Without a reader the gateway would not begin.
    let _held = poll::open(pipe.as_ref()).unwrap();
    let seen = Arc::new(AtomicUsize::new(0));
    let events = std::thread::spawn({
        let (pipe, seen) = (pipe.clone(), Arc::clone(&seen));
        move || {
            let mut lines = Vec::new();
            for line in BufReader::new(File::open(pipe).unwrap()).lines() {
                lines.push(line.unwrap());
                seen.store(lines.len(), Ordering::Relaxed);
            }
            lines
        }
    });
    let more = format!("{SMALL}\nevents = \"{pipe}\"");
    let config = config(&folder, &group, &more);
    let mut gateway = on_a_full_disk(&folder, &config, &mut feed, 20);
    // More than the capacity of file, writer and ring.
    let room = ((400 << 10) + (3 << 20) + (260 << 10)) / Event::SIZE;
    eventually("more events than there is room for", || {
        feed.send(50);
        seen.load(Ordering::Relaxed) > room + 5_000
    });
    lift(&gateway);
    gateway.tells("is written again");
    gateway.tells(": it was behind by the whole ring, and goes on behind them");
    feed.send(200);
    let said = gateway.stop();
    let verified = verified(&folder);
    assert!(missing(&verified) > 1000, "{verified:?}");
    let figures = [" events, ", " missing"].map(|what| figure(&said.out, "log: ", what));
    assert_eq!(figures, [verified.events, missing(&verified)]);
    let all = events.join().unwrap();
    let logged = run(&["history", "cat", &folder.file("log"), "--json"])
        .succeeded()
        .out;
    let is_event = |line: &str| line.starts_with("{\"number\"");
    let all: Vec<_> = all.iter().filter(|line| is_event(line)).collect();
    // The other outlet has the events that the log lacks.
    assert_eq!(
        all.len() as u64,
        verified.events + missing(&verified),
        "{}",
        said.err
    );
    let mut logged = logged.lines().filter(|line| is_event(line)).peekable();
    for line in &all {
        logged.next_if_eq(&line.as_str());
    }
    assert_eq!(logged.next(), None);
}

#[test]
fn a_pipe_that_nothing_reads_ends_the_start() {
    let folder = Folder::new("market-disk-unread");
    let [group, _] = groups();
    let pipe = folder.file("events");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let config = config(&folder, &group, &format!("events = \"{pipe}\""));
    let said = run(&["gateway", &config]);
    let unread = format!("cannot write market events to {pipe}: it is a pipe that nothing reads");
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains(&unread), "{}", said.err);
}

#[test]
fn a_pipe_whose_reader_has_stopped_does_not_hold_up_the_end() {
    let folder = Folder::new("market-disk-pipe");
    let [group, _] = groups();
    let (mut feed, pipe) = (Feed::new(&group), folder.file("events"));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let config = config(&folder, &group, &format!("events = \"{pipe}\""));
    let reader = poll::open(pipe.as_ref()).unwrap();
    let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let log = folder.path().join("log/0000000001.log");
    eventually("more events than the pipe has room for", || {
        feed.send(50);
        fs::metadata(&log).is_ok_and(|log| log.len() > 512 << 10)
    });
    let said = gateway.stop();
    drop(reader);
    let told = " written, and no more, as the file takes nothing";
    assert!(said.out.contains(told), "{}{}", said.out, said.err);
}

#[test]
fn events_that_no_disk_takes_are_not_counted_as_written() {
    let folder = Folder::new("market-disk-none");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let config = config(&folder, &group, "events = \"/dev/full\"");
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    feed.send(5);
    // Before the stop, and with less than the writer holds.
    gateway.tells("market events cannot be written to /dev/full, the next attempt follows: ");
    let said = gateway.stop();
    let written = "\nevents: 0 events written, 0 lost because the file was behind, ";
    assert!(said.out.contains(written), "{}", said.out);
    assert!(!said.out.contains(", 0 because it could not be written"));
    let again = said.err.contains("market events cannot be written");
    assert!(!again, "{}", said.err);
}

#[test]
fn a_file_of_events_has_each_number_or_names_it_after_a_full_disk() {
    let folder = Folder::new("market-disk-file");
    let [group, _] = groups();
    let (mut feed, events) = (Feed::new(&group), folder.file("events.jsonl"));
    let config = config(&folder, &group, &format!("{SMALL}\nevents = \"{events}\""));
    let mut gateway = Gateway::start(&mut limited(&config, 400));
    eventually("a full disk", || {
        feed.send(20);
        fs::metadata(&events).is_ok_and(|events| events.len() == 400 << 10)
    });
    feed.send(500);
    gateway.tells("market events cannot be written to ");
    lift(&gateway);
    gateway.tells("market events are written to ");
    feed.send(20);
    let said = gateway.stop();
    let (mut next, mut written) = (1, 0);
    for line in fs::read_to_string(&events).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if let Some(number) = line["number"].as_u64() {
            assert_eq!(number, next);
            (next, written) = (number + 1, written + 1);
        } else {
            assert_eq!(line["lost"]["first"], next, "{line}");
            next = line["lost"]["last"].as_u64().unwrap() + 1;
        }
    }
    let total = format!("\nevents: {written} events written");
    assert!(said.out.contains(&total), "{total} in {}", said.out);
}

#[test]
fn a_full_disk_that_is_waited_for_costs_nothing() {
    let folder = Folder::new("market-disk-wait");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let config = config(&folder, &group, SMALL);
    let text = fs::read_to_string(&config).unwrap() + "when_behind = \"wait\"\n";
    fs::write(&config, text).unwrap();
    let mut gateway = on_a_full_disk(&folder, &config, &mut feed, 5);
    // As much as the ring and the kernel's buffers hold.
    feed.send(100);
    lift(&gateway);
    gateway.tells("is written again");
    feed.send(100);
    gateway.stop();
    let verified = verified(&folder);
    assert_eq!(verified.missing, []);
    assert!(verified.bytes > 400 << 10, "{verified:?}");
}

#[test]
fn what_a_full_disk_did_not_take_at_the_stop_is_taken_at_the_next_start() {
    let folder = Folder::new("market-disk-stop");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let config = config(&folder, &group, SMALL);
    let gateway = on_a_full_disk(&folder, &config, &mut feed, 5);
    feed.send(20);
    let said = gateway.stop();
    let made = said.out.lines().find_map(|line| {
        let count = line.strip_prefix("market: ")?.split_once(" events of")?.0;
        count.parse::<u64>().ok()
    });
    let before = Log::open(folder.file("log").as_ref()).unwrap();
    let before = before.extent().unwrap().next - 1;
    assert!(made.unwrap() > before, "{made:?}, {before}");
    // Another gateway with the folder is refused while this one holds it.
    let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let told = fails(&["gateway", &config]);
    assert!(
        told.contains("is being written by another process"),
        "{told}"
    );
    gateway.stop();
    let verified = verified(&folder);
    assert_eq!((verified.missing.len(), Some(verified.events)), (0, made));
}

/// Returns the number in front of `what` in a line of the output that begins with `line`.
fn figure(out: &str, line: &str, what: &str) -> u64 {
    let mut lines = out.lines().filter_map(|own| own.strip_prefix(line));
    let before = lines.find_map(|own| own.split_once(what)).map(|own| own.0);
    let number = before.and_then(|before| before.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("no {what} behind {line} in {out}"))
}

#[test]
fn the_figures_of_a_stop_on_a_full_disk_add_up_and_no_number_comes_twice() {
    let folder = Folder::new("market-disk-figures");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let with = |name: &str| {
        let events = folder.file(name);
        config(&folder, &group, &format!("{SMALL}\nevents = \"{events}\""))
    };
    // The file of events is on the full disk, too: both outlets are overtaken.
    let gateway = on_a_full_disk(&folder, &with("one"), &mut feed, 20);
    let mut rounds = 0;
    eventually("more than the ring holds", || {
        feed.send(50);
        rounds += 1;
        rounds == 100
    });
    let said = gateway.stop();
    let made = figure(&said.out, "market: ", " events of ");
    let of_file = [" events written", " lost because", " because it could not"];
    let of_file = of_file.map(|what| figure(&said.out, "events: ", what));
    assert_eq!(of_file.iter().sum::<u64>(), made, "{}", said.out);
    let logged = figure(&said.out, "log: ", " events, ");
    let lacks = figure(&said.out, "log: ", " missing");
    let left = said
        .err
        .split_once("the next start takes ")
        .map(|own| own.1);
    let left = left.and_then(|left| left.split(' ').next()?.parse().ok());
    assert!(lacks > 0, "{}", said.out);
    assert_eq!(logged + lacks + left.unwrap_or(0), made, "{}", said.err);

    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &with("two")]));
    gateway.tells(&format!(" ({lacks}) of the run before: "));
    eventually("events", || {
        feed.send(20);
        fs::metadata(folder.file("two")).is_ok_and(|events| events.len() > 4_000)
    });
    let said = gateway.stop();
    assert!(said.out.contains(" events, 0 missing\n"), "{}", said.out);
    let text = fs::read_to_string(folder.file("two")).unwrap();
    let mut lines = text.lines().map(serde_json::from_str::<serde_json::Value>);
    let first = lines.find_map(|line| line.unwrap()["number"].as_u64());
    assert_eq!(first, Some(made + 1));
    assert_eq!(missing(&verified(&folder)), lacks);
}

#[test]
fn no_number_comes_twice_where_a_machine_has_crashed() {
    let folder = Folder::new("market-crash");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let numbers = |name: &str| -> Vec<u64> {
        let text = fs::read_to_string(folder.file(name)).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(serde_json::from_str::<serde_json::Value>);
        let numbers = lines.filter_map(|line| line.unwrap()["number"].as_u64());
        numbers.collect()
    };
    let start = |name: &str, feed: &mut Feed| {
        let events = folder.file(name);
        let config = config(&folder, &group, &format!("events = \"{events}\""));
        let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
        eventually("events", || {
            feed.send(20);
            fs::metadata(&events).is_ok_and(|events| events.len() > 4_000)
        });
        gateway
    };
    let first = start("one", &mut feed);
    eventually("a log as long as the other outlet", || {
        let log = Log::open(folder.file("log").as_ref());
        let extent = log.and_then(|log| log.extent());
        let next = extent.map_or(0, |extent| extent.next);
        numbers("one").last().is_some_and(|last| last + 1 == next)
    });
    first.kill();
    let seen = numbers("one");
    // After a crash of the machine the ring is gone, and the end of the log.
    fs::remove_file(folder.file("ring")).unwrap();
    let log = folder.path().join("log/0000000001.log");
    let len = fs::metadata(&log).unwrap().len();
    let cut = File::options().write(true).open(&log).unwrap();
    cut.set_len(len / 2).unwrap();
    let mut gateway = start("two", &mut feed);
    gateway.tells("lacks its end, as the ring of the run before was lost: events ");
    gateway.stop();
    let next = numbers("two");
    assert!(
        next[0] > *seen.last().unwrap(),
        "{} behind {seen:?}",
        next[0]
    );
    let verified = verified(&folder);
    let [(first, last)] = verified.missing[..] else {
        panic!("{verified:?}");
    };
    assert!(
        first <= *seen.last().unwrap() && last + 1 == next[0],
        "{first} to {last}"
    );
    // After a clean end, and after a kill on a running machine, numbers continue with the next one.
    start("three", &mut feed).kill();
    assert_eq!(numbers("three")[0], next.last().unwrap() + 1);
    start("four", &mut feed).stop();
    let again = self::verified(&folder);
    assert_eq!(again.missing, verified.missing);
    assert!(numbers("four")[0] > *numbers("three").last().unwrap());
    assert!(!Path::new(&folder.file("log/numbers")).exists());
}

#[test]
fn the_ring_of_a_gateway_that_runs_is_not_taken_by_another() {
    let folder = Folder::new("market-ring");
    let [group, _] = groups();
    let config = config(&folder, &group, "");
    let text = fs::read_to_string(&config).unwrap();
    let other = text.replace(&folder.file("log"), &folder.file("other"));
    let other = folder.with("other.toml", other);
    let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let ring = || fs::metadata(folder.file("ring")).unwrap().ino();
    let before = ring();
    // Not at the first start of its log, and not at a later one.
    for _ in 0..2 {
        let told = fails(&["gateway", &other]);
        let why = "the file is in use as a ring, by this process or another one";
        assert!(told.contains(why) && told.contains("ring: "), "{told}");
        assert_eq!(ring(), before);
    }
    gateway.stop();
    assert!(!Path::new(&folder.file("ring")).exists());
    Gateway::start(&mut fanfare(&["gateway", &other])).stop();
}

#[test]
fn an_end_that_was_cut_off_is_told_and_another_file_is_not_made_a_ring() {
    let folder = Folder::new("market-cut");
    let [group, _] = groups();
    let mut feed = Feed::new(&group);
    let config = config(&folder, &group, "");
    let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let log = folder.path().join("log/0000000001.log");
    eventually("events", || {
        feed.send(20);
        fs::metadata(&log).is_ok_and(|log| log.len() > 10_000)
    });
    gateway.stop();
    let len = fs::metadata(&log).unwrap().len();
    let cut = File::options().write(true).open(&log).unwrap();
    cut.set_len(len - 100).unwrap();
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    gateway.tells("bytes at its end that are no block: they were removed");
    gateway.stop();
    // A start in good order has nothing to tell.
    let said = Gateway::start(&mut fanfare(&["gateway", &config])).stop();
    assert!(!said.err.contains("no block"), "{}", said.err);
    fs::write(folder.file("ring"), "users").unwrap();
    let told = fails(&["gateway", &config]);
    assert!(
        told.contains("it holds something else, and is kept"),
        "{told}"
    );
    assert_eq!(fs::read(folder.file("ring")).unwrap(), b"users");
}
