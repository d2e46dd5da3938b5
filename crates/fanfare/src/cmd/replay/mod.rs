//! `fanfare replay`: sends captured datagrams again.

mod lines;
mod pace;
mod plant;
mod raw;
mod source;

use crate::line::{BATCH, Line, Reach};
use crate::plural::counted;
use crate::print::{note, say};
use crate::usage::misuse;
use anyhow::{Context, Result, ensure};
use fanfare_engine::stop::Stop;
use fanfare_feed::Header;
use fanfare_history::moment::{Moment, time};
use fanfare_instruments::figures::{Figures, rate};
use lines::{Lines, Rule};
use pace::{Pace, Speed};
use source::{LeftOut, Reading, Source};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Send the datagrams of captures, or packets of files, to their lines again, at their own pace.
///
/// Captures are pcap or pcapng; each datagram goes to the multicast group that it was sent to, but
/// from loopback and with TTL 0: nothing leaves this machine without --interface and --ttl.
/// Datagrams of several files keep their distances, so that lines captured by two hosts keep their
/// skew. Files of packets (`fast generate`) have neither times nor addresses: they need --every and
/// --line.
///
/// The folder of a raw log (`[history.raw]`) is sent like a capture. A log of market events
/// (`[history]`), or a file of DBN, is served by a gateway that this command starts: FIX sessions
/// receive its events with their numbers and times. The section `[replay]` of docs/gateway.md
/// describes further options of such a gateway.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Captures (pcap, pcapng), folders of raw logs, or files of packets, - for stdin; or the
    /// folder of a log, or a file of DBN (NAME.dbn, NAME.dbn.zst).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Speed as a multiple of the original, or max: as fast as possible.
    #[arg(long, value_name = "TIMES|max", default_value = "1")]
    speed: Speed,
    /// Start at this time of the files: 2026-11-23T10:31:05.5Z, 10:31:05.5 (UTC, of the day of the
    /// first datagram) or +5.5 (seconds after the first datagram). For a log of market events also
    /// -5.5 (seconds before its end) or day (midnight UTC before its end).
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    from: Option<Moment>,
    /// End before this time of the files.
    #[arg(long, value_name = "TIME", value_parser = time, allow_negative_numbers = true)]
    to: Option<Moment>,
    /// Repeat from the start, until Ctrl-C or N times in total.
    #[arg(
        long = "loop", value_name = "TIMES", num_args = 0..=1, require_equals = true,
        default_missing_value = "18446744073709551615",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    times: Option<u64>,
    /// Datagrams to send, and their destination: FROM=TO, or FROM alone for the captured
    /// destination. FROM is the ADDRESS:PORT that they were sent to, or the number of a file, from
    /// 1, for all its datagrams; TO is ADDRESS:PORT. Without --line: everything that was sent to
    /// multicast groups.
    #[arg(long, value_name = "FROM[=TO]")]
    line: Vec<Rule>,
    #[command(flatten)]
    reach: Reach,
    /// The files are packets with this length header: u8, u16le, u16be, u32le, u32be or fast.
    /// Default: files that are not captures are packets with u32le.
    #[arg(long, value_name = "HEADER")]
    header: Option<Header>,
    /// Microseconds between two packets of a file without times.
    #[arg(long, value_name = "MICROSECONDS")]
    every: Option<u32>,
    /// Port that FIX sessions connect to, for a log; 0: the system picks. Default: 3001.
    #[arg(long)]
    port: Option<u16>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(log) = plant::folder(args)? {
        return plant::run(args, log);
    }
    if args.header == Some(Header::None) {
        misuse!("--header none has no packets to send");
    }
    let times = [args.from, args.to];
    let of_end = |time: &Moment| matches!(time, Moment::Before(_) | Moment::Day);
    if times.iter().flatten().any(of_end) {
        // What is not there may have been meant as a log.
        for file in args.files.iter().filter(|file| file.as_os_str() != "-") {
            let found = std::fs::metadata(file);
            found.with_context(|| format!("cannot open `{}`", file.display()))?;
        }
        misuse!(
            "the end of a capture is not known in advance: --from and --to must be a time or \
             +SECONDS"
        );
    }
    let passes = args.times.unwrap_or(1);
    let standard = args.files.iter().filter(|file| file.as_os_str() == "-");
    if standard.count() > usize::from(passes == 1) {
        misuse!("stdin can be read only once: it can be neither looped nor given twice");
    }
    let stop = Stop::on_interrupt()?;
    let mut play = Play {
        lines: Lines::new(args.reach, &args.line, args.files.len())?,
        pace: Pace::new(args.speed),
        batch: Batch::default(),
        left_out: LeftOut::default(),
        span: 0,
        bytes: 0,
    };
    let start = Instant::now();
    for _ in 0..passes {
        if stop.is_raised() {
            break;
        }
        let sent = play.bytes;
        play.pass(args, &stop)?;
        ensure!(
            play.bytes > sent || passes == 1 || stop.is_raised(),
            "nothing is left to send in another pass"
        );
    }
    report(args, &play, start.elapsed());
    Ok(ExitCode::SUCCESS)
}

