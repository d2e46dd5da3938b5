//! A fan-out gateway, whichever command starts it.

use super::{Running, Said};
use std::process::Command;

/// A gateway that listens on ports that the kernel picked.
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

    /// Waits for a line on stderr with this in it.
    pub(crate) fn tells(&mut self, what: &str) {
        self.running.tells(what);
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// A signal to it.
    pub(crate) fn signal(&self, name: &str) {
        self.running.signal(name);
    }

    /// As if its machine had gone.
    pub(crate) fn kill(mut self) {
        self.running.kill();
    }

    /// Ctrl-C; what it says at the end, which is a good one.
    pub(crate) fn stop(self) -> Said {
        self.running.interrupt();
        self.running.end().succeeded()
    }
}

/// The port at the end of a line.
pub(crate) fn port(line: &str) -> String {
    let port = line.rsplit(':').next().unwrap_or_default();
    assert!(port.parse::<u16>().is_ok_and(|port| port > 0), "{line}");
    port.to_owned()
}
