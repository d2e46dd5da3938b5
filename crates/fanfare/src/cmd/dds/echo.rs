//! `fanfare dds echo`: prints the samples of any topic, also of programs never heard of.

use super::ls::{plain, seconds};
use super::options::{DomainArgs, Role};
use crate::print::{note, say};
use anyhow::{Result, bail};
use fanfare_bus::cdr::print_json;
use fanfare_bus::discovery::{Discovery, Endpoint, Side};
use fanfare_bus::{Domain, Qos, Reader, Reliability, Sample, Status, Topic};
use fanfare_engine::stop::Stop;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Samples of an instance that wait to be printed; the oldest make way and are counted.
const DEPTH: u32 = 8_192;
/// How often Ctrl-C and new policies are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// Print the samples of a topic as JSON lines: {"topic": NAME, "sample": {MEMBER: VALUE, …}}.
///
/// The type comes from the program that writes the topic (XTypes type information), so any topic
/// can be read that its program describes: ours, and those of other DDS products. An instance that
/// is disposed, or that nobody writes any more, prints {"topic": NAME, "state": …}.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the topic.
    topic: String,
    #[command(flatten)]
    domain: DomainArgs,
    /// End after so many samples; default: Ctrl-C.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds to wait for a writer of the topic, and for the description of its type.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    wait: f64,
    /// Ask for best-effort delivery also of a reliable writer, which then never waits for this
    /// program; what is lost on the way is not sent again.
    #[arg(long)]
    best_effort: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Subscriber)?;
    let mut discovery = domain.discovery()?;
    let wait = Duration::from_secs_f64(args.wait);
    let Some(writer) = find(args, &mut discovery, wait, &stop)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let topic = domain.found_topic(&writer, wait)?;
    note!("topic {}: {}", args.topic, plain(&topic.sample_type().name));
    let lost = Arc::new(Lost::default());
    let reader = open(args, &topic, &writer, &discovery, &lost)?;
    let mut printer = Printer {
        args,
        topic: &topic,
        name: Value::from(args.topic.as_str()).to_string(),
        line: String::new(),
        printed: 0,
        unreadable: 0,
    };
    printer.run(&domain, &reader, &stop)?;
    let lost = u64::from(lost.samples.load(Ordering::Relaxed));
    if lost + printer.unreadable > 0 {
        note!(
            "{} samples printed, {lost} lost, {} not readable",
            printer.printed,
            printer.unreadable
        );
    }
    Ok(if printer.unreadable == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Waits for a writer that describes its type; one that does not is better than none. `None` after
/// Ctrl-C.
fn find(
    args: &Args,
    discovery: &mut Discovery,
    wait: Duration,
    stop: &Stop,
) -> Result<Option<Endpoint>> {
    let end = Instant::now() + wait;
    loop {
        discovery.update()?;
        let is_writer = |e: &&Endpoint| e.topic == args.topic && e.side == Side::Writer;
        let late = Instant::now() >= end;
        let described = discovery
            .endpoints()
            .filter(is_writer)
            .find(|e| e.has_type());
        let any = || discovery.endpoints().find(is_writer).filter(|_| late);
        if let Some(writer) = described.or_else(any) {
            return Ok(Some(writer.clone()));
        }
        if stop.is_raised() {
            return Ok(None);
        }
        if late {
            bail!("{}", nobody(args, discovery));
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn nobody(args: &Args, discovery: &Discovery) -> String {
    let topics: BTreeSet<&str> = discovery.endpoints().map(|e| e.topic.as_str()).collect();
    let begin = format!(
        "nobody writes topic {:?} in domain {} within {} s",
        args.topic, args.domain.domain, args.wait
    );
    if topics.is_empty() {
        return format!("{begin}: no topic is there at all");
    }
    let some: Vec<&str> = topics.iter().take(10).copied().collect();
    let more = if topics.len() > 10 { ", …" } else { "" };
    format!("{begin}; topics there: {}{more}", plain(&some.join(", ")))
}

/// What listeners count.
#[derive(Default)]
struct Lost {
    samples: AtomicU32,
}

fn open(
    args: &Args,
    topic: &Topic,
    writer: &Endpoint,
    discovery: &Discovery,
    lost: &Arc<Lost>,
) -> Result<Reader> {
    let mut qos = writer.reader_qos(DEPTH);
    if args.best_effort {
        qos = qos.reliability(Reliability::BestEffort);
    }
    let others = discovery
        .endpoints()
        .filter(|e| e.side == Side::Writer && e.topic == args.topic && e.guid != writer.guid);
    for other in others {
        if other.type_name != writer.type_name {
            note!(
                "fanfare: another writer's type is {}: its samples are not shown",
                plain(&other.type_name)
            );
        }
        qos = join(qos, other);
    }
    let lost = Arc::clone(lost);
    let reader = topic.reader(&qos).on_status(move |status| match status {
        Status::SampleLost { total } => lost.samples.store(total, Ordering::Relaxed),
        Status::IncompatibleQos { .. } => note!("fanfare: {status}"),
        _ => {}
    });
    Ok(reader.open()?)
}

/// Also reads what another writer writes elsewhere.
fn join(qos: Qos, other: &Endpoint) -> Qos {
    other.partitions.iter().fold(qos, |q, p| q.partition(p))
}

struct Printer<'a> {
    args: &'a Args,
    topic: &'a Topic,
    /// The topic's name as JSON.
    name: String,
    line: String,
    printed: u64,
    unreadable: u64,
}

impl Printer<'_> {
    fn run(&mut self, domain: &Domain, reader: &Reader, stop: &Stop) -> Result<()> {
        let mut waitset = domain.waitset()?;
        waitset.attach(reader)?;
        let mut samples = reader.samples(256);
        while !stop.is_raised() && !self.is_done() {
            waitset.wait(LOOK, |_| {})?;
            while reader.take(&mut samples)? > 0 && !self.is_done() && !stop.is_raised() {
                for sample in &samples {
                    self.print(&sample);
                    if self.is_done() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.args.count.is_some_and(|count| self.printed >= count)
    }

    fn print(&mut self, sample: &Sample<'_>) {
        let name = &self.name;
        if !sample.info.has_data {
            let state = match (sample.info.alive, sample.info.disposed) {
                (true, _) => return,
                (_, true) => "disposed",
                _ => "no writers",
            };
            say!("{{\"topic\": {name}, \"state\": \"{state}\"}}");
            return;
        }
        self.line.clear();
        match print_json(self.topic.sample_type(), sample.bytes(), &mut self.line) {
            Ok(()) => {
                self.printed += 1;
                say!("{{\"topic\": {name}, \"sample\": {}}}", self.line);
            }
            Err(error) => {
                self.unreadable += 1;
                note!("fanfare: a sample of topic {name} is not readable: {error}");
            }
        }
    }
}
