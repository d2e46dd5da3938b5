//! The messages that all parse.

use anyhow::Result;
use fanfare_fix::codec::Encoder;
use fanfare_fix::tag;
use fanfare_wire::Decimal;

/// A NewOrderSingle(D).
pub(super) fn order() -> Result<Vec<u8>> {
    let mut buf = [0; 512];
    let mut order = header(&mut buf, b"D");
    order
        .str(tag::CL_ORD_ID, "ORDER0001234")
        .char(tag::HANDL_INST, b'1');
    order.str(tag::SYMBOL, "EURUSD").char(tag::SIDE, b'1');
    order.str(tag::TRANSACT_TIME, "20261120-12:34:56.123");
    order.u64(tag::ORDER_QTY, 100_000).char(tag::ORD_TYPE, b'2');
    order.decimal(tag::PRICE, Decimal::new(123_456, -5));
    order.char(tag::TIME_IN_FORCE, b'0');
    let range = order.finish()?;
    Ok(buf[range].to_vec())
}

/// A MarketDataSnapshotFullRefresh(W) of ten entries.
pub(super) fn snapshot() -> Result<Vec<u8>> {
    let mut buf = [0; 2048];
    let mut snapshot = header(&mut buf, b"W");
    snapshot
        .str(tag::MD_REQ_ID, "REQUEST1")
        .str(tag::SYMBOL, "EURUSD");
    snapshot.u64(tag::NO_MD_ENTRIES, 10);
    for entry in 0..10 {
        let side = if entry < 5 { b'0' } else { b'1' };
        snapshot.char(tag::MD_ENTRY_TYPE, side);
        snapshot.decimal(tag::MD_ENTRY_PX, Decimal::new(123_450 + entry, -5));
        snapshot.u64(tag::MD_ENTRY_SIZE, 1_000_000 + 1000 * entry as u64);
    }
    let range = snapshot.finish()?;
    Ok(buf[range].to_vec())
}

fn header<'b>(buf: &'b mut [u8], msg_type: &[u8]) -> Encoder<'b> {
    let mut message = Encoder::new(buf, b"FIX.4.4", msg_type);
    message
        .str(tag::SENDER_COMP_ID, "BUYSIDE")
        .str(tag::TARGET_COMP_ID, "SELLSIDE");
    message.u64(tag::MSG_SEQ_NUM, 1234);
    message.str(tag::SENDING_TIME, "20261120-12:34:56.123");
    message
}