struct Play {
    lines: Lines,
    pace: Pace,
    batch: Batch,
    left_out: LeftOut,
    /// The time from the first datagram to the last one in the files, ns.
    span: u64,
    bytes: u64,
}

/// Datagrams of one line that are due.
#[derive(Default)]
struct Batch {
    line: usize,
    datagrams: [Vec<u8>; BATCH],
    len: usize,
}

impl Play {
    /// Sends the datagrams of the files, once.
    fn pass(&mut self, args: &Args, stop: &Stop) -> Result<()> {
        let mut sources = self.open(args, stop)?;
        let first = sources.iter().filter_map(|(_, source)| source.time()).min();
        let first = first.unwrap_or_default();
        let bound = |moment: Option<Moment>| moment.and_then(|moment| moment.time(first));
        let (from, to) = (bound(args.from), bound(args.to).unwrap_or(u64::MAX));
        self.pace.begin_again();
        let mut begun = None;
        while let Some(at) = next(&sources) {
            let (file, source) = &mut sources[at];
            let time = source.time();
            if time.is_some_and(|time| time >= to) || stop.is_raised() {
                sources.swap_remove(at);
                continue;
            }
            if from.is_none_or(|from| time.is_some_and(|time| time >= from)) {
                if let Some(line) = self.lines.of(*file, source.to())? {
                    if !self.wait(time, stop)? {
                        continue;
                    }
                    self.put(line, source)?;
                    let begun = *begun.get_or_insert(time);
                    let since = time.zip(begun).map(|(time, begun)| time - begun);
                    self.span = self.span.max(since.unwrap_or(0));
                } else {
                    self.left_out.elsewhere += 1;
                }
            }
            match source.advance(&mut self.left_out) {
                Ok(true) => {}
                Ok(false) => _ = sources.swap_remove(at),
                Err(damaged) => {
                    self.flush()?;
                    return Err(damaged);
                }
            }
        }
        self.flush()
    }

    /// Opens the files; those without a datagram are omitted.
    fn open(&mut self, args: &Args, stop: &Stop) -> Result<Vec<(usize, Source)>> {
        let reading = Reading {
            header: args.header,
            every: args.every.map(|micros| u64::from(micros) * 1_000),
        };
        let mut sources = Vec::new();
        let mut first: Option<bool> = None;
        for (at, path) in args.files.iter().enumerate() {
            let mut source = Source::open(path, reading, stop)?;
            if !source.has_clock() {
                self.lines.check_file(at + 1, path)?;
                check_times(args, &source)?;
            }
            let has_clock = source.has_clock();
            ensure!(
                *first.get_or_insert(has_clock) == has_clock,
                "`{}` cannot be replayed together with `{}`: one is a capture with times, the \
                 other has packets without times",
                path.display(),
                args.files.first().unwrap_or(path).display()
            );
            if source.advance(&mut self.left_out)? {
                sources.push((at + 1, source));
            }
        }
        Ok(sources)
    }

