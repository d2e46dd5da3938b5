//! The conversion of the fields of a message by its plan: one pass over the message, into reused
//! memory.

use super::plan::{Block, From, Order, Plan, Slot, Step, Target};
use super::value::Conv;
use fanfare_fast::{Entries, Fields, MessageView, Value};
use fanfare_fix::dict::Dictionary;
use fanfare_fix::tag;
use fanfare_wire::int;
use std::ops::Range;

const SOH: u8 = 1;

/// The converter of messages to bodies.
#[derive(Debug, Default)]
pub(super) struct Converter {
    out: Vec<u8>,
    /// The range of each slot's text in the open levels, empty if absent.
    spans: Vec<Range<usize>>,
    handed: Vec<u8>,
    hands: Vec<Range<usize>>,
    pub(super) tally: Tally,
    /// The tag and the text of the first value that did not fit.
    pub(super) sample: Option<(u32, Vec<u8>)>,
    /// The tag because of which an entry was left out that a book cannot do without.
    spoils: Option<u32>,
    /// Whether the version does not have the MDEntryType(269) of the current entry.
    is_untyped: bool,
    /// Whether a group has no entry left because the version has none of their types.
    is_beyond: bool,
}

/// The reason why a message has no form in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmade {
    /// It lacks this required field, or with 0 has no field at all.
    Field(u32),
    /// It has an entry of a book without a valid value of this field. The rest of the message would
    /// leave the book wrong.
    Entry(u32),
    /// All of its entries are of types that the version does not have.
    Beyond,
}

/// The counts of what the conversion of a message left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Fields that have no place in the version.
    pub(crate) fields: u64,
    /// Values that are invalid for their field.
    pub(crate) values: u64,
    /// Entries of groups that lacked a field.
    pub(crate) entries: u64,
}

/// The plan and the dictionary of a message.
#[derive(Clone, Copy)]
struct Conversion<'a> {
    plan: &'a Plan,
    dictionary: &'a Dictionary,
}

impl Converter {
    /// Writes the fields of a message between header and trailer. `body`, `tally` and `sample` are
    /// then those of this message. Does not allocate once it has seen messages as long, unless a
    /// value does not fit for the first time.
    ///
    /// # Errors
    /// Returns the reason if the message has no form in the version.
    pub(super) fn convert(
        &mut self,
        plan: &Plan,
        dictionary: &Dictionary,
        message: MessageView<'_>,
    ) -> Result<(), Unmade> {
        self.out.clear();
        self.spans.clear();
        self.handed.clear();
        self.hands.clear();
        self.hands.resize(plan.hands, 0..0);
        self.tally = Tally::default();
        self.sample = None;
        self.spoils = None;
        self.is_beyond = false;
        let made = self.block(Conversion { plan, dictionary }, 0, message.fields());
        let lacks = made.err().or_else(|| self.out.is_empty().then_some(0));
        match (self.spoils, lacks) {
            (Some(tag), _) => Err(Unmade::Entry(tag)),
            (None, None) => Ok(()),
            (None, Some(_)) if self.is_beyond => Err(Unmade::Beyond),
            (None, Some(tag)) => Err(Unmade::Field(tag)),
        }
    }

    /// Returns the fields.
    pub(super) fn body(&self) -> &[u8] {
        &self.out
    }

    /// Writes one level, and removes it if it lacks a required field.
    fn block(
        &mut self,
        conversion: Conversion<'_>,
        block: usize,
        fields: Fields<'_>,
    ) -> Result<(), u32> {
        let Some(block) = conversion.plan.blocks.get(block) else {
            return Err(0);
        };
        let (start, base) = (self.out.len(), self.spans.len());
        self.spans.resize(base + block.slots.len(), 0..0);
        self.walk(conversion, block, base, fields);
        let complete = self.complete(conversion, block, base);
        match (complete, block.order) {
            // Values that were filled in are at the end.
            (Ok(_), Order::Other) | (Ok(true), Order::Same) => self.put_in_order(start, base),
            (Ok(_), _) => {}
            (Err(_), _) => self.out.truncate(start),
        }
        self.spans.truncate(base);
        complete.map(|_| ())
    }

