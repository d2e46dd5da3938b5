//! `fanfare demo --live`: the plant under load, with its console, until Ctrl-C.

use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{READY, RUN};
use crate::address::free_udp_port;
use crate::children::Fanfare;
use crate::print::{note, say};
use crate::scratch::Scratch;

/// Sessions that receive all messages that producers mark for every consumer.
const CONSUMERS: &str = "200";
/// Producers, the messages of each, their rate per second, and the number of messages of which one
/// is marked.
const PRODUCERS: [&str; 4] = ["20", "1000000000", "50", "50"];
/// Sessions that subscribe to books, and the instruments that they subscribe to.
const SUBSCRIBERS: [&str; 2] = ["10", "*"];
/// Messages of the feed, and microseconds between two: an hour.
const FEED: [&str; 2] = ["360000", "10000"];
/// Shares of packets that lines A and B drop: both drop the same one about every quarter of an
/// hour.
const LOSSES: [&str; 2] = ["0.01", "0.001"];
/// The size limit of the log on disk, bytes.
const LOG: u64 = 1 << 30;
/// The interval at which processes are polled.
const LOOK: Duration = Duration::from_millis(100);
/// The time for messages in flight to arrive after the producers have stopped.
const UNDER_WAY: Duration = Duration::from_millis(500);

/// The processes of the plant. Those still running are killed on drop.
struct Plant {
    gateway: Fanfare,
    consumers: Fanfare,
    subscribers: Fanfare,
    producers: Fanfare,
    feed: Feed,
}

/// The ports of the gateway.
struct Ports {
    producers: SocketAddr,
    consumers: SocketAddr,
    console: String,
}

pub(super) fn run(open: bool) -> Result<ExitCode> {
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let scratch = Scratch::new("live").context("cannot make a folder for temporary files")?;
    let token = token()?;
    note!("generating a feed, starting gateway, consumers, subscribers and producers");
    let begun = Instant::now();
    let (mut plant, page) = match Plant::start(&scratch, &token, &stop) {
        Ok(started) => started,
        Err(_) if stop.is_raised() => return Ok(ExitCode::SUCCESS),
        Err(error) => return Err(error),
    };
    // The fragment behind # stays in the browser: it reaches no server and no log.
    let url = format!("{page}/#token={token}");
    say!("The console: {url}");
    say!("Ctrl-C ends it.");
    if open {
        show(&url);
    }
    while !stop.is_raised() {
        thread::sleep(LOOK);
        // A process that ends because of Ctrl-C has not failed.
        match plant.look() {
            Err(error) if !stop.is_raised() => return Err(error),
            _ => {}
        }
    }
    plant.end(begun.elapsed())
}

impl Plant {
    /// Starts the plant, and returns it with the address of its page.
    fn start(scratch: &Scratch, token: &str, stop: &Stop) -> Result<(Self, String)> {
        let feed = Feed::generate(scratch, stop)?;
        let (mut gateway, ports) = start_gateway(scratch, token, &feed, stop)?;
        let (host, port) = (ports.consumers.ip().to_string(), ports.consumers.port());
        let port = port.to_string();
        let to = ["--port", &port, "--json"];
        let begin = |args: &[&str]| {
            let mut sessions = Fanfare::start(&[args, &to].concat(), stop)?;
            sessions.wait_line(READY, |line| line.contains("logged on").then_some(()))?;
            anyhow::Ok(sessions)
        };
        let consumers = ["fanout", "consumers", &host, CONSUMERS, "0", "--from-start"];
        let consumers = begin(&consumers)?;
        let feed = feed.begin(stop)?;
        let [sessions, symbols] = SUBSCRIBERS;
        let ask = ["--subscribe", symbols, "--prefix", "DESK"];
        let subscribers = ["fanout", "consumers", &host, sessions, "0"];
        let subscribers = begin(&[&subscribers[..], &ask].concat())?;
        let port = ports.producers.port().to_string();
        let args = ["fanout", "producers", &host];
        let args = [&args[..], &PRODUCERS, &["--port", &port, "--json"]].concat();
        let mut producers = Fanfare::start(&args, stop)?;
        producers.wait_line(READY, |line| line.contains("logged on").then_some(()))?;
        gateway.look()?;
        let plant = Self {
            gateway,
            consumers,
            subscribers,
            producers,
            feed,
        };
        Ok((plant, ports.console))
    }

