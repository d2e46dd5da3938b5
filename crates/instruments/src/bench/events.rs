//! From datagrams to events in a ring: the cost of mapping on top of decoding, and of the market on
//! top of that.
//!
//! Packets are decoded from memory, in alternation: decoded only, mapped to events, written into a
//! ring as the gateway writes them, and ordered and applied to books before that. A hundred packets
//! at a time are timed, and the minimum over all runs counts for each, as other programs on the
//! machine disturb most runs somewhere.

use std::hint::black_box;
use std::time::Instant;

use fanfare_engine::ring::{Broadcast, Policy};
use fanfare_engine::stop::Stop;
use fanfare_fast::{CodecError, Decoder, Options, Program, Record};
use fanfare_feed::recovery::{Numbering, RecoveryConfig};
use fanfare_market::event::{Event, Flags, InstrumentId};
use fanfare_market::mapping::FastMapper;
use fanfare_market::{BookConfig, Instruments, Mapping, Market, MarketConfig, TextError};

use std::sync::Arc;

use crate::figures::Figures;

/// The error of the benchmark of events.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// A packet cannot be decoded.
    #[error("packet {packet}: {error}")]
    Packet {
        /// The packet's number, from 1.
        packet: usize,
        /// The error of the decoder.
        error: CodecError,
    },
    /// The mapping does not fit the templates.
    #[error(transparent)]
    Mapping(#[from] TextError),
    /// The book would be too large.
    #[error(transparent)]
    Book(#[from] fanfare_market::book::ConfigError),
    /// The feed has no messages.
    #[error("the file has no messages")]
    Empty,
}

/// The input of the benchmark.
#[derive(Debug)]
pub struct Feed {
    /// The templates.
    pub program: Arc<Program>,
    /// The mapping of their messages.
    pub mapping: Mapping,
    /// The messages.
    pub packets: Vec<Vec<u8>>,
    /// Snapshots: the first one of each instrument initializes its book. Without any, books begin
    /// empty, and changes are numbered by their messages.
    pub snapshots: Vec<Vec<u8>>,
    /// Whether dictionaries are kept from one packet to the next.
    pub keeps: bool,
    /// Options of the decoder.
    pub options: Options,
    /// Levels of a side of a book.
    pub depth: u32,
}

/// Packets that are timed together.
const BATCH: usize = 100;

/// The size of the ring, bytes.
const RING: usize = 1 << 18;

/// The stages that a pass includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Decode,
    Map,
    Ring,
    Market,
}

const ALL: [How; 4] = [How::Decode, How::Map, How::Ring, How::Market];

/// The state of a pass.
struct Bench<'f> {
    feed: &'f Feed,
    packets: Vec<Vec<u8>>,
    decoder: Decoder,
    record: Record,
    mapper: FastMapper,
    table: Instruments,
    snapshots: Vec<(Option<u32>, Vec<Event>)>,
    ring: Broadcast,
    /// The events of a message, in order.
    out: Vec<Event>,
    /// The plant's number of the next event, and of the next message if messages have no numbers.
    next: u64,
    sequence: u64,
    messages: u64,
    /// Changes that the market applied to no book.
    left_out: u64,
}

/// Measures each kind of pass `rounds` times, in alternation. Adds nanoseconds per message:
/// `decode_ns` for decoding alone, and `map_ns`, `ring_ns` and `market_ns` with the events mapped,
/// mapped and written into a ring, and ordered by a market in between; `map_above_ns`,
/// `ring_above_ns` and `market_above_ns`, their differences to decoding; `ring_ratio`, `ring_ns` to
/// `decode_ns`; `messages`, `events` and `faults` (values that no event can represent) of a pass,
/// and `left_out`, the changes that were applied to no book. Ends before the next pass once `stop`
/// is raised; kinds of which no pass was made have no figures.
///
/// # Errors
/// A packet cannot be decoded, or a message cannot be mapped.
pub fn add_figures(
    figures: &mut Figures,
    feed: &Feed,
    rounds: u32,
    stop: &Stop,
) -> Result<(), EventsError> {
    let mut bench = Bench::new(feed)?;
    bench.take_packets()?;
    bench.take_snapshots()?;
    let mut least: [Vec<u64>; 4] = Default::default();
    for _ in 0..rounds {
        let passes = ALL.into_iter().zip(&mut least);
        for (how, least) in passes.take_while(|_| !stop.is_raised()) {
            bench.pass(how, least)?;
        }
    }
    let before = bench.mapper.counts();
    bench.pass(How::Map, &mut Vec::new())?;
    let counts = bench.mapper.counts();
    if bench.messages == 0 {
        return Err(EventsError::Empty);
    }
    let each = |least: &Vec<u64>| match least.is_empty() {
        true => f64::NAN,
        false => least.iter().sum::<u64>() as f64 / bench.messages as f64,
    };
    let [decode, map, ring, market] = least.each_ref().map(each);
    figures.count("messages", bench.messages);
    figures.count("events", counts.events - before.events);
    figures.count("faults", counts.faults - before.faults);
    if market.is_finite() {
        figures.count("left_out", bench.left_out);
    }
    figures.add("decode_ns", decode);
    for (name, nanos) in [("map", map), ("ring", ring), ("market", market)] {
        figures.add(&format!("{name}_ns"), nanos);
        figures.add(&format!("{name}_above_ns"), nanos - decode);
    }
    figures.add("ring_ratio", ring / decode);
    Ok(())
}

