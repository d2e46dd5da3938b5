//! A port of a gateway, from any thread.

use crate::port_config::Pair;
use crate::rules::RuleBook;
use fanfare_engine::host::{HostError, HostHandle, Port};
use std::net::SocketAddr;
use std::time::Duration;

/// The sessions of one port, for use on any thread while the gateway runs: see
/// [`Gateway::producer_port`](crate::Gateway::producer_port).
#[derive(Clone)]
pub struct PortHandle {
    /// Where the port listens.
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
    /// about half a second if it does not answer. Returns whether it was listed. Once the last one
    /// is removed, no session may log on.
    ///
    /// # Errors
    /// The gateway has ended.
    pub fn remove_session(&self, session: &Pair) -> Result<bool, HostError> {
        let was_listed = self.rules.change(|rules| rules.remove_session(session));
        if was_listed {
            self.log_out(session)?;
        }
        Ok(was_listed)
    }

    /// Logs out the live sessions of these CompIDs. A session that is claimed and not hosted yet
    /// follows at once; later Logons meet the new rules.
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
