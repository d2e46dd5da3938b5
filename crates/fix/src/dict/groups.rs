//! The repeating groups of a dictionary, for lookups in messages.

use super::compile::{Block, GroupRules, Section};
use super::dictionary::Dictionary;
use crate::codec::Groups;

/// The bit that is set in the level of a group's entries, whose other bits are the group's number.
/// It is not set in the level of a message, which is the message's position.
const ENTRIES: u32 = 1 << 31;

impl Dictionary {
    fn rules(&self, entries: u32) -> Option<&GroupRules> {
        self.tables().groups.get((entries & !ENTRIES) as usize)
    }

    /// Returns the number of the group that a field counts in a message, or in its header.
    fn counted(&self, block: &Block, tag: u32) -> Option<u32> {
        match self.rule(tag).section {
            Section::Body => block.group(tag),
            _ => self.tables().header.group(tag),
        }
    }
}

impl Groups for Dictionary {
    fn level(&self, msg_type: &[u8]) -> Option<u32> {
        let position = self.tables().messages.position(msg_type)?;
        u32::try_from(position).ok()
    }

    fn first(&self, level: u32, tags: &[u32]) -> usize {
        let counts = |tag: &u32| self.rule(*tag).is_count && self.entries(level, *tag).is_some();
        tags.iter().position(counts).unwrap_or(tags.len())
    }

    fn entries(&self, level: u32, count_tag: u32) -> Option<u32> {
        let number = if level & ENTRIES == 0 {
            let block = self.tables().messages.at(level as usize)?;
            self.counted(block, count_tag)?
        } else {
            let rules = self.rules(level)?;
            let at = rules.tags.iter().position(|tag| *tag == count_tag)?;
            rules.members.get(at)?.group?
        };
        Some(number | ENTRIES)
    }

    fn delimiter(&self, entries: u32) -> u32 {
        let rules = self.rules(entries);
        rules
            .and_then(|rules| rules.tags.first().copied())
            .unwrap_or(0)
    }

    fn extent(&self, entries: u32, tags: &[u32]) -> usize {
        let Some(rules) = self.rules(entries) else {
            return 0;
        };
        let is_member = |tag: &&u32| rules.all.binary_search(*tag).is_ok();
        tags.iter().take_while(is_member).count()
    }
}
