//! The handle of a port, for any thread.

use crate::ports::config::Pair;
use crate::ports::rules::RuleBook;
use fanfare_engine::host::{HostError, HostHandle, Port};
use std::net::SocketAddr;
use std::time::Duration;

/// A handle of the sessions of one port, for use on any thread while the gateway runs: see
/// [`Gateway::producer_port`](crate::Gateway::producer_port).
#[derive(Clone)]
pub struct PortHandle {
    /// The address on which the port listens.
    pub(crate) address: SocketAddr,
    pub(crate) rules: RuleBook,
    /// The hosts of its sessions.
    pub(crate) hosts: Vec<HostHandle>,
}

impl PortHandle {
    pub(crate) fn new(port: &Port, rules: &RuleBook, hosts: Vec<HostHandle>) -> Self {
        Self {
            address: port.address(),
            rules: rules.clone(),
            hosts,
        }
    }

    /// Adds a session to those that may log on. Has no effect on a port that any session may log on
    /// to.
    pub fn add_session(&self, session: Pair) {
        self.rules.change(|rules| rules.add_session(session));
    }

    /// Removes a session from those that may log on, and logs it out. Waits until it has ended,
    /// about half a second if the counterparty does not respond. Returns whether it was listed.
    /// Once the last one is removed, no session may log on.
    ///
    /// # Errors
    /// Returns an error if the gateway has ended.
    pub fn remove_session(&self, session: &Pair) -> Result<bool, HostError> {
        let was_listed = self.rules.change(|rules| rules.remove_session(session));
        if was_listed {
            self.log_out(session)?;
        }
        Ok(was_listed)
    }

    /// Logs out the live sessions of these CompIDs. A session that is claimed but not hosted yet is
    /// logged out as soon as it is hosted. Later Logons meet the new rules.
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

/// The time to wait for a session that is claimed but not hosted yet, or that has just ended.
const LOOK: Duration = Duration::from_millis(1);

impl std::fmt::Debug for PortHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PortHandle").finish_non_exhaustive()
    }
}
