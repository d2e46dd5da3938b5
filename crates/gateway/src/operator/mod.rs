//! What an operator can ask a gateway and tell it, whichever way the question comes.
//!
//! A family of commands is a file with its rows; [`COMMANDS`] lists the families. A row is all that
//! a command takes to be at the control socket, in `fanfare ctl` and under `/api/v1/`.

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

use crate::gateway_handle::GatewayHandle;
use crate::watch::Watch;
use fanfare_engine::counters::Counters;
use fanfare_engine::levels::LogLevels;
use fanfare_operator::{
    Ask, Changes, Command, HasLevels, Member, Operator, OperatorError, Outcome, Rows, Shape,
    level_rows,
};
use std::sync::mpsc::{SyncSender, sync_channel};

pub use config::{ConfigAsk, ConfigAsked, ConfigAsks};

/// What a gateway can do, by family.
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

/// A member of a result, in the tables of the families.
const fn of(name: &'static str, shape: Shape, about: &'static str) -> Member {
    Member::new(name, shape, about)
}

/// Answers operators, from any thread. Clones answer for the same gateway.
#[derive(Clone)]
pub struct GatewayOperator {
    gateway: GatewayHandle,
    config: SyncSender<ConfigAsked>,
    levels: LogLevels,
}

impl GatewayOperator {
    /// For a running gateway, whose stages are looked at each second from now on. Whoever runs it
    /// answers what is asked about its configuration; without [`ConfigAsks`], that is refused.
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

    /// Lets operators see and set these levels, those of the program's log.
    #[must_use]
    pub fn with_levels(self, levels: LogLevels) -> Self {
        Self { levels, ..self }
    }

    /// What there is to look at besides counters. It is looked at from now on, if it was not.
    fn watch(&self) -> Result<&Watch, OperatorError> {
        let watch = &self.gateway.shared().watch;
        let begun = watch.begin();
        begun
            .map_err(|error| OperatorError::failed(format!("the system has no thread: {error}")))?;
        Ok(watch)
    }

    /// What gateways can do.
    #[must_use]
    pub fn commands() -> Vec<&'static Command> {
        fanfare_operator::commands(COMMANDS)
    }
}

impl Operator for GatewayOperator {
    fn commands(&self) -> Vec<&'static Command> {
        Self::commands()
    }

    /// Waits for sessions that it ends, for up to 3 s, and for what is asked about the
    /// configuration, for up to a minute.
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
