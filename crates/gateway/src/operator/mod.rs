//! What an operator can ask a gateway and tell it, whichever way the question comes.
//!
//! A family of commands is a file with its rows; [`COMMANDS`] lists the families. A row is all that
//! a command takes to be at the control socket, in `fanfare ctl` and under `/api/v1/`.

mod market;
mod notices;
mod pages;
mod reload;
mod sessions;
mod stages;
mod status;
mod subscriptions;
mod users;

use crate::gateway_handle::GatewayHandle;
use crate::watch::Watch;
use fanfare_engine::counters::Counters;
use fanfare_operator::{Ask, Changes, Command, Operator, OperatorError, Outcome, Rows};
use std::sync::mpsc::{SyncSender, sync_channel};

pub use reload::{ReloadAsked, Reloads};

/// What a gateway can do, by family.
const COMMANDS: Rows<GatewayOperator> = &[
    status::COMMANDS,
    stages::COMMANDS,
    market::COMMANDS,
    sessions::COMMANDS,
    subscriptions::COMMANDS,
    notices::COMMANDS,
    users::COMMANDS,
    reload::COMMANDS,
];

/// Answers operators, from any thread. Clones answer for the same gateway.
#[derive(Clone)]
pub struct GatewayOperator {
    gateway: GatewayHandle,
    reload: SyncSender<ReloadAsked>,
}

impl GatewayOperator {
    /// For a running gateway, whose stages are looked at each second from now on. Whoever runs it
    /// looks after the reloads that are asked for; without [`Reloads`], they are refused.
    #[must_use]
    pub fn new(gateway: GatewayHandle) -> (Self, Reloads) {
        gateway.shared().stages.watch();
        let (reload, reloads) = sync_channel(reload::MOST);
        (Self { gateway, reload }, Reloads::new(reloads))
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

    /// Waits for sessions that it ends, for up to 3 s, and for a reload, for up to a minute.
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

impl std::fmt::Debug for GatewayOperator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayOperator").finish_non_exhaustive()
    }
}
