//! What both sides do with a settings file.

use super::NAP;
use super::operators::Operators;
use super::reload::Reloader;
use crate::print::note;
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

/// The levels of the log, unless an option names others. With `quiet` nobody is told who comes and
/// goes, and why.
pub(super) const fn levels(quiet: bool) -> &'static str {
    if quiet { "info,session=error" } else { "info" }
}

/// How much the end of a session matters.
pub(super) const fn level_of(reason: &DisconnectReason) -> LogLevel {
    match reason {
        DisconnectReason::LogoutByPeer | DisconnectReason::LogoutComplete => LogLevel::Info,
        _ => LogLevel::Warn,
    }
}

/// The sessions of this role in a settings file; what has no effect is named.
pub(super) fn read(path: &Path, role: Role) -> Result<Vec<SessionSettings>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let settings = Settings::parse(&text).with_context(|| name.to_string())?;
    for remark in &settings.remarks {
        tracing::warn!(target: "program", "{name}: {remark}");
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
            tracing::warn!(target: "program", "{name}: session {id} is no {kind}, it is left out");
        }
        is_ours
    });
    ensure!(
        !sessions.is_empty(),
        "{name} has no session with ConnectionType={kind}"
    );
    Ok(sessions)
}

/// Prints what the message log lacks, if it lacks anything.
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
    /// Ends in front of the crew, which writes what operators did.
    control: Option<Control>,
}

impl Running {
    /// Begins the message log, listens for operators, and reads certificates again at SIGHUP.
    /// Prints what is not as the settings have it.
    pub(super) fn begin<H: Handler>(
        host: &mut Host<H>,
        endpoints: &Endpoints,
        operators: &Operators,
        reload: Reload,
    ) -> Result<Self> {
        for remark in &endpoints.remarks {
            tracing::warn!(target: "program", "{remark}");
        }
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

    /// Ends them behind the host.
    pub(super) fn end(self) -> Result<()> {
        let Self {
            crew,
            counters,
            control,
        } = self;
        drop(control);
        crew.stop().raise();
        crew.join()?;
        print_log_losses(&counters);
        Ok(())
    }
}
