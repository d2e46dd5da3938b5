//! Known groups, and lookups by tag outside them.

/// The repeating groups of all messages, as a dictionary or generated code knows them; see
/// [`Message::with_groups`](super::Message::with_groups).
///
/// A level is the set of a message's own fields, or of those of an entry of a group. The
/// implementation chooses the number of a level. None of the functions allocates.
pub trait Groups: Sync {
    /// Returns the level of a message's own fields, with those of header and trailer, or `None` if
    /// the MsgType(35) is not known.
    fn level(&self, msg_type: &[u8]) -> Option<u32>;

    /// Returns the position of the first of `tags` that counts a group of the level, or the number
    /// of tags if none does.
    fn first(&self, level: u32, tags: &[u32]) -> usize;

    /// Returns the level of the entries that a field counts, or `None` if it counts no group of the
    /// level.
    fn entries(&self, level: u32, count_tag: u32) -> Option<u32>;

    /// Returns the tag of the first field of each entry.
    fn delimiter(&self, entries: u32) -> u32;

    /// Returns how many of `tags`, from the first on, belong to entries of this level or to groups
    /// in them.
    fn extent(&self, entries: u32, tags: &[u32]) -> usize;
}

/// The groups of a set of fields.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    groups: &'a dyn Groups,
    level: u32,
    /// The number of fields before the first group.
    flat: u32,
}

impl<'a> Known<'a> {
    #[inline]
    pub(super) fn new(groups: &'a dyn Groups, level: u32, tags: &[u32]) -> Self {
        Self {
            groups,
            level,
            flat: groups.first(level, tags) as u32,
        }
    }

    pub(super) fn groups(&self) -> &'a dyn Groups {
        self.groups
    }

    /// Returns the level of the entries that a field counts.
    pub(super) fn entries(&self, count_tag: u32) -> Option<u32> {
        self.groups.entries(self.level, count_tag)
    }

    /// Returns the position of the first field with this tag that is in no group.
    #[inline]
    pub(super) fn position(&self, tags: &[u32], tag: u32) -> Option<usize> {
        let flat = tags.get(..self.flat as usize).unwrap_or(tags);
        let found = flat.iter().position(|&other| other == tag);
        match found {
            None if flat.len() < tags.len() => self.behind(tags, tag, flat.len()),
            found => found,
        }
    }

    /// Returns the position of the first field with this tag outside groups. The search begins at
    /// `at`, where a field counts a group.
    fn behind(&self, tags: &[u32], tag: u32, mut at: usize) -> Option<usize> {
        while let Some((&count_tag, rest)) = tags.get(at..)?.split_first() {
            if count_tag == tag {
                return Some(at);
            }
            let entries = self.entries(count_tag);
            let members = entries.map_or(0, |entries| self.groups.extent(entries, rest));
            let rest = rest.get(members..)?;
            let flat = rest.get(..self.groups.first(self.level, rest))?;
            at += 1 + members;
            if let Some(found) = flat.iter().position(|&other| other == tag) {
                return Some(at + found);
            }
            at += flat.len();
        }
        None
    }
}
