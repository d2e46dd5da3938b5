//! `fanfare fanout consumers --subscribe`: sessions that subscribe, rebuild books and check them.

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use fanfare_engine::stop::Stop;
use fanfare_fix::dict::Version;
use fanfare_fix::session::Credentials;
use fanfare_gateway::Contract;
use fanfare_instruments::load::{Asked, SubscribeOptions, SubscribeReport, Subscribers};
use fanfare_instruments::subscriber::{Terms, Updates};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::tell_logged_on;
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::range::{rate, whole};

/// The subscriptions of the sessions.
#[derive(ClapArgs)]
#[command(next_help_heading = "Market data")]
pub(super) struct Market {
    /// Subscribe to these instruments by V, separated by commas: a Symbol(55), a prefix with `*`,
    /// `*` for all, `@NAME` for a list of the gateway's. Each session rebuilds its books, by
    /// position and by price, and checks numbers and checksums: the first contradiction is printed,
    /// and the exit status is 1.
    #[arg(long, value_name = "SYMBOLS", value_delimiter = ',', value_parser = symbol)]
    pub(super) subscribe: Vec<String>,
    /// Each session subscribes to this many of the instruments alone: those after the previous
    /// session's, cyclically. Default: all of them.
    #[arg(
        long,
        value_name = "N",
        requires = "subscribe",
        conflicts_with = "churn"
    )]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    part: Option<usize>,
    /// Levels of a side; 0: all.
    #[arg(long, value_name = "N", default_value_t = 0, requires = "subscribe")]
    depth: u16,
    /// Delivery to a slow session; default: the gateway's setting for the user.
    #[arg(long, value_name = "CONTRACT", requires = "subscribe")]
    contract: Option<Delivery>,
    /// Milliseconds between two updates of an instrument; default: each change.
    #[arg(long, value_name = "MS", requires = "subscribe")]
    #[arg(value_parser = whole::<u32>(1..=3_600_000))]
    interval: Option<u32>,
    /// Request a checksum of the book in each snapshot and each N-th X of an instrument. 0 requests
    /// none: other gateways do not have the field.
    #[arg(long, value_name = "N", default_value_t = 100, requires = "subscribe")]
    checksum_every: u32,
    /// MDEntryTypes(269), separated by commas.
    #[arg(
        long,
        value_name = "TYPES",
        default_value = "0,1",
        requires = "subscribe"
    )]
    #[arg(value_delimiter = ',', value_parser = entry)]
    entries: Vec<u8>,
    /// The updates after the first snapshot.
    #[arg(
        long,
        value_name = "UPDATES",
        default_value = "changes",
        requires = "subscribe"
    )]
    updates: Follow,
    /// Request orders instead of levels: whole books.
    #[arg(long, requires = "subscribe", conflicts_with = "depth")]
    by_order: bool,
    /// The version of FIX, FIX.4.2 to FIX.5.0SP2.
    #[arg(
        long = "fix",
        value_name = "VERSION",
        default_value = "FIX.4.4",
        requires = "subscribe"
    )]
    #[arg(value_parser = version)]
    version: Version,
    /// Sessions join, change their subscriptions, log out and disconnect at random; the same seed
    /// makes each session do the same. No session subscribes to more than the other options state.
    /// All sessions end once none is connected and the gateway cannot be reached.
    #[arg(long, value_name = "SEED", requires = "subscribe")]
    churn: Option<u64>,
    /// End after this many seconds.
    #[arg(long, value_name = "SECONDS", requires = "subscribe", value_parser = rate(1e6))]
    seconds: Option<f64>,
    /// Username(553) of all sessions.
    #[arg(long, value_name = "NAME", requires_all = ["subscribe", "password_file"])]
    username: Option<String>,
    /// The file whose first line is Password(554).
    #[arg(long, value_name = "FILE", requires = "username")]
    password_file: Option<PathBuf>,
}

/// [`Contract`] on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Delivery {
    /// Every change; a slow session is logged out.
    Cut,
    /// Every change; those that a slow session misses are announced.
    Skip,
    /// The newest state; changes are merged.
    Conflated,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Follow {
    /// Nothing.
    Once,
    /// Snapshots, W.
    Snapshot,
    /// Changes, X.
    Changes,
}

fn symbol(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    match !text.is_empty() && text.len() <= 128 && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("must be 1 to 128 printable ASCII characters".to_owned()),
    }
}

