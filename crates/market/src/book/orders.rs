//! Orders by number: one slab of levels and orders, each level with the ring of its orders.

use super::config::{BookConfig, Priority};
use super::ids::{Ids, Vacant};
use super::ranks::{NIL, RankRow, Ranks};
use super::{Fault, Side};
use crate::event::{Action, Event};

/// An order or a level, two to a cache line.
///
/// A level is in a ring with its orders, before the first and after the last. Inserting and
/// removing an order needs no test whether it is the first or the last, which a processor could not
/// predict.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The order's number, or the key of a level's price.
    id: u64,
    /// The remaining size of the order, or of all orders of a level.
    size: i64,
    prev: u32,
    /// The next node, which in a free list is the next free one.
    next: u32,
    /// The order's level, or a level's number of orders.
    level: u32,
    /// The side of a level.
    side: u32,
}

/// The most orders of a book that allocates all of its memory at its creation.
const ALL_RESERVED: usize = 100_000;
/// The orders for which a book that may have more has room at its creation.
const RESERVED: usize = 1 << 14;

/// The orders of both sides.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    ids: Ids,
    /// The nodes of all levels, followed by those of orders.
    nodes: Vec<Node>,
    free_order: u32,
    free_level: u32,
    /// The first level node that was never used.
    new_level: u32,
    ranks: [Ranks; 2],
    most_levels: usize,
    most_nodes: usize,
    priority: Priority,
}

impl Orders {
    pub(super) fn new(config: &BookConfig) -> Self {
        let (most_levels, most_orders) = (config.levels as usize, config.orders as usize);
        let most_nodes = 2 * most_levels + most_orders;
        let reserved = match most_orders {
            ..=ALL_RESERVED => most_orders,
            _ => RESERVED,
        };
        let mut nodes = Vec::with_capacity(2 * most_levels + reserved);
        nodes.resize(2 * most_levels, Node::default());
        Self {
            ids: Ids::new(reserved),
            nodes,
            free_order: NIL,
            free_level: NIL,
            new_level: 0,
            ranks: [Ranks::new(most_levels), Ranks::new(most_levels)],
            most_levels,
            most_nodes,
            priority: config.priority,
        }
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.nodes.truncate(2 * self.most_levels);
        self.ranks.iter_mut().for_each(Ranks::clear);
        (self.free_order, self.free_level, self.new_level) = (NIL, NIL, 0);
    }

    pub(super) fn memory(&self) -> usize {
        self.ids.memory()
            + self.nodes.capacity() * size_of::<Node>()
            + self.ranks.iter().map(Ranks::memory).sum::<usize>()
    }

