//! `fanfare history raw`: the datagrams and messages of a raw log.

use super::export::output::Output;
use super::range::{AT_ONCE, Range};
use crate::plural::counted;
use crate::print::{Out, exit_code, note};
use crate::progress;
use anyhow::{Context, Result, ensure};
use fanfare_engine::stop::Stop;
use fanfare_history::moment::utc;
use fanfare_history::{Log, Raw, RawDelivery, Source};
use fanfare_instruments::pcap::{LinkType, Writer};
use fanfare_instruments::udp;
use serde_json::json;
use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Print the datagrams and messages of a raw log, one per line: number, time of arrival, feed and
/// line, address, length, bytes; or write the datagrams as a capture, for `fanfare replay` and
/// Wireshark.
///
/// A gateway with [history.raw] writes a raw log, in the folder `raw` of its log. Datagrams are
/// printed as hexadecimal digits, FIX messages with | for SOH. With --output, the exit status is 1
/// if some are missing in the log; the file has the others.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of the log: `raw` in `history.folder` of a gateway.
    #[arg(value_name = "DIR", default_value = "log/raw")]
    folder: PathBuf,
    #[command(flatten)]
    range: Range,
    /// Print JSON objects, one per line.
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Write the datagrams to this file, as pcap with nanoseconds; - for stdout. FIX messages are
    /// omitted, and counted.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the FIX messages to --output instead of the datagrams, as received: `fanfare fix
    /// initiator` sends them again, `fanfare fix cat` prints them.
    #[arg(long, requires = "output")]
    fix: bool,
}

/// The source address of datagrams, which the log does not record.
const SENDER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// The longest packet of IPv4, bytes.
const LONGEST: u32 = 65_535;

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let log = Log::open(&args.folder)?;
    let extent = log.extent()?;
    ensure!(
        extent.next == extent.first || log.is_raw()?,
        "`{}` is a log of market events, and has no datagrams: `fanfare history cat` prints it",
        args.folder.display()
    );
    let stop = Stop::on_interrupt()?;
    let lost = match &args.output {
        Some(path) if args.fix => messages(args.range, &log, path, &stop)?,
        Some(path) => capture(args.range, &log, path, &stop)?,
        None => {
            print(args, &log, &stop)?;
            0
        }
    };
    Ok(exit_code(lost == 0))
}

