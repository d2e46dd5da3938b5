//! DBN records to one client and to many, compared with a raw program that writes as many bytes.
//!
//! One thread writes the events and reads all sockets, as fast as the port's thread proceeds: no
//! more bytes are in flight than the queues hold, so that any loss is the port's.

use super::{BenchError, Processors, on};
use crate::figures::{Figures, rate};
use fanfare_engine::stop::Stop;
use fanfare_gateway::{DbnConfig, DbnServer};
use fanfare_market::book::BookConfig;
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, Instrument, Name};
use fanfare_market::{Event, Flags, InstrumentId, Kind, Price};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Instruments, and events per message.
const INSTRUMENTS: u32 = 100;
const MESSAGE: usize = 8;
/// Bytes of a trade, and of the records before the trades: the notice that the subscription was
/// accepted, and a symbol for each instrument.
const TRADE: u64 = 48;
const FRONT: u64 = 320 + 176 * INSTRUMENTS as u64;
/// The most bytes in flight to one client, and the messages between two reads of the sockets.
const WINDOW: u64 = 1 << 20;
const LOOK: u64 = 64;
/// The longest silence.
const PATIENCE: Duration = Duration::from_secs(10);

/// The size of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct DbnBench {
    /// Records to all clients together.
    pub records: u64,
    /// The processors to run on.
    pub processors: Processors,
}

/// The reading end of a connection.
struct Reader {
    stream: TcpStream,
    received: u64,
    last: Instant,
}

impl Reader {
    fn new(stream: TcpStream) -> Result<Self, BenchError> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            received: 0,
            last: Instant::now(),
        })
    }

    /// Reads the bytes that have arrived.
    fn read(&mut self, room: &mut [u8]) -> Result<(), BenchError> {
        match self.stream.read(room) {
            Ok(0) => Err(BenchError::Missing("a connection was closed".to_owned())),
            Ok(count) => {
                self.received += count as u64;
                self.last = Instant::now();
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads until every connection has `wanted` bytes, the connections are silent, or `stop` is
/// raised.
fn read_to(
    readers: &mut [Reader],
    wanted: u64,
    room: &mut [u8],
    stop: &Stop,
) -> Result<(), BenchError> {
    let is_behind = |reader: &Reader| reader.received < wanted && reader.last.elapsed() < PATIENCE;
    while readers.iter().any(is_behind) && !stop.is_raised() {
        for reader in readers.iter_mut().filter(|own| own.received < wanted) {
            reader.read(room)?;
        }
    }
    Ok(())
}

impl DbnBench {
    /// Adds the figures of this number of clients, alternating with the raw program. Returns the
    /// number of records lost; `None`, without figures, if `stop` was raised before the end.
    ///
    /// # Errors
    /// A socket cannot be opened, or the port closed a connection.
    pub fn add(
        &self,
        figures: &mut Figures,
        prefix: &str,
        clients: usize,
        stop: &Stop,
    ) -> Result<Option<u64>, BenchError> {
        let each = self.each(clients);
        let total = each * clients as u64;
        let here = self.processors.here;
        let Some(raw) = on(here, || self.raw(clients, each, stop))? else {
            return Ok(None);
        };
        let Some((took, lost)) = on(here, || self.ours(clients, each, stop))? else {
            return Ok(None);
        };
        let Some(raw_after) = on(here, || self.raw(clients, each, stop))? else {
            return Ok(None);
        };
        figures.add(&format!("{prefix}records_per_s"), rate(total, took));
        let raw = raw.min(raw_after);
        figures.add(&format!("{prefix}raw_records_per_s"), rate(total, raw));
        figures.add(&format!("{prefix}ratio"), took / raw);
        Ok(Some(lost))
    }

    /// Returns the number of records to each client: whole messages, at least one.
    fn each(&self, clients: usize) -> u64 {
        let each = (self.records / clients as u64).max(1);
        each.next_multiple_of(MESSAGE as u64)
    }

    /// Returns the seconds from the first event to the last byte, and the number of missing
    /// records; `None` if `stop` was raised.
    fn ours(
        &self,
        clients: usize,
        each: u64,
        stop: &Stop,
    ) -> Result<Option<(f64, u64)>, BenchError> {
        let config = DbnConfig {
            port: 0,
            max_clients: clients,
            queue_bytes: 4 * WINDOW as usize,
            ..DbnConfig::default()
        };
        let book = BookConfig::by_level(5).map_err(|why| BenchError::Feed(why.to_string()))?;
        let there = self.processors.there;
        let mut server = DbnServer::start(&config, 1 << 22, vec![book], there)?;
        define(&mut server);
        let streams = (0..clients).map(|_| subscribe(server.address()));
        let readers = streams.map(|stream| Reader::new(stream?));
        let mut readers = readers.collect::<Result<Vec<_>, BenchError>>()?;
        let mut room = vec![0; 1 << 18];
        read_to(&mut readers, FRONT, &mut room, stop)?;
        let (begun, mut sent, mut events) = (Instant::now(), 0, trades());
        while sent < each && !stop.is_raised() {
            for _ in 0..LOOK.min((each - sent) / MESSAGE as u64) {
                server.put(&mut events);
                sent += MESSAGE as u64;
            }
            server.wake();
            let least = (FRONT + sent * TRADE).saturating_sub(WINDOW);
            read_to(&mut readers, least, &mut room, stop)?;
        }
        let end = FRONT + sent * TRADE;
        read_to(&mut readers, end, &mut room, stop)?;
        let took = begun.elapsed().as_secs_f64();
        let missing = readers
            .iter()
            .map(|own| end.saturating_sub(own.received) / TRADE);
        let lost = missing.sum::<u64>() + server.count("dbn_skipped");
        server.stop()?;
        Ok((!stop.is_raised()).then_some((took, lost)))
    }

    /// Measures as `ours`, for a thread that writes the same number of bytes to each socket.
    fn raw(&self, clients: usize, each: u64, stop: &Stop) -> Result<Option<f64>, BenchError> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        for _ in 0..clients {
            readers.push(Reader::new(TcpStream::connect(address)?)?);
            let (writer, _) = listener.accept()?;
            writer.set_nodelay(true)?;
            writers.push(writer);
        }
        let piece = vec![7; LOOK as usize * MESSAGE * TRADE as usize];
        let end = each * TRADE;
        let begun = Instant::now();
        let there = self.processors.there;
        let passed = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                on(there, || {
                    let mut sent = 0;
                    while sent < end {
                        let part = piece.get(..(end - sent).min(piece.len() as u64) as usize);
                        let part = part.unwrap_or(&piece);
                        for writer in &mut writers {
                            writer.write_all(part)?;
                        }
                        sent += part.len() as u64;
                    }
                    Ok(())
                })
            });
            let mut read = read_to(&mut readers, end, &mut vec![0; 1 << 18], stop);
            if read.is_ok() && readers.iter().any(|own| own.received < end) {
                let why = "the raw program's bytes did not come".to_owned();
                read = Err(BenchError::Missing(why));
            }
            // Closed connections end a writer that is still blocked.
            if read.is_err() {
                readers.clear();
            }
            let written = writing.join();
            let written = written.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            read.and(written)
        });
        let took = begun.elapsed().as_secs_f64();
        match passed {
            _ if stop.is_raised() => Ok(None),
            passed => passed.map(|()| Some(took)),
        }
    }
}

