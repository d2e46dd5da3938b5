//! SIGHUP, and `config reload`: logs are opened again, and certificates reloaded.

use crate::supervisor;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::clock;
use fanfare_engine::settings::Certificates;
use fanfare_engine::stop::Reload;
use fanfare_fix::session::Now;

/// A reloader of certificates on a thread of its own, so that no session waits for a disk.
pub(super) struct Reloader {
    reload: Reload,
    certificates: Vec<Certificates>,
}

impl Reloader {
    pub(super) const fn new(reload: Reload, certificates: Vec<Certificates>) -> Self {
        Self {
            reload,
            certificates,
        }
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
        supervisor::reloading();
        crate::logs::reopen();
        tracing::info!(target: "program", "SIGHUP: logs are reopened and certificates reloaded");
        let mut kept = Vec::new();
        for certificates in &self.certificates {
            let of = &certificates.of;
            match certificates.reload() {
                Ok(()) => {
                    let what = "certificates read, for new connections";
                    tracing::info!(target: "program", "{of}: {what}");
                    warn_of_time(certificates);
                }
                Err(error) => {
                    let what = format!("{of}: {error}; the previous certificates stay in force");
                    tracing::warn!(target: "program", "{what}");
                    kept.push(what);
                }
            }
        }
        supervisor::ready(&match kept.is_empty() {
            true => "reloaded".to_owned(),
            false => kept.join("; "),
        });
        Ok(1)
    }
}

/// Warns of a certificate that counterparties refuse at this time.
pub(super) fn warn_of_time(certificates: &Certificates) {
    if let Some(why) = certificates.out_of_time(clock::utc()) {
        tracing::warn!(target: "program", "{}: {why}", certificates.of);
    }
}
