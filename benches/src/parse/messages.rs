//! The messages that all parse.

use anyhow::{Context, Result};
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

/// Returns a message that a decoder must refuse for each field that it checks: with another
/// CheckSum(10), and with another BodyLength(9) and the CheckSum(10) of that.
///
/// # Errors
/// The message has no such fields.
pub(super) fn wrong(message: &[u8]) -> Result<[(&'static str, Vec<u8>); 2]> {
    let (body, _) = message
        .split_last_chunk::<{ b"10=000|".len() }>()
        .context("no CheckSum(10)")?;
    let msg_type = body.windows(4).position(|bytes| bytes == b"\x0135=");
    let last_digit = msg_type.and_then(|at| at.checked_sub(1));
    let mut other = body.to_vec();
    let digit = last_digit.and_then(|at| other.get_mut(at));
    // The next digit, or the one before.
    *digit.context("no BodyLength(9)")? ^= 1;
    Ok([
        ("CheckSum(10)", summed(body, 1)),
        ("BodyLength(9)", summed(&other, 0)),
    ])
}

/// Appends a CheckSum(10) that is too much by `more`.
fn summed(body: &[u8], more: u8) -> Vec<u8> {
    let sum = body.iter().fold(more, |sum, byte| sum.wrapping_add(*byte));
    [body, format!("10={sum:03}\x01").as_bytes()].concat()
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

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::codec::Decoder;

    #[test]
    fn wrong_messages_differ_in_one_field_and_are_refused() {
        let order = order().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\x01', "|");
        assert!(text(&order).starts_with("8=FIX.4.4|9=153|35=D|"));
        let [(_, other_sum), (_, other_length)] = wrong(&order).unwrap();
        assert_eq!(other_sum[..order.len() - 4], order[..order.len() - 4]);
        assert!(text(&other_length).starts_with("8=FIX.4.4|9=152|35=D|"));
        assert_eq!(
            other_length[20..order.len() - 7],
            order[20..order.len() - 7]
        );
        let mut decoder = Decoder::new();
        assert!(decoder.decode(&order).is_ok());
        assert!(decoder.decode(&other_sum).is_err() && decoder.decode(&other_length).is_err());
    }
}
