//! The book of nautilus-model, by price (`L2_MBP`) and by order (`L3_MBO`).

use std::collections::HashMap;

use fanfare_instruments::bench::book::Contender;
use fanfare_market::event::{Action, Event, entry};
use nautilus_core::UnixNanos;
use nautilus_model::data::{BookOrder, OrderBookDelta};
use nautilus_model::enums::{BookAction, BookType, OrderSide};
use nautilus_model::identifiers::InstrumentId;
use nautilus_model::orderbook::OrderBook;
use nautilus_model::types::{Price, Quantity};

pub const PRICES: u8 = 2;
pub const ORDERS: u8 = 3;

/// Of prices or of orders.
pub struct Nautilus<const KIND: u8>(OrderBook);

impl<const KIND: u8> Nautilus<KIND> {
    pub fn new() -> Self {
        let kind = if KIND == PRICES {
            BookType::L2_MBP
        } else {
            BookType::L3_MBO
        };
        Self(OrderBook::new(instrument(), kind))
    }
}

fn instrument() -> InstrumentId {
    InstrumentId::from("FAN.FARE")
}

impl<const KIND: u8> Contender for Nautilus<KIND> {
    type Input = OrderBookDelta;

    fn inputs(events: &[Event]) -> Vec<OrderBookDelta> {
        let mut left = HashMap::new();
        let instrument = instrument();
        let input = |event: &Event| {
            let there = left.get(&event.id).copied().unwrap_or(0);
            let is_fill = event.action == Action::Fill;
            let size = if is_fill {
                there - event.size
            } else {
                event.size
            };
            left.insert(event.id, size);
            let is_bid = event.entry == entry::BID;
            OrderBookDelta {
                instrument_id: instrument,
                action: match event.action {
                    Action::New => BookAction::Add,
                    Action::Delete => BookAction::Delete,
                    Action::Fill if size == 0 => BookAction::Delete,
                    _ => BookAction::Update,
                },
                order: BookOrder {
                    side: if is_bid {
                        OrderSide::Buy
                    } else {
                        OrderSide::Sell
                    },
                    price: Price::from_raw(event.price.units(), 2),
                    size: Quantity::from_raw(size.unsigned_abs() * 1_000_000_000, 0),
                    order_id: event.id,
                },
                flags: 0,
                sequence: 0,
                ts_event: UnixNanos::default(),
                ts_init: UnixNanos::default(),
            }
        };
        events.iter().map(input).collect()
    }

    #[inline]
    fn apply(&mut self, delta: &OrderBookDelta) {
        // What it refuses would show in the best prices.
        let _ = self.0.apply_delta(delta);
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        [self.0.best_bid_price(), self.0.best_ask_price()]
            .map(|price| price.map_or(0, |price| price.raw))
    }
}