    #[inline]
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let nodes = &self.nodes;
        let is = |place| {
            nodes
                .get(place as usize)
                .is_some_and(|node: &Node| node.id == event.id)
        };
        match (event.action, self.ids.find(event.id, is)) {
            (Action::New, Err(vacant)) => self.add(event, vacant),
            (Action::New, Ok(_)) => Err(Fault::DuplicateOrder),
            (Action::Change, Ok(place)) => self.change(event, place),
            (Action::Delete, Ok(place)) => {
                let node = self.nodes[place as usize];
                self.check_side(event, node)?;
                self.remove(place, node);
                Ok(())
            }
            (Action::Fill, Ok(place)) => self.fill(event, place),
            (Action::Change | Action::Delete | Action::Fill, Err(_)) => Err(Fault::UnknownOrder),
            _ => Err(Fault::Action),
        }
    }

    #[inline]
    fn add(&mut self, event: &Event, vacant: Vacant) -> Result<(), Fault> {
        let side = Side::of_entry(event.entry).ok_or(Fault::Side)?;
        let (key, size) = key_and_size(side, event)?;
        if self.nodes.len() == self.most_nodes && self.free_order == NIL {
            return Err(Fault::Full);
        }
        let level = self.level(side, key, size)?;
        let place = self.new_order(Node {
            id: event.id,
            size,
            level,
            ..Node::default()
        });
        self.push_back(place, level);
        let id_of = |place| self.nodes[place as usize].id;
        self.ids.insert(vacant, place, id_of);
        Ok(())
    }

    #[inline]
    fn change(&mut self, event: &Event, place: u32) -> Result<(), Fault> {
        let node = self.nodes[place as usize];
        let side = self.check_side(event, node)?;
        let (key, size) = self.changed(side, event, node)?;
        let level = &mut self.nodes[node.level as usize];
        if level.id != key.cast_unsigned() {
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
        if loses {
            self.unlink(node);
            self.push_back(place, node.level);
        }
        Ok(())
    }

    /// Returns the price and the size of an order after a change. One that the event lacks is as
    /// before, as changes in FIX may have only what has changed.
    #[inline]
    fn changed(&self, side: Side, event: &Event, node: Node) -> Result<(i64, i64), Fault> {
        let key = match event.price.is_defined() {
            true => side.key(event.price),
            false => self.nodes[node.level as usize].id.cast_signed(),
        };
        match event.size {
            Event::NO_SIZE => Ok((key, node.size)),
            size if size > 0 => Ok((key, size)),
            _ => Err(Fault::Size),
        }
    }

    /// Moves the order to another price, and to the back of its queue.
    fn move_to(
        &mut self,
        side: Side,
        key: i64,
        size: i64,
        place: u32,
        node: Node,
    ) -> Result<(), Fault> {
        // A level that loses its last order frees its node for another.
        let is_last = self.nodes[node.level as usize].level == 1;
        let goes_first = is_last && self.is_full(side) && self.find_level(side, key).is_err();
        if goes_first {
            self.take_from_level(node);
        }
        let level = self.level(side, key, size)?;
        if !goes_first {
            self.take_from_level(node);
        }
        let node = &mut self.nodes[place as usize];
        (node.size, node.level) = (size, level);
        self.push_back(place, level);
        Ok(())
    }

    #[inline]
    fn fill(&mut self, event: &Event, place: u32) -> Result<(), Fault> {
        let node = self.nodes[place as usize];
        self.check_side(event, node)?;
        if event.size <= 0 || event.size > node.size {
            return Err(Fault::Size);
        }
        if event.size == node.size {
            self.remove(place, node);
        } else {
            self.nodes[place as usize].size -= event.size;
            self.nodes[node.level as usize].size -= event.size;
        }
        Ok(())
    }

    /// Returns the side of the order, which must equal that of the event, if it has one.
    #[inline]
    fn check_side(&self, event: &Event, node: Node) -> Result<Side, Fault> {
        let side = Side::of_number(self.nodes[node.level as usize].side);
        if event.entry != 0 && event.entry != side.entry() {
            return Err(Fault::Side);
        }
        Ok(side)
    }

    #[inline]
    fn remove(&mut self, place: u32, node: Node) {
        self.ids.remove(node.id, place);
        self.take_from_level(node);
        self.nodes[place as usize].next = self.free_order;
        self.free_order = place;
    }

    /// Removes the order from its queue and its size from the level, and the level with its last
    /// order.
    #[inline]
    fn take_from_level(&mut self, node: Node) {
        self.unlink(node);
        let level = &mut self.nodes[node.level as usize];
        level.size -= node.size;
        level.level -= 1;
        if level.level == 0 {
            self.remove_level(node.level);
        }
    }
}

