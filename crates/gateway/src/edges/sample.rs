//! The samples of both topics. Their steps and events are structures of integers, whose CDR form is
//! the bytes of [`Step::to_bytes`] and [`Event::to_bytes`].

use fanfare_dds::cdr::{CdrBuffer, CdrError, CdrReader};
use fanfare_dds::types::{Kind, StructType};
use fanfare_market::Event;
use fanfare_market::relay::Step;
use std::sync::Arc;

/// The most bytes that a sample takes besides its texts, steps and events.
pub(super) const OVERHEAD: usize = 512;

/// The kind of the books of a feed, which must be the same at publisher and edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BookKind {
    /// 0 for levels with numbers, 1 for prices, 2 for orders; in the upper half its rules, as of
    /// [`BookConfig::rules`](fanfare_market::BookConfig::rules).
    pub(super) kind: u8,
    /// 0 for RptSeq(83), 1 for MsgSeqNum(34).
    pub(super) numbers: u8,
    pub(super) depth: u32,
}

/// The gateway and the feed of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Source<'a> {
    pub(super) channel: &'a [u8],
    pub(super) origin: u64,
}

/// A sample of the steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepsSample<'a> {
    pub(super) source: Source<'a>,
    /// The number of the sample at its source.
    pub(super) number: u64,
    pub(super) book: BookKind,
    /// The instruments that are new or have changed, each preceded by its length.
    pub(super) instruments: &'a [u8],
    pub(super) steps: &'a [[u8; Step::SIZE]],
    pub(super) events: &'a [[u8; Event::SIZE]],
}

/// A sample of the snapshots.
#[derive(Debug, Clone, Copy)]
pub(super) struct SnapshotSample<'a> {
    pub(super) source: Source<'a>,
    pub(super) instrument: u32,
    pub(super) symbol: &'a [u8],
    pub(super) book: BookKind,
    /// A code of `fanfare_market::state::code`, or 0 without events.
    pub(super) state: u8,
    pub(super) has_last: bool,
    pub(super) last: u32,
    pub(super) received: u64,
    pub(super) definition: &'a [u8],
    pub(super) events: &'a [[u8; Event::SIZE]],
}

fn event_type() -> Kind {
    let t = StructType::new("Fanfare::MarketEvent")
        .member("Number", Kind::UInt64)
        .member("EventTime", Kind::UInt64)
        .member("ReceiveTime", Kind::UInt64)
        .member("Id", Kind::UInt64)
        .member("Price", Kind::Int64)
        .member("Size", Kind::Int64)
        .member("Instrument", Kind::UInt32)
        .member("RptSeq", Kind::UInt32)
        .member("Kind", Kind::Byte)
        .member("Action", Kind::Byte)
        .member("EntryType", Kind::Byte)
        .member("Flags", Kind::Byte)
        .member("Level", Kind::UInt16)
        .member("Source", Kind::UInt16);
    Kind::Sequence(Box::new(Kind::Struct(Arc::new(t))), None)
}

fn octets() -> Kind {
    Kind::Sequence(Box::new(Kind::Byte), None)
}

/// Returns the type of the steps.
pub(crate) fn steps_type() -> StructType {
    let step = StructType::new("Fanfare::MarketStep")
        .member("Received", Kind::UInt64)
        .member("Number", Kind::UInt32)
        .member("Last", Kind::UInt32)
        .member("Events", Kind::UInt32)
        .member("What", Kind::UInt32);
    StructType::new("Fanfare::MarketSteps")
        .key("Channel", Kind::String(None))
        .key("Origin", Kind::UInt64)
        .member("SampleNumber", Kind::UInt64)
        .member("BookKind", Kind::Byte)
        .member("BookNumbers", Kind::Byte)
        .member("BookDepth", Kind::UInt32)
        .member("Instruments", octets())
        .member(
            "Steps",
            Kind::Sequence(Box::new(Kind::Struct(Arc::new(step))), None),
        )
        .member("Events", event_type())
}

/// Returns the type of the snapshots.
pub(crate) fn snapshots_type() -> StructType {
    StructType::new("Fanfare::MarketSnapshot")
        .key("Channel", Kind::String(None))
        .key("Origin", Kind::UInt64)
        .key("Instrument", Kind::UInt32)
        .member("Symbol", Kind::String(None))
        .member("BookKind", Kind::Byte)
        .member("BookNumbers", Kind::Byte)
        .member("BookDepth", Kind::UInt32)
        .member("State", Kind::Byte)
        .member("HasLast", Kind::Bool)
        .member("Last", Kind::UInt32)
        .member("Received", Kind::UInt64)
        .member("Definition", octets())
        .member("Events", event_type())
}

/// Writes a sequence of structures of `N` bytes that begin with a `uint64`.
fn structures<const N: usize>(buffer: &mut CdrBuffer, all: &[[u8; N]]) {
    buffer.u32(u32::try_from(all.len()).unwrap_or(u32::MAX));
    if !all.is_empty() {
        buffer.align(8);
        buffer.raw(all.as_flattened());
    }
}

/// Reads a sequence of structures of `N` bytes that begin with a `uint64`.
fn read_structures<'a, const N: usize>(cdr: &mut CdrReader<'a>) -> Result<&'a [[u8; N]], CdrError> {
    let count = cdr.count(N)? as usize;
    if count == 0 {
        return Ok(&[]);
    }
    cdr.align(8)?;
    Ok(cdr.bytes(count * N)?.as_chunks().0)
}

