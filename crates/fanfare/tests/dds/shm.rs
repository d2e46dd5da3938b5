//! Tests of `--transport shm`: publisher and subscriber as processes that meet in shared memory,
//! start in either order, die, and restart.

use crate::common::{Running, fanfare, said};
use crate::{Piecemeal, feed};
use fanfare_dds::shm::{Config, Receiver, Sender};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{ChildStdout, Command};

/// Returns a domain of this test alone.
fn domain(number: u32) -> String {
    crate::domain(200 + number)
}

fn command(what: &str, domain: &str, options: &[&str]) -> Command {
    let mut command = fanfare(&["dds", what, "simple", "--transport", "shm", "--json"]);
    command.args(["--domain", domain]).args(options);
    command
}

fn subscriber(domain: &str, file: &Path, options: &[&str]) -> Running {
    let mut command = command("subscribe", domain, options);
    Running::start(command.arg("--check").arg(file))
}

fn publisher(domain: &str, file: &Path, options: &[&str]) -> Running {
    let mut command = command("publish", domain, options);
    Running::start(command.arg("-f").arg(file))
}

/// Returns the figures of a process that succeeds.
fn figures(process: Running) -> String {
    process.end().succeeded().out
}

fn has(figures: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(figures.contains(part), "{part} is not in {figures}");
    }
}

#[test]
fn either_may_come_first_and_every_field_arrives() {
    let file = feed("simple", 2_000);
    let domain = domain(1);
    for subscriber_first in [true, false] {
        let (published, received) = if subscriber_first {
            let there = subscriber(&domain, &file, &[]);
            (publisher(&domain, &file, &[]), there)
        } else {
            let there = publisher(&domain, &file, &[]);
            (there, subscriber(&domain, &file, &[]))
        };
        has(&figures(published), &["\"samples\":2000,\"echoes\":2000"]);
        has(
            &figures(received),
            &[
                "\"samples\":2000",
                "\"lost\":0",
                "\"equal\":2000",
                "\"not_received\":0",
            ],
        );
    }
}

#[test]
fn two_domains_do_not_hear_each_other() {
    let file = feed("simple", 400);
    let (here, there) = (domain(2), domain(3));
    let other = subscriber(&there, &file, &[]);
    let same = subscriber(&here, &file, &[]);
    has(&figures(publisher(&here, &file, &[])), &["\"echoes\":400"]);
    has(&figures(same), &["\"samples\":400"]);
    has(&figures(publisher(&there, &file, &[])), &["\"echoes\":400"]);
    has(&figures(other), &["\"samples\":400", "\"equal\":400"]);
}

/// A subscriber that stops after its first sample, and thereby blocks the publisher, whose ring of
/// 1 MiB is soon full.
struct Stuck {
    process: Running,
    out: BufReader<ChildStdout>,
}

impl Stuck {
    fn start(domain: &str) -> Self {
        let options = ["--no-echo", "--format", "json"];
        let (process, out) = Running::start_unread(&mut command("subscribe", domain, &options));
        Self { process, out }
    }

    /// Waits until it has received a sample, and stops it there.
    fn first_line(&mut self) {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        self.process.signal("STOP");
        assert!(line.starts_with("{\"topic\""), "{line}");
    }
}

const LONG: u32 = 60_000;
const SHORT: u32 = 5_000;
const NO_WAIT: [&str; 3] = ["--no-echo", "--ring", "1"];
/// Bytes of the first messages: the test releases further ones, so that the publisher does not
/// finish before.
const FIRST: usize = 10_000;

/// Starts a publisher that has the first messages of the file.
fn holding_back(domain: &str, file: &Path) -> (Running, Piecemeal) {
    with_patience(domain, file, "120")
}

/// Starts one as [`holding_back`], with a patience in seconds.
fn with_patience(domain: &str, file: &Path, seconds: &str) -> (Running, Piecemeal) {
    let mut command = command("publish", domain, &NO_WAIT);
    command.args(["--patience", seconds]);
    let (publisher, mut messages) = Piecemeal::start(command.args(["-f", "/dev/stdin"]), file);
    messages.some(FIRST);
    (publisher, messages)
}

/// Starts a subscriber that stops after its first sample, and a publisher with a patience in
/// seconds, which waits for it.
fn blocked(domain: &str, seconds: &str) -> (Stuck, Running) {
    let file = feed("simple", LONG);
    let mut stopped = Stuck::start(domain);
    let (mut publisher, messages) = with_patience(domain, &file, seconds);
    stopped.first_line();
    messages.rest();
    publisher.tells("a subscriber does not read, and all wait for it");
    (stopped, publisher)
}

/// Returns the number of ring files in the domain; `None` if there is no folder for them.
fn rings(domain: &str) -> Option<usize> {
    let user = fs::metadata("/proc/self").unwrap().uid();
    let folder = format!("/dev/shm/fanfare-{user}/domain-{domain}");
    Some(fs::read_dir(folder).ok()?.count())
}

