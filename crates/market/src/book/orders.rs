//! Orders by number: a slab of orders, a slab of levels, queues as lists through the orders.

use super::config::{BookConfig, Priority};
use super::ids::{Ids, Vacant};
use super::window::{Row, Window};
use super::{Fault, Side};
use crate::event::{Action, Event};

/// No order, no level.
const NIL: u32 = u32::MAX;

/// An order: two to a cache line. In the list of free ones `next` is the next free one.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    id: u64,
    size: i64,
    prev: u32,
    next: u32,
    level: u32,
}

/// A level with its queue. In the list of free ones `head` is the next free one.
#[derive(Clone, Copy, Debug, Default)]
struct Queue {
    key: i64,
    size: i64,
    head: u32,
    tail: u32,
    orders: u32,
    side: u32,
}

/// Where the level of a price is: levels stay where they are while their ranks change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankRow {
    key: i64,
    level: u32,
}

impl Row for RankRow {
    #[inline]
    fn key(&self) -> i64 {
        self.key
    }
}

/// The orders of both sides.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    ids: Ids,
    nodes: Vec<Node>,
    free_node: u32,
    levels: Vec<Queue>,
    free_level: u32,
    ranks: [Window<RankRow>; 2],
    most_orders: usize,
    most_levels: usize,
    priority: Priority,
}

impl Orders {
    pub(super) fn new(config: &BookConfig) -> Self {
        let (most_levels, most_orders) = (config.levels as usize, config.orders as usize);
        Self {
            ids: Ids::new(most_orders),
            nodes: Vec::with_capacity(most_orders),
            free_node: NIL,
            levels: Vec::with_capacity(2 * most_levels),
            free_level: NIL,
            ranks: [Window::new(most_levels), Window::new(most_levels)],
            most_orders,
            most_levels,
            priority: config.priority,
        }
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.nodes.clear();
        self.levels.clear();
        self.ranks.iter_mut().for_each(Window::clear);
        (self.free_node, self.free_level) = (NIL, NIL);
    }

    pub(super) fn memory(&self) -> usize {
        self.ids.memory()
            + self.nodes.capacity() * size_of::<Node>()
            + self.levels.capacity() * size_of::<Queue>()
            + self.ranks.iter().map(Window::memory).sum::<usize>()
    }

