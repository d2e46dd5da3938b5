//! The identity of a session: version, CompIDs and the other IDs that tell sessions apart.

mod parse;

use std::fmt;

use fanfare_wire::Precision;
use fanfare_wire::text::Escaped;

pub use parse::{SessionIdError, SessionIdFault};

/// A version of the session protocol: the BeginString(8) of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// FIX.4.0
    Fix40,
    /// FIX.4.1
    Fix41,
    /// FIX.4.2
    Fix42,
    /// FIX.4.3
    Fix43,
    /// FIX.4.4
    Fix44,
    /// FIXT.1.1, which carries FIX 5.0 and later.
    Fixt11,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 6] = [
        Self::Fix40,
        Self::Fix41,
        Self::Fix42,
        Self::Fix43,
        Self::Fix44,
        Self::Fixt11,
    ];

    /// Returns the value of BeginString(8).
    pub const fn begin_string(self) -> &'static str {
        match self {
            Self::Fix40 => "FIX.4.0",
            Self::Fix41 => "FIX.4.1",
            Self::Fix42 => "FIX.4.2",
            Self::Fix43 => "FIX.4.3",
            Self::Fix44 => "FIX.4.4",
            Self::Fixt11 => "FIXT.1.1",
        }
    }

    /// Returns the version with this BeginString(8), or `None` if there is none.
    pub fn parse(begin_string: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|v| v.begin_string().as_bytes() == begin_string)
    }

    /// Returns the precision of SendingTime(52): seconds up to FIX.4.1 and milliseconds from
    /// FIX.4.2 on.
    pub const fn precision(self) -> Precision {
        match self {
            Self::Fix40 | Self::Fix41 => Precision::Seconds,
            _ => Precision::Millis,
        }
    }

    /// Returns the EndSeqNo(16) that means all messages: 999999 up to FIX.4.1, and 0 later.
    pub(crate) const fn open_end(self) -> u64 {
        match self {
            Self::Fix40 | Self::Fix41 => 999_999,
            _ => 0,
        }
    }

    /// Returns whether EndSeqNo(16) `end` means all messages. Some engines send 999999 in FIX.4.2
    /// too.
    pub(crate) const fn is_open_end(self, end: u64) -> bool {
        let has_old_end = matches!(self, Self::Fix40 | Self::Fix41 | Self::Fix42);
        end == 0 || (has_old_end && end == 999_999)
    }

    /// Returns whether the version has RefTagID(371), RefMsgType(372) and SessionRejectReason(373)
    /// in Reject(3), and BusinessMessageReject(j).
    pub(crate) fn has_reject_codes(self) -> bool {
        self >= Self::Fix42
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.begin_string())
    }
}

/// A value of ApplVerID(1128) or DefaultApplVerID(1137): the application version of the messages in
/// a FIXT session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ApplVerId {
    /// FIX.4.0
    Fix40 = 2,
    /// FIX.4.1
    Fix41 = 3,
    /// FIX.4.2
    Fix42 = 4,
    /// FIX.4.3
    Fix43 = 5,
    /// FIX.4.4
    Fix44 = 6,
    /// FIX.5.0
    Fix50 = 7,
    /// FIX.5.0SP1
    Fix50Sp1 = 8,
    /// FIX.5.0SP2
    Fix50Sp2 = 9,
}

impl ApplVerId {
    const ALL: [Self; 8] = [
        Self::Fix40,
        Self::Fix41,
        Self::Fix42,
        Self::Fix43,
        Self::Fix44,
        Self::Fix50,
        Self::Fix50Sp1,
        Self::Fix50Sp2,
    ];

    /// Returns the value on the wire, a digit.
    pub const fn wire(self) -> u8 {
        b'0' + self as u8
    }

    /// Returns the version with this value on the wire, or `None` if there is none.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let &[digit] = value else { return None };
        Self::ALL.into_iter().find(|v| v.wire() == digit)
    }
}

/// The identity of a session, seen from its own side: it sends `sender` as SenderCompID(49).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// The version, which is BeginString(8).
    pub version: Version,
    /// The session's own CompID: SenderCompID(49) of messages sent, TargetCompID(56) of messages
    /// received.
    pub sender: Box<str>,
    /// The counterparty's CompID: TargetCompID(56) of messages sent, SenderCompID(49) of messages
    /// received.
    pub target: Box<str>,
    /// The IDs that tell sessions with the same CompIDs apart, or `None` if none are needed.
    pub sub: Option<Box<SubIds>>,
}

/// The IDs that tell sessions with the same version and CompIDs apart. An empty ID is not named,
/// and is not compared.
///
/// The IDs are seen from the session's own side: `sender` is SenderSubID(50) and
/// SenderLocationID(142) of messages sent, and TargetSubID(57) and TargetLocationID(143) of
/// messages received. They are compared with the Logon(A) of a counterparty, to find its session.
/// The IDs in the messages sent are those of `Config::header_fields`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SubIds {
    /// The session's own SubID.
    pub sender: Box<str>,
    /// The session's own LocationID.
    pub sender_location: Box<str>,
    /// The counterparty's SubID.
    pub target: Box<str>,
    /// The counterparty's LocationID.
    pub target_location: Box<str>,
    /// A name that is in no message. It tells apart the sessions of an initiator that connects more
    /// than once.
    pub qualifier: Box<str>,
}

