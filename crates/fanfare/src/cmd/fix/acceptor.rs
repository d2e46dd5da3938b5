//! `fanfare fix acceptor`: the acceptor sessions of a settings file.

use super::echo::{Application, Right, Rights};
use super::reload::Reloader;
use super::sessions::{self, NAP};
use crate::background;
use crate::print::{counted, note, say};
use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::agent::{self, Crew};
use fanfare_engine::counters::Counters;
use fanfare_engine::host::{Acceptor, AcceptorSession, AllowList, Host, Network, Wildcard};
use fanfare_engine::idle::Idle;
use fanfare_engine::settings::{PortLimits, SessionSettings, TlsFiles};
use fanfare_engine::stop::{Reload, Stop};
use fanfare_engine::tls::{Identity, TlsServer};
use fanfare_fix::session::{Config, Role};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Any number of sessions may share a port; a Logon says by its CompIDs, and where they are the same \
by its SubIDs and LocationIDs, which one it is for; a section with AcceptorTemplate=Y makes \
sessions for whoever fits its CompIDs. Without SocketAcceptAddress only this machine can connect. \
All versions from FIX.4.0 on, FIXT.1.1 with \
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
    /// Never make a session wait for the message log (FileLogPath): what it has no room for is left
    /// out and counted, and stderr says so. Without this option the log is complete.
    #[arg(long)]
    lossy_log: bool,
    /// Start a session even if its store has lost messages: what is whole is saved, and the damaged
    /// store stays beside it. Without this option such a session does not start, and stderr says
    /// what is lost.
    #[arg(long)]
    accept_loss: bool,
    /// Do not tell on stderr who comes and goes, and why.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    background::begin()?;
    let mut sessions = sessions::read(&args.config, Role::Acceptor)?;
    if args.accept_loss {
        sessions::accept_loss(&mut sessions);
    }
    let log = sessions::log_folder(&sessions);
    let lossy = args.lossy_log || sessions.iter().any(|session| session.lossy_log);
    let counters = Counters::new();
    let on_loopback = sessions.iter().any(|session| !session.names_address);
    let mut rights = Rights::default();
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let reload = Reload::on_hangup().context("cannot catch SIGHUP")?;
    let mut reloader = Reloader::new(reload.clone());
    let ports = ports(sessions, args.echo, &mut rights, &mut reloader)?;
    let application = Application::new(args.echo, args.quiet, rights);
    let mut host = Host::new(application)?;
    let mut crew = Crew::new(Stop::new());
    if let Some(folder) = log {
        host.log_to(sessions::message_log(
            &folder, lossy, &reload, &counters, &mut crew,
        )?);
    }
    crew.spawn(reloader, Idle::Sleep(NAP), None)?;
    for acceptor in ports.into_values() {
        let hosted = hosted(&acceptor);
        let address = host.listen(acceptor)?;
        say!("listening on {address}, {hosted}");
    }
    if on_loopback {
        note!(
            "only this machine can connect: no SocketAcceptAddress is named, with 0.0.0.0 others \
             can"
        );
    }
    let ended = agent::run(&mut host, Idle::Wait(NAP), &stop);
    crew.stop().raise();
    crew.join()?;
    sessions::tell_losses(&counters);
    ended.map_err(anyhow::Error::from_boxed)?;
    Ok(ExitCode::SUCCESS)
}

/// The number of sessions and templates of a port, in words.
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

/// The sessions by where they are listened for, with their dictionaries.
fn ports(
    sessions: Vec<SessionSettings>,
    echo: bool,
    rights: &mut Rights,
    reloader: &mut Reloader,
) -> Result<BTreeMap<SocketAddr, Acceptor>> {
    let mut ports = BTreeMap::<SocketAddr, Port>::new();
    for settings in sessions {
        let Some(listen) = settings.listen else {
            continue;
        };
        let mut config = settings.config.clone();
        config.mirror_appl_ver_id |= echo;
        let mut own = Right {
            credentials: settings.credentials.clone(),
            dictionaries: None,
        };
        if let Some(files) = &settings.dictionaries {
            let validator = sessions::validator(files, &config.id)?;
            own.dictionaries = Some(Arc::clone(&validator));
            config.validator = Some(validator);
        }
        // An answer has at most the fields of its question and a longer header.
        config.max_send = config.max_message + sessions::HEADER_ROOM;
        let port = match ports.entry(listen) {
            Entry::Occupied(port) => port.into_mut(),
            Entry::Vacant(place) => place.insert(Port::new(listen, &settings, reloader)?),
        };
        ensure!(
            port.tls == settings.tls,
            "all sessions on {listen} need the same certificate files and NeedClientAuth, or none"
        );
        ensure!(
            port.limits == settings.port_limits,
            "all sessions on {listen} need the same MaxLogonLength, MaxConnectionsNotLoggedOn and \
             MaxConnectionsNotLoggedOnPerAddress: set them in [DEFAULT]"
        );
        port.allow(&settings.allow);
        port.add(config, settings, own, rights);
    }
    let acceptors = ports.into_iter();
    Ok(acceptors
        .map(|(listen, port)| (listen, port.acceptor))
        .collect())
}

/// An acceptor in the making.
struct Port {
    acceptor: Acceptor,
    tls: Option<TlsFiles>,
    limits: PortLimits,
    /// A session without a list opens the port for everybody.
    for_all: bool,
}

impl Port {
    /// A port without sessions yet, encrypted as its first session asks.
    fn new(listen: SocketAddr, first: &SessionSettings, reloader: &mut Reloader) -> Result<Self> {
        let limits = first.port_limits;
        let mut acceptor = Acceptor::new(listen);
        acceptor.max_greetings = limits.connections;
        acceptor.max_greetings_per_address = limits.connections_per_address;
        acceptor.max_logon = limits.logon_bytes;
        if let Some(files) = &first.tls {
            let identity = Identity {
                certificates: files.certificate.clone(),
                key: files.key.clone(),
            };
            let tls = TlsServer::new(&identity, files.client_roots.as_deref())?;
            acceptor = acceptor.tls(tls.clone());
            reloader.add(listen.to_string(), move || tls.reload());
        }
        Ok(Self {
            acceptor,
            tls: first.tls.clone(),
            limits,
            for_all: false,
        })
    }

    fn allow(&mut self, list: &[Network]) {
        let AllowList(networks) = &mut self.acceptor.allow;
        self.for_all |= list.is_empty();
        networks.extend(list);
        if self.for_all {
            networks.clear();
        }
    }

    /// Adds a session, or a template; its entries for other versions belong to the same.
    fn add(&mut self, config: Config, settings: SessionSettings, own: Right, rights: &mut Rights) {
        let (store, names) = (settings.store, settings.client_names);
        let Some(template) = settings.template else {
            rights.sessions.insert(config.id.clone(), own);
            return self.acceptor.sessions.push(AcceptorSession {
                session: config,
                store,
                names,
            });
        };
        let tag = template.line;
        let version = config.id.version;
        rights.templates.insert((tag, version), own);
        let mut known = self.acceptor.wildcards.iter_mut();
        if let Some(wildcard) = known.find(|wildcard| wildcard.tag == tag) {
            return wildcard.templates.push(config);
        }
        self.acceptor.wildcards.push(Wildcard {
            pattern: template.pattern,
            templates: vec![config],
            store,
            max_sessions: template.max_sessions,
            qualified: template.qualified,
            names,
            tag,
        });
    }
}