    #[inline]
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let nodes = &self.nodes;
        let found = self.ids.find(event.id, |place| {
            nodes
                .get(place as usize)
                .is_some_and(|node| node.id == event.id)
        });
        match (event.action, found) {
            (Action::New, Err(vacant)) => self.add(event, vacant),
            (Action::New, Ok(_)) => Err(Fault::DuplicateOrder),
            (Action::Change, Ok((_, place))) => self.change(event, place),
            (Action::Delete, Ok((entry, place))) => {
                let node = self.nodes[place as usize];
                self.check_side(event, node)?;
                self.remove(entry, place, node);
                Ok(())
            }
            (Action::Fill, Ok((entry, place))) => self.fill(event, entry, place),
            (Action::Change | Action::Delete | Action::Fill, Err(_)) => Err(Fault::UnknownOrder),
            _ => Err(Fault::Action),
        }
    }

    #[inline]
    fn add(&mut self, event: &Event, vacant: Vacant) -> Result<(), Fault> {
        let side = Side::of_entry(event.entry).ok_or(Fault::Side)?;
        let (key, size) = key_and_size(side, event)?;
        if self.nodes.len() == self.most_orders && self.free_node == NIL {
            return Err(Fault::Full);
        }
        let level = self.level(side, key, size)?;
        let place = self.new_node(Node {
            id: event.id,
            size,
            prev: NIL,
            next: NIL,
            level,
        });
        self.push_back(place, level);
        self.ids.insert(vacant, place);
        Ok(())
    }

    #[inline]
    fn change(&mut self, event: &Event, place: u32) -> Result<(), Fault> {
        let node = self.nodes[place as usize];
        let side = self.check_side(event, node)?;
        let (key, size) = key_and_size(side, event)?;
        let level = &mut self.levels[node.level as usize];
        if level.key != key {
            return self.move_to(side, key, size, place, node);
        }
        level.size = (level.size - node.size)
            .checked_add(size)
            .ok_or(Fault::Size)?;
        self.nodes[place as usize].size = size;
        let loses = match size.cmp(&node.size) {
            core::cmp::Ordering::Less => self.priority.decrease_loses,
            core::cmp::Ordering::Equal => false,
            core::cmp::Ordering::Greater => !self.priority.increase_keeps,
        };
        if loses && node.next != NIL {
            self.unlink(node);
            self.push_back(place, node.level);
        }
        Ok(())
    }

    /// The order at another price, and at the back of its queue.
    fn move_to(
        &mut self,
        side: Side,
        key: i64,
        size: i64,
        place: u32,
        node: Node,
    ) -> Result<(), Fault> {
        // A level that loses its last order makes room for another.
        let last = self.levels[node.level as usize].orders == 1;
        if last && self.ranks[side as usize].len() == self.most_levels {
            let ranks = &self.ranks[side as usize];
            let at = ranks.place(key);
            if ranks.rows().get(at).is_none_or(|row| row.key != key) {
                self.take_from_level(node);
                let level = self.level(side, key, size)?;
                return self.settle(place, level, size);
            }
        }
        let level = self.level(side, key, size)?;
        self.take_from_level(node);
        self.settle(place, level, size)
    }

    fn settle(&mut self, place: u32, level: u32, size: i64) -> Result<(), Fault> {
        let node = &mut self.nodes[place as usize];
        (node.size, node.level) = (size, level);
        self.push_back(place, level);
        Ok(())
    }

    #[inline]
    fn fill(&mut self, event: &Event, entry: usize, place: u32) -> Result<(), Fault> {
        let node = self.nodes[place as usize];
        self.check_side(event, node)?;
        if event.size <= 0 || event.size > node.size {
            return Err(Fault::Size);
        }
        if event.size == node.size {
            self.remove(entry, place, node);
        } else {
            self.nodes[place as usize].size -= event.size;
            self.levels[node.level as usize].size -= event.size;
        }
        Ok(())
    }

    /// The side of the order, which the event has to be on if it says one.
    #[inline]
    fn check_side(&self, event: &Event, node: Node) -> Result<Side, Fault> {
        let side = Side::of_number(self.levels[node.level as usize].side);
        match event.entry {
            0 => Ok(side),
            entry if Side::of_entry(entry) == Some(side) => Ok(side),
            _ => Err(Fault::Side),
        }
    }

    #[inline]
    fn remove(&mut self, entry: usize, place: u32, node: Node) {
        self.ids.remove(entry);
        self.take_from_level(node);
        self.nodes[place as usize].next = self.free_node;
        self.free_node = place;
    }

    /// Takes the order out of its queue and its size out of the level, and the level away with
    /// the last order.
    #[inline]
    fn take_from_level(&mut self, node: Node) {
        self.unlink(node);
        let level = &mut self.levels[node.level as usize];
        level.size -= node.size;
        level.orders -= 1;
        if level.orders == 0 {
            let ranks = &mut self.ranks[level.side as usize & 1];
            ranks.remove(ranks.place(level.key));
            level.head = self.free_level;
            self.free_level = node.level;
        }
    }
}

