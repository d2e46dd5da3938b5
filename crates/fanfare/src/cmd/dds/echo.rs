//! `fanfare dds echo`: prints the samples of any topic, with types discovered at run time.

use super::options::{DomainArgs, InstancesArg, Role};
use super::outlet::Outlet;
use super::waiting::{Item, MOST_BYTES, MOST_ITEMS, Waiting};
use crate::print::{Remarks, exit_code, note};
use crate::range::seconds;
use anyhow::{Result, bail};
use fanfare_dds::cdr::print_json;
use fanfare_dds::discovery::{Discovery, Endpoint, EndpointKind};
use fanfare_dds::{Domain, Error, History, Reader, Reliability, Status, Topic};
use fanfare_engine::stop::Stop;
use fanfare_gateway::{FIX_MESSAGE, place_of_sample};
use fanfare_wire::text::{JsonString, Shown};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The number of samples that the reader holds until they are taken, which is at once.
const UNTAKEN: u32 = 8_192;
/// The interval at which Ctrl-C and changed policies are polled.
const LOOK: Duration = Duration::from_millis(50);

/// Print the samples of a topic as JSON lines: {"topic": NAME, "sample": {MEMBER: VALUE, …}}.
///
/// The type comes from the program that writes the topic (XTypes type information), so any topic
/// whose writer describes its type can be read, from this or another DDS product. A disposed
/// instance, or one that has no writers any more, is printed as {"topic": NAME, "state": …}.
///
/// DDS hands out the samples that wait one instance after the other. Those of a gateway's FIX
/// messages are sorted by Origin and Order before they are printed.
///
/// Up to 65,536 samples, and 64 MiB, are queued while the output is not read; beyond that the
/// oldest are dropped, and counted at the end. No writer waits for this program.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the topic.
    topic: String,
    #[command(flatten)]
    domain: DomainArgs,
    /// Exit after this many samples; default: Ctrl-C, or the end of the output's reader.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Seconds to wait for a writer of the topic, and for the description of its type.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds(86_400.0))]
    wait: f64,
    /// Request best-effort delivery from reliable writers too; lost samples are not sent again.
    #[arg(long)]
    best_effort: bool,
    #[command(flatten)]
    instances: InstancesArg,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Subscriber)?;
    let mut discovery = domain.discovery()?;
    let wait = Duration::from_secs_f64(args.wait);
    let Some(writer) = find(args, &mut discovery, wait, &stop)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let Some(topic) = describe(&domain, &writer, wait, &stop)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let type_name = &topic.sample_type().name;
    note!("topic {}: {}", Shown(&args.topic), Shown(type_name));
    let lost = Arc::new(Lost::default());
    let reader = open(args, &topic, &writer, &discovery, &lost)?;
    let mut printer = Printer {
        args,
        topic: &topic,
        name: JsonString(&args.topic).to_string(),
        json: String::new(),
        outlet: Outlet::new(&stop)?,
        printed: 0,
        unreadable: 0,
        remarks: Remarks::default(),
    };
    let waiting = Waiting::new(MOST_ITEMS, MOST_BYTES);
    let taken = print_all(&domain, &reader, &waiting, &mut printer, &stop);
    let (lost, dropped) = (lost.all(), waiting.dropped());
    if lost + dropped + printer.unreadable > 0 {
        note!(
            "{} samples printed, {lost} lost, {dropped} left out because the lines were not read, \
             {} not readable",
            printer.printed,
            printer.unreadable
        );
    }
    taken?;
    Ok(exit_code(printer.unreadable == 0))
}

