//! A fan-out gateway, whatever command starts it.

use super::{Running, Said};
use std::process::Command;

/// A gateway that listens on ports that the kernel chose.
pub(crate) struct Gateway {
    running: Running,
    /// The port for producers.
    pub(crate) producers: String,
    /// The port for consumers.
    pub(crate) consumers: String,
}

impl Gateway {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command);
        let mut port_after = |what: &str| port(&running.prints(what));
        Self {
            producers: port_after("Listening for producers on 127.0.0.1:"),
            consumers: port_after("Listening for consumers on 127.0.0.1:"),
            running,
        }
    }

    /// Waits for a line on stdout that contains `what`.
    pub(crate) fn prints(&mut self, what: &str) {
        self.running.prints(what);
    }

    /// Waits for a line on stderr that contains `what`.
    pub(crate) fn tells(&mut self, what: &str) {
        self.running.tells(what);
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// Kills the process, like a failure of its machine.
    pub(crate) fn kill(mut self) {
        self.running.kill();
    }

    /// Interrupts it, as Ctrl-C does, and returns its last output; it must succeed.
    pub(crate) fn stop(self) -> Said {
        self.running.interrupt();
        self.running.end().succeeded()
    }
}

/// Returns the port at the end of a line.
pub(crate) fn port(line: &str) -> String {
    let port = line.rsplit(':').next().unwrap_or_default();
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{line}");
    port.to_owned()
}