    fn walk(&mut self, conversion: Conversion<'_>, block: &Block, base: usize, fields: Fields<'_>) {
        for (field, value) in fields {
            match value {
                Value::Absent => {}
                Value::Group(inside) | Value::Template(_, inside) => {
                    self.walk(conversion, block, base, inside);
                }
                _ => {
                    if let Some(step) = conversion.plan.step(field.id()) {
                        self.step(conversion, block, base, step, value);
                    }
                }
            }
        }
    }

    #[inline]
    fn step(
        &mut self,
        conversion: Conversion<'_>,
        block: &Block,
        base: usize,
        step: &Step,
        value: Value<'_>,
    ) {
        for hand in &step.hands {
            let start = self.handed.len();
            hand.conv
                .write(conversion.dictionary, hand.tag, value, &mut self.handed);
            if let Some(place) = self.hands.get_mut(hand.place) {
                *place = start..self.handed.len();
            }
        }
        let start = self.out.len();
        let place = match &step.target {
            Target::Nothing => return,
            Target::Leave => return self.tally.fields += 1,
            Target::Value { slot, tag, conv } => {
                let written = block
                    .slots
                    .get(*slot)
                    .map(|s| self.value(conversion, s, conv, value));
                if written != Some(true) {
                    self.out.truncate(start);
                    return self.left(conversion, *tag, value);
                }
                slot
            }
            Target::Group {
                slot,
                block: inside,
            } => {
                let (Some(counted), Value::Sequence(entries)) = (block.slots.get(*slot), value)
                else {
                    return;
                };
                self.group(conversion, counted, *inside, entries);
                slot
            }
        };
        match self.spans.get_mut(base + place) {
            // Two fields of the template have this slot.
            Some(span) if span.start < span.end => {
                self.out.truncate(start);
                self.tally.fields += 1;
            }
            Some(span) => *span = start..self.out.len(),
            None => {}
        }
    }

    /// Writes the entries of a group after their count.
    fn group(
        &mut self,
        conversion: Conversion<'_>,
        slot: &Slot,
        inside: usize,
        entries: Entries<'_>,
    ) {
        let (start, of_feed) = (self.out.len(), entries.len());
        let (mut count, mut beyond, around) = (0, 0, self.is_untyped);
        for entry in entries {
            let begin = self.out.len();
            self.is_untyped = false;
            let made = self.block(conversion, inside, entry);
            if made.is_ok() && !self.is_untyped {
                count += 1;
                continue;
            }
            self.out.truncate(begin);
            beyond += usize::from(self.is_untyped);
            self.leave_entry(conversion, entry, made.err().unwrap_or(tag::MD_ENTRY_TYPE));
        }
        self.is_untyped = around;
        self.is_beyond |= beyond > 0 && beyond == of_feed;
        // If the version requires the count, a 0 of the feed is forwarded. A group that lost all of
        // its entries is a different case.
        if count > 0 || slot.required && of_feed == 0 {
            let entries = self.out.len();
            self.out.extend_from_slice(&slot.text);
            number(count, SOH, &mut self.out);
            let len = self.out.len() - entries;
            if let Some(group) = self.out.get_mut(start..) {
                group.rotate_right(len);
            }
        }
    }

    /// Writes `tag=value` and the separator, after the length if it is data.
    #[inline]
    fn value(
        &mut self,
        conversion: Conversion<'_>,
        slot: &Slot,
        conv: &Conv,
        value: Value<'_>,
    ) -> bool {
        if let Conv::Data(length) = conv {
            let len = match value.as_bytes() {
                Some(bytes) => bytes.len(),
                // A template may have a number where FIX has data.
                None => {
                    let start = self.out.len();
                    conv.write(conversion.dictionary, slot.tag, value, &mut self.out);
                    let len = self.out.len() - start;
                    self.out.truncate(start);
                    len
                }
            };
            number(*length, b'=', &mut self.out);
            number(len as u32, SOH, &mut self.out);
        }
        self.out.extend_from_slice(&slot.text);
        let written = conv.write(conversion.dictionary, slot.tag, value, &mut self.out);
        self.out.push(SOH);
        written
    }

