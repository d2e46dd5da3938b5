//! Ten million samples through DDS, then as many through shared memory: the memory of this
//! process must not grow. `make soak`, or
//!
//!     cargo bench -p fanfare-dds --bench soak -- 10000000

use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_dds::shm::{Config, Receiver, Sender, TopicSpec};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, ReturnCode, Writer};
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::{Decoder, Program, Record};
use std::error::Error as AnyError;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The permitted growth of the memory after the first fifth: an eighth of a byte a sample.
const ALLOWED: u64 = 1 << 20;

type Result<T> = std::result::Result<T, Box<dyn AnyError>>;

fn main() -> ExitCode {
    // Cargo passes `--bench`.
    let samples = std::env::args()
        .skip(1)
        .find(|arg| arg != "--bench")
        .map_or(Ok(10_000_000), |n| n.parse());
    let Ok(samples) = samples else {
        eprintln!("soak: the argument is a number of samples");
        return ExitCode::from(2);
    };
    match run(samples) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the memory stayed constant. The writer's history is filled before the first
/// measurement, as a reader that hangs for a while would fill it: its memory is bounded, and no
/// leak.
fn run(samples: u64) -> Result<bool> {
    let domain = std::process::id() % 200;
    let over_dds = soak("dds", samples, &mut Dds::open(domain)?)?;
    let over_shm = soak("shm", samples, &mut Shared::open(domain)?)?;
    Ok(over_dds && over_shm)
}

/// A transport of samples from a writer to a reader of this process, by the path between two
/// processes.
trait Way {
    fn write(&mut self, cdr: &[u8]) -> Result<()>;
    /// Writes the sample until the capacity is used up, with a reader that does not read.
    fn fill(&mut self, cdr: &[u8]) -> Result<()>;
    /// Returns the number of samples read.
    fn read(&mut self) -> u64;
    /// Sends the samples held back.
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Decodes and converts messages repeatedly and writes their samples, with the reader at most 4,000
/// behind.
fn soak(name: &str, wanted: u64, way: &mut impl Way) -> Result<bool> {
    let mut feed = Generator::complex(Program::complex(), 1_000, None, ComplexOptions::default());
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet()? {
        packets.push(packet.to_vec());
    }
    let program = Arc::new(Program::complex());
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default())?;
    let mut converter = Converter::new(Arc::new(mapping), 1 << 14);
    let (mut decoder, mut record) = (Decoder::new(program), Record::new());
    let begin = Instant::now();
    let (mut written, mut warm) = (0, None);
    for packet in packets.iter().cycle() {
        if written >= wanted {
            break;
        }
        decoder.reset();
        decoder.decode_record(packet, &mut record)?;
        let mut result = Ok(());
        converter.samples(&record, |sample| {
            if result.is_err() || sample.template.name != "MarketData" {
                return;
            }
            if written == 0 {
                result = way.fill(sample.cdr);
            }
            if result.is_ok() {
                result = way.write(sample.cdr);
                written += 1;
            }
        })?;
        result?;
        wait(way, written.saturating_sub(4_000))?;
        if warm.is_none() && written >= wanted / 5 {
            warm = Some(resident()?);
        }
    }
    way.flush()?;
    wait(way, written)?;
    let (warm, end) = (warm.unwrap_or_default(), resident()?);
    let flat = end <= warm + ALLOWED;
    println!(
        "{name}: {written} samples in {:.1} s; resident {} KiB after a fifth, {} at the end: {}",
        begin.elapsed().as_secs_f64(),
        warm >> 10,
        end >> 10,
        if flat { "flat" } else { "it grows" }
    );
    Ok(flat)
}

/// Waits until this many samples have been read.
fn wait(way: &mut impl Way, wanted: u64) -> Result<()> {
    let mut since = Instant::now();
    let mut last = way.read();
    while last < wanted {
        std::thread::yield_now();
        let read = way.read();
        if read > last {
            (last, since) = (read, Instant::now());
        }
        if since.elapsed() > Duration::from_secs(20) {
            return Err(format!("{last} of {wanted} samples came, then none for 20 s").into());
        }
    }
    Ok(())
}

/// Returns the bytes of memory of this process.
fn resident() -> Result<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .ok_or("no second number in statm")?
        .parse()?;
    Ok(pages * 4096)
}