/// Queues and levels.
impl Orders {
    #[inline]
    fn new_node(&mut self, node: Node) -> u32 {
        let place = self.free_node;
        if let Some(free) = self.nodes.get_mut(place as usize) {
            self.free_node = free.next;
            *free = node;
            return place;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// The level of that price, with so much more in it and one more order.
    #[inline]
    fn level(&mut self, side: Side, key: i64, size: i64) -> Result<u32, Fault> {
        let ranks = &mut self.ranks[side as usize];
        let at = ranks.place(key);
        if let Some(row) = ranks.rows().get(at).filter(|row| row.key == key) {
            let level = &mut self.levels[row.level as usize];
            level.size = level.size.checked_add(size).ok_or(Fault::Size)?;
            level.orders += 1;
            return Ok(row.level);
        }
        if ranks.len() == self.most_levels {
            return Err(Fault::Full);
        }
        let level = Queue {
            key,
            size,
            head: NIL,
            tail: NIL,
            orders: 1,
            side: side as u32,
        };
        let place = self.free_level;
        let place = if let Some(free) = self.levels.get_mut(place as usize) {
            self.free_level = free.head;
            *free = level;
            place
        } else {
            self.levels.push(level);
            self.levels.len() as u32 - 1
        };
        ranks.insert(at, RankRow { key, level: place });
        Ok(place)
    }

    #[inline]
    fn push_back(&mut self, place: u32, level: u32) {
        let level = &mut self.levels[level as usize];
        let tail = level.tail;
        level.tail = place;
        match self.nodes.get_mut(tail as usize) {
            Some(node) => node.next = place,
            None => level.head = place,
        }
        let node = &mut self.nodes[place as usize];
        (node.prev, node.next) = (tail, NIL);
    }

    #[inline]
    fn unlink(&mut self, node: Node) {
        let level = &mut self.levels[node.level as usize];
        match self.nodes.get_mut(node.prev as usize) {
            Some(prev) => prev.next = node.next,
            None => level.head = node.next,
        }
        match self.nodes.get_mut(node.next as usize) {
            Some(next) => next.prev = node.prev,
            None => level.tail = node.prev,
        }
    }
}

/// What there is to read.
impl Orders {
    /// The price of the best level, as a key.
    #[inline]
    pub(super) fn best_key(&self, side: Side) -> Option<i64> {
        self.ranks[side as usize].rows().last().map(|row| row.key)
    }

    /// The worst level first.
    pub(super) fn ranks(&self, side: Side) -> &[RankRow] {
        self.ranks[side as usize].rows()
    }

    /// Key, size and number of orders.
    #[inline]
    pub(super) fn sums(&self, row: &RankRow) -> (i64, i64, u32) {
        let level = self
            .levels
            .get(row.level as usize)
            .copied()
            .unwrap_or_default();
        (row.key, level.size, level.orders)
    }

    /// How many orders there are.
    pub(super) fn len(&self) -> usize {
        let sides = self.ranks.iter().flat_map(|ranks| ranks.rows());
        sides.map(|row| self.sums(row).2 as usize).sum()
    }

    /// The first order of a queue.
    pub(super) fn first(&self, side: Side, key: i64) -> u32 {
        let ranks = &self.ranks[side as usize];
        let row = ranks
            .rows()
            .get(ranks.place(key))
            .filter(|row| row.key == key);
        let level = row.and_then(|row| self.levels.get(row.level as usize));
        level.map_or(NIL, |level| level.head)
    }

    /// Number and size of an order, and which is behind it.
    pub(super) fn order(&self, place: u32) -> Option<(u64, i64, u32)> {
        let node = self.nodes.get(place as usize)?;
        Some((node.id, node.size, node.next))
    }

    /// Side, price as a key, and size of an order.
    pub(super) fn find(&self, id: u64) -> Option<(Side, i64, i64)> {
        let is = |place| {
            self.nodes
                .get(place as usize)
                .is_some_and(|node| node.id == id)
        };
        let (_, place) = self.ids.find(id, is).ok()?;
        let node = self.nodes.get(place as usize)?;
        let level = self.levels.get(node.level as usize)?;
        Some((Side::of_number(level.side), level.key, node.size))
    }
}

/// What the event says of an order.
#[inline]
fn key_and_size(side: Side, event: &Event) -> Result<(i64, i64), Fault> {
    if !event.price.is_defined() {
        return Err(Fault::Price);
    }
    if event.size <= 0 || event.size == Event::NO_SIZE {
        return Err(Fault::Size);
    }
    Ok((side.key(event.price), event.size))
}
