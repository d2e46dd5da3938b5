//! `fanfare dds ping` and `pong`: the round trip of a sample between two programs.

use super::ls::seconds;
use super::options::{DomainArgs, Role};
use super::statistics::{self, Series};
use crate::print::{note, say};
use anyhow::{Context, Result, bail};
use fanfare_dds::cdr::{CdrBuffer, CdrReader};
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, Qos, Reader, Reliability, Sample, Status, Writer};
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const PING: &str = "FanfarePing";
const PONG: &str = "FanfarePong";
/// The longest payload.
const LONGEST: u32 = 1 << 20;

/// Measure the round trip of a sample to a `fanfare dds pong` and back, one at a time.
///
/// Times are in microseconds, from the write to the call of the listener with the answer, whose
/// bytes are checked. A sample without an answer within --timeout counts as lost.
#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Bytes of payload in each sample.
    #[arg(long, value_name = "BYTES", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(LONGEST)))]
    size: u32,
    /// Samples that are measured.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Samples before those, which are not measured.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    warm_up: u64,
    /// Best-effort instead of reliable delivery; pong needs the same.
    #[arg(long)]
    best_effort: bool,
    /// Seconds to wait for a pong before the first sample.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    /// Seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    timeout: f64,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Send each sample of `fanfare dds ping` back, until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct PongArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Best-effort instead of reliable delivery.
    #[arg(long)]
    best_effort: bool,
    /// End after so many samples; default: Ctrl-C.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

fn sample_type() -> StructType {
    StructType::new("Fanfare::Ping")
        .member("sender", Kind::UInt64)
        .member("number", Kind::UInt64)
        .member("payload", Kind::Sequence(Box::new(Kind::Byte), None))
}

/// Policies of both directions.
fn qos(best_effort: bool) -> Qos {
    if best_effort {
        Qos::best_effort()
    } else {
        Qos::reliable()
    }
}

/// As `qos`, for a listener that answers: its writes must not wait for acknowledgements, which the
/// same thread receives.
fn hasty(best_effort: bool) -> Qos {
    let qos = qos(best_effort);
    if best_effort {
        return qos;
    }
    qos.reliability(Reliability::Reliable(Duration::ZERO))
}

/// Events that a user wants to see.
fn tell(matches: &Arc<Matches>) -> impl FnMut(Status) + Send + 'static + use<> {
    let matches = Arc::clone(matches);
    move |status| match status {
        Status::Matched { current, .. } => matches.0.store(current, Ordering::Release),
        Status::IncompatibleQos { .. } => {
            note!("fanfare: {status}: is --best-effort the same on both sides?");
        }
        _ => {}
    }
}

/// The other side's ends of one topic.
#[derive(Default)]
struct Matches(AtomicU32);

impl Matches {
    fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// Answers that a listener could not send at once, waiting for the thread that can wait.
const LATE_ANSWERS: usize = 64;

pub(crate) fn pong(args: &PongArgs) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Subscriber)?;
    let (t, qos) = (sample_type(), qos(args.best_effort));
    let matches = Arc::new(Matches::default());
    let topic = domain.topic(PONG, &t, &qos)?;
    let quick = topic
        .writer(&hasty(args.best_effort))
        .on_status(tell(&matches));
    let (quick, patient) = (quick.open()?, topic.writer(&qos).open()?);
    let (late, waiting) = sync_channel::<Vec<u8>>(LATE_ANSWERS);
    let counts = Arc::new(Counts::default());
    let (listener, main) = (Arc::clone(&counts), thread::current());
    let answer = move |sample: Sample<'_>| {
        let sent = quick.write(sample.bytes()).is_ok();
        if !sent && late.try_send(sample.bytes().to_vec()).is_err() {
            listener.failed.fetch_add(1, Ordering::Relaxed);
        }
        listener.came.fetch_add(1, Ordering::Release);
        main.unpark();
    };
    let reader = domain.topic(PING, &t, &qos)?.reader(&qos);
    let reader = reader.on_status(tell(&matches)).on_sample(answer).open()?;
    note!("answering on {PONG} what comes on {PING}");
    let most = args.count.unwrap_or(u64::MAX);
    while !stop.is_raised() && counts.came.load(Ordering::Acquire) < most {
        reader.check()?;
        answer_late(&waiting, &patient, &counts);
        thread::park_timeout(Duration::from_millis(50));
    }
    // With it the listener's last call is over, whose answer may be there already.
    drop(reader);
    answer_late(&waiting, &patient, &counts);
    let came = counts.came.load(Ordering::Acquire);
    let failed = counts.failed.load(Ordering::Relaxed);
    note!("{came} samples came, {failed} could not be answered");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[derive(Default)]
