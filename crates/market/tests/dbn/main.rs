//! Events as DBN, read by the crate `dbn`: fields by hand, and books rebuilt from records.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod books;
mod fields;
mod from;
mod intervals;
mod keys;
mod live;

use dbn::RecordRef;
use dbn::decode::{DbnDecoder, DbnMetadata, DecodeRecordRef};
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use fanfare_market::event::{Event, InstrumentId};
use fanfare_market::instruments::{Name, SecurityId};
use fanfare_market::{Instruments, Price};

/// Returns a table of instruments `S0`, `S1`, ….
fn table(count: u64) -> Instruments {
    let mut table = Instruments::new(100);
    for number in 0..count {
        let symbol = format!("S{number}");
        let name = Name {
            symbol: symbol.as_bytes(),
            id: SecurityId::Number(1_000 + number),
            ..Name::default()
        };
        table.see(&name).unwrap();
    }
    table
}

fn schemas(schemas: &[Schema]) -> DbnConfig {
    DbnConfig::new(Schemas::new(schemas).unwrap())
}

/// A stream of the bytes of events.
struct Stream {
    to_dbn: ToDbn,
    table: Instruments,
    bytes: Vec<u8>,
}

impl Stream {
    fn new(config: DbnConfig, table: Instruments) -> Self {
        let to_dbn = ToDbn::new(config).unwrap();
        let mut bytes = Vec::new();
        assert!(to_dbn.metadata("TEST", 17, &mut bytes));
        Self {
            to_dbn,
            table,
            bytes,
        }
    }

    /// Writes an event. Returns the number of its records.
    fn write(&mut self, event: &Event) -> u64 {
        let before = self.to_dbn.counts().records;
        self.to_dbn.write(event, 99, &self.table, &mut self.bytes);
        self.to_dbn.counts().records - before
    }

    /// Calls `take` with each record that a reader finds.
    fn read(&self, mut take: impl FnMut(RecordRef<'_>)) {
        let mut decoder = DbnDecoder::new(&self.bytes[..]).unwrap();
        let metadata = decoder.metadata();
        assert_eq!(metadata.version, dbn::DBN_VERSION);
        assert_eq!((metadata.dataset.as_str(), metadata.start), ("TEST", 17));
        assert_eq!(
            (metadata.schema, metadata.end, metadata.limit),
            (None, None, None)
        );
        let mut count = 0;
        while let Some(record) = decoder.decode_record_ref().unwrap() {
            count += 1;
            take(record);
        }
        assert_eq!(count, self.to_dbn.counts().records);
    }
}

/// Returns a change of the first instrument.
fn event(rpt_seq: u32) -> Event {
    Event {
        number: u64::from(rpt_seq),
        instrument: InstrumentId(0),
        rpt_seq,
        ts_event: 1_000 + u64::from(rpt_seq),
        ts_recv: 2_000 + u64::from(rpt_seq),
        price: Price::from_units(5_000_000_000),
        size: 7,
        source: 3,
        ..Event::EMPTY
    }
}
