//! Data fields, whose lengths are in the fields before them.

use fanfare_wire::fields::SOH;
use fanfare_wire::int;

/// The data field that the last field announces, and the length of its value, which may contain
/// separators. Only data fields of the header and those that can be secrets are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Announced(Option<(u32, usize)>);

impl Announced {
    /// Returns what the field with this tag and value announces.
    pub(crate) fn by(tag: u32, value: &[u8]) -> Self {
        let data = match tag {
            90 => 91,
            95 => 96,
            212 => 213,
            1401 => 1402,
            1403 => 1404,
            _ => return Self(None),
        };
        let len = int::parse_u64(value).and_then(|len| usize::try_from(len).ok());
        Self(len.map(|len| (data, len)))
    }

    /// Returns the length of the value at the front of `bytes` if its field, with this tag, is the
    /// announced one and a separator follows. Any other value ends at the next separator.
    pub(crate) fn len_of(self, tag: u32, bytes: &[u8]) -> Option<usize> {
        let (data, len) = self.0?;
        (tag == data && bytes.get(len) == Some(&SOH)).then_some(len)
    }
}
