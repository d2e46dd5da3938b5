//! Entries of W and X, from a client's point of view.

use fanfare_fix::codec::FieldSet;
use fanfare_fix::tag;
use fanfare_market::{Price, Side};

/// MDEntrySize(271).
const SIZE: u32 = 271;
/// MDEntryID(278), and OrderID(37) in W of versions that have no MDEntryID(278) there.
const ID: u32 = 278;
const ORDER_ID: u32 = 37;
/// MDUpdateAction(279).
const ACTION: u32 = 279;
/// MDEntryPositionNo(290).
pub(super) const POSITION: u32 = 290;
/// NumberOfOrders(346).
const ORDERS: u32 = 346;
/// MDPriceLevel(1023).
pub(super) const LEVEL: u32 = 1023;
/// RptSeq(83).
pub(super) const RPT_SEQ: u32 = 83;

/// MDUpdateAction(279).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    New,
    Change,
    Delete,
}

/// A bid or an offer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) side: Side,
    pub(super) price: Option<Price>,
    pub(super) size: Option<i64>,
    pub(super) orders: u64,
    /// MDPriceLevel(1023) or MDEntryPositionNo(290).
    pub(super) position: Option<usize>,
    /// MDEntryID(278) or OrderID(37).
    pub(super) id: Option<&'a [u8]>,
}

impl<'a> Entry<'a> {
    /// Returns the entry's bid or offer; `None` for others.
    pub(super) fn of(fields: &FieldSet<'a>) -> Result<Option<Self>, String> {
        let kind = fields.char(tag::MD_ENTRY_TYPE).map_err(said)?;
        let Some(side) = Side::of_entry(kind) else {
            return Ok(None);
        };
        let price = fields.opt_decimal(tag::MD_ENTRY_PX).map_err(said)?;
        let price = price.map(Price::from_decimal).transpose();
        let position = match fields.opt_u64(LEVEL).map_err(said)? {
            None => fields.opt_u64(POSITION).map_err(said)?,
            level => level,
        };
        Ok(Some(Self {
            side,
            price: price.map_err(said)?,
            size: fields.opt_i64(SIZE).map_err(said)?,
            orders: fields.opt_u64(ORDERS).map_err(said)?.unwrap_or(0),
            position: position.and_then(|at| usize::try_from(at).ok()),
            id: fields.get(ID).or_else(|| fields.get(ORDER_ID)),
        }))
    }

    pub(super) fn price(&self) -> Result<Price, String> {
        self.price.ok_or_else(|| "an entry has no price".to_owned())
    }

    pub(super) fn size(&self) -> Result<i64, String> {
        self.size.ok_or_else(|| "an entry has no size".to_owned())
    }

    /// Returns the index of its level, from 0.
    pub(super) fn place(&self) -> Result<usize, String> {
        let place = self.position.and_then(|position| position.checked_sub(1));
        place.ok_or_else(|| "an entry has no position".to_owned())
    }
}

/// Returns the action of an entry of X.
pub(super) fn action(fields: &FieldSet<'_>) -> Result<Action, String> {
    match fields.get(ACTION) {
        Some(b"0") => Ok(Action::New),
        Some(b"1") => Ok(Action::Change),
        Some(b"2") => Ok(Action::Delete),
        other => {
            let other = other.unwrap_or_default().escape_ascii();
            Err(format!("`{other}` is no action of a price level"))
        }
    }
}

pub(super) fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}
