//! The ends of `fanfare bench dds`: ours here, and the processes at the other side.

use crate::children::PARENT;
use anyhow::{Context, Result};
use clap::ValueEnum;
use fanfare_bus::baseline::{CProgram, Role};
use fanfare_bus::cdr::{CdrBuffer, CdrReader};
use fanfare_bus::fast::Converter;
use fanfare_bus::types::{Kind, StructType};
use fanfare_bus::{Domain, DomainConfig, Error, Qos, Reader, Sample, Status, Writer};
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::os::unix::process::CommandExt;
use std::process::{self, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the other process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    RawPong,
    Pong,
    RawSink,
    Sink,
    ShmPong,
}

/// An end that is kept open.
#[allow(dead_code, reason = "held for their drop")]
pub(crate) enum Ends {
    Raw(CProgram),
    Ours(Ours),
}

/// The other process. It ends when this end of its pipe closes.
pub(crate) struct Child {
    process: process::Child,
    answers: BufReader<process::ChildStdout>,
}

impl Child {
    pub(crate) fn start(end: End, domain: u32) -> Result<Self> {
        let name = end.to_possible_value().map(|v| v.get_name().to_owned());
        let mut process = Command::new(std::env::current_exe()?)
            .args(["bench", "dds", "--end", &name.unwrap_or_default()])
            .args(["--domain", &domain.to_string()])
            .env(PARENT, process::id().to_string())
            // Its pipe ends it, not the terminal's Ctrl-C.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the other process")?;
        let out = process
            .stdout
            .take()
            .context("the other process has no output")?;
        let mut child = Self {
            process,
            answers: BufReader::new(out),
        };
        child.ask().context("the other process did not open")?;
        Ok(child)
    }

    /// Asks the sink for its count and its nanoseconds.
    pub(crate) fn ask(&mut self) -> Result<(u64, u64)> {
        let pipe = self.process.stdin.as_mut().context("no pipe")?;
        pipe.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let (count, nanos) = line.trim().split_once(' ').context("no answer")?;
        Ok((count.parse()?, nanos.parse()?))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Is the other process: answers each line with the count, until the pipe closes.
pub(crate) fn serve(end: End, config: &DomainConfig) -> Result<()> {
    let raw = match end {
        End::RawPong => Some(CProgram::open(config, Role::Pong, false)?),
        End::RawSink => Some(CProgram::open(config, Role::Sink, true)?),
        _ => None,
    };
    let ours = match end {
        End::Pong => Some(Ours::pong(config)?),
        End::Sink => Some(Ours::sink(config)?),
        _ => None,
    };
    let _shm = match end {
        End::ShmPong => Some(super::dds_shm::Pong::start(config.id())?),
        _ => None,
    };
    for line in stdin().lock().lines() {
        line?;
        let counted = raw.as_ref().map(CProgram::count);
        let (count, nanos) = counted.or(ours.as_ref().map(Ours::count)).unwrap_or((0, 0));
        let mut out = stdout().lock();
        writeln!(out, "{count} {nanos}")?;
        out.flush()?;
    }
    Ok(())
}

/// Our end of the bus.
pub(crate) struct Ours {
    /// Dropped first: its closure holds the other end's writer.
    _reader: Option<Reader>,
    writer: Option<Arc<Writer>>,
    shared: Arc<Shared>,
    buffer: CdrBuffer,
}

#[derive(Default)]
struct Shared {
    matched: AtomicU32,
    ping: Mutex<Ping>,
    done: AtomicU32,
    count: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
}

#[derive(Default)]
struct Ping {
    round_trips: Vec<u64>,
    wanted: u32,
    sent: Option<Instant>,
    sequence: u32,
}

impl Ours {
    pub(crate) fn ping(config: &DomainConfig) -> Result<Self> {
        Self::open(
            config,
            Some("Ping"),
            Some("Pong"),
            false,
            |shared, writer| {
                let mut buffer = CdrBuffer::with_capacity(128);
                move |_| {
                    let came = Instant::now();
                    let (Ok(mut ping), Some(writer)) = (shared.ping.lock(), &writer) else {
                        return;
                    };
                    let Some(sent) = ping.sent.take() else { return };
                    ping.round_trips.push((came - sent).as_nanos() as u64);
                    let done = ping.round_trips.len() as u32;
                    if done < ping.wanted {
                        ping.sequence += 1;
                        ping.sent = Some(Instant::now());
                        let _ = write_quote(writer, &mut buffer, ping.sequence);
                    }
                    shared.done.store(done, Ordering::Release);
                }
            },
        )
    }

    fn pong(config: &DomainConfig) -> Result<Self> {
        Self::open(config, Some("Pong"), Some("Ping"), false, |_, writer| {
            let mut buffer = CdrBuffer::with_capacity(128);
            move |sample: Sample<'_>| {
                // Converted anew, not passed on: both ways are the whole way.
                if let (Some(writer), Some(sequence)) = (&writer, sequence_of(sample.bytes())) {
                    let _ = write_quote(writer, &mut buffer, sequence);
                }
            }
        })
    }

    pub(crate) fn source(config: &DomainConfig, batching: bool) -> Result<Self> {
        Self::open(config, Some("Flow"), None, batching, |_, _| |_| ())
    }

    fn sink(config: &DomainConfig) -> Result<Self> {
        let begin = Instant::now();
        Self::open(config, None, Some("Flow"), true, move |shared, _| {
            move |sample: Sample<'_>| {
                let _ = std::hint::black_box(sample.bytes());
                let n = shared.count.fetch_add(1, Ordering::Relaxed);
                // The clock is read once for many samples, as the C program does.
                if n % 64 == 0 {
                    let now = begin.elapsed().as_nanos() as u64;
                    if n == 0 {
                        shared.first.store(now, Ordering::Relaxed);
                    }
                    shared.last.store(now, Ordering::Release);
                }
            }
        })
    }

