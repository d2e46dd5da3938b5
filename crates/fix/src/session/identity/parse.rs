//! Parsing of the displayed form of a session.

use std::str::FromStr;

use fanfare_wire::text::unescape;

use super::{SessionId, SubIds, Version};

/// The error for a text that is not the displayed form of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {at}; expected VERSION:SENDER->TARGET, such as FIX.4.4:OURS->THEIRS")]
pub struct SessionIdError {
    /// The place of the fault: its offset in the text, in bytes.
    pub at: usize,
    /// What is wrong there.
    pub fault: SessionIdFault,
}

/// What is wrong with a text that is to be the displayed form of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionIdFault {
    /// The text in front of the first `:` is no [`Version`].
    #[error("unknown version")]
    Version,
    /// No `->` follows the first CompID.
    #[error("`->` is missing")]
    Arrow,
    /// A CompID is empty.
    #[error("empty CompID")]
    EmptyCompId,
    /// A `/` or `:` is followed by no ID, and is not displayed without one.
    #[error("empty ID")]
    EmptyId,
    /// An ID has a character that separates IDs. The text would be that of other IDs, too.
    #[error("`{0}` within an ID")]
    Separator(char),
    /// An ID has SOH, which ends a field of a message.
    #[error("SOH within an ID")]
    Soh,
    /// An ID has a backslash or an [unsafe character](fanfare_wire::text::is_unsafe) that is not
    /// written as it is displayed.
    #[error("a backslash or a character that is not escaped as in the display of a session")]
    Escape,
}

impl FromStr for SessionId {
    type Err = SessionIdError;

    /// Parses what [`Display`](std::fmt::Display) writes: `FIX.4.4:OURS->THEIRS`, with SubIDs and
    /// LocationIDs `FIX.4.4:OURS/SUB/LOCATION->THEIRS/SUB/LOCATION`, where `//LOCATION` has no
    /// SubID, and with a qualifier `FIX.4.4:OURS->THEIRS:QUALIFIER`. Allocates the IDs.
    ///
    /// # Errors
    /// Returns the first fault. An ID with `/`, `:` or `>` is not parsed, although it is displayed:
    /// the CompID `DESK/1` and the CompID `DESK` with the SubID `1` are written alike.
    fn from_str(text: &str) -> Result<Self, SessionIdError> {
        let (version, ids) = Part { at: 0, text }.cut(":");
        let unknown = version.fault(SessionIdFault::Version);
        let version = Version::parse(version.text.as_bytes()).ok_or(unknown)?;
        let missing = SessionIdError {
            at: text.len(),
            fault: SessionIdFault::Arrow,
        };
        let (ours, theirs) = ids.ok_or(missing)?.cut("->");
        let (theirs, qualifier) = theirs.ok_or(missing)?.cut(":");
        let [sender, sender_sub, sender_location] = ours.ids()?;
        let [target, target_sub, target_location] = theirs.ids()?;
        let qualifier = qualifier.map_or(Ok("".into()), Part::last_id)?;
        Ok(Self::new(version, &sender, &target).with_sub_ids(SubIds {
            sender: sender_sub,
            sender_location,
            target: target_sub,
            target_location,
            qualifier,
        }))
    }
}

/// A part of the text, and its offset.
#[derive(Clone, Copy)]
struct Part<'a> {
    at: usize,
    text: &'a str,
}

impl<'a> Part<'a> {
    /// Returns the part in front of the first separator, and that behind it, if there is one.
    fn cut(self, separator: &str) -> (Self, Option<Self>) {
        let Some((text, behind)) = self.text.split_once(separator) else {
            return (self, None);
        };
        let behind = Self {
            at: self.at + text.len() + separator.len(),
            text: behind,
        };
        (Self { text, ..self }, Some(behind))
    }

    const fn fault(self, fault: SessionIdFault) -> SessionIdError {
        SessionIdError { at: self.at, fault }
    }

    /// Returns a CompID, its SubID and its LocationID; an empty one is not named.
    fn ids(self) -> Result<[Box<str>; 3], SessionIdError> {
        let (comp, more) = self.cut("/");
        if comp.text.is_empty() {
            return Err(comp.fault(SessionIdFault::EmptyCompId));
        }
        let comp = comp.id()?;
        let Some((sub, location)) = more.map(|more| more.cut("/")) else {
            return Ok([comp, "".into(), "".into()]);
        };
        match location {
            None => Ok([comp, sub.last_id()?, "".into()]),
            Some(location) => Ok([comp, sub.id()?, location.last_id()?]),
        }
    }

    /// Returns an ID that its separator does not stand without.
    fn last_id(self) -> Result<Box<str>, SessionIdError> {
        match self.text.is_empty() {
            true => Err(self.fault(SessionIdFault::EmptyId)),
            false => self.id(),
        }
    }

