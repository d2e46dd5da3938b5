//! `fanfare fix acceptor`: the acceptor sessions of a settings file.

use super::echo::{Application, Dictionaries};
use crate::print::{note, say};
use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::agent::{self, Crew};
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{Acceptor, AllowList, Host, MessageLog};
use fanfare_engine::idle::Idle;
use fanfare_engine::settings::{SessionSettings, Settings, TlsFiles};
use fanfare_engine::stop::Stop;
use fanfare_engine::tls::{Identity, TlsServer};
use fanfare_fix::session::Role;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Options of `fanfare fix acceptor`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Settings as QuickFIX has them: sections DEFAULT and SESSION, Key=Value.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Answer application messages as a conformance test server does: orders, security
    /// definitions and e-mails come back, anything else is rejected.
    #[arg(long)]
    echo: bool,
    /// Do not tell on stderr who comes and goes, and why.
    #[arg(long)]
    quiet: bool,
}

/// A message log is begun anew at this size.
const LOG_BYTES: u64 = 1 << 30;
/// Longest sleep of a thread that has nothing to do.
const NAP: Duration = Duration::from_millis(20);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let sessions = read(args)?;
    let log = log_folder(&sessions);
    let mut dictionaries = Dictionaries::new();
    let ports = ports(sessions, args.echo, &mut dictionaries)?;
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let mut host = Host::new(Application::new(args.echo, args.quiet, dictionaries))?;
    let mut crew = Crew::new(Stop::new());
    if let Some(folder) = log {
        host.log_to(message_log(&folder, &mut crew)?);
    }
    for acceptor in ports.into_values() {
        let count = acceptor.sessions.len();
        let address = host.listen(acceptor)?;
        say!("listening on {address}, {count} sessions");
    }
    let ended = agent::run(&mut host, Idle::Wait(NAP), &stop);
    crew.stop().raise();
    crew.join()?;
    ended.map_err(anyhow::Error::from_boxed)?;
    Ok(ExitCode::SUCCESS)
}

/// All sessions of a port have the same certificates, or none.
fn encrypt(
    acceptor: &mut Acceptor,
    first: bool,
    files: Option<&TlsFiles>,
    listen: SocketAddr,
) -> Result<()> {
    ensure!(
        first || acceptor.is_encrypted() == files.is_some(),
        "all sessions on {listen} need the SERVER_CERTIFICATE_FILE, or none"
    );
    if let Some(files) = files.filter(|_| first) {
        let identity = Identity {
            certificates: files.certificate.clone(),
            key: files.key.clone(),
        };
        let tls = TlsServer::new(&identity, files.client_roots.as_deref())?;
        *acceptor = acceptor.clone().tls(tls);
    }
    Ok(())
}

/// The acceptors of the settings file; what has no effect is named.
fn read(args: &Args) -> Result<Vec<SessionSettings>> {
    let name = args.config.display();
    let text =
        std::fs::read_to_string(&args.config).with_context(|| format!("cannot read {name}"))?;
    let settings = Settings::parse(&text).with_context(|| name.to_string())?;
    for remark in &settings.remarks {
        note!("{name}: {remark}");
    }
    let mut sessions = settings.sessions;
    sessions.retain(|session| {
        let is_acceptor = session.role == Role::Acceptor;
        if !is_acceptor {
            note!(
                "{name}: session {} is no acceptor, it is left out",
                session.config.id
            );
        }
        is_acceptor
    });
    ensure!(
        !sessions.is_empty(),
        "{name} has no session with ConnectionType=acceptor"
    );
    Ok(sessions)
}

/// The first folder that a session names: there is one log for all.
fn log_folder(sessions: &[SessionSettings]) -> Option<PathBuf> {
    let mut folders = sessions.iter().filter_map(|session| session.log.clone());
    let folder = folders.next()?;
    if folders.any(|other| other != folder) {
        note!(
            "one message log for all sessions: {}",
            folder.join("messages.log").display()
        );
    }
    Some(folder)
}

fn message_log(folder: &Path, crew: &mut Crew) -> Result<fanfare_engine::host::LogTap> {
    let cannot = || format!("cannot write a message log in {}", folder.display());
    std::fs::create_dir_all(folder).with_context(cannot)?;
    let path = folder.join("messages.log");
    let (tap, log) = MessageLog::open(&path, LOG_BYTES, &Counters::new()).with_context(cannot)?;
    crew.spawn(log, Idle::Sleep(NAP), None)?;
    Ok(tap)
}

/// The sessions by where they are listened for, with their dictionaries.
fn ports(
    sessions: Vec<SessionSettings>,
    echo: bool,
    dictionaries: &mut Dictionaries,
) -> Result<BTreeMap<SocketAddr, Acceptor>> {
    let mut ports = BTreeMap::<SocketAddr, Acceptor>::new();
    for settings in sessions {
        let Some(listen) = settings.listen else {
            continue;
        };
        let mut config = settings.config;
        config.mirror_appl_ver_id = echo;
        if let Some(files) = &settings.dictionaries {
            let read = |path: &Path| std::fs::read_to_string(path);
            let id = config.id.clone();
            let validator = files
                .load(&read, &mut |remark| note!("session {id}: {remark}"))
                .with_context(|| format!("session {id}"))?;
            let validator = Arc::new(validator);
            dictionaries.insert(id, Arc::clone(&validator));
            config.validator = Some(validator);
        }
        // An answer has at most the fields of its question and a longer header.
        config.max_send = config.max_message + (4 << 10);
        let port = ports.entry(listen);
        let first = matches!(port, std::collections::btree_map::Entry::Vacant(_));
        let acceptor = port.or_insert_with(|| Acceptor::new(listen));
        encrypt(acceptor, first, settings.tls.as_ref(), listen)?;
        // A session without a list opens the port for everybody.
        let AllowList(networks) = &mut acceptor.allow;
        if settings.allow.is_empty() || (networks.is_empty() && !first) {
            networks.clear();
        } else {
            networks.extend(settings.allow);
        }
        acceptor.sessions.push((config, settings.store));
    }
    Ok(ports)
}
