//! The ends of the benchmark on Fanfare's side. Those that take samples read all members of each,
//! as the C program does.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::fast::Converter;
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reader, Sample, Status, Writer};
use fanfare_fast::Record;

use super::convert::told;
use super::quote::{Quote, quote};
use crate::bench::BenchError;

/// A reader and a writer.
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
    /// The time at which a peer's reader or writer was gone for the first time.
    gone: OnceLock<Instant>,
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
            move |sample: Sample<'_>| {
                // A round trip ends once the sample is read.
                if read(&sample).is_none() {
                    return;
                }
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
                    let _ = write(writer, &mut buffer, Quote::new(ping.sequence));
                }
                shared.done.store(done, Ordering::Release);
            }
        })
    }

    pub(super) fn pong(config: &DomainConfig, qos: &Qos) -> Result<Self, Error> {
        Self::open(config, Some("Pong"), Some("Ping"), qos, |_, writer| {
            let mut buffer = CdrBuffer::with_capacity(128);
            move |sample: Sample<'_>| {
                // The sample is converted anew, not passed on: both directions include the
                // conversion.
                if let (Some(writer), Some(quote)) = (&writer, read(&sample)) {
                    let _ = write(writer, &mut buffer, quote);
                }
            }
        })
    }

    /// Counts the samples of the ping, and finds the missing ones by their numbers.
    pub(super) fn beside(config: &DomainConfig, qos: &Qos) -> Result<Self, Error> {
        Self::open(config, None, Some("Ping"), qos, |shared, _| {
            let mut before = None;
            move |sample: Sample<'_>| {
                let Some(Quote { sequence, .. }) = read(&sample) else {
                    return;
                };
                let missing = before.map_or(0, |b: u32| sequence.wrapping_sub(b + 1));
                before = Some(sequence);
                shared.last.fetch_add(missing.into(), Ordering::Relaxed);
                shared.count.fetch_add(1, Ordering::Release);
            }
        })
    }

    pub(super) fn source(config: &DomainConfig, batching: bool) -> Result<Self, Error> {
        let qos = Qos::reliable().batching(batching);
        Self::open(config, Some("Flow"), None, &qos, |_, _| |_| ())
    }

    pub(super) fn sink(config: &DomainConfig) -> Result<Self, Error> {
        let begin = Instant::now();
        let qos = Qos::reliable().batching(true);
        Self::open(config, None, Some("Flow"), &qos, move |shared, _| {
            move |sample: Sample<'_>| {
                if read(&sample).is_none() {
                    return;
                }
                // No other closure counts.
                let n = shared.count.load(Ordering::Relaxed);
                // The clock is read once for many samples, as in the C program.
                if n % 64 == 0 {
                    let now = begin.elapsed().as_nanos() as u64;
                    if n == 0 {
                        shared.first.store(now, Ordering::Relaxed);
                    }
                    shared.last.store(now, Ordering::Relaxed);
                }
                shared.count.store(n + 1, Ordering::Release);
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

    /// Returns the time at which the first of the peers' readers and writers was gone.
    pub(super) fn gone(&self) -> Option<Instant> {
        self.shared.gone.get().copied()
    }

    /// Returns the number of the peer's readers and writers that were matched.
    pub(super) fn matched(&self) -> u32 {
        self.shared.matched.load(Ordering::Acquire)
    }

    /// Returns the number of pings written so far.
    pub(super) fn written(&self) -> u64 {
        let ping = self.shared.ping.lock();
        ping.map_or(0, |p| p.sequence.into())
    }

    /// Starts `n` round trips.
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
        let first = Quote::new(ping.sequence);
        let _ = write(writer, &mut CdrBuffer::with_capacity(128), first);
    }

    pub(super) fn done(&self) -> u32 {
        self.shared.done.load(Ordering::Acquire)
    }

    pub(super) fn round_trips(&self) -> Vec<u64> {
        let ping = self.shared.ping.lock();
        ping.map(|p| p.round_trips.clone()).unwrap_or_default()
    }

    /// Writes quotes for `time`. Returns their number.
    pub(super) fn flow(&mut self, time: Duration) -> Result<u64, Error> {
        let Some(writer) = &self.writer else {
            return Ok(0);
        };
        let end = Instant::now() + time;
        let mut n = 0;
        while Instant::now() < end {
            for _ in 0..64 {
                n += 1;
                write(writer, &mut self.buffer, Quote::new(n))?;
            }
        }
        writer.flush()?;
        Ok(n.into())
    }

    /// Makes the samples of a message and writes them, `n` times. Returns the nanoseconds taken.
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

    /// Returns the samples received, and the nanoseconds from the first to the last of them, or to
    /// a later one; of a second reader, the samples it missed before them, or before a later one.
    pub(super) fn count(&self) -> (u64, u64) {
        // The count is stored last: what belongs to it is there.
        let count = self.shared.count.load(Ordering::Acquire);
        let [first, last] =
            [&self.shared.first, &self.shared.last].map(|time| time.load(Ordering::Relaxed));
        (count, last.saturating_sub(first))
    }
}

fn matches(shared: &Arc<Shared>) -> impl FnMut(Status) + Send + 'static + use<> {
    let shared = Arc::clone(shared);
    move |status| match status {
        Status::Matched { change, .. } if change < 0 => {
            shared.gone.get_or_init(Instant::now);
        }
        Status::Matched { change, .. } => {
            let change = change.unsigned_abs();
            shared.matched.fetch_add(change, Ordering::Release);
        }
        _ => {}
    }
}

/// Makes a sample of the Quote, and writes it.
#[inline]
fn write(writer: &Writer, buffer: &mut CdrBuffer, quote: Quote) -> Result<(), Error> {
    writer.write(quote.put(buffer)?)
}

/// Reads all members of a sample; the compiler must assume that they are used.
#[inline]
fn read(sample: &Sample<'_>) -> Option<Quote> {
    Quote::read(sample.bytes()).map(black_box)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_first_end_that_is_gone_stays() {
        let shared = Arc::default();
        let mut on_status = matches(&shared);
        let mut changed = |change| {
            on_status(Status::Matched {
                current: 1,
                total: 2,
                change,
            });
            shared.gone.get().copied()
        };
        assert_eq!(changed(2), None);
        let before = Instant::now();
        let gone = changed(-1).unwrap();
        assert!(gone >= before);
        assert_eq!(changed(-1), Some(gone));
        assert_eq!(shared.matched.load(Ordering::Acquire), 2);
    }
}
