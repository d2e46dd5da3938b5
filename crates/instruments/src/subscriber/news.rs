//! The announcements of a gateway besides the market data, by News(B).

use fanfare_fix::codec::Message;
use fanfare_fix::tag::{HEADLINE, TEXT};
use fanfare_wire::int;

/// A News(B) about an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News<'a> {
    /// The instrument's state from here on.
    State(&'a [u8]),
    /// Trades of a subscription with merged changes were omitted.
    TradesMissing(u64),
    /// Entries of a subscription were skipped.
    Missing {
        /// MDReqID(262).
        request: &'a [u8],
        /// The range of their numbers.
        range: Range,
    },
}

/// The numbers of skipped entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) count: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl<'a> News<'a> {
    /// Parses a News(B); returns `None` for other subjects.
    pub(super) fn of(message: &Message<'a>) -> Option<Self> {
        let text = message.get(TEXT)?;
        match message.get(HEADLINE)? {
            b"Instrument state" => word(text, b"state=").map(News::State),
            b"Messages missing" if word(text, b"missing=") == Some(b"trades") => {
                number(text, b"count=").map(Self::TradesMissing)
            }
            b"Messages missing" => Some(Self::Missing {
                request: word(text, b"request=")?,
                range: Range {
                    count: number(text, b"count=")?,
                    first: number(text, b"first=")?,
                    last: number(text, b"last=")?,
                },
            }),
            _ => None,
        }
    }
}

/// Returns the word after `name` in a text of words.
fn word<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut words = text.split(|byte| *byte == b' ');
    words.find_map(|word| word.strip_prefix(name))
}

fn number(text: &[u8], name: &[u8]) -> Option<u64> {
    int::parse_u64(word(text, name)?)
}
