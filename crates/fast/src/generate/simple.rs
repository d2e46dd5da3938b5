//! Orders of an equity exchange.

use crate::program::Field;
use crate::source::{Scalar, Source};

/// One message. Each order goes through Quote, New, Change and Remove; prices, volumes and
/// securities vary so that a message takes about eleven bytes.
pub(super) struct Order {
    number: u64,
}

impl Order {
    pub(super) const fn new(number: u64) -> Self {
        Self { number }
    }

    pub(super) const fn template(&self) -> &'static str {
        match self.number % 4 {
            0 => "Quote",
            1 => "New",
            2 => "Change",
            _ => "Remove",
        }
    }
}

impl Source for Order {
    fn scalar(&mut self, field: &Field) -> Scalar<'_> {
        let n = self.number;
        Scalar::Unsigned(match field.name() {
            "SequenceNumber" => n + 1,
            // Milliseconds of the day, from half past nine.
            "Timestamp" => 34_200_000 + n / 8,
            "OrderId" => 100_000 + n,
            "Volume" => 100 * (1 + n % 20),
            "Price" => 2500 + 7 * n % 200,
            "ExchangeId" => 1 + n / 64 % 4,
            "SecurityId" => 11 * n % 500,
            "SecurityType" => 1,
            "SessionId" => 1 + n / 10_000 % 3,
            "Side" => 1 + n / 4 % 2,
            _ => return Scalar::Absent,
        })
    }
}
