//! Tables of the repeating groups of generated messages.

use crate::codec;

/// The repeating groups of generated messages, as a `static` of each generated module.
#[derive(Debug)]
pub struct Groups {
    /// The MsgTypes, ascending, with the numbers of their levels.
    pub messages: &'static [(&'static [u8], u32)],
    /// The levels of messages and entries.
    pub levels: &'static [Level],
}

/// One level of [`Groups`]: the fields of a message outside groups, or those of an entry.
#[derive(Debug)]
pub struct Level {
    delimiter: u32,
    /// The count fields with the levels of their entries, ascending.
    counts: &'static [(u32, u32)],
    /// A set with one bit for each remainder of a count field's tag by 64.
    filter: u64,
    /// The tags of an entry, those of its groups included, ascending.
    members: &'static [u32],
    /// The same tags as bits, for tags below 64 times the length of `set`.
    set: &'static [u64],
}

impl Level {
    /// Returns a level. `counts` and `members` must ascend, and `set` must be [`tag_set`] of
    /// `members`. A message has neither a delimiter nor members.
    pub const fn new(
        delimiter: u32,
        counts: &'static [(u32, u32)],
        members: &'static [u32],
        set: &'static [u64],
    ) -> Self {
        let mut filter = 0;
        let mut rest = counts;
        while let [(tag, _), behind @ ..] = rest {
            filter |= 1 << (*tag % 64);
            rest = behind;
        }
        Self {
            delimiter,
            counts,
            filter,
            members,
            set,
        }
    }

    #[inline]
    fn entries(&self, count_tag: u32) -> Option<u32> {
        if self.filter >> (count_tag % 64) & 1 == 0 {
            return None;
        }
        let at = self
            .counts
            .binary_search_by_key(&count_tag, |count| count.0);
        at.ok()
            .and_then(|at| self.counts.get(at))
            .map(|count| count.1)
    }

    #[inline]
    pub(super) fn has(&self, tag: u32) -> bool {
        match self.set.get(tag as usize / 64) {
            Some(word) => word >> (tag % 64) & 1 == 1,
            None => self.members.binary_search(&tag).is_ok(),
        }
    }
}

/// Returns the tags below `64 * WORDS` as a set of bits.
pub const fn tag_set<const WORDS: usize>(tags: &[u32]) -> [u64; WORDS] {
    let mut set = [0; WORDS];
    let mut rest = tags;
    while let [tag, behind @ ..] = rest {
        let word = *tag as usize / 64;
        if word < WORDS {
            set[word] |= 1 << (*tag % 64);
        }
        rest = behind;
    }
    set
}

impl Groups {
    #[inline]
    pub(super) fn at(&self, level: u32) -> Option<&Level> {
        self.levels.get(level as usize)
    }
}

impl codec::Groups for Groups {
    fn level(&self, msg_type: &[u8]) -> Option<u32> {
        let at = self
            .messages
            .binary_search_by_key(&msg_type, |known| known.0);
        self.messages.get(at.ok()?).map(|known| known.1)
    }

    fn first(&self, level: u32, tags: &[u32]) -> usize {
        let level = self.at(level);
        let found = level.and_then(|level| {
            let counts = |tag: &u32| level.entries(*tag).is_some();
            tags.iter().position(counts)
        });
        found.unwrap_or(tags.len())
    }

    fn entries(&self, level: u32, count_tag: u32) -> Option<u32> {
        self.at(level)?.entries(count_tag)
    }

    fn delimiter(&self, entries: u32) -> u32 {
        self.at(entries).map_or(0, |level| level.delimiter)
    }

    fn extent(&self, entries: u32, tags: &[u32]) -> usize {
        let level = self.at(entries);
        level.map_or(0, |level| {
            tags.iter().take_while(|tag| level.has(**tag)).count()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Groups as _;

    static GROUPS: Groups = Groups {
        messages: &[(b"8", 2), (b"D", 0)],
        levels: &[
            Level::new(0, &[(78, 1), (20_078, 1)], &[], &[]),
            Level::new(79, &[], &[79, 80, 20_080], &tag_set::<2>(&[79, 80, 20_080])),
            Level::new(0, &[], &[], &[]),
        ],
    };

    #[test]
    fn tables_answer_as_a_dictionary_does() {
        let levels = [&b"D"[..], b"8", b"9"].map(|msg_type| GROUPS.level(msg_type));
        assert_eq!(levels, [Some(0), Some(2), None]);
        // 14 has the bit of 78.
        assert_eq!(GROUPS.first(0, &[14, 20_078, 79]), 1);
        assert_eq!(GROUPS.first(1, &[78]), 1);
        assert_eq!(GROUPS.entries(0, 78), Some(1));
        assert_eq!(GROUPS.entries(0, 142), None);
        assert_eq!((GROUPS.delimiter(1), GROUPS.delimiter(7)), (79, 0));
        assert_eq!(GROUPS.extent(1, &[79, 80, 20_080, 79, 20_081]), 4);
    }
}
