//! `fanfare dds publish`: decode, convert, write; measure the way there and back.

use super::departures::Watch;
use super::input::{self, Losses, Packets, Source};
use super::options::{self, DomainArgs, FeedArgs, Role, ShmArgs};
use super::statistics::{self, Series};
use crate::cmd::fast::options::socket_address;
use crate::print::{note, say};
use anyhow::{Context, Result, bail};
use fanfare_bus::distribute::{Departures, Publisher, RoundTrips};
use fanfare_bus::fast::{Converted, Converter, Mapping};
use fanfare_bus::{Error as BusError, ReturnCode};
use fanfare_engine::stop::Stop;
use fanfare_fast::{Decoder, Ignore};
use fanfare_feed::Header;
use fanfare_latency::figures::Figures;
use std::collections::BTreeMap;
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The longest sample.
pub(super) const SAMPLE: usize = 1 << 20;

/// Samples under way at once when they come as fast as a feed sends them: fewer are slower, more
/// are no faster, and wait in buffers until those overflow.
const FROM_MULTICAST: u64 = 64;

/// A writer hears of a reader a little before the reader hears of the writer, and until then what
/// is not sent again is lost.
const SETTLED: Duration = Duration::from_millis(250);

/// Decode a FAST feed and publish it over DDS.
///
/// Waits for a subscriber, publishes, writes the Done token, waits for the echoes that are still
/// out, and prints the statistics: times in microseconds for decoding, for decoding and
/// converting each message, and for the round trip of each sample to the subscriber and back.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["file", "multicast"])))]
pub(crate) struct Args {
    #[command(flatten)]
    feed: FeedArgs,
    /// File of packets.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Multicast group to receive, ADDRESS:PORT; twice for two lines with the same feed. A
    /// message of the template Done ends it.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    multicast: Vec<SocketAddrV4>,
    /// Address of the interface that receives multicast.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    receive_interface: Ipv4Addr,
    /// Length header in front of each packet of the file.
    #[arg(long, value_name = "HEADER", default_value = "u32le")]
    header: Header,
    #[command(flatten)]
    domain: DomainArgs,
    #[command(flatten)]
    shm: ShmArgs,
    /// With echo: samples that may be under way at once, so that the latency is that of a bus
    /// that is not flooded; 0: no limit [default: 1 from a file, 64 from multicast, with --qos
    /// best-effort 0]
    #[arg(long, value_name = "SAMPLES")]
    in_flight: Option<u64>,
    /// Seconds to wait for a subscriber; 0: publish whether there is one or not.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
    /// Seconds to wait for a subscriber that is alive but does not read: with --qos reliable a
    /// sample waits until there is room in everybody's history.
    #[arg(long, value_name = "SECONDS", default_value_t = 15)]
    patience: u64,
    /// End a multicast feed after so many seconds of silence; default: wait for its Done message
    /// or Ctrl-C.
    #[arg(long, value_name = "SECONDS", conflicts_with = "file")]
    idle: Option<u64>,
    /// MiB of packets that may wait while the bus is slower than a multicast feed; beyond them
    /// they wait with the kernel, which drops what its buffer does not hold (told at the end).
    #[arg(long, value_name = "MIB", default_value_t = 64, conflicts_with = "file",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    backlog: u16,
    /// Decode only, measuring, without DDS.
    #[arg(long)]
    empty: bool,
    /// Print the figures as JSON on stdout instead of the table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.multicast.len() > 2 {
        bail!("a feed has two lines at most");
    }
    let mapping = args.feed.mapping()?;
    // Before anybody is waited for.
    if let Some(file) = &args.file {
        File::open(file).with_context(|| format!("cannot open `{}`", file.display()))?;
    }
    let stop = Stop::on_interrupt()?;
    let echoes = Arc::new(Echoes::new());
    let publisher = if args.empty {
        None
    } else {
        let Some(publisher) = open(args, &mapping, &stop, &echoes)? else {
            return Ok(ExitCode::FAILURE);
        };
        Some(publisher)
    };
    let mut run = Run::new(args, &mapping, publisher, stop.clone());
    let losses = run.read(args)?;
    let complete = run.finish()?;
    let elapsed = span(run.first, run.last, echoes.last());
    report(args, &run, &echoes, elapsed, losses);
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Opens the topics and waits until all of them have a subscriber; `None` after Ctrl-C.
fn open(
    args: &Args,
    mapping: &Mapping,
    stop: &Stop,
    echoes: &Arc<Echoes>,
) -> Result<Option<Publisher>> {
    let carrier = args
        .feed
        .carrier(&args.domain, Role::Publisher, &args.shm)?;
    let distribution = args.feed.distribution();
    let publisher = Publisher::open(carrier, mapping, &distribution, |t| {
        echoes.recorder(&t.name)
    })?;
    if args.wait == 0 {
        return Ok(Some(publisher));
    }
    note!("waiting for a subscriber");
    let end = Instant::now() + Duration::from_secs(args.wait);
    while !publisher.is_matched() {
        if stop.is_raised() {
            return Ok(None);
        }
        if Instant::now() >= end {
            match publisher.incompatible() {
                0 => bail!("no subscriber within {} s", args.wait),
                n => {
                    let what = options::misfit(publisher.incompatible_policy());
                    bail!("no subscriber: {n} times another side's {what} the same on both sides?")
                }
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
    if args.feed.is_best_effort() {
        thread::sleep(SETTLED);
    }
    Ok(Some(publisher))
}

/// Round trips by template, and when the last one ended.
struct Echoes {
    series: Mutex<BTreeMap<String, Vec<Arc<Mutex<Series>>>>>,
    publisher: Thread,
    begin: Instant,
    /// Nanoseconds after the beginning; 0: none came.
    last: Arc<AtomicU64>,
}

impl Echoes {
    fn new() -> Self {
        Self {
            series: Mutex::default(),
            publisher: thread::current(),
            begin: Instant::now(),
            last: Arc::default(),
        }
    }

    /// When the last echo came.
    fn last(&self) -> Option<Instant> {
        match self.last.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(self.begin + Duration::from_nanos(nanos)),
        }
    }

    /// A series of its own for each topic: no listener waits for another.
    fn recorder(&self, template: &str) -> RoundTrips {
        let series = Arc::new(Mutex::new(Series::default()));
        let publisher = self.publisher.clone();
        let (begin, last) = (self.begin, Arc::clone(&self.last));
        if let Ok(mut all) = self.series.lock() {
            let of_template = all.entry(template.to_owned()).or_default();
            of_template.push(Arc::clone(&series));
        }
        Box::new(move |nanos| {
            if let Ok(mut series) = series.lock() {
                series.record(nanos);
            }
            last.fetch_max(self::nanos(begin.elapsed()).max(1), Ordering::Release);
            publisher.unpark();
        })
    }

    fn merged(&self) -> BTreeMap<String, Series> {
        let Ok(all) = self.series.lock() else {
            return BTreeMap::new();
        };
        let merge = |(name, parts): (&String, &Vec<Arc<Mutex<Series>>>)| {
            let mut sum = Series::default();
            for part in parts.iter().filter_map(|p| p.lock().ok()) {
                sum.merge(&part);
            }
            (name.clone(), sum)
        };
        all.iter().map(merge).collect()
    }
}

struct Run {
    decoder: Decoder,
    /// Decodes a second time into nothing, to tell decoding from converting.
    bare: Decoder,
    /// Messages decoded, to take turns by.
    turn: u64,
    converter: Converter,
    publisher: Option<Publisher>,
    stop: Stop,
    last_template: Option<u32>,
    echo: bool,
    in_flight: u64,
    echo_lost: u64,
    patience: Duration,
    watch: Watch,
    /// Of subscribers, before the Done token.
    departures: Departures,
    decode: Series,
    convert: BTreeMap<u32, Series>,
    messages: u64,
    /// Packets that are no messages end a file, but not what anybody on a network may disturb.
    live: bool,
    bad_packets: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Run {
    fn new(args: &Args, mapping: &Arc<Mapping>, publisher: Option<Publisher>, stop: Stop) -> Self {
        let program = mapping.program();
        let convert = mapping.types().map(|t| (t.index, Series::default()));
        Self {
            decoder: Decoder::new(Arc::clone(program)),
            bare: Decoder::new(Arc::clone(program)),
            turn: 0,
            converter: Converter::new(Arc::clone(mapping), SAMPLE),
            publisher,
            stop,
            last_template: program.by_name("Done").map(|t| t.index()),
            echo: !args.feed.no_echo,
            in_flight: match args.in_flight {
                _ if args.feed.no_echo => 0,
                Some(samples) => samples,
                None if args.file.is_some() => 1,
                // What is lost is not waited for.
                None if args.feed.is_best_effort() => 0,
                None => FROM_MULTICAST,
            },
            echo_lost: 0,
            patience: Duration::from_secs(args.patience),
            watch: Watch::new("readers"),
            departures: Departures::default(),
            decode: Series::default(),
            convert: convert.collect(),
            messages: 0,
            live: args.file.is_none(),
            bad_packets: 0,
            first: None,
            last: None,
        }
    }

    /// Reads all input.
    fn read(&mut self, args: &Args) -> Result<Losses> {
        let stop = self.stop.clone();
        if let Some(file) = &args.file {
            return input::file(file, args.header, &stop, self).map(|()| Losses::default());
        }
        let program = Arc::clone(self.decoder.program());
        let source = Source {
            groups: &args.multicast,
            interface: args.receive_interface,
            idle: args.idle.map(Duration::from_secs),
            backlog: usize::from(args.backlog) << 20,
        };
        input::multicast(&source, &program, &stop, self)
    }

    /// Decodes one message, and measures that; its length.
    fn decode(&mut self, bytes: &[u8]) -> Result<usize> {
        if self.publisher.is_none() {
            return self.decode_bare(bytes);
        }
        // The first to see a message finds the caches cold, the second finds them warm: they take
        // turns, by the parity of the counter's bits, in step with no pattern of the feed.
        self.turn += 1;
        let bare_first = self.turn.count_ones().is_multiple_of(2);
        if bare_first {
            self.decode_bare(bytes)?;
        }
        let len = self.decode_and_convert(bytes)?;
        if !bare_first {
            self.decode_bare(bytes)?;
        }
        Ok(len)
    }

    /// Publishes the samples of the message decoded last. The Done message is no data: the token
    /// stands for it.
    fn deliver(&mut self) -> Result<()> {
        if self.publisher.is_none() {
            self.messages += 1;
        } else if !self.is_over() {
            self.messages += 1;
            self.publish()?;
        }
        Ok(())
    }

    /// Decodes a message into nothing, measuring.
    fn decode_bare(&mut self, bytes: &[u8]) -> Result<usize> {
        let begin = Instant::now();
        let len = self.bare.decode(bytes, &mut Ignore)?;
        self.decode.record(nanos(begin.elapsed()));
        Ok(len)
    }

    /// Decodes a message and makes its samples, measuring: they are made a second time to be
    /// written, so that no write is measured here.
    fn decode_and_convert(&mut self, bytes: &[u8]) -> Result<usize> {
        let begin = Instant::now();
        let len = self.converter.decode(&mut self.decoder, bytes)?;
        // An error comes again when they are made to be written.
        let _ = self.converter.samples(|sample| {
            std::hint::black_box(sample.cdr);
        });
        let converted = begin.elapsed();
        let template = self.converter.template();
        if let Some(series) = template.and_then(|t| self.convert.get_mut(&t)) {
            series.record(nanos(converted));
        }
        Ok(len)
    }

    /// Whether the message decoded last says that the feed is over.
    fn is_over(&self) -> bool {
        self.last_template.is_some() && self.converter.template() == self.last_template
    }

    /// Counts a packet that is not, or not wholly, made of messages; tells of the first.
    fn bad_packet(&mut self, error: &anyhow::Error) {
        self.bad_packets += 1;
        if self.bad_packets == 1 {
            note!("fanfare: a packet is no good, the rest of it is left out: {error:#}");
        }
    }

    fn publish(&mut self) -> Result<()> {
        let (Some(publisher), in_flight) = (&mut self.publisher, self.in_flight) else {
            return Ok(());
        };
        let (lost, stop, watch) = (&mut self.echo_lost, &self.stop, &mut self.watch);
        let patience = self.patience;
        let mut result = Ok(());
        self.converter.samples(|sample| {
            if result.is_ok() {
                wait_for_room(publisher, in_flight, lost, stop);
                result = patiently(publisher, &sample, patience, stop, watch);
            }
        })?;
        watch.look(publisher.departures());
        result
    }

    /// The Done token, and the echoes still out; whether all came.
    fn finish(&mut self) -> Result<bool> {
        self.last = Some(Instant::now());
        let Some(publisher) = &mut self.publisher else {
            return Ok(true);
        };
        // Who goes after the token goes in order.
        self.departures = publisher.departures();
        self.watch.tell(self.departures);
        note!("Writing Done token");
        let acknowledged = publisher.finish(Duration::from_secs(10))?;
        if !acknowledged {
            note!("fanfare: a subscriber has not acknowledged everything within 10 s");
        }
        match publisher.lost_subscribers() {
            (0, 0) => {}
            (slow, dead) => {
                note!("fanfare: {slow} subscribers stopped reading and were cut off, {dead} died");
            }
        }
        if publisher.without_topic() > 0 {
            note!(
                "fanfare: {} samples of securities without a topic were not published",
                publisher.without_topic()
            );
        }
        if publisher.refused() > 0 {
            note!(
                "fanfare: {} samples of more keys than a topic may have were not published: \
                 --instances",
                publisher.refused()
            );
        }
        for failure in publisher.failures() {
            note!("fanfare: echoes: {failure}");
        }
        if !self.echo {
            return Ok(acknowledged);
        }
        let end = Instant::now() + Duration::from_secs(5);
        while publisher.echoed() < publisher.written() && Instant::now() < end {
            thread::park_timeout(Duration::from_millis(10));
        }
        Ok(acknowledged && publisher.echoed() >= publisher.written())
    }
}

/// From the first packet to the end of writing, or to the last echo: not to the end of waiting for
/// those that did not come.
fn span(first: Option<Instant>, written: Option<Instant>, echo: Option<Instant>) -> Duration {
    let ends = written.max(echo).zip(first);
    ends.map_or(Duration::ZERO, |(end, first)| {
        end.saturating_duration_since(first)
    })
}

/// Publishes a sample, waiting for as long as a reader's history is full: until it reads, is gone,
/// or has tried our patience.
fn patiently(
    publisher: &mut Publisher,
    sample: &Converted<'_>,
    patience: Duration,
    stop: &Stop,
    watch: &mut Watch,
) -> Result<()> {
    let mut since = None;
    loop {
        match publisher.publish(sample) {
            Ok(_) => return Ok(()),
            Err(BusError::Dds {
                code: ReturnCode::Timeout,
                ..
            }) if !stop.is_raised() => {}
            Err(error) => return Err(error.into()),
        }
        watch.look(publisher.departures());
        let since = since.get_or_insert_with(|| {
            note!("fanfare: a subscriber does not read, and all wait for it");
            Instant::now()
        });
        if since.elapsed() >= patience {
            bail!(
                "a subscriber is alive but has not read for {} s: with --qos last-value or \
                 best-effort nobody waits for it",
                patience.as_secs()
            );
        }
    }
}

/// Waits while too many samples are under way. An echo that does not come within a second is
/// given up.
fn wait_for_room(publisher: &Publisher, in_flight: u64, lost: &mut u64, stop: &Stop) {
    if in_flight == 0 {
        return;
    }
    let begin = Instant::now();
    while publisher.written() - publisher.echoed() >= in_flight + *lost && !stop.is_raised() {
        thread::park_timeout(Duration::from_millis(100));
        if begin.elapsed() > Duration::from_secs(1) {
            *lost = publisher.written() - publisher.echoed();
        }
    }
}

impl Packets for Run {
    fn packet(&mut self, bytes: &[u8], mut skip: u32) -> Result<bool> {
        self.first.get_or_insert_with(Instant::now);
        self.decoder.reset();
        self.bare.reset();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let decoded = self.decode(rest);
            let decoded = decoded
                .with_context(|| format!("message {}, at byte {at} of its packet", self.messages));
            let len = match decoded {
                Ok(len) => len,
                Err(error) if self.live => {
                    self.bad_packet(&error);
                    break;
                }
                Err(error) => return Err(error),
            };
            if skip == 0 {
                self.deliver()?;
            }
            skip = skip.saturating_sub(1);
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(!self.is_over() && !self.stop.is_raised())
    }
}

fn report(args: &Args, run: &Run, echoes: &Echoes, elapsed: Duration, losses: Losses) {
    let round_trips = echoes.merged();
    let mut all = Series::default();
    round_trips.values().for_each(|s| all.merge(s));
    let mut converted = Series::default();
    run.convert.values().for_each(|s| converted.merge(s));
    let written = run.publisher.as_ref().map_or(0, Publisher::written);
    let elapsed_us = nanos(elapsed) as f64 / 1e3;
    if args.json {
        let mut figures = Figures::new("dds publish");
        figures.count("messages", run.messages);
        figures.count("samples", written);
        figures.count("echoes", all.count());
        let refused = run.publisher.as_ref().map_or(0, Publisher::refused);
        figures.count("refused", refused);
        let departures = run.publisher.as_ref().map(Publisher::departures);
        let departures = departures.unwrap_or_default();
        figures.count(
            "readers_lost",
            departures.gone.max(departures.silent).into(),
        );
        figures.count("missing", losses.missing);
        figures.count("kernel_drops", losses.kernel_drops);
        figures.count("bad_packets", run.bad_packets);
        figures.add("elapsed_us", elapsed_us);
        figures.add("decode_ns", run.decode.mean());
        figures.add("convert_ns", converted.mean());
        figures.percentiles("roundtrip_", |percent| all.percentile(percent));
        figures.add("latency_mean_us", all.mean() / 2e3);
        figures.add("latency_p50_us", all.percentile(50.0) / 2e3);
        figures.set_ok(all.count() >= written || !run.echo);
        say!("{}", figures.to_json());
        return;
    }
    say!("Elapsed time from first start time to last end time: {elapsed_us:.0} us");
    say!(
        "{} messages, {written} samples, {} missing, {} dropped by the kernel",
        run.messages,
        losses.missing,
        losses.kernel_drops
    );
    if run.bad_packets > 0 {
        say!("{} packets not readable to their end", run.bad_packets);
    }
    let name = |index: u32| {
        let template = run.converter.mapping().by_index(index);
        template.map_or("", |t| t.name.as_str())
    };
    let mut rows = vec![("decode".to_owned(), &run.decode)];
    let convert = run.convert.iter();
    rows.extend(convert.map(|(t, s)| (format!("decode+convert {}", name(*t)), s)));
    let trips = round_trips.iter();
    rows.extend(trips.map(|(name, s)| (format!("round trip {name}"), s)));
    statistics::print(&rows);
    if all.count() > 0 {
        let (mean, median) = (all.mean() / 2e3, all.percentile(50.0) / 2e3);
        say!("latency = round trip / 2: mean {mean:.3} us, p50 {median:.3} us");
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elapsed_ends_with_what_came_last_and_not_with_waiting() {
        let begin = Instant::now();
        let at = |ms| Some(begin + Duration::from_millis(ms));
        let span = |first, written, echo| span(first, written, echo).as_millis();
        assert_eq!(span(at(10), at(50), at(70)), 60);
        assert_eq!(
            span(at(10), at(50), at(40)),
            40,
            "the last ones did not come"
        );
        assert_eq!(span(at(10), at(50), None), 40);
        assert_eq!(span(None, at(50), None), 0, "nothing was published");
    }

    #[test]
    fn the_last_echo_is_that_of_any_topic() {
        let echoes = Echoes::new();
        assert_eq!(echoes.last(), None);
        let (mut first, mut second) = (echoes.recorder("A"), echoes.recorder("B"));
        first(5);
        let one = echoes.last().unwrap();
        second(7);
        assert!(echoes.last().unwrap() >= one && one >= echoes.begin);
        assert_eq!(echoes.merged().len(), 2);
    }
}
