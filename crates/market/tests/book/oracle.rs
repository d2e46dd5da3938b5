//! Books that are slow and obvious: the levels of a side in a `Vec`, in a sorted map by price, or
//! orders in a map with a queue for each price.

use std::collections::{BTreeMap, VecDeque};

use fanfare_market::book::{BookKind, Level, Order, Priority};
use fanfare_market::event::{Action, Event, Flags, Kind};
use fanfare_market::{Fault, Price, Side};

/// The limits of a book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) kind: BookKind,
    pub(crate) levels: usize,
    pub(crate) orders: usize,
    pub(crate) may_cross: bool,
    pub(crate) priority: Priority,
}

#[derive(Debug)]
pub(crate) struct Oracle {
    limits: Limits,
    /// The levels by number, the best first.
    by_number: [Vec<Level>; 2],
    by_price: [BTreeMap<Price, Level>; 2],
    orders: BTreeMap<u64, (Side, Price, i64)>,
    queues: [BTreeMap<Price, VecDeque<u64>>; 2],
    pub(crate) is_doubtful: bool,
}

impl Oracle {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            by_number: Default::default(),
            by_price: Default::default(),
            orders: BTreeMap::new(),
            queues: Default::default(),
            is_doubtful: false,
        }
    }

    pub(crate) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let applied = match (event.kind, self.limits.kind) {
            (Kind::Clear, _) => {
                *self = Self::new(self.limits);
                Ok(())
            }
            (Kind::Level, BookKind::Levels) => self.number(event),
            (Kind::Level, BookKind::Prices) => self.price(event),
            (Kind::Order, BookKind::Orders) => self.order(event),
            _ => Ok(()),
        };
        let done = applied.and_then(|()| self.check(event.flags));
        self.is_doubtful |= done.is_err();
        done
    }

    fn check(&self, flags: Flags) -> Result<(), Fault> {
        if !flags.has(Flags::LAST) {
            return Ok(());
        }
        let (bids, offers) = (self.depth(Side::Bid), self.depth(Side::Offer));
        if bids.windows(2).any(|pair| pair[0].price < pair[1].price)
            || offers.windows(2).any(|pair| pair[0].price > pair[1].price)
        {
            return Err(Fault::Disorder);
        }
        match (bids.first(), offers.first()) {
            (Some(bid), Some(offer)) if bid.price > offer.price && !self.limits.may_cross => {
                Err(Fault::Crossed)
            }
            _ => Ok(()),
        }
    }

    fn number(&mut self, event: &Event) -> Result<(), Fault> {
        let side = side(event.entry)?;
        let number = usize::from(event.level);
        if number == 0 || number > self.limits.levels {
            return Err(Fault::Level);
        }
        let levels = &mut self.by_number[side as usize];
        let place = number - 1;
        match event.action {
            Action::New => {
                let new = level(event)?;
                if place > levels.len() {
                    return Err(Fault::Hole);
                }
                levels.insert(place, new);
                levels.truncate(self.limits.levels);
            }
            Action::Fill => return Err(Fault::Action),
            _ if place >= levels.len() => return Err(Fault::NotThere),
            Action::Change | Action::Overlay => levels[place] = level(event)?,
            Action::Delete => drop(levels.remove(place)),
            Action::DeleteThru => drop(levels.drain(..=place)),
            Action::DeleteFrom => levels.truncate(place),
        }
        Ok(())
    }

    fn price(&mut self, event: &Event) -> Result<(), Fault> {
        let levels = &mut self.by_price[side(event.entry)? as usize];
        match event.action {
            Action::New | Action::Change => {
                let new = level(event)?;
                if !levels.contains_key(&new.price) && levels.len() == self.limits.levels {
                    return Err(Fault::Full);
                }
                levels.insert(new.price, new);
            }
            Action::Delete if !event.price.is_defined() => return Err(Fault::Price),
            Action::Delete => {
                levels.remove(&event.price).ok_or(Fault::NotThere)?;
            }
            _ => return Err(Fault::Action),
        }
        Ok(())
    }

    fn order(&mut self, event: &Event) -> Result<(), Fault> {
        let there = self.orders.get(&event.id).copied();
        match (event.action, there) {
            (Action::New, Some(_)) => Err(Fault::DuplicateOrder),
            (Action::New, None) => {
                let (side, new) = (side(event.entry)?, order(event)?);
                if self.orders.len() == self.limits.orders {
                    return Err(Fault::Full);
                }
                self.room(side, new, None)?;
                self.put(event.id, side, new);
                Ok(())
            }
            (Action::Change | Action::Delete | Action::Fill, None) => Err(Fault::UnknownOrder),
            (Action::Change, Some(old)) => self.change(event, old),
            (Action::Delete, Some(old)) => {
                same_side(event, old.0)?;
                self.take(event.id, old);
                Ok(())
            }
            (Action::Fill, Some(old)) => self.fill(event, old),
            _ => Err(Fault::Action),
        }
    }

    fn change(&mut self, event: &Event, old: (Side, Price, i64)) -> Result<(), Fault> {
        same_side(event, old.0)?;
        let new = order(&kept(event, old))?;
        self.room(old.0, new, Some((event.id, old)))?;
        let Priority {
            increase_keeps,
            decrease_loses,
        } = self.limits.priority;
        let loses = new.0 != old.1
            || (new.1 > old.2 && !increase_keeps)
            || (new.1 < old.2 && decrease_loses);
        if loses {
            self.take(event.id, old);
            self.put(event.id, old.0, new);
        } else {
            self.orders.insert(event.id, (old.0, new.0, new.1));
        }
        Ok(())
    }

    fn fill(&mut self, event: &Event, old: (Side, Price, i64)) -> Result<(), Fault> {
        same_side(event, old.0)?;
        if event.size <= 0 || event.size > old.2 {
            return Err(Fault::Size);
        }
        if event.size == old.2 {
            self.take(event.id, old);
        } else {
            self.orders
                .insert(event.id, (old.0, old.1, old.2 - event.size));
        }
        Ok(())
    }

    /// Returns whether the order fits at its price, without the one that it replaces.
    fn room(
        &self,
        side: Side,
        (price, size): (Price, i64),
        old: Option<(u64, (Side, Price, i64))>,
    ) -> Result<(), Fault> {
        let old_id = old.map(|(id, _)| id);
        let others = |price| {
            let queue = self.queues[side as usize].get(&price);
            let ids = queue.into_iter().flatten().copied();
            ids.filter(move |&id| Some(id) != old_id)
        };
        let sum: i128 = others(price).map(|id| i128::from(self.orders[&id].2)).sum();
        if sum + i128::from(size) > i128::from(i64::MAX) {
            return Err(Fault::Size);
        }
        let mut levels = self.queues[side as usize].len();
        if let Some((_, (_, old_price, _))) = old {
            levels -= usize::from(others(old_price).next().is_none());
        }
        let is_new = others(price).next().is_none();
        if is_new && levels == self.limits.levels {
            return Err(Fault::Full);
        }
        Ok(())
    }

    fn put(&mut self, id: u64, side: Side, (price, size): (Price, i64)) {
        self.orders.insert(id, (side, price, size));
        let queues = &mut self.queues[side as usize];
        queues.entry(price).or_default().push_back(id);
    }

    fn take(&mut self, id: u64, (side, price, _): (Side, Price, i64)) {
        self.orders.remove(&id);
        let queues = &mut self.queues[side as usize];
        let queue = queues.get_mut(&price).unwrap();
        queue.retain(|&other| other != id);
        if queue.is_empty() {
            queues.remove(&price);
        }
    }

    /// Returns the levels of a side, the best first.
    pub(crate) fn depth(&self, side: Side) -> Vec<Level> {
        let mut levels: Vec<Level> = match self.limits.kind {
            BookKind::Levels => return self.by_number[side as usize].clone(),
            BookKind::Prices => self.by_price[side as usize].values().copied().collect(),
            BookKind::Orders => self.queues[side as usize]
                .keys()
                .map(|&price| {
                    let queue = self.queue(side, price);
                    Level {
                        price,
                        size: queue.iter().map(|order| order.size).sum(),
                        orders: queue.len() as u64,
                    }
                })
                .collect(),
        };
        if side == Side::Bid {
            levels.reverse();
        }
        levels
    }

    /// Returns the orders at a price, the first of the queue first.
    pub(crate) fn queue(&self, side: Side, price: Price) -> Vec<Order> {
        let queue = self.queues[side as usize].get(&price);
        let ids = queue.into_iter().flatten();
        let order = |&id: &u64| Order {
            id,
            size: self.orders[&id].2,
        };
        ids.map(order).collect()
    }

    pub(crate) fn orders(&self) -> &BTreeMap<u64, (Side, Price, i64)> {
        &self.orders
    }
}

