//! Reloads of the configuration while the gateway runs.

use super::events::EventLog;
use super::{Reread, check};
use crate::logs;
use anyhow::Result;
use fanfare_console::Console;
use fanfare_gateway::{Config, ConfigAsk, Gateway};
use fanfare_instruments::capture::{Capture, Reopened};
use serde_json::Value;

/// The parts of a running gateway that a reload changes.
pub(super) struct Changes<'a> {
    pub(super) gateway: &'a Gateway,
    pub(super) capture: Option<&'a Capture>,
    pub(super) events: Option<&'a EventLog>,
    pub(super) console: Option<&'a Console>,
    pub(super) reread: Reread<'a>,
}

/// The log's levels in a new configuration, if it was applied.
type Level = Option<String>;

impl Changes<'_> {
    /// Applies the settings that can change while the gateway runs, opens logs again, and begins a
    /// new capture file if the old one was renamed. Returns one line that describes the changes, or
    /// the reason why nothing changed.
    pub(super) fn reload(&self) -> (Result<String, String>, Level) {
        self.events.iter().for_each(|events| events.reopen());
        let config = (self.reread)();
        if let Err(error) = &config {
            let handle = self.gateway.handle();
            handle.reopen_logs();
            handle.reload_failed(&**error);
        }
        let taken = config.and_then(|config| {
            let done = self.gateway.reload(&config)?;
            Ok((done, config.log.level))
        });
        let files = self.reopened();
        let (outcome, level) = match (taken, files) {
            (Ok((done, level)), Ok(files)) => (Ok(format!("{done}{files}")), Some(level)),
            (Ok((done, level)), Err(why)) => (Err(format!("{done}{why}")), Some(level)),
            (Err(error), Ok(files) | Err(files)) => {
                (Err(format!("{}{files}", refused(&error))), None)
            }
        };
        tell(&outcome);
        (outcome, level)
    }

    /// Describes the outcome for the capture's file and the console's certificate; an error if one
    /// of them could not be opened again.
    fn reopened(&self) -> Result<String, String> {
        let capture = match self.capture.map(Capture::reopen) {
            None => Ok(String::new()),
            Some(Ok(Reopened::Same)) => Ok("; the capture goes on in its file".to_owned()),
            Some(Ok(Reopened::New)) => Ok("; the capture goes on in a new file".to_owned()),
            Some(Err(error)) => Err(format!("; {error}")),
        };
        match self.console.map(Console::reload) {
            Some(Err(error)) => {
                let (Ok(capture) | Err(capture)) = capture;
                Err(format!(
                    "{capture}; the console keeps its certificate: {error}"
                ))
            }
            _ => capture,
        }
    }

    /// Handles an operator's command.
    pub(super) fn answer(&self, ask: ConfigAsk) -> (Result<Value, String>, Level) {
        let outcome = match ask {
            ConfigAsk::Reload => {
                // At SIGHUP the program's log opens its file by itself.
                logs::reopen();
                let (outcome, level) = self.reload();
                return (outcome.map(Value::String), level);
            }
            ConfigAsk::ReloadUsers => self.reload_users().map(Value::String),
            ConfigAsk::Check => self.found(|config| {
                check(config)?;
                Ok("the configuration can be used".into())
            }),
            ConfigAsk::Diff => self.found(|config| {
                let found = self.gateway.handle().differences(config)?;
                Ok(Value::from(&found))
            }),
        };
        (outcome, None)
    }

    fn reload_users(&self) -> Result<String, String> {
        let handle = self.gateway.handle();
        let outcome = match (self.reread)() {
            Ok(config) => handle
                .reload_users(&config)
                .map(|done| done.to_string())
                .map_err(anyhow::Error::from),
            Err(error) => {
                handle.reload_failed(&*error);
                Err(error)
            }
        };
        let outcome = outcome.map_err(|error| refused(&error));
        tell(&outcome);
        outcome
    }

    /// Evaluates the current configuration file without applying it.
    fn found(&self, look: impl FnOnce(&Config) -> Result<Value>) -> Result<Value, String> {
        let found = (self.reread)().and_then(|config| look(&config));
        found.map_err(|error| format!("{error:#}"))
    }
}

fn refused(error: &anyhow::Error) -> String {
    format!("not reloaded, everything stays as it was: {error:#}")
}

fn tell(outcome: &Result<String, String>) {
    match outcome {
        Ok(done) => tracing::info!(target: "program", "{done}"),
        Err(why) => tracing::warn!(target: "program", "{why}"),
    }
}
