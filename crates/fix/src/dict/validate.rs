//! The validation of a message, in one walk over its fields against the tables of a dictionary.
//!
//! Faults are reported in a fixed order, whatever the order of the fields: header and trailer out
//! of place, MsgType(35), required fields, and then field by field in the order of the tags, header
//! first. The walk continues after a fault and keeps the one that comes first in that order. A
//! message without faults costs one look at each field.

mod group;

use super::compile::{Block, Membership, Rule, Section};
use super::dictionary::Dictionary;
use crate::codec::{Field, Message};
use crate::session::{Fault, RejectReason};
use crate::tag;
use std::collections::HashSet;

/// The switches of a validation. Their names are those of QuickFIX settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switches {
    /// `ValidateFieldsOutOfOrder`: header, body and trailer must be in this order. On by default.
    pub fields_out_of_order: bool,
    /// `ValidateFieldsHaveValues`: every field must have a value. On by default.
    pub fields_have_values: bool,
    /// `ValidateUserDefinedFields`: tags from 5000 on must be known and belong to the message. On
    /// by default.
    pub user_defined_fields: bool,
    /// `AllowUnknownMsgFields`: tags below 5000 need not be known, nor belong to the message. Off
    /// by default.
    pub allow_unknown_fields: bool,
    /// `ValidateUnorderedGroupFields`: entries of groups must begin with the delimiter and have
    /// their fields in order. On by default.
    pub unordered_group_fields: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            fields_out_of_order: true,
            fields_have_values: true,
            user_defined_fields: true,
            allow_unknown_fields: false,
            unordered_group_fields: true,
        }
    }
}

impl Switches {
    /// Sets the switch that a settings file calls `name`, and returns whether there is one of that
    /// name.
    pub fn set(&mut self, name: &str, on: bool) -> bool {
        let switch = match name {
            "ValidateFieldsOutOfOrder" => &mut self.fields_out_of_order,
            "ValidateFieldsHaveValues" => &mut self.fields_have_values,
            "ValidateUserDefinedFields" => &mut self.user_defined_fields,
            "AllowUnknownMsgFields" => &mut self.allow_unknown_fields,
            "ValidateUnorderedGroupFields" => &mut self.unordered_group_fields,
            _ => return false,
        };
        *switch = on;
        true
    }
}

impl Dictionary {
    /// Checks one message. The call does not allocate, unless the message has more than 128 fields
    /// that the dictionary does not know.
    ///
    /// # Errors
    /// Returns the first fault in the order of the module's description.
    #[inline]
    pub fn validate(&self, message: &Message<'_>, switches: Switches) -> Result<(), Fault> {
        let Some(block) = self.block(message.msg_type()) else {
            return self.validate_unknown(message, switches);
        };
        // Most dictionaries have fewer than 2048 fields: a small set of seen ones is quicker.
        if self.tables().fields < 64 * 32 {
            Pass::<32>::new(self, block, message, switches).run()
        } else {
            Pass::<1024>::new(self, block, message, switches).run()
        }
    }

    /// Checks the header and the trailer of a message whose body this dictionary does not describe,
    /// and in the body only what concerns every field. The call does not allocate.
    pub(super) fn validate_frame(
        &self,
        message: &Message<'_>,
        switches: Switches,
    ) -> Result<(), Fault> {
        let block = Block::default();
        let switches = Switches {
            user_defined_fields: false,
            allow_unknown_fields: true,
            ..switches
        };
        let pass = Pass::<1024> {
            knows_body: false,
            ..Pass::new(self, &block, message, switches)
        };
        pass.run()
    }

    /// Checks a message that the dictionary does not know. Only a wrong order of header, body and
    /// trailer comes before that fault.
    fn validate_unknown(&self, message: &Message<'_>, switches: Switches) -> Result<(), Fault> {
        let mut section = Section::Header;
        for field in message.fields().filter(|_| switches.fields_out_of_order) {
            let own = self.rule(field.tag).section;
            if own < section {
                return Err(fault(RejectReason::TagOutOfOrder, &field));
            }
            section = own;
        }
        Err(Fault::new(RejectReason::InvalidMsgType, None))
    }
}