impl<'f> Bench<'f> {
    fn new(feed: &'f Feed) -> Result<Self, EventsError> {
        Ok(Self {
            feed,
            packets: Vec::new(),
            decoder: Decoder::with_options(Arc::clone(&feed.program), feed.options),
            record: Record::new(),
            mapper: feed.mapping.for_templates(&feed.program, 1)?,
            table: Instruments::new(1 << 20),
            snapshots: Vec::new(),
            ring: Broadcast::new(RING, 1, Policy::Lap),
            out: Vec::new(),
            next: 1,
            sequence: 0,
            messages: 0,
            left_out: 0,
        })
    }

    /// Takes the packets. If dictionaries are kept, a packet may be long, and each message counts
    /// as one.
    fn take_packets(&mut self) -> Result<(), EventsError> {
        let feed = self.feed;
        if !feed.keeps {
            self.packets = feed.packets.clone();
            return Ok(());
        }
        for (packet, bytes) in (1..).zip(&feed.packets) {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let behind = self.decode(packet, rest)?;
                let (message, behind) = rest.split_at(rest.len() - behind.len());
                self.packets.push(message.to_vec());
                rest = behind;
            }
        }
        Ok(())
    }

    /// Reads the first snapshot of each instrument; without snapshots, an empty one.
    fn take_snapshots(&mut self) -> Result<(), EventsError> {
        let feed = self.feed;
        let mut seen = Vec::new();
        self.decoder.reset();
        for (packet, bytes) in (1..).zip(&feed.snapshots) {
            self.begin_packet();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                rest = self.decode(packet, rest)?;
                let outcome = self.mapper.record(&mut self.table, 0, &self.record);
                if let Ok(Some(snapshot)) = outcome.map(|outcome| outcome.snapshot)
                    && !seen.contains(&snapshot.instrument)
                {
                    seen.push(snapshot.instrument);
                    let last = snapshot.last_processed.map(|last| last as u32);
                    self.snapshots.push((last, self.mapper.events().to_vec()));
                }
            }
        }
        // A pass makes all instruments known, and counts them.
        self.pass(How::Map, &mut Vec::new())?;
        if feed.snapshots.is_empty() {
            let empty = |number| Event {
                instrument: InstrumentId(number),
                flags: Flags::SNAPSHOT.with(Flags::LAST),
                ..Event::EMPTY
            };
            let all = (0..self.table.len() as u32).map(|number| (Some(0), vec![empty(number)]));
            self.snapshots = all.collect();
        }
        Ok(())
    }

    /// Returns a market with the snapshots in its books.
    fn market(&self) -> Result<Market, EventsError> {
        let numbering = match self.feed.snapshots.is_empty() {
            true => Numbering::Channel,
            false => Numbering::Instrument,
        };
        let config = MarketConfig {
            book: BookConfig::by_level(self.feed.depth)?,
            recovery: RecoveryConfig::new(numbering),
            source: 1,
            has_natural_refresh: false,
        };
        let mut market = Market::new(config, 1);
        if numbering == Numbering::Channel {
            market.see(0, &mut |_| {});
        }
        for (last, events) in &self.snapshots {
            market.snapshot((0, 0), *last, events, &mut |_| {});
        }
        Ok(market)
    }

    fn begin_packet(&mut self) {
        if !self.feed.keeps {
            self.decoder.reset();
        }
    }

    /// Decodes a message. Returns the bytes behind it.
    #[inline(always)]
    fn decode<'b>(&mut self, packet: usize, bytes: &'b [u8]) -> Result<&'b [u8], EventsError> {
        match self.decoder.decode_record(bytes, &mut self.record) {
            Ok(len) => Ok(bytes.get(len..).unwrap_or_default()),
            Err(error) => Err(EventsError::Packet { packet, error }),
        }
    }

    /// Makes one pass over all packets.
    fn pass(&mut self, how: How, least: &mut Vec<u64>) -> Result<(), EventsError> {
        let mut market = self.market()?;
        self.decoder.reset();
        (self.next, self.sequence, self.messages) = (1, 0, 0);
        let packets = std::mem::take(&mut self.packets);
        least.resize(packets.len().div_ceil(BATCH), u64::MAX);
        let batches = packets.chunks(BATCH).enumerate();
        for ((number, batch), least) in batches.zip(least) {
            let begin = Instant::now();
            let first = number * BATCH + 1;
            match how {
                How::Decode => self.each(first, batch, |_| {})?,
                How::Map => self.each(first, batch, Self::map)?,
                How::Ring => self.each(first, batch, |bench| {
                    bench.map();
                    bench.put();
                })?,
                How::Market => self.each(first, batch, |bench| bench.follow(&mut market))?,
            }
            *least = (*least).min(begin.elapsed().as_nanos() as u64);
        }
        self.packets = packets;
        if how == How::Market {
            self.left_out = market.stats().left_out + market.recovery_stats().held;
        }
        Ok(())
    }

    #[inline(always)]
    fn each(
        &mut self,
        first: usize,
        packets: &[Vec<u8>],
        mut work: impl FnMut(&mut Self),
    ) -> Result<(), EventsError> {
        for (packet, bytes) in (first..).zip(packets) {
            self.begin_packet();
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                rest = self.decode(packet, rest)?;
                black_box(&mut self.record);
                self.messages += 1;
                work(self);
            }
        }
        Ok(())
    }

    /// Maps the current message; the mapper counts failures.
    #[inline(always)]
    fn map(&mut self) {
        let outcome = self.mapper.record(&mut self.table, 1, &self.record);
        self.sequence += 1;
        if let Ok(Some(number)) = outcome.map(|outcome| outcome.number) {
            self.sequence = number;
        }
        black_box(self.mapper.events());
    }

    /// Numbers the events of a message and writes them into the ring.
    #[inline(always)]
    fn put(&mut self) {
        for event in self.mapper.events_mut() {
            event.number = self.next;
            self.next += 1;
        }
        write(&mut self.ring, self.mapper.events());
    }

    #[inline(always)]
    fn follow(&mut self, market: &mut Market) {
        self.map();
        self.out.clear();
        let out = &mut self.out;
        market.changes(1, self.sequence, self.mapper.events(), &mut |event| {
            out.push(*event);
        });
        write(&mut self.ring, &self.out);
    }
}

