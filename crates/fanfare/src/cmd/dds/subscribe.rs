//! `fanfare dds subscribe`: receive, check, echo.

use super::once::Once;
use super::options::{self, DomainArgs, FeedArgs, Role, ShmArgs};
use super::printer::{self, Printing, Unprinted};
use super::publish::SAMPLE;
use crate::cmd::fast::packets::{Flow, each_packet};
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use fanfare_dds::Error;
use fanfare_dds::distribute::{Departures, Received, Subscriber};
use fanfare_engine::stop::Stop;
use fanfare_feed::Header;
use fanfare_instruments::dds::{DepartureWatch, Expected, Verdict};
use fanfare_instruments::figures::Figures;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The silence after the Done token that means that missing samples will not come.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// With --once: the silence after the Done token that means that no other publisher fills a gap.
const FILL_WAIT: Duration = Duration::from_secs(1);

/// The time without a sample after which topics without a publisher are mentioned.
const APART: Duration = Duration::from_secs(5);

/// Subscribe to a feed that `fanfare dds publish` publishes, and send each sample back.
///
/// The command ends when it has received the number of samples that the Done token announces. The
/// exit status is 1 if samples are lost, overtaken, wrong or not printed, if a publisher in shared
/// memory is not read at the end for lack of a place, or if a publisher has not said Done when the
/// command ends by --idle.
///
/// Lost samples are counted for each publisher by itself; over DDS, a participant is one publisher.
/// Beyond 1,024 publishers, including those that have left, further ones are counted together: a
/// sample of one replaces a lost sample of another. A sample that a publisher itself left out is
/// not lost here, but counted there: at a gateway, in `samples_not_sent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    feed: FeedArgs,
    #[command(flatten)]
    domain: DomainArgs,
    #[command(flatten)]
    shm: ShmArgs,
    /// Publishers whose Done tokens to wait for.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    publishers: u64,
    /// Merge publishers of the same feed, such as gateways with the same lines: each sample is
    /// taken from the first publisher that delivers it, so that no sample is a duplicate and each
    /// publisher fills the gaps of the others. A sample is identified by its topic, its MsgSeqNum
    /// or SequenceNumber, and all its bytes; at least 14,336 of each topic are remembered, and
    /// with --keyed 57,344. Those of a publisher that is behind by more are dropped until it has
    /// caught up.
    #[arg(long, conflicts_with = "check")]
    once: bool,
    /// After the first sample: end after this many seconds without another; default: wait for the
    /// Done token or Ctrl-C.
    #[arg(long, value_name = "SECONDS")]
    idle: Option<u64>,
    /// Compare each sample byte by byte with those made of this file's messages; one that differs
    /// is an error, one that is missing is counted. A sample of the file has up to 1 MiB.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// With --check: length header in front of each packet of that file.
    #[arg(
        long,
        value_name = "HEADER",
        default_value = "u32le",
        requires = "check"
    )]
    header: Header,
    /// Print each sample, one per line. Up to 65,536 samples, and 64 MiB, are queued for a slow
    /// reader of the output; beyond that the oldest are dropped and counted.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print the figures as JSON: on stdout, or on stderr with --format.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// {"topic": NAME, "sample": {MEMBER: VALUE, …}}
    Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mapping = args.feed.mapping()?;
    let stop = Stop::on_interrupt()?;
    let carrier = args
        .feed
        .carrier(&args.domain, Role::Subscriber, &args.shm)?;
    let (printer, printing) = match args.format {
        Some(Format::Json) => Some(printer::start(&stop)?),
        None => None,
    }
    .unzip();
    let distribution = args.feed.distribution();
    let expected = match &args.check {
        Some(file) => {
            let options = args.feed.strictness.options();
            let mut reader = Expected::reader(&mapping, options, &distribution, SAMPLE);
            let read = each_packet(file, args.header, &stop, |packet| {
                let read = reader.packet(packet.bytes);
                read.with_context(|| format!("in the packet at byte {}", packet.offset))?;
                Ok(Flow::Continue(()))
            });
            read.with_context(|| format!("cannot compare with `{}`", file.display()))?;
            Some(Arc::new(reader.finish()))
        }
        None => None,
    };
    let once = match args.once {
        true => Some(Arc::new(Once::new(&mapping, &distribution).context(
            "--once needs sequence numbers, and no template has a field for them",
        )?)),
        false => None,
    };
    let (compare, filter) = (expected.clone(), once.clone());
    let times = Arc::new(Mutex::new(None));
    let stamps = Arc::clone(&times);
    let on_sample = move |received: Received<'_>| {
        let now = Instant::now();
        if let Ok(mut times) = stamps.lock() {
            let (first, _) = times.unwrap_or((now, now));
            *times = Some((first, now));
        }
        if filter.as_ref().is_some_and(|once| !once.takes(&received)) {
            return;
        }
        if let Some(expected) = &compare {
            let sample = &received.sample;
            expected.compare(received.topic, sample.info.writer, sample.bytes());
        }
        if let Some(printer) = &printer {
            printer.print(&received);
        }
    };
    let subscriber = Subscriber::open(carrier, &mapping, &distribution, on_sample)?;
    note!("Finished subscribing; waiting for samples");
    let end = wait(args, &subscriber, once.as_deref(), &stop)?;
    let span = times.lock().ok().and_then(|t| *t);
    let elapsed = span.map_or(Duration::ZERO, |(first, last)| last - first);
    let verdict = expected.map(|e| e.verdict());
    let dropped = once.map_or(0, |once| once.dropped());
    let mut outcome = Outcome::new(args, &subscriber, elapsed, verdict, (end, dropped));
    // This drops the printer.
    drop(subscriber);
    outcome.unprinted = printing.map_or(Ok(Unprinted::default()), Printing::finish)?;
    Ok(report(args, &outcome))
}

