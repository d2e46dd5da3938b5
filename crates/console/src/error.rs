//! Errors of starting a console.

use fanfare_engine::tls::TlsError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why a console did not start.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// The token cannot be read.
    #[error("`console.token_file` = {0}")]
    Token(PathBuf, #[source] io::Error),
    /// The address cannot be listened on.
    #[error("the console cannot listen at {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// The Unix socket cannot be made.
    #[error("`console.socket` = {0}")]
    Socket(PathBuf, #[source] io::Error),
    /// The certificate or its key cannot be used.
    #[error("`console.tls`")]
    Tls(#[from] TlsError),
    /// The system has no thread or descriptor left.
    #[error("cannot start a thread for the console")]
    Thread(#[source] io::Error),
}