/// Waits for a writer that describes its type, and falls back to one that does not. Returns `None`
/// after Ctrl-C.
fn find(
    args: &Args,
    discovery: &mut Discovery,
    wait: Duration,
    stop: &Stop,
) -> Result<Option<Endpoint>> {
    let end = Instant::now() + wait;
    loop {
        discovery.update()?;
        let is_writer = |e: &&Endpoint| e.topic == args.topic && e.kind == EndpointKind::Writer;
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

/// Requests the type of a writer's topic. Returns `None` after Ctrl-C.
fn describe(
    domain: &Domain,
    writer: &Endpoint,
    wait: Duration,
    stop: &Stop,
) -> Result<Option<Topic>> {
    let end = Instant::now() + wait;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match domain.found_topic(writer, left.min(LOOK)) {
            Err(Error::TypeUnanswered(_)) if stop.is_raised() => return Ok(None),
            Err(Error::TypeUnanswered(_)) if !left.is_zero() => {}
            found => return Ok(Some(found?)),
        }
    }
}

fn nobody(args: &Args, discovery: &Discovery) -> String {
    let topics: BTreeSet<&str> = discovery.endpoints().map(|e| e.topic.as_str()).collect();
    let begin = format!(
        "nobody writes topic {:?} in domain {} within {} s",
        args.topic, args.domain.domain, args.wait
    );
    if topics.is_empty() {
        return format!("{begin}: the domain has no topics");
    }
    let some: Vec<&str> = topics.iter().take(10).copied().collect();
    let more = if topics.len() > 10 { ", …" } else { "" };
    format!("{begin}; topics there: {}{more}", Shown(&some.join(", ")))
}

/// The losses that listeners count.
#[derive(Default)]
struct Lost {
    samples: AtomicU32,
    rejected: AtomicU32,
}

impl Lost {
    fn all(&self) -> u64 {
        let [samples, rejected] = [&self.samples, &self.rejected];
        u64::from(samples.load(Ordering::Relaxed)) + u64::from(rejected.load(Ordering::Relaxed))
    }
}

fn open(
    args: &Args,
    topic: &Topic,
    writer: &Endpoint,
    discovery: &Discovery,
    lost: &Arc<Lost>,
) -> Result<Reader> {
    let mut qos = writer.reader_qos(1).history(History::KeepAll);
    if args.best_effort {
        qos = qos.reliability(Reliability::BestEffort);
    }
    let others = discovery.endpoints().filter(|e| {
        e.kind == EndpointKind::Writer && e.topic == args.topic && e.guid != writer.guid
    });
    for other in others {
        if other.type_name != writer.type_name {
            note!(
                "fanfare: another writer's type is {}: its samples are not shown",
                Shown(&other.type_name)
            );
        } else if is_other_type(other, writer) {
            note!(
                "fanfare: another writer's {} has other members: its samples may not be shown",
                Shown(&other.type_name)
            );
        }
        qos = other.join(qos);
    }
    let most = args.instances.most;
    qos = qos.resource_limits(Some(UNTAKEN), Some(most), None);
    let lost = Arc::clone(lost);
    let again = writer.reliable && !args.best_effort;
    let reader = topic.reader(&qos).on_status(move |status| match status {
        Status::SampleLost { total } => lost.samples.store(total, Ordering::Relaxed),
        // A reliable writer sends a rejected sample again.
        Status::SampleRejected { total } if !again => {
            lost.rejected.store(total, Ordering::Relaxed);
        }
        Status::IncompatibleQos { .. } => note!("fanfare: {status}"),
        _ => {}
    });
    Ok(reader.open()?)
}

/// Returns whether both describe their types, and not the same one.
fn is_other_type(one: &Endpoint, two: &Endpoint) -> bool {
    let both = one.type_hash().zip(two.type_hash());
    both.is_some_and(|(one, two)| one != two)
}

/// Takes samples in a thread of its own, so that a slow reader of the output delays neither the
/// writers nor the library, and prints them in this one. Ends with Ctrl-C, with enough samples,
/// when nobody reads the output, or, after the samples taken are printed, with the error of the
/// reader.
fn print_all(
    domain: &Domain,
    reader: &Reader,
    waiting: &Waiting<Item>,
    printer: &mut Printer<'_>,
    stop: &Stop,
) -> Result<()> {
    let over = AtomicBool::new(false);
    let are_fix = printer.topic.sample_type().name == FIX_MESSAGE;
    thread::scope(|scope| {
        let taking = scope.spawn(|| take_all(domain, reader, are_fix, waiting, &over));
        while !stop.is_raised() && !printer.is_done() {
            match waiting.pop(LOOK) {
                Some(item) => printer.print(&item),
                None if taking.is_finished() => break,
                None => {}
            }
        }
        over.store(true, Ordering::Relaxed);
        let taken = taking.join();
        taken.unwrap_or_else(|_| bail!("the thread that takes samples panicked"))
    })
}

fn take_all(
    domain: &Domain,
    reader: &Reader,
    are_fix: bool,
    waiting: &Waiting<Item>,
    over: &AtomicBool,
) -> Result<()> {
    let mut waitset = domain.waitset()?;
    waitset.attach(reader)?;
    // All that the reader holds: only these can be sorted.
    let mut samples = reader.samples(UNTAKEN as usize);
    let mut order = Vec::new();
    while !over.load(Ordering::Relaxed) {
        waitset.wait(LOOK, |_| {})?;
        while reader.take(&mut samples)? > 0 && !over.load(Ordering::Relaxed) {
            order.clear();
            order.extend(0..samples.len());
            if are_fix {
                let place = |i| place_of_sample(samples.get(i)?.bytes());
                put_in_order(&mut order, place);
            }
            let items = order.iter().filter_map(|i| Item::new(&samples.get(*i)?));
            items.for_each(|item| waiting.push(item));
        }
    }
    Ok(())
}

/// Sorts samples by their places. Those without one, such as the ends of instances, come last.
fn put_in_order<P: Ord>(order: &mut [usize], place: impl Fn(usize) -> Option<P>) {
    order.sort_by_cached_key(|i| {
        let place = place(*i);
        (place.is_none(), place)
    });
}

struct Printer<'a> {
    args: &'a Args,
    topic: &'a Topic,
    /// The topic's name as JSON.
    name: String,
    json: String,
    outlet: Outlet,
    printed: u64,
    unreadable: u64,
    remarks: Remarks,
}

impl Printer<'_> {
    fn is_done(&self) -> bool {
        let is_enough = self.args.count.is_some_and(|count| self.printed >= count);
        is_enough || self.outlet.is_unread()
    }

    fn state(&mut self, state: &str) {
        let line = format!("{{\"topic\": {}, \"state\": \"{state}\"}}\n", self.name);
        self.outlet.print(&line);
    }

    fn print(&mut self, item: &Item) {
        let name = &self.name;
        let bytes = match item {
            Item::Data(bytes) => bytes,
            Item::Disposed => return self.state("disposed"),
            Item::NoWriters => return self.state("no writers"),
        };
        self.json.clear();
        match print_json(self.topic.sample_type(), bytes, &mut self.json) {
            Ok(()) => {
                let line = format!("{{\"topic\": {name}, \"sample\": {}}}\n", self.json);
                let is_whole = self.outlet.print(&line);
                self.printed += u64::from(is_whole && !self.outlet.is_unread());
            }
            Err(error) => {
                self.unreadable += 1;
                self.remarks.push(format_args!(
                    "fanfare: a sample of topic {name} is not readable: {error}"
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_a_take_are_sorted_by_their_places() {
        let places = [Some((7, 2)), None, Some((7, 1)), Some((3, 9)), None];
        let mut order: Vec<usize> = (0..places.len()).collect();
        put_in_order(&mut order, |i| places[i]);
        assert_eq!(order, [3, 2, 0, 1, 4]);
    }
}
