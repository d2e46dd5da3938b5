//! The gateway as a running service: what `fanout server`, `dds bridge` and `gateway` have in
//! common.

use crate::background;
use crate::cmd::fix::print_log_losses;
use crate::plural::counted;
use crate::print::{note, say};
use anyhow::{Context, Result};
use fanfare_engine::counters::Counters;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_gateway::{
    Config, Digest, Gateway, NoticeReceiver, PortConfig, descriptors_wanted, total,
};
use fanfare_instruments::capture::{Capture, CaptureOptions, Reopened};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The interval in which signals and notices are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Reads a configuration file.
pub(crate) fn read(path: &Path) -> Result<Config> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Config::from_toml(&text).with_context(|| path.display().to_string())
}

/// Reads the configuration again from where it came from.
pub(crate) type Reread<'a> = &'a dyn Fn() -> Result<Config>;

/// Runs the gateway until Ctrl-C, then prints what it did. With `quiet`, of the sessions only those
/// that end without a Logout are printed. SIGHUP reloads, see [`reload`].
pub(crate) fn run(config: &Config, quiet: bool, reread: Reread<'_>) -> Result<ExitCode> {
    background::begin()?;
    let wanted = descriptors_wanted(&config.producers, &config.consumers);
    let files = raise_open_files(wanted).context("cannot read the limit of open files")?;
    if files < wanted {
        let sessions = counted(files.saturating_sub(128), "session");
        note!("the system allows {files} open files: about {sessions}");
    }
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let mut hangup = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let mut gateway = Gateway::start(config, stop.clone())?;
    say!(
        "Launching {}",
        counted(config.workers as u64, "message dispatcher worker")
    );
    let notices = gateway
        .take_notices()
        .context("a new gateway has notices")?;
    let mut log = Log::new(notices, quiet);
    announce(config, &gateway);
    let capture = start_capture(config, &gateway);
    while !stop.is_raised() {
        log.look();
        std::thread::sleep(LOOK);
        if hangup.is_due() {
            note!("{}", reload(&gateway, capture.as_ref(), reread));
        }
    }
    // What is under way is counted before it is told of.
    let counters = gateway.counters().clone();
    let ended = gateway.join();
    log.end();
    report(config, &counters);
    ended?;
    if let Some(capture) = capture {
        stop_capture(capture)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn announce(config: &Config, gateway: &Gateway) {
    say!("Running on {}", counted(gateway.threads() as u64, "thread"));
    for feed in &config.feeds {
        for line in &feed.lines {
            let interface = line.interface.unwrap_or(feed.interface);
            match line.source {
                Some(source) => say!("Receiving {} of {source} on {interface}", line.group),
                None => say!("Receiving {} on {interface}", line.group),
            }
        }
        if let Some(topics) = &feed.publish {
            say!("Publishing decoded messages in domain {}", topics.domain);
        }
    }
    let over = |port: &PortConfig| port.tls.as_ref().map_or("", |_| ", over TLS");
    for (who, address, port) in [
        ("producers", gateway.producers(), &config.producers),
        ("consumers", gateway.consumers(), &config.consumers),
    ] {
        say!("Listening for {who} on {address}{}", over(port));
    }
    for (end, does) in [
        (&config.dds.publish, "Publishing"),
        (&config.dds.subscribe, "Subscribing"),
    ] {
        if let Some(end) = end {
            say!(
                "{does} {}_{{{}}} in domain {} on {}",
                end.topics,
                end.msg_types.join(","),
                end.domain,
                end.interface
            );
        }
    }
}

/// Without the right to capture, the gateway runs all the same.
fn start_capture(config: &Config, gateway: &Gateway) -> Option<Capture> {
    let file = config.capture.as_ref()?;
    let ports = [gateway.producers().port(), gateway.consumers().port()];
    match Capture::start(CaptureOptions::new(file, &ports)) {
        Ok(capture) => {
            say!(
                "Capturing ports {} and {} into {}",
                ports[0],
                ports[1],
                file.display()
            );
            Some(capture)
        }
        Err(e) => {
            note!("warning: {e}; running without a capture");
            None
        }
    }
}

/// Applies what can be changed while the gateway runs, and begins a new capture file if the old one
/// was renamed. Returns one line that says what was done.
fn reload(gateway: &Gateway, capture: Option<&Capture>, reread: Reread<'_>) -> String {
    let config = reread().and_then(|config| Ok(gateway.reload(&config)?));
    let mut line = match config {
        Ok(fixed) if fixed.is_empty() => "reloaded who may log on, and limits".to_owned(),
        Ok(fixed) => format!(
            "reloaded who may log on, and limits; only a new start changes {}",
            fixed.join(", ")
        ),
        Err(error) => format!("not reloaded, everything stays as it was: {error:#}"),
    };
    line += &match capture.map(Capture::reopen) {
        None => String::new(),
        Some(Ok(Reopened::Same)) => "; the capture goes on in its file".to_owned(),
        Some(Ok(Reopened::New)) => "; the capture goes on in a new file".to_owned(),
        Some(Err(error)) => format!("; {error}"),
    };
    line
}

fn stop_capture(capture: Capture) -> Result<()> {
    let stats = capture.stop()?;
    say!("{} captured", counted(stats.captured, "packet"));
    say!("{} received by filter", counted(stats.received, "packet"));
    say!("{} dropped by kernel", counted(stats.dropped, "packet"));
    Ok(())
}

/// Notices as lines on stderr. They are written in the background, so that a stderr that is not
/// read makes nobody wait.
struct Log {
    notices: NoticeReceiver,
    digest: Digest,
    begun: Instant,
    /// Only trouble is printed.
    quiet: bool,
}

impl Log {
    fn new(notices: NoticeReceiver, quiet: bool) -> Self {
        Self {
            notices,
            digest: Digest::new(),
            begun: Instant::now(),
            quiet,
        }
    }

    /// Prints what has happened.
    fn look(&mut self) {
        let (now, quiet) = (self.begun.elapsed(), self.quiet);
        let left_out = self.notices.left_out();
        if left_out > 0 {
            let notices = counted(left_out, "notice");
            note!("{notices} left out: more came than could be taken");
        }
        for notice in self.notices.iter() {
            if !quiet || notice.is_trouble() {
                self.digest.take(now, notice, &mut |line| note!("{line}"));
            }
        }
        self.digest.look(now, &mut |line| note!("{line}"));
    }

    /// The gateway has ended: nothing more will happen.
    fn end(mut self) {
        self.look();
        let now = self.begun.elapsed();
        self.digest.end(now, &mut |line| note!("{line}"));
    }
}

fn report(config: &Config, counters: &Counters) {
    let count = |name: &str| total(counters, name);
    let (received, marked) = (count("received"), count("marked"));
    let (deliveries, dropped) = (count("deliveries"), count("dropped"));
    let received = counted(received, "message");
    let deliveries = match deliveries {
        1 => "1 delivery".to_owned(),
        n => format!("{n} deliveries"),
    };
    say!("{received} received, {marked} marked: {deliveries}");
    say!(
        "{dropped} dropped, {} disconnected, {} rejected by receivers",
        counted(count("slow_consumers"), "slow consumer"),
        counted(count("rejects"), "message")
    );
    let unroutable = count("unroutable");
    if unroutable > 0 {
        let messages = counted(unroutable, "marked message");
        say!("{messages} of producers found no room on the way to the consumers and left out");
    }
    print_log_losses(counters);
    if !config.feeds.is_empty() {
        let publishes = config.feeds.iter().any(|feed| feed.publish.is_some());
        report_feed(counters, publishes);
    }
    if config.dds.publish.is_some() {
        say!(
            "dds: {} published ({} relayed), {} unsent, {} overrun, {} of other types, {} not \
             taken before the stop",
            count("published"),
            count("relayed"),
            count("unsent"),
            count("overrun"),
            count("other_types"),
            count("left_at_stop")
        );
    }
    if config.dds.subscribe.is_some() {
        say!(
            "dds: {} taken, {} missing, {} own, {} seen before, {} brought by another, {} behind, \
             {} malformed",
            count("taken"),
            count("missing"),
            count("own"),
            count("seen_before"),
            count("from_another"),
            count("behind"),
            count("malformed")
        );
    }
}

fn report_feed(counters: &Counters, topics: bool) {
    let count = |name: &str| total(counters, name);
    say!(
        "feed: {} messages in {} datagrams, {} messages missing, {} packets undecodable, {} \
         messages left out, {} datagrams dropped by kernel, {} unread at the stop",
        count("decoded"),
        count("datagrams"),
        count("gaps"),
        count("undecodable"),
        count("no_fix") + count("no_room"),
        count("kernel_drops"),
        count("unread")
    );
    let left = ["unusable", "strangers", "restarts"].map(count);
    if left.iter().sum::<u64>() > 0 {
        let [unusable, strangers, restarts] = left;
        say!(
            "feed: {} of unusable numbers, {} of other senders, {}",
            counted(unusable, "packet"),
            counted(strangers, "datagram"),
            counted(restarts, "restart")
        );
    }
    say!(
        "feed: of the exchange's session {}, {}, {}, {}, {}; {}, {}",
        counted(count("exchange_heartbeat"), "Heartbeat"),
        counted(count("exchange_reset"), "SequenceReset"),
        counted(count("exchange_logon"), "Logon"),
        counted(count("exchange_logout"), "Logout"),
        counted(count("exchange_other"), "other"),
        counted(count("fast_resets"), "empty message"),
        counted(count("feed_done"), "end")
    );
    say!(
        "feed: {} messages unfit for a version; left out for a version: {} fields, {} values, {} \
         entries",
        count("unfit"),
        count("fields_left_out"),
        count("values_left_out"),
        count("entries_left_out")
    );
    if topics {
        say!(
            "feed: {} samples published, {} unsent, {} without a topic, {} not taken before the \
             stop; {} samples overwritten",
            count("samples"),
            count("samples_not_sent"),
            count("no_topic"),
            count("samples_left"),
            count("samples_overwritten")
        );
    }
}
