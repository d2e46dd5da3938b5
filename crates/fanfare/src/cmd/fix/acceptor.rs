//! `fanfare fix acceptor`: the acceptor sessions of a settings file.

use super::echo::{Application, Dictionaries};
use super::reload::Reloader;
use super::sessions::{self, NAP};
use crate::print::say;
use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::agent::{self, Crew};
use fanfare_engine::host::{Acceptor, AllowList, Host};
use fanfare_engine::idle::Idle;
use fanfare_engine::settings::{SessionSettings, TlsFiles};
use fanfare_engine::stop::{Reload, Stop};
use fanfare_engine::tls::{Identity, TlsServer};
use fanfare_fix::session::Role;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Any number of sessions may share a port; a Logon says by its CompIDs, and where they are the same \
by its SubIDs and LocationIDs, which one it is for. All versions from FIX.4.0 on, FIXT.1.1 with \
5.0 to 5.0SP2; without a dictionary file the built-in tables of the version serve. \
docs/settings.md has all keys; what is not supported is named with its line, not ignored. \
Ctrl-C (SIGINT) and SIGTERM log everybody out. SIGHUP opens the message log at its path again (for \
logrotate) and reads the certificate files again, for new connections; no other signal that can \
be caught ends it.";

/// Options of `fanfare fix acceptor`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
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

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let sessions = sessions::read(&args.config, Role::Acceptor)?;
    let log = sessions::log_folder(&sessions);
    let credentials = sessions::credentials(&sessions);
    let mut dictionaries = Dictionaries::new();
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let reload = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let mut reloader = Reloader::new(reload.clone());
    let ports = ports(sessions, args.echo, &mut dictionaries, &mut reloader)?;
    let application = Application::new(args.echo, args.quiet, dictionaries, credentials);
    let mut host = Host::new(application)?;
    let mut crew = Crew::new(Stop::new());
    if let Some(folder) = log {
        host.log_to(sessions::message_log(&folder, &reload, &mut crew)?);
    }
    crew.spawn(reloader, Idle::Sleep(NAP), None)?;
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
    reloader: &mut Reloader,
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
        *acceptor = acceptor.clone().tls(tls.clone());
        reloader.add(listen.to_string(), move || tls.reload());
    }
    Ok(())
}

/// The sessions by where they are listened for, with their dictionaries.
fn ports(
    sessions: Vec<SessionSettings>,
    echo: bool,
    dictionaries: &mut Dictionaries,
    reloader: &mut Reloader,
) -> Result<BTreeMap<SocketAddr, Acceptor>> {
    let mut ports = BTreeMap::<SocketAddr, Acceptor>::new();
    for settings in sessions {
        let Some(listen) = settings.listen else {
            continue;
        };
        let mut config = settings.config;
        config.mirror_appl_ver_id = echo;
        if let Some(files) = &settings.dictionaries {
            let validator = sessions::validator(files, &config.id)?;
            dictionaries.insert(config.id.clone(), Arc::clone(&validator));
            config.validator = Some(validator);
        }
        // An answer has at most the fields of its question and a longer header.
        config.max_send = config.max_message + sessions::HEADER_ROOM;
        let port = ports.entry(listen);
        let first = matches!(port, std::collections::btree_map::Entry::Vacant(_));
        let acceptor = port.or_insert_with(|| Acceptor::new(listen));
        encrypt(acceptor, first, settings.tls.as_ref(), listen, reloader)?;
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
