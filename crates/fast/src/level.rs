//! The values of a record that is held as a message, for programs that know the places of its
//! fields.

use crate::node::Node;
use crate::program::{FieldId, FieldKind, Program};
use crate::record::Record;
use crate::value::Decimal;

/// The place of a field among the values of its level, in a [`Record`] that is not held in rows
/// ([`Record::level`]). A seat is computed once, when the templates are loaded, and does not
/// change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    field: FieldId,
    index: u32,
}

impl Seat {
    /// The seat of no field. It never has a value.
    pub const NOWHERE: Self = Self {
        field: FieldId(u32::MAX),
        index: u32::MAX,
    };
}

impl Program {
    /// Returns the seat of a field of a template, or of an entry of a sequence. Returns `None` for
    /// a field after a sequence, a dynamic reference or an optional group, because the number of
    /// values before it differs from message to message.
    #[must_use]
    pub fn seat(&self, field: FieldId) -> Option<Seat> {
        let (siblings, first) = match self.field(field).parent() {
            None => {
                let template = self
                    .templates()
                    .get(self.field(field).template() as usize)?;
                (self.template_fields(template), 0)
            }
            Some(parent) if self.field(parent).is_sequence() => (self.children(parent), 0),
            // Its values are after the group itself.
            Some(group) => (self.children(group), self.seat(group)?.index + 1),
        };
        let mut in_front = siblings.iter().take_while(|sibling| **sibling != field);
        let index = in_front.try_fold(first, |index, sibling| Some(index + self.nodes(*sibling)?));
        Some(Seat {
            field,
            index: index?,
        })
    }

    /// Returns the number of nodes of a field in each message, or `None` if that number differs.
    fn nodes(&self, field: FieldId) -> Option<u32> {
        let known = self.field(field);
        match known.kind() {
            FieldKind::Group if known.optional() => None,
            FieldKind::Group => {
                let mut children = self.children(field).iter();
                children.try_fold(1, |nodes, child| Some(nodes + self.nodes(*child)?))
            }
            FieldKind::Sequence | FieldKind::TemplateRef => None,
            FieldKind::Int(_) | FieldKind::Decimal | FieldKind::Text(_) => Some(1),
        }
    }
}

/// The values of one level of a record: its own fields, or those of an entry of a sequence.
///
/// An absent field has no value, nor has a field of another level or template.
///
/// ```
/// use fanfare_fast::{Decoder, Program, Record};
///
/// let program = Program::parse(
///     r#"<template name="Trade" id="1"><uInt64 name="Id"/><string name="Symbol"/>
///          <sequence name="Sides"><length name="NoSides"/><uInt64 name="Order"/></sequence>
///        </template>"#,
/// )?;
/// let seat = |path| program.seat(program.find("Trade", path).unwrap()).unwrap();
/// let (id, symbol, sides) = (seat("Id"), seat("Symbol"), seat("Sides"));
/// let order = seat("Sides.Order");
/// let (mut decoder, mut record) = (Decoder::new(program), Record::new());
/// decoder.decode_record(&[0xc0, 0x81, 0x87, b'X' | 0x80, 0x82, 0xaa, 0xab], &mut record)?;
/// let level = record.level().unwrap();
/// assert_eq!((level.int(id), level.text(symbol)), (Some(7), Some(&b"X"[..])));
/// let orders = level.entries(sides).unwrap().map(|side| side.int(order));
/// assert_eq!(orders.collect::<Vec<_>>(), [Some(42), Some(43)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Level<'r> {
    nodes: &'r [Node],
    bytes: &'r [u8],
    /// The index of the first node among all nodes of the message.
    first: usize,
}

impl<'r> Level<'r> {
    #[inline(always)]
    fn node(&self, seat: Seat) -> Option<&'r Node> {
        self.nodes.get(seat.index as usize)
    }

    /// Returns whether a field has a value.
    #[must_use]
    #[inline(always)]
    pub fn has(&self, seat: Seat) -> bool {
        let node = self.node(seat);
        node.is_some_and(|node| node.field() == seat.field && !node.is_absent())
    }

    /// Returns the integer of a field. A negative one is returned as its 64-bit pattern.
    #[must_use]
    #[inline(always)]
    pub fn int(&self, seat: Seat) -> Option<u64> {
        self.node(seat)?.int_of(seat.field)
    }

    /// Returns the decimal of a field.
    #[must_use]
    #[inline(always)]
    pub fn decimal(&self, seat: Seat) -> Option<Decimal> {
        self.node(seat)?.decimal_of(seat.field)
    }

    /// Returns the string or byte vector of a field.
    #[must_use]
    #[inline(always)]
    pub fn text(&self, seat: Seat) -> Option<&'r [u8]> {
        self.node(seat)?.text_of(seat.field, self.bytes)
    }

    /// Returns the entries of a sequence.
    #[must_use]
    #[inline]
    pub fn entries(&self, seat: Seat) -> Option<LevelEntries<'r>> {
        let index = seat.index as usize;
        let end = self.node(seat)?.end_of_sequence(seat.field)?;
        let first = self.first + index + 1;
        let nodes = self
            .nodes
            .get(index + 1..(end as usize).checked_sub(self.first)?)?;
        let bytes = self.bytes;
        Some(LevelEntries(Level {
            nodes,
            bytes,
            first,
        }))
    }
}

/// An iterator over the entries of a sequence, each as the [`Level`] of its values.
#[derive(Debug, Clone)]
pub struct LevelEntries<'r>(Level<'r>);

impl<'r> Iterator for LevelEntries<'r> {
    type Item = Level<'r>;

    #[inline(always)]
    fn next(&mut self) -> Option<Level<'r>> {
        let Level {
            nodes,
            bytes,
            first,
        } = self.0;
        let (entry, behind) = nodes.split_first()?;
        let len = (entry.end(first as u32) as usize).checked_sub(first + 1)?;
        let (nodes, rest) = behind.split_at_checked(len)?;
        let first = first + 1;
        self.0.nodes = rest;
        self.0.first = first + len;
        Some(Level {
            nodes,
            bytes,
            first,
        })
    }
}

impl Record {
    /// Returns the values of the message's own fields, if the record is not held in rows.
    #[must_use]
    #[inline]
    pub fn level(&self) -> Option<Level<'_>> {
        let (nodes, bytes) = self.as_nodes()?;
        Some(Level {
            nodes,
            bytes,
            first: 0,
        })
    }
}
