//! Samples over DDS. The listeners read and write in the thread that receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ends::{
    Args, Check, Flow, NUMBER, Result, Role, Trips, fail, ready, until_stdin_ends, wait_for_match,
};
use fanfare_dds::cdr::{CdrBuffer, CdrReader};
use fanfare_dds::types::StructType;
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability, Sample, Status, Writer};

/// Both ends of one process, and the matches of the other one.
struct Ends {
    domain: Domain,
    sample: StructType,
    matches: Arc<AtomicU32>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let ends = Ends {
        domain: Domain::open(&config(args))?,
        sample: super::sample_type(args)?,
        matches: Arc::default(),
    };
    match args.role {
        Role::Pong => pong(&ends),
        Role::Ping => ping(&ends, args),
        Role::Sink => sink(&ends, args),
        Role::Source => source(&ends, args),
    }
}

/// Returns the default configuration. Where listeners write, more may be unacknowledged: there a
/// write that waits would wait for an acknowledgement that its own thread receives.
pub(crate) fn config(args: &Args) -> DomainConfig {
    let mut config = DomainConfig::new(args.domain);
    if matches!(args.role, Role::Pong | Role::Ping) {
        config.unacknowledged = 16 << 20;
    }
    config
}

fn qos() -> Qos {
    Qos::reliable().reliability(Reliability::Reliable(Duration::from_secs(10)))
}

fn pong(ends: &Ends) -> Result<()> {
    let writer = ends.writer("Pong", &qos())?;
    let _reader = ends.reader("Ping", &qos(), move |sample| {
        done(writer.write(sample.bytes()));
    })?;
    ready();
    until_stdin_ends();
    Ok(())
}

fn ping(ends: &Ends, args: &Args) -> Result<()> {
    let writer = Arc::new(ends.writer("Ping", &qos())?);
    let mut buffer = Buffer::new(args);
    let (mut next, echo) = (Buffer::new(args), Arc::clone(&writer));
    let (mut trips, check) = (Trips::new(args), Check::new(args));
    let _reader = ends.reader("Pong", &qos(), move |sample| {
        if let Some(number) = trips.came(number_of(&sample, check)) {
            done(next.write(&echo, number));
        }
    })?;
    wait_for_match(|| ends.are_matched(2));
    buffer.write(&writer, 0)?;
    until_stdin_ends();
    Ok(())
}

fn sink(ends: &Ends, args: &Args) -> Result<()> {
    let (mut flow, check) = (Flow::new(args), Check::new(args));
    let _reader = ends.reader("Flow", &qos(), move |sample| {
        flow.came(number_of(&sample, check));
    })?;
    ready();
    until_stdin_ends();
    Ok(())
}

fn source(ends: &Ends, args: &Args) -> Result<()> {
    let writer = ends.writer("Flow", &qos().batching(true))?;
    let mut buffer = Buffer::new(args);
    wait_for_match(|| ends.are_matched(1));
    for number in 0..args.total() {
        buffer.write(&writer, number)?;
    }
    writer.flush()?;
    until_stdin_ends();
    Ok(())
}

impl Ends {
    fn writer(&self, topic: &str, qos: &Qos) -> Result<Writer> {
        let topic = self.domain.topic(topic, &self.sample, qos)?;
        Ok(topic.writer(qos).on_status(self.watch()).open()?)
    }

    fn reader(
        &self,
        topic: &str,
        qos: &Qos,
        each: impl FnMut(Sample<'_>) + Send + 'static,
    ) -> Result<fanfare_dds::Reader> {
        let topic = self.domain.topic(topic, &self.sample, qos)?;
        let reader = topic.reader(qos).on_status(self.watch());
        Ok(reader.on_sample(each).open()?)
    }

    fn watch(&self) -> impl FnMut(Status) + Send + 'static + use<> {
        let matches = Arc::clone(&self.matches);
        move |status| {
            if let Status::Matched { change: 1.., .. } = status {
                matches.fetch_add(1, Ordering::Release);
            }
        }
    }

    fn are_matched(&self, ends: u32) -> bool {
        self.matches.load(Ordering::Acquire) >= ends
    }
}

/// A sample that is written again and again.
struct Buffer {
    cdr: CdrBuffer,
    payload: Vec<u8>,
}

impl Buffer {
    fn new(args: &Args) -> Self {
        Self {
            cdr: CdrBuffer::with_capacity(args.size + 16),
            payload: args.sample().split_off(NUMBER),
        }
    }

    #[inline]
    fn write(&mut self, writer: &Writer, number: u64) -> std::result::Result<(), Error> {
        self.cdr.begin();
        self.cdr.u64(number);
        self.cdr.raw(&self.payload);
        writer.write(self.cdr.finish()?)
    }
}

/// Reads a sample whole, and returns its number.
#[inline]
fn number_of(sample: &Sample<'_>, check: Check) -> u64 {
    let parts = CdrReader::new(sample.bytes()).and_then(|mut cdr| {
        let number = cdr.u64()?;
        Ok((number, cdr.bytes(cdr.remaining())?))
    });
    match parts {
        Ok((number, payload)) => check.parts(number, payload),
        Err(error) => fail(&error),
    }
}

/// Ends the process if a listener's write failed.
#[inline]
fn done(written: std::result::Result<(), Error>) {
    if let Err(error) = written {
        fail(&error);
    }
}
