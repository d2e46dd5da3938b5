//! A zero-copy view of one message.

use super::groups::{Groups, Known};
use super::{overwrite_secrets, secrets};
use crate::tag;
use core::fmt;
use core::ops::Deref;
use fanfare_wire::{Decimal, FieldIndex, UtcTimestamp, int};

/// One whole message in the bytes it was received in, with all its fields indexed.
///
/// Access by tag and by position, typed values and repeating groups come from [`FieldSet`], to
/// which a message dereferences.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    fields: FieldSet<'a>,
}

/// A run of consecutive fields: a whole message, or one entry of a repeating group.
///
/// Where the groups are known ([`Message::with_groups`]), a lookup by tag finds the set's own
/// fields alone. Elsewhere it finds the first field with the tag, which may belong to an entry of a
/// group.
#[derive(Clone, Copy)]
pub struct FieldSet<'a> {
    bytes: &'a [u8],
    index: &'a FieldIndex,
    from: usize,
    to: usize,
    known: Option<Known<'a>>,
}

/// One field of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// The tag number; 0 if the tag is not a number from 1 to 999,999,999 (see
    /// [`Field::tag_bytes`]).
    pub tag: u32,
    /// The bytes between `=` and the separator.
    pub value: &'a [u8],
    /// Offset of the tag's first byte in the message.
    pub offset: u32,
    tag_bytes: &'a [u8],
}

/// The reason why a field has no value of the type that the caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tag {tag} {kind} (at offset {offset})")]
pub struct FieldError {
    /// The tag that was asked for.
    pub tag: u32,
    /// The offset of the field in the message, or, if the field is missing, of the end of the
    /// fields searched.
    pub offset: u32,
    /// The kind of fault.
    pub kind: FieldErrorKind,
}

/// The kind of fault of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FieldErrorKind {
    /// The field is missing.
    #[error("is missing")]
    Missing,
    /// The field has no value.
    #[error("has no value")]
    Empty,
    /// The value is not of the type.
    #[error("has a value of the wrong format")]
    Format,
    /// The value is a number that is too large.
    #[error("has a value out of range")]
    Range,
    /// The value is not in the list of the field's values.
    #[error("has a value that is not in its list")]
    Unlisted,
    /// A repeating group has more or fewer entries than its count says.
    #[error("does not match the number of entries of its group")]
    GroupCount,
}

impl<'a> Message<'a> {
    /// Returns a view of `bytes`, which are one whole message. `index` is the index of all its
    /// fields: the first are BeginString(8), BodyLength(9) and MsgType(35), the last is
    /// CheckSum(10).
    pub(crate) fn new(bytes: &'a [u8], index: &'a FieldIndex) -> Self {
        Self {
            fields: FieldSet {
                bytes,
                index,
                from: 0,
                to: index.len(),
                known: None,
            },
        }
    }

    /// Returns the message with its repeating groups as `groups` defines them. Every lookup by tag
    /// then finds fields outside groups, and [`FieldSet::group`] ends where its last entry ends.
    /// The message is unchanged if `groups` does not know the MsgType(35). The call walks once over
    /// the tags up to the first group, and does not allocate.
    ///
    /// ```
    /// use fanfare_fix::codec::{Decoder, Encoder};
    /// use fanfare_fix::dict::{Dictionary, Version};
    /// use fanfare_fix::{msg_type, tag, values::side};
    ///
    /// let mut room = [0; 256];
    /// let mut list = Encoder::new(&mut room, b"FIX.4.4", msg_type::NEW_ORDER_LIST);
    /// list.u64(tag::NO_ORDERS, 1).str(tag::CL_ORD_ID, "A").char(tag::SIDE, side::BUY);
    /// list.str(tag::LIST_ID, "L");
    /// let range = list.finish()?;
    /// let mut decoder = Decoder::new();
    /// let list = decoder.decode(&room[range]).unwrap();
    /// assert_eq!(list.char(tag::SIDE), Ok(side::BUY), "the first order's");
    ///
    /// let dictionary = Dictionary::built_in(Version::Fix44);
    /// let list = list.with_groups(&*dictionary);
    /// assert_eq!((list.get(tag::SIDE), list.str(tag::LIST_ID)), (None, Ok("L")));
    /// let order = list.group(tag::NO_ORDERS).unwrap().next().unwrap();
    /// assert_eq!((order.char(tag::SIDE), order.get(tag::LIST_ID)), (Ok(side::BUY), None));
    /// # Ok::<(), fanfare_fix::codec::EncodeError>(())
    /// ```
    #[inline]
    pub fn with_groups(mut self, groups: &'a dyn Groups) -> Self {
        let tags = self.fields.tags();
        let level = groups.level(self.msg_type());
        self.fields.known = level.map(|level| Known::new(groups, level, tags));
        self
    }

