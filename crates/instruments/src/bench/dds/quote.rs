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

/// A Quote, with the members that the C program has, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    message_type: u16,
    pub(super) sequence: u32,
    timestamp: u32,
    order_id: u32,
    volume: u32,
    price: u32,
    exchange_id: u8,
    security_id: u16,
    security_type: u8,
    session_id: u8,
}

impl Quote {
    /// Returns the Quote of this sequence number.
    pub(super) const fn new(sequence: u32) -> Self {
        Self {
            message_type: 11,
            sequence,
            timestamp: 2,
            order_id: 3,
            volume: 4,
            price: 5,
            exchange_id: 6,
            security_id: 7,
            security_type: 8,
            session_id: 9,
        }
    }

    /// Makes a sample of the Quote.
    #[inline]
    pub(super) fn put(self, buffer: &mut CdrBuffer) -> Result<&[u8], Error> {
        buffer.begin();
        buffer.u16(self.message_type);
        buffer.u32(self.sequence);
        buffer.u32(self.timestamp);
        buffer.u32(self.order_id);
        buffer.u32(self.volume);
        buffer.u32(self.price);
        buffer.u8(self.exchange_id);
        buffer.u16(self.security_id);
        buffer.u8(self.security_type);
        buffer.u8(self.session_id);
        Ok(buffer.finish()?)
    }

    /// Reads all members of a sample, as `dds_take` does for the C program.
    #[inline]
    pub(super) fn read(cdr: &[u8]) -> Option<Self> {
        let mut cdr = CdrReader::new(cdr).ok()?;
        Some(Self {
            message_type: cdr.u16().ok()?,
            sequence: cdr.u32().ok()?,
            timestamp: cdr.u32().ok()?,
            order_id: cdr.u32().ok()?,
            volume: cdr.u32().ok()?,
            price: cdr.u32().ok()?,
            exchange_id: cdr.u8().ok()?,
            security_id: cdr.u16().ok()?,
            security_type: cdr.u8().ok()?,
            session_id: cdr.u8().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_whole_or_not_at_all() {
        let mut buffer = CdrBuffer::with_capacity(128);
        let quote = Quote {
            session_id: 99,
            ..Quote::new(7)
        };
        let sample = quote.put(&mut buffer).unwrap();
        assert_eq!(Quote::read(sample), Some(quote));
        // The last word has the last member, and padding.
        let cut = &sample[..sample.len() - 4];
        assert_eq!(Quote::read(cut), None);
    }
}