fn number(figures: &str, name: &str) -> u32 {
    let (_, rest) = figures.split_once(&format!("\"{name}\":")).unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn a_killed_subscriber_frees_the_publisher_and_the_next_one_gets_the_rest() {
    let (domain, file) = (domain(4), feed("simple", LONG));
    let mut dying = Stuck::start(&domain);
    let (published, messages) = holding_back(&domain, &file);
    dying.first_line();
    messages.rest();
    let mut next = Running::start(&mut command("subscribe", &domain, &["--no-echo"]));
    next.tells("Finished subscribing");
    dying.process.kill();
    // A subscriber that dies is no failure of the publisher, as over DDS.
    has(
        &figures(published),
        &[
            "\"samples\":60000",
            "\"readers_cut_off\":0",
            "\"readers_died\":1",
        ],
    );
    // Samples that it was too slow for are lost, and counted.
    let text = next.end().out;
    assert_eq!(
        number(&text, "samples") + number(&text, "lost"),
        LONG,
        "{text}"
    );
    assert!(number(&text, "samples") > 0, "{text}");
    assert_eq!(rings(&domain), None);
}

#[test]
fn a_stopped_subscriber_is_cut_off_after_the_patience_and_the_status_says_so() {
    let (mut stopped, mut publisher) = blocked(&domain(8), "2");
    publisher.tells("cut off 1 subscriber that did not read; 0 died");
    let published = publisher.end();
    assert_eq!(published.code, 1, "{}", published.err);
    has(
        &published.out,
        &[
            "\"ok\":false",
            "\"samples\":60000",
            "\"readers_cut_off\":1",
            "\"readers_died\":0",
        ],
    );
    stopped.process.kill();
}

#[test]
fn ctrl_c_ends_the_wait_for_a_stopped_subscriber() {
    let (mut stopped, publisher) = blocked(&domain(9), "3600");
    publisher.interrupt();
    let published = publisher.end();
    assert_eq!(published.code, 1, "{}", published.err);
    has(&published.out, &["\"ok\":false", "\"readers_cut_off\":0"]);
    stopped.process.kill();
}

#[test]
fn a_killed_publisher_may_come_again_and_leaves_nothing_behind() {
    let (domain, file) = (domain(5), feed("simple", LONG));
    // Together with the samples of the first one it is less than the 65,536 lines in the queue.
    let short = feed("simple", SHORT);
    let mut reading = Stuck::start(&domain);
    let (mut dying, _messages) = holding_back(&domain, &file);
    reading.first_line();
    dying.kill();
    assert_eq!(rings(&domain), Some(1));
    let Stuck { process, out } = reading;
    process.signal("CONT");
    let rest = std::thread::spawn(move || out.lines().count());
    has(
        &figures(publisher(&domain, &short, &NO_WAIT)),
        &["\"samples\":5000"],
    );
    process.end().succeeded();
    assert!(rest.join().unwrap() as u32 >= SHORT - 1);
    assert_eq!(rings(&domain), None);
}

#[test]
fn a_publisher_that_ends_without_its_token_is_a_failure() {
    let (domain, file) = (domain(6), feed("simple", LONG));
    let options = ["--no-echo", "--format", "json", "--idle", "1"];
    let (alone, out) = Running::start_unread(&mut command("subscribe", &domain, &options));
    let mut lines = BufReader::new(out).lines();
    let (mut dying, _messages) = holding_back(&domain, &file);
    lines.next().unwrap().unwrap();
    dying.kill();
    let rest = std::thread::spawn(move || lines.count());
    let said = alone.end();
    assert_eq!(said.code, 1, "{}", said.err);
    has(
        &said.err,
        &["\"ok\":false", "\"lost\":0", "has not said Done"],
    );
    assert!(number(&said.err, "samples") > 0, "{}", said.err);
    rest.join().unwrap();
}

#[test]
fn samples_of_securities_without_a_topic_are_counted_and_a_failure() {
    let (domain, file) = (domain(7), feed("complex", 300));
    let options = ["--transport", "shm", "--json", "--domain", &domain];
    let options = [&options[..], &["--securities", "1"]].concat();
    let mut subscribe = fanfare(&["dds", "subscribe", "complex"]);
    let there = Running::start(subscribe.args(&options).arg("--check").arg(&file));
    let mut publish = fanfare(&["dds", "publish", "complex"]);
    let published = said(publish.args(&options).arg("-f").arg(&file));
    assert_eq!(published.code, 1, "{}", published.err);
    has(&published.out, &["\"ok\":false"]);
    let (samples, left_out) = ("samples", "without_topic");
    let [samples, left_out] = [samples, left_out].map(|name| number(&published.out, name));
    assert_eq!(samples + left_out, 420, "{}", published.out);
    let received = figures(there);
    has(
        &received,
        &["\"lost\":0", "\"wrong\":0", "\"not_received\":0"],
    );
    assert_eq!(number(&received, "samples"), samples, "{received}");
    assert!(samples > 0 && left_out > 0, "{}", published.out);
}

#[test]
fn a_subscriber_without_a_place_says_so_and_gets_the_next_one() {
    let domain = domain(10);
    let config = Config::new(domain.parse().unwrap()).unwrap().ring(1 << 16);
    let _publisher = Sender::open(&config, "feed", &[]).unwrap();
    let open = |_| Receiver::open(&config, "feed", &[]).unwrap();
    let mut others: Vec<Receiver> = (0..64).map(open).collect();
    let mut last = Running::start(&mut command("subscribe", &domain, &["--no-echo"]));
    last.tells("it has 64 subscribers");
    others.pop();
    last.tells("a publisher is there");
    last.kill();
}

#[test]
fn what_shared_memory_cannot_do_is_said() {
    for (domain, options, code, why) in [
        (
            "1",
            &["--peer", "10.0.0.1"][..],
            2,
            "reaches this host only",
        ),
        ("1", &["--instances", "7"], 2, "no limit of keys"),
        ("233", &[], 2, "233 is not in 0..=232"),
    ] {
        let said = said(&mut command("subscribe", domain, options));
        assert_eq!(said.code, code, "{}", said.err);
        assert!(said.err.contains(why), "{}", said.err);
    }
}