    /// Waits until the time is due, after sending datagrams due before. Returns false after Ctrl-C.
    fn wait(&mut self, time: Option<u64>, stop: &Stop) -> Result<bool> {
        while let Some(due) = self.pace.is_early(time) {
            self.flush()?;
            // A time in the files may be wrong.
            if let Some(hours) = pace::hours(due.saturating_duration_since(Instant::now())) {
                let hours = counted(hours, "hour");
                note!("fanfare: the next datagram is due in {hours}");
            }
            if !pace::wait(due, stop) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn put(&mut self, line: usize, source: &mut Source) -> Result<()> {
        if self.batch.len == BATCH || self.batch.line != line {
            self.flush()?;
        }
        self.batch.line = line;
        if let Some(room) = self.batch.datagrams.get_mut(self.batch.len) {
            source.swap_bytes(room);
            self.bytes += room.len() as u64;
            self.batch.len += 1;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let Batch {
            line,
            datagrams,
            len,
        } = &mut self.batch;
        let datagrams = datagrams.each_ref().map(Vec::as_slice);
        let due = datagrams.get(..std::mem::take(len)).unwrap_or_default();
        self.lines.send(*line, due)
    }
}

/// Refuses times for files that have none.
fn check_times(args: &Args, source: &Source) -> Result<()> {
    let times = [args.from, args.to];
    let is_clock = |time: &Moment| !matches!(time, Moment::After(_));
    ensure!(
        !times.iter().flatten().any(is_clock),
        "`{}` has packets without times of day: --from and --to must be +SECONDS",
        source.path().display()
    );
    Ok(())
}

/// Returns the source with the earliest datagram; the first file wins a tie.
fn next(sources: &[(usize, Source)]) -> Option<usize> {
    let times = sources.iter().enumerate();
    let first = times.min_by_key(|(_, (file, source))| (source.time(), *file));
    first.map(|(at, _)| at)
}

fn report(args: &Args, play: &Play, elapsed: Duration) {
    let within = match (args.from, args.to) {
        (None, None) => "",
        _ => " within --from and --to",
    };
    for unused in play.lines.unused() {
        note!("fanfare: nothing was sent to or from {unused}: no datagram{within} is of it");
    }
    let left_out = &play.left_out;
    let whole = "they cannot be replayed";
    if left_out.cut > 0 {
        let cut = counted(left_out.cut, "datagram");
        note!("fanfare: {cut} captured in part: {whole}");
    }
    if left_out.fragments > 0 {
        let fragments = counted(left_out.fragments, "fragment");
        note!("fanfare: {fragments} of longer datagrams: {whole}");
    }
    if left_out.malformed > 0 {
        let malformed = counted(left_out.malformed, "datagram");
        note!("fanfare: {malformed} with headers that contradict each other: {whole}");
    }
    if left_out.unknown_links.count() > 0 {
        note!("fanfare: {}", left_out.unknown_links);
    }
    if left_out.lost > 0 {
        let lost = counted(left_out.lost, "datagram");
        note!("fanfare: {lost} or messages are missing in the log");
    }
    let sent: u64 = play.lines.iter().map(Line::sent).sum();
    if sent == 0 {
        note!("fanfare: nothing was sent");
    }
    if args.json {
        return figures(play, sent, elapsed);
    }
    for line in play.lines.iter() {
        note!("{}: {} sent", line.to(), counted(line.sent(), "datagram"));
    }
    if left_out.messages > 0 {
        note!("{} of FIX left out", counted(left_out.messages, "message"));
    }
    let elsewhere = left_out.elsewhere + left_out.other;
    if elsewhere > 0 {
        note!("{} of other traffic left out", counted(elsewhere, "packet"));
    }
    note!(
        "{} of {:.3} s in {:.3} s",
        counted(sent, "datagram"),
        play.span as f64 / 1e9,
        elapsed.as_secs_f64()
    );
}

fn figures(play: &Play, sent: u64, elapsed: Duration) {
    let mut figures = Figures::new("replay");
    figures.count("datagrams", sent);
    figures.count("bytes", play.bytes);
    for (at, line) in play.lines.iter().enumerate() {
        figures.count(&format!("line_{}_datagrams", at + 1), line.sent());
    }
    let left_out = &play.left_out;
    figures.count("other_packets", left_out.other + left_out.elsewhere);
    figures.count("fragments", left_out.fragments);
    figures.count("cut", left_out.cut);
    figures.count("malformed", left_out.malformed);
    figures.count("unsupported_link", left_out.unknown_links.count());
    figures.count("messages_left_out", left_out.messages);
    figures.count("missing_in_log", left_out.lost);
    figures.add("captured_us", play.span as f64 / 1e3);
    figures.add("elapsed_us", elapsed.as_nanos() as f64 / 1e3);
    figures.add("rate_per_s", rate(sent, elapsed.as_secs_f64()));
    if !play.pace.late().is_empty() {
        figures.percentiles("late_", play.pace.late());
    }
    say!("{}", figures.to_json());
}
