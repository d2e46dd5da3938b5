//! The selection of sessions by operators.

use fanfare_fix::session::SessionId;
use fanfare_wire::text::Escaped;
use std::fmt;

/// The name of the DBN port.
pub(crate) const DBN: &str = "dbn";

/// The sessions that a command applies to: those that match all criteria. CompIDs may be as they
/// are, or as commands print them, [`Escaped`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) session: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) user: Option<String>,
    /// The name of the port.
    pub(crate) port: Option<String>,
}

impl Which {
    /// Returns whether sessions of this port match.
    pub(crate) fn is_at(&self, port: &str) -> bool {
        self.port.as_deref().is_none_or(|own| own == port)
    }

    /// Returns whether the session of a user matches, whatever its port.
    pub(crate) fn is_of(&self, id: &SessionId, user: &str) -> bool {
        let is =
            |wanted: &str, own: &str| wanted == own || wanted == Escaped::text(own).to_string();
        let is_session = |wanted: &str| is(wanted, &id.target) || wanted == id.to_string();
        self.session.as_deref().is_none_or(is_session)
            && self.sender.as_deref().is_none_or(|it| is(it, &id.target))
            && self.target.as_deref().is_none_or(|it| is(it, &id.sender))
            && self.is_user(user)
    }

    /// Returns whether a session of DBN matches, which has a number and no CompIDs.
    pub(crate) fn is_of_dbn(&self, number: u64, user: &str) -> bool {
        let is_session = |wanted: &str| wanted == number.to_string();
        self.is_at(DBN)
            && self.session.as_deref().is_none_or(is_session)
            && self.sender.is_none()
            && self.target.is_none()
            && self.is_user(user)
    }

    fn is_user(&self, user: &str) -> bool {
        self.user.as_deref().is_none_or(|wanted| wanted == user)
    }
}

/// Formats the selection as an operator writes it.
impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("session", self.session.as_deref()),
            ("sender", self.sender.as_deref()),
            ("target", self.target.as_deref()),
            ("user", self.user.as_deref()),
            ("port", self.port.as_deref()),
        ];
        let mut between = "";
        for (name, value) in fields {
            if let Some(value) = value {
                write!(f, "{between}{name}={}", shown(value))?;
                between = " ";
            }
        }
        Ok(())
    }
}

/// Returns a value as it is given, unless a terminal would not show it as such.
fn shown(value: &str) -> String {
    let is_plain = Escaped::text(&value.replace('\\', "")).to_string() == value.replace('\\', "");
    match is_plain {
        true => value.to_owned(),
        false => Escaped::text(value).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::Version;

    #[test]
    fn a_session_is_named_as_it_is_printed_or_as_it_is() {
        let id = SessionId::new(Version::Fix44, "EX", "DOM\\desk");
        let printed = Escaped::text(&id.target).to_string();
        for session in [id.to_string(), printed.clone(), "DOM\\desk".to_owned()] {
            let which = Which {
                session: Some(session.clone()),
                ..Which::default()
            };
            assert!(which.is_of(&id, "user"), "{which}");
            assert_eq!(which.to_string(), format!("session={session}"));
        }
        for sender in [printed, "DOM\\desk".to_owned()] {
            let which = Which {
                sender: Some(sender),
                ..Which::default()
            };
            assert!(which.is_of(&id, "user"), "{which}");
        }
        let user = Some("a\nb".to_owned());
        let which = Which {
            user,
            ..Which::default()
        };
        assert_eq!(which.to_string(), "user=a\\nb");
    }

    #[test]
    fn a_session_of_dbn_is_named_by_its_number_and_has_no_comp_ids() {
        let text = |text: &str| Some(text.to_owned());
        let is = |which: Which| which.is_of_dbn(12, "desk");
        let of = |session, user, port| Which {
            session,
            user,
            port,
            ..Which::default()
        };
        assert!(is(of(text("12"), None, None)));
        assert!(is(of(None, text("desk"), text(DBN))));
        assert!(!is(of(text("1"), None, None)));
        assert!(!is(of(None, text("other"), None)));
        assert!(!is(of(None, text("desk"), text("consumers"))));
        for (sender, target) in [(text("12"), None), (None, text("12"))] {
            assert!(!is(Which {
                sender,
                target,
                ..Which::default()
            }));
        }
    }
}