/// The events until the end of a run.
#[derive(Debug, Clone, Copy)]
struct End {
    /// Topics that were closed.
    closed: u64,
    /// Writers that lost their liveliness.
    lost: u32,
    /// Whether Ctrl-C ended the run.
    is_stopped: bool,
}

/// The hints about publishers that were printed, or are not needed. Each is printed once.
#[derive(Debug, Default)]
struct Hints {
    several: bool,
    crowded: bool,
    misfit: bool,
    /// The time at which a publisher that lacks topics was first seen.
    apart: Option<Instant>,
    is_told_apart: bool,
}

impl Hints {
    /// Prints the hints that apply now.
    fn look(&mut self, subscriber: &Subscriber) {
        if !self.several && subscriber.has_several() {
            self.several = true;
            note!(
                "fanfare: several publishers are there, and the samples of each are taken; if they \
                 publish the same feed, --once takes each sample once"
            );
        }
        if !self.crowded && subscriber.crowded() > 0 {
            self.crowded = true;
            note!(
                "fanfare: a publisher is not read for now: it has 64 subscribers, or this \
                 subscriber reads 64 publishers, the most in shared memory, or the system lacks \
                 descriptors or memory"
            );
        }
        if !self.misfit && subscriber.incompatible() > 0 && !subscriber.is_matched() {
            self.misfit = true;
            let what = options::misfit(subscriber.incompatible_policy());
            note!("fanfare: a publisher's {what} the same on both sides?");
        }
        self.look_for_topics(subscriber);
    }

    /// Prints a hint if publishers lack topics, and none has brought a sample.
    fn look_for_topics(&mut self, subscriber: &Subscriber) {
        let is_apart = subscriber.has_any() && !subscriber.is_matched();
        if !is_apart || self.misfit || subscriber.received() > 0 {
            self.apart = None;
            return;
        }
        let since = *self.apart.get_or_insert_with(Instant::now);
        if !self.is_told_apart && since.elapsed() > APART {
            self.is_told_apart = true;
            note!(
                "fanfare: a publisher is there, and not for all topics: are templates, --keyed, \
                 --split, --securities and --no-echo the same on both sides?"
            );
        }
    }
}