    /// Returns the whole message, from `8=` to the last separator.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.fields.bytes
    }

    /// Returns the tags of the first `N` fields, and where their values begin and end, or `None` if
    /// there are fewer.
    #[inline]
    pub(crate) fn front<const N: usize>(&self) -> Option<[&'a [u32; N]; 3]> {
        self.fields.index.front()
    }

    /// Returns the message with its [`secrets()`] overwritten by `*`, for display: CheckSum(10)
    /// stays as it was received. A message without secrets is returned unchanged. Any other message
    /// is copied to `room`, which allocates if it is too small.
    pub fn masked<'r>(&self, room: &'r mut Vec<u8>) -> Message<'r>
    where
        'a: 'r,
    {
        if secrets(self.bytes()).next().is_none() {
            return *self;
        }
        room.clear();
        room.extend_from_slice(self.bytes());
        overwrite_secrets(room);
        Message {
            fields: FieldSet {
                bytes: room,
                ..self.fields
            },
        }
    }

    /// Returns BeginString(8).
    #[inline]
    pub fn begin_string(&self) -> &'a [u8] {
        self.fields.value(0).unwrap_or_default()
    }

    /// Returns MsgType(35).
    #[inline]
    pub fn msg_type(&self) -> &'a [u8] {
        self.fields.value(2).unwrap_or_default()
    }

    /// Returns the fields between the standard header and the trailer, as they were received. The
    /// body begins with the first field that is no header field, and ends before
    /// SignatureLength(93), Signature(89) or CheckSum(10) at the end. A user-defined field (tags
    /// from 5000 on) in front of a field of the standard header belongs to the header, too.
    pub fn body(&self) -> &'a [u8] {
        let set = &self.fields;
        let tags = set.index.tags();
        let lead = tags.get(..self.lead_len()).unwrap_or_default();
        let first = lead
            .iter()
            .rposition(|&tag| tag::is_header(tag))
            .map_or(0, |last| last + 1);
        let trailer = tags
            .iter()
            .rev()
            .take_while(|&&tag| tag::is_trailer(tag))
            .count();
        let last = tags.len().saturating_sub(trailer);
        if first >= last {
            return &[];
        }
        set.bytes
            .get(set.offset(first)..set.offset(last))
            .unwrap_or_default()
    }

    /// Returns the number of fields in front of the first one that only a body may have.
    /// User-defined fields may belong to the header, too.
    pub(crate) fn lead_len(&self) -> usize {
        let tags = self.tags();
        let is_of_body = |&tag: &u32| !tag::is_header(tag) && tag < tag::USER_TAGS;
        tags.iter().position(is_of_body).unwrap_or(tags.len())
    }
}

impl<'a> Deref for Message<'a> {
    type Target = FieldSet<'a>;

    #[inline]
    fn deref(&self) -> &FieldSet<'a> {
        &self.fields
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields.fmt(f)
    }
}