    /// Reads the output of the processes.
    ///
    /// # Errors
    /// A process has ended unexpectedly.
    fn look(&mut self) -> Result<()> {
        let sessions = [&mut self.consumers, &mut self.subscribers];
        let parts = sessions
            .into_iter()
            .chain([&mut self.gateway, &mut self.producers]);
        for part in parts {
            if let Some(status) = part.look()? {
                return Err(part.failed(status));
            }
        }
        self.feed.look()
    }

    /// Stops the plant from the source on, so that messages in flight arrive, and prints its
    /// totals.
    fn end(self, ran: Duration) -> Result<ExitCode> {
        let producers = self.producers.figures(RUN)?;
        let sent = self.feed.end()?;
        thread::sleep(UNDER_WAY);
        let consumers = self.consumers.figures(RUN)?;
        let subscribers = self.subscribers.figures(RUN)?;
        self.gateway.interrupt()?;
        self.gateway.finish(RUN)?;
        let wrong = ["missing", "duplicates", "reordered", "unreadable_marks"];
        let wrong: f64 = wrong
            .iter()
            .filter_map(|name| consumers.figure(name).ok())
            .sum();
        say!("ran for {} s", ran.as_secs());
        say!(
            "{} messages from producers, {} of them for everybody: {} deliveries, {wrong} lost, \
             doubled or out of order",
            producers.figure("sent")?,
            producers.figure("marked")?,
            consumers.figure("received")?,
        );
        say!("{sent} packets of the feed for each line");
        let (checks, failed) = (
            subscribers.figure("checked")?,
            subscribers.figure("faults")?,
        );
        say!("books at subscribers: {checks} compared with the gateway's, {failed} not the same");
        Ok(ExitCode::from(u8::from(wrong > 0.0 || failed > 0.0)))
    }
}

/// The generated feed, and the processes that send it.
struct Feed {
    changes: String,
    snapshots: String,
    /// The groups of lines A and B, and of the snapshots.
    lines: [String; 3],
    /// The processes that send the changes, and those that send the snapshots.
    senders: Vec<Fanfare>,
    is_over: bool,
}

impl Feed {
    fn generate(scratch: &Scratch, stop: &Stop) -> Result<Self> {
        let file = |name| scratch.file(name).to_string_lossy().into_owned();
        let (changes, snapshots) = (file("changes.dat"), file("snapshots.dat"));
        let generate = [
            "fast", "generate", "spectra", "-n", FEED[0], "--trades", "10",
        ];
        for more in [&["-o", &changes][..], &["-o", &snapshots, "--snapshots"]] {
            Fanfare::start(&[&generate[..], more].concat(), stop)?.finish(RUN)?;
        }
        let line = |group: &str| anyhow::Ok(format!("{group}:{}", free_udp_port()?));
        let lines = [
            line("239.255.19.1")?,
            line("239.255.19.2")?,
            line("239.255.19.3")?,
        ];
        Ok(Self {
            changes,
            snapshots,
            lines,
            senders: Vec::new(),
            is_over: false,
        })
    }

