//! `fanfare latency server`: the peer of a latency tester.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use clap::builder::PossibleValue;
use fanfare_engine::agent::{self, Agent};
use fanfare_engine::cpu;
use fanfare_engine::host::{Acceptor, Handler, Host, Peer, Refusal};
use fanfare_engine::idle::Idle;
use fanfare_engine::journal::Recovery;
use fanfare_engine::levels::LogLevel;
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{AppMessage, Config, DisconnectReason, SessionId, Version};
use fanfare_instruments::pingpong::{Exchange, LenientServer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use super::StoreArgs;
use crate::logs::{self, LogArgs};
use crate::print::say;

/// Options of `fanfare latency server`.
///
/// Any CompIDs and versions may log on; numbers start at 1 with each connection. The server runs a
/// complete session, or, with --lenient, responds to any message. It ends at Ctrl-C.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Port to listen on; 0 lets the system choose.
    #[arg(short, long, default_value_t = 7070)]
    port: u16,
    /// Address to listen on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// Mode of the server: `session` is a FIX session that acknowledges orders.
    #[arg(short, long, default_value = "session")]
    mode: Mode,
    /// Serve testers that number from 0, repeat numbers, or send orders without their required
    /// fields: frames and CheckSum(10) alone are checked, and no timer runs.
    #[arg(long, conflicts_with = "store")]
    lenient: bool,
    /// Run on this processor alone and never yield it; by default, the thread yields to others, and
    /// takes a whole processor if no other thread wants it.
    #[arg(long, value_name = "CPU")]
    pin: Option<usize>,
    /// Sleep in the kernel while there is nothing to do: an idle server uses no processor.
    #[arg(long, conflicts_with_all = ["pin", "lenient"])]
    sleep: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// The modes of the server.
#[derive(Clone, Copy)]
enum Mode {
    Session,
}

impl clap::ValueEnum for Mode {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Session]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        // The mode's number in libtrading's fix_server is an alias.
        Some(PossibleValue::new("session").alias("1"))
    }
}

/// The most sessions at a time.
const MOST_SESSIONS: usize = 64;
/// The longest sleep of `--sleep`.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Mode::Session = args.mode;
    args.log.begin("info")?;
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let listen = SocketAddr::new(args.address, args.port);
    let orders = if args.lenient {
        let mut server = LenientServer::bind(
            listen,
            Box::new(|line| tracing::info!(target: "session", "{line}")),
        )?;
        serve(args, server.address()?, &mut server, &stop)?;
        server.orders()
    } else {
        let mut host = Host::new(Server::default())?;
        let address = host.listen(acceptor(args, listen))?;
        serve(args, address, &mut host, &stop)?;
        host.handler().exchange.orders()
    };
    say!("{orders} orders received");
    Ok(ExitCode::SUCCESS)
}

/// Returns an acceptor that accepts any Logon, and restarts the numbers with each connection.
fn acceptor(args: &Args, listen: SocketAddr) -> Acceptor {
    let mut template = Config::new(SessionId::new(Version::Fix44, "SERVER", "CLIENT"));
    template.reset_on_disconnect = true;
    Acceptor::new(listen).anybody(template, args.store.kind(), MOST_SESSIONS)
}

/// Runs until Ctrl-C.
fn serve(args: &Args, address: SocketAddr, agent: &mut dyn Agent, stop: &Stop) -> Result<()> {
    let idle = match args.pin {
        Some(cpu) => {
            cpu::pin_to(cpu)?;
            Idle::Spin
        }
        None if args.sleep => Idle::Wait(LONGEST_SLEEP),
        None => Idle::Yield,
    };
    say!("listening on {address}");
    agent::run(agent, idle, stop).map_err(anyhow::Error::from_boxed)
}

/// The server, which acknowledges orders and logs the events of its sessions.
#[derive(Default)]
struct Server {
    exchange: Exchange,
}

impl Handler for Server {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.exchange.on_message(peer, message);
    }

    fn on_recovery(&mut self, id: &SessionId, recovery: &Recovery) {
        logs::recovery(id, recovery);
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        logs::session(
            LogLevel::Info,
            peer.id(),
            &format!("{} logged on", peer.id()),
        );
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        logs::session(
            LogLevel::Info,
            peer.id(),
            &format!("{} gone: {reason}", peer.id()),
        );
        let lost = self.exchange.unanswered();
        if lost > 0 {
            let why = "the counterparty does not read";
            tracing::warn!(target: "session", lost, "{lost} orders so far have no report: {why}");
        }
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        logs::refused(&format!("{address} turned away: {why}"));
    }
}
