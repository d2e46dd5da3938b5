//! A benchmark of the log of market events: the rates of writing and reading, the time to the books
//! of any moment, and the bytes per event on disk.
//!
//! Events are those of a generated feed, repeated, with increasing numbers and times.

use super::{BenchError, Processors, memory_kib, on};
use crate::figures::{Figures, median, rate};
use fanfare_engine::stop::Stop;
use fanfare_fast::generate::{ComplexOptions, Generator, SpectraOptions};
use fanfare_fast::{Decoder, Program, Record};
use fanfare_history::{
    At, FeedInfo, Keeper, KeeperConfig, Log, LogError, Start, Writer, WriterConfig,
};
use fanfare_market::{BookConfig, Delivery, Event, Instruments, Mapping};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Messages of the feed, which is repeated.
const MESSAGES: u64 = 100_000;

/// Messages that are committed together.
const TURN: usize = 512;

/// The number of books requested.
const MOMENTS: u64 = 20;

/// Bytes per write of the raw program.
const PIECE: usize = 1 << 16;

/// The memory that is compared: the segments of the log are files, and not part of it.
const PRIVATE: &str = "RssAnon";

/// The feed of the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The complex feed, with statistics of the session.
    Complex,
    /// Books of numbered levels, and trades.
    Spectra,
}

/// The size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct HistoryBench<'a> {
    /// Events of the log.
    pub events: u64,
    /// An existing folder for logs.
    pub folder: &'a Path,
    /// The processors to run on.
    pub processors: Processors,
}

/// Messages, and their instruments.
struct Feed {
    messages: Vec<Vec<[u8; Event::SIZE]>>,
    instruments: Vec<Vec<u8>>,
}

impl Feed {
    fn new(kind: Kind) -> Result<Self, BenchError> {
        let failed = |why: &dyn std::fmt::Display| BenchError::Feed(why.to_string());
        let (program, mapping) = match kind {
            Kind::Complex => (Program::complex(), "builtin:complex"),
            Kind::Spectra => (Program::spectra(), "builtin:spectra"),
        };
        let program = Arc::new(program);
        let mut feed = match kind {
            Kind::Complex => {
                let options = ComplexOptions::default();
                Generator::complex(Arc::clone(&program), MESSAGES, None, options)
            }
            Kind::Spectra => {
                let options = SpectraOptions::default();
                Generator::spectra(Arc::clone(&program), MESSAGES, None, options)
            }
        };
        let mapping = Mapping::built_in(mapping).ok_or_else(|| failed(&"no mapping"))?;
        let mut mapper = mapping
            .for_templates(&program, 1)
            .map_err(|why| failed(&why))?;
        let (mut table, mut decoder) = (Instruments::new(1 << 20), Decoder::new(program));
        let (mut record, mut messages) = (Record::new(), Vec::new());
        while let Some(packet) = feed.next_packet().map_err(|why| failed(&why))? {
            if kind == Kind::Spectra {
                decoder.reset();
            }
            let mut rest = packet;
            while !rest.is_empty() {
                let decoded = decoder.decode_record(rest, &mut record);
                let len = decoded.map_err(|why| failed(&why))?;
                rest = rest.get(len..).unwrap_or_default();
                // A message without an instrument makes no events.
                let _ = mapper.record(&mut table, 1, &record);
                let all: Vec<_> = mapper.events().iter().map(Event::to_bytes).collect();
                messages.extend((!all.is_empty()).then_some(all));
            }
        }
        if messages.is_empty() {
            return Err(failed(&"no message has events"));
        }
        let instruments = table.iter().map(|instrument| {
            let mut bytes = Vec::new();
            instrument.write(&mut bytes);
            bytes
        });
        Ok(Self {
            instruments: instruments.collect(),
            messages,
        })
    }

    /// Sets the next numbers of a message, and its time.
    fn stamp(message: &mut [[u8; Event::SIZE]], next: &mut u64, time: u64) {
        for event in message {
            event[..8].copy_from_slice(&next.to_le_bytes());
            event[16..24].copy_from_slice(&time.to_le_bytes());
            *next += 1;
        }
    }
}

