//! The gateway as a running service: the common part of `fanout server`, `dds bridge` and
//! `gateway`.

mod changes;
mod events;
mod report;
mod watchdog;

use crate::cmd::fast::lines::refuse_input;
use crate::logs::{self, Levels, LogArgs};
use crate::plural::counted;
use crate::print::say;
use crate::supervisor;
use anyhow::{Context, Result, bail};
use changes::Changes;
use events::EventLog;
use fanfare_console::Console;
use fanfare_engine::clock;
use fanfare_engine::levels::LogLevel;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::regular;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_engine::tls::out_of_time;
use fanfare_gateway::{
    Config, Digest, FeedLine, Gateway, GatewayOperator, LogTo, NoticeReceiver, PortConfig,
    ProgramLog, dbn_clients, descriptors_wanted,
};
use fanfare_instruments::capture::{Capture, CaptureOptions};
use fanfare_operator::{Control, Operator};
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watchdog::Watchdog;

/// The interval at which signals and notices are polled.
const LOOK: Duration = Duration::from_millis(100);

/// The longest configuration file, in bytes.
const LONGEST: u64 = 16 << 20;

/// When a configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// At the start.
    Start,
    /// While the gateway runs.
    Reload,
}

/// Reads a configuration file, which may be a pipe at the start. A reload would have to wait for a
/// pipe, and refuses it. It also refuses a configuration without a key: that is more likely to be
/// half written than meant, and would end all sessions and open the ports to others.
pub(crate) fn read(path: &Path, when: When) -> Result<Config> {
    let place = || format!("cannot read {}", path.display());
    let text = match when {
        When::Start => File::open(path).and_then(|file| regular::whole(file, LONGEST)),
        When::Reload => regular::read(path, LONGEST),
    };
    let text = text.with_context(place)?;
    let text = String::from_utf8(text).with_context(place)?;
    let config = Config::from_toml(&text).with_context(|| path.display().to_string())?;
    if when == When::Reload && !Config::sets_key(&text) {
        bail!("{} has no key", path.display());
    }
    let config = config.of_file(path);
    check_outputs(&config, Some(path))?;
    Ok(config)
}

/// Checks that no output of the gateway is one of its inputs: the configuration, the file of users,
/// or what is replayed.
pub(crate) fn check_outputs(config: &Config, file: Option<&Path>) -> Result<()> {
    let replay = config.replay.as_ref().map(|replay| replay.path());
    let users = config.users_file.as_deref();
    let read: Vec<&Path> = file.into_iter().chain(users).chain(replay).collect();
    let log = match &config.log.to {
        LogTo::File(path) => Some(path.as_path()),
        LogTo::Stderr | LogTo::Journald => None,
    };
    let history = config.history.as_ref();
    let written = [
        config.capture.as_deref(),
        config.events.as_deref(),
        config.audit.as_deref(),
        history.and_then(|history| history.ring.as_deref()),
        log,
    ];
    let mut written = written.into_iter().flatten();
    written.try_for_each(|written| refuse_input(written, &read))
}

/// Checks the files that a configuration names, without running it.
pub(crate) fn check(config: &Config) -> Result<()> {
    config.check_files()?;
    if let Some(console) = &config.console {
        Console::check(console)?;
    }
    Ok(())
}

/// Reads the configuration again from its source.
pub(crate) type Reread<'a> = &'a dyn Fn() -> Result<Config>;

