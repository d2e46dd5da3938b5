//! The round trip of a sample between two programs.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::{CdrBuffer, CdrReader};
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, Error, Qos, Reader, Reliability, Sample, Status, Writer};

use crate::histogram::Histogram;

const PING: &str = "FanfarePing";
const PONG: &str = "FanfarePong";
/// Echoes that a listener could not send at once, queued for the thread that may block.
const LATE_ANSWERS: usize = 64;

/// A function that is called for policies of the two sides that do not match.
type Tell = fn(&Status);

fn sample_type() -> StructType {
    StructType::new("Fanfare::Ping")
        .member("sender", Kind::UInt64)
        .member("number", Kind::UInt64)
        .member("payload", Kind::Sequence(Box::new(Kind::Byte), None))
}

/// Returns the policies of both directions.
fn qos(best_effort: bool) -> Qos {
    if best_effort {
        Qos::best_effort()
    } else {
        Qos::reliable()
    }
}

/// Returns `qos` for a listener that sends echoes: its writes must not wait for acknowledgements,
/// which the same thread receives.
fn hasty(best_effort: bool) -> Qos {
    let qos = qos(best_effort);
    if best_effort {
        return qos;
    }
    qos.reliability(Reliability::Reliable(Duration::ZERO))
}

/// The number of the peer's ends of one topic.
#[derive(Default)]
struct Matches(AtomicU32);

/// Counts the peer's ends, and calls `tell` for user-visible changes.
fn watch(matches: &Arc<Matches>, tell: Tell) -> impl FnMut(Status) + Send + 'static + use<> {
    let matches = Arc::clone(matches);
    move |status| match status {
        Status::Matched { current, .. } => matches.0.store(current, Ordering::Release),
        Status::IncompatibleQos { .. } => tell(&status),
        _ => {}
    }
}

/// A responder that sends each sample back.
pub struct Pong {
    reader: Option<Reader>,
    writer: Writer,
    late: Receiver<Vec<u8>>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    came: AtomicU64,
    failed: AtomicU64,
}