impl BookKind {
    fn write(self, buffer: &mut CdrBuffer) {
        buffer.u8(self.kind);
        buffer.u8(self.numbers);
        buffer.u32(self.depth);
    }

    fn read(cdr: &mut CdrReader<'_>) -> Result<Self, CdrError> {
        Ok(Self {
            kind: cdr.u8()?,
            numbers: cdr.u8()?,
            depth: cdr.u32()?,
        })
    }
}

impl StepsSample<'_> {
    pub(super) fn write<'b>(&self, buffer: &'b mut CdrBuffer) -> Result<&'b [u8], CdrError> {
        buffer.begin();
        buffer.string(self.source.channel);
        buffer.u64(self.source.origin);
        buffer.u64(self.number);
        self.book.write(buffer);
        buffer.octets(self.instruments);
        structures(buffer, self.steps);
        structures(buffer, self.events);
        buffer.finish()
    }
}

impl SnapshotSample<'_> {
    pub(super) fn write<'b>(&self, buffer: &'b mut CdrBuffer) -> Result<&'b [u8], CdrError> {
        buffer.begin();
        buffer.string(self.source.channel);
        buffer.u64(self.source.origin);
        buffer.u32(self.instrument);
        buffer.string(self.symbol);
        self.book.write(buffer);
        buffer.u8(self.state);
        buffer.bool(self.has_last);
        buffer.u32(self.last);
        buffer.u64(self.received);
        buffer.octets(self.definition);
        structures(buffer, self.events);
        buffer.finish()
    }
}

/// Parses a sample of the steps.
pub(super) fn read_steps(bytes: &[u8]) -> Result<StepsSample<'_>, CdrError> {
    let mut cdr = CdrReader::new(bytes)?;
    Ok(StepsSample {
        source: Source {
            channel: cdr.string()?,
            origin: cdr.u64()?,
        },
        number: cdr.u64()?,
        book: BookKind::read(&mut cdr)?,
        instruments: cdr.octets()?,
        steps: read_structures(&mut cdr)?,
        events: read_structures(&mut cdr)?,
    })
}

/// Parses a sample of the snapshots.
pub(super) fn read_snapshot(bytes: &[u8]) -> Result<SnapshotSample<'_>, CdrError> {
    let mut cdr = CdrReader::new(bytes)?;
    Ok(SnapshotSample {
        source: Source {
            channel: cdr.string()?,
            origin: cdr.u64()?,
        },
        instrument: cdr.u32()?,
        symbol: cdr.string()?,
        book: BookKind::read(&mut cdr)?,
        state: cdr.u8()?,
        has_last: cdr.bool()?,
        last: cdr.u32()?,
        received: cdr.u64()?,
        definition: cdr.octets()?,
        events: read_structures(&mut cdr)?,
    })
}

/// Returns the instruments of a sample of steps, in order.
pub(super) fn instruments(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (len, behind) = rest.split_first_chunk()?;
        let (own, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        rest = behind;
        Some(own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_of_their_types_and_read_back() {
        let source = Source {
            channel: b"moex",
            origin: 7,
        };
        let steps = [Step::position(5).to_bytes(), Step::position(6).to_bytes()];
        let events = [Event::EMPTY.to_bytes(); 3];
        let sample = StepsSample {
            source,
            number: 9,
            book: BookKind {
                kind: 1,
                numbers: 0,
                depth: 20,
            },
            instruments: b"\x02\0\0\0ab\x01\0\0\0c",
            steps: &steps,
            events: &events,
        };
        let mut buffer = CdrBuffer::with_capacity(4096);
        let bytes = sample.write(&mut buffer).unwrap();
        fanfare_dds::cdr::check(&steps_type(), bytes).unwrap();
        let back = read_steps(bytes).unwrap();
        assert_eq!(
            (back.source, back.number, back.book),
            (source, 9, sample.book)
        );
        assert_eq!((back.steps, back.events), (&steps[..], &events[..]));
        let all: Vec<_> = instruments(back.instruments).collect();
        assert_eq!(all, [&b"ab"[..], b"c"]);
        for end in 0..bytes.len() - 4 {
            assert!(read_steps(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn snapshots_too() {
        let events = [Event::EMPTY.to_bytes(); 2];
        for events in [&events[..], &[]] {
            let sample = SnapshotSample {
                source: Source {
                    channel: b"moex",
                    origin: 7,
                },
                instrument: 3,
                symbol: b"RIU3",
                book: BookKind {
                    kind: 2,
                    numbers: 1,
                    depth: 7,
                },
                state: 1,
                has_last: true,
                last: 88,
                received: 99,
                definition: b"bytes",
                events,
            };
            let mut buffer = CdrBuffer::with_capacity(4096);
            let bytes = sample.write(&mut buffer).unwrap();
            fanfare_dds::cdr::check(&snapshots_type(), bytes).unwrap();
            let back = read_snapshot(bytes).unwrap();
            assert_eq!((back.instrument, back.symbol), (3, &b"RIU3"[..]));
            assert_eq!(back.book, sample.book);
            assert_eq!((back.state, back.has_last, back.last), (1, true, 88));
            assert_eq!((back.definition, back.events), (&b"bytes"[..], events));
            assert!(read_snapshot(&bytes[..bytes.len() - 8]).is_err());
        }
    }
}
