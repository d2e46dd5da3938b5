//! The selection of sessions by operators.

use crate::users::PortName;
use crate::users::roster::Seat;
use fanfare_fix::session::SessionId;
use fanfare_wire::text::Escaped;
use std::fmt;
use std::sync::Arc;

/// The sessions that a command applies to: those that match all criteria.
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
        let is = |wanted: &Option<String>, own: &str| wanted.as_ref().is_none_or(|it| it == own);
        let is_session = |wanted: &String| *wanted == *id.target || *wanted == id.to_string();
        self.session.as_ref().is_none_or(is_session)
            && is(&self.sender, &id.target)
            && is(&self.target, &id.sender)
            && is(&self.user, user)
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
                write!(f, "{between}{name}={}", Escaped::text(value))?;
                between = " ";
            }
        }
        Ok(())
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
