//! The validation of the entries of repeating groups, nested ones included.

use super::{Pass, Phase, Spot, fault, missing_tag, parse_count};
use crate::codec::Field;
use crate::dict::compile::{GroupRules, MAX_MEMBERS};
use crate::session::RejectReason;

/// The fields seen in a group's entry, by position among the members.
struct Entry {
    /// The index of its first field in the message.
    start: usize,
    seen: [u64; MAX_MEMBERS / 64],
    required: usize,
    /// The position after the last member seen.
    next: usize,
}

impl<const WORDS: usize> Pass<'_, WORDS> {
    /// Checks the entries of a group after its count field, and returns the position after them.
    pub(super) fn group(&mut self, count: &Field<'_>, at: usize, number: u32, spot: Spot) -> usize {
        let dictionary = self.dictionary;
        let Some(rules) = dictionary.tables().groups.get(number as usize) else {
            return at + 1;
        };
        let mut entries = 0;
        let mut entry = Entry::at(at);
        let mut next = at + 1;
        while let Some(&tag) = self.tags.get(next) {
            let Some(member) = entry.position(rules, tag) else {
                break;
            };
            let begins = entries == 0 || member == 0 || entry.has(member);
            if begins {
                self.entry_ends(&entry, rules, entries, spot);
                entry = Entry::at(next);
                entries += 1;
            }
            let is_unordered = if begins {
                member != 0
            } else {
                member < entry.next
            };
            entry.add(member, rules);
            next = self.member(next, is_unordered, rules, member, spot);
        }
        self.entry_ends(&entry, rules, entries, spot);
        // A count that is no number has been noted as such.
        if parse_count(count.value).is_some_and(|claimed| claimed != entries) {
            let fault = fault(RejectReason::NumInGroup, count);
            self.note(Phase::Field, spot, at, fault);
        }
        next
    }

    /// Checks a member of a group and, if it counts a nested group, that group. Returns the
    /// position after them.
    fn member(
        &mut self,
        at: usize,
        is_unordered: bool,
        rules: &GroupRules,
        member: usize,
        spot: Spot,
    ) -> usize {
        let Some(field) = self.message.field(at) else {
            return at + 1;
        };
        let rule = self.dictionary.rule(field.tag);
        let reason = if is_unordered && self.switches.unordered_group_fields {
            Some(RejectReason::GroupOutOfOrder)
        } else {
            self.value_fault(field.value, rule)
        };
        if let Some(reason) = reason {
            self.note(Phase::Field, spot, at, fault(reason, &field));
        }
        match rules.members.get(member).and_then(|member| member.group) {
            Some(nested) => self.group(&field, at, nested, spot),
            None => at + 1,
        }
    }

    /// Notes the first required member that an entry lacks.
    #[inline]
    fn entry_ends(&mut self, entry: &Entry, rules: &GroupRules, entries: u64, spot: Spot) {
        if entries == 0 || entry.required == rules.required {
            return;
        }
        let members = rules.members.iter().zip(&rules.tags).enumerate();
        let missing = members
            .filter(|(position, (member, _))| member.required && !entry.has(*position))
            .map(|(_, (_, tag))| *tag)
            .min();
        if let Some(tag) = missing {
            self.note(Phase::RequiredInGroup, spot, entry.start, missing_tag(tag));
        }
    }
}

impl Entry {
    /// Returns an entry that begins with the field at `start`, without members.
    fn at(start: usize) -> Self {
        Self {
            start,
            seen: [0; MAX_MEMBERS / 64],
            required: 0,
            next: 0,
        }
    }

    /// Returns the position of a tag among the members. The search begins after the last member
    /// seen.
    #[inline]
    fn position(&self, rules: &GroupRules, tag: u32) -> Option<usize> {
        let (before, behind) = rules.tags.split_at_checked(self.next)?;
        match behind.iter().position(|known| *known == tag) {
            Some(at) => Some(self.next + at),
            None => before.iter().position(|known| *known == tag),
        }
    }

    #[inline]
    fn has(&self, member: usize) -> bool {
        self.seen
            .get(member / 64)
            .is_some_and(|word| word >> (member % 64) & 1 == 1)
    }

    #[inline]
    fn add(&mut self, member: usize, rules: &GroupRules) {
        if let Some(word) = self.seen.get_mut(member / 64) {
            *word |= 1 << (member % 64);
        }
        let is_required = rules.members.get(member).is_some_and(|m| m.required);
        self.required += usize::from(is_required);
        self.next = member + 1;
    }
}
