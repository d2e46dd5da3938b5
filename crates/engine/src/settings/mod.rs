//! Settings files of QuickFIX: `[DEFAULT]`, `[SESSION]`, `Key=Value`, `#`.
//!
//! [`Settings::endpoints`] makes the endpoints that a host runs: ten lines suffice to run a
//! settings file (see [`Endpoints`]). Parsing takes the text of the file and opens nothing. A
//! setting that is not supported, or not with its value, becomes a [`Remark`] with its line: none
//! is ignored silently.
//!
//! ```
//! use fanfare_engine::settings::Settings;
//! use fanfare_fix::session::Role;
//!
//! let text = "
//! [DEFAULT]
//! ConnectionType=acceptor
//! SocketAcceptPort=5001
//! SenderCompID=EXCHANGE
//! [SESSION]
//! BeginString=FIX.4.4
//! TargetCompID=TRADER
//! RefreshOnLogon=Y
//! ";
//! let settings = Settings::parse(text)?;
//! let session = &settings.sessions[0];
//! assert_eq!(session.role, Role::Acceptor);
//! assert_eq!(session.config.id.to_string(), "FIX.4.4:EXCHANGE->TRADER");
//! assert_eq!(session.listen.map(|address| address.port()), Some(5001));
//! let remark = settings.remarks[0].to_string();
//! assert_eq!(remark, "line 9: RefreshOnLogon=Y is not supported, only N");
//! # Ok::<(), fanfare_engine::settings::SettingsError>(())
//! ```

mod dictionaries;
mod endpoints;
mod file;
mod hours;
mod keys;
mod refused;
mod remarks;
mod session;
mod template;
#[cfg(test)]
mod tests;
mod tls;

pub use dictionaries::{DictionaryError, DictionaryFile, DictionaryFiles, read_dictionary};
#[cfg(feature = "tls")]
pub use endpoints::Certificates;
pub use endpoints::{Endpoints, EndpointsError};
pub use remarks::Remark;
pub use session::{PortLimits, SessionSettings};
pub use template::Template;
pub use tls::{ClientTlsFiles, TlsFiles};

use file::Section;
use thiserror::Error;

/// A settings file.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The sessions, in the order of the file.
    pub sessions: Vec<SessionSettings>,
    /// The settings of the file that have no effect, in order.
    pub remarks: Vec<Remark>,
    /// The zone of this machine, if hours of a session are in local time: its name, or the file
    /// that it is read from.
    pub local_zone: Option<String>,
}

impl Settings {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// The first error, with its line.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let file = file::read(text)?;
        let mut sessions = Vec::with_capacity(file.sessions.len());
        let mut owners = Vec::with_capacity(file.sessions.len());
        let mut local_zone = None;
        for own in &file.sessions {
            let section = Section {
                own,
                default: &file.default,
            };
            let read = SessionSettings::read(&section)?;
            if local_zone.is_none() && read.iter().any(|session| hours::has(&session.config)) {
                local_zone = hours::local_zone(&section)?;
            }
            for session in read {
                let id = &session.config.id;
                if sessions.iter().any(|other| same(other, &session)) {
                    let (line, fault) = (own.line, SettingsFault::SameSession(id.to_string()));
                    return Err(SettingsError { line, fault });
                }
                owners.push(section);
                sessions.push(session);
            }
        }
        let entries = file.sessions.iter().map(|session| &session.entries);
        let entries = std::iter::once(&file.default.entries).chain(entries);
        let mut remarks: Vec<_> = entries.flatten().filter_map(remarks::remark).collect();
        let has_tls = sessions.iter().any(SessionSettings::has_tls);
        let unused = owners.iter().zip(&sessions);
        remarks.extend(unused.flat_map(|(own, session)| remarks::unused(own, session, has_tls)));
        remarks.sort_by_key(|remark| remark.line);
        remarks.dedup();
        Ok(Self {
            sessions,
            remarks,
            local_zone,
        })
    }

    /// Makes the endpoints of both roles: loads dictionaries and certificates, and resolves hosts.
    ///
    /// # Errors
    /// See [`EndpointsError`].
    pub fn endpoints(self) -> Result<Endpoints, EndpointsError> {
        Endpoints::of(self.sessions)
    }
}

/// Returns whether two sessions are the same. Templates may be the same on several ports.
fn same(a: &SessionSettings, b: &SessionSettings) -> bool {
    let of = |session: &SessionSettings| match &session.template {
        Some(_) => (true, session.listen),
        None => (false, None),
    };
    (a.role, &a.config.id, of(a)) == (b.role, &b.config.id, of(b))
}

/// An error in a settings file, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct SettingsError {
    /// The line, from 1; for a missing setting, the line of its section.
    pub line: usize,
    /// The error.
    pub fault: SettingsFault,
}

/// A kind of [`SettingsError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsFault {
    /// A line is neither a section, a setting nor a comment.
    #[error("expected [DEFAULT], [SESSION], Key=Value or a # comment")]
    NotALine,
    /// A setting precedes the first section.
    #[error("the setting comes before the first [DEFAULT] or [SESSION]")]
    NoSection,
    /// The file has no session.
    #[error("the file has no [SESSION]")]
    NoSession,
    /// A key occurs twice in one section.
    #[error("{0} occurs twice in this section")]
    Twice(String),
    /// Two spellings of one setting of TLS have different values in one section.
    #[error("{0} and {1} are the same setting, and have different values in this section")]
    TwoSpellings(String, String),
    /// Two sessions have the same identity.
    #[error("session {0} occurs twice: a SubID or SessionQualifier must distinguish the two")]
    SameSession(String),
    /// The session requires this setting.
    #[error("the session has no {0}")]
    Missing(&'static str),
    /// A setting of security or of a store is not supported.
    #[error("{key} is not supported: {instead}")]
    Refused {
        /// The key. The value may be a secret.
        key: String,
        /// The alternative.
        instead: &'static str,
    },
    /// A value is invalid.
    #[error("{key}={value}: {expected}")]
    Value {
        /// The key.
        key: String,
        /// Its value; asterisks for a secret.
        value: String,
        /// A description of valid values.
        expected: String,
    },
}