/// Calls `each` with every delivery of the range, until it fails or Ctrl-C comes. Returns false
/// after Ctrl-C.
fn read(
    range: Range,
    log: &Log,
    stop: &Stop,
    mut each: impl FnMut(&RawDelivery<'_>) -> Result<()>,
) -> Result<bool> {
    let (mut reader, end) = range.open(log)?;
    let end = end.unwrap_or(u64::MAX).min(log.extent()?.next);
    reader.stop_before(end);
    progress::begin_events(end.saturating_sub(reader.next_number()));
    while !stop.is_raised() {
        let (before, mut failed) = (reader.next_number(), Ok(()));
        let count = reader.read_raw(AT_ONCE, |delivery| {
            if failed.is_ok() {
                failed = each(&delivery);
            }
        })?;
        failed?;
        if count == 0 {
            return Ok(true);
        }
        progress::advance(reader.next_number() - before);
    }
    Ok(false)
}

fn print(args: &Args, log: &Log, stop: &Stop) -> Result<()> {
    let mut out = Out::default();
    read(args.range, log, stop, |delivery| {
        let line = match args.json {
            true => object(delivery),
            false => text(delivery),
        };
        Ok(writeln!(out, "{line}")?)
    })?;
    Ok(out.flush()?)
}

/// Writes the datagrams as a capture, and returns how many numbers are missing. Ctrl-C completes it
/// with those written so far.
fn capture(range: Range, log: &Log, path: &Path, stop: &Stop) -> Result<u64> {
    let cannot = || format!("cannot write `{}`", path.display());
    let output = BufWriter::new(Output::open(path, log)?);
    let mut file = Writer::new(output, LinkType::RAW, LONGEST).with_context(cannot)?;
    let (mut datagrams, mut messages, mut lost) = (0, 0, 0);
    let mut packet = Vec::new();
    let is_whole = read(range, log, stop, |delivery| {
        match delivery {
            RawDelivery::Raw(raw) if raw.line.source == Source::Fix => messages += 1,
            RawDelivery::Raw(raw) => {
                udp::packet((SENDER, raw.line.address), raw.bytes, &mut packet)?;
                file.packet(raw.received, &packet, 0).with_context(cannot)?;
                datagrams += 1;
            }
            RawDelivery::Lost { first, last } => lost += last - first + 1,
            RawDelivery::Restart => {}
        }
        Ok(())
    })?;
    finish(file.into_inner()).with_context(cannot)?;
    let left_out = (messages > 0).then(|| of_fix(messages));
    tell(&counted(datagrams, "datagram"), left_out, lost, is_whole);
    Ok(lost)
}

/// Writes the FIX messages, concatenated, and returns how many numbers are missing. Ctrl-C
/// completes the file with those written so far.
fn messages(range: Range, log: &Log, path: &Path, stop: &Stop) -> Result<u64> {
    let cannot = || format!("cannot write `{}`", path.display());
    let mut file = BufWriter::new(Output::open(path, log)?);
    let (mut datagrams, mut messages, mut lost) = (0, 0, 0);
    let is_whole = read(range, log, stop, |delivery| {
        match delivery {
            RawDelivery::Raw(raw) if raw.line.source == Source::Fix => {
                file.write_all(raw.bytes).with_context(cannot)?;
                messages += 1;
            }
            RawDelivery::Raw(_) => datagrams += 1,
            RawDelivery::Lost { first, last } => lost += last - first + 1,
            RawDelivery::Restart => {}
        }
        Ok(())
    })?;
    finish(file).with_context(cannot)?;
    let left_out = (datagrams > 0).then(|| counted(datagrams, "datagram"));
    tell(&of_fix(messages), left_out, lost, is_whole);
    Ok(lost)
}

fn finish(file: BufWriter<Output>) -> std::io::Result<()> {
    let output = file.into_inner();
    let output = output.map_err(std::io::IntoInnerError::into_error);
    output.and_then(Output::commit)
}

fn tell(written: &str, left_out: Option<String>, lost: u64, is_whole: bool) {
    progress::clear();
    let end = if is_whole { "" } else { "; ended by Ctrl-C" };
    note!("fanfare: {written} written{end}");
    if let Some(left_out) = left_out {
        note!("fanfare: {left_out} left out");
    }
    if lost > 0 {
        note!("fanfare: {lost} are missing: they did not come to the log, or cannot be read");
    }
}

/// Returns a number of messages as words.
fn of_fix(messages: u64) -> String {
    counted(messages, "message") + " of FIX"
}

/// Returns the name of a kind of line.
const fn source(source: Source) -> &'static str {
    match source {
        Source::Line => "line",
        Source::Snapshots => "snapshots",
        Source::Fix => "fix",
    }
}

/// Returns the bytes as text.
fn bytes(raw: &Raw<'_>) -> String {
    match raw.line.source {
        Source::Fix => {
            let visible = raw.bytes.iter().map(|byte| match byte {
                1 => b'|',
                byte => *byte,
            });
            let visible: Vec<u8> = visible.collect();
            visible.escape_ascii().to_string()
        }
        Source::Line | Source::Snapshots => {
            let digits = raw.bytes.iter().map(|byte| format!("{byte:02x}"));
            digits.collect()
        }
    }
}

/// Returns the letter of a line.
fn letter(line: u16) -> char {
    let line = u8::try_from(line).unwrap_or(u8::MAX).min(25);
    char::from(b'A' + line)
}

fn text(delivery: &RawDelivery<'_>) -> String {
    match delivery {
        RawDelivery::Raw(raw) => {
            let own = source(raw.line.source);
            let line = match raw.line.source {
                Source::Fix => own.to_owned(),
                _ => format!("feed={} {own}={}", raw.line.feed, letter(raw.line.line)),
            };
            let (number, time, address) = (raw.number, utc(raw.received), raw.line.address);
            let (len, bytes) = (raw.bytes.len(), bytes(raw));
            format!("{number} {time} {line} {address} {len} {bytes}")
        }
        RawDelivery::Lost { first, last } => format!("{first} to {last} are missing"),
        RawDelivery::Restart => "the plant was started again".to_owned(),
    }
}

fn object(delivery: &RawDelivery<'_>) -> String {
    let object = match delivery {
        RawDelivery::Raw(raw) => json!({
            "number": raw.number,
            "received": raw.received,
            "source": source(raw.line.source),
            "feed": raw.line.feed,
            "line": raw.line.line,
            "address": raw.line.address.to_string(),
            "bytes": bytes(raw),
        }),
        RawDelivery::Lost { first, last } => json!({"lost": {"first": first, "last": last}}),
        RawDelivery::Restart => json!({"restart": true}),
    };
    object.to_string()
}