/// The queues and levels.
impl Orders {
    #[inline]
    fn new_order(&mut self, node: Node) -> u32 {
        let place = self.free_order;
        if let Some(free) = self.nodes.get_mut(place as usize) {
            self.free_order = free.next;
            *free = node;
            return place;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    #[inline]
    fn is_full(&self, side: Side) -> bool {
        self.ranks[side as usize].len() == self.most_levels
    }

    #[inline]
    fn find_level(&self, side: Side, key: i64) -> Result<u32, Vacant> {
        let (nodes, id) = (&self.nodes, key.cast_unsigned());
        let is = |place| {
            nodes
                .get(place as usize)
                .is_some_and(|level: &Node| level.id == id)
        };
        self.ranks[side as usize].find(key, is)
    }

    /// Returns the level of that price, after adding the size of one more order.
    #[inline]
    fn level(&mut self, side: Side, key: i64, size: i64) -> Result<u32, Fault> {
        match self.find_level(side, key) {
            Ok(place) => {
                let level = &mut self.nodes[place as usize];
                level.size = level.size.checked_add(size).ok_or(Fault::Size)?;
                level.level += 1;
                Ok(place)
            }
            Err(_) if self.is_full(side) => Err(Fault::Full),
            Err(vacant) => Ok(self.add_level(vacant, side, key, size)),
        }
    }

    /// Adds a level with one order of that size.
    fn add_level(&mut self, vacant: Vacant, side: Side, key: i64, size: i64) -> u32 {
        let place = if self.free_level == NIL {
            self.new_level += 1;
            self.new_level - 1
        } else {
            self.free_level
        };
        let level = &mut self.nodes[place as usize];
        if self.free_level != NIL {
            self.free_level = level.next;
        }
        *level = Node {
            id: key.cast_unsigned(),
            size,
            prev: place,
            next: place,
            level: 1,
            side: side as u32,
        };
        let key_of = |place| self.nodes[place as usize].id.cast_signed();
        self.ranks[side as usize].insert(vacant, key, place, key_of);
        place
    }

    fn remove_level(&mut self, place: u32) {
        let level = self.nodes[place as usize];
        let (side, key) = (Side::of_number(level.side), level.id.cast_signed());
        self.ranks[side as usize].remove(key, place);
        self.nodes[place as usize].next = self.free_level;
        self.free_level = place;
    }

    #[inline]
    fn push_back(&mut self, place: u32, level: u32) {
        let last = core::mem::replace(&mut self.nodes[level as usize].prev, place);
        self.nodes[last as usize].next = place;
        let node = &mut self.nodes[place as usize];
        (node.prev, node.next) = (last, level);
    }

    #[inline]
    fn unlink(&mut self, node: Node) {
        self.nodes[node.prev as usize].next = node.next;
        self.nodes[node.next as usize].prev = node.prev;
    }
}

/// The read access.
impl Orders {
    /// Returns the levels, the worst first.
    #[inline]
    pub(super) fn ranks(&self, side: Side) -> &[RankRow] {
        self.ranks[side as usize].rows()
    }

    /// Returns size and number of orders.
    #[inline]
    pub(super) fn sums(&self, row: &RankRow) -> (i64, u32) {
        let level = self.nodes.get(row.slot as usize);
        level.map_or((0, 0), |level| (level.size, level.level))
    }

    /// Returns the number of orders.
    pub(super) fn len(&self) -> usize {
        let sides = self.ranks.iter().flat_map(|ranks| ranks.rows());
        sides.map(|row| self.sums(row).1 as usize).sum()
    }

    /// Returns the first order of a queue, or none if the level does not exist.
    pub(super) fn first(&self, side: Side, key: i64) -> u32 {
        let level = self.find_level(side, key).ok();
        let level = level.and_then(|place| self.nodes.get(place as usize));
        level.map_or(NIL, |level| level.next)
    }

    /// Returns number and size of an order, and the next one, which is invalid for the last one.
    #[inline]
    pub(super) fn order(&self, place: u32) -> Option<(u64, i64, u32)> {
        let is_level = (place as usize) < 2 * self.most_levels;
        let node = self.nodes.get(place as usize).filter(|_| !is_level)?;
        Some((node.id, node.size, node.next))
    }

    /// Returns side, price as a key, and size of an order.
    pub(super) fn find(&self, id: u64) -> Option<(Side, i64, i64)> {
        let nodes = &self.nodes;
        let is = |place| {
            nodes
                .get(place as usize)
                .is_some_and(|node: &Node| node.id == id)
        };
        let place = self.ids.find(id, is).ok()?;
        let node = self.nodes.get(place as usize)?;
        let level = self.nodes.get(node.level as usize)?;
        Some((
            Side::of_number(level.side),
            level.id.cast_signed(),
            node.size,
        ))
    }
}

/// Returns the price and the size of a new order.
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