/// Writes events as one record, as the gateway does.
#[inline(always)]
fn write(ring: &mut Broadcast, events: &[Event]) {
    if events.is_empty() {
        return;
    }
    // A lapping ring accepts every record up to its size limit.
    let _ = ring.write(0, events.len() * Event::SIZE, |room| {
        let (places, _) = room.as_chunks_mut::<{ Event::SIZE }>();
        for (place, event) in places.iter_mut().zip(events) {
            *place = event.to_bytes();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fast::generate::{Generator, SpectraOptions};

    fn packets(snapshots: bool) -> Vec<Vec<u8>> {
        let options = SpectraOptions {
            snapshots,
            ..SpectraOptions::default()
        };
        let mut feed = Generator::spectra(Program::spectra(), 300, None, options);
        let mut packets = Vec::new();
        while let Some(packet) = feed.next_packet().unwrap() {
            packets.push(packet.to_vec());
        }
        packets
    }

    #[test]
    fn all_ways_are_measured() {
        let feed = Feed {
            program: Arc::new(Program::spectra()),
            mapping: Mapping::built_in("builtin:spectra").unwrap(),
            packets: packets(false),
            snapshots: packets(true),
            keeps: false,
            options: Options::default(),
            depth: 5,
        };
        let mut figures = Figures::new("bench events");
        add_figures(&mut figures, &feed, 2, &Stop::new()).unwrap();
        let names = ["decode_ns", "map_ns", "ring_ns", "market_ns", "events"];
        for name in names {
            let value = figures.value(name);
            assert!(value.is_some_and(|value| value > 0.0), "{name}");
        }
        assert_eq!(figures.value("faults"), Some(0.0));
        // Each message follows a Reset, and Done is the last.
        assert_eq!(figures.value("messages"), Some(602.0));
        let (mut figures, stop) = (Figures::new("bench events"), Stop::new());
        stop.raise();
        add_figures(&mut figures, &feed, 2, &stop).unwrap();
        let found: Vec<_> = figures.iter().map(|(name, _)| name).collect();
        assert_eq!(found, ["messages", "events", "faults"]);
    }

    #[test]
    fn what_cannot_be_decoded_is_told() {
        let feed = Feed {
            program: Arc::new(Program::spectra()),
            mapping: Mapping::built_in("builtin:spectra").unwrap(),
            packets: vec![vec![0xc0, 0xca]],
            snapshots: Vec::new(),
            keeps: true,
            options: Options::default(),
            depth: 5,
        };
        let found = add_figures(&mut Figures::new("bench events"), &feed, 1, &Stop::new());
        assert!(matches!(found, Err(EventsError::Packet { packet: 1, .. })));
    }
}
