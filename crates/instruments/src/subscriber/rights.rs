//! The rights of a session in its gateway's configuration.

use fanfare_fix::codec::Message;
use fanfare_fix::tag;

use super::RELATED;
use super::entry::{LEVEL, POSITION, said};

/// The rights of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Symbol(55) of instruments; `PREFIX*` and `*` stand for several.
    pub instruments: Vec<String>,
    /// MDEntryType(269).
    pub entries: Vec<u8>,
    /// The most levels of a side; 0: all.
    pub depth: u32,
}

/// Returns whether a name, `PREFIX*` or `*` stands for an instrument of this Symbol(55).
pub(super) fn covers(name: &str, symbol: &[u8]) -> bool {
    match name.as_bytes().strip_suffix(b"*") {
        Some(prefix) => symbol.starts_with(prefix),
        None => symbol == name.as_bytes(),
    }
}

impl Rights {
    /// Returns whether an instrument of this Symbol(55) may be seen.
    #[must_use]
    pub fn may_see(&self, symbol: &[u8]) -> bool {
        self.instruments.iter().any(|name| covers(name, symbol))
    }

    /// Returns whether a request has to be refused: it names an instrument, an entry type or a
    /// depth beyond the rights. Prefixes and lists yield the permitted part.
    #[must_use]
    pub fn denies(&self, symbols: &[String], entries: &[u8], depth: u32) -> bool {
        let is_named = |name: &&String| !name.ends_with('*') && !name.starts_with('@');
        let mut named = symbols.iter().filter(is_named);
        let is_too_deep = self.depth != 0 && (depth == 0 || depth > self.depth);
        is_too_deep
            || entries.iter().any(|entry| !self.entries.contains(entry))
            || named.any(|name| !self.may_see(name.as_bytes()))
    }

    /// Fails if a message has data beyond the rights.
    pub(super) fn check(&self, message: &Message<'_>) -> Result<(), String> {
        let symbol = message.get(tag::SYMBOL).or_else(|| message.get(RELATED));
        let symbol = match symbol {
            Some(b"[N/A]") => b"",
            Some(own) => own,
            None => return Ok(()),
        };
        if !self.may_see(symbol) {
            return Err(format!("{} may not be seen", symbol.escape_ascii()));
        }
        if !matches!(message.msg_type(), b"W" | b"X") {
            return Ok(());
        }
        for fields in message.group(tag::NO_MD_ENTRIES).map_err(said)? {
            let kind = fields.char(tag::MD_ENTRY_TYPE).map_err(said)?;
            if kind != b'J' && !self.entries.contains(&kind) {
                let kind = char::from(kind);
                return Err(format!("entries of type {kind} may not be seen"));
            }
            let level = match fields.opt_u64(LEVEL).map_err(said)? {
                None => fields.opt_u64(POSITION).map_err(said)?,
                level => level,
            };
            if self.depth != 0 && level.is_some_and(|level| level > self.depth.into()) {
                return Err(format!("a level beyond {} may not be seen", self.depth));
            }
        }
        Ok(())
    }
}