/// Runs the gateway until Ctrl-C, then prints its totals. With `quiet`, only warnings and errors
/// are logged. SIGHUP reloads the configuration, see [`Changes::reload`].
pub(crate) fn run(
    config: &Config,
    quiet: bool,
    log: &LogArgs,
    reread: Reread<'_>,
) -> Result<ExitCode> {
    let settings = log.over(config.log.clone(), quiet)?;
    logs::begin(&settings)?;
    raise_limit(config)?;
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let mut hangup = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let mut gateway = Gateway::start(config, stop.clone())?;
    say!(
        "Launching {}",
        counted(config.workers as u64, "message dispatcher worker")
    );
    let notices = gateway.take_notices();
    let notices = notices.context("a new gateway has notices")?;
    let levels = Levels::new(logs::levels(), &settings, log, quiet);
    let mut log = Log::new(notices, levels);
    let version = env!("CARGO_PKG_VERSION");
    tracing::info!(target: "program", version, pid = std::process::id(), "the gateway begins");
    announce(config, &gateway);
    let mut capture = start_capture(config, &gateway);
    let events = start_events(config, &mut gateway)?;
    let (operator, asks) = GatewayOperator::new(gateway.handle());
    let operator: Arc<dyn Operator> = Arc::new(operator.with_levels(logs::levels()));
    let control = start_control(config, &operator)?;
    let console = start_console(config, operator)?;
    let mut watchdog = Watchdog::begin(&gateway)?;
    while !stop.is_raised() {
        log.look();
        watchdog.look(&gateway);
        std::thread::sleep(LOOK);
        drop_failed(&mut capture);
        let changes = Changes {
            started: config,
            gateway: &gateway,
            capture: capture.as_ref(),
            events: events.as_ref(),
            console: console.as_ref(),
            reread,
        };
        if hangup.is_due() {
            log.follow(changes.hang_up());
        }
        if let Some(asked) = asks.next() {
            let (outcome, settings) = changes.answer(asked.ask);
            log.follow(settings);
            asked.answer(outcome);
        }
    }
    supervisor::stopping("logging sessions out");
    // A pending request is refused here: the threads behind these handles end only then.
    drop((asks, control, console, watchdog));
    // Messages in flight are counted before the report.
    let counters = gateway.counters().clone();
    let ended = gateway.join();
    log.end();
    let written = events.map(EventLog::stop);
    report::report(config, &counters);
    if let Some(written) = written {
        say!("events: {}", written?);
    }
    ended?;
    capture.map_or(Ok(()), stop_capture)?;
    tracing::info!(target: "program", "the gateway has ended");
    Ok(ExitCode::SUCCESS)
}

/// Raises the limit of open files as far as the ports need it, or logs how far it goes.
fn raise_limit(config: &Config) -> Result<()> {
    let wanted = descriptors_wanted(config);
    let files = raise_open_files(wanted).context("cannot read the limit of open files")?;
    if files < wanted {
        let connections = counted(files.saturating_sub(128), "connection");
        let wanted = config.dbn.as_ref().map(|dbn| dbn.max_clients);
        let of_dbn = dbn_clients(config).filter(|most| Some(*most) < wanted);
        let of_dbn = of_dbn.map(|most| counted(most as u64, "client"));
        let of_dbn = of_dbn.map_or_else(String::new, |most| format!(", at most {most} of DBN"));
        let limit = format!("the system allows {files} open files: about {connections}{of_dbn}");
        tracing::warn!(target: "program", files, "{limit}");
    }
    Ok(())
}

