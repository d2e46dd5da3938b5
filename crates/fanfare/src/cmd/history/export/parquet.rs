//! Events as Parquet: typed columns, sorted by number, statistics of each row group and page.

use super::Sink;
use super::output::Output;
use super::row::{Row, tell_escaped};
use crate::plural::counted;
use crate::print::note;
use anyhow::Result;
use fanfare_market::event::Event;
use fanfare_market::instruments::{Directory, Lookup};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// The rows of a group, which is held in memory until it is written.
const ROWS: usize = 128 << 10;

/// The schema. Prices are exact: i64 times 10^-9 has up to 19 digits, for which 9 bytes are enough.
const SCHEMA: &str = "
message event {
  REQUIRED INT64 number (INTEGER(64,false));
  OPTIONAL INT64 ts_recv (TIMESTAMP(NANOS,true));
  OPTIONAL INT64 ts_event (TIMESTAMP(NANOS,true));
  OPTIONAL INT32 feed (INTEGER(16,false));
  OPTIONAL INT32 instrument (INTEGER(32,false));
  OPTIONAL BYTE_ARRAY symbol (STRING);
  OPTIONAL BYTE_ARRAY security_id (STRING);
  REQUIRED BYTE_ARRAY kind (STRING);
  OPTIONAL BYTE_ARRAY action (STRING);
  OPTIONAL BYTE_ARRAY entry (STRING);
  OPTIONAL INT32 level (INTEGER(16,false));
  OPTIONAL FIXED_LEN_BYTE_ARRAY (9) price (DECIMAL(19,9));
  OPTIONAL INT64 size (INTEGER(64,true));
  OPTIONAL INT64 id (INTEGER(64,false));
  OPTIONAL INT32 rpt_seq (INTEGER(32,false));
  REQUIRED BOOLEAN snapshot;
  REQUIRED BOOLEAN last;
  OPTIONAL BYTE_ARRAY security_id_source (STRING);
  OPTIONAL INT64 lost (INTEGER(64,false));
  OPTIONAL BYTE_ARRAY definition (STRING);
}";

/// Values of a column, and whether each row has one.
#[derive(Default)]
struct Values<T> {
    values: Vec<T>,
    is_there: Vec<i16>,
}

impl<T> Values<T> {
    fn push(&mut self, value: Option<T>) {
        self.is_there.push(i16::from(value.is_some()));
        self.values.extend(value);
    }
}

/// The columns of a row group.
enum Column {
    Long(Values<i64>),
    Short(Values<i32>),
    Text(Values<ByteArray>),
    Price(Values<FixedLenByteArray>),
    Flag(Vec<bool>),
}

pub(super) struct Parquet {
    writer: SerializedFileWriter<Output>,
    columns: [Column; 20],
    rows: usize,
    /// The rows whose names are not UTF-8.
    escaped: u64,
    /// The times that are left out.
    lost: u64,
}

