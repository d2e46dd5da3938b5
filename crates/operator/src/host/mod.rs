//! The commands of a program that hosts FIX sessions.

mod sessions;
mod status;

use crate::ask::Ask;
use crate::audit::AuditFile;
use crate::command::Command;
use crate::error::Outcome;
use crate::levels::{HasLevels, level_rows};
use crate::operator::Operator;
use crate::row::{Rows, commands, run};
use fanfare_engine::counters::Counters;
use fanfare_engine::host::HostHandle;
use fanfare_engine::levels::LogLevels;
use fanfare_engine::stop::Reload;
use std::time::Instant;

/// The commands of a program that hosts FIX sessions, by family.
const COMMANDS: Rows<HostOperator> = &[status::COMMANDS, sessions::COMMANDS, &level_rows()];

/// Steers the sessions of a [`Host`](fanfare_engine::host::Host), from any thread.
#[derive(Clone)]
pub struct HostOperator {
    host: HostHandle,
    counters: Counters,
    audit: AuditFile,
    reload: Reload,
    levels: LogLevels,
    begun: Instant,
}

impl HostOperator {
    /// Makes an operator of a host, with the counters of its program. An operator's command
    /// requests `reload`.
    #[must_use]
    pub fn new(host: HostHandle, counters: Counters, audit: AuditFile, reload: Reload) -> Self {
        Self {
            host,
            counters,
            audit,
            reload,
            levels: LogLevels::new(&[]),
            begun: Instant::now(),
        }
    }

    /// Lets operators read and set these levels, those of the program's log.
    #[must_use]
    pub fn with_levels(self, levels: LogLevels) -> Self {
        Self { levels, ..self }
    }

    /// Returns the commands of such programs.
    #[must_use]
    pub fn commands() -> Vec<&'static Command> {
        commands(COMMANDS)
    }
}

impl Operator for HostOperator {
    fn commands(&self) -> Vec<&'static Command> {
        Self::commands()
    }

    /// Runs a command, and waits up to 30 s for each answer of the host.
    fn run(&self, ask: &Ask) -> Outcome {
        run(COMMANDS, self, ask)
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn note(&self, by: &str, asked: &str, outcome: &str) {
        self.audit.operator(by, asked, outcome);
    }
}

impl HasLevels for HostOperator {
    fn levels(&self) -> &LogLevels {
        &self.levels
    }
}

impl std::fmt::Debug for HostOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostOperator").finish_non_exhaustive()
    }
}