    /// Counts an entry that is left out because of this tag. It spoils a book if it is a bid, an
    /// offer, a trade or an empty book, if its action is one of books alone, or if it is a change
    /// without a type, which the identifier of an earlier entry may have.
    #[cold]
    fn leave_entry(&mut self, conversion: Conversion<'_>, entry: Fields<'_>, tag: u32) {
        self.tally.entries += 1;
        let entry_type = code(conversion, entry, tag::MD_ENTRY_TYPE);
        let action = code(conversion, entry, tag::MD_UPDATE_ACTION);
        let is_of_book = match (entry_type, action) {
            (_, Some(b'3'..=b'5')) | (None, Some(_)) => true,
            (entry_type, _) => matches!(entry_type, Some(b'0' | b'1' | b'2' | b'J')),
        };
        if is_of_book {
            self.spoils.get_or_insert(tag);
        }
    }

    #[cold]
    fn left(&mut self, conversion: Conversion<'_>, tag: u32, value: Value<'_>) {
        self.tally.values += 1;
        self.is_untyped |= tag == tag::MD_ENTRY_TYPE;
        let [told, _] = &conversion.plan.told;
        if self.sample.is_none() && !told.get() {
            let mut text = Vec::new();
            match value.as_bytes() {
                Some(bytes) => text.extend_from_slice(bytes.get(..64).unwrap_or(bytes)),
                None => {
                    fanfare_fast::fix::write_value(value, &mut text);
                }
            }
            self.sample = Some((tag, text));
        }
    }

    /// Fills the empty slots that can be filled, and returns whether there were any. Returns the
    /// tag of a required field that is absent as an error.
    fn complete(
        &mut self,
        conversion: Conversion<'_>,
        block: &Block,
        base: usize,
    ) -> Result<bool, u32> {
        let mut filled = false;
        for (at, slot) in block.slots.iter().enumerate() {
            let is_there = |spans: &[Range<usize>], at: usize| {
                spans
                    .get(base + at)
                    .is_some_and(|span| span.start < span.end)
            };
            if is_there(&self.spans, at) {
                continue;
            }
            let text = match &slot.from {
                From::Nowhere => None,
                From::Text(text, None) => Some(*text),
                From::Text(text, Some(beside)) => {
                    let other = block.slots.iter().position(|slot| slot.tag == *beside);
                    other.filter(|at| is_there(&self.spans, *at)).map(|_| *text)
                }
                From::Handed(place) => {
                    let span = self.hands.get(*place).cloned();
                    self.handed
                        .get(span.unwrap_or_default())
                        .filter(|t| !t.is_empty())
                }
            };
            let Some(text) = text.filter(|text| conversion.dictionary.fits(slot.tag, text)) else {
                if slot.required {
                    return Err(slot.tag);
                }
                continue;
            };
            let start = self.out.len();
            self.out.extend_from_slice(&slot.text);
            self.out.extend_from_slice(text);
            self.out.push(SOH);
            if let Some(span) = self.spans.get_mut(base + at) {
                *span = start..self.out.len();
            }
            filled = true;
        }
        Ok(filled)
    }

    /// Reorders the text after `start` by the order of the slots.
    fn put_in_order(&mut self, start: usize, base: usize) {
        let end = self.out.len();
        for span in self.spans.get(base..).unwrap_or_default() {
            self.out.extend_from_within(span.clone());
        }
        self.out.copy_within(end.., start);
        self.out.truncate(end);
    }
}

/// Returns the value of a field of one character in an entry: 0 if it has more of them, and `None`
/// if it is absent.
fn code(conversion: Conversion<'_>, mut entry: Fields<'_>, tag: u32) -> Option<u8> {
    entry.find_map(|(field, value)| match value {
        Value::Absent | Value::Sequence(_) => None,
        Value::Group(inside) | Value::Template(_, inside) => code(conversion, inside, tag),
        _ => {
            let target = &conversion.plan.step(field.id())?.target;
            let is_it = matches!(target, Target::Value { tag: of, .. } if *of == tag);
            is_it.then(|| match (value.as_bytes(), value.as_u64()) {
                (Some(&[code]), _) => code,
                (None, Some(digit @ 0..=9)) => b'0' + digit as u8,
                _ => 0,
            })
        }
    })
}

fn number(value: u32, behind: u8, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let len = int::write_u64(value.into(), &mut digits);
    out.extend_from_slice(digits.get(..len).unwrap_or_default());
    out.push(behind);
}