fn define(server: &mut DbnServer) {
    for number in 0..INSTRUMENTS {
        let symbol = format!("SYM{number}");
        let name = Name::of_symbol(symbol.as_bytes());
        server.put_instrument(&Instrument {
            instrument: InstrumentId(number),
            definition: Definition::named(name),
            revision: 1,
            status: 0,
        });
        // The instrument's first event makes its symbol known to all.
        server.put(&mut [Event {
            instrument: InstrumentId(number),
            kind: Kind::State,
            id: fanfare_market::state::code::LIVE,
            source: 1,
            ts_recv: 1,
            ..Event::EMPTY
        }]);
    }
    server.wake();
    while server.count("dbn_records") < u64::from(INSTRUMENTS) {
        std::thread::yield_now();
    }
}

/// Returns the trades of a message.
fn trades() -> [Event; MESSAGE] {
    let mut number = 0;
    [(); MESSAGE].map(|()| {
        number += 1;
        Event {
            instrument: InstrumentId(number * 7 % INSTRUMENTS),
            kind: Kind::Trade,
            entry: entry::TRADE,
            price: Price::from_units(100_000_000_000 + i64::from(number)),
            size: i64::from(number),
            flags: Flags::LAST,
            source: 1,
            ts_event: 1_000,
            ts_recv: 2_000,
            rpt_seq: number,
            ..Event::EMPTY
        }
    })
}

/// Returns a connection that has subscribed to all trades, read up to its metadata.
fn subscribe(address: SocketAddr) -> Result<TcpStream, BenchError> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    // Read one byte at a time: the bytes behind the line stay in the socket.
    let mut lines = BufReader::with_capacity(1, &stream);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    lines.read_line(&mut line)?;
    let mut writer = &stream;
    writer.write_all(b"auth=none|dataset=FANFARE|encoding=dbn\n")?;
    line.clear();
    lines.read_line(&mut line)?;
    if !line.starts_with("success=1") {
        return Err(BenchError::Missing(format!("not let in: {line}")));
    }
    let requests = b"schema=trades|stype_in=raw_symbol|symbols=ALL_SYMBOLS\nstart_session\n";
    writer.write_all(requests)?;
    let mut metadata = [0; 128];
    lines.read_exact(&mut metadata)?;
    drop(lines);
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(records: u64) -> DbnBench {
        DbnBench {
            records,
            processors: Processors::default(),
        }
    }

    #[test]
    fn a_stopped_run_has_no_figures() {
        let stop = Stop::new();
        stop.raise();
        let mut figures = Figures::new("bench dbn");
        let lost = bench(1_000_000).add(&mut figures, "", 2, &stop).unwrap();
        assert_eq!((lost, figures.iter().count()), (None, 0));
        assert!(bench(8).ours(1, 8, &stop).unwrap().is_none());
    }

    #[test]
    fn each_client_receives_whole_messages() {
        let each = [1_000, 1_800, 20_000_000].map(|records| bench(records).each(200));
        assert_eq!(each, [8, 16, 100_000]);
    }
}
