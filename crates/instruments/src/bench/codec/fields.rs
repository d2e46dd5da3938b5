//! The same work in two ways: by tag, as written by hand in an application, and through typed
//! messages.

use std::hint::black_box;

use fanfare_fix::codec::{
    EncodeError, Encoder, FieldError, FieldErrorKind, Message, SendingTime, SessionHeader,
};
use fanfare_fix::tag;
use fanfare_fix::typed::{Decimal, Listed, UtcTimestamp};
use fanfare_wire::Precision;

use fix44::{HandlInst, NewOrderSingle, NewOrderSingleFields, OrdType, Side, TimeInForce};

include!("../../../../fix/messages/fix44.generated");

/// The values of an order that are read.
#[derive(Debug, PartialEq)]
pub(super) struct Order<'a> {
    cl_ord_id: &'a str,
    symbol: &'a str,
    side: u8,
    transact_time: UtcTimestamp,
    order_qty: Decimal,
    ord_type: u8,
    price: Option<Decimal>,
    time_in_force: Option<u8>,
}

pub(super) fn get_order<'a>(order: &Message<'a>) -> Result<Order<'a>, FieldError> {
    Ok(Order {
        cl_ord_id: order.str(tag::CL_ORD_ID)?,
        symbol: order.str(tag::SYMBOL)?,
        side: order.char(tag::SIDE)?,
        transact_time: order.timestamp(tag::TRANSACT_TIME)?,
        order_qty: order.decimal(tag::ORDER_QTY)?,
        ord_type: order.char(tag::ORD_TYPE)?,
        price: order.opt_decimal(tag::PRICE)?,
        time_in_force: order.opt_char(tag::TIME_IN_FORCE)?,
    })
}

pub(super) fn read_order<'a>(order: &Message<'a>) -> Result<Order<'a>, FieldError> {
    let Some(order) = NewOrderSingle::read(order) else {
        return Err(no_such_message(order));
    };
    Ok(Order {
        cl_ord_id: order.cl_ord_id()?,
        symbol: order.symbol()?,
        side: code(order.side()?),
        transact_time: order.transact_time()?,
        order_qty: order.order_qty()?.unwrap_or(Decimal::new(0, 0)),
        ord_type: code(order.ord_type()?),
        price: order.price()?,
        time_in_force: order.time_in_force()?.map(code),
    })
}

/// Returns a sum over all entries of a snapshot.
pub(super) fn get_entries(snapshot: &Message<'_>) -> Result<i64, FieldError> {
    let mut sum = 0;
    for entry in snapshot.group(tag::NO_MD_ENTRIES)? {
        sum += i64::from(entry.char(tag::MD_ENTRY_TYPE)?);
        sum += entry
            .opt_decimal(tag::MD_ENTRY_PX)?
            .map_or(0, |px| px.mantissa);
        sum += entry
            .opt_decimal(tag::MD_ENTRY_SIZE)?
            .map_or(0, |size| size.mantissa);
        sum += entry.opt_i64(tag::MD_ENTRY_POSITION_NO)?.unwrap_or(0);
    }
    Ok(sum)
}

pub(super) fn read_entries(snapshot: &Message<'_>) -> Result<i64, FieldError> {
    let Some(snapshot) = fix44::MarketDataSnapshotFullRefresh::read(snapshot) else {
        return Err(no_such_message(snapshot));
    };
    let mut sum = 0;
    for entry in snapshot.md_entries()? {
        sum += i64::from(code(entry.md_entry_type()?));
        sum += entry.md_entry_px()?.map_or(0, |px| px.mantissa);
        sum += entry.md_entry_size()?.map_or(0, |size| size.mantissa);
        sum += entry.md_entry_position_no()?.unwrap_or(0);
    }
    Ok(sum)
}

/// Encodes the order of the codec's benchmark, from its fields to a whole message.
pub(super) fn build(
    header: &SessionHeader,
    seq: u64,
    buf: &mut [u8],
) -> Result<usize, EncodeError> {
    let now = super::time_of(seq);
    let sending = SendingTime::new(now, Precision::Millis);
    let mut out = Encoder::with_header(buf, header, NewOrderSingle::MSG_TYPE, seq, &sending);
    let fields = NewOrderSingleFields {
        cl_ord_id: black_box("ORDER0001234"),
        symbol: black_box("EURUSD"),
        side: Side::Buy,
        transact_time: now,
        ord_type: OrdType::Limit,
    };
    NewOrderSingle::build(&mut out, fields)
        .handl_inst(HandlInst::AutomatedExecutionNoIntervention)
        .order_qty(black_box(Decimal::from(100_000)))
        .price(black_box(Decimal::new(123_456, -5)))
        .time_in_force(TimeInForce::Day);
    Ok(out.finish()?.end)
}

/// Returns the byte that encodes a value.
fn code<'a>(value: impl Listed<'a>) -> u8 {
    value.wire().first().copied().unwrap_or_default()
}

/// Returns the error of a benchmark's own message of another type.
fn no_such_message(message: &Message<'_>) -> FieldError {
    FieldError {
        tag: tag::MSG_TYPE,
        offset: message.find(tag::MSG_TYPE).map_or(0, |field| field.offset),
        kind: FieldErrorKind::Unlisted,
    }
}