    /// Starts to send changes and snapshots.
    fn begin(mut self, stop: &Stop) -> Result<Self> {
        let [a, b, snapshots] = &self.lines;
        let losses = ["--second", b, "--loss-a", LOSSES[0], "--loss-b", LOSSES[1]];
        for (file, line, more) in [
            (&self.changes, a, &losses[..]),
            (&self.snapshots, snapshots, &[]),
        ] {
            let (address, port) = line
                .split_once(':')
                .context("the gateway printed an address without a port")?;
            let to = [
                "-f", file, "-a", address, "-p", port, "-s", FEED[1], "--json",
            ];
            let args = [&["fast", "multicast"], &to[..], more].concat();
            self.senders.push(Fanfare::start(&args, stop)?);
        }
        Ok(self)
    }

    fn look(&mut self) -> Result<()> {
        let mut ended = 0;
        for sender in &mut self.senders {
            match sender.look()? {
                None => {}
                Some(status) if status.success() => ended += 1,
                Some(status) => return Err(sender.failed(status)),
            }
        }
        if !self.is_over && ended == self.senders.len() {
            self.is_over = true;
            note!("the feed is over: its lines are silent from now on");
        }
        Ok(())
    }

    /// Stops the feed. Returns the number of packets that were due on each line.
    fn end(self) -> Result<f64> {
        let mut packets = 0.0;
        // The changes start first, and are stopped last.
        for sender in self.senders.into_iter().rev() {
            packets = sender.figures(RUN)?.figure("packets")?;
        }
        Ok(packets)
    }
}

fn start_gateway(
    scratch: &Scratch,
    token: &str,
    feed: &Feed,
    stop: &Stop,
) -> Result<(Fanfare, Ports)> {
    let token_file = scratch.file("token");
    let file = scratch.file("gateway.toml");
    write_secret(&token_file, token)?;
    let config = config(scratch, &token_file, &feed.lines);
    std::fs::write(&file, config).with_context(|| file.display().to_string())?;
    let mut gateway = Fanfare::start(&["gateway", "--quiet", &file.to_string_lossy()], stop)?;
    let (mut producers, mut consumers) = (None, None);
    // The console is announced last.
    let ports = gateway.wait_line(READY, |line| {
        let at = |front| line.strip_prefix(front).map(str::to_owned);
        producers = producers
            .take()
            .or_else(|| at("Listening for producers on "));
        consumers = consumers
            .take()
            .or_else(|| at("Listening for consumers on "));
        at("Console at ").map(|console| (producers.take(), consumers.take(), console))
    })?;
    let (Some(producers), Some(consumers), console) = ports else {
        bail!("the gateway did not print the addresses that it listens on");
    };
    let ports = Ports {
        producers: producers.parse()?,
        consumers: consumers.parse()?,
        console,
    };
    Ok((gateway, ports))
}

fn config(scratch: &Scratch, token_file: &Path, [a, b, snapshots]: &[String; 3]) -> String {
    let path = |path: &Path| format!("{:?}", path.display().to_string());
    format!(
        "audit = {}\n[producers]\nport = 0\n[consumers]\nport = 0\n\
         [console]\nport = 0\ntoken_file = {}\n\
         [history]\nfolder = {}\nkeep_bytes = {LOG}\nsegment_bytes = {}\n\
         [[feed]]\nchannel = \"spectra\"\ntemplates = \"builtin:spectra\"\n\
         lines = [\"{a}\", \"{b}\"]\ninterface = \"127.0.0.1\"\nmapping = \"builtin:spectra\"\n\
         [feed.book]\nstarts_empty = false\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n",
        path(&scratch.file("audit")),
        path(token_file),
        path(&scratch.file("log")),
        LOG / 16,
    )
}

/// Returns a random token.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("cannot read random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only its owner can read.
fn write_secret(path: &Path, secret: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{secret}"));
    written.with_context(|| path.display().to_string())
}

/// Opens a page in the browser of the desktop, if there is one.
fn show(url: &str) {
    let mut command = Command::new("xdg-open");
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
    if let Err(error) = quiet.stderr(Stdio::null()).arg(url).spawn() {
        note!("warning: xdg-open cannot be started: {error}");
    }
}