fn side(entry: u8) -> Result<Side, Fault> {
    match entry {
        b'0' => Ok(Side::Bid),
        b'1' => Ok(Side::Offer),
        _ => Err(Fault::Side),
    }
}

fn same_side(event: &Event, is: Side) -> Result<(), Fault> {
    if event.entry != 0 && side(event.entry)? != is {
        return Err(Fault::Side);
    }
    Ok(())
}

fn level(event: &Event) -> Result<Level, Fault> {
    if event.price == Price::UNDEFINED {
        return Err(Fault::Price);
    }
    if event.size < 0 || event.size == Event::NO_SIZE {
        return Err(Fault::Size);
    }
    Ok(Level {
        price: event.price,
        size: event.size,
        orders: event.id,
    })
}

/// Returns a change of an order with the price and the size that it leaves as they were.
fn kept(event: &Event, (_, price, size): (Side, Price, i64)) -> Event {
    let mut kept = *event;
    if !kept.price.is_defined() {
        kept.price = price;
    }
    if kept.size == Event::NO_SIZE {
        kept.size = size;
    }
    kept
}

fn order(event: &Event) -> Result<(Price, i64), Fault> {
    let level = level(event)?;
    if level.size == 0 {
        return Err(Fault::Size);
    }
    Ok((level.price, level.size))
}
