//! fixlite: a struct that is filled as serde would do it, and a builder by tag.

use super::{lines, same};
use crate::contest::Contestant;
use crate::parse::timed;
use anyhow::Result;
use std::hint::black_box;

// typed: begin
use chrono::{DateTime, Utc};
use fixlite::enums::{HandlInst, MsgType, OrdType, Side, TimeInForce};
use fixlite::fix::Price;
use fixlite::{FixBuilder, FixDeserialize, FixError, fix_tag_registry, tags};

// Its own registry has no time for TransactTime(60).
fix_tag_registry! {
    Registry {
        38 => [u64],
        40 => [OrdType],
        44 => [Price],
        54 => [Side],
        59 => [TimeInForce],
        60 => [DateTime<Utc>],
    }
}

#[derive(FixDeserialize)]
#[fix_registry(Registry)]
struct Order<'a> {
    #[fix(tag = 11)]
    cl_ord_id: &'a str,
    #[fix(tag = 55)]
    symbol: &'a str,
    #[fix(tag = 54)]
    side: Side,
    #[fix(tag = 60)]
    transact_time: DateTime<Utc>,
    #[fix(tag = 38)]
    order_qty: u64,
    #[fix(tag = 40)]
    ord_type: OrdType,
    #[fix(tag = 44)]
    price: Price,
    #[fix(tag = 59)]
    time_in_force: TimeInForce,
}

fn read(bytes: &[u8]) -> Result<Order<'_>, FixError> {
    fixlite::decode(bytes)
}

fn build<'b>(
    builder: &'b mut FixBuilder,
    seq: u64,
    now: DateTime<Utc>,
    order: &Order<'_>,
) -> &'b [u8] {
    builder
        .begin_with(&seq, &now, &MsgType::NewOrderSingle)
        .str(tags::CL_ORD_ID, order.cl_ord_id)
        .field_tagged(HandlInst::Automated)
        .str(tags::SYMBOL, order.symbol)
        .field_tagged(order.side)
        .field(tags::TRANSACT_TIME, order.transact_time)
        .field(tags::ORDER_QTY, order.order_qty)
        .field_tagged(order.ord_type)
        .field(tags::PRICE, order.price)
        .field_tagged(order.time_in_force)
        .finish()
}
// typed: end

pub(super) fn contestant(bytes: Vec<u8>) -> Result<Contestant> {
    // typed: begin
    let mut builder = FixBuilder::new("FIX.4.4", "BUYSIDE", "SELLSIDE");
    // typed: end
    let lines = lines(&[include_str!("derived.rs")])?;
    let how = "0.7.0 of crates.io, derive, checksum";
    Ok(Contestant::new("fixlite", how, move || {
        let order = read(&bytes)?;
        let now = order.transact_time;
        same(build(&mut builder, 1234, now, &order), &bytes)?;
        let build = timed(|| {
            let (seq, now, order) = black_box((1234, now, &order));
            Ok(!black_box(build(&mut builder, seq, now, order)).is_empty())
        })?;
        let mut figures = timed(|| {
            let order = read(black_box(&bytes))?;
            Ok(!black_box(order).cl_ord_id.is_empty())
        })?;
        figures.extend(build);
        figures.push(lines);
        Ok(figures)
    }))
}
