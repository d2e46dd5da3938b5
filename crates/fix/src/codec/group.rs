//! Repeating groups.

use super::message::{FieldError, FieldErrorKind, FieldSet};
use super::tags;

/// What a repeating group consists of; a dictionary implements it, and so does
/// `(delimiter, &[member tags])`.
pub trait GroupSpec {
    /// The tag of the first field of each entry.
    fn delimiter(&self) -> u32;

    /// Whether a field with this tag may stand in an entry: direct members (the delimiter too) and
    /// those of groups nested in it, with their count fields.
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

/// The entries of a repeating group, in order; each is a [`FieldSet`] in which nested groups are
/// found in the same way.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a> {
    /// The fields behind the count field that belong to the entries still to come.
    rest: FieldSet<'a>,
    delimiter: u32,
    count: usize,
}

impl<'a> FieldSet<'a> {
    /// The repeating group with this count field, its entries divided by the field that follows
    /// the count (which the standard makes the first of each entry). The last entry reaches to the
    /// end of these fields, as nothing tells where it ends: see [`FieldSet::group_with`].
    ///
    /// # Errors
    /// The count is no number, or more or fewer entries follow. A group that is absent or has
    /// count 0 is empty.
    pub fn group(&self, count_tag: u32) -> Result<Group<'a>, FieldError> {
        Group::new(*self, count_tag, None)
    }

    /// The repeating group with this count field, defined by `spec`: a dictionary's definition, or
    /// `(delimiter, &[member tags])`.
    ///
    /// # Errors
    /// The count is no number, or more or fewer entries follow. A group that is absent or has
    /// count 0 is empty.
    pub fn group_with(
        &self,
        count_tag: u32,
        spec: &dyn GroupSpec,
    ) -> Result<Group<'a>, FieldError> {
        Group::new(*self, count_tag, Some(spec))
    }
}

impl<'a> Group<'a> {
    fn new(
        set: FieldSet<'a>,
        count_tag: u32,
        spec: Option<&dyn GroupSpec>,
    ) -> Result<Self, FieldError> {
        let none = Self {
            rest: set.slice(0, 0),
            delimiter: 0,
            count: 0,
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
        let delimiter = match spec {
            Some(spec) => spec.delimiter(),
            None => behind.tags().first().copied().unwrap_or(0),
        };
        let members = behind.tags().iter().take_while(|&&tag| match spec {
            Some(spec) => spec.contains(tag),
            None => !tags::is_trailer(tag),
        });
        let rest = behind.slice(0, members.count());
        if count == 0 {
            // Without a definition, any field may follow; with one, no member may.
            let empty = spec.is_none() || rest.is_empty();
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
        })
    }

    /// The tag that begins each entry; 0 if there is no entry.
    pub fn delimiter(&self) -> u32 {
        self.delimiter
    }
}

impl<'a> Iterator for Group<'a> {
    type Item = FieldSet<'a>;

    fn next(&mut self) -> Option<FieldSet<'a>> {
        self.count = self.count.checked_sub(1)?;
        let behind = self.rest.tags().iter().skip(1);
        let len = behind.take_while(|&&tag| tag != self.delimiter).count() + 1;
        let entry = self.rest.slice(0, len);
        self.rest = self.rest.slice(len, self.rest.len());
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Group<'_> {}
