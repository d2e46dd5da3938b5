//! SIGHUP: certificates are read again.

use crate::print::note;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::stop::Reload;
use fanfare_engine::tls::TlsError;
use fanfare_fix::session::Now;

/// Reads certificates again on a thread of its own, so that no session waits for a disk.
pub(super) struct Reloader {
    reload: Reload,
    certificates: Vec<Certificates>,
}

/// What certificates are for, and how they are read again.
type Certificates = (String, Box<dyn Fn() -> Result<(), TlsError> + Send>);

impl Reloader {
    pub(super) fn new(reload: Reload) -> Self {
        Self {
            reload,
            certificates: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        of: String,
        reload: impl Fn() -> Result<(), TlsError> + Send + 'static,
    ) {
        self.certificates.push((of, Box::new(reload)));
    }
}

impl Agent for Reloader {
    fn name(&self) -> &str {
        "reload"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        if !self.reload.is_due() {
            return Ok(0);
        }
        note!("SIGHUP: logs are opened again, certificates read again");
        for (of, reload) in &self.certificates {
            match reload() {
                Ok(()) => note!("{of}: certificates read, for new connections"),
                Err(error) => note!("{of}: {error}; the certificates from before stay in force"),
            }
        }
        Ok(1)
    }
}
