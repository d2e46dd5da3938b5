//! The error of a gateway that cannot start.

use crate::config::error::ConfigError;
use crate::dbn::DbnError;
use crate::feed::FeedError;
use crate::replay::ReplayError;
use crate::users::UsersError;
use fanfare_engine::tcp::BindError;
use fanfare_engine::tls::TlsError;
use std::io;
use std::path::PathBuf;

/// The reason why a gateway could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A value of the configuration is out of range.
    #[error("configuration")]
    Config(#[from] ConfigError),
    /// A new configuration cannot be used with the former values of keys that the reload does not
    /// change.
    #[error(
        "the new configuration cannot be used without a change of {}, which this reload does not \
         make",
        .0.join(", ")
    )]
    Kept(Vec<&'static str>, #[source] ConfigError),
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The certificates of a port cannot be used.
    #[error("{0}.tls")]
    Tls(&'static str, #[source] TlsError),
    /// The users, or the named lists, cannot be used.
    #[error("users")]
    Users(#[from] UsersError),
    /// The message log cannot be written.
    #[error("cannot write the message log {}", .0.display())]
    Log(PathBuf, #[source] io::Error),
    /// The audit file cannot be written.
    #[error("cannot write the audit file {}", .0.display())]
    Audit(PathBuf, #[source] io::Error),
    /// The log of market events cannot be opened.
    #[error("history")]
    History(#[source] fanfare_history::LogError),
    /// The log, or the file of DBN, that this key names cannot be replayed.
    #[error("{0}")]
    Replay(&'static str, #[source] ReplayError),
    /// The operating system provided no descriptor, thread or memory.
    #[error("cannot start")]
    System(#[from] io::Error),
    /// DDS could not be joined.
    #[error("dds")]
    Dds(#[from] fanfare_dds::Error),
    /// The feed could not be opened.
    #[error("feed")]
    Feed(#[from] FeedError),
    /// The DBN port could not be opened.
    #[error("dbn")]
    Dbn(#[from] DbnError),
    /// The file of the ring of market events cannot be created.
    #[error("cannot make {}, the file of the ring of market events (`history.ring`)", .0.display())]
    RingFile(PathBuf, #[source] io::Error),
    /// The ring accepts no more readers, which is not expected.
    #[error("cannot start: the ring has no room for another reader")]
    Ring,
}