/// Waits until a writer has created the log; returns `None` if the writer has ended without one.
fn wait_for_log(folder: &Path, is_over: &AtomicBool) -> Option<Log> {
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        match Log::open(folder) {
            Ok(log) => return Some(log),
            Err(_) if was_over => return None,
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    let ended = thread.join();
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads the beginning of a log, and then holds its place until all is over.
fn stand_still(folder: &Path, is_over: &AtomicBool) -> Result<(), BenchError> {
    let Some(log) = wait_for_log(folder, is_over) else {
        return Ok(());
    };
    let mut reader = log.reader(Start::First).map_err(of_log)?;
    while !is_over.load(Ordering::Acquire) && reader.next_number() < 10_000 {
        reader.read(100, |_| {}).map_err(of_log)?;
    }
    while !is_over.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(reader);
    Ok(())
}

fn of_log(error: LogError) -> BenchError {
    BenchError::Missing(error.to_string())
}

impl HistoryBench<'_> {
    /// Adds the figures of a feed: `append_per_s` of the writer alone, `append_ratio` of it to a
    /// raw program that writes the same bytes to a file, `append_zstd_per_s` with a keeper that
    /// compresses on another processor, until both have finished; `read_per_s` of the compacted
    /// log, `read_plain_per_s` of the other; `as_of_ms`, the median time for all books at some
    /// moments; `bytes_per_event` of the compacted log. Returns whether every event was read back.
    /// Once `stop` is raised it adds no more figures, and returns false.
    ///
    /// # Errors
    /// A file cannot be written or read.
    pub fn add(
        &self,
        figures: &mut Figures,
        prefix: &str,
        kind: Kind,
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        let mut feed = Feed::new(kind)?;
        let (plain, packed) = (self.folder.join("plain"), self.folder.join("packed"));
        let here = self.processors.here;
        let Some(raw) = on(here, || self.raw(stop))? else {
            return Ok(false);
        };
        let Some(append) = on(here, || self.append(&plain, &mut feed, stop))? else {
            return Ok(false);
        };
        let mut add = |name: &str, value: f64| figures.add(&format!("{prefix}{name}"), value);
        add("append_per_s", rate(self.events, append));
        add("append_ratio", append / raw);
        let (read, mut is_whole) = on(here, || self.read(&plain))?;
        add("read_plain_per_s", rate(self.events, read));
        std::fs::remove_dir_all(&plain)?;
        let Some(both) = self.append_kept(&packed, &mut feed, stop)? else {
            return Ok(false);
        };
        add("append_zstd_per_s", rate(self.events, both));
        let (read, is_there) = on(here, || self.read(&packed))?;
        is_whole &= is_there;
        add("read_per_s", rate(self.events, read));
        add("as_of_ms", on(here, || self.as_of(&packed))?);
        add("bytes_per_event", self.size(&packed)? / self.events as f64);
        std::fs::remove_dir_all(&packed)?;
        Ok(is_whole)
    }

    /// Writes a log again, with a keeper, beside readers that read it from its beginning and one
    /// more that has stopped. Adds `memory_mib`, the private memory of the process after a fifth of
    /// the events, and `memory_growth`, that at the end, divided by it; and the events that all
    /// readers have read. Returns whether each had every event once. Adds nothing, and returns
    /// false, if `stop` was raised before the end.
    ///
    /// # Errors
    /// A file cannot be written or read.
    pub fn add_memory(
        &self,
        figures: &mut Figures,
        readers: usize,
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        let mut feed = Feed::new(Kind::Spectra)?;
        let folder = self.folder.join("memory");
        let (early, read) = (AtomicU64::new(0), AtomicU64::new(0));
        let (is_written, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let whole = std::thread::scope(|scope| {
            let follow = || self.follow(&folder, (&early, &read), (&is_written, stop));
            let all: Vec<_> = (1..readers).map(|_| scope.spawn(follow)).collect();
            let stopped = scope.spawn(|| stand_still(&folder, &is_over));
            let appended = self.append_kept(&folder, &mut feed, stop);
            is_written.store(true, Ordering::Release);
            let followed: Result<Vec<_>, _> = all.into_iter().map(join).collect();
            let late = memory_kib(PRIVATE);
            is_over.store(true, Ordering::Release);
            join(stopped)?;
            let (appended, followed, late) = (appended?, followed?, late?);
            if appended.is_none() || stop.is_raised() {
                return Ok(false);
            }
            let early = early.load(Ordering::Relaxed);
            figures.count("readers", readers as u64);
            figures.add("memory_mib", early as f64 / 1024.0);
            figures.add("memory_growth", late as f64 / early as f64);
            figures.count("events_read", read.load(Ordering::Relaxed));
            Ok::<_, BenchError>(followed.into_iter().all(|is_whole| is_whole))
        })?;
        std::fs::remove_dir_all(&folder)?;
        Ok(whole)
    }

    /// Reads a log that is being written, up to its last event, or to its end once nothing more is
    /// written. Returns whether each event came once.
    fn follow(
        &self,
        folder: &Path,
        (early, read): (&AtomicU64, &AtomicU64),
        (is_written, stop): (&AtomicBool, &Stop),
    ) -> Result<bool, BenchError> {
        let Some(log) = wait_for_log(folder, is_written) else {
            return Ok(false);
        };
        let mut reader = log.reader(Start::First).map_err(of_log)?;
        let (mut next, mut came, mut is_whole) = (1, 0, true);
        while next <= self.events && !stop.is_raised() {
            let was_written = is_written.load(Ordering::Acquire);
            let count = reader.read(TURN, |delivery| match delivery {
                Delivery::Event(event, _) => {
                    is_whole &= event.number == next;
                    next += 1;
                    came += 1;
                }
                Delivery::Lost { last, .. } => {
                    is_whole = false;
                    next = last.saturating_add(1);
                }
                Delivery::End(_) | Delivery::Restart | Delivery::Watermark(_) => {}
            });
            match count.map_err(of_log)? {
                0 if was_written => break,
                0 => std::thread::sleep(Duration::from_millis(1)),
                _ => {}
            }
            if next > self.events / 5 && early.load(Ordering::Relaxed) == 0 {
                early.store(memory_kib(PRIVATE)?, Ordering::Relaxed);
            }
        }
        read.fetch_add(came, Ordering::Relaxed);
        Ok(is_whole && next > self.events)
    }

    /// Returns the seconds to write the same bytes into a plain file; `None` if `stop` was raised.
    fn raw(&self, stop: &Stop) -> Result<Option<f64>, BenchError> {
        let path = self.folder.join("raw");
        let (piece, mut left) = (vec![7; PIECE], self.events * Event::SIZE as u64);
        let mut file = std::fs::File::create(&path)?;
        let begun = Instant::now();
        while left > 0 && !stop.is_raised() {
            let part = piece.get(..left.min(PIECE as u64) as usize);
            let part = part.unwrap_or(&piece);
            file.write_all(part)?;
            left -= part.len() as u64;
        }
        let took = begun.elapsed().as_secs_f64();
        std::fs::remove_file(&path)?;
        Ok((left == 0).then_some(took))
    }

    /// Returns the seconds from the first event to the last commit; `None` if `stop` was raised.
    fn append(
        &self,
        folder: &Path,
        feed: &mut Feed,
        stop: &Stop,
    ) -> Result<Option<f64>, BenchError> {
        let book = BookConfig::by_level(20).map_err(|why| BenchError::Feed(why.to_string()))?;
        let feeds = vec![FeedInfo {
            name: "feed".to_owned(),
            base: 0,
            book,
        }];
        let opened = Writer::open(folder, WriterConfig::default(), feeds, 1);
        let (mut writer, _) = opened.map_err(of_log)?;
        for instrument in &feed.instruments {
            writer.instrument(instrument).map_err(of_log)?;
        }
        let (mut next, mut time) = (1, 1_700_000_000_000_000_000);
        let begun = Instant::now();
        while next <= self.events && !stop.is_raised() {
            for turn in feed.messages.chunks_mut(TURN) {
                for message in turn.iter_mut() {
                    time += 20_000;
                    let left = (self.events + 1 - next) as usize;
                    let len = message.len().min(left);
                    let message = message.get_mut(..len).unwrap_or(&mut []);
                    Feed::stamp(message, &mut next, time);
                    writer.events(message).map_err(of_log)?;
                }
                writer.commit().map_err(of_log)?;
            }
        }
        let took = begun.elapsed().as_secs_f64();
        writer.close().map_err(of_log)?;
        Ok((next > self.events).then_some(took))
    }

    /// Measures as `append`, until a keeper on another processor has compressed all full segments.
    fn append_kept(
        &self,
        folder: &Path,
        feed: &mut Feed,
        stop: &Stop,
    ) -> Result<Option<f64>, BenchError> {
        let is_done = AtomicBool::new(false);
        let begun = Instant::now();
        let appended = std::thread::scope(|scope| {
            let keeping = scope.spawn(|| {
                on(self.processors.there, || {
                    if wait_for_log(folder, &is_done).is_none() {
                        return Ok(());
                    }
                    let mut keeper =
                        Keeper::open(folder, KeeperConfig::default()).map_err(of_log)?;
                    loop {
                        let was_done = is_done.load(Ordering::Acquire);
                        match keeper.work().map_err(of_log)? {
                            _ if stop.is_raised() => return Ok(()),
                            0 if was_done => return Ok(()),
                            0 => std::thread::sleep(Duration::from_millis(1)),
                            _ => {}
                        }
                    }
                })
            });
            let appended = on(self.processors.here, || self.append(folder, feed, stop));
            is_done.store(true, Ordering::Release);
            let kept = join(keeping);
            appended.and_then(|appended| kept.map(|()| appended))
        })?;
        let took = begun.elapsed().as_secs_f64();
        Ok(appended.filter(|_| !stop.is_raised()).map(|_| took))
    }

    /// Returns the seconds to read all events, and whether each came once.
    fn read(&self, folder: &Path) -> Result<(f64, bool), BenchError> {
        let log = Log::open(folder).map_err(of_log)?;
        let mut reader = log.reader(Start::First).map_err(of_log)?;
        let (mut next, mut is_whole) = (1, true);
        let begun = Instant::now();
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Event(event, _) => {
                is_whole &= event.number == next;
                next += 1;
            }
            Delivery::Lost { .. } => is_whole = false,
            Delivery::End(_) | Delivery::Restart | Delivery::Watermark(_) => {}
        };
        while reader.read(usize::MAX, &mut take).map_err(of_log)? > 0 {}
        Ok((
            begun.elapsed().as_secs_f64(),
            is_whole && next > self.events,
        ))
    }

    /// Returns the median time for all books at a moment, in milliseconds.
    fn as_of(&self, folder: &Path) -> Result<f64, BenchError> {
        let log = Log::open(folder).map_err(of_log)?;
        let mut took = Vec::new();
        for moment in 1..=MOMENTS {
            // The moments are at all distances from the checkpoints before them.
            let number = self.events * moment / (MOMENTS + 1) + moment * 12_345 % 250_000;
            let number = number.clamp(1, self.events);
            let begun = Instant::now();
            let books = log.as_of(At::Number(number)).map_err(of_log)?;
            took.push(begun.elapsed().as_secs_f64() * 1000.0);
            if books.number != number {
                let why = format!("books of {} came for {number}", books.number);
                return Err(BenchError::Missing(why));
            }
        }
        Ok(median(took))
    }

    /// Returns the bytes of all segments, as if the last one were compacted.
    fn size(&self, folder: &Path) -> Result<f64, BenchError> {
        let log = Log::open(folder).map_err(of_log)?;
        let segments = log.segments().map_err(of_log)?;
        let (mut bytes, mut events) = (0, self.events);
        for segment in &segments {
            match segment.is_compacted {
                true => bytes += segment.bytes,
                false => events = events.min(segment.first - 1),
            }
        }
        match events {
            0 => Ok(f64::NAN),
            _ => Ok(bytes as f64 / events as f64 * self.events as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    fn bench(folder: &Path) -> HistoryBench<'_> {
        HistoryBench {
            events: 1_000,
            folder,
            processors: Processors::default(),
        }
    }

    #[test]
    fn a_stopped_run_has_no_figures() {
        let (folder, stop) = (Folder::new("bench-history"), Stop::new());
        stop.raise();
        let bench = bench(folder.path());
        let mut figures = Figures::new("bench history");
        let whole = bench.add(&mut figures, "", Kind::Spectra, &stop).unwrap();
        let memory = bench.add_memory(&mut figures, 3, &stop).unwrap();
        assert_eq!((whole, memory, figures.iter().count()), (false, false, 0));
    }

    #[test]
    fn nothing_waits_for_events_that_are_lost() {
        let folder = Folder::new("bench-hole");
        let (mut writer, _) =
            Writer::open(folder.path(), WriterConfig::default(), Vec::new(), 1).unwrap();
        for number in 1..=1_000 {
            let event = Event {
                number,
                ..Event::EMPTY
            };
            writer.events(&[event.to_bytes()]).unwrap();
            if number % 250 == 0 {
                writer.roll().unwrap();
            }
        }
        writer.close().unwrap();
        let bench = bench(folder.path());
        // A segment in the middle is removed, then all but the first two.
        for (segments, left) in [(3..=3, 750), (4..=5, 500)] {
            for segment in segments {
                let name = format!("{segment:010}.log");
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
            let (early, read) = (AtomicU64::new(0), AtomicU64::new(0));
            let ends = (&AtomicBool::new(true), &Stop::new());
            let whole = bench.follow(folder.path(), (&early, &read), ends);
            assert_eq!((whole.unwrap(), read.into_inner()), (false, left));
        }
    }

    #[test]
    fn nothing_waits_for_a_log_that_cannot_be_made() {
        let folder = Folder::new("bench-no-log");
        let log = folder.path().join("a file");
        std::fs::write(&log, "").unwrap();
        let mut feed = Feed {
            messages: Vec::new(),
            instruments: Vec::new(),
        };
        let bench = bench(folder.path());
        assert!(bench.append_kept(&log, &mut feed, &Stop::new()).is_err());
    }
}
