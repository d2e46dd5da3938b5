//! Settings files as QuickFIX users have them: `[DEFAULT]`, `[SESSION]`, `Key=Value`, `#`.
//!
//! [`Settings::endpoints`] makes of a file what a host runs: a program of ten lines does what the
//! file says (see [`Endpoints`]). Reading the file takes its text and opens nothing. A setting that
//! is not supported, or not with its value, becomes a [`Remark`] with its line: none is passed over
//! in silence.
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

pub use dictionaries::{DictionaryError, DictionaryFile, DictionaryFiles};
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
    /// What the file asks for and does not get, in the order of the file.
    pub remarks: Vec<Remark>,
}

impl Settings {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str) -> Result<Self, SettingsError> {
        let file = file::read(text)?;
        let mut sessions = Vec::with_capacity(file.sessions.len());
        let mut unused = Vec::new();
        for own in &file.sessions {
            let section = Section {
                own,
                default: &file.default,
            };
            for session in SessionSettings::read(&section)? {
                let id = &session.config.id;
                if sessions.iter().any(|other| same(other, &session)) {
                    let (line, fault) = (own.line, SettingsFault::SameSession(id.to_string()));
                    return Err(SettingsError { line, fault });
                }
                unused.extend(remarks::unused(&section, &session));
                sessions.push(session);
            }
        }
        let entries = file.sessions.iter().map(|session| &session.entries);
        let entries = std::iter::once(&file.default.entries).chain(entries);
        let mut remarks: Vec<_> = entries.flatten().filter_map(remarks::remark).collect();
        remarks.extend(unused);
        remarks.sort_by_key(|remark| remark.line);
        remarks.dedup();
        Ok(Self { sessions, remarks })
    }

    /// What a host runs, of both roles: opens dictionaries and certificates, and looks up hosts.
    ///
    /// # Errors
    /// See [`EndpointsError`].
    pub fn endpoints(self) -> Result<Endpoints, EndpointsError> {
        Endpoints::of(self.sessions)
    }
}

/// Templates may be for the same on several ports.
fn same(a: &SessionSettings, b: &SessionSettings) -> bool {
    let of = |session: &SessionSettings| match &session.template {
        Some(_) => (true, session.listen),
        None => (false, None),
    };
    (a.role, &a.config.id, of(a)) == (b.role, &b.config.id, of(b))
}

/// What is wrong with a settings file, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct SettingsError {
    /// The line, from 1; of a missing setting that of its section.
    pub line: usize,
    /// What is wrong.
    pub fault: SettingsFault,
}

/// See [`SettingsError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettingsFault {
    /// A line that is nothing known.
    #[error("neither [DEFAULT], [SESSION], Key=Value nor a # comment")]
    NotALine,
    /// A setting in front of the first section.
    #[error("a setting in front of [DEFAULT] or [SESSION]")]
    NoSection,
    /// The file has no session.
    #[error("there is no [SESSION]")]
    NoSession,
    /// A key twice in one section.
    #[error("{0} stands twice in this section")]
    Twice(String),
    /// Two sessions that nothing tells apart.
    #[error("session {0} begins here again: a SubID or SessionQualifier tells two apart")]
    SameSession(String),
    /// The session cannot be without this setting.
    #[error("the session that begins here has no {0}")]
    Missing(&'static str),
    /// A setting that asks for security or for a store, in a way that is not supported.
    #[error("{key} is not supported: {instead}")]
    Refused {
        /// The key. The value may be a secret.
        key: String,
        /// What serves instead.
        instead: &'static str,
    },
    /// A value that cannot be.
    #[error("{key}={value}: {expected}")]
    Value {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What it should be.
        expected: String,
    },
}
