//! The ends of the benchmark: ours here, and the processes at the other side.

use std::io::{self, BufRead, Write, stdin, stdout};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::{CdrBuffer, CdrReader};
use fanfare_dds::fast::Converter;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reader, Sample, Status, Writer};
use fanfare_engine::process::Process;
use fanfare_engine::stop::halt;
use fanfare_fast::Record;
use fanfare_gateway::SlowPolicy;

use super::convert::told;
use super::{DdsBench, shm, stalled};
use crate::bench::BenchError;
use crate::raw_dds::{CProgram, Role};

/// What the other process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The C program answers.
    RawPong,
    /// Ours answers.
    Pong,
    /// The C program receives.
    RawSink,
    /// Ours receives.
    Sink,
    /// Answers through shared memory.
    ShmPong,
    /// Answers, with the policies of the comparison with a reader that stops.
    PolicyPong,
    /// Reads what is written to that, and may be stopped.
    Beside,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RawPong,
        Self::Pong,
        Self::RawSink,
        Self::Sink,
        Self::ShmPong,
        Self::PolicyPong,
        Self::Beside,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RawPong => "raw-pong",
            Self::Pong => "pong",
            Self::RawSink => "raw-sink",
            Self::Sink => "sink",
            Self::ShmPong => "shm-pong",
            Self::PolicyPong => "policy-pong",
            Self::Beside => "beside",
        }
    }
}

/// What another process is to be.
#[derive(Debug, Clone, Copy)]
pub struct Other {
    /// What it does.
    pub end: End,
    /// In this domain.
    pub domain: u32,
    /// On this processor, if there is one to choose.
    pub cpu: Option<usize>,
    /// What becomes of a reader that stops.
    pub policy: SlowPolicy,
}

/// Starts a process that calls [`serve`], with its stdin and stdout piped.
pub type Start = dyn Fn(&Other) -> io::Result<Process> + Sync;

/// How long the other process may take to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// The other process. It ends when this end of its pipe closes.
pub(super) struct Child {
    process: Process,
}

impl DdsBench<'_> {
    /// Starts the other process.
    pub(super) fn child(&self, end: End, domain: u32) -> Result<Child, BenchError> {
        self.child_on(self.processors.there, end, domain)
    }

    /// Starts it on that processor.
    pub(super) fn child_on(
        &self,
        cpu: Option<usize>,
        end: End,
        domain: u32,
    ) -> Result<Child, BenchError> {
        self.child_as(&Other {
            end,
            domain,
            cpu,
            policy: SlowPolicy::Drop,
        })
    }

    /// Starts one, and waits until it is open.
    pub(super) fn child_as(&self, other: &Other) -> Result<Child, BenchError> {
        let process = (self.start)(other)?;
        let mut child = Child { process };
        child.ask()?;
        Ok(child)
    }
}

impl Child {
    /// Asks the sink for its count and its nanoseconds; a reader beside for its count and how
    /// many it missed.
    pub(super) fn ask(&mut self) -> Result<(u64, u64), BenchError> {
        let answer = self.line().map_err(|error| {
            BenchError::Missing(format!("the other process does not answer: {error}"))
        })?;
        let numbers = answer.trim().split_once(' ');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        numbers.ok_or_else(|| {
            BenchError::Missing(format!("the other process answers `{}`", answer.trim()))
        })
    }

    fn line(&mut self) -> io::Result<String> {
        if let Some(pipe) = self.process.stdin() {
            pipe.write_all(b"\n")?;
        }
        let line = self.process.next_line(None, LIMIT);
        line.map(|(_, line)| line).map_err(io::Error::other)
    }

    /// Stops the process where it is, or lets it go on.
    pub(super) fn halt(&self, halted: bool) -> io::Result<()> {
        halt(self.process.id(), halted)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.halt(false);
        drop(self.process.stdin().take());
        let _ = self.process.wait(LIMIT);
    }
}

/// Is the other process: answers each line with the count, until the pipe closes.
///
/// # Errors
/// An end of DDS cannot be opened, or the pipe is gone.
pub fn serve(other: &Other) -> Result<(), BenchError> {
    let own = super::config(other.domain);
    let with = stalled::config(other.policy, &own);
    let qos = stalled::qos(other.policy);
    let (mut raw, mut ours, mut shm) = (None, None, None);
    match other.end {
        End::RawPong => raw = Some(CProgram::open(&own, Role::Pong, false)?),
        End::RawSink => raw = Some(CProgram::open(&own, Role::Sink, true)?),
        End::Pong => ours = Some(Ours::pong(&own, &Qos::reliable())?),
        End::Sink => ours = Some(Ours::sink(&own)?),
        End::PolicyPong => ours = Some(Ours::pong(&with, &qos)?),
        End::Beside => ours = Some(Ours::beside(&with, &qos)?),
        End::ShmPong => shm = Some(shm::Pong::start(other.domain)?),
    }
    for line in stdin().lock().lines() {
        line?;
        let counted = raw.as_ref().map(CProgram::count);
        let (count, nanos) = counted.or(ours.as_ref().map(Ours::count)).unwrap_or((0, 0));
        let mut out = stdout().lock();
        writeln!(out, "{count} {nanos}")?;
        out.flush()?;
    }
    drop(shm);
    Ok(())
}

/// Our reader and writer.
pub(super) struct Ours {
    /// Dropped first: its closure holds the other end's writer.
    _reader: Option<Reader>,
    writer: Option<Arc<Writer>>,
    shared: Arc<Shared>,
    buffer: CdrBuffer,
}