/// Waits for the Done token and the last sample, for idleness, or for Ctrl-C.
fn wait(args: &Args, subscriber: &Subscriber, once: Option<&Once>, stop: &Stop) -> Result<End> {
    let mut closed = BTreeSet::new();
    let mut hints = Hints {
        several: once.is_some() || args.publishers > 1,
        ..Hints::default()
    };
    let mut changed = (0, Instant::now());
    let mut company = false;
    let mut watch = DepartureWatch::new("writers", |line| note!("fanfare: {line}"));
    while !stop.is_raised() {
        let received = subscriber.received();
        if received != changed.0 {
            changed = (received, Instant::now());
        }
        let (tokens, _) = subscriber.announced();
        let done = tokens >= args.publishers;
        let silence = changed.1.elapsed();
        let is_complete = match once {
            None => subscriber.lost() == 0,
            Some(once) => {
                let taken = received.saturating_sub(once.dropped());
                taken >= subscriber.announced_most() && silence > FILL_WAIT
            }
        };
        if done && (is_complete || silence > LAST_WAIT) {
            break;
        }
        hints.look(subscriber);
        look_for_failures(subscriber, &mut closed)?;
        if subscriber.is_closed() {
            break;
        }
        if received > 0 && args.idle.is_some_and(|s| silence > Duration::from_secs(s)) {
            break;
        }
        let departures = subscriber.departures();
        watch.look(departures);
        let there = subscriber.has_any();
        if there != company && !done {
            match (there, tokens) {
                (true, _) => note!("a publisher is there"),
                (false, 0) => {
                    note!("fanfare: no publisher is left, and none said Done; waiting for another");
                }
                (false, n) => note!("no publisher is left; {n} said Done; waiting for another"),
            }
        }
        company = there;
        thread::sleep(Duration::from_millis(2));
    }
    if stop.is_raised() && subscriber.received() == 0 {
        bail!("interrupted before the first sample");
    }
    look_for_failures(subscriber, &mut closed)?;
    Ok(End {
        closed: closed.len() as u64,
        lost: watch.lost(subscriber.departures()),
        is_stopped: stop.is_raised(),
    })
}

/// Records topics that were closed.
///
/// # Errors
/// A listener of this program panicked.
fn look_for_failures(subscriber: &Subscriber, closed: &mut BTreeSet<String>) -> Result<()> {
    for failure in subscriber.failures() {
        let Error::ReaderClosed { topic, .. } = &failure else {
            return Err(failure.into());
        };
        if closed.insert(topic.clone()) {
            note!("fanfare: {failure}; the other topics go on");
        }
    }
    Ok(())
}

/// The samples that a run received.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    elapsed: Duration,
    verdict: Option<Verdict>,
    end: End,
    /// Samples taken, and those of other publishers that were not.
    samples: u64,
    dropped: u64,
    /// Samples that the tokens announced, and the number of them that were not received.
    announced: u64,
    lost: u64,
    /// Samples that newer ones replaced before they were read.
    overtaken: u64,
    /// Publishers in shared memory that are not read at the end, for lack of a place.
    crowded: u64,
    echo_failed: u64,
    departures: Departures,
    /// Whether all publishers have said Done.
    is_done: bool,
    is_once: bool,
    unprinted: Unprinted,
}

impl Outcome {
    fn new(
        args: &Args,
        subscriber: &Subscriber,
        elapsed: Duration,
        verdict: Option<Verdict>,
        (end, dropped): (End, u64),
    ) -> Self {
        let samples = subscriber.received().saturating_sub(dropped);
        let (tokens, announced) = subscriber.announced();
        let most = subscriber.announced_most();
        let (announced, lost) = match args.once {
            true => (most, most.saturating_sub(samples)),
            false => (announced, subscriber.lost()),
        };
        Self {
            elapsed,
            verdict,
            end,
            samples,
            dropped,
            announced,
            lost,
            overtaken: subscriber.overtaken(),
            crowded: subscriber.crowded(),
            echo_failed: subscriber.echo_failed(),
            departures: subscriber.departures(),
            is_done: tokens >= args.publishers,
            is_once: args.once,
            unprinted: Unprinted::default(),
        }
    }

    /// Returns whether every sample that publishers have written is received, right, sent back and
    /// printed.
    fn is_ok(&self) -> bool {
        let is_right = self.verdict.is_none_or(|v| v.wrong == 0);
        // Another publisher has brought what one has announced, if none of it is lost.
        let is_filled = self.is_once && self.announced > 0;
        let is_complete = self.overtaken == 0 && self.crowded == 0;
        let is_whole = self.lost == 0 && (is_complete || is_filled);
        let is_printed = self.unprinted.left_out == 0 && self.unprinted.unreadable == 0;
        let has_ended = self.is_done || self.end.is_stopped;
        has_ended
            && is_whole
            && is_right
            && is_printed
            && self.end.closed == 0
            && self.echo_failed == 0
    }

    fn figures(&self) -> Figures {
        let mut figures = Figures::new("dds subscribe");
        figures.set_ok(self.is_ok());
        figures.count("samples", self.samples);
        figures.count("lost", self.lost);
        if self.is_once {
            figures.count("from_another", self.dropped);
        }
        figures.count("overtaken", self.overtaken);
        figures.count("crowded", self.crowded);
        figures.count("echo_failed", self.echo_failed);
        figures.count("topics_closed", self.end.closed);
        figures.count("writers_lost", self.end.lost.into());
        figures.count("writers_left", self.departures.gone.into());
        figures.count("not_printed", self.unprinted.left_out);
        figures.count("unreadable", self.unprinted.unreadable);
        if let Some(verdict) = self.verdict {
            figures.count("equal", verdict.equal);
            figures.count("wrong", verdict.wrong);
            figures.count("not_received", verdict.missing);
        }
        figures.add("elapsed_us", self.elapsed.as_nanos() as f64 / 1e3);
        figures
    }