impl<'a> FieldSet<'a> {
    /// Returns the number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.to - self.from
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tag numbers in order. A tag that is no number is 0.
    #[inline]
    pub fn tags(&self) -> &'a [u32] {
        self.index
            .tags()
            .get(self.from..self.to)
            .unwrap_or_default()
    }

    /// Returns the field at a position, counted from 0, or `None` after the last one.
    #[inline]
    pub fn field(&self, position: usize) -> Option<Field<'a>> {
        let at = self.from + position;
        if at >= self.to {
            return None;
        }
        let offset = self.offset(at);
        let begin = *self.index.begins().get(at)? as usize;
        Some(Field {
            tag: *self.index.tags().get(at)?,
            value: self.value(position)?,
            offset: offset as u32,
            tag_bytes: self.bytes.get(offset..begin.checked_sub(1)?)?,
        })
    }

    /// Returns the field at a position, counted from 0, with tag, `=`, value and separator as they
    /// were received. [`FieldWriter::raw`](super::FieldWriter::raw) passes such fields on.
    #[inline]
    pub fn encoded(&self, position: usize) -> Option<&'a [u8]> {
        let at = self.from + position;
        if at >= self.to {
            return None;
        }
        let end = *self.index.ends().get(at)? as usize + 1;
        self.bytes.get(self.offset(at)..end)
    }

    /// Returns all fields in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Field<'a>> + use<'a> {
        let set = *self;
        (0..set.len()).map(move |position| set.field(position).unwrap_or(NO_FIELD))
    }

    /// Returns the position of the first field with this tag. Without known groups
    /// ([`Message::with_groups`]) the field may belong to an entry of a group.
    #[inline]
    pub fn position(&self, tag: u32) -> Option<usize> {
        match &self.known {
            None => self.tags().iter().position(|&other| other == tag),
            Some(known) => known.position(self.tags(), tag),
        }
    }

    /// Returns the value of the first field with this tag. Without known groups
    /// ([`Message::with_groups`]) the field may belong to an entry of a group.
    #[inline]
    pub fn get(&self, tag: u32) -> Option<&'a [u8]> {
        self.value(self.position(tag)?)
    }

    /// Returns the first field with this tag. Without known groups ([`Message::with_groups`]) the
    /// field may belong to an entry of a group.
    #[inline]
    pub fn find(&self, tag: u32) -> Option<Field<'a>> {
        self.field(self.position(tag)?)
    }

    /// Returns the groups of these fields, or `None` if they are not known.
    #[inline]
    pub(super) fn known(&self) -> Option<&Known<'a>> {
        self.known.as_ref()
    }

    /// Returns these fields with the groups of a level as the known ones.
    #[inline]
    pub(crate) fn at_level(mut self, groups: &'a dyn Groups, level: u32) -> Self {
        self.known = Some(Known::new(groups, level, self.tags()));
        self
    }

    /// Returns the fields from one position to another, without known groups.
    #[inline]
    pub(crate) fn slice(&self, from: usize, to: usize) -> Self {
        let to = (self.from + to).min(self.to);
        Self {
            from: (self.from + from).min(to),
            to,
            known: None,
            ..*self
        }
    }

    /// Returns the offset of the first byte after these fields.
    pub(crate) fn end_offset(&self) -> u32 {
        self.offset(self.to) as u32
    }

    /// Returns the offset of the tag of field `at` of the whole message, or the length of the
    /// message after the last field.
    #[inline]
    fn offset(&self, at: usize) -> usize {
        match at
            .checked_sub(1)
            .and_then(|before| self.index.ends().get(before))
        {
            Some(&end) => end as usize + 1,
            None => 0,
        }
    }

    /// Returns the offsets at which the values begin and end in [`Message::bytes`], in the order of
    /// [`FieldSet::tags`].
    #[inline]
    pub(crate) fn spans(&self) -> (&'a [u32], &'a [u32]) {
        let range = self.from..self.to;
        let begins = self.index.begins().get(range.clone());
        let ends = self.index.ends().get(range);
        (begins.unwrap_or_default(), ends.unwrap_or_default())
    }

    /// Returns the value of the field at a position, counted from 0.
    #[inline]
    pub(crate) fn value(&self, position: usize) -> Option<&'a [u8]> {
        let (begin, end) = self.index.span(self.from + position)?;
        self.bytes.get(begin as usize..end as usize)
    }

    /// Returns the value of the first field with this tag as `parse` reads it, or `None` if there
    /// is no such field.
    #[inline]
    pub(crate) fn typed<T>(
        &self,
        tag: u32,
        parse: impl FnOnce(&'a [u8]) -> Result<T, FieldErrorKind>,
    ) -> Result<Option<T>, FieldError> {
        let Some(position) = self.position(tag) else {
            return Ok(None);
        };
        let value = self.value(position).unwrap_or_default();
        let result = if value.is_empty() {
            Err(FieldErrorKind::Empty)
        } else {
            parse(value)
        };
        match result {
            Ok(value) => Ok(Some(value)),
            Err(kind) => {
                let offset = self.offset(self.from + position) as u32;
                Err(FieldError { tag, offset, kind })
            }
        }
    }

    /// Returns the value of a required field, or an error if it is missing.
    #[inline]
    pub(crate) fn required<T>(&self, tag: u32, value: Option<T>) -> Result<T, FieldError> {
        value.ok_or_else(|| FieldError {
            tag,
            offset: self.end_offset(),
            kind: FieldErrorKind::Missing,
        })
    }
}