impl Parquet {
    pub(super) fn new(output: Output) -> Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let by_number = SortingColumn {
            column_idx: 0,
            descending: false,
            nulls_first: false,
        };
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_statistics_enabled(EnabledStatistics::Page)
            .set_sorting_columns(Some(vec![by_number]))
            .set_created_by(format!("fanfare {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            writer: SerializedFileWriter::new(output, schema, Arc::new(properties))?,
            columns: columns(),
            rows: 0,
            escaped: 0,
            lost: 0,
        })
    }

    fn put(&mut self, row: Row<'_>) -> Result<()> {
        self.escaped += u64::from(row.is_escaped);
        let [ts_recv, ts_event] = [row.ts_recv, row.ts_event].map(|time| {
            let kept = time.and_then(signed);
            self.lost += u64::from(kept.is_none() && time.is_some());
            kept
        });
        let long = |value: u64| value.cast_signed();
        let short = |value: u16| i32::from(value);
        let text = |text: &str| ByteArray::from(text);
        let values = [
            Value::Long(Some(long(row.number))),
            Value::Long(ts_recv),
            Value::Long(ts_event),
            Value::Short(row.feed.map(short)),
            Value::Short(row.instrument.map(u32::cast_signed)),
            Value::Text(row.symbol.as_deref().map(text)),
            Value::Text(row.security_id.as_deref().map(text)),
            Value::Text(Some(text(row.kind))),
            Value::Text(row.action.map(text)),
            Value::Text(row.entry.map(|entry| text(entry.encode_utf8(&mut [0; 4])))),
            Value::Short(row.level.map(short)),
            Value::Price(row.price),
            Value::Long(row.size),
            Value::Long(row.id.map(long)),
            Value::Short(row.rpt_seq.map(u32::cast_signed)),
            Value::Flag(row.snapshot),
            Value::Flag(row.last),
            Value::Text(row.security_id_source.as_deref().map(text)),
            Value::Long(row.lost.map(long)),
            Value::Text(row.definition.as_deref().map(text)),
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
        self.rows += 1;
        match self.rows {
            ROWS.. => self.flush(),
            _ => Ok(()),
        }
    }

    /// Writes a row group.
    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in std::mem::replace(&mut self.columns, columns()) {
            column.write(&mut group)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

enum Value {
    Long(Option<i64>),
    Short(Option<i32>),
    Text(Option<ByteArray>),
    Price(Option<i64>),
    Flag(bool),
}

/// Returns empty columns, in the order of the schema.
fn columns() -> [Column; 20] {
    let long = || Column::Long(Values::default());
    let short = || Column::Short(Values::default());
    let text = || Column::Text(Values::default());
    let flag = || Column::Flag(Vec::new());
    [
        long(),
        long(),
        long(),
        short(),
        short(),
        text(),
        text(),
        text(),
        text(),
        text(),
        short(),
        Column::Price(Values::default()),
        long(),
        long(),
        short(),
        flag(),
        flag(),
        text(),
        long(),
        text(),
    ]
}

/// Returns a time, which has a sign in Parquet; `None` from 2^63 on, in the year 2262.
fn signed(time: u64) -> Option<i64> {
    i64::try_from(time).ok()
}

/// Returns the lowest 9 bytes in big-endian order.
fn decimal(units: i64) -> FixedLenByteArray {
    let wide = i128::from(units).to_be_bytes();
    let [.., a, b, c, d, e, f, g, h, i] = wide;
    ByteArray::from(vec![a, b, c, d, e, f, g, h, i]).into()
}

impl Column {
    fn push(&mut self, value: Value) {
        match (self, value) {
            (Self::Long(column), Value::Long(value)) => column.push(value),
            (Self::Short(column), Value::Short(value)) => column.push(value),
            (Self::Text(column), Value::Text(value)) => column.push(value),
            (Self::Price(column), Value::Price(value)) => column.push(value.map(decimal)),
            (Self::Flag(column), Value::Flag(value)) => column.push(value),
            _ => debug_assert!(false, "a value of another column"),
        }
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Output>) -> Result<()> {
        let Some(mut writer) = group.next_column()? else {
            return Ok(());
        };
        match (writer.untyped(), self) {
            (ColumnWriter::Int64ColumnWriter(to), Self::Long(from)) => {
                to.write_batch(&from.values, Some(&from.is_there), None)?;
            }
            (ColumnWriter::Int32ColumnWriter(to), Self::Short(from)) => {
                to.write_batch(&from.values, Some(&from.is_there), None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(to), Self::Text(from)) => {
                to.write_batch(&from.values, Some(&from.is_there), None)?;
            }
            (ColumnWriter::FixedLenByteArrayColumnWriter(to), Self::Price(from)) => {
                to.write_batch(&from.values, Some(&from.is_there), None)?;
            }
            (ColumnWriter::BoolColumnWriter(to), Self::Flag(from)) => {
                to.write_batch(from, None, None)?;
            }
            _ => debug_assert!(false, "a column of another type"),
        }
        Ok(writer.close()?)
    }
}

impl Sink for Parquet {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()> {
        let known = table.instrument(event.instrument);
        self.put(Row::new(event, known.as_ref()))
    }

    fn lost(&mut self, first: u64, last: u64) -> Result<()> {
        self.put(Row::lost(first, last))
    }

    fn lost_values(&self) -> u64 {
        self.lost
    }

    fn finish(mut self: Box<Self>) -> Result<Output> {
        tell_escaped(self.escaped);
        if self.lost > 0 {
            let times = counted(self.lost, "time");
            note!(
                "fanfare: {times} beyond the year 2262, which Parquet cannot represent: left out"
            );
        }
        self.flush()?;
        Ok(self.writer.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::history::export::row::NAMES;

    #[test]
    fn columns_have_the_names_of_rows() {
        let schema = parse_message_type(SCHEMA).unwrap();
        let names: Vec<_> = schema
            .get_fields()
            .iter()
            .map(|field| field.name())
            .collect();
        assert_eq!(names, NAMES);
    }

    #[test]
    fn times_without_a_place_are_unknown() {
        assert_eq!(signed(i64::MAX.cast_unsigned()), Some(i64::MAX));
        assert_eq!(signed(1 << 63), None);
        assert_eq!(signed(u64::MAX - 1), None);
    }

    #[test]
    fn prices_are_decimals_with_a_sign() {
        assert_eq!(decimal(-1).data(), [0xff; 9]);
        assert_eq!(decimal(i64::MAX).data()[..2], [0, 0x7f]);
    }
}