/// The place of a fault in the order of reports. The fault with the smallest place is reported.
type Place = (Phase, Spot, usize);

/// The part of the message (header, trailer, body), and the order of the field in it. Faults of a
/// group's members have the spot of the outermost count field.
type Spot = (u8, i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Structure,
    Required,
    RequiredInGroup,
    Field,
}

/// A walk over a message. It distinguishes `WORDS` times 64 fields.
struct Pass<'a, const WORDS: usize> {
    dictionary: &'a Dictionary,
    block: &'a Block,
    /// Whether the block is that of the message. If not, its groups are not known.
    knows_body: bool,
    message: &'a Message<'a>,
    tags: &'a [u32],
    begins: &'a [u32],
    ends: &'a [u32],
    switches: Switches,
    /// The fields seen outside groups, by id.
    seen: [u64; WORDS],
    /// The number of required fields that were seen outside groups.
    required: usize,
    before: Before,
    first: Option<(Place, Fault)>,
}

impl<'a, const WORDS: usize> Pass<'a, WORDS> {
    #[inline]
    fn new(
        dictionary: &'a Dictionary,
        block: &'a Block,
        message: &'a Message<'a>,
        switches: Switches,
    ) -> Self {
        let (begins, ends) = message.spans();
        Self {
            dictionary,
            block,
            knows_body: true,
            message,
            tags: message.tags(),
            begins,
            ends,
            switches,
            seen: [0; WORDS],
            required: 0,
            before: Before::default(),
            first: None,
        }
    }

    #[inline]
    fn run(mut self) -> Result<(), Fault> {
        let mut section = Section::Header;
        let mut at = 0;
        while let Some(&tag) = self.tags.get(at) {
            let rule = self.dictionary.rule(tag);
            if rule.section < section {
                self.out_of_order(at);
            } else {
                section = rule.section;
            }
            at = self.field(at, tag, rule);
        }
        let tables = self.dictionary.tables();
        let all = tables.header.required_tags.len()
            + tables.trailer.required_tags.len()
            + self.block.required_tags.len();
        if self.required < all {
            self.required_missing();
        }
        self.first.map_or(Ok(()), |(_, fault)| Err(fault))
    }

    /// Checks the field at a position and, if it counts a group, the group. Returns the position
    /// after them.
    #[inline(always)]
    fn field(&mut self, at: usize, tag: u32, rule: &Rule) -> usize {
        if let Some(reason) = self.fault(at, tag, rule) {
            self.note_field(rule, at, reason);
        }
        if rule.is_count {
            self.counted(at, tag, rule)
        } else {
            at + 1
        }
    }

    /// Checks the entries after a field that counts a group in some message, and returns the
    /// position after them.
    fn counted(&mut self, at: usize, tag: u32, rule: &Rule) -> usize {
        let block = match rule.section {
            Section::Body => self.block,
            _ => &self.dictionary.tables().header,
        };
        match (block.group(tag), self.message.field(at)) {
            (Some(group), Some(field)) => self.group(&field, at, group, spot(&field, rule)),
            _ => at + 1,
        }
    }

    /// Returns the first fault of a field outside groups, and marks the field as seen.
    #[inline(always)]
    fn fault(&mut self, at: usize, tag: u32, rule: &Rule) -> Option<RejectReason> {
        if rule.id == 0 {
            return self.unknown_fault(at, tag, rule);
        }
        let membership = match rule.section {
            Section::Body => self.block.membership(rule.id),
            _ => rule.framing,
        };
        if self.mark(rule.id) && !self.may_repeat(rule) {
            // The entries of a group that comes twice are more than either count says.
            return Some(match rule.is_count && self.block.group(tag).is_some() {
                true => RejectReason::NumInGroup,
                false => RejectReason::TagAppearsTwice,
            });
        }
        self.required += usize::from(membership == Membership::Required);
        if let Some(reason) = self.value_fault(self.value(at), rule) {
            return Some(reason);
        }
        if membership == Membership::None && self.is_strict(tag) {
            return Some(RejectReason::TagNotDefinedForMessage);
        }
        None
    }

