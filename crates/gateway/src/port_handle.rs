//! A port of a gateway, from any thread.

use crate::port_config::Pair;
use crate::rules::RuleBook;
use fanfare_engine::host::{HostError, HostHandle};
use std::time::Duration;

/// The sessions of one port, for use on any thread while the gateway runs: see
/// [`Gateway::producer_port`](crate::Gateway::producer_port).
#[derive(Clone)]
pub struct PortHandle {
    pub(crate) rules: RuleBook,
    /// The hosts of its sessions.
    pub(crate) hosts: Vec<HostHandle>,
}

impl PortHandle {
    /// Adds a session to those that may log on from now on. Has no effect where any may, and where
    /// it may already.
    pub fn add_session(&self, session: Pair) {
        self.rules.change(|rules| {
            let sessions = &mut rules.config.sessions;
            if !sessions.is_empty() && !sessions.contains(&session) {
                sessions.push(session);
            }
        });
    }

    /// Removes a session from those that may log on, and logs it out. Waits until it has ended,
    /// about half a second if it does not answer. Returns whether it was on the list. The last
    /// session of a list stays, as an empty one admits everybody.
    ///
    /// # Errors
    /// The gateway has ended.
    pub fn remove_session(&self, session: &Pair) -> Result<bool, HostError> {
        let mut was_listed = false;
        self.rules.change(|rules| {
            let sessions = &mut rules.config.sessions;
            if sessions.len() > 1 {
                let before = sessions.len();
                sessions.retain(|own| own != session);
                was_listed = sessions.len() < before;
            }
        });
        if was_listed {
            self.log_out(session)?;
        }
        Ok(was_listed)
    }

    /// Logs out what is live of a session. One that is claimed is hosted at once, if it is not yet:
    /// who logs on now finds the new rules.
    fn log_out(&self, session: &Pair) -> Result<(), HostError> {
        let registry = self.rules.read().registry.clone();
        loop {
            let live = registry.live(&session.sender, &session.target);
            if live.is_empty() {
                return Ok(());
            }
            for (id, host) in live
                .iter()
                .flat_map(|id| self.hosts.iter().map(move |h| (id, h)))
            {
                match host.remove(id).wait() {
                    Ok(()) | Err(HostError::Unknown(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// How long to wait for a session that is claimed and not hosted yet, or just ended.
const LOOK: Duration = Duration::from_millis(1);

impl std::fmt::Debug for PortHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortHandle").finish_non_exhaustive()
    }
}
