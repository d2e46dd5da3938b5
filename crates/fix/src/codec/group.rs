//! Repeating groups.

use super::groups::Groups;
use super::message::{FieldError, FieldErrorKind, FieldSet};
use crate::tag;
use core::fmt;

/// The definition of a repeating group. A dictionary implements it, and so does `(delimiter,
/// &[member tags])`.
pub trait GroupSpec {
    /// Returns the tag of the first field of each entry.
    fn delimiter(&self) -> u32;

    /// Returns whether a field with this tag may belong to an entry. The members are the direct
    /// ones, the delimiter included, and those of nested groups with their count fields.
    fn contains(&self, tag: u32) -> bool;
}

impl GroupSpec for (u32, &[u32]) {
    fn delimiter(&self) -> u32 {
        self.0
    }

    fn contains(&self, tag: u32) -> bool {
        tag == self.0 || self.1.contains(&tag)
    }
}

/// An iterator over the entries of a repeating group, in order. Each entry is a [`FieldSet`], in
/// which nested groups are found in the same way.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The fields of the entries that are still to come.
    rest: FieldSet<'a>,
    delimiter: u32,
    count: usize,
    /// The groups and the level of the entries, where the groups are known.
    level: Option<Level<'a>>,
}

#[derive(Clone, Copy)]
struct Level<'a> {
    groups: &'a dyn Groups,
    number: u32,
}

impl fmt::Debug for Level<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number.fmt(f)
    }
}

/// The definition by which fields belong to a group.
enum Members<'a, 's> {
    /// The known groups.
    Known(Level<'a>),
    /// The definition of the caller.
    Spec(&'s dyn GroupSpec),
    /// No definition. All fields up to the trailer belong to the group.
    Unknown,
}

impl Members<'_, '_> {
    /// Returns the delimiter, and how many of `tags` belong to the group.
    fn of(&self, tags: &[u32]) -> (u32, usize) {
        let count = |is_member: &dyn Fn(u32) -> bool| {
            let members = tags.iter().take_while(|&&tag| is_member(tag));
            members.count()
        };
        match self {
            Self::Known(Level { groups, number }) => {
                (groups.delimiter(*number), groups.extent(*number, tags))
            }
            Self::Spec(spec) => (spec.delimiter(), count(&|tag| spec.contains(tag))),
            Self::Unknown => {
                let first = tags.first().copied().unwrap_or(0);
                (first, count(&|tag| !tag::is_trailer(tag)))
            }
        }
    }
}

impl<'a> FieldSet<'a> {
    /// Returns the repeating group with this count field.
    ///
    /// Where the groups are known ([`Message::with_groups`](super::Message::with_groups)), the
    /// entries are those of the definition. Elsewhere, and for a field that counts no known group,
    /// the field that follows the count divides the entries, as the standard makes it the first
    /// field of each entry. The last entry then reaches to the end of these fields: see
    /// [`FieldSet::group_with`].
    ///
    /// # Errors
    /// Returns an error if the count is no number, or if more or fewer entries follow. A group that
    /// is absent or has count 0 is empty.
    #[inline]
    pub fn group(&self, count_tag: u32) -> Result<Group<'a>, FieldError> {
        let known = self.known();
        let level = known.and_then(|known| {
            let number = known.entries(count_tag)?;
            let groups = known.groups();
            Some(Level { groups, number })
        });
        let members = level.map_or(Members::Unknown, Members::Known);
        Group::new(*self, count_tag, &members)
    }

    /// Returns the repeating group with this count field, defined by `spec`: the definition of a
    /// dictionary, or `(delimiter, &[member tags])`. The groups of its entries are not known.
    ///
    /// # Errors
    /// Returns an error if the count is no number, or if more or fewer entries follow. A group that
    /// is absent or has count 0 is empty.
    pub fn group_with(
        &self,
        count_tag: u32,
        spec: &dyn GroupSpec,
    ) -> Result<Group<'a>, FieldError> {
        Group::new(*self, count_tag, &Members::Spec(spec))
    }
}

impl<'a> Group<'a> {
    fn new(
        set: FieldSet<'a>,
        count_tag: u32,
        members: &Members<'a, '_>,
    ) -> Result<Self, FieldError> {
        let none = Self {
            rest: set.slice(0, 0),
            delimiter: 0,
            count: 0,
            level: None,
        };
        let Some(position) = set.position(count_tag) else {
            return Ok(none);
        };
        let offset = set.field(position).map_or(0, |field| field.offset);
        let mismatch = FieldError {
            tag: count_tag,
            offset,
            kind: FieldErrorKind::GroupCount,
        };
        let count = set.u64(count_tag)?;
        let behind = set.slice(position + 1, set.len());
        let (delimiter, len) = members.of(behind.tags());
        let rest = behind.slice(0, len);
        if count == 0 {
            // Without a definition, any field may follow; with one, no member may.
            let empty = matches!(members, Members::Unknown) || rest.is_empty();
            return if empty { Ok(none) } else { Err(mismatch) };
        }
        let starts_right = rest.tags().first() == Some(&delimiter) && delimiter != 0;
        let entries = rest.tags().iter().filter(|&&tag| tag == delimiter).count();
        if !starts_right || u64::try_from(entries) != Ok(count) {
            return Err(mismatch);
        }
        Ok(Self {
            rest,
            delimiter,
            count: entries,
            level: match members {
                Members::Known(level) => Some(*level),
                _ => None,
            },
        })
    }

    /// Returns the tag that begins each entry, or 0 if there is no entry.
    pub fn delimiter(&self) -> u32 {
        self.delimiter
    }
}

impl<'a> Iterator for Group<'a> {
    type Item = FieldSet<'a>;

    #[inline]
    fn next(&mut self) -> Option<FieldSet<'a>> {
        self.count = self.count.checked_sub(1)?;
        let behind = self.rest.tags().iter().skip(1);
        let len = behind.take_while(|&&tag| tag != self.delimiter).count() + 1;
        let entry = self.rest.slice(0, len);
        self.rest = self.rest.slice(len, self.rest.len());
        Some(match self.level {
            Some(Level { groups, number }) => entry.at_level(groups, number),
            None => entry,
        })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Group<'_> {}
