//! The common part of acceptor and initiator: settings files, log levels, threads.

use super::NAP;
use super::operators::Operators;
use super::reload::{Reloader, warn_of_time};
use crate::print::note;
use crate::supervisor;
use anyhow::{Context, Result, ensure};
use fanfare_engine::agent::Crew;
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{Handler, Host};
use fanfare_engine::idle::Idle;
use fanfare_engine::levels::LogLevel;
use fanfare_engine::settings::{Endpoints, SessionSettings, Settings};
use fanfare_engine::stop::{Reload, Stop};
use fanfare_fix::session::{DisconnectReason, Role};
use fanfare_operator::Control;
use std::path::Path;

/// What a session may lose.
#[derive(Debug, clap::Args)]
pub(super) struct Losses {
    /// Never block a session on the message log (FileLogPath): messages beyond its buffer are
    /// dropped and counted, and stderr reports it. Without this option the log is complete.
    #[arg(long)]
    lossy_log: bool,
    /// Start a session even if its store has lost messages: intact messages are saved, and the
    /// damaged store is kept beside the new one. Without this option such a session does not start,
    /// and stderr reports what is lost.
    #[arg(long)]
    accept_loss: bool,
}

impl Losses {
    /// Accepts these losses in a session, beside those of its settings.
    pub(super) fn accept_in(&self, session: &mut SessionSettings) {
        session.lossy_log |= self.lossy_log;
        if self.accept_loss {
            session.store.accept_loss();
        }
    }
}

/// Returns the levels of the log, unless an option names others. `quiet` omits logons, logouts and
/// disconnects.
pub(super) const fn levels(quiet: bool) -> &'static str {
    if quiet { "info,session=error" } else { "info" }
}

/// Returns the level at which the end of a session is logged.
pub(super) const fn level_of(reason: &DisconnectReason) -> LogLevel {
    match reason {
        DisconnectReason::LogoutByPeer | DisconnectReason::LogoutComplete => LogLevel::Info,
        _ => LogLevel::Warn,
    }
}

/// Reads the sessions of this role in a settings file, and names settings without effect.
pub(super) fn read(path: &Path, role: Role) -> Result<Vec<SessionSettings>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let settings = Settings::parse(&text).with_context(|| name.to_string())?;
    for remark in &settings.remarks {
        tracing::warn!(target: "program", "{name}: {remark}");
    }
    if let Some(zone) = &settings.local_zone {
        tracing::info!(target: "program", "{name}: UseLocalTime: this machine's zone is {zone}");
    }
    let kind = match role {
        Role::Acceptor => "acceptor",
        Role::Initiator => "initiator",
    };
    let mut sessions = settings.sessions;
    sessions.retain(|session| {
        let is_ours = session.role == role;
        if !is_ours {
            let id = &session.config.id;
            tracing::warn!(
                target: "program",
                "{name}: session {id} is left out: it is not an {kind}"
            );
        }
        is_ours
    });
    ensure!(
        !sessions.is_empty(),
        "{name} has no session with ConnectionType={kind}"
    );
    Ok(sessions)
}

/// Prints the losses of the message log, if any.
pub(crate) fn print_log_losses(counters: &Counters) {
    let lost = counters.snapshot().into_iter().filter(|reading| {
        matches!(&*reading.name, "log_lost_bytes" | "log_unwritten_bytes") && reading.value > 0
    });
    for reading in lost {
        note!("{} {}", reading.value, reading.description);
    }
}

/// The threads beside a host.
pub(super) struct Running {
    crew: Crew,
    counters: Counters,
    /// The control socket; it ends before the crew, which writes the audit file.
    control: Option<Control>,
}

impl Running {
    /// Starts the message log, listens for operators, and reloads certificates at SIGHUP. Prints
    /// deviations from the settings.
    pub(super) fn begin<H: Handler>(
        host: &mut Host<H>,
        endpoints: &Endpoints,
        operators: &Operators,
        reload: Reload,
    ) -> Result<Self> {
        for remark in &endpoints.remarks {
            tracing::warn!(target: "program", "{remark}");
        }
        endpoints.certificates.iter().for_each(warn_of_time);
        endpoints.raise_open_files();
        let (mut crew, counters) = (Crew::new(Stop::new()), Counters::new());
        if let Some((tap, log)) = endpoints.message_log(&counters)? {
            host.log_to(tap);
            crew.spawn(log.reopen_on(reload.clone()), Idle::Sleep(NAP), None)?;
        }
        let control = operators.begin(host.handle(), &mut crew, &counters, reload.clone())?;
        let reloader = Reloader::new(reload, endpoints.certificates.clone());
        crew.spawn(reloader, Idle::Sleep(NAP), None)?;
        Ok(Self {
            crew,
            counters,
            control,
        })
    }

    /// Ends the threads, after the host.
    pub(super) fn end(self) -> Result<()> {
        let Self {
            crew,
            counters,
            control,
        } = self;
        supervisor::stopping("completing the logs");
        drop(control);
        crew.stop().raise();
        crew.join()?;
        print_log_losses(&counters);
        Ok(())
    }
}