/// Two accessors of a type, one for a required and one for an optional field.
macro_rules! typed {
    ($($required:ident, $optional:ident, $type:ty, $parse:expr, $what:literal;)*) => {
        /// Typed values of the first field with a tag.
        ///
        /// The plain accessors fail with [`FieldErrorKind::Missing`] if there is no such field, and
        /// the `opt_` ones return `None`. Both fail if the value is not of the type. Without known
        /// groups ([`Message::with_groups`]) the first field may belong to an entry of a group.
        impl<'a> FieldSet<'a> {
            $(
                #[doc = concat!("Returns the value as ", $what, ".")]
                ///
                /// # Errors
                /// Returns an error with the offset if the field is missing, empty or not of this
                /// type.
                #[inline]
                pub fn $required(&self, tag: u32) -> Result<$type, FieldError> {
                    let value = self.typed(tag, $parse)?;
                    self.required(tag, value)
                }

                #[doc = concat!("Returns the value as ", $what, ", if there is such a field.")]
                ///
                /// # Errors
                /// Returns an error with the offset if the field is empty or not of this type.
                #[inline]
                pub fn $optional(&self, tag: u32) -> Result<Option<$type>, FieldError> {
                    self.typed(tag, $parse)
                }
            )*
        }
    };
}

typed! {
    u64, opt_u64, u64, parse_u64, "an unsigned integer (int, SeqNum, Length, NumInGroup)";
    i64, opt_i64, i64, parse_i64, "a signed integer";
    decimal, opt_decimal, Decimal, parse_decimal, "a decimal (float, Price, Qty, Amt)";
    timestamp, opt_timestamp, UtcTimestamp, parse_timestamp, "a UTCTimestamp";
    bool, opt_bool, bool, parse_bool, "a Boolean, `Y` or `N`";
    char, opt_char, u8, parse_char, "a single character";
    str, opt_str, &'a str, parse_str, "text in UTF-8";
}

#[inline]
fn parse_u64(value: &[u8]) -> Result<u64, FieldErrorKind> {
    int::parse_u64(value).ok_or_else(|| number_fault(value, b""))
}

fn parse_i64(value: &[u8]) -> Result<i64, FieldErrorKind> {
    int::parse_i64(value).ok_or_else(|| number_fault(value, b""))
}

#[inline]
fn parse_decimal(value: &[u8]) -> Result<Decimal, FieldErrorKind> {
    Decimal::parse(value).ok_or_else(|| number_fault(value, b"."))
}

/// Returns the fault of a value that cannot be parsed: a number out of range, or no number.
#[cold]
fn number_fault(value: &[u8], point: &[u8]) -> FieldErrorKind {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let points = digits.iter().filter(|byte| point.contains(byte)).count();
    let others = digits.iter().filter(|byte| byte.is_ascii_digit()).count();
    if others > 18 && points <= 1 && others + points == digits.len() {
        FieldErrorKind::Range
    } else {
        FieldErrorKind::Format
    }
}

fn parse_timestamp(value: &[u8]) -> Result<UtcTimestamp, FieldErrorKind> {
    UtcTimestamp::parse(value).ok_or(FieldErrorKind::Format)
}

#[inline]
fn parse_bool(value: &[u8]) -> Result<bool, FieldErrorKind> {
    match value {
        b"Y" => Ok(true),
        b"N" => Ok(false),
        _ => Err(FieldErrorKind::Format),
    }
}

#[inline]
fn parse_char(value: &[u8]) -> Result<u8, FieldErrorKind> {
    match value {
        [char] => Ok(*char),
        _ => Err(FieldErrorKind::Format),
    }
}

#[inline]
fn parse_str(value: &[u8]) -> Result<&str, FieldErrorKind> {
    core::str::from_utf8(value).map_err(|_| FieldErrorKind::Format)
}

impl fmt::Debug for FieldSet<'_> {
    /// Writes all fields, with `|` for the separator.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fields().try_for_each(|field| write!(f, "{field:?}|"))
    }
}

const NO_FIELD: Field<'static> = Field {
    tag: 0,
    value: &[],
    offset: 0,
    tag_bytes: &[],
};

impl<'a> Field<'a> {
    /// Returns the tag as it was written.
    pub fn tag_bytes(&self) -> &'a [u8] {
        self.tag_bytes
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}",
            self.tag_bytes.escape_ascii(),
            self.value.escape_ascii()
        )
    }
}