fn entry(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [one] if one.is_ascii_alphanumeric() => Ok(*one),
        _ => Err("must be an MDEntryType(269), one digit or letter".to_owned()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    let known = Version::from_name(text);
    let has =
        |version: &Version| !matches!(version, Version::Fix40 | Version::Fix41 | Version::Fixt11);
    known
        .filter(has)
        .ok_or_else(|| "must be FIX.4.2 to FIX.4.4, FIX.5.0, FIX.5.0SP1 or FIX.5.0SP2".to_owned())
}

impl Market {
    fn asked(&self) -> Asked {
        let terms = Terms {
            depth: self.depth.into(),
            updates: match self.updates {
                Follow::Once => Updates::None,
                Follow::Snapshot => Updates::Snapshots,
                Follow::Changes => Updates::Changes,
            },
            checksum_every: self.checksum_every,
            by_order: self.by_order,
            conflated: matches!(self.contract, Some(Delivery::Conflated)),
        };
        Asked {
            symbols: self.subscribe.clone(),
            terms,
            entries: self.entries.clone(),
            contract: self.contract.map(|contract| match contract {
                Delivery::Cut => Contract::Cut,
                Delivery::Skip => Contract::Skip,
                Delivery::Conflated => Contract::Conflated,
            }),
            interval: self.interval,
        }
    }

    fn credentials(&self) -> Result<Option<Credentials>> {
        let (Some(username), Some(file)) = (&self.username, &self.password_file) else {
            return Ok(None);
        };
        Ok(Some(Credentials {
            username: username.as_str().into(),
            password: first_line(file)?.into(),
        }))
    }

    /// Completes the options of sessions that state their address and number.
    pub(super) fn options(&self, to: SubscribeOptions) -> Result<SubscribeOptions> {
        Ok(SubscribeOptions {
            version: self.version,
            credentials: self.credentials()?,
            asked: self.asked(),
            part: self.part,
            churn: self.churn,
            duration: self.seconds.map(Duration::from_secs_f64),
            ..to
        })
    }
}

fn first_line(file: &Path) -> Result<String> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => bail!("{}: the first line is empty", file.display()),
    }
}

/// Connects, and runs until the end that the options define.
pub(super) fn run(
    options: &SubscribeOptions,
    json: bool,
    ends_with: impl FnOnce(&Stop),
    progress: &mut dyn FnMut(u64),
) -> Result<ExitCode> {
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let subscribers = Subscribers::connect(options, &stop)?;
    tell_logged_on(subscribers.sessions(), subscribers.refused());
    ends_with(&stop);
    let report = subscribers.run(&stop, progress)?;
    tell_trouble(&report);
    if json {
        say!("{}", report.figures().to_json());
    } else {
        print(&report);
    }
    Ok(exit_code(report.is_clean()))
}

/// Prints sentences about what was wrong.
fn tell_trouble(report: &SubscribeReport) {
    let counts = &report.counts;
    if let Some((session, why)) = &report.first_fault {
        let faults = counted(counts.faults, "fault");
        note!("fanfare: {faults}, first of session {session}: {why}");
    }
    if let Some((session, why)) = &report.first_refusal {
        let refused = counted(counts.refused + counts.rejected, "request");
        note!("fanfare: {refused} refused, first of session {session}: {why}");
    }
    if let Some((session, why)) = &report.first_ended {
        let sessions = counted(report.ended as u64, "session");
        note!("fanfare: {sessions} ended early, first {session}: {why}");
    }
    if report.unanswered > 0 {
        let requests = counted(report.unanswered as u64, "request");
        note!("fanfare: {requests} without an answer");
    }
    if report.is_silent() {
        note!(
            "fanfare: no answer to any request: the gateway has no such instrument, or no market"
        );
    }
    if report.unsent > 0 {
        note!(
            "fanfare: {} could not be sent",
            counted(report.unsent, "request")
        );
    }
    if report.short > 0 {
        note!(
            "fanfare: {} that were expected have not come",
            counted(report.short, "message")
        );
    }
}

fn print(report: &SubscribeReport) {
    let counts = &report.counts;
    say!(
        "{} and {} received, {:.0} a second",
        counted(counts.snapshots, "snapshot"),
        counted(counts.changes, "change"),
        report.rate()
    );
    say!(
        "{} at the end, {} live; {} compared, {}",
        counted(report.books as u64, "book"),
        report.live,
        counted(counts.checked, "checksum"),
        counted(counts.faults, "fault")
    );
    let ranges = counted(counts.skipped, "range");
    let entries = counts.skipped_entries;
    say!("{ranges} left out with {entries} entries, as the gateway said");
    say!(
        "{}, {} refused; {}, {}",
        counted(report.requests, "request"),
        counts.refused,
        counted(counts.states, "state"),
        counted(counts.statuses, "status message")
    );
    if report.left > 0 {
        say!(
            "{}, {} left and came back",
            counted(report.logons, "logon"),
            report.left
        );
    }
}
