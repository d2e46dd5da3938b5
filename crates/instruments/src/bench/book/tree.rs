//! Books in the obvious implementation, with the standard library's maps: the baseline of the
//! comparison.

use std::collections::{BTreeMap, HashMap, VecDeque};

use fanfare_market::event::{Action, Event, entry};

use super::Contender;

/// Size and number of orders by price in units, bids and offers.
#[derive(Debug, Default)]
pub struct TreeLevels {
    bids: BTreeMap<i64, (i64, u64)>,
    offers: BTreeMap<i64, (i64, u64)>,
}

impl Contender for TreeLevels {
    type Input = Event;

    fn inputs(events: &[Event]) -> Vec<Event> {
        events.to_vec()
    }

    #[inline]
    fn apply(&mut self, event: &Event) {
        let is_bid = event.entry == entry::BID;
        let levels = if is_bid {
            &mut self.bids
        } else {
            &mut self.offers
        };
        let price = event.price.units();
        if event.action == Action::Delete {
            levels.remove(&price);
        } else {
            levels.insert(price, (event.size, event.id));
        }
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        let bid = self.bids.last_key_value().map_or(0, |(&price, _)| price);
        let offer = self.offers.first_key_value().map_or(0, |(&price, _)| price);
        [bid, offer]
    }
}

/// Orders by number; for each price, in units, the sum of their sizes and their queue.
#[derive(Debug, Default)]
pub struct TreeOrders {
    orders: HashMap<u64, (u8, i64, i64)>,
    bids: BTreeMap<i64, (i64, VecDeque<u64>)>,
    offers: BTreeMap<i64, (i64, VecDeque<u64>)>,
}

impl TreeOrders {
    fn side(&mut self, entry: u8) -> &mut BTreeMap<i64, (i64, VecDeque<u64>)> {
        if entry == entry::BID {
            &mut self.bids
        } else {
            &mut self.offers
        }
    }

    fn put(&mut self, id: u64, entry: u8, price: i64, size: i64) {
        self.orders.insert(id, (entry, price, size));
        let (sum, queue) = self.side(entry).entry(price).or_default();
        *sum += size;
        queue.push_back(id);
    }

    fn take(&mut self, id: u64) {
        let Some((entry, price, size)) = self.orders.remove(&id) else {
            return;
        };
        let side = self.side(entry);
        let Some((sum, queue)) = side.get_mut(&price) else {
            return;
        };
        *sum -= size;
        if let Some(place) = queue.iter().position(|&other| other == id) {
            queue.remove(place);
        }
        if queue.is_empty() {
            side.remove(&price);
        }
    }

    /// Sets another size in the same place of the queue.
    fn resize(&mut self, id: u64, to: impl Fn(i64) -> i64) {
        let Some((entry, price, size)) = self.orders.get_mut(&id) else {
            return;
        };
        let (entry, price, old, new) = (*entry, *price, *size, to(*size));
        *size = new;
        if let Some((sum, _)) = self.side(entry).get_mut(&price) {
            *sum += new - old;
        }
    }
}

impl Contender for TreeOrders {
    type Input = Event;

    fn inputs(events: &[Event]) -> Vec<Event> {
        events.to_vec()
    }

    #[inline]
    fn apply(&mut self, event: &Event) {
        let (id, price, size) = (event.id, event.price.units(), event.size);
        match (event.action, self.orders.get(&id).copied()) {
            (Action::Delete, _) => self.take(id),
            (Action::Fill, Some((_, _, there))) if there <= size => self.take(id),
            (Action::Fill, _) => self.resize(id, |there| there - size),
            (_, Some((_, old_price, old_size))) if old_price == price && size <= old_size => {
                self.resize(id, |_| size);
            }
            (_, there) => {
                if there.is_some() {
                    self.take(id);
                }
                self.put(id, event.entry, price, size);
            }
        }
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        let bid = self.bids.last_key_value().map_or(0, |(&price, _)| price);
        let offer = self.offers.first_key_value().map_or(0, |(&price, _)| price);
        [bid, offer]
    }
}