impl Pong {
    /// Starts to send samples back. The thread that calls this is the one that calls
    /// [`turn`](Self::turn).
    ///
    /// # Errors
    /// Those of DDS.
    pub fn open(domain: &Domain, best_effort: bool, tell: Tell) -> Result<Self, Error> {
        let (t, qos) = (sample_type(), qos(best_effort));
        let matches = Arc::new(Matches::default());
        let topic = domain.topic(PONG, &t, &qos)?;
        let quick = topic.writer(&hasty(best_effort));
        let quick = quick.on_status(watch(&matches, tell)).open()?;
        let writer = topic.writer(&qos).open()?;
        let (waiting, late) = sync_channel::<Vec<u8>>(LATE_ANSWERS);
        let counts = Arc::new(Counts::default());
        let (listener, main) = (Arc::clone(&counts), thread::current());
        let answer = move |sample: Sample<'_>| {
            let sent = quick.write(sample.bytes()).is_ok();
            if !sent && waiting.try_send(sample.bytes().to_vec()).is_err() {
                listener.failed.fetch_add(1, Ordering::Relaxed);
            }
            listener.came.fetch_add(1, Ordering::Release);
            main.unpark();
        };
        let reader = domain.topic(PING, &t, &qos)?.reader(&qos);
        let reader = reader.on_status(watch(&matches, tell)).on_sample(answer);
        Ok(Self {
            reader: Some(reader.open()?),
            writer,
            late,
            counts,
        })
    }

    /// Returns the number of samples received.
    pub fn came(&self) -> u64 {
        self.counts.came.load(Ordering::Acquire)
    }

    /// Sends the queued echoes, and waits briefly for more.
    ///
    /// # Errors
    /// The reader failed.
    pub fn turn(&self) -> Result<(), Error> {
        self.reader.as_ref().map_or(Ok(()), Reader::check)?;
        self.answer_late();
        thread::park_timeout(Duration::from_millis(50));
        Ok(())
    }

    /// Closes the reader. Returns the numbers of samples that came, and of those that could not be
    /// sent back.
    pub fn finish(mut self) -> (u64, u64) {
        // This ends the listener's last call, whose echo may be queued.
        drop(self.reader.take());
        self.answer_late();
        (self.came(), self.counts.failed.load(Ordering::Relaxed))
    }

    fn answer_late(&self) {
        for sample in self.late.try_iter() {
            if self.writer.write(&sample).is_err() {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The options of a [`Ping`].
#[derive(Debug, Clone, Copy)]
pub struct PingOptions {
    /// Bytes of payload in each sample.
    pub size: u32,
    /// Best-effort instead of reliable delivery.
    pub best_effort: bool,
    /// The time limit for an echo.
    pub timeout: Duration,
}

/// A sender of one sample at a time, which measures its round trip.
pub struct Ping {
    writer: Writer,
    reader: Reader,
    shared: Arc<Shared>,
    /// The matches of both directions.
    matches: [Arc<Matches>; 2],
    buffer: CdrBuffer,
    payload: Vec<u8>,
    sender: u64,
    timeout: Duration,
    /// Samples that were measured.
    pub sent: u64,
    /// Samples measured without an echo in time.
    pub lost: u64,
    /// The times from the write to the call of the listener with the echo, in nanoseconds.
    pub round_trips: Histogram,
}

/// The state shared by the listener and the thread that writes.
struct Shared {
    /// The sequence number of the sample in flight, and the time of its echo.
    waiting: Mutex<(u64, Option<Instant>)>,
    wrong: AtomicU64,
    main: Thread,
}

impl Ping {
    /// Opens both directions. The thread that calls this is the one that sends.
    ///
    /// # Errors
    /// Those of DDS.
    pub fn open(domain: &Domain, options: &PingOptions, tell: Tell) -> Result<Self, Error> {
        let (t, qos) = (sample_type(), qos(options.best_effort));
        let matches = [(); 2].map(|()| Arc::new(Matches::default()));
        let shared = Arc::new(Shared {
            waiting: Mutex::new((0, None)),
            wrong: AtomicU64::new(0),
            main: thread::current(),
        });
        // The payload has many different bytes, so that a wrong copy is detected.
        let payload: Vec<u8> = (0..options.size).map(|i| (i % 251) as u8).collect();
        let sender = sender();
        let (listener, expected) = (Arc::clone(&shared), payload.clone());
        let on_answer = move |sample: Sample<'_>| {
            let came = Instant::now();
            listener.answer(sample.bytes(), sender, &expected, came);
        };
        let writer = domain.topic(PING, &t, &qos)?.writer(&qos);
        let reader = domain.topic(PONG, &t, &qos)?.reader(&qos);
        let reader = reader.on_status(watch(&matches[1], tell));
        Ok(Self {
            writer: writer.on_status(watch(&matches[0], tell)).open()?,
            reader: reader.on_sample(on_answer).open()?,
            shared,
            matches,
            buffer: CdrBuffer::with_capacity(payload.len() + 64),
            payload,
            sender,
            timeout: options.timeout,
            sent: 0,
            lost: 0,
            round_trips: Histogram::new(),
        })
    }

    /// Returns whether both directions have a pong.
    pub fn is_matched(&self) -> bool {
        let there = |matches: &Arc<Matches>| matches.0.load(Ordering::Acquire) > 0;
        self.matches.iter().all(there)
    }

    /// Returns the number of echoes whose bytes differ from those sent.
    pub fn wrong(&self) -> u64 {
        self.shared.wrong.load(Ordering::Relaxed)
    }

    /// Checks that the reader still reads.
    ///
    /// # Errors
    /// The reader failed.
    pub fn check(&self) -> Result<(), Error> {
        self.reader.check()
    }

    /// Makes one round trip of a sample.
    ///
    /// # Errors
    /// The sample cannot be written.
    pub fn one(&mut self, sequence: u64, measured: bool) -> Result<(), Error> {
        self.buffer.begin();
        self.buffer.u64(self.sender);
        self.buffer.u64(sequence);
        self.buffer.octets(&self.payload);
        let sample = self.buffer.finish()?;
        self.shared.expect(sequence);
        let begin = Instant::now();
        self.writer.write(sample)?;
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
                    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
                    self.round_trips.record(nanos);
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

    /// Takes an echo; ignores those of other programs and of lost samples.
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

/// Returns sender and number of a sample, and whether its payload is unchanged.
fn read(bytes: &[u8], payload: &[u8]) -> Option<(u64, u64, bool)> {
    let mut cdr = CdrReader::new(bytes).ok()?;
    let (sender, sequence) = (cdr.u64().ok()?, cdr.u64().ok()?);
    Some((sender, sequence, cdr.octets().ok()? == payload))
}

/// Returns a number that distinguishes this run from others.
fn sender() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}