    fn note(&self) {
        let (samples, us) = (self.samples, self.elapsed.as_micros());
        let (lost, announced) = (self.lost, self.announced);
        note!("{samples} samples in {us} us, {lost} of {announced} announced are missing");
        if self.is_once {
            let dropped = self.dropped;
            note!("{dropped} samples dropped that another publisher had brought");
        }
        if let Some(v) = self.verdict {
            let (equal, wrong, missing) = (v.equal, v.wrong, v.missing);
            note!("{equal} as in the file, {wrong} not, {missing} of the file not received");
        }
        if self.overtaken > 0 {
            let overtaken = self.overtaken;
            note!("{overtaken} were overwritten before they were read: this side is too slow");
        }
        if self.crowded > 0 {
            let publishers = counted(self.crowded, "publisher");
            note!("{publishers} in shared memory could not be read, for lack of a place");
        }
        if self.end.closed > 0 {
            let topics = counted(self.end.closed, "topic");
            note!(
                "{topics} closed: writers had more keys than --instances, or one of more than \
                 1,024 bytes"
            );
        }
        if self.echo_failed > 0 {
            note!("{} echoes could not be sent", self.echo_failed);
        }
    }
}

fn report(args: &Args, outcome: &Outcome) -> ExitCode {
    let Unprinted {
        left_out,
        unreadable,
    } = outcome.unprinted;
    if left_out > 0 {
        note!("fanfare: {left_out} samples were not printed: the reader of stdout is too slow");
    }
    if unreadable > 0 {
        note!("fanfare: {unreadable} samples were not readable");
    }
    if !outcome.is_done && !outcome.end.is_stopped {
        note!("fanfare: a publisher has not said Done: samples may be missing");
    }
    match (args.json, args.format) {
        (false, _) => outcome.note(),
        (true, Some(_)) => note!("{}", outcome.figures().to_json()),
        (true, None) => say!("{}", outcome.figures().to_json()),
    }
    exit_code(outcome.is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Outcome = Outcome {
        elapsed: Duration::ZERO,
        verdict: None,
        end: End {
            closed: 0,
            lost: 0,
            is_stopped: false,
        },
        samples: 7,
        dropped: 0,
        announced: 7,
        lost: 0,
        overtaken: 0,
        crowded: 0,
        echo_failed: 0,
        departures: Departures {
            gone: 0,
            silent: 0,
            silent_now: 0,
        },
        is_done: true,
        is_once: false,
        unprinted: Unprinted {
            left_out: 0,
            unreadable: 0,
        },
    };

    #[test]
    fn each_loss_is_a_failure() {
        assert!(WHOLE.is_ok());
        let worse: [fn(&mut Outcome); 9] = [
            |o| o.lost = 1,
            |o| o.overtaken = 1,
            |o| o.crowded = 1,
            |o| o.echo_failed = 1,
            |o| o.is_done = false,
            |o| o.end.closed = 1,
            |o| o.unprinted.left_out = 1,
            |o| o.unprinted.unreadable = 1,
            |o| {
                o.verdict = Some(Verdict {
                    wrong: 1,
                    ..Verdict::default()
                });
            },
        ];
        for (number, worsen) in worse.into_iter().enumerate() {
            let mut outcome = WHOLE;
            worsen(&mut outcome);
            assert!(!outcome.is_ok(), "{number}");
        }
    }

    #[test]
    fn ctrl_c_replaces_the_token_but_no_sample() {
        let mut outcome = WHOLE;
        (outcome.is_done, outcome.end.is_stopped) = (false, true);
        assert!(outcome.is_ok());
        outcome.overtaken = 1;
        assert!(!outcome.is_ok());
    }

    #[test]
    fn another_publisher_fills_what_was_overtaken_or_had_no_place() {
        let mut outcome = WHOLE;
        (outcome.overtaken, outcome.crowded, outcome.is_once) = (1, 1, true);
        assert!(outcome.is_ok());
        outcome.announced = 0;
        assert!(!outcome.is_ok());
    }
}
