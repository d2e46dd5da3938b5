//! `fanfare fix acceptor`: the acceptor sessions of a settings file.

use super::NAP;
use super::echo::Application;
use super::operators::Operators;
use super::sessions::{self, Losses, Running};
use crate::logs::LogArgs;
use crate::plural::counted;
use crate::print::say;
use crate::supervisor;
use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::agent;
use fanfare_engine::host::{Acceptor, Host};
use fanfare_engine::idle::Idle;
use fanfare_engine::settings::Endpoints;
use fanfare_engine::stop::{Reload, Stop};
use fanfare_fix::session::Role;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Any number of sessions may share a port. The CompIDs of a Logon identify its session, together \
with its SubIDs and LocationIDs where sessions have the same CompIDs. A section with \
AcceptorTemplate=Y creates a session for each Logon that matches its CompIDs. Without \
SocketAcceptAddress, only this machine can connect. The versions are FIX.4.0 to FIX.4.4, and \
FIXT.1.1 with 4.0 to 5.0SP2; without a dictionary file, the built-in tables of the version are \
used. With --control, `fanfare ctl` lists and controls the sessions while they run. \
docs/settings.md describes all keys; a key that is not supported is reported with its line, not \
ignored. Ctrl-C (SIGINT) and SIGTERM log all sessions out; the third one ends the program at \
once. SIGHUP opens the message log at its path again (for logrotate) and reads the certificate \
files again, for new connections. No other signal that can be caught ends the program.";

/// Options of `fanfare fix acceptor`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Settings in the format of QuickFIX: sections DEFAULT and SESSION, Key=Value.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Respond to application messages as a conformance test server does: orders, security
    /// definitions and e-mails are echoed, anything else is rejected.
    #[arg(long)]
    echo: bool,
    #[command(flatten)]
    losses: Losses,
    #[command(flatten)]
    operators: Operators,
    /// Of sessions, log errors only: no logons, logouts, refusals or disconnects.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.log.begin(sessions::levels(args.quiet))?;
    let mut sessions = sessions::read(&args.config, Role::Acceptor)?;
    for session in &mut sessions {
        session.config.mirror_appl_ver_id |= args.echo;
        args.losses.accept_in(session);
    }
    let on_loopback = sessions.iter().any(|session| !session.names_address);
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let reload = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let endpoints = Endpoints::of(sessions).with_context(|| args.config.display().to_string())?;
    let mut host = Host::new(Application::new(args.echo))?;
    let running = Running::begin(&mut host, &endpoints, &args.operators, reload)?;
    for acceptor in endpoints.acceptors {
        let hosted = hosted(&acceptor);
        let address = host.listen(acceptor)?;
        say!("listening on {address}, {hosted}");
    }
    if on_loopback {
        tracing::warn!(
            target: "program",
            "only this machine can connect: set SocketAcceptAddress=0.0.0.0 for others"
        );
    }
    supervisor::ready("serving");
    let ended = agent::run(&mut host, Idle::Wait(NAP), &stop);
    running.end()?;
    ended.map_err(anyhow::Error::from_boxed)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the number of sessions and templates of a port, in words.
fn hosted(acceptor: &Acceptor) -> String {
    let sessions = counted(acceptor.sessions.len() as u64, "session");
    let templates = &acceptor.wildcards;
    if templates.is_empty() {
        return sessions;
    }
    let most: usize = templates.iter().map(|template| template.max_sessions).sum();
    let templates = counted(templates.len() as u64, "template");
    format!("{sessions}, {templates} for up to {most} more")
}
