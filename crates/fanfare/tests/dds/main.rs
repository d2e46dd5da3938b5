//! `fanfare dds` as a user runs it: publisher and subscriber as two processes.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod backlog;
mod bad_input;
mod bridge;
mod liveliness;
mod plant;
mod shm;
mod tools;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};

/// The binary, which ends with this test however that ends.
fn fanfare() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfare"));
    command.env("FANFARE_PARENT", std::process::id().to_string());
    command
}

/// Runs a command to its end.
fn done(command: &mut Command) -> Output {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {text}");
    out
}

/// A command that runs beside the test, and does not outlive it.
struct Running {
    child: Child,
    told: BufReader<ChildStderr>,
}

impl Running {
    /// Starts it and waits for a line on stderr that begins so.
    fn start(command: &mut Command, ready: &str) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !ready.is_empty() && !line.starts_with(ready) {
            line.clear();
            assert!(told.read_line(&mut line).unwrap() > 0, "{command:?} ended");
        }
        Self { child, told }
    }

    /// Its stdout, which must be piped.
    fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().unwrap()
    }

    /// Waits for a line on stderr with this in it.
    fn told(&mut self, what: &str) {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(self.told.read_line(&mut line).unwrap() > 0, "it ended");
        }
    }

    /// Waits for its end; what it printed on stdout, which must be piped.
    fn finish(mut self) -> (ExitStatus, String) {
        let mut printed = String::new();
        self.stdout().read_to_string(&mut printed).unwrap();
        (self.child.wait().unwrap(), printed)
    }

    /// Ctrl-C; what it says on stderr from now on.
    fn interrupt(mut self) -> String {
        fanfare_engine::stop::interrupt(self.child.id()).unwrap();
        let mut rest = String::new();
        self.told.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// SIGSTOP or SIGCONT.
fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let mut kill = Command::new("kill");
    assert!(kill.args(["-s", name, &pid]).status().unwrap().success());
}

fn feed(kind: &str, messages: u32) -> PathBuf {
    let file =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("dds-{kind}-{messages}.dat"));
    let mut generate = fanfare();
    generate.args(["fast", "generate", kind, "-t", &format!("builtin:{kind}")]);
    done(
        generate
            .arg("-o")
            .arg(&file)
            .args(["-n", &messages.to_string()]),
    );
    file
}

/// Starts a subscriber, publishes, and gives the publisher's and the subscriber's output.
fn run(kind: &str, domain: u32, messages: u32, options: &[&str]) -> (String, String) {
    let file = feed(kind, messages);
    let domain = (std::process::id() % 100 + domain).to_string();
    let mut subscribe = fanfare();
    subscribe.args([
        "dds",
        "subscribe",
        kind,
        "--domain",
        &domain,
        "--format",
        "json",
    ]);
    // A file: a pipe that nobody reads would stop the subscriber.
    let received = file.with_extension("jsonl");
    let out = File::create(&received).unwrap();
    let mut subscriber = subscribe.args(options).stdout(out).spawn().unwrap();
    let mut publish = fanfare();
    publish.args(["dds", "publish", kind, "--domain", &domain, "--json", "-f"]);
    let publisher = done(publish.arg(&file).args(options));
    assert!(subscriber.wait().unwrap().success());
    let figures = String::from_utf8(publisher.stdout).unwrap();
    (figures, fs::read_to_string(received).unwrap())
}

#[test]
fn simple_messages_reach_the_subscriber_field_by_field() {
    let (figures, samples) = run("simple", 10, 400, &[]);
    assert!(
        figures.contains("\"samples\":400,\"echoes\":400"),
        "{figures}"
    );
    assert_eq!(samples.lines().count(), 400);
    let decoded = done(
        fanfare()
            .args(["fast", "decode", "-t", "builtin:simple"])
            .args([
                "--format".as_ref(),
                "json".as_ref(),
                "-f".as_ref(),
                feed("simple", 400).as_os_str(),
            ]),
    );
    let decoded = String::from_utf8(decoded.stdout).unwrap();
    for name in ["Quote", "New", "Change", "Remove"] {
        let front = format!("{{\"topic\": \"{name}\", \"sample\": ");
        let got: Vec<_> = samples
            .lines()
            .filter_map(|l| l.strip_prefix(&front))
            .collect();
        let of = |l: &&str| l.contains(&format!("\"template\": \"{name}\""));
        let expected: Vec<_> = decoded.lines().filter(of).collect();
        assert_eq!((got.len(), expected.len()), (100, 100));
        for (got, expected) in got.iter().zip(expected) {
            let fields = got.trim_end_matches('}');
            assert!(expected.contains(fields), "{got} is not in {expected}");
        }
    }
}

#[test]
fn complex_messages_are_split_by_security() {
    let (figures, samples) = run("complex", 11, 300, &["--keyed"]);
    assert!(
        figures.contains("\"samples\":420,\"echoes\":420"),
        "{figures}"
    );
    let topic = |name: &str| {
        let front = format!("{{\"topic\": \"{name}\"");
        samples.lines().filter(|l| l.starts_with(&front)).count()
    };
    assert_eq!((topic("MarketData"), topic("QuoteRequest")), (417, 3));
}

#[test]
fn a_subscriber_compares_with_the_file() {
    let check = |messages: u32, domain: u32| {
        let published = feed("simple", 250);
        let other = published.with_file_name(format!("dds-check-{messages}.dat"));
        let mut generate = fanfare();
        generate.args(["fast", "generate", "simple", "-n", &messages.to_string()]);
        done(generate.arg("-o").arg(&other));
        let domain = (std::process::id() % 100 + domain).to_string();
        let mut subscribe = fanfare();
        subscribe.args(["dds", "subscribe", "simple", "--domain", &domain, "--json"]);
        subscribe.arg("--check").arg(&other).stdout(Stdio::piped());
        let subscriber = subscribe.spawn().unwrap();
        let mut publish = fanfare();
        publish.args(["dds", "publish", "simple", "--domain", &domain, "-f"]);
        done(publish.arg(&published));
        let out = subscriber.wait_with_output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    // What the file has more is missing; what it has less is wrong.
    let (code, figures) = check(300, 12);
    let expected = "\"equal\":250,\"wrong\":0,\"not_received\":50";
    assert!(code == Some(0) && figures.contains(expected), "{figures}");
    let (code, figures) = check(200, 13);
    let expected = "\"equal\":200,\"wrong\":50,\"not_received\":0";
    assert!(code == Some(1) && figures.contains(expected), "{figures}");
}
