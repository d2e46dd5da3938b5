//! The names that are valid in IDL.

/// Words that are not valid identifiers, in any case (IDL 4.2, 7.2.4).
const KEYWORDS: &str = "\
    abstract alias any attribute bitfield bitmask bitset boolean case char component connector \
    const consumes context custom default double emits enum eventtype exception factory false \
    finder fixed float getraises home import in inout int16 int32 int64 int8 interface local \
    long manages map mirrorport module multiple native object octet oneway out port porttype \
    primarykey private provides public publishes raises readonly sequence setraises short string \
    struct supports switch true truncatable typedef typeid typename typeprefix uint16 uint32 \
    uint64 uint8 union unsigned uses valuebase valuetype void wchar wstring";

/// Returns whether a name is valid in IDL: an identifier, or several with `::` between them.
pub fn is_scoped_name(name: &str) -> bool {
    name.split("::").all(is_identifier)
}

/// Returns whether `name` is a valid IDL identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let starts = chars.next().is_some_and(|c| c.is_ascii_alphabetic());
    let goes_on = chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let lower = name.to_ascii_lowercase();
    let word = KEYWORDS.split(' ').any(|keyword| keyword == lower);
    starts && goes_on && !word
}
