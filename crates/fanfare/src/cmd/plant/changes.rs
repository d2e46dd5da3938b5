//! Reloads of the configuration while the gateway runs.

use super::events::EventLog;
use super::{Reread, check, raise_limit, warn};
use crate::logs;
use crate::supervisor;
use anyhow::Result;
use fanfare_console::{Console, NewFiles};
use fanfare_gateway::{Config, ConfigAsk, Gateway, ProgramLog, Reloaded, descriptors_wanted};
use fanfare_instruments::capture::{Capture, Reopened};
use serde_json::Value;

/// The parts of a running gateway that a reload changes.
pub(super) struct Changes<'a> {
    /// The configuration at the start.
    pub(super) started: &'a Config,
    pub(super) gateway: &'a Gateway,
    pub(super) capture: Option<&'a Capture>,
    pub(super) events: Option<&'a EventLog>,
    pub(super) console: Option<&'a Console>,
    pub(super) reread: Reread<'a>,
}

/// The settings of the log in a new configuration, if it was applied.
type LogSettings = Option<ProgramLog>;

impl Changes<'_> {
    /// Reloads at SIGHUP, and reports that to the service manager.
    pub(super) fn hang_up(&self) -> LogSettings {
        supervisor::reloading();
        let (outcome, settings) = self.reload();
        let (Ok(status) | Err(status)) = outcome;
        supervisor::ready(&status);
        settings
    }

    /// Applies the settings that can change while the gateway runs, opens logs again, and begins a
    /// new capture file if the old one was renamed. Returns one line that describes the changes, or
    /// the reason why nothing changed.
    fn reload(&self) -> (Result<String, String>, LogSettings) {
        self.events.iter().for_each(|events| events.reopen());
        let adopted = self.adopt();
        let capture = self.capture_again();
        let (outcome, config) = match (adopted, capture) {
            (Ok((done, config)), Ok(capture)) => (Ok(format!("{done}{capture}")), Some(config)),
            (Ok((done, config)), Err(why)) => (Err(format!("{done}{why}")), Some(config)),
            (Err(error), Ok(capture) | Err(capture)) => {
                (Err(format!("{}{capture}", refused(&error))), None)
            }
        };
        tell(&outcome);
        if let Some(config) = &config {
            warn(self.started, config);
        }
        (outcome, config.map(|config| config.log))
    }

    /// Adopts the current configuration, and the console's token and certificate: all, or nothing.
    /// Returns the changes and the configuration.
    fn adopt(&self) -> Result<(Reloaded, Config)> {
        let read = (self.reread)().and_then(|config| {
            let files = self.console_files()?;
            if descriptors_wanted(&config) > descriptors_wanted(self.started) {
                raise_limit(&config)?;
            }
            Ok((config, files))
        });
        let (config, files) = read.inspect_err(|error| {
            let handle = self.gateway.handle();
            handle.reopen_logs();
            handle.reload_failed(&**error);
        })?;
        let handle = self.gateway.handle();
        handle.reopen_logs();
        let done = handle.reload_with(&config, &changed(files.as_ref()))?;
        if let Some(files) = files {
            files.adopt();
        }
        Ok((done, config))
    }

    /// Reads the console's token and certificate, if there is a console.
    fn console_files(&self) -> Result<Option<NewFiles>> {
        Ok(self.console.map(Console::read_again).transpose()?)
    }

    /// Describes the outcome for the capture's file; an error if it could not be opened again.
    fn capture_again(&self) -> Result<String, String> {
        match self.capture.map(Capture::reopen) {
            None => Ok(String::new()),
            Some(Ok(Reopened::Same)) => Ok("; the capture goes on in its file".to_owned()),
            Some(Ok(Reopened::New)) => Ok("; the capture goes on in a new file".to_owned()),
            Some(Err(error)) => Err(format!("; {error}")),
        }
    }

    /// Handles an operator's command.
    pub(super) fn answer(&self, ask: ConfigAsk) -> (Result<Value, String>, LogSettings) {
        let outcome = match ask {
            ConfigAsk::Reload => {
                // At SIGHUP the program's log opens its file by itself.
                logs::reopen();
                let (outcome, settings) = self.reload();
                return (outcome.map(Value::String), settings);
            }
            ConfigAsk::ReloadUsers => self.reload_users().map(Value::String),
            ConfigAsk::Check => self.found(|config| {
                check(config)?;
                Ok("the configuration can be used".into())
            }),
            ConfigAsk::Diff => self.found(|config| {
                let files = self.console_files()?;
                let mut found = self.gateway.handle().differences(config)?;
                found.keys.extend(changed(files.as_ref()));
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

/// Returns the keys of the console's files whose contents have changed.
fn changed(files: Option<&NewFiles>) -> Vec<&'static str> {
    files.map(NewFiles::changed).unwrap_or_default()
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
