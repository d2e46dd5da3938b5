//! Market data of a derivatives exchange.

use crate::program::Field;
use crate::source::{Scalar, Source};
use crate::value::Decimal;

/// The time of the first message, as an integer of the form of `SendingTime`.
const START: u64 = 58_781;

/// The trading day.
const DATE: u64 = 20_100_209;

/// The options of the market data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComplexOptions {
    /// The mean number of entries in a message, which has from 1 to twice that number less one. The
    /// default is 3.
    pub sequence_length: u32,
    /// Whether the entries of a message can belong to more than one security. The default is true.
    pub split: bool,
}

impl Default for ComplexOptions {
    fn default() -> Self {
        Self {
            sequence_length: 3,
            split: true,
        }
    }
}

/// One message.
pub(super) struct Data {
    number: u64,
    options: ComplexOptions,
    entry: u64,
}

impl Data {
    pub(super) const fn new(number: u64, options: ComplexOptions) -> Self {
        Self {
            number,
            options,
            entry: 0,
        }
    }

    pub(super) const fn template(&self) -> &'static str {
        if self.is_request() {
            "QuoteRequest"
        } else {
            "MarketData"
        }
    }

    const fn is_request(&self) -> bool {
        self.number.is_multiple_of(100)
    }

    fn request(&self, name: &str) -> Scalar<'static> {
        Scalar::Unsigned(match name {
            "OrderQty" | "Side" | "QuoteType" => 1,
            "TransactTime" => START,
            "SecurityID" => 0,
            _ => return Scalar::Absent,
        })
    }

    fn market_data(&self, name: &str) -> Scalar<'static> {
        let (i, j) = (self.number, self.entry);
        let odd = i % 2 == 1;
        let whole = |mantissa: u64| {
            Scalar::Decimal(Decimal {
                mantissa: mantissa as i64,
                exponent: 0,
            })
        };
        let text = |text: &'static str| Scalar::Text(text.as_bytes());
        Scalar::Unsigned(match name {
            "MDUpdateAction" => i % 3,
            "MDPriceLevel" => j,
            "MDEntryType" => return text(if odd { "7" } else { "8" }),
            "OpenCloseSettleFlag" => {
                if odd {
                    4
                } else {
                    5
                }
            }
            "SecurityID" if self.options.split => (i + j / 3) % 100,
            "SecurityID" => i % 100,
            "RptSeq" => j,
            "MDEntryPx" => return whole(25 + i % 25),
            "MDEntryTime" => START + (i + j) % 10,
            "MDEntrySize" => 10 + i % 10,
            "NumberOfOrders" => 2 + j,
            "TradingSessionID" => return text("2"),
            "NetChgPrevDay" => return whole(i % 5 + 1),
            "TradeVolume" => 30 + i % 50,
            "TradeCondition" => return text("W"),
            "TickDirection" => return text(if odd { "0" } else { "2" }),
            "QuoteCondition" => return text("C"),
            "AggressorSide" => {
                if odd {
                    1
                } else {
                    2
                }
            }
            "MatchEventIndicator" => return text("1"),
            _ => return Scalar::Absent,
        })
    }
}

impl Source for Data {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        match field.name() {
            "MsgSeqNum" => Scalar::Unsigned(self.number + 1),
            "SendingTime" => Scalar::Unsigned(START + self.number + 1),
            "TradeDate" => Scalar::Unsigned(DATE),
            name if self.is_request() => self.request(name),
            name => self.market_data(name),
        }
    }

    fn length(&mut self, _: &Field) -> Option<u32> {
        if self.is_request() {
            return Some(1);
        }
        let most = u64::from(self.options.sequence_length.max(1)) * 2 - 1;
        u32::try_from(self.number % most + 1).ok()
    }

    fn enter(&mut self, _: &Field, index: u32) {
        self.entry = index.into();
    }
}
