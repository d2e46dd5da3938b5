//! What the validation pass finds.

use std::fmt;

use crate::session::RejectReason;

/// The first fault of a message, in the order in which counterparties expect faults to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Violation {
    /// SessionRejectReason(373), and the text.
    pub reason: RejectReason,
    /// RefTagID(371): the tag at fault, as it was received (0 and negative ones too).
    pub tag: Option<i64>,
}

impl Violation {
    /// The text for Text(58). The versions 4.0 and 4.1 have no RefTagID(371): there the text ends
    /// in the tag (`with_tag`).
    pub fn text(self, with_tag: bool) -> ViolationText {
        ViolationText {
            reason: self.reason,
            tag: self.tag.filter(|_| with_tag),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(true).fmt(f)
    }
}

/// Writes the text of a [`Violation`]; does not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViolationText {
    reason: RejectReason,
    tag: Option<i64>,
}

impl fmt::Display for ViolationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.text())?;
        match self.tag {
            Some(tag) => write!(f, " ({tag})"),
            None => Ok(()),
        }
    }
}
