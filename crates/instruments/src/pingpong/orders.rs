//! The two messages, and the responding side.

use fanfare_engine::host::{Handler, Peer};
use fanfare_fix::codec::{EncodeError, Encoder, FieldWriter, Message, SendingTime, SessionHeader};
use fanfare_fix::session::{AppMessage, Version};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::{Precision, UtcTimestamp};

/// Writes the fields of a NewOrderSingle(D) after its header: all that FIX.4.2 to FIX.4.4 require.
pub fn write_order(order: &mut FieldWriter<'_>, number: u64, time: UtcTimestamp) {
    order
        .u64(tag::CL_ORD_ID, number)
        .char(tag::HANDL_INST, b'1')
        .str(tag::SYMBOL, "EUR/USD")
        .char(tag::SIDE, b'1')
        .timestamp(tag::TRANSACT_TIME, time, Precision::Millis)
        .u64(tag::ORDER_QTY, 100)
        .char(tag::ORD_TYPE, b'2')
        .str(tag::PRICE, "1.0842");
}

/// Writes the fields of the ExecutionReport(8) for a new order. A field that the order lacks is
/// omitted in the report.
pub fn write_report(
    report: &mut FieldWriter<'_>,
    number: u64,
    order: &Message<'_>,
    version: Version,
) {
    report.u64(tag::ORDER_ID, number).u64(tag::EXEC_ID, number);
    if version <= Version::Fix42 {
        report.char(tag::EXEC_TRANS_TYPE, b'0');
    }
    report
        .char(tag::EXEC_TYPE, b'0')
        .char(tag::ORD_STATUS, b'0');
    for tag in [tag::CL_ORD_ID, tag::SYMBOL, tag::SIDE, tag::ORDER_QTY] {
        if let Some(field) = order.position(tag).and_then(|at| order.encoded(at)) {
            report.raw(field);
        }
    }
    let quantity = order.get(tag::ORDER_QTY).unwrap_or(b"0");
    report.field(tag::LEAVES_QTY, quantity);
    report.char(tag::CUM_QTY, b'0').char(tag::AVG_PX, b'0');
}

/// An exchange that responds to each order with a report.
#[derive(Debug, Default)]
pub struct Exchange {
    orders: u64,
    unanswered: u64,
}

impl Exchange {
    /// Returns the number of orders received.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// Returns the number of orders whose report could not be sent: the counterparty does not read.
    pub fn unanswered(&self) -> u64 {
        self.unanswered
    }
}

impl Handler for Exchange {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let order = &message.message;
        if order.msg_type() != msg_type::NEW_ORDER_SINGLE {
            return;
        }
        self.orders += 1;
        let (number, version) = (self.orders, peer.id().version);
        let sent = peer.send(msg_type::EXECUTION_REPORT, |report| {
            write_report(report, number, order, version);
        });
        self.unanswered += u64::from(sent.is_err());
    }
}

/// The CompIDs of the benchmark: those of the sender of orders and of the responder.
pub(super) const COMP_IDS: (&str, &str) = ("CLIENT", "SERVER");

/// Returns an order and its report as whole messages, as two sessions of FIX.4.4 exchange them.
pub(super) fn samples(seq: u64, time: UtcTimestamp) -> Result<(Vec<u8>, Vec<u8>), EncodeError> {
    let sample = |from: &str, to: &str, kind, body: &dyn Fn(&mut FieldWriter<'_>)| {
        let header = SessionHeader::new(b"FIX.4.4", from.as_bytes(), to.as_bytes())?;
        let sending = SendingTime::new(time, Precision::Millis);
        let mut buf = [0; 512];
        let mut encoder = Encoder::with_header(&mut buf, &header, kind, seq, &sending);
        body(&mut encoder);
        let range = encoder.finish()?;
        Ok(buf.get(range).unwrap_or(&[]).to_vec())
    };
    let (client, server) = COMP_IDS;
    let order = sample(client, server, msg_type::NEW_ORDER_SINGLE, &|order| {
        write_order(order, seq, time);
    })?;
    let mut decoder = fanfare_fix::codec::Decoder::new();
    // The order was encoded above; an error would show as a report without the order's fields.
    let report = match decoder.decode(&order) {
        Ok(order) => sample(server, client, msg_type::EXECUTION_REPORT, &|report| {
            write_report(report, seq, &order, Version::Fix44);
        })?,
        Err(_) => Vec::new(),
    };
    Ok((order, report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::Decoder;
    use fanfare_fix::dict::{Dictionary, Switches, Version as DictVersion};

    #[test]
    fn both_messages_are_valid() {
        let time = UtcTimestamp::from_nanos(1_795_178_096_123_000_000);
        let (order, report) = samples(100_000, time).unwrap();
        let dictionary = Dictionary::built_in(DictVersion::Fix44);
        for message in [&order, &report] {
            let mut decoder = Decoder::new();
            let message = decoder.decode(message).unwrap();
            dictionary.validate(&message, Switches::default()).unwrap();
        }
        assert!((145..=165).contains(&order.len()), "{} B", order.len());
    }

    #[test]
    fn a_report_of_an_empty_order_has_what_it_can() {
        let mut buf = [0; 256];
        let mut encoder = Encoder::new(&mut buf, b"FIX.4.2", b"D");
        encoder.str(98, "0");
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::new();
        let order = decoder.decode(&buf[range]).unwrap();
        let mut out = [0; 256];
        let mut report = FieldWriter::new(&mut out);
        write_report(&mut report, 7, &order, Version::Fix42);
        let text = String::from_utf8_lossy(report.written().unwrap()).replace('\x01', "|");
        assert_eq!(text, "37=7|17=7|20=0|150=0|39=0|151=0|14=0|6=0|");
    }
}