    /// Marks a field as seen, and returns whether it was seen before.
    #[inline(always)]
    fn mark(&mut self, id: u16) -> bool {
        let (word, bit) = Self::place(id);
        let was_seen = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        was_seen
    }

    /// Returns whether a field may be repeated, as it may belong to entries of a group.
    #[inline]
    fn may_repeat(&self, rule: &Rule) -> bool {
        !self.knows_body && rule.section == Section::Body
    }

    /// Returns the word and the bit of a field. Neighbouring fields, such as those of the header,
    /// have different words, so that setting a bit does not wait for the previous one.
    #[inline(always)]
    fn place(id: u16) -> (usize, u64) {
        let id = usize::from(id);
        (id % WORDS, 1 << (id / WORDS % 64))
    }

    /// Returns the first fault of a field that the dictionary does not know. Such fields have no
    /// bit. Earlier ones are searched for only if such fields are allowed, as otherwise the first
    /// of them is a fault already.
    fn unknown_fault(&mut self, at: usize, tag: u32, rule: &Rule) -> Option<RejectReason> {
        let is_strict = self.is_strict(tag);
        let before = self.tags.get(..at).unwrap_or_default();
        if !is_strict && !self.may_repeat(rule) && self.before.has(before, tag) {
            return Some(RejectReason::TagAppearsTwice);
        }
        if self.switches.fields_have_values && self.value(at).is_empty() {
            return Some(RejectReason::TagWithoutValue);
        }
        is_strict.then_some(RejectReason::InvalidTagNumber)
    }

    #[inline(always)]
    fn value(&self, at: usize) -> &'a [u8] {
        let (Some(&begin), Some(&end)) = (self.begins.get(at), self.ends.get(at)) else {
            return &[];
        };
        let value = self.message.bytes().get(begin as usize..end as usize);
        value.unwrap_or_default()
    }

    #[inline(always)]
    fn value_fault(&self, value: &[u8], rule: &Rule) -> Option<RejectReason> {
        if value.is_empty() {
            let is_fault = self.switches.fields_have_values;
            return is_fault.then_some(RejectReason::TagWithoutValue);
        }
        if !rule.kind.accepts(value) {
            // A list with a word too many or none is a list with an unknown word.
            return Some(match rule.kind.is_multiple() && rule.values != 0 {
                true => RejectReason::ValueIncorrect,
                false => RejectReason::DataFormat,
            });
        }
        if rule.values == 0 {
            return None;
        }
        let sets = &self.dictionary.tables().values;
        let set = sets.get(usize::from(rule.values) - 1)?;
        let is_known = match value {
            [byte] => set.has_byte(*byte),
            _ if rule.kind.is_multiple() => set.has_each(value),
            _ => set.has(value),
        };
        (!is_known).then_some(RejectReason::ValueIncorrect)
    }

    /// Returns whether a tag must be known and belong to the message.
    #[inline]
    fn is_strict(&self, tag: u32) -> bool {
        if tag >= tag::USER_TAGS {
            self.switches.user_defined_fields
        } else {
            tag == 0 || !self.switches.allow_unknown_fields
        }
    }

    #[cold]
    fn required_missing(&mut self) {
        let tables = self.dictionary.tables();
        for (section, block) in [
            (Section::Header, &tables.header),
            (Section::Body, self.block),
            (Section::Trailer, &tables.trailer),
        ] {
            for &tag in &block.required_tags {
                let (word, bit) = Self::place(self.dictionary.rule(tag).id);
                if self.seen[word] & bit == 0 {
                    let spot = (part(section), i64::from(tag));
                    self.note(Phase::Required, spot, 0, missing_tag(tag));
                }
            }
        }
    }

    #[cold]
    fn out_of_order(&mut self, at: usize) {
        let is_checked = self.switches.fields_out_of_order;
        if let Some(field) = self.message.field(at).filter(|_| is_checked) {
            let fault = fault(RejectReason::TagOutOfOrder, &field);
            self.note(Phase::Structure, (0, 0), at, fault);
        }
    }

    #[cold]
    fn note_field(&mut self, rule: &Rule, at: usize, reason: RejectReason) {
        if let Some(field) = self.message.field(at) {
            self.note(Phase::Field, spot(&field, rule), at, fault(reason, &field));
        }
    }

    #[cold]
    fn note(&mut self, phase: Phase, spot: Spot, at: usize, fault: Fault) {
        let place = (phase, spot, at);
        if self.first.is_none_or(|(first, _)| place < first) {
            self.first = Some((place, fault));
        }
    }
}