    fn id(self) -> Result<Box<str>, SessionIdError> {
        let mut chars = self.text.char_indices();
        if let Some((at, char)) = chars.find(|(_, char)| matches!(char, '/' | ':' | '>')) {
            let at = self.at + at;
            let fault = SessionIdFault::Separator(char);
            return Err(SessionIdError { at, fault });
        }
        let id = unescape(self.text).ok_or(self.fault(SessionIdFault::Escape))?;
        match id.contains('\x01') {
            true => Err(self.fault(SessionIdFault::Soh)),
            false => Ok(id.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a session of IDs in the order in which they are displayed.
    fn session(version: Version, ids: [&str; 7]) -> SessionId {
        let [sender, sender_sub, sender_location, ids @ ..] = ids;
        let [target, target_sub, target_location, qualifier] = ids;
        SessionId::new(version, sender, target).with_sub_ids(SubIds {
            sender: sender_sub.into(),
            sender_location: sender_location.into(),
            target: target_sub.into(),
            target_location: target_location.into(),
            qualifier: qualifier.into(),
        })
    }

    #[test]
    fn a_session_is_read_as_it_is_displayed() {
        let session = |ids| session(Version::Fix44, ids);
        for (text, expected) in [
            ("FIX.4.4:A->B", session(["A", "", "", "B", "", "", ""])),
            ("FIX.4.4:A/S->B", session(["A", "S", "", "B", "", "", ""])),
            ("FIX.4.4:A->B/T", session(["A", "", "", "B", "T", "", ""])),
            (
                "FIX.4.4:A//L->B/T/M",
                session(["A", "", "L", "B", "T", "M", ""]),
            ),
            (
                "FIX.4.4:A/S/L->B//M:Q-1",
                session(["A", "S", "L", "B", "", "M", "Q-1"]),
            ),
            (
                r"FIX.4.4:A-->\u{1b}\\:é",
                session(["A-", "", "", "\u{1b}\\", "", "", "é"]),
            ),
        ] {
            assert_eq!(text.parse::<SessionId>(), Ok(expected), "{text}");
        }
        let fixt = SessionId::new(Version::Fixt11, "A", "B");
        assert_eq!("FIXT.1.1:A->B".parse::<SessionId>(), Ok(fixt));
    }

    #[test]
    fn what_is_no_session_is_told_with_its_place() {
        use SessionIdFault::*;
        for (text, at, fault) in [
            ("", 0, Version),
            ("A->B", 0, Version),
            ("FIX.4.9:A->B", 0, Version),
            ("fix.4.4:A->B", 0, Version),
            ("FIX.4.4", 7, Arrow),
            ("FIX.4.4:", 8, Arrow),
            ("FIX.4.4:A", 9, Arrow),
            ("FIX.4.4:A-B", 11, Arrow),
            ("FIX.4.4:->B", 8, EmptyCompId),
            ("FIX.4.4:/S->B", 8, EmptyCompId),
            ("FIX.4.4:A->", 11, EmptyCompId),
            ("FIX.4.4:A->:Q", 11, EmptyCompId),
            ("FIX.4.4:A/->B", 10, EmptyId),
            ("FIX.4.4:A/S/->B", 12, EmptyId),
            ("FIX.4.4:A->B//", 14, EmptyId),
            ("FIX.4.4:A->B:", 13, EmptyId),
            ("FIX.4.4:A/S/L/X->B", 13, Separator('/')),
            ("FIX.4.4:A:1->B", 9, Separator(':')),
            ("FIX.4.4:A->B->C", 13, Separator('>')),
            ("FIX.4.4:A->B:Q:R", 14, Separator(':')),
            ("FIX.4.4:A->B:Q/R", 14, Separator('/')),
            ("FIX.4.4:A->B/é>", 15, Separator('>')),
            (r"FIX.4.4:A->B\C", 11, Escape),
            ("FIX.4.4:A->B/\u{202e}", 13, Escape),
            (r"FIX.4.4:A\u{1}->B", 8, Soh),
        ] {
            let error = SessionIdError { at, fault };
            assert_eq!(text.parse::<SessionId>(), Err(error), "{text}");
        }
        let told = "FIX.4.4:A->B->C".parse::<SessionId>().unwrap_err();
        let expected = "`>` within an ID at byte 13; expected VERSION:SENDER->TARGET, such as \
                        FIX.4.4:OURS->THEIRS";
        assert_eq!(told.to_string(), expected);
    }

    /// Returns an ID of a message, perhaps an empty one, with or without separators.
    fn id() -> impl Strategy<Value = String> {
        prop_oneof![
            "[-A-Za-z0-9]{0,3}",
            "[-A\\\\\u{1b}\u{202e}é ]{0,3}",
            "[-A/:>]{0,3}",
        ]
    }

    proptest! {
        #[test]
        fn parsing_is_the_inverse_of_the_display(
            version in prop::sample::select(Version::ALL.to_vec()),
            ids in prop::array::uniform7(id()),
        ) {
            let id = session(version, ids.each_ref().map(String::as_str));
            let shown = id.to_string();
            let is_clear = !id.sender.is_empty()
                && !id.target.is_empty()
                && !ids.iter().any(|id| id.contains(['/', ':', '>']));
            match shown.parse::<SessionId>() {
                Ok(found) if is_clear => prop_assert_eq!(found, id),
                // Other IDs, which are displayed alike.
                Ok(found) => prop_assert_eq!(found.to_string(), shown),
                Err(error) => {
                    prop_assert!(!is_clear, "{}: {}", shown, error);
                    prop_assert!(shown.is_char_boundary(error.at), "{}: {}", shown, error);
                }
            }
        }

        #[test]
        fn what_is_read_is_displayed_as_it_was(
            text in "FIX\\.4\\.[234]:[-A/:>\\\\n]{1,6}->[-A/:>\\\\n]{1,6}",
        ) {
            if let Ok(id) = text.parse::<SessionId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