fn announce(config: &Config, gateway: &Gateway) {
    say!("Running on {}", counted(gateway.threads() as u64, "thread"));
    for feed in &config.feeds {
        announce_lines(&feed.lines, feed.interface, "");
        for snapshots in &feed.snapshot {
            let interface = snapshots.interface.unwrap_or(feed.interface);
            announce_lines(&snapshots.lines, interface, ", snapshots");
        }
        if let Some(replay) = &feed.replay {
            say!(
                "Asking the replay at {} for what is missing",
                replay.address
            );
        }
        if let Some(topics) = &feed.publish {
            say!("Publishing decoded messages in domain {}", topics.domain);
        }
        if let Some(edges) = &feed.edges {
            say!(
                "Publishing market events for edges in domain {}",
                edges.domain
            );
        }
    }
    for edge in &config.edges {
        say!(
            "Taking {} from gateways in domain {}",
            edge.channel,
            edge.domain
        );
    }
    if let Some(replay) = &config.replay {
        say!("Replaying {} {}", replay.path().display(), replay.speed);
    }
    if let Some(file) = &config.audit {
        say!("Auditing into {}", file.display());
    }
    let over = |port: &PortConfig| port.tls.as_ref().map_or("", |_| ", over TLS");
    for (who, address, port) in [
        ("producers", gateway.producers(), &config.producers),
        ("consumers", gateway.consumers(), &config.consumers),
    ] {
        say!("Listening for {who} on {address}{}", over(port));
    }
    warn(config, config);
    announce_dbn(config, gateway);
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

fn announce_dbn(config: &Config, gateway: &Gateway) {
    let (Some(dbn), Some(address)) = (&config.dbn, gateway.dbn()) else {
        return;
    };
    say!("Listening for DBN ({}) on {address}", dbn.dataset);
    if !dbn.bind.is_loopback() && dbn.open {
        let who = "whoever reaches the port";
        tracing::warn!(target: "dbn", "open = true: {who} receives market data");
    }
}

/// Warns of insecure settings of ports that other machines reach, and of certificates that clients
/// refuse. A port keeps the address and the `tls` that it has `started` with.
fn warn(started: &Config, config: &Config) {
    for (who, bound, port) in [
        ("producers", &started.producers, &config.producers),
        ("consumers", &started.consumers, &config.consumers),
    ] {
        if bound.bind.is_loopback() {
            continue;
        }
        if port.open {
            let anybody = "whoever reaches the port";
            tracing::warn!(target: "session", "{who}: open = true: {anybody} may log on");
        }
        if bound.tls.is_none() && config.has_users() {
            let plain = "passwords come in plain text";
            tracing::warn!(target: "session", "{who}: {plain}: the port has no tls");
        }
    }
    warn_of_time(started);
}

/// Warns of certificates that clients refuse at this time. Their files are those that the gateway
/// has `started` with.
fn warn_of_time(started: &Config) {
    let port = |port: &PortConfig| port.tls.as_ref().map(|tls| tls.certificate.clone());
    let console = started.console.as_ref();
    let console = console.and_then(|console| console.tls.as_ref());
    for (who, certificate) in [
        ("producers", port(&started.producers)),
        ("consumers", port(&started.consumers)),
        ("console", console.map(|tls| tls.certificate.clone())),
    ] {
        let why = certificate.and_then(|file| out_of_time(&file, clock::utc()));
        if let Some(why) = why {
            tracing::warn!(target: "session", "{who}: {why}");
        }
    }
}

fn announce_lines(lines: &[FeedLine], interface: Ipv4Addr, what: &str) {
    for line in lines {
        let interface = line.interface.unwrap_or(interface);
        match line.source {
            Some(source) => say!("Receiving {} of {source} on {interface}{what}", line.group),
            None => say!("Receiving {} on {interface}{what}", line.group),
        }
    }
}

/// Starts the capture, or logs why not: the gateway runs without the right to capture.
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
            tracing::warn!(target: "files", "{e}; running without a capture");
            None
        }
    }
}

/// Logs why the capture has ended, if it has, and drops it: the gateway runs on without.
fn drop_failed(capture: &mut Option<Capture>) {
    if let Some(e) = capture.as_mut().and_then(Capture::failure) {
        tracing::warn!(target: "files", "{e}; running without a capture");
        *capture = None;
    }
}

/// Listens for operators, if the configuration names a control socket.
fn start_control(config: &Config, operator: &Arc<dyn Operator>) -> Result<Option<Control>> {
    let Some(path) = &config.control else {
        return Ok(None);
    };
    let control = Control::start(path, Arc::clone(operator));
    let control = control.with_context(|| format!("cannot listen at {}", path.display()))?;
    say!("Listening for operators at {}", path.display());
    Ok(Some(control))
}

/// Serves metrics and the HTTP API, if the configuration asks for them.
fn start_console(config: &Config, operator: Arc<dyn Operator>) -> Result<Option<Console>> {
    let Some(settings) = &config.console else {
        return Ok(None);
    };
    let console = Console::start(settings, operator)?;
    let scheme = if console.has_tls() { "https" } else { "http" };
    say!("Console at {scheme}://{}", console.address());
    if let Some(socket) = &settings.socket {
        say!("Console at {}", socket.display());
    }
    if !settings.bind.is_loopback() && !console.has_tls() {
        tracing::warn!(target: "control", "console: tokens come in plain text: it has no tls");
    }
    Ok(Some(console))
}

