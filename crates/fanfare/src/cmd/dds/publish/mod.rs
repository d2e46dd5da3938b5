//! `fanfare dds publish`: decodes, converts, writes, and measures the round trip.

mod make;
mod report;
mod run;

use super::options::{self, DomainArgs, FeedArgs, Role, ShmArgs};
use crate::cmd::fast::options::socket_address;
use crate::cmd::fast::packets::PacketFile;
use crate::print::{exit_code, note};
use crate::usage::misuse;
use anyhow::{Result, bail};
use fanfare_dds::distribute::Publisher;
use fanfare_dds::fast::Mapping;
use fanfare_engine::stop::Stop;
use fanfare_feed::Header;
use fanfare_instruments::dds::Echoes;
use report::report;
use run::Run;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The size limit of a sample, bytes.
pub(super) const SAMPLE: usize = 1 << 20;

/// The time between a writer's discovery of a reader and the reader's of the writer: a sample in it
/// that is not sent again (best-effort samples, and echoes) is lost.
const SETTLED: Duration = Duration::from_millis(250);

/// The longest wait of an option: a day, in seconds.
const LONGEST: u64 = 86_400;

/// Decode a FAST feed and publish it over DDS.
///
/// The command waits for a subscriber, publishes, writes the Done token, waits for the echoes in
/// flight, and prints the statistics: the time of decoding and publishing, and the time to the last
/// echo; then times in microseconds for decoding, for decoding and converting each message, and for
/// the round trip of each sample to the subscriber and back.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").required(true).args(["file", "multicast"])))]
pub(crate) struct Args {
    #[command(flatten)]
    feed: FeedArgs,
    /// File of packets.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Multicast group to receive, ADDRESS:PORT; twice for two lines with the same feed. A
    /// message of the template Done ends it. Packets that are not readable are counted, and so are
    /// messages with a sample above 1 MiB, half of --backlog, or with shm a quarter of --ring: the
    /// rest of such a message is left out, and the exit status is 1.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = socket_address)]
    multicast: Vec<SocketAddrV4>,
    /// Address of the interface that receives multicast.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1",
        conflicts_with = "file"
    )]
    receive_interface: Ipv4Addr,
    /// Length header in front of each packet of the file.
    #[arg(
        long,
        value_name = "HEADER",
        default_value = "u32le",
        conflicts_with = "multicast"
    )]
    header: Header,
    #[command(flatten)]
    domain: DomainArgs,
    #[command(flatten)]
    shm: ShmArgs,
    /// With echo: the most samples in flight at once. The rest of a packet waits for their echoes,
    /// for a second at most and only while every topic has a subscriber, so that the latency does
    /// not include a queue. 0: no limit, and the latency includes the queue [default: 1, from
    /// multicast with --qos best-effort 0]
    #[arg(long, value_name = "SAMPLES", conflicts_with = "no_echo")]
    in_flight: Option<u64>,
    /// Seconds to wait for a subscriber; 0: publish without one.
    #[arg(long, value_name = "SECONDS", default_value_t = 60,
          value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    wait: u64,
    /// Seconds to wait for a subscriber that is alive but does not read: with --qos reliable a
    /// sample waits, at least a second, until every reader's history has space. After these seconds
    /// the command fails; with shm it cuts the subscriber off, serves the others, and ends with
    /// status 1.
    #[arg(long, value_name = "SECONDS", default_value_t = 15,
          value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    patience: u64,
    /// End a multicast feed after this many seconds of silence; default: wait for its Done message
    /// or Ctrl-C.
    #[arg(long, value_name = "SECONDS", conflicts_with = "file",
          value_parser = clap::value_parser!(u64).range(..=LONGEST))]
    idle: Option<u64>,
    /// MiB of samples that are queued while DDS is slower than a multicast feed; beyond them
    /// datagrams stay with the kernel, which drops those beyond its buffer (reported at the end).
    #[arg(long, value_name = "MIB", default_value_t = 64, conflicts_with = "file",
          value_parser = clap::value_parser!(u16).range(1..=4096))]
    backlog: u16,
    /// Decode only, and measure it, without DDS.
    #[arg(long)]
    empty: bool,
    /// Print the figures as JSON on stdout instead of the table.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.multicast.len() > 2 {
        misuse!("a feed has at most two lines");
    }
    if let [first, second] = args.multicast.as_slice()
        && first == second
    {
        misuse!("both lines are {first}");
    }
    if let Some(line) = args.multicast.iter().find(|line| !line.ip().is_multicast()) {
        misuse!("--multicast {line}: {} is not a multicast group", line.ip());
    }
    let mapping = args.feed.mapping()?;
    let stop = Stop::on_interrupt()?;
    // A missing file is reported before the wait for subscribers. A pipe can be opened only once.
    let file = args.file.as_deref();
    let file = file.map(|path| PacketFile::open(path, args.header, &stop));
    let file = file.transpose()?;
    let echoes = Arc::new(Echoes::default());
    let publisher = if args.empty {
        None
    } else {
        Some(open(args, &mapping, &stop, &echoes)?)
    };
    let mut run = Run::new(args, &mapping, publisher, stop.clone());
    let losses = run.read(args, file)?;
    let complete = run.writer.finish()? && run.maker.too_long == 0;
    let times = run.times(echoes.last());
    report(args, &run, &echoes, times, (losses, complete));
    Ok(exit_code(complete))
}

/// Opens the topics and waits until all of them have a subscriber.
///
/// # Errors
/// The carrier's; no subscriber in time; Ctrl-C.
fn open(args: &Args, mapping: &Mapping, stop: &Stop, echoes: &Arc<Echoes>) -> Result<Publisher> {
    let carrier = args
        .feed
        .carrier(&args.domain, Role::Publisher, &args.shm)?
        .patience(Duration::from_secs(args.patience));
    let distribution = args.feed.distribution();
    let publisher = Publisher::open(carrier, mapping, &distribution, |t| {
        echoes.recorder(&t.name)
    })?;
    if args.wait == 0 {
        return Ok(publisher);
    }
    note!("waiting for a subscriber");
    let end = Instant::now() + Duration::from_secs(args.wait);
    while !publisher.is_matched() {
        if stop.is_raised() {
            bail!("interrupted before the first subscriber");
        }
        if Instant::now() >= end {
            bail!("{}", nobody(args, &publisher));
        }
        thread::sleep(Duration::from_millis(2));
    }
    if args.feed.is_best_effort() || distribution.echo {
        thread::sleep(SETTLED);
    }
    Ok(publisher)
}

/// Describes why not all topics have a subscriber.
fn nobody(args: &Args, publisher: &Publisher) -> String {
    let unfit = publisher.incompatible();
    if unfit > 0 {
        let what = options::misfit(publisher.incompatible_policy());
        return format!(
            "no subscriber: {unfit} times another side's {what} the same on both sides?"
        );
    }
    match publisher.matched() {
        (0, _) => format!("no subscriber within {} s", args.wait),
        (some, all) => format!(
            "no subscriber within {} s for {} of the {all} topics of samples, echoes and token: \
             --wait 0 publishes without",
            args.wait,
            all.saturating_sub(some)
        ),
    }
}

fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}