/// Two participants over loopback, with batching.
struct Dds {
    writer: Writer,
    read: Arc<AtomicU64>,
    /// Whether the reader hangs.
    hangs: Arc<AtomicBool>,
    _reader: fanfare_dds::Reader,
}

impl Dds {
    fn open(domain: u32) -> Result<Self> {
        let program = Arc::new(Program::complex());
        let mapping = Mapping::new(program, &TypeOptions::default())?;
        let t = &mapping
            .by_name("MarketData")
            .ok_or("no such template")?
            .sample;
        let qos = Qos::reliable().batching(true);
        let config = DomainConfig::new(domain);
        let there = Domain::open(&config)?.topic("soak", t, &qos)?;
        let here = Domain::open(&config)?.topic("soak", t, &qos)?;
        let read = Arc::new(AtomicU64::new(0));
        let hangs = Arc::new(AtomicBool::new(false));
        let (count, hang) = (Arc::clone(&read), Arc::clone(&hangs));
        let reader = there.reader(&qos).on_sample(move |sample| {
            std::hint::black_box(sample.bytes());
            while hang.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            count.fetch_add(1, Ordering::Relaxed);
        });
        let reader = reader.open()?;
        let matched = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&matched);
        let writer = here.writer(&qos).on_status(move |status| {
            if matches!(status, fanfare_dds::Status::Matched { .. }) {
                seen.fetch_add(1, Ordering::Release);
            }
        });
        let writer = writer.open()?;
        let end = Instant::now() + Duration::from_secs(20);
        while matched.load(Ordering::Acquire) == 0 {
            if Instant::now() > end {
                return Err("the two participants did not meet within 20 s".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self {
            writer,
            read,
            hangs,
            _reader: reader,
        })
    }
}

impl Way for Dds {
    fn write(&mut self, cdr: &[u8]) -> Result<()> {
        loop {
            match self.writer.write(cdr) {
                // The reader is behind, and a reliable writer waits for it.
                Err(Error::Dds {
                    code: ReturnCode::Timeout,
                    ..
                }) => {}
                other => return Ok(other?),
            }
        }
    }

    fn fill(&mut self, cdr: &[u8]) -> Result<()> {
        self.hangs.store(true, Ordering::Relaxed);
        let mut written = 0;
        let full = loop {
            match self.writer.write(cdr) {
                Ok(()) => written += 1,
                Err(Error::Dds {
                    code: ReturnCode::Timeout,
                    ..
                }) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.hangs.store(false, Ordering::Relaxed);
        full?;
        self.writer.flush()?;
        wait(self, written)?;
        self.read.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn read(&mut self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// A ring and its reader.
struct Shared {
    sender: Sender,
    receiver: Receiver,
    read: u64,
}

impl Shared {
    fn open(domain: u32) -> Result<Self> {
        let program = Arc::new(Program::complex());
        let mapping = Mapping::new(program, &TypeOptions::default())?;
        let t = &mapping
            .by_name("MarketData")
            .ok_or("no such template")?
            .sample;
        let config = Config::new(domain)?;
        let topics = [TopicSpec::new("soak", t, false)];
        Ok(Self {
            sender: Sender::open(&config, "soak", &topics)?,
            receiver: Receiver::open(&config, "soak", &topics)?,
            read: 0,
        })
    }
}

impl Way for Shared {
    fn write(&mut self, cdr: &[u8]) -> Result<()> {
        Ok(self.sender.write(0, 0, cdr)?)
    }

    /// Does nothing, as the ring has its size from the beginning.
    fn fill(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn read(&mut self) -> u64 {
        self.read += self.receiver.poll(|sample| {
            std::hint::black_box(sample.bytes);
        }) as u64;
        self.read
    }
}
