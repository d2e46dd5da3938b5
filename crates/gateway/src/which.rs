//! The selection of sessions by operators.

use crate::users::PortName;
use crate::users::roster::Seat;
use fanfare_fix::session::SessionId;
use fanfare_wire::text::Escaped;
use std::fmt;
use std::sync::Arc;

/// The sessions that a command applies to: those that match all criteria. CompIDs may be as they
/// are, or as commands print them, [`Escaped`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Which {
    pub(crate) session: Option<String>,
    pub(crate) sender: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) port: Option<PortName>,
}

impl Which {
    /// Returns whether a session matches.
    pub(crate) fn is(&self, seat: &Seat) -> bool {
        self.port.is_none_or(|port| port == seat.port) && self.is_of(&seat.id, &seat.user)
    }

    /// Returns whether the session of a user matches, whatever its port.
    pub(crate) fn is_of(&self, id: &SessionId, user: &str) -> bool {
        let is =
            |wanted: &str, own: &str| wanted == own || wanted == Escaped::text(own).to_string();
        let is_session = |wanted: &str| is(wanted, &id.target) || wanted == id.to_string();
        self.session.as_deref().is_none_or(is_session)
            && self.sender.as_deref().is_none_or(|it| is(it, &id.target))
            && self.target.as_deref().is_none_or(|it| is(it, &id.sender))
            && self.user.as_deref().is_none_or(|it| it == user)
    }
}

/// Formats the selection as an operator writes it.
impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port.map(PortName::name);
        let fields = [
            ("session", self.session.as_deref()),
            ("sender", self.sender.as_deref()),
            ("target", self.target.as_deref()),
            ("user", self.user.as_deref()),
            ("port", port),
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

/// The sessions that operators keep out, whatever the configuration.
#[derive(Clone, Default)]
pub(crate) struct Stopped(pub(crate) Arc<[Which]>);

impl Stopped {
    /// Returns whether the session of a user is kept out.
    pub(crate) fn has(&self, id: &SessionId, user: &str) -> bool {
        self.0.iter().any(|which| which.is_of(id, user))
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
}