struct Counts {
    came: AtomicU64,
    failed: AtomicU64,
}

/// Sends what found too much unacknowledged before it.
fn answer_late(waiting: &Receiver<Vec<u8>>, writer: &Writer, counts: &Counts) {
    for sample in waiting.try_iter() {
        if writer.write(&sample).is_err() {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

pub(crate) fn ping(args: &PingArgs) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Publisher)?;
    let mut run = Run::open(args, &domain)?;
    run.wait_for_pong(args, &stop)?;
    let total = args.warm_up.saturating_add(args.count);
    for sequence in 0..total {
        if stop.is_raised() {
            break;
        }
        run.one(sequence, sequence >= args.warm_up)?;
    }
    run.reader.check()?;
    Ok(report(args, &run))
}

struct Run {
    writer: Writer,
    reader: Reader,
    shared: Arc<Shared>,
    /// Of both directions.
    matches: [Arc<Matches>; 2],
    buffer: CdrBuffer,
    payload: Vec<u8>,
    sender: u64,
    timeout: Duration,
    sent: u64,
    lost: u64,
    series: Series,
}

/// Between the listener and the thread that writes.
struct Shared {
    /// The sequence number that is waited for, and when its answer came.
    waiting: Mutex<(u64, Option<Instant>)>,
    wrong: AtomicU64,
    main: Thread,
}

impl Run {
    fn open(args: &PingArgs, domain: &Domain) -> Result<Self> {
        let (t, qos) = (sample_type(), qos(args.best_effort));
        let matches = [(); 2].map(|()| Arc::new(Matches::default()));
        let shared = Arc::new(Shared {
            waiting: Mutex::new((0, None)),
            wrong: AtomicU64::new(0),
            main: thread::current(),
        });
        // Any byte that a copy could get wrong.
        let payload: Vec<u8> = (0..args.size).map(|i| (i % 251) as u8).collect();
        let sender = sender();
        let (listener, expected) = (Arc::clone(&shared), payload.clone());
        let on_answer = move |sample: Sample<'_>| {
            let came = Instant::now();
            listener.answer(sample.bytes(), sender, &expected, came);
        };
        let writer = domain.topic(PING, &t, &qos)?.writer(&qos);
        let reader = domain.topic(PONG, &t, &qos)?.reader(&qos);
        Ok(Self {
            writer: writer.on_status(tell(&matches[0])).open()?,
            reader: reader
                .on_status(tell(&matches[1]))
                .on_sample(on_answer)
                .open()?,
            shared,
            matches,
            buffer: CdrBuffer::with_capacity(payload.len() + 64),
            payload,
            sender,
            timeout: Duration::from_secs_f64(args.timeout),
            sent: 0,
            lost: 0,
            series: Series::default(),
        })
    }

    /// Waits until both directions have a pong.
    fn wait_for_pong(&self, args: &PingArgs, stop: &Stop) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(args.wait);
        while !self.matches.iter().all(|m| m.any()) {
            if stop.is_raised() {
                bail!("interrupted before a pong was there");
            }
            if Instant::now() >= end {
                let id = args.domain.domain;
                bail!(
                    "no pong in domain {id} within {} s: run `fanfare dds pong`",
                    args.wait
                );
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// One sample there and back.
    fn one(&mut self, sequence: u64, measured: bool) -> Result<()> {
        self.buffer.begin();
        self.buffer.u64(self.sender);
        self.buffer.u64(sequence);
        self.buffer.octets(&self.payload);
        let sample = self.buffer.finish()?;
        self.shared.expect(sequence);
        let begin = Instant::now();
        self.writer.write(sample).context("cannot write a ping")?;
        let end = begin + self.timeout;
        let came = loop {
            if let Some(came) = self.shared.arrival() {
                break Some(came);
            }
            let now = Instant::now();
            if now >= end {
                break None;
            }
            thread::park_timeout(end - now);
        };
        if measured {
            self.sent += 1;
            match came {
                Some(came) => {
                    let nanos = (came - begin).as_nanos();
                    self.series.record(u64::try_from(nanos).unwrap_or(u64::MAX));
                }
                None => self.lost += 1,
            }
        }
        Ok(())
    }
}

impl Shared {
    fn expect(&self, sequence: u64) {
        if let Ok(mut waiting) = self.waiting.lock() {
            *waiting = (sequence, None);
        }
    }

    fn arrival(&self) -> Option<Instant> {
        self.waiting.lock().ok()?.1
    }

    /// Takes an answer; those to other programs and to samples given up are not for us.
    fn answer(&self, bytes: &[u8], sender: u64, payload: &[u8], came: Instant) {
        let Some((from, sequence, same)) = read(bytes, payload) else {
            self.wrong.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if from != sender {
            return;
        }
        if !same {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        let Ok(mut waiting) = self.waiting.lock() else {
            return;
        };
        if waiting.0 == sequence && waiting.1.is_none() {
            waiting.1 = Some(came);
            drop(waiting);
            self.main.unpark();
        }
    }
}

/// Sender and number of a sample, and whether its payload is as it was sent.
fn read(bytes: &[u8], payload: &[u8]) -> Option<(u64, u64, bool)> {
    let mut cdr = CdrReader::new(bytes).ok()?;
    let (sender, sequence) = (cdr.u64().ok()?, cdr.u64().ok()?);
    Some((sender, sequence, cdr.octets().ok()? == payload))
}

/// A number that tells this run from others.
fn sender() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

fn report(args: &PingArgs, run: &Run) -> ExitCode {
    let wrong = run.shared.wrong.load(Ordering::Relaxed);
    let ok = run.lost == 0 && wrong == 0 && run.series.count() > 0;
    if args.json {
        let mut figures = Figures::new("dds ping");
        figures.count("sent", run.sent);
        figures.count("received", run.series.count());
        figures.count("lost", run.lost);
        figures.count("wrong", wrong);
        figures.count("size_bytes", args.size.into());
        let us = |percent| run.series.percentile(percent) / 1e3;
        figures.add("roundtrip_mean_us", run.series.mean() / 1e3);
        for (name, percent) in [
            ("roundtrip_min_us", 0.0),
            ("roundtrip_p50_us", 50.0),
            ("roundtrip_p90_us", 90.0),
            ("roundtrip_p99_us", 99.0),
            ("roundtrip_p99_9_us", 99.9),
            ("roundtrip_max_us", 100.0),
        ] {
            figures.add(name, us(percent));
        }
        figures.add("latency_p50_us", us(50.0) / 2.0);
        figures.set_ok(ok);
        say!("{}", figures.to_json());
    } else {
        say!(
            "{} samples of {} bytes sent, {} answers, {} lost, {wrong} wrong; times in us",
            run.sent,
            args.size,
            run.series.count(),
            run.lost
        );
        statistics::print(&[("round trip".to_owned(), &run.series)]);
        let median = run.series.percentile(50.0) / 2e3;
        say!("latency = round trip / 2: p50 {median:.3} us");
    }
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
