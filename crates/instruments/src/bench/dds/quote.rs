//! The sample that the benchmark sends.

use fanfare_dds::Error;
use fanfare_dds::cdr::{CdrBuffer, CdrReader};
use fanfare_dds::types::{Kind, StructType};

/// Returns the type of the Quote message of the simple templates.
pub(super) fn quote() -> StructType {
    StructType::new("Bench::Quote")
        .member("MessageType", Kind::UInt16)
        .member("SequenceNumber", Kind::UInt32)
        .member("Timestamp", Kind::UInt32)
        .member("OrderId", Kind::UInt32)
        .member("Volume", Kind::UInt32)
        .member("Price", Kind::UInt32)
        .member("ExchangeId", Kind::Byte)
        .member("SecurityId", Kind::UInt16)
        .member("SecurityType", Kind::Byte)
        .member("SessionId", Kind::Byte)
}

/// Makes a sample of a Quote.
#[inline]
pub(super) fn put_quote(buffer: &mut CdrBuffer, sequence: u32) -> Result<&[u8], Error> {
    buffer.begin();
    buffer.u16(11);
    buffer.u32(sequence);
    for field in 2..6 {
        buffer.u32(field);
    }
    buffer.u8(6);
    buffer.u16(7);
    buffer.u8(8);
    buffer.u8(9);
    Ok(buffer.finish()?)
}

/// Returns the sequence number of a Quote.
#[inline]
pub(super) fn sequence_of(cdr: &[u8]) -> Option<u32> {
    let mut cdr = CdrReader::new(cdr).ok()?;
    cdr.u16().ok()?;
    cdr.u32().ok()
}
