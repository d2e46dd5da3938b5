//! A host for one initiator or one port.

use super::Host;
use crate::agent::{AgentError, run};
use crate::host::handler::Handler;
use crate::host::settings::{Acceptor, Initiator};
use crate::idle::Idle;
use crate::stop::Stop;

impl Initiator {
    /// Runs the initiator, alone on this thread, until `stop` is raised.
    ///
    /// # Errors
    /// The host cannot be started, or it failed.
    pub fn run(self, handler: impl Handler, idle: Idle, stop: &Stop) -> Result<(), AgentError> {
        let mut host = Host::new(handler)?;
        host.initiate(self)?;
        run(&mut host, idle, stop)
    }
}

impl Acceptor {
    /// Runs the acceptor, alone on this thread, until `stop` is raised.
    ///
    /// # Errors
    /// The host cannot be started (the port is taken, a store cannot be opened), or it failed.
    pub fn run(self, handler: impl Handler, idle: Idle, stop: &Stop) -> Result<(), AgentError> {
        let mut host = Host::new(handler)?;
        host.listen(self)?;
        run(&mut host, idle, stop)
    }
}