impl SubIds {
    /// Returns whether no ID is named.
    pub fn is_empty(&self) -> bool {
        self.ids().all(str::is_empty) && self.qualifier.is_empty()
    }

    /// Returns how many IDs are named, or `None` if one of them differs from that in `logon`.
    pub fn found_in(&self, logon: &Self) -> Option<usize> {
        let named = self
            .ids()
            .zip(logon.ids())
            .filter(|(own, _)| !own.is_empty());
        let mut count = 0;
        for (own, theirs) in named {
            if own != theirs {
                return None;
            }
            count += 1;
        }
        Some(count)
    }

    /// Returns the IDs that are in messages.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = [
            &self.sender,
            &self.sender_location,
            &self.target,
            &self.target_location,
        ];
        ids.into_iter().map(|id| &**id)
    }
}

impl SessionId {
    /// Returns an identity of the version, the session's own CompID and the counterparty's.
    pub fn new(version: Version, sender: &str, target: &str) -> Self {
        Self {
            version,
            sender: sender.into(),
            target: target.into(),
            sub: None,
        }
    }

    /// Returns the same identity with these IDs.
    #[must_use]
    pub fn with_sub_ids(self, sub: SubIds) -> Self {
        let sub = (!sub.is_empty()).then(|| Box::new(sub));
        Self { sub, ..self }
    }

    /// Returns the name of the session's store: the displayed form without escapes.
    pub fn store_name(&self) -> String {
        let mut name = String::new();
        // Writing to a String cannot fail.
        let _ = write_id(&mut name, self, fmt::Write::write_str);
        name
    }
}

impl fmt::Display for SessionId {
    /// Formats as `VERSION:SENDER->TARGET`. Counterparties choose their IDs, so these are
    /// [`Escaped`]. [`FromStr`](std::str::FromStr) parses this form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_id(f, self, |f, id| write!(f, "{}", Escaped::text(id)))
    }
}

/// Writes an identity. `show` writes each of its IDs.
fn write_id<W: fmt::Write>(
    to: &mut W,
    id: &SessionId,
    show: impl Fn(&mut W, &str) -> fmt::Result,
) -> fmt::Result {
    let no_ids = SubIds::default();
    let sub = id.sub.as_deref().unwrap_or(&no_ids);
    // `/SUB/LOCATION`, if they are named.
    let ids = |to: &mut W, sub: &str, location: &str| {
        if !sub.is_empty() || !location.is_empty() {
            to.write_str("/")?;
            show(to, sub)?;
        }
        if !location.is_empty() {
            to.write_str("/")?;
            show(to, location)?;
        }
        Ok(())
    };
    write!(to, "{}:", id.version)?;
    show(to, &id.sender)?;
    ids(to, &sub.sender, &sub.sender_location)?;
    to.write_str("->")?;
    show(to, &id.target)?;
    ids(to, &sub.target, &sub.target_location)?;
    if !sub.qualifier.is_empty() {
        to.write_str(":")?;
        show(to, &sub.qualifier)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(sender: &str, location: &str, target: &str, qualifier: &str) -> SubIds {
        SubIds {
            sender: sender.into(),
            sender_location: location.into(),
            target: target.into(),
            target_location: "".into(),
            qualifier: qualifier.into(),
        }
    }

    #[test]
    fn names_of_sessions_with_and_without_sub_ids() {
        let id = || SessionId::new(Version::Fix44, "A", "B");
        assert_eq!(id().with_sub_ids(SubIds::default()), id());
        let named = |s, l, t, q| id().with_sub_ids(sub(s, l, t, q)).to_string();
        assert_eq!(named("S", "", "", ""), "FIX.4.4:A/S->B");
        assert_eq!(named("", "L", "T", ""), "FIX.4.4:A//L->B/T");
        assert_eq!(named("S", "L", "", "Q"), "FIX.4.4:A/S/L->B:Q");
    }

    #[test]
    fn ids_are_escaped_for_people_and_not_in_the_name_of_the_store() {
        let ids = sub("S\u{9b}", "L\n", "T\u{202e}", "Q\\");
        let id = SessionId::new(Version::Fix44, "A\x1b[2J", "B\u{2028}").with_sub_ids(ids);
        let shown = r"FIX.4.4:A\u{1b}[2J/S\u{9b}/L\n->B\u{2028}/T\u{202e}:Q\\";
        assert_eq!(id.to_string(), shown);
        let name = "FIX.4.4:A\x1b[2J/S\u{9b}/L\n->B\u{2028}/T\u{202e}:Q\\";
        assert_eq!(id.store_name(), name);
    }

    #[test]
    fn what_a_session_does_not_name_does_not_matter() {
        let logon = sub("S", "L", "T", "");
        assert_eq!(sub("", "", "", "").found_in(&logon), Some(0));
        assert_eq!(sub("S", "", "T", "").found_in(&logon), Some(2));
        assert_eq!(sub("S", "", "U", "").found_in(&logon), None);
        assert_eq!(sub("", "", "T", "").found_in(&SubIds::default()), None);
    }
}