/// Starts to write market events, if the configuration names a file for them.
fn start_events(config: &Config, gateway: &mut Gateway) -> Result<Option<EventLog>> {
    // Without a file, the reader is dropped, with the instruments that it holds.
    let events = gateway.take_events();
    let Some((file, events)) = config.events.as_ref().zip(events) else {
        return Ok(None);
    };
    let log = EventLog::start(file, events)?;
    say!("Writing market events to {}", file.display());
    Ok(Some(log))
}

fn stop_capture(capture: Capture) -> Result<()> {
    let stats = capture.stop()?;
    say!("{} captured", counted(stats.captured, "packet"));
    say!("{} received by filter", counted(stats.received, "packet"));
    say!("{} dropped by kernel", counted(stats.dropped, "packet"));
    Ok(())
}

/// The log of notices, written in the background, so that a blocked stream delays no other thread.
struct Log<'a> {
    notices: NoticeReceiver,
    digest: Digest,
    levels: Levels<'a>,
    begun: Instant,
}

impl<'a> Log<'a> {
    fn new(notices: NoticeReceiver, levels: Levels<'a>) -> Self {
        Self {
            notices,
            digest: Digest::new(),
            levels,
            begun: Instant::now(),
        }
    }

    /// Writes the notices since the last call. Those of a target at level debug are not summed up.
    fn look(&mut self) {
        let now = self.begun.elapsed();
        let left_out = self.notices.left_out();
        if left_out > 0 {
            let notices = counted(left_out, "notice");
            let why = "they came faster than they could be written";
            tracing::warn!(target: "program", left_out, "{notices} left out: {why}");
        }
        let levels = self.levels.in_force();
        for notice in self.notices.iter() {
            let (target, level) = (notice.target(), notice.level());
            if levels.is_on(target, LogLevel::Debug) {
                logs::notice(&notice, &notice.to_string());
            } else if levels.is_on(target, level) {
                self.digest.take(now, notice, &mut logs::notice);
            }
        }
        self.digest.look(now, &mut logs::notice);
    }

    /// Adopts the levels of a reloaded configuration, if there is one.
    fn follow(&mut self, settings: Option<ProgramLog>) {
        if let Some(settings) = settings {
            self.levels.follow(settings);
        }
    }

    /// Writes the last notices; the gateway has ended.
    fn end(mut self) {
        self.look();
        let now = self.begun.elapsed();
        self.digest.end(now, &mut logs::notice);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_configuration_without_a_key_is_refused_at_a_reload_and_a_long_one_always() {
        let folder = Scratch::new("configuration").unwrap();
        let path = folder.file("plant.toml");
        let why = |text: &str, when| {
            std::fs::write(&path, text).unwrap();
            read(&path, when).err().map(|error| format!("{error:#}"))
        };
        for text in ["", "\n \n", "# workers = 2\n", "[log]\n[limits]\n"] {
            assert_eq!(why(text, When::Start), None);
            let told = why(text, When::Reload).unwrap();
            assert!(told.ends_with("plant.toml has no key"), "{told}");
        }
        for when in [When::Start, When::Reload] {
            assert_eq!(why("workers = 2\n", when), None);
            assert_eq!(why("[limits]\nlogon_bytes = 8192\n", when), None);
            let told = why(&"#".repeat(LONGEST as usize + 1), when).unwrap();
            assert!(told.ends_with("more than 16777216 bytes"), "{told}");
            assert!(read(&folder.file("."), when).is_err());
        }
    }

    #[test]
    fn a_pipe_is_read_at_the_start_and_refused_at_a_reload() {
        let folder = Scratch::new("piped").unwrap();
        let pipe = folder.file("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "workers = 2\n").unwrap()
        });
        assert_eq!(read(&pipe, When::Start).unwrap().workers, 2);
        writer.join().unwrap();
        let told = format!("{:#}", read(&pipe, When::Reload).unwrap_err());
        assert!(told.ends_with("it is not a regular file"), "{told}");
    }
}
