//! Fanfare: a reader and a builder that `build.rs` generates.

use super::{lines, same};
use crate::contest::Contestant;
use crate::parse::timed;
use std::hint::black_box;

// typed: begin
use anyhow::{Context, Result};
use fanfare_fix::codec::{Decoder, EncodeError, Encoder, SendingTime, SessionHeader};
use fanfare_fix::typed::{Decimal, Precision, UtcTimestamp};
use fix44::{HandlInst, NewOrderSingle, NewOrderSingleFields, TimeInForce};

include!(concat!(env!("OUT_DIR"), "/fix44.rs"));

struct Order<'a> {
    required: NewOrderSingleFields<'a>,
    order_qty: Option<Decimal>,
    price: Option<Decimal>,
    time_in_force: Option<TimeInForce>,
}

fn read<'a>(decoder: &'a mut Decoder, bytes: &'a [u8]) -> Result<Order<'a>> {
    let message = decoder.decode(bytes)?;
    let order = NewOrderSingle::read(&message).context("another message")?;
    Ok(Order {
        required: order.required()?,
        order_qty: order.order_qty()?,
        price: order.price()?,
        time_in_force: order.time_in_force()?,
    })
}

fn build<'b>(
    buf: &'b mut [u8],
    header: &SessionHeader,
    seq: u64,
    now: UtcTimestamp,
    order: &Order<'_>,
) -> Result<&'b [u8], EncodeError> {
    let time = SendingTime::new(now, Precision::Millis);
    let mut out = Encoder::with_header(buf, header, NewOrderSingle::MSG_TYPE, seq, &time);
    NewOrderSingle::build(&mut out, order.required)
        .handl_inst(HandlInst::AutomatedExecutionNoIntervention)
        .order_qty(order.order_qty)
        .price(order.price)
        .time_in_force(order.time_in_force);
    let range = out.finish()?;
    Ok(&buf[range])
}
// typed: end

pub(super) fn contestant(bytes: Vec<u8>) -> Result<Contestant> {
    // typed: begin
    let mut decoder = Decoder::new();
    let header = SessionHeader::new(b"FIX.4.4", b"BUYSIDE", b"SELLSIDE")?;
    let mut buf = [0; 512];
    // typed: end
    let lines = lines(&[
        include_str!("generated.rs"),
        include_str!("../../../build.rs"),
    ])?;
    let how = "fanfare-fix, codegen in a build script";
    Ok(Contestant::new("Fanfare", how, move || {
        let order = read(&mut decoder, &bytes)?;
        let now = order.required.transact_time;
        same(build(&mut buf, &header, 1234, now, &order)?, &bytes)?;
        let build = timed(|| {
            let (seq, now, order) = black_box((1234, now, &order));
            let built = black_box(build(&mut buf, &header, seq, now, order)?);
            Ok(!built.is_empty())
        })?;
        let mut figures = timed(|| {
            let order = read(&mut decoder, black_box(&bytes))?;
            Ok(!black_box(order).required.cl_ord_id.is_empty())
        })?;
        figures.extend(build);
        figures.push(lines);
        Ok(figures)
    }))
}
