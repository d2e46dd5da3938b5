//! The commands of operators to a gateway, independent of their transport.
//!
//! A family of commands is a file with its rows, and [`COMMANDS`] lists the families. One row makes
//! a command available at the control socket, in `fanfare ctl` and under `/api/v1/`.

mod config;
mod log;
mod market;
mod notices;
mod pages;
mod sessions;
mod stages;
mod status;
mod subscriptions;
mod users;
pub(crate) mod which;

use crate::gateway::handle::GatewayHandle;
use crate::watch::Watch;
use fanfare_engine::counters::Counters;
use fanfare_engine::levels::LogLevels;
use fanfare_operator::{
    Ask, Changes, Command, HasLevels, Member, Operator, OperatorError, Outcome, Rows, Shape,
    level_rows,
};
use std::sync::mpsc::{SyncSender, sync_channel};

pub use config::{ConfigAsk, ConfigAsked, ConfigAsks};

/// The commands of a gateway, by family.
const COMMANDS: Rows<GatewayOperator> = &[
    status::COMMANDS,
    stages::COMMANDS,
    market::COMMANDS,
    sessions::COMMANDS,
    subscriptions::COMMANDS,
    notices::COMMANDS,
    users::COMMANDS,
    config::COMMANDS,
    log::COMMANDS,
    &level_rows(),
];

/// Returns a member of a result, for the tables of the families.
const fn of(name: &'static str, shape: Shape, about: &'static str) -> Member {
    Member::new(name, shape, about)
}

/// The executor of operators' commands, usable from any thread. Clones refer to the same gateway.
#[derive(Clone)]
pub struct GatewayOperator {
    gateway: GatewayHandle,
    config: SyncSender<ConfigAsked>,
    levels: LogLevels,
}

impl GatewayOperator {
    /// Creates the executor of a running gateway, whose stages are sampled each second from now on.
    /// The program that runs the gateway responds to the requests in [`ConfigAsks`], which are
    /// refused once it is dropped.
    #[must_use]
    pub fn new(gateway: GatewayHandle) -> (Self, ConfigAsks) {
        gateway.shared().stages.watch();
        let (config, asks) = sync_channel(config::MOST);
        let levels = LogLevels::new(&[]);
        let own = Self {
            gateway,
            config,
            levels,
        };
        (own, ConfigAsks::new(asks))
    }

    /// Lets operators read and set these levels, those of the program's log.
    #[must_use]
    pub fn with_levels(self, levels: LogLevels) -> Self {
        Self { levels, ..self }
    }

    /// Returns the state besides counters, which is watched from the first call on.
    fn watch(&self) -> Result<&Watch, OperatorError> {
        let watch = &self.gateway.shared().watch;
        let begun = watch.begin();
        begun.map_err(|error| OperatorError::failed(format!("cannot start a thread: {error}")))?;
        Ok(watch)
    }

    /// Returns the commands of gateways.
    #[must_use]
    pub fn commands() -> Vec<&'static Command> {
        fanfare_operator::commands(COMMANDS)
    }
}

impl Operator for GatewayOperator {
    fn commands(&self) -> Vec<&'static Command> {
        Self::commands()
    }

    /// Runs a command. Waits up to 3 s for the sessions that it ends, and up to a minute for a
    /// request about the configuration.
    fn run(&self, ask: &Ask) -> Outcome {
        fanfare_operator::run(COMMANDS, self, ask)
    }

    fn counters(&self) -> &Counters {
        &self.gateway.shared().counters
    }

    fn changes(&self) -> Option<&Changes> {
        self.watch().ok().map(Watch::changes)
    }

    fn note(&self, by: &str, asked: &str, outcome: &str) {
        let audit = &self.gateway.shared().audit;
        audit.operator(by, asked, outcome);
    }
}

impl HasLevels for GatewayOperator {
    fn levels(&self) -> &LogLevels {
        &self.levels
    }
}

impl std::fmt::Debug for GatewayOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayOperator").finish_non_exhaustive()
    }
}
