//! A side of a book by order: queues at prices.

use std::collections::BTreeMap;

use fanfare_market::Side;

use super::entry::{Action, Entry};
use super::levels::Row;
use fanfare_market::Price;

/// The orders of a side.
#[derive(Debug, Clone, Default)]
pub(super) struct Orders {
    queues: BTreeMap<i64, Vec<(u64, i64)>>,
    /// The price of each order.
    prices: BTreeMap<u64, i64>,
}

impl Orders {
    /// Takes an entry of W or X. A new order goes to the back of its queue, and so does one that
    /// grows or has another price.
    pub(super) fn change(&mut self, action: Action, entry: &Entry<'_>) -> Result<(), String> {
        let id = entry.id.and_then(fanfare_wire::int::parse_u64);
        let id = id.ok_or("an order has no number")?;
        let known = self.prices.get(&id).copied();
        match (action, known) {
            (Action::New, Some(_)) => Err(format!("order {id} is there twice")),
            (Action::New, None) => self.push(id, entry),
            (_, None) => Err(format!("there is no order {id}")),
            (Action::Delete, Some(price)) => {
                self.remove(id, price);
                Ok(())
            }
            (Action::Change, Some(price)) => self.replace(id, price, entry),
        }
    }

    fn push(&mut self, id: u64, entry: &Entry<'_>) -> Result<(), String> {
        let (price, size) = (entry.price()?.units(), entry.size()?);
        self.prices.insert(id, price);
        self.queues.entry(price).or_default().push((id, size));
        Ok(())
    }

    fn replace(&mut self, id: u64, price: i64, entry: &Entry<'_>) -> Result<(), String> {
        let (new, size) = (entry.price()?.units(), entry.size()?);
        let queue = self.queues.get_mut(&price);
        let known = queue.and_then(|queue| queue.iter_mut().find(|order| order.0 == id));
        if let Some(known) = known
            && new == price
            && size <= known.1
        {
            known.1 = size;
            return Ok(());
        }
        self.remove(id, price);
        self.push(id, entry)
    }

    fn remove(&mut self, id: u64, price: i64) {
        self.prices.remove(&id);
        if let Some(queue) = self.queues.get_mut(&price) {
            queue.retain(|order| order.0 != id);
            if queue.is_empty() {
                self.queues.remove(&price);
            }
        }
    }

    /// Returns the levels, the best first, with their queues.
    pub(super) fn levels(&self, side: Side) -> Vec<(Row, &[(u64, i64)])> {
        let level = |(price, queue): (&i64, &'_ Vec<(u64, i64)>)| Row {
            price: Price::from_units(*price),
            size: queue.iter().map(|order| order.1).sum(),
            orders: queue.len() as u64,
        };
        let levels = self.queues.iter();
        let levels = levels.map(|(price, queue)| (level((price, queue)), queue.as_slice()));
        match side {
            Side::Bid => levels.rev().collect(),
            Side::Offer => levels.collect(),
        }
    }
}