    fn open<F>(
        config: &DomainConfig,
        written: Option<&str>,
        read: Option<&str>,
        batching: bool,
        on_sample: impl FnOnce(Arc<Shared>, Option<Arc<Writer>>) -> F,
    ) -> Result<Self>
    where
        F: FnMut(Sample<'_>) + Send + 'static,
    {
        let domain = Domain::open(config)?;
        let qos = Qos::reliable().batching(batching);
        let shared = Arc::new(Shared::default());
        let writer = match written {
            Some(name) => {
                let topic = domain.topic(name, &quote(), &qos)?;
                let writer = topic.writer(&qos).on_status(matches(&shared)).open()?;
                Some(Arc::new(writer))
            }
            None => None,
        };
        let reader = match read {
            Some(name) => {
                let topic = domain.topic(name, &quote(), &qos)?;
                let closure = on_sample(Arc::clone(&shared), writer.clone());
                let reader = topic.reader(&qos).on_status(matches(&shared)).batch(64);
                Some(reader.on_sample(closure).open()?)
            }
            None => None,
        };
        Ok(Self {
            _reader: reader,
            writer,
            shared,
            buffer: CdrBuffer::with_capacity(128),
        })
    }

    pub(crate) fn is_matched(&self) -> bool {
        let ends = u32::from(self._reader.is_some()) + u32::from(self.writer.is_some());
        self.shared.matched.load(Ordering::Acquire) >= ends
    }

    /// Begins `n` round trips.
    pub(crate) fn start(&self, n: u32) {
        let (Ok(mut ping), Some(writer)) = (self.shared.ping.lock(), &self.writer) else {
            return;
        };
        self.shared.done.store(0, Ordering::Release);
        ping.round_trips.clear();
        ping.round_trips.reserve(n as usize);
        ping.wanted = n;
        ping.sent = Some(Instant::now());
        let _ = write_quote(writer, &mut CdrBuffer::with_capacity(128), 0);
    }

    pub(crate) fn done(&self) -> u32 {
        self.shared.done.load(Ordering::Acquire)
    }

    pub(crate) fn round_trips(&self) -> Vec<u64> {
        let ping = self.shared.ping.lock();
        ping.map(|p| p.round_trips.clone()).unwrap_or_default()
    }

    /// Writes quotes for so long; how many.
    pub(crate) fn flow(&mut self, time: Duration) -> Result<u64> {
        let Some(writer) = &self.writer else {
            return Ok(0);
        };
        let end = Instant::now() + time;
        let mut n = 0;
        while Instant::now() < end {
            for _ in 0..64 {
                n += 1;
                write_quote(writer, &mut self.buffer, n)?;
            }
        }
        writer.flush()?;
        Ok(n.into())
    }

    /// Makes the samples of the message that was decoded last and writes them, `n` times; the
    /// nanoseconds that this takes.
    pub(crate) fn burst(&self, n: u32, converter: &mut Converter) -> Result<u64> {
        let writer = self.writer.as_ref().context("this end does not write")?;
        let mut failed = Ok(());
        let begin = Instant::now();
        for _ in 0..n {
            converter.samples(|sample| {
                if let Err(error) = writer.write(sample.cdr) {
                    failed = Err(error);
                }
            })?;
        }
        let nanos = begin.elapsed().as_nanos() as u64;
        failed?;
        Ok(nanos)
    }

    fn count(&self) -> (u64, u64) {
        let first = self.shared.first.load(Ordering::Acquire);
        let last = self.shared.last.load(Ordering::Acquire);
        (
            self.shared.count.load(Ordering::Acquire),
            last.saturating_sub(first),
        )
    }
}

fn matches(shared: &Arc<Shared>) -> impl FnMut(Status) + Send + 'static + use<> {
    let shared = Arc::clone(shared);
    move |status| {
        if let Status::Matched { change: 1, .. } = status {
            shared.matched.fetch_add(1, Ordering::Release);
        }
    }
}

/// The Quote message of the simple templates.
pub(super) fn quote() -> StructType {
    StructType::new("Bench::Quote")
        .member("MessageType", Kind::UInt16)
        .member("SequenceNumber", Kind::UInt32)
        .member("Timestamp", Kind::UInt32)
        .member("OrderId", Kind::UInt32)
        .member("Volume", Kind::UInt32)
        .member("Price", Kind::UInt32)
        .member("ExchangeId", Kind::Byte)
        .member("SecurityId", Kind::UInt16)
        .member("SecurityType", Kind::Byte)
        .member("SessionId", Kind::Byte)
}

#[inline]
fn write_quote(writer: &Writer, buffer: &mut CdrBuffer, sequence: u32) -> Result<(), Error> {
    writer.write(put_quote(buffer, sequence)?)
}

/// Makes a sample of a Quote.
#[inline]
pub(super) fn put_quote(buffer: &mut CdrBuffer, sequence: u32) -> Result<&[u8], Error> {
    buffer.begin();
    buffer.u16(11);
    buffer.u32(sequence);
    for field in 2..6 {
        buffer.u32(field);
    }
    buffer.u8(6);
    buffer.u16(7);
    buffer.u8(8);
    buffer.u8(9);
    Ok(buffer.finish()?)
}

/// The number of a Quote.
#[inline]
pub(super) fn sequence_of(cdr: &[u8]) -> Option<u32> {
    let mut cdr = CdrReader::new(cdr).ok()?;
    cdr.u16().ok()?;
    cdr.u32().ok()
}