/// The search for a tag among those before it. Tags are compared one by one, and are gathered in a
/// set after many comparisons, so that the time for a message is linear in its length.
#[derive(Default)]
struct Before {
    compared: usize,
    /// The first tags of the message, as many as `gathered` says.
    set: Option<HashSet<u32>>,
    gathered: usize,
}

impl Before {
    /// The most comparisons for each tag before this one: more take longer than the set does. A
    /// message with no more unknown fields than that needs no set.
    const MOST_COMPARED: usize = 128;

    /// Returns whether `before`, the tags of the message up to this one, have the tag.
    fn has(&mut self, before: &[u32], tag: u32) -> bool {
        self.compared = self.compared.saturating_add(before.len());
        if self.compared <= before.len().saturating_mul(Self::MOST_COMPARED) {
            return before.contains(&tag);
        }
        let set = self.set.get_or_insert_default();
        set.extend(before.get(self.gathered..).unwrap_or_default());
        self.gathered = before.len();
        set.contains(&tag)
    }
}

/// Returns the position of a part of the message in the order of reports.
fn part(section: Section) -> u8 {
    match section {
        Section::Header => 0,
        Section::Trailer => 1,
        Section::Body => 2,
    }
}

fn spot(field: &Field<'_>, rule: &Rule) -> Spot {
    let order = match (rule.section, field.tag) {
        // The first three fields come first, CheckSum(10) last.
        (Section::Header, tag::BEGIN_STRING) => -3,
        (Section::Header, tag::BODY_LENGTH) => -2,
        (Section::Header, tag::MSG_TYPE) => -1,
        (Section::Trailer, tag::CHECK_SUM) => i64::MAX,
        _ => tag_number(field).unwrap_or(0),
    };
    (part(rule.section), order)
}

/// Returns the tag as it was received, 0 and negative numbers too, or `None` if it is no number.
fn tag_number(field: &Field<'_>) -> Option<i64> {
    match field.tag {
        0 => std::str::from_utf8(field.tag_bytes()).ok()?.parse().ok(),
        tag => Some(i64::from(tag)),
    }
}

fn fault(reason: RejectReason, field: &Field<'_>) -> Fault {
    let tag = tag_number(field);
    Fault {
        tag,
        ..Fault::new(reason, None)
    }
}

fn missing_tag(tag: u32) -> Fault {
    Fault::new(RejectReason::RequiredTagMissing, Some(tag))
}

fn parse_count(value: &[u8]) -> Option<u64> {
    fanfare_wire::int::parse_u64(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_found_among_those_before_it_however_many_they_are() {
        let tags: Vec<u32> = (0..3_000).map(|n| n * 7 % 2_500).collect();
        let mut search = Before::default();
        for (at, tag) in tags.iter().enumerate() {
            let before = &tags[..at];
            assert_eq!(search.has(before, *tag), before.contains(tag), "{at}");
        }
        assert!(search.set.is_some());
    }
}
