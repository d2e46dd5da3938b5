//! The fields that one level of a message may have, for programs that write messages by a
//! dictionary.

use super::compile::{Block, GroupRules, Membership, Section};
use super::dictionary::Dictionary;

/// A level of a message: its body, or an entry of a repeating group.
///
/// ```
/// use fanfare_fix::dict::{Dictionary, Version};
///
/// let dictionary = Dictionary::built_in(Version::Fix42);
/// let body = dictionary.body(b"W").unwrap();
/// assert_eq!(body.required().collect::<Vec<_>>(), [55, 268]);
/// let entry = body.group(268).unwrap();
/// assert_eq!(entry.position(269), Some(0), "the delimiter");
/// assert!(entry.position(270) < entry.position(271));
/// assert!(!body.has(270) && !entry.has(1023));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    dictionary: &'a Dictionary,
    level: Level<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Level<'a> {
    Body(&'a Block),
    Entry(&'a GroupRules),
}

impl Dictionary {
    /// Returns the level of the fields between header and trailer of a message, or `None` if the
    /// dictionary does not know the MsgType(35).
    pub fn body(&self, msg_type: &[u8]) -> Option<Layout<'_>> {
        Some(Layout {
            dictionary: self,
            level: Level::Body(self.block(msg_type)?),
        })
    }

    /// Returns whether validation accepts `value` in a field that belongs to its message. The value
    /// must have the format of the field's type and, if the field has a list of values, be in it. A
    /// field that the dictionary does not know takes any value. An empty value never fits. The call
    /// does not allocate.
    pub fn fits(&self, tag: u32, value: &[u8]) -> bool {
        let rule = self.rule(tag);
        if value.is_empty() || rule.id != 0 && !rule.kind.accepts(value) {
            return false;
        }
        let sets = &self.tables().values;
        let set = usize::from(rule.values).checked_sub(1);
        match set.and_then(|at| sets.get(at)) {
            Some(set) if rule.kind.is_multiple() => set.has_each(value),
            Some(set) => set.has(value),
            None => true,
        }
    }

    /// Returns whether the dictionary has a list of values for the field.
    pub fn has_listed_values(&self, tag: u32) -> bool {
        self.rule(tag).values != 0
    }
}

impl<'a> Layout<'a> {
    /// Returns the place of a field in the order of its level, or `None` if the field does not
    /// belong to the level. The delimiter of an entry has place 0. The fields of a body have no
    /// order, and all have place 0.
    pub fn position(&self, tag: u32) -> Option<usize> {
        match self.level {
            Level::Body(block) => {
                let rule = self.dictionary.rule(tag);
                let belongs = rule.id != 0
                    && rule.section == Section::Body
                    && block.membership(rule.id) != Membership::None;
                belongs.then_some(0)
            }
            Level::Entry(rules) => rules.tags.iter().position(|known| *known == tag),
        }
    }

    /// Returns whether the field belongs to the level.
    pub fn has(&self, tag: u32) -> bool {
        self.position(tag).is_some()
    }

    /// Returns the required fields, in the order of the level. The delimiter of an entry is always
    /// one of them.
    pub fn required(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (body, entry) = match self.level {
            Level::Body(block) => (&block.required_tags[..], None),
            Level::Entry(rules) => (&[][..], Some(rules)),
        };
        let members = entry.into_iter().flat_map(|rules| {
            let members = rules.members.iter().zip(&rules.tags).enumerate();
            members.filter(|(at, (member, _))| *at == 0 || member.required)
        });
        let body = body.iter().copied();
        body.chain(members.map(|(_, (_, tag))| *tag))
    }

    /// Returns the level of the entries that a field of this level counts.
    pub fn group(&self, count_tag: u32) -> Option<Self> {
        let number = match self.level {
            Level::Body(block) => block.group(count_tag)?,
            Level::Entry(rules) => rules.members.get(self.position(count_tag)?)?.group?,
        };
        let groups = &self.dictionary.tables().groups;
        Some(Self {
            dictionary: self.dictionary,
            level: Level::Entry(groups.get(number as usize)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Version;
    use super::*;

    #[test]
    fn bodies_and_entries_have_what_the_standard_gives_them() {
        let dictionary = Dictionary::built_in(Version::Fix50Sp2);
        let body = dictionary.body(b"X").unwrap();
        assert!(body.has(1181) && body.has(268) && !body.has(34) && !body.has(270));
        assert_eq!(body.required().collect::<Vec<_>>(), [268]);
        let entry = body.group(268).unwrap();
        assert_eq!(entry.required().collect::<Vec<_>>(), [279]);
        assert!(entry.position(264) < entry.position(269));
        assert!(entry.group(453).unwrap().has(448));
        assert!(entry.group(270).is_none() && dictionary.body(b"?").is_none());
        // The delimiter of FIX.4.4's security alternative identifiers is not marked as required.
        let four = Dictionary::built_in(Version::Fix44);
        let parties = four.body(b"D").unwrap().group(453).unwrap();
        assert_eq!(parties.required().next(), Some(448));
    }

    #[test]
    fn values_fit_as_validation_sees_them() {
        let dictionary = Dictionary::built_in(Version::Fix44);
        for (tag, value, fits) in [
            (54, "1", true),
            (54, "12", false),
            (54, "?", false),
            (273, "14:24:12.406", true),
            (273, "142412406", false),
            (277, "A B", true),
            (277, "A ?", false),
            (270, "1.5", true),
            (270, "x", false),
            (55, "", false),
            (5842, "4349", true),
        ] {
            assert_eq!(
                dictionary.fits(tag, value.as_bytes()),
                fits,
                "{tag}={value}"
            );
        }
        assert!(dictionary.has_listed_values(54) && !dictionary.has_listed_values(270));
    }
}
