//! The market data of a derivatives exchange in the shapes that MOEX SPECTRA's has: increments,
//! or the snapshots that agree with them.

mod book;
mod market;

use crate::program::Field;
use crate::source::{Scalar, Source};
use crate::value::Decimal;
use book::{DEPTH, Side};
use fanfare_wire::{Precision, UtcTimestamp};
use market::{Entry, Market, What};

/// ExchangeTradingSessionID(5842).
const SESSION: u64 = 5_127;

/// MsgSeqNum(34) of the first increment.
const FIRST: u32 = 512_001;

/// The options of the market data of [`super::Generator::spectra`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpectraOptions {
    /// The seed of the market. The same seed generates the same market. The default is 1.
    pub seed: u64,
    /// Whether the feed has the snapshots of the market in place of its increments. The default is
    /// false.
    pub snapshots: bool,
    /// The percentage of the changes that are trades, 100 at most. Each trade is an entry, with the
    /// level that was taken from. The default is 0.
    pub trades: u32,
}

impl Default for SpectraOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            snapshots: false,
            trades: 0,
        }
    }
}

/// The market, and the next message.
#[derive(Debug)]
pub(super) struct Spectra {
    market: Market,
    snapshots: bool,
    /// The MsgSeqNum of the market's last increment.
    increment: u32,
    message: Message,
    /// The MsgSeqNum of the message.
    number: u32,
    /// The entry whose fields are asked for.
    entry: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Message {
    Increment,
    Snapshot { rpt_seq: u32, security_id: u64 },
    SessionStatus,
    SequenceReset,
}

impl Spectra {
    pub(super) fn new(options: SpectraOptions) -> Self {
        Self {
            market: Market::new(options.seed, options.trades),
            snapshots: options.snapshots,
            increment: FIRST.wrapping_sub(1),
            message: Message::SequenceReset,
            number: 0,
            entry: None,
        }
    }

    /// Advances to the next message.
    pub(super) fn advance(&mut self) {
        self.entry = None;
        if !self.snapshots {
            self.advance_market();
            (self.message, self.number) = (Message::Increment, self.increment);
            return;
        }
        // The securities in turn, then the session's state; then all begins again.
        let last = self.number;
        self.number += 1;
        self.message = match self.message {
            Message::SequenceReset => {
                self.number = 1;
                self.snapshot(0)
            }
            Message::SessionStatus => Message::SequenceReset,
            _ if last as usize == Market::securities() => Message::SessionStatus,
            _ => self.snapshot(last as usize),
        };
    }

    fn snapshot(&mut self, security: usize) -> Message {
        // As many increments as snapshots.
        self.advance_market();
        let (rpt_seq, security_id) = self.market.snapshot(security);
        Message::Snapshot {
            rpt_seq,
            security_id,
        }
    }

    fn advance_market(&mut self) {
        self.market.advance();
        self.increment = self.increment.wrapping_add(1);
    }

    pub(super) const fn template(&self) -> &'static str {
        match self.message {
            Message::Increment => "DefaultIncrementalRefreshMessage",
            Message::Snapshot { .. } => "DefaultSnapshotMessage",
            Message::SessionStatus => "TradingSessionStatus",
            Message::SequenceReset => "SequenceReset",
        }
    }

    fn head(&self, name: &str) -> Scalar<'static> {
        let day = digits(self.market.now()) / DAY;
        Scalar::Unsigned(match (name, self.message) {
            ("MsgSeqNum", _) => self.number.into(),
            ("SendingTime", _) => digits(self.market.now()),
            ("NewSeqNo", _) => 1,
            ("RptSeq", Message::Snapshot { rpt_seq, .. }) => rpt_seq.into(),
            ("SecurityID", Message::Snapshot { security_id, .. }) => security_id,
            ("TotNumReports", _) => Market::securities() as u64,
            ("LastMsgSeqNumProcessed", _) => self.increment.into(),
            ("TradSesOpenTime", _) => day * DAY + 100_000_000,
            ("TradSesCloseTime", _) => day * DAY + 184_500_000,
            ("TradingSessionID", _) => 5,
            ("ExchangeTradingSessionID", _) => SESSION,
            ("TradSesStatus", _) => 2,
            ("MarketSegmentID", _) => return Scalar::Text(b"F"),
            _ => return Scalar::Absent,
        })
    }
}

impl Entry {
    fn scalar(&self, name: &str) -> Scalar<'static> {
        let (level, trade) = match self.what {
            What::Level(_, level) => (Some(level as u64), None),
            What::Trade(number, side) => (None, Some((number, side))),
            What::Empty => (None, None),
        };
        let empty = self.what == What::Empty;
        let time = digits(self.time);
        Scalar::Unsigned(match name {
            "MDUpdateAction" => self.action as u64,
            "MDEntryType" => return Scalar::Text(self.kind()),
            "SecurityID" => self.security_id,
            "RptSeq" => self.rpt_seq.into(),
            "MDEntryTime" => time % DAY,
            "ExchangeTradingSessionID" if !empty => SESSION,
            "MarketDepth" if trade.is_none() => DEPTH as u64,
            "MDPriceLevel" => return level.map_or(Scalar::Absent, Scalar::Unsigned),
            "MDEntryPx" if !empty => return price(self.price),
            "MDEntrySize" if !empty => return Scalar::Signed(self.size),
            "MDEntryID" | "MDEntryDate" | "MDFlags" => match (name, trade) {
                ("MDEntryID", Some((number, _))) => return Scalar::Signed(number),
                ("MDEntryDate", Some(_)) => time / DAY,
                (_, Some((_, Side::Bid))) => 1,
                (_, Some((_, Side::Offer))) => 2,
                (_, None) => return Scalar::Absent,
            },
            _ => return Scalar::Absent,
        })
    }

    const fn kind(&self) -> &'static [u8] {
        match self.what {
            What::Level(Side::Bid, _) => b"0",
            What::Level(Side::Offer, _) => b"1",
            What::Trade(..) => b"2",
            What::Empty => b"J",
        }
    }
}

impl Source for Spectra {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        let entries = self.market.entries();
        match self.entry.and_then(|entry| entries.get(entry)) {
            Some(entry) => entry.scalar(field.name()),
            None => self.head(field.name()),
        }
    }

    fn length(&mut self, _: &Field) -> Option<u32> {
        u32::try_from(self.market.entries().len()).ok()
    }

    fn enter(&mut self, _: &Field, index: u32) {
        self.entry = usize::try_from(index).ok();
    }

    fn leave(&mut self, _: &Field) {
        self.entry = None;
    }
}

/// The bound of a time of day as digits, HHMMSSmmm, which is less than this.
const DAY: u64 = 1_000_000_000;

/// Returns milliseconds since the epoch as digits: YYYYMMDDHHMMSSmmm.
fn digits(time: u64) -> u64 {
    let nanos = i64::try_from(time).unwrap_or(0).saturating_mul(1_000_000);
    let mut text = [0; UtcTimestamp::MAX_LEN];
    let len = UtcTimestamp::from_nanos(nanos).write(Precision::Millis, &mut text);
    let digits = text.iter().take(len).filter(|byte| byte.is_ascii_digit());
    digits.fold(0, |all, byte| 10 * all + u64::from(byte - b'0'))
}

/// Returns a price as a mantissa and an exponent, without zeros at its end.
fn price(mut mantissa: i64) -> Scalar<'static> {
    let mut exponent = 0;
    while mantissa != 0 && mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    Scalar::Decimal(Decimal { mantissa, exponent })
}