#[derive(Default)]
struct Shared {
    matched: AtomicU32,
    gone: AtomicU32,
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
    pub(super) fn ping(config: &DomainConfig, qos: &Qos) -> Result<Self, Error> {
        Self::open(config, Some("Ping"), Some("Pong"), qos, |shared, writer| {
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
        })
    }

    fn pong(config: &DomainConfig, qos: &Qos) -> Result<Self, Error> {
        Self::open(config, Some("Pong"), Some("Ping"), qos, |_, writer| {
            let mut buffer = CdrBuffer::with_capacity(128);
            move |sample: Sample<'_>| {
                // Converted anew, not passed on: both ways are the whole way.
                if let (Some(writer), Some(sequence)) = (&writer, sequence_of(sample.bytes())) {
                    let _ = write_quote(writer, &mut buffer, sequence);
                }
            }
        })
    }

    /// Counts what pings are written, and by their numbers those that never come.
    fn beside(config: &DomainConfig, qos: &Qos) -> Result<Self, Error> {
        Self::open(config, None, Some("Ping"), qos, |shared, _| {
            let mut before = None;
            move |sample: Sample<'_>| {
                let Some(sequence) = sequence_of(sample.bytes()) else {
                    return;
                };
                let missing = before.map_or(0, |b: u32| sequence.wrapping_sub(b + 1));
                before = Some(sequence);
                shared.last.fetch_add(missing.into(), Ordering::Release);
                shared.count.fetch_add(1, Ordering::Release);
            }
        })
    }

    pub(super) fn source(config: &DomainConfig, batching: bool) -> Result<Self, Error> {
        let qos = Qos::reliable().batching(batching);
        Self::open(config, Some("Flow"), None, &qos, |_, _| |_| ())
    }

    fn sink(config: &DomainConfig) -> Result<Self, Error> {
        let begin = Instant::now();
        let qos = Qos::reliable().batching(true);
        Self::open(config, None, Some("Flow"), &qos, move |shared, _| {
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
        qos: &Qos,
        on_sample: impl FnOnce(Arc<Shared>, Option<Arc<Writer>>) -> F,
    ) -> Result<Self, Error>
    where
        F: FnMut(Sample<'_>) + Send + 'static,
    {
        let domain = Domain::open(config)?;
        let shared = Arc::new(Shared::default());
        let writer = match written {
            Some(name) => {
                let topic = domain.topic(name, &quote(), qos)?;
                let writer = topic.writer(qos).on_status(matches(&shared)).open()?;
                Some(Arc::new(writer))
            }
            None => None,
        };
        let reader = match read {
            Some(name) => {
                let topic = domain.topic(name, &quote(), qos)?;
                let closure = on_sample(Arc::clone(&shared), writer.clone());
                let reader = topic.reader(qos).on_status(matches(&shared)).batch(64);
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

    pub(super) fn is_matched(&self) -> bool {
        let ends = u32::from(self._reader.is_some()) + u32::from(self.writer.is_some());
        self.shared.matched.load(Ordering::Acquire) >= ends
    }

    /// Ends of the other side that are gone.
    pub(super) fn gone(&self) -> u32 {
        self.shared.gone.load(Ordering::Acquire)
    }

    /// Ends of the other side that came.
    pub(super) fn matched(&self) -> u32 {
        self.shared.matched.load(Ordering::Acquire)
    }

    /// Pings written so far.
    pub(super) fn written(&self) -> u64 {
        let ping = self.shared.ping.lock();
        ping.map_or(0, |p| p.sequence.into())
    }

    /// Begins `n` round trips.
    pub(super) fn start(&self, n: u32) {
        let (Ok(mut ping), Some(writer)) = (self.shared.ping.lock(), &self.writer) else {
            return;
        };
        self.shared.done.store(0, Ordering::Release);
        ping.round_trips.clear();
        ping.round_trips.reserve(n as usize);
        ping.wanted = n;
        ping.sequence += 1;
        ping.sent = Some(Instant::now());
        let _ = write_quote(writer, &mut CdrBuffer::with_capacity(128), ping.sequence);
    }

    pub(super) fn done(&self) -> u32 {
        self.shared.done.load(Ordering::Acquire)
    }

    pub(super) fn round_trips(&self) -> Vec<u64> {
        let ping = self.shared.ping.lock();
        ping.map(|p| p.round_trips.clone()).unwrap_or_default()
    }

    /// Writes quotes for so long; how many.
    pub(super) fn flow(&mut self, time: Duration) -> Result<u64, Error> {
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

    /// Makes the samples of a message and writes them, `n` times; the
    /// nanoseconds that this takes.
    pub(super) fn burst(
        &self,
        n: u32,
        message: &Record,
        converter: &mut Converter,
    ) -> Result<u64, BenchError> {
        let Some(writer) = &self.writer else {
            return Ok(0);
        };
        let mut failed = Ok(());
        let begin = Instant::now();
        for _ in 0..n {
            let samples = converter.samples(message, |sample| {
                if let Err(error) = writer.write(sample.cdr) {
                    failed = Err(error);
                }
            });
            samples.map_err(told)?;
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
        if let Status::Matched { change, .. } = status {
            let counter = if change > 0 {
                &shared.matched
            } else {
                &shared.gone
            };
            counter.fetch_add(change.unsigned_abs(), Ordering::Release);
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
